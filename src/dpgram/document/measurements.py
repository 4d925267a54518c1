"""What was measured beside the matrix of a release: noisy counts, what follows from them, what they cost.

μ² = μ_Gram² + Σ μᵢ² (or ε, in the same way) over all measurements: proofs/bounds.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from dpgram.core import OCTAVES
from dpgram.document.fields import (
    ColumnBins,
    ColumnOctaves,
    Learnt,
    LevelHistogram,
    Measured,
    MeasuredBins,
    MeasuredClip,
    MeasuredCounts,
    MeasuredHistograms,
    MeasuredLengths,
    MeasuredLevels,
    MeasuredMatrix,
    MeasuredOctaves,
    MeasuredReach,
    MeasuredRows,
    MeasuredStep,
    MeasuredZoom,
    Measurements,
    NumberHistogram,
    UnmeasuredModel,
)
from dpgram.document.octaves import OctaveRun
from dpgram.errors import ReleaseError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.noise import MatrixLaplace, SymmetricGaussian
from dpgram.privacy.count_noise import CountNoise, level_threshold, price_of_counts, projected_counts
from dpgram.schema.columns import Column
from dpgram.schema.encodings import BooleanEncoding, LevelsEncoding, NumberEncoding

if TYPE_CHECKING:
    from dpgram.document.coordinates import Coordinates
    from dpgram.document.document import Document
    from dpgram.document.fields import LearntLevels, LearntLook
    from dpgram.schema import Schema

Floats = npt.NDArray[np.float64]

LENGTH_BINS: Final = 64
"""Bins of the squared length, from 0 to the largest the schema allows."""
THRESHOLD_ROUNDING: Final = 1e-9
"""What two versions of a mathematical library may differ by in a quantile of noise."""
FIRST_EDITION_COUNT_SHARE: Final = 0.05
"""The share of what was learnt that paid for the number of rows in releases of the first edition."""


def histogram_count(measured: MeasuredCounts) -> int:
    """How many histograms were drawn: each may change by one row."""
    match measured:
        case (
            MeasuredLevels(columns=columns)
            | MeasuredOctaves(columns=columns)
            | MeasuredHistograms(columns=columns)
            | MeasuredZoom(columns=columns)
        ):
            return len(columns)
        case MeasuredBins(columns=columns):
            return sum(len(each.looks) for each in columns)
        case _:
            return 1


def measured_price(release: Document, units_changed: int) -> Fraction:
    """μ² or ε of everything but the matrix.

    In a series counts of several periods were added up, each with noise of its own, and a person may be in
    several of them; what fixed the coordinates was measured in the first alone: proofs/series.md#series-file.
    """
    part = release.series
    often = 1 if part is None else part.length * part.participations
    times = {MeasuredHistograms: often, MeasuredClip: often}
    prices = (times.get(type(each), 1) * _price(each, units_changed) for each in release.measured)
    return sum(prices, Fraction(0))


def _price(measured: Measured, units_changed: int) -> Fraction:
    match measured:
        case MeasuredMatrix(noise=SymmetricGaussian(sigma=sigma)):
            return units_changed * (ROW_NORM_SQUARED / Fraction(sigma)) ** 2
        case MeasuredMatrix(noise=MatrixLaplace(theta=theta)):
            return units_changed * ROW_NORM_SQUARED * Fraction(theta)
        case MeasuredStep():
            spread = None if measured.spread is None else measured.spread.noise.sigma
            return step_price(units_changed, measured.noise.sigma, measured.score_sigma, spread)
        case UnmeasuredModel():
            return Fraction(0)
        case MeasuredCounts():
            return price_of_counts(
                measured.law,
                measured.scale,
                histograms=histogram_count(measured),
                units_changed=units_changed,
            )
        case _:
            raise TypeError(type(measured).__name__)


def step_price(units_changed: int, sigma: float, score_sigma: float, spread_sigma: float | None) -> Fraction:
    """μ² of a Hessian matrix, a score and its spread. A score is at most 2^30 long and may point anywhere.

    Proof: proofs/models.md#models-step.
    """
    matrices = [sigma] if spread_sigma is None else [sigma, spread_sigma]
    paid = sum(units_changed * (ROW_NORM_SQUARED / Fraction(each)) ** 2 for each in matrices)
    return paid + (units_changed * ROW_NORM_SQUARED / Fraction(score_sigma)) ** 2


def measured_delta(release: Document) -> float:
    """The part of δ that pays for learnt levels."""
    return sum(each.delta for each in release.measured if isinstance(each, MeasuredLevels))


def thresholds_suffice(release: Document) -> bool:
    """Whether each learnt level had to reach what its noise and its part of δ ask for.

    Proof: proofs/levels.md#levels-claim.
    """
    return all(_high_enough(each) for each in release.measured if isinstance(each, MeasuredLevels))


def _high_enough(measured: MeasuredLevels) -> bool:
    columns = len(measured.columns)
    if columns == 0 or measured.delta / columns <= 0.0:
        return False
    least = level_threshold(CountNoise(law=measured.law, scale=measured.scale), measured.delta, columns)
    return all(int(each.threshold) >= least * (1 - THRESHOLD_ROUNDING) for each in measured.columns)


def known_rows(release: Document) -> float:
    """The number of rows that is public, or the noisy one that was measured; 1 at least."""
    noisy = [int(each.cell) for each in release.measured if isinstance(each, MeasuredRows)]
    histograms = [each for each in release.measured if isinstance(each, MeasuredHistograms)]
    if histograms and not noisy and release.public_rows is None:
        return max(histogram_rows(histograms[0]), 1.0)
    return max(noisy[0] / ROW_NORM_SQUARED if noisy else float(release.public_rows or 0), 1.0)


def histogram_rows(measured: MeasuredHistograms) -> float:
    """The noisy number of rows: every row is in one cell of each histogram. Fewer cells tell it better."""
    every = [(*each.counts, *each.lost) for each in measured.columns]
    totals = [sum(int(cell) for cell in cells) / ROW_NORM_SQUARED for cells in every]
    return float(np.average(totals, weights=[1.0 / len(cells) for cells in every]))


def learnt_bounds(release: Document) -> tuple[str, ...]:
    """Numeric columns whose bounds were learnt."""
    found = [each.columns for each in release.measured if isinstance(each, MeasuredOctaves)]
    return tuple(each.column for each in found[0]) if found else ()


def learnt_levels(release: Document) -> dict[str, tuple[str, ...]]:
    """Categorical columns whose levels were learnt, and these levels."""
    found = [each.columns for each in release.measured if isinstance(each, MeasuredLevels)]
    return {each.column: each.levels for each in found[0]} if found else {}


def learnt_radius(release: Document) -> bool:
    """Whether the row radius was chosen privately."""
    return any(isinstance(each, MeasuredLengths) for each in release.measured)


def unresolved(release: Document) -> tuple[str, ...]:
    """Columns whose learnt bounds are far wider than their values, even after the closest look."""
    return tuple(
        column.column
        for each in release.measured
        if isinstance(each, MeasuredBins)
        for column in each.columns
        if crowded(column.looks, known_rows(release), CountNoise(law=each.law, scale=each.scale)) is not None
    )


def latest(looks: Sequence[LearntLook]) -> tuple[Floats, int]:
    """Counts, in rows, of the bins looked at last, averaged over all looks at these; how many looks."""
    last = looks[-1]
    same = [look.bins for look in looks if (look.low, look.high) == (last.low, last.high)]
    counts = np.mean([[int(cell) / ROW_NORM_SQUARED for cell in bins] for bins in same], axis=0)
    return np.asarray(counts), len(same)


def crowded(looks: Sequence[LearntLook], rows: float, noise: CountNoise) -> int | None:
    """The first of two neighbouring bins that hold nearly all of the column, as far as noisy counts can tell.

    Four fifths lie in these two, and no other bin stands out of the noise. A column of many zeros and some
    ones is no such case: the ones stand out, and the bounds are right.
    """
    counts, averaged = latest(looks)
    likely = projected_counts(counts, rows)
    pairs = likely[:-1] + likely[1:]
    fullest = int(np.argmax(pairs))
    others = np.delete(counts, [fullest, fullest + 1])
    left = CountNoise(law=noise.law, scale=noise.scale / math.sqrt(averaged))
    hidden = float(np.max(others)) <= left.upper_quantile(STANDS_OUT / len(counts))
    return fullest if hidden and float(pairs[fullest]) >= CROWDED * rows else None


CROWDED: Final = 0.8
"""The part of all values in two neighbouring bins from which their bounds count as too wide."""
STANDS_OUT: Final = 1e-3
"""Chance that noise alone makes any of the other bins stand out, so that wide bounds go unnoticed."""


def consistent(release: Document) -> bool:
    """Whether the measurements are of known kinds in their order, and say what the schema says."""
    measured = release.measured
    order = [_ORDER.index(type(each)) for each in measured]
    several = (MeasuredZoom, MeasuredStep, UnmeasuredModel)
    repeated = [place for place, each in zip(order, measured, strict=True) if isinstance(each, several)]
    if order != sorted([*(set(order) - set(repeated)), *repeated]):
        return False
    in_mu = {_gaussian(each) for each in measured}
    if len(in_mu) > 1 or (in_mu and _in_mu(release) not in in_mu):
        return False
    if _in_coordinates(release) and release.coordinates is None:
        return False
    kinds = {type(each) for each in measured}
    if release.coordinates is not None and not _shows_origin(release, release.coordinates, kinds):
        return False
    if kinds & set(several) and release.series is not None:  # a step has the price of one period
        return False
    if MeasuredOctaves in kinds and not kinds & {MeasuredBins, MeasuredHistograms}:
        return False
    if MeasuredBins in kinds and (MeasuredOctaves not in kinds or MeasuredHistograms in kinds):
        return False
    if MeasuredZoom in kinds and MeasuredHistograms not in kinds:
        return False
    return all(_agrees(each, release) for each in measured)


def _in_mu(release: Document) -> bool:
    """Whether the matrix adds up with Gaussian counts in μ²."""
    from dpgram.mechanisms import MECHANISMS  # late, as in `_checks`

    kind = MECHANISMS.get(release.mechanism.name)
    return kind is not None and kind.gaussian


def _gaussian(measured: Measured) -> bool:
    if isinstance(measured, MeasuredStep | UnmeasuredModel):
        return True
    if isinstance(measured, MeasuredMatrix):
        return isinstance(measured.noise, SymmetricGaussian)
    return isinstance(measured, MeasuredCounts) and measured.law == "discrete-gaussian"


def _in_coordinates(release: Document) -> bool:
    """Whether something was measured that only makes sense for a matrix in coordinates of its own."""
    needing = (MeasuredMatrix, MeasuredReach, MeasuredClip)
    return any(isinstance(each, needing) for each in release.measured)


def _shows_origin(release: Document, coordinates: Coordinates, kinds: set[type]) -> bool:
    """Whether the measurements are there of which these coordinates were made.

    Columns are scaled by histograms. Only a first matrix shows which of them go together: without one every
    coordinate is one column, less a multiple of the constant.

    Proof: proofs/adaptive.md#adaptive-composition.
    """
    if coordinates.width != release.schema.width or MeasuredHistograms not in kinds:
        return False
    if MeasuredMatrix in kinds:
        return True
    mixed = np.tril(coordinates.integers, -1)
    if release.schema.constant:
        mixed[:, 0] = 0.0
    return not mixed.any()


_ORDER: Final = (
    MeasuredRows,
    MeasuredLevels,
    MeasuredOctaves,
    MeasuredBins,
    MeasuredLengths,
    MeasuredHistograms,
    MeasuredZoom,
    MeasuredMatrix,
    MeasuredReach,
    MeasuredClip,
    MeasuredStep,
    UnmeasuredModel,
)


def _agrees(measured: Measured, release: Document) -> bool:
    match measured:
        case MeasuredLevels():
            return all(_levels_agree(each, release) for each in measured.columns)
        case MeasuredBins():
            octaves = next(each for each in release.measured if isinstance(each, MeasuredOctaves))
            names = [each.column for each in measured.columns]
            if names != [each.column for each in octaves.columns] or len(set(names)) < len(names):
                return False
            return all(map(_bounds_agree, octaves.columns, measured.columns, [release] * len(names)))
        case MeasuredLengths(cells=cells):
            return len(cells) == LENGTH_BINS
        case MeasuredHistograms(columns=columns):
            names = [each.column for each in columns]
            return len(set(names)) == len(names) and all(_histogram_agrees(each, release) for each in columns)
        case MeasuredZoom(columns=columns):
            names = [each.column for each in columns]
            return len(set(names)) == len(names) and all(_within_bounds(each, release) for each in columns)
        case MeasuredMatrix(cells=cells, coordinates=coordinates, noise=noise):
            width = release.schema.width
            sized = len(cells) == width * (width + 1) // 2 and coordinates.width == width
            return sized and getattr(noise, "width", width) == width
        case MeasuredStep():
            return _step_agrees(measured, release)
        case UnmeasuredModel():
            return _model_agrees(measured, release)
        case _:
            return True


def _model_agrees(measured: MeasuredStep | UnmeasuredModel, release: Document) -> bool:
    """Whether its target and features are in the schema."""
    names = {column.name for column in release.schema.columns}
    return set(measured.on) <= names and measured.target in {*names, *release.schema.names}


def _step_agrees(measured: MeasuredStep, release: Document) -> bool:
    if not _model_agrees(measured, release):
        return False
    width = feature_schema(release.schema, measured.on).width
    sized = measured.coordinates.width == width == len(measured.slopes) == len(measured.score)
    triangles = [measured.cells] if measured.spread is None else [measured.cells, measured.spread.cells]
    return sized and all(len(each) == width * (width + 1) // 2 for each in triangles)


def feature_schema(schema: Schema, on: Sequence[str]) -> Schema:
    """The columns of a declared model's features, and those that its products are made of."""
    needed = {*on, *(factor for name in on for factor in schema.column(name).factors)}
    return schema.with_columns(column for column in schema.columns if column.name in needed)


