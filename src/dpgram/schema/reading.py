"""How the cells of a column and the files of a table are written: public rules, the same for every source.

A rule says how text becomes a value, never what to do with a value that is there. A cell that does not follow
the rules is missing, as every other cell that cannot be read: no row can stop a publication.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, Final, Literal, TypedDict, final

from dpgram.errors import SchemaError, shown, whole

Case = Literal["lower", "upper"]
Code = str | float | bool
"""A word or number in a cell."""

MOST_WORDS: Final = 100
"""Codes in one list."""
LONGEST_WORD: Final = 200
BLANKS: Final = (" ", "\u00a0", "\u202f")
"""What programs write between thousands where people write a blank: the last two do not break a line."""
UNREADABLE_MOMENT: Final = 1 - 2**63
"""In place of the microseconds of a date that cannot be read: before every calendar."""
TRUE_WORDS: Final = ("true", "t", "yes", "y", "1", "1.0")
FALSE_WORDS: Final = ("false", "f", "no", "n", "0", "0.0")
SEPARATORS: Final = (",", ".", "'", "’", "_", *BLANKS)
DIRECTIVES: Final[Mapping[str, str]] = {
    "Y": "year of four digits",
    "y": "year of two digits, 69 to 99 before 2000",
    "m": "month",
    "d": "day",
    "b": "month, three English letters",
    "B": "month, English name",
    "j": "day of the year",
    "H": "hour",
    "I": "hour up to 12",
    "p": "AM or PM",
    "M": "minute",
    "S": "second",
}
"""What a format may contain after a percent sign."""


class NumberRules(TypedDict, total=False):
    """Rules for a column of numbers, or of dates, which have a `format`."""

    format: str
    decimal: str
    thousands: str
    prefix: str
    suffix: str
    missing: Code | Iterable[Code]
    trim: bool


class TextRules(TypedDict, total=False):
    """Rules for a column of levels."""

    missing: Code | Iterable[Code]
    trim: bool
    case: Case


class BooleanRules(TypedDict, total=False):
    """Rules for a column of yes and no."""

    true: Code | Iterable[Code]
    false: Code | Iterable[Code]
    missing: Code | Iterable[Code]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the cells of one column are written; by default as the column's kind is read everywhere.

    >>> from dpgram.schema.reading import Reading
    >>> Reading(thousands=",", missing=("-999",)).to_dict()
    {'thousands': ',', 'missing': ['-999']}
    """

    format: str | None = None
    """Of dates, as `strftime` writes it: "%d/%m/%Y"."""
    decimal: str | None = None
    """The decimal mark, a point by default."""
    thousands: str | None = None
    """Between groups of three digits (of two before the last group, as in India)."""
    prefix: str | None = None
    """Left out before a number: "$"."""
    suffix: str | None = None
    """Left out after a number: "%" (12% is 12, not 0.12), " km"."""
    missing: tuple[str, ...] = ()
    """Words and numbers that stand for a missing value, in typed columns too."""
    trim: bool = False
    """Blanks at both ends do not count."""
    case: Case | None = None
    """Letters are made small or large before they are compared."""
    true: tuple[str, ...] = ()
    """Words and numbers for true, in place of true, yes, y, t and 1 (any case)."""
    false: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.format is not None:
            _check_format(self.format)
        for mark, what in ((self.decimal, "decimal"), (self.thousands, "thousands")):
            if mark is not None and mark not in SEPARATORS:
                raise SchemaError(f"the `{what}` mark is not one", got=repr(mark), limit=_listed(SEPARATORS))
        if (self.decimal or ".") == self.thousands:
            raise SchemaError(
                "the decimal mark and the mark between thousands must differ",
                got=repr(self.thousands),
                remedy='For 1.234,56 write decimal = "," and thousands = "."',
            )
        for text in (self.prefix, self.suffix):
            if text is not None and (not text.strip() or len(text) > LONGEST_WORD or re.search(r"\d", text)):
                raise SchemaError(
                    "what stands before or after a number must be short text without digits",
                    got=repr(text)[:100],
                )
        if self.case not in (None, "lower", "upper"):
            raise SchemaError("`case` is unknown", got=repr(self.case), limit='"lower" or "upper"')
        if bool(self.true) != bool(self.false):
            raise SchemaError(
                "`true` and `false` must be given together",
                got=_listed(self.true or self.false),
                remedy="Say which words mean true and which mean false",
            )
        lists = (("missing", self.missing), ("true", self.true), ("false", self.false))
        for what, words in lists:
            _check_words(what, words)
        for (left, some), (right, others) in ((lists[0], lists[1]), (lists[0], lists[2]), lists[1:]):
            # Cells are compared with words for true and false in any case, with codes as they are.
            alike = _folded if left == "true" else str.strip
            known = {alike(word) for word in others}
            if both := [word for word in some if alike(word) in known]:
                in_any_case = ", in which capital letters do not count" if left == "true" else ""
                raise SchemaError(
                    f"one word stands in `{left}` and in `{right}`{in_any_case}",
                    got=repr(min(both)),
                    remedy="Leave it in one of them",
                )

    def __bool__(self) -> bool:
        return self != AS_WRITTEN

    @property
    def truth_words(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What stands for true and for false, in small letters."""
        if not self.true:
            return TRUE_WORDS, FALSE_WORDS
        true, false = (tuple(word.strip().lower() for word in words) for words in (self.true, self.false))
        return true, false

    def truth(self, value: object) -> bool | None:
        """What a value means by the words and numbers that cells are read by; None where it is none of them.

        >>> from dpgram.schema.reading import Reading
        >>> Reading(true=("ja", "1"), false=("nein", "2")).truth("Nein"), Reading().truth("maybe")
        (False, None)
        """
        if isinstance(value, bool):
            return value
        try:
            plain = _folded(_word("true", value))
        except SchemaError:
            return None
        true, false = ({_folded(word) for word in words} for words in self.truth_words)
        return plain in true if plain in true | false else None

    @property
    def changes_numbers(self) -> bool:
        """Whether numbers are written otherwise than a program reads them by itself."""
        return self.trim or any((self.decimal, self.thousands, self.prefix, self.suffix))

    def to_dict(self) -> dict[str, object]:
        """The entries of a column's JSON form; none by default.

        >>> from dpgram.schema.reading import Reading
        >>> Reading().to_dict()
        {}
        """
        form = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in form.items() if value
        }


def reading(name: str, rules: Mapping[str, Any]) -> Reading:
    """The reading rules of a column, from what people write; the rest of the message names the column."""
    try:
        return Reading(**{rule: _READERS[rule](rule, value) for rule, value in rules.items()})
    except SchemaError as error:
        raise SchemaError(
            f"column {name!r}: {error.what}", got=error.got, limit=error.limit, remedy=error.remedy
        ) from None


def _text(what: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise SchemaError(f"`{what}` must be text and not empty", got=repr(value)[:100])
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise SchemaError(f"`{what}` must be valid Unicode text", got=ascii(value)[:100])
    return value


def _truth(what: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise SchemaError(f"`{what}` must be true or false", got=repr(value)[:100])
    return value


def _words(what: str, value: object) -> tuple[str, ...]:
    many = value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    return tuple(dict.fromkeys(_word(what, word) for word in many))


def _word(what: str, word: object) -> str:
    if isinstance(word, str):
        return _text(what, word)
    if isinstance(word, bool):
        return "true" if word else "false"
    if isinstance(word, Integral):
        return str(int(word))
    if isinstance(word, Real) and float(word) == float(word):
        number = float(word)
        return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
    raise SchemaError(f"`{what}` must be a list of words and numbers", got=repr(word)[:100])


_READERS: Final[Mapping[str, Callable[[str, object], Any]]] = {
    **dict.fromkeys(("format", "decimal", "thousands", "prefix", "suffix", "case"), _text),
    **dict.fromkeys(("missing", "true", "false"), _words),
    "trim": _truth,
}


def _check_words(what: str, words: tuple[str, ...]) -> None:
    if len(words) > MOST_WORDS or any(len(word) > LONGEST_WORD for word in words):
        raise SchemaError(
            f"the list `{what}` is too long",
            limit=f"{MOST_WORDS} words of at most {LONGEST_WORD} characters",
        )


def _folded(word: str) -> str:
    """A word for true or false as cells are compared with it: a number of a typed column by its value."""
    plain = word.strip().lower()
    try:
        return _word("true", float(plain))
    except (ValueError, SchemaError):
        return plain


def _check_format(text: str) -> None:
    found = re.findall(r"%(.?)", text.replace("%%", ""))
    unknown = [directive for directive in found if directive not in DIRECTIVES]
    if unknown or len(text) > LONGEST_WORD:
        raise SchemaError(
            "the date format is not understood",
            got=repr(text)[:100],
            limit=", ".join(f"%{directive} ({means})" for directive, means in DIRECTIVES.items()),
        )
    known = set(found)
    day = {"j"} <= known or ("d" in known and known & {"m", "b", "B"})
    if not (known & {"Y", "y"} and day) or len(found) > len(known):
        raise SchemaError(
            "a date format must name year, month and day, each once",
            got=repr(text)[:100],
            remedy='Write it as "%d/%m/%Y"; a column of years alone is a number and needs no format',
        )


def _listed(words: Iterable[str]) -> str:
    return ", ".join(map(repr, words))


_WORDS_FORM: Final[Mapping[str, object]] = {
    "type": "array",
    "items": {"type": "string", "minLength": 1, "maxLength": LONGEST_WORD},
    "maxItems": MOST_WORDS,
    "uniqueItems": True,
}
_TEXT_FORM: Final[Mapping[str, object]] = {"type": "string", "minLength": 1, "maxLength": LONGEST_WORD}
_FORMS: Final[Mapping[str, Mapping[str, object]]] = {
    **dict.fromkeys(("format", "prefix", "suffix"), _TEXT_FORM),
    **{mark: {"enum": list(SEPARATORS)} for mark in ("decimal", "thousands")},
    **dict.fromkeys(("missing", "true", "false"), _WORDS_FORM),
    "trim": {"const": True},
    "case": {"enum": ["lower", "upper"]},
}


def reading_forms(rules: type[NumberRules | TextRules | BooleanRules]) -> dict[str, Mapping[str, object]]:
    """The JSON Schema of each of these rules."""
    return {rule: _FORMS[rule] for rule in rules.__annotations__}


_ENCODINGS: Final = (
    "utf-8",
    "utf-16",
    "iso8859-1",
    "iso8859-2",
    "iso8859-15",
    "cp1250",
    "cp1251",
    "cp1252",
)
"""By the names of Python's codecs. The bytes that one of them does not know never begin a letter in UTF-8, so
distinct ids stay distinct."""
ENCODING_NAMES: Final[Mapping[str, str]] = {"iso8859-1": "latin-1", "cp1252": "windows-1252"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FileLayout:
    """How the files of a table are written: a public fact, and the same for all of them."""

    encoding: str | None = None
    """Of text files, UTF-8 by default: "latin-1", "windows-1252", "utf-16", …"""
    separator: str | None = None
    """Between two cells; by default a comma, or a tab where a file's name ends in .tsv or .tab."""
    sheet: str | None = None
    """Of a workbook; not needed where there is one only."""
    skip: int | None = None
    """Rows of a sheet above its header: a title, blank rows."""
    header: int | None = None
    """Rows of a sheet that hold the names, 1 by default; merged cells name all columns below them."""
    footer: int | None = None
    """Rows at the end of a sheet that are none of the table: totals, notes."""

    def __post_init__(self) -> None:
        for name, (least, most) in SHEET_ROWS.items():
            rows = getattr(self, name)
            if rows is not None and (whole(rows) is None or not least <= rows <= most):
                raise SchemaError(
                    f"`{name}` must be a number of rows", got=shown(rows), limit=f"{least} to {most}"
                )
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _encoding(self.encoding))
        separator = self.separator
        if separator is not None and (
            not isinstance(separator, str)
            or len(separator) != 1
            or not separator.isascii()
            or separator.isalnum()
            or separator in '"\r\n.-+'
        ):
            raise SchemaError(
                "the separator of cells must be one character that no number contains",
                got=repr(separator)[:100],
                limit='"," ";" "|" or a tab, "\\t"',
            )
        if self.sheet is not None:
            _text("sheet", self.sheet)

    def to_dict(self) -> dict[str, object]:
        form = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in form.items() if value is not None}


