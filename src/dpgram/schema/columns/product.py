"""The product of two declared columns: an interaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, final

from dpgram.schema.columns.base import (
    TEXT_JSON_SCHEMA,
    DerivedColumn,
    FileForm,
    as_float,
    check_name,
    check_weight,
    weight_entry,
)
from dpgram.schema.encodings import BooleanEncoding, NumberEncoding, ProductEncoding, SourceEncoding


@final
@dataclass(frozen=True, slots=True)
class Product(DerivedColumn):
    """z = z_left · z_right of two declared numeric, ordinal or boolean columns, in their encoded scale."""

    kind: ClassVar[str] = "product"
    form: ClassVar[FileForm] = FileForm(
        keys={"left": TEXT_JSON_SCHEMA, "right": TEXT_JSON_SCHEMA}, required=("left", "right")
    )
    factor_encodings: ClassVar[tuple[type[SourceEncoding], ...]] = (NumberEncoding, BooleanEncoding)
    left: str
    right: str
    weight: float = 1.0
    name: str = field(init=False, repr=False)

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

    @property
    def described(self) -> tuple[str, str]:
        return "product", f"{self.left} times {self.right}"

    @property
    def encoding(self) -> ProductEncoding:
        return ProductEncoding(left=self.left, right=self.right)


def product(left: str, right: str, *, weight: float = 1.0) -> Product:
    """The product of two declared numeric, ordinal or boolean columns (an interaction).

    >>> product("age", "bmi").name
    'age*bmi'
    """
    return Product(left, right, as_float(f"{left}*{right}", "weight", weight))
