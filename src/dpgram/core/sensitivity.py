"""How far one unit moves each sum, in lattice units: exact integers.

A unit's contribution to a Gram sum is V ⪰ 0 with tr V ≤ s = 2^30, all groups together; to each histogram it
is a vector of whole numbers that are not negative and sum to at most s. So, for one unit added or removed,

    Gram            |V|_F ≤ tr V ≤ s,             |V|_* = tr V ≤ s
    m histograms    |a|_2 ≤ √m·s,                 |a|_1 ≤ m·s

For one replaced by another the difference of two such contributions has ⟨V, V'⟩ ≥ 0, in whatever groups the
rows of either are: squares add up, and so do absolute values. Proof: proofs/core.md#core-sensitivity.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from dpgram.core import SQUARE
from dpgram.core.encode import broken
from dpgram.core.sums import Counts, EachGroup, Gram, Histograms, Lengths, Levels, Sum

Relation: TypeAlias = Literal["add-remove", "replace-one"]

_CHANGED: Final = {"add-remove": 1, "replace-one": 2}


def changed(relation: Relation) -> int:
    """How many contributions neighbours differ by."""
    try:
        return _CHANGED[relation]
    except (KeyError, TypeError):
        raise broken("there is no such relation") from None


def histograms(what: Sum) -> int:
    """To how many histograms one unit adds; 1 for a matrix, whose groups count together.

    Each of which is bounded by 2^30: the trace of a matrix, the sum of a histogram.

    Proof: proofs/core.md#core-sensitivity.
    """
    match what:
        case Gram() | Lengths():
            return 1
        case Histograms(columns=columns):
            return len(columns)
        case Counts():
            return what.shape[0]
        case Levels(lines=lines):
            return len(lines)
        case EachGroup(members=members):
            found = {(type(one), histograms(one)) for one in members if one is not None}
            if len(found) == 1:
                return found.pop()[1]
    raise broken("there is no proven sensitivity for this sum")


def squared(what: Sum, relation: Relation) -> int:
    """Δ₂²: of the Frobenius norm for a matrix.

    Proof: proofs/core.md#core-sensitivity.
    """
    return changed(relation) * histograms(what) * SQUARE**2


def absolute(what: Sum, relation: Relation) -> int:
    """Δ₁: of the nuclear norm for a matrix.

    Proof: proofs/core.md#core-sensitivity.
    """
    return changed(relation) * histograms(what) * SQUARE


def is_matrix(what: Sum) -> bool:
    """Whether what is added up are symmetric matrices, in which a cell off the diagonal moves twice."""
    return isinstance(what, Gram) or (
        isinstance(what, EachGroup) and all(isinstance(one, Gram) for one in what.members if one is not None)
    )
