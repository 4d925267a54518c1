"""The parts of a release file: closed, frozen records. Nothing in them but the cells depends on the data."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal, TypeAlias, final

from msgspec import Meta, Struct

from dpgram.document.coordinates import Coordinates
from dpgram.document.model_units import Curve
from dpgram.document.statement import rounded_up
from dpgram.noise import MatrixLaplace, SymmetricGaussian
from dpgram.noise.additive import Scale
from dpgram.noise.factor import MOST_PERIODS, noise_factor, window_weights

AdjacencyName: TypeAlias = Literal["add-remove", "replace-one"]
MissingPolicy: TypeAlias = Literal["drop", "midpoint"]
Text: TypeAlias = Annotated[str, Meta(max_length=4000)]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]
Probability: TypeAlias = Annotated[float, Meta(ge=0, lt=1)]
PeriodLabel: TypeAlias = Annotated[str, Meta(min_length=1, max_length=64)]
Cell: TypeAlias = Annotated[str, Meta(pattern=r"^(0|-?[1-9][0-9]{0,39})\Z", max_length=41)]
"""A whole number in plain decimal digits: beyond 2^53 a JSON number would be rounded by some readers.

Exact sums have 19 digits; 40 leave room for noise a thousand million million million times as large.
"""


@final
class About(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the curator says about the release, in words: nothing computed, nothing checked."""

    title: Annotated[str, Meta(max_length=400)] = ""
    description: Text = ""
    contact: Annotated[str, Meta(max_length=400)] = ""
    """Whom to ask."""
    licence: Annotated[str, Meta(max_length=400)] = ""
    """What others may do with it."""


@final
class MechanismUsed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which mechanism, its calibrated parameters in lattice units, and why it was taken (public facts only).

    The parameters of each mechanism are a closed list: the fields of what it is calibrated to.
    """

    name: Annotated[str, Meta(max_length=64)]
    parameters: Annotated[dict[str, float | int | Annotated[str, Meta(max_length=64)]], Meta(max_length=64)]
    choice: Text


@final
class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What was done with values outside the schema: a declared rule per row, fixed before looking."""

    missing: MissingPolicy
    strict: bool
    stop_if_check_fails: bool = False
    """Whether nothing would have been published had a check found that much of the table cannot be used."""


