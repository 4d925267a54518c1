"""Closer histograms of open columns: paid out of what was left, from what is published, and worth it."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from assurance.adaptive_audit import WIDE_SETTINGS, Setting, audited, told
from assurance.broken_adaptive import unexplained

import dpgram as dg
from dpgram.core.noise import SeededEntropy
from dpgram.document.fields import MeasuredCounts, MeasuredHistograms, MeasuredMatrix, MeasuredZoom
from dpgram.document.measurements import histogram_count, measured_price
from dpgram.engines import LocalEngine
from dpgram.errors import DpgramWarning, ReleaseError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.count_noise import price_of_counts
from dpgram.publishing import publish_with
from dpgram.publishing.publisher import named

ROWS = 3_000
DENSITY = 0.001
"""The deviation of a column near 1, whose bounds are then 0.5 and 2: a hundredth of a step."""


def table(rows: int = ROWS) -> pa.Table:
    generator = np.random.default_rng(5)
    x, noise = generator.normal(size=rows), generator.normal(size=rows)
    return pa.table(
        {
            "density": 0.9967 + DENSITY * x,
            "y": 4.0 * x + 2.0 * noise,
            "g": np.array(["r", "s"])[generator.integers(0, 2, rows)],
        }
    )


def schema(**more: Any) -> dg.Schema:
    return dg.Schema(dg.numeric("density"), dg.numeric("y", -50, 50), **more)


def published(declared: dg.Schema | None = None, **options: Any) -> tuple[dg.Release, ...]:
    options = {"epsilon": 2.0, "delta": 1e-6, "engine": LocalEngine(threads=1), **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        return publish_with(
            table(), declared or schema(), entropy=SeededEntropy(4), progress=False, **options
        )


def looks(release: dg.Release) -> list[MeasuredZoom]:
    return [each for each in release.measured if isinstance(each, MeasuredZoom)]


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_everything_together_costs_what_was_asked_for(adjacency: str, delta: float) -> None:
    (release,) = published(adjacency=adjacency, delta=delta, epsilon=3.0)
    assert looks(release)
    changed = 1 if adjacency == "add-remove" else 2
    if delta:
        own = changed * (ROW_NORM_SQUARED / Fraction(release.noise.sigma)) ** 2
        whole = Fraction(release.guarantee.mu) ** 2
    else:
        own = changed * ROW_NORM_SQUARED * Fraction(release.noise.theta)
        whole = Fraction(release.guarantee.epsilon)
    spent = measured_price(release, changed) + own
    assert whole * (1 - Fraction(1, 10**9)) <= spent <= whole
    assert dg.Release.from_json(release.to_json()) == release


def test_looks_follow_from_what_is_published_alone() -> None:
    (release,) = published()
    assert [each.column for each in looks(release)[0].columns] == ["density"]
    assert unexplained(release) == ()


def test_the_scale_is_found_and_with_it_the_answer() -> None:
    """Without closer looks the column has the deviation of a whole step, almost thirty times its own."""
    (release,) = published()
    first = next(each for each in release.measured if isinstance(each, MeasuredMatrix))
    low, high = release.schema.column("density").encoding.low, release.schema.column("density").encoding.high
    deviation = 0.5 * (high - low) / first.coordinates.matrix[1, 1]
    assert 0.5 * DENSITY < deviation < 3.0 * DENSITY
    found = release.regress("y", on=["density"]).values[1] * DENSITY
    assert found == pytest.approx(4.0, abs=0.5)


@pytest.mark.parametrize("place", range(3))
def test_an_array_has_the_bits_of_its_table(place: int) -> None:
    """A closer look counts a part of the columns, of an array too, which is not read through Arrow."""
    generator = np.random.default_rng(3)
    wide = generator.uniform(0, 1_000, (ROWS, 2))
    cells = np.insert(wide, place, 0.9967 + DENSITY * generator.normal(size=ROWS), axis=1)
    names = np.insert(np.array(["a", "b"], object), place, "density").tolist()
    declared = dg.Schema(*(dg.numeric(name, *(() if name == "density" else (0, 1_000))) for name in names))
    by_array, by_table = (
        publish_with(data, declared, epsilon=4.0, delta=1e-6, entropy=SeededEntropy(4), progress=False)
        for data in (cells, pa.table(dict(zip(names, cells.T, strict=True))))
    )
    assert [each.column for each in looks(by_array[0])[0].columns] == ["density"]
    assert by_array == by_table


def test_public_bounds_are_kept_and_looked_into_where_they_are_far_too_wide() -> None:
    (release,) = published(dg.Schema(dg.numeric("density", 0.5, 2), dg.numeric("y", -50, 50)))
    assert {each.column for look in looks(release) for each in look.columns} == {"density"}
    assert unexplained(release) == ()
    encoding = release.schema.column("density").encoding
    assert (encoding.low, encoding.high) == (0.5, 2.0)


@pytest.mark.parametrize("wide", [1.0, 1e2, 1e4, 1e6])
def test_bounds_far_too_wide_cost_a_step_and_not_the_release(wide: float) -> None:
    """Slopes of 20,000 rows, in deviations: without closer looks there are none from a hundred on."""
    generator = np.random.default_rng(2)
    x = generator.normal(size=(20_000, 3))
    y = x @ [1.0, -0.5, 0.25] + generator.normal(size=len(x))
    data = {"a": 37 + x[:, 0], "b": 37 + 5 * x[:, 1], "c": x[:, 2] / 100, "y": y}
    declared = dg.Schema(
        *(
            dg.numeric(name, cells.mean() - 4 * wide * cells.std(), cells.mean() + 5 * wide * cells.std())
            for name, cells in data.items()
        )
    )
    for seed in range(3):
        (release,) = publish_with(
            data, declared, epsilon=1.0, delta=1e-6, entropy=SeededEntropy(seed), progress=False
        )
        assert bool(looks(release)) == (wide > 1.0)
        found = release.regress("y", on=["a", "b", "c"]).values[1:] * [1.0, 5.0, 0.01]
        assert np.abs(found - [1.0, -0.5, 0.25]).max() < 0.08
        spent = measured_price(release, 1) + (ROW_NORM_SQUARED / Fraction(release.noise.sigma)) ** 2
        assert spent <= Fraction(release.guarantee.mu) ** 2
        assert unexplained(release) == ()


def test_groups_are_looked_at_in_the_same_columns() -> None:
    found = named(published(rows=dg.Rows(by=dg.categorical("g", ["r", "s"])), epsilon=4.0))
    every = [looks(release) for release in found.values()]
    assert every[0]
    names = [[[each.column for each in look.columns] for look in own] for own in every]
    assert names[0] == names[1]
    assert [look.scale for look in every[0]] == [look.scale for look in every[1]]


@pytest.mark.parametrize("few", [0, 30])
def test_a_group_of_few_rows_asks_for_no_look(few: int) -> None:
    """Its histograms are noise, which often lies at three nodes: all groups would pay for looks at it."""
    generator = np.random.default_rng(0)
    cells = 10.0 * generator.normal(size=(ROWS + few, 3))
    columns = {name: cells[:, place] for place, name in enumerate("abc")}
    rows = pa.table({**columns, "g": ["r"] * ROWS + ["s"] * few})
    declared = dg.Schema(*(dg.numeric(name) for name in "abc"))
    by = dg.Rows(by=dg.categorical("g", ["r", "s"]))
    for seed in range(6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DpgramWarning)
            found = publish_with(
                rows,
                declared,
                epsilon=2.0,
                delta=1e-6,
                rows=by,
                entropy=SeededEntropy(seed),
                engine=LocalEngine(threads=1),
                progress=False,
            )
        assert [looks(release) for release in found] == [[], []]


def test_blocks_share_the_price_of_a_closer_look() -> None:
    declared = schema(blocks=[["density"], ["density", "y"]])
    first, second = published(declared, epsilon=4.0)
    assert looks(first) == looks(second) != []
    shared = [each for each in first.measured if isinstance(each, MeasuredCounts) and each in second.measured]
    common = sum(
        price_of_counts(each.law, each.scale, histograms=histogram_count(each), units_changed=1)
        for each in shared
    )
    own = [
        measured_price(each, 1) + (ROW_NORM_SQUARED / Fraction(each.noise.sigma)) ** 2
        for each in (first, second)
    ]
    assert first.block is not None
    assert sum(own) - common <= Fraction(first.block.joint.mu) ** 2


def test_a_file_with_another_look_is_refused() -> None:
    (release,) = published()
    (look, *_) = looks(release)
    (column,) = look.columns
    places = [number for number, each in enumerate(release.measured) if each is look]
    without = tuple(each for each in release.measured if not isinstance(each, MeasuredHistograms))
    forged = [
        (
            *release.measured[: places[0]],
            msgspec.structs.replace(look, columns=columns),
            *release.measured[places[0] + 1 :],
        )
        for columns in (
            (msgspec.structs.replace(column, low=-1.0),),
            (msgspec.structs.replace(column, column="nobody"),),
            (column, column),
        )
    ]
    for measured in (*forged, without):
        with pytest.raises(ReleaseError, match="contradicts"):
            msgspec.structs.replace(release, measurements=measured)


@pytest.mark.parametrize("setting", list(WIDE_SETTINGS.values()), ids=WIDE_SETTINGS)
def test_in_every_release_the_looks_tell_no_more_than_was_paid_for(setting: Setting) -> None:
    """In exact sums: the row lies at the end of the histograms, and outside of closer ones."""
    zoomed = 0
    for seed in range(4):
        release = setting.publish(setting.tables[seed % 2], SeededEntropy(seed))
        spent, promised = told(release, setting)
        zoomed += bool(looks(release))
        assert spent <= promised * (1.0 + 1e-9)
    assert zoomed >= 2


@pytest.mark.full
@pytest.mark.parametrize("setting", list(WIDE_SETTINGS.values()), ids=WIDE_SETTINGS)
def test_nor_does_a_long_look_refute_it(setting: Setting) -> None:
    assert audited(setting, runs=2_000, seed=2).passes(setting.curve)
