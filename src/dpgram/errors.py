"""One exception tree: every message says what is wrong, what was got, what the limit is, how to mend it."""

from __future__ import annotations

import contextlib
import math
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Final

_OURS: Final = (__file__.removesuffix("errors.py"), contextlib.__file__)
"""Where frames of the stack are between us and a caller."""
_LONGEST_PART: Final = 4_000
"""Characters of each part of a message: a forged file may put megabytes where a word belongs."""


_NOTHING: Final = "Nothing was spent"


class DpgramError(Exception):
    """The root of every exception dpgram raises for a mistake a person can mend.

    The four parts are kept as attributes, so a program can act on them:

    >>> DpgramError("epsilon must be positive", got=-1, limit="epsilon > 0", remedy="give epsilon=1.0").got
    -1
    """

    def __init__(
        self, what: str, *, got: object = None, limit: str | None = None, remedy: str | None = None
    ) -> None:
        self.what = what
        self.got = got
        self.limit = limit
        self.remedy = remedy
        self.charged = False
        """Whether a ledger may have been charged before it was raised."""
        super().__init__(self._message())

    def reword(self, change: Callable[[str], str], *, before: str = "") -> None:
        """Say the same in the words of another interface; `before` goes in front.

        >>> error = dg.DpgramError("epsilon is missing")
        >>> error.reword(lambda text: text.replace("epsilon", "--epsilon"), before="job.toml: ")
        >>> str(error)
        'job.toml: --epsilon is missing'
        """
        self.what = before + change(self.what)
        self.got = change(self.got) if isinstance(self.got, str) else self.got
        self.limit = None if self.limit is None else change(self.limit)
        self.remedy = None if self.remedy is None else change(self.remedy)
        self.args = (self._message(),)

    def say_nothing_was_spent(self) -> None:
        """Let the message end with it, unless it says what was spent or something was.

        >>> from dpgram.errors import DpgramError
        >>> problem = DpgramError("no such file", remedy="Check the path")
        >>> problem.say_nothing_was_spent()
        >>> print(problem)
        no such file. Check the path. Nothing was spent
        """
        if self.charged or re.search(r"(?i)was spent|paid for", str(self)):
            return
        remedy = "" if self.remedy is None else self.remedy.rstrip(".")
        self.remedy = f"{remedy}{' ' if remedy.endswith('?') else '. ' if remedy else ''}{_NOTHING}"
        self.args = (self._message(),)

    def _message(self) -> str:
        parts = [_shortened(self.what)]
        if self.got is not None:
            parts.append(f"got {_shortened(str(self.got))}")
        if self.limit is not None:
            parts.append(f"limit: {_shortened(self.limit)}")
        message = "; ".join(parts)
        return _on_one_line(message if self.remedy is None else f"{message}. {_shortened(self.remedy)}")


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_PART else text[:_LONGEST_PART] + "…"


