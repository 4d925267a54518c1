"""Events "a statistic is above (or below) t": the one that separates best, and its bounds on fresh runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from scipy.special import ndtri

from dpgram.audit.bounds import (
    Input,
    Scores,
    Separation,
    ThresholdSide,
    clopper_pearson_lower,
    clopper_pearson_upper,
)

_THRESHOLDS: Final = 400
_DIRECTIONS: Final[tuple[tuple[ThresholdSide, Input, Input], ...]] = (
    ("above", "a", "b"),
    ("above", "b", "a"),
    ("below", "a", "b"),
    ("below", "b", "a"),
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateEvents:
    """The events "column above (or below) t" with bounds on their probabilities, one for each threshold t."""

    column: int
    event: ThresholdSide
    likelier: Input
    thresholds: Scores
    p: Scores
    q: Scores


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenEvent:
    """The event that told the two inputs apart best: a column of the scores and a side of a threshold."""

    column: int
    event: ThresholdSide
    likelier: Input
    threshold: float


def candidates(a: Scores, b: Scores, error: float) -> Iterator[CandidateEvents]:
    """Every statistic in both directions, at thresholds taken from the runs themselves."""
    n = len(a)
    for column in range(a.shape[1]):
        x, y = np.sort(a[:, column]), np.sort(b[:, column])
        pooled = np.sort(np.concatenate([x, y]))
        picks = np.unique(np.linspace(0, len(pooled) - 1, _THRESHOLDS).round().astype(int))
        # Zero and the ends of each sample are where the support of a one-sided noise would show.
        thresholds = np.unique(np.concatenate([pooled[picks], [0.0, x[0], x[-1], y[0], y[-1]]]))
        below = {"a": np.searchsorted(x, thresholds, "right"), "b": np.searchsorted(y, thresholds, "right")}
        for event, likelier, other in _DIRECTIONS:
            more, less = below[likelier], below[other]
            if event == "above":
                more, less = n - more, n - less
            p, q = clopper_pearson_lower(more, n, error), clopper_pearson_upper(less, n, error)
            yield CandidateEvents(
                column=column, event=event, likelier=likelier, thresholds=thresholds, p=p, q=q
            )


def best_event(
    candidates: Sequence[CandidateEvents], merit: Callable[[Scores, Scores], Scores]
) -> ChosenEvent:
    """The event with the largest merit of its (p, q)."""
    found = [merit(c.p, c.q) for c in candidates]
    block = max(range(len(found)), key=lambda k: float(found[k].max()))
    winner, place = candidates[block], int(found[block].argmax())
    return ChosenEvent(
        column=winner.column,
        event=winner.event,
        likelier=winner.likelier,
        threshold=float(winner.thresholds[place]),
    )


def log_ratio(delta: float, p: Scores, q: Scores) -> Scores:
    """ln((p − δ)/q)."""
    merit: Scores = np.log(np.maximum(p - delta, 1e-300)) - np.log(q)
    return merit


def gaussian_distance(p: Scores, q: Scores) -> Scores:
    """Φ⁻¹(p) − Φ⁻¹(q)."""
    merit: Scores = ndtri(np.maximum(p, 1e-300)) - ndtri(np.minimum(q, 1.0 - 1e-16))
    return merit


def evaluated(chosen: ChosenEvent, labels: Sequence[str], a: Scores, b: Scores, error: float) -> Separation:
    """The bounds of one event on draws that had no part in choosing it."""
    more, less = (a, b) if chosen.likelier == "a" else (b, a)
    counts = [int(np.count_nonzero(x[:, chosen.column] > chosen.threshold)) for x in (more, less)]
    if chosen.event == "below":
        counts = [len(a) - count for count in counts]
    return Separation(
        statistic=labels[chosen.column],
        event=chosen.event,
        threshold=chosen.threshold,
        likelier=chosen.likelier,
        hits=(counts[0], counts[1]),
        runs=len(a),
        p_at_least=float(clopper_pearson_lower(counts[0], len(a), error)),
        q_at_most=float(clopper_pearson_upper(counts[1], len(a), error)),
    )


def discriminant(a: Scores, b: Scores) -> Scores:
    """Fisher's direction Σ⁻¹(mean a − mean b): the best linear test if the statistics are nearly Gaussian."""
    centred = np.concatenate([a - a.mean(axis=0), b - b.mean(axis=0)])
    spread = centred.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    correlation = (centred / spread).T @ (centred / spread) / len(centred)
    shift = (a.mean(axis=0) - b.mean(axis=0)) / spread
    direction: Scores = np.linalg.lstsq(correlation, shift, rcond=1e-9)[0] / spread
    return direction
