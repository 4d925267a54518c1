"""Yes or no: true is +1, false is −1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Unpack, final

from dpgram.schema.about import ABOUT_FORMS, UNDESCRIBED, About, AboutEntries
from dpgram.schema.columns.base import (
    TEXT_JSON_SCHEMA,
    CellKind,
    FileForm,
    SourceColumn,
    as_float,
    check_name,
    check_weight,
    rules_and_words,
    weight_entry,
)
from dpgram.schema.encodings import BooleanEncoding, SourceEncoding
from dpgram.schema.reading import AS_WRITTEN, BooleanRules, Reading, reading_forms

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from dpgram.schema.columns.base import Line


class BooleanEntries(BooleanRules, AboutEntries, total=False):
    """What may be said of a yes/no column beside its name."""


@final
@dataclass(frozen=True, slots=True)
class Boolean(SourceColumn):
    """z = +1 for true, −1 for false."""

    kind: ClassVar[str] = "boolean"
    form: ClassVar[FileForm] = FileForm(
        keys={"name": TEXT_JSON_SCHEMA, **reading_forms(BooleanRules), **ABOUT_FORMS}, required=("name",)
    )
    encoded_as: ClassVar[type[SourceEncoding]] = BooleanEncoding
    starters: ClassVar[Mapping[str, str]] = {"bool": ""}
    name: str
    weight: float = 1.0
    reading: Reading = AS_WRITTEN
    about: About = UNDESCRIBED

    def __post_init__(self) -> None:
        check_name(self.name)
        check_weight(self.name, self.weight)

    @classmethod
    def from_entries(cls, **entries: Any) -> Boolean:
        return boolean(**entries)

    def to_dict(self) -> dict[str, object]:
        form: dict[str, object] = {"kind": self.kind, "name": self.name, **weight_entry(self.weight)}
        return form | self.reading.to_dict() | self.about.to_dict()

    @property
    def described(self) -> tuple[str, str]:
        return "truth value", "false, true"

    @property
    def encoding(self) -> BooleanEncoding:
        return BooleanEncoding()

    @property
    def cell_kind(self) -> CellKind:
        return "boolean"

    def read(self, cells: pa.Array) -> Line:
        from dpgram.schema._read_cells import read_numbers

        return read_numbers(cells, self)

    @property
    def reads_floats_as_they_are(self) -> bool:
        return True

    def new_values(self, given: npt.NDArray[Any]) -> npt.NDArray[Any]:
        from dpgram.schema._new_values import truths

        return truths(given, self.name, self.reading)

    @property
    def choices(self) -> tuple[tuple[str, float | str], ...]:
        return ("false", 0.0), ("true", 1.0)

    @property
    def python_reader(self) -> tuple[str, str]:
        return "float(", ")"

    def cells_at(self, places: npt.NDArray[np.float64]) -> pa.Array:
        import pyarrow as pa

        return pa.array(places > 0.0)


def boolean(name: str, *, weight: float = 1.0, **entries: Unpack[BooleanEntries]) -> Boolean:
    """A yes/no column: true is +1, false is −1.

    Other words than true, yes, y, t, 1 and their opposites are declared by `true` and `false`, codes for a
    missing answer by `missing`; `label`, `description`, `units` and `source` say what the column means.

    >>> boolean("smoker", true="ja", false="nein", missing=[9]).reading.missing
    ('9',)
    """
    return Boolean(name, as_float(name, "weight", weight), *rules_and_words(Boolean, name, entries))
