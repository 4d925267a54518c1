"""One case for every kind of measurement: what its cells are, and what it costs, computed here."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from dpgram.document.coordinates import Coordinates
from dpgram.document.fields import UnitRule
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import CalibratedGaussian, PublicFacts
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.count_noise import CountNoise
from dpgram.privacy.events import GaussianEvent, PureEvent
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing.measurements.base import Measurement
from dpgram.publishing.measurements.column_moments import ColumnMoments
from dpgram.publishing.measurements.counts import Bins, Octaves, RowCount
from dpgram.publishing.measurements.gram import FirstGram, Gram, full_matrix
from dpgram.publishing.measurements.histograms import Clip, Histograms, Reach, Zoom
from dpgram.publishing.measurements.levels import Levels
from dpgram.publishing.measurements.minimiser import (
    GammaGridNoise,
    GaussianGridNoise,
    Minimiser,
    RidgeProblem,
)
from dpgram.publishing.measurements.models import Step
from dpgram.publishing.measurements.moments import JointGaussian, MomentNoise, Moments, VectorNoise
from dpgram.publishing.measurements.stream import StreamedGram
from dpgram.publishing.measurements.target import Target, TargetedGaussian
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import RowRules
from dpgram.schema import Schema, categorical, numeric
from dpgram.sums.column_moments import ColumnMomentsStatistic
from dpgram.sums.histograms import HistogramColumn
from dpgram.sums.models import StepStatistic, nearest_direction
from dpgram.sums.moments import MomentsStatistic, Reweighting
from dpgram.sums.target import TargetBounds

NAMES = ("a", "b", "y")
OPEN = Schema(*map(numeric, NAMES), categorical("g"))
BOUNDED = Schema(numeric("a", -1, 1), numeric("b", -1, 1), numeric("y", -2, 2), constant=False)
TURNED = Encoder(
    BOUNDED,
    clip=0.7,
    coordinates=Coordinates.nearest(np.array([[1.1, 0.0, 0.0], [-0.6, 0.8, 0.0], [0.3, -1.4, 0.9]])),
)
"""The rows of BOUNDED in other coordinates."""
RULES = RowRules(schema=OPEN)
UNITS = RowRules(schema=OPEN, unit="who", unit_rule=UnitRule(counts="units", rows_at_most=1024))
GAUSSIAN = CountNoise(law="discrete-gaussian", scale=3.0 * ROW_NORM_SQUARED)
LAPLACE = CountNoise(law="discrete-laplace", scale=2.0 * ROW_NORM_SQUARED)
RELATIONS = ("add-remove", "replace-one")
ODD = (0.0, -0.0, 1.0, -1.0, 0.7, 2.5, 1e308, -1e308, 1e-308, 5e-324, math.nan, math.inf, -math.inf)

TEXTS = ("u", "v", "", None)

Row = tuple[float, float, float, str | None, str]


def steps(relation: Adjacency) -> int:
    return 1 if relation.name == "add-remove" else 2


def reached(relation: Adjacency, precisions: tuple[float, float], x: float, y: float) -> float:
    """Brute force in real numbers: the largest √(p₁|Δxxᵀ|² + p₂|Δxy|²) of one row, or of two at any angle."""
    first, second = precisions
    if relation.name == "add-remove":
        return math.sqrt(first * x**4 + second * x**2 * y**2)
    cosines, others = np.meshgrid(np.linspace(-1, 1, 2001), np.linspace(-y, y, 401))
    matrix = 2.0 * x**4 * (1.0 - cosines**2)
    vector = x**2 * (y**2 + others**2 - 2.0 * cosines * y * others)
    return math.sqrt((first * matrix + second * vector).max())


class Case(ABC):
    """A measurement with all that its tests need: its cells in units of their noise, its price by hand."""

    l1: ClassVar[bool] = False
    """Whether the price is one of L1 and ε, and not of L2 and μ."""
    tight: ClassVar[float] = 0.95
    """The share of the price that a row of the tests reaches at least: the bound is no idle one."""
    tight_replaced: ClassVar[float] = 0.95
    """The same for one row in the place of another."""
    degrees: ClassVar[int] = 3_000
    """As many degrees of freedom as tell a scale that is ten per cent off."""

    @abstractmethod
    def measurement(self, relation: Adjacency) -> Measurement: ...

    @abstractmethod
    def cells(self, measurement: Any, exact: Any) -> Sequence[float]:
        """Exact cells, each divided by the scale of its noise."""

    @abstractmethod
    def seen(self, measurement: Any, published: Any, exact: Any) -> tuple[Sequence[float], Sequence[float]]:
        """The cells that are published whatever the noise: with noise, and without."""

    @abstractmethod
    def price(self, measurement: Any, relation: Adjacency) -> float:
        """μ or ε, computed here."""

    def statistic(self, noise: np.ndarray) -> tuple[float, int]:
        """A number that is χ² with so many degrees of freedom where the scale is 1."""
        if self.l1:
            return 2.0 * float(np.abs(noise).sum()), 2 * noise.size
        return float((noise**2).sum()), noise.size

    def loss(self, one: Sequence[float], other: Sequence[float]) -> float:
        """How far the cells of two tables are apart, in the currency of the price."""
        apart = np.subtract(one, other)
        return float(np.abs(apart).sum() if self.l1 else np.linalg.norm(apart))


class Counts(Case):
    columns: ClassVar[tuple[str, ...]] = ("a", "b")
    noise: CountNoise = GAUSSIAN
    histograms: ClassVar[int] = 2

    def cells(self, measurement: Any, exact: Any) -> Sequence[float]:
        # Looks are several histograms of the same cells: what one row moves is that of one, as often.
        repeated = math.sqrt(measurement.drawn / len(exact[0].cells))
        return exact[0].cells.ravel() * (repeated / measurement.noise.scale)

    def price(self, measurement: Any, relation: Adjacency) -> float:
        moved, scale = steps(relation) * self.histograms, measurement.noise.scale
        return moved * 2**30 / scale if self.l1 else math.sqrt(moved) * 2**30 / scale


class RowCountCase(Counts):
    histograms = 1
    tight_replaced = 0.45  # one cell only, which another row cannot move as well

    def measurement(self, relation: Adjacency) -> Measurement:
        return RowCount(noise=self.noise, share=0.1, units_changed=steps(relation), columns=self.columns)

    def seen(self, measurement: Any, published: Any, exact: Any) -> tuple[Sequence[float], Sequence[float]]:
        scale = measurement.noise.scale
        return [int(published.cell) / scale], [int(exact[0].cells[0, 0]) / scale]


class LaplaceRowCountCase(RowCountCase):
    l1 = True
    degrees = 20_000
    noise = LAPLACE


class OctavesCase(Counts):
    def measurement(self, relation: Adjacency) -> Measurement:
        return Octaves(noise=self.noise, share=0.1, units_changed=steps(relation), columns=self.columns)

    def seen(self, measurement: Any, published: Any, exact: Any) -> tuple[Sequence[float], Sequence[float]]:
        """The fullest octave: it is published whatever the noise."""
        scale, noisy, true = measurement.noise.scale, [], []
        for column, cells in zip(published.columns, exact[0].cells, strict=True):
            fullest = int(cells.argmax())
            noisy.append(int(column.cells[fullest - column.first]) / scale)
            true.append(int(cells[fullest]) / scale)
        return noisy, true


class BinsCase(Counts):
    histograms = 8  # two columns, four looks

    def measurement(self, relation: Adjacency) -> Measurement:
        bounds = ((-1.0, 1.0), (-8.0, 4.0))
        return Bins(
            noise=self.noise,
            share=0.1,
            units_changed=steps(relation),
            columns=self.columns,
            bounds=bounds,
            rows=9.0,
        )

    def seen(self, measurement: Any, published: Any, exact: Any) -> tuple[Sequence[float], Sequence[float]]:
        """The first look, which goes everywhere."""
        scale = measurement.noise.scale
        noisy = [int(cell) / scale for column in published.columns for cell in column.looks[0].bins]
        return noisy, (exact[0].cells.reshape(len(self.columns), 16, -1).sum(axis=2) / scale).ravel()


class HistogramsCase(Counts):
    """Numbers count at one or two nodes: a row at a node reaches the price."""

    def measurement(self, relation: Adjacency) -> Measurement:
        columns = (
            HistogramColumn(name="a", bounds=(-1.0, 1.0)),
            HistogramColumn(name="b", bounds=(-9.0, 1.0)),
        )
        return Histograms(noise=self.noise, share=0.1, units_changed=steps(relation), columns=columns)

    def seen(self, measurement: Any, published: Any, exact: Any) -> tuple[Sequence[float], Sequence[float]]:
        scale = measurement.noise.scale
        noisy = [int(cell) / scale for each in published.columns for cell in (*each.counts, *each.lost)]
        return noisy, exact[0].cells.ravel() / scale


class LaplaceHistogramsCase(HistogramsCase):
    l1 = True
    degrees = 20_000
    noise = LAPLACE


class ZoomCase(HistogramsCase):
    """Closer ends, beyond which most odd rows lie: these count in the cells for what is outside."""

    def measurement(self, relation: Adjacency) -> Measurement:
        columns = (
            HistogramColumn(name="a", bounds=(0.65, 0.75)),
            HistogramColumn(name="b", bounds=(-1.0, -1.0 + 1e-6)),
        )
        return Zoom(noise=self.noise, share=0.1, units_changed=steps(relation), columns=columns)


class LaplaceZoomCase(ZoomCase):
    l1 = True
    degrees = 20_000
    noise = LAPLACE


class ReachCase(Counts):
    histograms = 1

    def measurement(self, relation: Adjacency) -> Measurement:
        return Reach(noise=self.noise, share=0.1, units_changed=steps(relation), encoder=TURNED)

    def seen(self, measurement: Any, published: Any, exact: Any) -> tuple[Sequence[float], Sequence[float]]:
        scale = measurement.noise.scale
        return [int(cell) / scale for cell in published.cells], exact[0].cells.ravel() / scale


class ClipCase(ReachCase):
    def measurement(self, relation: Adjacency) -> Measurement:
        return Clip(noise=self.noise, share=0.1, units_changed=steps(relation), encoder=TURNED)


class LevelsCase(Case):
    delta: ClassVar[float] = 1e-7

    def measurement(self, relation: Adjacency) -> Measurement:
        return Levels(
            noise=GAUSSIAN, share=0.1, units_changed=steps(relation), delta=self.delta, columns=("g",)
        )

    def cells(self, measurement: Any, exact: Any) -> Sequence[float]:
        texts = [*TEXTS, "x" * 300]
        assert set(exact[0].cells[0]) <= set(filter(None, texts))
        return [exact[0].cells[0].get(text, 0) / GAUSSIAN.scale for text in texts]

    def seen(self, measurement: Any, published: Any, exact: Any) -> tuple[Sequence[float], Sequence[float]]:
        """The fullest level."""
        fullest, count = max(exact[0].cells[0].items(), key=lambda pair: pair[1])
        found = published.columns[0]
        noisy = int(found.counts[found.levels.index(fullest)])
        return [noisy / GAUSSIAN.scale], [count / GAUSSIAN.scale]

    def price(self, measurement: Any, relation: Adjacency) -> float:
        return math.sqrt(steps(relation)) * 2**30 / GAUSSIAN.scale


def triangle(matrix: np.ndarray, sigma: float) -> list[float]:
    """Cells on and below the diagonal, in units of symmetric Gaussian noise."""
    scales = np.where(np.eye(len(matrix), dtype=bool), sigma, sigma / math.sqrt(2.0))
    lower = np.tril_indices(len(matrix))
    return list(matrix[lower].astype(np.float64) / scales[lower])


class GramCase(Case):
    tight_replaced = 0.9  # rows of full length are corners of a cube: no two of them are orthogonal
    sigma: ClassVar[float] = 4.0 * 2**30

    def measurement(self, relation: Adjacency) -> Measurement:
        facts = PublicFacts(width=BOUNDED.width, adjacency=relation)
        return Gram(encoder=Encoder(BOUNDED), mechanism=CalibratedGaussian(sigma=self.sigma), facts=facts)

    def cells(self, measurement: Any, exact: Any) -> Sequence[float]:
        return triangle(exact[0].cells, self.sigma)

    def seen(self, measurement: Any, published: Any, exact: Any) -> tuple[Sequence[float], Sequence[float]]:
        matrix = full_matrix(published[0].matrix.cells, BOUNDED.width)
        return triangle(matrix, self.sigma), self.cells(measurement, exact)

    def price(self, measurement: Any, relation: Adjacency) -> float:
        return math.sqrt(steps(relation)) * 2**30 / self.sigma


class FirstGramCase(GramCase):
    """In coordinates of its own, with a radius that most rows pass."""

    def measurement(self, relation: Adjacency) -> Measurement:
        facts = PublicFacts(width=BOUNDED.width, adjacency=relation)
        mechanism = CalibratedGaussian(sigma=self.sigma)
        return FirstGram(encoder=TURNED, mechanism=mechanism, facts=facts, share=0.1)

    def seen(self, measurement: Any, published: Any, exact: Any) -> tuple[Sequence[float], Sequence[float]]:
        matrix = full_matrix(published.cells, BOUNDED.width)
        return triangle(matrix, self.sigma), self.cells(measurement, exact)


class StreamCase(GramCase):
    """A person in the first of four periods moves four lines; here all of it stands in one."""

    def measurement(self, relation: Adjacency) -> Measurement:
        # A series knows neighbours with one person more or less alone: the other relation is priced by hand.
        return StreamedGram(encoder=TURNED, sigma=self.sigma, sensitivity_squared=steps(relation))

    def seen(self, measurement: Any, published: Any, exact: Any) -> tuple[Sequence[float], Sequence[float]]:
        return triangle(full_matrix(published, BOUNDED.width), self.sigma), self.cells(measurement, exact)


FLAGGED = Schema(numeric("a", -1, 1), numeric("b", -1, 1), categorical("g", ["u", "v"]))


class StepCase(Case):
    """An intercept so high that a row without the level has a score of its full length, wherever it is."""

    tight = 0.85  # p' is small where y − p is large: no row reaches both prices
    tight_replaced = 0.85
    curve: ClassVar[Any] = "logistic"
    size: ClassVar[float] = 200.0
    sigma: ClassVar[float] = 40.0 * 2**30
    score_sigma: ClassVar[float] = 4.0 * 2**30

    def sums(self) -> StepStatistic:
        features = FLAGGED.with_columns(FLAGGED.columns[:2])
        turned = np.array([[0.05, 0.0, 0.0], [0.1, 1.5, 0.0], [-0.2, 0.7, 1.8]])
        slopes = np.array([1.0, 0.02, -0.01])
        return StepStatistic(
            whole=Encoder(FLAGGED),
            features=Encoder(features, clip=2.8, coordinates=Coordinates.nearest(turned)),
            target="g",
            one=1.0,
            curve=self.curve,
            slopes=nearest_direction(slopes / np.linalg.norm(slopes)),
            size=self.size,
        )

    def measurement(self, relation: Adjacency) -> Measurement:
        sums = self.sums()
        return Step(
            sums=sums,
            mechanism=CalibratedGaussian(sigma=self.sigma),
            score_sigma=self.score_sigma,
            spread=None if sums.bound is None else CalibratedGaussian(sigma=self.sigma),
            units_changed=steps(relation),
            label="g=v" if sums.one is not None else "b",
            on=("a", "b") if sums.one is not None else ("a",),
            share=0.1,
        )

    def cells(self, measurement: Any, exact: Any) -> Sequence[float]:
        spread = triangle(exact[0].spread, self.sigma) if measurement.spread is not None else []
        return [*triangle(exact[0].matrix, self.sigma), *spread, *(exact[0].score / self.score_sigma)]

    def seen(self, measurement: Any, published: Any, exact: Any) -> tuple[Sequence[float], Sequence[float]]:
        width = len(published.score)
        noisy = list(triangle(full_matrix(published.cells, width), self.sigma))
        if published.spread is not None:
            noisy += triangle(full_matrix(published.spread.cells, width), self.sigma)
        noisy += [int(cell) / self.score_sigma for cell in published.score]
        return noisy, self.cells(measurement, exact)

    def price(self, measurement: Any, relation: Adjacency) -> float:
        moved = steps(relation)
        matrices = 1 if measurement.spread is None else 2
        return math.hypot(math.sqrt(matrices * moved) * 2**30 / self.sigma, moved * 2**30 / self.score_sigma)


class ProbitStepCase(StepCase):
    curve = "probit"


class LinearStepCase(StepCase):
    """Residuals far beyond their limit, and scores clipped for their spread at a third of the longest."""

    curve = "linear"
    size = 0.0

    def sums(self) -> StepStatistic:
        features = FLAGGED.with_columns(FLAGGED.columns[:1])
        turned = np.array([[0.05, 0.0], [0.1, 1.5]])
        return StepStatistic(
            whole=Encoder(FLAGGED),
            features=Encoder(features, clip=1.2, coordinates=Coordinates.nearest(turned)),
            target="b",
            one=None,
            curve=self.curve,
            slopes=(0, 0),
            size=self.size,
            limit=0.1,
            cap=0.5,
            bound=0.3,
        )


class CountStepCase(LinearStepCase):
    """Expected counts far above the cap, and rows without any."""

    curve = "poisson"
    tight = tight_replaced = 0.7  # an eighth is kept for the expectation, and what is counted is limited


class TargetCase(Case):
    tight = tight_replaced = 0.9  # weights are rounded to lattice units

    @functools.cache  # noqa: B019  (a case lives as long as the tests)
    def measurement(self, relation: Adjacency) -> Measurement:
        row_bounds = TargetBounds.of(BOUNDED, "y", 0.8)
        law = TargetedGaussian.calibrated(Guarantee(1.0, 1e-6), row_bounds, relation)
        return Target(encoder=Encoder(BOUNDED), law=law)

    def cells(self, measurement: Any, exact: Any) -> Sequence[float]:
        law, sums = measurement.law, exact[0]
        return [*triangle(sums.xx, law.sigma_xx), *(sums.xy / law.sigma_xy), sums.yy / law.sigma_yy]

    def seen(self, measurement: Any, published: Any, exact: Any) -> tuple[Sequence[float], Sequence[float]]:
        law = measurement.law
        noisy = triangle(full_matrix(published.xx, len(published.xy)), law.sigma_xx)
        noisy += [int(cell) / law.sigma_xy for cell in published.xy]
        return [*noisy, int(published.yy) / law.sigma_yy], self.cells(measurement, exact)

    def price(self, measurement: Any, relation: Adjacency) -> float:
        law, x, y = (
            measurement.law,
            math.sqrt(measurement.law.row_bounds.x_squared),
            measurement.law.row_bounds.y,
        )
        if relation.name == "add-remove":
            return math.hypot(x * x / law.sigma_xx, x * y / law.sigma_xy, y * y / law.sigma_yy)
        cosines, others = np.meshgrid(np.linspace(-1, 1, 2001), np.linspace(-y, y, 401))
        squared = 2.0 * x**4 * (1.0 - cosines**2) / law.sigma_xx**2
        squared += x**2 * (y**2 + others**2 - 2.0 * cosines * y * others) / law.sigma_xy**2
        squared += (y**2 - others**2) ** 2 / law.sigma_yy**2
        return math.sqrt(squared.max())


def moments_of(reweighting: Reweighting | None = None) -> MomentsStatistic:
    return MomentsStatistic(columns=("a", "b"), target="y", x_norm=1.0, y_bound=2.0, reweighting=reweighting)


class MomentsCase(Case):
    reweighting: ClassVar[Reweighting | None] = None

    @functools.cache  # noqa: B019
    def measurement(self, relation: Adjacency) -> Measurement:
        return Moments(
            sums=moments_of(self.reweighting), noise=JointGaussian.calibrated(0.3, relation, width=2).noise
        )

    def cells(self, measurement: Any, exact: Any) -> Sequence[float]:
        noise: MomentNoise = measurement.noise
        return [*triangle(exact[0].xx, noise.second.sigma), *(exact[0].xy / noise.first.scale)]

    def seen(self, measurement: Any, published: Any, exact: Any) -> tuple[Sequence[float], Sequence[float]]:
        noise = measurement.noise
        noisy = triangle(full_matrix(published.second.matrix.cells, 2), noise.second.sigma)
        noisy += [int(cell) / noise.first.scale for cell in published.first]
        return noisy, self.cells(measurement, exact)

    def price(self, measurement: Any, relation: Adjacency) -> float:
        noise = measurement.noise
        precisions = noise.second.sigma**-2, noise.first.scale**-2
        return reached(relation, precisions, 2.0**15, 2.0**15)


class ReweightedMomentsCase(MomentsCase):
    reweighting = Reweighting(theta=(0.7, -1e9), floor=0.3, power=1.3)
    tight = tight_replaced = 0.1  # the weights are there to shorten rows


class LaplaceMomentsCase(Case):
    """Only the vector has noise that matters: that of the matrix is nearly free."""

    l1 = True
    degrees = 20_000
    scale: ClassVar[float] = 5.0 * 2**30

    def measurement(self, relation: Adjacency) -> Measurement:
        moved = steps(relation) * math.sqrt(2.0) * 2**30
        events = (GaussianEvent(mu=1e-9), PureEvent(epsilon=moved / self.scale))
        vector = VectorNoise(law="laplace", scale=self.scale)
        noise = MomentNoise(second=CalibratedGaussian(sigma=2.0**55), first=vector, events=events)
        return Moments(sums=moments_of(), noise=noise)

    def cells(self, measurement: Any, exact: Any) -> Sequence[float]:
        return exact[0].xy / self.scale

    def seen(self, measurement: Any, published: Any, exact: Any) -> tuple[Sequence[float], Sequence[float]]:
        return [int(cell) / self.scale for cell in published.first], self.cells(measurement, exact)

    def price(self, measurement: Any, relation: Adjacency) -> float:
        return steps(relation) * math.sqrt(2.0) * 2**30 / self.scale


class MinimiserCase(Case):
    tight = tight_replaced = 0.2  # the bound is for the worst table, not for the one below

    def measurement(self, relation: Adjacency) -> Measurement:
        problem = RidgeProblem(ridge=2.0, radius=0.5, width=2, adjacency=relation)
        return Minimiser(sums=moments_of(), problem=problem, noise=self.noise_for(problem))

    def noise_for(self, problem: RidgeProblem) -> GaussianGridNoise | GammaGridNoise:
        del problem
        return GaussianGridNoise(sigma=3.0 * 2**34)

    def cells(self, measurement: Any, exact: Any) -> Sequence[float]:
        return measurement.problem.solved(exact[0]).astype(np.float64) / (3.0 * 2**34)

    def seen(self, measurement: Any, published: Any, exact: Any) -> tuple[Sequence[float], Sequence[float]]:
        noisy = [int(cell) / (3.0 * 2**34) for cell in published.theta]
        return noisy, self.cells(measurement, exact)

    def price(self, measurement: Any, relation: Adjacency) -> float:
        return (2.0**34 + 2.0 * math.sqrt(2.0)) / (3.0 * 2**34)


class GammaMinimiserCase(MinimiserCase):
    """|v| of law Gamma(d, Δ/ε): the length counts, in units of Δ/ε."""

    degrees = 20_000
    epsilon: ClassVar[float] = 0.5

    def noise_for(self, problem: RidgeProblem) -> GaussianGridNoise | GammaGridNoise:
        return GammaGridNoise(epsilon=self.epsilon)

    def cells(self, measurement: Any, exact: Any) -> Sequence[float]:
        return measurement.problem.solved(exact[0]).astype(np.float64) * (self.epsilon / 2.0**34)

    def seen(self, measurement: Any, published: Any, exact: Any) -> tuple[Sequence[float], Sequence[float]]:
        noisy = [int(cell) * (self.epsilon / 2.0**34) for cell in published.theta]
        return noisy, self.cells(measurement, exact)

    def price(self, measurement: Any, relation: Adjacency) -> float:
        return self.epsilon

    def statistic(self, noise: np.ndarray) -> tuple[float, int]:
        return 2.0 * float(np.linalg.norm(noise, axis=1).sum()), 2 * noise.size


class ColumnMomentsCase(Case):
    def measurement(self, relation: Adjacency) -> Measurement:
        rows = ColumnMomentsStatistic(columns=("a", "b"), bounds=((-1.0, 1.0), (-3.0, 1.0)))
        return ColumnMoments(sums=rows, adjacency=relation, sigma=6.0 * 2**30)

    def cells(self, measurement: Any, exact: Any) -> Sequence[float]:
        return exact[0].cells.ravel() / measurement.sigma

    def seen(self, measurement: Any, published: Any, exact: Any) -> tuple[Sequence[float], Sequence[float]]:
        lines = (published.count, published.first, published.second)
        return [int(cell) / measurement.sigma for line in lines for cell in line], self.cells(
            measurement, exact
        )

    def price(self, measurement: Any, relation: Adjacency) -> float:
        return math.sqrt((3 if relation.name == "add-remove" else 4) * 2) * 2**30 / measurement.sigma


CASES: dict[str, Case] = {
    kind.__name__: kind()
    for kind in (
        RowCountCase,
        LaplaceRowCountCase,
        OctavesCase,
        BinsCase,
        HistogramsCase,
        LaplaceHistogramsCase,
        ZoomCase,
        LaplaceZoomCase,
        ReachCase,
        ClipCase,
        LevelsCase,
        GramCase,
        FirstGramCase,
        StreamCase,
        StepCase,
        ProbitStepCase,
        LinearStepCase,
        CountStepCase,
        TargetCase,
        MomentsCase,
        ReweightedMomentsCase,
        LaplaceMomentsCase,
        MinimiserCase,
        GammaMinimiserCase,
        ColumnMomentsCase,
    )
}
