"""The joint release for one target: integer bounds, exact sensitivity, calibration, optimal shares."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram import Schema, categorical, numeric
from dpgram.core.noise import SeededEntropy
from dpgram.engines.local import add_up, gram
from dpgram.engines.passes import Pass
from dpgram.errors import GuaranteeError, MechanismError, SchemaError
from dpgram.estimators.noisy_sums import NoisySums
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.curves.base import GaussianCurve
from dpgram.privacy.curves.calibrate import discrete_mu_at_most
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing.measurements.target import SQUARE_SHARE, TargetedGaussian
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import RowRules
from dpgram.sums.moments import ExactMoments
from dpgram.sums.target import TargetBounds, TargetStatistic, shortened

ADJACENCIES = ["add-remove", "replace-one"]
NUMBERS = Schema(numeric("a", -1, 1), numeric("b", 0, 10), numeric("y", -3, 3))


def small_reach(x_squared: int, y: int, width: int = 2) -> TargetBounds:
    return TargetBounds(target=width, features=tuple(range(width)), x_squared=x_squared, y=y, unit=1.0)


def joint_sums(table: object, schema: Schema, row_bounds: TargetBounds, missing: str) -> ExactMoments:
    statistic = TargetStatistic(encoder=Encoder(schema, missing=missing), row_bounds=row_bounds)
    (found,) = add_up(
        table, Pass(rules=RowRules(schema=schema, missing=missing), statistics=(statistic,)), threads=1
    )
    return found


def rows(count: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    table = generator.normal(0, 1, (count, 3)) * [0.7, 6, 3] + [0, 5, 0]
    table[generator.random(table.shape) < 0.02] = np.nan
    table[generator.random(table.shape) < 0.01] = np.inf
    return table


@given(
    st.lists(st.lists(st.integers(-20_000, 20_000), min_size=3, max_size=3), min_size=1, max_size=5),
    st.integers(1, 2**30),
)
def test_no_row_is_longer_than_the_bound_and_none_grows(lines: list[list[int]], largest: int) -> None:
    before = np.array(lines, dtype=np.float64).T
    after = shortened(before.copy(), largest)
    assert (np.abs(after) <= np.abs(before)).all()
    assert (after == np.rint(after)).all()
    assert all(sum(int(q) ** 2 for q in row) <= largest for row in after.T)
    short = (before**2).sum(axis=0) <= largest
    assert np.array_equal(after[:, short], before[:, short])


def test_without_a_clip_the_sums_are_blocks_of_the_exact_gram() -> None:
    schema = Schema(numeric("a", -1, 1), categorical("g", ["u", "v"]), numeric("y", -3, 3))
    generator = np.random.default_rng(5)
    table = {
        "a": generator.uniform(-2, 2, 5000),
        "g": generator.choice(["u", "v", "w"], 5000),
        "y": generator.normal(0, 2, 5000),
    }
    row_bounds = TargetBounds.of(schema, "y", None)
    found = joint_sums(table, schema, row_bounds, "drop")
    whole = gram(table, schema).cells
    assert np.array_equal(found.xx, whole[:-1, :-1])
    assert np.array_equal(found.xy, whole[:-1, -1])
    assert found.yy == whole[-1, -1]


def test_the_order_of_rows_changes_no_bit() -> None:
    table, row_bounds = rows(3000, 1), TargetBounds.of(NUMBERS, "y", 1.2)
    one = joint_sums(table, NUMBERS, row_bounds, "drop")
    other = joint_sums(table[::-1], NUMBERS, row_bounds, "drop")
    assert np.array_equal(one.xx, other.xx)
    assert np.array_equal(one.xy, other.xy)
    assert one.yy == other.yy


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=3, max_size=3),
    st.sampled_from([None, 0.3, 1.1]),
    st.sampled_from(["drop", "midpoint"]),
)
def test_one_more_row_never_moves_the_sums_beyond_the_reach(row, clip, missing) -> None:
    """The whole way from floats to integers: whatever the row, its part is within (Q², QT, T²)."""
    row_bounds = TargetBounds.of(NUMBERS, "y", clip)
    table = rows(20, 2)
    before = joint_sums(table, NUMBERS, row_bounds, missing)
    after = joint_sums(np.vstack([table, row]), NUMBERS, row_bounds, missing)
    xx, xy, yy = after.xx - before.xx, after.xy - before.xy, after.yy - before.yy
    assert int((xx.astype(object) ** 2).sum()) <= row_bounds.x_squared**2
    assert int((xy.astype(object) ** 2).sum()) <= row_bounds.x_squared * row_bounds.y**2
    assert 0 <= yy <= row_bounds.y**2
    assert np.trace(xx) <= row_bounds.x_squared


@pytest.mark.parametrize("relation", ADJACENCIES)
@pytest.mark.parametrize(("x_squared", "y"), [(8, 3), (13, 2), (5, 5), (25, 1)])
@pytest.mark.parametrize("shape", [(1.0, 1.0, 1.0), (1.0, 0.4, 8.0), (0.5, 2.0, 1.0), (3.0, 1.0, 0.3)])
def test_mu_covers_every_pair_of_neighbours_on_small_lattices(relation, x_squared, y, shape) -> None:
    """Brute force over every integer row, and every pair of them under replace-one."""
    law = TargetedGaussian(
        sigma_xx=10 * shape[0],
        sigma_xy=10 * shape[1],
        sigma_yy=10 * shape[2],
        row_bounds=small_reach(x_squared, y),
        adjacency=adjacency(relation),
    )
    side = math.isqrt(x_squared)
    points = [
        (a, b, t)
        for a, b in itertools.product(range(-side, side + 1), repeat=2)
        if a * a + b * b <= x_squared
        for t in range(-y, y + 1)
    ]
    parts = np.array(
        [[a * a, b * b, math.sqrt(2) * a * b, a * t, b * t, t * t] for a, b, t in points], dtype=np.float64
    )
    parts /= [law.sigma_xx] * 3 + [law.sigma_xy] * 2 + [law.sigma_yy]
    if relation == "add-remove":
        largest = math.sqrt((parts**2).sum(axis=1).max())
    else:
        squares = (parts**2).sum(axis=1)
        largest = math.sqrt((squares[:, None] + squares - 2.0 * parts @ parts.T).max())
    assert largest <= law.mu
    assert largest > 0.85 * law.mu  # the bound is for real vectors: integers come close, no more


@pytest.mark.parametrize("relation", ADJACENCIES)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (3.0, 1e-9)])
@pytest.mark.parametrize("clip", [None, 1.0])
def test_calibration_never_under_protects_and_wastes_nothing(relation, epsilon, delta, clip) -> None:
    law = TargetedGaussian.calibrated(
        Guarantee(epsilon, delta), TargetBounds.of(NUMBERS, "y", clip), adjacency(relation)
    )
    assert GaussianCurve(law.mu).delta(epsilon - 1e-8) <= delta * (1 - 1e-8) * (1 + 1e-9)
    assert law.mu > (1 - 1e-9) * discrete_mu_at_most(epsilon, delta)
    assert law.event.mu == law.mu


@pytest.mark.parametrize("relation", ADJACENCIES)
@pytest.mark.parametrize("factor", [0.7, 0.9, 1.1, 1.4])
@pytest.mark.parametrize("which", ["sigma_xx", "sigma_xy"])
def test_other_shares_of_the_same_mu_forecast_more_error(relation, factor, which) -> None:
    row_bounds = TargetBounds.of(NUMBERS, "y", None)
    best = TargetedGaussian.calibrated(Guarantee(1.0, 1e-6), row_bounds, adjacency(relation))
    moved = replace(best, **{which: factor * getattr(best, which)})
    stretch = moved.mu / best.mu  # back to the same mu, yᵀy's share kept in proportion
    fair = replace(moved, sigma_xx=stretch * moved.sigma_xx, sigma_xy=stretch * moved.sigma_xy)
    fair = replace(fair, sigma_yy=stretch * moved.sigma_yy)
    assert fair.mu == pytest.approx(best.mu, rel=1e-9)
    # The optimum weighs yᵀy too, so compare the whole objective: noise that matters, within yᵀy's share.
    assert fair.forecast > best.forecast * (1.0 - SQUARE_SHARE)
    if abs(math.log(factor)) > 0.2:
        assert fair.forecast > best.forecast


@pytest.mark.parametrize("width", [2, 5, 20, 60])
def test_less_noise_than_one_release_for_every_target(width: int) -> None:
    """Against the symmetric Gaussian of [x, y] with the same bounds, in both noises that a fit meets."""
    schema = Schema(*(numeric(f"x{i}", -1, 1) for i in range(width)), numeric("y", -1, 1))
    row_bounds = TargetBounds.of(schema, "y", 1.0)
    law = TargetedGaussian.calibrated(Guarantee(1.0, 1e-6), row_bounds, adjacency("add-remove"))
    any_target = (row_bounds.x_squared + row_bounds.y**2) / discrete_mu_at_most(1.0, 1e-6)
    assert law.sigma_xx < any_target
    assert law.sigma_xy < 0.9 * any_target / math.sqrt(2.0)


def test_pure_guarantees_and_vanishing_noise_are_refused() -> None:
    row_bounds = TargetBounds.of(NUMBERS, "y", None)
    with pytest.raises(MechanismError, match="pure"):
        TargetedGaussian.calibrated(Guarantee(1.0), row_bounds, adjacency("add-remove"))
    with pytest.raises(GuaranteeError, match="integer noise"):
        TargetedGaussian.calibrated(
            Guarantee(1.0, 1e-6), TargetBounds.of(NUMBERS, "y", 0.01), adjacency("add-remove")
        )


def test_a_target_with_levels_and_an_empty_clip_are_refused() -> None:
    with pytest.raises(SchemaError, match="not one number"):
        TargetBounds.of(Schema(numeric("a", 0, 1), categorical("g", ["u", "v"])), "g", None)
    with pytest.raises(SchemaError, match="positive"):
        TargetBounds.of(NUMBERS, "y", -1.0)
    with pytest.raises(SchemaError, match="no room"):
        TargetBounds.of(NUMBERS, "y", 1e-9)


def test_one_law_fits_every_cell_once_the_target_has_its_length() -> None:
    """Scaled by k, Xᵀy has the off-diagonal noise of XᵀX; the exact part is the exact Gram, reweighted."""
    table, row_bounds = rows(500, 3), TargetBounds.of(NUMBERS, "y", None)
    law = TargetedGaussian.calibrated(Guarantee(1.0, 1e-6), row_bounds, adjacency("add-remove"))
    noisy = NoisySums.of(
        law.draw(joint_sums(table, NUMBERS, row_bounds, "drop"), SeededEntropy(1)), law, "seeded"
    )
    assert noisy.target_scale * law.sigma_xy == pytest.approx(law.sigma_xx / math.sqrt(2.0))
    moments = noisy.moments(NUMBERS, "y", public_rows=None, complete_groups=True)
    assert moments.schema.column("y").weight == pytest.approx(noisy.target_scale)
    assert moments.gram[0, 0] == pytest.approx(float(noisy.xx[0, 0]) * row_bounds.unit**2)
    assert moments.gram[0, 3] == pytest.approx(float(noisy.xy[0]) * row_bounds.unit**2 * noisy.target_scale)
    assert not moments.clipped
