"""A kind of column that dpgram does not have, as somebody would add it: this file and one line of `KINDS`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpgram.schema import SourceColumn
from dpgram.schema._new_values import numbers
from dpgram.schema._read_cells import read_numbers
from dpgram.schema.columns.base import (
    TEXT_JSON_SCHEMA,
    CellKind,
    FileForm,
    as_float,
    check_name,
    check_weight,
    weight_entry,
)
from dpgram.schema.encodings import BooleanEncoding, SourceEncoding


@final
@dataclass(frozen=True, slots=True)
class Threshold(SourceColumn):
    """z = +1 where the number is at least `at`, −1 below."""

    kind: ClassVar[str] = "threshold"
    form: ClassVar[FileForm] = FileForm(
        keys={"name": TEXT_JSON_SCHEMA, "at": {"type": "number"}}, required=("name", "at")
    )
    encoded_as: ClassVar[type[SourceEncoding]] = BooleanEncoding
    starters: ClassVar[Mapping[str, str]] = {"duration": "# at = \n"}
    name: str
    at: float
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_name(self.name)
        check_weight(self.name, self.weight)

    @classmethod
    def from_entries(cls, **entries: Any) -> Threshold:
        return threshold(**entries)

    def to_dict(self) -> dict[str, object]:
        return {"kind": self.kind, "name": self.name, "at": self.at, **weight_entry(self.weight)}

    @property
    def described(self) -> tuple[str, str]:
        return "threshold", f"{self.at:g} or more"

    @property
    def encoding(self) -> BooleanEncoding:
        return BooleanEncoding()

    @property
    def cell_kind(self) -> CellKind:
        return "number"

    def read(self, cells: pa.Array) -> npt.NDArray[Any]:
        found = read_numbers(cells, self)
        return np.where(np.isfinite(found), found >= self.at, np.nan)

    def new_values(self, given: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return (numbers(given, self.name) >= self.at).astype(np.float64)

    @property
    def python_reader(self) -> tuple[str, str]:
        return "float(float(", f") >= {self.at!r})"

    def cells_at(self, places: npt.NDArray[np.float64]) -> pa.Array:
        return pa.array(self.at + places)


def threshold(name: str, at: float, *, weight: float = 1.0) -> Threshold:
    return Threshold(name, as_float(name, "threshold", at), as_float(name, "weight", weight))
