"""What every private estimator shares: its inputs, its price, its warnings, and one publication a fit.

That is (`dpgram.publishing`): validate → price → then, once or, in an adaptive fit, several times, add up on
the lattice → draw, all under one charge that is made before the first draw. All parameters are public; none
may be looked up in the data.
"""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, Self, final

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from dpgram.core.noise import Entropy
from dpgram.document.fields import AdjacencyName, MissingPolicy, StatedGuarantee
from dpgram.document.original_units import refuse_beyond_floats
from dpgram.document.statement import in_words
from dpgram.errors import AnalysisError, DpgramWarning, SchemaError
from dpgram.estimators._fit_publication import checked_entropy
from dpgram.estimators._table import (
    Bounds,
    Table,
    floats,
    readable,
)
from dpgram.mechanisms import MechanismLike
from dpgram.models import Model
from dpgram.privacy.receipt import Receipt
from dpgram.publishing import Adaptive, LedgerLike, publish_with
from dpgram.release import Release
from dpgram.rows import Rows
from dpgram.schema import Schema

Vector = npt.NDArray[np.float64]


class RepeatedFit(DpgramWarning):
    """The same estimator, or clones of it, were fitted more than once: each fit spends budget anew."""


class UnprotectedScore(DpgramWarning):
    """A score is an exact function of the rows it was computed on: it carries no guarantee."""


@final
class Lineage:
    """How often an estimator and its clones were fitted in this process: cross-validation fits clones."""

    def __init__(self) -> None:
        self.fits = 0


@dataclass(eq=False, repr=False)
class PrivateEstimator(BaseEstimator, ABC):
    """Parameters every estimator has, and the checks on them.

    The fields of an estimator are its parameters: scikit-learn reads their names from the `__init__` that
    `dataclass` writes, which checks nothing, as scikit-learn wants. Fields with `init=False` are what a fit
    sets, for which the class cannot be frozen. Equality and repr remain scikit-learn's.
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    _: KW_ONLY
    adjacency: AdjacencyName = "add-remove"
    ledger: LedgerLike | None = None
    entropy: Entropy | None = None

    n_features_in_: int = field(init=False)
    guarantee_: StatedGuarantee = field(init=False)
    receipt_: Receipt | None = field(init=False)
    """Of the charge of this fit; None without a ledger."""
    entropy_: Literal["system", "seeded"] = field(init=False)
    """"seeded": whoever knows the seed can remove the noise."""

    @final
    def _array(self, X: Any) -> tuple[Vector, tuple[str, ...]]:
        """X as a writable array of its own, and the names of its columns."""
        array = floats(self, X, order="C", copy=True)
        given = getattr(self, "feature_names_in_", None)
        names = [f"x{i}" for i in range(array.shape[1])] if given is None else [str(name) for name in given]
        return array, tuple(names)

    @final
    def _require_target(self, y: Any) -> None:
        """In scikit-learn's words, which its checks look for."""
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None."
            )

    @final
    def _noise_source(self) -> Entropy:
        """Fresh noise of the operating system; a seeded source is copied, so that a fit can be repeated."""
        return copy.deepcopy(checked_entropy(self.entropy))

    @final
    def _stated(
        self,
        *,
        epsilon: float,
        delta: float,
        mu: float | None = None,
        rho: float | None = None,
    ) -> StatedGuarantee:
        """The guarantee of one fit, in numbers and words."""
        statement = in_words(epsilon=epsilon, delta=delta, adjacency=self.adjacency, unit=None)
        return StatedGuarantee(
            epsilon=epsilon,
            delta=delta,
            mu=mu,
            rho=rho,
            statement=statement,
        )

    @final
    def _count_fit(self) -> None:
        """Call once a fit, before the data is read: warns from the second fit of a family of clones on."""
        source = checked_entropy(self.entropy)
        family = self._family()
        family.fits += 1
        if family.fits < 2 or source.label == "seeded":
            return
        keeper = (
            "no ledger adds them up, so nobody knows the total: give ledger=..."
            if self.ledger is None
            else "the ledger is charged for each"
        )
        warnings.warn(
            f"{type(self).__name__} was fitted more than once (cross-validation and grid search fit clones): "
            f"every fit spends (epsilon, delta) anew, and {keeper}. Scores on held-out sensitive rows, and "
            "parameters chosen by them, are not protected by any of this",
            RepeatedFit,
            stacklevel=4,
        )

    @final
    def _family(self) -> Lineage:
        if "_lineage" not in vars(self):
            self._lineage = Lineage()
        return self._lineage

    @final
    def __sklearn_clone__(self) -> Self:
        """A clone belongs to the family of its original, so that its fits are counted together."""
        twin: Self = super().__sklearn_clone__()
        twin._lineage = self._family()
        return twin

    def __sklearn_tags__(self) -> Any:
        """Cells that are missing or no numbers are met by the row policy; randomness is the point."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.sparse = False
        tags.non_deterministic = getattr(self.entropy, "label", None) != "seeded"
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class PublishingEstimator(PrivateEstimator, ABC):
    """An estimator whose fit is one `publish` and post-processing.

    `bounds`, or a `schema`, must come from public knowledge.
    """

    bounds: Bounds = None
    schema: Schema | None = None
    mechanism: MechanismLike = "auto"
    radius: float | None = None
    missing: MissingPolicy = "drop"
    adaptive: bool | Adaptive = True

    @final
    def _checked_schema(self) -> Schema:
        if not isinstance(self.schema, Schema):
            raise SchemaError(
                "schema must be a Schema",
                got=f"a {type(self.schema).__name__}",
                remedy="Write Schema(numeric(...), ...), or read one with Schema.from_file(path)",
            )
        if self.bounds is not None:
            raise SchemaError(
                "bounds and a schema were both given",
                limit="one of the two",
                remedy="Leave bounds out: the schema has them",
            )
        return self.schema

    @final
    def _unbounded(self, what: str) -> SchemaError:
        """Never bounds from the data for free."""
        return SchemaError(
            f"{type(self).__name__} needs public bounds",
            got=f"{what}=None",
            limit=f"{what}=(low, high), or a schema",
            remedy="Take them from a codebook or common sense: bounds looked up in the data leak it",
        )

    @final
    def _published(
        self,
        table: Table,
        *,
        mechanism: MechanismLike | None = None,
        radius: float | None = None,
        models: Sequence[Model] = (),
    ) -> Release:
        """One release of the table under this estimator's parameters; the ledger is charged inside."""
        refuse_units(table.schema)
        (release,) = publish_with(
            table.data,
            table.schema,
            entropy=self._noise_source(),
            epsilon=self.epsilon,
            delta=self.delta,
            ledger=self.ledger,
            rows=Rows(radius=self.radius if radius is None else radius, missing=self.missing),
            adaptive=self.adaptive,
            mechanism=self.mechanism if mechanism is None else mechanism,
            adjacency=self.adjacency,
            models=models,
            progress=False,
            note=type(self).__name__,
        )
        self.guarantee_, self.receipt_, self.entropy_ = release.guarantee, release.receipt, release.entropy
        return release


