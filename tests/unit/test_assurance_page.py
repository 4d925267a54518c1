"""The maker of docs/assurance.md, on made-up parts."""

from __future__ import annotations

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
HOLDS = Finding(what="nothing lost", figure="0 of 50", holds=True)
FAILS = Finding(what="bound | ε", figure="1.2 < 1.0", holds=False)


def outcome(title: str, *findings: Finding, seconds: float = 60.0) -> Outcome:
    return Outcome(part=Part(title=title, how="By hand.", findings=findings), seconds=seconds)


def test_a_page_has_every_finding_once_and_the_circumstances() -> None:
    text = page([outcome("Audits", HOLDS), outcome("Faults: kill -9", HOLDS, HOLDS, seconds=150)], ABOUT)
    assert text.count("| nothing lost | 0 of 50 | holds |") == 3
    assert "Everything holds: 3 findings in 2 parts." in text
    assert "FAIL" not in text
    for told in ("2031-02-03 04:05 UTC", "9.8.7", "abcdef123456", "2 cores", "3.5 minutes", "2.5 min"):
        assert told in text
    assert text.index("holds: 3") < text.index("## Audits") < text.index("## Faults")


def test_a_failure_stands_at_the_top() -> None:
    text = page([outcome("Audits", HOLDS), outcome("Faults", HOLDS, FAILS)], ABOUT)
    first = text.split("\n\n")[1]
    assert first == "**1 of 3 findings FAIL**, in 1 of 2 parts: Faults."
    assert text.count("**FAILS**") == 2  # in the table of parts, and at the finding


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
        ("time.sleep(60)", False, "did not end within 2 s"),
    ],
    ids=["answers", "crashes", "hangs"],
)
def test_an_examination_runs_apart(
    body: str, holds: bool, figure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import time\nfrom assurance.part import Finding, Part\n\n\ndef examine():\n    " + body
    (tmp_path / "made_up.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    result = examine_apart("made_up", limit=2.0 if "sleep" in body else 60.0)
    assert result.part.holds is holds
    assert result.part.findings[0].figure == figure
