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
GONE_THROUGH: Final = 12
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

    `past` has who counted in each earlier period, in their order. Whoever was in `participations` of them, or
    in one of the last `apart` − 1, is left out. They are many, and a table is mostly read in one piece: so
    they are gone through for each of the first pieces, and sorted only where there are more.

    Proof: proofs/series.md#series-participation.
    """

    def __init__(
        self, key: bytes, past: Sequence[Hashes], *, participations: int = 1, apart: int = 1
    ) -> None:
        self.key, self._past = key, tuple(past)
        self._participations, self._apart = participations, apart
        self._gone_through = 0
        self._sorted: Hashes | None = None

    def __repr__(self) -> str:
        return "<LeftOut: NOT PRIVATE>"

    def among(self, ids: pa.LargeStringArray) -> Mask:
        """Which rows are theirs."""
        names, places = distinct(ids)
        if not names or not any(map(len, self._past)):
            return np.zeros(len(ids), np.bool_)
        wanted = keyed_hashes(names, self.key)
        gone = self._candidates(wanted)
        # Mostly few are alike, and whole hashes take long to compare.
        maybe = np.flatnonzero(_FirstBits(gone, 1).among(wanted))
        theirs = np.zeros(len(wanted), np.bool_)
        theirs[maybe] = np.isin(wanted[maybe], gone)
        return theirs[places]

    def _candidates(self, wanted: Hashes) -> Hashes:
        """A few of those left out, with all that are wanted among them."""
        if self._gone_through < GONE_THROUGH:
            self._gone_through += 1
            return self._used_up(*self._near(wanted))
        if self._sorted is None:
            when = np.repeat(np.arange(len(self._past)), [len(each) for each in self._past])
            self._sorted = np.sort(self._used_up(np.concatenate(self._past), when), kind="stable")
        near = np.searchsorted(self._sorted, wanted)
        return self._sorted[near[near < len(self._sorted)]]

    def _near(self, wanted: Hashes) -> tuple[Hashes, Integers]:
        """All of the past who are wanted, with a few whose bits are alike by chance, and in which periods."""
        alike = _FirstBits(wanted, 1).among
        found = [each[alike(each)] for each in self._past]
        who = np.concatenate(found)
        when = np.repeat(np.arange(len(found)), [len(each) for each in found])
        again = np.flatnonzero(_FirstBits(wanted, 0).among(who))
        return who[again], when[again]

    def _used_up(self, who: Hashes, when: Integers) -> Hashes:
        """Those who may not count, of these persons in all of their periods."""
        if self._participations == 1:
            return who
        persons, often = np.unique(who, return_counts=True)
        near = when > len(self._past) - self._apart
        return np.concatenate([persons[often >= self._participations], who[near]])


@final
class _FirstBits:
    """Which values the first bits of one half of some hashes have.

    There are 32 to 64 times as many values as hashes: more are alike by chance with fewer, and with more the
    table of them does not fit the nearer caches.

    Proof: proofs/series.md#series-participation.
    """

    def __init__(self, hashes: Hashes, half: int) -> None:
        bits = min(max(len(hashes).bit_length() + 5, 10), 22)
        self._half, self._below = half, np.uint64(64 - bits)
        self._there = np.zeros(1 << bits, np.bool_)
        self._there[self._values(hashes)] = True

    def _values(self, hashes: Hashes) -> Integers:
        return (hashes.view(np.uint64)[self._half :: 2] >> self._below).view(np.int64)

    def among(self, others: Hashes) -> Mask:
        """Of which others the bits come up: of all that are among the hashes, and of a few by chance."""
        return self._there.take(self._values(others), mode="clip")  # all are within, and this is faster
