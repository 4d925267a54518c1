"""What `publish` is asked to learn, as shares of the event's currency: bounds, levels, a row radius."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from dpgram.errors import GuaranteeError, SchemaError
from dpgram.schema import Schema

COUNT_SHARE: Final = 0.05
"""Share of what is given for bounds (without any: for all that is learnt) that pays for the number of rows,
where that is not public."""
LEAST_SHARE: Final = 1e-9
"""Of one thing that is learnt: with less its noise would hide all, and parts of it could round to 0."""
MOST_SHARE: Final = 0.8
"""All shares together: less than a fifth for the matrix would be noise."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive:
    """Shares of the budget for what is learnt privately before the matrix; 0: not learnt.

    `bounds` and `levels` are spent only on columns whose bounds or levels the schema leaves open. `radius`
    pays for a row radius chosen privately, which clips the few longest rows and so lowers the noise of all;
    a share of 0.03 is enough for it.

    >>> Adaptive(radius=0.03).bounds
    0.2
    """

    bounds: float = 0.2
    levels: float = 0.1
    radius: float = 0.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSplit:
    """What is to be learnt, as shares of the event's currency; 0 where nothing is."""

    bounds: float = 0.0
    levels: float = 0.0
    radius: float = 0.0

    @property
    def total(self) -> float:
        """What is not left for the matrix."""
        return self.bounds + self.levels + self.radius

    def __bool__(self) -> bool:
        return self.total > 0.0

    def parts(self, *, private_rows: bool) -> PartShares:
        """What each part gets; where the number of rows is private, 5% of what is learnt first pay for it.

        With bounds, whose thresholds need that number most, they come out of the bounds' share alone;
        otherwise out of every share alike, so that none can be used up.
        """
        count = COUNT_SHARE * (self.bounds or self.total) if private_rows else 0.0
        left = 1.0 - COUNT_SHARE if private_rows else 1.0
        others = 1.0 if self.bounds else left
        half = 0.5 * left * self.bounds
        return PartShares(
            count=count, octaves=half, bins=half, levels=others * self.levels, lengths=others * self.radius
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartShares:
    """The share of the event's currency that each part before the matrix gets; 0 where nothing is drawn."""

    count: float
    octaves: float
    bins: float
    levels: float
    lengths: float

    def __post_init__(self) -> None:
        for name in ("count", "octaves", "bins", "levels", "lengths"):
            share = getattr(self, name)
            if not 0.0 <= share < 1.0:
                raise GuaranteeError(
                    f"the share of the part {name!r} is out of range", got=f"{share:g}", limit="0 ≤ share < 1"
                )


def budget_split(schema: Schema, adaptive: bool | Adaptive) -> BudgetSplit:
    """The shares that are needed; refuses a schema that leaves something open without a share to learn it."""
    if not isinstance(adaptive, bool | Adaptive):
        raise GuaranteeError(
            "adaptive says what is learnt privately",
            got=repr(adaptive)[:100],
            limit="True, False or Adaptive(bounds=…, levels=…, radius=…)",
        )
    shares = Adaptive() if adaptive is True else adaptive or Adaptive(bounds=0.0, levels=0.0)
    bounds, levels = _share("bounds", shares.bounds), _share("levels", shares.levels)
    if schema.unbounded and not bounds:
        name = schema.unbounded[0]
        raise SchemaError(
            f"column {name!r} has no bounds",
            remedy=f"Give public ones, numeric({name!r}, low, high), or a share of the budget to learn them: "
            "adaptive=True, or Adaptive(bounds=0.2)",
        )
    if schema.without_levels and not levels:
        name = schema.without_levels[0]
        raise SchemaError(
            f"column {name!r} has no levels",
            remedy=f"List the possible ones, categorical({name!r}, [...]), or give a share of the budget to "
            "learn the frequent ones: adaptive=True, or Adaptive(levels=0.1)",
        )
    asked = BudgetSplit(
        bounds=bounds if schema.unbounded else 0.0,
        levels=levels if schema.without_levels else 0.0,
        radius=_share("radius", shares.radius),
    )
    if asked.total > MOST_SHARE:
        raise GuaranteeError(
            "too little of the budget would be left for the matrix",
            got=f"shares of {asked.total:g} in all",
            limit=f"{MOST_SHARE:g}",
        )
    return asked


def _share(what: str, value: float) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (value == 0.0 or LEAST_SHARE <= value < 1.0):
        raise GuaranteeError(
            f"Adaptive({what}=…) is a share of the budget",
            got=repr(value),
            limit=f"0, or between {LEAST_SHARE:g} and 1",
            remedy="Try 0.2",
        )
    return float(value)
