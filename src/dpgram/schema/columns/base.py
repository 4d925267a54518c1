"""What every kind of column answers: `SourceColumn` is read from the table, `DerivedColumn` is computed.

A kind is one file beside this one and one line of `KINDS`. It says how it is written in a schema, how its
cells are read, which of the encodings makes numbers of them, and how it is shown. Nothing outside this folder
asks which kind a column is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, cast, final

from dpgram.errors import SchemaError, real, shown, whole
from dpgram.schema.about import LABELLED_FORMS, UNDESCRIBED, About, about
from dpgram.schema.encodings import CONSTANT, DerivedEncoding, EncodedColumn, Encoding, SourceEncoding
from dpgram.schema.reading import AS_WRITTEN, Reading, reading

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Line = npt.NDArray[Any]
    """The numbers of one column, of any width; the encoder copies them into its own 64-bit floats."""

CellKind = Literal["number", "date", "boolean", "text"]
"""What a source makes of cells that have no type of their own, such as those of a CSV file."""

TEXT_JSON_SCHEMA: Final[Mapping[str, object]] = {"type": "string", "minLength": 1}
WEIGHT_JSON_SCHEMA: Final[Mapping[str, object]] = {
    "type": "number",
    "minimum": 1e-6,
    "maximum": 1e6,
    "default": 1,
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FileForm:
    """The keys of a kind in TOML and JSON, beside `kind` and `weight`; the rest of them may be left out."""

    keys: Mapping[str, Mapping[str, object]]
    """Each with its JSON Schema."""
    required: tuple[str, ...]
    required_in_release: tuple[str, ...] | None = None
    """Where a release needs more, since nothing is open in it any more: a file may say `learn` instead."""

    @property
    def optional(self) -> tuple[str, ...]:
        learn = () if self.required_in_release is None else ("learn",)
        return (*(key for key in self.keys if key not in self.required), "weight", *learn)

    def check(self, kind: str, label: str, keys: set[str]) -> None:
        """Refuse a column that says what its kind does not know, or lacks what it needs."""
        absent, unknown = set(self.required) - keys, keys.difference(self.required, self.optional)
        if absent or unknown:
            raise SchemaError(
                f"column {label} is {kind}{' and lacks' if absent else ', which does not know'} "
                f"{min(map(str, absent or unknown))!r}",
                limit=f"needs {', '.join(sorted(self.required))}; "
                f"may have {', '.join(sorted(self.optional))}",
            )

    def json_schema(self, kind: str) -> dict[str, object]:
        """What a release file says of a column of this kind."""
        return {
            "type": "object",
            "properties": {"kind": {"const": kind}, **self.keys, "weight": WEIGHT_JSON_SCHEMA},
            "required": ["kind", *(self.required_in_release or self.required)],
            "additionalProperties": False,
        }


class Column(ABC):
    """A declared column: adds at most weight² to a row's squared norm, whatever the number of its levels."""

    __slots__ = ()
    kind: ClassVar[str]
    form: ClassVar[FileForm]
    name: str
    """The name by which analysts ask for it."""
    weight: float
    undecided: bool = False
    """Whether it comes from a file that leaves it open without `learn = true`: nobody has filled it in."""

    @classmethod
    @abstractmethod
    def from_entries(cls, **entries: Any) -> Column:
        """The column that these entries of a TOML or JSON table describe, checked."""

    @abstractmethod
    def to_dict(self) -> dict[str, object]:
        """The JSON form, defaults left out."""

    @property
    def learn_entry(self) -> dict[str, object]:
        """The entry of its JSON form by which somebody has decided that it is learnt, where that is so."""
        return {"learn": True} if (self.open_bounds or self.open_levels) and not self.undecided else {}

    @property
    @abstractmethod
    def described(self) -> tuple[str, str]:
        """Kind and range in plain words, for the report."""

    @property
    @abstractmethod
    def encoding(self) -> Encoding:
        """How it becomes numbers in [-1, 1]; needs bounds."""

    @property
    def encoded_names(self) -> tuple[str, ...]:
        """Names of its columns in the Gram matrix; known before its bounds are."""
        return (self.name,)

    @property
    def encoded_width(self) -> int:
        """How many they are, without a name made for each."""
        return len(self.encoded_names)

    def encoded(self) -> tuple[EncodedColumn, ...]:
        """Its columns in the Gram matrix; needs bounds."""
        return self.encoding.encoded(self.name, self.weight)

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the declared columns it is computed from; none for what is read from the table."""
        return ()

    @property
    def group_levels(self) -> tuple[str, ...]:
        """The levels of a group of 0/1 columns that add up to one in every row; empty for other columns."""
        return ()

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Between which numbers its values lie, in original units; nothing where that has no meaning."""
        return None

    @property
    def open_bounds(self) -> bool:
        """Whether its bounds are to be learnt."""
        return False

    @property
    def open_levels(self) -> bool:
        """Whether its levels are to be learnt."""
        return False

    def with_bounds(self, low: float, high: float) -> Column:
        """The same column with these bounds, say, learnt ones."""
        del low, high
        raise SchemaError(f"column {self.name!r} is {self.kind}: it has no bounds to set")

    def with_levels(self, levels: tuple[str, ...]) -> Column:
        """The same column with these levels, say, learnt ones."""
        del levels
        raise SchemaError(f"column {self.name!r} is {self.kind}: it has no levels to set")

    def may_have_learnt_bounds(self, low: float, high: float) -> bool:
        """Whether its bounds can have been learnt between these."""
        del low, high
        return False

    def may_have_learnt_levels(self, levels: tuple[str, ...]) -> bool:
        """Whether its levels can be these, learnt."""
        del levels
        return False

    def as_counted(self) -> Column:
        """The same column without rules for reading its cells and without words about it."""
        return self

    def reweighted(self, factor: float) -> Self:
        """The same column with its weight multiplied."""
        return cast("Self", replace(cast("Any", self), weight=self.weight * factor))


