"""docs/assurance.md: one page out of what all examinations found, and its figures for reports.

python -m assurance.page     # the figures anew, from the page as it is
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final, final

from assurance.isolated import PROJECT, Outcome
from assurance.part import Part

PAGE: Final = PROJECT / "docs" / "assurance.md"
FIGURES: Final = PROJECT / "src" / "dpgram" / "release" / "assurance.json"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """When, what and on what machine was examined."""

    date: str
    version: str
    commit: str
    cores: int
    python: str
    system: str


def circumstances() -> Circumstances:
    """Those of this process, now."""
    return Circumstances(
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=version("dpgram"),
        commit=_commit(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
    )


def _commit() -> str:
    """The short hash; "with changes" where tracked files differ from it, the page itself aside."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD").strip()
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/assurance.md")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head} with changes" if changed.strip() else head


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True, check=True)
    return done.stdout


def verdict(outcomes: Sequence[Outcome]) -> str:
    """The summary: how many findings of how many hold, and where they do not."""
    findings = [finding for outcome in outcomes for finding in outcome.part.findings]
    failed = [outcome.part.title for outcome in outcomes if not outcome.part.holds]
    parts = _counted(len(outcomes), "part")
    if not failed:
        return f"**Everything holds: {_counted(len(findings), 'finding')} in {parts}.**"
    holding = sum(finding.holds for finding in findings)
    return (
        f"**{len(findings) - holding} of {_counted(len(findings), 'finding')} FAIL**, "
        f"in {len(failed)} of {parts}: {', '.join(failed)}."
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def table(part: Part) -> str:
    """A part's findings as a Markdown table."""
    heads = ("examined", *part.columns, "found", "")
    lines = [_line(heads), "|---" * len(heads) + "|"]
    for finding in part.findings:
        cells = finding.cells or ("–",) * len(part.columns)
        told = (finding.what, *cells, finding.figure)
        lines.append(_line((*map(_cell, told), "holds" if finding.holds else "**FAILS**")))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def _cell(text: str) -> str:
    """Text that cannot end its cell, and that Markdown shows as it is: `<` would open a tag."""
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def page(outcomes: Sequence[Outcome], about: Circumstances, seconds: float) -> str:
    """The whole page, of a run that took so many seconds by the clock."""
    head = f"""# Assurance: what was examined, and what came out

{verdict(outcomes)}

Made by `make assurance` on {about.date}: dpgram {about.version}, commit {about.commit},
Python {about.python} on {about.system}, {about.cores} cores, {seconds / 60:.1f} minutes.
Every figure was measured in this run, none is stored; running it again writes this page anew.
What is *not* defended: [known limits](limits.md).

| part | findings | | time |
|---|---|---|---|"""
    rows = [
        f"| [{outcome.part.title}](#{anchor(outcome.part.title)}) | {len(outcome.part.findings)} | "
        f"{'holds' if outcome.part.holds else '**FAILS**'} | {_duration(outcome.seconds)} |"
        for outcome in outcomes
    ]
    parts = [
        f"\n## {outcome.part.title}\n\n{outcome.part.how}\n\n{table(outcome.part)}" for outcome in outcomes
    ]
    return "\n".join([head, *rows, *parts]) + "\n"


def figures(text: str) -> dict[str, object]:
    """When, of which version, and how many findings of each part hold: what a report of a release tells."""
    made = re.search(r"Made by `make assurance` on (.*?): dpgram (\S+), commit (.*?),\n", text)
    parts = re.findall(r"^\| \[(.*?)\]\(#.*?\) \| (\d+) \| (.*?) \|", text, re.MULTILINE)
    if made is None or not parts:
        raise ValueError("this is no page of `make assurance`")
    told = [{"part": title, "findings": int(count), "holds": word == "holds"} for title, count, word in parts]
    return {"made": made[1], "version": made[2], "commit": made[3], "parts": told}


def write_figures() -> None:
    text = json.dumps(figures(PAGE.read_text(encoding="utf-8")), indent=2, ensure_ascii=False)
    FIGURES.write_text(text + "\n", encoding="utf-8")


def anchor(title: str) -> str:
    """The address of a heading inside its page, as the site makes it."""
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.strip().replace(" ", "-")


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


if __name__ == "__main__":
    write_figures()
