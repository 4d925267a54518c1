"""Measurements broken on purpose, each kind in each way: noise, row function, whose rows count, what is paid.

Neighbours are 200 persons and one more, whose row falls where everybody's falls or, at the end of a column,
where nobody's does. Too little noise is a matter of statistics. What one person can add to a sum is a fact
about integers, checked exactly. A second draw that nobody paid for must be refused by the publication itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from assurance.trials import Outcome, Trial, audited, checked
from dpgram.audit import audit
from dpgram.core.noise import SeededEntropy
from dpgram.core.sums import length_bins, octave_places
from dpgram.document.coordinates import Coordinates
from dpgram.document.reach import CLIP_SQUARES, REACH_SQUARES
from dpgram.engines.local import LocalEngine, add_up
from dpgram.engines.passes import Pass
from dpgram.errors import DpgramError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import CalibratedGaussian, PublicFacts
from dpgram.privacy.accountant import composed, curve_of
from dpgram.privacy.adjacency import AddRemove
from dpgram.privacy.count_noise import CountNoise, scale_of_counts
from dpgram.publishing.measurements.counts import Bins, Octaves, RowCount
from dpgram.publishing.measurements.gram import FirstGram, Gram, full_matrix
from dpgram.publishing.measurements.histograms import Clip, Histograms, Reach, Zoom
from dpgram.publishing.measurements.levels import Levels
from dpgram.publishing.measurements.models import Step
from dpgram.publishing.publication import Answer, Program, Stage, measured, publication
from dpgram.rows import Rows
from dpgram.rows.batch import CountedRows, RowBatch
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import RowRules, row_rules
from dpgram.schema import Schema
from dpgram.schema.columns import categorical, numeric
from dpgram.sums.base import Accumulator, Statistic, Sum
from dpgram.sums.exact_gram import ExactGram
from dpgram.sums.histograms import HistogramColumn
from dpgram.sums.levels import ExactLevels
from dpgram.sums.models import StepStatistic

OPEN: Final = Schema(numeric("x"), categorical("g"))
KNOWN: Final = Schema(numeric("x", 64, 128), constant=False)
OTHERS: Final = 200
VISITS: Final = 9
END: Final = 127.9
"""The value of the person in question: in the octave of all others, in a bin at the end."""
MU: Final = 2.0
"""What each measurement is worth: so much that a few hundred draws refute half the noise."""
HALF: Final = 0.5
RUNS: Final = (300, 3_000)
"""Short and long form."""


def table(rows: int, level: str = "a") -> pa.Table:
    """Everybody else has a row; the person in question so many."""
    return pa.table(
        {
            "x": np.append(np.linspace(65.0, 127.0, OTHERS), [END] * rows),
            "g": ["a", "b"] * (OTHERS // 2) + [level] * rows,
            "id": np.append(np.arange(OTHERS), [999] * rows),
        }
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A kind of measurement, and what of its result tells the neighbours apart best."""

    measurement: Any
    """One with a field `noise` or `mechanism`, of which all its noise comes."""
    schema: Schema
    seen: Callable[[Any], int]
    """One number of what is published, in lattice units."""

    def rules(self, unit: str | None = None) -> RowRules:
        """How rows count: each by itself, or those of a person together."""
        return row_rules(self.schema, Rows(unit=unit))

    def with_noise(self, factor: float) -> Any:
        """The same with `factor` times the noise."""
        if isinstance(self.measurement, Step):
            return replace(self.measurement, score_sigma=self.measurement.score_sigma * factor)
        if isinstance(self.measurement, Gram | FirstGram):
            honest = self.measurement.mechanism
            assert isinstance(honest, CalibratedGaussian)
            return replace(self.measurement, mechanism=CalibratedGaussian(sigma=honest.sigma * factor))
        noise: CountNoise = self.measurement.noise
        return replace(self.measurement, noise=replace(noise, scale=noise.scale * factor))


