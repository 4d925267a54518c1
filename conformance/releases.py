"""The releases of the conformance vectors: one of every kind, from a table of nobody, with seeded noise.

A further kind is a function and a line in `KINDS`.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

import dpgram as dg
from dpgram.core.noise import SeededEntropy
from dpgram.demo import insurance
from dpgram.errors import DpgramWarning
from dpgram.mechanisms import InverseNoise
from dpgram.publishing import publish_with
from dpgram.release import Release

PEOPLE: Final = 12_000
SEED: Final = 27
CATEGORIES: Final = (
    dg.categorical("smoker", ["no", "yes"]),
    dg.categorical("region", list(insurance.REGIONS), weight=0.5),
)
NUMBERS: Final = (dg.numeric("age", 18, 90), dg.numeric("bmi", 10, 60, weight=0.7))
OTHERS: Final = (dg.numeric("exercise", 0, 20), dg.numeric("charges", 0, 70_000))
MIXED: Final = (*NUMBERS, *CATEGORIES, *OTHERS)


@cache
def table() -> pa.Table:
    """The demonstration's people, and a column for each way in which rows can count."""
    people = insurance.table(PEOPLE)
    places = np.arange(PEOPLE)
    own = {
        "person": places // 3,
        "weight": 1.0 + (places % 5),
        "active": np.asarray(people["exercise"]) > 2.0,
        "grade": np.array(["low", "middle", "high"])[np.digitize(np.asarray(people["children"]), [1, 3])],
        "visit": np.datetime64("2020-01-01") + (places * 7 % 1461).astype("timedelta64[D]"),
    }
    for name, values in own.items():
        people = people.append_column(name, pa.array(values))
    return people


