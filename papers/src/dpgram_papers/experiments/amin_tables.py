"""The tables of Amin et al.: three real ones in their encoding, and the synthetic ones of Algorithm 3."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from dpgram_papers.experiments.grid import generator_of

Array: TypeAlias = npt.NDArray[np.float64]

REAL: Final = {"wine": "wine_recognition/data", "airfoil": "airfoil/raw", "adult": "adult/data"}
FILES: Final = tuple(f"{path}.parquet" for path in REAL.values())
TARGETS: Final = ("cultivar", "income_gt_50k")
"""Columns that are no features."""


@lru_cache(maxsize=3)
def real(folder: Path, name: str) -> Array:
    """Columns over their largest absolute value, categories one-hot, rows over the root of their number.

    The maxima are taken from the data, as in the paper, and stand for bounds that would be public.
    """
    table = pq.read_table(folder / f"{REAL[name]}.parquet")
    table = table.drop_columns([c for c in TARGETS if c in table.column_names])
    parts: list[Array] = []
    for column in table.columns:
        values = column.to_numpy()
        if values.dtype.kind in "fiu":
            parts.append((values / np.abs(values).max())[:, None])
        else:
            levels = sorted(set(values.tolist()))
            parts.append(np.stack([values == level for level in levels], axis=1).astype(np.float64))
    return np.asarray(np.concatenate(parts, axis=1) / np.sqrt(len(parts)))


@lru_cache(maxsize=2)
def synthetic(width: int, rows: int, seed: int) -> Array:
    """Algorithm 3: normal points times a uniform matrix; features standardised, then points of length one."""
    generator = generator_of(seed, "amin", width, rows)
    mixing = generator.uniform(size=(width, width))
    points = generator.standard_normal((rows, width)) @ mixing.T
    points = (points - points.mean(axis=0)) / points.std(axis=0)
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def held(drawn: Array, rows: int) -> Array:
    """The eigenvalues brought into [0, n], as for every method in the paper."""
    values, vectors = np.linalg.eigh(0.5 * (drawn + drawn.T))
    return np.asarray((vectors * np.clip(values, 0.0, rows)) @ vectors.T)