SHEET_ROWS: Final[Mapping[str, tuple[int, int]]] = {
    "skip": (0, 1_000),
    "header": (1, 10),
    "footer": (0, 1_000),
}
"""Rules for a sheet that count its rows, with the least and the most."""
LAYOUT_FORMS: Final[Mapping[str, Mapping[str, object]]] = {
    "encoding": {"type": "string", "minLength": 1, "maxLength": LONGEST_WORD},
    "separator": {"type": "string", "minLength": 1, "maxLength": 1},
    "sheet": {"type": "string", "minLength": 1, "maxLength": LONGEST_WORD},
    **{
        name: {"type": "integer", "minimum": least, "maximum": most}
        for name, (least, most) in SHEET_ROWS.items()
    },
}


def _encoding(name: object) -> str:
    try:
        found = codecs.lookup(_text("encoding", name)).name
    except LookupError:
        found = ""
    if found == "utf-8-sig":  # a mark at the beginning is left out anyway
        found = "utf-8"
    if found not in _ENCODINGS:
        raise SchemaError(
            "the encoding of text files is not one that can be read",
            got=repr(name)[:100],
            limit=", ".join(ENCODING_NAMES.get(one, one) for one in _ENCODINGS),
            remedy="Convert the files to UTF-8 first",
        )
    return ENCODING_NAMES.get(found, found)


AS_WRITTEN: Final = Reading()
"""As the column's kind is read everywhere."""
AS_USUAL: Final = FileLayout()
