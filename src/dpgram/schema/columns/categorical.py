"""A choice among public levels: one 0/1 column for each of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Final, Unpack, final

from dpgram.errors import SchemaError
from dpgram.schema.about import LABELLED_FORMS, UNDESCRIBED, About, LabelledEntries, check_level_labels
from dpgram.schema.columns.base import (
    TEXT_JSON_SCHEMA,
    CellKind,
    FileForm,
    SourceColumn,
    as_float,
    check_name,
    check_unicode,
    check_weight,
    first_repeated,
    rules_and_words,
    weight_entry,
)
from dpgram.schema.encodings import LevelsEncoding, SourceEncoding
from dpgram.schema.reading import AS_WRITTEN, Reading, TextRules, reading_forms

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from dpgram.schema.columns.base import Line

MAX_LEVELS: Final = 10_000
"""Most levels of a categorical column: beyond, a level holds too few rows to be told from noise."""

SHOWN_LEVELS: Final = 12
"""More than these are counted in a report, not listed."""

OTHER: Final = "other"
"""Where all levels go that were not learnt, unless the schema says otherwise."""


def levels_json_schema(at_least: int) -> Mapping[str, object]:
    return {"type": "array", "items": {"type": "string"}, "minItems": at_least, "uniqueItems": True}


class LevelEntries(TextRules, LabelledEntries, total=False):
    """What may be said of a column of levels beside these."""


@final
@dataclass(frozen=True, slots=True)
class Categorical(SourceColumn):
    """One-hot over public levels: the whole group has norm 1·weight, so many levels cost no more than one.

    Levels are compared by their text: integers as "3", booleans as "true" and "false".
    """

    kind: ClassVar[str] = "categorical"
    form: ClassVar[FileForm] = FileForm(
        keys={
            "name": TEXT_JSON_SCHEMA,
            "levels": levels_json_schema(at_least=1),
            "other": {"type": "string"},
            **reading_forms(TextRules),
            **LABELLED_FORMS,
        },
        required=("name",),
        required_in_release=("name", "levels"),
    )
    encoded_as: ClassVar[type[SourceEncoding]] = LevelsEncoding
    starters: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("string", "large_string", "string_view", "dictionary"),
        '# levels = []  # fill in\n# other = "other"\n',
    )
    name: str
    levels: tuple[str, ...]
    other: str | None = None
    weight: float = 1.0
    reading: Reading = AS_WRITTEN
    about: About = UNDESCRIBED
    undecided: bool = False

    def __post_init__(self) -> None:
        check_name(self.name)
        check_weight(self.name, self.weight)
        if not self.levels and self.other is None:
            raise SchemaError(
                f"column {self.name!r} has an empty level list",
                remedy="List the levels that are publicly known to be possible",
            )
        if len(self.levels) > MAX_LEVELS:
            raise SchemaError(
                f"column {self.name!r} has too many levels to be worth a column each",
                got=len(self.levels),
                limit=f"{MAX_LEVELS:,}",
                remedy="Group them (a region for a postcode), list the frequent ones with `other` for the "
                "rest, or leave the list out and learn the frequent ones with adaptive=True",
            )
        for level in self.all_levels:
            check_unicode("a level", level)
        repeated = first_repeated(self.levels)
        if repeated is not None:
            raise SchemaError(f"column {self.name!r} lists a level twice", got=repr(repeated))
        check_level_labels(self.name, self.about.level_labels, self.levels)
        self._check_that_levels_can_occur()

    def _check_that_levels_can_occur(self) -> None:
        """A level that the reading rules turn into something else would never be found."""
        cased = {"lower": str.lower, "upper": str.upper}.get(self.reading.case or "", str)
        codes = {cased(code.strip()) for code in self.reading.missing}
        for level in self.levels:
            if level == self.other or not level.isascii():  # learnt levels come from the reader itself
                continue
            found = cased(level.strip(" \t") if self.reading.trim else level)
            if found != level or level.strip() in codes:
                reason = "a code for missing" if found == level else f"read as {found!r}"
                raise SchemaError(
                    f"level {level!r} of column {self.name!r} can never occur: it is {reason}",
                    remedy="Write the levels as the reading rules leave them",
                )

    @classmethod
    def from_entries(cls, **entries: Any) -> Categorical:
        return categorical(**entries)

    def to_dict(self) -> dict[str, object]:
        form: dict[str, object] = {"kind": self.kind, "name": self.name}
        if self.levels:
            form["levels"] = list(self.levels)
        if self.other is not None:
            form["other"] = self.other
        return (
            form
            | weight_entry(self.weight)
            | self.learn_entry
            | self.reading.to_dict()
            | self.about.to_dict()
        )

    @property
    def described(self) -> tuple[str, str]:
        levels = self.all_levels
        more = f", … ({len(levels)} in all)" if len(levels) > SHOWN_LEVELS else ""
        return "categorical", ", ".join(levels[:SHOWN_LEVELS]) + more

    @property
    def listed(self) -> bool:
        """Whether levels were declared; else the frequent ones are to be learnt, and all go to `other`."""
        return bool(self.levels)

    @property
    def open_levels(self) -> bool:
        return not self.listed

    @property
    def all_levels(self) -> tuple[str, ...]:
        """The levels in the order of their encoded columns; `other` is last unless it was listed."""
        if self.other is None or self.other in self.levels:
            return self.levels
        return (*self.levels, self.other)

    @property
    def group_levels(self) -> tuple[str, ...]:
        return self.all_levels

    def with_levels(self, levels: tuple[str, ...]) -> Categorical:
        return replace(self, levels=self._if_learnt(levels), undecided=False)

    def may_have_learnt_levels(self, levels: tuple[str, ...]) -> bool:
        return self.levels == self._if_learnt(levels)

    def _if_learnt(self, levels: tuple[str, ...]) -> tuple[str, ...]:
        """With no level found the column says nothing: every row is `other`."""
        return levels or (() if self.other is None else (self.other,))

    @property
    def encoding(self) -> LevelsEncoding:
        return LevelsEncoding(levels=self.all_levels)

    @property
    def encoded_names(self) -> tuple[str, ...]:
        return self.encoding.names(self.name)

    @property
    def cell_kind(self) -> CellKind:
        return "text"

    def read(self, cells: pa.Array) -> Line:
        from dpgram.schema._read_cells import read_levels

        return read_levels(cells, self, kind=self.kind)

    def new_values(self, given: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The schema's texts; unknown ones go to `other`, else they are refused."""
        from dpgram.schema._new_values import levels

        return levels(given, self.name, self.all_levels, self.other)

    @property
    def choices(self) -> tuple[tuple[str, float | str], ...]:
        return tuple((level, level) for level in self.group_levels)

    @property
    def python_reader(self) -> tuple[str, str]:
        return "text(", ")"

    def cells_at(self, places: npt.NDArray[np.float64]) -> pa.Array:
        import pyarrow as pa

        levels = self.all_levels
        return pa.array([levels[0] if place > 0.0 else levels[-1] for place in places])


