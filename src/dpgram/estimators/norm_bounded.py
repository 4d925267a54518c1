"""What the estimators with public bounds |x| ≤ x_norm and |y| ≤ y_bound share: θ in the units of the data.

They follow the literature: no intercept, one radius for all columns. A fit is a publication of one or more
stages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Final, Self, final

import numpy as np

from dpgram.estimators._fit_publication import published_fit
from dpgram.estimators._parameters import number, public_bound
from dpgram.estimators.base import PrivateRegressor
from dpgram.lattice import ROW_NORM
from dpgram.privacy.accountant import Event, GaussianEvent
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.adjacency import adjacency as adjacency_named
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing.measurements.base import Measurement
from dpgram.publishing.publication import Program, Stage
from dpgram.rows.rules import RowRules
from dpgram.schema import Schema, numeric
from dpgram.sums.moments import Floats, MomentsStatistic, Reweighting

TARGET: Final = "y"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FitParameters:
    """The public facts of one fit, checked."""

    guarantee: Guarantee
    adjacency: Adjacency
    x_norm: float
    y_bound: float
    width: int

    @classmethod
    def checked(
        cls,
        *,
        epsilon: object,
        delta: object,
        adjacency: Any,
        x_norm: object,
        y_bound: object,
        width: int,
    ) -> Self:
        """From the parameters of an estimator, as its user wrote them."""
        return cls(
            guarantee=Guarantee.checked(number("epsilon", epsilon), number("delta", delta)),
            adjacency=adjacency_named(adjacency),
            x_norm=public_bound("x_norm", x_norm),
            y_bound=public_bound("y_bound", y_bound),
            width=width,
        )

    def moment_sums(self, reweighting: Reweighting | None = None) -> MomentsStatistic:
        """The moments of the rows, weighted by what is published already."""
        return MomentsStatistic(
            columns=self._names,
            target=TARGET,
            x_norm=self.x_norm,
            y_bound=self.y_bound,
            reweighting=reweighting,
        )

    def stage(self, measurement: Measurement) -> Stage:
        """One pass over the rows, of which one measurement is drawn."""
        schema = Schema(*map(numeric, self._names), numeric(TARGET), constant=False)
        return Stage(rules=RowRules(schema=schema), measurements=(measurement,))

    @property
    def _names(self) -> tuple[str, ...]:
        """Names for the passes alone: the data is an array."""
        return tuple(f"x{place}" for place in range(self.width))

    @property
    def second_unit(self) -> float:
        """One lattice unit of XᵀX, in the units of the data."""
        return (self.x_norm / ROW_NORM) ** 2

    @property
    def first_unit(self) -> float:
        """One lattice unit of Xᵀy."""
        return (self.x_norm / ROW_NORM) * (self.y_bound / ROW_NORM)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a fit costs and what it guarantees, decided before a row is read."""

    event: Event
    """What a ledger is charged."""
    guarantee: Guarantee
    """What is truly guaranteed: what was asked for, or a little less."""


@dataclass(eq=False, repr=False, kw_only=True)
class NormBoundedRegressor(PrivateRegressor, ABC):
    """θ from rows with |x| ≤ x_norm and |y| ≤ y_bound; longer rows and targets are shortened.

    After `fit`: `coef_`, `intercept_` (0), `guarantee_` (what truly holds), `claimed_` (what was asked for),
    `event_`, `receipt_`, `entropy_`.
    """

    x_norm: float | None = None
    y_bound: float | None = None

    claimed_: Guarantee = field(init=False)
    event_: Event = field(init=False)

    @abstractmethod
    def _calibration(self, parameters: FitParameters) -> Calibration:
        """Calibrate and price; public facts only."""

    @abstractmethod
    def _program(self, parameters: FitParameters) -> Program[Floats]:
        """θ, by stages whose prices were charged together."""

    @final
    def fit(self, X: Any, y: Any) -> Self:
        """Spend the budget on one private θ."""
        self._require_target(y)
        rows, _ = self._array(X)
        target = self._target_numbers(rows, y)
        source = self._noise_source()
        parameters = self._parameters(rows.shape[1])
        calibration = self._calibration(parameters)
        self._count_fit()
        found = published_fit(
            self._program(parameters),
            model=self,
            data=np.column_stack([rows, target]),
            adjacency=parameters.adjacency,
            price=calibration.event,
            entropy=source,
            facts={"width": parameters.width},
            delta=parameters.guarantee.delta,
        )
        self.coef_, self.intercept_, self.receipt_ = found.result, 0.0, found.receipt
        self.claimed_ = parameters.guarantee
        self.guarantee_ = self._stated(
            epsilon=calibration.guarantee.epsilon,
            delta=calibration.guarantee.delta,
            mu=calibration.event.mu if isinstance(calibration.event, GaussianEvent) else None,
        )
        self.event_ = calibration.event
        self.entropy_ = source.label
        return self

    def _parameters(self, width: int) -> FitParameters:
        return FitParameters.checked(
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            x_norm=self.x_norm,
            y_bound=self.y_bound,
            width=width,
        )
