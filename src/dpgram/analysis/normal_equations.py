"""The normal equations A θ = b of one design in coordinates where the noise is isotropic, intercept set free.

Orthonormal coordinates V of the span of the terms keep the noise what it is: VᵀN V has the law of N on fewer
columns. What the coordinates already tell of the target, its part VVᵀt, is taken off it: nothing where the
matrix is that of the encoded columns, and in an adaptive release the fit of the first matrix, so that the
solution is a correction to it and shrinking that to zero returns the first fit. An intercept is not shrunk
but eliminated: with u the constant function, the functions f with fᵀG̃u = 0 have noisy mean zero, and an
orthonormal basis of these is again isotropic. A function with a large mean of its columns borrows more noise
from the constant column, and this geometry charges it for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.design import Design
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.repair import Context, Policy, repaired
from dpgram.errors import AnalysisError

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

COUNT_TO_NOISE = 4.0
"""Below this many standard deviations of its own noise the row count is too uncertain to centre by."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """Normal equations in some coordinates `basis` of encoded space; a solution θ means basis @ θ + free."""

    gram_xx: Matrix
    gram_xy: Vector
    gram_yy: float
    target_norm: float
    """Length of the (centred) target as a vector in encoded space: its noise grows with it."""
    noise: EncodedNoise
    rows: float | None
    basis: Matrix
    """Columns: the functions that the entries of θ multiply."""
    free: Vector
    """The part of the solution that is not fitted: the intercept's, and what the coordinates tell already."""
    centred: bool

    def function(self, theta: Vector) -> Vector:
        """The fitted function a ↦ f·a."""
        return np.asarray(self.basis @ theta + self.free)


def isotropic(moments: Moments, design: Design, policy: Policy = "subtract-mean") -> Problem:
    """Orthonormal coordinates; the intercept is eliminated when the count stands clear of its noise."""
    gram = _selected_gram(moments, design, policy)
    span = orthonormal(moments.project(design.vectors))
    target = moments.project(design.target_vector)
    nothing = np.zeros(len(target))
    if not design.intercept:
        return _problem(moments, gram, span, target, nothing, centred=False, pilot=True)
    constant = moments.project(design.vectors[:, 0])
    count = float(constant @ gram @ constant)
    if count <= COUNT_TO_NOISE * moments.noise.diagonal_sd * float(constant @ constant):
        return _problem(moments, gram, span, target, nothing, centred=False, pilot=True)
    direction = span.T @ (gram @ constant)
    mean = float(target @ gram @ constant) / count
    basis = span @ complement_of(direction)
    return _problem(moments, gram, basis, target - mean * constant, mean * constant, centred=True, pilot=True)


def by_column(moments: Moments, design: Design, policy: Policy) -> Problem:
    """One coordinate for each encoded feature column, centred: the axes that a user's penalty refers to."""
    gram = _selected_gram(moments, design, policy)
    target = moments.project(design.target_vector)
    axes = moments.project(design.axes)
    if not design.intercept:
        return _problem(moments, gram, axes, target, np.zeros(len(target)), centred=False)
    constant = moments.project(design.vectors[:, 0])
    count = float(constant @ gram @ constant)
    if min(count, moments.rows or count) <= 0.0:  # a repair may hide a count that noise made negative
        raise too_noisy()
    means = (axes.T @ (gram @ constant)) / count
    mean = float(target @ gram @ constant) / count
    basis = axes - np.outer(constant, means)
    return _problem(moments, gram, basis, target - mean * constant, mean * constant, centred=True)


def too_noisy() -> AnalysisError:
    """The refusal when not even the number of rows survives the noise."""
    return AnalysisError(
        "the noise is larger than the whole table: the noisy number of rows is not positive",
        remedy="Publish more rows, fewer columns, or with a larger epsilon.",
    )


def orthonormal(vectors: Matrix) -> Matrix:
    """An orthonormal basis of the span of the columns: the noise is isotropic in it.

    Proof: proofs/adaptive.md#adaptive-submodel.
    """
    if vectors.shape[1] == 0:
        return vectors
    basis, triangle = np.linalg.qr(vectors)
    sizes = np.abs(np.diagonal(triangle))
    if len(sizes) == vectors.shape[1] and sizes.min() > 1e-8 * sizes.max():
        return np.asarray(basis)
    left, values, _ = np.linalg.svd(
        vectors, full_matrices=False
    )  # dependent columns: slower, but says the rank
    return np.asarray(left[:, values > 1e-8 * values[0]])


def complement_of(direction: Vector) -> Matrix:
    """An orthonormal basis of all that is orthogonal to `direction`: a reflection less its first column."""
    unit = direction / np.linalg.norm(direction)
    mirror = unit.copy()
    mirror[0] += 1.0 if unit[0] >= 0.0 else -1.0
    reflection = np.eye(len(unit)) - (2.0 / (mirror @ mirror)) * np.outer(mirror, mirror)
    return np.asarray(reflection[:, 1:])


def _selected_gram(moments: Moments, design: Design, policy: Policy) -> Matrix:
    """The consistent Gram matrix, repaired on the span of the terms and the target."""
    if policy == "subtract-mean" or (policy == "none" and moments.noise.mean_diagonal == 0.0):
        return moments.consistent_gram
    gram = moments.projected_gram(0.0)
    span = orthonormal(moments.project(np.column_stack([design.vectors, design.target_vector])))
    rows = moments.rows
    largest = np.inf if rows is None else rows * moments.radius**2
    block = repaired(span.T @ gram @ span, policy, Context(noise=moments.noise, largest=largest))
    return np.asarray(span @ block @ span.T)


def _problem(
    moments: Moments,
    gram: Matrix,
    basis: Matrix,
    target: Vector,
    free: Vector,
    *,
    centred: bool,
    pilot: bool = False,
) -> Problem:
    if pilot and moments.lift is not None:
        known = basis @ (basis.T @ target)
        target, free = target - known, free + known
    toward = gram @ target
    return Problem(
        gram_xx=_symmetric(basis.T @ gram @ basis),
        gram_xy=np.asarray(basis.T @ toward),
        gram_yy=float(target @ toward),
        target_norm=float(np.linalg.norm(target)),
        noise=moments.noise,
        rows=moments.rows,
        basis=basis,
        free=free,
        centred=centred,
    )


def _symmetric(matrix: Matrix) -> Matrix:
    return np.asarray((matrix + matrix.T) / 2.0)