def categorical(
    name: str,
    levels: Iterable[str | int | bool] | None = None,
    other: str | int | None = None,
    *,
    weight: float = 1.0,
    **entries: Unpack[LevelEntries],
) -> Categorical:
    """A choice among public levels; unknown values go to `other` where it is declared.

    Without a list the column can only be used where a share of the budget pays for learning the frequent
    levels; all others go to `other`. Reading rules: `missing` (codes), `trim`, `case` ("lower" or "upper").
    In words: `label`, `description`, `units`, `source` of the levels, `level_labels`.

    >>> categorical("smoker", ["no", "yes"]).encoded_names
    ('smoker=no', 'smoker=yes')
    """
    if isinstance(levels, str):
        parts = [part.strip() for part in re.split(r"[,;|\n]", levels) if part.strip()]
        raise SchemaError(
            f"the levels of column {name!r} must be a list",
            got="one text",
            remedy=f"Write {parts}" if len(parts) > 1 else f"Write [{levels!r}, …], each level as a text",
        )
    texts = tuple(_level_text(name, level) for level in levels or ())
    if levels is not None and not texts:
        raise SchemaError(
            f"column {name!r} has an empty level list",
            remedy="List the levels that are publicly known to be possible, or leave the list out to learn "
            "the frequent ones",
        )
    rest = OTHER if other is None and levels is None else other
    other_text = None if rest is None else _level_text(name, rest)
    read, words = rules_and_words(Categorical, name, entries)
    return Categorical(name, texts, other_text, as_float(name, "weight", weight), read, words)


def _level_text(name: str, level: object) -> str:
    if isinstance(level, str):
        return level
    if isinstance(level, bool):
        return "true" if level else "false"
    if isinstance(level, Integral):
        return str(int(level))
    raise SchemaError(
        f"a level of column {name!r} must be text, a whole number or true/false",
        got=f"a {type(level).__name__}",
        remedy="Write it as text, exactly as the data shows it",
    )
