"""Audits whose event is named before the first run, beside one that is chosen from the runs.

The likelihood ratio of a law tells the best event there is, so no run has to be spent on choosing it: all of
them bound its two probabilities. Where something is broken another event may tell more, so that the usual
audit of every score, by halves, is made as well; they share the error probability.

"Above 0" is also taken as a guess of the input, right in P(S) of the runs of one and in 1 − Q(S) of those of
the other. A guarantee holds both ways, so that the mean g of the two obeys g ≤ e^ε(1 − g) + δ and g ≤ Φ(μ/2):
as if P(S) were g and Q(S) were 1 − g. And g needs one bound, from the runs of both inputs together: a sum of
independent hits has tails within those of a binomial of the same mean (Hoeffding 1956, Theorem 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpgram.audit import AuditResult, Experiment, JointAudit, Scores, Separation, clopper_pearson_lower
from dpgram.audit.scores import collect
from dpgram.audit.threshold_events import ChosenEvent, evaluated
from dpgram.audit.two_inputs import audit_scores
from dpgram.core.noise import Entropy


def audit_foreseen(
    experiment: Experiment[Any],
    *,
    thresholds: Sequence[float],
    runs: int,
    delta: float,
    confidence: float,
    entropy: Entropy,
) -> JointAudit:
    """Runs of both inputs; the first score is the likelihood ratio, to be above each of the thresholds."""
    ((a, b),) = collect([experiment], runs=runs, sources=[entropy])
    return audit_foreseen_scores(
        a, b, names=experiment.names, thresholds=thresholds, delta=delta, confidence=confidence
    )


def audit_foreseen_scores(
    a: Scores,
    b: Scores,
    *,
    names: Sequence[str] | None,
    thresholds: Sequence[float],
    delta: float,
    confidence: float,
) -> JointAudit:
    """The same of scores that were drawn already; the thresholds must not come from them."""
    labels = list(names or (f"score {k}" for k in range(a.shape[1])))
    half = 0.5 * (1.0 - confidence)
    error = 0.5 * half / (2.0 * len(thresholds))  # of each probability of each event
    guesses = _guessed(labels[0], a[:, 0], b[:, 0], 0.5 * half)
    found = [
        (
            "foreseen, guesses of the input",
            AuditResult(delta=delta, confidence=1.0 - 0.5 * half, by_epsilon=guesses, by_mu=guesses),
        )
    ]
    for threshold in thresholds:
        event = ChosenEvent(column=0, event="above", likelier="a", threshold=threshold)
        seen = evaluated(event, labels, a, b, error)
        result = AuditResult(delta=delta, confidence=1.0 - 2.0 * error, by_epsilon=seen, by_mu=seen)
        found.append((f"foreseen, above {threshold:.3g}", result))
    chosen = audit_scores(a, b, names=names, delta=delta, confidence=1.0 - half)
    return JointAudit(results=(*found, ("chosen by the runs", chosen)))


def _guessed(name: str, a: Scores, b: Scores, error: float) -> Separation:
    """How often "above 0" tells the input, as an event of that probability and its complement's."""
    right = int(np.count_nonzero(a > 0.0)) + int(np.count_nonzero(b <= 0.0))
    runs = len(a) + len(b)
    least = float(clopper_pearson_lower(right, runs, error))
    return Separation(
        statistic=f"guesses by {name}",
        event="above",
        threshold=0.0,
        likelier="a",
        hits=(right, runs - right),
        runs=runs,
        p_at_least=least,
        q_at_most=1.0 - least,
    )
