"""The maker of docs/assurance.md, on made-up parts."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from assurance.__main__ import PARTS
from assurance.isolated import PROJECT, Outcome, examine_apart
from assurance.page import Circumstances, anchor, circumstances, page, table, verdict
from assurance.part import Finding, Part

ABOUT = Circumstances(
    date="2031-02-03 04:05 UTC",
    version="9.8.7",
    commit="abcdef123456",
    cores=2,
    python="3.11.0",
    system="Linux x86_64",
)
FOR_EVER = 300.0
"""Seconds, on the busiest machine."""
HOLDS = Finding(what="nothing lost", figure="0 of 50", holds=True)
FAILS = Finding(what="bound | ε", figure="1.2 < 1.0", holds=False)


def outcome(title: str, *findings: Finding, seconds: float = 60.0) -> Outcome:
    return Outcome(part=Part(title=title, how="By hand.", findings=findings), seconds=seconds)


def test_a_page_has_every_finding_once_and_the_circumstances() -> None:
    parts = [outcome("Audits", HOLDS), outcome("Faults: kill -9", HOLDS, HOLDS, seconds=150)]
    text = page(parts, ABOUT, seconds=210.0)
    assert text.count("| nothing lost | 0 of 50 | holds |") == 3
    assert "Everything holds: 3 findings in 2 parts." in text
    assert "FAIL" not in text
    for told in ("2031-02-03 04:05 UTC", "9.8.7", "abcdef123456", "2 cores", "3.5 minutes", "2.5 min"):
        assert told in text
    assert text.index("holds: 3") < text.index("## Audits") < text.index("## Faults")


def test_a_failure_stands_at_the_top() -> None:
    text = page([outcome("Audits", HOLDS), outcome("Faults", HOLDS, FAILS)], ABOUT, seconds=120.0)
    first = text.split("\n\n")[1]
    assert first == "**1 of 3 findings FAIL**, in 1 of 2 parts: Faults."
    assert text.count("**FAILS**") == 2  # in the table of parts, and at the finding


def test_figures_may_have_columns_of_their_own() -> None:
    apart = Finding(what="an audit", figure="100 runs", holds=True, cells=("μ = 3", "μ ≥ 2.7"))
    part = Part(title="t", how="h", findings=(apart, HOLDS), columns=("promised", "proven"))
    assert table(part).splitlines() == [
        "| examined | promised | proven | found | |",
        "|---|---|---|---|---|",
        "| an audit | μ = 3 | μ ≥ 2.7 | 100 runs | holds |",
        "| nothing lost | – | – | 0 of 50 | holds |",
    ]


def test_cells_cannot_break_the_table() -> None:
    finding = Finding(what="a | b\nc", figure="<script>", holds=True)
    last = table(Part(title="t", how="h", findings=(finding,))).splitlines()[-1]
    assert last == r"| a \| b c | &lt;script> | holds |"


def test_addresses_of_headings() -> None:
    assert anchor("Floating point: low bits, order") == "floating-point-low-bits-order"


def test_the_verdict_of_nothing_wrong() -> None:
    assert verdict([outcome("A", HOLDS)]) == "**Everything holds: 1 finding in 1 part.**"


def test_circumstances_are_known_here() -> None:
    about = circumstances()
    assert about.cores >= 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", about.date)


def test_every_examination_of_the_folder_is_on_the_list() -> None:
    found = {
        path.stem
        for path in (PROJECT / "assurance").glob("*.py")
        if "def examine() -> Part" in path.read_text(encoding="utf-8")
    }
    assert found <= set(PARTS)


@pytest.mark.parametrize(
    ("body", "holds", "figure"),
    [
        (
            "return Part(title='Fine', how='h', findings=(Finding(what='w', figure='1', holds=True),))",
            True,
            "1",
        ),
        ("raise SystemExit(3)", False, "ended with exit code 3, without a result"),
        ("time.sleep(3600)", False, "did not end within 2 s"),
    ],
    ids=["answers", "crashes", "hangs"],
)
def test_an_examination_runs_apart(
    body: str, holds: bool, figure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up(tmp_path, monkeypatch, made_up=body)
    ((module, result),) = examine_apart(["made_up"], limit=2.0 if "sleep" in body else FOR_EVER)
    assert module == "made_up"
    assert result.part.holds is holds
    assert result.part.findings[0].figure == figure


def made_up(folder: Path, monkeypatch: pytest.MonkeyPatch, **bodies: str) -> None:
    """Modules of these names, each with an `examine` of this body."""
    for name, body in bodies.items():
        code = "import time\nfrom pathlib import Path\nfrom assurance.part import Finding, Part\n\n\n"
        code += "def examine():\n    " + body
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_two_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits for a file that the other leaves: one after the other they would hang."""
    waits = "here = Path(__file__).parent\n    (here / '{}').touch()\n    while not (here / '{}').exists():\n"
    waits += "        time.sleep(0.01)\n    return Part(title='{}', how='h', findings=())"
    made_up(tmp_path, monkeypatch, one=waits.format("a", "b", "One"), other=waits.format("b", "a", "Other"))
    found = dict(examine_apart(["one", "other"], at_once=2, limit=FOR_EVER))
    assert {name: result.part.title for name, result in found.items()} == {"one": "One", "other": "Other"}


def test_leaving_early_ends_what_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = "\n    ".join(
        (
            "unfinished = Path(__file__).with_suffix('.unfinished')",
            "unfinished.write_text(str(__import__('os').getpid()))",
            "unfinished.rename(Path(__file__).with_suffix('.pid'))  # there with all it says",
            "time.sleep(3600)",
        )
    )
    quick = "\n    ".join(
        (
            "while not Path(__file__).with_name('slow.pid').exists():",
            "    time.sleep(0.01)",
            "return Part(title='t', how='h', findings=())",
        )
    )
    made_up(tmp_path, monkeypatch, slow=marks, quick=quick)
    running = examine_apart(["slow", "quick"], at_once=2, limit=FOR_EVER)
    assert next(running)[0] == "quick"
    running.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "slow.pid").read_text()), 0)
