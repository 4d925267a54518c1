"""A static HTML report of one release, for the people who answer for the data and sign for it.

Who publishes what for whom, which guarantee it carries in everyday words, what an attacker can and cannot
learn, what the release can and cannot answer, where each bound comes from, what was spent and what is left,
who approved it. No scripts, no network, nothing that is not in the release or in its ledger, if one is given.

How well can anybody tell from the release whether one person is in the table? A test that raises false alarms
at rate α finds a person who is there with probability at most

    Φ(Φ⁻¹(α) + μ) for a mechanism with a Gaussian-DP parameter μ,
    min(e^ε·α + δ, 1 − e^(−ε)(1 − δ − α)) for every (ε, δ)-DP mechanism.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scipy.special import ndtr, ndtri

from dpgram import pages
from dpgram.analysis.display import declared_models, facts, guarantee_in_words, unmeasured_models
from dpgram.analysis.histograms import LOSSES, Histogram, histograms
from dpgram.document.measurements import learnt_bounds, learnt_levels
from dpgram.document.terminal import escaped
from dpgram.release import _report_figures as figures
from dpgram.schema.columns import Column

if TYPE_CHECKING:
    from dpgram.privacy.ledger import Ledger
    from dpgram.privacy.ledger.history import HistoryLine
    from dpgram.release import Release

FALSE_ALARMS: Final = (0.001, 0.01, 0.05, 0.1)
SUSPICIONS: Final = (0.01, 0.1, 0.5, 0.9)
REGRESSIONS: Final = (
    "linear regressions of any of its columns on any others, with instruments too, each with intervals that "
    "allow for the noise, or a refusal where the noise leaves none"
)
CHECKED: Final = (
    "The library itself is examined by audits that try to refute its guarantees, by variants broken on "
    "purpose that these audits must catch, by fuzzing and by faults. What came out, with every figure, is on "
    "the page “Assurance” of its documentation"
)

_STYLE: Final = """
.small-chart { width: 170px; margin: 0; }
#columns td:nth-child(3) { min-width: 7rem; }
#columns td:nth-child(4) { min-width: 12rem; }
main > .notice { margin-bottom: 1.5rem; }
.sign { display: grid; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr)); gap: 2.5rem 1.5rem;
  margin-top: 2.5rem; }
.sign div { border-top: 1px solid var(--ink); padding-top: .25rem; }
code, .digest { overflow-wrap: anywhere; }
"""


def page(release: Release, ledger: Path | None = None) -> str:
    """The whole report as text."""
    book = None if ledger is None else _Book(release, ledger)
    title = _title(release)
    sections = [
        _warning(release),
        _in_short(release, book),
        _promise(release),
        _attacker(release),
        _answers(release),
        _columns(release),
        _budget(release, book),
        _checked(release),
        _papers(book),
        _signatures(),
    ]
    body = (
        f"<header><div><h1>{escaped(title)}</h1>"
        '<p>For whoever answers for the data. Release <span class="digest">'
        f'{escaped(release.digest)}</span></p></div></header>\n<main class="reading">\n'
        + "\n".join(section for section in sections if section)
        + f"\n</main>\n<footer><p>Written by dpgram {escaped(release.library)} from the release file alone"
        f"{' and its ledger' if book else ''}.</p></footer>"
    )
    return pages.page(title, body, style=_STYLE)


def detection(release: Release, false_alarms: float) -> float:
    """The best chance of noticing one person's presence at a rate of false alarms; the exact curve for μ."""
    stated = release.guarantee
    delta = stated.delta + stated.numerical_delta
    if stated.mu is not None:
        return min(float(ndtr(ndtri(false_alarms) + stated.mu)) + stated.numerical_delta, 1.0)
    growth = math.exp(min(stated.epsilon, 700.0))
    return min(growth * false_alarms + delta, 1.0 - (1.0 - delta - false_alarms) / growth, 1.0)


def suspicion_at_most(epsilon: float, before: float) -> float:
    """Odds grow by e^ε at most: what a suspicion of `before` can become (apart from δ)."""
    growth = math.exp(min(epsilon, 700.0))
    return growth * before / (1.0 - before + growth * before)


class _Book:
    """The ledger is opened here only: the analyst's side never needs it."""

    def __init__(self, release: Release, path: Path) -> None:
        from dpgram.privacy.ledger import Ledger
        from dpgram.privacy.ledger.history import ledger_history

        self.ledger: Ledger = Ledger.open(path)
        if release.receipt is not None:
            self.ledger.verify([release])
        self.lines: tuple[HistoryLine, ...] = ledger_history(self.ledger)
        entries = {receipt.entry for receipt in release.receipts}
        self.own = [line for line in self.lines if line.number in entries]


