"""The closed form against simulated noise, and the places where the library must refuse or warn."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.analysis.tables import encode, exact_moments, insurance, insurance_schema

from dpgram.analysis.bootstrap import bootstrap
from dpgram.analysis.design import build_design
from dpgram.analysis.estimand import Kind
from dpgram.analysis.inference import infer
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.regress import regress
from dpgram.analysis.trust import CAUTION_INFLATION
from dpgram.analysis.unshrunken import solve, unshrunken
from dpgram.errors import AnalysisError, DpgramWarning
from dpgram.noise import (
    AdditiveWishart,
    EntrywiseLaplace,
    InverseWishart,
    MatrixLaplace,
    SymmetricGaussian,
    WishartSketch,
)

TABLE = insurance(20_000)
SCHEMA = insurance_schema(weights=True)
GRAM = encode(SCHEMA, TABLE).T @ encode(SCHEMA, TABLE)
LAWS = {
    "gaussian": SymmetricGaussian(sigma=70.0),
    "matrix-laplace": MatrixLaplace(theta=0.06, width=SCHEMA.width),
    "entrywise": EntrywiseLaplace(scale=40.0, diagonal_scale=20.0),
    "wishart": AdditiveWishart(scale=4.0, degrees=150),
}


def noisy(law: str, seed: int) -> Moments:
    noise = EncodedNoise.of(LAWS[law])
    gram = noise.redraw(GRAM, np.random.default_rng(seed))
    return Moments(gram=gram, schema=SCHEMA, noise=noise, radius=SCHEMA.max_norm_squared**0.5)


@pytest.mark.parametrize(
    ("target", "on", "intercept"),
    [
        ("charges", ["age", "bmi", "smoker", "active"], True),
        ("smoker=yes", ["age", "charges"], True),
        ("charges", ["age", "bmi"], False),
    ],
)
@pytest.mark.parametrize("law", LAWS)
def test_standard_errors_and_bias_against_simulated_noise(
    law: str, target: str, on: list[str], intercept: bool
) -> None:
    """400 redraws: a standard deviation is known to 3.5%, so 15% is four of its errors: α ≈ 10⁻⁴ each."""
    exact = Moments(
        gram=GRAM, schema=SCHEMA, noise=EncodedNoise.of(SymmetricGaussian(sigma=0.0)), radius=10.0
    )
    truth = infer(exact, build_design(exact, target, on, intercept=intercept), "table").estimate
    estimates, errors = [], []
    for seed in range(400):
        moments = noisy(law, seed)
        found = infer(moments, build_design(moments, target, on, intercept=intercept), "table")
        estimates.append(found.estimate)
        errors.append(found.std_errors)
    spread = np.std(estimates, axis=0)
    np.testing.assert_allclose(np.sqrt(np.mean(np.square(errors), axis=0)), spread, rtol=0.15)
    assert (np.abs(np.mean(estimates, axis=0) - truth) < 4.5 * spread / 20).all()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**16), width=st.integers(2, 6), law=st.sampled_from(sorted(LAWS)))
def test_residual_covariance_is_the_noises(seed: int, width: int, law: str) -> None:
    """Against the exact second moments, built cell by cell from independent cells."""
    rng = np.random.default_rng(seed)
    noise = EncodedNoise.of(LAWS[law])
    residual, basis = rng.normal(size=width), rng.normal(size=(width, 3))
    covariance = np.zeros((3, 3))
    for i in range(width):
        for j in range(i + 1):
            cell = np.zeros((width, width))
            cell[i, j] = cell[j, i] = 1.0
            move = basis.T @ cell @ residual
            variance = noise.diagonal_sd**2 if i == j else noise.offdiagonal_sd**2
            covariance += variance * np.outer(move, move)
    np.testing.assert_allclose(noise.residual_covariance(residual, basis), covariance, rtol=1e-9, atol=1e-6)
    shape = basis @ basis.T
    expected = sum(
        (noise.diagonal_sd**2 if i == j else 4 * noise.offdiagonal_sd**2) * shape[i, j] ** 2
        for i in range(width)
        for j in range(i + 1)
    )
    assert noise.functional_variance(shape) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("rotate", [False, True])
def test_privacy_math_formula_in_plain_coordinates(rotate: bool) -> None:
    """A⁻¹[(σ²/2)((1+|θ|²)I + θθᵀ)]A⁻¹ for a selection of columns of a larger matrix, when noise is small."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (5000, 8))
    gram = rows.T @ rows
    sigma = 1e-3
    basis = np.eye(8)[:, [0, 2, 5]]
    if rotate:
        basis = basis @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    found = solve(gram, basis, np.eye(8)[7], EncodedNoise.of(SymmetricGaussian(sigma=sigma)))
    A, b = basis.T @ gram @ basis, basis.T @ gram[:, 7]
    theta = np.linalg.solve(A, b)
    inverse = np.linalg.inv(A)
    expected = inverse @ (sigma**2 / 2 * ((1 + theta @ theta) * np.eye(3) + np.outer(theta, theta))) @ inverse
    np.testing.assert_allclose(found.privacy_covariance, expected, rtol=1e-6)
    np.testing.assert_allclose(found.theta, theta, rtol=1e-6)


