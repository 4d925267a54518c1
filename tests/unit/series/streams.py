"""Small series for tests: people with an id, a slope that is known, noise from a seed or from the system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import dpgram as dg
from dpgram.engines import LocalEngine
from dpgram.privacy import SeededEntropy
from dpgram.series import Series
from dpgram.series._curate import create, publish

SCHEMA = dg.Schema(dg.numeric("x", 0, 10), dg.numeric("y", -20, 40))
ENGINE = LocalEngine(threads=1)


def people(first: int, count: int, *, slope: float = 2.0, seed: int = 0) -> pa.Table:
    """Persons `first`, `first` + 1, …, each with one row that depends on its own id and the seed."""
    draw = np.random.default_rng([seed, first])
    x = draw.uniform(2.0, 8.0, count)
    y = slope * x + draw.normal(0.0, 2.0, count)
    return pa.table({"id": np.arange(first, first + count), "x": x, "y": y})


def names(folder: Path) -> list[str]:
    """The files in a folder."""
    return sorted(path.name for path in folder.iterdir())


def seeded(path: Path, tables: list[pa.Table], seed: int = 1, **options: Any) -> Series:
    """A series of these tables, with noise from a seed."""
    asked = {"epsilon": 4.0, "delta": 1e-5, "periods": 12, "rows": dg.Rows(unit="id"), **options}
    noise = SeededEntropy(seed)
    create(path, SCHEMA, entropy=noise, **asked)
    for number, table in enumerate(tables, start=1):
        publish(path, table, f"m{number}", engine=ENGINE, progress=False, entropy=noise)
    return Series.open(path)
