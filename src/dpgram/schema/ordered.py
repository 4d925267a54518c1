"""Ordered levels as one number: level i of k counts as i, mapped from [0, k−1] to [-1, 1]."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, final

from dpgram.errors import SchemaError
from dpgram.schema.columns import Categorical, EncodedColumn, SingleColumn, categorical


@final
@dataclass(frozen=True, slots=True)
class Ordinal(SingleColumn):
    """z = 2i/(k−1) − 1 for level i = 0 … k−1, in the order declared: equal steps, one column for all levels.

    Results are in codes: a coefficient is the change from one level to the next. A value that is none of the
    levels counts as missing.
    """

    kind: ClassVar[str] = "ordinal"
    name: str
    levels: tuple[str, ...]
    weight: float = 1.0

    def __post_init__(self) -> None:
        if len(self.choice.levels) < 2:
            raise SchemaError(
                f"the ordinal column {self.name!r} has one level only", limit="two or more, in their order"
            )

    @property
    def choice(self) -> Categorical:
        """The same levels without their order; checks name, weight and levels."""
        return Categorical(self.name, self.levels, None, self.weight)

    @property
    def bounds(self) -> tuple[float, float]:
        """The first and the last code."""
        return 0.0, float(len(self.levels) - 1)

    @property
    def centre(self) -> float:
        """The middle of the codes."""
        return 0.5 * (len(self.levels) - 1)

    @property
    def half_width(self) -> float:
        """Half the way from the first to the last code."""
        return 0.5 * (len(self.levels) - 1)

    def encoded(self) -> tuple[EncodedColumn, ...]:
        """One column, a number like any other."""
        return (
            EncodedColumn(
                name=self.name,
                source=self.name,
                kind="numeric",
                centre=self.centre,
                half_width=self.half_width,
                weight=self.weight,
            ),
        )

    def to_dict(self) -> dict[str, object]:
        """Levels as a list of texts, in order."""
        return {**self.choice.to_dict(), "kind": self.kind}


def ordinal(name: str, levels: Iterable[str | int | bool], *, weight: float = 1.0) -> Ordinal:
    """Public levels in their order, as the equally spaced numbers 0, 1, 2, …: grades, school years, answers.

    >>> ordinal("pain", ["none", "mild", "severe"]).encoded_names
    ('pain',)
    """
    listed = categorical(name, levels, weight=weight)
    return Ordinal(listed.name, listed.levels, listed.weight)