def test_the_correction_removes_the_inflation_of_a_noisy_inverse() -> None:
    """At κ ≈ 1.15 plain solutions are too long by several percent; corrected ones are not."""
    rng = np.random.default_rng(2)
    width, sigma = 20, 1.0
    A = np.diag(np.full(width, 11.0))
    theta = np.full(width, 1.0)
    gram = np.zeros((width + 1, width + 1))
    gram[:-1, :-1], gram[-1, :-1], gram[:-1, -1] = A, A @ theta, A @ theta
    gram[-1, -1] = theta @ A @ theta + 50.0
    law = SymmetricGaussian(sigma=sigma)
    noise = EncodedNoise.of(law)
    plain, corrected, residuals, inverses = [], [], [], []
    for _ in range(800):
        noisy_gram = law.redraw(gram, rng)
        found = solve(noisy_gram, np.eye(width + 1)[:, :-1], np.eye(width + 1)[-1], noise)
        corrected.append(found.theta.mean())
        residuals.append(found.residual_sum)
        inverses.append(np.trace(found.resolvent))
        plain.append(np.linalg.solve(noisy_gram[:-1, :-1], noisy_gram[:-1, -1]).mean())
    assert np.mean(plain) > 1.06
    assert np.mean(corrected) == pytest.approx(1.0, abs=0.015)
    assert np.mean(inverses) == pytest.approx(width / 11.0, rel=0.01)
    assert np.mean(residuals) == pytest.approx(50.0, abs=4 * np.std(residuals) / 28)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(-50, 50), min_size=1, max_size=12),
    sigma=st.floats(1e-3, 30),
)
@example(values=[1.0, 2e-323], sigma=1.0)
@example(values=[2e-323, 1e-310, 0.0], sigma=30.0)
@example(values=[0.0, 0.0, 0.0], sigma=0.7)
def test_the_shift_solves_its_equation_for_any_spectrum(values: list[float], sigma: float) -> None:
    width = len(values)
    if width == 1 and abs(values[0]) < 1e-3:
        values = [1.0]
    gram = np.diag([*values, 1000.0])
    noise = EncodedNoise.of(SymmetricGaussian(sigma=sigma))
    found = solve(gram, np.eye(width + 1)[:, :-1], np.eye(width + 1)[-1], noise)
    expected = sigma**2 / 2 * (1 - 1 / width) * np.trace(found.resolvent)
    assert found.shift == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert width == 1 or np.linalg.eigvalsh(found.resolvent).min() > 0


def test_intervals_without_noise_are_symmetric_and_with_noise_contain_the_estimate() -> None:
    for law in ("gaussian", "matrix-laplace"):
        found = infer(noisy(law, 0), build_design(noisy(law, 0), "charges"))
        narrow, wide = found.conf_int(0.5), found.conf_int(0.99)
        assert (wide[:, 0] < narrow[:, 0]).all()
        assert (narrow[:, 0] < found.estimate).all()
        assert (found.estimate < narrow[:, 1]).all()
        assert (narrow[:, 1] < wide[:, 1]).all()


@settings(max_examples=30, deadline=None)
@given(level=st.floats(0.5, 0.999), seed=st.integers(0, 200))
def test_tests_and_intervals_agree(level: float, seed: int) -> None:
    """Zero lies in the interval of level 1−α exactly when the p-value exceeds α."""
    moments = noisy("gaussian", seed)
    found = infer(moments, build_design(moments, "charges"))
    ends, p_values = found.conf_int(level), found.p_values()
    inside = (ends[:, 0] <= 0) & (ends[:, 1] >= 0)
    clear = np.abs(p_values - (1 - level)) > 1e-9
    assert (inside == (p_values > 1 - level))[clear].all()


def test_population_intervals_are_wider_than_the_tables() -> None:
    moments = noisy("gaussian", 1)
    design = build_design(moments, "charges")
    assert (infer(moments, design).std_errors > infer(moments, design, "table").std_errors).all()


