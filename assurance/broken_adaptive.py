"""Adaptive releases broken on purpose: what is used must be published, paid for, and bounded row by row.

T and the radius are recomputed from the published file: whatever came from exact rows, or from a result that
was kept back, differs. What nobody paid for must be refused by the publication itself. What one row can add
to a matrix in other coordinates, and whether it depends on the other rows, are facts about integers and bits.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Final, final
from unittest import mock

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from assurance.trials import Outcome, Trial, checked
from dpgram.core.noise import Entropy, SeededEntropy
from dpgram.core.run import Measure
from dpgram.core.sums import Gram, Lengths
from dpgram.core.units import PolicyCounts
from dpgram.document.coordinates import Coordinates
from dpgram.document.fields import (
    MeasuredHistograms,
    MeasuredMatrix,
    MeasuredReach,
    MeasuredZoom,
    NumberHistogram,
)
from dpgram.document.measurements import histogram_rows, learnt_bounds
from dpgram.engines.local import LocalEngine, add_up
from dpgram.engines.passes import Pass
from dpgram.errors import DpgramError, DpgramWarning, ReleaseError
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED
from dpgram.privacy.count_noise import CountNoise
from dpgram.publishing import _adaptive, _coordinates, _scales, _zoom, publish_with
from dpgram.publishing._adaptive_prices import AdaptiveCalibration
from dpgram.publishing.measurements.gram import lower_triangle
from dpgram.release import Release
from dpgram.rows.batch import CountedRows
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import RowRules, row_rules
from dpgram.schema import Schema
from dpgram.schema.columns import numeric
from dpgram.sums.base import Statistic
from dpgram.sums.exact_gram import ExactGram
from dpgram.sums.grams import GramStatistic

Floats = npt.NDArray[np.float64]

SCHEMA: Final = Schema(numeric("x", 0, 100), numeric("y", -50, 50))
ROWS: Final = 3_000


def table(rows: int = ROWS) -> pa.Table:
    """Columns that go together, far from the ends of their bounds."""
    generator = np.random.default_rng(5)
    x = generator.normal(30, 5, rows)
    return pa.table({"x": x, "y": 0.5 * (x - 30) + generator.normal(0, 2, rows)})


def narrow() -> pa.Table:
    """A density that varies within a step between powers of two, and what goes with it."""
    rows = table()
    return pa.table({"x": 0.9967 + 4e-4 * (rows["x"].to_numpy() - 30.0), "y": rows["y"]})


def released(*, open_columns: bool = False) -> Release:
    """One adaptive release; the same one each time. Open columns are looked at again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        (release,) = publish_with(
            narrow() if open_columns else table(),
            Schema(numeric("x"), numeric("y", -50, 50)) if open_columns else SCHEMA,
            epsilon=2.0,
            delta=1e-6,
            entropy=SeededEntropy(4),
            engine=LocalEngine(threads=1),
            progress=False,
        )
    return release


def unexplained(release: Release) -> tuple[str, ...]:
    """Whatever of T and the radius does not follow from the rest of the file, in the release's own order."""
    found = {type(each): each for each in release.measured}
    closer = [each for each in release.measured if isinstance(each, MeasuredZoom)]
    histograms, first = found.get(MeasuredHistograms), found.get(MeasuredMatrix)
    if not isinstance(histograms, MeasuredHistograms):
        return () if release.coordinates is None else ("coordinates without histograms",)
    rows = float(release.public_rows or max(histogram_rows(histograms), 1.0))
    mu, width = release.guarantee.mu or 0.0, _coordinates.rank(release.schema)
    told = max(_coordinates.signal(rows, mu, width), _coordinates.PLAIN_BELOW)
    rough = _coordinates.standardising(release.schema, histograms, told, closer)
    start = _coordinates.radius(rows, mu, width)
    breaches = list(_unexplained_looks(release, histograms, closer, rows))
    if not isinstance(first, MeasuredMatrix):
        if release.coordinates not in (None, rough):
            breaches.append("the coordinates follow from nothing that is published")
        return tuple(breaches)
    if first.coordinates != rough:
        breaches.append("the coordinates of the first matrix do not follow from the histograms")
    if not math.isclose(first.radius, start, rel_tol=1e-9):
        breaches.append("the radius of the first matrix does not follow from the histograms")
    if release.coordinates != _coordinates.whitening(first, rows):
        breaches.append("the coordinates do not follow from the first matrix")
    reach = found.get(MeasuredReach)
    counted = reach if isinstance(reach, MeasuredReach) else None
    if release.radius != _coordinates.last_radius(first, counted, rows=rows, mu=mu, width=width):
        breaches.append("the radius does not follow from the counts of lengths")
    return tuple(breaches)


