"""Beyond scikit-learn's checks: bounds, budget, warnings, agreement with `publish`."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import deque
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.flat import publish

from dpgram import Adaptive, Ledger, Schema, categorical, numeric
from dpgram.core.noise import SeededEntropy
from dpgram.errors import AnalysisError, BudgetExceeded, LedgerError, MechanismError, SchemaError
from dpgram.estimators import (
    PrivateCovariance,
    PrivateLasso,
    PrivateLinearRegression,
    PrivatePCA,
    PrivateRidge,
    RepeatedFit,
    UnprotectedScore,
)

BETA = np.array([1.0, -2.0, 0.5])
REGRESSORS = [PrivateLinearRegression, PrivateRidge, PrivateLasso]
OTHERS = [PrivatePCA, PrivateCovariance]


def table(rows: int = 5000, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1, 1, (rows, 3))
    return X, 3.0 + X @ BETA + generator.normal(0, 0.5, rows)


X, Y = table()


def made(kind, **given):
    """With public bounds and a seed, unless told otherwise."""
    common = {"bounds": (-1, 1), "entropy": SeededEntropy(3)}
    if kind in REGRESSORS:
        common["target_bounds"] = (-5, 11)
    return kind(**common | given)


def fitted(kind, **given):
    return made(kind, **given).fit(X, Y)


@pytest.mark.parametrize("kind", [*REGRESSORS, *OTHERS])
def test_without_bounds_it_refuses_and_says_what_to_do(kind) -> None:
    with pytest.raises(SchemaError, match=r"needs public bounds; got bounds=None; limit: .*codebook"):
        made(kind, bounds=None).fit(X, Y)


@pytest.mark.parametrize("kind", REGRESSORS)
def test_without_bounds_of_the_target_it_refuses(kind) -> None:
    with pytest.raises(SchemaError, match="target_bounds=None"):
        made(kind, target_bounds=None).fit(X, Y)


@pytest.mark.parametrize(
    ("bounds", "match"),
    [
        ((-1, 0, 1), "a pair"),
        (([-1, -1], [1, 1]), "do not fit the features"),
        ((1, -1), "empty or reversed"),
        ({"x0": (-1, 1)}, "no bounds for the feature 'x1'"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(bounds, match) -> None:
    with pytest.raises(SchemaError, match=match):
        made(PrivateRidge, bounds=bounds).fit(X, Y)


def test_bounds_by_number_by_feature_and_by_name_are_the_same() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    one = made(PrivateRidge).fit(frame, Y)
    many = made(PrivateRidge, bounds=([-1] * 3, np.ones(3))).fit(frame, Y)
    named = made(PrivateRidge, bounds=dict.fromkeys("abc", (-1, 1))).fit(frame, Y)
    assert np.array_equal(one.coef_, many.coef_)
    assert np.array_equal(one.coef_, named.coef_)
    assert list(one.feature_names_in_) == ["a", "b", "c"]
    assert one.terms_ == ("a", "b", "c")


@pytest.mark.filterwarnings("ignore:rows far from the others count less:dpgram.errors.DpgramWarning")
@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize("method", ["auto", "ols"])
def test_linear_regression_is_publish_and_regress(method, adaptive) -> None:
    mine = fitted(PrivateLinearRegression, method=method, adaptive=adaptive)
    names = ["x0", "x1", "x2"]
    schema = Schema(*(numeric(name, -1, 1) for name in names), numeric("target", -5, 11))
    release = publish(
        np.column_stack([X, Y]),
        schema,
        epsilon=1.0,
        delta=1e-6,
        entropy=SeededEntropy(3),
        progress=False,
        adaptive=adaptive,
    )
    theirs = release.regress("target", method=method)
    assert mine.release_.digest == release.digest
    assert mine.coef_.tolist() == [theirs.fitted_params[name] for name in names]
    assert mine.intercept_ == theirs.fitted_params["(intercept)"]
    assert np.allclose(mine.predict(X[:5]), theirs.predict(dict(zip(names, X[:5].T, strict=True))))
    assert mine.guarantee_ == release.guarantee
    interval = theirs.conf_int(0.95)
    assert np.allclose(mine.conf_int_, [interval[name] for name in names])


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(AnalysisError, match="unknown method"):
        fitted(PrivateLinearRegression, method="ridge")


@pytest.mark.parametrize("kind", REGRESSORS)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_regressors_find_the_slopes(kind, adjacency) -> None:
    found = fitted(kind, epsilon=5.0, adjacency=adjacency)
    assert np.abs(found.coef_ - BETA).max() < 0.3
    assert abs(found.intercept_ - 3.0) < 0.2
    assert found.guarantee_.epsilon == 5.0
    assert ("replacing" in found.guarantee_.statement) == (adjacency == "replace-one")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "gaussian"),  # an adaptive release
        ({"adaptive": False}, "matrix-laplace"),  # four features: pure noise is the smaller one
        ({"delta": 0.0}, "matrix-laplace"),
        ({"mechanism": "joint-gaussian"}, "joint-gaussian"),
        ({"mechanism": "gaussian"}, "gaussian"),
        ({"delta": 1e-2, "adaptive": False}, "joint-gaussian"),
    ],
)
@pytest.mark.filterwarnings("ignore:delta:dpgram.errors.DpgramWarning")
@pytest.mark.filterwarnings("ignore:no row:dpgram.errors.DpgramWarning")
def test_ridge_takes_the_mechanism_that_public_facts_favour(given, expected) -> None:
    found = fitted(PrivateRidge, **given)
    assert found.mechanism_ == expected
    assert (found.sums_ is None) == (expected != "joint-gaussian")
    assert (found.release_ is None) == (expected == "joint-gaussian")
    if expected == "matrix-laplace":
        assert found.guarantee_.delta == 0.0
    empty = clone(found).fit(X[:0], Y[:0])  # no row has a say in it
    assert empty.mechanism_ == expected


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"adaptive": False}, "auto: less forecast error than joint-gaussian, and no delta"),
        ({"radius": 2.0}, "auto: less forecast error than joint-gaussian, and no delta"),
        (
            {"adaptive": False, "delta": 0.0},
            "auto: delta = 0 was asked for, and joint-gaussian cannot give it",
        ),
        ({"mechanism": "matrix-laplace", "adaptive": False}, "asked for by name"),
    ],
)
def test_ridge_says_why_it_took_a_mechanism(given, reason) -> None:
    """All were "asked for by name"."""
    found = fitted(PrivateRidge, **given)
    assert found.release_.mechanism.name == "matrix-laplace"
    assert found.release_.mechanism.choice == reason
    assert f"({reason})" in " ".join(str(found.release_).split())


def test_wide_tables_get_the_joint_release() -> None:
    wide = np.random.default_rng(0).uniform(-1, 1, (50, 30))
    assert made(PrivateRidge, adaptive=False).fit(wide, wide[:, 0]).mechanism_ == "joint-gaussian"


def test_a_pure_guarantee_from_the_joint_gaussian_is_refused() -> None:
    with pytest.raises(MechanismError, match="pure"):
        fitted(PrivateRidge, delta=0.0, mechanism="joint-gaussian")


@pytest.mark.parametrize("mechanism", ["joint-gaussian", "matrix-laplace"])
def test_ridge_with_little_noise_and_no_penalty_is_least_squares(mechanism) -> None:
    big, target = table(60_000, 4)
    exact = np.linalg.lstsq(np.column_stack([np.ones(len(big)), big]), target, rcond=None)[0]
    found = made(PrivateRidge, epsilon=10.0, delta=1e-5, alpha=0.0, mechanism=mechanism).fit(big, target)
    assert np.allclose([found.intercept_, *found.coef_], exact, atol=0.02)
    shrunken = clone(found).set_params(alpha=1e5).fit(big, target)
    assert np.linalg.norm(shrunken.coef_) < 0.6 * np.linalg.norm(found.coef_)


def test_a_scaled_target_scales_the_joint_fit() -> None:
    """Metamorphic: y ↦ 10y + 7 with its bounds gives 10β, bit for bit but for rounding."""
    one = fitted(PrivateRidge, mechanism="joint-gaussian")
    other = made(PrivateRidge, mechanism="joint-gaussian", target_bounds=(-43, 117)).fit(X, 10 * Y + 7)
    assert np.allclose(other.coef_, 10 * one.coef_, rtol=1e-3)
    assert other.intercept_ == pytest.approx(10 * one.intercept_ + 7, rel=1e-3)


def test_where_there_is_no_interval_the_reason_is_told() -> None:
    found = made(PrivateRidge, epsilon=0.1, mechanism="joint-gaussian").fit(X[:200], Y[:200])
    assert found.conf_int_ is None
    assert "noise" in found.conf_int_refusal_
    clear = made(PrivateRidge, epsilon=8.0, mechanism="joint-gaussian").fit(*table(60_000, 4))
    assert clear.conf_int_refusal_ is None
    assert clear.conf_int_.shape == (3, 2)


@pytest.mark.parametrize("kind", REGRESSORS)
def test_rows_that_are_not_finite_are_dropped_and_break_nothing(kind) -> None:
    dirty, target = X.copy(), Y.copy()
    dirty[3, 1], dirty[9, 0], target[20] = np.nan, np.inf, -np.inf
    kept = np.ones(len(X), bool)
    kept[[3, 9, 20]] = False
    plain, again = (
        made(kind, adaptive=False).fit(*rows).coef_ for rows in ((dirty, target), (X[kept], Y[kept]))
    )
    assert np.array_equal(plain, again)
    # Histograms count what was lost, so that an adaptive release scales its columns a little differently.
    adaptive, clean = (made(kind).fit(*rows).coef_ for rows in ((dirty, target), (X[kept], Y[kept])))
    assert np.allclose(adaptive, clean, atol=1e-3)


@pytest.mark.parametrize("kind", [PrivateLinearRegression, PrivateRidge])
@pytest.mark.filterwarnings("ignore:no row:dpgram.errors.DpgramWarning")
def test_an_empty_table_is_a_neighbour_and_fits(kind) -> None:
    assert np.isfinite(made(kind).fit(X[:0], Y[:0]).coef_).all()


@pytest.mark.parametrize("kind", REGRESSORS)
def test_frames_of_pandas_and_polars_fit_like_arrays(kind) -> None:
    names = ["a", "b", "c"]
    plain = made(kind).fit(X, Y)
    for frame, target in (
        (pd.DataFrame(X, columns=names), pd.Series(Y, index=np.arange(len(Y))[::-1])),
        (pl.DataFrame(X, schema=names), pl.Series("y", Y)),
    ):
        found = made(kind).fit(frame, target)
        assert np.array_equal(found.coef_, plain.coef_)
        assert list(found.feature_names_in_) == names


SCHEMA = Schema(numeric("age", 18, 90), categorical("smoker", ["no", "yes"]), numeric("charges", 0, 70_000))


def people(rows: int = 20_000) -> tuple[pd.DataFrame, np.ndarray]:
    generator = np.random.default_rng(2)
    age, smoker = generator.uniform(18, 90, rows), generator.choice(["no", "yes"], rows)
    charges = 5000 + 200 * age + 15_000 * (smoker == "yes") + generator.normal(0, 3000, rows)
    return pd.DataFrame({"age": age, "smoker": smoker}), charges


@pytest.mark.parametrize("kind", REGRESSORS)
@pytest.mark.parametrize("form", ["pandas", "polars", "array"])
def test_a_schema_brings_levels_and_units(kind, form) -> None:
    frame, charges = people()
    rows = {"pandas": frame, "polars": pl.DataFrame(frame), "array": frame.to_numpy(dtype=object)}[form]
    found = kind(epsilon=5.0, schema=SCHEMA, target="charges", entropy=SeededEntropy(1)).fit(rows, charges)
    assert found.terms_ == ("age", "smoker=yes")
    assert found.coef_[1] == pytest.approx(15_000, rel=0.1)
    predicted = found.predict(rows[:3])
    assert predicted.shape == (3,)
    assert np.allclose(predicted, charges[:3], atol=12_000)


def test_a_schema_must_be_one_and_name_the_target() -> None:
    frame, charges = people(50)
    with pytest.raises(SchemaError, match="needs the target's name"):
        PrivateRidge(schema=SCHEMA).fit(frame, charges)
    with pytest.raises(SchemaError, match="both given"):
        PrivateRidge(schema=SCHEMA, bounds=(0, 1), target="charges").fit(frame, charges)
    with pytest.raises(SchemaError, match="must be a Schema"):
        PrivateRidge(schema={"age": (0, 1)}, target="charges").fit(frame, charges)
    with pytest.raises(SchemaError, match="numbers only"):
        PrivatePCA(schema=SCHEMA).fit(frame)
    with pytest.raises(SchemaError, match="does not fit the schema"):
        PrivateRidge(schema=SCHEMA, target="charges").fit(np.zeros((4, 3)), np.zeros(4))


@pytest.mark.parametrize("kind", [*REGRESSORS, *OTHERS])
@pytest.mark.filterwarnings("ignore::dpgram.estimators.RepeatedFit")
def test_each_fit_is_charged_before_and_the_last_that_fits_is_the_last(kind, tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b.ledger", name="people", epsilon=2.0, delta=1e-5)
    estimator = made(kind, entropy=None, ledger=str(tmp_path / "b.ledger"))
    if kind is PrivateLasso:
        estimator.set_params(mechanism="gaussian")
    estimator.fit(X, Y)
    entries = Ledger.open(tmp_path / "b.ledger").history()
    assert {entry.note for entry in entries} == {kind.__name__}
    assert [entry.number for entry in entries] == [one.entry for one in estimator.release_.receipts] == [1]
    assert math.hypot(*(entry.event.mu for entry in entries)) == pytest.approx(estimator.guarantee_.mu)
    del book
    with pytest.raises(BudgetExceeded):
        deque((estimator.fit(X, Y) for _ in range(40)), maxlen=0)


@pytest.mark.parametrize("mechanism", ["joint-gaussian", "gaussian"])
def test_a_ridge_keeps_its_receipt_and_says_whose_noise_it_has(mechanism, tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b.ledger", name="people", epsilon=2.0, delta=1e-5)
    paid = made(PrivateRidge, entropy=None, ledger=book, mechanism=mechanism).fit(X, Y)
    entries = book.history()
    assert len(entries) == 1
    assert paid.receipt_.event == entries[-1].event
    assert paid.entropy_ == "system"
    free = fitted(PrivateRidge, mechanism=mechanism)
    assert free.receipt_ is None
    assert free.entropy_ == "seeded"
    if mechanism == "joint-gaussian":
        assert (paid.sums_.entropy, free.sums_.entropy) == ("system", "seeded")


def test_ledgers_refuse_seeds_other_adjacencies_and_nonsense(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "b.ledger", name="people", epsilon=2.0, delta=1e-5)
    path = tmp_path / "b.ledger"
    with pytest.raises(MechanismError, match="seeded noise"):
        fitted(PrivateRidge, ledger=path, mechanism="joint-gaussian")
    with pytest.raises(LedgerError, match=r"adjacency|relation|neighbour"):
        fitted(PrivateRidge, ledger=path, entropy=None, adjacency="replace-one")
    with pytest.raises(LedgerError, match="path"):
        fitted(PrivateRidge, ledger=7, entropy=None)
    assert len(Ledger.open(path).history()) == 0


@pytest.mark.parametrize("mechanism", ["auto", "joint-gaussian"])
def test_cross_validation_warns_of_budget_and_of_scores(mechanism) -> None:
    estimator = made(PrivateRidge, entropy=None, mechanism=mechanism)
    with pytest.warns(UnprotectedScore, match="not private"), pytest.warns(RepeatedFit, match="anew"):
        scores = cross_val_score(estimator, X, Y, cv=3)
    assert (scores > 0.5).all()
    other = made(PrivateRidge, entropy=None, mechanism=mechanism)
    with pytest.warns(RepeatedFit, match="no ledger adds them up"):
        cross_val_score(other, X, Y, cv=3, scoring="neg_mean_squared_error")


def test_grid_search_warns_too_and_the_ledger_pays_for_each(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "b.ledger", name="people", epsilon=9.0, delta=1e-5)
    search = GridSearchCV(
        made(PrivateRidge, entropy=None, ledger=str(tmp_path / "b.ledger")), {"alpha": [None, 10.0]}, cv=2
    )
    with pytest.warns(UnprotectedScore), pytest.warns(RepeatedFit, match="the ledger is charged for each"):
        search.fit(X, Y)
    assert len(Ledger.open(tmp_path / "b.ledger").history()) == 5  # as many fits


def test_one_fit_warns_of_nothing_and_a_second_does() -> None:
    estimator = made(PrivateRidge, entropy=None).fit(X, Y)
    with pytest.warns(RepeatedFit):
        estimator.fit(X, Y)
    with pytest.warns(RepeatedFit):
        clone(estimator).fit(X, Y)
    made(PrivateRidge, entropy=None).fit(X, Y)  # another family


def test_an_estimator_in_a_pipeline() -> None:
    pipeline = make_pipeline(FunctionTransformer(lambda rows: rows / 2), made(PrivateRidge, epsilon=5.0))
    pipeline.fit(X, Y)
    assert np.abs(pipeline[-1].coef_ - 2 * BETA).max() < 1.0
    assert pipeline.predict(X[:4]).shape == (4,)
    copy = clone(pipeline)
    assert copy[-1].get_params()["epsilon"] == 5.0


def test_noise_is_fresh_unless_seeded() -> None:
    fresh = [made(PrivateRidge, entropy=None).fit(X, Y).coef_ for _ in range(2)]
    seeded = [fitted(PrivateRidge).coef_ for _ in range(2)]
    assert not np.array_equal(*fresh)
    assert np.array_equal(*seeded)


def test_components_are_those_of_the_release_and_have_names() -> None:
    found = made(PrivatePCA, n_components=2).set_output(transform="pandas").fit(X)
    theirs = found.release_.pca(2)
    assert np.array_equal(found.components_, theirs.loadings.T)
    scores = found.transform(X)
    assert list(scores.columns) == ["privatepca0", "privatepca1"]
    assert found.get_feature_names_out().tolist() == list(scores.columns)
    whole = made(PrivatePCA, epsilon=8.0).fit(X)
    assert np.allclose(whole.inverse_transform(whole.transform(X)), X)
    assert whole.explained_variance_ratio_.sum() == pytest.approx(1.0, abs=1e-9)
    assert whole.stable_.shape == whole.angles_.shape == (3,)


@pytest.mark.parametrize("standardise", [False, True])
def test_scores_have_the_variances_the_components_state(standardise) -> None:
    generator = np.random.default_rng(3)
    rows = np.clip(generator.normal(0, [0.5, 0.2, 0.1], (60_000, 3)), -1, 1)
    found = made(PrivatePCA, epsilon=8.0, standardise=standardise).fit(rows)
    assert np.allclose(found.transform(rows).var(axis=0), found.explained_variance_, rtol=0.02)


def test_covariance_is_near_the_truth_and_never_negative() -> None:
    found = made(PrivateCovariance, epsilon=8.0, bounds=(-2, 2)).fit(X)
    assert np.allclose(found.covariance_, np.cov(X.T), atol=0.02)
    assert np.allclose(found.location_, X.mean(axis=0), atol=0.02)
    assert found.mahalanobis(X).mean() == pytest.approx(3.0, rel=0.1)
    poor = made(PrivateCovariance, epsilon=0.5).fit(X[:400])
    assert np.linalg.eigvalsh(poor.covariance_)[0] > -1e-12


def test_zero_features_and_a_missing_target_are_refused() -> None:
    with pytest.raises(ValueError, match="0 feature"):
        made(PrivateRidge).fit(X[:, :0], Y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        made(PrivateRidge).fit(X, None)


def test_scikit_learn_is_imported_only_when_an_estimator_is_asked_for() -> None:
    code = "import sys, dpgram, dpgram.estimators; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("kind", [*REGRESSORS, *OTHERS])
def test_bounds_are_learnt_when_asked_and_paid_for(kind) -> None:
    big, target = table(60_000, 4)
    learnt = {"bounds": "learn"} | ({"target_bounds": "learn"} if kind in REGRESSORS else {})
    with pytest.raises(SchemaError, match="has no bounds"):
        made(kind, adaptive=False, **learnt).fit(big, target)
    found = made(kind, epsilon=5.0, adaptive=Adaptive(bounds=0.2), **learnt).fit(big, target)
    assert found.guarantee_.epsilon == 5.0
    for column in found.release_.schema.columns[:3]:
        assert column.low < -0.5 < 0.5 < column.high
    if kind in REGRESSORS:
        assert np.abs(found.coef_ - BETA).max() < 0.3
        assert found.conf_int_ is None
        assert "bounds of columns in this regression were learnt" in found.conf_int_refusal_
    if kind is PrivateRidge:
        with pytest.raises(MechanismError, match="known beforehand"):
            clone(found).set_params(mechanism="joint-gaussian").fit(big, target)


def test_intervals_under_a_clip_say_so_or_are_refused() -> None:
    """A release scales whole rows down; the joint one only their features, which is another matter."""
    big, target = table(60_000, 4)
    settings = {"epsilon": 5.0, "mechanism": "gaussian"}
    said = made(PrivateRidge, radius=1.1, **settings).fit(big, target)
    assert said.conf_int_ is not None
    assert any("clipped, reweighted rows" in caution for caution in said.conf_int_cautions_)
    assert made(PrivateRidge, adaptive=False, **settings).fit(big, target).conf_int_cautions_ == ()
    joint = settings | {"mechanism": "joint-gaussian"}
    refused = made(PrivateRidge, radius=1.1, **joint).fit(big, target)
    assert refused.conf_int_ is None
    assert "scales the features of long rows down" in refused.conf_int_refusal_
    whole = made(PrivateRidge, **joint).fit(big, target)
    assert whole.conf_int_ is not None
    assert whole.conf_int_cautions_ == ()
