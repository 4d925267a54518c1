"""RobustRegression, PrivateLogistic and PrivatePoisson: a fit is one release with one declared model."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import dpgram as dg
from dpgram.core.noise import SeededEntropy
from dpgram.errors import OptionsError, SchemaError
from dpgram.estimators import PrivateLinearRegression, PrivateLogistic, PrivatePoisson, RobustRegression

pytestmark = [  # these warnings are meant; tests of their own look for them
    pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]

ROWS = 5_000
DRAW = np.random.default_rng(4)
X = DRAW.normal(size=(ROWS, 2))
Y = 1.0 + X @ [1.5, -0.8] + DRAW.normal(size=ROWS)
LABELS = (DRAW.random(ROWS) < expit(-0.5 + X @ [0.9, -0.6])).astype(int)
COUNTS = DRAW.poisson(np.exp(0.3 + X @ [0.4, -0.3])).astype(float)
COMMON: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-6, "bounds": (-6, 6), "entropy": SeededEntropy(3)}
SCHEMA = dg.Schema(dg.numeric("a", -6, 6), dg.numeric("b", -6, 6), dg.boolean("t"), dg.numeric("k", 0, 60))


class TestCoefficients:
    def test_outliers_move_a_robust_regression_less(self) -> None:
        spoiled = Y.copy()
        spoiled[:150] = np.where(X[:150, 0] > 0.0, -15.0, 15.0)
        robust = RobustRegression(**COMMON, target_bounds=(-20, 20)).fit(X, spoiled)
        plain = PrivateLinearRegression(**COMMON, target_bounds=(-20, 20), adaptive=False).fit(X, spoiled)
        assert robust.release_.models == ("linear: target on x0, x1",)
        assert abs(robust.coef_[0] - 1.5) < 0.5 * abs(plain.coef_[0] - 1.5)  # 1.33 beside 1.03
        assert robust.predict(X[:5]) == pytest.approx(X[:5] @ robust.coef_ + robust.intercept_)

    def test_without_outliers_it_is_least_squares(self) -> None:
        found = RobustRegression(**COMMON, target_bounds=(-20, 20)).fit(X, Y)
        assert found.coef_ == pytest.approx([1.5, -0.8], abs=0.06)
        assert found.intercept_ == pytest.approx(1.0, abs=0.06)
        assert found.conf_int_ is not None
        assert (found.conf_int_[:, 0] < found.coef_).all()
        assert (found.coef_ < found.conf_int_[:, 1]).all()

    def test_a_logit(self) -> None:
        found = PrivateLogistic(**COMMON, classes=("no", "yes")).fit(X, np.array(["no", "yes"])[LABELS])
        assert found.coef_.shape == (1, 2)
        assert found.coef_[0] == pytest.approx([0.9, -0.6], abs=0.15)
        assert found.intercept_ == pytest.approx([-0.5], abs=0.15)
        chances = found.predict_proba(X)
        assert chances[:, 1] == pytest.approx(expit(X @ found.coef_[0] + found.intercept_[0]))
        assert chances.sum(axis=1) == pytest.approx(1.0)
        assert list(found.classes_) == ["no", "yes"]
        assert set(found.predict(X)) == {"no", "yes"}
        assert np.mean(found.predict(X) == np.array(["no", "yes"])[LABELS]) > 0.68
        assert found.conf_int_ is not None

    def test_counts(self) -> None:
        found = PrivatePoisson(**COMMON, target_bounds=(0, 60)).fit(X, COUNTS)
        assert found.coef_ == pytest.approx([0.4, -0.3], abs=0.08)
        assert found.predict(X[:3]) == pytest.approx(np.exp(X[:3] @ found.coef_ + found.intercept_))
        assert found.conf_int_ is not None

    def test_with_a_schema_it_is_what_the_release_says(self) -> None:
        asked = {key: value for key, value in COMMON.items() if key != "bounds"}
        schema = SCHEMA.with_columns(column for column in SCHEMA.columns if column.name != "k")
        found = PrivateLogistic(**asked, schema=schema, target="t").fit(X, LABELS)
        told = found.release_.regress("t", family="logistic")
        rows = {"a": X[:4, 0], "b": X[:4, 1]}
        assert found.predict_proba(X[:4])[:, 1] == pytest.approx(told.predict(rows))
        assert found.decision_function(X[:4]) == pytest.approx(X[:4] @ found.coef_[0] + found.intercept_[0])

    def test_a_plain_release_does_as_well(self) -> None:
        found = PrivateLogistic(**COMMON | {"epsilon": 50.0}, adaptive=False).fit(X, LABELS)
        assert found.release_.coordinates is None
        assert found.coef_[0] == pytest.approx([0.9, -0.6], abs=0.15)

    def test_where_noise_hides_the_model_the_mean_is_left(self) -> None:
        few = np.tile(X[:40], (1, 5))
        found = PrivateLogistic(**COMMON | {"epsilon": 0.1}).fit(few, LABELS[:40])
        assert (found.coef_ == 0.0).all()
        assert found.conf_int_ is None
        assert "not measured" in str(found.conf_int_refusal_)
        assert np.isfinite(found.predict_proba(few)).all()


class TestFits:
    def test_labels_that_are_no_class_are_missing(self) -> None:
        odd = LABELS.astype(object)
        odd[::2] = None
        odd[::10], odd[2::10], odd[4::10] = 7, "x", np.nan
        found = PrivateLogistic(**COMMON).fit(X, odd)
        assert found.release_.matrix("original")[0, 0] == pytest.approx(ROWS / 2, rel=0.05)

    @pytest.mark.parametrize("odd", ["?", b"?", [1, 2], 1j, (1,), {}, np.zeros(2)], ids=str)
    @pytest.mark.parametrize("schema", [False, True])
    def test_an_odd_label_is_one_missing_value_and_no_other_row_changes(self, odd: Any, schema: bool) -> None:
        """The same seed gives the same noise, so that all but one row being the same gives the same fit."""
        asked = dict(COMMON)
        if schema:
            asked |= {"bounds": None, "schema": dg.Schema(*SCHEMA.columns[:3]), "target": "t"}
        for labels in (LABELS.tolist(), tuple(LABELS.tolist())):
            fits = [
                PrivateLogistic(**asked).fit(X, type(labels)([*labels[:7], label, *labels[8:]]))
                for label in (None, odd)
            ]
            assert (fits[0].coef_ == fits[1].coef_).all()
            assert fits[1].release_.matrix("original")[0, 0] == pytest.approx(ROWS, rel=0.05)

    def test_labels_of_two_types(self) -> None:
        labels = [("no", 1)[label] for label in LABELS]
        found = PrivateLogistic(**COMMON, classes=("no", 1)).fit(X, labels)
        assert (found.coef_ == PrivateLogistic(**COMMON).fit(X, LABELS).coef_).all()
        assert set(found.predict(X)) == {"no", 1}

    def test_labels_in_two_columns_are_refused_without_quoting_them(self) -> None:
        with pytest.raises(ValueError, match=r"1d array, got an array of shape \(5000, 2\)"):
            PrivateLogistic(**COMMON).fit(X, np.column_stack([LABELS, LABELS]))

    @pytest.mark.parametrize("classes", [(0,), (0, 1, 2), (1, 1), 3, None])
    def test_classes_are_two(self, classes: Any) -> None:
        with pytest.raises(SchemaError, match="two classes"):
            PrivateLogistic(**COMMON, classes=classes).fit(X, LABELS)

    @pytest.mark.parametrize("kind", [RobustRegression, PrivatePoisson])
    def test_there_is_an_intercept(self, kind: Any) -> None:
        with pytest.raises(SchemaError, match="intercept"):
            kind(**COMMON, target_bounds=(0, 60), fit_intercept=False).fit(X, COUNTS)

    def test_pure_guarantees_are_refused(self) -> None:
        with pytest.raises(OptionsError, match="models"):
            PrivateLogistic(**COMMON | {"delta": 0.0}).fit(X, LABELS)

    def test_a_ledger_is_charged_and_the_receipt_kept(self, tmp_path: Any) -> None:
        ledger = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=3, delta=1e-5)
        asked = {**COMMON, "epsilon": 1.0, "entropy": None, "ledger": ledger}
        found = PrivateLogistic(**asked).fit(X, LABELS)
        assert found.receipt_ is not None
        assert found.entropy_ == "system"
        assert found.guarantee_.epsilon == 1.0
        assert ledger.left().share < 1.0

    @pytest.mark.parametrize("kind", [PrivateLogistic, PrivatePoisson, RobustRegression])
    def test_seeds_are_told_and_repeat_a_fit(self, kind: Any) -> None:
        model = kind(**COMMON, **({} if kind is PrivateLogistic else {"target_bounds": (0, 60)}))
        target = LABELS if kind is PrivateLogistic else COUNTS
        one, two = clone(model).fit(X, target), clone(model).fit(X, target)
        assert one.entropy_ == "seeded"
        assert (one.coef_ == two.coef_).all()
        assert (pickle.loads(pickle.dumps(one)).predict(X[:9]) == one.predict(X[:9])).all()


CHECKED = {"epsilon": 1e5, "delta": 1e-6, "bounds": (-20, 20), "entropy": SeededEntropy(7)}
TOTAL = "whether a fit succeeds may not depend on one row: an empty table is a neighbour of one with a row"
EXEMPT = {
    "check_estimators_empty_data_messages": TOTAL,
    "check_supervised_y_no_nan": "a target that is not finite is a missing value: its row is dropped",
}
PUBLIC = "classes are public: which labels the rows have must not be looked up, and others are missing values"
EXEMPT_CLASSIFIERS = EXEMPT | {
    "check_classifiers_classes": PUBLIC,
    "check_classifiers_regression_target": PUBLIC,
    "check_classifier_not_supporting_multiclass": PUBLIC,
}


@parametrize_with_checks(
    [
        RobustRegression(**CHECKED, target_bounds=(-400, 400)),
        PrivatePoisson(**CHECKED, target_bounds=(0, 400)),
        PrivateLogistic(**CHECKED),
    ],
    expected_failed_checks=lambda estimator: (
        EXEMPT_CLASSIFIERS if isinstance(estimator, PrivateLogistic) else EXEMPT
    ),
)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)
