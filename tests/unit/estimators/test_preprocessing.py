"""Kalaja's preprocessing: what it does to a row, what it costs, and that no data is read for free."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpgram.core.noise import SeededEntropy
from dpgram.errors import DpgramWarning, GuaranteeError
from dpgram.estimators import (
    AdaSSP,
    ColumnStandardizer,
    Intercept,
    MaxNormMapping,
    RowNormMapping,
    SigmaClipper,
)
from dpgram.privacy.ledger import Ledger

TOTAL = "whether a fit succeeds may not depend on one row: an empty table is a neighbour of one with a row"
PAID = {"epsilon": 1.0, "delta": 1e-6, "bounds": (-5.0, 5.0), "entropy": SeededEntropy(3)}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        RowNormMapping(),
        MaxNormMapping(10.0),
        Intercept(),
        ColumnStandardizer(0.5, 2.0),
        ColumnStandardizer(**PAID),
        SigmaClipper(1.5, 0.0, 1.0),
        SigmaClipper(1.5, **PAID),
    ],
    expected_failed_checks=lambda estimator: {"check_estimators_empty_data_messages": TOTAL},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def table(rows: int = 3000) -> np.ndarray:
    generator = np.random.default_rng(6)
    return generator.standard_normal((rows, 3)) * np.array([1.0, 0.5, 2.0]) + np.array([1.0, 0.0, -1.0])


def test_row_norm_mapping() -> None:
    x = np.vstack([table(50), np.zeros((1, 3))])
    mapped = RowNormMapping().fit_transform(x)
    assert np.linalg.norm(mapped[:-1], axis=1) == pytest.approx(1.0)
    assert not mapped[-1].any()
    with_y = RowNormMapping(columns=-1).fit_transform(x)  # the last column is y
    assert np.linalg.norm(with_y[:-1, :-1], axis=1) == pytest.approx(1.0)
    assert with_y[:-1, -1] == pytest.approx(x[:-1, -1] / np.linalg.norm(x[:-1, :-1], axis=1))


def test_max_norm_mapping() -> None:
    x = table(50)
    public = MaxNormMapping(2.0).fit(x)
    assert np.linalg.norm(public.transform(x), axis=1).max() <= 1.0 + 1e-12
    assert public.guarantee_ is None


def test_intercept() -> None:
    x = table(5)
    assert np.array_equal(Intercept(0.5).fit_transform(x), np.column_stack([x, np.full(5, 0.5)]))
    assert Intercept().fit(x).get_feature_names_out(["a", "b", "c"]).tolist() == ["a", "b", "c", "intercept"]


@pytest.mark.parametrize("sides", ["one", "two"])
def test_clipping(sides: str) -> None:
    x = table(500)
    mean, scale = np.array([1.0, 0.0, -1.0]), np.array([1.0, 0.5, 2.0])
    clipper = SigmaClipper(1.3, mean, scale, sides=sides).fit(x)
    low = mean - 1.3 * scale if sides == "two" else -np.inf
    assert clipper.transform(x) == pytest.approx(np.clip(x, low, mean + 1.3 * scale))


def test_standardising_with_public_numbers() -> None:
    x = table(500)
    assert ColumnStandardizer(1.0, 2.0).fit_transform(x) == pytest.approx((x - 1.0) / 2.0)


@pytest.mark.parametrize("word", ["non-private", "data"])
def test_no_word_takes_parameters_from_the_data(word: str) -> None:
    for model in (MaxNormMapping(word), ColumnStandardizer(word, word), SigmaClipper(1.3, word, 1.0)):
        with pytest.raises(GuaranteeError, match="must be a"):
            model.fit(table(20))


def test_paid_for_moments_are_close_and_charged(tmp_path) -> None:
    x = table(200_000)
    x[0] = [np.nan, np.inf, 1e9]
    model = ColumnStandardizer(epsilon=1.0, delta=1e-6, bounds=(-10.0, 10.0), entropy=SeededEntropy(1)).fit(x)
    assert model.mean_ == pytest.approx([1.0, 0.0, -1.0], abs=0.02)
    assert model.scale_ == pytest.approx([1.0, 0.5, 2.0], abs=0.1)
    assert model.guarantee_.epsilon == 1.0
    book = Ledger.create(tmp_path / "a.ledger", name="a", epsilon=2.0, delta=1e-5)
    charged = ColumnStandardizer(epsilon=1.0, delta=1e-6, bounds=(-10.0, 10.0), ledger=book).fit(x)
    assert charged.receipt_.event == charged.event_ == model.event_
    assert (charged.entropy_, model.entropy_) == ("system", "seeded")
    assert ColumnStandardizer(1.0, 2.0).fit(x).entropy_ is None


@pytest.mark.parametrize("kind", [ColumnStandardizer, SigmaClipper])
def test_a_variance_that_noise_hides_is_never_taken_for_a_small_one(kind) -> None:
    """1,500 rows at ε = 0.2, a tenth and a third of the range wide: no scale is far too small."""
    draw = np.random.default_rng(7)
    x = np.clip(draw.normal(size=(1500, 6)) * np.array([0.1, 0.3] * 3), -1.0, 1.0)
    shares, said = [], 0
    for seed in range(30):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scale = kind(epsilon=0.2, bounds=(-1.0, 1.0), entropy=SeededEntropy(seed)).fit(x).scale_
        shares.append(x.std(axis=0) / scale)
        told = [str(each.message) for each in caught if each.category is DpgramWarning]
        said += any("noise hides how far columns" in each for each in told)
    assert np.max(shares) < 2.0
    assert said > 15
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # whether there is a fit depends on no warning
        kind(epsilon=0.01, bounds=(-1.0, 1.0), entropy=SeededEntropy(0)).fit(x)


def test_the_price_covers_every_pair_of_rows() -> None:
    """Brute force over a grid of cells, present or missing: 3 and 4 are the largest squares."""
    cells = [np.zeros(3)] + [np.array([1.0, z, z * z]) for z in np.linspace(-1, 1, 81)]
    present = max(float(cell @ cell) for cell in cells)
    apart = max(float((a - b) @ (a - b)) for a in cells for b in cells)
    assert (present, apart) == (pytest.approx(3.0), pytest.approx(4.0))
    for relation, square in (("add-remove", present), ("replace-one", apart)):
        fit = ColumnStandardizer(**PAID, adjacency=relation).fit(np.full((1, 5), np.nan))
        assert fit.sensitivity_ == pytest.approx(math.sqrt(5 * square))
        assert fit.event_.mu == pytest.approx(1.0 / 4.225, rel=1e-3)


@pytest.mark.parametrize(
    "model",
    [
        ColumnStandardizer(),
        ColumnStandardizer(0.0),
        ColumnStandardizer("mine", "mine"),
        ColumnStandardizer(epsilon=1.0),
        ColumnStandardizer(0.0, 1.0, epsilon=1.0, bounds=(0.0, 1.0)),
        ColumnStandardizer(0.0, -1.0),
        MaxNormMapping(),
        MaxNormMapping("longest"),
        RowNormMapping(0.0),
    ],
)
def test_nothing_is_taken_from_the_data_for_free(model) -> None:
    with pytest.raises(GuaranteeError):
        model.fit(table(10))


def test_in_a_pipeline() -> None:
    x = table(5000)
    y = np.clip(0.1 * (x @ np.array([1.0, -1.0, 0.5])), -1, 1)
    model = make_pipeline(
        ColumnStandardizer([1.0, 0.0, -1.0], [1.0, 0.5, 2.0]),
        MaxNormMapping(4.0),
        Intercept(),
        AdaSSP(5.0, 1e-6, x_norm=math.sqrt(2.0), y_bound=1.0, entropy=SeededEntropy(2)),
    )
    residual = y - model.fit(x, y).predict(x)
    assert np.var(residual) < 0.2 * np.var(y)
