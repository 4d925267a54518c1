"""What must agree in a release that learnt something: its parts, its schema, and what all of it cost.

μ² = μ_Gram² + Σ μᵢ² (or ε, in the same way) over the parts that were drawn: proofs/bounds.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from dpgram.columns import Categorical, Numeric
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.counts import CountNoise, price_of_counts, projected

if TYPE_CHECKING:
    from dpgram.release import Release
    from dpgram.release_parts import Learnt, LearntLook

Floats = npt.NDArray[np.float64]


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


def latest(looks: Sequence[LearntLook]) -> tuple[Floats, int]:
    """Counts, in rows, of the bins looked at last, averaged over all looks at these; how many looks."""
    last = looks[-1]
    same = [look.bins for look in looks if (look.low, look.high) == (last.low, last.high)]
    counts = np.mean([[int(cell) / ROW_NORM_SQUARED for cell in bins] for bins in same], axis=0)
    return np.asarray(counts), len(same)


def crowded(looks: Sequence[LearntLook], rows: float, noise: CountNoise) -> int | None:
    """The first of two neighbouring bins that hold nearly all of the column, as far as noisy counts can tell.

    Four fifths lie in these two, and no other bin stands out of the noise. A column of many zeros and some
    ones is no such case: the ones stand out, and the bounds are right.
    """
    counts, averaged = latest(looks)
    likely = projected(counts, rows)
    pairs = likely[:-1] + likely[1:]
    fullest = int(np.argmax(pairs))
    others = np.delete(counts, [fullest, fullest + 1])
    left = CountNoise(law=noise.law, scale=noise.scale / math.sqrt(averaged))
    hidden = float(np.max(others)) <= left.exceeded(STANDS_OUT / len(counts))
    return fullest if hidden and float(pairs[fullest]) >= CROWDED * rows else None


CROWDED: Final = 0.8
"""The part of all values in two neighbouring bins from which their bounds count as too wide."""
STANDS_OUT: Final = 1e-3
"""Chance that noise alone makes any of the other bins stand out, so that wide bounds go unnoticed."""


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
