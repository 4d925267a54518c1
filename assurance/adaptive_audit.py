"""The whole adaptive path on neighbouring tables: what all stages together show of one row, or one person.

Given what was published before, each stage is noise on exact sums whose row function is public: so the sums
of both neighbours can be computed in the coordinates of each release, and with them the likelihood ratio of
everything that it publishes. No other statistic tells neighbours apart better. Summed over the stages, the
squared shifts (or the L1 and nuclear norms) are what the release has told of the row: at most what was paid.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Any, Final, Literal, final
from unittest import mock

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from assurance.foreseen import audit_foreseen
from assurance.ideal import Ideal, ideal_of_scores
from assurance.stage import Stage, law_of
from dpgram.audit import Experiment, JointAudit
from dpgram.core.noise import Entropy, SeededEntropy, SystemEntropy
from dpgram.document.fields import (
    MeasuredClip,
    MeasuredCounts,
    MeasuredHistograms,
    MeasuredMatrix,
    MeasuredReach,
    MeasuredStep,
    MeasuredZoom,
    NumberHistogram,
)
from dpgram.document.measurements import feature_schema
from dpgram.engines.local import LocalEngine
from dpgram.engines.passes import Failed, Pass
from dpgram.errors import DpgramWarning
from dpgram.models import Model, linear, logistic
from dpgram.privacy.accountant import GaussianEvent, PureEvent, curve_of
from dpgram.privacy.curves.base import PrivacyCurve
from dpgram.publishing import _scales, _zoom, publish_with
from dpgram.publishing.measurements.gram import full_matrix
from dpgram.release import Release
from dpgram.rows import Rows
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import row_rules
from dpgram.schema import Schema
from dpgram.schema.columns import boolean, numeric
from dpgram.sums.clip import ClipStatistic
from dpgram.sums.grams import GramStatistic
from dpgram.sums.histograms import HistogramColumn, HistogramsStatistic
from dpgram.sums.models import StepStatistic

Cells = npt.NDArray[np.float64]
Relation = Literal["add-remove", "replace-one"]

SCHEMA: Final = Schema(numeric("x", -1, 1), numeric("y", -1, 1))
WITH_MODELS: Final = Schema(numeric("x", -1, 1), numeric("y", -1, 1), boolean("b"))
WIDE: Final = Schema(numeric("x", -9, 9), numeric("y", -9, 9))
MODELS: Final = (linear("y", ["x"], share=0.15), logistic("b", ["x", "y"], share=0.25, steps=2))
OTHERS: Final = 60
SEEN: Final = 16.0
"""ε at δ = 10⁻⁴, for μ = 3.15: few runs prove most of it, and the code is that of every ε."""
VISITS: Final = 9
"""Rows of the person in question; everybody else has one."""


Row = tuple[float, float]


def people(*own: Row, surprising: bool = False) -> pa.Table:
    """Some rows that go together near the middle, and those of the row or person in question.

    `surprising`: their b is not what their x makes likely.
    """
    generator = np.random.default_rng(8)
    x = generator.normal(0.1, 0.1, OTHERS)
    rows = np.concatenate([np.column_stack([x, 0.7 * x]), np.array(own).reshape(-1, 2)])
    ids = [f"other {k}" for k in range(OTHERS)] + ["the person"] * len(own)
    likely = rows[:, 0] < 0.1
    likely[OTHERS:] ^= surprising
    return pa.table({"x": rows[:, 0], "y": rows[:, 1], "b": likely, "id": ids})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Two neighbours, and how they are published."""

    epsilon: float = 8.0
    delta: float = 1e-4
    adjacency: Relation = "add-remove"
    rows: Rows = field(default_factory=Rows)
    models: tuple[Model, ...] = ()
    adaptive: bool = True
    """Whether anything is measured before the matrix."""
    visits: int = 1
    """Rows of the person."""
    row: Row = (1.0, -1.0)
    """Each of them: far from all others, and across the direction in which these go together."""
    other: Row = (1.0, 1.0)
    """What comes in its place, where rows are replaced."""
    surprising: bool = False
    wide: bool = False
    """Whether bounds are so far away that columns are looked at again."""

    @property
    def schema(self) -> Schema:
        if self.wide:
            return WIDE
        return WITH_MODELS if self.models else SCHEMA

    @property
    def tables(self) -> tuple[pa.Table, pa.Table]:
        placed = [self.other] * self.visits if self.adjacency == "replace-one" else []
        return (
            people(*[self.row] * self.visits, surprising=self.surprising),
            people(*placed, surprising=self.surprising),
        )

    def publish(self, data: pa.Table, entropy: Entropy) -> Release:
        """The release that `publish` gives by default."""
        # So few rows tell little of how narrow a column is: a look is made as if it had been looked at.
        easily = mock.patch.object(_zoom, "FAR_TOO_WIDE", _scales.NARROW) if self.wide else nullcontext()
        with warnings.catch_warnings(), easily:
            warnings.simplefilter("ignore", DpgramWarning)
            (release,) = publish_with(
                data,
                self.schema,
                models=self.models,
                adaptive=self.adaptive,
                epsilon=self.epsilon,
                delta=self.delta,
                adjacency=self.adjacency,
                rows=self.rows,
                entropy=entropy,
                engine=LocalEngine(threads=1),
                progress=False,
            )
        return release

    def run(self, data: pa.Table) -> Callable[[Entropy], Release]:
        return lambda entropy: self.publish(data, entropy)

    @property
    def curve(self) -> PrivacyCurve:
        """All that the release promises, of which (ε, δ) is one point."""
        promised = self.publish(self.tables[0], SeededEntropy(0)).guarantee
        if promised.mu is not None:
            return curve_of(GaussianEvent(mu=promised.mu))
        return curve_of(PureEvent(epsilon=promised.epsilon))


