"""The examples in the documentation: found, run, and held against what the page says they print.

    DPGRAM_DATA=folder python docs/examples.py     # writes the cookbook's figures and printed results anew

Fences that run: `python` (one namespace per page), `console` (lines `$ dpgram …`), and `toml` or `csv` fences
whose first line is `# file: NAME` are written to that file first. A command ends with 0, or with what a
comment behind it says: `# exit code 3`. In the cookbook a `text` fence after one of these shows what it
printed.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

DOCS: Final = Path(__file__).resolve().parent
COOKBOOK: Final = DOCS / "cookbook"
FENCE: Final = re.compile(
    r"^```(?P<kind>python|console|toml|csv|text)[^\n]*\n(?P<body>.*?)^```[ ]*$\n*", re.MULTILINE | re.DOTALL
)
_NUMBER: Final = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One fence that runs, and the place of what the page says it prints."""

    kind: str
    body: str
    start: int
    """Where the body starts on the page."""
    printed: tuple[int, int] | None = None
    """Start and end of the text shown for it, if any."""


def examples(text: str) -> Iterator[Example]:
    """The fences of a page that run, in order."""
    found = list(FENCE.finditer(text))
    for place, fence in enumerate(found):
        runs = fence["kind"] in ("python", "console") or fence["body"].startswith("# file: ")
        if fence["kind"] == "text" or not runs:
            continue
        after = found[place + 1] if place + 1 < len(found) else None
        shown = after is not None and after["kind"] == "text" and after.start() == fence.end()
        yield Example(
            kind=fence["kind"],
            body=fence["body"],
            start=fence.start("body"),
            printed=after.span("body") if shown and after is not None else None,
        )


def run_page(page: Path) -> list[tuple[Example, str]]:
    """Run everything on a page in the current folder; what each example printed."""
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    outcome = []
    for example in examples(text):
        printed = io.StringIO()
        if example.kind == "python":
            line = text[: example.start].count("\n")
            code = compile("\n" * line + example.body, str(page), "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, namespace)
        elif example.kind == "console":
            _run_commands(example.body, printed)
        else:
            name, content = example.body.removeprefix("# file: ").split("\n", 1)
            Path(name.strip()).write_text(content, encoding="utf-8")
        outcome.append((example, printed.getvalue()))
    return outcome


def _run_commands(body: str, printed: io.StringIO) -> None:
    """Each command in this process: the same code as in a shell, without a start of the interpreter each."""
    from dpgram.cli import run

    for line in body.splitlines():
        if not line.startswith("$ "):
            continue
        words = shlex.split(line[2:], comments=True)
        if words[0] != "dpgram":
            raise AssertionError(f"only dpgram commands belong in a console fence: {line}")
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = run(words[1:])
        stated = re.search(r"# exit code (\d+)", line)
        if code != (0 if stated is None else int(stated[1])):
            raise AssertionError(f"{line}\n{printed.getvalue()}")


def same_text(shown: str, printed: str) -> bool:
    """The same words, and numbers that agree to 2%: libraries of linear algebra differ in last digits."""
    words = [_NUMBER.sub("#", text).split() for text in (shown, printed)]
    numbers = [[float(n.replace(",", "")) for n in _NUMBER.findall(text)] for text in (shown, printed)]
    return words[0] == words[1] and all(
        math.isclose(a, b, rel_tol=0.02, abs_tol=1e-3) for a, b in zip(*numbers, strict=True)
    )


def main() -> None:
    """Write figures and printed results of the cookbook anew."""
    figures = COOKBOOK / "figures"
    figures.mkdir(exist_ok=True)
    here = Path.cwd()
    for page in sorted(COOKBOOK.glob("*.md")):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                outcome = run_page(page)
            finally:
                os.chdir(here)
            text = page.read_text(encoding="utf-8")
            for example, printed in reversed(outcome):
                if example.printed is not None:
                    start, end = example.printed
                    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
                    text = text[:start] + "\n".join(lines) + "\n" + text[end:]
            page.write_text(text, encoding="utf-8")
            for figure in sorted(Path(folder).glob("*.png")):
                shutil.copy(figure, figures / figure.name)


if __name__ == "__main__":
    main()
