"""The variants as values: frozen, with the stated means, walled off; audits of the broken ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pytest

from dpgram.audit import AuditResult, audit
from dpgram.audit.gram import Neighbours
from dpgram.core.noise import Entropy, SeededEntropy
from dpgram.errors import MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import MECHANISMS, InverseNoise, MatrixLaplace, Mechanism, PublicFacts
from dpgram.mechanisms.base import Drawn, rounded
from dpgram.noise import SymmetricGaussian
from dpgram.privacy.adjacency import AddRemove, ReplaceOne
from dpgram.privacy.guarantee import Guarantee
from dpgram_papers import errata
from dpgram_papers.amin_sampler import PrintedSampler
from dpgram_papers.analyze_gauss import AnalyzeGauss
from dpgram_papers.kalaja import SufficientStatistics
from dpgram_papers.park_welling import OneSidedWishart
from dpgram_papers.sheffet import PrintedInverseWishart, PrintedSketch, PrintedWishart
from dpgram_papers.sheffet_inverse import PrintedInverseNoise
from dpgram_papers.variant import Variant

VARIANTS = errata.variants()
USUAL = Guarantee(1.0, 1e-6)
Floats = npt.NDArray[np.float64]


def some_gram(width: int, rows: int = 4000) -> Floats:
    generator = np.random.default_rng(11)
    table = generator.standard_normal((rows, width))
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    return table.T @ table


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.name)
def test_a_variant_is_a_frozen_value_that_explains_itself(variant: Variant) -> None:
    assert variant == dataclasses.replace(variant)
    assert hash(variant) == hash(dataclasses.replace(variant))
    with pytest.raises(dataclasses.FrozenInstanceError):
        variant.claimed = USUAL
    assert variant.paper
    assert variant.place
    assert variant.explanation
    assert variant.printed
    assert not isinstance(variant, Mechanism)


def test_names_are_unique_and_no_mechanism_has_one() -> None:
    names = [variant.name for variant in VARIANTS]
    assert len(set(names)) == len(names)
    assert not set(names) & set(MECHANISMS)


@pytest.mark.parametrize(
    "variant", [v for v in VARIANTS if not isinstance(v, PrintedSampler)], ids=lambda v: v.name
)
def test_draws_are_symmetric_and_decided_by_the_entropy(variant: Variant) -> None:
    gram = some_gram(22)
    first, again, other = (variant.draw(gram, SeededEntropy(seed)) for seed in (1, 1, 2))
    assert first.shape == gram.shape
    if variant.name == "ssp-wang-code":  # the published program's noise is not symmetric
        above = np.triu_indices(21, 1)
        assert (first[above] != first.T[above]).all()
    else:
        np.testing.assert_allclose(first, first.T, rtol=1e-9)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("variant", "shift"),
    [
        (AnalyzeGauss(claimed=USUAL), 0.0),
        (PrintedSketch(claimed=USUAL, rows=400), PrintedSketch(claimed=USUAL, rows=400).ridge),
        (PrintedWishart(claimed=USUAL, width=3), float(PrintedWishart(claimed=USUAL, width=3).degrees)),
        (
            PrintedInverseWishart(claimed=USUAL, degrees=4003),
            PrintedInverseWishart(claimed=USUAL, degrees=4003).prior,
        ),
        (OneSidedWishart(claimed=Guarantee(1.0)), 4 * 0.5),
    ],
    ids=lambda v: v.name if isinstance(v, Variant) else "",
)
def test_the_mean_of_the_draws_is_what_the_paper_says(variant: Variant, shift: float) -> None:
    """400 draws; each cell of the mean within 4.5 standard errors, α = 5·10⁻⁵ a variant."""
    gram, entropy = some_gram(3), SeededEntropy(5)
    drawn = np.stack([variant.draw(gram, entropy) for _ in range(400)])
    error = drawn.std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(drawn.mean(axis=0) - gram - shift * np.eye(3)) < 4.5 * error).all()


@pytest.mark.parametrize(("constant", "identity"), [("wang-code", 1.0), ("wang", 0.0), ("kalaja", 0.0)])
@pytest.mark.parametrize("symmetric", [None, True, False])
def test_only_the_published_program_adds_the_identity(
    constant: str, identity: float, symmetric: bool | None
) -> None:
    """At so large an ε that the noise is below 10⁻⁶ in every cell."""
    variant = SufficientStatistics(
        claimed=Guarantee(1e9, 1e-6), algorithm="ssp", constant=constant, symmetric=symmetric
    )
    gram = some_gram(5)
    released = variant.draw(gram, SeededEntropy(3))[:-1, :-1]
    np.testing.assert_allclose(released, gram[:-1, :-1] + identity * np.eye(4), atol=1e-6)


def test_repairs_leave_a_positive_matrix() -> None:
    gram = np.zeros((5, 5))
    bare, scaled, zeroed = (
        AnalyzeGauss(claimed=USUAL, repair=r).draw(gram, SeededEntropy(1))
        for r in ("none", "scaled", "zeroed")
    )
    assert np.linalg.eigvalsh(bare)[0] < 0.0
    assert np.linalg.eigvalsh(zeroed)[0] > -1e-9
    added = scaled - bare
    assert added == pytest.approx(added[0, 0] * np.eye(5))
    # E‖N‖ of this noise, simulated: the stated shift is within 5% of it.
    norms = [np.linalg.norm(AnalyzeGauss(claimed=USUAL).draw(gram, SeededEntropy(k)), 2) for k in range(400)]
    assert added[0, 0] == pytest.approx(np.mean(norms), rel=0.05)
    mended = PrintedWishart(claimed=USUAL, width=5, repair="scaled").draw(gram, SeededEntropy(1))
    assert np.linalg.eigvalsh(mended)[0] > 0.0


def test_adassp_releases_no_square_of_the_target() -> None:
    drawn = SufficientStatistics(claimed=USUAL).draw(some_gram(4), SeededEntropy(1))
    assert np.isnan(drawn[-1, -1])
    assert np.isfinite(drawn[:-1]).all()


def test_the_printed_sampler_gives_up() -> None:
    variant = PrintedSampler(claimed=Guarantee(4.0), width=60)
    with pytest.raises(MechanismError, match="accepted nothing"):
        variant.draw(some_gram(60, rows=200_000 // 60) * 100.0, SeededEntropy(1))


def as_drawn(matrix: Floats) -> Drawn:
    """In lattice units, as the audit of Gram matrices reads it."""
    return Drawn(cells=rounded(matrix * ROW_NORM_SQUARED), noise=SymmetricGaussian(sigma=1.0))


def measured(pair: Neighbours, outputs: Sequence[Floats]) -> npt.NDArray[np.float64]:
    return pair.measure([as_drawn(matrix) for matrix in outputs])


def test_the_audit_flags_one_sided_wishart_noise_and_passes_ours() -> None:
    claimed = Guarantee(1.0)
    row = np.zeros((2, 2), dtype=np.int64)
    row[0, 0] = ROW_NORM_SQUARED
    pair = Neighbours(name="one column", a=row, b=np.zeros_like(row))
    broken = OneSidedWishart(claimed=claimed)
    found = audit(
        lambda entropy: broken.draw(row / ROW_NORM_SQUARED, entropy),
        lambda entropy: broken.draw(np.zeros((2, 2)), entropy),
        runs=1000,
        statistic=partial(measured, pair),
        names=pair.statistics,
        entropy=SeededEntropy(1),
    )
    assert not found.passes(claimed)
    assert found.epsilon_lower > 3.0  # and more with more runs: it is infinite
    assert 0.4 < found.delta_lower(1.0) <= broken.true_delta(1.0)

    facts = PublicFacts(width=2, adjacency=AddRemove())
    ours = MatrixLaplace().calibrated(claimed, facts)
    passed = audit(
        lambda entropy: ours.draw(row, entropy),
        lambda entropy: ours.draw(np.zeros_like(row), entropy),
        runs=1000,
        statistic=pair.measure,
        names=pair.statistics,
        entropy=SeededEntropy(1),
    )
    assert passed.passes(claimed)


CELLS = np.tril_indices(2)


def lower_cells(outputs: Sequence[Floats]) -> Floats:
    return np.stack([matrix[CELLS] for matrix in outputs])


def audited(run_a: partial[Floats], run_b: partial[Floats]) -> AuditResult:
    return audit(run_a, run_b, runs=1000, delta=1e-6, statistic=lower_cells, entropy=SeededEntropy(2))


def our_inverse(mechanism: InverseNoise, gram: npt.NDArray[np.int64], entropy: Entropy) -> Floats:
    drawn = mechanism.draw(gram, entropy)
    return np.asarray(drawn.cells.astype(np.float64) * 2.0**drawn.exponent * ROW_NORM_SQUARED)


def test_the_audit_flags_theorem_b5_and_passes_ours() -> None:
    claimed, bound = Guarantee(0.5, 1e-6), 0.1
    variant = PrintedInverseNoise(claimed=claimed, bound=bound, surplus=1.0)
    common, rows = variant.promise * np.eye(2), bound * np.eye(2)
    grams = [common + np.outer(row, row) for row in rows]
    found = audited(*(partial(variant.draw, gram) for gram in grams))
    assert not found.passes(claimed)
    assert found.delta_lower(0.5) <= variant.true_delta(0.5)

    # Ours inverts G + L·I with the same L, so that the promise holds by itself.
    facts = PublicFacts(width=2, adjacency=ReplaceOne())
    ours = InverseNoise(ridge=2.0).calibrated(claimed, facts)
    exact = [np.diag(cells).astype(np.int64) for cells in ((ROW_NORM_SQUARED, 0), (0, ROW_NORM_SQUARED))]
    assert audited(*(partial(our_inverse, ours, gram) for gram in exact)).passes(claimed)
