"""Whether many bytes are still those of then, as fast as memory can be read.

SHA-256 would take longer than everything else that a publication does with past periods, and protect no more:
whoever can write the curator's file could write its digest. What is looked for is damage.
"""

from __future__ import annotations

import hashlib
from typing import Final, final

import numpy as np

_WORDS: Final = 509
"""A prime, so that blocks of a disk that change places do not fall upon each other's sums."""
_SPAN: Final = 8 * _WORDS


@final
class Check:
    """The SHA-256 of 509 sums, each of every 509th word of 64 bits modulo 2^64, and of the bytes left over.

    No change of one word leaves it as it was, nor do words that change places, unless a multiple of 4,072
    bytes lies between them; random bytes in place of some do so with a chance of 2⁻⁶⁴ at most.
    """

    def __init__(self) -> None:
        self._sums, self._rest = np.zeros(_WORDS, "<u8"), b""

    def copy(self) -> Check:
        """Another one that has seen the same."""
        found = Check()
        found._sums, found._rest = self._sums.copy(), self._rest
        return found

    def update(self, content: bytes | memoryview) -> None:
        """These bytes follow."""
        joined = self._rest + content if self._rest else content
        spans = len(joined) // _SPAN
        words = np.frombuffer(joined, "<u8", spans * _WORDS)
        self._sums += words.reshape(spans, _WORDS).sum(axis=0, dtype=np.uint64)
        self._rest = bytes(joined[spans * _SPAN :])

    def hexdigest(self) -> str:
        """Of all bytes so far."""
        return hashlib.sha256(self._sums.tobytes() + self._rest).hexdigest()
