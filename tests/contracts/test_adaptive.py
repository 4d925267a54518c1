"""The adaptive release: prices that add up, one row a histogram, coordinates from what is published alone."""

from __future__ import annotations

import re
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpgram as dg
from dpgram.analysis.estimand import DEVIATIONS_CAUTION
from dpgram.analysis.moments import Moments
from dpgram.analysis.row_sets import row_sets
from dpgram.core.noise import SeededEntropy
from dpgram.document.fields import (
    LevelHistogram,
    MeasuredClip,
    MeasuredHistograms,
    MeasuredMatrix,
    MeasuredReach,
)
from dpgram.document.measurements import histogram_rows, measured_price
from dpgram.engines import LocalEngine
from dpgram.engines.passes import Pass
from dpgram.errors import DpgramWarning, LearningError, OptionsError
from dpgram.lattice import ROW_NORM_SQUARED, cell_unit
from dpgram.privacy.accountant import ApproximateEvent, curve_of, parts_of, price
from dpgram.publishing import publish_with
from dpgram.publishing._adaptive_prices import calibrate_adaptive
from dpgram.publishing._bounds import rows_needed
from dpgram.publishing._coordinates import PLAIN_BELOW, last_radius, rank, signal, standardising, whitening
from dpgram.publishing.measurements.histograms import Clip
from dpgram.publishing.publisher import named
from dpgram.publishing.request import requested
from dpgram.rows.rules import RowRules
from dpgram.sums.histograms import HistogramColumn, HistogramsStatistic

ROWS = 4_000


def schema(**more: Any) -> dg.Schema:
    return dg.Schema(
        dg.numeric("x", 0, 100),
        dg.numeric("y", -50, 50),
        dg.boolean("b"),
        dg.categorical("g", ["r", "s", "t"]),
        dg.product("x", "y"),
        **more,
    )


