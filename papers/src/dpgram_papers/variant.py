"""A mechanism with the constants a paper prints: a baseline for experiments, with what it truly guarantees.

Rows have |x| ≤ 1 unless a variant says otherwise. Nothing here can be reached from dpgram, and noise is
drawn in floats: the draws are for comparisons on data that need no protection.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dpgram.core.noise import Entropy
from dpgram.privacy.adjacency import Adjacency, ReplaceOne
from dpgram.privacy.curves.search import least
from dpgram.privacy.guarantee import Guarantee

Matrix: TypeAlias = npt.NDArray[np.float64]
Repair: TypeAlias = Literal["none", "scaled", "zeroed"]
"""What a paper does with a noisy matrix that is not positive semidefinite."""
_LARGEST_EPSILON: Final = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant(ABC):
    """What is claimed, what is true, and one draw."""

    paper: ClassVar[str]
    explanation: ClassVar[str]
    """What is wrong with the printed constants, or how loose they are, in one sentence."""

    claimed: Guarantee
    adjacency: Adjacency = ReplaceOne()
    """The relation under which the truth is computed; by default the one the paper's claim is about."""

    @property
    @abstractmethod
    def name(self) -> str:
        """A short name, unique among the variants."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Where the constants are printed."""

    @property
    @abstractmethod
    def printed(self) -> str:
        """The printed constant, with its value for these parameters."""

    @abstractmethod
    def true_delta(self, epsilon: float) -> float:
        """δ(ε) of the printed noise, exact unless the class says on which side of the truth it lies."""

    @abstractmethod
    def draw(self, gram: Matrix, entropy: Entropy) -> Matrix:
        """One noisy matrix, for experiments only."""

    def meets(self, epsilon: float, delta: float) -> bool:
        """Whether true δ(ε) ≤ delta. A variant that decides this faster overrides it."""
        return self.true_delta(epsilon) <= delta

    @final
    @property
    def private(self) -> bool:
        """Whether the printed noise meets its claim at these parameters."""
        return self.meets(self.claimed.epsilon, self.claimed.delta)

    @final
    def true_epsilon(self, delta: float) -> float:
        """The least ε with true δ(ε) ≤ delta, to three digits; inf where there is none below 100."""
        if self.true_delta(_LARGEST_EPSILON) > delta:
            return math.inf
        return least(lambda epsilon: self.meets(epsilon, delta), tolerance=5e-4)


def repaired(matrix: Matrix, repair: Repair, shift: float) -> Matrix:
    """Sheffet's two ways to mend a matrix that is not positive definite: + shift·I, or no negative values."""
    if repair == "none":
        return matrix
    values, vectors = np.linalg.eigh(matrix)
    if values[0] > 0.0:
        return matrix
    if repair == "scaled":
        return matrix + shift * np.eye(len(matrix))
    mended: Matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return mended