def _title(release: Release) -> str:
    title = "" if release.about is None else release.about.title
    return f"Report: {title}" if title else "Report of a private release"


def _warning(release: Release) -> str:
    if release.entropy == "system":
        return ""
    return (
        '<p class="notice warning"><strong>This release protects nobody.</strong> Its noise was drawn from a '
        "known seed, for a test; whoever knows the seed can remove it.</p>"
    )


def _who(release: Release) -> str:
    """Whom the promise is about."""
    return "one row of the table" if release.unit is None else f"all rows of one {release.unit!r}"


def _in_short(release: Release, book: _Book | None) -> str:
    about = release.about
    stated = release.guarantee
    rows = dict(facts(release))["rows"]
    spent = f"ε = {stated.epsilon:g}, δ = {stated.delta:g}"
    if book is None:
        budget = "The ledger was not given to this report" if release.receipt else "No ledger was charged"
        approved = "Not in the release file; the note in its ledger says it where the curator wrote it down"
    else:
        share = sum(line.share for line in book.own)
        budget = f"{share:.1%} of the ledger {book.ledger.name}; {book.ledger.left()}"
        approved = "; ".join(dict.fromkeys(line.note for line in book.own if line.note)) or "Not noted"
    signed = "No" if release.signature is None else f"Ed25519, public key {release.signature.public_key}"
    lines = [
        ("Who answers for it", (about.contact if about else "") or "Not stated in the file"),
        ("What it is", (about.description if about else "") or _title(release).removeprefix("Report: ")),
        ("From", f"a table with {len(release.schema.columns)} columns; rows: {rows}"),
        ("For whom", (about.licence if about else "") or "Whoever has the file; no licence is stated"),
        ("Whom it protects", _who(release)),
        ("Guarantee", spent),
        ("Spent and left", budget),
        ("Note and approval", approved),
        ("Signed", signed),
    ]
    return "<section><h2>In short</h2>\n" + _facts(lines) + "</section>"


def _promise(release: Release) -> str:
    before, even = 0.01, 0.5
    epsilon = release.guarantee.epsilon
    sure = _percent(suspicion_at_most(epsilon, even))
    whom = "a person" if release.unit is not None else "a row"
    return (
        "<section><h2>The promise</h2>\n"
        f"<p>The release limits what anybody can find out about {whom}, even whether it is in the table. "
        f"Somebody who thinks it as likely as not that {whom} is in it can be made at most "
        f"<strong>{sure}</strong> sure by this release; a suspicion of {_percent(before)} grows to "
        f"at most {_percent(suspicion_at_most(epsilon, before))}.</p>\n"
        f'<p class="promise">{escaped(guarantee_in_words(release))}</p>\n'
        "<p>It holds whatever else anybody knows, now or later, and whatever is computed from the release: "
        "regressions, correlations and predictions made from it cost nothing more.</p></section>"
    )


def _attacker(release: Release) -> str:
    who = "one person's rows" if release.unit is not None else "one row"
    tests = [[_percent(a), _percent(detection(release, a))] for a in FALSE_ALARMS]
    beliefs = [[_percent(p), _percent(suspicion_at_most(release.guarantee.epsilon, p))] for p in SUSPICIONS]
    delta = release.guarantee.delta + release.guarantee.numerical_delta
    apart = f" (apart from events of probability {delta:.2g})" if delta else ""
    return (
        "<section><h2>What an attacker can and cannot learn</h2>\n"
        "<p>Take an attacker who knows every other row of the table, has unlimited computers, and wants to "
        f"know from this release whether {who} of the victim went into it.</p>\n"
        "<ul><li><strong>Can:</strong> test the suspicion, and do somewhat better than guessing. The table "
        "and the picture give the best that any test can do.</li>\n"
        f"<li><strong>Can:</strong> {_whole_table(release)} It would be the same if the victim had stayed "
        "out.</li>\n"
        "<li><strong>Cannot:</strong> do better than the tables below, by any method, ever.</li>\n"
        "<li><strong>Cannot:</strong> read a single row, or ask the table anything: it is not in the file."
        "</li></ul>\n"
        + _table(
            ("false alarms of the test", "chance to notice the victim, at most"),
            tests,
            "The best test there can be; without the release both columns would be equal",
        )
        + figures.attack(lambda alpha: detection(release, alpha))
        + _table(
            ("suspicion before", "suspicion after, at most"),
            beliefs,
            f"How far the release can raise a suspicion about the victim{apart}",
        )
        + "</section>"
    )


def _whole_table(release: Release) -> str:
    """In the names of this table."""
    read = [column.name for column in release.schema.columns_read]
    if len(read) < 2:
        return "learn facts about the whole table, such as a mean, and apply them to the victim."
    return (
        f"learn facts about the whole table, such as how {_bdi(read[0])} goes with {_bdi(read[-1])}, and "
        f"apply them to a victim whose {_bdi(read[0])} is known."
    )


