"""Units, groups, blocks and weights: the same integers as a slow reference, whatever the order and source."""

from __future__ import annotations

import datetime as dt
import math
import os
import signal
import stat
import struct
import subprocess
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.core.units import rows_that_count
from dpgram.document.coordinates import Coordinates
from dpgram.document.fields import SurveyWeight, UnitRule
from dpgram.engines import _spill as spill
from dpgram.engines import local
from dpgram.engines.local import add_up, gram
from dpgram.engines.passes import Pass, gram_pass, merge
from dpgram.errors import DataError, SourceError
from dpgram.lattice import LARGEST_UNIT_LIMIT, ROW_NORM_SQUARED, UNIT_ROWS_AT_MOST
from dpgram.rows.batch import RowBatch
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import RowRules
from dpgram.rows.units import id_hashes, unit_ids
from dpgram.schema import Schema, boolean, categorical, numeric, product
from dpgram.schema.columns import Categorical
from dpgram.sums.clip import ClipStatistic
from dpgram.sums.counts import BinsStatistic, OctavesStatistic, RowsStatistic
from dpgram.sums.exact_gram import ExactGram
from dpgram.sums.grams import GramStatistic
from dpgram.sums.histograms import HistogramColumn, HistogramsStatistic
from dpgram.sums.levels import LevelsStatistic

from . import slow_encoder
from .tables import CLIPS, Table, tables

POLICIES = st.sampled_from(["drop", "midpoint"])
QUIET = pytest.mark.filterwarnings("ignore:no row of the data was usable")
RULES = st.builds(
    UnitRule, counts=st.sampled_from(["units", "rows"]), rows_at_most=st.sampled_from([1, 2, 3, 7, 1024])
)
IDS = st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=40, max_size=40)


def plan(
    schema: Schema,
    *,
    clip: float | None = None,
    missing: str = "drop",
    rule: UnitRule | None = None,
    by: Categorical | None = None,
    blocks: tuple[Schema, ...] = (),
    weight: SurveyWeight | None = None,
) -> Pass:
    whole = Encoder(schema, clip=clip, missing=missing)
    return gram_pass(
        whole=whole,
        blocks=tuple(Encoder(block, clip=clip, missing=missing) for block in blocks) or (whole,),
        unit=None if rule is None else "id",
        rule=rule,
        by=by,
        weight=weight,
    )


def with_ids(table: Table, ids: list[Any]) -> pa.Table:
    return pa.Table.from_batches([table.batch()]).append_column("id", pa.array(ids[: len(table.rows)]))


def slow_gram(
    table: Table, ids: list[Any], rule: UnitRule, *, clip: float | None, missing: str, picked: np.ndarray
) -> list[list[int]]:
    """Σ q qᵀ in Python integers over the picked rows, each weighted by the rows of its unit that count."""
    usable = [slow_encoder.lattice_row(row, table.schema, clip=clip, missing=missing) for row in table.rows]
    sizes = Counter(ids[i] for i in range(len(table.rows)) if picked[i])
    lattice = []
    for i, row in enumerate(table.rows):
        if picked[i]:
            assert usable[i] is not None
            m = rule.rows_at_most if rule.counts == "rows" else sizes[ids[i]]
            lattice.append(
                slow_encoder.lattice_row(row, table.schema, clip=clip, missing=missing, unit_rows=m)
            )
    width = range(table.schema.width)
    return [[sum(q[i] * q[j] for q in lattice) for j in width] for i in width]


@QUIET
@settings(deadline=None, max_examples=60)
@given(tables(), IDS, CLIPS, POLICIES)
def test_units_below_the_limit_equal_the_slow_reference(
    table: Table, ids: list[Any], clip: float | None, missing: str
) -> None:
    rule = UnitRule(counts="units", rows_at_most=UNIT_ROWS_AT_MOST)
    (exact,) = add_up(
        with_ids(table, ids), plan(table.schema, clip=clip, missing=missing, rule=rule), threads=1
    )
    picked = np.array(
        [
            ids[i] is not None and slow_encoder.lattice_row(row, table.schema, missing=missing) is not None
            for i, row in enumerate(table.rows)
        ]
    )
    expected = slow_gram(table, ids, rule, clip=clip, missing=missing, picked=picked)
    assert exact.cells.tolist() == expected
    assert exact.counts.rows_read == len(table.rows)
    assert exact.counts.rows_used == picked.sum()
    assert exact.counts.units_read == len({i for i in ids[: len(table.rows)] if i is not None})


