"""What must agree in a release that learnt something: its parts, its schema, and what all of it cost.

μ² = μ_Gram² + Σ μᵢ² (or ε, in the same way) over the parts that were drawn: proofs/bounds.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from dpgram.columns import Categorical, Numeric
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.looks import crowded
from dpgram.privacy.counts import CountNoise, price_of_counts

if TYPE_CHECKING:
    from dpgram.release import Release
    from dpgram.release_parts import Learnt


def learnt_price(release: Release, steps: int) -> Fraction:
    """μ² or ε of all parts but the matrix."""
    learnt = release.learnt
    if learnt is None:
        return Fraction(0)
    parts = [
        (learnt.count_scale, 1),
        (learnt.octave_scale, len(learnt.bounds)),
        (learnt.bin_scale, sum(len(each.looks) for each in learnt.bounds)),
        (learnt.level_scale, len(learnt.levels)),
        (learnt.length_scale, 1),
    ]
    prices = [
        price_of_counts(learnt.law, scale, histograms=histograms, steps=steps)
        for scale, histograms in parts
        if scale is not None
    ]
    return sum(prices, Fraction(0))


def learnt_delta(release: Release) -> float:
    """The share of δ that pays for learnt levels."""
    return 0.0 if release.learnt is None else release.learnt.level_delta


def unresolved(release: Release) -> tuple[str, ...]:
    """Columns whose learnt bounds are far wider than their values, even after the closest look."""
    learnt = release.learnt
    if learnt is None or learnt.bin_scale is None:
        return ()
    noise = CountNoise(law=learnt.law, scale=learnt.bin_scale)
    known = float(release.public_rows or 0) if learnt.rows is None else int(learnt.rows) / ROW_NORM_SQUARED
    rows = max(known, 1.0)
    return tuple(each.column for each in learnt.bounds if crowded(each.looks, rows, noise) is not None)


def learnt_agrees(release: Release) -> bool:
    """Whether what was learnt is what the schema says, and every part has its noise."""
    learnt = release.learnt
    if learnt is None:
        return True
    laws = {"gaussian": "discrete-gaussian", "matrix-laplace": "discrete-laplace"}
    if laws.get(release.mechanism.name) != learnt.law or not _parts_have_noise(learnt):
        return False
    if release.group is not None or release.block is not None:
        return False
    schema = {column.name: column for column in release.schema.columns}
    for bounds in learnt.bounds:
        column = schema.get(bounds.column)
        if not isinstance(column, Numeric) or column.bounds != (bounds.low, bounds.high):
            return False
        if not all(bounds.coarse_low <= look.low < look.high <= bounds.coarse_high for look in bounds.looks):
            return False
        if bounds.high <= bounds.coarse_low or bounds.low >= bounds.coarse_high:
            return False
    for levels in learnt.levels:
        group = schema.get(levels.column)
        if not isinstance(group, Categorical) or len(levels.levels) != len(levels.counts):
            return False
        if group.levels != (levels.levels or (group.other,)):
            return False
        if any(int(count) < int(levels.threshold) for count in levels.counts):
            return False
    return True


def _parts_have_noise(learnt: Learnt) -> bool:
    """Nothing without noise, and no noise without a part."""
    bounds, levels = bool(learnt.bounds), bool(learnt.levels)
    return (
        (learnt.octave_scale is not None) == (learnt.bin_scale is not None) == bounds
        and (learnt.level_scale is not None) == levels == (learnt.level_delta > 0)
        and (learnt.length_scale is None) == (learnt.radius is None)
        and (learnt.count_scale is None) == (learnt.rows is None)
    )
