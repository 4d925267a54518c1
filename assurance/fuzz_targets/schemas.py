"""Schema files: any text is refused with SchemaError, or is a schema that survives both of its forms."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

from assurance.fuzz_targets import scratch
from assurance.fuzz_targets.limits import limited
from dpgram.demo import insurance
from dpgram.errors import SchemaError
from dpgram.schema import Schema, boolean, categorical, legendre, numeric, ordinal, product, starter_toml

LONGEST: Final = 20_000
"""Characters of an error that a person can still read."""


def seeds() -> list[bytes]:
    """Every kind of column, dates, open bounds, and a starter."""
    every = Schema(
        numeric("age", 18, 90, weight=0.5),
        numeric("born", "1900-01-01", "2020-12-31"),
        numeric("open"),
        categorical("sex", ["female"], other="other"),
        ordinal("size", ["s", "m", "l"]),
        boolean("smoker"),
        product("age", "smoker"),
        legendre("age", 3),
        constant=False,
    )
    starter = starter_toml({"a": "int64", "b": "string", "c": "bool", "d": "timestamp[us]", "e": "list<int>"})
    return [insurance.schema().to_toml().encode(), every.to_toml().encode(), starter.encode()]


VALUES: Final = (
    "0", "-0.0", "1", "-1", "1e308", "-1e308", "1e400", "1e200", "5e-324", "inf", "nan", "true", "[]",
    '[""]', "{}", '["a", "b"]', "[1, true]", "[[1]]", '""', '"a"', '"age"', '"\\u0000"', '"numeric"',
    '"categorical"', '"ordinal"', '"boolean"', '"product"', '"legendre"', '"2020-01-01"', '"2020-02-30"',
    "1979-05-27", "1979-05-27T00:32:00Z", "07:32:00", "999999999999999999999999999999", "0x10", "3",
    "99999999999", "[" * 2_000, "{a=" * 500, "9" * 5_000,
)  # fmt: skip
KEYS: Final = (
    "kind", "name", "low", "high", "weight", "levels", "other", "left", "right", "column", "degree",
    "constant", ".".join("a" * 5_000),
)  # fmt: skip


def mutate(data: bytes, dice: random.Random) -> bytes:
    """Lines get another value, vanish, come twice, change places; new ones appear."""
    lines = data.decode("utf-8", "replace").split("\n")
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(lines))
        match dice.randrange(6):
            case 0:
                lines[at : at + 1] = []
            case 1:
                lines.insert(at, dice.choice(lines))
            case 2:
                lines.insert(at, "[[columns]]")
            case 3:
                lines.insert(at, f"{dice.choice(KEYS)} = {dice.choice(VALUES)}")
            case _:
                key, equals, _ = lines[at].partition(" = ")
                lines[at] = f"{key} = {dice.choice(VALUES)}" if equals else lines[at]
        lines = lines or [""]
    return "\n".join(lines).encode()


def examine(data: bytes) -> None:
    """Read it as a file, as a curator does."""
    path = scratch() / "fuzzed.toml"
    path.write_bytes(data)
    with limited("a schema"):
        accepted(path)


def accepted(path: Path) -> Schema | None:
    """The schema; None where it is refused."""
    try:
        schema = Schema.from_file(path)
    except SchemaError as refusal:
        if len(str(refusal)) > LONGEST:
            raise AssertionError("an endless refusal") from refusal
        return None
    assert Schema.from_dict(schema.to_dict()) == schema, "its JSON form is another schema"
    path.write_text(schema.to_toml(), encoding="utf-8")
    assert Schema.from_file(path) == schema, "its TOML form is another schema"
    if not schema.unbounded and not schema.without_levels:
        assert len(schema.encoded) == schema.width, "encoded columns are not those of the matrix"
        assert schema.max_norm_squared > 0.0, "a radius of nothing"
    return schema
