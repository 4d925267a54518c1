"""Canonical JSON: one text for one value, and a reader that refuses everything ambiguous.

Canonical means: UTF-8, keys sorted by code point, no spaces, the shortest decimal that reads back as the same
float, no NaN and no infinity. A SHA-256 of that text therefore identifies the value itself.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Final, Never

MOST_VALUES: Final = 1 << 21
"""Values of one text. A parsed value takes about 64 bytes however short it is written, so that a text of
commas and brackets would take thirty times its own size; the widest release has a million values."""


def canonical_bytes(value: object) -> bytes:
    """The one UTF-8 text of `value`. ValueError for NaN, infinities and lone surrogates."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def sha256_hex(value: object) -> str:
    """SHA-256 of the canonical text, in lower-case hexadecimal."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def parse_strictly(raw: bytes) -> object:
    """The value of a JSON text in which no two readers could see different things.

    ValueError for text that is not UTF-8 JSON, for a repeated key (parsers disagree on which one counts), for
    NaN, infinities and numbers that overflow to them, for integers of thousands of digits, for nesting
    deeper than the interpreter can follow and for more than `MOST_VALUES` values.
    """
    # Counted before anything is allocated; those inside of texts count too, which the limit has room for.
    if sum(map(raw.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise ValueError(f"it has more than {MOST_VALUES:,} values")
    try:
        return json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_no_repeats,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _no_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice in one object")
    return found


def _no_constant(name: str) -> Never:
    raise ValueError(f"{name} is not a number JSON allows")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number
