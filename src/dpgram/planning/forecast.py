"""What one mechanism would give: its noise, the standard errors, and the rows it needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from dpgram.analysis.moments import EncodedNoise
from dpgram.core.noise import simulation
from dpgram.errors import DpgramError
from dpgram.lattice import ROW_NORM_SQUARED, cell_unit
from dpgram.mechanisms import CalibratedMechanism, Mechanism, PublicFacts
from dpgram.noise import NoisyInverse, SymmetricGaussian
from dpgram.planning._least_rows import least_rows
from dpgram.planning._regression import AssumedRegression, RegressionOutcome
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.guarantee import Guarantee

WORTH_IT: Final = 2.0
"""A ratio of 2: as good as least squares on a quarter of the rows."""
MOST_ROWS: Final = 10**12
DRAWS: Final = 64
"""Simulated releases behind a forecast that has no exact closed form, for up to 24 columns."""
ONE_SIGMA: Final = 0.6827
"""The part of errors within one standard error."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """One mechanism at one guarantee, on the assumed table."""

    mechanism: str
    epsilon: float
    delta: float
    """0 where the mechanism needs no δ."""
    noise: float
    """Root-mean-square σ of a diagonal cell, in encoded units (σ/√2 off the diagonal)."""
    noise_in_rows: float
    """The same in units of one full-length row's square."""
    se_ratio: float
    """Median over the coefficients of standard error over that of least squares; inf: no interval at all."""
    worst_se_ratio: float
    se_ratios: Mapping[str, float]
    without_interval: tuple[str, ...]
    """Coefficients that would get no interval because noise could have made them."""
    rows_needed: int | None
    """Least number of rows with a median ratio of at most 2; nothing if no number suffices."""
    se_ratio_at_double_epsilon: float
    se_ratio_with_half_the_columns: float | None
    se_ratio_after_learning_bounds: float
    simulated: bool

    @property
    def works(self) -> bool:
        """Whether any interval would be given."""
        return math.isfinite(self.se_ratio)

    @property
    def verdict(self) -> str:
        if not self.works:
            return "will not work"
        if self.se_ratio > WORTH_IT:
            return "poor"
        return "usable" if self.se_ratio > 1.2 else "good"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setting:
    """A regression with the public facts that decide the noise."""

    regression: AssumedRegression
    rows: int
    adjacency: Adjacency
    radius: float

    @property
    def unit(self) -> float:
        """One lattice unit in encoded units."""
        return cell_unit(self.radius)

    def facts(self, rows: int | None = None) -> PublicFacts:
        """What mechanisms are calibrated from."""
        return PublicFacts(
            width=len(self.regression.values),
            adjacency=self.adjacency,
            rows=self.rows if rows is None else rows,
            radius=self.radius,
        )

    def calibrated(
        self, asked: Mechanism, guarantee: Guarantee, rows: int | None = None
    ) -> CalibratedMechanism:
        """The mechanism at that guarantee; parameters that nobody gave are guessed from rows."""
        facts = self.facts(rows)
        return asked.guessed(facts).calibrated(guarantee, facts)

    def outcome(
        self, mechanism: CalibratedMechanism, rows: float | None = None, factor: float = 1.0
    ) -> RegressionOutcome:
        """Of the regression, for a table of `rows` rows."""
        count = self.rows if rows is None else rows
        law = mechanism.expected(count * self.regression.values / self.unit)
        return self.regression.outcome(law, count, self.unit, factor)

    def ratio(self, asked: Mechanism, guarantee: Guarantee) -> float:
        """The median ratio of standard errors; infinite where the mechanism does not go that far."""
        try:
            mechanism = self.calibrated(asked, guarantee)
        except DpgramError:
            return math.inf
        return self.outcome(mechanism).typical

    def rows_needed(
        self, asked: Mechanism, mechanism: CalibratedMechanism, guarantee: Guarantee, factor: float
    ) -> int | None:
        """The least number of rows from which on the regression is worth it.

        What follows rows is calibrated anew for each number; the others stay as they were for `rows`.
        """

        def typical(rows: int) -> float:
            used = self.calibrated(asked, guarantee, rows) if asked.follows_rows else mechanism
            return self.outcome(used, rows, factor).typical

        return least_rows(
            typical,
            WORTH_IT,
            start=self.rows,
            none=len(self.regression.spectrum),
            most=MOST_ROWS,
            precision=1.0 / 200.0,
        )

    def simulated_factor(self, mechanism: CalibratedMechanism, tick: Callable[[], None]) -> float:
        """Mean square of simulated errors over the closed form's, averaged over coefficients.

        First-order errors, but those of the library's own estimates for a noisy inverse: its noise is far
        from even, while an analysis takes it for even, which costs more than the noise itself.
        """
        regression, unit = self.regression, self.unit
        gram = self.rows * regression.second / unit
        law = mechanism.expected(self.rows * regression.values / unit)
        generator, width = simulation(0), len(gram)
        shift = law.mean_diagonal * np.eye(width)
        drawn = []
        for _ in range(_draws(width)):
            drawn.append((law.redraw(gram, generator) - shift) * unit)
            tick()
        exact = gram * unit
        if isinstance(law, NoisyInverse):
            even = EncodedNoise.of(law.stand_in(gram, simulation(0)), unit)
            none = EncodedNoise.of(SymmetricGaussian(sigma=0.0))
            truth = regression.estimated([exact], none, self.radius)
            errors = (regression.estimated(drawn, even, self.radius) - truth) * self.rows
            squares = np.quantile(np.abs(errors), ONE_SIGMA, axis=0) ** 2
        else:
            squares = np.mean([regression.error_of(one - exact) ** 2 for one in drawn], axis=0)
        closed = regression.noise(law.cell_variances(self.rows * regression.values / unit) * unit**2)
        return float(np.mean(squares / closed))


