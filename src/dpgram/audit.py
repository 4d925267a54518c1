"""Lower bounds on (ε, δ) and μ of anything that can be run again: what draws prove, not what is claimed.

Two neighbouring inputs a and b are run many times. On one half of the draws an event S is chosen that tells
them apart best; on the other half its two probabilities are bounded by Clopper–Pearson. Whatever is run,
P(S) ≥ p and Q(S) ≤ q with the stated confidence, so that ε ≥ ln((p − δ)/q) and μ ≥ Φ⁻¹(p) − Φ⁻¹(q). An audit
can refute a guarantee; it can never prove one. Neighbours and statistics for Gram mechanisms: `gram_audit`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Final, Literal, TypeAlias, TypeVar, final

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri

from dpgram.errors import GuaranteeError
from dpgram.privacy.curves import PrivacyCurve
from dpgram.privacy.entropy import Entropy, SystemEntropy
from dpgram.privacy.guarantee import GaussianDP, Guarantee, ZeroConcentrated

Scores: TypeAlias = npt.NDArray[np.float64]
"""One row a run, one column a statistic."""
Side: TypeAlias = Literal["above", "below"]
Input: TypeAlias = Literal["a", "b"]
Claim: TypeAlias = Guarantee | GaussianDP | ZeroConcentrated | PrivacyCurve
Output = TypeVar("Output")

_CHUNK: Final = 500
"""Runs that share one source of entropy: fixed, so that the number of workers cannot change the outcome."""
_LEAST_RUNS: Final = 100
_THRESHOLDS: Final = 400
_DIRECTIONS: Final[tuple[tuple[Side, Input, Input], ...]] = (
    ("above", "a", "b"),
    ("above", "b", "a"),
    ("below", "a", "b"),
    ("below", "b", "a"),
)
_EPSILONS: Final = np.concatenate([[0.0], np.geomspace(1e-3, 60.0, 300)])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Separation:
    """An event, chosen on one half of the runs, and what the other half says of its two probabilities."""

    statistic: str
    event: Side
    threshold: float
    likelier: Input
    """The input under which the event is the more frequent."""
    hits: tuple[int, int]
    """How often it happened under the likelier input, and under the other."""
    runs: int
    p_at_least: float
    q_at_most: float

    def epsilon_at_least(self, delta: float) -> float:
        """ln((p − δ)/q), or the same of the complementary event if that is more; 0 where nothing is shown."""
        bounds = [0.0]
        for p, q in self._sides():
            if p > delta:
                bounds.append(math.log((p - delta) / q))
        return max(bounds)

    def delta_at_least(self, epsilon: float) -> float:
        """p − e^ε q, of the event or of its complement; 0 where nothing is shown."""
        return max(0.0, *(p - math.exp(epsilon) * q for p, q in self._sides()))

    @property
    def mu_at_least(self) -> float:
        """Φ⁻¹(p) − Φ⁻¹(q); 0 where nothing is shown."""
        return max(0.0, float(ndtri(self.p_at_least) - ndtri(self.q_at_most)))

    def _sides(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """(p, q) of the event, and of its complement, which is likelier under the other input."""
        return (self.p_at_least, self.q_at_most), (1.0 - self.q_at_most, 1.0 - self.p_at_least)

    def __str__(self) -> str:
        sign = ">" if self.event == "above" else "≤"
        return (
            f"{self.statistic} {sign} {self.threshold:.4g}: {self.hits[0]} times in {self.runs} under "
            f"{self.likelier}, {self.hits[1]} under the other"
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """What the runs prove, all bounds at once with probability `confidence`."""

    delta: float
    confidence: float
    by_epsilon: Separation
    """The event that was chosen to show the largest ε at `delta`."""
    by_mu: Separation
    """The event that was chosen to show the largest μ."""

    @property
    def epsilon_lower(self) -> float:
        """No ε below this one is true together with δ = `delta`."""
        return max(s.epsilon_at_least(self.delta) for s in (self.by_epsilon, self.by_mu))

    @property
    def mu_lower(self) -> float:
        """No μ below this one is true."""
        return max(self.by_epsilon.mu_at_least, self.by_mu.mu_at_least)

    def delta_lower(self, epsilon: float) -> float:
        """No δ below this one is true together with `epsilon`."""
        return max(s.delta_at_least(epsilon) for s in (self.by_epsilon, self.by_mu))

    def passes(self, claim: Claim) -> bool:
        """Whether nothing found here contradicts the claim: (ε, δ), μ-GDP, ρ-zCDP or a whole curve."""
        if isinstance(claim, Guarantee):
            return self.delta_lower(claim.epsilon) <= claim.delta
        curve = claim if isinstance(claim, PrivacyCurve) else claim.curve
        return all(self.delta_lower(epsilon) <= curve.delta(epsilon) for epsilon in _EPSILONS.tolist())

    def __str__(self) -> str:
        return (
            f"ε ≥ {self.epsilon_lower:.3f} at δ = {self.delta:g} ({self.by_epsilon}); "
            f"μ ≥ {self.mu_lower:.3f} ({self.by_mu}); confidence {self.confidence:g}"
        )


def audit(
    run_a: Callable[[Entropy], Output],
    run_b: Callable[[Entropy], Output],
    *,
    runs: int,
    delta: float = 0.0,
    statistic: Callable[[Sequence[Output]], npt.ArrayLike],
    names: Sequence[str] | None = None,
    confidence: float = 0.999,
    workers: int = 1,
    entropy: Entropy | None = None,
) -> AuditResult:
    """Bound ε (at `delta`) and μ from below by `runs` draws of each of two neighbours.

    `statistic` maps a list of outputs to one number each, or to one row of numbers each; the best linear
    combination of the numbers is tried as well. With several workers everything given must be picklable.
    """
    _check(runs, delta, confidence)
    source = SystemEntropy() if entropy is None else entropy
    a, b = _collected(run_a, run_b, statistic, runs, source, workers)
    labels = list(names) if names is not None else [f"statistic {k}" for k in range(a.shape[1])]
    if len(labels) != a.shape[1]:
        raise GuaranteeError("names and statistics differ in number", got=len(labels), limit=f"{a.shape[1]}")

    half = runs // 2
    direction = _discriminant(a[:half], b[:half])
    a, b = np.column_stack([a, a @ direction]), np.column_stack([b, b @ direction])
    labels.append("linear discriminant")
    # Two events, each with one bound on P and one on Q: four statements share the error probability.
    error = 0.25 * (1.0 - confidence)
    candidates = list(_candidates(a[:half], b[:half], error))
    return AuditResult(
        delta=delta,
        confidence=confidence,
        by_epsilon=_evaluated(
            _best(candidates, partial(_log_ratio, delta)), labels, a[half:], b[half:], error
        ),
        by_mu=_evaluated(_best(candidates, _gaussian_distance), labels, a[half:], b[half:], error),
    )


def clopper_pearson_lower(hits: npt.ArrayLike, runs: int, error: float) -> Scores:
    """The p under which `hits` or more of `runs` have probability `error`; 0 for no hit."""
    count = np.asarray(hits, dtype=np.float64)
    lower: Scores = np.where(count > 0.0, betaincinv(np.maximum(count, 1.0), runs - count + 1.0, error), 0.0)
    return lower


def clopper_pearson_upper(hits: npt.ArrayLike, runs: int, error: float) -> Scores:
    """The p under which `hits` or fewer of `runs` have probability `error`; 1 for a hit in every run."""
    return 1.0 - clopper_pearson_lower(runs - np.asarray(hits), runs, error)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidates:
    """The events "column above (or below) t" with bounds on their probabilities, one for each threshold t."""

    column: int
    event: Side
    likelier: Input
    thresholds: Scores
    p: Scores
    q: Scores


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    column: int
    event: Side
    likelier: Input
    threshold: float


def _candidates(a: Scores, b: Scores, error: float) -> Iterator[_Candidates]:
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
            yield _Candidates(column=column, event=event, likelier=likelier, thresholds=thresholds, p=p, q=q)


def _best(candidates: Sequence[_Candidates], merit: Callable[[Scores, Scores], Scores]) -> _Chosen:
    found = [merit(c.p, c.q) for c in candidates]
    block = max(range(len(found)), key=lambda k: float(found[k].max()))
    winner, place = candidates[block], int(found[block].argmax())
    return _Chosen(
        column=winner.column,
        event=winner.event,
        likelier=winner.likelier,
        threshold=float(winner.thresholds[place]),
    )


def _log_ratio(delta: float, p: Scores, q: Scores) -> Scores:
    merit: Scores = np.log(np.maximum(p - delta, 1e-300)) - np.log(q)
    return merit


def _gaussian_distance(p: Scores, q: Scores) -> Scores:
    merit: Scores = ndtri(np.maximum(p, 1e-300)) - ndtri(np.minimum(q, 1.0 - 1e-16))
    return merit


def _evaluated(chosen: _Chosen, labels: Sequence[str], a: Scores, b: Scores, error: float) -> Separation:
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


def _discriminant(a: Scores, b: Scores) -> Scores:
    """Fisher's direction Σ⁻¹(mean a − mean b): the best linear test if the statistics are nearly Gaussian."""
    centred = np.concatenate([a - a.mean(axis=0), b - b.mean(axis=0)])
    spread = centred.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    correlation = (centred / spread).T @ (centred / spread) / len(centred)
    shift = (a.mean(axis=0) - b.mean(axis=0)) / spread
    direction: Scores = np.linalg.lstsq(correlation, shift, rcond=1e-9)[0] / spread
    return direction


