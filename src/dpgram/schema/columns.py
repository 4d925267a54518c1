"""The kinds of column a schema is made of: each maps public facts to encoded columns with |z| ≤ 1.

Every kind adds at most weight² to a row's squared norm. Use the functions `numeric`, `categorical`,
`boolean`, `product` and `legendre`: they take what people write (dates as ISO text, levels as numbers).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from numbers import Integral, Real
from typing import ClassVar, Final, Literal, final

from dpgram.errors import SchemaError

CONSTANT: Final = "(constant)"
"""Name of the constant column."""

MAX_DEGREE: Final = 12
"""Highest Legendre degree: beyond it the polynomial wiggles faster than any honest bound is known."""

MAX_LEVELS: Final = 10_000
"""Most levels of a categorical column: beyond, a level holds too few rows to be told from noise."""

OTHER: Final = "other"
"""Where all levels go that were not learnt, unless the schema says otherwise."""

Bound = float | str | date | None
"""A number, or a date (ISO text or a date object), or nothing: to be learnt privately."""
Kind = Literal["constant", "numeric", "boolean", "level", "product", "legendre"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedColumn:
    """One column of the Gram matrix: weight · z with |z| ≤ 1; for a number z = (x − centre) / half_width."""

    name: str
    source: str
    """The declared column it belongs to (`(constant)` for the constant)."""
    kind: Kind
    centre: float = 0.0
    half_width: float = 1.0
    level: str | None = None
    weight: float = 1.0


class Column(ABC):
    """A declared column: adds at most weight² to a row's squared norm, whatever the number of its levels."""

    __slots__ = ()
    kind: ClassVar[str]
    name: str
    """The name by which analysts ask for it."""
    weight: float

    @property
    @abstractmethod
    def encoded_names(self) -> tuple[str, ...]:
        """Names of its columns in the Gram matrix."""

    @abstractmethod
    def encoded(self) -> tuple[EncodedColumn, ...]:
        """Its columns in the Gram matrix."""

    @abstractmethod
    def to_dict(self) -> dict[str, object]:
        """The JSON form, defaults left out."""


class SingleColumn(Column, ABC):
    """A declared column that is one column of the Gram matrix, under its own name."""

    __slots__ = ()

    @property
    def encoded_names(self) -> tuple[str, ...]:
        """The column's own name."""
        return (self.name,)


class DerivedColumn(SingleColumn, ABC):
    """A column computed from the encoded values of other declared columns; nothing is read for it."""

    __slots__ = ()

    @property
    @abstractmethod
    def factors(self) -> tuple[str, ...]:
        """Names of the declared columns it is computed from."""


@final
@dataclass(frozen=True, slots=True)
class Numeric(SingleColumn):
    """z = (x − (low+high)/2) / ((high−low)/2), clamped to [-1, 1]. Dates count in days since 1970-01-01."""

    kind: ClassVar[str] = "numeric"
    name: str
    low: float | None = None
    high: float | None = None
    weight: float = 1.0
    dates: bool = False

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_weight(self.name, self.weight)
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
            )
        half_width = self.half_width
        if half_width < 1e-9 * max(abs(self.low), abs(self.high)) or half_width < 1e-300:
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

    def encoded(self) -> tuple[EncodedColumn, ...]:
        """One column; needs bounds."""
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
        """Bounds as numbers, or as ISO text for dates."""
        bounds: dict[str, object] = {}
        if self.low is not None and self.high is not None:
            show = _iso_from_days if self.dates else float
            bounds = {"low": show(self.low), "high": show(self.high)}
        return {"kind": self.kind, "name": self.name, **bounds, **_weight_form(self.weight)}


