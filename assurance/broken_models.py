"""Declared models broken on purpose: what they are measured at must be published, and rows stay bounded.

Directions and coefficients are computed again from the published file: whatever came from exact rows differs.
What one row can add to scores, their spread and Hessian matrices is a fact about integers.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, final
from unittest import mock

import msgspec
import numpy as np
import pyarrow as pa

from assurance.broken_adaptive import Fault
from assurance.trials import Outcome, Trial, checked
from dpgram.analysis.design import build_design
from dpgram.analysis.glm import FeatureSpace, NewtonStep
from dpgram.analysis.moments import Moments
from dpgram.analysis.pilot import pilot
from dpgram.core.noise import Entropy, SeededEntropy
from dpgram.core.run import Measure
from dpgram.core.sums import Gram
from dpgram.core.units import PolicyCounts
from dpgram.document.coordinates import Coordinates
from dpgram.document.fields import MeasuredStep
from dpgram.document.model_units import DIRECTION_BITS, SCORE_UNIT
from dpgram.engines.local import LocalEngine, add_up
from dpgram.engines.passes import Pass
from dpgram.errors import DpgramWarning
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.models import linear, logistic
from dpgram.publishing import _models, publish_with
from dpgram.publishing.measurements.gram import lower_triangle
from dpgram.release import Release
from dpgram.rows.batch import CountedRows
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import RowRules, row_rules
from dpgram.schema import Schema
from dpgram.schema.columns import boolean, numeric
from dpgram.sums.base import Statistic
from dpgram.sums.models import ExactModelSums, StepStatistic, nearest_direction

SCHEMA: Final = Schema(numeric("x", 0, 100), numeric("y", -50, 50), boolean("b"))
ROWS: Final = 3_000
AGREES: Final = 1e-7
"""What directions may differ by, in units of their length: the same numbers, added up in another process."""


def table(rows: int = ROWS) -> pa.Table:
    """Columns that go together; the larger x, the more often b."""
    generator = np.random.default_rng(5)
    x = generator.normal(30, 5, rows)
    y = 0.5 * (x - 30) + generator.normal(0, 2, rows)
    return pa.table({"x": x, "y": y, "b": generator.random(rows) < 1.0 / (1.0 + np.exp(-0.3 * (x - 30)))})


def released(*, adaptive: bool) -> Release:
    """One release with declared models; the same one each time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        (release,) = publish_with(
            table(),
            SCHEMA,
            epsilon=2.0,
            delta=1e-6,
            models=[linear("y", ["x"]), logistic("b", ["x", "y"], steps=2)],
            adaptive=adaptive,
            entropy=SeededEntropy(4),
            engine=LocalEngine(threads=1),
            progress=False,
        )
    return release


def unexplained(release: Release) -> tuple[str, ...]:
    """Directions and coefficients that do not follow from what was published before them."""
    moments = Moments.of(release)
    breaches = []
    reached: dict[tuple[str, str], Any] = {}
    for each in release.measured:
        if isinstance(each, MeasuredStep):
            design = build_design(moments, each.target, each.on)
            space = FeatureSpace.of(moments, design, each.on, each.coordinates)
            theta = reached.get((each.family, each.target))
            if theta is None:
                theta = pilot(moments, space, each.family).theta
            slopes = space.basis @ theta
            size = float(np.linalg.norm(slopes))
            if abs(size - each.size) > AGREES * size or not _same(each.slopes, slopes / size):
                breaches.append("the coefficients of a step do not follow from what came before it")
            reached[each.family, each.target] = NewtonStep.of(each, space).careful_end()
    return tuple(breaches)


def _same(written: tuple[int, ...], wanted: Any) -> bool:
    apart = np.ldexp(np.array(written, dtype=np.float64), -DIRECTION_BITS) - wanted
    return bool(np.abs(apart).max() < AGREES)


@contextlib.contextmanager
def _exact_pilot() -> Iterator[None]:
    """Models that begin with the fit of the exact matrix; the noisy one is published."""
    seen: list[Any] = []
    honest = Measure.draw

    def draw(self: Measure, exact: Sequence[Any], entropy: Entropy) -> Any:
        if isinstance(self.what, Gram):
            seen[:] = exact
        return honest(self, exact, entropy)

    def spying(release: Release) -> Moments:
        cells = lower_triangle(seen[0].astype(object))
        published = msgspec.structs.replace(release.published, cells=cells)
        return Moments.of(msgspec.structs.replace(release, published=published))

    class Spying:
        of = staticmethod(spying)

    with mock.patch.object(Measure, "draw", draw), mock.patch.object(_models, "Moments", Spying):
        yield


@contextlib.contextmanager
def _honest() -> Iterator[None]:
    yield


def _follows(fault: Fault, adaptive: bool, _: bool) -> Outcome:
    with fault():
        release = released(adaptive=adaptive)
    if not any(isinstance(each, MeasuredStep) for each in release.measured):
        raise RuntimeError("no model was measured, and nothing shown")
    return checked(unexplained(release))


def exact_pilot() -> tuple[Trial, ...]:
    """Where the steps begin tells of the exact sums, after an adaptive matrix and after a plain one."""
    return tuple(
        Trial(
            name=f"models: pilot from exact data{where}",
            broken=partial(_follows, _exact_pilot, adaptive),
            ours=partial(_follows, _honest, adaptive),
        )
        for where, adaptive in (("", True), (", plain matrix", False))
    )