def test_meaningless_inference_is_refused_in_words() -> None:
    moments = exact_moments(insurance_schema(), insurance(2000), sigma=600.0)
    fit = regress(moments, "charges")
    assert fit.inference().inflation > 1.5
    for call in (fit.conf_int, fit.cov_params, lambda: fit.bse, lambda: fit.f_test("smoker"), fit.bootstrap):
        with pytest.raises(AnalysisError, match="privacy noise is too large"):
            call()
    for call in (fit.rsquared_estimate, fit.residual_variance):
        with pytest.raises(AnalysisError, match="cannot be judged"):
            call()
    text = fit.summary()
    assert "No intervals: the privacy noise is too large" in text
    assert "std. error" not in text
    frame = fit.to_frame()
    assert frame["low"].null_count() == len(frame)
    assert frame["fitted"].null_count() == 0


def test_noise_near_the_limit_comes_with_a_caution() -> None:
    for sigma in range(60, 400, 10):
        moments = exact_moments(insurance_schema(), insurance(2000), sigma=float(sigma))
        found = regress(moments, "charges", ["age", "bmi", "active"]).inference()
        if found.refusal is None and found.inflation > CAUTION_INFLATION:
            assert any("close to what these features can bear" in caution for caution in found.cautions)
            break
    else:
        pytest.fail("no noise level between calm and refusal was met")


def test_a_fit_tells_a_caution_once() -> None:
    """However many of its answers are asked for, and wherever; another fit tells it again."""
    clipped = replace(noisy("gaussian", 0), radius=1.5)
    for fit in (regress(clipped, "charges"), regress(clipped, "charges", ["age"])):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            _ = fit.params, fit.bse, fit.tvalues, fit.pvalues
            fit.conf_int()
            fit.cov_params()
            fit.t_test("age")
        assert len([1 for each in said if "clipped to the radius 1.5" in str(each.message)]) == 1
        (where,) = {each.filename for each in said}
        assert where == __file__


@pytest.mark.parametrize("kind", ["population", "table"])
def test_an_active_clip_warns_and_is_named(kind: Kind) -> None:
    clipped = replace(noisy("gaussian", 0), radius=1.5)
    fit = regress(clipped, "charges")
    with pytest.warns(DpgramWarning, match="clipped to the radius 1.5"):
        fit.conf_int(kind=kind)
    assert "rows longer than 1.5 scaled down" in fit.inference(kind).meaning
    plain = regress(noisy("gaussian", 0), "charges")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain.conf_int(kind=kind)
    assert "scaled down" not in plain.inference(kind).meaning
    assert "Caution: rows were clipped" in fit.summary(kind=kind)


def test_the_summary_says_that_population_intervals_assume_one_error_variance() -> None:
    fit = regress(noisy("gaussian", 0), "charges")
    said = "Assumed: the error variance is the same for all rows"
    assert said in " ".join(fit.summary().split())
    assert said in fit._repr_html_()
    assert said not in " ".join(fit.summary(kind="table").split())


def test_the_error_variance_has_an_interval_for_the_table_only() -> None:
    """Noise of 20 draws; the population's would need the fourth moment of the errors."""
    fit = regress(noisy("gaussian", 0), "charges")
    with pytest.raises(AnalysisError, match="fourth moment"):
        fit.residual_variance().conf_int()
    sd = next(line for line in fit.summary().splitlines() if line.startswith("error sd"))
    assert "interval" not in sd
    exact = regress(replace(noisy("gaussian", 0), gram=GRAM), "charges").residual_variance("table").estimate
    for seed in range(20):
        low, high = regress(noisy("gaussian", seed), "charges").residual_variance("table").conf_int(0.999)
        assert low <= exact <= high


def test_unknown_row_count_refuses_the_population_only() -> None:
    moments = exact_moments(insurance_schema(constant=False), insurance(2000), sigma=3.0)
    moments = replace(moments, complete_groups=False)
    design = build_design(moments, "charges", ["age", "bmi"], intercept=False)
    assert infer(moments, design, "table").refusal is None
    refusal = infer(moments, design, "population").refusal
    assert refusal is not None
    assert "number of rows" in refusal
    assert infer(replace(moments, public_rows=2000), design, "population").refusal is None


def rare_level(seed: int | None = None) -> Moments:
    """Ten of 6,000 rows have one level, beside columns that are well determined."""
    table = insurance(6000, seed=5)
    table["region"] = np.where(table["region"] == "west", "east", table["region"])
    table["region"][::600] = "west"
    return exact_moments(insurance_schema(), table, sigma=0.0 if seed is None else 40.0, seed=seed or 0)


