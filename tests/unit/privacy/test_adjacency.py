"""Every sensitivity holds for random neighbours, small cases by brute force, and is attained by a witness."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.errors import GuaranteeError
from dpgram.privacy.adjacency import AddRemove, Adjacency, ReplaceOne, adjacency

Matrix = npt.NDArray[np.float64]
RELATIONS = [AddRemove(), ReplaceOne()]
EXACT = 1 + 1e-12


def unit(rng: np.random.Generator, width: int, s: float, rank: int) -> Matrix:
    """A random contribution V ⪰ 0 of trace ≤ s, mostly on the boundary."""
    rows = rng.standard_normal((rank, width)) * rng.exponential(size=(rank, 1))
    share = rng.uniform() if rng.uniform() < 0.3 else 1.0
    return s * share * rows.T @ rows / np.sum(rows**2)


def neighbours(relation: Adjacency, seed: int, s: float, rank: int = 1) -> tuple[Matrix, Matrix]:
    rng = np.random.default_rng(seed)
    width = int(rng.integers(1, 6))
    rows = rng.standard_normal((int(rng.integers(0, 4)), width)) * 10.0 ** rng.uniform(-2, 2)
    base = rows.T @ rows
    other = unit(rng, width, s, rank) if relation == ReplaceOne() else np.zeros((width, width))
    return base + unit(rng, width, s, rank), base + other


def triangle_l1(change: Matrix, diagonal: float = 1.0) -> float:
    return float(np.abs(np.tril(change, -1)).sum() + diagonal * np.abs(np.diag(change)).sum())


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
@given(seed=st.integers(0, 2**32), s=st.floats(1e-3, 1e3), rank=st.integers(1, 4), diagonal=st.floats(0.5, 3))
@settings(max_examples=300, deadline=None)
def test_no_pair_of_neighbours_moves_further(
    relation: Adjacency, seed: int, s: float, rank: int, diagonal: float
) -> None:
    here, there = neighbours(relation, seed, s, rank)
    width = len(here)
    change = here - there
    tolerance = 1e-13 * (np.abs(here).max() + s) * width
    assert np.linalg.norm(change) <= relation.gram_frobenius(s) + tolerance
    assert triangle_l1(change, diagonal) <= relation.gram_l1(width, s, diagonal=diagonal) + width * tolerance
    moved = np.linalg.eigvalsh(here) - np.linalg.eigvalsh(there)
    assert np.abs(moved).sum() <= relation.eigenvalue_l1(s) + width * tolerance
    assert np.abs(moved).max() <= relation.extreme_eigenvalue(s) + tolerance
    spread = np.linalg.eigvalsh(change)
    assert max(spread[-1], 0.0) - min(spread[0], 0.0) <= relation.utility_range(s) + width * tolerance


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
@given(seed=st.integers(0, 2**32), s=st.floats(1e-2, 1e2), ridge=st.floats(1e-2, 1e2), rank=st.integers(1, 4))
@settings(max_examples=300, deadline=None)
def test_no_inverse_moves_further(relation: Adjacency, seed: int, s: float, ridge: float, rank: int) -> None:
    here, there = neighbours(relation, seed, s, rank)
    eye = ridge * np.eye(len(here))
    change = np.linalg.inv(here + eye) - np.linalg.inv(there + eye)
    assert (
        np.linalg.norm(change) <= relation.inverse_frobenius(s, ridge, rank=rank) * (1 + 1e-9) + 1e-9 / ridge
    )


@pytest.mark.parametrize("width", [2, 3, 4, 5])
@pytest.mark.parametrize("diagonal", [0.5, 0.6, 0.75, 1.0, 1.7])
def test_l1_of_the_triangle_is_exact_by_enumeration(width: int, diagonal: float) -> None:
    """max over rows = max over sign patterns T of λ_max(T), or of half its spread: all patterns are tried."""
    pairs = width * (width - 1) // 2
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=pairs + width)))
    patterns = np.zeros((len(signs), width, width))
    rows, columns = np.tril_indices(width, -1)
    patterns[:, rows, columns] = patterns[:, columns, rows] = signs[:, :pairs]
    patterns[:, range(width), range(width)] = 2.0 * diagonal * signs[:, pairs:]
    values = np.linalg.eigvalsh(patterns)
    added = values[:, -1].max() / 2
    replaced = (values[:, -1] - values[:, 0]).max() / 2
    assert AddRemove().gram_l1(width, 1.0, diagonal=diagonal) == pytest.approx(added, rel=1e-12)
    bound = ReplaceOne().gram_l1(width, 1.0, diagonal=diagonal)
    assert replaced <= bound * EXACT
    if width % 2 == 0 or diagonal >= 0.75:
        assert bound == pytest.approx(replaced, rel=1e-12)


@pytest.mark.parametrize("width", [1, 2, 3, 8, 21, 100])
@pytest.mark.parametrize("s", [0.01, 1.0, 2.0**30])
def test_witnesses_attain_the_sensitivities(width: int, s: float) -> None:
    flat = np.full((width, width), s / width)
    assert triangle_l1(flat) == pytest.approx(AddRemove().gram_l1(width, s), rel=1e-12)
    assert np.linalg.norm(flat) == pytest.approx(AddRemove().gram_frobenius(s), rel=1e-12)
    if width == 1:
        assert ReplaceOne().gram_l1(1, s) == pytest.approx(s, rel=1e-12)
        return
    half = width // 2
    # Rows constant on two blocks: the two extreme eigenvectors of the balanced pattern.
    p, q = half, width - half
    block = np.array([[p + 1.0, math.sqrt(p * q)], [math.sqrt(p * q), -(q + 1.0)]])
    _, vectors = np.linalg.eigh(block)
    lift = np.zeros((width, 2))
    lift[:half, 0], lift[half:, 1] = 1 / math.sqrt(p), 1 / math.sqrt(q)
    y, x = (lift @ vectors).T
    change = s * (np.outer(x, x) - np.outer(y, y))
    assert triangle_l1(change) == pytest.approx(ReplaceOne().gram_l1(width, s), rel=1e-12)
    assert np.linalg.norm(change) == pytest.approx(ReplaceOne().gram_frobenius(s), rel=1e-12)
    spread = np.linalg.eigvalsh(change)
    assert spread[-1] - spread[0] == pytest.approx(ReplaceOne().utility_range(s), rel=1e-12)


def test_witnesses_attain_the_eigenvalue_sensitivities() -> None:
    base = np.diag([10.0, 0.0])
    one, other = base + np.diag([1.0, 0.0]), base + np.diag([0.0, 1.0])
    moved = np.linalg.eigvalsh(one) - np.linalg.eigvalsh(other)
    assert np.abs(moved).sum() == pytest.approx(ReplaceOne().eigenvalue_l1(1.0))
    added = np.linalg.eigvalsh(other) - np.linalg.eigvalsh(base)
    assert added[0] == pytest.approx(AddRemove().extreme_eigenvalue(1.0))
    assert np.abs(added).sum() == pytest.approx(AddRemove().eigenvalue_l1(1.0))


def test_inverse_sensitivity_reference_and_witness() -> None:
    assert AddRemove().inverse_frobenius(1.0, 2.0) == pytest.approx(1 / 6, rel=1e-12)
    assert ReplaceOne().inverse_frobenius(1.0, 2.0) == pytest.approx(math.sqrt(2) / 6, rel=1e-12)
    ridge = 2.0 * np.eye(2)
    inverses = [np.linalg.inv(ridge + np.diag(v)) for v in ([0.0, 0.0], [1.0, 0.0], [0.0, 1.0])]
    assert np.linalg.norm(inverses[1] - inverses[0]) == pytest.approx(1 / 6)
    assert np.linalg.norm(inverses[1] - inverses[2]) == pytest.approx(math.sqrt(2) / 6)


@pytest.mark.parametrize("ratio", [0.1, 1.0, 2.0, 5.0, 30.0])
@pytest.mark.parametrize("rank", [2, 3, 10])
def test_a_unit_of_several_rows_moves_the_inverse_further(ratio: float, rank: int) -> None:
    """Equal shares over k ≤ rank directions are the witnesses; the one-row bound would be broken."""
    ridge, s = 0.5, 0.5 * ratio
    witnesses = [math.sqrt(k) * (s / k) / (ridge * (ridge + s / k)) for k in range(1, rank + 1)]
    bound = AddRemove().inverse_frobenius(s, ridge, rank=rank)
    assert max(witnesses) <= bound * EXACT
    if ratio >= rank or float(ratio).is_integer():
        assert bound == pytest.approx(max(witnesses), rel=1e-12)
    if ratio >= 2:
        assert max(witnesses) > AddRemove().inverse_frobenius(s, ridge) * 1.05


@pytest.mark.parametrize("seed", range(12))
def test_stacked_sensitivity_by_brute_force(seed: int) -> None:
    """All pairs (x, y), (x', y') in two dimensions on a fine grid, against the four candidates."""
    rng = np.random.default_rng(seed)
    bx, by = rng.uniform(0.3, 2.0, 2)
    p1, p2, p3 = np.exp(rng.uniform(-3, 3, 3))
    a, b = np.meshgrid(bx * np.linspace(0, 1, 7), bx * np.linspace(0, 1, 7))
    dot = np.linspace(-1, 1, 81)[:, None, None] * a * b
    best = 0.0
    y = by
    for other in by * np.linspace(-1, 1, 81):
        value = p1 * (a**4 + b**4 - 2 * dot**2)
        value = (
            value + p2 * (a**2 * y**2 + b**2 * other**2 - 2 * y * other * dot) + p3 * (y**2 - other**2) ** 2
        )
        best = max(best, float(value.max()))
    bound = ReplaceOne().stacked_mu(bx, by, (p1, p2, p3)) ** 2
    assert best <= bound * EXACT
    assert best >= bound * (1 - 2e-3)
    added = p1 * bx**4 + p2 * bx**2 * by**2 + p3 * by**4
    assert AddRemove().stacked_mu(bx, by, (p1, p2, p3)) ** 2 == pytest.approx(added, rel=1e-12)


def test_stacked_meets_every_branch() -> None:
    """An interior b, b = 0 and b = By each give the largest value for some precisions."""
    bx = by = 1.0
    assert ReplaceOne().stacked_mu(bx, by, (1.0, 0.1, 1.0)) ** 2 == pytest.approx(2 + 0.1 + 1, rel=1e-9)
    # With the cross term dominating, y' = −y and x' = x: p₂·(2·Bx·By)².
    assert ReplaceOne().stacked_mu(bx, by, (1e-6, 1.0, 1e-6)) ** 2 == pytest.approx(4.0, rel=1e-5)
    interior = ReplaceOne().stacked_mu(bx, by, (1e-4, 1.0, 20.0)) ** 2
    b = 0.5 - math.sqrt(0.25 - 1 / 40)
    assert interior == pytest.approx((1 + b) ** 2 + 20 * (1 - b * b) ** 2, rel=1e-3)
    assert interior > 1.0001 * max(1 + 20.0, 4.0)


def test_relations_are_values_with_one_name_each() -> None:
    assert adjacency("add-remove") == AddRemove()
    assert adjacency("replace-one") == ReplaceOne()
    assert AddRemove() != ReplaceOne()
    assert len({AddRemove(), AddRemove(), ReplaceOne()}) == 2
    assert (AddRemove().units_changed, ReplaceOne().units_changed) == (1, 2)
    assert [relation.name for relation in RELATIONS] == ["add-remove", "replace-one"]


def test_the_default_lattice_sensitivity_is_exact() -> None:
    assert AddRemove().gram_frobenius(2.0**30) == 2.0**30
    assert ReplaceOne().gram_frobenius(2.0**30) ** 2 >= 2.0**61


@pytest.mark.parametrize("name", ["", "Add-Remove", "add_remove", "swap"])
def test_unknown_relations_are_refused(name: str) -> None:
    with pytest.raises(GuaranteeError, match="'add-remove' or 'replace-one'"):
        adjacency(name)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
@pytest.mark.parametrize("s", [0.0, -1.0, math.nan, math.inf])
def test_nonsense_is_refused(relation: Adjacency, s: float) -> None:
    for call in (
        lambda: relation.gram_frobenius(s),
        lambda: relation.gram_l1(3, s),
        lambda: relation.eigenvalue_l1(s),
        lambda: relation.extreme_eigenvalue(s),
        lambda: relation.utility_range(s),
        lambda: relation.inverse_frobenius(s, 1.0),
        lambda: relation.inverse_frobenius(1.0, s),
        lambda: relation.stacked_mu(1.0, 1.0, (1.0, s, 1.0)),
        lambda: relation.stacked_mu(1.0, s, (1.0, 1.0, 1.0)),
    ):
        with pytest.raises(GuaranteeError):
            call()


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
def test_impossible_shapes_are_refused(relation: Adjacency) -> None:
    with pytest.raises(GuaranteeError, match="at least one column"):
        relation.gram_l1(0, 1.0)
    with pytest.raises(GuaranteeError, match="at least one row"):
        relation.inverse_frobenius(1.0, 1.0, rank=0)


def test_a_small_diagonal_weight_is_refused_where_unproven() -> None:
    with pytest.raises(GuaranteeError, match="diagonal weight"):
        ReplaceOne().gram_l1(4, 1.0, diagonal=0.4)