def forecast(
    asked: Mechanism,
    guarantee: Guarantee,
    setting: Setting,
    *,
    halved: Setting | None,
    bounds_share: float,
    simulate: bool,
    tick: Callable[[], None],
) -> Forecast:
    """Everything that is told about one mechanism. `tick` is called after each step of work."""
    regression = setting.regression
    mechanism = setting.calibrated(asked, guarantee)
    tick()
    law = mechanism.expected(setting.rows * regression.values / setting.unit)
    simulated = simulate and asked.first_order_error
    factor = setting.simulated_factor(mechanism, tick) if simulated else 1.0
    found = setting.outcome(mechanism, factor=factor)
    doubled = setting.calibrated(asked, Guarantee(2.0 * guarantee.epsilon, guarantee.delta))
    tick()
    fewer = None
    if halved is not None:
        narrow = asked.for_fewer_columns(len(halved.regression.values))
        fewer = halved.outcome(halved.calibrated(narrow, guarantee), factor=factor).typical
    tick()
    pure = mechanism.curve(setting.facts()).delta(guarantee.epsilon) == 0.0
    # A share b of the budget leaves μ√(1 − b); of a pure budget ε(1 − b).
    left = (1.0 - bounds_share) ** (2 if pure else 1)
    cells = law.cell_variances(setting.rows * regression.values / setting.unit)
    width = len(cells)
    sigma = math.sqrt(2.0 * factor * float(cells.sum()) / (width * (width + 1)))
    return Forecast(
        mechanism=asked.name,
        epsilon=guarantee.epsilon,
        delta=0.0 if pure else guarantee.delta,
        noise=sigma * setting.unit,
        noise_in_rows=sigma / ROW_NORM_SQUARED,
        se_ratio=found.typical,
        worst_se_ratio=float("inf") if found.refused else float(found.ratios.max()),
        se_ratios=dict(zip(regression.names, map(float, found.ratios), strict=True)),
        without_interval=tuple(n for n, ok in zip(regression.names, found.clear, strict=True) if not ok),
        rows_needed=setting.rows_needed(asked, mechanism, guarantee, factor),
        se_ratio_at_double_epsilon=setting.outcome(doubled, factor=factor).typical,
        se_ratio_with_half_the_columns=fewer,
        se_ratio_after_learning_bounds=setting.outcome(mechanism, factor=factor / left).typical,
        simulated=simulated,
    )


def tick_count(asked: Mechanism, width: int, *, simulate: bool) -> int:
    """How often `forecast` calls `tick`."""
    simulated = simulate and asked.first_order_error
    return 3 + (_draws(width) if simulated else 0)


def _draws(width: int) -> int:
    return max(1, min(DRAWS, DRAWS * 24**2 // width**2))
