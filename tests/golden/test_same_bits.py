"""Seeded publications give the same integers on every machine and in every version from here on.

The digests were written when rows became whole numbers before the clip (dpgram.core), which moved single
lattice units, and when scales came from the core's own curve, which is 10⁻⁹ stricter. Only mechanisms drawn
in integers are here: no library can round them otherwise.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.flat import publish

from dpgram.core.noise import SeededEntropy
from dpgram.demo import insurance
from dpgram.release import Release
from dpgram.schema import Schema, categorical, numeric

SCHEMA = Schema(
    numeric("age", 18, 90),
    numeric("bmi", 10, 60),
    categorical("smoker", ["no", "yes"]),
    numeric("charges", 0, 50_000),
)
CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "plain": ({}, ["37c4512e4953"]),
    "a clip": ({"mechanism": "gaussian", "clip": 1.5}, ["83855f1c5b89"]),
    "persons": ({"unit": "pid"}, ["bda3edd4fc35"]),
    "three rows a person": ({"unit": "pid", "unit_rows": 3}, ["23dbd731a8ed"]),
    "weights": ({"weight": numeric("w", 0, 2)}, ["f561670af2d8"]),
    "groups": ({"by": categorical("region", ["northeast", "southeast"])}, ["32b14201c21f", "f0573188922c"]),
    "blocks": (
        {"blocks": [["age", "bmi"], ["charges", "smoker"]], "mechanism": "gaussian"},
        ["3236abc0edcc", "2e826c1c94b7"],
    ),
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    people, draw = insurance.table(), np.random.default_rng(0)
    columns = {name: people[name] for name in people.column_names}
    persons = draw.integers(0, 9_000, people.num_rows)
    return pa.table({**columns, "pid": persons, "w": draw.uniform(0, 2, people.num_rows)})


@pytest.mark.parametrize("name", CASES)
def test_the_integers_stay(name: str, table: pa.Table) -> None:
    options, digests = CASES[name]
    found: Any = publish(
        table, SCHEMA, epsilon=1.0, delta=1e-6, entropy=SeededEntropy(3), progress=False, **options
    )
    releases = [found] if isinstance(found, Release) else list(getattr(found, "values", lambda: found)())
    assert [digest(release) for release in releases] == digests


def digest(release: Release) -> str:
    content = "".join(release.published.cells) + str(release.radius) + release.guarantee.statement
    return hashlib.sha256(content.encode()).hexdigest()[:12]
