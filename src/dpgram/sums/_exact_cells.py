"""Exact integer cells of one shape that add up: what most sums are made of."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from dpgram.core.units import PolicyCounts
from dpgram.errors import DpgramError
from dpgram.sums.exact_gram import MAX_ROWS

Integers = npt.NDArray[np.int64]

_LENGTH: Final = struct.Struct("<I")
_DIGEST_BYTES: Final = 32


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactCells:
    """Exact cells to each of which a row adds at most 2^30. **Not private.** A monoid under `|`."""

    MAGIC: ClassVar[bytes]

    cells: Integers = field(repr=False)
    counts: PolicyCounts = field(repr=False)

    def __post_init__(self) -> None:
        if self.counts.rows_used > MAX_ROWS:
            raise DpgramError(
                "too many rows for exact 64-bit sums",
                limit=f"{MAX_ROWS} rows",
                remedy="Publish the table in parts",
            )
        frozen = self.cells.view()
        frozen.flags.writeable = False
        object.__setattr__(self, "cells", frozen)

    def __or__(self, other: Self) -> Self:
        if type(self) is not type(other) or self.cells.shape != other.cells.shape:
            raise DpgramError(
                "sums of different things cannot be added",
                got=f"shapes {self.cells.shape} and {other.cells.shape}",
            )
        return type(self)(self.cells + other.cells, self.counts + other.counts)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, ExactCells):
            return NotImplemented
        return self.counts == other.counts and np.array_equal(self.cells, other.cells)

    def __hash__(self) -> int:
        return hash((self.counts, self.cells.tobytes()))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of shape {self.cells.shape}: EXACT, NOT PRIVATE, never publish>"

    def to_bytes(self) -> bytes:
        """A self-checking form for shipping between workers."""
        head: dict[str, object] = {"shape": self.cells.shape, "counts": asdict(self.counts)}
        return packed(self.MAGIC, head, self.cells.astype("<i8").tobytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the form written by `to_bytes`; refuses anything cut, altered or foreign."""
        head, payload = unpacked(cls.MAGIC, data)
        shape = tuple(head["shape"])
        if len(payload) != 8 * int(np.prod(shape, dtype=object)):
            raise DpgramError("these bytes of a sum contradict their own head", remedy="Make them again")
        cells = np.frombuffer(payload, "<i8").reshape(shape).astype(np.int64)
        return cls(cells, PolicyCounts(**head["counts"]))


def packed(magic: bytes, head: dict[str, object], payload: bytes) -> bytes:
    """Head and payload with their lengths and a digest."""
    text = json.dumps(head).encode()
    body = magic + _LENGTH.pack(len(text)) + text + payload
    return body + hashlib.sha256(body).digest()


def unpacked(magic: bytes, data: bytes) -> tuple[dict[str, Any], bytes]:
    """The head and payload that `packed` joined."""
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if not body.startswith(magic):
        raise DpgramError("these bytes are not a sum of this version")
    if hashlib.sha256(body).digest() != digest:
        raise DpgramError("these bytes of a sum are cut or altered", remedy="Make them again")
    start = len(magic) + _LENGTH.size
    (length,) = _LENGTH.unpack(body[len(magic) : start])
    return json.loads(body[start : start + length]), body[start + length :]
