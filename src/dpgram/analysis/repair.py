"""Ways to make a noisy Gram matrix positive semidefinite, or leave it. All are post-processing.

Negative eigenvalues can only be noise. None of these policies is needed by `method="auto"`, which knows the
noise; they are here because the literature uses them and because a plain solver needs one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, final, get_args

import numpy as np
import numpy.typing as npt

from dpgram.analysis.moments import EncodedNoise
from dpgram.errors import AnalysisError

Matrix = npt.NDArray[np.float64]
Policy = Literal["none", "zero-negative", "add-norm", "round", "subtract-mean"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a policy may use besides the matrix: the noise, and a bound on the largest eigenvalue."""

    noise: EncodedNoise
    largest: float
    """n̂·R²: no table of n̂ rows with norms up to R has a larger eigenvalue."""


def none(gram: Matrix, context: Context) -> Matrix:  # noqa: ARG001  (a policy that needs nothing)
    """G̃ as it was published."""
    return gram


def subtract_mean(gram: Matrix, context: Context) -> Matrix:
    """G̃ − E N: for one-sided noise such as Wishart, whose mean is a known multiple of the identity."""
    return gram - context.noise.mean_diagonal * np.eye(len(gram))


def zero_negative(gram: Matrix, context: Context) -> Matrix:
    """Σ max(w_i, 0) u_i u_iᵀ of G̃ − E N: the nearest positive semidefinite matrix."""
    return _clipped(subtract_mean(gram, context), 0.0, np.inf)


def add_norm(gram: Matrix, context: Context) -> Matrix:
    """G̃ − E N, and where that is not positive definite + c·I with c = E‖N‖ of the release's own law."""
    centred = subtract_mean(gram, context)
    if not len(gram) or np.linalg.eigvalsh(centred)[0] > 0.0:
        return centred
    return np.asarray(centred + context.noise.expected_norm(len(gram)) * np.eye(len(gram)))


def round_eigenvalues(gram: Matrix, context: Context) -> Matrix:
    """Eigenvalues of G̃ − E N moved into [0, n̂R²], the range of all tables."""
    return _clipped(subtract_mean(gram, context), 0.0, max(context.largest, 0.0))


POLICIES: Final[Mapping[Policy, Callable[[Matrix, Context], Matrix]]] = {
    "none": none,
    "zero-negative": zero_negative,
    "add-norm": add_norm,
    "round": round_eigenvalues,
    "subtract-mean": subtract_mean,
}


def repaired(gram: Matrix, policy: Policy, context: Context) -> Matrix:
    """`gram` (in orthonormal coordinates of encoded units) after the named policy."""
    if policy not in POLICIES:
        raise AnalysisError("unknown repair policy", got=repr(policy), limit=", ".join(get_args(Policy)))
    return POLICIES[policy](gram, context)


def _clipped(gram: Matrix, low: float, high: float) -> Matrix:
    values, vectors = np.linalg.eigh(gram)
    if values[0] >= low and values[-1] <= high:
        return gram
    result = (vectors * np.clip(values, low, high)) @ vectors.T
    return np.asarray((result + result.T) / 2.0)