@final
@dataclass(frozen=True, slots=True)
class Categorical(Column):
    """One-hot over public levels: the whole group has norm 1·weight, so many levels cost no more than one.

    Levels are compared by their text: integers as "3", booleans as "true" and "false".
    """

    kind: ClassVar[str] = "categorical"
    name: str
    levels: tuple[str, ...]
    other: str | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_weight(self.name, self.weight)
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
            _check_unicode("a level", level)
        repeated = first_repeated(self.levels)
        if repeated is not None:
            raise SchemaError(f"column {self.name!r} lists a level twice", got=repr(repeated))

    @property
    def listed(self) -> bool:
        """Whether levels were declared; else the frequent ones are to be learnt, and all go to `other`."""
        return bool(self.levels)

    @property
    def all_levels(self) -> tuple[str, ...]:
        """The levels in the order of their encoded columns; `other` is last unless it was listed."""
        if self.other is None or self.other in self.levels:
            return self.levels
        return (*self.levels, self.other)

    @property
    def encoded_names(self) -> tuple[str, ...]:
        """`name=level` for each level."""
        return tuple(f"{self.name}={level}" for level in self.all_levels)

    def encoded(self) -> tuple[EncodedColumn, ...]:
        """One column a level, 1 where the row has it, else 0."""
        return tuple(
            EncodedColumn(name=name, source=self.name, kind="level", level=level, weight=self.weight)
            for name, level in zip(self.encoded_names, self.all_levels, strict=True)
        )

    def to_dict(self) -> dict[str, object]:
        """Levels as a list of texts."""
        form: dict[str, object] = {"kind": self.kind, "name": self.name}
        if self.levels:
            form["levels"] = list(self.levels)
        if self.other is not None:
            form["other"] = self.other
        return form | _weight_form(self.weight)


@final
@dataclass(frozen=True, slots=True)
class Boolean(SingleColumn):
    """z = +1 for true, −1 for false."""

    kind: ClassVar[str] = "boolean"
    name: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_weight(self.name, self.weight)

    def encoded(self) -> tuple[EncodedColumn, ...]:
        """One column, the number 0/1 mapped to −1/+1."""
        return (
            EncodedColumn(
                name=self.name,
                source=self.name,
                kind="boolean",
                centre=0.5,
                half_width=0.5,
                weight=self.weight,
            ),
        )

    def to_dict(self) -> dict[str, object]:
        """Kind, name and weight."""
        return {"kind": self.kind, "name": self.name, **_weight_form(self.weight)}


@final
@dataclass(frozen=True, slots=True)
class Product(DerivedColumn):
    """z = z_left · z_right of two declared numeric or boolean columns, in their encoded scale."""

    kind: ClassVar[str] = "product"
    left: str
    right: str
    weight: float = 1.0
    name: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"{self.left}*{self.right}")
        _check_name(self.left)
        _check_name(self.right)
        _check_weight(self.name, self.weight)

    def encoded(self) -> tuple[EncodedColumn, ...]:
        """One column, already in [-1, 1]."""
        return (EncodedColumn(name=self.name, source=self.name, kind="product", weight=self.weight),)

    @property
    def factors(self) -> tuple[str, ...]:
        """Its two factors."""
        return (self.left, self.right)

    def to_dict(self) -> dict[str, object]:
        """Both factors by name."""
        return {"kind": self.kind, "left": self.left, "right": self.right, **_weight_form(self.weight)}


@final
@dataclass(frozen=True, slots=True)
class Legendre(DerivedColumn):
    """z = P_degree(z of the column): powers that are orthogonal on [-1, 1], hence nearly uncorrelated."""

    kind: ClassVar[str] = "legendre"
    column: str
    degree: int
    weight: float = 1.0
    name: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"{self.column}^P{self.degree}")
        _check_name(self.column)
        _check_weight(self.name, self.weight)
        if not 2 <= self.degree <= MAX_DEGREE:
            raise SchemaError(
                f"the degree of {self.name!r} is out of range",
                got=self.degree,
                limit=f"2 to {MAX_DEGREE} (degree 1 is the column itself)",
            )

    def encoded(self) -> tuple[EncodedColumn, ...]:
        """One column, already in [-1, 1]."""
        return (EncodedColumn(name=self.name, source=self.name, kind="legendre", weight=self.weight),)

    @property
    def factors(self) -> tuple[str, ...]:
        """The column whose polynomial it is."""
        return (self.column,)

    def to_dict(self) -> dict[str, object]:
        """Column by name, and the degree."""
        return {
            "kind": self.kind,
            "column": self.column,
            "degree": self.degree,
            **_weight_form(self.weight),
        }


def numeric(name: str, low: Bound = None, high: Bound = None, *, weight: float = 1.0) -> Numeric:
    """A number with public bounds, mapped to [-1, 1]; values outside are clamped.

    Bounds may be dates (ISO text or date objects) for a column of dates or timestamps, which then counts in
    days. Without bounds the column can only be used where a share of the budget pays for learning them.

    >>> numeric("age", 18, 90).centre
    54.0
    """
    dates = isinstance(low, str | date) or isinstance(high, str | date)
    read = _days_from_bound if dates else _number_from_bound
    return Numeric(name, read(name, low), read(name, high), _as_float(name, "weight", weight), dates)


