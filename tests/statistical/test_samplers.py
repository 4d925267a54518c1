"""The law of every sampler, with power both ways: the right scale is accepted, one 5% off is rejected.

Seeded sources are tested at α = 10⁻⁴ and cannot flake. The system's source cannot be seeded: it is tested at
α = 10⁻¹² with enough draws to reject a 5% error as surely, so a failure means a fault and not bad luck.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from dpgram.core.balls import ChiSquared
from dpgram.core.noise import Entropy, SeededEntropy, SystemEntropy, simulation
from dpgram.noise import MatrixLaplace
from dpgram.privacy.sampling.norm_laplace import norm_laplace
from dpgram.privacy.sampling.wisharts import added_rows, inverse_wishart, wishart

Floats = npt.NDArray[np.float64]
FACTORS = [(1.0, True), (0.95, False), (1.05, False)]
Source = tuple[Entropy, float]
SOURCES: dict[str, tuple[Callable[[], Entropy], float]] = {
    "seeded": (lambda: SeededEntropy(2), 1e-4),
    "system": (SystemEntropy, 1e-12),
}
COUNTS = {"discrete_gaussian": 46_000, "discrete_laplace": 92_000}
"""5% of the scale is fifteen standard errors of the sufficient statistic: seven for α, the rest for power."""


pytestmark = pytest.mark.system_entropy


@pytest.fixture(scope="module", params=SOURCES)
def source(request: pytest.FixtureRequest) -> Source:
    make, alpha = SOURCES[request.param]
    return make(), alpha


def gaussian_weight(k: Floats, scale: float) -> Floats:
    return np.exp(-0.5 * (k / scale) ** 2)


def laplace_weight(k: Floats, scale: float) -> Floats:
    return np.exp(-np.abs(k) / scale)


WEIGHTS = {"discrete_gaussian": gaussian_weight, "discrete_laplace": laplace_weight}
DRAWN: dict[tuple[str, str, float], Floats] = {}


def drawn(source: Source, law: str, scale: float) -> Floats:
    """One sample for each source, law and scale, whatever the order; the hypotheses are what varies."""
    entropy, _ = source
    key = (entropy.label, law, scale)
    if key not in DRAWN:
        fresh = SOURCES[entropy.label][0]()
        DRAWN[key] = getattr(fresh, law)(scale, COUNTS[law]).astype(float)
    return DRAWN[key]


def mean_p_value(values: Floats, mean: float, deviation: float) -> float:
    z = (values.mean() - mean) / (deviation / math.sqrt(len(values)))
    return float(2.0 * stats.norm.sf(abs(z)))


def pmf_p_value(sample: Floats, weight: Callable[[Floats, float], Floats], scale: float) -> float:
    """χ² of the observed integers against P(k) ∝ weight(k), cells of at least ten expected counts."""
    support = np.arange(-1000.0, 1001.0)
    probability = weight(support, scale)
    expected = len(sample) * probability / probability.sum()
    core = expected >= 10.0
    observed = np.array([np.count_nonzero(sample == k) for k in support[core]])
    inside, outside = observed.sum(), len(sample) - observed.sum()
    parts = np.append((observed - expected[core]) ** 2 / expected[core], 0.0)
    tail = len(sample) - expected[core].sum()
    if tail >= 1.0:
        parts[-1] = (outside - tail) ** 2 / tail
    assert inside + outside == len(sample)
    return float(stats.chi2.sf(parts.sum(), core.sum() - (tail < 1.0)))


SUFFICIENT = {"discrete_gaussian": np.square, "discrete_laplace": np.abs}


@pytest.mark.parametrize("law", WEIGHTS)
@pytest.mark.parametrize("scale", [0.8, 3.0])
@pytest.mark.parametrize(("factor", "accepted"), FACTORS)
def test_probabilities_at_a_small_scale(
    source: Source, law: str, scale: float, factor: float, accepted: bool
) -> None:
    """The mean of the sufficient statistic, k² or |k|, against its exact moments; then every probability."""
    sample, statistic = drawn(source, law, scale), SUFFICIENT[law]
    support = np.arange(-1000.0, 1001.0)
    probability = WEIGHTS[law](support, factor * scale)
    probability /= probability.sum()
    mean = probability @ statistic(support)
    deviation = math.sqrt(probability @ (statistic(support) - mean) ** 2)
    assert (mean_p_value(statistic(sample), mean, deviation) > source[1]) == accepted
    if accepted:
        assert pmf_p_value(sample, WEIGHTS[law], scale) > source[1]


@pytest.mark.parametrize("law", WEIGHTS)
@pytest.mark.parametrize("scale", [100.3, 5e9])
@pytest.mark.parametrize(("factor", "accepted"), FACTORS)
def test_scale_and_shape_at_a_large_scale(
    source: Source, law: str, scale: float, factor: float, accepted: bool
) -> None:
    """The same against the moments and the distribution of the continuous law."""
    sample = drawn(source, law, scale) / (factor * scale)
    deviation = math.sqrt(2.0) if law == "discrete_gaussian" else 1.0
    assert (mean_p_value(SUFFICIENT[law](sample), 1.0, deviation) > source[1]) == accepted
    if accepted:
        continuous = stats.norm() if law == "discrete_gaussian" else stats.laplace()
        spread = (simulation(0).random(len(sample)) - 0.5) / scale  # fills the gaps between the integers
        assert stats.kstest(sample + spread, continuous.cdf).pvalue > source[1]


@pytest.mark.parametrize("law", WEIGHTS)
def test_no_sign_and_no_parity_is_preferred(source: Source, law: str) -> None:
    entropy, alpha = source
    values = getattr(SOURCES[entropy.label][0](), law)(1e12, 20_000)
    for count in (np.count_nonzero(values > 0), sum(value & 1 for value in values)):
        assert stats.binomtest(int(count), 20_000).pvalue > alpha


@pytest.mark.parametrize(("shown", "accepted"), [(4, True), (5, False)])
def test_a_continued_laplace_draw_has_the_whole_law(shown: int, accepted: bool) -> None:
    """Draws cut at ±4 and continued follow the whole law; left as they are, they do not. α = 10⁻⁴."""
    from dpgram.core.noise import _unbounded

    entropy, scale = SeededEntropy(4), 3.0

    def cut(count: int) -> list[int]:
        return [max(-4, min(4, value)) for value in entropy.discrete_laplace(scale, count)]

    continued = np.array([_unbounded(value, shown, cut) for value in cut(20_000)], dtype=float)
    assert (pmf_p_value(continued, laplace_weight, scale) > 1e-4) == accepted


def gamma_difference_sf(shape: int, x: Floats) -> Floats:
    """P(G − G' > x), x ≥ 0, for independent Gamma(shape) with an integer shape."""
    total = np.zeros_like(x)
    for i in range(shape):
        for k in range(i + 1):
            moment = math.gamma(k + shape) / (2.0 ** (k + shape) * math.gamma(shape))
            total += math.comb(i, k) * x ** (i - k) * moment / math.factorial(i)
    return np.exp(-x) * total


def test_gamma_difference_formula() -> None:
    x = np.array([0.0, 0.5, 2.0])
    np.testing.assert_allclose(gamma_difference_sf(1, x), 0.5 * np.exp(-x))
    np.testing.assert_allclose(gamma_difference_sf(2, x), np.exp(-x) * (2.0 + x) / 4.0)


THETA = 1e-3


@pytest.fixture(scope="module")
def matrices() -> Floats:
    entropy = SeededEntropy(6)
    return np.stack([entropy.matrix_laplace(3, THETA) for _ in range(8_000)]).astype(float)


QUADRATIC_FORMS = {
    # uᵀEu has two Gamma((d+1)/2)/θ, an off-diagonal cell two Gamma(d+1)/(2θ), the trace two Gamma(d(d+1)/2)/θ
    "diagonal": (lambda e: e[:, 1, 1], 2, 1.0),
    "oblique": (lambda e: np.einsum("i,nij,j->n", [0.6, 0.0, 0.8], e, [0.6, 0.0, 0.8]), 2, 1.0),
    "off-diagonal": (lambda e: e[:, 0, 2], 4, 0.5),
    "trace": (lambda e: np.einsum("nii->n", e), 6, 1.0),
}


@pytest.mark.parametrize("form", QUADRATIC_FORMS)
@pytest.mark.parametrize(("factor", "accepted"), FACTORS)
def test_matrix_laplace_forms(matrices: Floats, form: str, factor: float, accepted: bool) -> None:
    """Each is a difference of two gamma variables; mean |x| and the whole distribution at α = 10⁻³."""
    take, shape, scale = QUADRATIC_FORMS[form]
    x = take(matrices) * THETA / (scale * factor)
    size = np.abs(x)
    expected = 2.0 * math.exp(math.lgamma(shape + 0.5) - math.lgamma(shape)) / math.sqrt(math.pi)
    assert (mean_p_value(size, expected, float(size.std())) > 1e-3) == accepted
    if accepted:

        def cdf(value: Floats) -> Floats:
            tail = gamma_difference_sf(shape, np.abs(value))
            return np.where(value > 0, 1.0 - tail, tail)

        assert stats.kstest(x, cdf).pvalue > 1e-3


def test_matrix_laplace_cells_are_uncorrelated_and_eigenvalues_agree_with_floats(matrices: Floats) -> None:
    cells = matrices[:, *np.tril_indices(3)]
    correlation = np.corrcoef(cells.T) - np.eye(6)
    assert np.abs(correlation).max() < 4.5 / math.sqrt(len(cells))
    law, generator = MatrixLaplace(theta=THETA, width=3), simulation(1)
    floats = np.stack([law.sample(3, generator) for _ in range(len(matrices))])
    for column in range(3):
        ours, theirs = (np.linalg.eigvalsh(e)[:, column] for e in (matrices, floats))
        assert stats.ks_2samp(ours, theirs).pvalue > 1e-3
        assert stats.ks_2samp(ours, 1.1 * theirs).pvalue < 1e-3 or column == 1


@pytest.fixture(scope="module")
def single_cells() -> Floats:
    entropy = SeededEntropy(12)
    return np.array([entropy.matrix_laplace(1, 0.3)[0, 0] for _ in range(12_000)], dtype=float)


@pytest.mark.parametrize(("factor", "accepted"), FACTORS)
def test_matrix_laplace_of_one_column_rounds_a_laplace_variable(
    single_cells: Floats, factor: float, accepted: bool
) -> None:
    """P(0) = 1 − e^(−θ/2), P(k) = sinh(θ/2) e^(−θ|k|), E|k| = 1/(2 sinh(θ/2)). α = 10⁻⁴."""
    theta = 0.3 / factor
    size = np.abs(single_cells)
    assert (mean_p_value(size, 0.5 / math.sinh(0.5 * theta), float(size.std())) > 1e-4) == accepted
    if accepted:

        def weight(k: Floats, rate: float) -> Floats:
            zero, other = -math.expm1(-0.5 * rate), math.sinh(0.5 * rate)
            return np.where(k == 0, zero, other * np.exp(-rate * np.abs(k)))

        assert pmf_p_value(single_cells, weight, theta) > 1e-4


@pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (0.75, False), (1.25, False)])
def test_matrix_laplace_of_the_system(factor: float, accepted: bool) -> None:
    """The same code on the system's bits. α < 10⁻¹²: the mean square of four draws has an error of 0.024."""
    width, theta = 60, 2.0**-30
    law = MatrixLaplace(theta=theta / factor, width=width)
    drawn = np.stack([SystemEntropy().matrix_laplace(width, theta) for _ in range(4)]).astype(float)
    below = drawn[:, *np.tril_indices(width, -1)] / law.offdiagonal_sd
    assert (abs(np.mean(below**2) - 1.0) < 0.2) == accepted


