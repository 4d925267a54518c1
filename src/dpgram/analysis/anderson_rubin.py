"""Anderson and Rubin's test of an endogenous coefficient, which holds however weak the instruments are.

Where β₀ is true, the instruments explain nothing of y − xβ₀, so the coefficients π(β₀) of the instruments in
its regression have mean zero and a covariance C(β₀), both of sampling and of noise. β₀ is kept while
πᵀC⁻¹π ≤ c, that is while c·C(β₀) − π(β₀)π(β₀)ᵀ, quadratic in β₀, is positive semidefinite: its ends are
eigenvalues of a quadratic eigenproblem. The set may be an interval, two half-lines, the whole line or empty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, final

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, chdtri, fdtrc, fdtri

from dpgram.document.terminal import one_line
from dpgram.errors import AnalysisError

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Piece = tuple[float, float]

REAL: Final = 1e-7
"""A root with an imaginary part below this, in units of its size, is real."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AndersonRubin:
    """All values of an endogenous coefficient that are not rejected: one or several pieces, or none."""

    name: str
    level: float
    pieces: tuple[Piece, ...]

    @property
    def bounded(self) -> bool:
        """Whether the set has two finite ends."""
        return all(math.isfinite(end) for piece in self.pieces for end in piece)

    def __contains__(self, value: float) -> bool:
        return any(low <= value <= high for low, high in self.pieces)

    def __str__(self) -> str:
        head = f"{100 * self.level:g}% Anderson–Rubin set for {one_line(self.name)}: "
        if not self.pieces:
            return head + "empty, no value agrees with all instruments"
        if self.pieces == ((-math.inf, math.inf),):
            return head + "every value, the instruments say nothing about it"
        told = " or ".join(f"{low:.5g} to {high:.5g}" for low, high in self.pieces)
        return head + told + ("" if self.bounded else " (unbounded: the instruments are weak)")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InstrumentTest:
    """π(β) = intercept + β·slope, its covariance a quadratic in β: behind Anderson and Rubin's test."""

    name: str
    intercept: Vector
    slope: Vector
    covariances: tuple[Matrix, Matrix, Matrix]
    """C₀, C₁, C₂ with C(β) = C₀ + βC₁ + β²C₂."""
    unit: float
    """A size of β of the order of one for the arithmetic."""
    degrees: float | None
    refusal: str | None

    def statistic(self, value: float) -> float:
        """π'C⁻¹π at a hypothesis."""
        self.check()
        weights = np.array([1.0, value, value**2]) / (1.0 + value**2)  # C and ππᵀ may share any factor
        pi = (self.intercept + value * self.slope) / math.sqrt(1.0 + value**2)
        covariance = np.tensordot(weights, np.array(self.covariances), axes=1)
        return float(pi @ np.linalg.solve(covariance, pi))

    def p_value(self, value: float) -> float:
        """Of the coefficient being `value`."""
        found, count = max(self.statistic(value), 0.0), len(self.slope)
        if self.degrees is None:
            return float(chdtrc(count, found))
        return float(fdtrc(count, self.degrees, found / count))

    def kept(self, level: float) -> tuple[Piece, ...]:
        """The values that are not rejected at 1 − level, as pieces of the line in order."""
        self.check()
        count = len(self.slope)
        limit = (
            chdtri(count, 1.0 - level) if self.degrees is None else count * fdtri(count, self.degrees, level)
        )
        parts = [limit * matrix * self.unit**i for i, matrix in enumerate(self.covariances)]
        first, second = self.intercept, self.slope * self.unit
        parts[0] = parts[0] - np.outer(first, first)
        parts[1] = parts[1] - np.outer(first, second) - np.outer(second, first)
        parts[2] = parts[2] - np.outer(second, second)
        ends = [end * self.unit for end in _real_roots(parts)]
        return _pieces(ends, self, limit)

    def check(self) -> None:
        """Raise where there is no such test."""
        if self.refusal is not None:
            raise AnalysisError("no Anderson–Rubin test", got=self.refusal)


def _real_roots(parts: Sequence[Matrix]) -> list[float]:
    """Real t with det(P₀ + tP₁ + t²P₂) = 0, in order."""
    from scipy.linalg import eig

    size = len(parts[0])
    scale = max(float(np.abs(part).max()) for part in parts)
    zero, one = np.zeros((size, size)), np.eye(size)
    left = np.block([[zero, one], [-parts[0] / scale, -parts[1] / scale]])
    right = np.block([[one, zero], [zero, parts[2] / scale]])
    roots = eig(left, right, right=False)
    roots = roots[np.isfinite(roots)]
    return sorted(float(root.real) for root in roots if abs(root.imag) <= REAL * (1.0 + abs(root)))


def _pieces(ends: Sequence[float], test: InstrumentTest, limit: float) -> tuple[Piece, ...]:
    """The gaps between the ends in which the test does not reject, joined where they touch."""
    edges = [-math.inf, *ends, math.inf]
    pieces: list[Piece] = []
    for low, high in pairwise(edges):
        if test.statistic(_inside(low, high, test.unit)) > limit:
            continue
        if pieces and pieces[-1][1] == low:
            pieces[-1] = (pieces[-1][0], high)
        else:
            pieces.append((low, high))
    return tuple(pieces)


def _inside(low: float, high: float, unit: float) -> float:
    if math.isinf(low) and math.isinf(high):
        return 0.0
    if math.isinf(low):
        return high - unit - abs(high)
    if math.isinf(high):
        return low + unit + abs(low)
    return 0.5 * (low + high)
