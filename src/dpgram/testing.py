"""The contract of an engine, as a test class to inherit: the same integers as the local engine, always.

    from dpgram.testing import EngineContract

    class TestMine(EngineContract):
        def engine(self):
            return MyEngine()

        def place(self, parts, folder):
            return my_table_of(parts)      # one part of your own kind of table for each Arrow table

Run it with pytest. It checks the monoid laws, rows in any number of parts, empty and very uneven parts, parts
whose schemas drift, units that are spread over parts, groups, blocks and weights, repeated tasks, errors of
the data, and that `publish` charges the ledger once, on the driver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pytest

from dpgram.document.coordinates import Coordinates
from dpgram.document.fields import SurveyWeight, UnitRule
from dpgram.engines import local
from dpgram.engines.base import Engine
from dpgram.engines.passes import Pass, gram_pass
from dpgram.engines.threads import Progress
from dpgram.errors import DataError, DpgramError, SourceError
from dpgram.privacy.ledger import Ledger
from dpgram.publishing import publish
from dpgram.rows.encoder import Encoder, Missing
from dpgram.rows.rules import RowRules
from dpgram.schema import Schema, boolean, legendre, numeric, product
from dpgram.schema.columns import categorical
from dpgram.sums.clip import ClipStatistic
from dpgram.sums.counts import BinsStatistic, OctavesStatistic, RowsStatistic
from dpgram.sums.exact_gram import ExactGram
from dpgram.sums.histograms import HistogramColumn, HistogramsStatistic
from dpgram.sums.levels import LevelsStatistic

SCHEMA: Final = Schema(
    numeric("a", -1, 1),
    numeric("b", 0, 400),
    categorical("s", ["x", "y", "z"]),
    boolean("f"),
    legendre("a", 3),
    product("a", "b"),
)
BY: Final = categorical("g", ["north", "south"])
WEIGHT: Final = SurveyWeight(column="w", at_most=4.0)
_QUIET: Final = "ignore:no row of the data was usable"


def contract_table(rows: int, first: int = 0) -> pa.Table:
    """A fixed table with values inside and outside the schema, missing cells, and units of many sizes."""
    i = np.arange(first, first + rows)
    mixed = (i * 7919 + 104_729) % 100_003
    return pa.table(
        {
            "a": pa.array((mixed % 2003) / 900.0 - 1.0, mask=mixed % 31 == 0),
            "b": pa.array((mixed % 401).astype(np.int64)),
            "s": pa.array(np.array(["x", "y", "z", "unheard of"])[mixed % 37 % 4], mask=mixed % 41 == 0),
            "f": pa.array(mixed % 3 == 0, mask=mixed % 43 == 0),
            "id": pa.array(np.minimum(mixed % 1009, mixed % 97), mask=mixed % 53 == 0),
            "g": pa.array(np.array(["north", "south", "elsewhere"])[mixed % 29 % 3]),
            "w": pa.array((mixed % 11) / 2.0, mask=mixed % 59 == 0),
        }
    )


def contract_pass(kind: Literal["units", "rows", "shares"]) -> Pass:
    """Units that count as one, units whose rows count alike, or groups of weighted rows in two blocks."""
    whole = Encoder(SCHEMA)
    if kind == "shares":
        blocks = (Encoder(Schema(numeric("a", -1, 1), boolean("f"))), Encoder(Schema(numeric("b", 0, 400))))
        return gram_pass(whole, blocks, by=BY, weight=WEIGHT)
    return gram_pass(whole, unit="id", rule=UnitRule(counts=kind, rows_at_most=5))


def contract_counts(kind: Literal["rows", "units", "weights"]) -> Pass:
    """Every count that a publication may take before its matrix."""
    rules = RowRules(
        schema=Schema(numeric("a"), numeric("b"), categorical("s")),
        unit="id" if kind == "units" else None,
        unit_rule=UnitRule(counts="units", rows_at_most=5) if kind == "units" else None,
        weight=WEIGHT if kind == "weights" else None,
    )
    names, bounds = ("a", "b"), ((-1.0, 1.0), (0.0, 400.0))
    known = Schema(*(numeric(name, *ends) for name, ends in zip(names, bounds, strict=True)))
    turned = np.array([[1.0, 0.0, 0.0], [-0.5, 2.0, 0.0], [0.25, -1.0, 1.5]])
    lengths = Encoder(known, clip=1.5, coordinates=Coordinates.nearest(turned))
    return Pass(
        rules=rules,
        statistics=(
            RowsStatistic(names),
            LevelsStatistic(("s",)),
            OctavesStatistic(names),
            BinsStatistic(names, bounds),
            HistogramsStatistic(
                tuple(
                    HistogramColumn(name=name, bounds=ends) for name, ends in zip(names, bounds, strict=True)
                )
            ),
            ClipStatistic(lengths),
            ClipStatistic(lengths, reach=True),
        ),
    )


def gram_by(
    engine: Engine,
    data: object,
    schema: Schema,
    clip: float | None = None,
    *,
    missing: Missing = "drop",
    strict: bool = False,
    progress: Progress = False,
) -> ExactGram:
    """The exact Gram matrix of a table by any engine, every row counted alike. **Not private.**"""
    work = gram_pass(Encoder(schema, clip=clip, missing=missing, strict=strict))
    (found,) = engine.add_up(data, work, progress=progress)
    assert isinstance(found, ExactGram)
    return found


def cut(table: pa.Table, sizes: Sequence[int]) -> list[pa.Table]:
    """The rows of a table in parts of these sizes."""
    ends = np.cumsum(sizes).tolist()
    return [table.slice(end - size, size) for end, size in zip(ends, sizes, strict=True)]


class EngineContract(ABC):
    """What an engine must do. Inherit, give the engine and its tables, and run pytest."""

    @abstractmethod
    def engine(self) -> Engine:
        """The engine under test."""

    @abstractmethod
    def place(self, parts: Sequence[pa.Table], folder: Path) -> Any:
        """The parts as one table of a kind that the engine reads, a part for each; `folder` is for files."""

    def gram(self, data: object, schema: Schema, clip: float | None = None, **policy: Any) -> ExactGram:
        """One plain Gram matrix by the engine under test."""
        return gram_by(self.engine(), data, schema, clip, **policy)

    def flaky(self, parts: Sequence[pa.Table], folder: Path) -> Any:
        """The same, with one part whose first reading fails for a reason of the machine's.

        None, where the engine repeats nothing by itself.
        """
        del parts, folder

    def test_same_bits_as_local(self, tmp_path: Path) -> None:
        """Four parts of different sizes."""
        table = contract_table(3000)
        data = self.place(cut(table, [700, 1, 2000, 299]), tmp_path)
        found = self.gram(data, SCHEMA, 1.5, missing="midpoint")
        assert found == local.gram(table, SCHEMA, 1.5, missing="midpoint")

    def test_monoid_laws(self, tmp_path: Path) -> None:
        """Parts add up, in either order; no rows add nothing."""
        first, second = cut(contract_table(900), [400, 500])
        folders = [tmp_path / name for name in ("first", "second", "both")]
        for folder in folders:
            folder.mkdir()
        a = self.gram(self.place([first], folders[0]), SCHEMA)
        b = self.gram(self.place([second], folders[1]), SCHEMA)
        both = self.gram(self.place([second, first], folders[2]), SCHEMA)
        assert a | b == b | a == both
        assert both | ExactGram.zero(SCHEMA.width) == both

    def test_empty_parts(self, tmp_path: Path) -> None:
        table = contract_table(500)
        data = self.place(cut(table, [0, 300, 0, 0, 200, 0]), tmp_path)
        assert self.gram(data, SCHEMA) == local.gram(table, SCHEMA)

    @pytest.mark.filterwarnings(_QUIET)
    def test_no_rows_at_all(self, tmp_path: Path) -> None:
        """The neutral element, and no error."""
        data = self.place(cut(contract_table(0), [0, 0]), tmp_path)
        assert self.gram(data, SCHEMA) == ExactGram.zero(SCHEMA.width)

    def test_skew(self, tmp_path: Path) -> None:
        """One part with nearly all rows, of which nearly all are of one unit."""
        table = contract_table(6000)
        ids = pa.array(np.where(np.arange(6000) % 50, 7, np.arange(6000)))
        table = table.set_column(table.schema.get_field_index("id"), "id", ids)
        data = self.place(cut(table, [10, 5980, 10]), tmp_path)
        assert self.engine().add_up(data, contract_pass("units")) == local.add_up(
            table, contract_pass("units")
        )

    @pytest.mark.parametrize("kind", ["units", "rows", "shares"])
    def test_units_groups_blocks_and_weights(
        self, kind: Literal["units", "rows", "shares"], tmp_path: Path
    ) -> None:
        """Units with rows in several parts; groups of weighted rows in two blocks."""
        table, work = contract_table(2000), contract_pass(kind)
        data = self.place(cut(table, [900, 0, 1100]), tmp_path)
        assert self.engine().add_up(data, work) == local.add_up(table, work)

    @pytest.mark.parametrize("kind", ["rows", "units", "weights"])
    def test_counts_and_levels(self, kind: Literal["rows", "units", "weights"], tmp_path: Path) -> None:
        """What is learnt before the matrix: histograms, levels and lengths, for rows, persons and weights."""
        table, work = contract_table(2000), contract_counts(kind)
        data = self.place(cut(table, [900, 0, 1100]), tmp_path)
        assert self.engine().add_up(data, work) == local.add_up(table, work)

    def test_schema_drift(self, tmp_path: Path) -> None:
        """Other order, other widths of numbers, more columns in some parts."""
        table = contract_table(900)
        first, second, third = cut(table, [300, 300, 300])
        narrow = second.set_column(second.schema.get_field_index("b"), "b", second["b"].cast(pa.int32()))
        narrow = narrow.select([*reversed(narrow.column_names)])
        floats = third.set_column(third.schema.get_field_index("b"), "b", third["b"].cast(pa.float64()))
        more = floats.append_column("more", pa.array(range(300)))
        data = self.place([first, narrow, more], tmp_path)
        assert self.gram(data, SCHEMA) == local.gram(table, SCHEMA)

    def test_absent_column(self, tmp_path: Path) -> None:
        """An error with the column's name."""
        data = self.place([part.drop_columns(["b"]) for part in cut(contract_table(20), [10, 10])], tmp_path)
        with pytest.raises(SourceError, match="'b'"):
            self.gram(data, SCHEMA)

    def test_strict(self, tmp_path: Path) -> None:
        """An error with the column and the row, and not with the value."""
        good = pa.table({"a": [0.5], "b": [7], "s": ["x"], "f": [True]})
        bad = good.set_column(0, "a", pa.array([123456789.0]))
        data = self.place([good, bad, good], tmp_path)
        with pytest.raises(DataError, match="column 'a' at row") as raised:
            self.gram(data, SCHEMA, strict=True)
        assert raised.value.column == "a"
        assert "123456" not in str(raised.value)

    def test_repeated_tasks(self, tmp_path: Path) -> None:
        """A task that fails once for a reason of the machine's, and is repeated: the same bits."""
        table = contract_table(600)
        data = self.flaky(cut(table, [200, 200, 200]), tmp_path)
        if data is None:
            pytest.skip("this engine repeats nothing by itself")
        assert self.gram(data, SCHEMA) == local.gram(table, SCHEMA)

    def test_publish_charges_once_and_only_for_a_sum(self, tmp_path: Path) -> None:
        """A pass that fails costs nothing; one that succeeds is charged once."""
        ledger = Ledger.create(tmp_path / "some.ledger", name="contract", epsilon=4.0, delta=1e-5)
        parts = cut(contract_table(400), [200, 200])
        folders = [tmp_path / "good", tmp_path / "bad"]
        for folder in folders:
            folder.mkdir()
        broken = self.place([part.drop_columns(["b"]) for part in parts], folders[1])
        asked: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "ledger": ledger, "adaptive": False}
        with pytest.raises(DpgramError):
            publish(broken, SCHEMA, engine=self.engine(), **asked)
        assert len(ledger.history()) == 0
        release = publish(self.place(parts, folders[0]), SCHEMA, engine=self.engine(), **asked)
        assert len(ledger.history()) == 1
        assert release.receipt is not None
        assert release.receipt.entry == 1
