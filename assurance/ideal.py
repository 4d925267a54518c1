"""What an ideal audit could prove with so many runs: it knows the law, and all runs are for one event of it.

Such an audit names the event before it looks, the best one by the true probabilities (p, q), and bounds each
by Clopper–Pearson, or the mean of p and 1 − q from the runs of both inputs together (see `foreseen`): what it
proves is taken at the expected counts. Ours shares its error probability among several events, some of them
chosen from the runs, so that on average it proves less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from dpgram.audit import clopper_pearson_lower, clopper_pearson_upper

Floats = npt.NDArray[np.float64]

WANTED: Final = 0.8
"""What part of it an audit has to prove."""
_EVENTS: Final = 400


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ideal:
    """The largest ε at `delta` and the largest μ, each by the event that is best for it."""

    epsilon: float
    mu: float
    thresholds: tuple[float, ...]
    """Of the log-likelihood ratio: the events that are best for ε, and for μ."""


def gaussian_ideal(mu: float, *, runs: int, delta: float, confidence: float) -> Ideal:
    """Of N(μ²/2, μ²) against N(−μ²/2, μ²), the log-likelihood ratios of a Gaussian law."""
    places = np.linspace(-6.0, 6.0, _EVENTS)
    p, q = ndtr(0.5 * mu - places), ndtr(-0.5 * mu - places)
    return _best(mu * places, p, q, runs=runs, delta=delta, confidence=confidence)


def ideal_of_scores(a: Floats, b: Floats, *, runs: int, delta: float, confidence: float) -> Ideal:
    """By likelihood ratios that were drawn from the law many times: a under one input, b under the other."""
    pooled = np.quantile(np.concatenate([a, b]), np.linspace(0.0, 1.0, _EVENTS))
    p, q = (1.0 - np.searchsorted(np.sort(each), pooled, "right") / len(each) for each in (a, b))
    return _best(pooled, p, q, runs=runs, delta=delta, confidence=confidence)


def _best(thresholds: Floats, p: Floats, q: Floats, *, runs: int, delta: float, confidence: float) -> Ideal:
    """The event and its complement, which is likelier under the other input."""
    error = 0.5 * (1.0 - confidence)
    by_epsilon, by_mu = (0.0, 0.0), (0.0, 0.0)
    for more, less in ((p, q), (1.0 - q, 1.0 - p)):
        lower = clopper_pearson_lower(runs * more, runs, error)
        upper = clopper_pearson_upper(runs * less, runs, error)
        ratio = np.log(np.maximum(lower - delta, 1e-300)) - np.log(upper)
        distance = ndtri(np.maximum(lower, 1e-300)) - ndtri(np.minimum(upper, 1.0 - 1e-16))
        by_epsilon = max(by_epsilon, (float(ratio.max()), float(thresholds[ratio.argmax()])))
        by_mu = max(by_mu, (float(distance.max()), float(thresholds[distance.argmax()])))
    named = dict.fromkeys((by_epsilon[1], by_mu[1]))
    right = float(0.5 * np.max(p + 1.0 - q))
    guessed = float(clopper_pearson_lower(2 * runs * right, 2 * runs, 2.0 * error))
    told = np.log(max(guessed - delta, 1e-300)) - np.log1p(-guessed)
    return Ideal(
        epsilon=max(by_epsilon[0], float(told)),
        mu=max(by_mu[0], 2.0 * float(ndtri(guessed))),
        thresholds=tuple(named),
    )
