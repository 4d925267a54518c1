"""The pages of proofs/ and the code keep up with each other.

When `test_the_code_is_that_which_the_page_is_about` fails: read the named page against the changed code, mend
what no longer holds, then `python -m assurance.proof_pages PAGE`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest
from assurance import proof_pages
from assurance.proof_pages import HEADING, Page, digest, digest_of, pages, references

from dpgram.mechanisms import MECHANISMS

PAGES = pages()
ROWS = [(page, row) for page in PAGES for row in page.rows]
by_name = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def test_there_are_pages_and_statements() -> None:
    assert len(PAGES) >= 20
    assert sum(len(page.statements) for page in PAGES) >= 90


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_has_a_page_with_its_claim(name: str) -> None:
    mechanism = MECHANISMS[name]
    cited = references(f"{mechanism.__module__}.{mechanism.__name__}")
    assert cited, f"the docstring of {mechanism.__name__} names no statement of proofs/"
    assert cited <= {row.anchor for _, row in ROWS}


@by_name
def test_every_statement_has_an_anchor_and_stands_in_the_table(page: Page) -> None:
    assert page.without_anchor == []
    assert set(page.statements) == {row.anchor for row in page.rows}
    assert all(anchor.startswith(f"{page.name}-") for anchor in page.statements)
    table = page.text.split(HEADING, 1)[1].strip().splitlines()
    assert len(table) - 2 == len(page.rows), "a line of the table cannot be read"


def test_anchors_are_unique() -> None:
    found = Counter(
        name for page in PAGES for name in re.findall(r"^\(([a-z0-9-]+)\)=$", page.text, re.MULTILINE)
    )
    assert [name for name, count in found.items() if count > 1] == []


@by_name
def test_the_code_names_the_statement(page: Page) -> None:
    for row in page.rows:
        assert row.anchor in references(row.code), (
            f"the docstring of {row.code} does not name proofs/{page.name}.md#{row.anchor}"
        )


@by_name
def test_the_tests_exist(page: Page) -> None:
    for row in page.rows:
        assert row.tests
        for test in row.tests:
            assert proof_pages.test_exists(test), f"{page.name}: there is no {test}"


@by_name
def test_the_code_is_that_which_the_page_is_about(page: Page) -> None:
    changed = [row.code for row in page.rows if digest(row.code) != row.digest]
    assert changed == [], (
        f"read proofs/{page.name}.md against {', '.join(changed)}; when it holds again: "
        f"python -m assurance.proof_pages {page.name}"
    )


def test_whatever_the_code_names_is_there() -> None:
    anchors = {(page.name, anchor) for page in PAGES for anchor in page.statements}
    for path, page, anchor in proof_pages.all_references():
        assert (page, anchor) in anchors, f"{path.name} names proofs/{page}.md#{anchor}"


class TestDigests:
    """They change with what the code does and with nothing else."""

    CODE = 'def f(x: float) -> float:\n    """Doc."""\n    return 2.0 * x  # why\n'

    @pytest.mark.parametrize(
        "same",
        [
            CODE.replace("Doc.", "Another."),
            CODE.replace('    """Doc."""\n', ""),
            CODE.replace("  # why", ""),
            CODE.replace("2.0 * x", "(2.0 *\n        x)"),
        ],
    )
    def test_not_with_words_or_layout(self, same: str) -> None:
        assert self.of(same) == self.of(self.CODE)

    @pytest.mark.parametrize(
        "other",
        [
            CODE.replace("2.0", "3.0"),
            CODE.replace("2.0", "2"),
            CODE.replace("*", "+"),
            CODE.replace("return", "x = -x\n    return"),
            CODE.replace("def f", "@final\ndef f"),
            CODE.replace("x: float", "x: float = 1.0"),
        ],
    )
    def test_with_the_code(self, other: str) -> None:
        assert self.of(other) != self.of(self.CODE)

    def of(self, code: str) -> str:
        return digest_of(ast.parse(code).body[0])

    def test_writing_a_page_anew_renews_its_own_digests_only(self) -> None:
        page = PAGES[0]
        stale = Page(name=page.name, text=page.text.replace(f"`{page.rows[0].digest}`", "`000000000000`"))
        assert stale.text != page.text
        assert stale.with_digests() == page.text


def test_a_statement_without_an_anchor_is_seen() -> None:
    assert Page(name="x", text="Words.\n\n**Lemma 3.** All is well.\n").without_anchor
    assert not Page(name="x", text="Words.\n\n(x-lemma)=\n**Lemma 3.** All is well.\n").without_anchor


def test_what_is_missing_is_seen() -> None:
    assert not proof_pages.test_exists("tests/unit/test_gram.py::test_that_never_was")
    assert not proof_pages.test_exists("tests/unit/test_gram.py::TestNone::test_monoid_laws")
    with pytest.raises(LookupError):
        digest("dpgram.sums.exact_gram.never_was")
