"""What the sketch, inverse-Wishart and additive Wishart mechanisms share."""

from __future__ import annotations

import math
from typing import ClassVar, final

import numpy as np
import numpy.typing as npt

from dpgram.core.noise import Entropy
from dpgram.errors import MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms.base import (
    ROWS_GUESSED,
    CalibratedMechanism,
    Mechanism,
    PublicFacts,
    as_floats,
    checked_count,
)
from dpgram.privacy.curves.rounding import down, up
from dpgram.privacy.curves.spectral import GRID, on_grid, rounding_slack
from dpgram.privacy.curves.wishart import DEGREES_AT_MOST
from dpgram.privacy.events import ApproximateEvent, Event


class WishartFamily(Mechanism):
    """Mechanisms with degrees of freedom, whose curves are proven for a change of rank 1."""

    semidefinite: ClassVar[bool] = True
    one_row_per_unit: ClassVar[bool] = True

    degrees: int | None
    """Degrees of freedom, or rows of a sketch; None: chosen from public facts."""

    @final
    def __post_init__(self) -> None:
        degrees = checked_count(self.name, "degrees", self.degrees, most=DEGREES_AT_MOST)
        object.__setattr__(self, "degrees", degrees)

    @final
    def _degrees_at_least(self, least: int) -> int | None:
        """What was asked for, refused where the number of columns makes it too little."""
        if self.degrees is not None and self.degrees < least:
            raise MechanismError(
                f"too few degrees of freedom for {self.name}",
                got=self.degrees,
                limit=f"{least} ≤ degrees ≤ {DEGREES_AT_MOST:g}",
                remedy="Give more degrees, or leave them out to have them chosen.",
            )
        return self.degrees


class CalibratedWishartFamily(CalibratedMechanism):
    """Known to be (ε, δ)-DP and no more; drawn exactly, by Bartlett's decomposition (proofs/entropy.md)."""

    epsilon: float
    delta: float

    @final
    def event(self, facts: PublicFacts) -> Event:
        """The guarantee it was calibrated for."""
        del facts
        return ApproximateEvent(epsilon=self.epsilon, delta=self.delta)


def ridge_for(ratio: float) -> float:
    """The least whole ridge, in lattice units, of which a row of squared length s is at most `ratio`.

    Proof: proofs/sketch.md#sketch-exact.
    """
    return float(math.ceil(up(up(ROW_NORM_SQUARED / ratio))))


def ratio_of(ridge: float) -> float:
    """t = s/ridge, the inverse of `ridge_for`. Proof: proofs/sketch.md#sketch-exact."""
    return up(ROW_NORM_SQUARED / ridge)


def forecast_degrees(facts: PublicFacts, noise_rows: float) -> int:
    """Degrees r from which on the sampling error n/√r is a tenth of what privacy costs anyway, per direction.

    A sketch of a table with n full-length rows spread over d directions errs by (n/d + w²/s)/√r in each, and
    w²/√r tends to a constant, `noise_rows`: the σ of the Gaussian mechanism in rows.
    """
    rows = ROWS_GUESSED if facts.rows is None else facts.rows
    wanted = (10.0 * rows / (facts.width * noise_rows)) ** 2
    return int(min(max(wanted, 10.0 * facts.width + 100.0), 0.1 * DEGREES_AT_MOST))


def least_eigenvalue_sensitivity(width: int) -> float:
    """1 under both relations, in units of one row's trace, widened for the solver and the grid."""
    return up(1.0 + rounding_slack(width))


def expected_bound(values: npt.NDArray[np.float64], mu: float, quantile: float) -> float:
    """max(0, λ_min − (Δ/μ)·z_{1−β}): what a look with no noise would find."""
    scale = least_eigenvalue_sensitivity(len(values)) / mu
    return max(0.0, float(np.min(values)) - scale * quantile * ROW_NORM_SQUARED)


def noisy_least_eigenvalue(
    gram: npt.NDArray[np.int64], mu: float, quantile: float, entropy: Entropy
) -> float:
    """max(0, λ_min + (Δ/μ)(Z − z_{1−β})) in lattice units: with probability 1 − β no more than λ_min.

    Proof: proofs/sketch.md#sketch-adaptive.
    """
    width = len(gram)
    exact = on_grid(np.asarray(np.linalg.eigvalsh(as_floats(gram) / ROW_NORM_SQUARED)[:1], dtype=np.float64))
    scale = up(least_eigenvalue_sensitivity(width) / mu)
    noise = float(entropy.discrete_gaussian(up(scale / GRID), 1)[0]) * GRID
    # The float eigenvalue may itself be too large by the solver's error, so that is taken off as well.
    bound = float(exact[0]) + noise - scale * quantile - rounding_slack(width)
    return max(0.0, down(bound) * ROW_NORM_SQUARED if bound > 0.0 else 0.0)