def _unexplained_looks(
    release: Release, histograms: MeasuredHistograms, closer: Sequence[MeasuredZoom], rows: float
) -> Iterator[str]:
    """Closer looks whose ends do not follow from the look before, or that should have been made."""
    noise, learnt = CountNoise(law=histograms.law, scale=histograms.scale), learnt_bounds(release)
    whole = {each.column: each for each in histograms.columns if isinstance(each, NumberHistogram)}
    rough = noise.scale * max(1.0, _zoom.ROUGHLY * rows / noise.deviation)
    latest, seen, looked = whole, dict.fromkeys(whole, noise), set[str]()
    for look in closer:
        coarse = {
            name: ends
            for name, each in latest.items()
            if (
                ends := _scales.window(
                    each,
                    whole[name],
                    seen[name],
                    rows,
                    by_noise=name in learnt and seen[name] == noise,
                    narrow=_scales.NARROW if name in learnt or name in looked else _scales.FAR_TOO_WIDE,
                )
            )
        }
        again = {name: (each.low, each.high) for name, each in latest.items() if seen[name] != noise}
        expected = (coarse, rough) if coarse else (again, noise.scale)
        if expected != ({each.column: (each.low, each.high) for each in look.columns}, look.scale):
            yield "a closer look does not follow from the histograms before it"
        latest = latest | {each.column: each for each in look.columns}
        looked |= {each.column for each in look.columns}
        own = CountNoise(law=look.law, scale=look.scale)
        seen |= {each.column: own for each in look.columns}


@contextlib.contextmanager
def _exact_ends() -> Iterator[None]:
    """A closer look between the values next to the ends of the table."""
    honest = _scales.window

    def spying(look: NumberHistogram, *others: Any, **options: Any) -> tuple[float, float] | None:
        if honest(look, *others, **options) is None:
            return None
        cells = np.sort(narrow()[look.column].to_numpy())
        return float(cells[1]), float(cells[-2])

    with mock.patch.object(_zoom, "window", spying):
        yield


@contextlib.contextmanager
def _exact_coordinates() -> Iterator[None]:
    """T from the matrix without its noise; the noisy one is published."""
    seen: list[Any] = []
    honest_draw, honest = Measure.draw, _coordinates.whitening

    def draw(self: Measure, exact: Sequence[Any], entropy: Entropy) -> Any:
        if isinstance(self.what, Gram):
            seen[:] = exact
        return honest_draw(self, exact, entropy)

    def spying(first: MeasuredMatrix, rows: float) -> Coordinates:
        return honest(msgspec.structs.replace(first, cells=lower_triangle(seen[0].astype(object))), rows)

    with mock.patch.object(Measure, "draw", draw), mock.patch.object(_adaptive, "whitening", spying):
        yield


@contextlib.contextmanager
def _exact_radius() -> Iterator[None]:
    """A radius that the longest row of the table just reaches."""
    longest: list[float] = []
    honest = Measure.draw

    def draw(self: Measure, exact: Sequence[Any], entropy: Entropy) -> Any:
        if isinstance(self.what, Lengths):
            (places,) = np.nonzero(exact[0][0])
            longest[:] = [float(places.max())]
        return honest(self, exact, entropy)

    def spying(first: MeasuredMatrix, _: MeasuredReach | None, **__: Any) -> float:
        return first.radius * (1.0 + longest[0] / 64.0)

    with mock.patch.object(Measure, "draw", draw), mock.patch.object(_adaptive, "last_radius", spying):
        yield


