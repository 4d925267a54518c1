"""The schema: what it allows, what it refuses, and its TOML and JSON forms."""

from __future__ import annotations

import json
import math
import pickle
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgram.document.terminal import printable
from dpgram.errors import DpgramError, SchemaError
from dpgram.schema import (
    MAX_WIDTH,
    Column,
    Numeric,
    Schema,
    boolean,
    categorical,
    legendre,
    numeric,
    ordinal,
    product,
    starter_toml,
)

INSURANCE = Schema(
    numeric("age", 18, 90),
    numeric("bmi", 10, 60, weight=2),
    categorical("smoker", ["no", "yes"]),
    boolean("insured"),
    categorical("region", [1, 2, 3], other="else", weight=0.5),
    product("age", "bmi"),
    product("age", "insured"),
    legendre("age", degree=2),
)


def test_encoded_columns_follow_the_declared_order() -> None:
    assert INSURANCE.names == (
        "(constant)",
        "age",
        "bmi",
        "smoker=no",
        "smoker=yes",
        "insured",
        "region=1",
        "region=2",
        "region=3",
        "region=else",
        "age*bmi",
        "age*insured",
        "age^P2",
    )
    assert INSURANCE.width == len(INSURANCE.names) == len(INSURANCE.encoded)
    assert tuple(column.name for column in INSURANCE.encoded) == INSURANCE.names
    assert len(INSURANCE) == 8


def test_only_real_columns_are_read() -> None:
    assert INSURANCE.source_columns == ("age", "bmi", "smoker", "insured", "region")


def test_a_group_of_levels_costs_one_unit_of_sensitivity() -> None:
    assert INSURANCE.max_norm_squared == 1 + 1 + 4 + 1 + 1 + 0.25 + 1 + 1 + 1
    assert Schema(categorical("a", range(500))).max_norm_squared == 2
    assert Schema(numeric("a", 0, 1), constant=False).max_norm_squared == 1


def test_indices() -> None:
    assert INSURANCE.indices("(constant)") == (0,)
    assert INSURANCE.indices("region") == (6, 7, 8, 9)
    assert INSURANCE.indices("region=2") == (7,)
    assert INSURANCE.indices("age^P2") == (12,)
    for column in INSURANCE.columns:
        assert tuple(INSURANCE.names[i] for i in INSURANCE.indices(column.name)) == column.encoded_names
    with pytest.raises(SchemaError, match=r"no column 'smokr'.*Did you mean 'smoker'"):
        INSURANCE.indices("smokr")


def test_affine_facts_of_encoded_columns() -> None:
    encoded = {column.name: column for column in INSURANCE.encoded}
    assert (encoded["age"].centre, encoded["age"].half_width) == (54, 36)
    assert (encoded["insured"].centre, encoded["insured"].half_width) == (0.5, 0.5)
    assert encoded["region=else"].level == "else"
    assert encoded["region=else"].source == "region"
    assert encoded["region=else"].weight == 0.5
    assert [encoded[name].kind for name in ("(constant)", "smoker=no", "age*bmi", "age^P2")] == [
        "constant",
        "level",
        "product",
        "legendre",
    ]


def test_other_may_be_one_of_the_levels() -> None:
    assert categorical("a", ["x", "rest"], other="rest").all_levels == ("x", "rest")
    assert categorical("a", ["x"], other="rest").all_levels == ("x", "rest")


def test_levels_are_texts() -> None:
    assert categorical("a", [1, np.int64(2), "3", True, False]).levels == ("1", "2", "3", "true", "false")


def test_dates_are_days() -> None:
    column = numeric("birthday", "1900-01-01", date(2020, 12, 31))
    assert column.dates
    assert column.high == (date(2020, 12, 31) - date(1970, 1, 1)).days
    assert column == numeric("birthday", datetime(1900, 1, 1, tzinfo=UTC), "2020-12-31T00:00:00")
    assert (
        numeric("t", "2020-01-01T12:00:00+02:00", "2021-01-01").low
        == numeric("t", "2020-01-01T10:00:00", "2021-01-01").low
    )


@pytest.mark.parametrize(
    ("low", "high"), [("1900-01-01", 3), (3, "1900-01-01"), ("soon", "later"), ("5", "7")]
)
def test_mixed_or_unreadable_date_bounds(low: object, high: object) -> None:
    with pytest.raises(SchemaError, match=f"both be numbers or both ISO dates; got {low!r} and {high!r}"):
        numeric("birthday", low, high)


