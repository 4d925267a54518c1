"""The bounds of `dpgram_papers.bounds` on one table each, beside what is drawn there; seeds are fixed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from dpgram.core.noise import SeededEntropy, simulation
from dpgram.noise.sampled import wishart
from dpgram.privacy.guarantee import Guarantee
from dpgram_papers.amin import FAILURE as SPLIT_FAILURE
from dpgram_papers.amin import PrintedEigenvectors
from dpgram_papers.analyze_gauss import AnalyzeGauss
from dpgram_papers.bounds import (
    eigenvalue_reach,
    eigenvector_bound,
    gaussian_bound,
    sketch_bound,
    wishart_bound,
)
from dpgram_papers.experiments.amin_tables import synthetic
from dpgram_papers.experiments.sheffet_single import DELTA, WIDTH, solved, table
from dpgram_papers.experiments.study import SEED
from dpgram_papers.sheffet import PrintedSketch, PrintedWishart
from dpgram_papers.variant import Matrix

FAILURE: Final = 0.1
"""ν, and β of Amin's Theorem 2."""
DRAWS: Final = 200
EPSILON: Final = 0.5
LOG2_ROWS: Final = 22
SKETCH_ROWS: Final = 1_000
AMIN_WIDTH: Final = 10
AMIN_ROWS: Final = 10_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBound:
    """A bound that holds with probability 1 − ν, and the quantile at 1 − ν of what it bounds."""

    what: str
    bound: float
    seen: float
    nothing: float
    """What answering 0 costs: a bound above it says nothing."""


def measured_bounds() -> tuple[MeasuredBound, ...]:
    """Sheffet's one regression, and a synthetic table of Amin."""
    return (*_sheffet(), *_amin())


def _sheffet() -> tuple[MeasuredBound, ...]:
    """In units of B²: G and what is drawn, of n = 2²² clipped rows (by their limit law)."""
    gram = table(SEED, LOG2_ROWS, 0, 14)
    features, fit = gram[:-1, :-1], solved(gram)
    length, claimed = float(np.linalg.norm(fit)), Guarantee(EPSILON, DELTA)
    gauss = AnalyzeGauss(claimed=claimed)
    added = PrintedWishart(claimed=claimed, width=WIDTH)
    ridged = gram + PrintedSketch(claimed=claimed, rows=SKETCH_ROWS).ridge * np.eye(WIDTH)
    ridge_fit = solved(ridged)
    residual = float(ridged[-1, -1] - ridge_fit @ ridged[:-1, -1])
    entropy, generator = SeededEntropy(SEED), simulation(SEED)
    where = f"Sheffet's table, n = 2²², ε = {EPSILON:g}"
    return (
        MeasuredBound(
            what=f"Theorem C.1 for Analyze Gauss, |β̃ − β̂|: {where}",
            bound=gaussian_bound(features, length, gauss.sigma, FAILURE),
            seen=_quantile(lambda: float(np.linalg.norm(solved(gauss.draw(gram, entropy)) - fit))),
            nothing=length,
        ),
        MeasuredBound(
            what=f"Theorem C.3 (4.2), mended, for Algorithm 3, |β̃ − β̂|: {where}",
            bound=wishart_bound(features, length, added.degrees, FAILURE),
            seen=_quantile(lambda: float(np.linalg.norm(solved(added.draw(gram, entropy)) - fit))),
            nothing=length,
        ),
        MeasuredBound(
            what=f"Theorem 3.2 for Algorithm 1 with r = {SKETCH_ROWS:,}, |β̃ᴿ − βᴿ|: {where}",
            bound=sketch_bound(ridged[:-1, :-1], residual, SKETCH_ROWS, FAILURE),
            seen=_quantile(
                lambda: float(np.linalg.norm(solved(wishart(ridged, SKETCH_ROWS, generator)) - ridge_fit))
            ),
            nothing=float(np.linalg.norm(ridge_fit)),
        ),
    )


def amin_gram() -> Matrix:
    """Σ x xᵀ of a synthetic table of Amin's."""
    rows = synthetic(AMIN_WIDTH, AMIN_ROWS, SEED)
    return np.asarray(rows.T @ rows)


def _amin() -> tuple[MeasuredBound, ...]:
    gram, found = amin_gram(), []
    values = np.asarray(np.linalg.eigvalsh(gram)[::-1], dtype=np.float64)
    claimed = Guarantee(1.0)
    for name, variant, weights in (
        (
            "Theorem 2 and Corollary 1 (adaptive shares)",
            PrintedEigenvectors(claimed=claimed),
            _least_shares(values),
        ),
        (
            "Theorem 2 with even shares, as in Corollary 2",
            PrintedEigenvectors(claimed=claimed, split="uniform"),
            np.full(AMIN_WIDTH, 1.0 / AMIN_WIDTH),
        ),
    ):
        found.append(
            MeasuredBound(
                what=f"{name}, |Ĉ − C|_F: d = {AMIN_WIDTH}, n = {AMIN_ROWS:,}, ε = 1",
                bound=eigenvector_bound(values.tolist(), (0.5 * weights).tolist(), 0.5, FAILURE),
                seen=_quantile(_distance(variant, gram)),
                nothing=float(np.linalg.norm(gram)),
            )
        )
    return tuple(found)


def _least_shares(values: Matrix) -> Matrix:
    """What each direction gets at least of √(λ̂_i + τ)/Σ√(λ̂_j + τ), for all |λ̂ − λ| ≤ τ₀ (Theorem 2's event).

    τ is that of the split, at its own failure; what is drawn takes λ̂, so the shares of λ bound nothing there.
    """
    width, allowed = len(values), eigenvalue_reach(len(values), 0.5, FAILURE)
    shift = eigenvalue_reach(width, 0.5, SPLIT_FAILURE)
    low = np.sqrt(np.maximum(values - allowed + shift, 0.0))
    high = np.sqrt(values + allowed + shift)
    return np.asarray(low / (low + high.sum() - high))


def _distance(variant: PrintedEigenvectors, gram: Matrix) -> Callable[[], float]:
    entropy = SeededEntropy(SEED)
    return lambda: float(np.linalg.norm(variant.draw(gram, entropy) - gram))


def _quantile(draw: Callable[[], float]) -> float:
    return float(np.quantile([draw() for _ in range(DRAWS)], 1.0 - FAILURE))
