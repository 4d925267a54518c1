"""θ = (A₊ + λI)⁻¹ b with λ = σ√(2d): ridge with a penalty of the size of the noise's largest eigenvalue.

A₊ is A without its negative eigenvalues. The penalty needs nothing but the noise law, so it costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.moments import EncodedNoise

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunken:
    """A shrunken solution and the ridge that made it."""

    theta: Vector
    penalty: float


def shrunken(gram_xx: Matrix, gram_xy: Vector, noise: EncodedNoise) -> Shrunken:
    """Ridge at the edge of the noise's spectrum."""
    width = len(gram_xx)
    if width == 0:
        return Shrunken(theta=np.zeros(0), penalty=0.0)
    penalty = noise.expected_norm(width)
    values, vectors = np.linalg.eigh(gram_xx)
    spectrum = np.maximum(values, 0.0) + penalty
    inverse = np.divide(
        1.0, spectrum, out=np.zeros_like(spectrum), where=spectrum > 1e-12 * max(values[-1], 1e-300)
    )
    return Shrunken(theta=vectors @ (inverse * (vectors.T @ gram_xy)), penalty=penalty)
