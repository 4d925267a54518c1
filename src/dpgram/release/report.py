"""A static HTML report of one release, for the people who answer for the data.

What was released, what the guarantee means, what an attacker can and cannot learn, the budget. No scripts, no
network, nothing that is not in the release (or in the ledger, where one is given).

How well can anybody tell from the release whether one person is in the table? A test that raises false alarms
at rate α finds a person who is there with probability at most

    Φ(Φ⁻¹(α) + μ) for a mechanism with a Gaussian-DP parameter μ,
    min(e^ε·α + δ, 1 − e^(−ε)(1 − δ − α)) for every (ε, δ)-DP mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtr, ndtri

from dpgram.analysis.display import facts, guarantee_in_words

if TYPE_CHECKING:
    from dpgram.release import Release

FALSE_ALARMS: Final = (0.001, 0.01, 0.05, 0.1)
SUSPICIONS: Final = (0.01, 0.1, 0.5, 0.9)

_STYLE: Final = """
:root { --ground: #fff; --ink: #1b2329; --quiet: #55616b; --line: #c9d1d8; --mark: #0072b2; --other: #a34700;
  --warn: #fff3dc; color-scheme: light; }
@media (prefers-color-scheme: dark) { :root { --ground: #14191d; --ink: #e8edf1; --quiet: #a9b5bf;
  --line: #3b4650; --mark: #56b4e9; --other: #f0954a; --warn: #3a2c10; color-scheme: dark; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem; max-width: 52rem; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--quiet); padding-bottom: .3rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0;
  border-bottom: 1px solid var(--line); }
td { overflow-wrap: anywhere; }
.promise { border-left: 4px solid var(--mark); padding-left: 1rem; }
.warning { background: var(--warn); padding: .6rem .9rem; border-left: 4px solid var(--other); }
.quiet { color: var(--quiet); } .scroll { overflow-x: auto; }
svg { max-width: 100%; height: auto; } svg text { fill: var(--ink); font: 13px system-ui, sans-serif; }
bdi { overflow-wrap: anywhere; }
@media print { :root { --ground: #fff; --ink: #000; --quiet: #444; --line: #aaa; --mark: #0072b2;
  --other: #a34700; --warn: #fff; } h2 { break-after: avoid; } table, svg { break-inside: avoid; } }
"""


def page(release: Release, ledger: Path | None = None) -> str:
    """The whole report as text."""
    sections = [
        _warning(release),
        _promise(release),
        _attacker(release),
        _released(release),
        _budget(release, ledger),
        _parameters(release),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<title>Report of a private release</title>\n<link rel="icon" href="data:,">\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>Report of a private release</h1>\n"
        f'<p class="quiet">SHA-256 {escape(release.digest)}</p>\n'
        + "\n".join(section for section in sections if section)
        + "\n</main>\n</body>\n</html>\n"
    )


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


def _warning(release: Release) -> str:
    if release.entropy == "system":
        return ""
    return (
        '<p class="warning"><strong>This release protects nobody.</strong> Its noise was drawn from a known '
        "seed, for a test; whoever knows the seed can remove it.</p>"
    )


def _promise(release: Release) -> str:
    return (
        "<h2>The promise</h2>\n"
        f'<p class="promise">{escape(guarantee_in_words(release))}</p>\n'
        "<p>It holds whatever else anybody knows, now or later, and whatever is computed from the release: "
        "regressions, correlations and predictions made from it cost nothing more.</p>"
    )


def _attacker(release: Release) -> str:
    who = "one person's rows" if release.unit is not None else "one row"
    tests = [[_percent(a), _percent(detection(release, a))] for a in FALSE_ALARMS]
    beliefs = [[_percent(p), _percent(suspicion_at_most(release.guarantee.epsilon, p))] for p in SUSPICIONS]
    delta = release.guarantee.delta + release.guarantee.numerical_delta
    apart = f" (apart from events of probability {delta:.2g})" if delta else ""
    return (
        "<h2>What an attacker can and cannot learn</h2>\n"
        "<p>Take an attacker who knows every other row of the table, has unlimited computers, and wants to "
        f"know from this release whether {who} of the victim went into it.</p>\n"
        "<ul><li><strong>Can:</strong> test the suspicion, and do somewhat better than guessing. The table "
        "and the picture give the best that any test can do.</li>\n"
        "<li><strong>Can:</strong> learn facts about the whole table, such as that smokers have higher "
        "charges, and apply them to somebody known to smoke. It would be the same if the victim had stayed "
        "out.</li>\n"
        "<li><strong>Cannot:</strong> do better than the tables below, by any method, ever.</li>\n"
        "<li><strong>Cannot:</strong> read a single row, or ask the table anything: it is not in the file."
        "</li></ul>\n"
        + _table(
            ("false alarms of the test", "chance to notice the victim, at most"),
            tests,
            "The best test there can be; without the release both columns would be equal",
        )
        + _picture(release)
        + _table(
            ("suspicion before", "suspicion after, at most"),
            beliefs,
            f"How far the release can raise a suspicion about the victim{apart}",
        )
    )


def _released(release: Release) -> str:
    rows = [[_bdi(column.name), *map(escape, column.described)] for column in release.schema.columns]
    width = release.schema.width
    return (
        "<h2>What was released</h2>\n"
        f"<p>One symmetric table of {width} × {width} noisy sums of products of columns, "
        f"{width * (width + 1) // 2:,} different numbers. The ranges and levels below were "
        "declared in advance and not looked up in the "
        f"data{_learnt(release)}.</p>\n"
        + _table(("column", "kind", "declared range or levels"), rows, "Columns", raw=True)
    )


def _learnt(release: Release) -> str:
    learnt = release.measured or None
    return "" if learnt is None else ", except what was learnt privately, under the same guarantee"


def _budget(release: Release, ledger: Path | None) -> str:
    receipt = release.receipt
    if receipt is None:
        charged = "<p>No ledger was charged: nothing in this file says what else was published.</p>"
    else:
        charged = (
            f"<p>Charged as entry {receipt.entry} of the ledger {_bdi(receipt.ledger_name)} "
            f"({escape(receipt.ledger_id)}) before the noise was drawn.</p>"
        )
    return f"<h2>The budget</h2>\n{charged}" + ("" if ledger is None else _history(release, ledger))


def _history(release: Release, path: Path) -> str:
    """The ledger is opened here only: the analyst's side never needs it."""
    from dpgram.privacy.ledger import Ledger
    from dpgram.privacy.ledger.history import ledger_history

    book = Ledger.open(path)
    if release.receipt is not None:
        book.verify([release])
    lines = ledger_history(book)
    rows = [
        [str(line.number), line.time, f"{line.release} ({line.guarantee})", f"{line.share:.1%}", line.note]
        for line in lines
    ]
    limit = f"{book.name}: {book.guarantee} for everything released together."
    return (
        f"\n<p>{escape(limit)} Now {escape(str(book.left()))}.</p>\n"
        + _spending([line.share for line in lines])
        + _table(("entry", "time (UTC)", "release", "share", "note"), rows, "Every charge so far")
    )


def _parameters(release: Release) -> str:
    rows = [[name, value] for name, value in facts(release)]
    rows += [[f"parameter {name}", str(value)] for name, value in release.mechanism.parameters.items()]
    return "<h2>Parameters</h2>\n" + _table(("fact", "value"), rows, "Everything the file says about itself")


def _picture(release: Release) -> str:
    """Chance to notice against false alarms: the diagonal is guessing."""
    size, left, top = 300.0, 60.0, 15.0

    def points(pairs: Iterable[tuple[float, float]]) -> str:
        return " ".join(f"{left + size * x:.1f},{top + size * (1 - y):.1f}" for x, y in pairs)

    grid = np.concatenate([np.linspace(0, 0.05, 26), np.linspace(0.06, 1, 48)]).tolist()
    curve = points((alpha, max(detection(release, alpha), alpha)) for alpha in grid)
    ticks = "".join(
        f'<text x="{left + size * t:.0f}" y="{top + size + 20:.0f}" text-anchor="middle">{t:.0%}</text>'
        f'<text x="{left - 8:.0f}" y="{top + size * (1 - t) + 4:.0f}" text-anchor="end">{t:.0%}</text>'
        for t in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    return (
        '<svg viewBox="0 0 560 370" width="560" role="img" aria-label="The best chance to notice one person, '
        'against the rate of false alarms, compared with guessing">'
        f'<rect x="{left}" y="{top}" width="{size}" height="{size}" fill="none" stroke="var(--line)"/>{ticks}'
        f'<polyline points="{points([(0, 0), (1, 1)])}" fill="none" stroke="var(--other)" stroke-width="2" '
        'stroke-dasharray="6 4"/>'
        f'<polyline points="{curve}" fill="none" stroke="var(--mark)" stroke-width="3"/>'
        f'<text x="{left + size / 2}" y="{top + size + 45}" text-anchor="middle">false alarms</text>'
        f'<text x="{left + size + 15}" y="{top + 60}">chance to notice, at most</text>'
        f'<line x1="{left + size + 15}" y1="{top + 70}" x2="{left + size + 75}" y2="{top + 70}" '
        'stroke="var(--mark)" stroke-width="3"/>'
        f'<text x="{left + size + 15}" y="{top + 110}">guessing</text>'
        f'<line x1="{left + size + 15}" y1="{top + 120}" x2="{left + size + 75}" y2="{top + 120}" '
        'stroke="var(--other)" stroke-width="2" stroke-dasharray="6 4"/></svg>'
    )


def _spending(shares: Sequence[float]) -> str:
    """One bar: what each charge took of the whole budget."""
    bars, start = [], 0.0
    for number, share in enumerate(shares, start=1):
        shade = "1" if number % 2 else "0.65"
        bars.append(
            f'<rect x="{10 + 540 * start:.1f}" y="10" width="{max(540 * share, 0.5):.1f}" height="28" '
            f'fill="var(--mark)" opacity="{shade}"/>'
        )
        start += share
    return (
        f'<svg viewBox="0 0 560 70" width="560" role="img" aria-label="{start:.1%} of the budget is spent">'
        + "".join(bars)
        + '<rect x="10" y="10" width="540" height="28" fill="none" stroke="var(--quiet)"/>'
        f'<text x="10" y="60">spent {start:.1%}</text>'
        f'<text x="550" y="60" text-anchor="end">left {max(1.0 - start, 0.0):.1%}</text></svg>'
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str, *, raw: bool = False) -> str:
    """`raw`: the cells are markup already."""
    cells = [
        "<tr>" + "".join(f"<td>{cell if raw else escape(cell)}</td>" for cell in row) + "</tr>\n"
        for row in rows
    ]
    heads = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
    return (
        f'<div class="scroll"><table><caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>\n'
        f"<tbody>{''.join(cells)}</tbody></table></div>\n"
    )


def _bdi(name: str) -> str:
    """A name from the file: text, shortened, and isolated from the writing direction around it."""
    short = name if len(name) <= 200 else f"{name[:200]}… ({len(name):,} characters)"
    return f"<bdi>{escape(short)}</bdi>"


def _percent(value: float) -> str:
    if value >= 0.9999:
        return f"{math.ceil(value * 1e6) / 1e4:.4g}%"
    return f"{100 * value:.3g}%"
