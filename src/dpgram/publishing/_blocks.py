"""Blocks of columns that share one budget: min Σ_b d_b·σ_b² for noise σ_b in encoded units.

Gaussian, σ_b = Δ_b/μ_b with Δ_b = R_b² and Σ μ_b² = μ²: μ_b² ∝ R_b²·√d_b. Matrix Laplace,
σ_b = √(d_b+1)·R_b²/ε_b with Σ ε_b = ε: ε_b³ ∝ d_b(d_b+1)·R_b⁴. Both by Lagrange. Proof: proofs/blocks.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from dpgram.rows.encoder import Encoder


def gaussian_shares(encoders: Sequence[Encoder]) -> list[float]:
    """Shares of μ²: μ_b² ∝ R_b²√d_b. Proof: proofs/blocks.md#blocks-gaussian."""
    return _shares([one.radius**2 * math.sqrt(one.schema.width) for one in encoders])


def pure_shares(encoders: Sequence[Encoder]) -> list[float]:
    """Shares of ε: ε_b ∝ (d_b(d_b + 1)R_b⁴)^{1/3}. Proof: proofs/blocks.md#blocks-pure."""
    widths = [one.schema.width for one in encoders]
    return _shares(
        [
            (width * (width + 1) * one.radius**4) ** (1 / 3)
            for width, one in zip(widths, encoders, strict=True)
        ]
    )


def _shares(costs: Sequence[float]) -> list[float]:
    """Proportional shares that add up to at most 1 in exact arithmetic.

    Proof: proofs/blocks.md#blocks-split.
    """
    whole = sum(costs)
    shares = [cost / whole for cost in costs]
    excess = sum(map(Fraction, shares)) - 1
    return shares if excess <= 0 else [share * (1.0 - 2.0**-48) for share in shares]