@pytest.mark.parametrize("factor", [0.95, 1.0, 1.05])
def test_generators_make_uniform_and_normal_floats(factor: float) -> None:
    """Under a fresh seed, α = 10⁻¹²."""
    generator = SystemEntropy().generator()
    normals = factor * generator.standard_normal(200_000)
    assert (stats.kstest(normals, "norm").pvalue > 1e-12) == (factor == 1.0)
    assert stats.kstest(generator.random(200_000), "uniform").pvalue > 1e-12


def wishart_inputs() -> tuple[npt.NDArray[np.int64], Floats]:
    """A Gram matrix of three correlated columns, and it with a ridge of 2^26."""
    rows = np.array([[5, 1, 0], [4, 3, 1], [-2, 6, 5], [1, -7, 2]], dtype=np.int64) * 3000
    return rows.T @ rows, rows.T @ rows + 2.0**26 * np.eye(3)


def forms(matrices: list[Floats], scale: Floats) -> tuple[Floats, Floats]:
    """aᵀWa/aᵀΣa ~ χ²_r for a fixed a, and tr(Σ⁻¹W) ~ χ²_{dr}."""
    a = np.array([1.0, -2.0, 0.5])
    inverse = np.linalg.inv(scale)
    return (
        np.array([a @ w @ a for w in matrices]) / (a @ scale @ a),
        np.array([np.trace(inverse @ w) for w in matrices]),
    )


