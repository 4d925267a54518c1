"""min f(θ) = ½ θᵀAθ − bᵀθ + αn(ρ|θ|₁ + ½(1−ρ)|θ|²) from the Gram matrix alone, by coordinate descent.

A must be positive semidefinite: repair it first. Then f is convex, and θ is a minimum exactly where the
gradient g = b − Aθ − αn(1−ρ)θ equals αnρ·sign(θ_j) at every θ_j ≠ 0 and stays within ±αnρ elsewhere: that is
what is checked before an answer is given. Descent finds quickly which coefficients are not zero; given these
and their signs the rest is a linear system, which spares the long tail of its convergence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.errors import AnalysisError

if TYPE_CHECKING:
    from dpgram.analysis._frames import Frame

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

PENALTY_RATIO: Final = 0.5
MOST_PENALTIES: Final = 40
ROUNDS: Final = 200
SWEEPS: Final = 4
"""Of each round, before the coefficients that are not zero are solved for together."""
TOLERANCE: Final = 1e-11
"""How far the gradient may be off, relative to the terms that make it up."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LassoPath:
    """Coefficients in original units for each penalty; those that are zero are exactly zero."""

    names: tuple[str, ...]
    alphas: Vector
    """From the largest to the smallest."""
    coefficients: Matrix
    """One row for each penalty."""
    intercept: bool

    def active(self) -> list[tuple[str, ...]]:
        """Names of the coefficients that are not zero at each penalty, without the intercept.

        >>> release.lasso_path("charges", count=3).active()
        [(), ('age', 'smoker=yes'), ('age', 'smoker=yes')]
        """
        first = int(self.intercept)
        return [
            tuple(name for name, value in zip(self.names[first:], row[first:], strict=True) if value != 0.0)
            for row in self.coefficients.tolist()
        ]

    def to_frame(self) -> Frame:
        """A frame with a row for each penalty.

        >>> release.lasso_path("charges", count=3).to_frame().columns
        ['alpha', '(intercept)', 'age', 'smoker=yes']
        """
        from dpgram.analysis._frames import frame_of

        columns = {name: self.coefficients[:, i] for i, name in enumerate(self.names)}
        return frame_of({"alpha": self.alphas, **columns}, numbers=["alpha", *self.names])

    def __repr__(self) -> str:
        last = len(self.active()[-1]) if len(self.alphas) else 0
        return f"<LassoPath: {len(self.alphas)} penalties, {last} coefficients at the last>"


def elastic_net(gram_xx: Matrix, gram_xy: Vector, *, rows: float, alpha: float, l1_ratio: float) -> Vector:
    """θ of the elastic net with scikit-learn's meaning of `alpha` and `l1_ratio` (1 is the lasso)."""
    right = _in_range(gram_xx, gram_xy)
    l1, ridge = alpha * rows * l1_ratio, alpha * rows * (1.0 - l1_ratio)
    theta = np.zeros(len(gram_xx))
    for step in _path(float(np.max(np.abs(right), initial=0.0)), l1):
        found = _Problem(gram=gram_xx, right=right, l1=step, ridge=ridge).minimum_from(theta)
        if found is None:
            raise AnalysisError(
                "coordinate descent did not converge on this matrix",
                got=f"alpha={alpha:g}",
                remedy="Take a larger alpha, or method='auto'.",
            )
        theta = found
    return theta


def _path(largest: float, l1: float) -> list[float]:
    """Penalties from the one that leaves nothing down to `l1`: each minimum is near the one before.

    Coming from above, no more coefficients are ever taken up than the matrix has rank, or hardly more.
    """
    steps = 0 if l1 <= 0.0 else max(0, math.ceil(math.log(max(largest / l1, 1.0)) / -math.log(PENALTY_RATIO)))
    return [l1 * PENALTY_RATIO**-k for k in range(min(steps, MOST_PENALTIES), -1, -1)]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Problem:
    """½ θᵀAθ − bᵀθ + l1·|θ|₁ + ½·ridge·|θ|²."""

    gram: Matrix
    right: Vector
    l1: float
    ridge: float

    def minimum_from(self, start: Vector) -> Vector | None:
        """θ, or None where it was not found."""
        theta = start.copy()
        for _ in range(ROUNDS):
            for _ in range(np.count_nonzero(theta)):
                together = self.towards_its_face_minimum(theta)
                # Where more are not zero than the matrix has rank there may be no such minimum.
                if not self.value(together) < self.value(theta):
                    break
                theta = together
            for candidate in (self.towards_its_face_minimum(theta), theta):
                if self.is_minimum(candidate):
                    return candidate
            for _ in range(SWEEPS):
                self.sweep(theta)
        return None

    def value(self, theta: Vector) -> float:
        """f(θ)."""
        smooth = theta @ (0.5 * (self.gram @ theta + self.ridge * theta) - self.right)
        return float(smooth + self.l1 * np.abs(theta).sum())

    def sweep(self, theta: Vector) -> None:
        """Each coefficient in turn to its own minimum, in place."""
        rest = self.right - self.gram @ theta
        for j, size in enumerate(np.diagonal(self.gram).tolist()):
            before = float(theta[j])
            pull = float(rest[j]) + size * before
            # A column without variance pulls at nothing; without a ridge it has no minimum of its own.
            moved = 0.0 if size + self.ridge <= 0.0 else _shrunk(pull, self.l1) / (size + self.ridge)
            if moved != before:
                rest -= (moved - before) * self.gram[j]
                theta[j] = moved

    def towards_its_face_minimum(self, theta: Vector) -> Vector:
        """From θ to the minimum over all that have its zeros and signs, or as far as these signs last."""
        chosen = np.flatnonzero(theta)
        start, signs = theta[chosen], np.sign(theta[chosen])
        matrix = self.gram[np.ix_(chosen, chosen)] + self.ridge * np.eye(len(chosen))
        right = self.right[chosen] - self.l1 * signs
        try:
            aim = np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError:  # columns that repeat each other
            aim = np.linalg.lstsq(matrix, right, rcond=1e-13)[0]
        crossing = aim * signs <= 0.0
        found = np.zeros_like(theta)
        if not crossing.any():
            found[chosen] = aim
            return found
        parts = np.where(crossing, start / np.where(crossing, start - aim, 1.0), np.inf)
        # f falls all the way to `aim` as long as no sign changes: the first that would becomes zero.
        found[chosen] = start + parts.min() * (aim - start)
        found[chosen[np.argmin(parts)]] = 0.0
        return found

    def is_minimum(self, theta: Vector) -> bool:
        """Whether no small change of any coefficient would lower the sum, to rounding."""
        gradient = self.right - self.gram @ theta - self.ridge * theta
        largest = np.abs(self.gram) @ np.abs(theta) + self.ridge * np.abs(theta)
        slack = TOLERANCE * (float(np.max(np.abs(self.right), initial=0.0)) + largest)
        off = np.where(
            theta == 0.0,
            np.maximum(np.abs(gradient) - self.l1, 0.0),
            np.abs(gradient - self.l1 * np.sign(theta)),
        )
        return bool(np.all(off <= slack))


def _shrunk(value: float, by: float) -> float:
    return math.copysign(max(abs(value) - by, 0.0), value)


def _in_range(gram: Matrix, right: Vector) -> Vector:
    """b less what rounding and repair left of it outside the range of A, where f would have no minimum."""
    values, vectors = np.linalg.eigh(gram)
    kept = vectors[:, values > 1e-12 * np.max(values, initial=1e-300)]
    return np.asarray(kept @ (kept.T @ right))
