"""What a declared model needs beyond the matrix, summed exactly: scores, Hessian matrices, spreads of scores.

Rows come as the encoder gives them: integers q with |q|² ≤ 2^30, or ⌊2^30/m⌋ for one of the m rows of a unit.

    score        s = Σ g q/√m over the rows of a unit, |g| ≤ 1: at most 2^30 long
    Hessian      h = rint(√k·q), 0 ≤ k ≤ 1:  Σ h hᵀ
    spread       a = s·2^−15/bound, clipped to |a|² ≤ 2^30:  Σ a aᵀ over units

The coefficients β behind g and k are integers of length at most 2^37, so that β·q is an integer below 2^53 in
whatever order it is added up: a product of matrices of whole numbers, in which a row's bits are its own.
Everything after it is elementwise, by operations that every machine rounds alike. proofs/models.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dpgram.core.lattice import settle
from dpgram.core.units import PolicyCounts
from dpgram.document.model_units import DIRECTION_BITS, SCORE_UNIT, Curve
from dpgram.errors import DpgramError
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED
from dpgram.rows.encoder import EncodedChunk, Encoder
from dpgram.schema.encodings import NumberEncoding
from dpgram.sums._curves import residual_and_root
from dpgram.sums._exact_cells import ExactCells
from dpgram.sums.base import Statistic
from dpgram.sums.moments import products

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpgram.rows.batch import CountedRows
    from dpgram.rows.rules import RowRules
    from dpgram.schema.encodings import SourceEncoding

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Direction: TypeAlias = tuple[int, ...]

LONGEST: Final = 1 << (DIRECTION_BITS + 1)
"""Of a direction in integers: times 2^15, the length of a row, every partial sum is at most 2^52."""
ROUNDED_AT_MOST: Final = 1 << 20
"""m·√d for m rows of a unit and d columns: so many halves of a unit fit into what is left, twice."""
LEAST_BOUND: Final = 2.0**-10
"""Of what the scores of a spread are clipped at, in parts of the longest: 1 clips nothing."""


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactModelSums(ExactCells):
    """The Hessian matrix, below it the spread where there is one, and last the score. **Not private.**"""

    MAGIC: ClassVar[bytes] = b"dpgram exact model sums, not private, 1\n"

    @classmethod
    def zero(cls, width: int, *, spread: bool) -> ExactModelSums:
        """The sums of no rows."""
        return cls(np.zeros(((2 if spread else 1) * width + 1, width), np.int64), PolicyCounts())

    @property
    def matrix(self) -> Integers:
        """Σ h hᵀ."""
        return self.cells[: self.cells.shape[1]]

    @property
    def spread(self) -> Integers:
        """Σ a aᵀ; no rows where it was not asked for."""
        return self.cells[self.cells.shape[1] : -1]

    @property
    def score(self) -> Integers:
        """Σ s."""
        return np.asarray(self.cells[-1])


def check_direction(direction: Direction, width: int) -> None:
    """Refuse what could make a partial sum pass 2^52. Proof: proofs/models.md#models-rows."""
    if len(direction) != width or sum(each * each for each in direction) > LONGEST**2:
        raise DpgramError("a direction is too long for exact sums", remedy="This is a bug: please report it")