def _answers(release: Release) -> str:
    """What analysts may expect of the file, and what they must not."""
    schema = release.schema
    products = [column.name for column in schema.columns_derived]
    counted = histograms(release)
    can = [
        "means, standard deviations and shares of its columns, and the number of rows"
        if schema.constant
        else "",
        "correlations and principal components" if schema.constant else "principal components",
        REGRESSIONS,
        f"distributions of {len(counted)} columns, as noisy histograms" if counted else "",
        f"the interactions and powers that were declared: {_listed(products)}" if products else "",
        *(
            f"the declared model: {family}, {target} on {_listed(on)}"
            for family, target, on in declared_models(release)
        ),
    ]
    cannot = [
        "anything about a single row or person",
        *(
            f"the declared model {family}, {target} on {_listed(on)}: noise hid what it would begin with, so "
            "that it was not measured"
            for family, target, on in unmeasured_models(release)
        ),
        "exact numbers: every answer is off by noise of known size",
        "interactions, powers and thresholds that were not declared"
        if products
        else "interactions and powers: none were declared",
        "" if counted else "medians, quantiles and distributions",
        "parts of the table that were not published apart",
        "the largest and smallest values: values beyond the bounds were moved to them",
    ]
    return (
        "<section><h2>What it can and cannot answer</h2>\n"
        f"<h3>It can answer</h3>\n{_list(can)}<h3>It cannot answer</h3>\n{_list(cannot)}</section>"
    )


def _columns(release: Release) -> str:
    width = release.schema.width
    counted = histograms(release)
    moved, levels = set(learnt_bounds(release)), learnt_levels(release)
    rows = []
    for column in release.schema.columns:
        kind, extent = column.described
        cells = [_named(column), escaped(kind), escaped(extent), _origin(column, moved, levels)]
        if counted:
            cells.append(_distribution(counted.get(column.name)))
        rows.append(cells)
    head = (
        "column",
        "kind",
        "range or levels",
        "where they come from",
        *(["noisy distribution"] * bool(counted)),
    )
    noise = next(iter(counted.values())).noise_sd if counted else None
    told = (
        f"<p>Bars are numbers of rows, each off by noise with a standard deviation of {_number(noise)}; "
        "lines are 95% intervals.</p>"
        if noise is not None
        else ""
    )
    return (
        '<section id="columns"><h2>What was released</h2>\n'
        f"<p>One symmetric table of {width} × {width} noisy sums of products of columns, "
        f"{width * (width + 1) // 2:,} different numbers"
        f"{', and a noisy histogram of each column' if counted else ''}.</p>\n{told}"
        + _table(head, rows, "Columns", raw=True)
        + "</section>"
    )


def _named(column: Column) -> str:
    about = getattr(column, "about", None)
    label = about.label if about is not None and about.label else ""
    units = f" ({about.units})" if about is not None and about.units else ""
    return _bdi(column.name) + (
        f'<br><span class="quiet">{_bdi(label)}{escaped(units)}</span>' if label else ""
    )


def _origin(column: Column, moved: set[str], levels: dict[str, tuple[str, ...]]) -> str:
    """Declared, and by which source; learnt; or computed from others."""
    if column.factors:
        return f"computed from {' and '.join(_bdi(name) for name in column.factors)}"
    if column.name in moved:
        return "bounds learnt privately, under the same guarantee; values outside were moved to them"
    if column.name in levels:
        return "levels learnt privately, under the same guarantee; the rest is other"
    source = getattr(getattr(column, "about", None), "source", None)
    return f"declared in advance: {_bdi(source)}" if source else "declared in advance; no source stated"


def _distribution(found: Histogram | None) -> str:
    if found is None:
        return ""
    clear = [
        f"{name} about {found.lost[name]:,.0f}"
        for name in LOSSES
        if found.lost.get(name, 0.0) > figures.REACH * found.noise_sd
    ]
    lost = f'<span class="quiet">{escaped("; ".join(clear))}</span>' if clear else ""
    return figures.histogram(found) + lost


def _budget(release: Release, book: _Book | None) -> str:
    if release.receipt is None:
        charged = "<p>No ledger was charged: nothing in this file says what else was published.</p>"
    else:
        entries = " and ".join(str(receipt.entry) for receipt in release.receipts)
        word = "entries" if len(release.receipts) > 1 else "entry"
        charged = (
            f"<p>Charged as {word} {entries} of the ledger {_bdi(release.receipt.ledger_name)} "
            f'(<span class="digest">{escaped(release.receipt.ledger_id)}</span>) before the noise was '
            "drawn.</p>"
        )
    return f"<section><h2>The budget</h2>\n{charged}{'' if book is None else _history(book)}</section>"


