"""The only module that touches randomness: noise exact in law, from bits of the operating system.

`SystemEntropy` draws what is published. `SeededEntropy` follows the same laws from a seed, for tests and
experiments; whatever it made is labelled "seeded". `simulation` is for post-processing (bootstrap and
forecasts), where no secret hangs on the numbers. The laws and their proofs are in proofs/entropy.md.
"""

from __future__ import annotations

import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dpgram.errors import MechanismError

Integers = npt.NDArray[np.object_]
"""An array of Python integers."""

LARGEST_SCALE: Final = 2.0**56
"""OpenDP's integers end at ±2^63: at this scale a Gaussian gets there with probability below e^−8000."""
_LARGEST: Final = (1 << 63) - 1
_ROUNDING: Final = 2.0**-40
"""Far more than erfc, log and the operations around them lose, relatively."""
_TABLE_SCALE: Final = 64.0
"""A seeded Gaussian is drawn from a table of its probabilities up to this scale."""


Law: TypeAlias = Literal["gaussian", "laplace", "matrix-laplace"]


@final
@dataclass(frozen=True, slots=True)
class Noise:
    """Independent integer noise on every cell, or a symmetric matrix of it.

    `scale` is σ of a diagonal cell or of a count, b of a Laplace law, θ of matrix Laplace, in lattice units.
    `delta` is for sums of texts: the chance that one that a unit alone brings is published.
    """

    law: Law
    scale: float
    delta: float = 0.0


class Entropy(ABC):
    """A source of noise. Every method draws afresh; no two calls share randomness."""

    label: ClassVar[Literal["system", "seeded"]]

    @abstractmethod
    def discrete_gaussian(self, scale: float, count: int) -> Integers:
        """`count` independent integers with P(k) ∝ exp(−k²/(2·scale²))."""

    @abstractmethod
    def discrete_laplace(self, scale: float, count: int) -> Integers:
        """`count` independent integers with P(k) ∝ exp(−|k|/scale)."""

    @abstractmethod
    def generator(self) -> np.random.Generator:
        """A freshly seeded generator of floats, for baselines as printed: never for a release."""

    @abstractmethod
    def split(self, count: int) -> list[Entropy]:
        """`count` sources, independent of each other and of this one, for work in parallel."""

    @abstractmethod
    def random_bytes(self, count: int) -> bytes:
        """`count` uniform bytes."""

    @abstractmethod
    def rehearse(self) -> None:
        """Load what a draw needs, so that a broken installation shows before anything is charged."""

    @final
    def matrix_laplace(self, width: int, theta: float) -> Integers:
        """round(W₁ − W₂), W₁ and W₂ independent Wishart(I/(2θ), width+1): exact in law, symmetric."""
        from dpgram.core.balls import matrix_laplace

        return matrix_laplace(width, theta, self.random_bytes)


@final
class SystemEntropy(Entropy):
    """Bits of the operating system, through OpenDP's exact samplers or bit by bit in balls.

    Proof: proofs/entropy.md#entropy-integers.
    """

    label: ClassVar[Literal["system", "seeded"]] = "system"

    def discrete_gaussian(self, scale: float, count: int) -> Integers:
        """OpenDP's sampler; the scale enters as the exact rational value of the float."""
        checked = checked_scale(scale)
        if count == 0:
            return _integers([])
        from opendp.domains import atom_domain, vector_domain
        from opendp.measurements import make_gaussian
        from opendp.metrics import l2_distance

        _allow_opendp()
        noise = make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), checked)
        return _integers(noise([0] * count))

    def discrete_laplace(self, scale: float, count: int) -> Integers:
        """OpenDP's sampler; a draw at the end of 64 bits is continued by the law's lack of memory."""
        checked = checked_scale(scale)
        if count == 0:
            return _integers([])
        from opendp.domains import atom_domain, vector_domain
        from opendp.measurements import make_laplace
        from opendp.metrics import l1_distance

        _allow_opendp()
        noise = make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), checked)

        def draw(count: int) -> list[int]:
            drawn: list[int] = noise([0] * count)
            return drawn

        return _integers([_unbounded(value, _LARGEST, draw) for value in draw(count)])

    def rehearse(self) -> None:
        """One throw-away draw of each kind."""
        self.discrete_gaussian(1.0, 1)
        self.discrete_laplace(1.0, 1)
        self.matrix_laplace(1, 1.0)

    def generator(self) -> np.random.Generator:
        """PCG64 under 256 fresh bits of the operating system; nothing that is published hangs on it."""
        return np.random.Generator(np.random.PCG64(secrets.randbits(256)))

    def split(self, count: int) -> list[Entropy]:
        """Sources that ask the operating system themselves."""
        return [SystemEntropy() for _ in range(count)]

    def random_bytes(self, count: int) -> bytes:
        return secrets.token_bytes(count)


