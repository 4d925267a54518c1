"""The exact matrix as a release tells of it, at the least expected squared error: Ĝ = Σ x_i u_i u_iᵀ.

The eigenvectors u are the published ones, and with them the best x_i is u_iᵀG u_i. Noise that was added
drives eigenvalues apart, so that w_i says too much; directions that were sampled hold less than the
eigenvalue that was published with them. Both laws are public, so x is estimated from the release alone:
noise/shrinkage.py, noise/sampled.py. Without noise Ĝ is the published matrix; where noise explains all, it is
nearly nothing. Ĝ has no negative eigenvalue, and no larger trace than tables of so many rows. It is biased
towards zero, as everything with little squared error: for one cell, a mean or an interval use the release.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.normal_equations import complement_of, too_noisy
from dpgram.errors import AnalysisError
from dpgram.noise import EigenvectorSampling, SymmetricGaussian
from dpgram.noise.sampled import StandIn
from dpgram.noise.shrinkage import shrunken, within_trace, without_repulsion

Matrix = npt.NDArray[np.float64]

INDISTINCT: Final = 0.5
"""Eigenvalues closer than this part of the noise's deviation are hardly told apart any more."""
NO_NOISE: Final = EncodedNoise.of(SymmetricGaussian(sigma=0.0))
"""What is left to remove where the law of the release has done it."""


def denoised(gram: Matrix, noise: EncodedNoise, largest: float = math.inf) -> Matrix:
    """Ĝ from `gram` in orthonormal coordinates with noise that was added; `largest` bounds the trace of G."""
    values, vectors = np.linalg.eigh(_symmetric(gram))
    width, deviation = len(values), math.sqrt(2.0) * noise.offdiagonal_sd
    if width and deviation > 0.0:
        # Noise with a longer edge than Gaussian noise looks like signal out there: more is taken away.
        edge = noise.expected_norm(width) / SymmetricGaussian(sigma=deviation).expected_norm(width)
        values = without_repulsion(values, (edge * deviation) ** 2, INDISTINCT * deviation)
        values = shrunken(values, deviation**2)
    return _symmetric((vectors * within_trace(values, largest)) @ vectors.T)


def second_moments(moments: Moments) -> Matrix:
    """Ĝ in encoded units."""
    span = _possible_span(moments)
    block = _denoised_on(moments, span.T @ _consistent_gram(moments) @ span)
    found = span @ block @ span.T
    return _symmetric(found if moments.lift is None else moments.lift.T @ found @ moments.lift)


def central_moments(moments: Moments) -> Matrix:
    """The covariance of all columns but the constant, in encoded units, from Ĝ on the functions of mean zero.

    In an orthonormal basis of the functions f with fᵀG̃v = 0, v the constant, the noise is what it was.
    """
    constant = moments.constant_vector()
    if constant is None:
        raise AnalysisError(
            "this release has no constant column, so it has no means", remedy="Publish with constant=True"
        )
    gram, span, constant = _consistent_gram(moments), _possible_span(moments), moments.project(constant)
    toward = gram @ constant
    rows = float(constant @ toward)
    if rows <= 0.0:
        raise too_noisy()
    basis = span @ complement_of(span.T @ toward)
    block = _denoised_on(moments, basis.T @ gram @ basis)
    axes = moments.project(np.eye(len(gram))[:, 1:])
    coordinates = basis.T @ (axes - np.outer(constant, axes.T @ toward / rows))
    return _symmetric(coordinates.T @ block @ coordinates / rows)


def _consistent_gram(moments: Moments) -> Matrix:
    """P(G̃ − E N)P; sampled directions are first given what they are expected to hold."""
    sampled = _sampled_directions(moments.noise)
    if sampled is None:
        return moments.consistent_gram
    unit = moments.noise.parts[0].unit
    return moments.within(moments.within(sampled.denoised(moments.gram / unit) * unit).T)


def _sampled_directions(noise: EncodedNoise) -> EigenvectorSampling | None:
    """The law of a release that was drawn direction by direction, if it is one."""
    law = noise.parts[0].law
    if len(noise.parts) == 1 and isinstance(law, StandIn) and isinstance(law.law, EigenvectorSampling):
        return law.law
    return None


def _denoised_on(moments: Moments, block: Matrix) -> Matrix:
    """Ĝ on some orthonormal coordinates, from `_consistent_gram` on them."""
    sampled = _sampled_directions(moments.noise) is not None
    return denoised(block, NO_NOISE if sampled else moments.noise, _largest_trace(moments))


def _largest_trace(moments: Moments) -> float:
    """n·R²; a noisy n only where no row was shortened, for such a row weighs less than its trace."""
    if moments.public_rows is not None:
        return moments.public_rows * moments.radius**2
    if moments.clipped or moments.rows is None:
        return math.inf
    return moments.rows * moments.radius**2


def _possible_span(moments: Moments) -> Matrix:
    """An orthonormal basis of all that tables can have: the complement of the known null space."""
    null = moments.known_null_space
    return np.asarray(np.linalg.qr(null, mode="complete")[0][:, null.shape[1] :])


def _symmetric(matrix: Matrix) -> Matrix:
    return np.asarray((matrix + matrix.T) / 2.0)
