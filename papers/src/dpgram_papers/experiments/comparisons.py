"""One plain matrix of dpgram against the best of a paper's methods, at its settings and equal guarantee."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import numpy as np

from dpgram_papers.experiments.claims import table

NEARLY_LEVEL: Final = 0.97
AT_THE_FLOOR: Final = 1.5
"""Below this many times the non-private error an answer counts as having arrived there."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """At one setting and equal guarantee: the best of the paper's methods against ours, one plain matrix."""

    figure: str
    guarantee: str
    """What both sides promise, and to whom."""
    setting: str
    rival: str
    theirs: float
    ours: float
    floor: float
    """The error without privacy."""
    nothing: float
    """The error of an answer that looks at no data: no slope, or a matrix of zeros."""

    @property
    def ratio(self) -> float:
        """Their error over ours; infinite where ours is no worse than without privacy."""
        return self.theirs / self.ours if self.ours > 0.0 else math.inf

    @property
    def arrived(self) -> bool:
        """Whether ours is at the non-private error, where nothing is left to gain."""
        return self.ours <= AT_THE_FLOOR * self.floor


def summary(rows: Sequence[Comparison]) -> list[str]:
    """One line per figure: how often ours is ahead where something is left to gain, and by how much."""
    lines = []
    for figure in dict.fromkeys(row.figure for row in rows):
        open_ = [row for row in rows if row.figure == figure and not row.arrived]
        if not open_:
            continue
        ratios = [row.ratio for row in open_]
        behind = [row for row in open_ if row.ratio < 1.0]
        worst = min(open_, key=lambda row: row.ratio)
        useless = sum(row.ours > row.nothing for row in open_)
        both = sum(min(row.ours, row.theirs) > row.nothing for row in open_)
        lines.append(
            (
                figure,
                worst.guarantee,
                f"{len(open_) - len(behind)} of {len(open_)}",
                f"{min(ratios):.2f}",
                f"{np.median(ratios):.2f}",
                f"{max(ratios):.3g}",
                f"{worst.setting} ({worst.rival})",
                f"{useless}; {both}",
            )
        )
    head = (
        "figure", "both sides promise", "smaller error", "least ratio", "median", "largest",
        "the least is at", "worse than answering nothing: ours; both",
    )  # fmt: skip
    return table(head, lines)


def worthless(rows: Sequence[Comparison]) -> list[str]:
    """By name, the settings in which ours, or even the better of both, is worse than answering nothing."""
    lines = []
    for figure in dict.fromkeys(row.figure for row in rows):
        open_ = [row for row in rows if row.figure == figure and not row.arrived]
        both = [row for row in open_ if min(row.ours, row.theirs) > row.nothing]
        alone = [row for row in open_ if row.ours > row.nothing >= row.theirs]
        if both or alone:
            lines.append((figure, named(both, open_), named(alone, open_)))
    return table(("figure", "both sides are worse than nothing", "ours alone is"), lines)


def named(some: Sequence[Comparison], of: Sequence[Comparison]) -> str:
    """Settings that differ in their last number alone go together: `wine, ε = 0.01, 0.1`."""
    parts: dict[str, list[str]] = {}
    for row in some:
        where, _, last = row.setting.rpartition(" = ")
        parts.setdefault(where, []).append(last)
    asked = Counter(row.setting.rpartition(" = ")[0] for row in of)
    told = [
        f"{where} = {', '.join(values)}" if len(values) < asked[where] else f"{where}: all"
        for where, values in parts.items()
    ]
    return "; ".join(told) or "–"


def losses(rows: Sequence[Comparison], why: Mapping[str, str]) -> list[str]:
    """One line per figure in which ours has the larger error somewhere; the reasons are by figure."""
    lines = []
    for figure in dict.fromkeys(row.figure for row in rows):
        behind = [row for row in rows if row.figure == figure and not row.arrived and row.ratio < 1.0]
        if not behind:
            continue
        asked = sum(row.figure == figure and not row.arrived for row in rows)
        worst = min(behind, key=lambda row: row.ratio)
        near = sum(row.ratio > NEARLY_LEVEL for row in behind)
        useless = sum(min(row.ours, row.theirs) > row.nothing for row in behind)
        lines.append(
            (
                figure,
                f"{len(behind)} of {asked}",
                str(near),
                f"{1.0 / worst.ratio:.2f} times: {worst.setting} ({worst.rival})",
                str(useless),
                why[figure],
            )
        )
    head = ("figure", "behind in", "by less than 3%", "at most by", "both worse than nothing in", "why")
    return table(head, lines)


def write_comparisons(rows: Sequence[Comparison], stem: Path, title: str) -> None:
    """The summary and every setting in Markdown; every setting in CSV."""
    head = (
        "figure", "setting", "best of the paper", "its error", "dpgram", "non-private", "nothing", "ratio"
    )  # fmt: skip
    with stem.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(_cells(row, 6) for row in rows)
    lines = [f"# {title}", "", *summary(rows), "", *table(head, (_cells(row, 3) for row in rows))]
    stem.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _cells(row: Comparison, digits: int) -> list[str]:
    numbers = (row.theirs, row.ours, row.floor, row.nothing, row.ratio)
    return [row.figure, row.setting, row.rival, *(f"{number:.{digits}g}" for number in numbers)]
