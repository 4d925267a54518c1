"""What a mechanism is: public facts in, a calibrated noise, a price, and one draw."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.noise import Law
from dpgram.privacy.accountant import Event
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.curves.base import PrivacyCurve
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.sampling.entropy import Entropy

IntegerMatrix = npt.NDArray[np.object_]
"""A square matrix of Python integers: cells may pass 2^63 once noise is added."""


def symmetric(diagonal: npt.NDArray[np.object_], below: npt.NDArray[np.object_]) -> IntegerMatrix:
    """The symmetric matrix with this diagonal and, row by row, these cells below it."""
    width = len(diagonal)
    matrix: IntegerMatrix = np.zeros((width, width), dtype=object)
    matrix[strictly_below(width)] = below
    matrix += matrix.T
    matrix[np.diag_indices(width)] = diagonal
    return matrix


def strictly_below(width: int) -> npt.NDArray[np.bool_]:
    """Which cells are below the diagonal. Only these and the diagonal of a Gram matrix are ever read."""
    index = np.arange(width)
    return np.greater.outer(index, index)


def as_floats(gram: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The exact cells in floats, symmetric; only the diagonal and what is below it are read."""
    lower = np.tril(gram).astype(np.float64)
    return lower + np.tril(lower, -1).T


def rounded(matrix: npt.NDArray[np.float64]) -> IntegerMatrix:
    """The nearest whole numbers of a symmetric matrix; the lower triangle decides."""
    lower = np.tril(np.rint(matrix))
    cells: IntegerMatrix = np.empty(lower.shape, dtype=object)
    cells[...] = [[int(cell) for cell in row] for row in (lower + np.tril(lower, -1).T).tolist()]
    return cells


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The public facts a mechanism is calibrated from. Nothing in here is read from the data."""

    width: int
    adjacency: Adjacency
    rows: int | None = None
    """A public row count or a guess of it; only for forecasts and choices of parameters."""
    ridge: float | None = None
    """A public ridge in lattice units, for mechanisms that take one."""
    rank: int | None = None
    """The number of directions to keep, for mechanisms that build the matrix from them."""
    degrees: int | None = None
    """Degrees of freedom (or sketch rows), for mechanisms of the Wishart family."""
    unit_rows: int = 1
    """Most rows of one privacy unit: the rank of what it contributes."""

    @property
    def options(self) -> frozenset[str]:
        """The names of the mechanism's parameters that were given."""
        given = {"ridge": self.ridge, "rank": self.rank, "degrees": self.degrees}
        return frozenset(name for name, value in given.items() if value is not None)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One noisy matrix: cells · 2^exponent, in lattice units, with the law that made it."""

    cells: IntegerMatrix
    noise: Law
    exponent: int = 0
    kind: Literal["gram", "inverse"] = "gram"


class Mechanism(ABC):
    """An exactly calibrated way from an integer Gram matrix to a private one.

    Works in lattice units: each row (or privacy unit) contributes a positive semidefinite integer matrix of
    trace, and hence Frobenius norm, at most `lattice.ROW_NORM_SQUARED`.
    """

    name: ClassVar[str]
    options: ClassVar[frozenset[str]] = frozenset()
    """Those of `ridge`, `rank` and `degrees` that this mechanism takes."""
    psd: ClassVar[bool]
    """Whether every published matrix is positive semidefinite."""
    pure: ClassVar[bool] = False
    """Whether it needs no δ."""
    several_rows: ClassVar[bool] = True
    """Whether its guarantee is proven for units of several rows, which change the matrix by more than rank 1.

    Proofs: proofs/sketch.md#sketch-several, proofs/units.md#units-mechanisms.
    """
    joint_groups: ClassVar[bool] = False
    """Whether it may serve several groups at the price of one where a unit has rows in several of them."""
    in_blocks: ClassVar[bool] = False
    """Whether blocks of columns can share a budget under it."""
    rows_at_most: ClassVar[int | None] = None
    """A public limit on the number of rows, where the error bound of an eigenvalue or inverse needs one."""

    @classmethod
    @abstractmethod
    def calibrated(cls, guarantee: Guarantee, facts: Facts) -> Self:
        """The least noise that meets `guarantee`; never less than it needs."""

    @abstractmethod
    def curve(self, facts: Facts) -> PrivacyCurve:
        """The exact privacy curve δ(ε) of one draw."""

    @abstractmethod
    def event(self, facts: Facts) -> Event:
        """What a ledger is charged for one draw."""

    @abstractmethod
    def expected(self, values: npt.NDArray[np.float64]) -> Law:
        """The law of a release of a Gram matrix with these eigenvalues, in lattice units: for forecasts."""

    @abstractmethod
    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        """One noisy matrix from the exact cells. Call it only after the event has been charged."""
