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
    if isinstance(law, NoisyInverse):
        noise = SymmetricGaussian(sigma=law.sigma)
        return np.stack([without_noise(law, gram) + noise.sample(len(gram), generator) for _ in range(draws)])
    return np.stack([law.redraw(gram, generator) for _ in range(draws)])


def _gaussian(noise: Floats, sigma: float) -> Floats:
    return np.asarray(-0.5 * ((noise / sigma) ** 2).sum(axis=(1, 2)))


def _wishart_noise(noise: Floats, scale: float, degrees: int) -> Floats:
    width = noise.shape[1]
    values = np.linalg.eigvalsh(noise)
    inside = values[:, 0] > 0.0
    logs = np.log(np.where(inside[:, None], values, 1.0)).sum(axis=1)
    found = 0.5 * (degrees - width - 1.0) * logs - 0.5 * values.sum(axis=1) / scale
    return np.where(inside, found, IMPOSSIBLE)


def _on_circle(cold: float, quadratic: Floats, trace: Floats, gap: Floats) -> Floats:
    """log of exp(c·uᵀRu) over its integral, for R of this trace and distance of eigenvalues."""
    half = 0.5 * cold * gap
    return np.asarray(cold * (quadratic - 0.5 * trace) - half - np.log(ive(0, half)))


def _gap(trace: Floats, determinant: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum(trace**2 - 4.0 * determinant, 0.0)))


def _frame(law: EigenvectorSampling, gram: Floats, seen: Floats) -> Floats:
    """Laplace noise on both eigenvalues; the first direction by its law, which forces the second."""
    if len(gram) != 2 or law.rank != 2:
        raise ValueError("directions are told apart on two columns only")
    exact = np.linalg.eigvalsh(gram)[::-1]
    values, vectors = np.linalg.eigh(seen)
    first = vectors[:, :, 1]
    quadratic = np.einsum("ni,ij,nj->n", first, gram, first)
    total = np.full(len(seen), exact.sum())
    # The last direction is free, so that the first has all of the budget.
    directions = _on_circle(law.total, quadratic, total, np.full(len(seen), exact[0] - exact[1]))
    apart = -np.abs(values[:, ::-1] - exact).sum(axis=1) / law.value_scale + directions
    # Noise that puts them in the wrong order is averaged, and then no direction shows.
    middle = 0.5 * values.sum(axis=1)[:, None]
    steps = np.linspace(0.0, 30.0 * law.value_scale, 1_500)
    wrong = np.abs(middle - steps - exact[0]) + np.abs(middle + steps - exact[1])
    tied = np.log(np.exp(-wrong / law.value_scale).sum(axis=1))
    return np.asarray(np.where(values[:, 1] - values[:, 0] < _TIE, tied, apart))


def _deflation(law: Deflation, gram: Floats, seen: Floats) -> Floats:
    """λ̂₁θ₁θ₁ᵀ + λ̂₂θ₂θ₂ᵀ: integrated over θ₁, which with the sum decides the rest.

    λ̂₁ = 1/θ₁ᵀM⁻¹θ₁ leaves rank 1; the map from (λ̂₁, λ̂₂, θ₂) to M has the determinant √2·λ̂₂·sin²(θ₁, θ₂).
    """
    if len(gram) != 2 or law.rank != 2:
        raise ValueError("directions are told apart on two columns only")
    turns = (np.arange(_ANGLES) + 0.5) * np.pi / _ANGLES
    first = np.column_stack([np.cos(turns), np.sin(turns)])
    return np.array([_one_deflation(law, gram, one, first) for one in seen])


def _one_deflation(law: Deflation, gram: Floats, seen: Floats, first: Floats) -> float:
    largest = 1.0 / np.einsum("ti,ij,tj->t", first, np.linalg.inv(seen), first)
    rest = seen - largest[:, None, None] * np.einsum("ti,tj->tij", first, first)
    values, vectors = np.linalg.eigh(rest)
    place = np.abs(values).argmax(axis=1)
    second, value = vectors[np.arange(len(first)), :, place], values[np.arange(len(first)), place]
    sine = np.abs(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0])
    left = gram - largest[:, None, None] * np.einsum("ti,tj->tij", first, first)
    held = np.einsum("ti,ij,tj->t", first, gram, first)
    later = np.einsum("ti,tij,tj->t", second, left, second)
    whole = np.full(len(first), np.trace(gram))
    found = _on_circle(law.temperature, held, whole, _gap(whole, np.full(len(first), np.linalg.det(gram))))
    traces = np.einsum("tii->t", left)
    found = found + _on_circle(law.temperature, later, traces, _gap(traces, np.linalg.det(left)))
    found = found - (np.abs(largest - held) + np.abs(value - later)) / law.value_scale
    found = found - np.log(np.maximum(np.abs(value) * sine**2, 1e-300))
    return float(np.logaddexp.reduce(found))


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