class SourceColumn(Column, ABC):
    """A column that is read from the table, under its own name."""

    __slots__ = ()
    encoded_as: ClassVar[type[SourceEncoding]]
    """The class of `encoding`, known before the bounds are."""
    starters: ClassVar[Mapping[str, str]] = {}
    """First word of an Arrow type for which a starter schema proposes this kind → lines to be filled in."""
    reading: Reading = AS_WRITTEN
    """How its cells are written."""
    about: About = UNDESCRIBED
    """What it means, in words."""

    @property
    @abstractmethod
    def encoding(self) -> SourceEncoding: ...

    def as_counted(self) -> Self:
        if not self.reading and self.about == UNDESCRIBED:
            return self
        return cast("Self", replace(cast("Any", self), reading=AS_WRITTEN, about=UNDESCRIBED))

    @property
    @abstractmethod
    def cell_kind(self) -> CellKind:
        """As what sources deliver its cells."""

    @abstractmethod
    def read(self, cells: pa.Array) -> Line:
        """The cells as the numbers that its encoding starts from; NaN is missing, infinite unreadable.

        Which types are readable is decided by the type alone, which the data declares: no value can make
        reading fail.
        """

    @property
    def reads_floats_as_they_are(self) -> bool:
        """Whether `read` would give back a line of 64-bit floats unchanged."""
        return False

    @abstractmethod
    def new_values(self, given: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values that an analyst gives to predict from: numbers in original units, or texts of levels."""

    @property
    def choices(self) -> tuple[tuple[str, float | str], ...]:
        """What a form offers to choose from, each with what `new_values` makes of it; none for numbers."""
        return ()

    @property
    @abstractmethod
    def python_reader(self) -> tuple[str, str]:
        """What to write before and after a cell in Python, to have what `new_values` makes of it.

        The code may use `day(value)` for dates and `text(value)` for levels, and nothing that has to be
        imported. Plain ASCII, since names and levels can be hostile.
        """

    @abstractmethod
    def cells_at(self, places: npt.NDArray[np.float64]) -> pa.Array:
        """Cells of a table for the audit: −1 and 1 are the ends of what the column may be, 0 its middle."""


class DerivedColumn(Column, ABC):
    """A column computed from the encoded values of other declared columns; nothing is read for it."""

    __slots__ = ()
    factor_encodings: ClassVar[tuple[type[SourceEncoding], ...]]
    """The encodings that its factors may have."""

    @property
    @abstractmethod
    def encoding(self) -> DerivedEncoding: ...

    @property
    def factors(self) -> tuple[str, ...]:
        return self.encoding.factors

    def beside(self, declared: Mapping[str, Column]) -> DerivedColumn:
        """The same column among these others: where a factor has levels, it takes one for each."""
        del declared
        return self

    @property
    def parts(self) -> tuple[DerivedEncoding, ...]:
        """How each of its encoded columns is computed, its factors by the names of encoded columns."""
        return (self.encoding,)


def check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise SchemaError("the name of a column must be text and not empty", got=repr(name))
    if name == CONSTANT:
        raise SchemaError(f"the name {CONSTANT!r} is kept for the constant column")
    check_unicode("a column's name", name)


def check_unicode(what: str, text: str) -> None:
    """Half a surrogate pair has no UTF-8: a release that holds one could not be written."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise SchemaError(f"{what} must be valid Unicode text", got=ascii(text))


def check_weight(name: str, weight: float) -> None:
    if not (math.isfinite(weight) and 1e-6 <= weight <= 1e6):
        raise SchemaError(
            f"the weight of column {name!r} is out of range", got=weight, limit="between 1e-6 and 1e6"
        )


def weight_entry(weight: float) -> dict[str, object]:
    """The entry of a weight in a column's JSON form: left out where it is 1."""
    return {} if weight == 1.0 else {"weight": float(weight)}


def rules_and_words(kind: type[Column], name: str, entries: Mapping[str, Any]) -> tuple[Reading, About]:
    """What the remaining entries of a column say: how it is written, and what it means.

    A release with an entry that its kind does not know could be published, and never be loaded.
    """
    kind.form.check(kind.kind, repr(name), {*kind.form.required, *entries})
    words = {key: value for key, value in entries.items() if key in LABELLED_FORMS}
    rules = {key: value for key, value in entries.items() if key not in words}
    return reading(name, rules), about(name, words)


def as_whole(name: str, what: str, value: object) -> int:
    number = whole(value)
    if number is None:
        raise SchemaError(f"the {what} of column {name!r} must be a whole number", got=shown(value))
    return number


def as_float(name: str, what: str, value: object) -> float:
    number = real(value)
    if number is None:
        raise SchemaError(f"the {what} of column {name!r} must be a number", got=shown(value))
    return number + 0.0  # −0.0 becomes 0.0: equal schemas have equal texts


def first_repeated(names: Iterable[str]) -> str | None:
    """The first name that occurs a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
