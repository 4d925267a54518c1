"""Every example in the README and the documentation runs, page by page, in an empty folder.

The pages of the cookbook need the folder of real data sets; what they print must be what they show.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from docs.examples import COOKBOOK, examples, run_page, same_text

PROJECT = Path(__file__).resolve().parents[1]
IMAGE = re.compile(r"!\[(?P<words>[^\]]*)\]\((?P<path>[^)]+)\)")


def pages() -> list[Path]:
    found = [
        PROJECT / "README.md",
        *sorted((PROJECT / "docs").rglob("*.md")),
        *sorted((PROJECT / "proofs").glob("*.md")),
    ]
    return [
        p
        for p in found
        if "generated" not in p.parts and "_build" not in p.parts and any(examples(p.read_text()))
    ]


def heads(text: str) -> list[list[str]]:
    """The columns of printed summaries, whose numbers differ from run to run."""
    return [line.split() for line in text.splitlines() if {"fitted", "p-value"} <= set(line.split())]


# Of an adaptive release, and true or not by its noise; docs/how-to/regress.md says what it means.
@pytest.mark.filterwarnings("ignore:rows far from the others count less:dpgram.errors.DpgramWarning")
@pytest.mark.usefixtures("asks_for_a_ledger")
@pytest.mark.parametrize("page", pages(), ids=lambda p: str(p.relative_to(PROJECT)))
def test_examples_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    text = page.read_text()
    if "DPGRAM_DATA" in text:
        monkeypatch.setenv("DPGRAM_DATA", str(request.getfixturevalue("shared_data")))
    monkeypatch.chdir(tmp_path)
    for example, printed in run_page(page):
        if example.printed is not None and COOKBOOK in page.parents:
            start, end = example.printed
            assert same_text(text[start:end], printed), (
                f"{page.name} shows\n{text[start:end]}\nbut its example prints\n{printed}\n"
                "If that is right: python docs/examples.py writes the page anew"
            )
        elif example.printed is not None:
            assert heads(text[slice(*example.printed)]) in ([], heads(printed))
    if COOKBOOK in page.parents:
        made = {path.name for path in tmp_path.glob("*.png")}
        assert made == {Path(image["path"]).name for image in IMAGE.finditer(text)}


@pytest.mark.parametrize("page", sorted(COOKBOOK.glob("*.md")), ids=lambda p: p.name)
def test_pictures_are_there_and_small(page: Path) -> None:
    for image in IMAGE.finditer(page.read_text()):
        assert len(image["words"]) > 20, "a picture needs words for those who cannot see it"
        assert 0 < (page.parent / image["path"]).stat().st_size < 150_000


@pytest.mark.parametrize(
    ("printed", "same"),
    [("b = 1.001", True), ("b  =\n1.01", True), ("b = 1.1", False), ("c = 1.0", False), ("b = 1 2", False)],
)
def test_results_are_compared_by_words_and_numbers(printed: str, same: bool) -> None:
    assert same_text("b = 1.0\n", printed) == same


def test_the_page_of_what_does_not_go_together_is_that_of_the_code() -> None:
    from docs import options

    assert options.unexplained() == set()
    assert options.PAGE.read_text(encoding="utf-8") == options.page(), "run: python -m docs.options"


def test_an_option_without_words_is_seen() -> None:
    from docs import options

    from dpgram.publishing.compatibility import Clash

    assert options.unexplained([Clash("by", "something new", "why", "remedy")]) == {"something new"}


def test_what_is_said_of_versions_and_time_is_so() -> None:
    """Every list of holes says which versions have them; `make assurance` takes no longer than it says."""
    told = "Where an entry names no versions, every earlier version has to be taken as affected."
    changes = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8").split("### Security\n")[1:]
    assert changes
    assert all(part.startswith(f"{told}\n") for part in changes)
    assert "under an hour on 2 cores" in (PROJECT / "Makefile").read_text(encoding="utf-8")
    took = re.search(r"(\d+) cores, ([\d.]+) minutes", (PROJECT / "docs" / "assurance.md").read_text("utf-8"))
    assert took is not None
    assert int(took[1]) > 2 or float(took[2]) < 60.0


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