def _bounds_agree(octaves: ColumnOctaves, bins: ColumnBins, release: Document) -> bool:
    if not octaves.cells or octaves.first + len(octaves.cells) > OCTAVES:
        return False
    low, high = OctaveRun(first=octaves.first, last=octaves.first + len(octaves.cells) - 1).bounds
    if not all(low <= look.low < look.high <= high for look in bins.looks):
        return False
    column = _declared(bins.column, release)
    if column is None:
        return release.block is not None  # another block has it
    return column.may_have_learnt_bounds(low, high)


def _levels_agree(levels: LearntLevels, release: Document) -> bool:
    column = _declared(levels.column, release)
    counted = len(levels.levels) == len(levels.counts)
    if not counted or any(int(count) < int(levels.threshold) for count in levels.counts):
        return False
    if column is None:
        return release.block is not None
    return column.may_have_learnt_levels(levels.levels)


def _histogram_agrees(histogram: NumberHistogram | LevelHistogram, release: Document) -> bool:
    column = _declared(histogram.column, release)
    if column is None:
        return release.block is not None
    if isinstance(histogram, LevelHistogram):
        return len(histogram.counts) == level_count(column)
    return (histogram.low, histogram.high) == number_bounds(column)


def _within_bounds(closer: NumberHistogram, release: Document) -> bool:
    column = _declared(closer.column, release)
    if column is None:
        return release.block is not None
    bounds = number_bounds(column)
    return bounds is not None and bounds[0] <= closer.low < closer.high <= bounds[1]


