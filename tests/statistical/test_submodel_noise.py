"""The noise of a submodel of an adaptive release: the law of proofs/adaptive.md, with power both ways.

The last matrix of one release is drawn again and again at its published coordinates, and the normal equations
of submodels are set up by the code that fits them. Seeds are fixed: nothing here can flake.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dpgram as dg
from dpgram.analysis.design import build_design
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.normal_equations import isotropic
from dpgram.core.noise import SeededEntropy
from dpgram.engines.local import add_up
from dpgram.engines.passes import Pass
from dpgram.errors import DpgramWarning
from dpgram.lattice import ROW_NORM, cell_unit
from dpgram.mechanisms import CalibratedGaussian, CalibratedMatrixLaplace, CalibratedMechanism, PublicFacts
from dpgram.privacy.adjacency import AddRemove
from dpgram.publishing import publish_with
from dpgram.publishing.measurements.gram import Gram, full_matrix
from dpgram.publishing.publication import measured
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import RowRules
from dpgram.sums.grams import GramStatistic

SCHEMA = dg.Schema(
    dg.numeric("x", 0, 100),
    dg.numeric("y", -50, 50),
    dg.numeric("z", -9, 9),
    dg.categorical("g", ["r", "s", "t"]),
)
ROWS, DRAWS = 3_000, 2_500
SIGMA, THETA = 2.0**33, 2.0**-32
MECHANISMS: dict[str, CalibratedMechanism] = {
    "gaussian": CalibratedGaussian(sigma=SIGMA),
    "matrix-laplace": CalibratedMatrixLaplace(theta=THETA),
}
MODELS = {"one feature": ["x"], "two features": ["x", "z"], "all": ["x", "z", "g"]}


def table() -> pa.Table:
    generator = np.random.default_rng(2)
    x = generator.normal(30, 5, ROWS)
    z = generator.standard_t(3, ROWS)
    return pa.table(
        {
            "x": x,
            "y": 0.5 * (x - 30) + z + generator.normal(0, 2, ROWS),
            "z": z,
            "g": np.array(["r", "s", "t"])[generator.integers(0, 3, ROWS)],
        }
    )


@dataclass(frozen=True)
class Fixed:
    """A release, and the exact sums of the rows in its coordinates."""

    release: dg.Release
    encoder: Encoder
    exact: Any

    moments: Moments
    """Of the exact matrix: there is nothing private about simulated rows."""

    def noisy(self, name: str, cells: np.ndarray) -> Moments:
        """The moments of the last stage, drawn anew."""
        unit = cell_unit(self.encoder.radius)
        law = MECHANISMS[name].expected(np.ones(SCHEMA.width))
        return replace(self.moments, gram=cells * unit, noise=EncodedNoise.of(law, unit))


@cache
def fixed() -> Fixed:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        (release,) = publish_with(
            table(), SCHEMA, epsilon=2.0, delta=1e-6, entropy=SeededEntropy(3), progress=False
        )
    assert release.coordinates is not None
    encoder = Encoder(SCHEMA, clip=release.radius, coordinates=release.coordinates)
    work = Pass(rules=RowRules(schema=SCHEMA), statistics=(GramStatistic(encoder),))
    exact = add_up(table(), work, threads=1, progress=False)
    moments = replace(Moments.of(release), gram=exact[0].cells * cell_unit(encoder.radius))
    return Fixed(release=release, encoder=encoder, exact=exact, moments=moments)


@cache
def draws(name: str) -> tuple[np.ndarray, ...]:
    """The cells of many draws of the last stage, by the measurement that `publish` draws with."""
    one, entropy = fixed(), SeededEntropy(11)
    facts = PublicFacts(width=SCHEMA.width, adjacency=AddRemove())
    measurement = Gram(encoder=one.encoder, mechanism=MECHANISMS[name], facts=facts)
    draw = partial(measured, measurement, one.exact, RowRules(schema=SCHEMA), entropy)
    found = [draw()[0].matrix.cells for _ in range(DRAWS)]
    return tuple(full_matrix(cells, SCHEMA.width).astype(np.float64) for cells in found)


def submodel_noise(name: str, model: str) -> np.ndarray:
    """N' of the normal equations, in units of σ, from the code that fits: draws × k × k."""
    one = fixed()
    design = build_design(one.moments, "y", MODELS[model], intercept=False)
    exact = isotropic(one.moments, design)
    found = []
    for cells in draws(name):
        problem = isotropic(one.noisy(name, cells), design)
        assert np.array_equal(problem.basis, exact.basis)
        found.append((problem.gram_xx - exact.gram_xx) / deviation(name))
    return np.array(found)


