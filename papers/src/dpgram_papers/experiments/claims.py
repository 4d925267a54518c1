"""What a paper claims, and what came out: holds, fails, or false as printed with the reason."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, final

Outcome: TypeAlias = Literal[
    "pass", "pass, fitted", "holds in part", "fail", "false as printed", "not measured"
]
"""Fitted: under one of several readings of what the text leaves open, chosen because it agrees. In part: the
claim is made of a whole range, and holds in one part of what was measured of it."""


@final
@dataclass(frozen=True, slots=True)
class Reading:
    """What one reading of a text says of a claim."""

    holds: bool | None
    found: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One claim of a paper with its outcome; `found` is the number or the reason behind it."""

    place: str
    claim: str
    outcome: Outcome
    found: str

    @property
    def text(self) -> str:
        """The outcome in words."""
        return (
            f"false as printed, because {self.found}" if self.outcome == "false as printed" else self.outcome
        )


def verdict_on(place: str, claim: str, holds: bool | None, found: str, *, printed: bool = False) -> Verdict:
    """A verdict: None is "not measured"; with `printed`, what does not hold is false as printed."""
    if holds is None:
        outcome: Outcome = "not measured"
    elif holds:
        outcome = "pass"
    else:
        outcome = "false as printed" if printed else "fail"
    return Verdict(place=place, claim=claim, outcome=outcome, found=found)


def verdict_on_parts(
    place: str, claim: str, holds: Sequence[bool], found: str, *, nowhere: Outcome = "fail"
) -> Verdict:
    """A verdict on a claim about several settings: it may hold in some of them, or `nowhere`."""
    if not any(holds):
        return Verdict(place=place, claim=claim, outcome=nowhere, found=found)
    outcome: Outcome = "pass" if all(holds) else "holds in part"
    return Verdict(place=place, claim=claim, outcome=outcome, found=found)


def verdict_of_readings(place: str, claim: str, plain: Reading, fitted: Reading) -> Verdict:
    """One claim under two readings of what the text leaves open; the second was chosen because it agrees."""
    if plain.holds is None or fitted.holds is None:
        outcome: Outcome = "not measured"
    elif plain.holds:
        outcome = "pass"
    else:
        outcome = "pass, fitted" if fitted.holds else "fail"
    found = f"first reading: {plain.found}; fitted reading: {fitted.found}"
    return Verdict(place=place, claim=claim, outcome=outcome, found=found)


def write_verdicts(verdicts: Sequence[Verdict], stem: Path, title: str) -> None:
    """The same table in Markdown and CSV."""
    with stem.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["place", "claim", "outcome", "found"])
        writer.writerows([v.place, v.claim, v.outcome, v.found] for v in verdicts)
    lines = [f"# {title}", "", *verdict_lines(verdicts)]
    stem.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def verdict_lines(verdicts: Iterable[Verdict]) -> list[str]:
    """The claims as a Markdown table."""
    marks = {"pass": "pass", "fail": "**fail**", "false as printed": "**false as printed**"}
    cells = ((v.place, v.claim, marks.get(v.outcome, v.outcome), v.found) for v in verdicts)
    return table(("place", "claim", "outcome", "found"), cells)