def stages(release: Release, setting: Setting) -> list[Stage]:
    """Every measurement of a release, with the exact sums of both neighbours in its own coordinates."""
    schema = setting.schema
    rules = row_rules(schema, setting.rows)
    last = Encoder(schema, clip=release.radius, coordinates=release.coordinates)
    first = last
    statistics: list[Any] = []
    for each in release.measured:
        match each:
            case MeasuredHistograms(columns=columns) | MeasuredZoom(columns=columns):
                statistics.append(HistogramsStatistic(tuple(map(histogram_column, columns))))
            case MeasuredMatrix(coordinates=coordinates, radius=radius):
                first = Encoder(schema, clip=radius, coordinates=coordinates)
                statistics.append(GramStatistic(first))
            case MeasuredReach():
                statistics.append(ClipStatistic(first, reach=True))
            case MeasuredClip():
                statistics.append(ClipStatistic(last))
            case MeasuredStep():
                statistics.append(_step(each, last))
            case _:
                raise TypeError(type(each).__name__)
    work = Pass(rules=rules, statistics=(*statistics, GramStatistic(last)))
    exact = [_summed(work, table) for table in setting.tables]
    noise = release.noise
    published: list[Any] = [*release.measured, noise]
    found = []
    for told, one, other in zip(published, *exact, strict=True):
        if isinstance(told, MeasuredStep):
            found += _of_model(told, one, other)
        elif told is noise:
            seen, a, b = map(whole_numbers, (release.lattice_matrix, one.cells, other.cells))
            found.append(Stage(seen=seen, one=a, other=b, **law_of(noise)))
        else:
            found += measured_stages(told, one, other, schema.width)
    return found


def measured_stages(told: MeasuredCounts | MeasuredMatrix, one: Any, other: Any, width: int) -> list[Stage]:
    """Of counts, or of a first matrix, with the exact sums of both neighbours."""
    if isinstance(told, MeasuredMatrix):
        seen, a, b = map(whole_numbers, (full_matrix(told.cells, width), one.cells, other.cells))
        return [Stage(seen=seen, one=a, other=b, **law_of(told.noise))]
    law: Any = "gaussian" if told.law == "discrete-gaussian" else "laplace"
    return [
        # Lines of exact counts are as long as the longest histogram.
        Stage(
            seen=seen,
            one=whole_numbers(a[: len(seen)]),
            other=whole_numbers(b[: len(seen)]),
            scale=told.scale,
            law=law,
        )
        for seen, a, b in zip(_lines(told), one.cells, other.cells, strict=True)
    ]


def _step(told: MeasuredStep, last: Encoder) -> StepStatistic:
    features = Encoder(feature_schema(last.schema, told.on), clip=told.radius, coordinates=told.coordinates)
    return StepStatistic(
        whole=last,
        features=features,
        target=told.target,
        one=1.0 if told.target == "b" else None,
        curve=told.family,
        slopes=told.slopes,
        size=told.size,
        limit=told.limit,
        cap=told.cap,
        bound=None if told.spread is None else told.spread.bound,
    )


def _of_model(told: MeasuredStep, one: Any, other: Any) -> list[Stage]:
    width = len(told.score)
    parts: list[tuple[Any, Any, Any, dict[str, Any]]] = [
        (full_matrix(told.cells, width), one.matrix, other.matrix, law_of(told.noise)),
        (told.score, one.score, other.score, {"scale": told.score_sigma, "law": "gaussian"}),
    ]
    if told.spread is not None:
        cells = full_matrix(told.spread.cells, width)
        parts.append((cells, one.spread, other.spread, law_of(told.spread.noise)))
    return [
        Stage(model=True, seen=whole_numbers(seen), one=whole_numbers(a), other=whole_numbers(b), **law)
        for seen, a, b, law in parts
    ]


