"""Who has counted in earlier periods of a series: ids by keyed hashes, so that no id is kept.

A person whose periods are used up, or too near to each other, is left out with all rows of this period. That
is decided by the person's own id and earlier periods alone (proofs/series.md#series-participation).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpgram.rows.units import Integers, Mask

HASH_BYTES: Final = 16
"""128 bits: two of a thousand million persons share one with a chance of 10⁻²⁰."""
KEY_BYTES: Final = 32


Hashes = npt.NDArray[np.bytes_]
"""Sorted, each once."""
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
@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """Persons who do not count in this period. As secret as the table: only workers that read it see it."""

    key: bytes = field(repr=False)
    hashes: Hashes = field(repr=False)

    def among(self, ids: pa.LargeStringArray) -> Mask:
        """Which rows are theirs. Proof: proofs/series.md#series-participation."""
        names, places = distinct(ids)
        if not names or not len(self.hashes):
            return np.zeros(len(ids), np.bool_)
        wanted = keyed_hashes(names, self.key)
        near = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        theirs: Mask = self.hashes[near] == wanted
        return theirs[places]
