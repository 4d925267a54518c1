"""Every example in the README and the documentation runs, page by page, in an empty folder.

Fences that run: `python` (one namespace a page), `console` (lines `$ dpgram …`), and `toml` or `csv` fences
whose first line is `# file: NAME` are written to that file first.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
FENCE = re.compile(
    r"^```(?P<kind>python|console|toml|csv)[^\n]*\n(?P<body>.*?)^```\s*$", re.MULTILINE | re.DOTALL
)


def pages() -> list[Path]:
    found = [
        PROJECT / "README.md",
        *sorted((PROJECT / "docs").rglob("*.md")),
        *sorted((PROJECT / "proofs").glob("*.md")),
    ]
    return [
        p
        for p in found
        if "generated" not in p.parts and "_build" not in p.parts and FENCE.search(p.read_text())
    ]


def run_console(body: str) -> None:
    """Each command in this process: the same code as in a shell, without a start of the interpreter each."""
    from dpgram.cli import run

    for line in body.splitlines():
        if not line.startswith("$ "):
            continue
        words = shlex.split(line[2:])
        assert words[0] == "dpgram", f"only dpgram commands belong in a console fence: {line}"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = run(words[1:])
        assert code == 0, f"{line}\n{printed.getvalue()}"


@pytest.mark.parametrize("page", pages(), ids=lambda p: str(p.relative_to(PROJECT)))
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    ran = 0
    for fence in FENCE.finditer(page.read_text()):
        kind, body = fence["kind"], fence["body"]
        if kind == "python":
            line = page.read_text()[: fence.start("body")].count("\n")
            exec(compile("\n" * line + body, str(page), "exec"), namespace)
            ran += 1
        elif kind == "console":
            run_console(body)
            ran += 1
        elif body.startswith("# file: "):
            name, content = body.removeprefix("# file: ").split("\n", 1)
            (tmp_path / name.strip()).write_text(content)
            ran += 1
    assert ran or "toml" in page.read_text()


def test_no_private_addresses_or_paths() -> None:
    """The project speaks of itself alone: no path of a machine, no registry address."""
    tracked = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    forbidden = re.compile("/" + "work/|/" + "root/|pypi" + r"\.org|npmjs" + r"\.|deb\.debian" + r"\.org")
    for name in tracked.stdout.split("\n"):
        path = PROJECT / name
        if path.is_file() and path.suffix in {".py", ".md", ".toml", ".txt", ".json", ".yml", ".yaml", ""}:
            assert not forbidden.search(path.read_text(errors="ignore")), name
