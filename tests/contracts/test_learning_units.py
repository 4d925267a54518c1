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

from dpgram.audit import audit
from dpgram.encoding import Encoder
from dpgram.engines.local import add_up
from dpgram.engines.passes import Pass
from dpgram.errors import BudgetExceeded, DpgramError, DpgramWarning, LearningError, LedgerError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.accountant import GaussianEvent, curve_of
from dpgram.privacy.entropy import Entropy, SeededEntropy
from dpgram.privacy.ledger import Ledger
from dpgram.publishing import publish
from dpgram.release import Release
from dpgram.release_parts import MeasuredBins, MeasuredLengths, MeasuredOctaves, MeasuredRows
from dpgram.rows.batch import CountedRows, Reader
from dpgram.rows.rules import row_rules
from dpgram.schema import Numeric, Schema, categorical, numeric
from dpgram.sums.counts import BinsOf, LengthsOf, OctavesOf, RowsOf
from dpgram.sums.levels import LevelsOf

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
        }
    )


def released(table: Any, **options: Any) -> Release:
    asked: dict[str, Any] = {"bounds_budget": 0.2, "levels_budget": 0.1, "clip": "private", "unit": "id"}
    asked |= {"epsilon": 1.0, "delta": 1e-5, "entropy": SeededEntropy(1), "progress": False, "threads": 1}
    return publish(table, OPEN, **asked | options)


def histograms(table: pa.Table, unit: str | None = "id") -> dict[str, Any]:
    """All exact counts that are measured before a matrix, in lattice units."""
    known = OPEN.with_bounds({"x": (90.0, 110.0), "y": (180.0, 220.0)}).with_levels({"g": ("a", "b")})
    names, coarse = ("x", "y"), ((64.0, 128.0), (128.0, 256.0))
    first = Pass(
        rules=row_rules(OPEN, unit=unit),
        statistics=(RowsOf(names), OctavesOf(names), BinsOf(names, coarse), LevelsOf(("g",))),
    )
    last = Pass(rules=row_rules(known, unit=unit), statistics=(LengthsOf(Encoder(known)),))
    found: tuple[Any, ...] = (
        *add_up(table, first, threads=1, progress=False),
        *add_up(table, last, threads=1, progress=False),
    )
    rows, octaves, bins, levels, lengths = found
    counts = {"rows": rows, "octaves": octaves, "bins": bins, "lengths": lengths}
    return {name: each.cells for name, each in counts.items()} | {"levels": Counter(levels.found[0])}


cells = st.tuples(
    st.floats() | st.none(), st.floats() | st.none(), st.sampled_from(["a", "b", "z", "", None])
)


def person(rows: list[tuple[float | None, float | None, str | None]], like: pa.Schema) -> pa.Table:
    x, y, g = zip(*rows, strict=True)
    return pa.table(
        {"x": pa.array(x, pa.float64()), "y": pa.array(y, pa.float64()), "g": list(g), "id": [7] * len(rows)}
    ).cast(like)


