"""The proofs: every statement has an anchor, code that names it, a digest of that code, and a test."""

from __future__ import annotations

from assurance.part import Finding, Part
from assurance.proof_pages import Row, all_references, out_of_step, pages, references, test_exists
from dpgram.mechanisms import MECHANISMS


def examine() -> Part:
    every = pages()
    rows = [(page, row) for page in every for row in page.rows]
    statements = {(page.name, anchor) for page in every for anchor in page.statements}
    bare = [line for page in every for line in page.without_anchor]
    used = {(page.name, row.anchor) for page, row in rows}
    cited = sum(_cites(row) for _, row in rows)
    tests = {test for _, row in rows for test in row.tests}
    stale = out_of_step()
    dangling = [(page, anchor) for _, page, anchor in all_references() if (page, anchor) not in statements]
    covered = [
        name
        for name, mechanism in MECHANISMS.items()
        if references(f"{mechanism.__module__}.{mechanism.__name__}")
    ]
    return Part(
        title="Proofs",
        how="Reads every page of proofs/ and the sources it speaks of; nothing is run. The numeric tests "
        "named there run with the other tests.",
        findings=(
            Finding(
                what="statements with an anchor, and claims, lemmas or theorems without one",
                figure=f"{len(statements)} on {len(every)} pages; {len(bare)} without",
                holds=not bare and len(statements) > 0,
            ),
            Finding(
                what="statements that code rests on, by name in its docstring",
                figure=f"{len(used)} of {len(statements)}; {cited} of {len(rows)} references found",
                holds=used == statements and cited == len(rows) and not dangling,
            ),
            Finding(
                what="functions and classes whose digest is that of the page",
                figure=f"{len({row.code for _, row in rows})} watched, {len(stale)} out of step",
                holds=not stale,
            ),
            Finding(
                what="numeric tests named by the pages",
                figure=f"{len(tests)}, {sum(not test_exists(test) for test in tests)} missing",
                holds=all(test_exists(test) for test in tests),
            ),
            Finding(
                what="mechanisms that name their proof",
                figure=f"{len(covered)} of {len(MECHANISMS)}",
                holds=len(covered) == len(MECHANISMS),
            ),
        ),
    )


def _cites(row: Row) -> bool:
    try:
        return row.anchor in references(row.code)
    except LookupError:
        return False