@final
class SeededEntropy(Entropy):
    """The same laws from a seed, to about fifteen digits: for tests and experiments, never for a release.

    Proof: proofs/entropy.md#entropy-seeded.
    """

    label: ClassVar[Literal["system", "seeded"]] = "seeded"

    def __init__(self, seed: int | np.random.SeedSequence) -> None:
        self._seeds = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        self._generator = np.random.Generator(np.random.PCG64(self._seeds.spawn(1)[0]))

    def __repr__(self) -> str:
        return "SeededEntropy(...)"  # no address: estimators are shown, and tests named, by their parameters

    def discrete_gaussian(self, scale: float, count: int) -> Integers:
        """A table of the probabilities for a small scale; a rounded normal, equal to 10⁻⁴ of σ⁻², above."""
        checked = checked_scale(scale)
        if checked <= _TABLE_SCALE:
            reach = math.ceil(40.0 * checked) + 1
            support = np.arange(-reach, reach + 1)
            weights = np.exp(-0.5 * (support / checked) ** 2)
            below = np.cumsum(weights)
            return _integers(
                support[np.searchsorted(below, self._generator.random(count) * below[-1])].tolist()
            )
        return _integers([round(x) for x in (self._generator.standard_normal(count) * checked).tolist()])

    def discrete_laplace(self, scale: float, count: int) -> Integers:
        """The difference of two geometric variables, each the floor of an exponential one."""
        checked = checked_scale(scale)
        first, second = np.floor(self._generator.standard_exponential((2, count)) * checked)
        return _integers([int(a) - int(b) for a, b in zip(first.tolist(), second.tolist(), strict=True)])

    def rehearse(self) -> None:
        """Nothing to load, and no draw may be lost: experiments are repeatable."""

    def generator(self) -> np.random.Generator:
        """A generator whose seed follows from this one's seed and the number of earlier calls."""
        return np.random.Generator(np.random.PCG64(self._seeds.spawn(1)[0]))

    def split(self, count: int) -> list[Entropy]:
        """Sources whose seeds follow from this one's seed and the number of earlier calls."""
        return [SeededEntropy(child) for child in self._seeds.spawn(count)]

    def random_bytes(self, count: int) -> bytes:
        return self._generator.bytes(count)


def on_cells(exact: npt.NDArray[np.int64] | Integers, noise: Noise, entropy: Entropy) -> Integers:
    """Independent noise on every cell, as Python's integers. Call it only after the charge.

    Proof: proofs/core.md#core-noise.
    """
    flat = exact.ravel().astype(object)
    sample = entropy.discrete_gaussian if noise.law == "gaussian" else entropy.discrete_laplace
    noisy: Integers = flat + sample(noise.scale, flat.size)
    return noisy.reshape(exact.shape)


