"""Σ λ̂_i θ_i θ_iᵀ with directions θ_i ∝ exp(c_i·uᵀRu), rounded to whole lattice units: exact in law.

R is what earlier directions have left of the Gram matrix: its restriction to their complement (`Frame`), or
what remains after subtraction (`Deflated`). Bits in, integers out, balls in between. Whatever is random stays
known through its bits, so that a doubt at any later point is met by reading more of them, from the first
direction on. Proof: proofs/eigenvectors.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.core.balls import (
    START_BITS,
    RandomBytes,
    Uniforms,
    decided,
    nearest_integer,
    nearest_integers,
    reveal,
)
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.sampling.envelope import Candidate, Envelope, MatrixBall

if TYPE_CHECKING:
    from flint import arb, arb_mat

Integers = npt.NDArray[np.object_]

WATCHED: Final[ContextVar[Callable[[int, int], None] | None]] = ContextVar("directions", default=None)
"""Hears after each direction how many of how many are drawn: with 500 columns that takes a minute or two."""


@final
class Direction:
    """An accepted candidate u, known through the bits of its normals."""

    def __init__(self, envelope: Envelope, uniforms: Uniforms, root: arb_mat) -> None:
        self._envelope, self._uniforms = envelope, uniforms
        self.ball = envelope.direction(uniforms, root)
        """u, a column."""
        # That of the first coordinate, if the bits tell; kept, because it fixes a basis of the complement.
        self._sign = -1 if float(self.ball[0, 0]) < 0.0 else 1

    def reveal(self, bits: int) -> None:
        """Read until so many bits are known."""
        reveal(self._uniforms, bits)
        self.ball = self._envelope.direction(self._uniforms, self._envelope.root)

    def reflector(self) -> arb_mat:
        """√2·h/|h| for h = u ± e_1: I − hhᵀ of this swaps u and the first axis, up to a sign.

        Proof: proofs/eigenvectors.md#eigenvectors-balls.
        """
        found = self.ball * 1
        found[0, 0] = found[0, 0] + self._sign
        return found * (2 / _form(found)).sqrt()


class Directions(ABC):
    """Directions drawn one after another, and the exact rest R that each leaves for the next.

    Proof: proofs/eigenvectors.md#eigenvectors-exact.
    """

    def __init__(
        self, gram: npt.NDArray[np.int64], random_bytes: RandomBytes, start_bits: int = START_BITS
    ) -> None:
        from flint import arb, arb_mat

        lower = np.tril(gram).astype(object)
        self.bits = start_bits
        """Known of each number behind the directions; also the precision of the arithmetic."""
        self.gram = MatrixBall(mid=arb_mat((lower + np.tril(lower, -1).T).tolist()), error=arb(0))
        self.rest = self.gram
        self.drawn: list[Direction] = []
        self._random_bytes = random_bytes

    @abstractmethod
    def _reduced(self, rest: MatrixBall, place: int) -> MatrixBall:
        """What the direction at `place` leaves of `rest`."""

    @final
    def extend(self) -> None:
        """Twice as many bits of every direction; each stays the one that was accepted."""
        from flint import ctx

        self.bits *= 2
        self.rest = self.gram
        with ctx.workprec(self.bits):
            for place, direction in enumerate(self.drawn):
                direction.reveal(self.bits)
                self.rest = self._reduced(self.rest, place)

    @final
    def next(self, inverse_temperature: float) -> None:
        """One more direction, ∝ exp(c·uᵀRu) for c = `inverse_temperature` in units of one row's trace.

        Proof: proofs/eigenvectors.md#eigenvectors-exact.
        """
        from flint import ctx

        envelope = decided(self, lambda: Envelope.around(self.rest, inverse_temperature / ROW_NORM_SQUARED))
        root = envelope.root
        while True:  # once, but for an event of probability 2^−39: the number of candidates sees to that
            words = envelope.candidates(self._random_bytes)
            for place in np.flatnonzero(~envelope.surely_rejected(words)):
                candidate = Candidate(words[place], self._random_bytes)
                if self._accepts(envelope, candidate, root):
                    with ctx.workprec(self.bits):
                        self.drawn.append(Direction(envelope, candidate.normals, root))
                    return

    @final
    def reduce(self) -> None:
        """Take the last direction out of the rest."""
        from flint import ctx

        with ctx.workprec(self.bits):
            self.rest = self._reduced(self.rest, len(self.drawn) - 1)

    def _accepts(self, envelope: Envelope, candidate: Candidate, root: arb_mat) -> bool:
        """Whether this candidate is accepted; more bits of everything are read until they tell."""
        return decided(_Judged(self, candidate), lambda: envelope.accepts(candidate, self.rest, root))


@final
class _Judged:
    """A candidate together with the directions before it."""

    def __init__(self, before: Directions, candidate: Candidate) -> None:
        self._before, self._candidate = before, candidate
        reveal(candidate, before.bits)

    @property
    def bits(self) -> int:
        """Of the directions; the candidate has as many or more."""
        return self._before.bits

    def extend(self) -> None:
        self._before.extend()
        reveal(self._candidate, self._before.bits)


@final
class Frame(Directions):
    """Orthonormal θ_1, θ_2, …: each is drawn on the sphere orthogonal to the earlier ones.

    R lives in a basis of that complement. Reflecting the direction onto the first axis, which is then cut,
    gives the next basis; which basis it is does not matter for the law.
    """

    def cells(self, values: list[int]) -> Integers | None:
        """round(Σ v_i θ_i θ_iᵀ), or None while the bits read leave a cell in doubt.

        Proof: proofs/eigenvectors.md#eigenvectors-balls.
        """
        from flint import arb, arb_mat

        width, count = self.gram.mid.nrows(), len(self.drawn)
        frame = arb_mat(np.eye(width, dtype=np.int64).tolist())
        if count:
            rows = [[arb(0)] * place + one.reflector().entries() for place, one in enumerate(self.drawn)]
            reflectors = arb_mat(rows)  # hᵀ of each, in the coordinates of the first matrix
            products = reflectors * reflectors.transpose()
            above = [products[i, j] if i < j else arb(i == j) for i in range(count) for j in range(count)]
            try:
                frame -= reflectors.transpose() * arb_mat(count, count, above).solve(reflectors)
            except ZeroDivisionError:  # known too roughly to tell that it has an inverse
                return None
        levels = arb_mat(np.diag(np.array(values + [0] * (width - len(values)), dtype=object)).tolist())
        return nearest_integers(frame * levels * frame.transpose())

    def _reduced(self, rest: MatrixBall, place: int) -> MatrixBall:
        """The rows and columns of HRH but the first, H = I − hhᵀ, s = hᵀRh:

        HRH = R − h(Rᵀh − (s/2)h)ᵀ − (Rh − (s/2)h)hᵀ, also where rounding left R not quite symmetric.

        Proof: proofs/eigenvectors.md#eigenvectors-balls.
        """
        from flint import arb_mat

        reflector = self.drawn[place].reflector()
        image, image_left = rest.mid * reflector, rest.mid.transpose() * reflector
        half = reflector * (_form(reflector, image) / 2)
        size = rest.mid.nrows() - 1
        column = arb_mat(size, 1, reflector.entries()[1:])
        right = arb_mat(1, size, (image_left - half).entries()[1:])
        left = arb_mat(size, 1, (image - half).entries()[1:])
        entries = rest.mid.entries()
        kept = [x for i in range(1, size + 1) for x in entries[i * (size + 1) + 1 : (i + 1) * (size + 1)]]
        reflected = arb_mat(size, size, kept) - column * right - left * column.transpose()
        return MatrixBall.of(reflected, rest.error)


@final
class Deflated(Directions):
    """Any θ_1, θ_2, …, each drawn after λ̂θθᵀ of the earlier ones was subtracted, λ̂ whole lattice units."""

    def __init__(
        self, gram: npt.NDArray[np.int64], random_bytes: RandomBytes, start_bits: int = START_BITS
    ) -> None:
        super().__init__(gram, random_bytes, start_bits)
        self.values: list[int] = []

    def value_held(self) -> int:
        """The nearest integer of uᵀRu for the last direction u, in lattice units.

        Proof: proofs/eigenvectors.md#eigenvectors-deflation.
        """
        return decided(self, self._value_held)

    def cells(self) -> Integers | None:
        """round(Σ λ̂θθᵀ), which is what R has lost; None while the bits read leave a cell in doubt."""
        from flint import arb, arb_mat

        width = self.gram.mid.nrows()
        doubt = arb_mat(width, width, [arb(0, self.rest.error)] * width**2)
        return nearest_integers(self.gram.mid - self.rest.mid + doubt)

    def _value_held(self) -> int | None:
        from flint import arb

        direction = self.drawn[-1].ball
        return nearest_integer(_form(direction, self.rest.mid * direction) + arb(0, self.rest.error))

    def _reduced(self, rest: MatrixBall, place: int) -> MatrixBall:
        """R − λ̂uuᵀ."""
        if place == len(self.values):
            return rest  # λ̂ is not known yet
        direction = self.drawn[place].ball
        held = (direction * self.values[place]) * direction.transpose()
        return MatrixBall.of(rest.mid - held, rest.error)


def frame_matrix(
    gram: npt.NDArray[np.int64],
    inverse_temperatures: npt.NDArray[np.float64],
    values: list[int],
    random_bytes: RandomBytes,
    *,
    start_bits: int = START_BITS,
) -> Integers:
    """round(Σ v_i θ_i θ_iᵀ), θ_i ∝ exp(c_i·uᵀGu) on the sphere orthogonal to θ_1 … θ_{i−1}.

    `inverse_temperatures` holds c_1, c_2, … in units of one row's trace. The last direction of a full frame
    is forced.

    Proof: proofs/eigenvectors.md#eigenvectors-exact.
    """
    frame = Frame(gram, random_bytes, start_bits)
    wanted = inverse_temperatures.tolist()[: len(gram) - 1]
    for number, inverse_temperature in enumerate(wanted, start=1):
        frame.next(inverse_temperature)
        frame.reduce()
        _tell(number, len(wanted))
    return decided(frame, lambda: frame.cells(values))


def deflation_matrix(
    gram: npt.NDArray[np.int64],
    inverse_temperature: float,
    rank: int,
    value_noise: Callable[[], int],
    random_bytes: RandomBytes,
    *,
    start_bits: int = START_BITS,
) -> Integers:
    """round(Σ λ̂_i θ_i θ_iᵀ): θ_i ∝ exp(c·uᵀRu), λ̂_i = round(θ_iᵀRθ_i) + noise, R ← R − λ̂_i θ_i θ_iᵀ.

    Proof: proofs/eigenvectors.md#eigenvectors-deflation.
    """
    deflated = Deflated(gram, random_bytes, start_bits)
    for number in range(1, rank + 1):
        deflated.next(inverse_temperature)
        deflated.values.append(deflated.value_held() + value_noise())
        deflated.reduce()
        _tell(number, rank)
    return decided(deflated, deflated.cells)


def _tell(drawn: int, wanted: int) -> None:
    watched = WATCHED.get()
    if watched is not None:
        watched(drawn, wanted)


def _form(left: arb_mat, right: arb_mat | None = None) -> arb:
    """leftᵀ·right of two columns, or |left|²."""
    return (left.transpose() * (left if right is None else right))[0, 0]
