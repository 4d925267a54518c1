"""Why cells of a column cannot be used: a guess in words, and the line of the schema that would mend it.

Guesses look at exact values, so they are for the curator alone. What they propose is how cells are written,
which is a public fact about a file; bounds and levels are never proposed from the data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

from dpgram.errors import SchemaError
from dpgram.publishing.column_checks import ColumnCheck
from dpgram.schema import SourceColumn
from dpgram.schema.reading import Reading
from dpgram.schema.toml_form import parse_toml

ENOUGH: Final = 0.8
"""Share of the words that a rule must explain."""
WORDS_TRIED: Final = 500
MISSING_WORDS: Final = frozenset(
    (
        *("na", "n/a", "n.a.", "#n/a", "<na>", "nan", "null", "(null)", "none", "nil", "missing", "unknown"),
        *("not available", "not asked", "refused", "k.a.", "keine angabe"),
        *("-", "--", ".", "..", "...", "?", "*"),
    )
)
DATE_FORMATS: Final[Mapping[str, str]] = {
    "%d/%m/%Y": "dd/mm/yyyy",
    "%m/%d/%Y": "mm/dd/yyyy",
    "%d.%m.%Y": "dd.mm.yyyy",
    "%d-%m-%Y": "dd-mm-yyyy",
    "%m-%d-%Y": "mm-dd-yyyy",
    "%Y/%m/%d": "yyyy/mm/dd",
    "%d/%m/%y": "dd/mm/yy",
    "%m/%d/%y": "mm/dd/yy",
    "%d.%m.%y": "dd.mm.yy",
    "%d %b %Y": "dd Mon yyyy",
    "%d-%b-%Y": "dd-Mon-yyyy",
    "%d%b%Y": "ddMonyyyy",
    "%B %d, %Y": "Month dd, yyyy",
    "%d/%m/%Y %H:%M": "dd/mm/yyyy hh:mm",
    "%m/%d/%Y %H:%M": "mm/dd/yyyy hh:mm",
    "%d.%m.%Y %H:%M": "dd.mm.yyyy hh:mm",
    "%d/%m/%Y %H:%M:%S": "dd/mm/yyyy hh:mm:ss",
    "%Y%m%d": "yyyymmdd",
}
YES_AND_NO: Final = (
    *(("yes", "no"), ("y", "n"), ("true", "false"), ("t", "f"), ("ja", "nein"), ("j", "n"), ("oui", "non")),
    *(("o", "n"), ("si", "no"), ("sí", "no"), ("sì", "no"), ("sim", "não"), ("wahr", "falsch")),
    *(("vrai", "faux"), ("on", "off"), ("1", "2")),
)
MARKS: Final[tuple[tuple[dict[str, Any], str], ...]] = (
    ({}, ""),
    ({"thousands": ","}, "comma as thousands separator"),
    ({"decimal": ","}, "decimal comma"),
    ({"thousands": ".", "decimal": ","}, "point as thousands separator, decimal comma"),
    ({"thousands": " "}, "blank as thousands separator"),
    ({"thousands": " ", "decimal": ","}, "blank as thousands separator, decimal comma"),
    ({"thousands": "'"}, "apostrophe as thousands separator"),
)
AT_THE_TOP: Final = "  # at the top of the schema"
GIANT: Final = 1e6
"""So many times the larger bound, a number is not a slip."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What the cells look like, and what to write."""

    column: str
    looks_like: str
    line: str
    """For the schema: TOML, for the column unless it says otherwise; a comment where a person must decide."""

    @property
    def advice(self) -> str:
        """The line as part of a sentence."""
        return self.line.removeprefix("# ") if self.line.startswith("# ") else f"write {self.line}"

    @property
    def entries(self) -> dict[str, Any] | None:
        """What the line says, by key; None where a person has to fill something in.

        >>> from dpgram.publishing.causes import Cause
        >>> Cause(column="cost", looks_like="…", line='thousands = ".", decimal = ","').entries
        {'thousands': '.', 'decimal': ','}
        >>> Cause(column="cost", looks_like="…", line='kind = "categorical", levels = […]').entries
        """
        try:
            line = self.line.removesuffix(AT_THE_TOP)
            found: dict[str, Any] = parse_toml(f"line = {{ {line} }}")["line"]
        except ValueError:
            return None
        return found

    @property
    def of_the_file(self) -> bool:
        """Whether the line is about the whole file and not about the column."""
        return self.line.endswith(AT_THE_TOP)


