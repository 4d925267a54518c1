"""Privacy units: whose rows belong together, and which k rows of a larger unit count.

Ids are compared as exact text, one text for each person in every source (sources/ids.py says which): 7, 7.0
and "7" are one person, whatever the batch, the file or the type they come from. Where a unit has more rows
than it may have, the k with the least priority are taken, priority = hash(id, content, number of the copy):
a choice that looks random, is proportional to how often a content occurs, and depends on the unit's own rows
alone, in no order. So no other person's rows, no batch, thread or engine can change it (proofs/units.md).
The hashes are fixed for ever and need no secrecy: privacy rests on the bound of a unit's rows, not on them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dpgram.core.units import text_hashes
from dpgram.errors import SourceError
from dpgram.rows.floats import as_floats
from dpgram.sources.ids import (
    ATTOSECONDS,
    NUMBER_IN_TEXT,
    IdType,
    bytes_id,
    decimal_id,
    float_id,
    moment_id,
    text_id,
)
from dpgram.sources.plain_columns import plain_columns, run_places

Hashes = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

FOUR_DIGITS: Final = re.compile("^[0-9]{4}-")
"""Of a year: 0000 to 9999."""


def unit_ids(cells: pa.Array, column: str) -> pa.LargeStringArray:
    """The ids as text, null where there is none: a null, a NaN, an empty text.

    Whether a type can be an id is decided by the type alone, so no value can make reading fail.

    Proof: proofs/units.md#units-ids.
    """
    if isinstance(cells.type, IdType):
        return cells.storage
    return _without_empty(_read(cells, column))


def _read(cells: pa.Array, column: str) -> pa.LargeStringArray:
    if pa.types.is_run_end_encoded(cells.type):
        return _read(cells.values, column).take(run_places(cells))
    if pa.types.is_dictionary(cells.type):
        (cells,) = plain_columns(pa.record_batch([cells], names=[column]), {}).columns
        return _read(cells.dictionary, column).take(cells.indices.cast(pa.int64()))
    if isinstance(cells.type, pa.BaseExtensionType):
        read = _EXTENSIONS.get(cells.type.extension_name)
        if read is None:  # what the storage means is known to the type alone: 600 is a month or a day
            raise _no_ids(column, cells.type.extension_name)
        return read(cells.storage)
    (cells,) = plain_columns(pa.record_batch([cells], names=[column]), {}).columns
    if pa.types.is_binary_view(cells.type):
        cells = cells.cast(pa.large_binary())
    read = next((read for test, read in _READERS.items() if test(cells.type)), None)
    if read is None:
        raise _no_ids(column, str(cells.type))
    return read(cells)


def _no_ids(column: str, got: str) -> SourceError:
    return SourceError(
        f"column {column!r} cannot tell units apart: values of its type cannot be ids",
        got=got,
        limit="text, integers, floats, booleans, dates, timestamps, decimals, UUIDs or bytes",
        remedy="Convert the column first",
    )


def _without_empty(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    empty = pc.binary_length(texts).fill_null(-1).to_numpy(zero_copy_only=False) == 0
    if not empty.any():
        return texts
    # Not if_else: on a slice of texts Arrow 18 to 21 return broken ones, and one person becomes several.
    return texts.take(pa.array(np.arange(len(texts)), mask=empty))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _texts(cells: pa.Array) -> pa.LargeStringArray:
    """Nearly always the texts themselves: only stray bytes, NULs and numbers written as floats change."""
    letters, texts = _letters(cells)
    if not _is_plain(letters, texts) or _has_numbers(letters, texts):
        return _each(texts, text_id)
    return texts


def _letters(cells: pa.Array) -> tuple[npt.NDArray[np.uint8], pa.LargeStringArray]:
    """The bytes of all texts, one after the other, and the texts."""
    texts = cells.cast(pa.large_string())
    _, offsets, content = texts.buffers()
    if len(texts) == 0 or content is None:
        return np.empty(0, np.uint8), texts
    places = np.frombuffer(offsets, np.int64)
    first, last = places[texts.offset], places[texts.offset + len(texts)]
    return np.frombuffer(content, np.uint8)[first:last], texts


def _is_plain(letters: npt.NDArray[np.uint8], texts: pa.LargeStringArray) -> bool:
    """Whether every byte is UTF-8 and none is NUL. Readers do not look: Arrow's texts may hold any bytes."""
    if (letters == 0).any():
        return False
    if (letters < 0x80).all():
        return True
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _has_numbers(letters: npt.NDArray[np.uint8], texts: pa.LargeStringArray) -> bool:
    """Whether a text may be a whole number in the form of a float; a look at the letters is far cheaper."""
    if not ((letters == ord(".")) | (letters == ord("+"))).any():
        return False
    return bool(pc.any(pc.match_substring_regex(texts, NUMBER_IN_TEXT)).as_py())