def _noise(histograms: int) -> CountNoise:
    scale = scale_of_counts("discrete-gaussian", MU**2, histograms=histograms, units_changed=1)
    return CountNoise(law="discrete-gaussian", scale=scale)


def _in_octave(published: Any) -> int:
    (column,) = published.columns
    place = int(octave_places(np.array([END]))[0]) - column.first
    return int(column.cells[place]) if 0 <= place < len(column.cells) else 0


def _in_bins(published: Any) -> int:
    (column,) = published.columns
    return sum(int(look.bins[-1]) for look in column.looks)


TURNED: Final = Encoder(KNOWN, clip=0.5, coordinates=Coordinates.nearest(np.array([[1.3]])))
"""u = 1.3·v with a radius that the row in question passes."""


def _length() -> npt.NDArray[np.float64]:
    """|u|²/R² of the row in question."""
    return np.array([(1.3 * (END - 96.0) / 32.0 / 0.5) ** 2])


def _in_reach(published: Any) -> int:
    return int(published.cells[int(length_bins(_length(), REACH_SQUARES)[0])])


def _in_clip(published: Any) -> int:
    return int(published.cells[int(length_bins(_length(), CLIP_SQUARES)[0])])


def _in_histogram(published: Any) -> int:
    """The node at the end, at which nearly all of the row counts."""
    (column,) = published.columns
    return int(column.counts[-1])


def _of_level(published: Any) -> int:
    (column,) = published.columns
    return int(dict(zip(column.levels, column.counts, strict=True)).get("a", 0))


@cache
def subjects() -> dict[str, Subject]:
    """One of each kind, with noise for the same μ."""
    common: dict[str, Any] = {"share": 0.1, "units_changed": 1}
    facts = PublicFacts(width=KNOWN.width, adjacency=AddRemove())
    looks = Bins(noise=_noise(1), columns=("x",), bounds=((64.0, 128.0),), rows=float(OTHERS), **common).drawn
    found = {
        "rows": (RowCount(noise=_noise(1), columns=("x",), **common), OPEN, lambda one: int(one.cell)),
        "levels": (Levels(noise=_noise(1), delta=1e-6, columns=("g",), **common), OPEN, _of_level),
        "octaves": (Octaves(noise=_noise(1), columns=("x",), **common), OPEN, _in_octave),
        "bins": (
            Bins(noise=_noise(looks), columns=("x",), bounds=((64.0, 128.0),), rows=float(OTHERS), **common),
            OPEN,
            _in_bins,
        ),
        "histograms": (
            Histograms(noise=_noise(1), columns=(HistogramColumn(name="x", bounds=(64.0, 128.0)),), **common),
            OPEN,
            _in_histogram,
        ),
        "zoom": (
            Zoom(noise=_noise(1), columns=(HistogramColumn(name="x", bounds=(126.0, 127.9)),), **common),
            OPEN,
            _in_histogram,
        ),
        "reach": (Reach(noise=_noise(1), encoder=TURNED, **common), KNOWN, _in_reach),
        "clip": (Clip(noise=_noise(1), encoder=TURNED, **common), KNOWN, _in_clip),
        "first-gram": (
            FirstGram(
                encoder=TURNED, mechanism=CalibratedGaussian(sigma=_noise(1).scale), facts=facts, share=0.1
            ),
            KNOWN,
            lambda one: int(one.cells[0]),
        ),
        "step": (
            Step(
                sums=StepStatistic(
                    whole=Encoder(KNOWN),
                    features=Encoder(
                        KNOWN,
                        clip=1.3 * (END - 96.0) / 32.0,
                        coordinates=Coordinates.nearest(np.array([[1.3]])),
                    ),
                    target="x",
                    one=None,
                    curve="linear",
                    slopes=(0,),
                    size=0.0,
                ),
                mechanism=CalibratedGaussian(sigma=1e6 * _noise(1).scale),
                score_sigma=_noise(1).scale,
                spread=None,
                units_changed=1,
                label="x",
                on=("x",),
                share=0.1,
            ),
            KNOWN,
            lambda one: int(one.score[0]),
        ),
        "gram": (
            Gram(encoder=Encoder(KNOWN), mechanism=CalibratedGaussian(sigma=_noise(1).scale), facts=facts),
            KNOWN,
            lambda one: int(full_matrix(one[0].matrix.cells, KNOWN.width)[0, 0]),
        ),
    }
    return {
        kind: Subject(measurement=measurement, schema=schema, seen=seen)
        for kind, (measurement, schema, seen) in found.items()
    }


