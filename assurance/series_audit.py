"""A whole stream on neighbouring tables: what all periods together show of one person.

Given what the first period published, every line of a stream is noise on exact sums whose row function is
public. So the sums of both neighbours can be computed in the coordinates of each stream, by rules written
here once more, and the squared shifts of everything that was published add up to what the stream has told of
the person: at most what was paid. In repeated runs the projections of all lines on what the person adds are
the statistics: their best linear combination sees noise that was used twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from assurance.adaptive_audit import SEEN, histogram_column, measured_stages, whole_numbers
from assurance.foreseen import audit_foreseen
from assurance.ideal import Ideal, gaussian_ideal
from assurance.stage import Stage
from dpgram.audit import AuditResult, Experiment, JointAudit, Scores, audit
from dpgram.core.noise import Entropy, SeededEntropy
from dpgram.document.fields import MeasuredMatrix
from dpgram.engines.local import LocalEngine, add_up
from dpgram.engines.passes import Pass
from dpgram.noise.factor import coefficients
from dpgram.privacy.accountant import GaussianEvent, curve_of
from dpgram.privacy.adjacency import AddRemove
from dpgram.privacy.curves.base import PrivacyCurve
from dpgram.publishing.measurements.gram import full_matrix
from dpgram.publishing.publication import publication
from dpgram.publishing.series import PeriodWork, SeriesTerms, series_terms
from dpgram.rows import Rows
from dpgram.rows.encoder import Encoder
from dpgram.rows.participation import NOBODY
from dpgram.rows.rules import row_rules
from dpgram.schema import Schema
from dpgram.schema.columns import numeric
from dpgram.series import _curate
from dpgram.series._records import KeptPeriod, combined, lower_sums
from dpgram.series.stream import Period, Stream
from dpgram.sums.clip import ClipStatistic
from dpgram.sums.grams import GramStatistic
from dpgram.sums.histograms import HistogramsStatistic

Floats = npt.NDArray[np.float64]

SCHEMA: Final = Schema(numeric("x", -1, 1), numeric("y", -1, 1))
OTHERS: Final = 200
ENGINE: Final = LocalEngine(threads=1)
MEMORY: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Files of streams that are told apart and dropped: no disk has to be waited for."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSetting:
    """A series, and one person who comes in every period or in some."""

    periods: int = 4
    participations: int = 1
    apart: int = 1
    comes: tuple[int, ...] = (1, 2, 3, 4)
    """The periods in which the person has rows."""
    adaptive: bool = True
    epsilon: float = 8.0
    delta: float = 1e-4

    @property
    def facts(self) -> dict[str, Any]:
        """As `Series.create` takes them."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "periods": self.periods,
            "rows": Rows(unit="id"),
            "participations": self.participations,
            "apart": self.apart,
            "adaptive": self.adaptive,
        }

    def terms(self) -> SeriesTerms:
        return series_terms(SCHEMA, **self.facts)

    @property
    def curve(self) -> PrivacyCurve:
        """All that the series promises."""
        return curve_of(GaussianEvent(mu=self.terms().mu))

    def tables(self, *, there: bool) -> list[pa.Table]:
        """Of each period, with the person or without."""
        return [self._table(t, there=there and t in self.comes) for t in range(1, self.periods + 1)]

    def _table(self, period: int, *, there: bool) -> pa.Table:
        draw = np.random.default_rng([8, period])
        x = draw.normal(0.1, 0.1, OTHERS)
        rows = np.column_stack([x, 0.7 * x + draw.normal(0.0, 0.05, OTHERS)])
        ids = [f"other {period}.{k}" for k in range(OTHERS)]
        if there:  # far from all others, with two rows that count as one person
            rows, ids = np.concatenate([rows, [[1.0, -1.0]] * 2]), [*ids, "the person", "the person"]
        return pa.table({"x": rows[:, 0], "y": rows[:, 1], "id": ids})

    def publish(self, tables: Sequence[pa.Table], sources: Sequence[Entropy]) -> Stream:
        """The whole stream, through its files, each period with its own source of noise."""
        with TemporaryDirectory(dir=MEMORY) as folder:
            path = Path(folder) / "a.series"
            _curate.create(path, SCHEMA, entropy=sources[0], **self.facts)
            for number, (table, entropy) in enumerate(zip(tables, sources, strict=True), start=1):
                _curate.publish(path, table, str(number), engine=ENGINE, progress=False, entropy=entropy)
            return Stream.read(path)


def allowed(tables: Sequence[pa.Table], setting: StreamSetting) -> list[pa.Table]:
    """The rows that count, person by person, by the rule as it is written in the documentation."""
    periods: dict[str, list[int]] = {}
    found = []
    for number, table in enumerate(tables, start=1):
        come = dict.fromkeys(table["id"].to_pylist())
        counted = [
            person
            for person in come
            if len(periods.get(person, [])) < setting.participations
            and all(number - before >= setting.apart for before in periods.get(person, []))
        ]
        for person in counted:
            periods.setdefault(person, []).append(number)
        found.append(table.filter(pc.is_in(table["id"], pa.array(counted, pa.string()))))
    return found


