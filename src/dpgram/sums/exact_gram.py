"""G = Σ q qᵀ over lattice rows q, exactly: integer sums, so that no order of adding can change a bit."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, ClassVar, Final, Self, final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from dpgram.core.units import PolicyCounts
from dpgram.errors import DpgramError
from dpgram.lattice import ROW_NORM_SQUARED

EXACT_ROWS: Final = 1 << 22
"""Rows whose products a float64 adds up exactly in any order: 2^22 · 2^30 = 2^52 < 2^53."""

MAX_ROWS: Final = (1 << 33) - 1
"""Most rows of a Gram matrix in 64-bit integers: a cell is at most rows · 2^30 < 2^63."""

_LENGTH: Final = struct.Struct("<I")
_DIGEST_BYTES: Final = 32


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExactGram:
    """The exact Gram matrix of lattice rows. **Not private**: it must never leave the curator's side.

    A monoid: `ExactGram.zero(d)` is its neutral element and `a | b` its sum, which neither order nor grouping
    can change. Engines ship it between workers as bytes.
    """

    MAGIC: ClassVar[bytes] = b"dpgram exact gram, not private, 1\n"

    cells: npt.NDArray[np.int64] = field(repr=False)
    rows: int = field(repr=False)
    counts: PolicyCounts = field(repr=False)

    def __post_init__(self) -> None:
        if self.cells.ndim != 2 or self.cells.shape[0] != self.cells.shape[1] or self.cells.dtype != np.int64:
            raise DpgramError(
                "a Gram matrix is a square matrix of 64-bit integers",
                got=f"shape {self.cells.shape} of {self.cells.dtype}",
            )
        if self.rows > MAX_ROWS:
            raise DpgramError(
                "too many rows for exact 64-bit sums",
                limit=f"{MAX_ROWS} rows",
                remedy="Publish the table in parts",
            )
        frozen = self.cells.view()
        frozen.flags.writeable = False
        object.__setattr__(self, "cells", frozen)

    @classmethod
    def zero(cls, width: int) -> Self:
        """The Gram matrix of no rows."""
        return cls(np.zeros((width, width), np.int64), 0, PolicyCounts())

    @property
    def width(self) -> int:
        """d: the number of encoded columns."""
        return len(self.cells)

    def update(self, chunk: npt.NDArray[np.float64], counts: PolicyCounts | None = None) -> ExactGram:
        """This matrix with the rows of `chunk` (k × d lattice integers in float64) added; itself unchanged.

        `counts` says how the chunk came about; without it every row counts as read and used.
        """
        if chunk.ndim != 2 or chunk.shape[1] != self.width:
            raise DpgramError(
                "the chunk does not fit the Gram matrix",
                got=f"shape {chunk.shape}",
                limit=f"{self.width} columns",
            )
        rows = len(chunk)
        cells = self.cells.copy()
        for start in range(0, rows, EXACT_ROWS):
            piece = chunk[start : start + EXACT_ROWS]
            cells += _integers(piece.T @ piece, len(piece))
        return ExactGram(
            cells,
            self.rows + rows,
            self.counts + (PolicyCounts(rows_read=rows, rows_used=rows) if counts is None else counts),
        )

    def __or__(self, other: ExactGram) -> ExactGram:
        if not isinstance(other, ExactGram):
            return NotImplemented
        if self.width != other.width:
            raise DpgramError(
                "Gram matrices of different schemas cannot be added",
                got=f"widths {self.width} and {other.width}",
            )
        return ExactGram(self.cells + other.cells, self.rows + other.rows, self.counts + other.counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExactGram):
            return NotImplemented
        same = self.rows == other.rows and self.counts == other.counts
        return same and np.array_equal(self.cells, other.cells)

    def __hash__(self) -> int:
        return hash((self.rows, self.counts, self.cells.tobytes()))

    def __repr__(self) -> str:
        return f"<ExactGram of width {self.width}: EXACT SUMS OF THE DATA, NOT PRIVATE, never publish>"

    def to_bytes(self) -> bytes:
        """A self-checking form for shipping between workers; as sensitive as the table itself."""
        head = json.dumps({"width": self.width, "rows": self.rows, "counts": asdict(self.counts)}).encode()
        triangle = self.cells[np.tril_indices(self.width)].astype("<i8").tobytes()
        body = self.MAGIC + _LENGTH.pack(len(head)) + head + triangle
        return body + hashlib.sha256(body).digest()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the form written by `to_bytes`; refuses anything cut, altered or foreign."""
        body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        if not body.startswith(cls.MAGIC):
            raise DpgramError("these bytes are not an exact Gram matrix of this version")
        if hashlib.sha256(body).digest() != digest:
            raise DpgramError("these bytes of a Gram matrix are cut or altered", remedy="Make them again")
        start = len(cls.MAGIC) + _LENGTH.size
        if len(body) < start:
            raise _malformed()
        (length,) = _LENGTH.unpack(body[len(cls.MAGIC) : start])
        head = _read_head(body[start : start + length])
        triangle = body[start + length :]
        # The size is that of the bytes at hand, before anything is allocated for it.
        if len(triangle) != 4 * head.width * (head.width + 1):
            raise _malformed()
        lower = np.tril_indices(head.width)
        cells = np.zeros((head.width, head.width), np.int64)
        cells[lower] = np.frombuffer(triangle, "<i8")
        cells.T[lower] = cells[lower]
        most = head.rows * ROW_NORM_SQUARED
        if cells.size and not -most <= int(cells.min()) <= int(cells.max()) <= most:
            raise _malformed()
        return cls(cells, head.rows, PolicyCounts(**head.counts))


@final
class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What stands before the triangle."""

    width: Annotated[int, Meta(ge=0, le=1 << 16)]
    rows: Annotated[int, Meta(ge=0, le=MAX_ROWS)]
    counts: dict[str, Annotated[int, Meta(ge=0, le=1 << 62)]]


def _read_head(raw: bytes) -> _Head:
    try:
        head = msgspec.json.decode(raw, type=_Head)
    except msgspec.MsgspecError:
        raise _malformed() from None
    if not head.counts.keys() <= {one.name for one in fields(PolicyCounts)}:
        raise _malformed()
    return head


def _malformed() -> DpgramError:
    """Nothing of what was read: it may be a sum."""
    return DpgramError("these bytes of a Gram matrix do not follow the format", remedy="Make them again")


def _integers(product: npt.NDArray[np.float64], rows: int) -> npt.NDArray[np.int64]:
    """An exact product as integers, refused where it cannot be one of `rows` lattice rows.

    This is d × d evidence only, and cheap; the encoder guarantees the bound row by row.
    """
    with np.errstate(invalid="ignore"):  # what is not finite is refused below
        cells = product.astype(np.int64)
    if not np.array_equal(cells, product) or np.trace(product) > rows * float(ROW_NORM_SQUARED):
        raise DpgramError(
            "the chunk is not made of lattice rows",
            limit="integers with squared norm at most 2^30 in each row",
        )
    return cells
