"""Learning for persons: every stage sees one row of each, chosen by that person's rows alone.

Exactly: all rows of a person together move each histogram by one cell, whatever they hold. Statistically: a
person's rows cannot be found in a release better than promised, and learning from rows is caught.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flat import publish
from tests.flat import rules as row_rules

from dpgram.audit import audit
from dpgram.core.noise import Entropy, SeededEntropy
from dpgram.core.units import Block
from dpgram.document.coordinates import Coordinates
from dpgram.document.fields import (
    MeasuredClip,
    MeasuredHistograms,
    MeasuredMatrix,
    MeasuredOctaves,
    MeasuredReach,
    MeasuredZoom,
)
from dpgram.document.measurements import histogram_rows
from dpgram.engines.local import add_up
from dpgram.engines.passes import Pass
from dpgram.errors import BudgetExceeded, DpgramError, DpgramWarning, LearningError, LedgerError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.accountant import GaussianEvent, curve_of
from dpgram.privacy.ledger import Ledger
from dpgram.release import Release
from dpgram.rows.batch import CountedRows, Reader
from dpgram.rows.encoder import Encoder
from dpgram.schema import Numeric, Schema, categorical, numeric
from dpgram.sums.clip import ClipStatistic
from dpgram.sums.counts import BinsStatistic, OctavesStatistic, RowsStatistic
from dpgram.sums.histograms import HistogramColumn, HistogramsStatistic
from dpgram.sums.levels import LevelsStatistic

OPEN = Schema(numeric("x"), numeric("y"), categorical("g"))


def visits(persons: int = 3_000, seed: int = 0) -> pa.Table:
    """One to seven visits of each person; ids far from 0, rows in no order."""
    draw = np.random.default_rng(seed)
    who = draw.permutation(np.repeat(np.arange(persons), draw.integers(1, 8, persons)))
    x = draw.normal(100.0, 5.0, len(who))
    return pa.table(
        {
            "x": x,
            "y": 2.0 * x + draw.normal(0.0, 3.0, len(who)),
            "g": draw.choice(["a", "b", "c"], len(who), p=[0.5, 0.3, 0.2]),
            "id": who + 1_000,
            "region": draw.choice(["north", "south"], len(who)),
            "w": draw.uniform(1.0, 4.0, len(who)),
        }
    )


BY, WEIGHT = categorical("region", ["north", "south"]), numeric("w", 0, 4)
SPLITS: dict[str, dict[str, Any]] = {"alike": {}, "in groups": {"by": BY}, "with weights": {"weight": WEIGHT}}


def released(table: Any, **options: Any) -> Release:
    asked: dict[str, Any] = {"bounds_budget": 0.2, "levels_budget": 0.1, "unit": "id"}
    asked |= {"epsilon": 1.0, "delta": 1e-5, "entropy": SeededEntropy(1), "progress": False, "threads": 1}
    return publish(table, OPEN, **asked | options)


def histograms(table: pa.Table, unit: str | None = "id", **split: Any) -> dict[str, Any]:
    """All exact counts that are measured before a matrix, in lattice units."""
    known = OPEN.with_bounds({"x": (90.0, 110.0), "y": (180.0, 220.0)}).with_levels({"g": ("a", "b")})
    names, coarse = ("x", "y"), ((64.0, 128.0), (128.0, 256.0))
    first = Pass(
        rules=row_rules(OPEN, unit=unit, **split),
        statistics=(
            RowsStatistic(names),
            OctavesStatistic(names),
            BinsStatistic(names, coarse),
            LevelsStatistic(("g",)),
        ),
    )
    turned = np.eye(known.width) - 0.3 * np.tri(known.width, k=-1)
    encoder = Encoder(known, clip=1.0, coordinates=Coordinates.nearest(turned))
    columns = tuple(HistogramColumn(name=name, bounds=ends) for name, ends in zip(names, coarse, strict=True))
    last = Pass(
        rules=row_rules(known, unit=unit, **split),
        statistics=(
            HistogramsStatistic((*columns, HistogramColumn(name="g", bounds=None, levels=2))),
            ClipStatistic(encoder),
            ClipStatistic(encoder, reach=True),
        ),
    )
    found: tuple[Any, ...] = (
        *add_up(table, first, threads=1, progress=False),
        *add_up(table, last, threads=1, progress=False),
    )
    rows, octaves, bins, levels, nodes, clip, reach = found
    counts = {"rows": rows, "octaves": octaves, "bins": bins, "nodes": nodes, "clip": clip, "reach": reach}
    return {name: each.cells for name, each in counts.items()} | {"levels": Counter(levels.cells[0])}


COUNTED = ("rows", "octaves", "bins", "nodes", "clip", "reach")
Row = tuple[float | None, float | None, str | None, str | None, float | None]
cells = st.tuples(
    st.floats() | st.none(),
    st.floats() | st.none(),
    st.sampled_from(["a", "b", "z", "", None]),
    st.sampled_from(["north", "south", "elsewhere", None]),
    st.floats() | st.none(),
)


def person(rows: list[Row], like: pa.Schema) -> pa.Table:
    x, y, g, region, w = zip(*rows, strict=True)
    numbers = {name: pa.array(column, pa.float64()) for name, column in (("x", x), ("y", y), ("w", w))}
    named = {"g": list(g), "id": [7] * len(rows), "region": list(region)}
    return pa.table(numbers | named).select(like.names).cast(like)


def moved(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The most by which any histogram changes, in persons: the sum over its cells."""
    steps = [np.abs(one[name] - other[name]).sum(axis=-1).max() for name in one if name != "levels"]
    levels = (one["levels"] - other["levels"]).total() + (other["levels"] - one["levels"]).total()
    return float(max(*steps, levels)) / ROW_NORM_SQUARED