def on_matrix(exact: npt.NDArray[np.int64] | Integers, noise: Noise, entropy: Entropy) -> Integers:
    """Symmetric noise on one matrix, of which the diagonal and what is below it are read.

    Of σ on the diagonal and σ/√2, rounded up, off it; or matrix Laplace. Call it only after the charge.

    Proof: proofs/core.md#core-noise.
    """
    width = len(exact)
    below = np.tri(width, k=-1, dtype=np.bool_)
    if noise.law == "matrix-laplace":
        drawn = entropy.matrix_laplace(width, noise.scale)
        diagonal, rest = drawn.diagonal(), drawn[below]
    else:
        diagonal = entropy.discrete_gaussian(noise.scale, width)
        rest = entropy.discrete_gaussian(offdiagonal_scale_at_least(noise.scale), width * (width - 1) // 2)
    matrix: Integers = np.zeros((width, width), dtype=object)
    matrix[below] = exact[below].astype(object) + rest
    matrix += matrix.T
    matrix[np.diag_indices(width)] = exact.diagonal().astype(object) + diagonal
    return matrix


def offdiagonal_scale_at_least(sigma: float) -> float:
    """σ/√2, rounded up: an off-diagonal change counts twice in |ΔG|_F, so any less would leak.

    Proof: proofs/core.md#core-noise.
    """
    scale = sigma / math.sqrt(2.0)
    while 2 * Fraction(scale) ** 2 < Fraction(sigma) ** 2:
        scale = math.nextafter(scale, math.inf)
    return scale


def threshold(noise: Noise, columns: int) -> int:
    """The least noisy count at which a text of so many columns is shown, rounded up.

    2^30 + t with P(X ≥ t) ≤ δ/columns: Φ̄((t − 1)/σ) is more than that of the discrete Gaussian, e^{−t/b} than
    that of the discrete Laplace. Proof: proofs/levels.md#levels-claim.
    """
    chance = noise.delta / columns * (1.0 - _ROUNDING)
    if noise.law == "gaussian":
        low, high = 0.0, 40.0
        while (middle := 0.5 * (low + high)) not in (low, high):
            tail = 0.5 * math.erfc(middle / math.sqrt(2.0)) * (1.0 + _ROUNDING * (1.0 + middle * middle))
            low, high = (low, middle) if tail <= chance else (middle, high)
        reach = high * noise.scale + 1.0
    else:
        reach = -math.log(chance) * noise.scale
    return (1 << 30) + math.ceil(max(reach, 1.0) * (1.0 + _ROUNDING))


def simulation(seed: int) -> np.random.Generator:
    """A seeded generator for post-processing, where the numbers protect nobody."""
    return np.random.Generator(np.random.PCG64(seed))


def _integers(values: list[int]) -> Integers:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def checked_scale(scale: float) -> float:
    """The scale of integer noise, refused where none can be drawn: to be asked before a charge."""
    if not 0.0 < scale <= LARGEST_SCALE:
        raise MechanismError(
            "the scale of the noise is out of range",
            got=scale,
            limit="0 < scale ≤ 2^56 lattice units",
            remedy="Ask for a guarantee that is neither vanishing nor infinite.",
        )
    return float(scale)


def _unbounded(value: int, largest: int, draw: Callable[[int], list[int]]) -> int:
    """The discrete Laplace integer of which `value` shows all that fits into ±`largest`.

    A value at the end says only |k| ≥ largest. The law has no memory: what lies beyond is distributed as k
    itself given k ≥ 0, so it is drawn and added, and the sum has the whole law exactly.

    Proof: proofs/entropy.md#entropy-ends.
    """
    if abs(value) < largest:
        return value
    beyond = -1
    while beyond < 0:
        beyond = draw(1)[0]
    whole = largest + _unbounded(beyond, largest, draw)
    return whole if value > 0 else -whole


def _allow_opendp() -> None:
    from opendp.mod import enable_features

    # OpenDP wants consent to code its committee has not vetted yet; both samplers have a published proof.
    enable_features("contrib")
