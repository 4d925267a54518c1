"""Ordered levels: one column of equally spaced codes, from every source, in every form of the schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.flat import plan, publish

import dpgram as dg
from dpgram.audit.publication import Pipeline, worst_tables
from dpgram.core.noise import SeededEntropy
from dpgram.engines.local import gram
from dpgram.errors import AnalysisError, DataError, SchemaError
from dpgram.rows.encoder import Encoder
from dpgram.schema import Numeric, Ordinal, Schema, categorical, legendre, numeric, ordinal, product

PAIN = ("none", "mild", "strong", "severe")
SCHEMA = Schema(ordinal("pain", PAIN), numeric("days", 0, 30))


def patients(rows: int = 2_000, seed: int = 1) -> pa.Table:
    draw = np.random.default_rng(seed)
    codes = draw.integers(0, 4, rows)
    days = 5.0 + 4.0 * codes + draw.normal(0.0, 1.0, rows)
    return pa.table({"pain": np.array(PAIN)[codes], "days": days})


class TestForms:
    @given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=2, unique=True))
    def test_dictionaries_and_toml_give_it_back(self, levels: list[str]) -> None:
        import tomllib

        schema = Schema(ordinal("x", levels, weight=0.5))
        assert Schema.from_dict(schema.to_dict()) == schema
        assert Schema.from_dict(tomllib.loads(schema.to_toml())) == schema
        assert schema.to_dict()["columns"] == [
            {"kind": "ordinal", "name": "x", "levels": levels, "weight": 0.5}
        ]

    @pytest.mark.parametrize("levels", [[], ["a"], ["a", "a"], "ab", [1.5, 2.5], list(range(10_001))])
    def test_what_is_no_order_is_refused(self, levels: Any) -> None:
        with pytest.raises(SchemaError):
            ordinal("x", levels)

    def test_too_many_levels_are_refused_with_advice(self) -> None:
        with pytest.raises(SchemaError, match="Group them"):
            ordinal("x", range(10_001))

    def test_a_file_must_list_the_levels(self) -> None:
        with pytest.raises(SchemaError, match="lacks 'levels'"):
            Schema.from_dict({"columns": [{"kind": "ordinal", "name": "x"}]})
        with pytest.raises(SchemaError, match="does not know 'other'"):
            Schema.from_dict(
                {"columns": [{"kind": "ordinal", "name": "x", "levels": ["a", "b"], "other": "c"}]}
            )

    def test_it_counts_as_one_column(self) -> None:
        assert SCHEMA.names == ("(constant)", "pain", "days")
        assert SCHEMA.max_norm_squared == 3.0


class TestEncoding:
    def same_as_numbers(self, schema: Schema, data: Any, codes: Any, **options: Any) -> None:
        numbers = Schema(
            *(
                numeric("pain", 0, len(column.levels) - 1) if isinstance(column, Ordinal) else column
                for column in schema.columns
            )
        )
        ours, theirs = gram(data, schema, **options), gram(codes, numbers, **options)
        assert np.array_equal(ours.cells, theirs.cells)

    @pytest.mark.parametrize("missing", ["drop", "midpoint"])
    def test_codes_are_numbers_and_unknown_levels_are_missing(
        self, missing: Literal["drop", "midpoint"]
    ) -> None:
        cells = ["none", "severe", "mild", "unheard of", None, "strong", ""]
        codes = [0.0, 3.0, 1.0, None, None, 2.0, None]
        schema = Schema(ordinal("pain", PAIN), legendre("pain", 2), product("pain", "pain"))
        self.same_as_numbers(
            schema, {"pain": cells}, pa.table({"pain": pa.array(codes, pa.float64())}), missing=missing
        )

    @pytest.mark.parametrize(
        "cells",
        [
            pa.array([3, 1, 2, 9, None], pa.int8()),
            pa.array([3.0, 1.0, 2.0, 9.0, None], pa.float32()),
            pa.array(["3", "1", "2", "9", None]),
            pa.array(["3", "1", "2", "9", None]).dictionary_encode(),
            pa.array(["3", "1", "2", "9", None], pa.large_string()),
        ],
    )
    def test_levels_of_every_type(self, cells: pa.Array) -> None:
        schema = Schema(ordinal("pain", [1, 2, 3]))
        codes = pa.table({"pain": pa.array([2.0, 0.0, 1.0, None, None])})
        self.same_as_numbers(schema, pa.table({"pain": cells}), codes)

    def test_every_source_gives_the_same_bits(self, tmp_path: Path) -> None:
        table = patients(500)
        pq.write_table(table, tmp_path / "t.parquet")
        pc.write_csv(table, tmp_path / "t.csv")
        ours = gram(table, SCHEMA).cells
        for data in (tmp_path / "t.parquet", tmp_path / "t.csv", table.to_pandas(), table.to_pydict()):
            assert np.array_equal(gram(data, SCHEMA).cells, ours)

    def test_strict_mode_names_the_row(self) -> None:
        with pytest.raises(DataError, match="'pain' at row 1"):
            Encoder(SCHEMA, strict=True).encode(
                pa.record_batch({"pain": ["mild", "unheard of"], "days": [1.0, 2.0]})
            )


class TestAnalysis:
    def release(self, schema: Schema = SCHEMA, **options: Any) -> Any:
        asked: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-6, "entropy": SeededEntropy(1)}
        return publish(patients(), schema, progress=False, **asked | options)

    def test_coefficients_are_per_level(self) -> None:
        release = self.release()
        assert dg.Release.from_json(release.to_json()) == release
        fit = release.regress("days")
        assert fit.fitted_params["pain"] == pytest.approx(4.0, abs=0.1)
        assert fit.predict({"pain": ["none", "severe"]}) == pytest.approx([5.0, 17.0], abs=0.3)
        assert release.mean()["pain"] == pytest.approx(1.5, abs=0.1)
        back = release.regress("pain")
        assert back.predict({"days": [5.0, 17.0]}) == pytest.approx([0.0, 3.0], abs=0.4)

    def test_new_rows_need_known_levels(self) -> None:
        fit = self.release().regress("days")
        with pytest.raises(AnalysisError, match="does not know"):
            fit.predict({"pain": ["unheard of"]})

    def test_it_goes_with_units_learning_and_reports(self, tmp_path: Path) -> None:
        schema = Schema(ordinal("pain", PAIN), numeric("days"))
        table = patients().append_column("id", pa.array(np.arange(2_000) // 2))
        release = publish(
            table,
            schema,
            epsilon=8.0,
            delta=1e-6,
            bounds_budget=0.2,
            unit="id",
            entropy=SeededEntropy(1),
            progress=False,
            adaptive=False,
        )
        days = release.schema.column("days")
        assert isinstance(days, Numeric)
        assert days.bounds[0] < 5.0 < 17.0 < days.bounds[1]
        page = tmp_path / "r.html"
        release.report(page)
        assert "none, mild, strong, severe (0 to 3)" in page.read_text(encoding="utf-8")

    def test_the_planner_takes_it_as_a_number(self) -> None:
        plans = [
            plan(schema, rows=10_000, epsilon=1.0, delta=1e-6, mechanisms=["gaussian"])
            for schema in (SCHEMA, Schema(numeric("pain", 0, 3), numeric("days", 0, 30)))
        ]
        assert str(plans[0]) == str(plans[1])

    def test_an_audit_takes_it_to_both_ends(self) -> None:
        schema = Schema(ordinal("pain", PAIN), ordinal("grade", ["1", "2", "3"]))
        pipeline = Pipeline(schema=schema, epsilon=1.0, delta=1e-6, options={"adjacency": "replace-one"})
        all_columns = worst_tables(pipeline)[0]
        assert all_columns.a.to_pylist()[-1] == {"pain": "severe", "grade": "3"}
        assert all_columns.b.to_pylist()[-1] == {"pain": "severe", "grade": "1"}

    def test_groups_need_a_category(self) -> None:
        with pytest.raises(SchemaError):
            self.release(by="pain")
        assert set(self.release(Schema(categorical("pain", PAIN), numeric("days", 0, 30)), by="pain")) == set(
            PAIN
        )
