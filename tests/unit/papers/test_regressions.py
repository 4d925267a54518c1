"""The regressions as printed: they warn, and state what their noise is truly worth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgram.core.noise import SeededEntropy
from dpgram.errors import DpgramWarning, GuaranteeError
from dpgram.privacy.accountant import delta_of
from dpgram_papers import regressions
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


def solved_matrix(
    model: type[PrintedMoments],
    variant: str,
    epsilon: float,
    monkeypatch: pytest.MonkeyPatch,
    seed: int = 5,
) -> np.ndarray:
    """The noisy second moments that a fit solves with."""
    seen = []

    def kept(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
        seen.append(matrix)
        return np.zeros_like(right)

    monkeypatch.setattr(regressions, "_least_squares", kept)
    with pytest.warns(DpgramWarning):
        model(epsilon, 1e-6, **BOUNDS, variant=variant, entropy=SeededEntropy(seed)).fit(*table(width=5))
    return seen[0]


@pytest.mark.parametrize(
    ("model", "variant", "symmetric"),
    [
        (PrintedSSP, "wang2018", False),
        (PrintedSSP, "kalaja2020", True),
        (PrintedAdaSSP, "wang2018", True),
        (PrintedAdaSSP, "kalaja2020", True),
    ],
)
def test_whether_the_noise_is_symmetric(
    model: type[PrintedMoments], variant: str, symmetric: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only that of the published SSP is not, and there no cell equals its mirror image."""
    matrix = solved_matrix(model, variant, 1.0, monkeypatch)
    above = np.triu_indices(5, 1)
    equal = np.isclose(matrix[above], matrix.T[above], rtol=1e-9, atol=0.0)
    assert equal.all() if symmetric else not equal.any()


@pytest.mark.parametrize("model", [PrintedSSP, PrintedAdaSSP])
@pytest.mark.parametrize(("variant", "identity"), [("wang2018", 1.0), ("kalaja2020", 0.0)])
def test_only_the_published_program_adds_the_identity(
    model: type[PrintedMoments], variant: str, identity: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mean of 300 cells of the diagonal, where λ = 0 and σ is at most 1.7: within 4.5 standard errors."""
    x, _ = table(width=5)
    cells = [np.diag(solved_matrix(model, variant, 10.0, monkeypatch, seed) - x.T @ x) for seed in range(60)]
    assert np.mean(cells) == pytest.approx(identity, abs=0.45)


@pytest.mark.parametrize("model", [PrintedSSP, PrintedAdaSSP])
def test_kalaja_mirrors_a_triangle(model: type[PrintedMoments], monkeypatch: pytest.MonkeyPatch) -> None:
    """Off the diagonal its deviation is that on it, σ: (Z + Zᵀ)/2 has σ/√2 there.

    60 fits of 10 cells: the ratio of the observed deviation to σ within 0.87 and 1.13, 4.5 standard errors.
    """
    x, _ = table(width=5)
    above = np.triu_indices(5, 1)
    cells = [
        (solved_matrix(model, "kalaja2020", 1.0, monkeypatch, seed) - x.T @ x)[above] for seed in range(60)
    ]
    parts = 2 if model is PrintedSSP else 3
    sigma = parts * math.sqrt(2.0 * math.log(1.25 * parts / 1e-6))
    assert np.std(cells) / sigma == pytest.approx(1.0, abs=0.13)


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
