"""Learning where one matrix is measured: what is charged, when, what one row can move, an audit with power.

With a public radius, or noise of another kind than those of an adaptive release (test_adaptive.py).

Exactly: one row moves each histogram by one cell. Statistically: releases of two neighbours cannot be told
apart better than promised, bounds taken from the data are caught, and so is noise that is too small.
"""

from __future__ import annotations

import contextlib
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.flat import publish
from tests.flat import request as requested
from tests.flat import rules as row_rules

from dpgram.audit import audit
from dpgram.core import sums as exact_counts
from dpgram.core.accounting import Price
from dpgram.core.noise import Entropy, SeededEntropy
from dpgram.core.sums import octave_places
from dpgram.document.coordinates import Coordinates
from dpgram.document.fields import (
    Measured,
    MeasuredBins,
    MeasuredLevels,
    MeasuredOctaves,
    MeasuredRows,
)
from dpgram.document.measurements import unresolved
from dpgram.document.octaves import OctaveRun
from dpgram.engines.local import add_up
from dpgram.engines.passes import Pass
from dpgram.errors import (
    BudgetExceeded,
    DpgramError,
    DpgramWarning,
    GuaranteeError,
    LearningError,
    OptionsError,
    ReleaseError,
    SchemaError,
)
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.accountant import (
    ApproximateEvent,
    GaussianEvent,
    PureEvent,
    curve_of,
    describe,
    parts_of,
    price,
)
from dpgram.privacy.count_noise import CountLaw, CountNoise, count_event, level_threshold, price_of_counts
from dpgram.privacy.curves.calibrate import discrete_mu_at_most
from dpgram.privacy.ledger import Ledger
from dpgram.publishing import _learning as learning
from dpgram.publishing._bounds import rows_needed
from dpgram.publishing._learning import LearntFacts, calibrate_learning, learnt_terms
from dpgram.publishing.measurements import counts as measured_counts
from dpgram.publishing.measurements.base import cost_of
from dpgram.release import Release
from dpgram.rows.encoder import Encoder
from dpgram.schema import Categorical, Numeric, Schema, categorical, legendre, numeric
from dpgram.sums.clip import ClipStatistic
from dpgram.sums.counts import BinsStatistic, OctavesStatistic, RowsStatistic
from dpgram.sums.histograms import HistogramColumn, HistogramsStatistic
from dpgram.sums.levels import LevelsStatistic
from dpgram.sums.zoom import ZOOM_STEPS, zoom_steps

OPEN = Schema(numeric("x"), numeric("y"), categorical("g"))
NUMBERS = Schema(numeric("x"), numeric("y"))
RADIUS = 1.7
"""A public one, hardly less than the longest row of two columns: with it one matrix is measured."""


def people(rows: int = 3_000, seed: int = 0) -> pa.Table:
    draw = np.random.default_rng(seed)
    x = draw.normal(100.0, 5.0, rows)
    return pa.table(
        {
            "x": x,
            "y": 2.0 * x + draw.normal(0.0, 3.0, rows),
            "g": draw.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2]),
        }
    )


def released(table: Any, schema: Schema = OPEN, **options: Any) -> Release:
    given: dict[str, Any] = {"bounds_budget": 0.2, "clip": RADIUS, "entropy": SeededEntropy(1)}
    if schema.without_levels:
        given["levels_budget"] = 0.1
    asked = {"epsilon": 1.0, "delta": 1e-5, "progress": False, "threads": 1} | given | options
    return publish(table, schema, **asked)


def rows_for(columns: int, *, epsilon: float = math.log(3.0), relation: str = "add-remove") -> float:
    """How many rows learning so many open columns takes, at δ = 10⁻⁵ and a fifth of the budget."""
    schema = Schema(*(numeric(f"x{place}") for place in range(columns)))
    options: Any = {"adjacency": relation, "bounds_budget": 0.2, "clip": RADIUS}
    plan = calibrate_learning(requested(schema, epsilon=epsilon, delta=1e-5, **options), None)
    assert plan.octaves is not None
    return rows_needed(plan.octaves, columns)


M = TypeVar("M", bound=Measured)


def of_kind(release: Release, kind: type[M]) -> M:
    """The one measurement of this kind."""
    (found,) = (each for each in release.measured if isinstance(each, kind))
    return found