@final
class StatedGuarantee(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """(ε, δ)-differential privacy of this one release, in numbers and in words."""

    epsilon: Positive
    delta: Probability
    numerical_delta: Probability = 0.0
    """What drawing in floats added to δ in early releases; 0 since every draw is exact."""
    mu: Positive | None = None
    """The exact Gaussian-DP parameter, where the mechanism has one."""
    rho: Positive | None = None
    """The zero-concentrated parameter, where the mechanism has one."""
    statement: Text
    """The words of whoever wrote it. Nothing checks them in a file, so what is shown of one is `in_words`."""

    def __str__(self) -> str:
        parts = [f"ε = {self.epsilon:g}", f"δ = {self.delta:g}"]
        if self.numerical_delta:
            parts.append(f"numerical δ = {rounded_up(self.numerical_delta)}")
        if self.mu is not None:
            parts.append(f"μ = {self.mu:.5g}")
        return ", ".join(parts)


@final
class UnitRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the rows of one privacy unit count together: V = Σ w_i² x_i x_iᵀ with Σ w_i² ≤ 1. Public facts."""

    counts: Literal["units", "rows"]
    """units: m rows weigh 1/√m each, so that every unit counts as one. rows: each weighs 1/√rows_at_most."""
    rows_at_most: Annotated[int, Meta(ge=1, le=1 << 20)]
    """The rows of a larger unit were chosen by a fixed hash of their content."""


@final
class Group(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """This release holds the rows with one public level of a column; the other levels have their own."""

    column: Annotated[str, Meta(min_length=1, max_length=1000)]
    level: Annotated[str, Meta(max_length=1000)]


@final
class Block(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of several releases with different columns of the same rows, which share one budget."""

    number: Annotated[int, Meta(ge=1, le=1 << 20)]
    """Counted from 1."""
    of: Annotated[int, Meta(ge=2, le=1 << 20)]
    joint: StatedGuarantee
    """What all of them promise together; the release's own guarantee is its share alone."""


@final
class SurveyWeight(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rows counted w/at_most each: w a column, clamped to [0, at_most] by public bounds."""

    column: Annotated[str, Meta(min_length=1, max_length=1000)]
    at_most: Annotated[float, Meta(gt=0, lt=1e300)]


@final
class SeriesPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which periods of a series this release has: the noise of its matrix is that of Σ_s w_s Y_s.

    Y_t = Σ_{s ≤ t} c_{t−s} X_s + Z_t was published of period t; w follows from c and the two ends
    (`dpgram.noise.factor`, proofs/series.md). Public facts.
    """

    series: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    """128 random bits drawn when the series was created."""
    periods: Annotated[int, Meta(ge=1, le=MOST_PERIODS)]
    """The horizon, for which the charge was."""
    bits: Annotated[int, Meta(ge=6, le=16)]
    """c_0 = 2^bits."""
    participations: Annotated[int, Meta(ge=1, le=MOST_PERIODS)]
    """A person counts in at most so many periods,"""
    apart: Annotated[int, Meta(ge=1, le=MOST_PERIODS)]
    """and these are at least so far from each other."""
    first: Annotated[int, Meta(ge=1, le=MOST_PERIODS)]
    """The first and the last period that are added up here, counted from 1."""
    last: Annotated[int, Meta(ge=1, le=MOST_PERIODS)]
    labels: tuple[PeriodLabel, PeriodLabel]
    """What the curator calls these two."""

    def __post_init__(self) -> None:
        if not self.first <= self.last <= self.periods:
            raise ValueError("the periods of the series are not in order")

    @property
    def length(self) -> int:
        """How many periods are added up."""
        return self.last - self.first + 1

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """w."""
        return window_weights(self.first, self.last, periods=self.periods, bits=self.bits)

    @property
    def gain(self) -> float:
        """How many times the noise of one release with the same guarantee there is in the matrix."""
        return noise_factor(
            self.first,
            self.last,
            periods=self.periods,
            participations=self.participations,
            apart=self.apart,
            bits=self.bits,
        )

    def __str__(self) -> str:
        first, last = self.labels
        return first if self.length == 1 else f"{first} to {last}"


@final
class PublishedMatrix(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Lower triangle by rows, cell (i, j) at i(i+1)/2 + j: symmetric because nothing else can be written."""

    kind: Literal["gram", "inverse"]
    exponent: Annotated[int, Meta(ge=-256, le=256)]
    cells: Annotated[tuple[Cell, ...], Meta(max_length=1_000_000)]


@final
class LearntLook(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Noisy counts of 16 equal bins from `low` to `high`; values outside count in the bin at the end."""

    low: float
    high: float
    bins: Annotated[tuple[Cell, ...], Meta(min_length=16, max_length=16)]


@final
class LearntBounds(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the bounds of one column were found: noisy counts, of which 2^30 are one row, and what followed."""

    column: Annotated[str, Meta(max_length=4000)]
    first_octave: Annotated[int, Meta(ge=0, le=4196)]
    """The place of the first octave kept among the 4197: negative ones from the largest, zero, positive."""
    octaves: Annotated[tuple[Cell, ...], Meta(max_length=4197)]
    coarse_low: float
    coarse_high: float
    looks: Annotated[tuple[LearntLook, ...], Meta(min_length=1)]
    """Within the coarse bounds, each closer than the one before or at the same bins again."""
    low: float
    high: float


@final
class LearntLevels(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The levels of one column whose noisy counts reached the threshold; 2^30 units are one row."""

    column: Annotated[str, Meta(max_length=4000)]
    threshold: Cell
    levels: tuple[Annotated[str, Meta(max_length=4000)], ...]
    counts: tuple[Cell, ...]


@final
class LearntRadius(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Noisy counts of squared row lengths in equal bins, from which the radius was chosen."""

    lengths: tuple[Cell, ...]


class Measured(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """One measurement beside the matrix, inside the same guarantee."""

    share: Annotated[float, Meta(gt=0, lt=1)]
    """Of the event's currency: μ² with Gaussian noise, else ε."""


class MeasuredCounts(Measured, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """Noisy counts, of which 2^30 are one row, and their noise."""

    law: Literal["discrete-gaussian", "discrete-laplace"]
    scale: Positive
    """Of the noise on every cell, in lattice units."""


@final
class MeasuredRows(MeasuredCounts, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="rows"):
    """The noisy number of rows, where that is not public."""

    cell: Cell


@final
class MeasuredLevels(MeasuredCounts, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="levels"):
    """Levels whose noisy counts reached a threshold; `delta` pays for a level of one row alone."""

    delta: Annotated[float, Meta(gt=0, lt=1)]
    columns: tuple[LearntLevels, ...]


@final
class ColumnOctaves(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The powers of two that hold one column; none where noise hid them all."""

    column: Annotated[str, Meta(max_length=4000)]
    first: Annotated[int, Meta(ge=0, le=4196)]
    """The place of the first one among the 4197: negative ones from the largest, zero, positive."""
    cells: tuple[Cell, ...]


@final
class MeasuredOctaves(MeasuredCounts, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="octaves"):
    """Noisy counts of signed powers of two, from which coarse bounds follow."""

    columns: tuple[ColumnOctaves, ...]


@final
class ColumnBins(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One column within its coarse bounds, each look closer than the one before or at the same bins again."""

    column: Annotated[str, Meta(max_length=4000)]
    looks: Annotated[tuple[LearntLook, ...], Meta(min_length=1)]


@final
class MeasuredBins(MeasuredCounts, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="bins"):
    """Noisy counts of equal bins, from which bounds follow."""

    columns: tuple[ColumnBins, ...]


@final
class MeasuredLengths(MeasuredCounts, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="lengths"):
    """Noisy counts of squared row lengths in equal bins, from which the radius was chosen."""

    cells: tuple[Cell, ...]


@final
class NumberHistogram(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="numbers", tag_field="of"
):
    """Noisy counts at 17 equal nodes from `low` to `high`, the bounds of a column or, closer, within them.

    A value between two nodes counts at both, in proportion to how near it is. `lost` counts the rows whose
    value is missing, unreadable, below the bounds and above them.
    """

    column: Annotated[str, Meta(max_length=4000)]
    low: float
    high: float
    counts: Annotated[tuple[Cell, ...], Meta(min_length=17, max_length=17)]
    lost: Annotated[tuple[Cell, ...], Meta(min_length=4, max_length=4)]


@final
class LevelHistogram(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="levels", tag_field="of"
):
    """A column of levels, or of false and true; `lost` counts missing values and those of no known level."""

    column: Annotated[str, Meta(max_length=4000)]
    counts: Annotated[tuple[Cell, ...], Meta(min_length=1)]
    lost: Annotated[tuple[Cell, ...], Meta(min_length=2, max_length=2)]


@final
class MeasuredHistograms(
    MeasuredCounts, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="histograms"
):
    """A noisy histogram of every column that is read: what analysts see of it, and how it is scaled."""

    columns: Annotated[tuple[NumberHistogram | LevelHistogram, ...], Meta(min_length=1)]


@final
class MeasuredZoom(MeasuredCounts, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="zoom"):
    """Closer histograms of columns whose values lie within a step of the one before: these tell the scale.

    `lost` counts what lies outside of `low` and `high`, which are within the bounds of the column.
    """

    columns: Annotated[tuple[NumberHistogram, ...], Meta(min_length=1)]


@final
class MeasuredMatrix(Measured, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="gram"):
    """A first noisy matrix, from which the coordinates of the last one follow."""

    coordinates: Coordinates
    radius: Annotated[float, Meta(gt=1e-50, lt=1e50)]
    noise: SymmetricGaussian | MatrixLaplace
    cells: Annotated[tuple[Cell, ...], Meta(max_length=1_000_000)]
    """Lower triangle by rows, in lattice units."""


@final
class MeasuredReach(MeasuredCounts, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="reach"):
    """Noisy counts of row lengths in the coordinates of the first matrix, before the clip at its radius R.

    Quarter octaves of |u|/R from 2^−1.5 to 4, what is shorter and what is longer: how far rows reach decides
    the last radius.
    """

    cells: Annotated[tuple[Cell, ...], Meta(min_length=16, max_length=16)]


@final
class MeasuredClip(MeasuredCounts, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="clip"):
    """Noisy counts of row lengths in the coordinates of the matrix, before the clip at its radius R.

    48 equal bins of |u|²/R² up to 1, then 16 of 1 − R²/|u|²: what the clip left rows of, and what it took.
    """

    cells: Annotated[tuple[Cell, ...], Meta(min_length=64, max_length=64)]


Whole: TypeAlias = Annotated[int, Meta(ge=-(1 << 37), le=1 << 37)]
Direction: TypeAlias = Annotated[tuple[Whole, ...], Meta(max_length=1400)]
"""A vector in units of 2^−36."""


@final
class Spread(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Noisy Σ a aᵀ, a the score of a row, or of all rows of a unit, clipped at |a| ≤ bound·R·limit.

    2^15 lattice units of a are bound·R·limit·(1 − 2^−10).
    """

    bound: Annotated[float, Meta(ge=2.0**-10, le=1.0)]
    noise: SymmetricGaussian
    cells: Annotated[tuple[Cell, ...], Meta(max_length=1_000_000)]
    """Lower triangle by rows, in lattice units."""


@final
class MeasuredStep(Measured, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="step"):
    """Noisy score and Hessian matrix of a declared model at published coefficients.

    x = T v of the features v alone, x̃ the same clipped at R, w = |x̃|/|x|: s = Σ w x̃ r and H = Σ k·x̃x̃ᵀ with
    r the limited residual and k its slope: proofs/models.md.
    """

    family: Curve
    target: Annotated[str, Meta(min_length=1, max_length=4000)]
    on: Annotated[tuple[Annotated[str, Meta(max_length=4000)], ...], Meta(min_length=1, max_length=1400)]
    coordinates: Coordinates
    """T."""
    radius: Annotated[float, Meta(gt=1e-50, lt=1e50)]
    """R."""
    slopes: Direction
    size: Annotated[float, Meta(ge=0, lt=1e50)]
    """The coefficients at which it was measured are size·slopes, as a function of x."""
    limit: Annotated[float, Meta(gt=1e-50, lt=1e50)] = 1.0
    """Residuals are limited to ±limit, in units of the target."""
    cap: Annotated[float, Meta(gt=1e-50, lt=1e50)] = 1.0
    """Of counts: rows that are expected to have more weigh less, as cap to what is expected."""
    score_sigma: Scale
    """The scale of the noise on every cell of the score, in lattice units."""
    score: Annotated[tuple[Cell, ...], Meta(max_length=1400)]
    noise: SymmetricGaussian
    """Of the Hessian matrix."""
    cells: Annotated[tuple[Cell, ...], Meta(max_length=1_000_000)]
    """Of the Hessian matrix: lower triangle by rows, in lattice units."""
    spread: Spread | None = None
    """Of the scores, where errors follow from it: in linear models, and the last step of those of counts."""


@final
class UnmeasuredModel(Measured, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="unmeasured"):
    """A declared model that was not measured, since noise hid what it begins with.

    `share` is what it would have had. It went to the matrix where noisy counts showed too few rows for better
    coordinates. Else noise showed itself only after the matrix: the share was charged, and is left unused.
    """

    family: Curve
    target: Annotated[str, Meta(min_length=1, max_length=4000)]
    on: Annotated[tuple[Annotated[str, Meta(max_length=4000)], ...], Meta(min_length=1, max_length=1400)]


Measurements: TypeAlias = tuple[
    MeasuredRows
    | MeasuredLevels
    | MeasuredOctaves
    | MeasuredBins
    | MeasuredLengths
    | MeasuredHistograms
    | MeasuredZoom
    | MeasuredMatrix
    | MeasuredReach
    | MeasuredClip
    | MeasuredStep
    | UnmeasuredModel,
    ...,
]
"""Everything that was measured beside the matrix, in order."""


@final
class Learnt(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was measured before the matrix as the first edition wrote it; `Measurements` since then.

    Scales are in lattice units, of which 2^30 are one row. The guarantee covers all parts and the matrix.
    """

    law: Literal["discrete-gaussian", "discrete-laplace"]
    bounds_budget: Probability
    levels_budget: Probability
    radius_budget: Probability
    count_scale: Positive | None
    octave_scale: Positive | None
    bin_scale: Positive | None
    level_scale: Positive | None
    length_scale: Positive | None
    level_delta: Probability
    rows: Cell | None
    """The noisy number of rows, where that is not public."""
    bounds: tuple[LearntBounds, ...]
    levels: tuple[LearntLevels, ...]
    radius: LearntRadius | None
