"""SSP and AdaSSP: exact sums inside public bounds, the joint price, what is charged."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpgram.core.noise import SeededEntropy
from dpgram.errors import GuaranteeError, MechanismError
from dpgram.estimators.adassp import AdaSSP
from dpgram.estimators.ssp import SSP
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.curves.base import GaussianCurve
from dpgram.privacy.curves.calibrate import discrete_mu_at_most
from dpgram.privacy.ledger import Ledger
from dpgram.publishing.measurements.moments import JointGaussian

from .lattice_rows import BoundedRows

BOUNDS = {"x_norm": 1.0, "y_bound": 1.0}


def table(rows: int = 4000, width: int = 4, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((rows, width))
    x /= np.linalg.norm(x, axis=1).max()
    theta = np.array([0.8, -0.5, 0.3, 0.0])[:width]
    return x, np.clip(x @ theta + 0.02 * generator.standard_normal(rows), -1.0, 1.0), theta


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=60, deadline=None)
@given(
    x=arrays(np.float64, (5, 3), elements=finite),
    y=arrays(np.float64, 5, elements=finite),
    radius=st.floats(1e-6, 1e6),
)
def test_every_row_is_inside_the_integer_bounds(x: np.ndarray, y: np.ndarray, radius: float) -> None:
    rows = BoundedRows.of(x, y, x_norm=radius, y_bound=radius)
    squares = [sum(int(q) ** 2 for q in row) for row in rows.x]
    assert max(squares) <= ROW_NORM_SQUARED
    assert all(abs(int(t)) <= ROW_NORM for t in rows.y)
    assert np.array_equal(rows.x, np.rint(rows.x))
    assert np.array_equal(rows.y, np.rint(rows.y))


def test_a_row_inside_the_bounds_is_kept_to_half_a_step() -> None:
    x, y, _ = table(200)
    rows = BoundedRows.of(x, y, x_norm=1.0, y_bound=1.0)
    assert np.abs(rows.x / ROW_NORM - x).max() <= 1.0 / ROW_NORM  # truncation may take a whole step
    assert np.abs(rows.y / ROW_NORM - y).max() <= 0.5 / ROW_NORM


def test_sums_are_exact_and_missing_rows_are_left_out() -> None:
    x, y, _ = table(300)
    x[3, 1], y[7], x[9, 0] = np.nan, np.inf, -np.inf
    rows = BoundedRows.of(x, y, x_norm=1.0, y_bound=1.0)
    assert len(rows.x) == 297
    second, first = rows.moments()
    integers, target = rows.x.astype(np.int64), rows.y.astype(np.int64)
    assert np.array_equal(second, integers.T @ integers)
    assert np.array_equal(first, integers.T @ target)
    kept = np.delete(np.arange(300), [3, 7, 9])
    alone = BoundedRows.of(x[kept], y[kept], x_norm=1.0, y_bound=1.0).moments()
    assert np.array_equal(second, alone[0])
    assert np.array_equal(first, alone[1])


@pytest.mark.parametrize(
    ("relation", "width"),  # under replace-one the worst rows are not parallel, so one column is no test
    [("add-remove", 1), ("add-remove", 3), ("add-remove", 30), ("replace-one", 2), ("replace-one", 30)],
)
def test_the_joint_price_is_the_worst_shift(relation: str, width: int) -> None:
    """No pair of extreme rows moves the joint statistic further than μ, and one pair comes close."""
    mu = discrete_mu_at_most(1.0, 1e-6)
    noise = JointGaussian.calibrated(mu, adjacency(relation), width=width)
    assert 0.99999 * mu < noise.mu <= mu
    assert GaussianCurve(noise.mu).delta(1.0) <= 1e-6
    generator, worst = np.random.default_rng(1), 0.0
    for _ in range(4000):
        x = generator.standard_normal((2, width))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        y = generator.choice([-1.0, 1.0, generator.uniform(-1, 1)], 2)
        sign = 0.0 if relation == "add-remove" else 1.0
        if width > 1 and generator.random() < 0.7:  # near the worst angle more often
            x[1] = x[0] * (cosine := generator.uniform(-1, 1)) + math.sqrt(1 - cosine**2) * _orthogonal(x[0])
        second = np.outer(x[0], x[0]) - sign * np.outer(x[1], x[1])
        first = x[0] * y[0] - sign * x[1] * y[1]
        shift = np.linalg.norm(second) / noise.second, np.linalg.norm(first) / noise.first
        worst = max(worst, math.hypot(*shift) * 2.0**30)
    assert 0.97 * noise.mu <= worst <= noise.mu


def _orthogonal(unit: np.ndarray) -> np.ndarray:
    other = np.roll(unit, 1) + 0.1
    other = other - unit * (unit @ other)
    return other / np.linalg.norm(other)


@pytest.mark.parametrize("model", [SSP, AdaSSP])
def test_exact_finds_the_coefficients_and_states_what_was_asked(model: type) -> None:
    x, y, theta = table(200_000)
    fit = model(1.0, 1e-6, **BOUNDS, entropy=SeededEntropy(5)).fit(x, y)
    assert fit.coef_ == pytest.approx(theta, abs=0.05)
    assert (fit.guarantee_.epsilon, fit.guarantee_.delta) == (1.0, 1e-6)


@pytest.mark.parametrize("model", [SSP, AdaSSP])
def test_units_do_not_matter(model: type) -> None:
    """Scaling x, y and their bounds by powers of two scales θ, bit for bit."""
    x, y, _ = table()
    one = model(1.0, 1e-6, **BOUNDS, entropy=SeededEntropy(5)).fit(x, y)
    two = model(1.0, 1e-6, x_norm=4.0, y_bound=16.0, entropy=SeededEntropy(5)).fit(4.0 * x, 16.0 * y)
    assert np.array_equal(4.0 * one.coef_, two.coef_)


def test_adassp_damps_where_ssp_explodes() -> None:
    x, y, _ = table(300)
    fits = [
        [model(0.1, 1e-6, **BOUNDS, entropy=SeededEntropy(s)).fit(x, y).coef_ for s in range(40)]
        for model in (SSP, AdaSSP)
    ]
    ssp, adassp = (np.linalg.norm(found, axis=1).max() for found in fits)
    assert adassp < 2.0
    assert ssp > 3.0 * adassp


def test_more_budget_is_less_noise() -> None:
    widths = [
        JointGaussian.calibrated(discrete_mu_at_most(e, 1e-6), adjacency("add-remove"), width=3).second
        for e in (0.1, 1.0, 5.0)
    ]
    assert widths[0] > widths[1] > widths[2]
    assert widths[1] / 2**30 == pytest.approx(5.97, rel=0.1)  # privacy-math, section 9: 5.97 for equal shares


def test_bounds_are_required_and_public() -> None:
    x, y, _ = table(20)
    with pytest.raises(GuaranteeError, match="x_norm is needed"):
        AdaSSP(y_bound=1.0).fit(x, y)
    with pytest.raises(GuaranteeError, match="y_bound is out of range"):
        AdaSSP(x_norm=1.0, y_bound=-1.0).fit(x, y)
    with pytest.raises(GuaranteeError, match="pure"):
        AdaSSP(1.0, 0.0, **BOUNDS).fit(x, y)


def test_a_ledger_is_charged_what_the_fit_costs(tmp_path) -> None:
    x, y, _ = table(100)
    book = Ledger.create(tmp_path / "a.ledger", name="a", epsilon=2.0, delta=1e-5)
    fit = AdaSSP(1.0, 1e-6, **BOUNDS, ledger=book).fit(x, y)
    assert fit.receipt_.event == fit.event_
    assert book.spent >= Fraction(fit.event_.mu) ** 2
    spent = book.spent
    with pytest.raises(MechanismError, match="seeded"):
        AdaSSP(1.0, 1e-6, **BOUNDS, ledger=book, entropy=SeededEntropy(1)).fit(x, y)
    assert book.spent == spent


def test_success_does_not_depend_on_the_rows() -> None:
    for x, y in ((np.zeros((0, 2)), np.zeros(0)), (np.full((2, 2), np.nan), np.zeros(2))):
        fit = AdaSSP(1.0, 1e-6, **BOUNDS, entropy=SeededEntropy(2)).fit(x, y)
        assert np.isfinite(fit.coef_).all()