@QUIET
@settings(deadline=None, max_examples=60)
@given(tables(max_rows=40), IDS, CLIPS, POLICIES, RULES, st.integers(1, 17), st.integers(1, 3), st.randoms())
def test_same_bits_for_any_order_batches_threads_and_spilling(
    table: Table,
    ids: list[Any],
    clip: float | None,
    missing: str,
    rule: UnitRule,
    size: int,
    threads: int,
    shuffler: Any,
) -> None:
    whole = with_ids(table, ids)
    task = plan(table.schema, clip=clip, missing=missing, rule=rule)
    expected = add_up(whole, task, threads=1)
    order = list(range(whole.num_rows))
    shuffler.shuffle(order)
    mixed = whole.take(pa.array(order, pa.int64()))
    pieces = pa.Table.from_batches(
        [batch for i in range(0, len(order), size) for batch in mixed.slice(i, size).to_batches()],
        whole.schema,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spill.Spill.__init__, "__kwdefaults__", {"memory": 200})
        patch.setattr(local, "BUCKETS", 3)
        patch.setattr(local, "BUCKET_BYTES", 1)  # else a small table is one bucket
        used = set()
        take = spill.Spill.take

        def noted(heap: spill.Spill, bucket: int) -> list[pa.RecordBatch]:
            used.add(bucket)
            return take(heap, bucket)

        patch.setattr(spill.Spill, "take", noted)
        assert add_up(pieces, task, threads=threads) == expected
        assert used == ({0, 1, 2} if whole.num_rows else {0})
    # What an engine on other machines does: read anywhere, bring units together, add up, merge.
    buckets: dict[int, list[pa.RecordBatch]] = defaultdict(list)
    for batch in pieces.to_batches():
        for bucket, rows in enumerate(task.reader().read(batch).split(4)):
            buckets[bucket].append(rows.to_batch())
    sums = [task.zero()]
    for batches in buckets.values():
        adder = task.adder()
        adder.add(RowBatch.from_batches(batches))
        sums.append(adder.result())
    assert [g.cells.tolist() for g in merge(sums)] == [g.cells.tolist() for g in expected]


@QUIET
@settings(deadline=None, max_examples=100)
@given(tables(max_rows=40), CLIPS, POLICIES, RULES)
def test_no_unit_outweighs_one_row_in_integers(
    table: Table, clip: float | None, missing: str, rule: UnitRule
) -> None:
    """All rows are one person's: Σ |q|² is the trace of their matrix."""
    (exact,) = add_up(
        with_ids(table, ["x"] * len(table.rows)),
        plan(table.schema, clip=clip, missing=missing, rule=rule),
        threads=1,
    )
    assert sum(int(exact.cells[i, i]) for i in range(exact.width)) <= ROW_NORM_SQUARED


@pytest.mark.parametrize("rows", [1, 2, 3, 1023, 1024, 1025, 4096])
@pytest.mark.parametrize("counts", ["units", "rows"])
def test_the_bound_is_nearly_met_by_full_rows(rows: int, counts: Any) -> None:
    """Full-length rows, for which rounding is most dangerous; the bound holds and little is lost."""
    schema = Schema(*(numeric(name, -1, 1) for name in "abcdefg"))
    table = pa.table({**{name: [1.0] * rows for name in "abcdefg"}, "id": [7] * rows})
    most = 1024 if counts == "units" else rows
    (exact,) = add_up(table, plan(schema, rule=UnitRule(counts=counts, rows_at_most=most)))
    trace = sum(int(exact.cells[i, i]) for i in range(exact.width))
    assert 0.99 * ROW_NORM_SQUARED < trace <= ROW_NORM_SQUARED
    assert exact.rows == min(rows, most)
    assert exact.counts.rows_over_unit_limit == rows - min(rows, most)


NUMBERS = Schema(numeric("x", -1, 1), categorical("l", ["p", "q"]), product("x", "x"))