def number_bounds(column: Column) -> tuple[float, float] | None:
    """Between which numbers the histogram of this column begins; nothing where it has levels."""
    encoding = column.encoding
    return (encoding.low, encoding.high) if isinstance(encoding, NumberEncoding) else None


def level_count(column: Column) -> int:
    """How many levels its histogram has; false and true are two."""
    encoding = column.encoding
    if isinstance(encoding, LevelsEncoding):
        return len(encoding.levels)
    return 2 if isinstance(encoding, BooleanEncoding) else 0


def _declared(name: str, release: Document) -> Column | None:
    return next((column for column in release.schema.columns if column.name == name), None)


def of_first_edition(learnt: Learnt) -> Measurements:
    """What a file of the first edition says under `learnt`, as measurements in order."""
    total = learnt.bounds_budget + learnt.levels_budget + learnt.radius_budget
    count = FIRST_EDITION_COUNT_SHARE * (learnt.bounds_budget or total)
    spared = count if learnt.rows is not None else 0.0
    half = 0.5 * (learnt.bounds_budget - (spared if learnt.bounds else 0.0))
    lengths = learnt.radius_budget - (spared if not learnt.bounds else 0.0)
    levels = learnt.levels_budget - (spared if not learnt.bounds and learnt.radius is None else 0.0)
    found: list[Any] = []
    if learnt.rows is not None:
        found.append(
            MeasuredRows(law=learnt.law, scale=_scale(learnt.count_scale), share=count, cell=learnt.rows)
        )
    if learnt.levels:
        found.append(
            MeasuredLevels(
                law=learnt.law,
                scale=_scale(learnt.level_scale),
                share=levels,
                delta=learnt.level_delta,
                columns=learnt.levels,
            )
        )
    if learnt.bounds:
        octaves = tuple(
            ColumnOctaves(column=each.column, first=each.first_octave, cells=each.octaves)
            for each in learnt.bounds
        )
        bins = tuple(ColumnBins(column=each.column, looks=each.looks) for each in learnt.bounds)
        coarse, fine = _scale(learnt.octave_scale), _scale(learnt.bin_scale)
        found.append(MeasuredOctaves(law=learnt.law, scale=coarse, share=half, columns=octaves))
        found.append(MeasuredBins(law=learnt.law, scale=fine, share=half, columns=bins))
    if learnt.radius is not None:
        found.append(
            MeasuredLengths(
                law=learnt.law, scale=_scale(learnt.length_scale), share=lengths, cells=learnt.radius.lengths
            )
        )
    return tuple(found)


def _scale(stated: float | None) -> float:
    """Of the noise on counts that are there: without one they would cost nothing."""
    if stated is None:
        raise ReleaseError(
            "counts of this release state no scale of their noise, so that they have no price",
            remedy="Ask the curator for the original file",
        )
    return stated
