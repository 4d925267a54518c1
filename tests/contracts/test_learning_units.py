"""Learning for persons: every stage sees one row of each, chosen by that person's rows alone.

Exactly: all rows of a person together move each histogram by one cell, whatever they hold. Statistically: a
person's rows cannot be found in a release better than promised, and learning from rows is caught.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from dpgram.learning_table import Table
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.audit import audit
from dpgram.errors import BudgetExceeded, DpgramError, LearningError, LedgerError, SchemaError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.accountant import GaussianEvent, curve_of
from dpgram.privacy.entropy import Entropy, SeededEntropy
from dpgram.privacy.ledger import Ledger
from dpgram.publishing import publish
from dpgram.release import Release
from dpgram.schema import Numeric, Schema, categorical, numeric

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


def histograms(table: pa.Table) -> dict[str, Any]:
    """All exact counts of the stages that learn."""
    chosen = Table.of(table, OPEN, "drop", "id")
    tally = chosen.first_pass()
    known = OPEN.with_bounds({"x": (90.0, 110.0), "y": (180.0, 220.0)}).with_levels({"g": ("a", "b")})
    return {
        "rows": np.array([tally.rows]),
        "octaves": tally.octaves,
        "bins": chosen.second_pass({"x": (64.0, 128.0), "y": (128.0, 256.0)}),
        "lengths": chosen.with_schema(known).lengths()[None],
        "levels": tally.levels[0].counts,
    }


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
            assert added.sum(axis=-1).max() <= 1
            replaced = one[name] - two[name]
            assert np.abs(replaced).sum(axis=-1).max() <= 2
        assert (one["levels"] - none["levels"]).total() <= 1
        assert (none["levels"] - one["levels"]).total() == 0

    def test_rows_would_move_more(self) -> None:
        """The same test sees learning from rows."""
        base = visits(5)
        extra = person([(float(place), 1.0, "a") for place in range(1, 6)], base.schema)
        first, second = (
            Table(data=table, schema=OPEN, missing="drop").first_pass()
            for table in (base, pa.concat_tables([base, extra]))
        )
        assert (second.octaves - first.octaves).sum(axis=1).max() == 5

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
        table = Table.of(person(gaps, like), OPEN, "drop", "id").data
        assert isinstance(table, pa.Table)
        assert table.to_pylist() == [{"x": 3.0, "y": 4.0, "g": "b"}]
        nobody = person(gaps, like).set_column(3, "id", pa.nulls(4, pa.int64()))
        left = Table.of(nobody, OPEN, "drop", "id")
        assert left.first_pass().rows_read == 0
        assert left.rows_of(left.first_pass()) == 4


class TestRelease:
    @pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
    def test_it_is_about_persons(self, relation: str) -> None:
        release = released(visits(), adjacency=relation)
        assert Release.from_json(release.to_json()) == release
        assert release.unit == "id"
        assert "'id'" in release.guarantee.statement
        learnt = release.learnt
        assert learnt is not None
        if learnt.rows is None:
            assert release.public_rows == 3_000
        else:
            assert int(learnt.rows) / ROW_NORM_SQUARED == pytest.approx(3_000, abs=200)
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

    @pytest.mark.parametrize("options", [{"unit": "x"}, {"unit_rows": 5}, {"unit": ""}, {"by": "g"}])
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

    def test_shares_of_rows_are_refused_with_a_reason(self) -> None:
        with pytest.raises(SchemaError, match="unit_rows does not go with learning"):
            released(visits(50), unit_rows=5)


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
        learnt = release.learnt
        assert learnt is not None
        assert learnt.radius is not None
        one = learnt.bounds[0]
        counts = [
            int(learnt.rows or 0),
            sum(map(int, one.octaves)),
            sum(int(look.bins[-1]) for look in one.looks),
        ]
        counts.append(sum(map(int, learnt.radius.lengths)))
        return [*(count / ROW_NORM_SQUARED for count in counts), one.high, float(release.matrix()[0, 0])]

    def test_a_person_stays_hidden(self) -> None:
        assert self.found(seed=1)

    def test_learning_from_rows_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Bounds learnt from rows beside a matrix that protects persons: the whole would not."""
        monkeypatch.setattr(
            Table,
            "of",
            lambda data, schema, missing, _unit: Table(data=data, schema=schema, missing=missing),
        )
        assert not self.found(seed=2)