def people(rows: int, heads: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "x": np.round(rng.uniform(-1.2, 1.2, rows), 2),
            "l": rng.choice(["p", "q", "?"], rows, p=[0.5, 0.45, 0.05]),
            "id": rng.integers(0, heads, rows),
            "g": rng.choice(["north", "south", "elsewhere"], rows, p=[0.5, 0.3, 0.2]),
            "w": rng.uniform(-1, 6, rows),
        }
    )


def forms(table: pa.Table, folder: Path) -> Iterator[tuple[str, object]]:
    yield "Arrow", table
    yield "pandas", table.to_pandas()
    yield "pandas, ids as floats", table.to_pandas().astype({"id": float})
    yield "pandas objects", table.to_pandas().astype(object)
    yield "Polars", pl.from_arrow(table)
    yield "DuckDB", duckdb.from_arrow(table)
    yield "text ids", table.set_column(2, "id", table["id"].cast(pa.string()))
    yield "dictionary ids", table.set_column(2, "id", table["id"].cast(pa.string()).dictionary_encode())
    pq.write_table(table, folder / "t.parquet", row_group_size=100)
    yield "Parquet", folder / "t.parquet"
    table.to_pandas().to_csv(folder / "t.csv", index=False)
    yield "CSV", folder / "t.csv"


@pytest.mark.parametrize("counts", ["units", "rows"])
def test_same_bits_for_every_source(counts: Any, tmp_path: Path) -> None:
    table = people(3_000, 300)
    task = plan(
        NUMBERS,
        rule=UnitRule(counts=counts, rows_at_most=6),
        by=categorical("g", ["north", "south"]),
        weight=SurveyWeight(column="w", at_most=5.0),
    )
    expected = add_up(table, task, threads=1)
    assert expected[0].counts.rows_over_unit_limit > 100
    for name, data in forms(table, tmp_path):
        assert add_up(data, task, threads=2) == expected, name


@pytest.mark.parametrize(
    ("cells", "texts"),
    [
        (pa.array([7, None, -3]), ["7", None, "-3"]),
        (pa.array([7.0, math.nan, None, 7.5, 1e300]), ["7", None, None, "7.5", str(int(1e300))]),
        (pa.array(["7", "", None, " 7"]), ["7", None, None, " 7"]),
        (pa.array(["a", "b", None, "a"]).dictionary_encode(), ["a", "b", None, "a"]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([dt.date(2020, 1, 31)]), ["2020-01-31"]),
        (pa.array([dt.date(2020, 1, 31)], pa.date64()), ["2020-01-31"]),
        (pa.array([1_580_428_800_000_000_000, 1_580_432_523_500_000_000], pa.timestamp("ns")),
         ["2020-01-31", "2020-01-31 01:02:03.5"]),
        (pa.array([1_580_432_523_500], pa.timestamp("ms", "Europe/Paris")), ["2020-01-31 01:02:03.5Z"]),
        (pa.array([1_580_432_523], pa.timestamp("s")), ["2020-01-31 01:02:03"]),
        (pa.array([b"\x01\xff", None]), ["\x00x01ff", None]),
        (pa.array([7.5, 70, 100]).cast(pa.decimal128(6, 2)), ["7.5", "70", "100"]),
        (pa.nulls(2), [None, None]),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)  # fmt: skip
def test_ids_of_every_type(cells: pa.Array, texts: list[str | None]) -> None:
    assert unit_ids(cells, "id").to_pylist() == texts


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.string_view()], ids=str)
@pytest.mark.parametrize("values", [["a", "a", "a"], ["aa", "", None, "b", "aa"], ["", ""], [None, "ccc"]])
def test_ids_of_a_slice_are_a_slice_of_the_ids(kind: pa.DataType, values: list[str | None]) -> None:
    """Arrow 18 to 21 broke texts there, which made several persons of one."""
    cells = pa.array([None if v is None else v.encode() for v in values], pa.binary()).cast(kind)
    whole = unit_ids(cells, "id")
    hashes = id_hashes(whole.fill_null("none")).tolist()
    for first in range(len(values)):
        for size in range(1, len(values) - first + 1):
            part = unit_ids(cells.slice(first, size), "id")
            part.validate(full=True)
            assert part.to_pylist() == whole.to_pylist()[first : first + size]
            assert id_hashes(part.fill_null("none")).tolist() == hashes[first : first + size]