def test_a_bound_that_is_a_word_is_named() -> None:
    """Only the 10 was."""
    with pytest.raises(SchemaError, match="got 10 and 'sixty'"):
        numeric("age", 10, "sixty")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: numeric("a", 2, 1), "reversed"),
        (lambda: numeric("a", 1, 1), "reversed"),
        (lambda: numeric("a", math.nan, 1), "finite"),
        (lambda: numeric("a", 0, math.inf), "finite"),
        (lambda: numeric("a", 0, 10**400), "finite"),
        (lambda: numeric("a", 0), "one bound only"),
        (lambda: numeric("a", None, 3), "one bound only"),
        (lambda: numeric("a", True, False), "must be a number"),
        (lambda: numeric("a", 1e16, 1e16 + 2), "too close"),
        (lambda: numeric("a", 0.0, 5e-324), "too close"),
        (lambda: numeric("", 0, 1), "not empty"),
        (lambda: numeric(3, 0, 1), "not empty"),
        (lambda: numeric("\ud800", 0, 1), "Unicode"),
        (lambda: numeric("(constant)", 0, 1), "kept for"),
        (lambda: numeric("a", 0, 1, weight=0), "weight"),
        (lambda: numeric("a", 0, 1, weight=math.inf), "weight"),
        (lambda: boolean("a", weight=-1), "weight"),
        (lambda: boolean("a", weight="2"), "must be a number"),
        (lambda: numeric("a", "2000-01-01", "9999-12-31T23:59:59.999999"), "calendar"),
        (lambda: numeric("a", "0001-01-01T00:00+14:00", "2000-01-01"), "calendar"),
        (lambda: categorical("a", ["x", "\ud800"]), "Unicode"),
        (lambda: categorical("a", ["x"], other="\udfff"), "Unicode"),
        (lambda: categorical("a", []), "empty level list"),
        (lambda: categorical("a", "abc"), "must be a list"),
        (lambda: categorical("a", ["x", "x"]), "twice"),
        (lambda: categorical("a", [1, "1"]), "twice"),
        (lambda: categorical("a", [1.5]), "whole number"),
        (lambda: categorical("a", [None]), "whole number"),
        (lambda: legendre("a", 1), "degree"),
        (lambda: legendre("a", 100), "degree"),
        (lambda: legendre("a", 10**5000), "degree"),
        (lambda: legendre("a", 2.0), "whole number"),
        (Schema, "at least one"),
        (lambda: Schema("age"), "made of columns"),
        (lambda: Schema(boolean("a"), constant=1), "true or false"),
        (lambda: Schema(numeric("a", 0, 1), boolean("a")), "'a' is declared twice"),
        (lambda: Schema(categorical("a", ["x"]), boolean("a=x")), "'a=x' is declared twice"),
        (
            lambda: Schema(categorical("a", ["x"]), categorical("a=x", ["y"])),
            "'a=x' is declared twice",
        ),
        (lambda: Schema(product("a", "b")), "does not declare"),
        (lambda: Schema(legendre("a", 2)), "does not declare"),
        (lambda: Schema(categorical("a", ["x"]), product("a", "a")), "with itself"),
        (lambda: Schema(categorical("a", ["x"]), legendre("a", 2)), "a categorical column"),
        (lambda: Schema(boolean("b"), legendre("b", 2)), "a boolean column"),
        (lambda: Schema(numeric("a", 0, 1), legendre("a", 2), product("a", "a^P2")), "a legendre column"),
        (lambda: Schema(*(boolean(str(i)) for i in range(10**5))), "too many encoded columns; got 100001"),
        (lambda: Schema(categorical("a", range(MAX_WIDTH))), "too many encoded columns"),
    ],
)
def test_refused(make: object, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        make()


def test_widest_schema_is_accepted() -> None:
    assert Schema(categorical("a", range(MAX_WIDTH - 1))).width == MAX_WIDTH


def test_bounds_may_be_left_open_but_then_nothing_is_encoded() -> None:
    schema = Schema(numeric("income"), boolean("b"), numeric("day", "2000-01-01", "2001-01-01"))
    assert schema.unbounded == ("income",)
    assert schema.names == ("(constant)", "income", "b", "day")
    with pytest.raises(SchemaError, match="'income' has no bounds"):
        schema.encoded  # noqa: B018  (the property raises)
    filled = schema.with_bounds({"income": (0, 7)})
    assert filled.unbounded == ()
    assert filled.column("income") == numeric("income", 0, 7)
    assert filled.column("b") == boolean("b")
    widened = filled.with_bounds({"day": (10957.3, 11000.2)}).column("day")
    assert widened == numeric("day", "2000-01-01", "2000-02-14")
    with pytest.raises(SchemaError, match="has no bounds to set"):
        schema.with_bounds({"b": (0, 1)})


class TestLearn:
    """A file says of what it leaves open that it is learnt; else nobody has filled it in."""

    def test_what_python_leaves_open_is_decided_and_stays_so_in_a_file(self) -> None:
        schema = Schema(numeric("income"), categorical("city"))
        assert schema.undecided == ()
        assert [form["learn"] for form in schema.to_dict()["columns"]] == [True, True]
        assert Schema.from_dict(tomllib.loads(schema.to_toml())) == schema

    def test_what_a_file_leaves_open_without_a_word_is_not(self) -> None:
        open_columns = [{"kind": "numeric", "name": "income"}, {"kind": "categorical", "name": "city"}]
        schema = Schema.from_dict({"columns": open_columns})
        assert schema.undecided == ("income", "city")
        assert schema.to_dict()["columns"][0] == open_columns[0]
        known = schema.with_bounds({"income": (0.0, 9.0)}).with_levels({"city": ("Bern",)})
        assert known.undecided == ()
        assert known.column("income") == numeric("income", 0, 9)

    @pytest.mark.parametrize(
        "more", [{"learn": False}, {"learn": "yes"}, {"learn": True, "low": 0, "high": 1}]
    )
    def test_it_may_be_true_alone_and_of_what_is_open(self, more: dict[str, Any]) -> None:
        with pytest.raises(SchemaError, match=r"must be true|nothing of it is left open"):
            Schema.from_dict({"columns": [{"kind": "numeric", "name": "x", **more}]})
        with pytest.raises(SchemaError, match="'learn'"):
            Schema.from_dict({"columns": [{"kind": "boolean", "name": "x", "learn": True}]})


def test_equality_hash_and_pickle() -> None:
    again = Schema.from_dict(INSURANCE.to_dict())
    assert again == INSURANCE
    assert hash(again) == hash(INSURANCE)
    assert pickle.loads(pickle.dumps(INSURANCE)) == INSURANCE
    assert Schema(*INSURANCE.columns, constant=False) != INSURANCE
    assert Schema(*INSURANCE.columns[::-1]) != INSURANCE


def test_frozen() -> None:
    with pytest.raises(AttributeError):
        INSURANCE.constant = False
    with pytest.raises(AttributeError):
        INSURANCE.columns[0].name = "other"


names = st.text(min_size=1, max_size=12).filter(lambda text: text != "(constant)" and _is_unicode(text))
weights = st.floats(1e-6, 1e6)


def _is_unicode(text: str) -> bool:
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in text)


