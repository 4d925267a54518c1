"""Densities of published matrices, given the exact one: their ratio is the best score an audit can have.

In units of one row's trace, up to constants that do not depend on the exact matrix. Directions are told apart
on two columns only, where the sphere is a circle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt
from scipy.special import ive

from dpgram.audit import Scores
from dpgram.audit.gram import Neighbours
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms.base import Drawn
from dpgram.noise import (
    AdditiveWishart,
    Deflation,
    EigenvectorSampling,
    EntrywiseLaplace,
    InverseWishart,
    MatrixLaplace,
    NoisyInverse,
    SymmetricGaussian,
    WishartSketch,
)

Floats = npt.NDArray[np.float64]

UNIT: Final = float(ROW_NORM_SQUARED)
IMPOSSIBLE: Final = -1e6
"""The logarithm of a density that is zero."""
_ANGLES: Final = 360
_AT_ONCE: Final = 1_000
"""Matrices whose density is integrated together, which takes memory."""
_TIE: Final = 1e-6
"""Eigenvalues that were averaged are equal, but for cells rounded to whole numbers."""


def log_densities(law: object, gram: Floats, seen: Floats) -> Floats:
    """Of matrices in `seen`, which is a stack of them, in lattice units; of an inverse in reciprocal ones."""
    match law:
        case SymmetricGaussian(sigma=sigma):
            return _gaussian(seen - gram, sigma)
        case NoisyInverse(sigma=sigma):
            return _gaussian(seen - without_noise(law, gram), sigma)
        case MatrixLaplace(theta=theta):  # nearly: exact where all eigenvalues have one sign
            return -theta * np.asarray(np.abs(np.linalg.eigvalsh(seen - gram)).sum(axis=-1))
        case EntrywiseLaplace(scale=scale, diagonal_scale=diagonal):
            sizes = np.abs(seen - gram)
            whole, on = sizes.sum(axis=(1, 2)), np.einsum("nii->n", sizes)
            return np.asarray(-(whole - on) / (2.0 * scale) - on / diagonal)
        case AdditiveWishart(scale=scale, degrees=degrees):
            return _wishart_noise((seen - gram) / UNIT, scale / UNIT, degrees)
        case WishartSketch(ridge=ridge, rows=rows):
            around = (gram + ridge * np.eye(len(gram))) / UNIT
            traces = np.einsum("ij,nji->n", np.linalg.inv(around), seen / UNIT)
            return np.asarray(-0.5 * rows * (np.linalg.slogdet(around)[1] + traces))
        case InverseWishart(prior=prior, degrees=degrees):
            around, width = (gram + prior * np.eye(len(gram))) / UNIT, len(gram)
            traces = np.einsum("ij,nji->n", around, np.linalg.inv(seen / UNIT)) * (degrees - width - 1.0)
            return np.asarray(0.5 * (degrees * np.linalg.slogdet(around)[1] - traces))
        case EigenvectorSampling():
            return _frame(law, gram / UNIT, seen / UNIT)
        case Deflation():
            return _deflation(law, gram / UNIT, seen / UNIT)
    raise TypeError(type(law).__name__)


def without_noise(law: object, gram: Floats) -> Floats:
    """What noise is added to: the matrix, or the inverse of it with its ridge."""
    if isinstance(law, NoisyInverse):
        return np.asarray(np.linalg.inv(gram + law.ridge * np.eye(len(gram))), dtype=np.float64)
    return gram


def redrawn(law: Any, gram: Floats, draws: int, generator: np.random.Generator) -> Floats:
    """As the law has it, in floats: independent of what the mechanism draws."""
    match law:
        case NoisyInverse(sigma=sigma):
            noise = SymmetricGaussian(sigma=sigma)
            exact = without_noise(law, gram)
            return np.stack([exact + noise.sample(len(gram), generator) for _ in range(draws)])
        case EigenvectorSampling():
            return UNIT * _frames(law, gram / UNIT, draws, generator)
        case Deflation():
            return UNIT * _deflated(law, gram / UNIT, draws, generator)
    return np.stack([law.redraw(gram, generator) for _ in range(draws)])


def _directions(cold: float, rest: Floats, generator: np.random.Generator) -> Floats:
    """For each R of a stack θθᵀ, θ on the circle ∝ exp(c·θᵀRθ): twice its angle has von Mises' law."""
    across, along = rest[:, 0, 0] - rest[:, 1, 1], 2.0 * rest[:, 0, 1]
    turned = generator.vonmises(np.arctan2(along, across), 0.5 * cold * np.hypot(across, along))
    cosine, sine = 0.5 * np.cos(turned), 0.5 * np.sin(turned)
    return np.stack([0.5 + cosine, sine, sine, 0.5 - cosine], axis=-1).reshape(-1, 2, 2)


