"""Private L_p regression: every accounting meets its claim, rows stay in bounds, outliers are resisted."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from dpgram.audit import audit
from dpgram.core.noise import Entropy, SeededEntropy
from dpgram.errors import GuaranteeError
from dpgram.estimators.adassp import AdaSSP
from dpgram.estimators.iteration_noise import (
    MATRIX_NOISES,
    IterationSettings,
    calibrated,
    event_of,
    exact_guarantee,
)
from dpgram.estimators.lp_regression import LpRegression
from dpgram.privacy.accountant import delta_of
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.ledger import Ledger
from dpgram.sums.moments import MomentsStatistic, Reweighting, power

from .lattice_rows import BoundedRows

BOUNDS = {"x_norm": 1.0, "y_bound": 1.0}
PAIRS = [(first, second) for first in ("gaussian", "laplace") for second in MATRIX_NOISES]
VALID = [(a, f, s) for a in ("zcdp", "advanced", "basic") for f, s in PAIRS] + [
    ("gdp", "gaussian", "gaussian")
]


def settings(accounting: str, first: str, second: str, **changes: object) -> IterationSettings:
    return IterationSettings(
        **{
            "guarantee": Guarantee(0.9, 1e-6),
            "adjacency": adjacency("add-remove"),
            "width": 10,
            "iterations": 5,
            "accounting": accounting,
            "first": first,
            "second": second,
        }
        | changes
    )


def table(
    rows: int = 60_000, seed: int = 3, outliers: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((rows, 3))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
    theta = np.array([0.4, -0.3, 0.2])
    y = x @ theta + 0.05 * generator.standard_normal(rows)
    wild = generator.random(rows) < outliers
    y[wild] = np.where(x[wild, 0] > 0, -1.0, 1.0)  # against the first coefficient
    return x, np.clip(y, -1.0, 1.0), theta


@pytest.mark.parametrize(("accounting", "first", "second"), VALID)
def test_every_accounting_meets_its_claim(accounting: str, first: str, second: str) -> None:
    """By the exact curve of everything that is drawn, not by the rule that set it."""
    one = settings(accounting, first, second)
    assert delta_of(event_of(one), 0.9) <= 1e-6
    assert exact_guarantee(one).epsilon <= 0.9


@pytest.mark.parametrize(("accounting", "first", "second"), [v for v in VALID if v[2] != "wishart"])
def test_replace_one_meets_it_too(accounting: str, first: str, second: str) -> None:
    assert (
        delta_of(event_of(settings(accounting, first, second, adjacency=adjacency("replace-one"))), 0.9)
        <= 1e-6
    )


def test_gdp_is_tight_and_zcdp_close() -> None:
    assert exact_guarantee(settings("gdp", "gaussian", "gaussian")).epsilon == pytest.approx(0.9, abs=1e-6)
    noise = {
        a: calibrated(settings(a, "gaussian", "gaussian")).first.scale
        for a in ("gdp", "zcdp", "basic", "advanced")
    }
    assert noise["gdp"] < noise["zcdp"] < 1.1 * noise["gdp"]
    assert noise["zcdp"] < 0.5 * min(noise["basic"], noise["advanced"])


def test_a_pure_guarantee() -> None:
    one = settings("basic", "laplace", "matrix-laplace", guarantee=Guarantee(1.0))
    assert delta_of(event_of(one), 1.0) == 0.0
    x, y, _ = table(2000)
    fit = LpRegression(
        1.0,
        0.0,
        **BOUNDS,
        accounting="basic",
        first="laplace",
        second="matrix-laplace",
        entropy=SeededEntropy(1),
    ).fit(x, y)
    assert fit.guarantee_.delta == 0.0
    assert 1.0 - 1e-12 < fit.guarantee_.epsilon <= 1.0
    with pytest.raises(GuaranteeError, match="pure"):
        LpRegression(1.0, 0.0, **BOUNDS).fit(x, y)


def test_weights_keep_every_row_inside_the_lattice() -> None:
    """The moments of one weighted row never pass 2^30, whatever the coefficients were."""
    generator = np.random.default_rng(8)
    x = generator.standard_normal((500, 4)) * 10.0
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
    y = generator.uniform(-1, 1, 500)
    weights = (0.1 / np.maximum(np.abs(y - x @ (50.0 * generator.standard_normal(4))), 0.1)) ** 0.7
    assert weights.max() <= 1.0
    for row in range(500):
        one = BoundedRows.of(
            x[row : row + 1] * math.sqrt(weights[row]), y[row : row + 1] * math.sqrt(weights[row]), **BOUNDS
        )
        second, first = one.moments()
        assert np.trace(second) <= 2**30
        assert sum(int(cell) ** 2 for cell in first) <= 2**60


@pytest.mark.parametrize("second", list(MATRIX_NOISES))
def test_finds_the_coefficients(second: str) -> None:
    x, y, theta = table()
    fit = LpRegression(3.0, 1e-6, **BOUNDS, second=second, entropy=SeededEntropy(4)).fit(x, y)
    assert fit.coef_ == pytest.approx(theta, abs=0.02)
    assert fit.guarantee_.epsilon <= fit.claimed_.epsilon == 3.0


def test_outliers_pull_least_squares_and_not_this() -> None:
    x, y, theta = table(outliers=0.1)
    least_squares = AdaSSP(3.0, 1e-6, **BOUNDS, entropy=SeededEntropy(4)).fit(x, y)
    errors = {}
    for p in (1.0, 1.5):
        fit = LpRegression(3.0, 1e-6, **BOUNDS, p=p, floor=0.05, entropy=SeededEntropy(4)).fit(x, y)
        errors[p] = float(np.linalg.norm(fit.coef_ - theta))
    assert errors[1.0] < errors[1.5] < np.linalg.norm(least_squares.coef_ - theta)
    assert errors[1.0] < 0.4 * np.linalg.norm(least_squares.coef_ - theta)


def test_units_do_not_matter() -> None:
    x, y, _ = table(2000)
    one = LpRegression(1.0, 1e-6, **BOUNDS, floor=0.1, entropy=SeededEntropy(5)).fit(x, y)
    two = LpRegression(1.0, 1e-6, x_norm=4.0, y_bound=8.0, floor=0.8, entropy=SeededEntropy(5))
    assert two.fit(4.0 * x, 8.0 * y).coef_ == pytest.approx(2.0 * one.coef_, rel=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [
        {"p": 2.0},
        {"p": 0.5},
        {"floor": 0.0},
        {"iterations": 0},
        {"iterations": 2.5},
        {"accounting": "moments"},
        {"second": "one-sided-wishart"},
        {"accounting": "gdp", "first": "laplace"},
        {"accounting": "mean-cdp"},
    ],
)
def test_refuses(wrong: dict[str, object]) -> None:
    x, y, _ = table(50)
    with pytest.raises(GuaranteeError):
        LpRegression(1.0, 1e-6, **BOUNDS).set_params(**wrong).fit(x, y)


def test_a_ledger_is_charged_for_all_iterations(tmp_path) -> None:
    x, y, _ = table(100)
    book = Ledger.create(tmp_path / "a.ledger", name="a", epsilon=2.0, delta=1e-5)
    fit = LpRegression(1.0, 1e-6, **BOUNDS, ledger=book).fit(x, y)
    assert fit.receipt_.event == fit.event_
    assert len(fit.event_.parts) == 5


@pytest.mark.parametrize(("drawn", "refuted"), [(1.0, False), (10.0, True)])
def test_an_audit_refutes_too_little_noise_and_nothing_else(drawn: float, refuted: bool) -> None:
    """Both moments of both iterations, one full row present or absent, 3,000 draws each, 99.9% confidence."""
    noise = calibrated(
        settings("gdp", "gaussian", "gaussian", guarantee=Guarantee(drawn, 1e-5), width=1, iterations=2)
    )

    def run(moment: int, entropy: Entropy) -> list[float]:
        seen = []
        for _ in range(2):
            second, first = noise.draw(np.array([[moment]]), np.array([moment]), entropy)
            seen += [float(second.cells[0, 0]) / 2**30, float(first[0]) / 2**30]
        return seen

    result = audit(
        partial(run, 2**30),
        partial(run, 0),
        runs=3000,
        delta=1e-5,
        statistic=np.array,
        confidence=0.999,
        entropy=SeededEntropy(11),
    )
    assert result.passes(Guarantee(1.0, 1e-5)) is not refuted


def test_other_rows_change_no_bit_of_a_weighted_row() -> None:
    """At fifty columns a matrix product gives a row other residuals in batches of other sizes."""
    generator = np.random.default_rng(5)
    x, y = generator.standard_normal((50, 300)), generator.standard_normal(300)
    theta = tuple(generator.standard_normal(50).tolist())
    rows = MomentsStatistic(
        columns=tuple(f"x{i}" for i in range(50)),
        target="y",
        x_norm=5.0,
        y_bound=2.0,
        reweighting=Reweighting(theta=theta, floor=0.01, power=1.37),
    )
    whole, roots = rows.lattice_rows(x, y), rows.root_weights(x, y)
    for size in range(1, 300):
        assert np.array_equal(rows.lattice_rows(x[:, :size], y[:size]), whole[:, :size])
        assert np.array_equal(rows.root_weights(x[:, :size], y[:size]), roots[:size])


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 0.25, 0.35, 1 / 3, 2.0**-30])
def test_powers_are_products_of_square_roots(exponent: float) -> None:
    base = np.array([0.0, 1e-300, 1e-9, 0.1, 0.5, 1.0 - 2.0**-53, 1.0])
    assert power(base, exponent) == pytest.approx(base**exponent, rel=1e-13)
    assert (power(base, exponent) <= 1.0).all()


def test_coefficients_that_are_no_numbers_leave_rows_of_zeros() -> None:
    """Whatever floats do, a row stays inside the lattice."""
    x, y = np.array([[0.5, -0.5, 0.0]]), np.array([0.1, 0.2, 0.3])
    for slope in (math.nan, math.inf, -math.inf, 1e308):
        weights = Reweighting(theta=(slope,), floor=0.1, power=1.0)
        rows = MomentsStatistic(columns=("x",), target="y", x_norm=1.0, y_bound=1.0, reweighting=weights)
        found = rows.lattice_rows(x, y)
        assert np.isfinite(found).all()
        assert np.abs(found).max() <= 2**15
