"""The noise laws: moments, operator norms, file form, and what a redraw is."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgram.core.noise import simulation
from dpgram.noise import InverseWishart, MatrixLaplace, NoiseLaw, SymmetricGaussian, WishartSketch, additive

LAWS = {
    "gaussian": SymmetricGaussian(sigma=3.0),
    "laplace": MatrixLaplace(theta=0.4, width=4),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_file_form_comes_back(law: NoiseLaw) -> None:
    written = msgspec.json.encode(law)
    assert msgspec.json.decode(written, type=NoiseLaw) == law


@pytest.mark.parametrize(
    "written",
    [
        b'{"type":"unheard-of","sigma":1.0}',
        b'{"type":"symmetric-gaussian","sigma":1.0,"more":2}',
        b'{"type":"symmetric-gaussian"}',
        b'{"sigma":1.0}',
    ],
)
def test_an_unknown_law_or_field_is_refused(written: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(written, type=NoiseLaw)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (0.95, False), (1.05, False)])
def test_sampled_deviations(law: NoiseLaw, factor: float, accepted: bool) -> None:
    """α = 10⁻⁶ a cell kind: the mean square of 40,000 matrices, against its own standard error."""
    generator = simulation(8)
    draws = np.stack([law.sample(4, generator) for _ in range(40_000)])
    assert np.array_equal(draws, draws.transpose(0, 2, 1))
    diagonal = (np.einsum("nii->ni", draws) ** 2).mean(axis=1)
    below = (draws[:, *np.tril_indices(4, -1)] ** 2).mean(axis=1)
    for squares, sd in ((diagonal, law.diagonal_sd), (below, law.offdiagonal_sd)):
        error = squares.std() / math.sqrt(len(squares))
        assert (abs(squares.mean() - (factor * sd) ** 2) < 4.9 * error) == accepted
    assert np.abs(draws.mean(axis=0)).max() < 5.0 * law.diagonal_sd / math.sqrt(len(draws))
    assert law.mean_diagonal == 0.0


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_redraw_is_the_gram_plus_a_sample(law: NoiseLaw) -> None:
    gram = np.diag([5.0, 2.0, 9.0, 1.0])
    np.testing.assert_array_equal(
        law.redraw(gram, simulation(2)), gram + law.sample(len(gram), simulation(2))
    )


@pytest.mark.parametrize(
    "law",
    [WishartSketch(ridge=1e-9, rows=40), InverseWishart(prior=1e-9, degrees=40)],
    ids=["sketch", "inverse"],
)
def test_a_direction_that_rounding_swallows_stops_no_redraw(law: WishartSketch | InverseWishart) -> None:
    """A file may hold such a matrix: its last direction is lost in the rounding of the first."""
    turn = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 1.0], [1.0, 0.0, -1.0]]) / 1.7
    gram = (turn.T * [1e22, 1e22, 1.0]) @ turn
    gram = 0.5 * (gram + gram.T)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(gram - 1e6 * np.eye(3))
    generator = simulation(3)
    draws = np.stack([law.redraw(gram - 1e6 * np.eye(3), generator) for _ in range(400)])
    error = draws.std(axis=0) / math.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - gram) < 5.0 * error + 1e-12 * gram.max()).all()


def simulated_norm(law: NoiseLaw, width: int, draws: int, seed: int) -> tuple[float, float]:
    generator = simulation(seed)
    values = np.linalg.eigvalsh(np.stack([law.sample(width, generator) for _ in range(draws)]))
    norms = np.maximum(-values[:, 0], values[:, -1])
    return float(norms.mean()), float(norms.std() / math.sqrt(draws))


@pytest.mark.parametrize(
    ("law", "width", "draws"),
    [
        (SymmetricGaussian(sigma=2.0), 1, 40_000),
        (SymmetricGaussian(sigma=2.0), 2, 40_000),
        (SymmetricGaussian(sigma=2.0), 6, 20_000),
        (SymmetricGaussian(sigma=2.0), 17, 6_000),
        (SymmetricGaussian(sigma=2.0), 45, 1_500),
        (MatrixLaplace(theta=0.1, width=1), 1, 60_000),
        (MatrixLaplace(theta=0.1, width=2), 2, 40_000),
        (MatrixLaplace(theta=0.1, width=6), 6, 20_000),
        (MatrixLaplace(theta=0.1, width=17), 17, 6_000),
        (MatrixLaplace(theta=0.1, width=45), 45, 1_500),
        (MatrixLaplace(theta=0.1, width=17), 1, 40_000),
        (MatrixLaplace(theta=0.1, width=17), 5, 20_000),
        (MatrixLaplace(theta=0.1, width=45), 30, 2_000),
    ],
)
def test_expected_norm_within_one_percent(law: NoiseLaw, width: int, draws: int) -> None:
    mean, error = simulated_norm(law, width, draws, seed=width)
    assert error < 0.005 * mean, "too few draws to tell one percent"
    assert abs(law.expected_norm(width) - mean) < 0.01 * mean + 4.0 * error
    assert abs(1.06 * law.expected_norm(width) - mean) > 0.01 * mean + 4.0 * error


@pytest.mark.full
@pytest.mark.parametrize("width", [120, 250, 500])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_expected_norm_of_wide_tables(kind: str, width: int) -> None:
    law = SymmetricGaussian(sigma=1.0) if kind == "gaussian" else MatrixLaplace(theta=1.0, width=width)
    mean, error = simulated_norm(law, width, 24_000 // width, seed=width)
    assert abs(law.expected_norm(width) - mean) < 0.01 * mean + 4.0 * error


def test_the_coefficients_are_those_of_the_benchmark() -> None:
    result = Path(__file__).parents[2] / "benchmarks" / "results" / "noise_norms.md"
    tail = result.read_text(encoding="utf-8").split("Coefficients")[1].splitlines()[2:5]
    assert tuple(tuple(float(x) for x in line.split(",")) for line in tail) == additive._SHORTFALL


def test_matrix_laplace_has_the_larger_norm_at_equal_deviation() -> None:
    """By 5% for five columns and 13% for twenty-two (benchmarks/results/noise_norms.md)."""
    ratios = []
    for width in range(5, 23):
        laplace = MatrixLaplace(theta=math.sqrt(width + 1.0), width=width)
        assert laplace.diagonal_sd == pytest.approx(1.0)
        ratios.append(laplace.expected_norm(width) / SymmetricGaussian(sigma=1.0).expected_norm(width))
    assert ratios[0] == pytest.approx(1.055, abs=0.01)
    assert ratios[-1] == pytest.approx(1.135, abs=0.01)
    assert ratios == sorted(ratios)


@given(width=st.integers(1, 400), scale=st.floats(1e-3, 1e12))
def test_norms_scale_with_the_noise_and_grow_with_the_table(width: int, scale: float) -> None:
    for small, large in (
        (SymmetricGaussian(sigma=1.0), SymmetricGaussian(sigma=scale)),
        (MatrixLaplace(theta=1.0, width=width), MatrixLaplace(theta=1.0 / scale, width=width)),
    ):
        assert large.expected_norm(width) == pytest.approx(scale * small.expected_norm(width), rel=1e-12)
        assert small.expected_norm(width) < small.expected_norm(width + 1)
        assert small.expected_norm(width) >= 0.56 * small.diagonal_sd
        assert small.diagonal_sd == pytest.approx(math.sqrt(2.0) * small.offdiagonal_sd)


def test_part_of_a_wide_matrix_laplace_noise_is_nearly_gaussian() -> None:
    wide = MatrixLaplace(theta=1.0, width=10_000)
    gaussian = SymmetricGaussian(sigma=wide.diagonal_sd)
    for width in (1, 2, 10):
        assert wide.expected_norm(width) == pytest.approx(gaussian.expected_norm(width), rel=2e-3)
