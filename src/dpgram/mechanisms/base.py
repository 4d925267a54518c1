"""What a mechanism is: its parameters and properties, and once calibrated its noise, price and draw."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import Field, dataclass, fields
from typing import Any, ClassVar, Final, Literal, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.core.noise import Entropy, Noise
from dpgram.errors import MechanismError, shown, whole
from dpgram.mechanisms._stated import StatedNoise
from dpgram.noise import Law
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.charged import Charged
from dpgram.privacy.curves.base import PrivacyCurve
from dpgram.privacy.events import Event
from dpgram.privacy.guarantee import Guarantee

IntegerMatrix = npt.NDArray[np.object_]
"""A square matrix of Python integers: cells may pass 2^63 once noise is added."""
ROWS_GUESSED: Final = 100_000
"""Stands in for the number of rows in forecasts where none is given."""


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
class PublicFacts:
    """What a mechanism is calibrated from, beside its own parameters. None of it is read from the data."""

    width: int
    adjacency: Adjacency
    rows: int | None = None
    """A public row count or a guess of it; only for forecasts and choices of parameters."""
    unit_rows: int = 1
    """Most rows of one privacy unit: the rank of what it contributes."""
    two_matrices: bool = False
    """Whether neighbours may differ in two matrices: a replaced unit can go from one group to another."""
    radius: float = 1.0
    """R: no encoded row is longer. What a parameter in encoded units is measured against."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One noisy matrix: cells · 2^exponent, in lattice units, with the law that made it."""

    cells: IntegerMatrix
    noise: Law
    exponent: int = 0
    kind: Literal["gram", "inverse"] = "gram"


class Mechanism(ABC):
    """What a person asks for: a way from an integer Gram matrix to a private one, with its own parameters.

    A frozen dataclass whose fields are the parameters, each with a default, so that the name alone is enough
    to ask for it. Its properties are class attributes: nothing outside keeps lists of names.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    name: ClassVar[str]
    semidefinite: ClassVar[bool]
    """Whether every published matrix is positive semidefinite."""
    pure: ClassVar[bool] = False
    """Whether it needs no δ."""
    gaussian: ClassVar[bool] = False
    """Whether its price is a μ² that one σ decides, whatever the number of columns.

    It then adds up exactly with Gaussian counts that are measured before the matrix, and has `of_mu_squared`.
    """
    one_row_per_unit: ClassVar[bool] = False
    """Whether it is proven only for units of one row, which change the matrix by no more than rank 1.

    Proofs: proofs/sketch.md#sketch-several, proofs/units.md#units-mechanisms.
    """
    joint_groups: ClassVar[bool] = False
    """Whether it may serve several groups at the price of one where a unit has rows in several of them."""
    replaced_in_groups: ClassVar[bool] = False
    """Whether a replaced unit may leave one group's matrix for another's at the price of one matrix."""
    in_blocks: ClassVar[bool] = False
    """Whether blocks of columns can share a budget under it; `publishing.terms` has the split for each."""
    adaptive: ClassVar[bool] = False
    """Whether a rough matrix may be measured first with a part of its budget; the others keep to one."""
    public_radius: ClassVar[bool] = False
    """Whether a parameter is measured against the row radius, which then cannot be learnt."""
    rows_at_most: ClassVar[int | None] = None
    """A public limit on the number of rows, where the error bound of an eigenvalue or inverse needs one."""
    quick: ClassVar[bool] = False
    """Whether it is calibrated so fast that a search over ε can afford it."""
    first_order_error: ClassVar[bool] = False
    """Whether the error its law states is of first order only, so that plans check it by simulation."""

    @abstractmethod
    def calibrated(self, guarantee: Guarantee, facts: PublicFacts) -> CalibratedMechanism:
        """The least noise that meets `guarantee`; never less than it needs."""

    @classmethod
    @abstractmethod
    def keeps_promise(cls, stated: StatedNoise) -> bool:
        """Whether what a release file states has exactly this mechanism's form and keeps its promise.

        The price of the stated noise is computed again, by the formula or the curve of the proof.
        """

    @classmethod
    def least_charge(cls, stated: StatedNoise) -> Charged:
        """What ledgers must have been charged for what a release file states, counts before it included.

        That is what it promises, unless its noise has a currency that the promise has not.
        """
        return stated.promised

    def of_mu_squared(self, mu_squared: float, facts: PublicFacts) -> CalibratedMechanism:
        """The noise that costs this μ², for a mechanism that is `gaussian`."""
        del mu_squared, facts
        raise NotImplementedError(self.name)

    def guessed(self, facts: PublicFacts) -> Self:
        """The same with parameters that nobody gave and it cannot do without: for forecasts, from rows."""
        del facts
        return self

    def for_fewer_columns(self, width: int) -> Self:
        """The same for a matrix of only `width` columns, as far as it can be."""
        del width
        return self

    @property
    def follows_rows(self) -> bool:
        """Whether its parameters follow from the number of rows, and quickly: plans then vary both."""
        return False

    @final
    @property
    def parameters(self) -> dict[str, float]:
        """Those that were given; the others are chosen by calibration."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in found.items() if value is not None}


class CalibratedMechanism(ABC):
    """What calibration makes of a mechanism: noise of a fixed size, its price, and one draw.

    Works in lattice units: each row (or privacy unit) contributes a positive semidefinite integer matrix of
    trace, and hence Frobenius norm, at most `lattice.ROW_NORM_SQUARED`. A frozen dataclass, whose fields are
    the parameters that a release file states.
    """

    kind: ClassVar[type[Mechanism]]
    """The mechanism it was made of."""

    @final
    @property
    def name(self) -> str:
        return self.kind.name

    @abstractmethod
    def curve(self, facts: PublicFacts) -> PrivacyCurve:
        """The exact privacy curve δ(ε) of one draw."""

    @abstractmethod
    def event(self, facts: PublicFacts) -> Event:
        """What a ledger is charged for one draw."""

    @abstractmethod
    def expected(self, values: npt.NDArray[np.float64]) -> Law:
        """The law of a release of a Gram matrix with these eigenvalues, in lattice units: for forecasts."""

    @property
    def added(self) -> Noise | None:
        """The noise that the core adds; None where a mechanism has a law of its own."""
        return None

    @abstractmethod
    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        """One noisy matrix from the exact cells. Call it only after the event has been charged."""


def refuse_pure(name: str, guarantee: Guarantee) -> None:
    """For mechanisms whose losses have no bound."""
    if guarantee.pure:
        raise MechanismError(
            f"{name} cannot give a pure guarantee",
            got="delta = 0",
            limit="delta > 0",
            remedy="Use mechanism='matrix-laplace', or give a delta such as 1e-6.",
        )


def checked_count(name: str, parameter: str, value: object, *, most: float) -> int | None:
    """The parameter as a plain integer, refused where it is none from 1 to `most`; None is the default."""
    if value is None:
        return None
    count = whole(value)
    if count is None or not 1 <= count <= most:
        raise MechanismError(
            f"{parameter} of {name} must be a whole number in its range",
            got=shown(value),
            limit=f"1 ≤ {parameter} ≤ {most:g}",
            remedy=f"Leave {parameter} out to have it chosen from public facts.",
        )
    return count