def fits(values: Floats, degrees: int, factor: float) -> bool:
    """Whether values/factor look like χ²; α = 10⁻⁴."""
    return bool(stats.kstest(values / factor, stats.chi2(degrees).cdf).pvalue > 1e-4)


@pytest.mark.parametrize("degrees", [1, 2, 9, 60])
@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (0.8, False), (1.2, False)])
def test_chi_squared_numbers(degrees: int, factor: float, right: bool) -> None:
    entropy = SeededEntropy(degrees)
    found = np.array([float(ChiSquared(degrees, entropy.random_bytes).ball()) for _ in range(3000)])
    assert fits(found, degrees, factor) is right


@pytest.mark.parametrize(("shift", "right"), [(0.0, True), (0.15, False), (-0.15, False)])
def test_a_chi_squared_number_of_very_many_degrees_is_nearly_normal(shift: float, right: bool) -> None:
    entropy, degrees = SeededEntropy(7), 10**12
    found = np.array([float(ChiSquared(degrees, entropy.random_bytes).ball() - degrees) for _ in range(3000)])
    standard = found / math.sqrt(2.0 * degrees) + shift
    assert bool(stats.kstest(standard, stats.norm.cdf).pvalue > 1e-4) is right


@pytest.mark.parametrize("rows", [1, 2, 3, 20])
@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (0.85, False), (1.15, False)])
def test_wishart_forms(rows: int, factor: float, right: bool) -> None:
    """Also for fewer rows than columns."""
    gram, scale = wishart_inputs()
    entropy = SeededEntropy(rows)
    drawn = [wishart(gram, 2.0**26, rows, entropy.random_bytes).astype(float) * rows for _ in range(1500)]
    one, trace = forms(drawn, scale)
    # One form of one row says too little to tell 15% apart; the trace has three times the degrees.
    assert fits(trace, 3 * rows, factor) is right
    assert fits(one, rows, 1.0)