def _history(book: _Book) -> str:
    rows = [
        [str(line.number), line.time, f"{line.release} ({line.guarantee})", f"{line.share:.1%}", line.note]
        for line in book.lines
    ]
    limit = f"{book.ledger.name}: {book.ledger.guarantee} for everything released together."
    return (
        f"\n<p>{escaped(limit)} Now {escaped(str(book.ledger.left()))}.</p>\n"
        + figures.spending([line.share for line in book.lines])
        + _table(("entry", "time (UTC)", "release", "share", "note"), rows, "Every charge so far")
    )


def _checked(release: Release) -> str:
    mu = release.guarantee.mu
    price = f" (μ = {mu:.4g})" if mu is not None else ""
    rows = [[name, value] for name, value in facts(release)]
    rows += [[f"parameter {name}", _shown(value)] for name, value in release.mechanism.parameters.items()]
    return (
        "<section><h2>How it was made and checked</h2>\n"
        "<p>When this report was written, the file was checked as a whole: its form, the arithmetic of its "
        f"numbers, and that the noise it states is large enough for the guarantee it states{price}. "
        f"{CHECKED}; in short:</p>\n"
        + _assurance(release)
        + _table(("fact", "value"), rows, "Everything the file says about itself")
        + "</section>"
    )


def _assurance(release: Release) -> str:
    """The figures of the last whole run of the library's examinations, and of which version they are."""
    found = json.loads(pages.source("dpgram.release", "assurance.json"))
    same = "the version that made this file" if found["version"] == release.library else "another version"
    caption = (
        f"Examined on {found['made']}: version {found['version']} ({same}; this file: {release.library}), "
        f"commit {found['commit']}"
    )
    rows = [
        [part["part"], str(part["findings"]), "all hold" if part["holds"] else "NOT all hold"]
        for part in found["parts"]
    ]
    return _table(("part", "findings", "outcome"), rows, caption)


def _papers(book: _Book | None) -> str:
    """What a disclosure board may want beside this report, and how it is made."""
    ledger = "" if book is None else " --ledger LEDGER"
    return (
        '<section id="papers"><h2>Before you sign: two more papers</h2>\n'
        "<p>Both are written from the release file, and mark what only you can know.</p>\n"
        "<ul><li><strong>An evaluation after NIST SP 800-226</strong>: guarantee, mechanism, hazards, "
        "trust and security, item by item, each with its evidence or with what you must attest: "
        f"<code>dpgram evaluation RELEASE -o evaluation.html{ledger}</code></li>\n"
        "<li><strong>An entry for the public registry of deployments</strong> of differential privacy: "
        "<code>dpgram registry RELEASE -o entry.yaml</code></li></ul>\n"
        "<p>In a job file they are the outputs <code>evaluation</code> and <code>registry</code>; in the "
        "wizard they are among the files to write.</p></section>"
    )


def _signatures() -> str:
    fields = "".join(f"<div>{word}</div>" for word in ("Name and office", "Date", "Signature"))
    return f'<section><h2>Signed for</h2>\n<div class="sign">{fields}</div></section>'


def _facts(lines: Iterable[tuple[str, str]]) -> str:
    cells = "".join(f'<dt>{escaped(name)}</dt><dd dir="auto">{escaped(text)}</dd>\n' for name, text in lines)
    return f'<dl class="facts">{cells}</dl>'


def _list(texts: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escaped(text)}</li>\n" for text in texts if text) + "</ul>\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str, *, raw: bool = False) -> str:
    """`raw`: the cells are markup already."""
    cells = [
        "<tr>" + "".join(f"<td>{cell if raw else escaped(cell)}</td>" for cell in row) + "</tr>\n"
        for row in rows
    ]
    heads = "".join(f'<th scope="col">{escaped(text)}</th>' for text in head)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(caption)}"><table>'
        f"<caption>{escaped(caption)}</caption><thead><tr>{heads}</tr></thead>\n"
        f"<tbody>{''.join(cells)}</tbody></table></div>\n"
    )


def _bdi(name: str) -> str:
    """A name from the file: text, shortened, and isolated from the writing direction around it."""
    short = name if len(name) <= 200 else f"{name[:200]}… ({len(name):,} characters)"
    return f"<bdi>{escaped(short)}</bdi>"


def _listed(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(name[:80] for name in names[:most]) + more


def _shown(value: object) -> str:
    return _number(value) if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def _percent(value: float) -> str:
    if value >= 0.999:  # an upper end is rounded up, but 99.97% is not 100%
        return f"{math.ceil(value * 1e4) / 1e2:.4g}%"
    return f"{100 * value:.3g}%"
