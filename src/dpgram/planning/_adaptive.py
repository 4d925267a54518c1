"""What an adaptive release would give for one regression on a table that is assumed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np

from dpgram.core.noise import simulation
from dpgram.planning._least_rows import least_rows
from dpgram.planning._regression import SINGULAR, AlikeRegression, AssumedRegression
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing.expected import ExpectedAdaptive, expected_adaptive, normal_squares
from dpgram.publishing.split import BudgetSplit
from dpgram.schema import Schema

ADAPTIVE: Final = "adaptive"
"""How figures and advice call the adaptive release, beside the mechanisms of one plain matrix."""
MOST_ROWS: Final = 10**9
DRAWS: Final = 15
"""First matrices that are simulated: from each other coordinates follow."""
WIDTH: Final = 24
"""Columns from which on there are fewer: a median over many coefficients hardly differs between them."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveSetting:
    """A regression with the public facts that decide the noise."""

    schema: Schema
    split: BudgetSplit
    adjacency: Adjacency
    rows: int
    regression: AssumedRegression

    def forecast(self, guarantee: Guarantee) -> ExpectedAdaptive:
        """With the ratio of standard errors of this regression, the median of all coefficients and draws."""
        found = expected_adaptive(
            self.schema,
            guarantee,
            self.split,
            rows=float(self.rows),
            adjacency=self.adjacency,
            spreads=self.regression.spreads,
        )
        if not found.told:
            return found
        generator, ratios = simulation(DRAWS), []
        standard = self.regression.standardised(found.blur)
        for _ in range(max(1, min(DRAWS, DRAWS * WIDTH // len(standard.moments)))):
            drawn = generator.normal(size=standard.moments.shape) * found.first_sigma
            values, vectors = np.linalg.eigh(found.first_kept * standard.moments + (drawn + drawn.T) / 2.0)
            shown = np.maximum(values, 0.0) + max(found.edge, SINGULAR)
            ratios.append(self._ratio(found, standard.whitened(shown, vectors)))
        return replace(found, se_ratio=float(np.median(ratios)))

    def rows_needed(self, guarantee: Guarantee, ratio: float) -> int | None:
        """How many rows it takes for such a ratio of standard errors, to an eighth; None: more than 10^9."""

        return least_rows(
            lambda rows: replace(self, rows=rows).forecast(guarantee).se_ratio,
            ratio,
            start=self.rows,
            none=len(self.regression.spectrum),
            most=MOST_ROWS,
            precision=0.125,
        )

    def _ratio(self, found: ExpectedAdaptive, seen: AlikeRegression) -> float:
        """In the coordinates that one first matrix led to, in which the clip leaves a part w of the rows."""
        lengths = normal_squares(found.rank) * seen.trace / found.rank
        weights = np.minimum(1.0, found.radius**2 / lengths)
        kept = float(weights.mean())
        typical = seen.outcome(found.sigma**2 / (2.0 * (self.rows * kept) ** 2), self.rows * kept).typical
        # What the outcome compares with is the sampling error of w·n rows, and not of n.
        return math.sqrt(float(np.mean(weights**2)) / kept**2 + (typical**2 - 1.0) / kept)
