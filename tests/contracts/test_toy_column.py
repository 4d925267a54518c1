"""A new kind of column is one file and one registration: everything else works with it from the start.

The kind is `threshold` (age ≥ 65 as ±1). Whatever is published of it must be, to the bit, what a boolean
column gives that was made from the same numbers beforehand.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from tests.flat import plan, publish
from tests.node import NODE, in_node

import dpgram as dg
from dpgram import explorer
from dpgram.audit.publication import Pipeline, worst_tables
from dpgram.core.noise import SeededEntropy
from dpgram.errors import DataError, DpgramWarning, SchemaError
from dpgram.explorer.facts import page_facts
from dpgram.release import Release, json_schema
from dpgram.schema import (
    KINDS,
    Column,
    Schema,
    boolean,
    categorical,
    legendre,
    numeric,
    product,
    starter_toml,
)

from .threshold_column import Threshold, threshold

AT = 65.0


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    kinds = cast("dict[str, type[Column]]", KINDS)
    kinds["threshold"] = Threshold
    yield
    del kinds["threshold"]


def people(rows: int = 4_000) -> pa.Table:
    draw = np.random.default_rng(8)
    age, bmi = draw.uniform(18, 90, rows), draw.uniform(15, 45, rows)
    charges = 2_000.0 + 9_000.0 * (age >= AT) + 100.0 * bmi + draw.normal(0, 500, rows)
    age[::50], bmi[7::90] = np.nan, np.nan
    age[3] = AT
    return pa.table({"age": age, "bmi": bmi, "sex": draw.choice(["f", "m"], rows), "charges": charges})


def as_booleans(table: pa.Table) -> pa.Table:
    """The same table with the threshold taken beforehand."""
    age = table["age"].to_numpy()
    old = pa.array(age >= AT, mask=np.isnan(age))
    return table.set_column(table.schema.get_field_index("age"), "age", old)


def schema_with(column: Column) -> Schema:
    return Schema(
        column,
        numeric("bmi", 10, 60),
        categorical("sex", ["f", "m"]),
        numeric("charges", 0, 30_000),
        product("age", "bmi"),
        legendre("bmi", 2),
    )


TOY = threshold("age", AT, weight=0.8)


def seeded(table: object, column: Column, **options: Any) -> Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        return publish(
            table, schema_with(column), epsilon=8.0, delta=1e-6, entropy=SeededEntropy(4), **options
        )


@pytest.fixture
def release() -> Release:
    return seeded(people(), TOY)


@pytest.fixture
def plain() -> Release:
    return seeded(as_booleans(people()), boolean("age", weight=0.8))


def test_it_is_published_as_the_boolean_that_it_is(release: Release, plain: Release) -> None:
    assert release.published == plain.published
    assert release.radius == plain.radius


@pytest.mark.parametrize("form", ["csv", "numbers", "units"])
def test_every_source_and_way_of_counting_reads_it(form: str, tmp_path: Path) -> None:
    table = people()
    options: dict[str, Any] = {}
    found, wanted = table, as_booleans(table)
    schema = schema_with(TOY)
    if form == "csv":
        found = str(tmp_path / "people.csv")
        pyarrow.csv.write_csv(table, found)
    elif form == "numbers":  # a plain array must not be taken for the numbers that the kernel wants
        schema = Schema(TOY, numeric("bmi", 10, 60), numeric("charges", 0, 30_000))
        wanted = wanted.drop_columns(["sex"])
        found = np.column_stack([table[name].to_numpy() for name in schema.source_columns])
    else:
        persons = pa.array(np.arange(len(table)) // 3)
        found, wanted = (each.append_column("person", persons) for each in (table, wanted))
        options["unit"] = "person"
    other = Schema(boolean("age", weight=0.8), *schema.columns[1:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        one, two = (
            publish(data, declared, epsilon=8.0, delta=1e-6, entropy=SeededEntropy(4), **options)
            for data, declared in ((found, schema), (wanted, other))
        )
    assert one.published == two.published


def test_strict_mode_names_its_missing_cell() -> None:
    with pytest.raises(DataError, match="missing") as caught:
        seeded(people(), TOY, strict=True)
    assert caught.value.column == "age"


def test_a_saved_release_is_loaded_with_it(release: Release, tmp_path: Path) -> None:
    loaded = dg.load(release.save(tmp_path / "r.dpgram.json"))
    assert loaded.schema == release.schema
    assert loaded.schema.column("age") == TOY
    assert loaded == release


def test_a_schema_file_declares_it(tmp_path: Path) -> None:
    schema = schema_with(TOY)
    schema.to_file(tmp_path / "schema.toml")
    assert 'kind = "threshold"' in (tmp_path / "schema.toml").read_text(encoding="utf-8")
    assert Schema.from_file(tmp_path / "schema.toml") == schema
    with pytest.raises(SchemaError, match="lacks 'at'"):
        Schema.from_dict({"columns": [{"kind": "threshold", "name": "age"}]})
    assert 'kind = "threshold"' in starter_toml({"waiting": "duration[s]"})


def test_the_json_schema_of_a_release_allows_it() -> None:
    assert '"const": "threshold"' in json_schema.as_file()


def test_regressions_and_predictions(release: Release, plain: Release) -> None:
    names = ["age", "bmi", "sex", "age*bmi", "bmi^P2"]
    fit, wanted = release.regress("charges", names), plain.regress("charges", names)
    np.testing.assert_array_equal(fit.values, wanted.values)
    np.testing.assert_array_equal(fit.conf_int(), wanted.conf_int())
    rest = {"bmi": [20.0, 30.0, 40.0], "sex": ["f", "m", "f"]}
    ages = [30, AT, 80]
    predicted = fit.predict({"age": ages, **rest})
    np.testing.assert_array_equal(predicted, wanted.predict({"age": [age >= AT for age in ages], **rest}))
    assert predicted[1] - predicted[0] > 5_000


def test_the_explorer_computes_with_it(release: Release, tmp_path: Path) -> None:
    told = {column["name"]: column for column in page_facts(release)["declared"]}
    assert told["age"]["kind"] == "threshold"
    page = release.explore(tmp_path / "page.html")
    assert '\\"threshold\\"' in Path(page).read_text(encoding="utf-8")


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
def test_the_code_that_the_explorer_writes_predicts(release: Release) -> None:
    on = ["age", "bmi", "sex", "age*bmi", "bmi^P2"]
    harness = """
      const { facts, on } = JSON.parse(require("fs").readFileSync(0, "utf-8"));
      const moments = dpgram.moments.momentsOf(facts);
      const target = moments.columns.findIndex((column) => column.name === "charges");
      const design = dpgram.design.buildDesign(moments, target, on);
      const fit = dpgram.regression.regress(moments, design, "auto", null);
      const inference = dpgram.inference.infer(moments, design, "population", 0.95);
      const quality = dpgram.inference.quality(moments, design, inference);
      const answer = { design, fit, inference, quality, features: on };
      console.log(dpgram.downloads.asPython(dpgram.downloads.modelOf(moments, answer)));
    """
    program = "\n".join([*map(explorer.script, explorer.ARITHMETIC), harness])
    namespace: dict[str, Any] = {}
    exec(in_node(program, {"facts": page_facts(release), "on": on}), namespace)
    rows = [{"age": age, "bmi": 22.0 + age / 10, "sex": sex} for age in (20, 65.0, 90) for sex in "fm"]
    wanted = release.regress("charges", on).predict(rows)
    np.testing.assert_allclose([namespace["predict"](row) for row in rows], wanted, rtol=1e-6)


def test_the_report_describes_it(release: Release, tmp_path: Path) -> None:
    text = release.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "65 or more" in text
    assert "threshold" in text


def test_plans_and_audits_know_it(release: Release) -> None:
    toy = plan(schema_with(TOY), rows=4_000, epsilon=1.0, delta=1e-6, target="charges")
    same = plan(
        schema_with(boolean("age", weight=0.8)), rows=4_000, epsilon=1.0, delta=1e-6, target="charges"
    )
    assert str(toy) == str(same)
    pair = worst_tables(Pipeline(schema=Schema(TOY, numeric("bmi", 10, 60)), epsilon=1.0, delta=1e-6))[0]
    assert AT - 1.0 < min(pair.a["age"].to_pylist()) < AT < max(pair.a["age"].to_pylist())


def test_a_kind_that_is_not_registered_is_refused() -> None:
    column = threshold("age", AT)
    form = schema_with(column).to_dict()
    del cast("dict[str, type[Column]]", KINDS)["threshold"]
    try:
        with pytest.raises(SchemaError, match="made of columns"):
            schema_with(column)
        with pytest.raises(SchemaError, match="unknown kind"):
            Schema.from_dict(form)
    finally:
        cast("dict[str, type[Column]]", KINDS)["threshold"] = Threshold
