"""What `publish` measures before the matrix, as shares of the event's currency."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, final

from dpgram.errors import GuaranteeError, SchemaError, real, shown
from dpgram.schema import Schema

COUNT_SHARE: Final = 0.05
"""Share of what is given for bounds (without any: for all that is learnt) that pays for the number of rows,
where that is not public."""
LEAST_SHARE: Final = 1e-9
"""Of one thing that is learnt: with less its noise would hide all, and parts of it could round to 0."""
MOST_SHARE: Final = 0.8
"""All shares together: less than a fifth for the matrix would be noise."""


SLACK: Final = 1.0 - 2.0**-40
"""What is left free for rounding, so that all parts together never cost more than the whole."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive:
    """Shares of the budget for what is measured before the matrix, so that the matrix tells more.

    `bounds` and `levels` are spent only on columns whose bounds or levels the schema leaves open.
    `histograms` pays for a histogram of every column, which analysts see and by which columns are scaled,
    `first` for a rough matrix, by which the last one is measured in better coordinates, `clip` for counting
    how long rows are and what their clip takes. What is not needed goes to the matrix, which also pays for
    closer histograms of open columns whose values lie within a step of theirs. Where the histograms
    show that more than `loss_at_most` of the values of a column are missing or unreadable, nothing more is
    spent.

    >>> Adaptive(first=0.3).levels
    0.1
    """

    bounds: float = 0.1
    levels: float = 0.1
    histograms: float = 0.1
    first: float = 0.25
    clip: float = 0.03
    loss_at_most: float = 0.5


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSplit:
    """What is measured before the matrix, as shares of the event's currency; 0 where nothing is."""

    bounds: float = 0.0
    levels: float = 0.0
    histograms: float = 0.0
    first: float = 0.0
    clip: float = 0.0
    models: float = 0.0
    """What declared models get, which are measured after the matrix."""
    loss_at_most: float = 1.0

    @property
    def total(self) -> float:
        """What is not left for the matrix."""
        return self.bounds + self.levels + self.histograms + self.first + self.clip + self.models

    def __bool__(self) -> bool:
        """Whether something is measured before the matrix."""
        return self.total > self.models

    @property
    def left_for_models(self) -> float:
        """What declared models may have beside all else, a little less for rounding."""
        return (MOST_SHARE - self.total) * (1.0 - 1e-9)

    @property
    def learning_in_one_matrix(self) -> bool:
        """Whether bounds or levels are learnt for a matrix that is measured as it is."""
        return not self.histograms and bool(self.bounds or self.levels)

    @property
    def learnt_alone(self) -> BudgetSplit:
        """What a schema leaves open and nothing else: for mechanisms that keep to one matrix."""
        return BudgetSplit(bounds=self.bounds, levels=self.levels)

    def parts(self, *, private_rows: bool) -> PartShares:
        """What each part gets where bounds and levels alone are learnt.

        Where the number of rows is private, 5% of what is learnt first pay for it. With bounds, whose
        thresholds need that number most, they come out of the bounds' share alone; otherwise out of every
        share alike, so that none can be used up.
        """
        count = COUNT_SHARE * (self.bounds or self.levels) if private_rows else 0.0
        left = 1.0 - COUNT_SHARE if private_rows else 1.0
        half = 0.5 * left * self.bounds
        return PartShares(
            count=count, octaves=half, bins=half, levels=(1.0 if self.bounds else left) * self.levels
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartShares:
    """The share of the event's currency that each part before the matrix gets; 0 where nothing is drawn."""

    count: float
    octaves: float
    bins: float
    levels: float

    def __post_init__(self) -> None:
        for name in ("count", "octaves", "bins", "levels"):
            share = getattr(self, name)
            if not 0.0 <= share < 1.0:
                raise GuaranteeError(
                    f"the share of the part {name!r} is out of range", got=f"{share:g}", limit="0 ≤ share < 1"
                )


_NOTHING: Final = Adaptive(bounds=0.0, levels=0.0, histograms=0.0, first=0.0, clip=0.0, loss_at_most=1.0)


def budget_split(
    schema: Schema, adaptive: bool | Adaptive, *, one_matrix: bool = False, models: float = 0.0
) -> BudgetSplit:
    """The shares that are needed; refuses a schema that leaves something open without a share to learn it.

    Where one matrix is measured, as it is, only what the schema leaves open takes a share.
    """
    if not isinstance(adaptive, bool | Adaptive):
        raise GuaranteeError(
            "adaptive must say what is measured before the matrix",
            got=shown(adaptive),
            limit="True, False or Adaptive(bounds=…, levels=…, histograms=…, first=…, clip=…)",
        )
    shares = adaptive if isinstance(adaptive, Adaptive) else Adaptive() if adaptive else _NOTHING
    bounds, levels = _share("bounds", shares.bounds), _share("levels", shares.levels)
    if schema.unbounded and not bounds:
        name = schema.unbounded[0]
        raise SchemaError(
            f"column {name!r} has no bounds",
            remedy=f"Give public ones, numeric({name!r}, low, high), or a share of the budget to learn them: "
            "adaptive=True, or Adaptive(bounds=0.1)",
        )
    if schema.without_levels and not levels:
        name = schema.without_levels[0]
        raise SchemaError(
            f"column {name!r} has no levels",
            remedy=f"List the possible ones, categorical({name!r}, [...]), or give a share of the budget to "
            "learn the frequent ones: adaptive=True, or Adaptive(levels=0.1)",
        )
    histograms, first, clip = (
        _share(name, getattr(shares, name)) for name in ("histograms", "first", "clip")
    )
    if not one_matrix and (first or clip or schema.unbounded) and not histograms:
        raise GuaranteeError(
            "a first matrix, counts of the clip and learnt bounds need histograms, which say how columns are "
            "scaled",
            got="Adaptive(histograms=0)",
            remedy="Give histograms a share, such as 0.15, or use adaptive=False",
        )
    loss_at_most = real(shares.loss_at_most)
    if loss_at_most is None or not 0.0 < loss_at_most <= 1.0:
        raise GuaranteeError(
            "loss_at_most must be a part of all rows",
            got=shown(shares.loss_at_most),
            limit="0 < loss_at_most ≤ 1",
        )
    asked = BudgetSplit(
        bounds=bounds if schema.unbounded else 0.0,
        levels=levels if schema.without_levels else 0.0,
        histograms=histograms,
        first=first,
        clip=clip,
        loss_at_most=loss_at_most,
    )
    if one_matrix:
        asked = asked.learnt_alone
    asked = replace(asked, models=models)
    if asked.total > MOST_SHARE:
        raise GuaranteeError(
            "too little of the budget would be left for the matrix",
            got=f"shares of {asked.total:g} in all"
            + (f", {models:g} of it for declared models" if models else ""),
            limit=f"{MOST_SHARE:g}",
            remedy="Declare fewer models, or give each a smaller share: linear(…, share=0.05)"
            if models
            else None,
        )
    return asked


def _share(what: str, value: float) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (value == 0.0 or LEAST_SHARE <= value < 1.0):
        raise GuaranteeError(
            f"Adaptive({what}=…) must be a share of the budget",
            got=shown(value),
            limit=f"0, or between {LEAST_SHARE:g} and 1",
            remedy="Try 0.2",
        )
    return float(value)
