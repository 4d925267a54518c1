"""Why Algorithm 5 beats Algorithm 2: the squared errors of both, as docs/explanation/papers.md has them."""

from __future__ import annotations

import numpy as np
import pytest

from dpgram.core.noise import simulation
from dpgram.noise import MatrixLaplace
from dpgram.noise.sampled import inverse_wishart, wishart
from dpgram_papers.bounds import matrix_laplace_error
from dpgram_papers.experiments.sheffet_single import solved

FEATURES, DEGREES, DRAWS = 6, 20, 4_000


def test_squared_errors_of_a_sketch_and_of_the_inverse_wishart_law() -> None:
    """s²·tr G⁻¹ over r − p − 1 and over ν − 2, within 5 standard errors; not the one for the other."""
    generator = simulation(1)
    rows = generator.standard_normal((50, FEATURES + 1)) @ np.triu(np.ones((FEATURES + 1, FEATURES + 1)))
    gram = rows.T @ rows
    fit = solved(gram)
    residual = float(gram[-1, -1] - fit @ gram[:-1, -1])
    whole = residual * float(np.trace(np.linalg.inv(gram[:-1, :-1])))
    expected = {wishart: whole / (DEGREES - FEATURES - 1), inverse_wishart: whole / (DEGREES - 2)}
    for law, size in expected.items():
        errors = [float(np.sum((solved(law(gram, DEGREES, generator)) - fit) ** 2)) for _ in range(DRAWS)]
        error = 5.0 * np.std(errors) / DRAWS**0.5
        assert abs(np.mean(errors) - size) < error
        others = [other for other in expected.values() if other != size]
        assert all(abs(np.mean(errors) - other) > error for other in others)


@pytest.mark.parametrize("width", [1, 3, 10])
def test_the_error_of_matrix_laplace_noise(width: int) -> None:
    """√E|N|²_F by its cells, and within 5 standard errors of what is drawn."""
    theta, generator = 0.7, simulation(2)
    law = MatrixLaplace(theta=theta, width=width)
    squares = [float(np.sum(law.sample(width, generator) ** 2)) for _ in range(3_000)]
    expected = matrix_laplace_error(width, theta) ** 2
    assert float(law.cell_variances(np.ones(width)).sum()) == pytest.approx(expected)
    assert abs(np.mean(squares) - expected) < 5.0 * np.std(squares) / len(squares) ** 0.5
