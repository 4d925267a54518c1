"""Tables whose encoded rows are lattice points, and releases of them whose noise vanishes.

A release differs from least squares on its table in two ways: rows are rounded to a lattice, and noise is
added. To hold the arithmetic against statsmodels to six digits, both must see the same numbers. So the cells
of a table are first put on a grid whose points, squares and products are lattice points:

    radius R = 4, lattice step 2⁻¹³; a feature has z = k/64, hence z₁z₂ = k/2¹² and (3z² − 1)/2 = k/2¹³

Then no row is rounded, the reference is fitted on these very cells, and what is left is the noise:

- `vanishing`: a file made by hand that states the exact matrix and noise of one lattice unit, 10⁻⁹ of what
  one row may contribute. It goes through everything that a file goes through when it is written and loaded.
  The mechanisms do not publish so little noise, whatever ε: below 2²⁶ units their proof does not hold.
- `published`: by `publish` itself, with its own noise at ε = 200, about as little as there is. The table is
  stacked to more than 2³² rows, about as many as exact sums can hold, by an engine that adds its sums to
  themselves: the noise is some 10⁻¹¹ of the matrix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.unit.releases import gaussian_release, triangle

from dpgram.document.fields import MechanismUsed, PublishedMatrix, StatedGuarantee
from dpgram.engines.base import Engine
from dpgram.engines.local import LocalEngine, gram
from dpgram.engines.passes import Pass, Sums, merge
from dpgram.engines.threads import Progress
from dpgram.errors import DpgramWarning
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED
from dpgram.noise import SymmetricGaussian
from dpgram.privacy import SeededEntropy
from dpgram.publishing import publish_with
from dpgram.release import Release, load
from dpgram.rows.encoder import Encoder
from dpgram.schema import Schema, numeric
from dpgram.schema.columns import Column

RADIUS = 4.0
STEPS = 64
"""Steps of a feature from the middle of its bounds to one of them."""
SIGMA = 1.0
"""Noise of `vanishing`, in lattice units."""
EPSILON = 200.0
"""That of `published`."""
MOST_ROWS = 2**33


@dataclass(frozen=True)
class LatticeTable:
    frame: pd.DataFrame
    schema: Schema


def on_the_lattice(
    frame: pd.DataFrame, target: str, features: Sequence[str], others: Sequence[Column] = ()
) -> LatticeTable:
    """The table with the cells of numbers moved to the nearest grid points, and a schema that keeps them.

    Whole numbers with at most 127 of them in their range stay as they are: of their grid they are every
    point, or every second, fourth … The weight of the target fills the squared radius up to 16.
    """
    frame, columns = frame.copy(), []
    for name in features:
        cells = frame[name].to_numpy(float)
        low, high = cells.min(), cells.max()
        whole = high - low < 2 * STEPS - 1 and np.array_equal(cells, np.rint(cells))
        widest = (high - low) / (2 * STEPS - 2)
        unit = 2.0 ** math.ceil(math.log2(widest)) if whole else widest
        middle = low + unit * (STEPS - 1)
        frame[name] = middle + unit * np.rint((cells - middle) / unit)
        columns.append(numeric(name, middle - STEPS * unit, middle + STEPS * unit))
    weight = math.sqrt(RADIUS**2 - 1 - len(features) - sum(column.weight**2 for column in others))
    cells = frame[target].to_numpy(float)
    middle, half = (cells.min() + cells.max()) / 2, (cells.max() - cells.min()) * 0.51
    unit = half * RADIUS / ROW_NORM / weight
    frame[target] = middle + unit * np.rint((cells - middle) / unit)
    columns.append(numeric(target, middle - half, middle + half, weight=weight))
    return LatticeTable(frame, Schema(*columns, *others))


def vanishing(table: LatticeTable, folder: Path) -> Release:
    """The release of a file that states noise of one lattice unit."""
    mu = ROW_NORM_SQUARED / SIGMA
    made = gaussian_release(
        schema=table.schema,
        radius=Encoder(table.schema).radius,
        published=PublishedMatrix(
            kind="gram", exponent=0, cells=triangle(gram(table.frame, table.schema).cells)
        ),
        mechanism=MechanismUsed(name="gaussian", parameters={"sigma": SIGMA}, choice="asked for"),
        noise=SymmetricGaussian(sigma=SIGMA),
        guarantee=StatedGuarantee(epsilon=mu**2, delta=1e-6, mu=mu, statement="none to speak of"),
        receipt=None,
    )
    path = folder / "vanishing.dpgram.json"
    made.save(path)
    return load(path)


def stacks(table: LatticeTable) -> int:
    """How often the table can be stacked, a power of two."""
    return 1 << int(math.log2((MOST_ROWS - 1) / len(table.frame)))


def published(table: LatticeTable, folder: Path) -> Release:
    """The release of the table stacked as often as exact sums allow, with little noise."""
    with pytest.warns(DpgramWarning, match="values above 10 protect little"):
        (release,) = publish_with(
            table.frame,
            table.schema,
            epsilon=EPSILON,
            delta=1e-6,
            mechanism="gaussian",
            adaptive=False,
            engine=_Stacked(stacks(table)),
            entropy=SeededEntropy(1),
        )
    path = folder / "stacked.dpgram.json"
    release.save(path)
    return load(path)


@dataclass(frozen=True)
class _Stacked(Engine):
    """The sums of a table that is repeated `times` times, which is a power of two."""

    times: int
    name = "stacked"
    passes = None

    def accepts(self, data: object) -> bool:
        return False

    def add_up(self, data: object, work: Pass, *, progress: Progress = None) -> Sums:
        sums = LocalEngine(threads=1).add_up(data, work, progress=progress)
        for _ in range(self.times.bit_length() - 1):
            sums = merge([sums, sums])
        return sums