def _collected(
    run_a: Callable[[Entropy], Output],
    run_b: Callable[[Entropy], Output],
    statistic: Callable[[Sequence[Output]], npt.ArrayLike],
    runs: int,
    entropy: Entropy,
    workers: int,
) -> tuple[Scores, Scores]:
    sizes = [min(_CHUNK, runs - start) for start in range(0, runs, _CHUNK)]
    sources = entropy.split(2 * len(sizes))
    jobs = [(run_a, statistic, size, source) for size, source in zip(sizes, sources[::2], strict=True)]
    jobs += [(run_b, statistic, size, source) for size, source in zip(sizes, sources[1::2], strict=True)]
    if workers == 1:
        parts = [_chunk(*job) for job in jobs]
    else:
        # A fresh interpreter, not a fork: a copied process would share the state of its random generators.
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            parts = list(pool.map(_chunk, *zip(*jobs, strict=True)))
    return np.concatenate(parts[: len(sizes)]), np.concatenate(parts[len(sizes) :])


def _chunk(
    run: Callable[[Entropy], Output],
    statistic: Callable[[Sequence[Output]], npt.ArrayLike],
    runs: int,
    entropy: Entropy,
) -> Scores:
    scores: Scores = np.asarray(statistic([run(entropy) for _ in range(runs)]), dtype=np.float64)
    if not np.isfinite(scores).all():
        raise GuaranteeError(
            "a statistic is not a finite number", remedy="Cut infinite values off at a large finite one."
        )
    return scores.reshape(runs, -1)


def _check(runs: int, delta: float, confidence: float) -> None:
    if runs < _LEAST_RUNS:
        raise GuaranteeError("an audit needs more runs", got=runs, limit=f"runs ≥ {_LEAST_RUNS}")
    if not 0.0 <= delta < 1.0:
        raise GuaranteeError("delta must be a probability below one", got=delta, limit="0 ≤ delta < 1")
    if not 0.5 <= confidence < 1.0:
        raise GuaranteeError("confidence is out of range", got=confidence, limit="0.5 ≤ confidence < 1")