def refuse_units(schema: Schema) -> None:
    """A fit is told in the units of its columns: bounds that allow for none are found before the charge."""
    if not (schema.unbounded or schema.without_levels):
        refuse_beyond_floats(schema, remedy="Give the column in another unit")


def refuse_learnt_units(release: Release) -> None:
    """The same of bounds that were learnt, which the charge has paid for: nobody knew them before."""
    told = "The release that was paid for is in release_, and release_.matrix('encoded') tells of it"
    try:
        refuse_beyond_floats(
            release.schema, remedy=f"{told}. For another fit give the column in another unit"
        )
    except AnalysisError as problem:
        problem.charged = True
        raise


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateRegressor(RegressorMixin, PrivateEstimator, ABC):
    """`predict` and `score`; subclasses set `coef_` and `intercept_`."""

    coef_: Vector = field(init=False)
    intercept_: float = field(init=False)

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Self:
        """Fit once, spending (epsilon, delta)."""

    @final
    def _target_numbers(self, array: Vector, y: Any) -> Vector:
        """y as one number for each row of X."""
        numbers: Vector = np.asarray(column_or_1d(readable("y", y), warn=True))
        check_consistent_length(array, numbers)
        return numbers

    def predict(self, X: Any) -> Vector:
        """X·coef_ + intercept_. Post-processing: it costs nothing, whoever asks."""
        check_is_fitted(self)
        array = floats(self, X, strict=True, reset=False)
        return np.asarray(array @ self.coef_ + self.intercept_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² on the given rows, computed exactly: **not private**. Warns, as the rows may be sensitive."""
        warn_unprotected(type(self).__name__)
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        """With sensible bounds even a noisy fit may score badly on a dozen rows, and may say so."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


def warn_unprotected(name: str) -> None:
    """Say once per place that a score is an exact function of its rows."""
    warnings.warn(
        f"{name}.score is computed exactly from the rows it is given: if they are sensitive, the number is "
        "not private and must not be published. On public rows, silence this with "
        "warnings.simplefilter('ignore', dpgram.estimators.UnprotectedScore)",
        UnprotectedScore,
        stacklevel=3,
    )
