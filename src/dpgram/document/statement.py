"""The guarantee in words, for a reader who has never heard of differential privacy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dpgram.document.fields import AdjacencyName

_CHANGE: Final[dict[str, str]] = {
    "add-remove": "adding or removing {who}",
    "replace-one": "replacing {who} by anything else",
}

LARGEST_EXPONENT: Final = 700.0
"""e to a greater power is near the end of the floats, or beyond."""

SEEDED: Final = "SEEDED: whoever knows the seed can remove the noise. For tests only; this protects nobody."
"""Beside every promise of a release whose noise came from a seed."""


def in_words(
    *,
    epsilon: float,
    delta: float,
    adjacency: AdjacencyName,
    unit: str | None,
    numerical_delta: float = 0.0,
) -> str:
    """What (ε, δ) promises, for a reader who has never heard of differential privacy."""
    who = "any one row of the table" if unit is None else f"all rows of any one {unit!r}"
    change = _CHANGE[adjacency].format(who=who)
    first = (
        f"Whatever anybody computes from this release, {change} changes the probability of any outcome "
        f"by a factor of at most {_factor(epsilon)}"
    )
    if delta + numerical_delta == 0:
        return first + ", without exception (δ = 0)."
    if numerical_delta == 0:
        return first + f", apart from events of total probability at most δ = {delta:g}."
    return first + (
        f", apart from events of total probability at most {delta:g} (δ) + {rounded_up(numerical_delta)} "
        "(because the sampler works in floating point)."
    )


def _factor(epsilon: float) -> str:
    """e^ε; left as a power where no float could hold it."""
    if epsilon > LARGEST_EXPONENT:
        return f"e^{epsilon:g} (ε = {epsilon:g})"
    return f"{math.exp(epsilon):.4g} (e^ε with ε = {epsilon:g})"


def rounded_up(value: float) -> str:
    """Two significant digits, never less than the value."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    if unit == 0.0:  # a probability at the end of the floats
        return "1e-300"
    return f"{math.ceil(value / unit) * unit:.2g}"
