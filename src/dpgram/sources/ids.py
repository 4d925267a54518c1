"""Whose row it is, as one text for each person: distinct ids get distinct texts, equal ids the same text.

Merged persons would share a divisor, and a person under two texts would count twice; either breaks what is
promised (proofs/units.md#units-ids). So nothing is decoded with losses:

* numbers by their value: 7, 7.0 and Decimal("7.00") are one id, 10**16 and 1e16 too;
* text letter by letter, but a whole number that was written as a float is that number: "7.0", "1e+16",
  "1.2E7" are 7, 10**16 and 12000000. "07", " 7", "7.50" and "1e16" stay what they are: programs do not write
  numbers so, and people do write ids so;
* bytes as bytes: they are never the same id as a text;
* days and moments as ISO text, moments with a time zone in UTC with a Z at the end; UUIDs as text.

In the text a NUL begins an escape: NUL and two hexadecimal digits stand for a byte that is not UTF-8 (or for
a NUL), NUL and x for an id that is bytes. What has no text is no id: its row is dropped as one without an id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from numbers import Integral
from typing import Any, Final, final
from uuid import UUID

import numpy as np
import pyarrow as pa

ESCAPE: Final = "\x00"
LONGEST_NUMBER: Final = 1000
"""Digits. Python refuses to write out integers of some thousands."""

WHOLE: Final = r"-?(?:0|[1-9][0-9]*)\.0+"
SCIENTIFIC: Final = r"-?[1-9](?:\.[0-9]+[eE]\+?|[eE]\+)[0-9]{1,3}"
"""A point or a plus tells it from a text such as 1e16, which may be hexadecimal."""
NUMBER_IN_TEXT: Final = f"^(?:{WHOLE}|{SCIENTIFIC})$"
"""Also in the syntax of Arrow's expressions."""

_WHOLE: Final = re.compile(WHOLE)
_SCIENTIFIC: Final = re.compile(SCIENTIFIC)
_ESCAPES: Final[Mapping[int, str]] = {0: f"{ESCAPE}00"} | {
    0xDC00 + byte: f"{ESCAPE}{byte:02x}" for byte in range(0x80, 0x100)
}
_EPOCH_DAYS: Final = 719_468
"""From March 1 of the year 0 to 1970-01-01."""
_DAY: Final = 86_400 * 10**18
ATTOSECONDS: Final[Mapping[str, int]] = {
    "W": 7 * _DAY,
    "D": _DAY,
    "h": 3_600 * 10**18,
    "m": 60 * 10**18,
    "s": 10**18,
    "ms": 10**15,
    "us": 10**12,
    "ns": 10**9,
    "ps": 10**6,
    "fs": 10**3,
    "as": 1,
}


@final
class IdType(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types of its own
    """Marks a column whose cells are ids already, in the text that this module gives them."""

    def __init__(self) -> None:
        super().__init__(pa.large_string(), "dpgram.id")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, _storage: pa.DataType, _serialized: bytes) -> IdType:
        return cls()


@final
class StrayLetters(bytes):
    """A text whose bytes are not UTF-8, as these bytes; plain bytes are no text."""


def text_of(letters: bytes) -> str | StrayLetters:
    """The text that these bytes are; nothing of it is lost where they are not UTF-8."""
    try:
        return letters.decode()
    except UnicodeDecodeError:
        return StrayLetters(letters)


def id_array(texts: Iterable[str | None]) -> pa.ExtensionArray:
    """Texts that `id_text` and its like gave, as a column that nobody escapes a second time."""
    return pa.ExtensionArray.from_storage(IdType(), pa.array(list(texts), pa.large_string()))


def id_text(cell: Any) -> str | None:
    """The id that a Python object is; None where it is none (a gap, a NaN, a list, …).

    Proof: proofs/units.md#units-ids.
    """
    if isinstance(cell, str):
        return text_id(cell.encode("utf-8", "surrogatepass"))
    if isinstance(cell, StrayLetters):
        return text_id(cell)
    if isinstance(cell, bytes | bytearray | memoryview):
        return bytes_id(bytes(cell))
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    if isinstance(cell, np.timedelta64):  # which numpy calls an integer
        return None
    if isinstance(cell, Integral):
        return whole_id(int(cell))
    if isinstance(cell, float | np.floating):
        return _float_id(cell)
    if isinstance(cell, Decimal):
        return decimal_id(Decimal(cell))
    if isinstance(cell, UUID):
        return UUID.__str__(cell)
    if isinstance(cell, datetime):
        return _datetime_id(cell)
    if isinstance(cell, date):
        return _iso_text(_days(cell.year, cell.month, cell.day) * _DAY)
    return _datetime64_id(cell) if isinstance(cell, np.datetime64) else None


def text_id(letters: bytes) -> str | None:
    """The id of a text, given as its bytes, which need not be UTF-8; an empty text is none."""
    if not letters:
        return None
    text = escaped(letters)
    if _WHOLE.fullmatch(text):
        digits = text.partition(".")[0]
        return "0" if digits == "-0" else digits
    return _scientific(text) if _SCIENTIFIC.fullmatch(text) else text