def histogram_column(found: Any) -> HistogramColumn:
    if isinstance(found, NumberHistogram):
        return HistogramColumn(name=found.column, bounds=(found.low, found.high))
    return HistogramColumn(name=found.column, bounds=None, levels=len(found.counts))


def _lines(told: Any) -> list[Cells]:
    if isinstance(told, MeasuredHistograms | MeasuredZoom):
        return [whole_numbers([*each.counts, *each.lost]) for each in told.columns]
    return [whole_numbers(told.cells)]


def whole_numbers(cells: Any) -> Cells:
    """Integers of any size as floats."""
    whole = np.array([int(cell) for cell in np.asarray(cells, dtype=object).ravel()], dtype=np.float64)
    return whole.reshape(np.shape(cells))


def _summed(work: Pass, table: pa.Table) -> list[Any]:
    """The exact sums, one for each statistic; the table is small, so no engine is needed."""
    batches = [(0, batch) for batch in table.combine_chunks().to_batches()]
    found = work.join(itertools.chain(work.split(batches, 1))) if work.by_unit else work.sums(batches)
    if isinstance(found, Failed):
        raise found.error()
    return [reduce(or_, each) for each in work.by_statistic(found)]


def told(release: Release, setting: Setting) -> tuple[float, float]:
    """What the release has told of the row or person, and what it promises: μ², or ε for pure noise."""
    spent = sum(stage.told for stage in stages(release, setting))
    mu = release.guarantee.mu
    return spent, release.guarantee.epsilon if mu is None else mu**2


def scores(setting: Setting) -> Callable[[Sequence[Release]], npt.NDArray[np.float64]]:
    """The log-likelihood ratio of each release, and those of its parts, as `parts_of` names them.

    Where all noise is right, the first is the best there is; where one noise is too small, its own is.
    """

    def measure(releases: Sequence[Release]) -> npt.NDArray[np.float64]:
        lines = []
        for release in releases:
            every = stages(release, setting)
            matrices = [one.log_ratio for one in every if one.seen.ndim == 2 and not one.model]
            counts = sum(one.log_ratio for one in every if one.seen.ndim == 1 and not one.model)
            beside = sum(one.log_ratio for one in every if one.model)
            whole = sum(matrices) + counts + beside
            before = [counts, matrices[0]] if setting.adaptive else []
            lines.append([whole, *before, matrices[-1], *([beside] if setting.models else [])])
        return np.array(lines)

    return measure


def parts_of(setting: Setting) -> tuple[str, ...]:
    """What of a release tells neighbours apart."""
    before = ("counts", "first matrix") if setting.adaptive else ()
    return ("likelihood ratio", *before, "last matrix", *(["models"] if setting.models else []))


def audited(
    setting: Setting,
    tables: Setting | None = None,
    *,
    runs: int,
    seed: int | None,
    confidence: float = 0.999,
    thresholds: Sequence[float] = (0.0,),
) -> JointAudit:
    """Repeated releases of both neighbours, told apart by all that is published; row and person alike.

    `tables` are the neighbours, where these are others: all rows of a person, say, published row by row. A
    likelihood ratio above 0, or above `thresholds`, is the event that is foreseen.
    """
    judged = setting if tables is None else replace(tables, rows=setting.rows)
    one, other = judged.tables
    experiment = Experiment(
        name="",
        run_a=setting.run(one),
        run_b=setting.run(other),
        statistic=scores(judged),
        names=parts_of(judged),
    )
    return audit_foreseen(
        experiment,
        thresholds=thresholds,
        runs=runs,
        delta=setting.delta,
        confidence=confidence,
        entropy=SystemEntropy() if seed is None else SeededEntropy(seed),
    )


def ideal(setting: Setting, *, runs: int, confidence: float) -> Ideal:
    """What an audit that knows the laws could prove of these neighbours: by their exact shifts, simulated."""
    generator, found = np.random.default_rng(7), []
    for seed in range(PATHS):
        release = setting.publish(setting.tables[seed % 2], SeededEntropy(seed))
        parts = [stage.simulated(DRAWS, generator) for stage in stages(release, setting)]
        found.append([np.sum([part[side] for part in parts], axis=0) for side in (0, 1)])
    one, other = (np.concatenate([each[side] for each in found]) for side in (0, 1))
    return ideal_of_scores(one, other, runs=runs, delta=setting.delta, confidence=confidence)


