"""What an adaptive release should give, from public facts: the noise beside the sampling error.

In coordinates where the columns no longer go together, G ≈ w·n·I, w the weight that the clip leaves a row.
Least squares then has the sampling variance s²/n for every coefficient and, by noise of deviation σ on the
diagonal, s²σ²/(2w²n²) more. σ = R²/(μ√share), or √(d+1)·R²/(ε·share) for pure noise, and R is the radius that
rows with d − 1 normal columns would have chosen. The first matrix shows what goes together up to the edge f
of its own noise, so that a direction of variance λ comes out as λ/(λ + f): weak ones cost more, as do columns
whose histogram the noise blurs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from dpgram.document.reach import REACH_ENDS
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.curves.calibrate import discrete_mu_at_most
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing._coordinates import (
    DOUBT,
    LONGEST,
    LOST,
    PLAIN_BELOW,
    REACH_FROM,
    RIDGE,
    radius,
    rank,
    signal,
)
from dpgram.publishing._scales import Scale, blurred
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
    rank: int
    """d: the encoded columns that are free of each other."""
    sigma: float
    """σ of the last matrix, in standardised columns."""
    kept: float
    """w: the part of its weight that the clip leaves a row of normal columns, on average."""
    spread: float
    """E w²/(E w)² ≥ 1: the sampling variance of rows of unequal weight over that of equal ones."""
    edge: float
    """f: what is added to the variance of every direction for the noise of the first matrix."""
    first_kept: float
    """w in the first matrix."""
    first_sigma: float
    """σ of the first matrix over n."""
    blur: Mapping[str, float]
    """By how much noisy histograms overstate the deviation of each column whose spread was given."""
    se_ratio: float
    """Standard error of a coefficient over that of least squares, for the regression that was asked about, or
    else for columns that do not go together; inf where nothing is told."""

    @property
    def works(self) -> bool:
        """Whether intervals would be given."""
        return math.isfinite(self.se_ratio)


def expected_adaptive(
    schema: Schema,
    guarantee: Guarantee,
    split: BudgetSplit,
    *,
    rows: float,
    adjacency: Adjacency,
    spreads: Mapping[str, tuple[float, float]] | None = None,
) -> ExpectedAdaptive:
    """The forecast for a table of `rows` rows; reads no data.

    `spreads` are guesses of the mean and deviation of columns of numbers, −1 and 1 being their bounds.

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
    else:
        mu = discrete_mu_at_most(guarantee.epsilon, guarantee.delta) / math.sqrt(changed)
    told = signal(rows, mu, width)
    counting = math.sqrt(len(schema.columns_read)) / _part(mu, split.histograms, pure=guarantee.pure)
    # Simulated once for all columns that are alike, to four digits of their spread.
    parts: dict[tuple[float, str], float] = {}
    blur: dict[str, float] = {}
    for name, (mean, spread) in (spreads or {}).items():
        key = (round(mean / spread, 3), f"{spread:.3e}")
        if key not in parts:
            parts[key] = blurred(Scale(mean, spread), counting, rows) / spread
        blur[name] = parts[key]
    # Lengths in columns that are taken to vary more than they do.
    shorter = float(np.mean([1.0 / each**2 for each in blur.values()])) if blur else 1.0
    start = radius(rows, mu, width)
    first, last = (_part(mu, each, pure=guarantee.pure) for each in (split.first, share))
    lengths = normal_squares(width)
    first_kept = float(np.mean(np.minimum(1.0, start**2 / lengths)))
    first_sigma = start**2 / (first * rows) if first > 0.0 else 0.0
    edge = RIDGE * 2.0 * first_sigma * math.sqrt(width)
    seen = first_kept * shorter
    variance = seen / (seen + edge) if first > 0.0 else 1.0
    longest = start
    if first > 0.0 and told < REACH_FROM:
        longest = radius(rows, mu, width * variance)
    elif first > 0.0:
        doubt = 1.0 / _part(mu, 0.5 * split.clip, pure=guarantee.pure) if split.clip else math.inf
        squares = 1.0 + shorter * (lengths - 1.0)
        longest = _reached(start, rows, mu, width, squares, math.sqrt(variance / seen), doubt)
    sigma = longest**2 / last
    weights = np.minimum(1.0, longest**2 / (variance * lengths))
    kept = float(np.mean(weights))
    spread = float(np.mean(weights**2)) / kept**2
    noise = sigma**2 / (2.0 * rows * (kept * variance) ** 2)
    return ExpectedAdaptive(
        signal=told,
        told=told >= PLAIN_BELOW,
        radius=longest,
        rank=width,
        sigma=sigma,
        kept=kept,
        spread=spread,
        edge=edge,
        first_kept=first_kept,
        first_sigma=first_sigma,
        blur=blur,
        se_ratio=math.sqrt(spread + noise) if told >= PLAIN_BELOW else math.inf,
    )


def normal_squares(width: int) -> npt.NDArray[np.float64]:
    """|u|² of rows with a constant and normal columns, from the shortest to the longest."""
    from scipy.special import chdtri

    found: npt.NDArray[np.float64] = 1.0 + chdtri(max(width - 1, 1), 1.0 - (np.arange(2_000) + 0.5) / 2_000)
    return found


def _part(mu: float, share: float, *, pure: bool) -> float:
    """The μ of a share: of ε for pure noise, else of μ²."""
    return mu * share if pure else mu * math.sqrt(share)


def _reached(
    start: float,
    rows: float,
    mu: float,
    width: int,
    squares: npt.NDArray[np.float64],
    longer: float,
    doubt: float,
) -> float:
    """As `reached`: `squares` are |u|² in standardised columns, `longer` how much longer rows become."""
    for factor in REACH_ENDS[REACH_ENDS <= 1.001 * LONGEST].tolist():
        lost = rows * float(np.mean(np.maximum(1.0 - (factor * start) ** 2 / squares, 0.0)))
        unsure = DOUBT * doubt * float(np.linalg.norm(np.maximum(1.0 - (factor / REACH_ENDS) ** 2, 0.0)))
        if lost <= LOST * math.sqrt(2.0 * width) * (factor * start * longer) ** 2 / mu + unsure:
            return float(factor * start * longer)
    return LONGEST * start * longer
