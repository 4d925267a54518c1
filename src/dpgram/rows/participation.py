"""Who has counted in earlier periods of a series: ids by keyed hashes, so that no id is kept.

A person whose periods are used up, or too near to each other, is left out with all rows of this period. That
is decided by the person's own id and earlier periods alone (proofs/series.md#series-participation).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpgram.rows.units import Integers, Mask

HASH_BYTES: Final = 16
"""128 bits: two of a thousand million persons share one with a chance of 10⁻²⁰."""
KEY_BYTES: Final = 32
GONE_THROUGH: Final = 4
"""Pieces of a table for which everybody is gone through: more cost as much as sorting them once."""


Hashes = npt.NDArray[np.bytes_]
NOBODY: Final[Hashes] = np.empty(0, f"S{HASH_BYTES}")


def keyed_hashes(texts: Sequence[str], key: bytes) -> Hashes:
    """BLAKE2b of each id under the key of the series, in their order."""
    found = [
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=key, digest_size=HASH_BYTES).digest()
        for text in texts
    ]
    return np.array(found, dtype=NOBODY.dtype)


def distinct(ids: pa.LargeStringArray) -> tuple[list[str], Integers]:
    """Every id once, and the place of each row's id among them."""
    coded = ids.dictionary_encode()
    places: Integers = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return coded.dictionary.to_pylist(), places


@final
class LeftOut:
    """Persons who do not count in this period. As secret as the table: only workers that read it see it.

    They are many, and in no order: everybody who has ever counted. A table is mostly read in one piece, so
    they are gone through for each of the first pieces, and sorted only where there are more.

    Proof: proofs/series.md#series-participation.
    """

    def __init__(self, key: bytes, hashes: Hashes) -> None:
        self.key, self._hashes = key, hashes
        self._gone_through, self._sorted = 0, False

    def __repr__(self) -> str:
        return "<LeftOut: NOT PRIVATE>"

    def among(self, ids: pa.LargeStringArray) -> Mask:
        """Which rows are theirs."""
        names, places = distinct(ids)
        if not names or not len(self._hashes):
            return np.zeros(len(ids), np.bool_)
        wanted = keyed_hashes(names, self.key)
        theirs: Mask = np.isin(wanted, self._candidates(wanted))
        return theirs[places]

    def _candidates(self, wanted: Hashes) -> Hashes:
        """A few of those left out, with all that are wanted among them."""
        if self._gone_through < GONE_THROUGH:
            self._gone_through += 1
            # By their last bits, of which few are the same by chance.
            bits = min(max(len(wanted).bit_length() + 6, 10), 22)
            there = np.zeros(1 << bits, np.bool_)
            there[_last_bits(wanted, bits)] = True
            everybody = self._hashes  # another thread may put them in order meanwhile
            return everybody[there[_last_bits(everybody, bits)]]
        if not self._sorted:
            self._hashes, self._sorted = np.sort(self._hashes, kind="stable"), True
        near = np.searchsorted(self._hashes, wanted)
        return self._hashes[np.minimum(near, len(self._hashes) - 1)]


def _last_bits(hashes: Hashes, bits: int) -> npt.NDArray[np.uint32]:
    last: npt.NDArray[np.uint32] = hashes.view(np.uint32)[HASH_BYTES // 4 - 1 :: HASH_BYTES // 4]
    return last & np.uint32((1 << bits) - 1)