def deviation(name: str) -> float:
    """σ in encoded units, by hand: that of the whole matrix, whatever the submodel."""
    unit = cell_unit(fixed().encoder.radius)
    return unit * (SIGMA if name == "gaussian" else math.sqrt(SCHEMA.width + 1.0) / THETA)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("model", MODELS)
def test_the_noise_of_a_submodel_has_its_law(name: str, model: str) -> None:
    """E(Σ N_ii² + 2Σ N_ij²) = σ²k(k+1)/2; a deviation ten per cent off is rejected both ways."""
    noise = submodel_noise(name, model)
    width = noise.shape[1]
    diagonal = np.einsum("nii->ni", noise)
    below = noise[:, *np.tril_indices(width, -1)]
    squares = np.concatenate([diagonal**2, 2.0 * below**2], axis=1).mean(axis=1)
    for factor, accepted in ((1.0, True), (0.9, False), (1.1, False)):
        scaled = squares / factor**2
        if name == "gaussian":
            degrees = scaled.size * width * (width + 1) // 2
            total = float(scaled.sum()) * width * (width + 1) / 2
            p = 2.0 * min(stats.chi2.cdf(total, degrees), stats.chi2.sf(total, degrees))
        else:  # cells are uncorrelated and not independent: by the spread that is seen
            p = 2.0 * stats.norm.sf(abs(scaled.mean() - 1.0) / (scaled.std() / math.sqrt(scaled.size)))
        assert (p > 1e-3) == accepted, (factor, scaled.mean())
    if below.size:
        together = np.mean(diagonal[:, 0] * below[:, 0]) * math.sqrt(len(noise) * 2.0)
        assert abs(together) < 4.0


@pytest.mark.parametrize("name", MECHANISMS)
def test_tails_are_those_of_more_degrees_of_freedom(name: str) -> None:
    """E N⁴/σ⁴ is 3, or 3 + 6/(d+1) for matrix Laplace noise: not the 3 + 6/2 of a matrix of size one."""
    noise = submodel_noise(name, "one feature")[:, 0, 0]
    fourth = float(np.mean(noise**4))
    error = float(np.std(noise**4)) / math.sqrt(len(noise))
    wanted = 3.0 if name == "gaussian" else 3.0 + 6.0 / (SCHEMA.width + 1)
    assert abs(fourth - wanted) < 4.0 * error
    assert abs(fourth - 6.0) > 4.0 * error


def test_terms_in_their_own_units_have_the_noise_of_the_proof() -> None:
    """Cov of FᵀL N LᵀF, by hand from CᵀN'C: the variance of each cell of the terms' own matrix."""
    one = fixed()
    design = build_design(one.moments, "y", MODELS["two features"], intercept=True)
    terms = np.column_stack([design.vectors, design.target_vector])
    lifted = one.release.coordinates.inverse.T @ terms
    lifted -= one.moments.known_null_space @ (one.moments.known_null_space.T @ lifted)
    triangle = np.linalg.cholesky(lifted.T @ lifted).T
    every = [
        one.noisy("gaussian", cells).encoded_gram - one.moments.encoded_gram for cells in draws("gaussian")
    ]
    found = np.array([terms.T @ noise @ terms for noise in every])
    product = triangle.T @ triangle
    # Var(CᵀN'C)_ij = σ²/2·(M_ii M_jj + M_ij²) with M = CᵀC.
    wanted = deviation("gaussian") ** 2 / 2.0 * (np.outer(np.diag(product), np.diag(product)) + product**2)
    ratio = found.var(axis=0) / wanted
    assert np.abs(ratio - 1.0).max() < 5.0 * math.sqrt(2.0 / DRAWS)
    assert np.abs(ratio / 0.81 - 1.0).min() > 2.5 * math.sqrt(2.0 / DRAWS)
    assert np.abs(ratio / 1.21 - 1.0).min() > 2.5 * math.sqrt(2.0 / DRAWS)


def test_known_null_vectors_stay_null_under_a_clip() -> None:
    """The levels add up to the constant in clipped rows too: G·u is what rounding left."""
    one = fixed()
    null = one.moments.known_null_space
    assert null.shape[1] == 1
    left = np.linalg.norm(one.exact[0].cells @ null) / (ROWS * ROW_NORM)
    assert left <= math.sqrt(SCHEMA.width)
    assert np.linalg.norm(one.exact[0].cells) > 1e3 * ROWS * ROW_NORM
    assert (np.array([int(cell) for cell in one.release.measured[-1].cells[48:]]) > 0).any()