def test_lists_are_no_ids() -> None:
    with pytest.raises(SourceError, match="cannot tell units apart"):
        unit_ids(pa.array([[1], [2]]), "id")


def test_hashes_are_fixed_for_ever() -> None:
    """Another machine, another year: the same rows survive. The reference is plain Python integers."""
    ids = pa.array(["7", "Zoë", "a"], pa.large_string())
    expected = [mixed_bits(text_bits(text)) for text in ["7", "Zoë", "a"]]
    assert id_hashes(ids).tolist() == expected
    assert id_hashes(ids.slice(1)).tolist() == expected[1:]
    assert expected[0] == 13_302_734_068_903_788_416


def mixed_bits(value: int) -> int:
    """SplitMix64's step in plain integers."""
    value = (value + 0x9E3779B97F4A7C15) % 2**64
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
    return value ^ (value >> 31)


def text_bits(text: str) -> int:
    """FNV-1a in plain integers."""
    value = 0xCBF29CE484222325
    for letter in text.encode():
        value = (value ^ letter) * 0x100000001B3 % 2**64
    return value


def priority(unit: str, row: tuple[float, ...], copy: int) -> tuple[int, int]:
    """What proofs/units.md says of a row's place among those of its unit, from the bytes of its numbers."""
    one = mixed_bits(text_bits(unit))
    two = mixed_bits(one)
    for number in row:
        bits = int.from_bytes(struct.pack(">d", number), "big")
        one, two = mixed_bits(one ^ bits), mixed_bits((two + bits) % 2**64)
    numbered = copy * 0x9E3779B97F4A7C15 % 2**64
    return mixed_bits(one ^ mixed_bits(numbered)), mixed_bits((two + numbered) % 2**64)


class TestWhichRowsSurvive:
    """The choice is part of the format: releases made next year must count the same rows."""

    ROWS: Final = [
        (-1.0, 0.5),
        (0.0, 0.25),
        (0.25, 0.25),
        (0.25, 0.25),
        (0.25, 0.25),
        (0.5, -1.0),
        (1.0, 1.0),
    ]
    COPIES: Final = [0, 0, 0, 1, 2, 0, 0]
    GOLDEN: Final = {"ann": [3, 5, 6], "7": [1, 2, 4], "Zoë": [4, 5, 6]}
    """Places in ROWS that count, of at most three. Written down once, from `priority`."""

    def test_the_hashes_are_the_published_ones(self) -> None:
        """Test vectors of FNV-1a (64 bits) and SplitMix64 (seed 0)."""
        assert text_bits("") == 0xCBF29CE484222325
        assert text_bits("a") == 0xAF63DC4C8601EC8C
        assert text_bits("foobar") == 0x85944171F73967E8
        assert mixed_bits(0) == 0xE220A8397B1DCDAF

    @pytest.mark.parametrize("unit", GOLDEN)
    def test_the_least_priorities(self, unit: str) -> None:
        ranked = sorted(range(7), key=lambda i: priority(unit, self.ROWS[i], self.COPIES[i]))
        assert sorted(ranked[:3]) == self.GOLDEN[unit]

    @pytest.mark.parametrize("order", [range(7), range(6, -1, -1), [3, 6, 0, 2, 5, 1, 4]], ids=str)
    def test_count_alone(self, order: Sequence[int]) -> None:
        """A table of several units equals, in every bit, the table of the rows written down above."""
        schema = Schema(numeric("x", -1, 1), numeric("y", -1, 1))
        task = plan(schema, rule=UnitRule(counts="rows", rows_at_most=3))
        (found,) = add_up(self.table({unit: list(order) for unit in self.GOLDEN}), task)
        (expected,) = add_up(self.table(self.GOLDEN), task)
        assert found.cells.tolist() == expected.cells.tolist()
        assert found.counts.rows_over_unit_limit == 4 * len(self.GOLDEN)
        assert expected.counts.rows_over_unit_limit == 0

    def table(self, places: Mapping[str, list[int]]) -> pa.Table:
        picked = [(unit, *self.ROWS[i]) for unit, taken in places.items() for i in taken]
        ids, x, y = zip(*picked, strict=True)
        return pa.table({"x": x, "y": y, "id": ids})


