"""The regressions as printed: they warn, and state what their noise is truly worth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgram.errors import DpgramWarning, GuaranteeError
from dpgram.privacy.accountant import delta_of
from dpgram.privacy.sampling.entropy import SeededEntropy
from dpgram_papers.regressions import PrintedAdaSSP, PrintedMoments, PrintedRobustRegression, PrintedSSP

BOUNDS = {"x_norm": 1.0, "y_bound": 1.0}


def table(rows: int = 2000, width: int = 3) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    x = generator.standard_normal((rows, width))
    x /= np.linalg.norm(x, axis=1).max()
    return x, np.clip(0.8 * x[:, 0] + 0.02 * generator.standard_normal(rows), -1.0, 1.0)


@pytest.mark.parametrize(
    ("model", "variant", "true_epsilon", "meets"),
    [
        (PrintedSSP, "wang2018", 1.587, False),
        (PrintedSSP, "kalaja2020", 0.527, True),
        (PrintedAdaSSP, "wang2018", 0.596, True),
        (PrintedAdaSSP, "kalaja2020", 0.418, True),
    ],
)
def test_printed_forms_state_the_truth_and_warn(
    model: type[PrintedMoments], variant: str, true_epsilon: float, meets: bool
) -> None:
    estimator = model(1.0, 1e-6, **BOUNDS, variant=variant, entropy=SeededEntropy(5))
    with pytest.warns(DpgramWarning, match="baseline" if meets else "DOES NOT MEET"):
        fit = estimator.fit(*table())
    assert fit.guarantee_.epsilon == pytest.approx(true_epsilon, rel=2e-3)
    assert fit.guarantee_.statement.startswith("A BASELINE")
    assert fit.claimed_.epsilon == 1.0


@pytest.mark.parametrize("model", [PrintedSSP, PrintedAdaSSP])
def test_unknown_variants_are_refused(model: type[PrintedMoments]) -> None:
    for variant in ("exact", "wang"):
        with pytest.raises(GuaranteeError, match="unknown variant"):
            model(1.0, 1e-6, **BOUNDS, variant=variant).fit(*table(20))


@pytest.mark.parametrize("model", [PrintedSSP, PrintedAdaSSP, PrintedRobustRegression])
def test_no_ledger_can_be_given(model: type) -> None:
    with pytest.raises(TypeError, match="ledger"):
        model(1.0, 1e-6, **BOUNDS, ledger="a.ledger")


def printed_robust(first: str, width: int = 10) -> PrintedRobustRegression:
    model = PrintedRobustRegression(0.9, 1e-6, **BOUNDS, first=first, entropy=SeededEntropy(1))
    with pytest.warns(DpgramWarning, match="EXPECTED"):
        return model.fit(*table(50, width))


@pytest.mark.parametrize(("first", "true_epsilon"), [("gaussian", 2.754), ("laplace", 4.242)])
def test_mean_cdp_bounds_the_mean_and_not_epsilon(first: str, true_epsilon: float) -> None:
    fit = printed_robust(first)
    assert fit.guarantee_.epsilon > 2.5 > fit.claimed_.epsilon
    assert delta_of(fit.event_, 0.9) > 1e-3
    step = math.sqrt(0.9 / 5)
    assert 10 * step * math.tanh(step / 2) <= 0.9  # the expected loss of pure steps, as printed
    assert fit.guarantee_.epsilon == pytest.approx(true_epsilon, rel=1e-3)


def test_the_truth_of_mean_cdp_is_close_to_its_zcdp_conversion() -> None:
    """2J pure steps of ε' are Jε'²-zCDP, whose ε is above the exact one, and not far above."""
    exact, rho = printed_robust("laplace").guarantee_.epsilon, 0.9
    assert exact < rho + 2.0 * math.sqrt(rho * math.log(1e6))
    assert exact > 0.4 * (rho + 2.0 * math.sqrt(rho * math.log(1e6)))


@pytest.mark.parametrize("wrong", [{"delta": 0.0}, {"first": "wishart"}, {"iterations": 0}, {"p": 2.0}])
def test_printed_robust_regression_refuses(wrong: dict[str, object]) -> None:
    model = PrintedRobustRegression(0.9, 1e-6, **BOUNDS).set_params(**wrong)
    with pytest.raises(GuaranteeError):
        model.fit(*table(20))
