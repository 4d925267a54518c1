"""What scikit-learn asks of a constructor, of the ones that `dataclass` writes for the estimators."""

from __future__ import annotations

import inspect
import pickle

import pytest
from sklearn.base import BaseEstimator, clone

import dpgram.estimators
from dpgram.schema import Schema, numeric

BY_POSITION = {
    "AdaSSP": ["epsilon", "delta"],
    "ColumnStandardizer": ["mean", "scale"],
    "Intercept": ["value"],
    "LpRegression": ["epsilon", "delta"],
    "MaxNormMapping": ["max_norm"],
    "OutputPerturbation": ["epsilon", "delta"],
    "PrivateCovariance": ["epsilon", "delta"],
    "PrivateLasso": ["epsilon", "delta"],
    "PrivateLinearRegression": ["epsilon", "delta"],
    "PrivateLogistic": ["epsilon", "delta"],
    "PrivatePCA": ["n_components"],
    "PrivatePoisson": ["epsilon", "delta"],
    "PrivateRidge": ["epsilon", "delta"],
    "RobustRegression": ["epsilon", "delta"],
    "RowNormMapping": ["radius"],
    "SSP": ["epsilon", "delta"],
    "SigmaClipper": ["c", "mean", "scale"],
}
"""Parameters that may be given without their names, in this order: code of others relies on it."""

every = pytest.mark.parametrize("name", BY_POSITION)


def kind(name: str) -> type[BaseEstimator]:
    return getattr(dpgram.estimators, name)


def test_every_estimator_is_named_here() -> None:
    public = {each for each in dpgram.estimators.__all__ if issubclass(kind(each), BaseEstimator)}
    assert public == set(BY_POSITION)


@every
def test_parameters_by_position_stay_in_their_order(name: str) -> None:
    parameters = inspect.signature(kind(name)).parameters.values()
    assert [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY] == BY_POSITION[name]


@every
def test_parameters_are_kept_as_they_are_given_and_nothing_else_is(name: str) -> None:
    given = {each: object() for each in kind(name)().get_params()}
    kept = vars(kind(name)(**given))
    assert kept.keys() == given.keys()
    assert all(kept[each] is given[each] for each in given)


@every
def test_no_parameter_is_what_a_fit_sets(name: str) -> None:
    assert [each for each in kind(name)().get_params() if each.endswith("_") or each.startswith("_")] == []


@every
def test_clones_and_pickles_have_the_same_parameters(name: str) -> None:
    model = kind(name)(**{BY_POSITION[name][0]: 0.25})
    for twin in (clone(model), pickle.loads(pickle.dumps(model))):
        assert twin is not model
        assert twin.get_params() == model.get_params()


@every
def test_estimators_are_shown_by_what_differs_from_the_defaults(name: str) -> None:
    first = BY_POSITION[name][0]
    assert repr(kind(name)()) == f"{name}()"
    assert repr(kind(name)(0.25)) == f"{name}({first}=0.25)"


@every
def test_two_estimators_are_never_the_same_one(name: str) -> None:
    """Equality by parameters would compare arrays, and make estimators unfit for sets."""
    assert len({kind(name)(), kind(name)()}) == 2


def test_parameters_are_set_at_every_level_of_the_hierarchy() -> None:
    schema = Schema(numeric("a", 0, 1))
    model = dpgram.estimators.PrivateLasso(0.5, schema=schema).set_params(
        delta=0.0, missing="midpoint", target="a", alpha=2.0
    )
    assert (model.epsilon, model.delta, model.missing, model.target, model.alpha) == (
        0.5,
        0.0,
        "midpoint",
        "a",
        2.0,
    )
    assert model.schema is schema
    with pytest.raises(ValueError, match="Invalid parameter 'x_norm'"):
        model.set_params(x_norm=1.0)