def _each(texts: pa.LargeStringArray, write: Callable[[bytes], str | None]) -> pa.LargeStringArray:
    cells = texts.view(pa.large_binary()).to_pylist()
    return pa.array([None if cell is None else write(cell) for cell in cells], pa.large_string())


def _cast_to_text(cells: pa.Array) -> pa.LargeStringArray:
    return cells.cast(pa.large_string())


def _bytes(cells: pa.Array) -> pa.LargeStringArray:
    return pa.array(
        [None if cell is None else bytes_id(cell) for cell in cells.to_pylist()], pa.large_string()
    )


def _uuids(cells: pa.Array) -> pa.LargeStringArray:
    texts = [None if cell is None else str(UUID(bytes=cell)) for cell in cells.to_pylist()]
    return pa.array(texts, pa.large_string())


def _floats(cells: pa.Array) -> pa.LargeStringArray:
    """Whole numbers as integers are written: a column of ids with a gap in it is often one of floats."""
    numbers = as_floats(cells.to_numpy(zero_copy_only=False))
    with np.errstate(all="ignore"):
        small = np.equal(np.trunc(numbers), numbers) & (np.abs(numbers) < 2.0**53)
        integers = pa.array(np.where(small, numbers, 0.0).astype(np.int64)).cast(pa.large_string())
    if small.all():
        return integers
    return pa.array(
        [
            text if is_small else float_id(number)
            for is_small, text, number in zip(
                small.tolist(), integers.to_pylist(), numbers.tolist(), strict=True
            )
        ],
        pa.large_string(),
    )


def _decimals(cells: pa.Array) -> pa.LargeStringArray:
    """Without zeros at the end: 7.50 and 7.5 are one id."""
    if cells.type.scale == 0:
        return cells.cast(pa.string()).cast(pa.large_string())
    return pa.array(
        [None if cell is None else decimal_id(cell) for cell in cells.to_pylist()], pa.large_string()
    )


def _days(cells: pa.Array) -> pa.LargeStringArray:
    return _in_any_year(cells.cast(pa.large_string()), cells.view(pa.int32()), "D")


def _timestamps(cells: pa.Array) -> pa.LargeStringArray:
    """The same text for every unit of time; a midnight is written as its day, a time zone as Z."""
    naive = cells.cast(pa.timestamp("ms")) if pa.types.is_date64(cells.type) else cells
    ticks, unit = naive.view(pa.int64()), naive.type.unit
    texts = ticks.view(pa.timestamp(unit)).cast(pa.large_string())
    texts = pc.replace_substring_regex(texts, r"(\.\d*?)0+$", r"\1")
    texts = pc.replace_substring_regex(texts, r"\.$", "")
    texts = pc.replace_substring_regex(texts, r" 00:00:00$", "")
    texts = _in_any_year(texts, ticks, unit)
    if naive.type.tz is None:
        return texts
    return pc.binary_join_element_wise(texts, pa.scalar("Z", texts.type), pa.scalar("", texts.type))


def _in_any_year(texts: pa.LargeStringArray, ticks: pa.Array, unit: str) -> pa.LargeStringArray:
    """`texts`, but those of years without four digits, which Arrow writes otherwise or not at all."""
    if pc.all(pc.match_substring_regex(texts, FOUR_DIGITS.pattern)).as_py():
        return texts
    told = zip(texts.to_pylist(), ticks.to_pylist(), strict=True)
    attoseconds = ATTOSECONDS[unit]
    return pa.array(
        [
            text if text is None or FOUR_DIGITS.match(text) else moment_id(tick * attoseconds, 18)
            for text, tick in told
        ],
        pa.large_string(),
    )


Reader = Callable[[pa.Array], pa.LargeStringArray]

_READERS: Final[Mapping[Callable[[pa.DataType], bool], Reader]] = {
    _is_text: _texts,
    pa.types.is_integer: _cast_to_text,
    pa.types.is_boolean: _cast_to_text,
    pa.types.is_date32: _days,
    pa.types.is_floating: _floats,
    pa.types.is_decimal: _decimals,
    pa.types.is_date64: _timestamps,
    pa.types.is_timestamp: _timestamps,
    pa.types.is_binary: _bytes,
    pa.types.is_large_binary: _bytes,
    pa.types.is_fixed_size_binary: _bytes,
}
"""The first test that a type passes says how it becomes text."""
_EXTENSIONS: Final[Mapping[str, Reader]] = {"arrow.uuid": _uuids, "arrow.json": _texts}
"""The extension types that are ids, by what their storage becomes."""


def id_hashes(ids: pa.LargeStringArray) -> Hashes:
    """64 bits of each id, the same for ever; ids must not be null."""
    if len(ids) == 0:
        return np.empty(0, np.uint64)
    _, offsets, content = ids.buffers()
    places = np.frombuffer(offsets, np.int64)[ids.offset : ids.offset + len(ids) + 1]
    letters = np.frombuffer(content or b"", np.uint8)
    return text_hashes(places, letters)
