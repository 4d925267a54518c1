"""The tables of the reproduced papers are written between marks; the words around them stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs import papers

from dpgram_papers.experiments.reproduce import PAPERS

TABLES = ("surpassed", "where we lose", "each of Sheffet's", "counts")
NAMES = (*TABLES, *(f"claims of {paper}" for paper in PAPERS))


@pytest.mark.parametrize(("page", "names"), [(papers.PAGE, NAMES), (papers.README, ("surpassed",))])
def test_pages_have_one_place_for_each_table(page: Path, names: tuple[str, ...]) -> None:
    text = page.read_text(encoding="utf-8")
    for name in names:
        assert text.count(f"<!-- {name} -->") == text.count(f"<!-- end of {name} -->") == 1


def test_a_table_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n\n<!-- a -->\n\nold | \\1\n\n<!-- end of a -->\n\nafter\n")
    papers.put(page, "a", ["| new | \\g<0> |"])
    expected = "before\n\n<!-- a -->\n\n| new | \\g<0> |\n\n<!-- end of a -->\n\nafter\n"
    assert page.read_text() == expected
    with pytest.raises(SystemExit, match="0 places for b"):
        papers.put(page, "b", [])
    assert page.read_text() == expected


def test_every_figure_that_can_be_lost_has_a_reason() -> None:
    """By the figures of the committed table."""
    text = papers.PAGE.read_text(encoding="utf-8")
    table = text.split("<!-- surpassed -->")[1].split("<!-- end of surpassed -->")[0]
    figures = {line.split("|")[1].strip() for line in table.strip().splitlines()[2:]}
    assert figures <= set(papers.WHY)
    assert len(figures) >= 13