class TestSensitivity:
    @settings(max_examples=60, deadline=None)
    @given(
        rows=st.lists(cells, min_size=1, max_size=9),
        other=st.lists(cells, min_size=1, max_size=9),
        split=st.sampled_from(sorted(SPLITS)),
    )
    def test_all_rows_of_a_person_move_one_cell_of_each_histogram(
        self, rows: list[Row], other: list[Row], split: str
    ) -> None:
        base = visits(5)
        none, one, two = (
            histograms(pa.concat_tables([base, *extra]), **SPLITS[split])
            for extra in ([], [person(rows, base.schema)], [person(other, base.schema)])
        )
        for name in COUNTED:
            assert (one[name] - none[name]).min() >= 0
        assert (none["levels"] - one["levels"]).total() == 0
        assert moved(one, none) <= 1.0
        assert moved(one, two) <= 2.0

    @pytest.mark.parametrize("split", SPLITS)
    def test_rows_would_move_more(self, split: str) -> None:
        """The same test sees learning from rows."""
        base = visits(5)
        rows: list[Row] = [(float(place), 1.0, "a", "north", 4.0) for place in range(1, 6)]
        both = pa.concat_tables([base, person(rows, base.schema)])
        first, second = (histograms(table, unit=None, **SPLITS[split]) for table in (base, both))
        for name in COUNTED:
            assert (second[name] - first[name]).sum(axis=1).max() == 5 * ROW_NORM_SQUARED
        assert (second["levels"] - first["levels"]).total() == 5 * ROW_NORM_SQUARED

    def test_one_row_of_each_person_and_group_would_move_more(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A person has rows in both groups, and may count in one of them only."""
        base = visits(5)
        both = pa.concat_tables(
            [base, person([(1.0, 1.0, "a", where, 4.0) for where in ("north", "south")], base.schema)]
        )
        assert moved(histograms(both, by=BY), histograms(base, by=BY)) == 1.0

        def of_each_group(rows: Block) -> Any:
            _, first = np.unique(np.column_stack([rows.units, rows.groups]), axis=0, return_index=True)
            return np.sort(first)

        monkeypatch.setattr(Block, "once", property(of_each_group))
        assert moved(histograms(both, by=BY), histograms(base, by=BY)) == 2.0

    @settings(max_examples=20, deadline=None)
    @given(seed=st.integers(0, 2**32 - 1))
    def test_order_and_batches_change_nothing(self, seed: int) -> None:
        table = visits(60)
        order = np.random.default_rng(seed).permutation(len(table))
        shuffled = table.take(pa.array(order))
        pieces = pa.concat_tables([shuffled.slice(start, 50) for start in range(0, len(table), 50)])
        for name, counts in histograms(table).items():
            assert np.all(counts == histograms(pieces)[name])

    def test_a_row_without_gaps_is_preferred_and_rows_without_an_id_are_left_out(self) -> None:
        like = visits(5).schema
        gaps: list[Row] = [
            (x, y, g, "north", 1.0)
            for x, y, g in ((None, 1.0, "a"), (float("nan"), 1.0, "a"), (3.0, 4.0, "b"), (5.0, 6.0, None))
        ]
        rules = row_rules(OPEN, unit="id")
        (batch,) = person(gaps, like).to_batches()
        rows = Reader(rules).read(batch)
        (chosen,) = CountedRows(rows, rules).once
        assert rows.numbers[chosen, :2].tolist() == [3.0, 4.0]
        assert rows.texts[0][chosen].as_py() == "b"
        nobody = person(gaps, like).set_column(3, "id", pa.nulls(4, pa.int64()))
        for statistic in (RowsStatistic(("x", "y")), LevelsStatistic(("g",))):
            work = Pass(rules=rules, statistics=(statistic,))
            with pytest.warns(DpgramWarning, match="no row of the data was usable"):
                (found,) = sums = add_up(nobody, work, threads=1, progress=False)
            assert (found.counts.rows_used, found.counts.rows_without_unit) == (0, 4)
            assert (work.rows_read(sums), work.units_read(sums)) == (4, 0)

    @pytest.mark.parametrize(
        "first", [RowsStatistic(("x",)), LevelsStatistic(("g",)), OctavesStatistic(("x",))]
    )
    def test_whatever_is_counted_first_all_rows_and_persons_are_known(self, first: Any) -> None:
        """Under replace-one their number is public, and comes from the first sum of the first pass."""
        table = visits(50)
        work = Pass(rules=row_rules(OPEN, unit="id"), statistics=(first,))
        sums = add_up(table, work, threads=1, progress=False)
        assert (work.rows_read(sums), work.units_read(sums)) == (len(table), 50)


class TestRelease:
    @pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
    def test_it_is_about_persons(self, relation: str) -> None:
        release = released(visits(), adjacency=relation)
        assert Release.from_json(release.to_json()) == release
        assert release.unit == "id"
        assert "'id'" in release.guarantee.statement
        assert release.public_rows == (3_000 if relation == "replace-one" else None)
        (counted,) = (each for each in release.measured if isinstance(each, MeasuredHistograms))
        assert histogram_rows(counted) == pytest.approx(3_000, abs=300)
        x = release.schema.column("x")
        assert isinstance(x, Numeric)
        assert x.bounds == (64.0, 128.0)
        assert release.count() == pytest.approx(3_000, abs=300)

    def test_the_same_bits_from_every_source(self, tmp_path: Path) -> None:
        import pyarrow.csv as pc
        import pyarrow.parquet as pq

        table = visits(1_500)
        pq.write_table(table, tmp_path / "t.parquet", row_group_size=700)
        pc.write_csv(table, tmp_path / "t.csv")
        coded = table.set_column(2, "g", table["g"].dictionary_encode())
        ours = released(table)
        for data in (tmp_path / "t.parquet", tmp_path / "t.csv", table.to_pandas(), coded):
            assert released(data).published == ours.published

    def test_few_persons_with_many_rows_are_too_few(self) -> None:
        draw = np.random.default_rng(1)
        table = pa.table(
            {"x": draw.normal(100, 5, 8_000), "y": draw.normal(9, 1, 8_000), "g": ["a"] * 8_000}
        ).append_column("id", pa.array(np.arange(8_000) % 40))
        with pytest.raises(LearningError, match="noise hides the values of column") as caught:
            released(table)
        assert "the budget was spent" in str(caught.value)
        for public in ({"adjacency": "replace-one"}, {"rows": 40}):
            with pytest.raises(LearningError, match=r"values of 'id'.*nothing was spent"):
                released(table, **public)

    def test_the_ledger_must_be_about_the_same_unit(self, tmp_path: Path) -> None:
        book = Ledger.create(tmp_path / "a.ledger", name="a", epsilon=3.0, delta=1e-4, delta_reserved=1e-5)
        with pytest.raises((LedgerError, BudgetExceeded), match="unit"):
            released(visits(), ledger=book, entropy=None)

    @pytest.mark.parametrize(
        "options", [{"unit": "x"}, {"unit_rows": 0}, {"unit": ""}, {"by": "g"}, {"weight": "x"}]
    )
    def test_what_cannot_be_is_refused(self, options: dict[str, Any]) -> None:
        with pytest.raises(DpgramError):
            released(visits(50), **options)

    def test_a_unit_that_is_no_id_is_refused_before_the_charge(self) -> None:
        table = visits(50).set_column(3, "id", pa.array([[1]] * len(visits(50))))
        with pytest.raises(DpgramError, match="cannot be ids"):
            released(table)
        listed = visits(50).set_column(2, "g", pa.array([[1]] * len(visits(50))))
        with pytest.raises(DpgramError, match="declared categorical"):
            released(listed)

    @pytest.mark.parametrize("unit_rows", [1, 5])
    def test_rows_that_count_alike(self, unit_rows: int) -> None:
        """What is learnt comes from one row of each person; the matrix has up to `unit_rows` of them."""
        release = released(visits(), unit_rows=unit_rows)
        assert release.unit_rule is not None
        assert (release.unit_rule.counts, release.unit_rule.rows_at_most) == ("rows", unit_rows)
        sizes = np.minimum(np.unique(visits()["id"].to_numpy(), return_counts=True)[1], unit_rows)
        assert release.count() == pytest.approx(sizes.sum(), abs=300 * unit_rows)
        counted = [each for each in release.measured if not isinstance(each, MeasuredMatrix | MeasuredClip)]
        as_one = released(visits()).measured
        assert counted[:3] == list(as_one[:3])


EPSILON, DELTA, RUNS = 4.0, 1e-4, 100


@pytest.mark.filterwarnings("ignore:the bounds learnt:dpgram.errors.DpgramWarning")  # true of some draws
@pytest.mark.parametrize("split", SPLITS)
class TestAudit:
    """200 persons near 80, and one more with sixty rows at the far end of their octave, in both groups.

    ε is bounded from below with confidence 0.999: the statistics are the noisy counts of every measurement,
    all bounds that follow, and the cells of every matrix.
    """

    @pytest.fixture(autouse=True)
    def one_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Finding the libraries whose threads to limit takes most of the time of so small a release."""
        monkeypatch.setattr("threadpoolctl.threadpool_limits", lambda **_: contextlib.nullcontext())

    def run(self, extra: bool, split: str) -> Callable[[Entropy], tuple[Release, ...]]:
        more = 60 * extra
        places = np.arange(200 + more)
        table = pa.table(
            {
                "x": np.append(np.linspace(65.0, 100.0, 200), [127.0] * more),
                "id": np.append(np.arange(200), [999] * more),
                "region": np.array(["north", "south"])[places % 2],
                "w": np.where(places < 200, 3.5, 4.0),
            }
        )

        def once(entropy: Entropy) -> tuple[Release, ...]:
            found: Any = publish(
                table,
                Schema(numeric("x")),
                epsilon=EPSILON,
                delta=DELTA,
                bounds_budget=0.4,
                unit="id",
                entropy=entropy,
                threads=1,
                progress=False,
                **SPLITS[split],
            )
            return tuple(found.values()) if isinstance(found, dict) else (found,)

        return once

    def found(self, split: str, seed: int) -> bool:
        honest = self.run(True, split)(SeededEntropy(0))
        result = audit(
            self.run(True, split),
            self.run(False, split),
            runs=RUNS,
            delta=DELTA,
            statistic=lambda runs: np.array([self.measure(releases) for releases in runs]),
            names=(
                *("octaves", "nodes", "last nodes", "first matrix", "reach", "clip", "matrices"),
                *(f"cell {cell} of release {number}" for number in range(len(honest)) for cell in range(3)),
            ),
            entropy=SeededEntropy(seed),
        )
        mu = honest[0].guarantee.mu
        assert mu is not None
        return bool(result.passes(curve_of(GaussianEvent(mu=mu))))

    def measure(self, releases: tuple[Release, ...]) -> list[float]:
        """Groups have measurements of their own, in which the person has a part each: their sums."""
        assert len({release.measured[0] for release in releases}) == 1
        octaves = releases[0].measured[0]
        assert isinstance(octaves, MeasuredOctaves)
        counts = np.sum([self.measured(release) for release in releases], axis=0)
        matrices = [release.matrix() for release in releases]
        cells = [float(cell) for matrix in matrices for cell in matrix[np.tril_indices(2)]]
        rows = sum(float(matrix[0, 0]) for matrix in matrices)
        found = [sum(map(int, octaves.columns[0].cells)), *counts.tolist()]
        return [*(count / ROW_NORM_SQUARED for count in found), rows, *cells]

    def measured(self, release: Release) -> list[float]:
        _, nodes, *closer, rough, reach, clip = release.measured
        assert all(isinstance(each, MeasuredZoom) for each in closer)
        assert isinstance(nodes, MeasuredHistograms)
        assert isinstance(rough, MeasuredMatrix)
        assert isinstance(reach, MeasuredReach)
        assert isinstance(clip, MeasuredClip)
        (column,) = nodes.columns
        # The row of the person in question, where the first matrix was measured.
        row = rough.coordinates.matrix @ np.array([1.0, 31.0 / 32.0])
        row /= np.linalg.norm(row)
        seen = np.zeros((2, 2))
        seen[np.tril_indices(2)] = [float(cell) for cell in rough.cells]
        seen = np.tril(seen) + np.tril(seen, -1).T
        return [
            sum(map(int, (*column.counts, *column.lost))),
            sum(map(int, column.counts[-2:])),
            float(row @ seen @ row),
            sum(map(int, reach.cells)),
            sum(map(int, clip.cells)),
        ]

    def test_a_person_stays_hidden(self, split: str) -> None:
        assert self.found(split, seed=1)

    def test_learning_from_rows_is_caught(self, split: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Bounds learnt from rows beside a matrix that protects persons: the whole would not."""
        monkeypatch.setattr(Block, "once", property(lambda rows: np.flatnonzero(rows.placed)))
        assert not self.found(split, seed=2)