class TestChoice:
    def test_keeps_the_limit_and_whole_small_units(self) -> None:
        rng = np.random.default_rng(0)
        units = rng.integers(0, 50, 1_000)
        kept = rows_that_count(units, units.astype(np.uint64), rng.normal(size=(1_000, 2)), 15)
        sizes = np.bincount(units)
        assert np.bincount(units[kept]).tolist() == np.minimum(sizes, 15).tolist()

    def test_frequent_contents_survive_as_often_as_they_occur(self) -> None:
        """Nine copies of one row and one of another: one of them, over many units, is the rare one in a
        tenth of the cases (2,000 units: within four standard deviations); with a limit of 5 in half."""
        units = np.repeat(np.arange(2_000), 10)
        contents = np.tile(np.array([1.0] + [0.0] * 9), 2_000)[:, None]
        seeds = id_hashes(pa.array([str(u) for u in units], pa.large_string()))
        for limit, share in ((1, 0.1), (5, 0.5)):
            kept = rows_that_count(units, seeds, contents, limit)
            found = contents[kept].sum() / 2_000
            assert abs(found - share) < 4 * math.sqrt(share * (1 - share) / 2_000)

    def test_adding_another_unit_changes_nobodys_choice(self) -> None:
        rng = np.random.default_rng(3)
        units, rows = np.repeat(np.arange(40), 20), rng.normal(size=(800, 2))
        seeds = units.astype(np.uint64)
        all_of_them = rows_that_count(units, seeds, rows, 5)
        assert (rows_that_count(units[20:] - 1, seeds[20:], rows[20:], 5) == all_of_them[20:]).all()


class TestGroupsBlocksWeights:
    def test_groups_are_the_filtered_tables(self) -> None:
        table = people(2_000, 100)
        found = add_up(table, plan(NUMBERS, by=categorical("g", ["north", "south", "nowhere"])))
        frame = table.to_pandas()
        for level, exact in zip(["north", "south"], found, strict=False):
            alone = gram(frame[frame["g"] == level], NUMBERS)
            assert exact.cells.tolist() == alone.cells.tolist()
            assert exact.rows == alone.rows
        assert found[2].rows == 0
        assert found[0].counts.rows_without_group == (frame["g"] == "elsewhere").sum()

    def test_blocks_are_the_narrow_schemas(self) -> None:
        table = people(2_000, 100)
        first, second = Schema(numeric("x", -1, 1)), Schema(categorical("l", ["p", "q"]), constant=False)
        found = add_up(table, plan(NUMBERS, blocks=(first, second)))
        assert [f.cells.tolist() for f in found] == [
            gram(table, block).cells.tolist() for block in (first, second)
        ]

    def test_a_unit_is_bounded_over_all_its_groups_together(self) -> None:
        table = people(400, 1)
        found = add_up(
            table,
            plan(
                NUMBERS,
                rule=UnitRule(counts="units", rows_at_most=1024),
                by=categorical("g", ["north", "south"], "rest"),
            ),
        )
        trace = sum(int(exact.cells[i, i]) for exact in found for i in range(exact.width))
        assert 0.5 * ROW_NORM_SQUARED < trace <= ROW_NORM_SQUARED
        assert all(exact.rows for exact in found)

    @settings(deadline=None, max_examples=60)
    @given(tables(max_rows=12), CLIPS, st.lists(st.floats(), min_size=12, max_size=12))
    @QUIET
    def test_weights_equal_the_slow_reference(
        self, table: Table, clip: float | None, weights: list[float]
    ) -> None:
        given_weights = weights[: len(table.rows)]
        data = pa.Table.from_batches([table.batch()]).append_column(
            "w", pa.array(given_weights, pa.float64())
        )
        (exact,) = add_up(
            data, plan(table.schema, clip=clip, weight=SurveyWeight(column="w", at_most=3.0)), threads=1
        )
        rows = [
            slow_encoder.lattice_row(
                row, table.schema, clip=clip, weight=math.sqrt(min(max(w, 0.0), 3.0) / 3.0)
            )
            for row, w in zip(table.rows, given_weights, strict=True)
            if math.isfinite(w)
        ]
        kept = [q for q in rows if q is not None]
        width = range(table.schema.width)
        assert exact.cells.tolist() == [[sum(q[i] * q[j] for q in kept) for j in width] for i in width]
        assert exact.counts.rows_without_weight == sum(not math.isfinite(w) for w in given_weights)


