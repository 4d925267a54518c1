"""Whole numbers u → lattice rows q with |q|² ≤ ⌊2^30/m⌋: the one clip, and the one rounding to the lattice.

    q = rint(u·f),   f = min(1, R/|u|)·2^15/(R√m)·√w

A row that rounding has made too long is truncated instead; |q|² is then tested in whole numbers for every
row, and a row that failed would count nowhere.

Proof: proofs/core.md#core-lattice.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, final

import numpy as np

from dpgram.core import EXACT, NORM, SQUARE
from dpgram.core.encode import Floats, Integers, Mask, RowMap, encode
from dpgram.errors import DpgramError

product: Final = np.matmul
"""The linear algebra library."""
INEXACT: Final = "the linear algebra library of this machine does not multiply whole numbers exactly"
PIECE: Final = 4096
"""Rows rounded at a time: temporary lines stay near the processor."""


class Rows(NamedTuple):
    """Lattice rows of a block, one line for each coordinate."""

    q: Floats
    squares: Floats
    """|u|² before the clip."""
    lost: Mask | None
    """Rows that lack a cell and count nowhere: q is 0 there."""


@final
class Work:
    """Memory of one thread for one row map and blocks of at most so many rows.

    Proof: proofs/core.md#core-transform.
    """

    def __init__(self, rowmap: RowMap, rows: int) -> None:
        self.rowmap = rowmap
        self.seen: Integers = np.zeros(3, np.int64)
        """Cells clamped, missing and unknown so far: for the curator's eyes."""
        self._v = np.empty((len(rowmap.lines), rows))
        self._squares, self._factor, self._piece = np.empty((3, rows))
        self._parts = [] if rowmap.matrix is None else list(_parts(rowmap.matrix))
        self._u = self._v if not self._parts else np.empty((rowmap.width, rows))
        if self._parts:
            check_linear_algebra(max(len(rowmap.lines), rowmap.width))

    def rows(
        self,
        cells: Sequence[Floats],
        out: Floats,
        *,
        sizes: Integers | None = None,
        weights: Floats | None = None,
    ) -> Rows:
        """Lattice rows in the lines of `out`.

        `sizes` says of how many rows m of its unit each is one; `weights` are √w in [0, 1].
        """
        count = out.shape[1]
        v, u, squares = self._v[:, :count], self._u[:, :count], self._squares[:count]
        with np.errstate(all="ignore"):  # a warning would depend on one row
            lost = encode(self.rowmap, cells, v, self.seen)
            for first, last, part in self._parts:
                product(part, v[: part.shape[1]], out=u[first:last])
            add_squares(u, squares, self._piece[:count])
            factor = self._scaled(squares, sizes, weights, lost)
            np.multiply(u, factor, out=out)
            np.rint(out, out=out)
            limit = np.full(count, SQUARE) if sizes is None else SQUARE // sizes
            _shorten(out, limit, lambda over: u[:, over] * factor[over])
        return Rows(out, squares, lost)

    def _scaled(
        self, squares: Floats, sizes: Integers | None, weights: Floats | None, lost: Mask | None
    ) -> Floats:
        """f; 0 for a row that is lost."""
        factor, radius = self._factor[: len(squares)], self.rowmap.radius
        np.sqrt(squares, out=factor)
        np.divide(radius, factor, out=factor)  # infinite where u = 0
        np.minimum(factor, 1.0, out=factor)
        np.multiply(factor, NORM / radius, out=factor)
        if sizes is not None:
            np.divide(factor, np.sqrt(sizes.astype(np.float64)), out=factor)
        if weights is not None:
            np.multiply(factor, weights, out=factor)
        if lost is not None:
            factor[lost] = 0.0
        return factor


def add_squares(lines: Floats, total: Floats, piece: Floats) -> None:
    """Σ line² of each row, line after line: a fixed order of operations on the row's own numbers."""
    np.multiply(lines[0], lines[0], out=total)
    for line in lines[1:]:
        np.multiply(line, line, out=piece)
        np.add(total, piece, out=total)


def settle(lines: Floats, limit: int) -> None:
    """Round to whole numbers, in place, such that |q|² ≤ limit in each row.

    Rows must come in with |u|² within rounding errors of that, relatively 2^-32: then a truncated row is
    short enough. If one were not, it would count nowhere. Proof: proofs/core.md#core-lattice.

    Proof: proofs/adassp.md#adassp-lattice.
    """
    with np.errstate(all="ignore"):  # a warning would depend on one row
        for first in range(0, lines.shape[1], PIECE):
            piece = lines[:, first : first + PIECE]
            exact = piece.copy()
            np.rint(piece, out=piece)
            _shorten(piece, np.full(piece.shape[1], limit), functools.partial(np.take, exact, axis=1))


def _shorten(q: Floats, limit: Integers, exact: Callable[[Integers], Floats]) -> None:
    """Where rounding has made |q|² > limit, the truncated numbers of `exact`; 0 if these failed too.

    Proof: proofs/core.md#core-lattice.
    """
    (over,) = np.nonzero(~(np.einsum("ij,ij->j", q, q) <= limit))
    if len(over):
        cut = np.trunc(exact(over))
        cut[:, ~(np.einsum("ij,ij->j", cut, cut) <= limit[over])] = 0.0
        q[:, over] = cut


def _parts(matrix: Floats) -> Iterator[tuple[int, int, Floats]]:
    """Rows of T, some at a time, each with the columns that it needs: a triangle is half the work."""
    step = 8 * -(-len(matrix) // 32)
    for first in range(0, len(matrix), step):
        part = matrix[first : first + step]
        used = int(np.flatnonzero(part.any(axis=0))[-1]) + 1 if part.any() else 1
        yield first, first + len(part), np.ascontiguousarray(part[:, :used])


def check_linear_algebra(width: int) -> None:
    """Refuse a library whose products of whole numbers are not exact: Strassen, TF32, fast-math.

    Proof: proofs/core.md#core-transform.
    """
    if not _exact(min(width, 512)):
        raise DpgramError(INEXACT, remedy="Install numpy with OpenBLAS, as its wheels bring it")


@functools.cache
def _exact(width: int) -> bool:
    """Near the bound and with odd last digits, where the sums that Strassen's method forms pass 2^53."""
    rng, rows = np.random.default_rng(0), 64
    small = EXACT // (width << 26)
    whole = (1 << 26) - rng.integers(0, 64, (width, width))
    cells = small - rng.integers(0, min(64, small), (width, rows))
    lattice = rng.integers(-NORM, NORM, (width, rows), endpoint=True)
    found = product(whole.astype(np.float64), cells.astype(np.float64))
    floats = lattice.astype(np.float64)  # the product with its own transpose is another routine
    same = product(floats, floats.T)
    return np.array_equal(found, whole @ cells) and np.array_equal(same, lattice @ lattice.T)