class TestSensitivity:
    @settings(max_examples=40, deadline=None)
    @given(rows=st.lists(cells, min_size=1, max_size=9), other=st.lists(cells, min_size=1, max_size=9))
    def test_all_rows_of_a_person_move_one_cell_of_each_histogram(self, rows: Any, other: Any) -> None:
        base = visits(5)
        none, one, two = (
            histograms(pa.concat_tables([base, *extra]))
            for extra in ([], [person(rows, base.schema)], [person(other, base.schema)])
        )
        for name in ("rows", "octaves", "bins", "lengths"):
            added = one[name] - none[name]
            assert added.min() >= 0
            assert added.sum(axis=-1).max() <= ROW_NORM_SQUARED
            replaced = one[name] - two[name]
            assert np.abs(replaced).sum(axis=-1).max() <= 2 * ROW_NORM_SQUARED
        assert (one["levels"] - none["levels"]).total() <= ROW_NORM_SQUARED
        assert (none["levels"] - one["levels"]).total() == 0

    def test_rows_would_move_more(self) -> None:
        """The same test sees learning from rows."""
        base = visits(5)
        extra = person([(float(place), 1.0, "a") for place in range(1, 6)], base.schema)
        first, second = (histograms(table, unit=None) for table in (base, pa.concat_tables([base, extra])))
        for name in ("rows", "octaves", "bins", "lengths"):
            assert (second[name] - first[name]).sum(axis=1).max() == 5 * ROW_NORM_SQUARED
        assert (second["levels"] - first["levels"]).total() == 5 * ROW_NORM_SQUARED

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
        gaps = [(None, 1.0, "a"), (float("nan"), 1.0, "a"), (3.0, 4.0, "b"), (5.0, 6.0, None)]
        rules = row_rules(OPEN, unit="id")
        (batch,) = person(gaps, like).to_batches()
        rows = Reader(rules).read(batch)
        (chosen,) = CountedRows(rows, rules).representatives
        assert rows.numbers[chosen, :2].tolist() == [3.0, 4.0]
        assert rows.texts[0][chosen].as_py() == "b"
        nobody = person(gaps, like).set_column(3, "id", pa.nulls(4, pa.int64()))
        for statistic in (RowsOf(("x", "y")), LevelsOf(("g",))):
            work = Pass(rules=rules, statistics=(statistic,))
            with pytest.warns(DpgramWarning, match="no row of the data was usable"):
                (found,) = sums = add_up(nobody, work, threads=1, progress=False)
            assert (found.counts.rows_used, found.counts.rows_without_unit) == (0, 4)
            assert (work.rows_read(sums), work.units_read(sums)) == (4, 0)

    @pytest.mark.parametrize("first", [RowsOf(("x",)), LevelsOf(("g",)), OctavesOf(("x",))])
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
        if relation == "replace-one":
            assert release.public_rows == 3_000
        else:
            assert isinstance(release.measured[0], MeasuredRows)
            assert int(release.measured[0].cell) / ROW_NORM_SQUARED == pytest.approx(3_000, abs=200)
        x = release.schema.column("x")
        assert isinstance(x, Numeric)
        assert 80.0 < x.bounds[0] < 95.0 < 105.0 < x.bounds[1] < 120.0
        # Under a private clip long rows count less.
        whole = released(visits(), adjacency=relation, clip=None)
        assert whole.count() == pytest.approx(3_000, abs=300)
        assert 0.7 * 3_000 < release.count() < 3_000

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
        with pytest.raises(LearningError, match="values of 'id'") as caught:
            released(table)
        assert "the budget was spent" in str(caught.value)
        with pytest.raises(LearningError, match="nothing was spent"):
            released(table, adjacency="replace-one")

    def test_the_ledger_must_be_about_the_same_unit(self, tmp_path: Path) -> None:
        book = Ledger.create(tmp_path / "a.ledger", name="a", epsilon=3.0, delta=1e-4, reserve=1e-5)
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
        with pytest.raises(DpgramError, match="no id"):
            released(table)
        listed = visits(50).set_column(2, "g", pa.array([[1]] * len(visits(50))))
        with pytest.raises(DpgramError, match="declared categorical"):
            released(listed)

    @pytest.mark.parametrize("unit_rows", [1, 5])
    def test_rows_that_count_alike(self, unit_rows: int) -> None:
        """What is learnt comes from one row of each person; the matrix has up to `unit_rows` of them."""
        release = released(visits(), unit_rows=unit_rows, clip=None)
        assert release.unit_rule is not None
        assert (release.unit_rule.counts, release.unit_rule.rows_at_most) == ("rows", unit_rows)
        sizes = np.minimum(np.unique(visits()["id"].to_numpy(), return_counts=True)[1], unit_rows)
        assert release.count() == pytest.approx(sizes.sum(), abs=300 * unit_rows)
        assert release.measured == released(visits(), clip=None).measured


EPSILON, DELTA, RUNS = 4.0, 1e-4, 100


@pytest.mark.filterwarnings("ignore:the bounds learnt:dpgram.errors.DpgramWarning")  # true of some draws
class TestAudit:
    """200 persons near 80, and one more with sixty rows at the far end of their octave."""

    @pytest.fixture(autouse=True)
    def one_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Finding the libraries whose threads to limit takes most of the time of so small a release."""
        monkeypatch.setattr("threadpoolctl.threadpool_limits", lambda **_: contextlib.nullcontext())

    def run(self, extra: bool) -> Callable[[Entropy], Release]:
        values = np.append(np.linspace(65.0, 100.0, 200), [127.0] * (60 * extra))
        table = pa.table({"x": values, "id": np.append(np.arange(200), [999] * (60 * extra))})
        return lambda entropy: publish(
            table,
            Schema(numeric("x")),
            epsilon=EPSILON,
            delta=DELTA,
            bounds_budget=0.4,
            clip="private",
            unit="id",
            entropy=entropy,
            threads=1,
            progress=False,
        )

    def found(self, seed: int) -> bool:
        result = audit(
            self.run(True),
            self.run(False),
            runs=RUNS,
            delta=DELTA,
            statistic=lambda releases: np.array([self.measure(release) for release in releases]),
            names=("count", "octaves", "last bin", "lengths", "high", "matrix"),
            entropy=SeededEntropy(seed),
        )
        mu = self.run(True)(SeededEntropy(0)).guarantee.mu
        assert mu is not None
        return bool(result.passes(curve_of(GaussianEvent(mu=mu))))

    def measure(self, release: Release) -> list[float]:
        number, octaves, bins, lengths = release.measured
        assert isinstance(number, MeasuredRows)
        assert isinstance(octaves, MeasuredOctaves)
        assert isinstance(bins, MeasuredBins)
        assert isinstance(lengths, MeasuredLengths)
        x = release.schema.column("x")
        assert isinstance(x, Numeric)
        counts = [
            int(number.cell),
            sum(map(int, octaves.columns[0].cells)),
            sum(int(look.bins[-1]) for look in bins.columns[0].looks),
            sum(map(int, lengths.cells)),
        ]
        return [*(count / ROW_NORM_SQUARED for count in counts), x.bounds[1], float(release.matrix()[0, 0])]

    def test_a_person_stays_hidden(self) -> None:
        assert self.found(seed=1)

    def test_learning_from_rows_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Bounds learnt from rows beside a matrix that protects persons: the whole would not."""
        monkeypatch.setattr(
            CountedRows, "representatives", property(lambda rows: np.flatnonzero(rows.placed))
        )
        assert not self.found(seed=2)
