"""What a declared model needs beyond the matrix, summed exactly: products of residuals, scores, Hessians.

Rows come as the encoder gives them: integers q with |q|² ≤ 2^30, or ⌊2^30/m⌋ for one of the m rows of a unit.

    products     a = Σ (r·q)(B q) over the rows of a unit, clipped to |a|² ≤ 2^30:  Σ a aᵀ over units
    a step       s = Σ g q/√m with |g| ≤ 1, at most 2^30 long, and h = trunc(√k·q), 0 ≤ k ≤ 1:  Σ s, Σ h hᵀ

The directions r, B and the coefficients behind g and k are integers of length at most 2^37, so that r·q is an
integer below 2^53 in whatever order it is added up: a product of matrices of whole numbers, in which a row's
bits are its own. Everything after it is elementwise, by operations that every machine rounds alike.
proofs/models.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dpgram.document.model_units import DIRECTION_BITS, SCORE_UNIT, WIDEST_CURVE
from dpgram.errors import DpgramError
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED
from dpgram.rows import kernel
from dpgram.rows.encoder import EncodedChunk, Encoder, PolicyCounts
from dpgram.sums._exact_cells import ExactCells
from dpgram.sums.base import Statistic
from dpgram.sums.grams import rows_and_sizes
from dpgram.sums.moments import products

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpgram.rows.batch import CountedRows
    from dpgram.rows.rules import RowRules
    from dpgram.schema.encodings import SourceEncoding

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Direction: TypeAlias = tuple[int, ...]
Curve: TypeAlias = Literal["logistic", "probit"]

LONGEST: Final = 1 << (DIRECTION_BITS + 1)
"""Of a direction in integers: times 2^15, the length of a row, every partial sum is at most 2^52."""
FINER_BITS: Final = 20
"""Products are added up over a unit in units of 2^−20 of the lattice's."""
ROUNDED_AT_MOST: Final = 1 << 20
"""m·√d for m rows of a unit and d columns: so many halves of a unit fit into what is left, twice."""
LEAST_BOUND: Final = 2.0**-10
"""Of what products are clipped at. |r·q||B q| of unit vectors is at most |q|²: 1 clips nothing."""
TEMPERED: Final = 38.0
"""Beyond this an index decides; so it is taken for it."""


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactModelSums(ExactCells):
    """A symmetric matrix and, below it, a vector: the score, or zeros. **Not private.**"""

    MAGIC: ClassVar[bytes] = b"dpgram exact model sums, not private, 1\n"

    @classmethod
    def zero(cls, width: int) -> ExactModelSums:
        """The sums of no rows."""
        return cls(np.zeros((width + 1, width), np.int64), PolicyCounts())

    @property
    def matrix(self) -> Integers:
        """Σ a aᵀ, or Σ h hᵀ."""
        return self.cells[:-1]

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
class ProductsStatistic(Statistic):
    """Σ a aᵀ over rows, or units, with a the products of residual and features, |a|² ≤ 2^30.

    Proof: proofs/models.md#models-products.
    """

    encoder: Encoder
    basis: tuple[Direction, ...]
    """B, one direction for each feature."""
    residual: Direction
    """r."""
    bound: float
    """|a|/2^30 of what is not clipped, a = (r·q)(B q): of order one where nothing is to be clipped."""

    def __post_init__(self) -> None:
        for direction in (*self.basis, self.residual):
            check_direction(direction, self.encoder.schema.width)
        if not LEAST_BOUND <= self.bound <= 1.0:
            raise DpgramError(
                "the bound of products is out of range", remedy="This is a bug: please report it"
            )

    def accumulator(self, rules: RowRules) -> ProductsAccumulator:
        """Working memory of one thread."""
        return ProductsAccumulator(self, rules)

    def zero(self, rules: RowRules) -> tuple[ExactModelSums, ...]:
        del rules
        return (ExactModelSums.zero(len(self.basis)),)

    def products(self, lines: Floats) -> Floats:
        """(r·q)(B q) of each row, in units of 2^−20 of the lattice's, rounded.

        Proof: proofs/models.md#models-rows.
        """
        width = self.encoder.schema.width
        turned = np.array([*self.basis, self.residual], dtype=np.float64) @ lines[:width]
        unit = 2.0 ** (FINER_BITS - 2 * DIRECTION_BITS - 15) / self.bound
        return np.asarray(np.rint(turned[:-1] * (turned[-1] * unit)))

    def lattice(self, sums: Floats) -> Floats:
        """The products of whole units as lattice rows, |a|² ≤ 2^30.

        Proof: proofs/models.md#models-products.
        """
        held = np.ldexp(sums, -FINER_BITS)
        squares = np.zeros(held.shape[1])
        for line in held:
            squares += line * line
        factor = np.ones(len(squares))
        np.divide(float(ROW_NORM), np.sqrt(squares), out=factor, where=squares > float(ROW_NORM_SQUARED))
        kernel.round_lines(held, factor, ROW_NORM_SQUARED)
        return held


