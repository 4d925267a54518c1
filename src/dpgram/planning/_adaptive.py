"""What an adaptive release would give for one regression on a table that is assumed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np
import numpy.typing as npt

from dpgram.core.noise import simulation
from dpgram.noise import SymmetricGaussian
from dpgram.planning._regression import SINGULAR, AssumedRegression
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.curves.search import least
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing.expected import ExpectedAdaptive, expected_adaptive, normal_squares
from dpgram.publishing.split import BudgetSplit
from dpgram.schema import Schema

Matrix = npt.NDArray[np.float64]

ADAPTIVE: Final = "adaptive"
"""How figures and advice call the adaptive release, beside the mechanisms of one plain matrix."""
MOST_ROWS: Final = 1e9
DRAWS: Final = 15
"""First matrices that are simulated: from each other coordinates follow."""


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
        generator = simulation(DRAWS)

        def first(moments: Matrix) -> Matrix:
            """As a first matrix would show them, one draw of its noise."""
            drawn = generator.normal(size=moments.shape) * found.first_sigma
            values, vectors = np.linalg.eigh(found.first_kept * moments + (drawn + drawn.T) / 2.0)
            shown: Matrix = (vectors * (np.maximum(values, 0.0) + max(found.edge, SINGULAR))) @ vectors.T
            return shown

        ratios = [self._ratio(found, self.regression.standardised(found.blur, first)) for _ in range(DRAWS)]
        return replace(found, se_ratio=float(np.median(ratios)))

    def rows_needed(self, guarantee: Guarantee, ratio: float) -> int | None:
        """How many rows it takes for such a ratio of standard errors, to an eighth; None: more than 10^9."""

        def reached(rows: float) -> bool:
            more = replace(self, rows=int(rows))
            return rows > MOST_ROWS or more.forecast(guarantee).se_ratio <= ratio

        rows = least(reached, start=1_000.0, tolerance=0.125)
        return None if rows > MOST_ROWS else int(rows)

    def _ratio(self, found: ExpectedAdaptive, seen: AssumedRegression) -> float:
        """In the coordinates that one first matrix led to, in which the clip leaves a part w of the rows."""
        lengths = normal_squares(found.rank) * float(seen.values.sum()) / found.rank
        weights = np.minimum(1.0, found.radius**2 / lengths)
        kept = float(weights.mean())
        noise = SymmetricGaussian(sigma=found.sigma)
        typical = seen.outcome(noise, self.rows * kept, 1.0).typical
        # What the outcome compares with is the sampling error of w·n rows, and not of n.
        return math.sqrt(float(np.mean(weights**2)) / kept**2 + (typical**2 - 1.0) / kept)