def _frames(law: EigenvectorSampling, gram: Floats, draws: int, generator: np.random.Generator) -> Floats:
    _on_two_columns(law, gram)
    exact = np.linalg.eigvalsh(gram)[::-1]
    values = exact + generator.laplace(0.0, law.value_scale, (draws, 2))
    values[values[:, 0] < values[:, 1]] = values[values[:, 0] < values[:, 1]].mean(axis=1, keepdims=True)
    first = _directions(law.total, np.broadcast_to(gram, (draws, 2, 2)), generator)
    largest, least = values[:, :1, None], values[:, 1:, None]
    return np.asarray(largest * first + least * (np.eye(2) - first))


def _deflated(law: Deflation, gram: Floats, draws: int, generator: np.random.Generator) -> Floats:
    _on_two_columns(law, gram)
    rest = np.repeat(gram[None], draws, axis=0)
    for _ in range(2):
        direction = _directions(law.temperature, rest, generator)
        held = (direction * rest).sum(axis=(1, 2))
        noisy = held + generator.laplace(0.0, law.value_scale, draws)
        rest = rest - noisy[:, None, None] * direction
    return gram - rest


def _on_two_columns(law: EigenvectorSampling | Deflation, gram: Floats) -> None:
    if len(gram) != 2 or law.rank != 2:
        raise ValueError("directions are told apart on two columns only")


def _gaussian(noise: Floats, sigma: float) -> Floats:
    return np.asarray(-0.5 * ((noise / sigma) ** 2).sum(axis=(1, 2)))


def _wishart_noise(noise: Floats, scale: float, degrees: int) -> Floats:
    width = noise.shape[1]
    values = np.linalg.eigvalsh(noise)
    inside = values[:, 0] > 0.0
    logs = np.log(np.where(inside[:, None], values, 1.0)).sum(axis=1)
    found = 0.5 * (degrees - width - 1.0) * logs - 0.5 * values.sum(axis=1) / scale
    return np.where(inside, found, IMPOSSIBLE)


def _on_circle(cold: float, quadratic: Floats, trace: Floats | float, gap: Floats) -> Floats:
    """log of exp(c·uᵀRu) over its integral, for R of this trace and distance of eigenvalues."""
    half = 0.5 * cold * gap
    return np.asarray(cold * (quadratic - 0.5 * trace) - half - np.log(ive(0, half)))


def _gap(trace: Floats | float, determinant: Floats | float) -> Floats:
    return np.asarray(np.sqrt(np.maximum(trace**2 - 4.0 * determinant, 0.0)))


def _frame(law: EigenvectorSampling, gram: Floats, seen: Floats) -> Floats:
    """Laplace noise on both eigenvalues; the first direction by its law, which forces the second."""
    _on_two_columns(law, gram)
    exact = np.linalg.eigvalsh(gram)[::-1]
    values, vectors = np.linalg.eigh(seen)
    first = vectors[:, :, 1]
    quadratic = np.einsum("ni,ij,nj->n", first, gram, first)
    total = np.full(len(seen), exact.sum())
    # The last direction is free, so that the first has all of the budget.
    directions = _on_circle(law.total, quadratic, total, np.full(len(seen), exact[0] - exact[1]))
    apart = -np.abs(values[:, ::-1] - exact).sum(axis=1) / law.value_scale + directions
    # Noise that puts them in the wrong order is averaged, and then no direction shows: over s ≥ 0,
    # ∫ exp(−(|m − s − λ₁| + |m + s − λ₂|)/b) for the average m and the scale b.
    below, above = (0.5 * values.sum(axis=1) - one for one in exact)
    longest = np.maximum(np.maximum(below, -above), 0.0)
    height = np.maximum(np.abs(below + above), above - below)
    tied = np.log(longest + 0.5 * law.value_scale) - height / law.value_scale
    return np.asarray(np.where(values[:, 1] - values[:, 0] < _TIE, tied, apart))


