"""Forms fᵀGg of functions of the row, and how the noise moves them: what every analysis here is made of.

A mean, a variance or a regression is a function of Σ f(row)·g(row) = fᵀGg for functions f, g of the encoded
row. The release has fᵀ(G + N)g, and whatever is computed from such forms moves by ⟨S, N⟩ to first order, S a
symmetric matrix made of the functions. Functions are brought into the coordinates in which the noise has its
law in one place, `in_noise_coordinates`.

What features do not explain of several targets, with V orthonormal coordinates of the features, t the
targets' parts outside, R the inverse of VᵀGV that undoes what noise does to inverses (analysis/unshrunken.py)
and v = Var N_ij:

    sums = tᵀGt − tᵀGV·R·VᵀGt + v·tr(R)·tᵀt,   functions r = t − V·R·VᵀGt,   and sums move by rᵀN r.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.normal_equations import orthonormal
from dpgram.analysis.unshrunken import Unshrunken, solve

Matrix = npt.NDArray[np.float64]
Stack = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Residuals:
    """What is left of several targets once the features are accounted for."""

    solution: Unshrunken
    """Of the first target; its resolvent and shares are those of all."""
    slopes: Matrix
    """θ for each target (a column), in the coordinates `solution.basis`."""
    functions: Matrix
    """The residuals as functions of the row, one a column."""
    sums: Matrix
    """Unbiased estimates of Σ residual_a · residual_b."""

    @property
    def inflation(self) -> float:
        """κ: by how much noise inflates the variance of what rests on these features' inverse."""
        return self.solution.inflation


def in_noise_coordinates(moments: Moments, vectors: Matrix) -> Matrix:
    """Functions of the row (columns) in the coordinates of `moments.consistent_gram` and of the noise."""
    return moments.project(vectors)


def residuals(moments: Moments, features: Matrix, targets: Matrix) -> Residuals:
    """Solve for all `targets` on the span of the `features`, both given as functions of the encoded row."""
    gram = moments.consistent_gram
    basis = orthonormal(in_noise_coordinates(moments, features))
    wanted = in_noise_coordinates(moments, targets)
    first = solve(gram, basis, wanted[:, 0], moments.noise)
    inside = basis.T @ wanted
    outside = wanted - basis @ inside
    toward = gram @ outside
    scores = basis.T @ toward
    slopes = first.resolvent @ scores
    correction = moments.noise.offdiagonal_sd**2 * float(np.trace(first.resolvent))
    sums = outside.T @ toward - scores.T @ slopes + correction * (outside.T @ outside)
    return Residuals(
        solution=first,
        slopes=inside + slopes,
        functions=outside - basis @ slopes,
        sums=(sums + sums.T) / 2.0,
    )


def symmetric_product(left: Matrix, right: Matrix) -> Stack:
    """sym(f gᵀ) for each pair of columns f of `left` and g of `right`: the S with ⟨S, N⟩ = fᵀNg."""
    products = np.einsum("ik,jk->kij", left, np.broadcast_to(right, left.shape))
    return np.asarray((products + products.transpose(0, 2, 1)) / 2.0)


def noise_covariance(noise: EncodedNoise, shapes: Stack) -> Matrix:
    """Cov(⟨S, N⟩, ⟨T, N⟩) for all S, T of a stack of symmetric matrices: `functional_variance`, polarised."""
    flat = shapes.reshape(len(shapes), -1)
    off = noise.offdiagonal_sd**2
    covariance = 2.0 * off * (flat @ flat.T)
    excess = noise.diagonal_sd**2 - 2.0 * off
    if abs(excess) > 1e-9 * off:
        diagonal = np.diagonal(shapes, axis1=1, axis2=2)
        covariance += excess * (diagonal @ diagonal.T)
    return np.asarray(covariance)