def categorical(
    name: str,
    levels: Iterable[str | int | bool] | None = None,
    other: str | int | None = None,
    *,
    weight: float = 1.0,
) -> Categorical:
    """A choice among public levels; unknown values go to `other` where it is declared.

    Without a list the column can only be used where a share of the budget pays for learning the frequent
    levels; all others go to `other`.

    >>> categorical("smoker", ["no", "yes"]).encoded_names
    ('smoker=no', 'smoker=yes')
    """
    if isinstance(levels, str):
        raise SchemaError(
            f"the levels of column {name!r} must be a list", got="one text", remedy=f"Write [{levels!r}]"
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
    return Categorical(name, texts, other_text, _as_float(name, "weight", weight))


def boolean(name: str, *, weight: float = 1.0) -> Boolean:
    """A yes/no column: true is +1, false is −1."""
    return Boolean(name, _as_float(name, "weight", weight))


def product(left: str, right: str, *, weight: float = 1.0) -> Product:
    """The product of two declared numeric or boolean columns (an interaction).

    >>> product("age", "bmi").name
    'age*bmi'
    """
    return Product(left, right, _as_float(f"{left}*{right}", "weight", weight))


def legendre(column: str, degree: int, *, weight: float = 1.0) -> Legendre:
    """The Legendre polynomial of a declared numeric column: a power made orthogonal on its bounds.

    >>> legendre("age", degree=2).name
    'age^P2'
    """
    return Legendre(column, _as_whole(column, "degree", degree), _as_float(column, "weight", weight))


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise SchemaError("a column's name must be a text that is not empty", got=repr(name))
    if name == CONSTANT:
        raise SchemaError(f"the name {CONSTANT!r} is kept for the constant column")
    _check_unicode("a column's name", name)


def _check_unicode(what: str, text: str) -> None:
    """Half a surrogate pair has no UTF-8: a release that holds one could not be written."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise SchemaError(f"{what} must be valid Unicode text", got=ascii(text))


def _check_weight(name: str, weight: float) -> None:
    if not (math.isfinite(weight) and 1e-6 <= weight <= 1e6):
        raise SchemaError(
            f"the weight of column {name!r} is out of range", got=weight, limit="between 1e-6 and 1e6"
        )


def _weight_form(weight: float) -> dict[str, object]:
    return {} if weight == 1.0 else {"weight": float(weight)}


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


def _as_whole(name: str, what: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise SchemaError(f"the {what} of column {name!r} must be a whole number", got=repr(value))
    return int(value)


def _as_float(name: str, what: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SchemaError(f"the {what} of column {name!r} must be a number", got=repr(value))
    try:
        return float(value) + 0.0  # −0.0 becomes 0.0: equal schemas have equal texts
    except OverflowError:  # an integer beyond the floats, of either sign: refused as not finite
        return math.inf


def _number_from_bound(name: str, bound: Bound) -> float | None:
    return None if bound is None else _as_float(name, "bounds", bound)


def _days_from_bound(name: str, bound: Bound) -> float | None:
    """Days since 1970-01-01 (UTC where the text has a time zone)."""
    if bound is None:
        return None
    moment: datetime | None = None
    if isinstance(bound, str):
        try:
            moment = datetime.fromisoformat(bound)
        except ValueError:
            moment = None
    elif isinstance(bound, datetime):
        moment = bound
    elif isinstance(bound, date):
        moment = datetime(bound.year, bound.month, bound.day)  # noqa: DTZ001  (a date has no time zone)
    if moment is None:
        raise SchemaError(
            f"the bounds of column {name!r} must both be numbers or both ISO dates",
            got=repr(bound),
            remedy='Write dates like "1900-01-01"',
        )
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) / timedelta(days=1)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY: Final = float((date(1, 1, 1) - _EPOCH.date()).days)
_END_OF_DAYS: Final = float((date.max - _EPOCH.date()).days + 1)
"""Where Python's calendar begins and ends: bounds of dates outside have no text form."""


def _iso_from_days(days: float) -> str:
    moment = _EPOCH + timedelta(days=days)
    return moment.date().isoformat() if days == int(days) else moment.replace(tzinfo=None).isoformat()


def first_repeated(names: Iterable[str]) -> str | None:
    """The first name that occurs a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