def _sums(data: pa.Table, rules: RowRules, statistic: Statistic) -> tuple[Sum, ...]:
    return add_up(data, Pass(rules=rules, statistics=(statistic,)), threads=1, progress=False)


def _noisy(kind: str, factor: float, long: bool) -> Outcome:
    """Draws of exact sums that differ by one row, judged by what the honest one costs."""
    subject = subjects()[kind]
    honest, measurement, rules = subject.measurement, subject.with_noise(factor), subject.rules()
    runs = [
        partial(measured, measurement, _sums(table(rows), rules, honest.statistic), rules) for rows in (1, 0)
    ]
    found = audit(
        *runs,
        runs=RUNS[long],
        delta=1e-4,
        statistic=lambda results: np.array([[subject.seen(each) / 2.0**30] for each in results]),
        names=("cell of the row",),
        entropy=SeededEntropy(7),
    )
    return audited(found, curve_of(honest.event))


def too_quiet(kind: str) -> Trial:
    """Half the noise for the same price."""
    return Trial(
        name=f"{kind}: half the noise that was paid for",
        broken=partial(_noisy, kind, HALF),
        ours=partial(_noisy, kind, 1.0),
    )


def _alone(delta: float, long: bool) -> Outcome:
    """A text that only the person in question has: whether it is among the levels that are published."""
    subject = subjects()["levels"]
    # Counts of little worth, so that whether a text is there tells more than they may.
    honest, rules = subject.with_noise(4.0), subject.rules()
    runs = [
        partial(measured, replace(honest, delta=delta), _sums(data, rules, honest.statistic), rules)
        for data in (table(1, "nobody else"), table(0))
    ]
    found = audit(
        *runs,
        runs=RUNS[long],
        delta=1e-4,
        statistic=lambda results: np.array(
            [["nobody else" in each.columns[0].levels] for each in results], float
        ),
        names=("whether it is there",),
        entropy=SeededEntropy(8),
    )
    return audited(found, curve_of(honest.event))


def a_text_of_one() -> Trial:
    """A threshold for a larger δ than was paid for."""
    return Trial(
        name="levels: a text of one person alone is published too often",
        broken=partial(_alone, 0.4),
        ours=partial(_alone, subjects()["levels"].measurement.delta),
    )


@final
@dataclass(frozen=True, slots=True)
class Doubled(Statistic):
    """The row of the person in question counts twice."""

    inner: Statistic

    def accumulator(self, rules: RowRules) -> Accumulator:
        """One that counts wrongly."""
        return _Doubling(self.inner.accumulator(rules), rules)

    def zero(self, rules: RowRules) -> tuple[Sum, ...]:
        """No rows are none."""
        return self.inner.zero(rules)


@final
@dataclass(frozen=True, slots=True)
class _Doubling:
    inner: Accumulator
    rules: RowRules

    def add(self, rows: CountedRows) -> None:
        self.inner.add(rows)
        (places,) = np.nonzero(rows.rows.lines[0] == END)
        again = RowBatch(
            lines=[line[places] for line in rows.rows.lines],
            rows=len(places),
            texts=tuple(texts.take(pa.array(places)) for texts in rows.rows.texts),
        )
        self.inner.add(CountedRows(again, self.rules))

    def result(self) -> tuple[Sum, ...]:
        return self.inner.result()