@st.composite
def bounds(draw: st.DrawFn) -> tuple[float, float]:
    low = draw(st.floats(-1e300, 1e300))
    high = low + draw(st.floats(1e-6, 1e6)) * max(1.0, abs(low))
    return low, high


@st.composite
def columns(draw: st.DrawFn, name: str) -> Column:
    weight = draw(weights)
    kind = draw(st.sampled_from(["numeric", "open", "dates", "categorical", "boolean"]))
    if kind == "numeric":
        return numeric(name, *draw(bounds()), weight=weight)
    if kind == "dates":
        moments = st.datetimes(max_value=datetime.fromisoformat("9999-12-31"))
        first, second = sorted(draw(st.tuples(moments, moments)))
        if (second - first).days < 1:
            return numeric(name, "1900-01-01", "1900-01-02")
        return numeric(name, first, second)
    if kind == "categorical":
        levels = draw(st.lists(st.text(max_size=6).filter(_is_unicode), min_size=1, max_size=5, unique=True))
        return categorical(name, levels, draw(st.none() | st.just("other")), weight=weight)
    return numeric(name) if kind == "open" else boolean(name, weight=weight)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    distinct = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    declared = [draw(columns(name)) for name in distinct]
    numbers = [column.name for column in declared if isinstance(column, Numeric)]
    if numbers:
        declared.append(legendre(numbers[0], draw(st.integers(2, 5))))
        declared.append(product(numbers[0], numbers[-1], weight=draw(weights)))
    try:
        return Schema(*declared, constant=draw(st.booleans()))
    except SchemaError:  # names such as "a" with level "b" beside a column "a=b"
        return Schema(boolean("a"))


