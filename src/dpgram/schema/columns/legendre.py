"""The Legendre polynomial of a declared column: a power that hardly correlates with the column itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, final

from dpgram.errors import SchemaError, shown
from dpgram.schema.columns.base import (
    TEXT_JSON_SCHEMA,
    DerivedColumn,
    FileForm,
    as_float,
    as_whole,
    check_name,
    check_weight,
    weight_entry,
)
from dpgram.schema.encodings import LegendreEncoding, NumberEncoding, SourceEncoding

MAX_DEGREE: Final = 12
"""Highest Legendre degree: beyond it the polynomial wiggles faster than any honest bound is known."""


@final
@dataclass(frozen=True, slots=True)
class Legendre(DerivedColumn):
    """z = P_degree(z of the column): powers that are orthogonal on [-1, 1], hence nearly uncorrelated."""

    kind: ClassVar[str] = "legendre"
    form: ClassVar[FileForm] = FileForm(
        keys={"column": TEXT_JSON_SCHEMA, "degree": {"type": "integer", "minimum": 2}},
        required=("column", "degree"),
    )
    factor_encodings: ClassVar[tuple[type[SourceEncoding], ...]] = (NumberEncoding,)
    column: str
    degree: int
    weight: float = 1.0
    name: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_name(self.column)
        if not 2 <= self.degree <= MAX_DEGREE:
            raise SchemaError(
                f"the degree of a power of {self.column!r} is out of range",
                got=shown(self.degree),
                limit=f"2 to {MAX_DEGREE} (degree 1 is the column itself)",
            )
        object.__setattr__(self, "name", f"{self.column}^P{self.degree}")
        check_weight(self.name, self.weight)

    @classmethod
    def from_entries(cls, **entries: Any) -> Legendre:
        return legendre(**entries)

    def to_dict(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "column": self.column,
            "degree": self.degree,
            **weight_entry(self.weight),
        }

    @property
    def described(self) -> tuple[str, str]:
        return "polynomial", f"degree {self.degree} of {self.column}"

    @property
    def encoding(self) -> LegendreEncoding:
        return LegendreEncoding(column=self.column, degree=self.degree)


def legendre(column: str, degree: int, *, weight: float = 1.0) -> Legendre:
    """The Legendre polynomial of a declared numeric column: a power made orthogonal on its bounds.

    >>> legendre("age", degree=2).name
    'age^P2'
    """
    return Legendre(column, as_whole(column, "degree", degree), as_float(column, "weight", weight))