@contextlib.contextmanager
def _honest() -> Iterator[None]:
    yield


Fault = Callable[[], contextlib.AbstractContextManager[None]]


def _follows(fault: Fault, withheld: tuple[type, ...], open_columns: bool, _: bool) -> Outcome:
    with fault():
        release = released(open_columns=open_columns)
    kept = tuple(each for each in release.measured if not isinstance(each, withheld))
    try:
        release = msgspec.structs.replace(release, measurements=kept)
    except ReleaseError:  # nobody can load such a file
        return Outcome(caught=True, figure="refused on loading")
    return checked(unexplained(release))


def used_and_not_published() -> tuple[Trial, ...]:
    """What the coordinates come from is not in the file."""
    return tuple(
        Trial(
            name=name,
            broken=partial(_follows, fault, withheld, opened),
            ours=partial(_follows, _honest, (), opened),
        )
        for name, fault, withheld, opened in (
            ("adaptive: T from exact data", _exact_coordinates, (), False),
            ("adaptive: radius from exact data", _exact_radius, (), False),
            ("adaptive: first matrix used and not published", _honest, (MeasuredMatrix,), False),
            ("adaptive: closer look used and not published", _honest, (MeasuredZoom,), True),
            ("adaptive: ends of a closer look from exact data", _exact_ends, (), True),
        )
    )


@contextlib.contextmanager
def _first_for_nothing() -> Iterator[None]:
    """The last matrix gets what the first one has used already."""
    with mock.patch.object(AdaptiveCalibration, "price_of", return_value=Fraction(0)):
        yield


@contextlib.contextmanager
def _histograms_for_nothing() -> Iterator[None]:
    """Histograms that tell twenty times as much as their share pays for."""
    honest = _adaptive._histograms  # noqa: SLF001  (to put a fault into it)

    def loud(*arguments: Any) -> Any:
        found = honest(*arguments)
        return replace(found, noise=replace(found.noise, scale=found.noise.scale / math.sqrt(20.0)))

    with mock.patch.object(_adaptive, "_histograms", loud):
        yield


@contextlib.contextmanager
def _looks_for_nothing() -> Iterator[None]:
    """Closer looks, of whose price the matrices know nothing."""
    honest = _zoom.zoom

    def looks(*arguments: Any, **options: Any) -> Any:
        found = yield from honest(*arguments, **options)
        return replace(found, price=Fraction(0))

    with mock.patch.object(_adaptive, "zoom", looks):
        yield


def _paid(fault: Fault, open_columns: bool, _: bool) -> Outcome:
    try:
        with fault():
            released(open_columns=open_columns)
    except DpgramError as refusal:
        if "would cost more than was promised" not in str(refusal):
            raise
        return Outcome(caught=True, figure="refused before the draw")
    return Outcome(caught=False, figure="published")


def unpaid() -> tuple[Trial, ...]:
    """The publication itself refuses what no charge covers."""
    return tuple(
        Trial(name=name, broken=partial(_paid, fault, opened), ours=partial(_paid, _honest, opened))
        for name, fault, opened in (
            ("adaptive: a share used twice", _first_for_nothing, False),
            ("adaptive: histograms that nobody paid for", _histograms_for_nothing, False),
            ("adaptive: a closer look that nobody paid for", _looks_for_nothing, True),
        )
    )


TURNED: Final = Encoder(
    SCHEMA,
    clip=1.5,
    coordinates=Coordinates.nearest(np.array([[1.0, 0, 0], [2.0, 5.0, 0], [-1.0, -3.0, 4.0]])),
)
"""Coordinates as a first matrix gives them, and a radius that some rows pass."""


def _plain_product(encoder: Encoder, rows: Floats) -> Floats:
    """u·2^15/R of rows of the schema, all in one product of floats."""
    columns = [(column.centre, column.half_width) for column in encoder.schema.encoded[1:]]
    centres, widths = np.array(columns).T
    z = np.column_stack([np.ones(len(rows)), (rows - centres) / widths])
    assert encoder.coordinates is not None
    product: Floats = z @ encoder.coordinates.matrix.T * (ROW_NORM / encoder.radius)
    return product