@given(schemas())
def test_json_and_toml_forms_round_trip(schema: Schema) -> None:
    assert Schema.from_dict(schema.to_dict()) == schema
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert Schema.from_dict(tomllib.loads(schema.to_toml())) == schema


def test_a_form_is_the_same_whoever_made_the_column() -> None:
    """Floats are floats in the file: a digest is taken of the text."""
    made = Schema(Numeric("a", 0, 1, 2), boolean("b", weight=np.float32(0.5)))
    again = Schema.from_dict(json.loads(json.dumps(made.to_dict())))
    assert json.dumps(again.to_dict()) == json.dumps(made.to_dict())


@given(st.text(min_size=1, max_size=20).filter(_is_unicode))
def test_a_printed_starter_survives_the_terminal(name: str) -> None:
    """What cannot be shown is written as TOML escapes it, not as the terminal's guard would."""
    text = starter_toml({name: "int64"})
    assert printable(text) == text
    assert tomllib.loads(text)["columns"][0]["name"] == name


def test_files_round_trip(tmp_path: Path) -> None:
    INSURANCE.to_file(tmp_path / "insurance.toml")
    assert Schema.from_file(tmp_path / "insurance.toml") == INSURANCE


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (
            lambda: numeric("x", min=18, max=90),
            "is numeric, which does not know 'max'; limit: needs name; may",
        ),
        (lambda: numeric("x", 0, 1, case="lower"), "is numeric, which does not know 'case'"),
        (lambda: boolean("x", decimal=","), "is boolean, which does not know 'decimal'"),
        (lambda: boolean("x", level_labels=["a", "b"]), "is boolean, which does not know 'level_labels'"),
        (lambda: categorical("x", ["a"], lables=["b"]), "is categorical, which does not know 'lables'"),
        (lambda: ordinal("x", ["a", "b"], other="c"), "is ordinal, which does not know 'other'"),
    ],
)
def test_what_a_kind_does_not_know_is_refused_in_python_as_in_files(
    declare: Callable[[], object], words: str
) -> None:
    """A release of such a column was charged and saved, and could never be loaded."""
    with pytest.raises(SchemaError, match=re.escape(f"column 'x' {words}")):
        declare()


@pytest.mark.parametrize(
    "declare",
    [
        lambda text: numeric(text, 0, 1),
        lambda text: categorical("x", ["a", text]),
        lambda text: ordinal("x", ["a", text]),
        lambda text: categorical("x", ["a", "b"], other=text),
    ],
)
def test_a_text_that_no_file_may_hold_is_refused_in_python_too(declare: Callable[[str], Column]) -> None:
    """A release of such a column was charged and saved, and could never be loaded."""
    longest = Schema(declare("y" * 4_000))
    assert Schema.from_dict(longest.to_dict()) == longest
    with pytest.raises(SchemaError, match="a name or level is too long; got 4,001 characters"):
        Schema(declare("y" * 4_001))


def test_a_file_that_is_there_is_not_replaced_unasked(tmp_path: Path) -> None:
    path = tmp_path / "insurance.toml"
    path.write_text("# two days of work on bounds\n")
    with pytest.raises(DpgramError, match="exists already, and holds something else"):
        INSURANCE.to_file(path)
    assert path.read_text() == "# two days of work on bounds\n"
    INSURANCE.to_file(path, overwrite=True)
    INSURANCE.to_file(path)  # the same once more is no mistake
    assert Schema.from_file(path) == INSURANCE


@pytest.mark.parametrize("name", ["folder", "nowhere/a.toml"])
def test_where_nothing_can_be_written_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(DpgramError, match="the schema cannot be written to"):
        INSURANCE.to_file(tmp_path / name)


