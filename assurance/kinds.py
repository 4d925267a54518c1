"""The search for neighbours that differ by too much, over column kinds: random schemas, rows at their ends.

Each schema has two to five columns of all kinds, derived ones included, with weights, a clip, a rule for
missing cells, survey weights and rows or units as they come; some are cut into blocks, which are encoded each
by itself, and some tables into two groups, among which a person's rows are spread. Cells are the ends and the
middle of what a column may be, what lies beyond, and nothing at all. Tables are added up as groups of one
pass, as in `neighbours`. All seeds are fixed.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from assurance.isolated import PROJECT
from assurance.neighbours import WORKERS, Cells, Found, Relation, finding, measure, search_everywhere
from assurance.page import table
from assurance.part import Finding, Part
from dpgram.document.fields import SurveyWeight, UnitRule
from dpgram.engines.local import LocalEngine
from dpgram.engines.passes import gram_pass
from dpgram.rows.encoder import Encoder
from dpgram.schema import Schema
from dpgram.schema.columns import (
    Numeric,
    SourceColumn,
    boolean,
    categorical,
    legendre,
    numeric,
    ordinal,
    product,
)
from dpgram.sums.exact_gram import ExactGram

RESULTS: Final = PROJECT / "benchmarks" / "results" / "neighbours.md"
BATCH: Final = 400
"""Pairs of one schema, which are added up together."""
PLACES: Final = (-1.0, -1.0, 1.0, 1.0, 0.0, 0.25, -0.7)
BEYOND: Final = (float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 5e-324)
"""Numbers that no schema allows."""


def random_schema(dice: random.Random) -> Schema:
    """Source columns, and products and polynomials of some of them."""
    weights = (1.0, 1.0, 0.3, 2.5)
    made: list[Any] = [
        numeric("n0", -1.0, 1.0, weight=dice.choice(weights)),
        numeric("n1", 1e-3, 1e6, weight=dice.choice(weights)),
        numeric("n2", 0.0, 1.0),
        boolean("b0", weight=dice.choice(weights)),
        boolean("b1"),
        categorical("c0", ["u", "v", "w"], other=dice.choice((None, "rest")), weight=dice.choice(weights)),
        ordinal("o0", ["low", "middle", "high"], weight=dice.choice(weights)),
    ]
    chosen = dice.sample(made, dice.randint(2, 4))
    factors = [column.name for column in chosen if column.name[0] in "nb"]
    plain = [column.name for column in chosen if isinstance(column, Numeric)]
    if plain and dice.random() < 0.4:
        chosen.append(legendre(plain[0], dice.choice((2, 3))))
    if len(factors) > 1 and dice.random() < 0.4:
        chosen.append(product(*dice.sample(factors, 2)))
    return Schema(*chosen, constant=dice.random() < 0.8)


def cells(column: SourceColumn, count: int, dice: random.Random) -> pa.Array:
    """At the ends mostly; one in ten is missing, or beyond what a number may be."""
    found = column.cells_at(np.array(dice.choices(PLACES, k=count))).to_pylist()
    for place in range(count):
        if dice.random() < 0.1:
            beyond = isinstance(column, Numeric) and dice.random() < 0.7
            found[place] = dice.choice(BEYOND) if beyond else None
    return pa.array(found, column.cells_at(np.zeros(1)).type)


def _tables(
    schema: Schema, relation: Relation, rule: UnitRule | None, groups: Sequence[str], dice: random.Random
) -> tuple[pa.Table, pa.Table]:
    """Both sides of a batch: table k has some rows of others, and those of the row or person that changes.

    Each row is in one of the groups, as in the other side.
    """
    sides: list[dict[str, list[Any]]] = [{"which": [], "id": [], "place": []} for _ in range(2)]
    total = 0
    for number in range(BATCH):
        others, own = dice.randint(0, 2), 1 if rule is None else dice.choice((1, 2, 5))
        rows = [(f"{number} other {k}", total + k) for k in range(others)]
        one = [(f"{number} own", total + others + k) for k in range(own)]
        second = [(f"{number} own", total + others + own + k) for k in range(own)]
        total += others + 2 * own
        for side, changed in zip(sides, (one, second if relation == "replace-one" else []), strict=True):
            for who, place in (*rows, *changed):
                side["which"].append(str(number))
                side["id"].append(who)
                side["place"].append(place)
    among = dice.choices(groups, k=total)
    for side in sides:
        side["which"] = [
            table + among[place] for table, place in zip(side["which"], side["place"], strict=True)
        ]
    columns = {column.name: cells(column, total, dice) for column in schema.columns_read}
    columns["w"] = pa.array(dice.choices((2.0, 2.0, 0.5, 9.0, -1.0), k=total))
    whole = pa.table(columns)
    made = [
        whole.take(side["place"])
        .append_column("which", pa.array(side["which"]))
        .append_column("id", pa.array(side["id"]))
        for side in sides
    ]
    return made[0], made[1]


def _sums(
    table: pa.Table, encoder: Encoder, rule: UnitRule | None, groups: Sequence[str], *, weighted: bool
) -> Sequence[Cells]:
    """One matrix for each table: those of its groups along the diagonal."""
    plan = gram_pass(
        encoder,
        unit=None if rule is None else "id",
        rule=rule,
        by=categorical("which", [f"{number}{group}" for number in range(BATCH) for group in groups]),
        weight=SurveyWeight(column="w", at_most=2.0) if weighted else None,
    )
    found = LocalEngine(threads=1).add_up(table, plan, progress=False)
    every = [one.cells for one in found if isinstance(one, ExactGram)]
    return [_along(every[start : start + len(groups)]) for start in range(0, len(every), len(groups))]


def _along(matrices: Sequence[Cells]) -> Cells:
    """So that norms of the whole are those over all groups: |Δ|_F² and |Δ|_* add up."""
    width = len(matrices[0])
    whole: Cells = np.zeros((len(matrices) * width,) * 2, np.int64)
    for place, one in enumerate(matrices):
        whole[place * width : (place + 1) * width, place * width : (place + 1) * width] = one
    return whole


def search_kinds(pairs: int, *, seed: int = 1) -> Found:
    """So many pairs, the same ones each time; in blocks every block is compared with the bound of its own."""
    dice, found = random.Random(f"{seed} kinds"), Found()
    rules = (None, None, UnitRule(counts="units", rows_at_most=1024), UnitRule(counts="rows", rows_at_most=3))
    while found.pairs < pairs:
        schema = random_schema(dice)
        relation: Relation = dice.choice(("add-remove", "replace-one"))
        rule, clip = dice.choice(rules), dice.choice((None, None, 0.7))
        missing: Literal["drop", "midpoint"] = "drop" if dice.random() < 0.5 else "midpoint"
        weighted = dice.random() < 0.25
        names = [column.name for column in schema.columns]
        apart = len(names) == len(schema.columns_read) and dice.random() < 0.3
        parts = schema.with_blocks([names[:1], names[1:]]).in_blocks() if apart else (schema,)
        groups = dice.choice((("",), ("",), (" a", " b")))
        sides = _tables(schema, relation, rule, groups, dice)
        what = f"{names}, {relation}, {rule}, {len(groups)} groups, clip {clip}, {missing}"
        for part in parts:
            encoder = Encoder(part, clip=clip, missing=missing)
            sums = [_sums(side, encoder, rule, groups, weighted=weighted) for side in sides]
            for one, other in zip(*sums, strict=True):
                measure(found, relation, one, other, what)
    return found


PAIRS: Final = 100_000


def examine() -> Part:
    """The short form of the search."""
    found = search_kinds(PAIRS)
    return Part(
        title="Neighbours of every column kind",
        how="Random schemas of all column kinds, derived columns, weights, clips, missing cells, units, "
        "survey weights, groups and blocks; cells at the ends of their columns, beyond them, and missing. "
        "The largest difference of the exact sums, as a part of the claimed bound.",
        findings=(_finding(found),),
    )


def _finding(found: Found) -> Finding:
    figure = f"{found.pairs:,} pairs: Frobenius {found.frobenius:.4f}, nuclear {found.nuclear:.4f}"
    if found.beyond:
        figure += f"; {found.beyond:,} beyond the bound, the first: {found.worst}"
    near = min(found.frobenius, found.nuclear) > 0.99
    return Finding(what="add-remove and replace-one", figure=figure, holds=found.beyond == 0 and near)


def main() -> None:
    """The long form from the command line: half of the pairs in every form of table, half of every kind."""
    parser = argparse.ArgumentParser(
        description="Search so many pairs of neighbours; writes a page of results."
    )
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=2)
    given = parser.parse_args()
    forms = search_everywhere(given.pairs // 2, seed=given.seed)
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        share = given.pairs // 2 // WORKERS
        jobs = [pool.submit(search_kinds, share, seed=given.seed + k) for k in range(WORKERS)]
        findings = [finding(name, one) for name, one in forms.items()]
        findings += [
            replace(_finding(job.result()), what=f"every column kind, {k} of {WORKERS}")
            for k, job in enumerate(jobs, start=1)
        ]
    every = sum(one.pairs for one in forms.values()) + sum(job.result().pairs for job in jobs)
    whole = Part(
        title="Neighbours, long form",
        how=f"Made by `make neighbours`: {every:,} pairs of tables that differ in one row or in all rows of "
        "one person, added, removed or replaced. Ids that are easily confused in every form of table that "
        "carries them; random schemas of all column kinds, derived columns, weights, clips, missing cells, "
        "units, survey weights, groups and blocks. The largest difference of the exact sums, as a part of "
        "the claimed bound.",
        findings=tuple(findings),
    )
    RESULTS.write_text(f"# {whole.title}\n\n{whole.how}\n\n{table(whole)}\n", encoding="utf-8")
    print(table(whole))
    sys.exit(0 if whole.holds else 1)


if __name__ == "__main__":
    main()