@pytest.mark.parametrize("degrees", [5, 30])
@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (0.85, False), (1.15, False)])
def test_inverse_wishart_forms(degrees: int, factor: float, right: bool) -> None:
    """S⁻¹ ~ Wishart(Σ⁻¹, ν)."""
    gram, scale = wishart_inputs()
    entropy = SeededEntropy(degrees)
    drawn = [inverse_wishart(gram, 2.0**26, degrees, entropy.random_bytes).astype(float) for _ in range(1500)]
    one, trace = forms([np.linalg.inv(s / (degrees - 4.0)) for s in drawn], np.linalg.inv(scale))
    assert fits(trace, 3 * degrees, factor) is right
    assert fits(one, degrees, 1.0)


@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (0.85, False), (1.15, False)])
def test_added_rows_forms(factor: float, right: bool) -> None:
    entropy = SeededEntropy(11)
    drawn = [added_rows(3, 2.0**30, 8, entropy.random_bytes).astype(float) for _ in range(1500)]
    one, trace = forms(drawn, 2.0**30 * np.eye(3))
    assert fits(trace, 24, factor) is right
    assert fits(one, 8, 1.0)


@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (0.85, False), (1.15, False)])
def test_norm_laplace_lengths_and_directions(factor: float, right: bool) -> None:
    entropy = SeededEntropy(12)
    drawn = np.array([norm_laplace(3, 1e9, entropy.random_bytes) for _ in range(2000)], dtype=float)
    lengths = np.linalg.norm(drawn, axis=1)
    assert fits(2e-9 * lengths, 6, factor) is right
    # By Archimedes, a coordinate of a uniform direction in three dimensions is uniform.
    assert stats.kstest(drawn[:, 1] / lengths, stats.uniform(-1.0, 2.0).cdf).pvalue > 1e-4
    assert abs(stats.spearmanr(drawn[:, 1] / lengths, lengths).statistic) < 4.0 / math.sqrt(len(drawn))