TURNED = Coordinates.nearest(np.array([[1.0, 0.0], [-0.4, 1.5]]))


@pytest.mark.parametrize("unit", [None, "id"])
def test_every_sum_has_seen_all_rows_and_units(unit: str | None) -> None:
    """Under replace-one a release states the rows, or units, that its first sum has seen."""
    table = pa.table(
        {"x": [1.0, 2.0, 3.0, None, 5.0], "s": ["a", "b", "a", "b", None], "id": [1, 1, 2, 3, None]}
    ).append_column("w", pa.array([1.0, None, 2.0, 3.0, 4.0]))
    rule = None if unit is None else UnitRule(counts="units", rows_at_most=2)
    rules = RowRules(
        schema=Schema(numeric("x"), categorical("s")),
        unit=unit,
        unit_rule=rule,
        weight=SurveyWeight(column="w", at_most=4.0),
    )
    encoder = Encoder(Schema(numeric("x", 0, 5)), clip=1.0, coordinates=TURNED)
    statistics = (
        LevelsStatistic(("s",)),
        RowsStatistic(("x",)),
        OctavesStatistic(("x",)),
        BinsStatistic(("x",), ((0.0, 5.0),)),
        HistogramsStatistic((HistogramColumn(name="x", bounds=(0.0, 5.0)),)),
        ClipStatistic(encoder),
        ClipStatistic(encoder, reach=True),
        GramStatistic(encoder),
    )
    for statistic in statistics:
        (found,) = add_up(table, Pass(rules=rules, statistics=(statistic,)))
        assert found.counts.rows_read == 5, statistic
        assert found.counts.units_read == (0 if unit is None else 3), statistic
        assert found.counts.rows_without_weight == 1, statistic


@QUIET
@pytest.mark.parametrize("at_most", [3.0, 0.1, 1e-270, 7e299])
def test_a_weighted_row_adds_at_most_one_row_to_one_cell(at_most: float) -> None:
    weights = [math.nan, -1.0, 0.0, 5e-324, at_most / 3, math.nextafter(at_most, 0.0), at_most, 1e308]
    rules = RowRules(
        schema=Schema(numeric("x"), categorical("s")), weight=SurveyWeight(column="w", at_most=at_most)
    )
    statistics = (
        LevelsStatistic(("s",)),
        RowsStatistic(("x",)),
        OctavesStatistic(("x",)),
        BinsStatistic(("x",), ((0.0, 1.0),)),
        ClipStatistic(Encoder(Schema(numeric("x", 0, 1)), clip=1.0, coordinates=TURNED)),
    )
    for weight in weights:
        row = pa.table({"x": [0.3], "s": ["a"], "w": pa.array([weight], pa.float64())})
        levels, *others = add_up(row, Pass(rules=rules, statistics=statistics))
        (text,) = levels.cells
        for cells in ([text.get("a", 0)], *(each.cells.ravel().tolist() for each in others)):
            assert sum(cell != 0 for cell in cells) <= 1
            assert 0 <= sum(cells) <= ROW_NORM_SQUARED
            if math.isfinite(weight) and weight >= at_most:
                assert sum(cells) == ROW_NORM_SQUARED