@cache
def _tables_allowed(setting: StreamSetting, there: bool) -> list[pa.Table]:
    return allowed(setting.tables(there=there), setting)


def stages(stream: Stream, setting: StreamSetting) -> list[Stage]:
    """Every line and count of a stream, with the exact sums of both neighbours in its own coordinates."""
    opening = stream.opening
    if opening is None:
        return []
    last = Encoder(SCHEMA, clip=opening.radius, coordinates=opening.coordinates)
    sides = [_tables_allowed(setting, there) for there in (True, False)]
    c = coefficients(setting.periods)
    lines: tuple[list[Any], list[Any]] = ([], [])
    found: list[Stage] = []
    for number, (period, *tables) in enumerate(zip(stream.periods, *sides, strict=True), start=1):
        counted, statistics = _counted(period, opening.measured if number == 1 else (), last)
        sums = [_added((GramStatistic(last), *statistics), table) for table in tables]
        for kept, (line, *_) in zip(lines, sums, strict=True):
            kept.append(line.cells.astype(object))
        one, other = (sum(c[number - s] * line for s, line in enumerate(kept, start=1)) for kept in lines)
        found.append(
            Stage(
                seen=whole_numbers(full_matrix(period.cells, SCHEMA.width)),
                one=whole_numbers(one),
                other=whole_numbers(other),
                scale=opening.sigma,
                law="gaussian",
            )
        )
        for told, first, second in zip(counted, sums[0][1:], sums[1][1:], strict=True):
            found += measured_stages(told, first, second, SCHEMA.width)
    return found


def _counted(period: Period, first: Sequence[Any], last: Encoder) -> tuple[list[Any], list[Any]]:
    """What one period published beside its line, and the statistics of which it is."""
    told: list[Any] = []
    statistics: list[Any] = []
    if period.histograms is not None:
        told.append(period.histograms)
        statistics.append(HistogramsStatistic(tuple(map(histogram_column, period.histograms.columns))))
    if period.clip is not None:
        told.append(period.clip)
        statistics.append(ClipStatistic(last))
    rough = last
    for each in first:
        told.append(each)
        if isinstance(each, MeasuredMatrix):
            rough = Encoder(SCHEMA, clip=each.radius, coordinates=each.coordinates)
            statistics.append(GramStatistic(rough))
        else:
            statistics.append(ClipStatistic(rough, reach=True))
    return told, statistics


def spent(stream: Stream, setting: StreamSetting) -> float:
    """μ² of what everything in the stream tells of the person, exactly.

    Where rows are counted that should not be, the sums of the stream's own curator tell another story: see
    `broken_series`.
    """
    return sum(stage.told for stage in stages(stream, setting))


def scores(streams: Sequence[Stream], setting: StreamSetting) -> Scores:
    """The log-likelihood ratio of each stream, and those of its lines and of its counts by themselves."""
    found = []
    for stream in streams:
        every = stages(stream, setting)
        lines = sum(one.log_ratio for one in every if one.seen.ndim == 2)
        counts = sum(one.log_ratio for one in every if one.seen.ndim == 1)
        found.append([lines + counts, lines, counts] if setting.adaptive else [lines])
    return np.array(found)


def audited_stream(
    setting: StreamSetting,
    *,
    runs: int,
    confidence: float,
    thresholds: Sequence[float],
    entropy: Entropy,
) -> JointAudit:
    """Repeated streams with the person and without, told apart by all that all periods publish."""
    names = ("likelihood ratio", "lines", "counts") if setting.adaptive else ("likelihood ratio",)

    def run(tables: Sequence[pa.Table]) -> Callable[[Entropy], Stream]:
        return lambda source: setting.publish(tables, source.split(setting.periods))

    one, other = (setting.tables(there=there) for there in (True, False))
    experiment = Experiment(
        name="", run_a=run(one), run_b=run(other), statistic=partial(scores, setting=setting), names=names
    )
    return audit_foreseen(
        experiment,
        thresholds=thresholds,
        runs=runs,
        delta=setting.delta,
        confidence=confidence,
        entropy=entropy,
    )


def ideal(setting: StreamSetting, part: float, *, runs: int, confidence: float) -> Ideal:
    """All noise is Gaussian, so that the part of μ² which the neighbours differ by says it."""
    return gaussian_ideal(
        setting.terms().mu * part**0.5, runs=runs, delta=setting.delta, confidence=confidence
    )


def exact_sums(encoder: Encoder, table: pa.Table) -> npt.NDArray[np.int64]:
    (found,) = _added((GramStatistic(encoder),), table)
    cells: npt.NDArray[np.int64] = found.cells
    return cells