def test_a_lost_direction_costs_only_its_own_coefficients() -> None:
    """No interval for the rare level, honest ones for the rest (95%, 150 releases)."""
    truth = regress(rare_level(), "charges", method="ols").values
    hits, lost = [], 0
    for seed in range(150):
        found = regress(rare_level(seed), "charges").inference("table")
        assert found.refusal is None
        assert found.trusted.sum() >= len(found.names) - 1
        ends = found.conf_int()
        hits.append(((ends[:, 0] <= truth) & (truth <= ends[:, 1]))[found.trusted])
        west = found.names.index("region=west")
        if not found.trusted[west]:
            lost += 1
            assert ends[west].tolist() == [-np.inf, np.inf]
            assert np.isnan(found.std_errors[west])
            assert np.isnan(found.p_values()[west])
    assert lost > 75  # now and then noise makes ten rows look like a hundred; the interval holds even then
    assert 0.93 <= np.mean(np.concatenate(hits)) <= 0.985


def test_a_lost_direction_is_told() -> None:
    fit = regress(rare_level(seed=0), "charges")
    assert "no interval for region=west" in fit.summary()
    assert fit.to_frame().filter(name="region=west")["low"].item() is None
    with pytest.warns(DpgramWarning) as record:
        assert np.isfinite(fit.conf_int()["age"]).all()
    assert any("no interval for region=west" in str(warning.message) for warning in record)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        with pytest.raises(AnalysisError, match="no interval for region=west"):
            fit.f_test("region")


def test_bootstrap_agrees_with_the_closed_form_and_is_reproducible() -> None:
    moments = noisy("matrix-laplace", 4)
    design = build_design(moments, "charges", ["age", "bmi", "smoker"])
    for kind in ("population", "table"):
        closed = infer(moments, design, kind)
        again = bootstrap(moments, design, draws=300, kind=kind, seed=1)
        np.testing.assert_allclose(again.std_errors, closed.std_errors, rtol=0.2)
        np.testing.assert_allclose(
            np.diff(again.conf_int(), axis=1), np.diff(closed.conf_int(), axis=1), rtol=0.2
        )
        same = bootstrap(moments, design, draws=300, kind=kind, seed=1)
        np.testing.assert_array_equal(again.replicates, same.replicates)
    with pytest.raises(AnalysisError, match="too few"):
        bootstrap(moments, design, draws=3)


@pytest.mark.parametrize(
    "law", [WishartSketch(ridge=200.0, rows=2000), InverseWishart(prior=100.0, degrees=3000)]
)
def test_sampled_releases_warn_and_the_bootstrap_follows_them(law: WishartSketch | InverseWishart) -> None:
    """Their error depends on the table: the closed form is cautious, the bootstrap closer to the truth."""
    published = law.redraw(GRAM, np.random.default_rng(1))
    noise = EncodedNoise.of(law.stand_in(published, np.random.default_rng(0)))
    assert not noise.added
    moments = Moments(gram=published, schema=SCHEMA, noise=noise, radius=SCHEMA.max_norm_squared**0.5)
    assert moments.rows == pytest.approx(20_000, rel=0.2)
    fit = regress(moments, "charges", ["age", "bmi", "smoker"])
    with pytest.warns(DpgramWarning, match="error depends on the table"):
        fit.conf_int()
    again = fit.bootstrap(60, kind="table")
    exact = replace(moments, gram=GRAM, noise=EncodedNoise.of(SymmetricGaussian(sigma=0.0)))
    truth = regress(exact, "charges", ["age", "bmi", "smoker"], method="ols").values
    assert (np.abs(again.inference.estimate - truth) < 5 * again.std_errors).all()
    assert (again.std_errors < again.inference.std_errors).all()


def test_mistakes_are_named() -> None:
    fit = regress(noisy("gaussian", 0), "charges", ["age"])
    with pytest.raises(AnalysisError, match="unknown kind"):
        fit.inference("sample")
    with pytest.raises(AnalysisError, match="probability"):
        fit.conf_int(1.0)
    with pytest.raises(AnalysisError, match="no degrees of freedom"):
        fit.inference("table").p_values("t")
    with pytest.raises(AnalysisError, match="no coefficient 'bmi'"):
        fit.f_test("bmi")


def test_dependent_features_are_refused() -> None:
    table = insurance(500)
    moments = exact_moments(insurance_schema(), table)
    twice = moments.gram.copy()
    age, bmi = (moments.schema.indices(name)[0] for name in ("age", "bmi"))
    twice[bmi], twice[:, bmi] = twice[age], twice[:, age]
    twice[bmi, bmi] = twice[age, age]
    with pytest.raises(AnalysisError, match="linearly dependent in this table"):
        unshrunken(*_pair(replace(moments, gram=twice)))


def _pair(moments: Moments) -> tuple[Moments, object]:
    return moments, build_design(moments, "charges", ["age", "bmi"])
