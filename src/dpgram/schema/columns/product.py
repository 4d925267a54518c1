"""The product of two declared columns: an interaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, final

from dpgram.errors import SchemaError
from dpgram.schema.columns.base import (
    TEXT_JSON_SCHEMA,
    Column,
    DerivedColumn,
    FileForm,
    as_float,
    check_name,
    check_weight,
    weight_entry,
)
from dpgram.schema.encodings import (
    BooleanEncoding,
    EncodedColumn,
    LevelsEncoding,
    NumberEncoding,
    ProductEncoding,
    SourceEncoding,
)


@final
@dataclass(frozen=True, slots=True)
class Product(DerivedColumn):
    """z = z_left · z_right of two declared columns, in their encoded scale.

    Of a categorical column it has a product for each level, of two one for each pair. In a row all of them
    but one are zero, so that Σ z² ≤ 1 and many levels cost no more than one.
    """

    kind: ClassVar[str] = "product"
    form: ClassVar[FileForm] = FileForm(
        keys={"left": TEXT_JSON_SCHEMA, "right": TEXT_JSON_SCHEMA}, required=("left", "right")
    )
    factor_encodings: ClassVar[tuple[type[SourceEncoding], ...]] = (
        NumberEncoding,
        BooleanEncoding,
        LevelsEncoding,
    )
    left: str
    right: str
    weight: float = 1.0
    name: str = field(init=False, repr=False)
    left_levels: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """Those of the left column in its schema; none for numbers and truth values."""
    right_levels: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"{self.left}*{self.right}")
        check_name(self.left)
        check_name(self.right)
        check_weight(self.name, self.weight)

    @classmethod
    def from_entries(cls, **entries: Any) -> Product:
        return product(**entries)

    def to_dict(self) -> dict[str, object]:
        return {"kind": self.kind, "left": self.left, "right": self.right, **weight_entry(self.weight)}

    def beside(self, declared: Mapping[str, Column]) -> Product:
        left, right = (
            declared[name].group_levels if name in declared else () for name in (self.left, self.right)
        )
        if left and self.left == self.right:
            raise SchemaError(
                f"{self.name!r} is the product of a categorical column with itself, which tells nothing new",
                remedy="Leave it out",
            )
        return replace(self, left_levels=left, right_levels=right)

    @property
    def described(self) -> tuple[str, str]:
        return "product", f"{self.left} times {self.right}"

    @property
    def encoding(self) -> ProductEncoding:
        return ProductEncoding(left=self.left, right=self.right)

    @property
    def parts(self) -> tuple[ProductEncoding, ...]:
        return tuple(ProductEncoding(left=left, right=right) for left, right in self._pairs())

    @property
    def encoded_names(self) -> tuple[str, ...]:
        return tuple(f"{left}*{right}" for left, right in self._pairs())

    @property
    def encoded_width(self) -> int:
        return max(len(self.left_levels), 1) * max(len(self.right_levels), 1)

    def encoded(self) -> tuple[EncodedColumn, ...]:
        return tuple(
            EncodedColumn(name=name, source=self.name, kind="product", weight=self.weight)
            for name in self.encoded_names
        )

    def _pairs(self) -> tuple[tuple[str, str], ...]:
        """Names of the encoded columns that are multiplied, those of the right column changing first."""
        return tuple(
            (left, right)
            for left in _encoded_names(self.left, self.left_levels)
            for right in _encoded_names(self.right, self.right_levels)
        )


def _encoded_names(name: str, levels: tuple[str, ...]) -> tuple[str, ...]:
    return LevelsEncoding(levels=levels).names(name) if levels else (name,)


def product(left: str, right: str, *, weight: float = 1.0) -> Product:
    """The product of two declared columns (an interaction); of a categorical one, for each of its levels.

    >>> product("age", "bmi").name
    'age*bmi'
    >>> region = categorical("region", ["north", "south"])
    >>> Schema(region, numeric("age", 18, 90), product("region", "age")).names[-2:]
    ('region=north*age', 'region=south*age')
    """
    return Product(left, right, as_float(f"{left}*{right}", "weight", weight))
