"""Levels without rows leave the fit of an adaptive release, in Python and on the page, and it is said."""

from __future__ import annotations

import numpy as np
import pytest

import dpgram as dg
from dpgram.analysis.moments import Moments
from dpgram.explorer.facts import page_facts
from dpgram.privacy import SeededEntropy
from dpgram.publishing import publish_with

ROWS = 20_000


@pytest.fixture(scope="module")
def release() -> dg.Release:
    generator = np.random.default_rng(0)
    group = generator.integers(0, 2, ROWS)
    table = {
        "g": np.array(["a", "b"])[group],
        "x": generator.uniform(0, 1, ROWS),
        "y": group + generator.normal(0, 0.5, ROWS),
    }
    schema = dg.Schema(
        dg.categorical("g", ["never", "a", "b", "hardly"]), dg.numeric("x", 0, 1), dg.numeric("y", -5, 5)
    )
    options = {"epsilon": 1.0, "delta": 1e-6, "progress": False}
    (found,) = publish_with(table, schema, entropy=SeededEntropy(3), **options)
    return found


@pytest.mark.filterwarnings("ignore:rows far from the others count less:dpgram.errors.DpgramWarning")
def test_empty_levels_leave_the_fit_and_the_others_have_intervals(release: dg.Release) -> None:
    fit = release.regress("y", on=["g", "x"])
    assert len(fit.names) == 3
    assert fit.design.empty == ("g=never", "g=hardly")
    for low, high in fit.conf_int().values():
        assert -np.inf < low < high < np.inf
    (level,) = (name for name in fit.names if name.startswith("g="))
    assert abs(fit.params[level]) == pytest.approx(1.0, abs=0.05)
    assert any("g=never, g=hardly" in caution for caution in fit.cautions)


def test_a_level_that_is_named_stays(release: dg.Release) -> None:
    fit = release.regress("y", on=["g=never", "x"])
    assert "g=never" in fit.names


def test_the_page_knows_them(release: dg.Release) -> None:
    facts = page_facts(release)
    assert [column["name"] for column in facts["columns"] if column["empty"]] == ["g=never", "g=hardly"]


def test_of_every_column_one_level_is_kept() -> None:
    schema = dg.Schema(dg.categorical("g", ["a", "b"]), dg.numeric("y", 0, 1))
    (release,) = publish_with(
        {"g": ["a"], "y": [0.5]}, schema, entropy=SeededEntropy(4), epsilon=0.1, delta=1e-6, progress=False
    )
    assert len(Moments.of(release).empty_levels) <= 1
