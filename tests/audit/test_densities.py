"""Densities by which audits score: E_b[e^r; r < t] = P_a(r < t) for the true log-ratio r alone."""

from __future__ import annotations

import numpy as np
import pytest
from assurance.audits import SETTINGS
from assurance.densities import UNIT, LikelihoodRatio, log_densities, redrawn
from msgspec.structs import replace
from scipy.stats import ks_2samp

from dpgram.audit.gram import GramRun, worst_neighbours
from dpgram.core.noise import SeededEntropy, simulation
from dpgram.mechanisms import MECHANISMS, PublicFacts
from dpgram.noise import EigenvectorSampling
from dpgram.privacy.adjacency import adjacency

EXACT = [name for name in MECHANISMS if name != "matrix-laplace"]


def surplus(a: np.ndarray, b: np.ndarray) -> float:
    """E_b[e^r; r < t] − P_a(r < t) at t = −1 and 0, in standard errors."""
    found = []
    for t in (-1.0, 0.0):
        under_a, under_b = (a < t).astype(float), np.where(b < t, np.exp(np.minimum(b, t)), 0.0)
        error = np.sqrt(under_a.var() / len(a) + under_b.var() / len(b))
        if error > 0.0:  # ratios that are bounded may all be above t
            found.append(abs(under_b.mean() - under_a.mean()) / error)
    return float(max(found))


@pytest.mark.parametrize("name", EXACT)
def test_ratios_are_those_of_the_law(name: str) -> None:
    setting, facts = SETTINGS[name], PublicFacts(width=2, adjacency=adjacency("replace-one"))
    made = MECHANISMS[name](**setting.parameters).calibrated(setting.guarantee, facts)
    ratio = LikelihoodRatio(pair=worst_neighbours(facts)[0])
    law = GramRun(mechanism=made, gram=ratio.pair.a)(SeededEntropy(1)).noise
    a, b = ratio.simulated(law, 1_200, simulation(4))
    assert surplus(a, b) < 5.0
    assert surplus(2.0 * a, 2.0 * b) > 5.0
    assert surplus(0.5 * a, 0.5 * b) > 5.0


@pytest.mark.parametrize(
    ("name", "sharpness"),
    [("eigenvectors", "total"), ("eigenvectors-zcdp", "total"), ("deflation", "temperature")],
)
def test_directions_on_a_circle_have_the_law_that_is_stated(name: str, sharpness: str) -> None:
    """Von Mises' law against rejection on the sphere, cell by cell; not with blunter directions."""
    facts = PublicFacts(width=2, adjacency=adjacency("add-remove"))
    law = MECHANISMS[name]().calibrated(SETTINGS[name].guarantee, facts).expected(np.zeros(2))
    gram = np.array([[3.0, 1.0], [1.0, 2.0]]) * UNIT
    dice = simulation(5)
    by_rejection = np.stack([law.redraw(gram, dice) for _ in range(800)])

    def agreement(drawn: object) -> float:
        found = redrawn(drawn, gram, 8_000, dice)
        cells = ((0, 0), (0, 1), (1, 1))
        # Ties of eigenvalues leave cells at zero, but for rounding.
        return min(
            ks_2samp(*(np.rint(one[:, i, j]) for one in (found, by_rejection))).pvalue for i, j in cells
        )

    assert agreement(law) > 1e-4
    assert agreement(replace(law, **{sharpness: 0.3 * getattr(law, sharpness)})) < 1e-4


def test_directions_on_more_columns_are_refused() -> None:
    law = EigenvectorSampling(value_scale=1.0, total=1.0, rank=3, split="forecast", norm=1)
    with pytest.raises(ValueError, match="two columns only"):
        log_densities(law, np.eye(3), np.eye(3)[None])
    with pytest.raises(ValueError, match="two columns only"):
        redrawn(law, np.eye(3), 1, simulation(1))
