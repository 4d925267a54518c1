"""Write tables of accuracy into the README and docs/explanation/papers.md from the pages of results.

    python -m docs.accuracy

As docs/papers.py does: only what stands between the marks is written, the words around it are ours. A test
holds them against the pages (tests/unit/test_accuracy_figures.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from docs.papers import PAGE, README, put

from dpgram_papers.experiments.claims import table

NO_SETS = frozenset({"ε", "rows", "estimator", "mechanism", "δ", "geometric mean", "lower MSE than AdaSSP"})
"""Columns of the tables of ratios that are no data sets."""
RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"


def rows_below(page: Path, *headings: str) -> Iterator[dict[str, str]]:
    """The first table below lines that begin with these words, in this order; by the names of its columns."""
    lines = iter(page.read_text(encoding="utf-8").splitlines())
    for heading in headings:
        if not any(line.startswith(heading) for line in lines):
            raise LookupError(f"{page.name} has no line that begins with {heading!r}")
    head: list[str] = []
    for line in lines:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1] if line.startswith("|")]
        if not cells:
            if head:
                return
        elif not head:
            head = cells
        elif set(line) - set("|-: "):
            yield dict(zip(head, cells, strict=True))


def one_row(page: Path, *headings: str, **where: str) -> dict[str, str]:
    (found,) = [
        row for row in rows_below(page, *headings) if all(row[key] == value for key, value in where.items())
    ]
    return found


def two_digits(cell: str) -> str:
    """The first number of a cell; what is below zero is told as such."""
    (number, *_) = re.findall(r"-?\d+\.\d+", cell)
    rounded = Decimal(number).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return "below 0" if rounded < 0 else str(rounded)


def sets_ahead(row: dict[str, str]) -> tuple[int, int]:
    """On how many sets the ratio is below 1, and how many there are."""
    ratios = [float(cell) for name, cell in row.items() if name not in NO_SETS]
    return sum(ratio < 1.0 for ratio in ratios), len(ratios)


def kept() -> list[str]:
    """Of the R² of least squares, on tables that chose nothing."""
    page, epsilons = RESULTS / "adaptive.md", ("0.1", "0.3", "1", "3")
    forms = {
        "adaptive release, the default": "`adaptive=True`",
        "one plain matrix (`adaptive=False`)": "`adaptive=False`",
    }
    rows = [
        (
            name,
            *(two_digits(one_row(page, "Share of the R²", form=form, ε=each)["mean"]) for each in epsilons),
        )
        for name, form in forms.items()
    ]
    return table(("", *(f"ε = {each}" for each in epsilons)), rows)


def beside_adassp() -> list[str]:
    """Excess test error over that of published AdaSSP, held-out sets first."""
    page, epsilons = RESULTS / "accuracy.md", ("0.1", "1")
    default = {"rows": "the default, adaptive"}
    plain = {"estimator": "noise-aware (the default)"}
    wanted = (
        ("**held out**, six sets: the default", ("## 2c.", "### Held out"), default),
        ("**held out**, the same: one plain matrix", ("### Held out: Wang's protocol",), plain),
        ("tuned, eight sets: the default", ("## 2c.", "### Tuned"), default),
        ("tuned, the same: one plain matrix", ("## 3.",), {"mechanism": "auto", "δ": "1e-06"}),
        ("tuned, the same: one plain matrix, δ = 0", ("## 3.",), {"mechanism": "auto", "δ": "0"}),
    )
    rows = []
    for name, headings, where in wanted:
        found = [one_row(page, *headings, ε=each, **where) for each in epsilons]
        (ahead, count), (ahead_later, _) = map(sets_ahead, found)
        figures = (two_digits(row["geometric mean"]) for row in found)
        rows.append((name, *figures, f"{ahead}; {ahead_later} of {count}"))
    return table(("", "ε = 0.1", "ε = 1", "sets with less error than AdaSSP"), rows)


def default_in_the_papers() -> list[str]:
    """The default where the papers' tables have one plain matrix, and by name where it is behind."""
    page = RESULTS / "papers-default.md"
    parts = {
        "Wang, (ε, 10⁻⁶), one row added or removed": "## Wang's protocol",
        "Sheffet 1–4, (ε, e⁻⁹), one row replaced": "## Sheffet, figures 1–4",
    }
    clip, default = "one plain matrix, the paper's clip", "the default, bounds of columns"
    beside, above = "the default over the paper's", "over the plain matrix with the clip"
    found = [(promise, row) for promise, heading in parts.items() for row in rows_below(page, heading)]
    shown = ("its error", clip, default, beside, above)
    lines = table(
        ("both sides promise", "setting", "best of the paper", *shown),
        [
            (promise, row["setting"], row["best of the paper"], *(row[key] for key in shown))
            for promise, row in found
        ],
    )
    for rival, key in (("the paper's method", beside), ("one plain matrix with the paper's clip", above)):
        behind = [f"{row['setting']} ({row[key]} times)" for _, row in found if float(row[key]) > 1.0]
        lines += ["", f"The default is behind {rival} in {len(behind)} of {len(found)}: {'; '.join(behind)}."]
    return lines


TABLES = {
    "kept of least squares": (README, kept),
    "beside AdaSSP": (README, beside_adassp),
    "the default": (PAGE, default_in_the_papers),
}


def main() -> None:
    for name, (page, made) in TABLES.items():
        put(page, name, made())


if __name__ == "__main__":
    main()
