"""x ↦ x', row by row; parameters are public or paid for (Kalaja 2020, §3.3–3.4).

A transformer whose parameters were read off the data releases them: whatever is fitted afterwards is no
more private than they are. So every one says what it cost: `guarantee_` (None: nothing was spent), `event_`
and `entropy_` ("seeded": whoever knows the seed can remove the noise; None: nothing was drawn).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpgram.core.noise import Entropy
from dpgram.document.fields import AdjacencyName
from dpgram.errors import GuaranteeError, tell_caller
from dpgram.estimators._fit_publication import checked_entropy, published_fit
from dpgram.estimators._parameters import for_each, number, one_of, pair, size
from dpgram.estimators._table import floats
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.accountant import Event
from dpgram.privacy.adjacency import adjacency as adjacency_named
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.receipt import Receipt
from dpgram.publishing import LedgerLike
from dpgram.publishing.measurements.column_moments import ColumnMoments, MeasuredColumnMoments
from dpgram.publishing.publication import Program, Stage
from dpgram.rows.rules import RowRules
from dpgram.schema import Schema, numeric
from dpgram.sums.column_moments import ColumnMomentsStatistic
from dpgram.sums.moments import Floats, clipped

Parameter: TypeAlias = float | npt.ArrayLike | None
"""A public number (or one for each column), or None where a budget pays for an estimate."""


@dataclass(eq=False, repr=False)
class CostedTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator, ABC):
    """A transformer that says what its parameters cost."""

    n_features_in_: int = field(init=False)
    guarantee_: Guarantee | None = field(init=False)
    event_: Event | None = field(init=False)
    receipt_: Receipt | None = field(init=False)
    entropy_: Literal["system", "seeded"] | None = field(init=False)

    def _check(self) -> None:
        """Refuse parameters by which no row could be mapped, before any is read."""

    @abstractmethod
    def _learn(self, X: Floats) -> None:
        """Fix the parameters and record what they cost."""

    @abstractmethod
    def _apply(self, X: Floats) -> Floats:
        """Every row by itself."""

    @final
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fix the parameters; the rows are read only by those that say so."""
        del y
        self._check()
        rows = self._rows(X, reset=True)
        self.guarantee_, self.event_, self.receipt_, self.entropy_ = None, None, None, None
        self._learn(rows)
        return self

    @final
    def transform(self, X: Any) -> Floats:
        """The same map for any row, in training or later."""
        check_is_fitted(self, "n_features_in_")
        return self._apply(self._rows(X, reset=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True  # a missing value stays one; raising would tell of a row
        return tags

    def _rows(self, X: Any, *, reset: bool) -> Floats:
        """X as floats; what is not finite is a missing value, because raising would tell of one row."""
        array = floats(self, X, reset=reset)
        return np.where(np.isfinite(array), array, np.nan)


@final
@dataclass(eq=False, repr=False)
class RowNormMapping(CostedTransformer):
    """x ↦ radius·x/‖x‖, 0 ↦ 0: every row on the sphere (§3.3.1). Costs nothing: it asks the row alone.

    `columns`: how many leading columns the length is taken of (None: all). With the target as the last
    column and `columns=-1` it is the thesis's form with y included: y is divided by the length of x too, and
    then needs a bound of its own, since nothing bounds y/‖x‖.
    """

    radius: float = 1.0
    _: KW_ONLY
    columns: int | None = None

    def _learn(self, X: Floats) -> None:
        del X
        self.radius_ = size("radius", self.radius)

    def _apply(self, X: Floats) -> Floats:
        measured = X[:, : self.columns] if self.columns is not None else X
        # Divided by its largest cell first: the square of a length must not overflow, nor warn of one row.
        largest = np.abs(measured).max(axis=1, initial=0.0, keepdims=True)
        largest = np.where(largest > 0.0, largest, 1.0)
        length = np.linalg.norm(measured / largest, axis=1, keepdims=True)
        with np.errstate(over="ignore"):  # y/‖x‖ may be infinite: a missing value to whatever follows
            mapped: Floats = X / largest * (self.radius_ / np.where(length > 0.0, length, 1.0))
        return mapped


@final
@dataclass(eq=False, repr=False)
class MaxNormMapping(CostedTransformer):
    """x ↦ x·min(1, m/‖x‖)/m: into the unit ball by one length m for all rows (§3.3.2).

    `max_norm` is public; rows beyond it are shortened: free. The thesis takes the longest row of the data: a
    maximum has no private estimate worth its noise, so clip at a public or paid-for scale.
    """

    max_norm: float | None = None

    def _learn(self, X: Floats) -> None:
        del X
        if self.max_norm is None:
            raise _unset("max_norm")
        self.max_norm_ = size("max_norm", self.max_norm)

    def _apply(self, X: Floats) -> Floats:
        return clipped(X.T, self.max_norm_).T / self.max_norm_


@final
@dataclass(eq=False, repr=False)
class Intercept(CostedTransformer):
    """x ↦ (x, value): a constant column. Costs nothing, but lengthens every row: ‖x‖² + value²."""

    value: float = 1.0

    def _learn(self, X: Floats) -> None:
        del X
        self.value_ = size("value", self.value)

    def _apply(self, X: Floats) -> Floats:
        return np.column_stack([X, np.full(len(X), self.value_)])

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """The columns as they are, and `intercept`."""
        names: npt.NDArray[np.object_] = super().get_feature_names_out(input_features)
        return np.append(names, "intercept").astype(object)


@dataclass(eq=False, repr=False, kw_only=True)
class BudgetedTransformer(CostedTransformer, ABC):
    """May pay for what it needs to know: nothing is spent while `epsilon` is None."""

    epsilon: float | None = None
    delta: float = 1e-6
    bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None = None
    adjacency: AdjacencyName = "add-remove"
    ledger: LedgerLike | None = None
    entropy: Entropy | None = None


class MomentTransformer(BudgetedTransformer, ABC):
    """Needs a mean and a standard deviation of each column: public, or paid for.

    Public: `mean` and `scale`, one number or one for each column. Paid for: `epsilon`, `delta` and public
    `bounds` = (low, high): one Gaussian release of Σ(1, z, z²) of all columns, z in [−1, 1] by the bounds, on
    integers. A variance below one deviation of its noise is taken to be that deviation, with a warning.
    """

    # Not a dataclass, so these are no fields here: inherited fields come first, but `SigmaClipper` takes `c`
    # before them.
    mean: Parameter
    scale: Parameter

    def _learn(self, X: Floats) -> None:
        if self.epsilon is not None:
            if self.mean is not None or self.scale is not None:
                raise GuaranteeError("mean and scale were given as well as a budget to estimate them")
            self._estimate(X)
        elif self.mean is None or self.scale is None:
            raise _unset("mean and scale")
        else:
            self.mean_ = for_each("mean", self.mean, X.shape[1])
            self.scale_ = for_each("scale", self.scale, X.shape[1])
            if not (self.scale_ > 0.0).all():
                raise GuaranteeError("scale must be positive in each column", limit="scale > 0")

    def _estimate(self, X: Floats) -> None:
        if self.bounds is None:
            raise _unset("bounds")
        low, high = (for_each("bounds", end, X.shape[1]) for end in pair("bounds", self.bounds))
        with np.errstate(over="ignore"):
            sound = (high > low) & np.isfinite(high - low)
        if not sound.all():
            raise GuaranteeError(
                "bounds must be (low, high) with low below high", limit="low < high, and finite"
            )
        asked = Guarantee.checked(number("epsilon", self.epsilon), number("delta", self.delta))
        relation = adjacency_named(self.adjacency)
        names = tuple(f"x{place}" for place in range(X.shape[1]))
        sums = ColumnMomentsStatistic(
            columns=names, bounds=tuple(zip(low.tolist(), high.tolist(), strict=True))
        )
        measurement = ColumnMoments.calibrated(sums, asked, relation)
        source = copy.deepcopy(checked_entropy(self.entropy))
        found = published_fit(
            _column_moments(measurement),
            model=self,
            data=X,
            adjacency=relation,
            price=measurement.event,
            entropy=source,
            facts={"width": X.shape[1]},
            delta=asked.delta,
        )
        self.sensitivity_ = measurement.sensitivity
        self.guarantee_, self.event_ = asked, measurement.event
        self.receipt_, self.entropy_ = found.receipt, source.label
        count, first, second = found.result.numbers()
        centre, half = 0.5 * (high + low), 0.5 * (high - low)
        most = np.maximum(count, 1.0)
        mean, square = np.clip(first / most, -1.0, 1.0), np.clip(second / most, 0.0, 1.0)
        variance = square - mean**2
        # To first order the noise of Σz²/n − (Σz/n)². No column is scaled up by more than 100.
        noise = np.sqrt(1.0 + 4.0 * mean**2 + (square - 2.0 * mean**2) ** 2)
        least = np.clip(measurement.sigma / ROW_NORM_SQUARED / most * noise, 1e-4, 1.0)
        self.mean_ = centre + half * mean
        self.scale_ = half * np.sqrt(np.clip(variance, least, 1.0))
        hidden = np.flatnonzero(variance < least)
        if len(hidden):
            tell_caller(
                f"noise hides how far columns {', '.join(map(str, hidden))} (counted from 0) spread: their "
                "scale is that of the noise; give narrower bounds, a larger epsilon or a public scale"
            )


@final
@dataclass(eq=False, repr=False)
class ColumnStandardizer(MomentTransformer):
    """x_j ↦ (x_j − mean_j)/scale_j (§3.3)."""

    mean: Parameter = None
    scale: Parameter = None

    def _apply(self, X: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):  # a warning would tell of one row
            return (X - self.mean_) / self.scale_


@final
@dataclass(eq=False, repr=False)
class SigmaClipper(MomentTransformer):
    """x_j ↦ min(x_j, mean_j + c·scale_j), and from below likewise for sides="two" (§3.4, Honkela et al.)."""

    c: float = 1.5
    mean: Parameter = None
    scale: Parameter = None
    _: KW_ONLY
    sides: Literal["one", "two"] = "two"

    def _check(self) -> None:
        size("c", self.c)
        one_of("sides", self.sides, ("one", "two"))

    def _apply(self, X: Floats) -> Floats:
        reach = size("c", self.c) * self.scale_
        high = np.minimum(X, self.mean_ + reach)
        return high if self.sides == "one" else np.maximum(high, self.mean_ - reach)


def _column_moments(measurement: ColumnMoments) -> Program[MeasuredColumnMoments]:
    schema = Schema(*map(numeric, measurement.sums.columns), constant=False)
    answer = yield Stage(rules=RowRules(schema=schema), measurements=(measurement,))
    found: MeasuredColumnMoments = answer.published[0]
    return found


def _unset(what: str) -> GuaranteeError:
    return GuaranteeError(
        f"{what} is needed: public, or paid for",
        remedy="Give public values; or epsilon= and bounds= where an estimate exists",
    )
