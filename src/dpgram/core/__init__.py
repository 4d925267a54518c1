"""The guarantee: a table in, noisy integer sums out, each of them paid for before it is drawn.

This folder imports numpy, OpenDP, threadpoolctl, python-flint, the standard library and `dpgram.errors`, and
nothing else of dpgram (tests/core/test_closed.py). proofs/core.md has the claims, file by file.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "EXACT",
    "GREATEST_EXPONENT",
    "LEAST_EXPONENT",
    "NORM",
    "OCTAVES",
    "SQUARE",
    "ZERO",
]

NORM: Final = 1 << 15
"""The largest length of a row, in lattice units."""
SQUARE: Final = 1 << 30
"""Its square: the trace of q qᵀ, and what one unit adds to a histogram."""
EXACT: Final = 1 << 53
"""Whole numbers up to this are floats, so that sums of them that stay below it have no rounding."""

LEAST_EXPONENT: Final = -1074
GREATEST_EXPONENT: Final = 1023
ZERO: Final = GREATEST_EXPONENT - LEAST_EXPONENT + 1
"""The place of the octave that counts zeros; 2^k ≤ x < 2^(k+1) is k − LEAST_EXPONENT + 1 above it."""
OCTAVES: Final = 2 * ZERO + 1
"""Signed powers of two: so many cells hold every float."""