def causes(found: ColumnCheck, column: SourceColumn) -> Iterator[Cause]:
    """The guesses for one column, from the words and numbers that were lost in it."""
    words = dict(found.lost_words[:WORDS_TRIED])
    if words:
        gaps = _gaps(words)
        if gaps:
            yield Cause(
                column=found.name,
                looks_like=f"{_shown(gaps)} {'looks' if len(gaps) == 1 else 'look'} like a missing code",
                line=f"missing = {_toml(_with(column.reading.missing, gaps))}",
            )
        rest = {word: count for word, count in words.items() if word not in gaps}
        if rest and (guess := _of_words(rest, column)) is not None:
            yield Cause(column=found.name, looks_like=guess[0], line=guess[1])
    yield from _outside(found, column)


def _of_words(words: Mapping[str, int], column: SourceColumn) -> tuple[str, str] | None:
    if any("\ufffd" in word for word in words) and _share(words, lambda word: "\ufffd" in word) > 0.05:
        return "looks like Latin-1 text", f'encoding = "latin-1"{AT_THE_TOP}'
    guess = {"number": _number, "date": _date, "boolean": _boolean, "text": _level}[column.cell_kind]
    return guess(words, column)


def _share(words: Mapping[str, int], test: Any) -> float:
    return sum(count for word, count in words.items() if test(word)) / sum(words.values())


def _reads(
    words: Mapping[str, int], kind: Any, rules: Mapping[str, Any], own: Reading, enough: float = ENOUGH
) -> bool:
    """Whether these rules, beside those declared, read nearly all of the words."""
    try:
        return reads_share(words, kind, replace(own, **rules)) >= enough
    except SchemaError:  # rules that contradict the declared ones
        return False


def reads_share(words: Mapping[str, int], kind: Any, reading: Reading) -> float:
    """Of counted words, the share that these rules read."""
    import pyarrow as pa

    from dpgram.sources.text_cells import parse

    found = parse(pa.array(list(words), pa.string()), kind, reading)
    fits = dict(zip(words, found.is_valid().to_pylist(), strict=True))
    return _share(words, fits.__getitem__)


def _number(words: Mapping[str, int], column: SourceColumn) -> tuple[str, str] | None:
    own = column.reading
    if _reads(words, "number", {"trim": True}, own):
        return "looks like trailing blanks", "trim = true"
    for rules, name in MARKS[1:]:
        if _reads(words, "number", rules, own):
            return f"looks like a {name}", _lines(rules)
    if (unit := number_with_affix(words, own)) is not None:
        return f"looks like {unit[0]}", _lines(unit[1])
    if (form := _date_form(words)) is not None:
        return form[0], f'low = "YYYY-MM-DD", high = "YYYY-MM-DD" (its bounds as dates), {form[1]}'
    if _yes_and_no(words) is not None:
        return "looks like yes/no", 'kind = "boolean"'
    if _share(words, lambda word: re.search(r"\d", word) is None) >= ENOUGH:
        return "looks like words, not numbers", 'kind = "categorical", levels = […]'
    return None


def number_with_affix(
    words: Mapping[str, int], own: Reading, enough: float = ENOUGH
) -> tuple[str, dict[str, Any]] | None:
    """What stands before or after nearly all numbers, and how they are written: in words, and as rules."""
    for where, affix in _affixes(words):
        for rules, name in MARKS:
            found = {**rules, where: affix}
            if _reads(words, "number", found, own, enough):
                said = f"{affix!r} {'after' if where == 'suffix' else 'before'} the number"
                return said + (f", {name}" if name else ""), found
    return None


