"""Links inside the documentation lead somewhere: to a file that exists, and to a heading it has. Offline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from assurance.page import anchor

PROJECT = Path(__file__).resolve().parents[1]
DOCS = PROJECT / "docs"
FENCE = re.compile(r"^(```|:::).*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\[(?P<words>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\)")
DOC = re.compile(r"\{doc\}`(?:[^`<]*<)?(?P<target>[^`<>]+?)>?`")
HEADING = re.compile(r"^#{1,3} (?P<title>.+?)\s*$", re.MULTILINE)
LABEL = re.compile(r"^\((?P<name>[\w-]+)\)=$", re.MULTILINE)
MIRRORED = {"proofs": PROJECT / "proofs", "results": PROJECT / "benchmarks" / "results"}
"""docs/generated is made at build time from these folders (docs/conf.py)."""
REGISTRIES = re.compile(r"pypi\.|npmjs\.|crates\.io|anaconda\.org")


def pages() -> list[Path]:
    found = [
        PROJECT / "README.md",
        PROJECT / "CHANGELOG.md",
        *DOCS.rglob("*.md"),
        *PROJECT.glob("proofs/*.md"),
    ]
    return sorted(p for p in found if not {"_build", "generated"} & set(p.relative_to(PROJECT).parts))


def targets(page: Path) -> Iterator[str]:
    """Every target of a link or of a `doc` role on a page, code left out."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    yield from (link["target"] for link in DOC.finditer(text))
    yield from (link["target"] for link in LINK.finditer(CODE.sub("code", text)))


def kept(path: Path) -> Path:
    """Where a file of docs/generated comes from; any other stays what it is."""
    try:
        first, *rest = path.resolve().relative_to(DOCS / "generated").parts
    except ValueError:
        return path
    return MIRRORED[first].joinpath(*rest) if first in MIRRORED else PROJECT / "CHANGELOG.md"


def places(file: Path) -> set[str]:
    """The addresses inside a page: its headings and its labels."""
    text = file.read_text(encoding="utf-8")
    headings = {anchor(found["title"]) for found in HEADING.finditer(text)}
    return headings | {found["name"] for found in LABEL.finditer(text)}


def trouble(page: Path, target: str) -> str | None:
    """What is wrong with a link, if anything."""
    if target.startswith("http"):
        return "a package registry" if REGISTRIES.search(target) else None
    place, _, heading = target.partition("#")
    file = kept(page.parent / place) if place else page
    if not file.exists() and file.with_name(file.name + ".md").exists():
        file = file.with_name(file.name + ".md")  # the `doc` role leaves the ending out
    if not file.exists():
        return "no such file"
    if heading and heading not in places(file):
        return f"{file.name} has no such heading"
    return None


@pytest.mark.parametrize("page", pages(), ids=lambda p: str(p.relative_to(PROJECT)))
def test_links_lead_somewhere(page: Path) -> None:
    wrong = [f"{target}: {why}" for target in targets(page) if (why := trouble(page, target))]
    assert not wrong, wrong


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("limits.md", None),
        ("limits.md#known-limits", None),
        ("generated/proofs/gaussian.md", None),
        ("generated/changelog.md", None),
        ("how-to/publish", None),
        ("nowhere.md", "no such file"),
        ("generated/proofs/nowhere.md", "no such file"),
        ("limits.md#nowhere", "limits.md has no such heading"),
        ("https://" + "py" + "pi.example/project", "a package registry"),
    ],
)
def test_wrong_links_are_found(target: str, why: str | None) -> None:
    assert trouble(DOCS / "index.md", target) == why


def test_pictures_of_the_pages_can_be_drawn_again(tmp_path: Path) -> None:
    from docs.figures import FOLDER, PICTURES, main

    main(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(PICTURES)
    text = (DOCS / "explanation" / "for-curators.md").read_text(encoding="utf-8")
    for name in PICTURES:
        assert f"](figures/{name})" in text
        assert 0 < (FOLDER / name).stat().st_size < 150_000
