"""Each erratum as a check against the as-printed variant, and the generated page."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from dpgram.audit import clopper_pearson_lower, clopper_pearson_upper
from dpgram.core.noise import SeededEntropy
from dpgram.errors import MechanismError
from dpgram.privacy.adjacency import AddRemove, Adjacency, ReplaceOne
from dpgram.privacy.curves.wishart import AdditiveWishartCurve
from dpgram.privacy.curves.wishart_calibrate import sketch_ratio_at_most
from dpgram.privacy.guarantee import Guarantee, gdp_mu_at_most
from dpgram_papers import errata
from dpgram_papers.amin import PrintedEigenvectors, PrintedLaplace
from dpgram_papers.amin_sampler import PrintedSampler
from dpgram_papers.analyze_gauss import AnalyzeGauss
from dpgram_papers.kalaja import SufficientStatistics
from dpgram_papers.park_welling import OneSidedWishart, concentrated_overshoot, divergence_ratio
from dpgram_papers.sheffet import (
    PrintedAdaptive,
    PrintedInverseWishart,
    PrintedSketch,
    PrintedWishart,
    corollary_rows,
)
from dpgram_papers.sheffet_inverse import PrintedInverseNoise
from dpgram_papers.wishart_degrees import wishart_degrees_at_least

PROJECT = Path(__file__).resolve().parents[3]
USUAL = Guarantee(1.0, 1e-6)
SMALL = Guarantee(0.1, math.exp(-9.0))


def test_the_page_is_current() -> None:
    committed = (PROJECT / "docs" / "reference" / "errata.md").read_text(encoding="utf-8")
    assert committed == errata.page(), "run: python -m dpgram_papers.errata > docs/reference/errata.md"


def test_the_page_marks_what_is_broken_and_nothing_else() -> None:
    broken = {variant.name for variant in errata.variants() if not variant.private}
    assert broken == {
        "analyze-gauss-as-in-sheffet",
        "sketch-B.2",
        "inverse-noise-B.5",
        "one-sided-wishart",
        "sampler-printed",
        "ssp-wang-code",
    }


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0952), (1.0, 0.6321)])
def test_one_sided_wishart_noise_has_infinite_losses(epsilon: float, delta: float) -> None:
    variant = OneSidedWishart(claimed=Guarantee(epsilon))
    assert variant.true_delta(epsilon) == pytest.approx(delta, abs=5e-5)
    assert variant.true_epsilon(0.9 * delta) == math.inf
    # The exact curve of additive Wishart noise says the same: m = 2 spare degrees, τ = 2ε'.
    curve = AdditiveWishartCurve(adjacency=AddRemove(), degrees=2.0, ratio=2.0 * epsilon)
    for asked in (0.0, 0.5 * epsilon, epsilon, 20.0):
        assert curve.delta(asked) == pytest.approx(variant.true_delta(asked), rel=1e-9)


def test_the_series_of_park_and_welling_is_cut_on_the_wrong_side() -> None:
    for total in (0.1, 1.0, 5.0):
        for iterations in (1, 10, 100):
            assert concentrated_overshoot(total, iterations) > 1.0
            assert divergence_ratio(total, iterations) < 1.0


def test_sheffets_analyze_gauss_forgot_a_square_and_a_root() -> None:
    for epsilon, private in ((0.1, False), (3.0, True)):
        assert AnalyzeGauss(claimed=Guarantee(epsilon, 1e-6), constant="sheffet").private is private
    printed = AnalyzeGauss(claimed=USUAL, constant="sheffet")
    assert printed.private  # ε = 1 hides the missing square, but not the missing √2
    assert not AnalyzeGauss(claimed=USUAL, constant="sheffet", adjacency=ReplaceOne()).private


def test_the_classical_constant_is_loose_and_fails_for_large_epsilon() -> None:
    assert AnalyzeGauss(claimed=USUAL).sigma > 1.2 / gdp_mu_at_most(1.0, 1e-6)
    assert not AnalyzeGauss(claimed=Guarantee(20.0, 1e-3)).private


@pytest.mark.parametrize("claimed", [SMALL, USUAL, Guarantee(3.0, 1e-6)])
@pytest.mark.parametrize("theorem", ["3.1", "B.1"])
def test_sketch_theorems_hold_and_are_loose(claimed: Guarantee, theorem: str) -> None:
    for rows in (44, 200):
        variant = PrintedSketch(claimed=claimed, rows=rows, theorem=theorem)
        assert variant.private
        needed = 1.0 / sketch_ratio_at_most(claimed, AddRemove(), degrees=rows)
        assert variant.ridge > (6.0 if theorem == "3.1" else 3.0) * needed


def test_corollary_b2_lost_a_factor_and_squared_another() -> None:
    assert PrintedSketch(claimed=USUAL, rows=44, theorem="B.2").private
    assert not PrintedSketch(claimed=Guarantee(0.1, 1e-6), rows=44, theorem="B.2").private
    log_term = math.log(4e6)
    printed, meant = (corollary_rows(USUAL, 1e5, corrected=c) for c in (False, True))
    assert meant / printed == pytest.approx(log_term, rel=1e-3)


@pytest.mark.parametrize(("claimed", "least_k"), [(SMALL, 388), (Guarantee(0.5, 1e-6), 107), (USUAL, 64)])
def test_additive_wishart_theorem_holds_and_is_loose(claimed: Guarantee, least_k: int) -> None:
    variant = PrintedWishart(claimed=claimed, width=22)
    assert variant.private
    spare = wishart_degrees_at_least(claimed, AddRemove(), ratio=1.0)
    assert spare + 21 == least_k
    assert (variant.degrees - 21) / spare > (9.0 if claimed != USUAL else 6.0)
    assert PrintedWishart(claimed=claimed, width=22, theorem="B.3").degrees <= variant.degrees


@pytest.mark.parametrize("theorem", ["5.1", "B.4"])
def test_posterior_theorems_hold_and_are_loose(theorem: str) -> None:
    for claimed, needed in ((SMALL, 7557.4), (USUAL, 1335.7)):
        variant = PrintedInverseWishart(claimed=claimed, degrees=100_022, theorem=theorem)
        assert variant.private
        assert variant.prior > 2.4 * needed


def test_the_posterior_of_the_appendix_has_no_prior_for_a_large_epsilon() -> None:
    limit = 2.0 * math.log(4e6)
    for epsilon in (31.0, limit):
        printed = PrintedInverseWishart(claimed=Guarantee(epsilon, 1e-6), degrees=44, theorem="B.4")
        adaptive = PrintedAdaptive(
            claimed=Guarantee(2 * epsilon, 2e-6), degrees=44, algorithm=5, appendix=True
        )
        for variant, field in ((printed, "prior"), (adaptive, "largest_ridge")):
            with pytest.raises(MechanismError, match=r"epsilon < 2 ln\(4/delta\) = 30.4"):
                getattr(variant, field)
    assert PrintedInverseWishart(claimed=Guarantee(0.99 * limit, 1e-6), degrees=44, theorem="B.4").prior > 0
    assert PrintedInverseWishart(claimed=Guarantee(31.0, 1e-6), degrees=44, theorem="5.1").prior > 0


@pytest.mark.parametrize("algorithm", [2, 5])
def test_the_reconstructed_adaptive_algorithms_are_valid(algorithm: int) -> None:
    for claimed in (SMALL, USUAL):
        variant = PrintedAdaptive(claimed=claimed, degrees=44, algorithm=algorithm)
        assert variant.private
        assert variant.true_delta(0.4 * claimed.epsilon) == 1.0


def test_theorem_b5_has_the_wrong_units() -> None:
    claimed = Guarantee(0.5, 1e-6)
    short = PrintedInverseNoise(claimed=claimed, bound=0.1, surplus=1.0)
    assert not short.private
    assert PrintedInverseNoise(claimed=claimed, bound=1.0, surplus=1.0).private
    needed = short.sensitivity / gdp_mu_at_most(0.5, 1e-6)
    assert 7.0 < needed / short.sigma < 12.0
    # What is true does not change when rows and noise are scaled alike; what is printed does.
    tenfold = PrintedInverseNoise(claimed=claimed, bound=1.0, surplus=1.0)
    assert short.sensitivity == pytest.approx(100.0 * tenfold.sensitivity)
    assert short.sigma == tenfold.sigma


def test_the_sensitivity_under_the_promise_of_b5_is_attained_and_not_passed() -> None:
    variant = PrintedInverseNoise(claimed=USUAL, bound=0.5, surplus=0.3)
    common = variant.promise * np.eye(3)
    rows = 0.5 * np.eye(3)
    one, other = (np.linalg.inv(common + np.outer(row, row)) for row in rows[:2])
    assert np.linalg.norm(one - other) == pytest.approx(variant.sensitivity)
    generator = np.random.default_rng(1)
    for _ in range(300):
        x, y = (0.5 * v / np.linalg.norm(v) for v in generator.standard_normal((2, 3)))
        base = generator.standard_normal((3, 3))
        base = base @ base.T
        worst = min(np.linalg.eigvalsh(base + np.outer(v, v))[0] for v in (x, y))
        base += (variant.promise - worst) * np.eye(3)  # the promise holds for both, with equality for one
        moved = np.linalg.inv(base + np.outer(x, x)) - np.linalg.inv(base + np.outer(y, y))
        assert np.linalg.norm(moved) <= variant.sensitivity * (1.0 + 1e-12)


def test_amins_constants_are_twice_and_four_times_too_careful() -> None:
    claimed = Guarantee(1.0)
    assert PrintedEigenvectors(claimed=claimed).true_epsilon(0.0) == pytest.approx(0.75, rel=1e-3)
    added = PrintedEigenvectors(claimed=claimed, adjacency=AddRemove())
    assert added.true_epsilon(0.0) == pytest.approx(0.375, rel=1e-3)
    for width in (5, 22, 100):
        assert PrintedLaplace(claimed=claimed, width=width).true_epsilon(0.0) < 0.5


def test_the_printed_sampler_is_not_private_and_gets_worse_with_width() -> None:
    found = [PrintedSampler(claimed=Guarantee(1.0), width=width) for width in (8, 20, 50)]
    assert not any(variant.private for variant in found)
    deltas = [variant.true_delta(1.0) for variant in found]
    assert deltas == sorted(deltas)
    assert deltas[1] == pytest.approx(0.201, abs=2e-3)
    with pytest.raises(MechanismError):
        PrintedSampler(claimed=Guarantee(1.0), width=7)


def test_the_refuting_pair_agrees_with_draws() -> None:
    """Draws of the printed sampler on that pair, gap 10⁴; Clopper–Pearson bounds with α = 10⁻⁴ each."""
    width, runs, gap, asked = 8, 300, 1e4, 1.0
    variant = PrintedSampler(claimed=Guarantee(4.0), width=width)
    entropy = SeededEntropy(3)
    common = np.diag([gap, gap, *np.zeros(width - 2)])
    row = np.zeros((width, width))
    row[1, 1] = 1.0
    hits = [
        sum(variant.draw(gram, entropy)[0, 0] > 0.7 for _ in range(runs)) for gram in (common, common + row)
    ]
    p, q = clopper_pearson_lower(hits[0], runs, 1e-4), clopper_pearson_upper(hits[1], runs, 1e-4)
    shown = float(p - math.exp(asked) * q)
    exact = variant.true_delta(asked)
    assert 0.25 * exact < shown <= exact
    # The law it should have drawn from is 1-DP here (c = 1, add/remove), so the printed rule is the fault.
    assert shown > 0.0


@pytest.mark.parametrize(
    ("algorithm", "constant", "multiplier"),
    [("adassp", "wang", 11.85), ("adassp", "kalaja", 16.5), ("ssp", "wang-code", 3.899)],
)
def test_noise_multipliers_of_the_regression_papers(algorithm: str, constant: str, multiplier: float) -> None:
    variant = SufficientStatistics(claimed=USUAL, algorithm=algorithm, constant=constant)
    assert variant.sigma == pytest.approx(multiplier, rel=1e-3)


def test_what_the_regression_papers_really_spend() -> None:
    assert SufficientStatistics(claimed=USUAL).needed_sigma == pytest.approx(7.32, rel=1e-3)
    assert SufficientStatistics(claimed=USUAL).true_epsilon(1e-6) == pytest.approx(0.6, abs=0.01)
    coded = SufficientStatistics(claimed=USUAL, algorithm="ssp", constant="wang-code")
    assert coded.true_epsilon(1e-6) == pytest.approx(1.59, abs=0.01)
    assert not coded.private
    assert SufficientStatistics(claimed=Guarantee(0.4, 1e-6)).step_is_valid
    assert not SufficientStatistics(claimed=Guarantee(0.5, 1e-6)).step_is_valid
    assert SufficientStatistics(claimed=Guarantee(0.5, 1e-6)).private


@pytest.mark.parametrize(
    ("algorithm", "relation", "squares"),
    [
        ("ssp", AddRemove(), 2.0),
        ("adassp", AddRemove(), 3.0),
        ("ssp", ReplaceOne(), 4.5),
        ("adassp", ReplaceOne(), 5.5),
    ],
)
def test_the_analytic_constant_is_worth_its_claim_and_no_more(
    algorithm: str, relation: Adjacency, squares: float
) -> None:
    """Its true ε, from the curve of the joint release, is the claimed one under either relation."""
    for claimed in (USUAL, Guarantee(0.1, 1e-9), Guarantee(5.0, 1e-3)):
        variant = SufficientStatistics(
            claimed=claimed, adjacency=relation, algorithm=algorithm, constant="analytic"
        )
        assert variant.private
        assert variant.true_epsilon(claimed.delta) == pytest.approx(claimed.epsilon, rel=1e-4)  # its search
        assert (variant.sigma * variant.joint_mu) ** 2 == pytest.approx(squares, rel=1e-9)


def test_two_rows_attain_the_joint_shift_of_a_replaced_row() -> None:
    """|ΔXᵀX|² + |ΔXᵀy|² over pairs of rows of length 1 with |y| ≤ 1: 9/2, at 60° or 120°."""
    angles = np.linspace(0.0, np.pi, 721)
    seen = 0.0
    for angle in angles:
        one, other = np.array([1.0, 0.0]), np.array([np.cos(angle), np.sin(angle)])
        for y in (-1.0, -0.5, 0.0, 0.5, 1.0):
            matrix = np.outer(one, one) - np.outer(other, other)
            seen = max(seen, float((matrix**2).sum() + ((one - y * other) ** 2).sum()))
    assert seen == pytest.approx(4.5, rel=1e-6)
    variant = SufficientStatistics(claimed=USUAL, adjacency=ReplaceOne(), algorithm="ssp")
    assert (variant.sigma * variant.joint_mu) ** 2 == pytest.approx(seen, rel=1e-6)