def escaped(letters: bytes) -> str:
    """These bytes as text from which they could be told: stray bytes and NULs become escapes."""
    # Valid UTF-8 has no surrogates, so those that come out are stray bytes and nothing else.
    text = letters.decode("utf-8", "surrogateescape")
    return text if text.isprintable() else text.translate(_ESCAPES)


def bytes_id(content: bytes) -> str | None:
    """The id of bytes; none of them are none."""
    return f"{ESCAPE}x{content.hex()}" if content else None


def whole_id(number: int) -> str | None:
    return str(number) if abs(number) < 10**LONGEST_NUMBER else None


def decimal_id(number: Decimal) -> str | None:
    """The digits without zeros at either end, never with an exponent."""
    if number.is_nan():
        return None
    sign, places, exponent = number.as_tuple()
    minus = "-" if sign else ""
    if not isinstance(exponent, int):
        return f"{minus}inf"
    # By hand: decimals' own methods round to the precision of the context.
    all_digits = "".join(map(str, places)).lstrip("0")
    digits = all_digits.rstrip("0")
    if not digits:
        return "0"
    exponent += len(all_digits) - len(digits)
    if len(digits) + abs(exponent) > LONGEST_NUMBER:
        return None
    if exponent >= 0:
        return minus + digits + "0" * exponent
    digits = digits.rjust(1 - exponent, "0")
    return f"{minus}{digits[:exponent]}.{digits[exponent:]}"


def float_id(number: float) -> str | None:
    """Whole numbers as integers are written, others by the shortest digits that give them back."""
    if number != number:
        return None
    return str(int(number)) if number.is_integer() else decimal_id(Decimal(repr(number)))


def _float_id(cell: float | np.floating[Any]) -> str | None:
    number = float(cell)
    # An extended precision that a double cannot hold would merge with its neighbours.
    return float_id(number) if number == cell else None


def _scientific(text: str) -> str:
    """The digits of d.ddde+nn if that is a whole number, else the text."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = fraction.rstrip("0")
    places = int(exponent) - len(fraction)
    return text if places < 0 else whole + fraction + "0" * places


def _datetime_id(cell: datetime) -> str | None:
    """Nanoseconds are those of pandas, whose missing moment is a datetime as well."""
    if cell != cell:
        return None
    seconds = (cell.hour * 60 + cell.minute) * 60 + cell.second
    day = _days(cell.year, cell.month, cell.day) * _DAY
    time = seconds * 10**18 + cell.microsecond * 10**12 + getattr(cell, "nanosecond", 0) * 10**9
    offset = cell.utcoffset()
    if offset is None:
        return _iso_text(day + time)
    return _iso_text(day + time - offset // timedelta(microseconds=1) * 10**12) + "Z"


def attoseconds(cell: np.datetime64) -> int | None:
    """A moment of any unit, exactly, since 1970; None where it is not a time."""
    unit, count = np.datetime_data(cell.dtype)
    if np.isnat(cell) or unit == "generic":
        return None
    ticks = int(cell.astype(np.int64)) * count
    if unit in ("Y", "M"):
        months = ticks * 12 if unit == "Y" else ticks
        return _days(1970 + months // 12, months % 12 + 1, 1) * _DAY
    return ticks * ATTOSECONDS[unit]


def _datetime64_id(cell: np.datetime64) -> str | None:
    ticks = attoseconds(cell)
    return None if ticks is None else _iso_text(ticks)


def _iso_text(ticks: int) -> str:
    """ISO text of so many attoseconds since 1970."""
    return moment_id(ticks, 18)


def moment_id(ticks: int, places: int) -> str:
    """ISO text of a moment in any year, in units of 10^-places seconds since 1970; a midnight is its day."""
    seconds, fraction = divmod(ticks, 10**places)
    days, seconds = divmod(seconds, 86_400)
    year, month, day = _date(days)
    text = f"{year:04d}-{month:02d}-{day:02d}"
    if not seconds and not fraction:
        return text
    text += f" {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:0{places}d}".rstrip("0") if fraction else text


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the Gregorian calendar without a first or last year; years begin in March."""
    year -= month <= 2
    in_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return 365 * year + year // 4 - year // 100 + year // 400 + in_year - _EPOCH_DAYS


def _date(days: int) -> tuple[int, int, int]:
    """Year, month and day: the inverse of `_days`."""
    era, in_era = divmod(days + _EPOCH_DAYS, 146_097)
    of_era = (in_era - in_era // 1460 + in_era // 36_524 - in_era // 146_096) // 365
    in_year = in_era - (365 * of_era + of_era // 4 - of_era // 100)
    march = (5 * in_year + 2) // 153
    month = march + 3 if march < 10 else march - 9
    return of_era + era * 400 + (month <= 2), month, in_year - (153 * march + 2) // 5 + 1