def _deflation(law: Deflation, gram: Floats, seen: Floats) -> Floats:
    """λ̂₁θ₁θ₁ᵀ + λ̂₂θ₂θ₂ᵀ: integrated over θ₁, which with the sum decides the rest.

    λ̂₁ = 1/θ₁ᵀM⁻¹θ₁ leaves rank 1; the map from (λ̂₁, λ̂₂, θ₂) to M has the determinant √2·λ̂₂·sin²(θ₁, θ₂).
    """
    _on_two_columns(law, gram)
    parts = np.array_split(seen, -(-len(seen) // _AT_ONCE))
    return np.concatenate([_deflations(law, gram, part) for part in parts])


def _deflations(law: Deflation, gram: Floats, seen: Floats) -> Floats:
    turns = (np.arange(_ANGLES) + 0.5) * np.pi / _ANGLES
    first = np.column_stack([np.cos(turns), np.sin(turns)])
    held = np.einsum("ti,ij,tj->t", first, gram, first)  # θ₁ᵀGθ₁
    seen_held = np.einsum("ti,nij,tj->nt", first, seen, first)  # θ₁ᵀMθ₁
    largest = 1.0 / np.einsum("ti,nij,tj->nt", first, np.linalg.inv(seen), first)
    value = np.trace(seen, axis1=1, axis2=2)[:, None] - largest
    # θ₂θ₂ᵀ = (M − λ̂₁θ₁θ₁ᵀ)/λ̂₂, held against θ₁θ₁ᵀ and against what λ̂₁ has left of G.
    sine_squared = 1.0 - (seen_held - largest) / value
    products = np.einsum("nij,ij->n", seen, gram)[:, None]
    later = (products - largest * (held + seen_held - largest)) / value
    whole = np.trace(gram)
    left, determinant = whole - largest, np.linalg.det(gram) - largest * (whole - held)
    found = _on_circle(law.temperature, held, whole, _gap(whole, np.linalg.det(gram)))
    found = found + _on_circle(law.temperature, later, left, _gap(left, determinant))
    found = found - (np.abs(largest - held) + np.abs(value - later)) / law.value_scale
    found = found - np.log(np.maximum(np.abs(value) * sine_squared, 1e-300))
    return np.asarray(np.logaddexp.reduce(found, axis=1))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LikelihoodRatio:
    """log p(M | a) − log p(M | b), and then all that `Neighbours` tells of M."""

    pair: Neighbours

    @property
    def names(self) -> tuple[str, ...]:
        return ("likelihood ratio", *self.pair.statistics)

    def of(self, law: object, seen: Floats) -> Floats:
        """Of matrices of one law."""
        one, other = (
            log_densities(law, each.astype(np.float64), seen) for each in (self.pair.a, self.pair.b)
        )
        return one - other

    def told(self, law: object) -> float:
        """μ² of the difference between the neighbours, of a Gaussian law."""
        return 2.0 * float(self.of(law, without_noise(law, self.pair.a.astype(np.float64))[None])[0])

    def simulated(self, law: object, draws: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """Ratios as the law gives them: of draws around `a`, and around `b`."""
        a, b = (each.astype(np.float64) for each in (self.pair.a, self.pair.b))
        return (
            self.of(law, redrawn(law, a, draws, generator)),
            self.of(law, redrawn(law, b, draws, generator)),
        )

    def __call__(self, drawn: Sequence[Drawn]) -> Scores:
        seen = np.stack([np.ldexp(one.cells.astype(np.float64), one.exponent) for one in drawn])
        laws = [one.noise for one in drawn]
        ratios = np.empty(len(drawn))
        for law in set(laws):  # those that adapt state several
            places = [place for place, each in enumerate(laws) if each == law]
            ratios[places] = self.of(law, seen[places])
        return np.column_stack([ratios, self.pair.measure(drawn)])
