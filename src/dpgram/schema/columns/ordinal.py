"""Ordered levels as one number: level i of k counts as i, mapped from [0, k−1] to [-1, 1]."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Unpack, final

from dpgram.errors import SchemaError
from dpgram.schema.about import LABELLED_FORMS, UNDESCRIBED, About
from dpgram.schema.columns.base import (
    TEXT_JSON_SCHEMA,
    CellKind,
    FileForm,
    SourceColumn,
    rules_and_words,
)
from dpgram.schema.columns.categorical import (
    SHOWN_LEVELS,
    Categorical,
    LevelEntries,
    categorical,
    levels_json_schema,
)
from dpgram.schema.encodings import UNKNOWN_CODE, NumberEncoding, SourceEncoding
from dpgram.schema.reading import AS_WRITTEN, Reading, TextRules, reading_forms

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from dpgram.schema.columns.base import Line


@final
@dataclass(frozen=True, slots=True)
class Ordinal(SourceColumn):
    """z = 2i/(k−1) − 1 for level i = 0 … k−1, in the order declared: equal steps, one column for all levels.

    Results are in codes: a coefficient is the change from one level to the next. A value that is none of the
    levels counts as missing.
    """

    kind: ClassVar[str] = "ordinal"
    form: ClassVar[FileForm] = FileForm(
        keys={
            "name": TEXT_JSON_SCHEMA,
            "levels": levels_json_schema(at_least=2),
            **reading_forms(TextRules),
            **LABELLED_FORMS,
        },
        required=("name", "levels"),
    )
    encoded_as: ClassVar[type[SourceEncoding]] = NumberEncoding
    name: str
    levels: tuple[str, ...]
    weight: float = 1.0
    reading: Reading = AS_WRITTEN
    about: About = UNDESCRIBED

    def __post_init__(self) -> None:
        if len(self.as_categorical.levels) < 2:
            raise SchemaError(
                f"the ordinal column {self.name!r} has one level only", limit="two or more, in their order"
            )

    @classmethod
    def from_entries(cls, **entries: Any) -> Ordinal:
        return ordinal(**entries)

    def to_dict(self) -> dict[str, object]:
        return {**self.as_categorical.to_dict(), "kind": self.kind}

    @property
    def described(self) -> tuple[str, str]:
        more = ", …" if len(self.levels) > SHOWN_LEVELS else ""
        codes = f"(0 to {len(self.levels) - 1})"
        return "ordered levels", f"{', '.join(self.levels[:SHOWN_LEVELS])}{more} {codes}"

    @property
    def as_categorical(self) -> Categorical:
        """The same levels without their order; checks name, weight and levels."""
        return Categorical(self.name, self.levels, None, self.weight, self.reading, self.about)

    @property
    def bounds(self) -> tuple[float, float]:
        """The first and the last code."""
        return 0.0, float(len(self.levels) - 1)

    @property
    def encoding(self) -> NumberEncoding:
        low, high = self.bounds
        return NumberEncoding(low=low, high=high, centre=0.5 * high, half_width=0.5 * high)

    @property
    def cell_kind(self) -> CellKind:
        return "text"

    def read(self, cells: pa.Array) -> Line:
        import numpy as np

        from dpgram.schema._read_cells import read_levels

        codes = read_levels(cells, self.as_categorical, kind=self.kind)
        return np.where(codes == UNKNOWN_CODE, np.nan, codes)

    def new_values(self, given: npt.NDArray[Any]) -> npt.NDArray[Any]:
        import numpy as np

        codes = {level: float(code) for code, level in enumerate(self.levels)}
        return np.array([codes[level] for level in self.as_categorical.new_values(given)])

    @property
    def choices(self) -> tuple[tuple[str, float | str], ...]:
        return tuple((level, float(code)) for code, level in enumerate(self.levels))

    @property
    def python_reader(self) -> tuple[str, str]:
        levels = ", ".join(map(ascii, self.levels))
        return f"float([{levels}].index(text(", ")))"

    def cells_at(self, places: npt.NDArray[np.float64]) -> pa.Array:
        import numpy as np
        import pyarrow as pa

        codes = np.rint((places + 1.0) * self.encoding.half_width).astype(int)
        return pa.array([self.levels[code] for code in codes])


def ordinal(
    name: str, levels: Iterable[str | int | bool], *, weight: float = 1.0, **entries: Unpack[LevelEntries]
) -> Ordinal:
    """Public levels in their order, as the equally spaced numbers 0, 1, 2, …: grades, school years, answers.

    Reading rules and words are those of `categorical`.

    >>> ordinal("pain", ["none", "mild", "severe"]).encoded_names
    ('pain',)
    """
    read, words = rules_and_words(Ordinal, name, entries)
    listed = categorical(name, levels, weight=weight)
    return Ordinal(listed.name, listed.levels, listed.weight, read, words)