@final
@dataclass(frozen=True, slots=True)
class Unclipped(Statistic):
    """The matrix of rows in coordinates, which keep their length."""

    encoder: Encoder

    def accumulator(self, rules: RowRules) -> _Unclipped:
        """One that adds up whatever comes."""
        return _Unclipped(self.encoder, self.zero(rules)[0])

    def zero(self, rules: RowRules) -> tuple[ExactGram, ...]:
        """No rows are none."""
        del rules
        return (ExactGram.zero(self.encoder.schema.width),)


@final
@dataclass(slots=True)
class _Unclipped:
    encoder: Encoder
    total: ExactGram

    def add(self, rows: CountedRows) -> None:
        q = np.rint(_plain_product(self.encoder, rows.rows.numbers)).astype(np.int64)
        self.total |= ExactGram(q.T @ q, len(q), PolicyCounts(rows_read=len(q), rows_used=len(q)))

    def result(self) -> tuple[ExactGram, ...]:
        return (self.total,)


def _trace(statistic: Statistic, _: bool) -> Outcome:
    """The matrix with and without one row that is longer than the radius."""
    rules = row_rules(SCHEMA)
    far = pa.table({"x": [100.0], "y": [-50.0]})
    sums = [
        add_up(data, Pass(rules=rules, statistics=(statistic,)), threads=1, progress=False)[0]
        for data in (pa.concat_tables([table(50), far]), table(50))
    ]
    one, other = (found.cells for found in sums if isinstance(found, ExactGram))
    moved = int(np.trace(one - other))
    most = f"a row adds {moved / ROW_NORM_SQUARED:.2f} of what is paid for"
    return checked((most,) if moved > ROW_NORM_SQUARED else ())


def unclipped() -> Trial:
    """Rows as long as they come, against noise for rows of length R."""
    return Trial(
        name="adaptive: clip skipped in the second pass",
        broken=partial(_trace, Unclipped(TURNED)),
        ours=partial(_trace, GramStatistic(TURNED)),
    )


COLUMNS: Final = 50
WIDE: Final = Schema(*(numeric(f"x{k}", -3, 5) for k in range(COLUMNS)))


def _wide() -> tuple[Encoder, Floats]:
    generator = np.random.default_rng(6)
    lower = np.tril(generator.normal(0, 1, (WIDE.width, WIDE.width)))
    lower[np.diag_indices(WIDE.width)] = np.abs(lower[np.diag_indices(WIDE.width)]) + 0.1
    encoder = Encoder(WIDE, clip=9.0, coordinates=Coordinates.nearest(lower))
    return encoder, generator.uniform(-3, 5, (200, COLUMNS))


def _by_product(encoder: Encoder, rows: Floats) -> Floats:
    return _plain_product(encoder, rows)


def _by_encoder(encoder: Encoder, rows: Floats) -> Floats:
    """Lattice rows, and their lengths before the clip: every bit that counts."""
    chunks = [
        np.vstack([chunk.lines[: encoder.schema.width], chunk.lengths]).T
        for chunk in encoder.batch_encoder().encode_array(rows.copy())
        if chunk.lengths is not None
    ]
    return np.concatenate(chunks)


def _batches(rows_of: Callable[[Encoder, Floats], Floats], long: bool) -> Outcome:
    """The first rows of a table by themselves, against the same rows among all others."""
    encoder, rows = _wide()
    whole = rows_of(encoder, rows)
    sizes = range(1, len(rows)) if long else range(1, len(rows), 9)
    return checked(
        tuple(
            f"with {size} rows others have other bits"
            for size in sizes
            if not np.array_equal(rows_of(encoder, rows[:size]), whole[:size])
        )
    )


def batched_product() -> Trial:
    """A product of floats over several rows: a row's last bits depend on how many come with it."""
    return Trial(
        name="adaptive: BLAS in the row function",
        broken=partial(_batches, _by_product),
        ours=partial(_batches, _by_encoder),
    )


def trials() -> tuple[Trial, ...]:
    """What could go wrong between one measurement and the next."""
    return (*used_and_not_published(), *unpaid(), unclipped(), batched_product())
