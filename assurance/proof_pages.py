"""The pages of proofs/: their statements, the code that rests on each, and the tests that cover it.

    python -m assurance.proof_pages               # what is out of step
    python -m assurance.proof_pages gaussian      # this page was read again: write its digests anew

Every statement has an anchor, `(name)=` in the line before it, and every page ends with a table of rows
`statement | code | digest | test`. The digest is of the code without docstrings, comments and layout. When
the code changes, a test fails until somebody has read the page again and named it on the command line above.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, final

PROJECT: Final = Path(__file__).resolve().parents[1]
PROOFS: Final = PROJECT / "proofs"
SOURCES: Final = (PROJECT / "src", PROJECT / "papers" / "src")
"""Of dpgram, and of dpgram-papers."""
HEADING: Final = "## Used and tested"
_ROW: Final = re.compile(
    r"^\| \[(?P<anchor>[a-z0-9-]+)\]\(#(?P=anchor)\) \| `(?P<code>[\w.]+)` \| `(?P<digest>[0-9a-f]*)` "
    r"\| (?P<tests>`[^|]+`) \|$",
    re.MULTILINE,
)
_ANCHOR: Final = re.compile(r"^\((?P<name>[a-z0-9-]+)\)=\n(?P<statement>.+)$", re.MULTILINE)
_NAMED: Final = re.compile(r"^\*\*(?:Claim|Theorem|Lemma|Corollary|Proposition)\b", re.MULTILINE)
_IGNORED: Final = frozenset({"ctx", "type_comment", "kind", "type_params"})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table: a statement, code that rests on it, and the tests that cover both."""

    anchor: str
    code: str
    digest: str
    tests: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of proofs/."""

    name: str
    text: str

    @property
    def path(self) -> Path:
        return PROOFS / f"{self.name}.md"

    @property
    def statements(self) -> dict[str, str]:
        """Anchor → the first line of the statement it stands before."""
        return {found["name"]: found["statement"] for found in _ANCHOR.finditer(self.text)}

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(
            Row(
                anchor=found["anchor"],
                code=found["code"],
                digest=found["digest"],
                tests=tuple(re.findall(r"`([^`]+)`", found["tests"])),
            )
            for found in _ROW.finditer(self.text)
        )

    @property
    def without_anchor(self) -> list[str]:
        """Claims, lemmas and theorems that have none."""
        return [
            self.text[found.start() :].splitlines()[0]
            for found in _NAMED.finditer(self.text)
            if not re.search(r"^\([a-z0-9-]+\)=\n\Z", self.text[: found.start()], re.MULTILINE)
        ]

    def with_digests(self) -> str:
        """The text with the digests of the code as it is."""

        def renewed(found: re.Match[str]) -> str:
            return found[0].replace(f"`{found['digest']}`", f"`{digest(found['code'])}`", 1)

        return _ROW.sub(renewed, self.text)


def pages() -> tuple[Page, ...]:
    """Every page, by name."""
    return tuple(page(path.stem) for path in sorted(PROOFS.glob("*.md")))


def page(name: str) -> Page:
    return Page(name=name, text=(PROOFS / f"{name}.md").read_text(encoding="utf-8"))


def digest(code: str) -> str:
    """Twelve hexadecimal digits that change when what the code does may have changed, and not otherwise."""
    return digest_of(definition(code))


def digest_of(node: ast.AST) -> str:
    return hashlib.sha256(repr(_normal(node)).encode()).hexdigest()[:12]


def definition(code: str) -> ast.FunctionDef | ast.ClassDef:
    """The function or class of that dotted name; LookupError if there is none."""
    module, inner = _split(code)
    node: ast.AST = _parsed(module)
    for name in inner:
        matching = [
            child
            for child in getattr(node, "body", [])
            if isinstance(child, ast.FunctionDef | ast.ClassDef) and child.name == name
        ]
        if not matching:
            raise LookupError(f"{code}: there is no {name}")
        node = matching[-1]
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    return node


def references(code: str) -> set[str]:
    """The anchors that the docstring of the code names, as proofs/PAGE.md#ANCHOR."""
    docstring = ast.get_docstring(definition(code)) or ""
    return set(re.findall(r"proofs/[a-z0-9-]+\.md#([a-z0-9-]+)", docstring))


def all_references() -> Iterator[tuple[Path, str, str]]:
    """Every proofs/PAGE.md#ANCHOR in the sources: the file, the page, the anchor."""
    for path in sorted(path for source in SOURCES for path in source.rglob("*.py")):
        for name, anchor in re.findall(
            r"proofs/([a-z0-9-]+)\.md#([a-z0-9-]+)", path.read_text(encoding="utf-8")
        ):
            yield path, name, anchor


def test_exists(test: str) -> bool:
    """Whether FILE::[CLASS::]FUNCTION is there; a class may have it from a class it inherits in that file."""
    name, *inner = test.split("::")
    if not (PROJECT / name).is_file() or not inner or not inner[-1].startswith("test_"):
        return False
    top = _parsed(PROJECT / name).body
    functions = {node.name for node in top if isinstance(node, ast.FunctionDef)}
    classes = {node.name: node for node in top if isinstance(node, ast.ClassDef)}
    methods = {
        node.name for found in classes.values() for node in found.body if isinstance(node, ast.FunctionDef)
    }
    match inner:
        case [function]:
            return function in functions
        case [owner, method]:
            return owner in classes and method in methods
        case _:
            return False


def _split(code: str) -> tuple[Path, list[str]]:
    parts = code.split(".")
    for length in range(len(parts) - 1, 0, -1):
        for base in (source / Path(*parts[:length]) for source in SOURCES):
            for path in (base.with_suffix(".py"), base / "__init__.py"):
                if path.is_file():
                    return path, parts[length:]
    raise LookupError(f"{code}: there is no such module")


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _normal(node: object) -> object:
    """Names of nodes and what they hold, without docstrings, positions and what versions of Python add."""
    if isinstance(node, list):
        return [_normal(inner) for inner in node]
    if not isinstance(node, ast.AST):
        return node
    held = {
        name: value
        for name, value in ast.iter_fields(node)
        if name not in _IGNORED and value is not None and value != []
    }
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
        held["body"] = node.body[1:]
    return type(node).__name__, [(name, _normal(value)) for name, value in sorted(held.items())]


def out_of_step() -> list[str]:
    """Rows whose code is no longer what it was when the page was last read."""
    found = []
    for each in pages():
        for row in each.rows:
            try:
                now = digest(row.code)
            except LookupError as problem:
                found.append(f"{each.name}: {problem} ({row.anchor})")
                continue
            if now != row.digest:
                found.append(f"{each.name}: {row.code} has changed ({row.anchor}): {row.digest} → {now}")
    return found


def main() -> None:
    for name in sys.argv[1:]:
        read = page(Path(name).stem)
        try:
            read.path.write_text(read.with_digests(), encoding="utf-8")
        except LookupError as problem:
            sys.exit(f"{read.name}: {problem}. Name in its table what the statement rests on now")
    stale = out_of_step()
    print("\n".join(stale) or "every page is in step with its code")
    sys.exit(1 if stale else 0)


if __name__ == "__main__":
    main()
