"""Directions drawn with density ∝ exp(uᵀ M u) on the unit sphere, in floats: the Bingham law, by rejection.

For simulation only: forecasts, redraws of a law, forms as printed. What is published is drawn exactly, from
the same envelope, by `dpgram.privacy.sampling.directions`.

With A = λ_max(M)·I − M ⪰ 0 the target is ∝ exp(−uᵀAu). Candidates come from the angular central Gaussian
law of Ω = I + 2A/b (z ~ N(0, Ω⁻¹), u = z/|z|) and are accepted with probability

    exp(−s) · (1 + 2s/b)^{d/2} / K,    s = uᵀAu,    K = e^{−(d−b)/2} (d/b)^{d/2}.

K is the largest value of the numerator for *every* b in (0, d], so the law is right whatever b is; the root
of Σ 1/(b + 2λ_i(A)) = 1, which lies in [1, d], makes acceptance likely (Kent, Ganeiber and Mardia 2013). Amin
et al. 2019 print the sum equal to 0 and divide by the power: another law (proofs/eigenvectors.md).

How likely acceptance is depends on M, so candidates are drawn in a number that is enough for every M, here as
in the exact sampler. There, whoever counts the rounds, by the clock or by the bits drawn, sees one round
(docs/limits.md).
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from dpgram.errors import MechanismError

FloatArray = npt.NDArray[np.float64]

LEAST_DENSITY: Final = math.exp(-0.5) / math.sqrt(2.0 * math.pi)
"""φ(1), the density of χ²₁ at its mean: that of Σ w_i χ²₁ with Σ w_i = 1 is no less."""
FAILURE_BITS: Final = 40
"""A round without an accepted candidate has probability at most 2^−40."""
WIDEST_SPREAD: Final = 2.0**44
"""Largest difference of two exponents for which floats tell candidates apart; the exact sampler's is 2^40."""
ROUNDS: Final = 8
"""Rounds after which a matrix is refused: its numbers are then too far apart for floats, not unlucky."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BinghamDraw:
    """One accepted direction, and how many candidates were looked at to find it."""

    direction: FloatArray
    candidates: int


def envelope_parameter(spectrum: FloatArray) -> float:
    """The b in [1, d] with Σ 1/(b + 2λ_i) = 1, for the eigenvalues λ of A (least one zero).

    Proof: proofs/eigenvectors.md#eigenvectors-sampler.
    """
    width = len(spectrum)
    levels = 2.0 * np.maximum(spectrum - spectrum.min(), 0.0)

    def excess(b: float) -> float:
        return float(np.sum(1.0 / (b + levels))) - 1.0

    # For levels that are zero but for rounding the root is d, and rounding may put the sum there above 1.
    if width == 1 or excess(float(width)) >= 0.0:
        return float(width)
    from scipy.optimize import brentq

    return float(brentq(excess, 1.0, float(width), xtol=1e-9))


def candidates_at_once(width: int) -> int:
    """⌈40·ln 2/a⌉ with a = √(4π/d)·φ(1): acceptance is at least that likely for every matrix.

    A public number, about 32·√d. Proof: proofs/eigenvectors.md#eigenvectors-candidates.
    """
    least_acceptance = math.sqrt(4.0 * math.pi / width) * LEAST_DENSITY
    return math.ceil(FAILURE_BITS * math.log(2.0) / least_acceptance)


def draw_direction(
    exponent: FloatArray, generator: np.random.Generator, *, at_most: int | None = None
) -> BinghamDraw:
    """One unit vector u with density ∝ exp(uᵀ M u), M symmetric = `exponent`, to the precision of floats.

    `at_most` candidates are made at once: for simulations, whose time need not be the same for every matrix.
    """
    width = exponent.shape[0]
    if width == 1:
        return BinghamDraw(direction=np.ones(1), candidates=1)
    if not np.isfinite(exponent).all():
        raise _beyond_floats()
    from scipy.linalg import cholesky, eigvalsh, solve_triangular

    spectrum = eigvalsh(exponent, check_finite=False)
    if spectrum[-1] - spectrum[0] > WIDEST_SPREAD:
        raise _beyond_floats()
    b = envelope_parameter(spectrum[-1] - spectrum)
    precision = exponent * (-2.0 / b)
    precision.flat[:: width + 1] += 1.0 + 2.0 * spectrum[-1] / b
    try:
        factor = cholesky(precision, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        raise _beyond_floats() from None
    log_bound = 0.5 * (width * np.log(width / b) - (width - b))
    at_once, looked_at = min(candidates_at_once(width), at_most or sys.maxsize), 0
    for _ in range(ROUNDS):  # one, but for an event of probability 2^−40: all candidates are made and judged
        normals = generator.standard_normal((width, at_once))
        points = solve_triangular(factor, normals, lower=True, trans="T", check_finite=False)
        lengths = np.einsum("ij,ij->j", points, points)
        # zᵀΩz = |normals|², so uᵀΩu, and with it s, needs no further product with A.
        ratio = np.einsum("ij,ij->j", normals, normals) / lengths
        log_accept = 0.5 * (width * np.log(ratio) - b * (ratio - 1.0)) - log_bound
        accepted = np.log(generator.random(at_once)) < log_accept
        if accepted.any():
            first = int(np.argmax(accepted))
            return BinghamDraw(
                direction=points[:, first] / np.sqrt(lengths[first]), candidates=looked_at + first + 1
            )
        looked_at += at_once
    raise _beyond_floats()


def _beyond_floats() -> MechanismError:
    return MechanismError(
        "no direction can be drawn in floats: the numbers of the matrix are too large or too far apart",
        remedy="A release of a real table has no such matrix: ask for the original file",
    )


def draw_frame(
    matrix: FloatArray,
    inverse_temperatures: FloatArray,
    generator: np.random.Generator,
    *,
    at_most: int | None = None,
) -> FloatArray:
    """Orthonormal columns θ_1 … θ_k: θ_i ∝ exp(c_i uᵀCu) on the sphere orthogonal to the earlier ones.

    `inverse_temperatures` holds c_1 … c_k. After each draw the matrix is reflected so that the direction
    becomes the first axis, which is then cut off: a rank-two update instead of a new basis.
    """
    rest = np.array(matrix, dtype=np.float64)
    reflectors: list[FloatArray] = []
    for inverse_temperature in inverse_temperatures:
        direction = draw_direction(inverse_temperature * rest, generator, at_most=at_most).direction
        reflector = direction.copy()
        reflector[0] += np.copysign(1.0, direction[0])
        reflector /= np.linalg.norm(reflector)
        reflectors.append(reflector)
        image = 2.0 * (rest @ reflector)
        image -= (reflector @ image) * reflector
        update = np.outer(reflector[1:], image[1:])
        rest = rest[1:, 1:] - update - update.T
    return _assemble(reflectors, matrix.shape[0])


def _assemble(reflectors: list[FloatArray], width: int) -> FloatArray:
    """Undo the reflections, innermost first: the frame in the coordinates of the first matrix."""
    frame = np.zeros((width - len(reflectors), 0))
    for reflector in reversed(reflectors):
        size = len(reflector)
        inner = np.zeros((size, frame.shape[1] + 1))
        inner[0, 0] = 1.0
        inner[1:, 1:] = frame
        frame = inner - 2.0 * np.outer(reflector, reflector @ inner)
    return frame