def _on_one_line(text: str) -> str:
    """Line ends and whatever else does not print, shown as escapes: some of it comes from files of others."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def real(value: object) -> float | None:
    """What a person gave, as a float, infinite beyond the largest; None: a text, a flag, a list, no number.

    >>> from dpgram.errors import real
    >>> real(2), real(-(10**400)), real("2"), real(True)
    (2.0, -inf, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def whole(value: object) -> int | None:
    """What a person gave, as an integer, of numpy's types too; None: 2.0, a text, a flag, no whole number.

    >>> from dpgram.errors import whole
    >>> whole(2), whole(2.0), whole("2"), whole(True)
    (2, None, None, None)
    """
    return None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


def shown(value: object) -> str:
    """What a person gave, for a message: as Python writes it, or its type where it cannot be written.

    >>> from dpgram.errors import shown
    >>> shown("a"), shown(10**5000)
    ("'a'", 'a value of type int')
    """
    try:
        return repr(value)[:100]
    except Exception:  # noqa: BLE001  (integers of some thousand digits, and whatever objects do)
        return f"a value of type {type(value).__name__}"


class SchemaError(DpgramError):
    """The declared columns contradict themselves, or a schema file cannot be understood."""


class SourceError(DpgramError):
    """The data cannot be read at all: missing file, missing column, unreadable or truncated content."""


class DataError(DpgramError):
    """A value breaks the schema in strict mode. Names the column and the row number, never the value."""

    def __init__(
        self,
        what: str,
        *,
        column: str | None = None,
        row: int | None = None,
        limit: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.column = column
        self.row = row
        where = "" if column is None else f" in column {column!r}"
        where += "" if row is None else f" at row {row}"
        super().__init__(what + where, limit=limit, remedy=remedy)


class GuaranteeError(DpgramError):
    """A privacy parameter is outside its range, or no noise level can meet it."""


class MechanismError(DpgramError):
    """A mechanism is unknown, or cannot serve the asked guarantee, adjacency or options."""


class OptionsError(DpgramError):
    """Two options that do not go together (`dpgram.publishing.compatibility` has the table)."""


class LearningError(DpgramError):
    """Bounds cannot be learnt: too few rows, or the table went away between two readings.

    `spent` is the event that was paid for; None: nothing was.

    `cost` says in words on what, and what that was worth. `final`: what was drawn cannot be gone on with.
    """

    def __init__(
        self,
        what: str,
        *,
        got: object = None,
        limit: str | None = None,
        remedy: str | None = None,
        spent: object = None,
        cost: str = "",
        final: bool = True,
    ) -> None:
        self.spent = spent
        self.cost = cost
        self.final = final
        rest = ", and the rest is given back" if final else ""
        told = "nothing was spent" if spent is None else f"the budget was spent {cost}{rest}"
        super().__init__(f"{what} ({told})", got=got, limit=limit, remedy=remedy)


class JobError(DpgramError):
    """A job file cannot be understood, or asks for something that does not go together."""


class LedgerError(DpgramError):
    """The ledger cannot be read, written or trusted."""


class BudgetExceeded(LedgerError):
    """The charge does not fit into what is left. Nothing was spent."""


class ReleaseError(DpgramError):
    """A release file is damaged, altered, of an unknown version, or not a release at all."""


class SignatureError(ReleaseError):
    """A release is not signed, not by the expected key, or altered since; or a key cannot be used."""


class AnalysisError(DpgramError):
    """The question cannot be answered from this release."""


class UnknownName(AnalysisError, KeyError):
    """A name that an answer does not have: a KeyError as well, as of any mapping."""

    __str__ = Exception.__str__  # KeyError would show the message as a literal


class CheckError(JobError):
    """Much of the table would be lost, and the job says to stop then. That it did depends on the data."""


class MissingExtra(DpgramError, ImportError):
    """A package is needed that `pip install dpgram` does not bring: the message names the extra that does."""

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(
            f"this needs the package {package!r}, which is not installed",
            remedy=f"Install it with: pip install 'dpgram[{extra}]'",
        )


PUBLISHING: Final = ("pyarrow", "polars", "opendp", "flint", "threadpoolctl")
"""The modules that reading, adding up and drawing need between them."""
_PACKAGES: Final[Mapping[str, str]] = {"flint": "python-flint", "sklearn": "scikit-learn"}
"""Where the package of a module has another name."""


def require_publish(*modules: str) -> None:
    """Refuse unless these modules of the extra `publish` are there (without any named: all for publishing).

    Asked before anything is read: a package that turned out to be missing after the charge would cost budget.
    """
    for module in modules or PUBLISHING:
        if find_spec(module) is None:
            raise MissingExtra(_PACKAGES.get(module, module), "publish")


class DpgramWarning(UserWarning):
    """Something is allowed but deserves a second look."""


def warn_caller(text: str) -> None:
    """A warning at the line that called the library, however deep below it was found."""
    frame, level = sys._getframe(1), 2  # noqa: SLF001  (inspect would read the source of every frame)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, DpgramWarning, stacklevel=level)


def tell_caller(text: str) -> None:
    """Warn; where warnings are errors, keep quiet: whether a release appears must not depend on a row."""
    with contextlib.suppress(DpgramWarning):
        warn_caller(text)
