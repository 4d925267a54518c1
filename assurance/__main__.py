"""Run the examinations, those that use both cores first, and then the others two at a time.

python -m assurance            # all of them, and write docs/assurance.md
python -m assurance NAME …     # these only, to the screen: a page is made of one whole run or not at all
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from assurance.isolated import PROJECT, Outcome, examine_apart
from assurance.page import PAGE, circumstances, page, table, verdict, write_figures

PARTS: Final = (
    "audits",
    "broken",
    "neighbours",
    "kinds",
    "floating_point",
    "fuzzing",
    "faults",
    "soak",
    "signatures",
    "supply_chain",
    "proofs",
)
"""Every module of this folder that has `examine`, in the order of the page."""


BOTH_CORES: Final = frozenset({"audits", "broken", "neighbours"})
"""Those that spread their work over two processes: nothing runs beside them. The others run two at once."""


def run(names: Sequence[str], target: Path | None) -> int:
    """Examine; write the page where there is a target. 0 if everything holds, else 1."""
    about, begun = circumstances(), time.monotonic()
    found: dict[str, Outcome] = {}
    for at_once in (1, 2):
        chosen = [name for name in names if (name in BOTH_CORES) == (at_once == 1)]
        if chosen:
            print(", ".join(chosen), "…", flush=True)
        for module, outcome in examine_apart([f"assurance.{name}" for name in chosen], at_once=at_once):
            found[module.removeprefix("assurance.")] = outcome
            failed = sum(not finding.holds for finding in outcome.part.findings)
            told = f"{failed} FAIL" if failed else "all hold"
            count = len(outcome.part.findings)
            print(f"[{len(found)}/{len(names)}] {outcome.part.title}: {count} findings, {told}", end=" ")
            print(f"({outcome.seconds:.0f} s)", flush=True)
            if target is None or failed:
                print(table(outcome.part), flush=True)
    outcomes = [found[name] for name in names]
    print(verdict(outcomes).replace("*", ""))
    if target is not None:
        target.write_text(page(outcomes, about, time.monotonic() - begun), encoding="utf-8")
        if target == PAGE:
            write_figures()
        print(f"written: {target.relative_to(PROJECT)}")
    return 0 if all(outcome.part.holds for outcome in outcomes) else 1


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m assurance", description="Run the examinations.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"parts to run: {', '.join(PARTS)}")
    names = parser.parse_args().names
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    # Being told to stop ends the examination under way as well: it runs in a session of its own.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(run(names or PARTS, None if names else PAGE))


if __name__ == "__main__":
    main()
