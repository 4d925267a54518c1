"""Privacy units: which rows of a person count, by the person's own id and rows alone, in no order.

Of a unit with more rows than it may have, the k with the least priorities are taken, priority = hash(id,
content, number of the copy): so no other person's rows, no batch, order or engine can change the choice. The
hashes are fixed for good and need no secrecy: privacy rests on the bound of a unit's rows, not on them.

Proof: proofs/units.md#units-claim.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dpgram.core.encode import Floats, Integers, Mask

Hashes = npt.NDArray[np.uint64]
Letters = npt.NDArray[np.uint8]

FNV_START: Final = np.uint64(0xCBF29CE484222325)
FNV_PRIME: Final = np.uint64(0x100000001B3)
GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
MIX_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
MIX_SECOND: Final = np.uint64(0x94D049BB133111EB)

_FEW: Final = 32
"""Texts so few that Python's integers are faster than lines of one letter of each."""
_BITS: Final = (1 << 64) - 1


def text_hashes(places: Integers, letters: Letters) -> Hashes:
    """64 bits of each text, whose letters are at places[i] … places[i + 1] − 1: FNV-1a, then mixed."""
    lengths = np.diff(places)
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = places[:-1][order], lengths[order]
    values, shorter = np.full(len(order), FNV_START), -lengths
    place = 0
    # The longest texts come first: those that have a letter at this place are the first `longer` ones.
    while (longer := int(np.searchsorted(shorter, -place))) > _FEW:
        values[:longer] = (values[:longer] ^ letters[starts[:longer] + place]) * FNV_PRIME
        place += 1
    for text in range(longer):
        rest = letters[starts[text] + place : starts[text] + lengths[text]].tobytes()
        values[text] = _fnv(int(values[text]), rest)
    hashes = np.empty_like(values)
    hashes[order] = mixed(values)
    return hashes


def _fnv(value: int, letters: bytes) -> int:
    prime = int(FNV_PRIME)
    for letter in letters:
        value = ((value ^ letter) * prime) & _BITS
    return value


def mixed(values: Hashes) -> Hashes:
    """A fixed permutation of 64 bits in which every input bit moves every output bit."""
    with np.errstate(over="ignore"):
        values = values + GOLDEN
        values = (values ^ (values >> np.uint64(30))) * MIX_FIRST
        values = (values ^ (values >> np.uint64(27))) * MIX_SECOND
    return values ^ (values >> np.uint64(31))


def row_hashes(unit_hashes: Hashes, numbers: Floats) -> tuple[Hashes, Hashes]:
    """128 bits of each row and its id: rows that differ in content differ here, as far as anybody will see.

    `numbers` holds the rows' content with one form of zero and of NaN.
    """
    bits = np.ascontiguousarray(numbers).view(np.uint64)
    one, two = unit_hashes.copy(), mixed(unit_hashes)
    with np.errstate(over="ignore"):
        for place in range(bits.shape[1]):
            line = np.ascontiguousarray(bits[:, place])
            one = mixed(one ^ line)
            two = mixed(two + line)
    return one, two


def rows_that_count(units: Integers, unit_hashes: Hashes, numbers: Floats, at_most: int) -> Mask:
    """Which rows count: all of a unit with up to `at_most`, else those with the least priorities.

    `units` numbers the units from 0, `unit_hashes` is the hash of each row's id. All rows of every unit must
    be there.

    Proof: proofs/units.md#units-claim.
    """
    kept: Mask = np.ones(len(units), np.bool_)
    (rows,) = np.nonzero(np.bincount(units)[units] > at_most) if len(units) else (units,)
    if len(rows) == 0:
        return kept
    owners = units[rows]
    first, second = row_hashes(unit_hashes[rows], numbers[rows])
    order = np.lexsort((second, first, owners))
    copies = np.empty(len(rows), np.int64)
    copies[order] = _places(owners[order], first[order], second[order])
    numbered = copies.astype(np.uint64) * GOLDEN
    first, second = mixed(first ^ mixed(numbered)), mixed(second + numbered)
    order = np.lexsort((second, first, owners))
    kept[rows[order]] = _places(owners[order]) < at_most
    return kept


def _places(*keys: npt.NDArray[Any]) -> Integers:
    """0, 1, 2, … within each run of rows whose keys are all equal."""
    starts = np.zeros(len(keys[0]), np.bool_)
    starts[0] = True
    for key in keys:
        starts[1:] |= key[1:] != key[:-1]
    index = np.arange(len(starts))
    return index - np.maximum.accumulate(np.where(starts, index, 0))
