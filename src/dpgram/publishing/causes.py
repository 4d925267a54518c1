"""Why cells of a column cannot be used: a guess in words, and the line of the schema that would mend it.

Guesses look at exact values, so they are for the curator alone. What they propose is how cells are written,
which is a public fact about a file; bounds and levels are never proposed from the data. They quote words of
fixed public lists, and what stands in many of all cells: never what one person's cell holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

from dpgram.errors import SchemaError
from dpgram.publishing.column_checks import ColumnCheck
from dpgram.schema import SourceColumn
from dpgram.schema.reading import Reading
from dpgram.schema.toml_form import parse_toml

ENOUGH: Final = 0.8
"""Share of the words that a rule must explain."""
FEW: Final = 0.01
"""Share of the cells, read now, that a rule may lose which reads far more others."""
FAIR_SHARE: Final = 0.5
"""Of the cells that hold something: where fewer are words, a column of numbers is still one of numbers."""
WORDS_TRIED: Final = 500
OFTEN: Final = 0.05
"""Share of the cells in which something must stand that is on no list, so that it may be quoted."""
_AFFIXES: Final = """
$ € £ ¥ ₩ ₹ ₽ ₺ ₪ ₴ ฿ us$ a$ c$ r$ kr kr. zł kč ft lei fr fr. sfr sfr. rs rs. rm tl dm euro euros dollar
dollars pound pounds eur usd gbp chf jpy cny inr brl rub try pln czk huf ron sek nok dkk isk aud cad nzd mxn
zar sgd hkd krw ils thb myr idr php vnd ars clp cop pen egp ngn kes % ‰ pct percent prozent pp bp ppm ppb °
°c °f ℃ ℉ °k kelvin celsius fahrenheit kg g mg µg μg ug mcg ng pg t lb lbs oz st stone km m cm dm mm µm μm um
nm mi mile miles yd foot feet in inch inches m² m2 qm sqm km² km2 cm² cm2 ha acre acres sqft m³ m3 cm³ cm3
ccm cc l dl cl ml µl μl ul hl gal pt s sec secs second seconds sek ms min mins minute minutes h hr hrs hour
hours std d day days tag tage wk wks week weeks woche wochen mo mon month months monat monate y yr yrs year
years jahr jahre a ans an años anni hz khz mhz ghz v mv kv ma w kw mw kwh mwh j kj mj cal kcal n kn pa hpa
kpa mpa bar mbar psi mmhg cmh2o bpm /min rpm km/h kmh mph m/s kg/m² kg/m2 g/l g/dl mg/l mg/dl µg/l μg/l ug/l
µg/ml μg/ml ug/ml ng/l ng/ml ng/dl pg/ml mmol mmol/l mmol/mol µmol/l μmol/l umol/l nmol/l pmol/l mol/l iu
iu/l iu/ml u u/l u/ml mu/l meq/l ml/min g/cm³ g/cm3 mg/kg ca ca. approx approx. ~ ≈ < > ≤ ≥ <= >= = # no no.
nr nr. pts pt. points punkte pkt pkt. x ×
"""
AFFIXES: Final = frozenset(_AFFIXES.split())
"""What may stand before or after numbers, in small letters: units, currencies, signs."""
CODES: Final = frozenset(
    sign * int("9" * (length - 1) + last)
    for sign, lasts in ((1, "9"), (-1, "789"))
    for length in range(1, 10)
    for last in lasts
) | {-1, -2, -77, -88, -777, -888, -7777, -8888}
"""Numbers for no answer: what questionnaires and instruments write."""
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
ONE_WAY: Final = (
    "# a column is read by one rule: write all of its cells in one way first, or the others are lost"
)
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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Guess:
    """How the lost words of a column may be written, and how many of other words would be read then."""

    looks_like: str
    line: str
    reads: Callable[[Mapping[str, int]], float]
    """The share of counted words that are read where the line is followed."""


Quotable = Callable[[int], bool]
"""Whether what stands in so many cells may be quoted, though it is on no list."""


def causes(
    found: ColumnCheck, column: SourceColumn, *, utf8: bool = False, whole: bool = False
) -> Iterator[Cause]:
    """The guesses for one column, from the words and numbers that were lost in it.

    `utf8`: letters beyond ASCII are read well somewhere in the table, so its encoding is the right one.
    `whole`: all cells of the column were looked at.
    """

    def quotable(count: int) -> bool:
        return whole and count > 1 and count >= OFTEN * found.cells

    words = dict(found.lost_words[:WORDS_TRIED])
    gaps = _gaps(words)
    if gaps:
        yield Cause(
            column=found.name,
            looks_like=f"{_shown(gaps)} {'looks' if len(gaps) == 1 else 'look'} like a missing code",
            line=f"missing = {_toml(_with(column.reading.missing, gaps))}",
        )
    rest = {word: count for word, count in words.items() if word not in gaps}
    if rest and (cause := _of_words(rest, found, column, utf8, quotable)) is not None:
        yield cause
    yield from _outside(found, _with(column.reading.missing, gaps), quotable)


def _of_words(
    words: Mapping[str, int], found: ColumnCheck, column: SourceColumn, utf8: bool, quotable: Quotable
) -> Cause | None:
    """The first guess that reads what is read now as well; where there is none, that two ways are mixed."""
    guesses = {"number": _number, "date": _date, "boolean": _boolean, "text": _level}[column.cell_kind]
    read = dict(found.read_words)
    first: _Guess | None = None
    for guess in (*_encoding(words, utf8), *guesses(words, found, column, quotable)):
        first = first or guess
        gone = found.readable * (1.0 - guess.reads(read)) if read else 0.0
        gained = (found.unreadable + found.unknown) * guess.reads(words)
        if not gone:
            return Cause(column=found.name, looks_like=guess.looks_like, line=guess.line)
        if gone <= FEW * found.cells and gained > gone:
            but = f"{guess.looks_like}, but for {_part(gone, found)} of its cells, which are read now"
            return Cause(column=found.name, looks_like=but, line=guess.line)
    if first is None:
        return None
    declared, other = _part(found.readable, found), _part(found.unreadable + found.unknown, found)
    return Cause(
        column=found.name,
        looks_like=f"written in two ways: {declared} of its cells as declared, {other} otherwise, which "
        f"{first.looks_like}",
        line=ONE_WAY,
    )


def _part(count: float, found: ColumnCheck) -> str:
    share = count / found.cells
    return "less than 0.1%" if share < 0.001 else f"{share:.1%}"


def _encoding(words: Mapping[str, int], utf8: bool) -> Iterator[_Guess]:
    if _share(words, lambda word: "\ufffd" in word) > 0.05:
        yield _Guess(
            looks_like="looks like Latin-1 text",
            line=f'encoding = "latin-1"{AT_THE_TOP}',
            reads=lambda _: 0.0 if utf8 else 1.0,
        )


def _share(words: Mapping[str, int], test: Any) -> float:
    return sum(count for word, count in words.items() if test(word)) / sum(words.values())


def _by_rules(kind: Any, rules: Mapping[str, Any], own: Reading) -> Callable[[Mapping[str, int]], float]:
    """The share of words that these rules read, beside those declared; none where they contradict them."""

    def reads(words: Mapping[str, int]) -> float:
        try:
            return reads_share(words, kind, replace(own, **rules))
        except SchemaError:
            return 0.0

    return reads


def _reads(
    words: Mapping[str, int], kind: Any, rules: Mapping[str, Any], own: Reading, enough: float = ENOUGH
) -> bool:
    """Whether these rules, beside those declared, read nearly all of the words."""
    return _by_rules(kind, rules, own)(words) >= enough


def reads_share(words: Mapping[str, int], kind: Any, reading: Reading) -> float:
    """Of counted words, the share that these rules read."""
    return _share(words, words_read(words, kind, reading).__contains__)


def words_read(words: Iterable[str], kind: Any, reading: Reading) -> set[str]:
    """Those of the words that these rules read."""
    import pyarrow as pa

    from dpgram.sources.text_cells import parse

    tried = list(words)
    found = parse(pa.array(tried, pa.string()), kind, reading)
    return {word for word, fits in zip(tried, found.is_valid().to_pylist(), strict=True) if fits}


def _number(
    words: Mapping[str, int], found: ColumnCheck, column: SourceColumn, quotable: Quotable
) -> Iterator[_Guess]:
    own, read = column.reading, dict(found.read_words)
    tried: list[tuple[str, dict[str, Any]]] = [("trailing blanks", {"trim": True})]
    tried += [(f"a {name}", rules) for rules, name in MARKS[1:] if _may_be_grouped(words, rules)]
    if (unit := number_with_affix(words, own, quotable=quotable)) is not None:
        tried.append(unit)
    for name, rules in tried:
        if _reads(words, "number", rules, own):
            yield _Guess(
                looks_like=f"looks like {name}",
                line=_lines(rules),
                reads=_by_rules("number", rules, own),
            )
    yield from _date_forms(
        words, read, own, before='low = "YYYY-MM-DD", high = "YYYY-MM-DD" (its bounds as dates), '
    )
    if _yes_and_no(words, read) is not None:
        yield _Guess(
            looks_like="looks like yes/no",
            line='kind = "boolean"',
            reads=_by_rules("boolean", {}, Reading()),
        )
    if found.unreadable >= FAIR_SHARE * (found.cells - found.missing) and _share(words, _is_word) >= ENOUGH:
        yield _Guess(
            looks_like="looks like words, not numbers",
            line='kind = "categorical", levels = […]',
            reads=lambda _: 1.0,
        )


def _is_word(word: str) -> bool:
    return re.search(r"\d", word) is None


def _may_be_grouped(words: Mapping[str, int], rules: Mapping[str, Any]) -> bool:
    """Whether the words can have a mark between thousands, if that is the rule: none begins with a zero."""
    mark = re.escape(rules.get("thousands", ""))
    return not mark or _share(words, lambda word: re.search(rf"^\D*0{mark}", word) is not None) <= 1 - ENOUGH


def number_with_affix(
    words: Mapping[str, int],
    own: Reading,
    enough: float = ENOUGH,
    *,
    quotable: Quotable = lambda _: False,
) -> tuple[str, dict[str, Any]] | None:
    """What stands before or after nearly all numbers, and how they are written: in words, and as rules."""
    for where, affix, count in _affixes(words):
        if affix.casefold() not in AFFIXES and not quotable(count):
            continue
        for rules, name in MARKS:
            found = {**rules, where: affix}
            if _reads(words, "number", found, own, enough):
                said = f"{affix!r} {'after' if where == 'suffix' else 'before'} the number"
                return said + (f", {name}" if name else ""), found
    return None


def _affixes(words: Mapping[str, int]) -> Iterator[tuple[str, str, int]]:
    """What stands after or before the digits of nearly all words, and in how many cells."""
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
            affix, count = max(seen.items(), key=lambda pair: pair[1])
            yield where, affix, count


def _date_forms(
    words: Mapping[str, int], read: Mapping[str, int], own: Reading, before: str = ""
) -> Iterator[_Guess]:
    rules = Reading(missing=own.missing)
    fitting = [form for form in DATE_FORMATS if _reads(words, "date", {"format": form}, rules)]
    reads = {form: _by_rules("date", {"format": form}, rules) for form in fitting}
    fitting.sort(key=lambda form: -(reads[form](read) if read else 1.0))  # the others stay in their order
    for form in fitting:
        others = [
            other
            for other in fitting
            if other != form and len(other) == len(form) and (not read or reads[other](read) == 1.0)
        ]
        said = f"looks like {DATE_FORMATS[form]}" + "".join(f", or {DATE_FORMATS[other]}" for other in others)
        yield _Guess(looks_like=said, line=f'{before}format = "{form}"', reads=reads[form])


def _date(
    words: Mapping[str, int], found: ColumnCheck, column: SourceColumn, quotable: Quotable
) -> Iterator[_Guess]:
    del quotable
    return _date_forms(words, dict(found.read_words), column.reading)


def _yes_and_no(words: Mapping[str, int], read: Mapping[str, int]) -> tuple[str, str] | None:
    seen, now = ({word.strip().casefold() for word in some} for some in (words, read))
    # 2 is a word for no only where 1 is the only other number: beside 0 it may mean anything.
    pairs = (pair for pair in YES_AND_NO if not pair[0].isdigit() or now <= set(pair))
    return next((pair for pair in pairs if seen and seen <= set(pair)), None)


def _boolean(
    words: Mapping[str, int], found: ColumnCheck, column: SourceColumn, quotable: Quotable
) -> Iterator[_Guess]:
    own, read = column.reading, dict(found.read_words)
    pair = _yes_and_no(words, read)
    if pair is not None:
        known = own.truth_words if read or own.true else ((), ())
        true, false = ([*dict.fromkeys((*old, new))] for old, new in zip(known, pair, strict=True))
        rules = {"true": true, "false": false}
        yield _Guess(
            looks_like=f"looks like {'/'.join(pair)}",
            line=_lines(rules),
            reads=_by_rules("boolean", {name: tuple(some) for name, some in rules.items()}, own),
        )
    elif len(words) == 2:
        beside = "" if not read else ", beside the words that are read now"
        shown = f": {_shown(words)}" if all(map(quotable, words.values())) else ""
        yield _Guess(
            looks_like=f"two words only{shown}",
            line=f"true = […], false = […]: say which is which{beside}",
            reads=lambda _: 1.0,
        )


def _level(
    words: Mapping[str, int], found: ColumnCheck, column: SourceColumn, quotable: Quotable
) -> Iterator[_Guess]:
    del found, quotable
    levels = tuple(getattr(column, "levels", ()))
    if not levels:
        return
    trimmed = _by_levels(levels, str.strip)
    if trimmed(words) >= ENOUGH:
        yield _Guess(looks_like="looks like trailing blanks", line="trim = true", reads=trimmed)
    written = [level.lower() for level in levels]
    blanks = any(word != word.strip() for word in words)
    folded = _by_levels(written, (lambda word: word.strip().lower()) if blanks else str.lower)
    if len(set(written)) == len(levels) and folded(words) >= ENOUGH:
        rules = 'case = "lower"'
        rules += ", trim = true" if blanks else ""
        rules += "" if written == list(levels) else f", levels = {_toml(written)}"
        yield _Guess(looks_like="looks like the levels in capital or small letters", line=rules, reads=folded)
    if all(re.fullmatch(r"\d+\.0+", word) for word in words):
        yield _Guess(
            looks_like="looks like whole numbers written with a point",
            line="levels as they stand in the data, if that is public",
            reads=_by_levels(words, str),
        )


def _by_levels(levels: Iterable[str], change: Callable[[str], str]) -> Callable[[Mapping[str, int]], float]:
    """The share of words that are one of the levels once they are changed."""
    known = set(levels)
    return lambda words: _share(words, lambda word: change(word) in known)


def _gaps(words: Mapping[str, int]) -> list[str]:
    return [word for word in words if word.strip().casefold() in MISSING_WORDS][:10]


def _with(codes: Sequence[str], more: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*codes, *(word.strip() for word in more)]))


def _outside(found: ColumnCheck, missing: Sequence[str], quotable: Quotable) -> Iterator[Cause]:
    """Codes such as −999, beside those already known, and numbers beyond all measure, among the clamped."""
    if found.bounds is None or not found.numbers_outside:
        return
    low, high = found.bounds
    outside = found.below + found.above
    codes = [
        value
        for value, count in found.numbers_outside
        if count > 1
        and _is_code(value, count, quotable)
        and (count >= 0.05 * outside or len(found.numbers_outside) <= 5)
    ][:3]
    if codes:
        shown = [_number_text(value) for value in codes]
        lines = [*missing, *(int(value) for value in codes)]
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


def _is_code(value: float, count: int, quotable: Quotable) -> bool:
    """Whether it is a number for no answer, or written like one and frequent."""
    if not float(value).is_integer() or abs(value) >= 2**53:
        return False
    digits = set(str(abs(int(value))))
    alike = digits == {"9"} or (value < 0 and digits <= {"7", "8", "9"})
    return value in CODES or (alike and quotable(count))


def _number_text(value: float) -> str:
    return str(int(value)).replace("-", "−")


def _shown(words: Sequence[str] | Mapping[str, int]) -> str:
    return ", ".join(repr(word) for word in list(words)[:5])


def _lines(rules: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_toml(value)}" for name, value in rules.items())


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
