"""Figures of accuracy in the README and the page of the papers are those of the pages of results."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs import accuracy
from docs.papers import README


@pytest.mark.parametrize("name", accuracy.TABLES)
def test_tables_have_what_the_pages_of_results_say(name: str) -> None:
    page, made = accuracy.TABLES[name]
    (found,) = page.read_text(encoding="utf-8").split(f"<!-- {name} -->\n")[1:]
    told = found.split(f"<!-- end of {name} -->")[0].strip().splitlines()
    assert told == made(), "run python -m docs.accuracy"


@pytest.mark.parametrize("epsilon", ["0.1", "1"])
def test_the_default_beside_adassp_is_the_same_on_both_pages(epsilon: str) -> None:
    default = {"rows": "the default, adaptive"}
    ratios = accuracy.one_row(accuracy.RESULTS / "accuracy.md", "## 2c.", "### Tuned", ε=epsilon, **default)
    for name, cell in ratios.items():
        if name not in accuracy.NO_SETS:
            where = {"setting": f"{name}, ε = {epsilon}"}
            row = accuracy.one_row(accuracy.RESULTS / "papers-default.md", "## Wang's protocol", **where)
            assert abs(float(row["the default over the paper's"]) - float(cell)) < 0.0101


def test_where_the_default_loses_is_told_in_words() -> None:
    page, where = accuracy.RESULTS / "accuracy.md", {"rows": "the default, adaptive"}
    later = accuracy.one_row(page, "## 2c.", "### Held out", ε="1", **where)
    behind = {name: f"{float(later[name]):.1f} times" for name in ("breast-cancer", "digits")}
    assert behind == {"breast-cancer": "2.7 times", "digits": "1.4 times"}
    small = accuracy.one_row(page, "## 2c.", "### Held out", ε="0.1", **where)
    lost = [float(cell) for name, cell in small.items() if name not in accuracy.NO_SETS and float(cell) > 1.0]
    assert (len(lost), f"{min(lost):.2f}", f"{max(lost):.2f}") == (4, "1.03", "1.18")
    text = " ".join(README.read_text(encoding="utf-8").split())
    for told in (*behind.values(), "four of the six sets are 3 to 18% behind"):
        assert told in text


def test_costs_of_mechanisms_are_those_of_the_page_of_costs() -> None:
    """Calibration and draw together, to two digits or a tenth of a second."""
    told = accuracy.PAGE.parent.parent / "reference" / "mechanisms.md"
    measured = {row["mechanism"]: row for row in accuracy.rows_below(accuracy.RESULTS / "costs.md", "## add")}
    shown = {row["name"]: row["one draw, d = 100 / 500"] for row in accuracy.rows_below(told, "# Mechanisms")}
    assert shown.keys() == measured.keys()
    for name, costs in shown.items():
        for columns, cost in zip(("100", "500"), costs.split(" / "), strict=True):
            page = measured[name][f"d = {columns}"]
            if page.startswith("over"):
                assert cost == page
            else:
                seconds = sum(map(float, page.split(" s,")[0].split(" + ")))
                assert float(cost.removesuffix(" s")) == pytest.approx(seconds, rel=0.05, abs=0.05), name


def test_rows_are_found_by_headings_and_cells(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A\n\n| ε | mean |\n|---|---|\n| 1 | 9.1 |\n\n## B\n\n### C\n\nwords of |x| and |y|\n\n"
        "| ε | mean |\n|---|---|\n| 1 | **0.416** ± 0.002 |\n| 3 | -0.2 |\n\n"
        "| ε | mean |\n|---|---|\n| 1 | 7.1 |\n"
    )
    found = accuracy.one_row(page, "## B", "### C", ε="1")
    assert found == {"ε": "1", "mean": "**0.416** ± 0.002"}
    assert accuracy.two_digits(found["mean"]) == "0.42"
    assert accuracy.two_digits(accuracy.one_row(page, "### C", ε="3")["mean"]) == "below 0"
    assert accuracy.two_digits("0.975 ± 0.1") == "0.98"
    assert accuracy.sets_ahead(
        {"ε": "1", "rows": "r", "a": "0.9", "b": "1.000", "geometric mean": "0.9"}
    ) == (1, 2)
    with pytest.raises(LookupError, match="'# A'"):
        accuracy.one_row(page, "## B", "# A", ε="1")
    with pytest.raises(ValueError, match="unpack"):
        accuracy.one_row(page, "## B", ε="2")
