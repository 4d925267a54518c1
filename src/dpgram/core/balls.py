"""Random real numbers known through finitely many bits, and carried by ball arithmetic.

A uniform number is an endless string of fair bits of which the first ones have been read; everything computed
from it is a ball that holds the exact value for every continuation. A decision is taken only when all
continuations agree, otherwise more bits are read: what comes out has exactly the law of the construction in
real numbers (proofs/entropy.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeVar, final

import numpy as np
import numpy.typing as npt

from dpgram.errors import MechanismError

if TYPE_CHECKING:
    from flint import arb, arb_mat

RandomBytes = Callable[[int], bytes]
START_BITS: Final = 192
"""Bits of each uniform to begin with: cells near 2^45 are then undecided with probability about 2^-130."""

Decision = TypeVar("Decision")


class Revealable(Protocol):
    """Something random of which more bits can be read."""

    @property
    def bits(self) -> int:
        """How many bits of each of its numbers are known."""

    def extend(self) -> None:
        """Reveal as many bits again."""


def decided(sample: Revealable, decide: Callable[[], Decision | None]) -> Decision:
    """What `decide` says of `sample`, as soon as the bits revealed leave no doubt (None).

    Proof: proofs/entropy.md#entropy-theorem.
    """
    from flint import ctx

    while True:
        with ctx.workprec(sample.bits):
            decision = decide()
        if decision is not None:
            return decision
        sample.extend()


@final
class Uniforms:
    """`count` independent uniform numbers on [0, 1]; the first `bits` bits of each are known.

    Proof: proofs/entropy.md#entropy-theorem.
    """

    def __init__(self, count: int, random_bytes: RandomBytes, start_bits: int = START_BITS) -> None:
        self.bits = 0
        self._numerators = [0] * count
        self._random_bytes = random_bytes
        self._read(start_bits)

    @classmethod
    def known(cls, numerators: list[int], bits: int, random_bytes: RandomBytes) -> Self:
        """Numbers whose first `bits` bits, as integers, were read elsewhere."""
        found = cls(0, random_bytes, 0)
        found._numerators, found.bits = list(numerators), bits
        return found

    def extend(self) -> None:
        """Twice as many bits of each."""
        self._read(self.bits)

    def balls(self) -> list[arb]:
        """Closed intervals of length 2^−bits, each with its number inside."""
        from flint import arb

        exponent = -(self.bits + 1)
        radius = (1, exponent)
        return [arb((2 * numerator + 1, exponent), radius) for numerator in self._numerators]

    def normals(self) -> list[arb]:
        """Box–Muller on pairs: √(−2 ln U)·(sin 2πV, cos 2πV)."""
        balls = self.balls()
        found: list[arb] = []
        for u, v in zip(balls[::2], balls[1::2], strict=True):
            length = _length(u)
            sine, cosine = (v + v).sin_cos_pi()
            found.append(length * sine)
            found.append(length * cosine)
        return found

    def _read(self, more: int) -> None:
        """Append at least `more` bits, whole bytes, to each."""
        size = -(-more // 8)
        more = 8 * size
        fresh = self._random_bytes(size * len(self._numerators))
        self._numerators = [
            (known << more) | int.from_bytes(fresh[k * size : (k + 1) * size], "big")
            for k, known in enumerate(self._numerators)
        ]
        self.bits += more


@final
class ChiSquared:
    """χ²_k = 2a(1 + cx)³, a = k/2 − 1/3, c = 1/√(9a), x a normal that passed Marsaglia and Tsang's test.

    Proof: proofs/entropy.md#entropy-chi-squared.
    """

    def __init__(self, degrees: int, random_bytes: RandomBytes, start_bits: int = START_BITS) -> None:
        self._degrees = degrees
        while True:
            self._uniforms = Uniforms(3, random_bytes, start_bits)
            if decided(self._uniforms, self._passes):
                break

    @property
    def bits(self) -> int:
        return self._uniforms.bits

    def extend(self) -> None:
        """More bits of the accepted normal; the verdict holds for all of them."""
        self._uniforms.extend()

    def ball(self) -> arb:
        """The χ² number."""
        base, scale, _ = self._base()
        return 2 * scale * base**3

    def _base(self) -> tuple[arb, arb, arb]:
        """1 + cx, a, and the uniform number of the test."""
        from flint import arb

        u, v, coin = self._uniforms.balls()
        normal = _length(u) * (v + v).sin_pi()
        scale = arb(3 * self._degrees - 2) / 6
        return 1 + normal / (3 * scale.sqrt()), scale, coin

    def _passes(self) -> bool | None:
        """ln U < a(3 ln y − y³ + 1 + (9/2)(y − 1)²) for y = 1 + cx > 0."""
        base, scale, coin = self._base()
        if base < 0:
            return False
        if not base > 0:
            return None
        return below(coin.log(), scale * (3 * base.log() - base**3 + 1 + 4.5 * (base - 1) ** 2))


@final
class RevealedTogether:
    """Several random things, revealed alike."""

    def __init__(self, *parts: Revealable) -> None:
        self._parts = parts

    @property
    def bits(self) -> int:
        """The fewest known of any of them."""
        return min(part.bits for part in self._parts)

    def extend(self) -> None:
        """At least twice as many bits of each."""
        wanted = 2 * self.bits
        for part in self._parts:
            reveal(part, wanted)


def reveal(numbers: Revealable, bits: int) -> None:
    """Read until at least so many bits are known."""
    while numbers.bits < bits:
        numbers.extend()


def below(one: arb, other: arb) -> bool | None:
    """Whether one < other, for all points of two balls; None while they overlap."""
    if one < other:
        return True
    return False if one > other else None


def _length(u: arb) -> arb:
    """√(−2 ln U), that of a pair of normals."""
    return (u.log() * -2).sqrt()


def nearest_integer(ball: arb) -> int | None:
    """⌊x + ½⌋ for every x of the ball, or None if they differ.

    Proof: proofs/entropy.md#entropy-theorem.
    """
    from flint import arb

    whole = (ball + arb((1, -1))).floor().unique_fmpz()
    return None if whole is None else int(whole)


def nearest_integers(matrix: arb_mat) -> npt.NDArray[np.object_] | None:
    """The nearest integers of a symmetric matrix, by its lower triangle; None while one is in doubt."""
    width, entries = matrix.nrows(), matrix.entries()
    cells = np.empty((width, width), dtype=object)
    for i in range(width):
        for j in range(i + 1):
            whole = nearest_integer(entries[i * width + j])
            if whole is None:
                return None
            cells[i, j] = cells[j, i] = whole
    return cells


def matrix_laplace(
    width: int, theta: float, random_bytes: RandomBytes, *, start_bits: int = START_BITS
) -> npt.NDArray[np.object_]:
    """The integer matrix round((Z₁ᵀZ₁ − Z₂ᵀZ₂)/(2θ)), Z₁ and Z₂ of d+1 rows of standard normals.

    Proof: proofs/entropy.md#entropy-theorem.
    """
    if not 0.0 < theta < float("inf") or width < 1:
        raise MechanismError(
            "matrix Laplace noise needs a positive width and a positive, finite theta",
            got=(width, theta),
            limit="width ≥ 1, 0 < theta < ∞",
        )
    uniforms = Uniforms(2 * (width + 1) * width, random_bytes, start_bits)
    return decided(uniforms, lambda: _rounded(uniforms, width, theta))


def _rounded(uniforms: Uniforms, width: int, theta: float) -> npt.NDArray[np.object_] | None:
    """The rounded matrix, or None while the bits read leave a cell undecided.

    Proof: proofs/entropy.md#entropy-theorem.
    """
    from flint import arb, arb_mat

    normals = uniforms.normals()
    half = len(normals) // 2
    rows = 2 * (width + 1)
    z = arb_mat(rows, width, normals)
    signed = arb_mat(rows, width, normals[:half] + [-x for x in normals[half:]])
    scale = 1 / (2 * arb(theta))
    return nearest_integers(z.transpose() * signed * scale)