class TestTemporaryFiles:
    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(spill.tempfile, "tempdir", str(tmp_path))
        monkeypatch.setattr(spill.Spill.__init__, "__kwdefaults__", {"memory": 1_000})
        return tmp_path

    def test_a_private_folder_without_names_in_it(self, folder: Path) -> None:
        with spill.Spill(2) as heap:
            batch = RowBatch(
                lines=[np.ones(500)] * 2, rows=500, ids=pa.array(["a"] * 500, pa.large_string())
            ).to_batch()
            heap.add([batch, batch])
            assert heap.folder is not None
            assert heap.folder.parent == folder
            assert stat.S_IMODE(heap.folder.stat().st_mode) == 0o700
            if os.name == "posix":
                assert list(heap.folder.iterdir()) == []
            assert sum(b.num_rows for b in heap.take(1)) == 500
            assert heap.take(1) == []
        assert list(folder.iterdir()) == []

    def test_nothing_is_left_after_a_run_or_an_error(self, folder: Path) -> None:
        table = people(5_000, 300)
        task = plan(NUMBERS, rule=UnitRule(counts="units", rows_at_most=8))
        add_up(table, task, threads=2)
        assert list(folder.iterdir()) == []
        strict = gram_pass(
            whole=Encoder(NUMBERS, strict=True),
            blocks=(Encoder(NUMBERS, strict=True),),
            unit="id",
            rule=task.rules.unit_rule,
        )
        with pytest.raises(DataError, match="at row"):
            add_up(table, strict, threads=2)
        assert list(folder.iterdir()) == []

    def test_an_error_while_buckets_are_added_up(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("dpgram.engines.passes.Adder.add", fail)
        with pytest.raises(KeyboardInterrupt):
            add_up(people(5_000, 300), plan(NUMBERS, rule=UnitRule(counts="units", rows_at_most=8)))
        assert list(folder.iterdir()) == []

    @pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
    @pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGKILL])
    def test_a_run_that_is_stopped_leaves_no_rows(self, tmp_path: Path, ended_by: signal.Signals) -> None:
        """After an interrupt nothing; after a kill at most an empty folder."""
        code = """
            import signal
            import time
            import pyarrow as pa
            from dpgram.engines import _spill as spill
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits "ignored"
            from dpgram.engines.local import add_up
            from dpgram.rows.encoder import Encoder
            from dpgram.engines.passes import gram_pass
            from dpgram.document.fields import UnitRule
            from dpgram.schema import Schema, numeric
            spill.Spill.__init__.__kwdefaults__["memory"] = 1000
            encoder = Encoder(Schema(numeric("x", 0, 1)))
            rule = UnitRule(counts="units", rows_at_most=8)
            task = gram_pass(encoder, unit="id", rule=rule)
            def endless():
                for _ in range(50):
                    yield pa.record_batch({"x": [0.5] * 1000, "id": list(range(1000))})
                print("spilt", flush=True)
                while True:
                    time.sleep(0.01)
                    yield pa.record_batch({"x": [0.5], "id": [1]})
            schema = pa.schema({"x": pa.float64(), "id": pa.int64()})
            add_up(pa.RecordBatchReader.from_batches(schema, endless()), task, threads=2, progress=False)
        """
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert child.stdout is not None
            # All but the last few batches are in files by then, and nothing is done but wait for more.
            assert child.stdout.readline() == b"spilt\n"
            assert list(tmp_path.glob("dpgram-*")), "the run never wrote a file"
            child.send_signal(ended_by)
            child.wait()
        finally:
            child.kill()
            child.communicate()
        left = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert left == []
        if ended_by == signal.SIGINT:
            assert list(tmp_path.iterdir()) == []


def test_strict_errors_keep_their_row_numbers() -> None:
    table = pa.table({"x": [0.5] * 9_000 + [7.0], "id": list(range(9_001))})
    encoder = Encoder(Schema(numeric("x", 0, 1)), strict=True)
    task = gram_pass(encoder, unit="id", rule=UnitRule(counts="units", rows_at_most=5))
    with pytest.raises(DataError, match="column 'x' at row 9000"):
        add_up(table, task)


def test_merging_is_that_of_the_matrices() -> None:
    task = plan(NUMBERS, by=categorical("g", ["north", "south"]))
    halves = [add_up(people(300, 5, seed), task) for seed in (1, 2)]
    both = add_up(pa.concat_tables([people(300, 5, 1), people(300, 5, 2)]), task)
    assert merge(halves) == both
    assert merge([both, task.zero()]) == both
    assert isinstance(both[0], ExactGram)


def test_the_largest_limit_leaves_lattice_steps() -> None:
    assert math.isqrt(ROW_NORM_SQUARED // LARGEST_UNIT_LIMIT) >= 500
    assert math.isqrt(ROW_NORM_SQUARED // UNIT_ROWS_AT_MOST) >= 1_000


def test_booleans_and_numpy_arrays() -> None:
    """A plain array brings its columns in the order asked for: those of the schema, then the id."""
    schema = Schema(numeric("a", -1, 1), boolean("b"))
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.uniform(-1, 1, 200), rng.integers(0, 2, 200), rng.integers(0, 20, 200)])
    task = plan(schema, rule=UnitRule(counts="units", rows_at_most=1024))
    named = pd.DataFrame(values, columns=["a", "b", "id"])
    assert add_up(values, task) == add_up(named, task)
