"""Audits whose event is named before the first run, beside one that is chosen from the runs.

The likelihood ratio of a law tells the best event there is, so no run has to be spent on choosing it: all of
them bound its two probabilities. Where something is broken another event may tell more, so that the usual
audit of every score, by halves, is made as well; the two share the error probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpgram.audit import AuditResult, Experiment, JointAudit, Scores
from dpgram.audit.scores import collect
from dpgram.audit.threshold_events import ChosenEvent, evaluated
from dpgram.audit.two_inputs import audit_scores
from dpgram.privacy.sampling.entropy import Entropy


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
    error = half / (2.0 * len(thresholds))  # of each probability of each event
    found = []
    for threshold in thresholds:
        event = ChosenEvent(column=0, event="above", likelier="a", threshold=threshold)
        seen = evaluated(event, labels, a, b, error)
        result = AuditResult(delta=delta, confidence=1.0 - 2.0 * error, by_epsilon=seen, by_mu=seen)
        found.append((f"foreseen, above {threshold:.3g}", result))
    chosen = audit_scores(a, b, names=names, delta=delta, confidence=1.0 - half)
    return JointAudit(results=(*found, ("chosen by the runs", chosen)))