def nearest_direction(vector: Floats) -> Direction:
    """The integers nearest to a vector of length at most 1, in units of 2^−36."""
    return tuple(int(each) for each in np.rint(np.ldexp(vector, DIRECTION_BITS)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StepStatistic(Statistic):
    """The score and the Hessian matrix of a model at given coefficients, and the spread of its scores.

    A row of length |x| > R counts with w² = R²/|x|²: s = w x̃ r and H = Σ k·x̃x̃ᵀ with x̃ = w x, and r and k
    at the index β·x of the row as it is. Proof: proofs/models.md#models-step.
    """

    whole: Encoder
    """Of all columns: which rows count is decided as for the matrix."""
    features: Encoder
    """Of the features alone, in coordinates of their own."""
    target: str
    """The column that has it."""
    one: float | None
    """The number in that column for which y is 1; none: y is the number itself, within its public bounds."""
    curve: Curve
    slopes: Direction
    """β as a function of x, in units of 2^−36·size."""
    size: float
    limit: float = 1.0
    """E: what residuals are limited to."""
    cap: float = 1.0
    """c: rows with a larger expected count weigh less."""
    bound: float | None = None
    """Scores are clipped at this part of the longest for the spread; none: there is no spread."""

    def __post_init__(self) -> None:
        check_direction(self.slopes, self.features.schema.width)
        usable = self.features.coordinates is not None and math.isfinite(self.size) and self.size >= 0.0
        positive = all(math.isfinite(each) and each > 0.0 for each in (self.limit, self.cap))
        if not usable or not positive or not LEAST_BOUND <= (self.bound or 1.0) <= 1.0:
            raise DpgramError("a step is measured at odd numbers", remedy="This is a bug: please report it")

    def accumulator(self, rules: RowRules) -> StepAccumulator:
        """Working memory of one thread."""
        if rules.unit_rows * math.sqrt(self.features.schema.width) > ROUNDED_AT_MOST:
            raise DpgramError(
                "units of so many rows would leave no room for rounding", remedy="Lower unit_rows"
            )
        return StepAccumulator(self, rules)

    def zero(self, rules: RowRules) -> tuple[ExactModelSums, ...]:
        del rules
        return (ExactModelSums.zero(self.features.schema.width, spread=self.bound is not None),)

    def lattice_rows(
        self, chunk: EncodedChunk, truth: Floats, sizes: Floats, weights: Floats
    ) -> tuple[Floats, Floats]:
        """(s, h) of encoded rows: `truth` is y, or NaN for a row that tells nothing.

        `sizes` are the rows m of a row's unit, `weights` the roots of survey weights.
        Proof: proofs/models.md#models-step.
        """
        lines = chunk.lines[: self.features.schema.width]
        lengths = np.zeros(lines.shape[1]) if chunk.lengths is None else chunk.lengths
        far = np.where(lengths > 1.0, lengths, 1.0)
        shrunk = 1.0 / np.sqrt(far)
        with np.errstate(all="ignore"):  # a warning would tell of one row
            known = np.isfinite(truth) & (weights > 0.0)
            unit = math.ldexp(self.size * self.features.radius, -DIRECTION_BITS - 15)
            turned = np.array([self.slopes], dtype=np.float64) @ lines
            index = turned[0] * (unit * (np.sqrt(far) * (np.sqrt(sizes) / np.where(known, weights, 1.0))))
            seen = np.where(known, truth, 0.0)
            gap, root = residual_and_root(self.curve, index, seen, self.limit, self.cap)
            pull = np.where(known, gap, 0.0) * (shrunk * weights / np.sqrt(sizes))
            scores = np.rint(lines * (pull * SCORE_UNIT))
            bent = np.rint(lines * np.where(known, root, 0.0))
        return scores, bent

    def spread_rows(self, scores: Floats) -> Floats:
        """a of the scores of whole units, in integers with |a|² ≤ 2^30.

        Proof: proofs/models.md#models-spread.
        """
        held = scores * (1.0 / (float(ROW_NORM) * (self.bound or 1.0)))
        squares = np.zeros(held.shape[1])
        for line in held:
            squares += line * line
        factor = np.ones(len(squares))
        np.divide(float(ROW_NORM), np.sqrt(squares), out=factor, where=squares > float(ROW_NORM_SQUARED))
        held *= factor
        settle(held, ROW_NORM_SQUARED)
        return held


@final
class StepAccumulator:
    """Encodes the features of rows, and adds up their scores, their spread and their Hessian matrices.

    Proof: proofs/models.md#models-step.
    """

    def __init__(self, statistic: StepStatistic, rules: RowRules) -> None:
        self._statistic = statistic
        self._rows = _RowsThatCount(statistic.whole, rules)
        self._target = rules.schema.source_columns.index(statistic.target)
        self._width = statistic.features.schema.width
        self._cells = statistic.zero(rules)[0].cells.copy()
        self._counts = PolicyCounts()

    def add(self, rows: CountedRows) -> None:
        """Row by row; of a unit's rows each counts 1/m. All rows of every unit in it must be here."""
        statistic, taken = self._statistic, self._rows.taken(rows)
        truth = self._truth(rows.rows.lines[self._target][taken.rows])
        sizes = np.ones(len(truth)) if taken.sizes is None else taken.sizes.astype(np.float64)
        weights = np.ones(len(truth)) if taken.weights is None else taken.weights
        every = [np.zeros((self._width, 0))]
        start = 0
        for chunk in self._rows.encoded(rows, taken, statistic.features):
            stop = start + chunk.lines.shape[1]
            part = slice(start, stop)
            scores, bent = statistic.lattice_rows(chunk, truth[part], sizes[part], weights[part])
            self._cells[-1] += scores.sum(axis=1).astype(np.int64)  # whole numbers below 2^53
            self._cells[: self._width] += products(bent)
            if statistic.bound is not None:
                every.append(scores)
            start = stop
        if statistic.bound is not None:
            owned = self._by_unit(np.concatenate(every, axis=1), rows, taken)
            self._cells[self._width : -1] += products(statistic.spread_rows(owned))
        self._counts += taken.counts

    def _truth(self, line: Floats) -> Floats:
        """y of every row, NaN where it is unknown."""
        encoding = self._rows.encoding(self._statistic.target)
        known = np.isfinite(line) & ~encoding.unknown(line)
        if self._statistic.one is not None:
            return np.where(known, (line == self._statistic.one) * 1.0, np.nan)
        if not isinstance(encoding, NumberEncoding):
            raise DpgramError("this target is no number", remedy="This is a bug: please report it")
        return np.where(known, np.clip(line, encoding.low, encoding.high), np.nan)

    def _by_unit(self, scores: Floats, rows: CountedRows, taken: _Taken) -> Floats:
        """The scores of units: of their rows, added up. Whole numbers below 2^53, in whatever order."""
        if rows.block.units is None:
            return scores
        _, owners = np.unique(rows.block.units[taken.rows], return_inverse=True)
        count = int(owners.max(initial=-1)) + 1
        sums = [np.bincount(owners, line, minlength=count) for line in scores]
        return np.array(sums, dtype=np.float64).reshape(self._width, count)

    def result(self) -> tuple[ExactModelSums, ...]:
        """The sums so far."""
        return (ExactModelSums(self._cells.copy(), self._counts),)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Taken:
    """The rows that count, as for the matrix."""

    rows: Integers
    sizes: Integers | None
    weights: Floats | None
    counts: PolicyCounts


@final
class _RowsThatCount:
    """Which rows of a batch count, and how much: the same ones as in the matrix of `whole`."""

    def __init__(self, whole: Encoder, rules: RowRules) -> None:
        self._whole = whole.batch_encoder()
        self._schema = whole.schema
        self._source = rules.schema.source_columns
        self._places = self._of(whole)

    def _of(self, encoder: Encoder) -> list[int]:
        return [self._source.index(name) for name in encoder.schema.source_columns]

    def encoding(self, column: str) -> SourceEncoding:
        """How the cells of a column become numbers."""
        return next(each.encoding for each in self._schema.columns_read if each.name == column)

    def taken(self, rows: CountedRows) -> _Taken:
        cells = np.stack([rows.rows.lines[place] for place in self._places])
        counted, sizes = rows.block.rows_that_count(rows.placed & self._whole.usable(cells))
        (taken,) = np.nonzero(counted)
        read = int(rows.placed.sum())
        counts = rows.uncounted + PolicyCounts(
            rows_read=read, rows_used=len(taken), rows_dropped=read - len(taken)
        )
        return _Taken(
            taken,
            None if sizes is None else sizes[taken],
            None if rows.block.weights is None else rows.block.weights[taken],
            counts,
        )

    def encoded(self, rows: CountedRows, taken: _Taken, encoder: Encoder) -> Iterator[EncodedChunk]:
        """The rows that count under this encoder; none of them is dropped."""
        numbers = np.column_stack(rows.lines(self._of(encoder), taken.rows))
        return encoder.batch_encoder().encode_array(numbers, unit_rows=taken.sizes, weights=taken.weights)