def worst(setting: Setting, tries: int) -> Setting:
    """Of so many neighbours the pair that a release tells most of: ends and other places, seeds fixed."""
    dice = np.random.default_rng(11)

    def place() -> Row:
        ends = dice.random() < 0.5
        x, y = dice.choice(PLACES[:2] if ends else PLACES, 2)
        return float(x), float(y)

    candidates = [setting] + [
        replace(setting, row=place(), other=place(), surprising=bool(dice.random() < 0.5))
        for _ in range(tries - 1)
    ]

    def told_of(candidate: Setting) -> float:
        releases = (candidate.publish(candidate.tables[k], SeededEntropy(k)) for k in (0, 1))
        return sum(told(release, candidate)[0] for release in releases)

    return max(candidates, key=told_of)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnNoise:
    """The variance of one kind of noise as it was drawn, over what the releases state."""

    kind: str
    ratio: float
    slack: float
    """Five standard errors, from the spread over releases."""

    @property
    def right(self) -> bool:
        return abs(self.ratio - 1.0) <= self.slack

    def __str__(self) -> str:
        return f"{self.kind} {self.ratio:.3f} (1 ± {self.slack:.3f})"


def drawn_against_stated(publish: Callable[[], Sequence[Stage]], *, runs: int) -> tuple[DrawnNoise, ...]:
    """Given the exact sums, the noise of every stage is what was published less them: `one` is the truth."""
    found: dict[str, list[tuple[float, float]]] = {}
    for _ in range(runs):
        squares: dict[str, tuple[float, float]] = {}
        for stage in publish():
            kind = "models" if stage.model else "counts" if stage.seen.ndim == 1 else "matrices"
            size, cells = stage.left_over
            before = squares.get(kind, (0.0, 0.0))
            squares[kind] = before[0] + size, before[1] + cells
        for kind, sums in squares.items():
            found.setdefault(kind, []).append(sums)
    told = []
    for kind, seen in found.items():
        sizes, counts = np.array(seen).T
        spread = float(np.std(sizes - counts, ddof=1)) * len(seen) ** 0.5 / float(counts.sum())
        told.append(DrawnNoise(kind=kind, ratio=float(sizes.sum() / counts.sum()), slack=5.0 * spread))
    return tuple(told)


def drawn_stages(setting: Setting, entropy: Entropy) -> list[Stage]:
    """One release of the first neighbour."""
    return stages(setting.publish(setting.tables[0], entropy), setting)


PLACES: Final = (-1.0, 1.0, -0.6, -0.3, 0.0, 0.1, 0.2, 0.3, 0.5, 0.75)
"""Ends of the columns first."""
PATHS: Final = 12
"""Releases whose exact shifts are simulated."""
DRAWS: Final = 4_000
PERSONS: Final = Rows(unit="id")
SETTINGS: Final = {
    "a row, Gaussian noise, add-remove": Setting(epsilon=SEEN),
    "a row, Gaussian noise, replace-one": Setting(epsilon=SEEN, adjacency="replace-one"),
    "a row, pure noise, add-remove": Setting(epsilon=8.0, delta=0.0),
    "a person of nine rows, Gaussian noise, add-remove": Setting(epsilon=SEEN, rows=PERSONS, visits=VISITS),
    "a person of nine rows, Gaussian noise, replace-one": Setting(
        epsilon=SEEN, rows=PERSONS, visits=VISITS, adjacency="replace-one"
    ),
    "a person of nine rows, pure noise, replace-one": Setting(
        epsilon=8.0, delta=0.0, rows=PERSONS, visits=VISITS, adjacency="replace-one"
    ),
}
"""Little noise, so that few runs tell much; the code is that of every ε."""
FAR: Row = (9.0, -9.0)
"""The row where bounds are far away: at the end of the first histograms, outside of closer ones."""
WIDE_SETTINGS: Final = {
    "a row, Gaussian noise, add-remove": Setting(epsilon=SEEN, wide=True, row=FAR),
    "a row, pure noise, replace-one": Setting(
        epsilon=12.0, delta=0.0, wide=True, row=FAR, other=(0.1, 0.07), adjacency="replace-one"
    ),
    "a person of nine rows, Gaussian noise, replace-one": Setting(
        epsilon=SEEN, wide=True, row=FAR, rows=PERSONS, visits=VISITS, adjacency="replace-one"
    ),
}
"""Bounds ninety deviations away: all columns are looked at again."""
MODEL_SETTINGS: Final = {
    "a row, add-remove": Setting(epsilon=SEEN, models=MODELS),
    "a row, replace-one": Setting(epsilon=SEEN, models=MODELS, adjacency="replace-one"),
    "a person of nine rows, add-remove": Setting(epsilon=SEEN, models=MODELS, rows=PERSONS, visits=VISITS),
    "a person of nine rows, replace-one": Setting(
        epsilon=SEEN, models=MODELS, rows=PERSONS, visits=VISITS, adjacency="replace-one"
    ),
}
"""The same with declared models."""
PLAIN_SETTINGS: Final = {name: replace(one, adaptive=False) for name, one in MODEL_SETTINGS.items()}
"""Declared models beside one plain matrix."""
