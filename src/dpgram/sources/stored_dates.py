"""Dates and moments of Stata, SPSS and SAS: numbers that a format calls so, each turned by itself.

pyreadstat turns them too, but one number outside of the calendar makes it fail, and it drops what a format
does not show, so that distinct ids would become one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final, final

from dpgram.sources.base import DeclaredKind
from dpgram.sources.ids import float_id, moment_id
from dpgram.sources.plain_columns import EPOCH, FIRST_MICROSECOND, LAST_MICROSECOND

DAY: Final = 86_400_000_000
SECOND: Final = 1_000_000
MILLISECOND: Final = 1_000
"""In microseconds."""
OUTSIDE: Final = object()
"""In place of a date that no calendar has: a cell that holds something which nothing reads."""


@final
@dataclass(frozen=True, slots=True)
class Calendar:
    """What the numbers of a column count."""

    unit: int
    """Microseconds."""
    origin: int
    """In microseconds since 1970."""
    of_days: bool
    """Whether a time of day is left out of the dates. Ids keep it."""

    @property
    def type(self) -> str:
        return "date32[day]" if self.of_days else "timestamp[us]"

    def cell(self, number: float | None) -> object:
        """The date or moment, to the microsecond; `OUTSIDE` before the year 1 and after 9999."""
        if number is None or number != number:
            return None
        if not math.isfinite(number):
            return OUTSIDE
        ticks = self._microseconds(number)
        if not FIRST_MICROSECOND <= ticks <= LAST_MICROSECOND:
            return OUTSIDE
        moment = EPOCH + timedelta(microseconds=ticks)
        return moment.date() if self.of_days else moment

    def id(self, number: float | None) -> str | None:
        """The moment as ISO text, in any year: to the microsecond if that gives the number back, or exactly.

        Either way the number is the float that is nearest to the moment in the text, so no two numbers have
        the same text. Proof: proofs/units.md#units-ids.
        """
        if number is None or not math.isfinite(number):
            return None if number is None else float_id(number)
        since = self._since(number)
        if since / self.unit == number:  # of integers: rounded once, to the nearest float
            return moment_id(self.origin + since, 6)
        places = -int(Decimal(repr(number)).as_tuple().exponent)  # it is no whole number
        exact = Fraction(repr(number)) * self.unit + self.origin
        return moment_id(int(exact * 10**places), 6 + places)

    def _microseconds(self, number: float) -> int:
        """Since 1970. Where the time of day is left out, nothing is rounded up."""
        if self.of_days:
            return self.origin + math.floor(number) * self.unit // DAY * DAY
        return self.origin + self._since(number)

    def _since(self, number: float) -> int:
        whole = math.floor(number)
        return whole * self.unit + round((number - whole) * self.unit)


STATA_ORIGIN: Final = (date(1960, 1, 1) - EPOCH.date()).days * DAY
"""Of SAS too."""
SPSS_ORIGIN: Final = (date(1582, 10, 14) - EPOCH.date()).days * DAY


def _formats(names: str, unit: int, origin: int, *, of_days: bool = False) -> dict[str, Calendar]:
    return dict.fromkeys(names.split(), Calendar(unit, origin, of_days))


STATA: Final[Mapping[str, Calendar]] = {
    **_formats("%td %d %tdD_m_Y %tdCCYY-NN-DD", DAY, STATA_ORIGIN, of_days=True),
    **_formats("%tc %tC %tcHH:MM:SS %tcHH:MM", MILLISECOND, STATA_ORIGIN),
}
SPSS: Final[Mapping[str, Calendar]] = {
    **_formats("DATE ADATE EDATE JDATE SDATE", SECOND, SPSS_ORIGIN, of_days=True),
    **_formats("DATETIME YMDHMS", SECOND, SPSS_ORIGIN),
}
SAS: Final[Mapping[str, Calendar]] = {
    **_formats(
        "DATE WEEKDATE WEEKDATX MMDDYY DDMMYY YYMMDD IS8601DA E8601DA B8601DA "
        "DDMMYYB DDMMYYC DDMMYYD DDMMYYN DDMMYYP DDMMYYS MMDDYYB MMDDYYC MMDDYYD MMDDYYN MMDDYYP MMDDYYS "
        "YYMMDDB YYMMDDD YYMMDDN YYMMDDP YYMMDDS",
        DAY,
        STATA_ORIGIN,
        of_days=True,
    ),
    **_formats("DATETIME DATEAMPM MDYAMPM IS8601DT E8601DT B8601DT B8601DN", SECOND, STATA_ORIGIN),
    **_formats("DTDATE", SECOND, STATA_ORIGIN, of_days=True),
}
CALENDARS: Final[Mapping[str, Mapping[str, Calendar]]] = {
    ".dta": STATA,
    ".sav": SPSS,
    ".zsav": SPSS,
    ".por": SPSS,
    ".sas7bdat": SAS,
    ".xpt": SAS,
}
"""By the end of a file's name, the formats without their width. Times of day and durations stay numbers."""
_NAME: Final = re.compile(r"([A-Z][A-Z0-9]*[A-Z])\d*(?:\.\d*)?")
_STATA: Final = re.compile(r"%-?(t?d|t[cC])")


def calendar_of(ending: str, form: str, kind: DeclaredKind | None) -> Calendar | None:
    """What numbers of this format count; None where they are numbers.

    A date in any other display of Stata, or in small letters, is one where the schema declares dates. As an
    id, a number or a text it is the number, as it has always been.
    """
    formats = CALENDARS[ending]
    if kind == "date":
        form = _plainly(ending, form)
    if ending == ".dta":
        return formats.get(form)
    name = _NAME.fullmatch(form)
    return None if name is None else formats.get(name[1])


def _plainly(ending: str, form: str) -> str:
    if ending != ".dta":
        return form.upper()
    kind = _STATA.match(form)
    return form if kind is None else f"%{kind[1]}"