@final
class ProductsAccumulator:
    """Encodes rows, multiplies residual and features, adds them up by unit.

    Proof: proofs/models.md#models-products.
    """

    def __init__(self, statistic: ProductsStatistic, rules: RowRules) -> None:
        self._statistic = statistic
        self._rows = _RowsThatCount(statistic.encoder, rules)
        self._cells = np.zeros((len(statistic.basis) + 1, len(statistic.basis)), np.int64)
        self._counts = PolicyCounts()

    def add(self, rows: CountedRows) -> None:
        """Where there are units, all rows of every unit in it must be here."""
        statistic, taken = self._statistic, self._rows.taken(rows)
        found = [
            statistic.products(chunk.lines) for chunk in self._rows.encoded(rows, taken, statistic.encoder)
        ]
        lines = np.concatenate([np.zeros((len(statistic.basis), 0)), *found], axis=1)
        if rows.rows.ids is not None:
            _, owners = np.unique(rows.units[taken.rows], return_inverse=True)
            count = int(owners.max(initial=-1)) + 1
            # Whole numbers below 2^53: in whatever order.
            sums = [np.bincount(owners, line, minlength=count) for line in lines]
            lines = np.array(sums).reshape(len(statistic.basis), count)
        self._cells[:-1] += products(statistic.lattice(lines))
        self._counts += taken.counts

    def result(self) -> tuple[ExactModelSums, ...]:
        """The sums so far."""
        return (ExactModelSums(self._cells.copy(), self._counts),)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StepStatistic(Statistic):
    """The score and the Hessian matrix of a logit or probit at given coefficients.

    A row of length |x| > R counts with w² = R²/|x|²: s = w x̃(y − p) and H = Σ p'·x̃x̃ᵀ with x̃ = w x, and p
    at the index β·x of the row as it is. Proof: proofs/models.md#models-step.
    """

    whole: Encoder
    """Of all columns: which rows count is decided as for the matrix."""
    features: Encoder
    """Of the features alone, in coordinates of their own."""
    target: str
    """The column that has it."""
    one: float
    """The number in that column for which y is 1."""
    curve: Curve
    slopes: Direction
    """β as a function of x, in units of 2^−36·size."""
    size: float

    def __post_init__(self) -> None:
        check_direction(self.slopes, self.features.schema.width)
        if self.features.coordinates is None or not (math.isfinite(self.size) and self.size >= 0.0):
            raise DpgramError("a step needs coordinates", remedy="This is a bug: please report it")

    def accumulator(self, rules: RowRules) -> StepAccumulator:
        """Working memory of one thread."""
        if rules.unit_rows * math.sqrt(self.features.schema.width) > ROUNDED_AT_MOST:
            raise DpgramError(
                "units of so many rows would leave no room for rounding", remedy="Lower unit_rows"
            )
        return StepAccumulator(self, rules)

    def zero(self, rules: RowRules) -> tuple[ExactModelSums, ...]:
        del rules
        return (ExactModelSums.zero(self.features.schema.width),)

    def lattice_rows(
        self, chunk: EncodedChunk, truth: Floats, sizes: Floats, weights: Floats
    ) -> tuple[Floats, Floats]:
        """(s, h) of encoded rows: `truth` is 0 or 1, or NaN for a row that tells nothing.

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
            chance, curve = curved(self.curve, index)
            gap = np.where(known, truth - chance, 0.0)
            pull = np.clip(gap, -1.0, 1.0) * (shrunk * weights / np.sqrt(sizes))
            scores = np.rint(lines * (pull * SCORE_UNIT))
            bent = np.trunc(lines * np.where(known, curve, 0.0))
        return scores, bent


def curved(curve: Curve, index: Floats) -> tuple[Floats, Floats]:
    """p in [0, 1] and √(p'/max p') in [0, 1], by operations that every machine rounds alike.

    Proof: proofs/models.md#models-rows.
    """
    tame = np.where(index > -TEMPERED, index, -TEMPERED)
    tame = np.where(tame < TEMPERED, tame, TEMPERED)
    size = np.abs(tame)
    if curve == "logistic":
        small = falling(size)
        over = 1.0 / (1.0 + small)
        chance = np.where(tame >= 0.0, over, small * over)
        root = 2.0 * np.sqrt(small) * over
    else:
        # Abramowitz & Stegun 26.2.17, of error below 10⁻⁷.
        bell = falling(0.5 * (size * size))
        t = 1.0 / (1.0 + 0.2316419 * size)
        tail: Floats = np.full(len(size), 1.330274429)
        for term in (-1.821255978, 1.781477937, -0.356563782, 0.319381530):
            tail = tail * t + term
        beyond = WIDEST_CURVE["probit"] * bell * tail * t
        chance = np.where(tame >= 0.0, 1.0 - beyond, beyond)
        root = np.sqrt(bell)
    return np.clip(chance, 0.0, 1.0), np.clip(root, 0.0, 1.0)


def falling(x: Floats) -> Floats:
    """e^−x for 0 ≤ x ≤ 800, to 10⁻¹³: powers of two and a polynomial, as libraries may differ."""
    halves = np.rint(x * 1.4426950408889634)
    rest = (x - halves * 0.693147180369123816490) - halves * 1.90821492927058770002e-10
    total = np.ones_like(rest)
    for term in range(13, 0, -1):
        total = 1.0 - rest * (total / term)
    return np.ldexp(total, -halves.astype(np.int64))


@final
class StepAccumulator:
    """Encodes the features of rows, and adds up their scores and Hessian matrices.

    Proof: proofs/models.md#models-step.
    """

    def __init__(self, statistic: StepStatistic, rules: RowRules) -> None:
        self._statistic = statistic
        self._rows = _RowsThatCount(statistic.whole, rules)
        self._target = rules.schema.source_columns.index(statistic.target)
        width = statistic.features.schema.width
        self._cells = np.zeros((width + 1, width), np.int64)
        self._counts = PolicyCounts()

    def add(self, rows: CountedRows) -> None:
        """Row by row; of a unit's rows each counts 1/m."""
        statistic, taken = self._statistic, self._rows.taken(rows)
        line = rows.rows.numbers[taken.rows, self._target]
        declared = self._rows.encoding(statistic.target)
        truth = np.where(np.isfinite(line) & ~declared.unknown(line), (line == statistic.one) * 1.0, np.nan)
        sizes = np.ones(len(line)) if taken.sizes is None else taken.sizes.astype(np.float64)
        weights = np.ones(len(line)) if taken.weights is None else taken.weights
        start = 0
        for chunk in self._rows.encoded(rows, taken, statistic.features):
            stop = start + chunk.lines.shape[1]
            part = slice(start, stop)
            scores, bent = statistic.lattice_rows(chunk, truth[part], sizes[part], weights[part])
            self._cells[-1] += scores.sum(axis=1).astype(np.int64)  # whole numbers below 2^53
            self._cells[:-1] += products(bent)
            start = stop
        self._counts += taken.counts

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
        self._rules, self._whole = rules, whole.batch_encoder()
        self._schema = whole.schema
        self._source = rules.schema.source_columns
        self._places = self._of(whole)

    def _of(self, encoder: Encoder) -> list[int]:
        return [self._source.index(name) for name in encoder.schema.source_columns]

    def encoding(self, column: str) -> SourceEncoding:
        """How the cells of a column become numbers."""
        return next(each.encoding for each in self._schema.columns_read if each.name == column)

    def taken(self, rows: CountedRows) -> _Taken:
        numbers = rows.rows.numbers[:, self._places]
        usable = rows.placed & self._whole.usable(numbers.T)
        counted, sizes = rows_and_sizes(rows, usable, self._rules)
        (taken,) = np.nonzero(counted)
        read = int(rows.placed.sum())
        counts = rows.uncounted + PolicyCounts(
            rows_read=read, rows_used=len(taken), rows_dropped=read - len(taken)
        )
        return _Taken(
            taken,
            None if sizes is None else sizes[taken],
            None if rows.weights is None else rows.weights[taken],
            counts,
        )

    def encoded(self, rows: CountedRows, taken: _Taken, encoder: Encoder) -> Iterator[EncodedChunk]:
        """The rows that count under this encoder; none of them is dropped."""
        numbers = np.ascontiguousarray(rows.rows.numbers[taken.rows][:, self._of(encoder)])
        return encoder.batch_encoder().encode_array(numbers, unit_rows=taken.sizes, weights=taken.weights)