def table(rows: int = ROWS, seed: int = 0) -> pa.Table:
    generator = np.random.default_rng(seed)
    x = generator.normal(30, 5, rows)
    y = 0.5 * (x - 30) + generator.normal(0, 2, rows)
    return pa.table(
        {
            "x": x,
            "y": y,
            "b": generator.random(rows) < 0.3,
            "g": np.array(["r", "s", "t"])[generator.integers(0, 3, rows)],
            "who": generator.integers(0, rows // 3, rows),
            "w": generator.uniform(0, 2, rows),
        }
    )


def published(data: Any = None, declared: dg.Schema | None = None, seed: int = 1, **options: Any) -> Any:
    options = {"epsilon": 2.0, "delta": 1e-6, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        return publish_with(
            table() if data is None else data,
            declared or schema(),
            entropy=SeededEntropy(seed),
            progress=False,
            **options,
        )


def one(kind: type, release: dg.Release) -> Any:
    (found,) = [each for each in release.measured if isinstance(each, kind)]
    return found


class TestPrices:
    @pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_everything_together_costs_what_was_asked_for(self, adjacency: str, delta: float) -> None:
        (release,) = published(adjacency=adjacency, delta=delta)
        changed = 1 if adjacency == "add-remove" else 2
        before = measured_price(release, changed)
        if delta:
            own = changed * (ROW_NORM_SQUARED / Fraction(release.noise.sigma)) ** 2
            whole = Fraction(release.guarantee.mu) ** 2
        else:
            own = changed * ROW_NORM_SQUARED * Fraction(release.noise.theta)
            whole = Fraction(release.guarantee.epsilon)
        assert before + own <= whole
        assert before + own >= whole * (1 - Fraction(1, 10**9))
        assert dg.Release.from_json(release.to_json()) == release

    @given(
        histograms=st.floats(0.01, 0.3),
        first=st.just(0.0) | st.floats(1e-6, 0.3),
        clip=st.just(0.0) | st.floats(1e-6, 0.1),
        epsilon=st.floats(0.01, 8.0),
    )
    def test_shares_of_any_size_leave_a_price_for_the_matrix(
        self, histograms: float, first: float, clip: float, epsilon: float
    ) -> None:
        shares = dg.Adaptive(histograms=histograms, first=first, clip=clip)
        request = requested(schema(), epsilon=epsilon, delta=1e-6, adaptive=shares)
        calibration = calibrate_adaptive(request, "gaussian")
        assert calibration.first_price + calibration.rest <= Fraction(calibration.whole)
        assert calibration.rest > 0

    def test_one_charge_covers_everything(self, tmp_path: Any) -> None:
        book = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=3, delta=1e-5)
        release = dg.publish(table(), schema(), epsilon=1, delta=1e-6, ledger=book, progress=False)
        (entry,) = book.history()
        assert [each.event for each in release.receipts] == [entry.event]
        assert release.receipt is not None
        assert release.receipt.event.mu**2 == pytest.approx(release.guarantee.mu**2, rel=1e-9)
        drawn = measured_price(release, 1) + (ROW_NORM_SQUARED / Fraction(release.noise.sigma)) ** 2
        assert entry.closed
        assert drawn <= entry.cost <= drawn * (1 + Fraction(1, 10**9))

    def test_columns_that_cannot_be_read_stop_it_for_a_part_alone(self, tmp_path: Any) -> None:
        data = table().set_column(0, "x", pa.array([None if i % 10 else 30.0 for i in range(ROWS)]))
        book = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=3, delta=1e-5)
        with pytest.raises(LearningError, match=r"column 'x'.*missing") as stopped:
            dg.publish(data, schema(), epsilon=1, delta=1e-6, ledger=book, progress=False)
        (entry,) = book.history()
        assert (entry.closed, entry.cost < entry.amount / 5) == (True, True)
        assert stopped.value.spent is not None
        # The curator may say that so many gaps are right.
        tolerant = dg.Adaptive(loss_at_most=1.0)
        dg.publish(data, schema(), epsilon=0.5, delta=1e-6, ledger=book, adaptive=tolerant, progress=False)
        assert len(book.history()) == 2

    @pytest.mark.parametrize(
        ("columns", "adjacency", "wanted"),
        [
            (9, "add-remove", 580),
            (20, "add-remove", 900),
            (9, "replace-one", 830),
            (20, "replace-one", 1_280),
        ],
    )
    def test_the_rows_that_the_documents_name(self, columns: int, adjacency: Any, wanted: int) -> None:
        """docs/how-to/no-bounds.md, rounded to tens."""
        opened = dg.Schema(*(dg.numeric(f"x{place}") for place in range(columns)))
        request = requested(opened, epsilon=np.log(3.0), delta=1e-5, adjacency=adjacency)
        noise = calibrate_adaptive(request, "gaussian").octaves
        assert noise is not None
        assert rows_needed(noise, columns) == pytest.approx(wanted, abs=5)

    @pytest.mark.parametrize("public", [{"rows": dg.Rows(expected=50)}, {"adjacency": "replace-one"}])
    def test_too_few_public_rows_for_open_columns_cost_nothing(self, public: Any, tmp_path: Any) -> None:
        adjacency = public.get("adjacency", "add-remove")
        book = dg.Ledger.create(tmp_path / "a", name="a", epsilon=3, delta=1e-5, adjacency=adjacency)
        with pytest.raises(LearningError, match="nothing was spent") as stopped:
            dg.publish(
                table(50)[:50], self.OPEN, epsilon=1, delta=1e-6, ledger=book, progress=False, **public
            )
        assert stopped.value.spent is None
        assert book.entries == 0

    OPEN = dg.Schema(dg.numeric("x"), dg.numeric("y"))

    @pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
    def test_a_column_that_noise_hides_costs_a_part_alone(
        self, adjacency: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Values of one column over 600 powers of two, none of which stands out."""
        # By design noise alone makes an octave stand out in one table of a hundred.
        monkeypatch.setattr("dpgram.publishing._bounds._FALSE_ALARM", 1e-9)
        book = dg.Ledger.create(tmp_path / "a", name="a", epsilon=3, delta=1e-5, adjacency=adjacency)
        spread = pa.array(2.0 ** np.linspace(-300.0, 300.0, ROWS))
        data, asked = table(), {"epsilon": 1, "delta": 1e-6, "adjacency": adjacency, "progress": False}
        with pytest.raises(LearningError, match="noise hides the values of column 'y'") as stopped:
            dg.publish(data.set_column(1, "y", spread), self.OPEN, ledger=book, **asked)
        calibration = calibrate_adaptive(
            requested(self.OPEN, epsilon=1, delta=1e-6, adjacency=adjacency), "gaussian"
        )
        (entry,) = book.history()
        assert entry.event == calibration.price
        assert entry.closed
        assert entry.cost == price(stopped.value.spent, "mu2").amount
        assert float(entry.cost / entry.amount) == pytest.approx(0.1, rel=1e-6)  # the share of the octaves
        # What is left pays for a release: the same call again starts anew, and is charged in full.
        release = dg.publish(data, self.OPEN, ledger=book, **asked)
        assert [each.entry for each in release.receipts] == [3]

    def test_levels_add_their_delta(self, tmp_path: Any) -> None:
        book = dg.Ledger.create(tmp_path / "a", name="a", epsilon=3, delta=1e-4, delta_reserved=1e-5)
        opened = dg.Schema(dg.numeric("x", 0, 100), dg.categorical("g"))
        release = dg.publish(table(), opened, epsilon=1, delta=1e-5, ledger=book, progress=False)
        event = release.receipt.event
        leaks = [part.delta for part in parts_of(event) if isinstance(part, ApproximateEvent)]
        assert leaks == [pytest.approx(1e-6)]
        assert curve_of(event).delta(1.0) <= 1e-5


class TestHistograms:
    COLUMNS = (
        HistogramColumn(name="x", bounds=(0.0, 100.0)),
        HistogramColumn(name="y", bounds=(-50.0, 50.0)),
        HistogramColumn(name="b", bounds=None, levels=2),
        HistogramColumn(name="g", bounds=None, levels=3),
    )

    def counted(self, data: pa.Table, rules: RowRules | None = None) -> np.ndarray:
        declared = schema()
        work = Pass(rules=rules or RowRules(schema=declared), statistics=(HistogramsStatistic(self.COLUMNS),))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DpgramWarning)
            (found,) = LocalEngine().add_up(data, work, progress=False)
        return found.cells

    @given(st.integers(0, 59), st.integers(0, 2**32 - 1))
    def test_one_row_adds_one_row_to_each(self, place: int, seed: int) -> None:
        rows = odd_rows(60, seed)
        whole, without = self.counted(rows), self.counted(pa.concat_tables([rows[:place], rows[place + 1 :]]))
        moved = whole - without
        assert (moved >= 0).all()
        assert (moved.sum(axis=1) == ROW_NORM_SQUARED).all()
        assert ((moved > 0).sum(axis=1) <= 2).all()

    def test_a_weighted_row_adds_at_most_one_and_a_unit_one_row(self) -> None:
        rows = dg.Rows(unit="who", weight=dg.numeric("w", 0, 2))
        from dpgram.rows.rules import row_rules

        rules = row_rules(schema(), rows)
        data = table(300)
        whole = self.counted(data, rules)
        for who in range(0, 100, 9):
            kept = data.filter(pa.compute.not_equal(data["who"], who))
            moved = whole - self.counted(kept, rules)
            assert (moved >= 0).all()
            assert (moved.sum(axis=1) <= ROW_NORM_SQUARED).all()

    def test_counts_times_nodes_are_the_sum_of_the_column(self) -> None:
        data = table(500)
        cells = self.counted(data)[0]
        nodes = np.linspace(0.0, 100.0, 17)
        x = data["x"].to_numpy()
        assert cells[:17] @ nodes / ROW_NORM_SQUARED == pytest.approx(x.sum(), rel=1e-8)
        assert cells.sum() == 500 * ROW_NORM_SQUARED

    def test_what_was_lost_is_counted_by_its_kind(self) -> None:
        data = pa.table(
            {
                "x": [1.0, None, float("inf"), -1.0, 101.0, 50.0],
                "y": [0.0] * 6,
                "b": [True, None, False, True, True, False],
                "g": ["r", None, "zz", "s", "t", "r"],
            }
        )
        cells = self.counted(data) // ROW_NORM_SQUARED
        assert cells[0, 17:21].tolist() == [1, 1, 1, 1]
        assert cells[2, :4].tolist() == [2, 3, 1, 0]
        assert cells[3, :5].tolist() == [2, 1, 1, 1, 1]

    def test_the_mean_is_covered_and_a_clip_does_not_touch_it(self) -> None:
        data = table()
        truth = data["x"].to_numpy().mean()
        inside = 0
        for seed in range(60):
            (release,) = published(data, seed=seed, epsilon=1.0)
            low, high = release.histogram("x").mean("table").conf_int()
            inside += low <= truth <= high
        assert 51 <= inside <= 60  # binomial(60, 0.95): 51 to 60 but for one in 500

    def test_noise_of_another_scale_is_noticed(self) -> None:
        """The law of the cells, with power both ways: empty levels hold noise alone."""
        empty = dg.Schema(dg.categorical("g", [f"l{i}" for i in range(400)]))
        data = {"g": ["l0"] * 50}
        (release,) = published(data, empty, adaptive=dg.Adaptive(first=0.0, clip=0.0))
        found = one(MeasuredHistograms, release)
        (histogram,) = found.columns
        assert isinstance(histogram, LevelHistogram)
        noise = np.array([int(cell) for cell in histogram.counts[1:]]) / found.scale
        statistic = float((noise**2).sum())
        # χ² with 399 degrees of freedom lies within 399 ± 4·28 but for one in 10,000; scales 10% off do not.
        assert abs(statistic - 399) < 4 * 28.3
        for factor in (0.8, 1.25):
            assert abs(statistic * factor**2 - 399) > 4 * 28.3


def odd_rows(rows: int, seed: int) -> pa.Table:
    generator = np.random.default_rng(seed)
    x = generator.choice([-1e300, -1.0, 0.0, 6.25, 30.0, 99.999, 100.0, 1e308, np.nan, np.inf, -np.inf], rows)
    y = np.where(generator.random(rows) < 0.5, generator.uniform(-60, 60, rows), x)
    return pa.table(
        {
            "x": x,
            "y": y,
            "b": pa.array([None if u < 0.1 else bool(u < 0.5) for u in generator.random(rows)]),
            "g": pa.array([["r", "s", "t", "zz", None][k] for k in generator.integers(0, 5, rows)]),
        }
    )


class TestCoordinates:
    def test_they_follow_from_what_is_published_alone(self) -> None:
        """T and the radius are recomputed from the file: whatever used the exact rows would differ."""
        (release,) = published()
        histograms, first = one(MeasuredHistograms, release), one(MeasuredMatrix, release)
        rows = histogram_rows(histograms)
        mu, width = release.guarantee.mu, rank(release.schema)
        told = signal(rows, mu, width)
        assert first.coordinates == standardising(release.schema, histograms, told)
        assert release.coordinates == whitening(first, rows)
        counted = one(MeasuredReach, release)
        assert release.radius == last_radius(first, counted, rows=rows, mu=mu, width=width)

    def test_the_matrix_is_that_of_the_table(self) -> None:
        """With hardly any noise and a radius nobody reaches, the encoded matrix is the plain one."""
        data = table()
        (adaptive,) = published(data, epsilon=45.0, delta=0.5)
        (plain,) = published(data, epsilon=45.0, delta=0.5, adaptive=False)
        exact = plain.matrix()
        error = np.abs(adaptive.matrix() - exact).max() / np.abs(exact).max()
        assert error < 0.02
        assert one(MeasuredClip, adaptive).cells[48:] is not None

    @pytest.mark.parametrize("threads", [1, 2])
    @pytest.mark.parametrize("batch", [1_000, 4_000])
    def test_the_same_integers_however_rows_are_read(self, threads: int, batch: int) -> None:
        data = table()
        whole = published(data, engine=LocalEngine(threads=1))
        cut = pa.Table.from_batches(data.to_batches(max_chunksize=batch))
        again = published(cut, engine=LocalEngine(threads=threads))
        order = np.random.default_rng(0).permutation(ROWS)
        shuffled = published(data.take(order), engine=LocalEngine(threads=threads))
        assert whole == again == shuffled

    def test_dask_and_duckdb_give_the_same(self) -> None:
        pytest.importorskip("dask.dataframe")
        import dask.dataframe as dd

        data = table()
        frame = dd.from_pandas(data.to_pandas(), npartitions=3)
        assert published(data) == published(frame, engine="dask")


class TestEverythingElse:
    @pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
    @pytest.mark.parametrize(
        "rows",
        [
            dg.Rows(),
            dg.Rows(unit="who"),
            dg.Rows(unit="who", unit_rows=3),
            dg.Rows(weight=dg.numeric("w", 0, 2)),
            dg.Rows(unit="who", weight=dg.numeric("w", 0, 2), missing="midpoint"),
        ],
        ids=["rows", "persons", "rows a person", "weights", "persons and weights"],
    )
    def test_persons_and_weights(self, rows: dg.Rows, adjacency: str) -> None:
        (release,) = published(rows=rows, adjacency=adjacency)
        assert release.coordinates is not None
        fit = release.regress("y", on=["x"])
        assert fit.values[1] == pytest.approx(0.5, abs=0.1)
        assert dg.Release.from_json(release.to_json()) == release

    def test_groups_have_coordinates_of_their_own_at_one_price(self) -> None:
        found = named(published(rows=dg.Rows(by="g")))
        assert sorted(found) == ["r", "s", "t"]
        assert len({release.coordinates for release in found.values()}) == 3
        assert {release.guarantee.mu for release in found.values()} == {found["r"].guarantee.mu}
        for release in found.values():
            assert release.regress("y", on=["x"]).values[1] == pytest.approx(0.5, abs=0.15)

    @pytest.mark.parametrize("epsilon", [0.05, 1.0])
    def test_blocks_with_pure_noise(self, epsilon: float) -> None:
        """A narrow block gets a small part of what is left, and noise that can still be drawn."""
        declared = dg.Schema(*schema().columns, blocks=[["x"], ["x", "y", "b", "g"]])
        for release in published(declared=declared, epsilon=epsilon, delta=0.0):
            assert release.guarantee.delta == 0.0
            assert dg.Release.from_json(release.to_json()) == release

    def test_blocks_share_the_budget(self) -> None:
        declared = dg.Schema(*schema().columns, blocks=[["x", "y"], ["x", "b", "g"]])
        first, second = published(declared=declared)
        assert first.coordinates is not None
        assert second.coordinates is not None
        assert first.coordinates != second.coordinates
        joint = first.block.joint
        histograms = measured_price(first, 1) - sum(
            (ROW_NORM_SQUARED / Fraction(one(MeasuredMatrix, first).noise.sigma)) ** 2 for _ in range(1)
        )
        own = [
            measured_price(each, 1) + (ROW_NORM_SQUARED / Fraction(each.noise.sigma)) ** 2
            for each in (first, second)
        ]
        shared = one(MeasuredHistograms, first)
        common = len(shared.columns) * (ROW_NORM_SQUARED / Fraction(shared.scale)) ** 2
        assert histograms >= common
        assert sum(own) - common <= Fraction(joint.mu) ** 2
        for each in (first, second):
            assert dg.Release.from_json(each.to_json()) == each

    def test_open_bounds_and_levels_take_the_same_path(self) -> None:
        declared = dg.Schema(dg.numeric("x"), dg.numeric("y", -50, 50), dg.categorical("g"))
        (release,) = published(declared=declared, epsilon=3.0)
        kinds = [type(each).__name__ for each in release.measured]
        assert kinds[:3] == ["MeasuredLevels", "MeasuredOctaves", "MeasuredHistograms"]
        assert release.regress("y", on=["x"]).values[1] == pytest.approx(0.5, abs=0.1)
        assert dg.Release.from_json(release.to_json()) == release

    def test_open_levels_with_pure_noise(self) -> None:
        """One matrix gets all that is left, however many levels are found."""
        declared = dg.Schema(dg.numeric("x", -10, 10), dg.categorical("g"))
        data = pa.table({"x": np.linspace(-1, 1, 3_000), "g": ["a", "b", "c"] * 1_000})
        (release,) = published(data, declared, epsilon=0.2, mechanism="matrix-laplace")
        assert release.guarantee.epsilon == 0.2

    @pytest.mark.parametrize("rows", [0, 1, 30])
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_few_rows_are_never_refused(self, rows: int, delta: float) -> None:
        (release,) = published(table(max(rows, 6))[:rows], epsilon=0.1, delta=delta)
        assert signal(rows, 0.1, release.schema.width) < PLAIN_BELOW
        assert release.coordinates is None
        assert "too few rows" in release.mechanism.choice

    def test_one_plain_matrix_without_it(self) -> None:
        (release,) = published(adaptive=False)
        assert release.measured == ()
        assert release.coordinates is None

    def test_sampled_matrices_keep_to_one(self) -> None:
        (release,) = published(mechanism="wishart")
        assert release.measured == ()

    def test_data_that_can_be_read_once_is_told_what_to_do(self) -> None:
        reader = pa.RecordBatchReader.from_batches(table().schema, table().to_batches())
        with pytest.raises(OptionsError, match="adaptive=False"):
            dg.publish(reader, schema(), epsilon=1, delta=1e-6)


class TestWhatIsSaid:
    def test_a_group_has_its_own_number_of_rows_and_means(self) -> None:
        """Histograms are of each group by itself."""
        generator = np.random.default_rng(2)
        group = np.array(["r", "s"])[(np.arange(ROWS) % 4 == 0).astype(int)]
        x = generator.normal(30, 5, ROWS) + np.where(group == "s", 40.0, 0.0)
        data = pa.table({"x": x, "y": generator.normal(0, 10, ROWS), "g": group})
        declared = dg.Schema(dg.numeric("x", 0, 100), dg.numeric("y", -50, 50))
        rows = dg.Rows(by=dg.categorical("g", ["r", "s"]))
        for release in published(data, declared, rows=rows, epsilon=8.0):
            own = group == release.group.level
            assert release.count() == pytest.approx(own.sum(), rel=0.05)
            assert release.mean()["x"] == pytest.approx(x[own].mean(), abs=3.0)
            assert release.histogram("x").rows == pytest.approx(own.sum(), rel=0.05)

    @pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 1e-6), (4.0, 0.0)])
    def test_a_group_of_few_rows_stands_beside_a_large_one(self, epsilon: float, delta: float) -> None:
        """It keeps the declared columns and pays as much; a level without rows is no different."""
        generator = np.random.default_rng(3)
        group = np.array(["r", "s"])[(np.arange(ROWS) < 6).astype(int)]
        data = pa.table({"x": generator.normal(30, 5, ROWS), "y": generator.normal(0, 10, ROWS), "g": group})
        declared = dg.Schema(dg.numeric("x", 0, 100), dg.numeric("y", -50, 50))
        rows = dg.Rows(by=dg.categorical("g", ["r", "s", "t"]))
        found = named(published(data, declared, rows=rows, epsilon=epsilon, delta=delta))
        assert found["r"].coordinates is not None
        if delta:  # through pure noise six rows may look like more
            assert found["s"].coordinates is found["t"].coordinates is None
        assert found["r"].noise == found["s"].noise == found["t"].noise
        for release in found.values():
            assert dg.Release.from_json(release.to_json()) == release
            price = measured_price(release, 1)
            assert price <= measured_price(found["r"], 1)
        assert found["r"].count() == pytest.approx(ROWS, rel=0.05)

    def test_groups_go_on_after_an_interruption(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ledger = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=3, delta=1e-5)
        asked = {"epsilon": 1.0, "delta": 1e-6, "ledger": ledger, "rows": dg.Rows(by="g"), "progress": False}
        honest, calls = Clip.record, []

        def dies(self: Clip, drawn: Any) -> Any:
            calls.append(self)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return honest(self, drawn)

        monkeypatch.setattr(Clip, "record", dies)
        with pytest.raises(KeyboardInterrupt):
            dg.publish_each(table(), schema(), **asked)
        monkeypatch.setattr(Clip, "record", honest)
        with pytest.warns(dg.DpgramWarning, match="interrupted"):
            found = dg.publish_each(table(), schema(), **asked)
        assert len(ledger.history()) == 1
        ledger.verify(found)

    def test_a_description_says_what_the_clip_touches(self) -> None:
        """Deviations, and neither means nor counts."""
        generator = np.random.default_rng(5)
        data = {name: np.exp(generator.normal(2.0, 1.0, ROWS)).clip(0, 200) for name in "xy"}
        declared = dg.Schema(dg.numeric("x", 0, 200), dg.numeric("y", 0, 200))
        (release,) = published(data, declared)
        clip, *rough = release.describe().cautions
        assert clip == DEVIATIONS_CAUTION
        assert [told.split(" comes from")[0] for told in rough] == ["the mean of x", "the mean of y"]
        (plain,) = published(data, declared, adaptive=False)
        assert plain.describe().cautions == ()

    def test_rows_with_gaps_are_counted_and_are_not_in_the_matrix(self) -> None:
        """The mean of x is of all rows, its deviation of those that have a z: two tables in one line."""
        generator = np.random.default_rng(0)
        x, noise, z = generator.normal(size=(3, 20_000))
        gone = generator.random(len(x)) < 1 / (1 + np.exp(0.6 - 3 * x))
        data = {"x": x, "y": x + noise, "z": np.where(gone, np.nan, z)}
        declared = dg.Schema(dg.numeric("x", -5, 5), dg.numeric("y", -8, 8), dg.numeric("z", -5, 5))
        (release,) = published(data, declared, epsilon=1.0)
        found = release.describe()
        (said,) = (caution for caution in found.cautions if "rows that were read" in caution)
        fit = release.regress("y", on=["x"])
        complete = [int(number.replace(",", "")) for number in re.findall(r"about ([\d,]+)", said)]
        assert complete[0] == pytest.approx(release.count(), abs=1)
        assert complete[1] == pytest.approx((~gone).sum(), rel=0.02)
        assert complete[1] == pytest.approx(fit.nobs, rel=0.02)
        assert f"about {complete[1]:,} have no missing value" in " ".join(str(release).split())
        (plain,) = published(data, declared, epsilon=1.0, adaptive=False)
        assert not plain.describe().cautions
        (filled,) = published(data, declared, epsilon=1.0, rows=dg.Rows(missing="midpoint"))
        assert not any("rows that were read" in caution for caution in filled.describe().cautions)

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"rows": dg.Rows(unit="who")},
            {"rows": dg.Rows(weight=dg.numeric("w", 0, 2))},
            {"rows": dg.Rows(by=dg.categorical("g", ["r", "s", "t"]))},
            {"delta": 0.0, "epsilon": 4.0},
        ],
        ids=["rows", "persons", "weights", "groups", "pure"],
    )
    def test_without_gaps_they_are_the_same_rows(self, options: Any) -> None:
        declared = dg.Schema(dg.numeric("x", 0, 100), dg.numeric("y", -50, 50), dg.boolean("b"))
        for seed in range(8):
            for release in published(table(8_000), declared, seed=seed, **options):
                assert row_sets(release, Moments.of(release)) is None

    def test_whatever_is_not_least_squares_comes_with_a_caution(self) -> None:
        """Also where the clip took less than 1% of all weight: skewed errors move the slope all the same."""
        generator = np.random.default_rng(3)
        x = generator.normal(size=20_000)
        data = {"x": x, "y": np.exp(0.6 * x + generator.normal(size=len(x))).clip(0, 100)}
        slope = np.polyfit(data["x"], data["y"], 1)[0]
        declared = dg.Schema(dg.numeric("x", -6, 6), dg.numeric("y", 0, 100))
        missed = 0
        for seed in range(5):
            (release,) = published(data, declared, epsilon=1.0, seed=seed)
            fit = release.regress("y", on=["x"])
            assert not fit.moments.least_squares
            found = fit.inference("table")
            assert any(caution.startswith("rows far from the others") for caution in found.cautions)
            assert DEVIATIONS_CAUTION in release.describe().cautions
            with pytest.warns(DpgramWarning, match="rows far from the others count less"):
                low, high = fit.conf_int(kind="table")["x"]
            missed += fit.moments.clip.lost < 0.01 and not low <= slope <= high
        assert missed >= 2, "else there was little weight to be wrong about"

    @pytest.mark.parametrize("delta", [1e-6, 0.0])
    def test_few_rows_are_counted_by_the_matrix(self, delta: float) -> None:
        """It clips nothing there and has nearly all of the budget: the histograms said −113 of 42 rows."""
        data = {"x": np.linspace(20.0, 40.0, 42)}
        asked = {"epsilon": 1.0, "delta": delta, "declared": dg.Schema(dg.numeric("x", 0, 88))}
        every = [published(data, seed=seed, **asked)[0] for seed in range(40)]
        plain = [release for release in every if release.coordinates is None]
        assert len(plain) >= 10
        for release in plain:
            unit = cell_unit(release.radius)
            assert release.count() == pytest.approx(int(release.published.cells[0]) * unit)
            assert release.describe().rows.estimate == pytest.approx(release.count())
            assert 0.0 <= release.histogram("x").mean().estimate <= 88.0
        assert np.std([release.count() for release in plain]) < (20.0 if delta else 8.0)

    def test_rows_of_persons_that_count_alike_are_counted_as_rows(self) -> None:
        data = table()
        sizes = np.unique(data["who"].to_numpy(), return_counts=True)[1]
        (release,) = published(data, rows=dg.Rows(unit="who", unit_rows=3), epsilon=8.0)
        assert release.count() == pytest.approx(np.minimum(sizes, 3).sum(), rel=0.05)
        assert release.histogram("x").rows == pytest.approx(len(sizes), rel=0.05)

    def test_the_radius_is_one_of_its_own_coordinates(self) -> None:
        (adaptive,), (plain,) = published(), published(adaptive=False)
        said = " ".join(str(adaptive).split())
        assert "in its own coordinates: longer rows count less (about" in said
        assert "no row is clipped" in str(plain)


def test_weighted_rows_are_counted_by_their_weights_under_either_adjacency() -> None:
    """Where the number of rows is public, it is not what weighted rows amount to."""
    generator = np.random.default_rng(1)
    rows = 20_000
    a, b = generator.normal(size=(2, rows))
    weights = generator.choice([1.0, 20.0], rows, p=[0.97, 0.03])
    data = pa.table({"a": a, "b": b, "y": a - b + generator.normal(size=rows), "w": weights})
    declared = dg.Schema(dg.numeric("a", -5, 5), dg.numeric("b", -5, 5), dg.numeric("y", -12, 12))
    radii = []
    for adjacency, epsilon in (("add-remove", 1.0), ("replace-one", 2.0**0.5)):
        (release,) = publish_with(
            data,
            declared,
            epsilon=epsilon,
            delta=1e-6,
            rows=dg.Rows(weight=dg.numeric("w", 0, 20)),
            adjacency=adjacency,
            entropy=SeededEntropy(2),
            engine=LocalEngine(threads=1),
            progress=False,
        )
        radii.append(release.radius)
    assert radii[1] == pytest.approx(radii[0], rel=0.3)
