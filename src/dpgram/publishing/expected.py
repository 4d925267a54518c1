"""What an adaptive release should give, from public facts: the noise beside the sampling error.

In coordinates where the columns no longer go together, G ≈ n·I. Least squares then has the sampling variance
s²/n for every coefficient and, by noise of deviation σ on the diagonal, s²σ²/(2n²) more: standard errors grow
by √(1 + σ²/(2n)), whatever the regression. σ = R²/(μ√share), or √(d+1)·R²/(ε·share) for pure noise, and R is
the radius that rows with d − 1 normal columns would have chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from dpgram.document.reach import REACH_ENDS
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.curves.calibrate import discrete_mu_at_most
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing._coordinates import LONGEST, LOST, PLAIN_BELOW, REACH_FROM, radius, rank, signal
from dpgram.publishing.split import BudgetSplit
from dpgram.schema import Schema


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedAdaptive:
    """An adaptive release of a table that nobody has looked at, its columns taken to be normal."""

    signal: float
    """n·μ/d^1.5: below 1 the columns are measured as declared."""
    told: bool
    """Whether there are enough rows for better coordinates."""
    radius: float
    se_ratio: float
    """Standard error of a coefficient over that of least squares; inf where nothing is told."""


def expected_adaptive(
    schema: Schema, guarantee: Guarantee, split: BudgetSplit, *, rows: float, adjacency: Adjacency
) -> ExpectedAdaptive:
    """The forecast for a table of `rows` rows; reads no data.

    >>> from dpgram.privacy import Guarantee, adjacency
    >>> from dpgram.publishing import expected_adaptive
    >>> from dpgram.publishing.split import budget_split
    >>> split, relation = budget_split(schema, True), adjacency("add-remove")
    >>> found = expected_adaptive(schema, Guarantee(1.0, 1e-6), split, rows=20_000, adjacency=relation)
    >>> found.told, round(found.se_ratio, 1)
    (True, 1.1)
    """
    width = rank(schema)
    share = 1.0 - split.total
    changed = adjacency.units_changed
    if guarantee.pure:
        mu = guarantee.epsilon / (changed * math.sqrt(width + 1.0))
        last = mu * share
    else:
        mu = discrete_mu_at_most(guarantee.epsilon, guarantee.delta) / math.sqrt(changed)
        last = mu * math.sqrt(share)
    told = signal(rows, mu, width)
    start = radius(rows, mu, width)
    longest = start
    if told >= REACH_FROM:
        longest = _reached(start, rows, mu, width)
    sigma = longest**2 / last
    return ExpectedAdaptive(
        signal=told,
        told=told >= PLAIN_BELOW,
        radius=longest,
        se_ratio=math.sqrt(1.0 + sigma**2 / (2.0 * rows)) if told >= PLAIN_BELOW else math.inf,
    )


def _reached(start: float, rows: float, mu: float, width: int) -> float:
    from scipy.special import chdtri

    squares = 1.0 + chdtri(max(width - 1, 1), 1.0 - (np.arange(2_000) + 0.5) / 2_000)
    for factor in REACH_ENDS[REACH_ENDS <= 1.001 * LONGEST].tolist():
        lost = rows * float(np.mean(np.maximum(1.0 - (factor * start) ** 2 / squares, 0.0)))
        if lost <= LOST * math.sqrt(2.0 * width) * (factor * start) ** 2 / mu:
            return float(factor * start)
    return LONGEST * start
