"""Residual and weight of a row under each family of declared models, bounded by construction.

    linear       (y − η)/E, limited to ±1;                         1 where it is not limited, else 0
    logistic     y − p, p = 1/(1 + e^−η);                          p' = p(1 − p) over its largest, ¼
    probit       y − Φ(η);                                         φ(η) over its largest, φ(0)
    poisson      ψ((y − λ)·g/E) − E ψ, λ = e^η, g = min(1, c/λ);   min(λ, c)/c

η is the index β·x, ψ limits to ±7/8, and E ψ, of magnitude ⅛ at most, is its expectation where y has the law
of Poisson with mean λ. Only operations that every machine rounds alike are used. proofs/models.md#models-rows
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from dpgram.document.model_units import WIDEST_CURVE, Curve

Floats = npt.NDArray[np.float64]

TEMPERED: Final = 38.0
"""Beyond this an index decides; so it is taken for it."""
FARTHEST: Final = 1e300
"""The same for a linear model, whose residual is limited in any case."""
KEPT: Final = 0.875
"""What a residual of counts is limited to; the rest is for its expectation."""
COUNTED: Final = 48
"""The largest count up to which that is added up. Where more are possible before the limit bites, the limit
is at least four deviations away on either side, and what it takes below and above nearly the same."""


def residual_and_root(
    curve: Curve, index: Floats, truth: Floats, limit: float, cap: float
) -> tuple[Floats, Floats]:
    """(r, √k) with |r| ≤ 1 and 0 ≤ k ≤ 1, whatever comes in. Proof: proofs/models.md#models-rows."""
    if curve == "linear":
        gap = (truth - _within(index, FARTHEST)) / limit
        return np.clip(gap, -1.0, 1.0), np.where(np.abs(gap) <= 1.0, 1.0, 0.0)
    if curve == "poisson":
        return _of_counts(index, truth, limit, cap)
    chance, root = curved(curve, index)
    return np.clip(truth - chance, -1.0, 1.0), root


def curved(curve: Literal["logistic", "probit"], index: Floats) -> tuple[Floats, Floats]:
    """p in [0, 1] and √(p'/max p') in [0, 1]. Proof: proofs/models.md#models-rows."""
    tame = _within(index, TEMPERED)
    size = np.abs(tame)
    if curve == "logistic":
        small = falling(size)
        over = 1.0 / (1.0 + small)
        chance = np.where(tame >= 0.0, over, small * over)
        root = 2.0 * np.sqrt(small) * over
    else:
        # Abramowitz & Stegun 26.2.17, of error below 10⁻⁷.
        bell = falling(0.5 * (size * size))
        t = 1.0 / (1.0 + 0.2316419 * size)
        tail: Floats = np.full(len(size), 1.330274429)
        for term in (-1.821255978, 1.781477937, -0.356563782, 0.319381530):
            tail = tail * t + term
        beyond = WIDEST_CURVE["probit"] * bell * tail * t
        chance = np.where(tame >= 0.0, 1.0 - beyond, beyond)
        root = np.sqrt(bell)
    return np.clip(chance, 0.0, 1.0), np.clip(root, 0.0, 1.0)


def _of_counts(index: Floats, truth: Floats, limit: float, cap: float) -> tuple[Floats, Floats]:
    mean = rising(index)
    unit = np.where(mean > cap, cap / mean, 1.0) / limit
    held = np.clip((truth - mean) * unit, -KEPT, KEPT)
    shift = np.clip(limited_expectation(mean, unit), KEPT - 1.0, 1.0 - KEPT)
    root = np.sqrt(np.where(mean > cap, cap, mean) / cap)
    return np.clip(held - shift, -1.0, 1.0), np.clip(root, 0.0, 1.0)


def limited_expectation(mean: Floats, unit: Floats) -> Floats:
    """E of (Y − λ)·unit limited to ±7/8, Y of Poisson's law with mean λ; 0 where `COUNTED` is passed.

    Proof: proofs/models.md#models-rows.
    """
    few = mean + KEPT / unit <= float(COUNTED)
    mean = np.where(few, mean, 0.0)
    chance = falling(mean)
    total = np.full(len(mean), KEPT)
    for count in range(COUNTED + 1):
        total += (np.clip((count - mean) * unit, -KEPT, KEPT) - KEPT) * chance
        chance = chance * (mean / (count + 1.0))
    return np.where(few, total, 0.0)


def rising(index: Floats) -> Floats:
    """e^η, of an index that is taken for ±38 beyond these."""
    tame = _within(index, TEMPERED)
    small = falling(np.abs(tame))
    return np.where(tame >= 0.0, 1.0 / small, small)


def falling(x: Floats) -> Floats:
    """e^−x for 0 ≤ x ≤ 800, to 10⁻¹³: powers of two and a polynomial, as libraries may differ."""
    halves = np.rint(x * 1.4426950408889634)
    rest = (x - halves * 0.693147180369123816490) - halves * 1.90821492927058770002e-10
    total = np.ones_like(rest)
    for term in range(13, 0, -1):
        total = 1.0 - rest * (total / term)
    return np.ldexp(total, -halves.astype(np.int64))


def _within(index: Floats, far: float) -> Floats:
    """Limited to ±far; what is no number is −far."""
    tame = np.where(index > -far, index, -far)
    return np.where(tame < far, tame, far)
