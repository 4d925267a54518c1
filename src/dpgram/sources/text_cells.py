"""Text → numbers, truth values, dates and levels by the reading rules of a column; null where none fits.

Every rule is applied cell by cell: no cell can change how another is read, and none can make reading fail.

What reaches an encoder tells a missing cell (null, or not a number) from an unreadable one, where something
stands that no rule reads: an infinite number, a moment before every calendar, or a truth value that is
neither. Both are lost in the same way; only the noisy histograms and the curator's check tell them apart.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpgram.schema.reading import AS_WRITTEN, BLANKS, UNREADABLE_MOMENT, Reading
from dpgram.sources.base import DeclaredKind

if TYPE_CHECKING:
    import polars as pl

DATE_FORMS: Final = ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f")
FIRST_YEAR: Final = 1000
"""Of a format with four digits of the year: 20 is not the year 20 but the end of one."""
_ALIKE: Final[Mapping[str, str]] = {**dict.fromkeys(BLANKS, "".join(BLANKS)), **dict.fromkeys("'’", "'’")}
"""Marks between thousands that people do not tell apart."""


def parse(texts: pa.Array, kind: DeclaredKind, reading: Reading = AS_WRITTEN) -> pa.Array:
    """Valid UTF-8 texts as values of `kind`; null for what the rules do not read and for missing codes."""
    found = PARSERS[kind](texts, reading)
    if not reading.missing:
        return found
    return _nulled(found, pc.or_(_is_code(texts, reading), _has_value(found, kind, reading)))


def read_texts(texts: pa.Array, kind: DeclaredKind, reading: Reading = AS_WRITTEN) -> pa.Array:
    """The same, but for what stands in a cell and is not read, which is marked as unreadable."""
    found = parse(texts, kind, reading)
    if found.null_count == texts.null_count:
        return mark_unreadable(found, None, kind)
    something = pc.not_equal(pc.utf8_trim_whitespace(texts), "")
    if reading.missing:
        something = pc.and_not(something, codes_in(texts, kind, reading))
    unread = pc.and_(pc.is_null(found), pc.fill_null(something, fill_value=False))
    return mark_unreadable(found, unread, kind)


def mark_unreadable(found: pa.Array, where: pa.Array | None, kind: DeclaredKind) -> pa.Array:
    """Values of `kind` as sources deliver them, unreadable at `where`; nowhere if that is None."""
    if kind == "boolean":
        return _truths(found, where)
    if where is None or kind not in UNREADABLE:
        return found
    mark = pa.scalar(UNREADABLE[kind]).cast(found.type)
    return pc.if_else(where, mark, found)


def _truths(found: pa.Array, where: pa.Array | None) -> pa.DictionaryArray:
    """A column of truth values has no room for a third one: a dictionary has, whose third value is null."""
    places = found.cast(pa.int8())
    if where is not None:
        places = pc.if_else(where, pa.scalar(2, pa.int8()), places)
    return pa.DictionaryArray.from_arrays(places, pa.array([False, True, None]))


def without_codes(column: pa.Array, kind: DeclaredKind, reading: Reading) -> pa.Array:
    """A column of any plain type but text, without the values that stand for a missing one."""
    if reading.true and kind == "boolean" and _is_number(column.type):
        column = _truth_of_numbers(column, reading)
    if not reading.missing or not (_is_number(column.type) or pa.types.is_temporal(column.type)):
        return column
    return _nulled(column, _has_value(column, kind, reading))


def codes_in(column: pa.Array, kind: DeclaredKind, reading: Reading) -> pa.Array:
    """Which cells of a column, as it is before reading, are declared codes for a missing value."""
    if not reading.missing or pa.types.is_boolean(column.type):
        return pa.array(np.zeros(len(column), np.bool_))
    if not _is_text(column.type):
        return _has_value(column, kind, reading)
    if kind == "text":
        return _is_code(column, reading)
    plain = PARSERS[kind](column, reading)
    return pc.or_(_is_code(column, reading), _has_value(plain, kind, reading))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _nulled(column: pa.Array, mask: pa.Array) -> pa.Array:
    return pc.if_else(mask, pa.scalar(None, column.type), column)


def _is_code(texts: pa.Array, reading: Reading) -> pa.Array:
    """Blanks at the ends aside, and the case where the column has one: a code is one wherever it stands."""
    words = _cased(pc.utf8_trim_whitespace(texts), reading)
    codes = pa.array([code.strip() for code in reading.missing], words.type)
    return pc.is_in(words, value_set=_cased(codes, reading))


def _cased(texts: pa.Array, reading: Reading) -> pa.Array:
    if reading.case is None:
        return texts
    return {"lower": pc.utf8_lower, "upper": pc.utf8_upper}[reading.case](texts)


def _has_value(column: pa.Array, kind: DeclaredKind, reading: Reading) -> pa.Array:
    """Which cells have the value that one of the codes has when it is read by the same rules."""
    found = column.type
    if _is_number(found):
        return _has_number(column, reading)
    if kind == "date" and pa.types.is_temporal(found):
        moments = _parse_dates(pa.array(reading.missing, pa.string()), reading)
        same = [_converted(code, found) for code in moments if code.is_valid]
        return pc.is_in(column, value_set=pa.array([code for code in same if code is not None], found))
    return pa.array(np.zeros(len(column), np.bool_))


def _has_number(column: pa.Array, reading: Reading) -> pa.Array:
    texts = pa.array(reading.missing, pa.string())
    # A code is written as the cells are, or as a program writes a number.
    both = (_parse_numbers(texts, reading), _parse_numbers(texts, AS_WRITTEN))
    codes = sorted({code.as_py() for found in both for code in found if code.is_valid})
    if pa.types.is_integer(column.type):
        limits = np.iinfo(column.type.to_pandas_dtype())
        whole = [int(code) for code in codes if float(code).is_integer()]
        return pc.is_in(
            column, value_set=pa.array([c for c in whole if limits.min <= c <= limits.max], column.type)
        )
    line = column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column
    if pa.types.is_float16(line.type):  # Arrow cannot look halves up
        line = line.cast(pa.float32())
    return pc.is_in(line, value_set=pa.array(codes, pa.float64()).cast(line.type))


def _converted(code: pa.Scalar, to: pa.DataType) -> Any:
    try:
        return code.cast(to).as_py()
    except pa.ArrowException:  # a moment that this type cannot hold is not in the column
        return None


def _truth_of_numbers(column: pa.Array, reading: Reading) -> pa.Array:
    """Numbers that stand for true and false; others are unreadable, but for codes and what is no number."""
    true = _has_number(column, Reading(missing=reading.true))
    known = pc.or_(true, _has_number(column, Reading(missing=reading.false)))
    nothing = pc.is_null(column, nan_is_null=True)
    if reading.missing:
        nothing = pc.or_(nothing, _has_number(column, reading))
    words = pc.if_else(pc.and_not(known, nothing), true, pa.scalar(None, pa.bool_()))
    return mark_unreadable(words, pc.invert(pc.or_(known, nothing)), "boolean")


def _parse_numbers(texts: pa.Array, reading: Reading) -> pa.Array:
    """float64 of each text, blanks before it allowed; null where it is not a number. As in CSV files."""
    import polars as pl

    words = pl.Series("cells", texts)
    if not reading.changes_numbers:
        return words.str.strip_chars_start(" \t").cast(pl.Float64, strict=False).to_arrow()
    words = words.str.strip_chars().str.replace(r"^−", "-")
    if reading.prefix:
        before = rf"^([+\-]?)\s*{re.escape(reading.prefix.strip())}\s*"
        words = words.str.replace(before, "${1}").str.replace(r"^−", "-")
    if reading.suffix:
        words = words.str.replace(rf"\s*{re.escape(reading.suffix.strip())}$", "")
    decimal, thousands = reading.decimal or ".", reading.thousands
    mark = "" if thousands is None else f"[{re.escape(_ALIKE.get(thousands, thousands))}]"
    grouped = "" if not mark else rf"[0-9]{{1,3}}(?:{mark}[0-9]{{2,3}})*{mark}[0-9]{{3}}|"
    point = re.escape(decimal)
    number = rf"^[+\-]?(?:(?:{grouped}[0-9]+)(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+\-]?[0-9]+)?$"
    plain = words.to_frame().select(
        pl.when(pl.col("cells").str.contains(number)).then(pl.col("cells")).alias("cells")
    )["cells"]
    if mark:
        plain = plain.str.replace_all(mark, "")
    if decimal != ".":
        plain = plain.str.replace(decimal, ".", literal=True)
    return plain.cast(pl.Float64, strict=False).to_arrow()


WHITESPACE: Final = "".join(filter(str.isspace, map(chr, range(0x3001))))
"""What Python and Arrow take for blank. Polars alone would leave out four control characters."""


def number_or_unreadable(name: str) -> pl.Expr:
    """A column of texts as numbers without rules, read by Polars: as `read_texts` reads it."""
    import polars as pl

    texts = pl.col(name)
    numbers = texts.str.strip_chars_start(" \t").cast(pl.Float64, strict=False)
    unread = numbers.is_null() & (texts.str.strip_chars(WHITESPACE) != "")
    return pl.when(unread).then(math.inf).otherwise(numbers).alias(name)


def _parse_booleans(texts: pa.Array, reading: Reading) -> pa.Array:
    """True or false for the declared words, else for the usual ones, in any case; null for all others."""
    words = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
    true_words, false_words = reading.truth_words
    true = pc.is_in(words, pa.array(true_words, words.type))
    known = pc.or_(true, pc.is_in(words, pa.array(false_words, words.type)))
    return pc.if_else(known, true, pa.scalar(None, pa.bool_()))


def _parse_dates(texts: pa.Array, reading: Reading) -> pa.Array:
    """The moment of each date in the declared format or in ISO's, with or without a time of day.

    A format that itself begins with the year is the only one: 2020-02-01 could be meant otherwise.
    """
    import polars as pl

    words = pl.Series("dates", texts).str.strip_chars()
    own = reading.format
    standard = () if own is not None and own.startswith("%Y") else DATE_FORMS
    forms = [words.str.to_datetime(form, time_unit="us", strict=False) for form in standard]
    if own is not None:
        found = words.str.to_datetime(own, time_unit="us", strict=False)
        if "%Y" in own:
            found = pl.select(pl.when(found.dt.year() >= FIRST_YEAR).then(found)).to_series()
        forms.insert(0, found)
    return pl.select(pl.coalesce(forms)).to_series().to_arrow()


def _normalised(texts: pa.Array, reading: Reading) -> pa.Array:
    if reading.trim:
        texts = pc.utf8_trim_whitespace(texts)
        texts = _nulled(texts, pc.equal(texts, ""))
    return _cased(texts, reading)


UNREADABLE: Final[Mapping[DeclaredKind, float | int]] = {"number": math.inf, "date": UNREADABLE_MOMENT}
"""What stands for a cell that holds something which cannot be read."""

PARSERS: Final[Mapping[DeclaredKind, Callable[[pa.Array, Reading], pa.Array]]] = {
    "number": _parse_numbers,
    "boolean": _parse_booleans,
    "date": _parse_dates,
    "text": _normalised,
}
