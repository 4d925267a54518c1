"""What the estimators with public bounds |x| ≤ x_norm and |y| ≤ y_bound share: θ in the units of the data.

They follow the literature: no intercept, one radius for all columns. A fit is a publication of one or more
stages; a baseline, as a paper printed it, is drawn in floats and published by nobody.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final, Self, final

import numpy as np
from msgspec.structs import replace

from dpgram.document.fields import StatedGuarantee
from dpgram.engines.passes import Pass
from dpgram.errors import DpgramWarning, GuaranteeError, LedgerError
from dpgram.estimators.base import PrivateRegressor
from dpgram.estimators.paying import delta_inspected, paid
from dpgram.lattice import ROW_NORM
from dpgram.privacy.accountant import Event, GaussianEvent
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.adjacency import adjacency as adjacency_named
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.sampling.entropy import Entropy
from dpgram.publishing.measurements.base import Measurement
from dpgram.publishing.publication import Program, Stage
from dpgram.rows.encoder import LEAST_RADIUS
from dpgram.rows.rules import RowRules
from dpgram.schema import Schema, numeric
from dpgram.sums.moments import Floats, MomentsOf, Reweighting

TARGET: Final = "y"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """The public facts of one fit, checked."""

    guarantee: Guarantee
    adjacency: Adjacency
    x_norm: float
    y_bound: float
    width: int

    def rows(self, reweighting: Reweighting | None = None) -> MomentsOf:
        """The moments of the rows, weighted by what is published already."""
        return MomentsOf(
            columns=self._names,
            target=TARGET,
            x_norm=self.x_norm,
            y_bound=self.y_bound,
            reweighting=reweighting,
        )

    def stage(self, measurement: Measurement, charge: Event | None) -> Stage:
        """One pass over the rows, of which one measurement is drawn."""
        schema = Schema(*map(numeric, self._names), numeric(TARGET), constant=False)
        work = Pass(rules=RowRules(schema=schema), statistics=(measurement.statistic,))
        return Stage(
            work=work,
            measurements=(measurement,),
            charge=charge,
            inspect=delta_inspected(work, self.guarantee.delta, self.adjacency),
        )

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
class Deal:
    """What a fit will do, settled before a row is looked at."""

    event: Event | None
    """What a ledger is charged; None for a baseline, which no ledger pays for."""
    guarantee: Guarantee
    """What is truly guaranteed."""
    caution: str | None = None
    """Why it must not be used on data that need protection."""


class NormBoundedRegressor(PrivateRegressor, ABC):
    """θ from rows with |x| ≤ x_norm and |y| ≤ y_bound; longer rows and targets are shortened.

    After `fit`: `coef_`, `intercept_` (0), `guarantee_` (what truly holds), `claimed_` (what was asked for),
    `meets_claim_`, `private_` (False for a baseline as printed), `event_`, `receipt_`, `entropy_`.
    """

    x_norm: float | None
    y_bound: float | None

    @abstractmethod
    def _deal(self, agreed: Agreed) -> Deal:
        """Calibrate and price; public facts only."""

    @abstractmethod
    def _program(self, agreed: Agreed, price: Event) -> Program[Floats]:
        """θ, by stages that are charged `price` together."""

    def _baseline(self, x: Floats, y: Floats, agreed: Agreed, entropy: Entropy) -> Floats:
        """θ as a paper printed it, in floats: for those whose deal has no event."""
        raise NotImplementedError(f"{type(self).__name__} has no baseline")

    @final
    def fit(self, X: Any, y: Any) -> Self:
        """Spend the budget on one private θ."""
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None."
            )
        rows, _ = self._array(X)
        target = self._target_numbers(rows, y)
        source = self._noise_source()
        agreed = self._agreed(rows.shape[1])
        deal = self._deal(agreed)
        if deal.event is None:
            self._refuse_ledger()
        if deal.caution is not None:
            warnings.warn(deal.caution, DpgramWarning, stacklevel=2)
        self._count_fit()
        if deal.event is None:
            self.coef_, self.receipt_ = self._baseline(rows, target, agreed, source), None
        else:
            found = paid(
                self._program(agreed, deal.event),
                model=self,
                data=np.column_stack([rows, target]),
                adjacency=agreed.adjacency,
                price=deal.event,
                entropy=source,
                facts={"width": agreed.width},
            )
            self.coef_, self.receipt_ = found.result, found.receipt
        self.intercept_ = 0.0
        self.claimed_ = agreed.guarantee
        self.guarantee_ = self._truth(deal)
        self.meets_claim_ = deal.guarantee.epsilon <= agreed.guarantee.epsilon
        self.private_ = deal.event is not None
        self.event_ = deal.event
        self.entropy_ = source.label
        return self

    def _truth(self, deal: Deal) -> StatedGuarantee:
        stated = self._stated(
            epsilon=deal.guarantee.epsilon,
            delta=deal.guarantee.delta,
            mu=deal.event.mu if isinstance(deal.event, GaussianEvent) else None,
        )
        if deal.event is not None:
            return stated
        words = f"A BASELINE drawn in floats; in real arithmetic: {stated.statement}"
        return replace(stated, statement=words)

    def _refuse_ledger(self) -> None:
        if self.ledger is not None:
            raise LedgerError(
                "no ledger pays for a baseline as printed",
                remedy="Use what is exact, or leave the ledger out and the data unprotected",
            )

    def _agreed(self, width: int) -> Agreed:
        epsilon, delta = number("epsilon", self.epsilon), number("delta", self.delta)
        return Agreed(
            guarantee=Guarantee.checked(epsilon, delta),
            adjacency=adjacency_named(self.adjacency),
            x_norm=public_bound("x_norm", self.x_norm),
            y_bound=public_bound("y_bound", self.y_bound),
            width=width,
        )


def public_bound(name: str, value: object) -> float:
    """A bound within the range of the lattice; None is refused, with a reason."""
    if value is None:
        raise GuaranteeError(
            f"{name} is needed: a public bound, not one read off the data",
            remedy=f"Give {name}=1.0 after scaling by public facts; longer rows are shortened to it.",
        )
    size = number(name, value)
    if not LEAST_RADIUS <= size <= 1.0 / LEAST_RADIUS:
        raise GuaranteeError(
            f"{name} is out of range", got=size, limit=f"{LEAST_RADIUS:g} ≤ {name} ≤ {1 / LEAST_RADIUS:g}"
        )
    return size


def number(name: str, value: object) -> float:
    """A real number, and no truth value."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise GuaranteeError(f"{name} must be a number", got=repr(value))
    return float(value)