def _added(statistics: tuple[Any, ...], table: pa.Table) -> Any:
    rules = row_rules(SCHEMA, Rows(unit="id"))
    return add_up(table, Pass(rules=rules, statistics=statistics), threads=1, progress=False)


@final
class Remembering:
    """An engine that reads each table once: its exact sums are the same in every run."""

    name = "remembering"
    passes = None

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}

    def accepts(self, data: object) -> bool:
        return isinstance(data, pa.Table)

    def add_up(self, data: object, work: Pass, *, progress: object = None) -> Any:
        del progress
        if id(data) not in self._known:
            self._known[id(data)] = add_up(data, work, threads=1, progress=False)
        return self._known[id(data)]


def in_memory(
    setting: StreamSetting,
    terms: SeriesTerms,
    tables: Sequence[pa.Table],
    sources: Sequence[Entropy],
    engine: Remembering,
) -> list[Floats]:
    """The lines of a stream of plain columns, without files: the same stages, drawn in the same way."""
    kept: list[KeptPeriod] = []
    lines = []
    c, opening = coefficients(setting.periods), None
    for number, (table, entropy) in enumerate(zip(tables, sources, strict=True), start=1):

        def carry(exact: Any, people: Any, number: int = number) -> Any:
            del people
            now = lower_sums(exact.cells)
            total = combined(kept, now, c)
            kept.append(KeptPeriod(number=number, label=str(number), sums=now, people=NOBODY))
            return total

        work = PeriodWork(terms=terms, opening=opening, begin=lambda *_: None, carry=carry, left_out=None)
        with publication(
            work.program(),
            data=table,
            engine=engine,
            entropy=entropy,
            adjacency=AddRemove(),
            price=terms.price,
            progress=False,
        ) as drawn:
            opening = drawn.opening
            lines.append(np.array([float(cell) for cell in drawn.cells]))
    return lines


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAudit:
    """Repeated runs of a whole stream with the person and without."""

    setting: StreamSetting
    sources: Callable[[Entropy, int], Sequence[Entropy]]
    """Sources of noise for all periods of one run."""

    def run(self, tables: Sequence[pa.Table]) -> Callable[[Entropy], list[Floats]]:
        setting, terms, engine = self.setting, self.setting.terms(), Remembering()

        def run(entropy: Entropy) -> list[Floats]:
            return in_memory(setting, terms, tables, self.sources(entropy, setting.periods), engine)

        return run

    def audited(self, runs: int, seed: int = 11) -> AuditResult:
        """At the δ of the series, with confidence 0.999."""
        setting = self.setting
        one, other = (allowed(setting.tables(there=there), setting) for there in (True, False))
        encoder = setting.terms().plain_encoder()
        moved = [
            lower_sums(exact_sums(encoder, a)) - lower_sums(exact_sums(encoder, b))
            for a, b in zip(one, other, strict=True)
        ]
        direction = np.sum(moved, axis=0).astype(np.float64)
        width = SCHEMA.width
        # A cell off the diagonal counts twice in the likelihood, which has half of its variance.
        often = np.array([1.0 if i == j else 2.0 for i in range(width) for j in range(i + 1)])
        aim = often * direction / np.linalg.norm(direction)

        def statistic(outputs: Sequence[list[Floats]]) -> Floats:
            seen = np.array([[float(aim @ line) for line in lines] for lines in outputs])
            return np.column_stack([seen, np.diff(seen, axis=1)])

        numbers = range(1, setting.periods + 1)
        return audit(
            self.run(one),
            self.run(other),
            runs=runs,
            delta=setting.delta,
            statistic=statistic,
            names=[*(f"period {t}" for t in numbers), *(f"step to {t}" for t in numbers[1:])],
            entropy=SeededEntropy(seed),
        )


def fresh(entropy: Entropy, count: int) -> Sequence[Entropy]:
    """Noise of its own for every period."""
    return entropy.split(count)


def reused(entropy: Entropy, count: int) -> Sequence[Entropy]:
    """The same noise in every period: broken on purpose."""
    seed = int.from_bytes(entropy.random_bytes(4), "big")
    return [SeededEntropy(seed) for _ in range(count)]


SETTINGS: Final = {
    "one period each": StreamSetting(),
    "two periods, two apart": StreamSetting(participations=2, apart=2),
    "all periods": StreamSetting(participations=4),
    "late": StreamSetting(comes=(3,)),
    "plain columns": StreamSetting(participations=2, adaptive=False),
}
AUDITED: Final = {
    "a person in all of three periods": StreamSetting(
        periods=3, comes=(1, 2, 3), participations=3, epsilon=SEEN
    ),
    "a person in one of three periods, plain columns": StreamSetting(
        periods=3, comes=(1, 2, 3), adaptive=False, epsilon=SEEN
    ),
}
"""With little noise, so that few streams tell much."""
PLAIN: Final = StreamSetting(periods=3, comes=(1,), adaptive=False, epsilon=0.5, delta=1e-4)
