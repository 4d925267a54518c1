"""A number with public bounds; dates and times are numbers of days."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, Unpack, final

from dpgram.errors import SchemaError
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
from dpgram.schema.encodings import NumberEncoding, SourceEncoding, too_close
from dpgram.schema.reading import AS_WRITTEN, NumberRules, Reading, reading_forms

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from dpgram.schema.columns.base import Line

Bound = float | str | date | None
"""A number, or a date (ISO text or a date object), or nothing: to be learnt privately."""

_BOUND_FORM: Final[Mapping[str, object]] = {
    "description": "A number, or an ISO date for a column of dates.",
    "type": ["number", "string"],
}
_NUMBER_TYPES: Final = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "halffloat", "float", "double", "decimal32", "decimal64", "decimal128", "decimal256",
)  # fmt: skip


class NumericEntries(NumberRules, AboutEntries, total=False):
    """What may be said of a column of numbers or dates beside its bounds."""


@final
@dataclass(frozen=True, slots=True)
class Numeric(SourceColumn):
    """z = (x − (low+high)/2) / ((high−low)/2), clamped to [-1, 1]. Dates count in days since 1970-01-01."""

    kind: ClassVar[str] = "numeric"
    form: ClassVar[FileForm] = FileForm(
        keys={
            "name": TEXT_JSON_SCHEMA,
            "low": _BOUND_FORM,
            "high": _BOUND_FORM,
            **reading_forms(NumberRules),
            **ABOUT_FORMS,
        },
        required=("name",),
        required_in_release=("name", "low", "high"),
    )
    encoded_as: ClassVar[type[SourceEncoding]] = NumberEncoding
    starters: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(_NUMBER_TYPES, "# low = \n# high = \n"),
        **dict.fromkeys(("date32", "date64", "timestamp"), '# low = "YYYY-MM-DD"\n# high = "YYYY-MM-DD"\n'),
    }
    name: str
    low: float | None = None
    high: float | None = None
    weight: float = 1.0
    dates: bool = False
    reading: Reading = AS_WRITTEN
    about: About = UNDESCRIBED
    undecided: bool = False

    def __post_init__(self) -> None:
        check_name(self.name)
        check_weight(self.name, self.weight)
        self._check_reading()
        if self.low is None and self.high is None:
            return
        if self.low is None or self.high is None:
            raise SchemaError(
                f"column {self.name!r} has one bound only",
                remedy="Give both low and high, or neither to learn both privately",
            )
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise SchemaError(
                f"the bounds of column {self.name!r} must be finite numbers",
                got=f"[{self.low}, {self.high}]",
                remedy="Give a range that is publicly known to hold; values outside are clamped to it",
            )
        if self.low >= self.high:
            raise SchemaError(
                f"the bounds of column {self.name!r} are empty or reversed",
                got=f"low={self.low}, high={self.high}",
                limit="low < high",
                remedy="Give the smaller one first",
            )
        if too_close(self.low, self.high):
            raise SchemaError(
                f"the bounds of column {self.name!r} are too close together for 64-bit floats",
                got=f"[{self.low}, {self.high}]",
                remedy="Subtract a public constant from the column, or change its unit",
            )
        if self.dates and not _FIRST_DAY <= self.low < self.high < _END_OF_DAYS:
            raise SchemaError(
                f"the bounds of column {self.name!r} leave the calendar",
                got=f"days {self.low} to {self.high} after 1970-01-01",
                limit="0001-01-01 to 9999-12-31",
            )

    def _check_reading(self) -> None:
        read = self.reading
        if not self.dates and read.format is not None:
            raise SchemaError(
                f"column {self.name!r} has a date format, so its bounds are dates",
                got=f"low={self.low}, high={self.high}",
                remedy='Write them like "1900-01-01" (bounds of dates are not learnt)',
            )
        if self.dates and (read.decimal or read.thousands or read.prefix or read.suffix):
            raise SchemaError(
                f"column {self.name!r} holds dates, and its reading rules are those of numbers",
                got=", ".join(read.to_dict()),
                remedy='Give the form of its dates: format = "%d/%m/%Y"',
            )

    @classmethod
    def from_entries(cls, **entries: Any) -> Numeric:
        return numeric(**entries)

    def to_dict(self) -> dict[str, object]:
        """Bounds as numbers, or as ISO text for dates."""
        bounds: dict[str, object] = {}
        if self.low is not None and self.high is not None:
            show = _iso_from_days if self.dates else float
            bounds = {"low": show(self.low), "high": show(self.high)}
        form = {"kind": self.kind, "name": self.name, **bounds, **weight_entry(self.weight)}
        return form | self.learn_entry | self.reading.to_dict() | self.about.to_dict()

    @property
    def described(self) -> tuple[str, str]:
        form = self.to_dict()
        return "dates" if self.dates else "number", f"{_shown(form['low'])} to {_shown(form['high'])}"

    @property
    def bounded(self) -> bool:
        """Whether bounds were declared."""
        return self.low is not None

    @property
    def centre(self) -> float:
        """(low + high) / 2, without overflow."""
        low, high = self.bounds
        return low / 2 + high / 2

    @property
    def half_width(self) -> float:
        """(high − low) / 2, without overflow."""
        low, high = self.bounds
        return high / 2 - low / 2

    @property
    def bounds(self) -> tuple[float, float]:
        """Both bounds; refuses where they were left open."""
        if self.low is None or self.high is None:
            raise SchemaError(
                f"column {self.name!r} has no bounds",
                remedy=f"Give public ones: numeric({self.name!r}, low, high), or pay to learn them privately",
            )
        return self.low, self.high

    @property
    def open_bounds(self) -> bool:
        return not self.bounded

    def with_bounds(self, low: float, high: float) -> Numeric:
        """Bounds of dates are in days, and are widened to whole days, which have a text form."""
        whole = (math.floor(low), math.ceil(high)) if self.dates else (low, high)
        return replace(self, low=float(whole[0]), high=float(whole[1]), undecided=False)

    def may_have_learnt_bounds(self, low: float, high: float) -> bool:
        return self.bounds[0] < high and self.bounds[1] > low

    @property
    def encoding(self) -> NumberEncoding:
        low, high = self.bounds
        return NumberEncoding(low=low, high=high, centre=self.centre, half_width=self.half_width)

    @property
    def cell_kind(self) -> CellKind:
        return "date" if self.dates else "number"

    def read(self, cells: pa.Array) -> Line:
        from dpgram.schema._read_cells import read_days, read_numbers

        if self.dates:
            return read_days(
                cells, self, remedy=f"Give its bounds as numbers: numeric({self.name!r}, low, high)"
            )
        dates = f'Give its bounds as dates: numeric({self.name!r}, "1900-01-01", "2020-12-31")'
        return read_numbers(cells, self, remedy_for_dates=dates)

    @property
    def reads_floats_as_they_are(self) -> bool:
        return not self.dates

    def new_values(self, given: npt.NDArray[Any]) -> npt.NDArray[Any]:
        from dpgram.schema._new_values import days, numbers

        return days(given, self.name) if self.dates else numbers(given, self.name)

    @property
    def python_reader(self) -> tuple[str, str]:
        return "day(" if self.dates else "float(", ")"

    def cells_at(self, places: npt.NDArray[np.float64]) -> pa.Array:
        import numpy as np
        import pyarrow as pa

        low, high = self.bounds
        values = np.clip(0.5 * (low + high) + 0.5 * (high - low) * places, low, high)
        return pa.array(values.astype(np.int32)).cast(pa.date32()) if self.dates else pa.array(values)


def numeric(
    name: str,
    low: Bound = None,
    high: Bound = None,
    *,
    weight: float = 1.0,
    **entries: Unpack[NumericEntries],
) -> Numeric:
    """A number with public bounds, mapped to [-1, 1]; values outside are clamped.

    Bounds may be dates (ISO text or date objects) for a column of dates or timestamps, which then counts in
    days. Without bounds the column can only be used where a share of the budget pays for learning them.

    Reading rules say how text is read: `decimal`, `thousands`, `prefix`, `suffix`, `trim`, for dates `format`
    ("%d/%m/%Y"; the bounds stay ISO), and codes for `missing`, which hold for typed columns too. In words:
    `label`, `description`, `units`, and the `source` of the bounds.

    >>> numeric("charges", 0, 50_000, thousands=",", missing=[-999], units="dollars").reading.thousands
    ','
    >>> numeric("age", 18, 90).centre
    54.0
    """
    rules, words = rules_and_words(Numeric, name, entries)
    given = [bound for bound in (low, high) if bound is not None]
    dates = any(isinstance(bound, str | date) for bound in given)
    if dates and any(_moment(bound) is None for bound in given):
        raise SchemaError(
            f"the bounds of column {name!r} must both be numbers or both ISO dates",
            got=" and ".join(map(repr, given)),
            remedy='Write dates like "1900-01-01", and numbers without quotes',
        )
    first, last = (
        _days_from_bound(each) if dates else _number_from_bound(name, each) for each in (low, high)
    )
    return Numeric(name, first, last, as_float(name, "weight", weight), dates, rules, words)


def _number_from_bound(name: str, bound: Bound) -> float | None:
    return None if bound is None else as_float(name, "bounds", bound)


def _days_from_bound(bound: Bound) -> float | None:
    """Days since 1970-01-01 (UTC where the text has a time zone)."""
    moment = _moment(bound)
    return None if moment is None else (moment - _EPOCH) / timedelta(days=1)


def _moment(bound: Bound) -> datetime | None:
    """None for what is no date."""
    if isinstance(bound, str):
        try:
            moment = datetime.fromisoformat(bound)
        except ValueError:
            return None
    elif isinstance(bound, datetime):
        moment = bound
    elif isinstance(bound, date):
        moment = datetime.combine(bound, time())
    else:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY: Final = float((date(1, 1, 1) - _EPOCH.date()).days)
_END_OF_DAYS: Final = float((date.max - _EPOCH.date()).days + 1)
"""Where Python's calendar begins and ends: bounds of dates outside have no text form."""


def _iso_from_days(days: float) -> str:
    moment = _EPOCH + timedelta(days=days)
    return moment.date().isoformat() if days == int(days) else moment.replace(tzinfo=None).isoformat()


def _shown(bound: object) -> str:
    """A bound for people: five digits of what was learnt, all of what was written down as a whole number."""
    if not isinstance(bound, float) or (bound.is_integer() and abs(bound) < 1e15):
        return str(bound).removesuffix(".0")
    return f"{bound:.5g}"
