"""A starter schema for a table: names, kinds and labels to begin with, no value, bound or level of the data.

The codebook inside a file of Stata, SPSS or SAS is taken over: labels, and labelled codes as levels. The
first rows are looked at, to find ids, and where there are no types to guess the kind of each column and how
it is written.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, final

from dpgram.errors import SourceError, warn_caller
from dpgram.publishing.causes import (
    DATE_FORMATS,
    MARKS,
    MISSING_WORDS,
    YES_AND_NO,
    number_with_affix,
    reads_share,
    words_read,
)
from dpgram.schema.reading import AS_USUAL, FileLayout, Reading
from dpgram.schema.toml_form import UNTYPED, parse_toml, starter_table, toml_value
from dpgram.sources import column_types, open_source
from dpgram.sources.delimited import SEPARATOR_NAMES, refuse_title
from dpgram.sources.files import file_format
from dpgram.sources.headers import NO_HEADER, look_like_cells
from dpgram.sources.statistical_files import Variable, codebook_of
from dpgram.sources.workbooks import guessed_rows, sheet_names

ROWS: Final = 1_000
"""Looked at to guess kinds."""
NEARLY_ALL: Final = 0.95
MOST_LEVELS: Final = 50
FEWEST_IDS: Final = 20
"""Cells below which nothing is taken for an id."""
SHORTEST_CODE: Final = 3
"""Digits of a code with leading zeros; hours and months have two."""
LONG_TEXT: Final = 40
"""Letters of a cell, on average, from which on it is free text."""
ID_NAME: Final = re.compile(
    r"(?:^|[_\s.-])(?:id|uuid|guid|key|nr|no|number|ssn|name|e-?mail|phone|iban)$|nummer$|(?-i:[a-z](?:I[Dd]|Nr))$",
    re.IGNORECASE,
)

HEAD: Final = """\
# A starter schema: names, kinds and how cells are written.
# {looked} {told}
#
# Fill in every bound and every level from PUBLIC knowledge: a codebook, a law,
# common sense, and say where it comes from in `source`. Bounds or levels looked
# up in the data would leak it, and no guarantee would cover that. Values beyond
# the bounds are clamped; unknown levels go to `other`, or count as missing.
# Where nothing is known, `learn = true` below a column pays for learning it.
# Delete the columns you do not need: each adds noise to all the others. Then:
# dpgram check DATA -s THIS-FILE
constant = true
"""


LAYOUT_NOTES: Final = {
    "sheet": "",
    "skip": "  # guessed: rows above the header",
    "header": "  # guessed: rows of the header, joined to one name for each column",
    "footer": "  # guessed: rows below the table, such as totals and notes",
}
NO_VALUES: Final = "None of the values is in it."


def starter_schema(data: object, *, sheet: str | None = None) -> str:
    """The TOML text of a schema to fill in. `sheet` says which one of a workbook with several is meant.

    >>> from dpgram.publishing import starter_schema
    >>> print(starter_schema({"age": [31, 42], "smoker": ["no", "yes"]}).split("constant = true")[1])
    <BLANKLINE>
    <BLANKLINE>
    [[columns]]  # guessed from the first rows: a number
    kind = "numeric"
    name = "age"
    # low =
    # high =
    # source = "…"
    <BLANKLINE>
    [[columns]]  # guessed from the first rows: yes or no
    kind = "boolean"
    name = "smoker"
    <BLANKLINE>
    """
    layout, columns, looked_at = _started(data, guessed_layout(data, sheet))
    looked = "No row of the data was read."
    if looked_at is not None:
        looked = f"The first {ROWS:,} rows were looked at." if looked_at else "Its first rows hold no value."
    told = NO_VALUES
    if look_like_cells(column.name for column in columns):
        warn_caller(NO_HEADER)
        told = "\n# " + "\n# ".join(textwrap.wrap(f"WARNING: {NO_HEADER}.", 76))
    head = HEAD.format(looked=looked, told=told).replace(" \n", "\n") + "".join(
        f"{name} = {toml_value(value)}{LAYOUT_NOTES.get(name, '  # guessed')}\n"
        for name, value in layout.to_dict().items()
    )
    return head + "".join(column.text for column in columns)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StarterColumn:
    """What a starter schema says of one column of the table."""

    name: str
    text: str
    """Its part of the schema, in TOML; a comment alone where the column is left out."""

    @property
    def entries(self) -> dict[str, Any] | None:
        """What is declared of it so far; None: it is left out."""
        found: list[dict[str, Any]] = parse_toml(self.text).get("columns", [])
        return found[0] if found else None

    @property
    def why(self) -> str:
        """What it was taken for, in words."""
        return self.text.strip().partition("\n")[0].partition("#")[2].strip()

    @property
    def looks_like_id(self) -> bool:
        """Whether it was left out because it seems to say whose row it is."""
        return self.entries is None and "looks like an id" in self.why

    @property
    def waiting(self) -> dict[str, Any]:
        """What would be declared once its bounds are: the format of dates."""
        commented = re.search(r"^# (format = .+)$", self.text, re.MULTILINE)
        return {} if commented is None else parse_toml(commented.group(1))


def starter_columns(
    data: object, *, sheet: str | None = None, rows: Mapping[str, Any] | None = None
) -> tuple[FileLayout, tuple[StarterColumn, ...]]:
    """The parts of a starter schema: how the files are written, and every column of the table.

    >>> from dpgram.publishing.starter import starter_columns
    >>> layout, columns = starter_columns({"age": [31, 42], "smoker": ["no", "yes"]})
    >>> [(column.name, column.entries["kind"]) for column in columns]
    [('age', 'numeric'), ('smoker', 'boolean')]
    """
    layout, columns, _ = _started(data, guessed_layout(data, sheet, rows))
    return layout, columns


def _started(data: object, layout: FileLayout) -> tuple[FileLayout, tuple[StarterColumn, ...], bool | None]:
    """The layout, the columns, and whether any of the first rows hold something; None: none was read."""
    types = column_types(data, layout)
    labelled = {variable.name: variable for variable in _codebook(data, layout)}
    words = _words(data, [name for name, kind in types.items() if _may_be_id(kind)], layout)
    columns = tuple(
        StarterColumn(name=name, text=_part(name, kind, labelled.get(name), words.get(name)))
        for name, kind in types.items()
    )
    return layout, columns, any(words.values()) if words else None


def _part(name: str, kind: str, variable: Variable | None, words: list[str] | None) -> str:
    if variable is not None and variable.values:
        return _labelled(variable)
    if words is not None and _is_open(kind):
        return _guessed(name, words) + _label(variable)
    if words and _is_id(name, words):
        return _without(name, f"an id.{_unit_of(name)}")
    return starter_table(name, kind) + _label(variable)


def _is_open(kind: str) -> bool:
    """Whether its type leaves open what a column holds."""
    return kind in UNTYPED or kind.startswith(("string", "large_string"))


def _may_be_id(kind: str) -> bool:
    numbers = ("int", "uint", "halffloat", "float", "double", "decimal")
    return _is_open(kind) or kind.startswith((*numbers, "dictionary"))


def _codebook(data: object, layout: FileLayout) -> tuple[Variable, ...]:
    if not isinstance(data, str | Path) or not Path(data).is_file():
        return ()
    return codebook_of(Path(data), layout) if file_format(Path(data)) == "statistical" else ()


def guessed_layout(
    data: object, sheet: str | None = None, rows: Mapping[str, Any] | None = None
) -> FileLayout:
    """Separator and encoding of a file of delimited text, where they are not the usual ones; else the sheet.

    Of a sheet also where the table is in it; `rows` has what is known of that.

    >>> from dpgram.publishing.starter import guessed_layout
    >>> guessed_layout({"age": [31, 42]}).separator
    """
    from dpgram.sources.text_bytes import BLOCK, open_bytes

    path = Path(data) if isinstance(data, str | Path) and Path(data).is_file() else None
    form = None if path is None else file_format(path)
    if path is not None and form == "workbook":
        return replace(_one_sheet(path, sheet), **dict(rows or {}))
    if sheet is not None:
        raise SourceError(
            "only the file of a workbook has sheets", got=f"sheet={sheet!r}", remedy="Leave it out"
        )
    if path is None or form != "delimited":
        return AS_USUAL
    with open_bytes(path, AS_USUAL) as file:
        start = file.read(BLOCK)
    encoding = None
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif not _is_utf8(start):
        encoding = "latin-1"
    layout = FileLayout(encoding=encoding)
    refuse_title(path, layout)
    usual = len(column_types(data, layout))
    found = {mark: len(column_types(data, replace(layout, separator=mark))) for mark in SEPARATOR_NAMES}
    best = max(found, key=found.__getitem__)
    return layout if found[best] <= usual else replace(layout, separator=best)


def _one_sheet(path: Path, sheet: str | None) -> FileLayout:
    found = sheet_names(path)
    if (len(found) > 1) if sheet is None else (sheet not in found):
        raise SourceError(
            f"the workbook {str(path)!r} has {'several sheets' if sheet is None else 'no such sheet'}",
            got=", ".join(map(repr, found[:10])),
            remedy="Say which one is meant: sheet='…'",
        )
    return guessed_rows(path, FileLayout(sheet=sheet))


def _is_utf8(start: bytes) -> bool:
    try:
        start[: start.rfind(b"\n") + 1].decode()
    except UnicodeDecodeError:
        return False
    return True


def _words(data: object, names: list[str], layout: FileLayout) -> dict[str, list[str]]:
    """The first cells of these columns, as text; gaps left out."""
    from dpgram.sources import read_once
    from dpgram.sources.plain_columns import plain_texts

    if not names or read_once(data):
        return {}
    source = open_source(data, names, layout=layout, batch_rows=ROWS)
    found: dict[str, list[str]] = {name: [] for name in names}
    for batch in islice(source.batches(), 1):
        for name in names:
            cells = map(_word, plain_texts(batch.column(name)).to_pylist())
            found[name] = [cell for cell in cells if cell.strip()]
    return found


def _word(cell: object) -> str:
    """A cell as text, nothing for a gap; whole numbers as ids are written."""
    if cell is None or cell != cell:
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _labelled(variable: Variable) -> str:
    """Codes with labels, from the codebook in the file."""
    return (
        f"\n[[columns]]  # codes with labels, from the codebook in the file\n"
        f'kind = "categorical"\nname = {toml_value(variable.name)}\n'
        f"levels = {toml_value([code for code, _ in variable.values])}\n"
        f"level_labels = {toml_value([label or code for code, label in variable.values])}\n"
        "# missing = []  # move codes here that mean no answer\n"
        f'source = "labels in the file"\n{_label(variable)}'
    )


def _label(variable: Variable | None) -> str:
    return "" if variable is None or variable.label is None else f"label = {toml_value(variable.label)}\n"


def _guessed(name: str, words: list[str]) -> str:
    if not words:
        return starter_table(name, "unknown")
    left_out = _left_out(name, words)
    if left_out is not None:
        return _without(name, left_out)
    guess, kind, lines = next(_kinds(words))
    return (
        f"\n[[columns]]  # guessed from the first rows: {guess}\n"
        f"kind = {toml_value(kind)}\nname = {toml_value(name)}\n{lines}"
    )


def _without(name: str, looks_like: str) -> str:
    return f"\n# left out: {toml_value(name)} looks like {looks_like}\n"


def _unit_of(name: str) -> str:
    return f"\n# To protect all rows of a person: Rows(unit={name!r}), or --unit"


def _left_out(name: str, words: list[str]) -> str | None:
    """Ids, free text and dates that no one format reads: nothing that a matrix could hold."""
    unit = _unit_of(name)
    if _is_id(name, words):
        return f"an id.{unit}"
    if _has_leading_zeros(words):
        return f"an id or a code: whole numbers with leading zeros.{unit}"
    if forms := _several_date_forms(words):
        return f"dates in several forms ({', '.join(forms)}).\n# Write them in one form first"
    letters, distinct = sum(map(len, words)) / len(words), len(set(words)) / len(words)
    if letters > LONG_TEXT or (letters > 12 and distinct > 0.5 and not _any_kind(words)):
        return "free text"
    return None


def _is_id(name: str, words: list[str]) -> bool:
    """By its name and many values, where a person may have several rows; or by the look of its values."""
    distinct = len(set(words)) / len(words)
    if ID_NAME.search(name) and _are_many(words):
        return distinct > NEARLY_ALL or all(re.fullmatch(r"[\w/-]+", word) for word in words)
    return (
        distinct > NEARLY_ALL
        and len(words) >= FEWEST_IDS
        and not all(re.fullmatch(r"-?\d+", word) for word in words)
        and all(re.fullmatch(r"[\w-]{6,}", word) for word in words)
        and any(re.search(r"\d", word) for word in words)
        and not _any_kind(words)
    )


def _are_many(words: list[str]) -> bool:
    distinct = len(set(words))
    return len(words) >= FEWEST_IDS and (distinct > MOST_LEVELS or distinct > 0.5 * len(words))


def _has_leading_zeros(words: list[str]) -> bool:
    """Whether these are digits of one length, as no number is written."""
    wide = len(words[0].strip())
    return (
        wide >= SHORTEST_CODE
        and _are_many(words)
        and any(word.strip().startswith("0") for word in words)
        and all(re.fullmatch(rf"\d{{{wide}}}", word.strip()) for word in words)
    )


def _several_date_forms(words: list[str]) -> list[str]:
    """How dates are written, where nearly all words are dates and no single format reads them."""
    if _any_kind(words):
        return []
    forms: dict[str, Reading] = {"yyyy-mm-dd": Reading()}
    forms |= {shown: Reading(format=form) for form, shown in DATE_FORMATS.items()}
    left, found = Counter(_known(words)), []
    enough = (1.0 - NEARLY_ALL) * left.total()
    while left.total() > enough:
        shown, best = max(
            ((shown, reads_share(left, "date", reading)) for shown, reading in forms.items()),
            key=lambda pair: pair[1],
        )
        if best * left.total() <= enough:
            return []
        found.append(shown)
        read = words_read(left, "date", forms[shown])
        left = Counter({word: count for word, count in left.items() if word not in read})
    return found


def _known(words: list[str]) -> dict[str, int]:
    """Each word and how often it stands there, but for words for no value."""
    return {word: n for word, n in Counter(words).items() if word.strip().casefold() not in MISSING_WORDS}


def _any_kind(words: list[str]) -> bool:
    return next(_kinds(words))[1] != "categorical"


def _is_unit(rules: Mapping[str, Any], words: Iterable[str]) -> bool:
    """Whether it is a sign, or a word behind a blank: the letters of E11 or 12B belong to a code."""
    affix = rules.get("suffix") or rules["prefix"]
    if not any(letter.isalpha() for letter in affix):
        return True
    return "suffix" in rules and all(re.search(rf"\s{re.escape(affix)}\s*$", word) for word in words)


def _kinds(words: list[str]) -> Iterator[tuple[str, str, str]]:
    """What the words look like, the kind to declare, and lines to fill in; the best guess first."""
    counted = Counter(words)
    known = _known(words)
    gaps = "" if len(known) == len(counted) else "# missing = []  # some cells hold a word for no value\n"
    lower = {word.strip().casefold() for word in known}
    pair = next(((yes, no) for yes, no in YES_AND_NO if lower and lower <= {yes, no} and yes != "1"), None)
    if pair is not None:
        usual = pair in YES_AND_NO[:4]
        yield "yes or no", "boolean", ("" if usual else "# true = []\n# false = []\n") + gaps
    bounds = '# low = \n# high = \n# source = "…"\n'
    for rules, mark in MARKS:
        reading = replace(Reading(trim=bool(rules)), **rules)
        if known and reads_share(known, "number", reading) >= NEARLY_ALL:
            lines = "".join(f"{key} = {toml_value(value)}\n" for key, value in rules.items())
            yield "a number" + (f", {mark}" if mark else ""), "numeric", bounds + lines + gaps
            break
    else:
        unit = number_with_affix(known, Reading(trim=True), NEARLY_ALL) if known else None
        if unit is not None and _is_unit(unit[1], known):
            lines = "".join(f"{key} = {toml_value(value)}\n" for key, value in unit[1].items())
            yield f"a number, {unit[0]}", "numeric", bounds + lines + gaps
    days = '# low = "YYYY-MM-DD"\n# high = "YYYY-MM-DD"\n# source = "…"\n'
    if known and reads_share(known, "date", Reading()) >= NEARLY_ALL:
        yield "a date", "numeric", days + gaps
    for form, shown in DATE_FORMATS.items():
        if known and reads_share(known, "date", Reading(format=form)) >= NEARLY_ALL:
            # A format needs bounds that are dates, so it waits for them.
            yield f"a date, {shown}", "numeric", days + f"# format = {toml_value(form)}\n" + gaps
            break
    trim = "" if all(word == word.strip() for word in known) else "trim = true\n"
    few = len(counted) <= MOST_LEVELS
    guess = "one of a few words" if few else "one of many words"
    # Without levels the column is read, and a share of the budget learns the frequent ones.
    yield guess, "categorical", '# levels = []  # fill in\n# other = "other"\n# source = "…"\n' + trim + gaps