def _affixes(words: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """What stands after or before the digits of nearly all words."""
    for where, pattern in (
        ("suffix", r"\d\s*([^\d\s.,'][^\d]{0,11})$"),
        ("prefix", r"^[+\-−]?([^\d\s.,'+\-−]{1,12})\s*\d"),
    ):
        seen: dict[str, int] = {}
        for word, count in words.items():
            if (match := re.search(pattern, word.strip())) is not None:
                affix = match.group(1).strip()
                seen[affix] = seen.get(affix, 0) + count
        if seen and max(seen.values()) >= 0.5 * sum(words.values()):
            yield where, max(seen, key=seen.__getitem__)


def _date_form(words: Mapping[str, int]) -> tuple[str, str] | None:
    fitting = [form for form in DATE_FORMATS if _reads(words, "date", {"format": form}, Reading())]
    if not fitting:
        return None
    first = fitting[0]
    others = [form for form in fitting[1:] if len(form) == len(first)]
    said = f"looks like {DATE_FORMATS[first]}" + "".join(f", or {DATE_FORMATS[form]}" for form in others)
    return said, f'format = "{first}"'


def _date(words: Mapping[str, int], column: SourceColumn) -> tuple[str, str] | None:
    del column
    return _date_form(words)


def _yes_and_no(words: Mapping[str, int]) -> tuple[str, str] | None:
    seen = {word.strip().casefold() for word in words}
    return next(
        ((true, false) for true, false in YES_AND_NO if seen and seen <= {true, false}),
        None,
    )


def _boolean(words: Mapping[str, int], column: SourceColumn) -> tuple[str, str] | None:
    del column
    pair = _yes_and_no(words)
    if pair is not None:
        true, false = pair
        return f"looks like {true}/{false}", f"true = {_toml([true])}, false = {_toml([false])}"
    if len(words) == 2:
        return f"two words only: {_shown(words)}", "true = […], false = […]: say which is which"
    return None


def _level(words: Mapping[str, int], column: SourceColumn) -> tuple[str, str] | None:
    levels = tuple(getattr(column, "levels", ()))
    if not levels:
        return None
    if _share(words, lambda word: word.strip() in levels) >= ENOUGH:
        return "looks like trailing blanks", "trim = true"
    folded = {level.lower() for level in levels}
    if len(folded) == len(levels) and _share(words, lambda word: word.strip().lower() in folded) >= ENOUGH:
        rules = 'case = "lower"'
        rules += "" if all(word == word.strip() for word in words) else ", trim = true"
        written = [level.lower() for level in levels]
        rules += "" if written == list(levels) else f", levels = {_toml(written)}"
        return "looks like the levels in capital or small letters", rules
    if all(re.fullmatch(r"\d+\.0+", word) for word in words):
        return (
            "looks like whole numbers written with a point",
            "levels as they stand in the data, if that is public",
        )
    return None


def _gaps(words: Mapping[str, int]) -> list[str]:
    return [word for word in words if word.strip().casefold() in MISSING_WORDS][:10]


def _with(codes: Sequence[str], more: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*codes, *(word.strip() for word in more)]))


def _outside(found: ColumnCheck, column: SourceColumn) -> Iterator[Cause]:
    """Codes such as −999, and numbers beyond all measure, among those that are clamped."""
    if found.bounds is None or not found.numbers_outside:
        return
    low, high = found.bounds
    outside = found.below + found.above
    codes = [
        value
        for value, count in found.numbers_outside
        if count > 1 and _is_code(value) and (count >= 0.05 * outside or len(found.numbers_outside) <= 5)
    ][:3]
    if codes:
        shown = [_number_text(value) for value in codes]
        lines = [*column.reading.missing, *(int(value) for value in codes)]
        yield Cause(
            column=found.name,
            looks_like=f"{', '.join(shown)} {'looks' if len(codes) == 1 else 'look'} like a missing code",
            line=f"missing = {_toml(list(dict.fromkeys(lines)))}",
        )
    largest = max(abs(low), abs(high), high - low)
    giant = sum(count for value, count in found.numbers_outside if abs(value) > GIANT * largest)
    if giant and not codes:
        yield Cause(
            column=found.name,
            looks_like="giant integers: an id, or another unit than that of the bounds",
            line="# leave the column out if it is an id; else give the bounds in the unit of the data",
        )


def _is_code(value: float) -> bool:
    """−1, −7 to −9 and numbers of nines: what questionnaires and instruments write for no answer."""
    if not float(value).is_integer() or abs(value) >= 2**53:
        return False
    digits = str(abs(int(value)))
    return set(digits) == {"9"} or (
        value < 0 and (int(value) in (-1, -2, -7, -8, -9) or set(digits) <= {"8", "9", "7"})
    )


def _number_text(value: float) -> str:
    return str(int(value)).replace("-", "−")


def _shown(words: Sequence[str] | Mapping[str, int]) -> str:
    return ", ".join(repr(word) for word in list(words)[:5])


def _lines(rules: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_toml(value)}" for name, value in rules.items())


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
