"""Σ (q, t)(q, t)ᵀ over rows inside public bounds: lattice vectors q with |q|² ≤ 2^30, targets |t| ≤ 2^15.

x is scaled by min(1, B_x/|x|) and y clamped to [−B_y, B_y]; with published coefficients θ both are multiplied
by √s, s = (f/max(f, |y − xᵀθ|))^{2−p} ≤ 1. Then both are rounded to steps of B_x/2^15 and B_y/2^15 as every
encoded row is. So one row moves Σ q qᵀ by at most 2^30 in trace and Frobenius norm and Σ q t by at most 2^30
in length: facts about integers, whatever floats did before. Lengths and residuals are added up column after
column, by operations that every machine rounds alike: no other row can change a bit of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.core.lattice import settle
from dpgram.core.units import PolicyCounts
from dpgram.errors import DpgramError
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED
from dpgram.sums._exact_cells import ExactCells
from dpgram.sums.base import Statistic
from dpgram.sums.exact_gram import EXACT_ROWS

if TYPE_CHECKING:
    from dpgram.rows.batch import CountedRows
    from dpgram.rows.rules import RowRules

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SCALED_AT_MOST: Final = 1e150
"""Beyond it squares overflow; a row is shrunk to this size first, which no radius can tell."""
_POWER_BITS: Final = 52


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactMoments(ExactCells):
    """Exact sums of products of features and one target, the target last. **Not private.**"""

    MAGIC: ClassVar[bytes] = b"dpgram exact moments, not private, 1\n"

    @classmethod
    def zero(cls, width: int) -> ExactMoments:
        """The sums of no rows with so many features."""
        return cls(np.zeros((width + 1, width + 1), np.int64), PolicyCounts())

    @property
    def xx(self) -> Integers:
        """Σ q qᵀ."""
        return self.cells[:-1, :-1]

    @property
    def xy(self) -> Integers:
        """Σ q t."""
        return self.cells[:-1, -1]

    @property
    def yy(self) -> int:
        """Σ t²."""
        return int(self.cells[-1, -1])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reweighting:
    """Weights (f/max(f, |y − xᵀθ|))^{2−p} in (0, 1], 1 ≤ p < 2, from coefficients that are published."""

    theta: tuple[float, ...]
    floor: float
    power: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsStatistic(Statistic):
    """The moments of `columns` and `target`; a row with a number that is not finite counts nowhere.

    Whether anything succeeds depends on no row. Proof: proofs/adassp.md#adassp-lattice.
    """

    columns: tuple[str, ...]
    target: str
    x_norm: float
    y_bound: float
    reweighting: Reweighting | None = None

    def accumulator(self, rules: RowRules) -> MomentsAccumulator:
        """Working memory of one thread."""
        return MomentsAccumulator(self, rules)

    def zero(self, rules: RowRules) -> tuple[ExactMoments, ...]:
        refuse_groups_and_weights(rules)
        return (ExactMoments.zero(len(self.columns)),)

    def lattice_rows(self, x: Floats, y: Floats) -> Floats:
        """(q, t) of rows held by columns (`x` has one line per column), all finite: one line per column.

        Proofs: proofs/adassp.md#adassp-lattice, proofs/robust.md#robust-lattice.
        """
        rows = np.empty((len(x) + 1, x.shape[1]))
        features, target = rows[:-1], rows[-1:]
        features[:] = clipped(x, self.x_norm)
        target[0] = np.clip(y, -self.y_bound, self.y_bound)
        root = self.root_weights(features, target[0])
        rows *= root
        features /= self.x_norm
        target /= self.y_bound
        rows *= ROW_NORM
        settle(features, ROW_NORM_SQUARED)
        settle(target, ROW_NORM_SQUARED)
        return rows

    def root_weights(self, x: Floats, y: Floats) -> Floats:
        """√s; 0 where it is no number.

        A float here is a choice of weights, not of sensitivity: the lattice bounds every row again.
        """
        if self.reweighting is None:
            return np.ones(len(y))
        floor = self.reweighting.floor
        residual = y.copy()
        with np.errstate(over="ignore", invalid="ignore"):  # a warning would tell of one row
            for line, slope in zip(x, self.reweighting.theta, strict=True):
                residual -= line * slope
        ratio = np.nan_to_num(floor / np.maximum(np.abs(residual), floor), nan=0.0)
        return power(ratio, 0.5 * (2.0 - self.reweighting.power))


@final
class MomentsAccumulator:
    """Puts rows on the lattice and adds their products up."""

    def __init__(self, statistic: MomentsStatistic, rules: RowRules) -> None:
        refuse_groups_and_weights(rules)
        source = rules.schema.source_columns
        self._statistic = statistic
        self._places = [source.index(name) for name in (*statistic.columns, statistic.target)]
        self._cells = np.zeros((len(self._places), len(self._places)), np.int64)
        self._counts = PolicyCounts()

    def add(self, rows: CountedRows) -> None:
        """Add up the rows that are whole; with units, one of each."""
        lines = np.stack(rows.lines(self._places, rows.once))
        whole = np.isfinite(lines).all(axis=0)
        read, used = int(rows.placed.sum()), int(whole.sum())
        self._counts += rows.uncounted + PolicyCounts(
            rows_read=read, rows_used=used, rows_dropped=read - used
        )
        kept = np.ascontiguousarray(lines[:, whole])
        self._cells += products(self._statistic.lattice_rows(kept[:-1], kept[-1]))

    def result(self) -> tuple[ExactMoments, ...]:
        """The sums so far."""
        return (ExactMoments(self._cells.copy(), self._counts),)


def products(lines: Floats) -> Integers:
    """lines·linesᵀ, exactly: floats add up 2^22 products of at most 2^30 without an error."""
    total = np.zeros((len(lines), len(lines)), np.int64)
    for start in range(0, lines.shape[1], EXACT_ROWS):
        piece = lines[:, start : start + EXACT_ROWS]
        total += (piece @ piece.T).astype(np.int64)
    return total


def clipped(x: Floats, radius: float) -> Floats:
    """Rows held by columns, each scaled by min(1, radius/|x|)."""
    largest = np.zeros(x.shape[1])
    for line in x:
        np.maximum(largest, np.abs(line), out=largest)
    tame = x * np.minimum(1.0, SCALED_AT_MOST / np.maximum(largest, SCALED_AT_MOST))
    squared = np.zeros(x.shape[1])
    for line in tame:
        squared += line * line
    shrunk: Floats = tame * np.minimum(1.0, radius / np.maximum(np.sqrt(squared), radius))
    return shrunk


def power(base: Floats, exponent: float) -> Floats:
    """base^exponent, 0 ≤ exponent ≤ 1: a product of square roots, which every machine rounds alike.

    Library powers may differ between machines, and between places in an array. The exponent counts to 2⁻⁵².
    """
    found, root, left = np.ones_like(base), base, exponent
    if left >= 1.0:
        return base.copy()
    for _ in range(_POWER_BITS):
        if left == 0.0:
            break
        root, left = np.sqrt(root), 2.0 * left
        if left >= 1.0:
            found, left = found * root, left - 1.0
    return found


def refuse_groups_and_weights(rules: RowRules) -> None:
    """These sums know one group of rows, each of which counts alike."""
    if rules.by is not None or rules.weight is not None:
        raise DpgramError("moments are not added up by group or weight", remedy="Leave by and weight out")