TURNED: Final = Encoder(
    SCHEMA,
    clip=1.5,
    coordinates=Coordinates.nearest(
        np.array([[1.0, 0, 0, 0], [2.0, 5.0, 0, 0], [-1.0, -3.0, 4.0, 0], [0.1, 0.2, -0.3, 1.0]])
    ),
)
"""Coordinates as a first matrix gives them, and a radius that some rows pass."""
FEATURES: Final = Encoder(
    SCHEMA.with_columns(SCHEMA.columns[:2]),
    clip=1.5,
    coordinates=Coordinates.nearest(np.array([[0.1, 0, 0], [2.0, 5.0, 0], [-1.0, -3.0, 4.0]])),
)
STEP: Final = StepStatistic(
    whole=TURNED,
    features=FEATURES,
    target="b",
    one=1.0,
    curve="logistic",
    slopes=nearest_direction(np.array([-1.0, 0, 0])),
    size=100.0,
)
LINEAR: Final = StepStatistic(
    whole=TURNED,
    features=Encoder(
        SCHEMA.with_columns(SCHEMA.columns[:1]),
        clip=1.5,
        coordinates=Coordinates.nearest(np.array([[0.1, 0], [2.0, 5.0]])),
    ),
    target="y",
    one=None,
    curve="linear",
    slopes=nearest_direction(np.array([1.0, 0])),
    size=1.0,
    limit=5.0,
    bound=0.1,
)
"""Residuals beyond ±5 are limited, and scores clipped for their spread at a tenth of the longest."""


@final
@dataclass(frozen=True, slots=True)
class Unbounded(Statistic):
    """Features as long as they come, residuals as long as they come, or a spread of whole scores."""

    inner: StepStatistic
    fault: Literal["features", "residual", "spread"]

    def accumulator(self, rules: RowRules) -> _Unbounded:
        """One that adds up whatever comes."""
        return _Unbounded(self, self.zero(rules)[0])

    def zero(self, rules: RowRules) -> tuple[ExactModelSums, ...]:
        """No rows are none."""
        return self.inner.zero(rules)


@final
@dataclass(slots=True)
class _Unbounded:
    statistic: Unbounded
    total: ExactModelSums

    def add(self, rows: CountedRows) -> None:
        inner, fault = self.statistic.inner, self.statistic.fault
        encoder, width = inner.features, inner.features.schema.width
        numbers = np.ascontiguousarray(rows.rows.numbers[:, : len(encoder.schema.source_columns)])
        truth = rows.rows.numbers[:, 2 if inner.one is not None else 1]
        for chunk in encoder.batch_encoder().encode_array(numbers):
            assert chunk.lengths is not None
            ones = np.ones(chunk.lines.shape[1])
            scores, _ = inner.lattice_rows(chunk, truth, ones, ones)
            if fault == "features":
                scores = scores * np.maximum(chunk.lengths, 1.0)
            if fault == "residual":
                index = np.ldexp(inner.size * encoder.radius * chunk.lines[0], -15)
                scores = np.rint(chunk.lines[:width] * ((truth - index) / inner.limit * SCORE_UNIT))
            cells = np.zeros_like(self.total.cells)
            cells[-1] = scores.sum(axis=1).astype(np.int64)
            if fault == "spread":
                a = np.rint(scores / (2.0**15 * (inner.bound or 1.0))).astype(np.int64)
                cells[width:-1] = a @ a.T
            counts = PolicyCounts(rows_read=len(ones), rows_used=len(ones))
            self.total |= ExactModelSums(cells, counts)

    def result(self) -> tuple[ExactModelSums, ...]:
        return (self.total,)


def _moved(statistic: Statistic, _: bool) -> Outcome:
    """The sums with and without one row that is longer than the radius."""
    far = pa.table({"x": [100.0], "y": [-50.0], "b": [True]})
    rules = row_rules(SCHEMA)
    sums = [
        add_up(data, Pass(rules=rules, statistics=(statistic,)), threads=1, progress=False)[0]
        for data in (pa.concat_tables([table(50), far]), table(50))
    ]
    one, other = (found for found in sums if isinstance(found, ExactModelSums))
    sizes = [int(np.trace(one.matrix - other.matrix))]
    sizes += [int(np.trace(one.spread - other.spread))] if len(one.spread) else []
    sizes += [int(np.linalg.norm((one.score - other.score).astype(np.float64)))]
    return checked(
        tuple(
            f"{size / ROW_NORM_SQUARED:.2f} of what is paid for" for size in sizes if size > ROW_NORM_SQUARED
        )
    )


def unbounded() -> tuple[Trial, ...]:
    """Rows as long as they come, against noise for rows of length R."""
    kinds: tuple[tuple[str, StepStatistic, Literal["features", "residual", "spread"]], ...] = (
        ("models: score of a row unbounded", STEP, "features"),
        ("models: residual not limited", LINEAR, "residual"),
        ("models: spread of scores not clipped", LINEAR, "spread"),
    )
    return tuple(
        Trial(name=name, broken=partial(_moved, Unbounded(inner, fault)), ours=partial(_moved, inner))
        for name, inner, fault in kinds
    )


def trials() -> tuple[Trial, ...]:
    """What could go wrong with declared models."""
    return (*exact_pilot(), *unbounded())