def _histograms(found: Any) -> list[dict[Any, int]]:
    """The cells of every histogram by name; of a matrix, its trace: what a person may change by 2^30."""
    if isinstance(found, ExactLevels):
        return [dict(each) for each in found.cells]
    if isinstance(found, ExactGram):
        return [{"trace": int(np.trace(found.cells))}]
    return [{place: int(cell) for place, cell in enumerate(line) if cell} for line in found.cells]


def _moved(kind: str, statistic: Statistic, unit: str | None, rows: int, _: bool) -> Outcome:
    """The sums with and without all rows of the person, cell by cell."""
    rules = subjects()[kind].rules(unit)
    one, other = (_histograms(_sums(table(present), rules, statistic)[0]) for present in (rows, 0))
    steps = [
        sum(abs(a.get(cell, 0) - b.get(cell, 0)) for cell in a.keys() | b.keys())
        for a, b in zip(one, other, strict=True)
    ]
    return checked(
        tuple(
            f"histogram {number} moves by {step / ROW_NORM_SQUARED:.2f} of a row"
            for number, step in enumerate(steps)
            if step > ROW_NORM_SQUARED
        )
    )


def counted_twice(kind: str) -> Trial:
    """A row function that is not bounded by one row."""
    honest = subjects()[kind].measurement.statistic
    return Trial(
        name=f"{kind}: a row that counts twice",
        broken=partial(_moved, kind, Doubled(honest), None, 1),
        ours=partial(_moved, kind, honest, None, 1),
    )


def rows_for_persons(kind: str) -> Trial:
    """Sums over rows where a person was promised to count as one."""
    honest = subjects()[kind].measurement.statistic
    return Trial(
        name=f"{kind}: counts over rows where persons are promised",
        broken=partial(_moved, kind, honest, None, VISITS),
        ours=partial(_moved, kind, honest, "id", VISITS),
    )


def _program(stages: list[Stage]) -> Program[list[Answer]]:
    answers: list[Answer] = []
    for stage in stages:
        answer = yield stage
        answers.append(answer)
    return answers


def _carried_out(kind: str, paid: int, later: bool, _: bool) -> Outcome:
    """The same measurement twice in one event; what it says is whether the publication refused it."""
    subject, measurement = subjects()[kind], subjects()[kind].measurement
    rules = subject.rules()
    charge = composed([measurement.event] * paid)
    stages = [Stage(rules=rules, measurements=(measurement,) * 2)]
    if later:  # the first stage uses up what was paid, and a second one draws
        stages = [Stage(rules=rules, measurements=(measurement,))] * 2
    run = publication(
        _program(stages),
        data=table(1),
        engine=LocalEngine(threads=1),
        entropy=SeededEntropy(3),
        adjacency=AddRemove(),
        price=charge,
        progress=False,
    )
    try:
        with run as answers:
            return Outcome(caught=False, figure=f"{sum(len(each.published) for each in answers)} results")
    except DpgramError as refusal:
        if "would cost more than was promised" not in str(refusal):
            raise
        return Outcome(caught=True, figure="refused before the draw")


def share_used_twice(kind: str, *, later: bool) -> Trial:
    """Two results for one charge: in one stage, or in a stage of its own."""
    return Trial(
        name=f"{kind}: {'a stage that nobody paid for' if later else 'two results for one charge'}",
        broken=partial(_carried_out, kind, 1, later),
        ours=partial(_carried_out, kind, 2, later),
    )


def trials() -> tuple[Trial, ...]:
    """Every kind in every way."""
    every = tuple(
        trial
        for kind in subjects()
        for trial in (
            too_quiet(kind),
            counted_twice(kind),
            rows_for_persons(kind),
            share_used_twice(kind, later=False),
            share_used_twice(kind, later=True),
        )
    )
    return (*every, a_text_of_one())
