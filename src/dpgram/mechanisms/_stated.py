"""What a release file states of its noise, in plain values, for mechanisms to hold against its promise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, final

from dpgram.noise import Law
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.charged import Charged
from dpgram.privacy.curves.base import GaussianCurve, PrivacyCurve

ROUNDING: Final = 1e-9
"""What two versions of a mathematical library may differ by; no promise is worth less for it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StatedNoise:
    """The law and parameters of a file's noise, and all that decides whether they keep its promise."""

    law: Law
    parameters: Mapping[str, float | int | str]
    adjacency: Adjacency
    width: int
    unit_rows: int
    published: Literal["gram", "inverse"]
    exponent: int
    epsilon: float
    """ε, δ, μ and ρ are the promise for the whole release."""
    delta: float
    mu: float | None
    rho: float | None
    counted: bool
    """Whether noisy counts were measured before the matrix, inside the same promise."""
    counts_cost: float
    """What these cost: μ² where they are Gaussian, else ε."""
    leak: float
    """The part of δ that paid for learnt levels."""
    gain: float = 1.0
    """How many times the noise of one release there is in the matrix of a window of a series."""

    @property
    def promised(self) -> Charged:
        """The promise as charges add up to it: in μ² where it has a μ, else in ε and δ."""
        if self.mu is not None:
            return Charged(mu_squared=self.mu * self.mu)
        return Charged(epsilon=self.epsilon, delta=self.delta)

    @property
    def plain_gram(self) -> bool:
        """Whether the matrix itself was published, in whole lattice units."""
        return self.published == "gram" and self.exponent == 0

    @property
    def matrix_epsilon(self) -> float:
        """ε left for the matrix beside pure counts, which compose with it by adding ε and δ."""
        return self.epsilon - self.counts_cost if self.counted else self.epsilon

    @property
    def matrix_delta(self) -> float:
        return self.delta - self.leak if self.counted else self.delta

    def number(self, parameter: str) -> float:
        """A parameter that must be a float; not a number, which no comparison passes, where it is none."""
        found = self.parameters.get(parameter)
        return found if isinstance(found, float) else math.nan

    def has_own_epsilon(self) -> bool:
        """Whether the mechanism's own ε is what is left for it; a difference is known up to rounding only."""
        own = self.parameters.get("epsilon")
        if not self.counted:
            return own == self.epsilon
        return isinstance(own, float) and math.isclose(own, self.matrix_epsilon, rel_tol=ROUNDING)

    def has_parameters(self, **expected: object) -> bool:
        """Whether the parameters are the matrix's own ε and δ > 0, these, and nothing else."""
        rest = {name: value for name, value in self.parameters.items() if name != "epsilon"}
        own = self.has_own_epsilon() and rest.pop("delta", None) == self.matrix_delta
        return self.matrix_delta > 0 and own and rest == expected

    def pure_within(self, epsilon: float) -> bool:
        """Whether a matrix that is `epsilon`-DP keeps what is left of the promise, with no δ of its own."""
        return self.matrix_epsilon * (1 + ROUNDING) >= epsilon and self.delta == self.leak

    def curve_within(self, curve: PrivacyCurve) -> bool:
        """Whether the curve keeps what is left of (ε, δ), and no more is stated than that."""
        plain = self.mu is None and self.rho is None
        return plain and curve.within(
            self.matrix_epsilon * (1 + ROUNDING), self.matrix_delta * (1 + ROUNDING)
        )

    def gaussian_within(self, mu: float) -> bool:
        """Whether μ, ρ and (ε, δ) promise no more than noise that is `mu`-GDP as a whole gives."""
        if self.leak:  # learnt levels have a δ of their own, so there is no μ for the whole
            rest = self.delta * (1 + ROUNDING) - self.leak
            met = rest > 0 and GaussianCurve(mu).within(self.epsilon * (1 + ROUNDING), rest)
            return met and self.mu is None and self.rho is None
        if self.mu is None or self.mu < mu * (1 - ROUNDING):
            return False
        if self.rho is not None and self.rho < 0.5 * self.mu * self.mu * (1 - ROUNDING):
            return False
        return GaussianCurve(self.mu).within(self.epsilon * (1 + ROUNDING), self.delta * (1 + ROUNDING))