class TestRelease:
    @pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
    @pytest.mark.parametrize(("delta", "schema"), [(1e-5, OPEN), (1e-5, NUMBERS), (0.0, NUMBERS)])
    def test_it_survives_a_round_trip_and_says_what_was_learnt(
        self, relation: str, delta: float, schema: Schema
    ) -> None:
        release = released(people(), schema, delta=delta, adjacency=relation)
        assert Release.from_json(release.to_json()) == release
        assert release.guarantee.epsilon == 1.0
        assert release.guarantee.delta == delta
        rows = [] if relation == "replace-one" else ["MeasuredRows"]
        levels = ["MeasuredLevels"] if schema.without_levels else []
        kinds = [*rows, *levels, "MeasuredOctaves", "MeasuredBins"]
        assert [type(each).__name__ for each in release.measured] == kinds
        assert release.learnt is None
        for columns in (of_kind(release, MeasuredOctaves).columns, of_kind(release, MeasuredBins).columns):
            assert [each.column for each in columns] == ["x", "y"]
        assert not release.schema.unbounded
        x = release.schema.column("x")
        assert isinstance(x, Numeric)
        assert x.bounds[0] < 100.0 < x.bounds[1]
        assert release.public_rows == (3_000 if relation == "replace-one" else None)
        assert release.radius**2 <= release.schema.max_norm_squared
        assert f"x in [{x.bounds[0]:.4g}, {x.bounds[1]:.4g}]" in " ".join(str(release).split())
        assert ("learnt levels" in str(release)) == bool(schema.without_levels)

    def test_a_fit_is_close_and_stays_inside_the_learnt_bounds(self) -> None:
        fit = released(people(20_000)).regress("y")
        assert fit.fitted_params["x"] == pytest.approx(2.0, abs=0.3)
        y = fit.moments.schema.column("y")
        assert isinstance(y, Numeric)
        low, high = y.bounds
        far = fit.predict({"x": [-1e9, 1e9], "g": ["a", "a"]})
        assert low <= far.min() <= far.max() <= high

    @pytest.mark.parametrize(
        ("kind", "factor"),
        [
            (MeasuredRows, 0.2),
            (MeasuredLevels, 0.5),
            (MeasuredOctaves, 0.5),
            (MeasuredBins, 0.5),
        ],
    )
    def test_a_part_with_less_noise_than_the_guarantee_allows_is_refused(
        self, kind: type[Measured], factor: float
    ) -> None:
        release = released(people())
        weak = tuple(
            msgspec.structs.replace(each, scale=each.scale * factor) if isinstance(each, kind) else each
            for each in release.measured
        )
        with pytest.raises(ReleaseError):
            msgspec.structs.replace(release, measurements=weak)

    def test_what_varies_little_beside_its_size_is_found_or_called_too_wide(self) -> None:
        """A year is resolved by closer looks; a constant never is. Rare ones stand out of the noise."""
        draw = np.random.default_rng(3)
        table = pa.table(
            {
                "year": draw.integers(1_990, 2_000, 5_000).astype(float),
                "rare": draw.random(5_000) < 0.05,
                "constant": np.full(5_000, 17.3),
            }
        )
        with pytest.warns(DpgramWarning, match="the bounds learnt for 'constant'") as said:
            release = released(table, Schema(*map(numeric, table.column_names)))
        assert len(said) == 1
        assert unresolved(release) == ("constant",)
        assert "constant" in release.regress("rare").cautions[-1]
        year, rare = (release.schema.column(name) for name in ("year", "rare"))
        assert isinstance(year, Numeric)
        assert isinstance(rare, Numeric)
        assert 1_975 < year.bounds[0] < 1_990 < 1_999 < year.bounds[1] < 2_014
        assert rare.bounds[0] <= 0.0 < 0.1 < rare.bounds[1]

    def test_one_look_would_not_find_a_year(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(learning, "zoom_steps", lambda _law: 1)
        monkeypatch.setattr(measured_counts, "zoom_steps", lambda _law: 1)
        years = np.random.default_rng(3).integers(1_990, 2_000, 5_000).astype(float)
        with pytest.warns(DpgramWarning, match="the bounds learnt for 'year'"):
            released(pa.table({"year": years}), Schema(numeric("year")))

    @pytest.mark.parametrize("clip", [RADIUS, 1.2])
    def test_columns_stay_within_one_and_their_octaves(self, clip: float) -> None:
        """So a public radius keeps its meaning."""
        schema = Schema(numeric("x"), numeric("y"), legendre("x", 2))
        release = released(people(20_000), schema, clip=clip)
        assert [column.weight for column in release.schema.columns] == [1.0] * 3
        assert release.radius == clip
        x = release.schema.column("x")
        assert isinstance(x, Numeric)
        octaves = of_kind(release, MeasuredOctaves).columns[0]
        low, high = OctaveRun(first=octaves.first, last=octaves.first + len(octaves.cells) - 1).bounds
        assert low <= x.bounds[0] < x.bounds[1] <= high

    def test_a_release_that_hides_its_learning_is_refused(self) -> None:
        release = released(people(), OPEN)
        with pytest.raises(ReleaseError):
            msgspec.structs.replace(release, measurements=None)
        for kind in (MeasuredLevels, MeasuredOctaves, MeasuredBins):
            fewer = tuple(each for each in release.measured if not isinstance(each, kind))
            with pytest.raises(ReleaseError):
                msgspec.structs.replace(release, measurements=fewer)

    def test_same_bits_for_every_batching_and_source(self, tmp_path: Path) -> None:
        import pyarrow.parquet as pq

        table = people()
        pq.write_table(table, tmp_path / "t.parquet", row_group_size=700)
        ours = released(table)
        assert ours.published == released(tmp_path / "t.parquet").published
        assert ours.published == released(table.to_pandas()).published


class TestCharge:
    """The whole price at once. A stop costs what was drawn alone."""

    def ledger(self, folder: Path, **options: Any) -> Ledger:
        given = {"name": "a", "epsilon": 3.0, "delta": 1e-4} | options
        return Ledger.create(folder / "a.ledger", **given)

    def test_one_event_pays_for_everything(self, tmp_path: Path) -> None:
        book = self.ledger(tmp_path)
        release = released(people(), NUMBERS, ledger=book, entropy=None)
        (entry,) = book.history()
        assert [entry.event] == [each.event for each in release.receipts]
        assert isinstance(entry.event, GaussianEvent)
        assert entry.event.mu == pytest.approx(release.guarantee.mu, rel=1e-12)
        assert curve_of(entry.event).delta(1.0) <= 1e-5
        assert entry.closed
        assert 0 <= entry.given_back < entry.amount / 10**9
        assert book.verify([release]).unclaimed == ()

    def test_levels_add_their_delta(self, tmp_path: Path) -> None:
        book = self.ledger(tmp_path, delta_reserved=1e-5)
        release = released(people(), OPEN, ledger=book, entropy=None)
        assert release.receipt is not None
        event = release.receipt.event
        leaks = [part.delta for part in parts_of(event) if isinstance(part, ApproximateEvent)]
        assert leaks == [pytest.approx(1e-6)]
        assert curve_of(event).delta(1.0) <= 1e-5
        (entry,) = book.history()
        assert entry.delta_given_back == 0

    def test_pure_learning_charges_epsilon(self, tmp_path: Path) -> None:
        book = self.ledger(tmp_path, delta=0.0)
        release = released(people(), NUMBERS, delta=0.0, ledger=book, entropy=None)
        (entry,) = book.history()
        assert release.receipt is not None
        assert entry.event == release.receipt.event
        assert isinstance(entry.event, PureEvent)
        assert 0.99999 < entry.event.epsilon <= 1.0

    def test_a_ledger_with_too_little_is_refused_before_a_row_is_read(self, tmp_path: Path) -> None:
        book = self.ledger(tmp_path, epsilon=0.5)
        before, there = book.path.read_bytes(), set(tmp_path.iterdir())
        with pytest.raises(BudgetExceeded):
            released(tmp_path / "no such file.csv", NUMBERS, ledger=book, entropy=None)
        assert book.path.read_bytes() == before
        assert set(tmp_path.iterdir()) == there

    def test_public_rows_refuse_before_spending(self, tmp_path: Path) -> None:
        book = self.ledger(tmp_path)
        before = book.path.read_bytes()
        with pytest.raises(LearningError, match="nothing was spent") as caught:
            released(people(50), NUMBERS, ledger=book, entropy=None, rows=50)
        assert caught.value.spent is None
        assert book.path.read_bytes() == before

    def test_replace_one_refuses_before_spending(self, tmp_path: Path) -> None:
        book = self.ledger(tmp_path, adjacency="replace-one")
        before = book.path.read_bytes()
        with pytest.raises(LearningError, match="nothing was spent"):
            released(people(50), NUMBERS, ledger=book, entropy=None, adjacency="replace-one")
        assert book.path.read_bytes() == before

    def stopped(self, book: Ledger, table: pa.Table, **options: Any) -> LearningError:
        """What stopped it, for the price of rows and octaves and with nothing left beside the ledger."""
        there = set(book.path.parent.iterdir())
        with pytest.raises(LearningError, match="the budget was spent") as caught:
            released(table, NUMBERS, ledger=book, entropy=None, **options)
        asked = {"epsilon": 1.0, "delta": 1e-5, "bounds_budget": 0.2, "clip": RADIUS} | options
        calibration = calibrate_learning(requested(NUMBERS, **asked), None)
        (entry,) = book.history()
        assert entry.event == calibration.price
        spent = caught.value.spent
        assert isinstance(spent, GaussianEvent)
        assert describe(spent) in str(caught.value)
        assert entry.closed
        assert entry.cost == price(spent, "mu2").amount
        # Rows and octaves: 5% of the bounds' fifth, and half of what is left; under replace-one no rows.
        shares = 0.1 if calibration.count is None else 0.01 + 0.095
        assert float(entry.cost / entry.amount) == pytest.approx(shares, abs=1e-6)
        assert set(book.path.parent.iterdir()) == there
        return caught.value

    def test_too_few_rows_give_the_rest_back(self, tmp_path: Path) -> None:
        book = self.ledger(tmp_path)
        told = self.stopped(book, people(50))
        assert "Rows(expected=…) makes such a refusal free" in str(told)
        # What is left pays for a release: the same call again starts anew, and is charged in full.
        release = released(people(), NUMBERS, ledger=book, entropy=None)
        assert [each.entry for each in release.receipts] == [3]

    @pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
    def test_a_hidden_column_gives_the_rest_back(
        self, relation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Enough rows, but values of one column over 600 powers of two, none of which stands out."""
        # By design noise alone makes an octave stand out in one table of a hundred.
        monkeypatch.setattr("dpgram.publishing._bounds._FALSE_ALARM", 1e-9)
        book = self.ledger(tmp_path, adjacency=relation)
        table = people()
        spread = pa.array(2.0 ** np.linspace(-300.0, 300.0, len(table)))
        told = self.stopped(book, table.set_column(1, "y", spread), adjacency=relation)
        assert "noise hides the values of column 'y'" in str(told)

    def test_a_refusal_says_how_many_open_columns_would_do(self) -> None:
        many = Schema(*(numeric(f"x{place}") for place in range(12)))
        with pytest.raises(LearningError, match="enough for") as caught:
            released(pa.table({name: [1.0] for name in many.source_columns}), many, rows=500)
        (enough,) = map(int, re.findall(r"enough for (\d+) open", str(caught.value)))
        assert rows_for(enough, epsilon=1.0) <= 500 < rows_for(enough + 1, epsilon=1.0)

    @pytest.mark.parametrize(
        ("columns", "relation", "wanted"),
        [
            (9, "add-remove", 600),
            (20, "add-remove", 930),
            (9, "replace-one", 830),
            (20, "replace-one", 1_280),
        ],
    )
    def test_the_rows_that_the_documents_name(self, columns: int, relation: str, wanted: int) -> None:
        """docs/how-to/no-bounds.md and proofs/bounds.md, rounded to tens."""
        assert rows_for(columns, relation=relation) == pytest.approx(wanted, abs=5)

    @pytest.mark.parametrize("action", ["default", "error"])
    @pytest.mark.parametrize("broken", ["report", "progress"])
    def test_what_fails_after_the_charge_does_not_cost_the_release(
        self, tmp_path: Path, broken: str, action: Literal["default", "error"]
    ) -> None:
        """Not even where warnings are errors."""
        book, seen = self.ledger(tmp_path), list[Any]()

        def fails(what: Any) -> None:
            seen.append(what)
            if book.history() if broken == "progress" else what.measured:
                raise RuntimeError("the disk is full")

        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter(action)
            release = released(people(), NUMBERS, ledger=book, entropy=None, **{broken: fails})
        assert release.receipt is not None
        assert Release.from_json(release.to_json()) == release
        assert seen
        if broken == "report":
            assert [report.measured for report in seen] == [release.measured]
            assert seen[0].counts.rows_used == 3_000
            assert len(said) == (1 if action == "default" else 0)

    def test_unreadable_data_costs_nothing(self, tmp_path: Path) -> None:
        book = self.ledger(tmp_path)
        before = book.path.read_bytes()
        with pytest.raises(DpgramError):
            released(pa.table({"x": [[1.0]], "y": [1.0]}), NUMBERS, ledger=book, entropy=None)
        with pytest.raises(OptionsError, match="only once"):
            released(people().to_reader(), OPEN, ledger=book, entropy=None)
        assert book.path.read_bytes() == before

    @pytest.mark.parametrize(
        ("options", "kind"),
        [
            ({"bounds_budget": None}, SchemaError),
            ({"bounds_budget": 1.5}, GuaranteeError),
            ({"bounds_budget": 0.9}, GuaranteeError),
            ({"mechanism": "wishart", "schema": OPEN}, OptionsError),
            ({"strict": True}, OptionsError),
        ],
    )
    def test_what_cannot_be_is_refused(self, options: dict[str, Any], kind: type[DpgramError]) -> None:
        with pytest.raises(kind):
            released(people(), **{"schema": NUMBERS} | options)

    @pytest.mark.parametrize("mechanism", ["wishart", "laplace", "sketch"])
    def test_other_mechanisms_learn_too(self, mechanism: str, tmp_path: Path) -> None:
        """Pure counts beside them: the ε and δ of all parts add up to what was asked."""
        book = self.ledger(tmp_path, epsilon=10.0, delta_reserved=9e-5)
        release = released(people(), NUMBERS, mechanism=mechanism, ledger=book, entropy=None)
        assert {each.law for each in release.measured} == {"discrete-laplace"}
        assert release.mechanism.name == mechanism
        parts = [part for each in release.receipts for part in parts_of(each.event)]
        assert sum(Fraction(getattr(part, "epsilon", 0.0)) for part in parts) <= 1
        assert sum(Fraction(getattr(part, "delta", 0.0)) for part in parts) <= Fraction(1e-5)

    def test_open_levels_need_a_share_and_a_delta(self) -> None:
        with pytest.raises(SchemaError, match=r"Adaptive\(levels=0.1\)"):
            released(people(), OPEN, levels_budget=None)
        with pytest.raises(DpgramError, match="delta = 0"):
            released(people(), OPEN, delta=0.0)


class TestSensitivity:
    @settings(max_examples=30, deadline=None)
    @given(
        x=st.floats() | st.none(),
        y=st.floats() | st.none(),
        g=st.text(max_size=3) | st.none(),
    )
    def test_one_row_moves_one_cell_of_each_histogram(
        self, x: float | None, y: float | None, g: str | None
    ) -> None:
        base = people(5)
        row = pa.table({"x": pa.array([x], pa.float64()), "y": pa.array([y], pa.float64()), "g": [g]})
        row = row.cast(base.schema)
        first, second = (histograms(table) for table in (base, pa.concat_tables([base, row])))
        for name in ("rows", "octaves", "bins", "nodes", "reach", "clip"):
            step = second[name] - first[name]
            assert step.min() >= 0
            assert step.sum(axis=1).max() <= ROW_NORM_SQUARED
        assert (second["levels"] - first["levels"]).total() <= ROW_NORM_SQUARED
        assert (first["levels"] - second["levels"]).total() == 0

    def test_a_row_that_counts_twice_would_be_seen(self) -> None:
        base = people(5)
        twice = pa.concat_tables([base, base.slice(0, 1), base.slice(0, 1)])
        for name, counts in histograms(twice).items():
            step = counts - histograms(base)[name]
            total = step.total() if name == "levels" else step.sum(axis=1).max()
            assert total == 2 * ROW_NORM_SQUARED


def histograms(table: pa.Table) -> dict[str, Any]:
    """All exact counts that are measured before a matrix, in lattice units."""
    bounds = {"x": (90.0, 110.0), "y": (180.0, 220.0)}
    known = OPEN.with_bounds(bounds).with_levels({"g": ("a", "b")})
    names = ("x", "y")
    first = Pass(
        rules=row_rules(OPEN),
        statistics=(
            RowsStatistic(names),
            OctavesStatistic(names),
            BinsStatistic(names, tuple(bounds.values())),
            LevelsStatistic(("g",)),
        ),
    )
    turned = np.eye(known.width) - 0.3 * np.tri(known.width, k=-1)
    encoder = Encoder(known, clip=1.0, coordinates=Coordinates.nearest(turned))
    columns = tuple(HistogramColumn(name=name, bounds=ends) for name, ends in bounds.items())
    later = Pass(
        rules=row_rules(known),
        statistics=(
            HistogramsStatistic((*columns, HistogramColumn(name="g", bounds=None, levels=2))),
            ClipStatistic(encoder),
            ClipStatistic(encoder, reach=True),
        ),
    )
    rows, octaves, bins, levels = add_up(table, first, threads=1, progress=False)
    nodes, clip, reach = add_up(table, later, threads=1, progress=False)
    found: dict[str, Any] = {"rows": rows, "octaves": octaves, "bins": bins, "nodes": nodes}
    found |= {"clip": clip, "reach": reach}
    return {name: each.cells for name, each in found.items()} | {"levels": Counter(levels.cells[0])}


class TestNoise:
    @pytest.mark.parametrize("law", ["discrete-gaussian", "discrete-laplace"])
    @pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (0.7, False), (1.3, False)])
    def test_the_law_of_the_counts(self, law: CountLaw, factor: float, accepted: bool) -> None:
        """Kolmogorov–Smirnov at α = 10⁻⁴ on 10,000 draws: 30% too little or too much is rejected."""
        scale = 20.0 * ROW_NORM_SQUARED
        drawn = CountNoise(law=law, scale=scale * factor).draw(np.zeros(10_000, np.int64), SeededEntropy(8))
        claimed = stats.norm(scale=scale) if law == "discrete-gaussian" else stats.laplace(scale=scale)
        p_value = stats.kstest(drawn.astype(float), claimed.cdf).pvalue
        assert (p_value > 1e-4) == accepted

    def test_a_level_of_one_row_is_published_with_at_most_delta(self) -> None:
        noise, delta = CountNoise(law="discrete-gaussian", scale=4.0 * ROW_NORM_SQUARED), 0.02
        threshold = level_threshold(noise, delta, 2)
        drawn = noise.draw(np.full((20_000, 2), ROW_NORM_SQUARED), SeededEntropy(9))
        seen = float((drawn >= threshold).any(axis=1).mean())
        assert 0.8 * delta < seen < 1.2 * delta
        lower = float((drawn >= threshold - ROW_NORM_SQUARED).any(axis=1).mean())
        assert lower > 1.4 * delta  # a threshold one row lower would be caught

    def test_only_levels_of_the_data_appear_and_rare_ones_do_not(self) -> None:
        table = people()
        rare = pa.table({"x": [100.0], "y": [200.0], "g": ["only one"]}).cast(table.schema)
        release = released(pa.concat_tables([table, rare]))
        group = release.schema.column("g")
        assert isinstance(group, Categorical)
        assert group.levels == ("a", "b", "c")


EPSILON, DELTA, RUNS, LONG = 10.0, 1e-4, 150, 3_000


@pytest.mark.filterwarnings("ignore:the bounds learnt:dpgram.errors.DpgramWarning")  # true of some draws
class TestAudit:
    """70 rows near 80, and one more at the far end of their octave."""

    @pytest.fixture(autouse=True)
    def one_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Finding the libraries whose threads to limit takes most of the time of so small a release."""
        monkeypatch.setattr("threadpoolctl.threadpool_limits", lambda **_: contextlib.nullcontext())

    def sides(self) -> tuple[pa.Table, pa.Table]:
        values = np.linspace(65.0, 100.0, 70)
        return pa.table({"x": np.append(values, 127.0)}), pa.table({"x": values})

    def run(self, side: pa.Table) -> Callable[[Entropy], Release | None]:
        schema = Schema(numeric("x"))

        def once(entropy: Entropy) -> Release | None:
            try:
                return publish(
                    side,
                    schema,
                    epsilon=EPSILON,
                    delta=DELTA,
                    bounds_budget=0.4,
                    clip=1.4,
                    entropy=entropy,
                    threads=1,
                    progress=False,
                )
            except LearningError:  # rare, and as good an answer as any other: an attacker sees it too
                return None

        return once

    def found(self, runs: int, seed: int) -> bool:
        a, b = self.sides()

        def measured(releases: Any) -> Any:
            return np.array([self.measure(release) for release in releases])

        names = ("count", "octave", "last bins", "counts together", "low", "high", "matrix")
        result = audit(
            self.run(a),
            self.run(b),
            runs=runs,
            delta=DELTA,
            statistic=measured,
            names=names,
            entropy=SeededEntropy(seed),
        )
        one = self.run(a)(SeededEntropy(0))
        assert one is not None
        assert one.guarantee.mu is not None
        return bool(result.passes(curve_of(GaussianEvent(mu=one.guarantee.mu))))

    def measure(self, release: Release | None) -> list[float]:
        """What tells the two sides apart best in each part, as far as one number can."""
        if release is None:
            return [0.0] * 7
        x = release.schema.column("x")
        assert isinstance(x, Numeric)
        number, octaves = of_kind(release, MeasuredRows), of_kind(release, MeasuredOctaves)
        bins = of_kind(release, MeasuredBins)
        one = octaves.columns[0]
        place = int(octave_places(np.array([127.0]))[0]) - one.first
        octave = int(one.cells[place]) if 0 <= place < len(one.cells) else 0
        extra = np.array([1.0, x.weight * np.clip((127.0 - x.centre) / x.half_width, -1.0, 1.0)])
        extra /= np.linalg.norm(extra)
        counts = (
            int(number.cell),
            octave,
            sum(int(look.bins[-1]) for look in bins.columns[0].looks),
        )
        scales = (number.scale, octaves.scale, bins.scale)
        rows = [count / ROW_NORM_SQUARED for count in counts]
        return [
            *rows,
            # Single cells, each as its noise deserves: the best test of all of them together.
            sum(row * (ROW_NORM_SQUARED / scale) ** 2 for row, scale in zip(rows, scales, strict=True)),
            # A rare false alarm makes bounds of any size; they tell nothing more.
            *np.clip(x.bounds, -1e3, 1e3).tolist(),
            float(extra @ release.matrix() @ extra) / release.radius**2,
        ]

    @pytest.mark.parametrize("runs", [RUNS, pytest.param(LONG, marks=pytest.mark.full)])
    def test_the_whole_pipeline_keeps_its_promise(self, runs: int) -> None:
        assert self.found(runs=runs, seed=1)

    def test_bounds_from_the_data_are_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[float] = []
        honest = exact_counts.bin_places

        def spying(values: Any, low: float, high: float, bins: int) -> Any:
            seen[:] = [float(values.min()), float(values.max())]
            return honest(values, low, high, bins)

        monkeypatch.setattr(exact_counts, "bin_places", spying)
        monkeypatch.setattr(
            learning,
            "fine_bounds",
            lambda _bins, low, high, **_: (max(low, min(seen[0], high - 1.0)), min(high, seen[1])),
        )
        assert not self.found(runs=RUNS, seed=2)

    @pytest.mark.parametrize("factor", [0.25, pytest.param(0.5, marks=pytest.mark.full)])
    def test_too_little_noise_is_caught(self, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
        """A quarter of the noise in a short look, half of it in a long one."""
        honest = CountNoise.draw

        def weak(self: CountNoise, counts: Any, entropy: Entropy) -> Any:
            return honest(CountNoise(law=self.law, scale=self.scale * factor), counts, entropy)

        monkeypatch.setattr(CountNoise, "draw", weak)
        assert not self.found(runs=2 * RUNS if factor < 0.4 else LONG, seed=3)


def test_the_shares_add_up_exactly() -> None:
    release = released(people(), NUMBERS)
    sigma = release.mechanism.parameters["sigma"]
    assert release.guarantee.mu is not None
    whole = release.guarantee.mu**2
    drawn = {"rows": 1, "octaves": 2, "bins": 2 * ZOOM_STEPS}
    shares = {
        type(each).__name__.removeprefix("Measured").lower(): (
            drawn[type(each).__name__.removeprefix("Measured").lower()]
            * (ROW_NORM_SQUARED / each.scale) ** 2
            / whole
        )
        for each in release.measured
    }
    for each, share in zip(release.measured, shares.values(), strict=True):
        assert each.share == pytest.approx(share, abs=1e-6)
    shares["matrix"] = (ROW_NORM_SQUARED / float(sigma)) ** 2 / whole
    assert shares["matrix"] == pytest.approx(0.8, abs=1e-6)
    assert shares["octaves"] == pytest.approx(shares["bins"], rel=1e-6)
    assert shares["octaves"] + shares["bins"] + shares["rows"] == pytest.approx(0.2, abs=1e-6)
    assert math.fsum(shares.values()) <= 1.0 + 1e-12


SHARES = st.floats(min_value=0.0, max_value=1.0, exclude_min=True, exclude_max=True)


@given(
    bounds=st.none() | SHARES,
    levels=st.none() | SHARES,
    relation=st.sampled_from(["add-remove", "replace-one"]),
    mechanism=st.sampled_from(["gaussian", "matrix-laplace", "laplace", "wishart"]),
    epsilon=st.floats(1e-3, 20.0),
    delta=st.sampled_from([5e-324, 1e-12, 1e-6, 1e-3]),
)
@example(
    bounds=None, levels=0.6, relation="add-remove", mechanism="matrix-laplace", epsilon=1.0, delta=1e-6,
)  # fmt: skip
@example(
    bounds=None, levels=0.7, relation="add-remove", mechanism="gaussian", epsilon=1.0, delta=1e-6,
)  # fmt: skip
@settings(max_examples=150, deadline=None)
@pytest.mark.filterwarnings("ignore:(epsilon|delta) = :dpgram.errors.DpgramWarning")
def test_whatever_the_shares_all_noise_is_positive_and_paid_for(
    bounds: float | None,
    levels: float | None,
    relation: Any,
    mechanism: str,
    epsilon: float,
    delta: float,
) -> None:
    """Refused before anything is charged, or every scale positive and the exact sum within the guarantee."""
    schema = Schema(
        numeric("x", 0, 1),
        *([numeric("y")] if bounds is not None else []),
        *([categorical("g")] if levels is not None else []),
    )
    try:
        request = requested(
            schema,
            epsilon=epsilon,
            delta=delta,
            adjacency=relation,
            mechanism=mechanism,
            bounds_budget=bounds,
            levels_budget=levels,
            clip=1.0,
        )
        if not request.split:
            return
        plan = calibrate_learning(request, None)
    except GuaranteeError:  # anything else, such as parts that cost more than the whole, is a mistake
        return
    except OptionsError:
        pure_counts_only = mechanism == "wishart" and levels is not None
        assert pure_counts_only
        return
    law: CountLaw = "discrete-gaussian" if mechanism == "gaussian" else "discrete-laplace"
    drawn = {
        "count": (plan.count, 1), "octaves": (plan.octaves, 1), "bins": (plan.bins, zoom_steps(law)),
        "levels": (plan.levels, 1),
    }  # fmt: skip
    wanted = {
        "count": relation == "add-remove", "octaves": bounds is not None, "bins": bounds is not None,
        "levels": levels is not None,
    }  # fmt: skip
    steps = {"add-remove": 1, "replace-one": 2}[relation]
    price = Fraction(0)
    for name, (noise, histograms) in drawn.items():
        assert (noise is not None) == wanted[name]
        if noise is not None:
            assert noise.law == law
            assert 0.0 < noise.scale < math.inf
            price += price_of_counts(law, noise.scale, histograms=histograms, units_changed=steps)
    known = schema.with_bounds(dict.fromkeys(schema.unbounded, (0.0, 1.0)))
    known = known.with_levels(dict.fromkeys(schema.without_levels, ("a",)))
    learnt = LearntFacts(schema=known, clips=(None,), measured=((),))
    (terms,) = learnt_terms(plan, learnt)
    parts = parts_of(terms.event)
    if law == "discrete-laplace":
        price += sum(Fraction(getattr(part, "epsilon", 0.0)) for part in parts)
        assert price <= Fraction(epsilon)
    else:
        price += sum(Fraction(getattr(part, "mu", 0.0)) ** 2 for part in parts)
        # The event's μ is a float, rounded up; the scales themselves are exact.
        assert price <= Fraction(discrete_mu_at_most(epsilon, delta - plan.level_delta)) ** 2 * (1 + _ULP)
    assert plan.level_delta + sum(getattr(part, "delta", 0.0) for part in parts) <= delta
    # What is charged covers all of it, part by part.
    spent = cost_of(terms.event)
    for name, (noise, histograms) in drawn.items():
        if noise is not None:
            spent += cost_of(count_event(noise, histograms=histograms, units_changed=steps))
            if name == "levels":
                spent += Price(delta=Fraction(plan.level_delta))
    assert spent.within(cost_of(plan.price))


_ULP = Fraction(1, 2**50)