def _published(*columns: Any, constant: bool = True, blocks: Any = None, **options: Any) -> Release:
    """The first release of the call; epsilon 1 and delta 1e-6, adaptive, unless said otherwise."""
    asked = {"epsilon": 1.0, "delta": 1e-6, **options}
    schema = dg.Schema(*columns, constant=constant, blocks=blocks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        return publish_with(table(), schema, entropy=SeededEntropy(SEED), **asked)[0]


def plain() -> Release:
    """One matrix with Gaussian noise, every kind of column."""
    more = (
        dg.ordinal("grade", ["low", "middle", "high"]),
        dg.boolean("active"),
        dg.numeric("visit", "2019-01-01", "2024-12-31"),
        dg.product("age", "bmi"),
        dg.legendre("age", 2),
        dg.legendre("age", 3),
    )
    return _published(*MIXED, *more, mechanism="gaussian", adaptive=False, epsilon=4.0)


def crossed() -> Release:
    """Products of categorical columns with numbers and with each other."""
    more = (dg.product("smoker", "age"), dg.product("exercise", "smoker"), dg.product("smoker", "region"))
    return _published(*MIXED, *more, mechanism="gaussian", adaptive=False, epsilon=8.0)


def through_origin() -> Release:
    """No constant column; the number of rows is public."""
    return _published(*MIXED, constant=False, adjacency="replace-one", adaptive=False, epsilon=2.0)


def numbers() -> Release:
    """The default for columns of numbers alone: no sum of columns is known beforehand."""
    return _published(*NUMBERS, *OTHERS, dg.product("age", "bmi"), epsilon=2.0)


def one_group_through_origin() -> Release:
    """A single categorical column and no constant: again no sum is known."""
    return _published(*NUMBERS, CATEGORIES[0], OTHERS[1], constant=False, adaptive=False, epsilon=2.0)


def clipped() -> Release:
    """Matrix Laplace noise; a public radius below the longest row; missing cells count as midpoints."""
    return _published(*MIXED, rows=dg.Rows(radius=1.5, missing="midpoint"), adaptive=False, epsilon=4.0)


def adaptive() -> Release:
    """The default: coordinates of its own, histograms, counts of what the clip took."""
    return _published(*MIXED, dg.product("age", "bmi"), dg.legendre("age", 2))


def adaptive_crossed() -> Release:
    """Coordinates of its own, products with levels."""
    return _published(*MIXED, dg.product("smoker", "age"), epsilon=3.0)


def empty_level() -> Release:
    """A level that no row has: noisy counts show it, and the fit leaves it out."""
    region = dg.categorical("region", [*insurance.REGIONS, "abroad"])
    return _published(*NUMBERS, region, *OTHERS, epsilon=2.0)


def pure() -> Release:
    """δ = 0: matrix Laplace noise, in coordinates of its own."""
    return _published(*MIXED, epsilon=3.0, delta=0.0)


def entrywise() -> Release:
    """Laplace noise cell by cell, with another scale on the diagonal."""
    return _published(*MIXED, mechanism="laplace", adaptive=False, epsilon=6.0, delta=0.0)


def wishart() -> Release:
    """Noise with a mean: positive semidefinite."""
    return _published(*MIXED, mechanism="wishart", adaptive=False, epsilon=4.0)


def sampled() -> Release:
    """A sketch: the error depends on the table itself."""
    return _published(*MIXED, mechanism="sketch", adaptive=False, epsilon=8.0)


def inverse() -> Release:
    """The published matrix is a noisy inverse."""
    return _published(*MIXED, mechanism=InverseNoise(ridge=500.0), adaptive=False, epsilon=8.0)


def learnt() -> Release:
    """Bounds and levels learnt from the table."""
    columns = (NUMBERS[0], dg.numeric("bmi"), dg.categorical("region"), dg.numeric("charges"))
    return _published(*columns, adaptive=dg.Adaptive(bounds=0.2, levels=0.1), epsilon=3.0)


def weighted() -> Release:
    """Survey weights."""
    return _published(*MIXED, rows=dg.Rows(weight=dg.numeric("weight", 0, 5)), epsilon=2.0)


def persons() -> Release:
    """All rows of a person are protected together and count as one."""
    return _published(*MIXED, rows=dg.Rows(unit="person"), epsilon=2.0)


def group() -> Release:
    """The rows of one public level."""
    sex = dg.categorical("sex", ["female", "male"])
    return _published(*MIXED, sex, rows=dg.Rows(by="sex"), epsilon=2.0)


def block() -> Release:
    """One of two releases that share a budget, with some of the columns each."""
    blocks = [["age", "bmi", "smoker", "charges"], ["age", "region", "exercise", "charges"]]
    return _published(*MIXED, blocks=blocks, epsilon=2.0)


def models() -> Release:
    """A declared linear model, whose errors allow for unequal variances."""
    declared = [dg.linear("charges", on=["age", "bmi", "smoker"])]
    return _published(*MIXED, models=declared, epsilon=4.0)


def models_persons() -> Release:
    """Declared linear models of persons with several rows: products with levels, a level as target."""
    declared = [
        dg.linear("charges", on=["region", "smoker", "age", "smoker*age"], limit=10),
        dg.linear("smoker=yes", on=["age", "bmi", "age*bmi"]),
    ]
    products = (dg.product("smoker", "age"), dg.product("age", "bmi"))
    return _published(*MIXED, *products, rows=dg.Rows(unit="person"), models=declared, epsilon=8.0)


def models_faint() -> Release:
    """Declared linear models of which noise hides nothing, the spread of the scores, and the whole step."""
    declared = [
        dg.linear("charges", on=["age", "bmi", "smoker"], share=0.2),
        dg.linear("bmi", on=["age", "region"], share=0.002),
        dg.linear("exercise", on=["age", "smoker"], share=0.0005),
    ]
    return _published(*MIXED, models=declared)


def series() -> Release:
    """The total of three periods of a table that grows. Its noise is the system's: series take no seed."""
    with tempfile.TemporaryDirectory() as folder:
        growing = dg.Series.create(
            Path(folder) / "people.series", dg.Schema(*MIXED), epsilon=4.0, delta=1e-6, periods=4, ledger=None
        )
        third = PEOPLE // 3
        found = [growing.publish(table().slice(k * third, third), f"2026-{k + 1:02}") for k in range(3)]
    return found[-1]


def rare() -> Release:
    """Levels of few rows, which noise hides: their coefficients have no interval, the others do."""
    children = dg.categorical("children", [str(number) for number in range(9)])
    return _published(*NUMBERS, children, *OTHERS, mechanism="gaussian", adaptive=False, epsilon=1.0)


def drowned() -> Release:
    """Noise that hides everything."""
    return _published(*MIXED, mechanism="gaussian", adaptive=False, epsilon=0.01)


KINDS: Final[Mapping[str, Callable[[], Release]]] = {
    "plain": plain,
    "crossed": crossed,
    "through-origin": through_origin,
    "numbers": numbers,
    "one-group-through-origin": one_group_through_origin,
    "clipped": clipped,
    "adaptive": adaptive,
    "adaptive-crossed": adaptive_crossed,
    "empty-level": empty_level,
    "pure": pure,
    "entrywise": entrywise,
    "wishart": wishart,
    "sampled": sampled,
    "inverse": inverse,
    "learnt": learnt,
    "weighted": weighted,
    "persons": persons,
    "group": group,
    "block": block,
    "models": models,
    "models-persons": models_persons,
    "models-faint": models_faint,
    "series": series,
    "rare": rare,
    "drowned": drowned,
}
