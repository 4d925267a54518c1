"""The coordinates of the matrices, from what was published before: standardise, then whiten.

First u = T₀ v: every column less its centre, over its deviation, both from noisy histograms. Then, from the
first noisy Gram matrix G₁ in these, S = (G₁/n̂)₊ + f·I with f the edge of its noise, and T = chol(S)⁻¹ T₀, so
that columns which go together no longer do. Rows are clipped at R = c√d in either.
proofs/adaptive.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from dpgram.document.coordinates import Coordinates
from dpgram.document.fields import MeasuredHistograms, MeasuredMatrix, MeasuredReach, MeasuredZoom
from dpgram.document.reach import REACH_ENDS
from dpgram.lattice import ROW_NORM_SQUARED, cell_unit
from dpgram.privacy.count_noise import CountNoise
from dpgram.publishing._scales import scales
from dpgram.schema import Schema

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

RADIUS: Final = 0.5
"""c = RADIUS·(n̂μ/d^1.5)^¼."""
RIDGE: Final = 1.0
"""What is added to the eigenvalues of G₁/n̂, in edges 2σ₁√d/n̂ of the noise."""


PLAIN_BELOW: Final = 1.0
"""n̂μ/d^1.5 below which histograms and a first matrix tell too little to measure by: the encoded columns are
measured as they are, with everything that is left."""


def standardising(
    schema: Schema, measured: MeasuredHistograms, told: float, closer: Sequence[MeasuredZoom] = ()
) -> Coordinates:
    """T₀; `told` is n̂μ/d^1.5, `closer` what was looked at again."""
    known, width = scales(schema, measured, told, closer), schema.width
    transform = np.zeros((width, width))
    for place, column in enumerate(schema.encoded):
        if column.name not in known:
            transform[place, place] = 1.0 / column.weight
            continue
        scale = known[column.name]
        if schema.constant:
            transform[place, place] = 1.0 / (scale.deviation * column.weight)
            transform[place, 0] = -scale.centre / (scale.deviation * schema.encoded[0].weight)
        else:
            transform[place, place] = 1.0 / (math.hypot(scale.centre, scale.deviation) * column.weight)
    return Coordinates.nearest(transform)


def whitening(first: MeasuredMatrix, rows: float) -> Coordinates:
    """T = chol(S)⁻¹ T₀."""
    values, vectors, edge = _spectrum(first, rows)
    lower = np.linalg.cholesky((vectors * (values + edge)) @ vectors.T)
    return Coordinates.nearest(np.tril(np.linalg.solve(lower, first.coordinates.matrix)))


def _spectrum(first: MeasuredMatrix, rows: float) -> tuple[Vector, Matrix, float]:
    """Eigenvalues and eigenvectors of (G₁/n̂)₊, and f."""
    width = first.coordinates.width
    gram = np.zeros((width, width))
    gram[np.tril_indices(width)] = [int(cell) for cell in first.cells]
    gram = (gram + np.tril(gram, -1).T) * cell_unit(first.radius)
    deviation = first.noise.diagonal_sd * cell_unit(first.radius)
    values, vectors = np.linalg.eigh(gram / rows)
    edge = RIDGE * 2.0 * deviation * math.sqrt(width) / rows
    return np.maximum(values, 0.0), vectors, max(edge, float(np.finfo(np.float64).tiny))


def rank(schema: Schema) -> int:
    """d: the number of encoded columns, less one for each sum of them that is known beforehand."""
    return schema.width - len(schema.known_sums)


def signal(rows: float, mu: float, width: float) -> float:
    """n̂μ/d^1.5: what a table of so many rows and columns tells through the noise."""
    told: float = max(rows, 1.0) * mu / width**1.5
    return told


def radius(rows: float, mu: float, width: float) -> float:
    """R = c√d, without a cap: the more rows there are, the fewer are clipped."""
    return RADIUS * math.pow(signal(rows, mu, width), 0.25) * math.sqrt(width)


def last_radius(
    first: MeasuredMatrix, seen: MeasuredReach | None, *, rows: float, mu: float, width: int
) -> float:
    """R in the coordinates that the first matrix shows.

    There a direction of variance λ has λ/(λ + f): so rows have E|u|² = Σ λ/(λ + f), which stands for d. Where
    the table tells enough through its noise, R follows from how long rows were in standardised columns.
    """
    values, _, edge = _spectrum(first, rows)
    left = min(float(np.sum(values / (values + edge))), float(width))
    if left <= 0.0:
        return first.radius
    if seen is None or signal(rows, mu, width) < REACH_FROM:
        return radius(rows, mu, left)
    return reached(seen, first.radius * math.sqrt(left / float(np.sum(values))), mu=mu, width=width)


def reached(seen: MeasuredReach, start: float, *, mu: float, width: int) -> float:
    """The last radius, from the first one and how far rows reach beyond it or fall short of it.

    The least R, in quarter octaves, whose clip takes no more weight than LOST·√(2d)·R²/(μn̂), a tenth of the
    edge of the noise that so long rows cost, or no more than the noise of the counts could have made.
    `start` is the first radius in units of the last coordinates, in which rows have another mean length.
    """
    counts = np.array([int(cell) / ROW_NORM_SQUARED for cell in seen.cells])
    deviation = CountNoise(law=seen.law, scale=seen.scale).deviation
    # Lengths in the middle of each bin, as logarithms go.
    middles = np.concatenate([[0.5 * REACH_ENDS[0]], np.sqrt(REACH_ENDS[1:] * REACH_ENDS[:-1])])
    middles = np.concatenate([middles, [math.sqrt(2.0) * REACH_ENDS[-1]]])
    for factor in REACH_ENDS[REACH_ENDS <= 1.001 * LONGEST].tolist():
        taken = np.maximum(1.0 - (factor / middles) ** 2, 0.0)
        lost, doubt = float(counts @ taken), deviation * float(np.linalg.norm(taken))
        if lost <= LOST * math.sqrt(2.0 * width) * (factor * start) ** 2 / mu + DOUBT * doubt:
            return float(factor * start)
    return LONGEST * start


LOST: Final = 0.1
DOUBT: Final = 1.0
"""Deviations of their noise by which counts may exceed what may be lost."""
LONGEST: Final = math.sqrt(2.0)
"""How far the last radius may pass the first one."""
REACH_FROM: Final = 20.0
"""n̂μ/d^1.5 from which on rows are counted well enough to choose a radius by."""