def test_toml_written_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(
        """
        [[columns]]
        kind = "numeric"
        name = "birthday"
        low = 1900-01-01
        high = 2020-12-31
        [[columns]]
        kind = "categorical"
        name = "rooms"
        levels = [1, 2, true]
        other = "more"
        """
    )
    expected = Schema(
        numeric("birthday", "1900-01-01", "2020-12-31"),
        categorical("rooms", ["1", "2", "true"], other="more"),
    )
    assert Schema.from_file(path) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("columns = 3", "list `columns`"),
        ("", "list `columns`"),
        ("columns = []", "at least one"),
        ("columns = [1]", "must be a table"),
        ("constant = 1\ncolumns = []", "true or false"),
        ("colums = []", "unknown entry"),
        ("columns = [", "not valid TOML"),
        ("a = " + "[" * 2000, "brackets are nested more than"),
        ("a = " + "{a = " * 2000, "brackets are nested more than"),
        ("high = " + "9" * 5000, "thousands of digits"),
        ("a" + ".a" * 30_000 + " = 1", "a key has more than"),
        ("[" + "a . " * 3000 + "a]", "a key has more than"),
        ("'a'" + '."a"' * 3000 + " = 1", "a key has more than"),
        ('x = {y = """q""""", a' + ".a" * 3000 + " = 1}", "a key has more than"),
        ('[[columns]]\nkind="numbr"\nname="a"', "column 'a' has an unknown kind; got 'numbr'"),
        ('[[columns]]\nname="a"', "unknown kind"),
        ('[[columns]]\nkind="numeric"\nnam="a"', "lacks 'name'"),
        ('[[columns]]\nkind="numeric"\nname="a"\nmin=3', "column 'a' is numeric, which does not know 'min'"),
        ('[[columns]]\nkind="categorical"\nname="a"\nlevels="x"', "`levels` must be a list"),
        ('[[columns]]\nkind="categorical"\nname="a"\nlevels=[]', "'a' has an empty level list"),
        ('[[columns]]\nkind="categorical"\nname="a"\nlevels=[[1]]', "whole number"),
        ('[[columns]]\nkind="legendre"\ncolumn="a"\ndegree="2"', "whole number"),
        ('[[columns]]\nkind="numeric"\nname="a"\nlow="x"\nhigh="y"', "ISO dates"),
        ('[[columns]]\nkind="boolean"\nname=3', "not empty"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(text)
    with pytest.raises(SchemaError, match=message):
        Schema.from_file(path)


def test_dots_and_brackets_in_texts_and_comments_are_no_depth(tmp_path: Path) -> None:
    name = "a" + ".a" * 100 + "[" * 100
    path = tmp_path / "schema.toml"
    path.write_text(f"""# {name}
[[columns]] # "{name}
kind = 'boolean'
name = "{name}\\""
""")
    assert Schema.from_file(path).source_columns == (f'{name}"',)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="cannot be read"):
        Schema.from_file(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SchemaError, match="cannot be read"):
        Schema.from_file(tmp_path / "binary.toml")


def test_starter_schema_has_names_and_types_only() -> None:
    text = starter_toml(
        {
            'a "quoted"\nname': "double",
            "age": "int64",
            "price": "decimal128(10, 2)",
            "smoker": "dictionary<values=string, indices=int32, ordered=0>",
            "city": "string_view",
            "insured": "bool",
            "seen": "timestamp[us, tz=UTC]",
            "tags": "list<item: string>",
            "from a CSV": "unknown",
        }
    )
    assert "PUBLIC knowledge" in text
    form = tomllib.loads(text)
    assert [(column["name"], column["kind"]) for column in form["columns"]] == [
        ('a "quoted"\nname', "numeric"),
        ("age", "numeric"),
        ("price", "numeric"),
        ("smoker", "categorical"),
        ("city", "categorical"),
        ("insured", "boolean"),
        ("seen", "numeric"),
        ("from a CSV", "numeric"),
    ]
    assert '# left out: "tags"' in text
    assert Schema.from_dict(form).undecided[:5] == ('a "quoted"\nname', "age", "price", "smoker", "city")
    filled = text.replace("# levels = []", 'levels = ["x"]')
    assert Schema.from_dict(tomllib.loads(filled)).unbounded == (
        'a "quoted"\nname',
        "age",
        "price",
        "seen",
        "from a CSV",
    )


def test_the_schema_is_light() -> None:
    """Analysts load releases, which hold schemas: reading one must not load readers or compilers."""
    code = (
        "import sys, dpgram.schema; "
        "print([m for m in ('pyarrow','polars','pandas','scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
