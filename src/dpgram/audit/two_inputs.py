"""Lower bounds on (ε, δ) and μ of anything that can be run again: what draws prove, not what is claimed.

Two neighbouring inputs a and b are run many times. On one half of the runs an event S is chosen that tells
them apart best; on the other half its two probabilities are bounded by Clopper–Pearson. Whatever is run,
P(S) ≥ p and Q(S) ≤ q with the stated confidence, so that ε ≥ ln((p − δ)/q) and μ ≥ Φ⁻¹(p) − Φ⁻¹(q).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from dpgram.audit.bounds import AuditResult, JointAudit, Scores
from dpgram.audit.scores import Experiment, Output, Run, ScoreFile, Statistic, Tell, collect
from dpgram.audit.threshold_events import (
    best_event,
    candidates,
    discriminant,
    evaluated,
    gaussian_distance,
    log_ratio,
)
from dpgram.core.noise import Entropy, SystemEntropy
from dpgram.errors import GuaranteeError

LEAST_RUNS: Final = 100


def audit(
    run_a: Run[Output],
    run_b: Run[Output],
    *,
    runs: int,
    delta: float = 0.0,
    statistic: Statistic[Output],
    names: Sequence[str] | None = None,
    confidence: float = 0.999,
    workers: int = 1,
    entropy: Entropy | None = None,
    scores: str | os.PathLike[str] | None = None,
    what: str = "",
    tell: Tell | None = None,
) -> AuditResult:
    """Bound ε (at `delta`) and μ from below by `runs` draws of each of two neighbours.

    `statistic` maps a list of outputs to one number each, or to one row of numbers each; the best linear
    combination of the numbers is tried as well. With several workers everything given must be picklable.
    `scores` names a file that keeps what was drawn: a second call continues it, also with more runs; `what`
    says what was run, and a file of something else is refused. `tell` hears of progress.
    """
    one = Experiment(
        name="",
        run_a=run_a,
        run_b=run_b,
        statistic=statistic,
        names=None if names is None else tuple(names),
    )
    _check(runs, delta, confidence)
    source = SystemEntropy() if entropy is None else entropy
    store = None if scores is None else ScoreFile(scores, what)
    ((a, b),) = collect([one], runs=runs, sources=[source], workers=workers, store=store, tell=tell)
    return audit_scores(a, b, names=one.names, delta=delta, confidence=confidence)


def audit_all(
    experiments: Sequence[Experiment[Any]],
    *,
    runs: int,
    delta: float = 0.0,
    confidence: float = 0.999,
    workers: int = 1,
    entropy: Entropy | None = None,
    scores: str | os.PathLike[str] | None = None,
    what: str = "",
    tell: Tell | None = None,
) -> JointAudit:
    """The same for several pairs of neighbours at once; the confidence is that of all bounds together."""
    _check(runs, delta, confidence)
    sources = (SystemEntropy() if entropy is None else entropy).split(len(experiments))
    store = None if scores is None else ScoreFile(scores, what)
    found = collect(experiments, runs=runs, sources=sources, workers=workers, store=store, tell=tell)
    shared = 1.0 - (1.0 - confidence) / len(experiments)
    return JointAudit(
        results=tuple(
            (one.name, audit_scores(a, b, names=one.names, delta=delta, confidence=shared))
            for one, (a, b) in zip(experiments, found, strict=True)
        )
    )


def audit_scores(
    a: Scores, b: Scores, *, names: Sequence[str] | None = None, delta: float = 0.0, confidence: float = 0.999
) -> AuditResult:
    """What scores prove, wherever they come from.

    Both arrays have the same shape: a row for each run and a column for each statistic.
    """
    runs = len(a)
    _check(runs, delta, confidence)
    if a.shape != b.shape:
        raise GuaranteeError("both inputs need equally many runs and statistics", got=(a.shape, b.shape))
    labels = list(names) if names is not None else [f"statistic {k}" for k in range(a.shape[1])]
    if len(labels) != a.shape[1]:
        raise GuaranteeError("names and statistics differ in number", got=len(labels), limit=f"{a.shape[1]}")
    half = runs // 2
    direction = discriminant(a[:half], b[:half])
    a, b = np.column_stack([a, a @ direction]), np.column_stack([b, b @ direction])
    labels.append("linear discriminant")
    # Two events, each with one bound on P and one on Q: four statements share the error probability.
    error = 0.25 * (1.0 - confidence)
    tried = list(candidates(a[:half], b[:half], error))
    return AuditResult(
        delta=delta,
        confidence=confidence,
        by_epsilon=evaluated(best_event(tried, partial(log_ratio, delta)), labels, a[half:], b[half:], error),
        by_mu=evaluated(best_event(tried, gaussian_distance), labels, a[half:], b[half:], error),
    )


def _check(runs: int, delta: float, confidence: float) -> None:
    if runs < LEAST_RUNS:
        raise GuaranteeError("there are too few runs for an audit", got=runs, limit=f"runs ≥ {LEAST_RUNS}")
    if not 0.0 <= delta < 1.0:
        raise GuaranteeError("delta must be a probability below one", got=delta, limit="0 ≤ delta < 1")
    if not 0.5 <= confidence < 1.0:
        raise GuaranteeError("confidence is out of range", got=confidence, limit="0.5 ≤ confidence < 1")
