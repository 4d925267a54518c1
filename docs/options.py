"""Write docs/reference/options.md, the table of what cannot be combined, from the table in the code.

python -m docs.options
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from dpgram.mechanisms import MECHANISMS, Auto
from dpgram.publishing.compatibility import Clash, clash_of, clashes, mechanism_option

PAGE: Final = Path(__file__).parent / "reference" / "options.md"
MEANINGS: Final = {
    "strict": "`Rows(strict=True)`: stop at the first value outside the schema",
    "learnt bounds": "bounds are learnt (`adaptive`)",
    "learnt levels": "levels are learnt (`adaptive`)",
    "adaptive=True": "`adaptive=True`, the default: histograms and a first matrix come before the matrix",
    "learning in one matrix": "bounds or levels are learnt for one matrix, of the columns as declared: with "
    "`Rows(radius=…)`, or mechanisms that keep to one",
    "models": "`models=[…]`: models that are declared beforehand",
    "delta=0": "`delta=0`: a pure guarantee",
    "adjacency='replace-one'": '`adjacency="replace-one"`',
    "by": "`Rows(by=…)`: a release for each group of rows",
    "blocks": "`Schema(blocks=…)`: a release for each block of columns",
    "several rows per unit": "`Rows(unit=…)`, unless `unit_rows=1`: several rows of a person count",
    "units in several groups": "`unit` with `by`, unless `unit_rows=1`: a person may be in several groups",
    "groups under replace-one": '`Rows(by=…)` with `adjacency="replace-one"`',
    "partial sums": "sums of several sites (`Partials`, `--partials`)",
    "a stream": "data that can be read once: an Arrow reader, another library's stream",
}
"""Every option of the table but mechanisms, in words. One that is missing here stops this program."""
MECHANISM_OPTIONS: Final = {
    '"auto"': mechanism_option(Auto()),
    "Auto(semidefinite=True)": mechanism_option(Auto(semidefinite=True)),
    **{f'"{name}"': mechanism_option(kind) for name, kind in MECHANISMS.items()},
}
"""What may be asked for, and the option that it is in the table."""
HEAD: Final = """\
# What does not go together

Every option of `publish` is meaningful by itself, and nearly all go together. Those that do not are in one
table in the code (`publishing/compatibility.py`); every refusal of a pair comes from it, before a row is
read, and costs nothing. This page is made from it by `python -m docs.options`, and a test keeps it current.
Another test tries every pair of options under every mechanism: it works, or it is here.

What is on neither list goes together: learning with groups, blocks, weights, persons, Dask, Spark and
databases, for example.
"""


def page() -> str:
    """The whole page."""
    lines = [HEAD, "## Options with each other", ""]
    lines += ["| this | cannot be combined with | because | instead |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(cells)} |" for cells in _pairs()]
    columns = [name for name in MEANINGS if any(clash_of(own, name) for own in MECHANISM_OPTIONS.values())]
    lines += ["", "## Mechanisms with options", "", "– : does not go together; the reasons are below.", ""]
    lines += [f"| `mechanism=` | {' | '.join(map(_short, columns))} |", "|---|" + "---|" * len(columns)]
    for asked, own in MECHANISM_OPTIONS.items():
        marks = ["–" if clash_of(own, name) else "" for name in columns]
        lines.append(f"| `{asked}` | {' | '.join(marks)} |")
    lines += ["", "| option | because | instead |", "|---|---|---|"]
    lines += [
        f"| {MEANINGS[name]} | {why} | {remedy} |" for name in columns for why, remedy in _reasons(name)
    ]
    return "\n".join(lines) + "\n"


def _pairs() -> Iterator[tuple[str, str, str, str]]:
    """Pairs of options that are no mechanisms; those with one reason and one option in common together."""
    joined: dict[tuple[str, str, str], list[str]] = {}
    for clash in clashes():
        if not _of_mechanism(clash):
            joined.setdefault((clash.one, clash.why, clash.remedy), []).append(clash.other)
    for (one, why, remedy), others in joined.items():
        yield MEANINGS[one], "; ".join(map(_short, others)), why, remedy


def _reasons(option: str) -> Iterator[tuple[str, str]]:
    """Why mechanisms do not go with an option, said once for all of which the same is true."""
    found = [
        (_general(clash.why, asked.strip('"')), _general(clash.remedy, asked.strip('"')))
        for asked, own in MECHANISM_OPTIONS.items()
        if (clash := clash_of(own, option)) is not None
    ]
    yield from dict.fromkeys(found)


def _general(text: str, name: str) -> str:
    """The text with the mechanism's own name left out."""
    for word in (f"of {name} ", f"what {name} "):
        text = text.replace(word, word.replace(name, "this mechanism"))
    return text.replace(name, "this mechanism", 1) if text.startswith(f"{name} ") else text


def _of_mechanism(clash: Clash) -> bool:
    return any(own in (clash.one, clash.other) for own in MECHANISM_OPTIONS.values())


def _short(option: str) -> str:
    """As the head of a column, or where its meaning stands elsewhere on the page."""
    return f"`{option}`" if " " not in option else option


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


def unexplained(table: Iterable[Clash] | None = None) -> set[str]:
    """Options of the table for which this page has no words."""
    known = {*MEANINGS, *MECHANISM_OPTIONS.values()}
    return {option for clash in table or clashes() for option in (clash.one, clash.other)} - known


if __name__ == "__main__":
    main()
