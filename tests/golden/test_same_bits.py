"""Seeded publications give the integers that the first edition gave: the way to them changed, not they.

The digests were written by the first edition (commit 500916b), which read, added up and drew in another
order of modules. Only mechanisms drawn in integers are here: no library can round them otherwise.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.flat import publish

from dpgram.demo import insurance
from dpgram.privacy.sampling.entropy import SeededEntropy
from dpgram.release import Release
from dpgram.schema import Schema, categorical, numeric

pytestmark = pytest.mark.usefixtures("kernel_form")

SCHEMA = Schema(
    numeric("age", 18, 90),
    numeric("bmi", 10, 60),
    categorical("smoker", ["no", "yes"]),
    numeric("charges", 0, 50_000),
)
CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "plain": ({}, ["57aae86a99b8"]),
    "a clip": ({"mechanism": "gaussian", "clip": 1.5}, ["4c140d83de81"]),
    "persons": ({"unit": "pid"}, ["8b722c961de2"]),
    "three rows a person": ({"unit": "pid", "unit_rows": 3}, ["24b233b31235"]),
    "weights": ({"weight": numeric("w", 0, 2)}, ["b5e78b3070fd"]),
    "groups": ({"by": categorical("region", ["northeast", "southeast"])}, ["32b14201c21f", "f0573188922c"]),
    "blocks": (
        {"blocks": [["age", "bmi"], ["charges", "smoker"]], "mechanism": "gaussian"},
        ["76fb4a0d5496", "30b0cec4cd2f"],
    ),
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    people, draw = insurance.table(), np.random.default_rng(0)
    columns = {name: people[name] for name in people.column_names}
    persons = draw.integers(0, 9_000, people.num_rows)
    return pa.table({**columns, "pid": persons, "w": draw.uniform(0, 2, people.num_rows)})


@pytest.mark.parametrize("name", CASES)
def test_the_integers_of_the_first_edition(name: str, table: pa.Table) -> None:
    options, digests = CASES[name]
    found: Any = publish(
        table, SCHEMA, epsilon=1.0, delta=1e-6, entropy=SeededEntropy(3), progress=False, **options
    )
    releases = [found] if isinstance(found, Release) else list(getattr(found, "values", lambda: found)())
    assert [digest(release) for release in releases] == digests


def digest(release: Release) -> str:
    content = "".join(release.published.cells) + str(release.radius) + release.guarantee.statement
    return hashlib.sha256(content.encode()).hexdigest()[:12]
