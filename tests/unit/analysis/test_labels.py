"""Labels, units and level labels of the schema, wherever a person looks at an answer; names elsewhere."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.flat import publish

import dpgram as dg
from dpgram.document.labels import Labels
from dpgram.explorer.facts import page_facts

SCHEMA = dg.Schema(
    dg.numeric("age", 18, 90, label="Age of the insured", units="years"),
    dg.numeric("bmi", 10, 60),
    dg.categorical("region", ["n", "s"], label="Region", level_labels=["the north", "the south"]),
    dg.boolean("smokes", label="Smoker"),
    dg.numeric("charges", 0, 100, label="Yearly charges", units="dollars"),
    dg.product("age", "bmi"),
)


@pytest.fixture(scope="module")
def release() -> dg.Release:
    draw = np.random.default_rng(0)
    rows = 4_000
    age, region = draw.uniform(18, 90, rows), draw.choice(["n", "s"], rows)
    table = {
        "age": age,
        "bmi": draw.uniform(15, 45, rows),
        "region": region,
        "smokes": draw.random(rows) < 0.3,
        "charges": np.clip(0.5 * age + 10 * (region == "n") + draw.normal(0, 5, rows), 0, 100),
    }
    found = publish(table, SCHEMA, epsilon=10.0, delta=1e-6)
    assert isinstance(found, dg.Release)
    return found


@pytest.mark.parametrize(
    ("name", "label", "titled"),
    [
        ("age", "Age of the insured", "Age of the insured (years)"),
        ("bmi", "bmi", "bmi"),
        ("region", "Region", "Region"),
        ("region=s", "Region: the south", "Region: the south"),
        ("age:bmi", "Age of the insured × bmi", "Age of the insured × bmi"),
        ("age*bmi", "Age of the insured × bmi", "Age of the insured × bmi"),
        ("(intercept)", "(intercept)", "(intercept)"),
    ],
)
def test_words_for_names(name: str, label: str, titled: str) -> None:
    words = Labels(SCHEMA)
    assert (words[name], words.titled(name)) == (label, titled)


def test_level_labels_need_no_label_of_the_column() -> None:
    column = dg.categorical("region", ["n", "s"], other="o", level_labels=["north", "south"])
    words = Labels(dg.Schema(column))
    assert [words[f"region={level}"] for level in "nso"] == ["region: north", "region: south", "region: o"]


def test_the_figure_of_coefficients(release: dg.Release) -> None:
    (axis,) = release.regress("charges").plot().axes
    ticks = [tick.get_text() for tick in axis.get_yticklabels()]
    assert {"Age of the insured", "bmi", "Smoker", "Age of the insured × bmi"} < set(ticks)
    assert any(tick.startswith("Region: the ") for tick in ticks)
    assert "change of Yearly charges (dollars)" in axis.get_xlabel()
    assert axis.get_title(loc="left") == "Regression of Yearly charges"


def test_heat_map_and_components(release: dg.Release) -> None:
    heat = release.correlation().plot().axes[0]
    shown = [tick.get_text() for tick in heat.get_yticklabels()]
    assert shown[:2] == ["Age of the insured", "bmi"]
    assert "Region: the north" in shown
    drawn = {text.get_text() for text in release.pca().plot().axes[1].texts}
    assert drawn & {"Smoker", "Region: the north", "Region: the south"}
    assert not drawn & {"smokes", "region=n", "region=s"}


def test_summaries_have_names_and_say_what_they_stand_for(release: dg.Release) -> None:
    text = " ".join(release.regress("charges", ["age", "bmi"]).summary().split())
    assert text.startswith("Regression of charges (Yearly charges, dollars) from a private release")
    assert "Columns: age is Age of the insured (years)." in text
    for answer in (
        release.discriminant("smokes", ["age"]),
        release.within("charges", ["age"], "region"),
        release.iv("charges", "bmi", "age"),
    ):
        assert "age is Age of the insured (years)" in " ".join(answer.summary().split()) or (
            "Yearly charges (dollars)" in " ".join(answer.summary().split())
        )


def test_descriptions_have_units(release: dg.Release) -> None:
    found = release.describe()
    assert (found["age"].label, found["age"].units) == ("Age of the insured", "years")
    assert (found["bmi"].label, found["bmi"].units) == (None, None)
    head, first = str(found).splitlines()[2:4]
    assert head.split()[:2] == ["units", "mean"]
    assert first.split()[:2] == ["age", "years"]
    assert "Columns: age is Age of the insured; region=n is Region: the north" in str(found)
    assert "<td>years</td>" in found._repr_html_()
    assert found.to_frame()["units"].to_list()[:2] == ["years", None]


def test_without_words_nothing_is_said(release: dg.Release) -> None:
    bare = dg.Schema(*(column.as_counted() for column in SCHEMA.columns))
    table = {name: [0.5, 0.6] * 1000 for name in ("bmi", "charges", "age")}
    table |= {"region": ["n", "s"] * 1000, "smokes": [True, False, False, True] * 500}
    table["age"] = list(np.random.default_rng(1).uniform(18, 90, 2000))
    plain = publish(table, bare, epsilon=10.0, delta=1e-6)
    assert isinstance(plain, dg.Release)
    assert "Columns:" not in plain.regress("age", ["smokes"]).summary()
    assert "units" not in str(plain.describe())


def test_the_page_has_them(release: dg.Release) -> None:
    columns = json.loads(json.dumps(page_facts(release)["columns"]))
    by_name = {column["name"]: column for column in columns}
    assert by_name["age"]["title"] == "Age of the insured (years)"
    assert by_name["region=n"]["label"] == "Region: the north"
