"""The integer lattice on which rows live, so that sensitivity is an integer fact.

An encoded row a with |a| ≤ R is stored as the integer vector q ≈ a·2^15/R with |q|² ≤ 2^30, exactly.
Mechanisms work in lattice units: for them every row has norm at most `ROW_NORM`, whatever the data's radius.
"""

from __future__ import annotations

from typing import Final

LATTICE_BITS: Final = 15
ROW_NORM: Final = 1 << LATTICE_BITS
"""The largest norm of a row, in lattice units."""
ROW_NORM_SQUARED: Final = 1 << (2 * LATTICE_BITS)
"""The largest squared norm of a row: the Frobenius norm and the trace of one row's contribution q qᵀ."""

UNIT_ROWS_AT_MOST: Final = 1_024
"""Most rows of a privacy unit that counts as one: m rows have 2^15/√m lattice steps each, 1,024 at least."""
LARGEST_UNIT_LIMIT: Final = 4_096
"""The most rows a unit may be allowed where every row counts alike: each then has 512 lattice steps."""


def cell_unit(radius: float) -> float:
    """Size, in encoded units, of one lattice unit of a Gram cell: (R / 2^15)²."""
    return (radius / ROW_NORM) ** 2
