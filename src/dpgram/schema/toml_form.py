"""Schemas as TOML for people: how values are written, and a starter to fill in."""

from __future__ import annotations

import errno
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dpgram.errors import DpgramError
from dpgram.files import read_whole
from dpgram.schema.columns import KINDS, SourceColumn

LONGEST_FILE: Final = 1 << 21
"""Bytes of a schema or a job file: 1,500 for each encoded column. The worst of them takes four seconds."""
DEEPEST: Final = 16
"""Brackets within brackets, and parts of a key with dots: `tomllib` takes time in the square of these."""
_TEXT_OR_COMMENT: Final = re.compile(
    r"""
    \"{3} (?: \\ (?: . | \Z ) | [^\\] )*? (?: "{3,5} | \Z )
    | '{3} .*? (?: '{3,5} | \Z )
    | " (?: \\ . | [^"\\\n] )*+ "?
    | ' [^'\n]*+ '?
    | (?P<comment> \# [^\n]*+ )
    """,
    re.VERBOSE | re.DOTALL,
)
"""One that does not end goes to the end of its line or of the file, so that every file is read once."""
_LONG_KEY: Final = re.compile(rf"(?:(?<![\w-])[\w-]++[ \t]*+\.[ \t]*+){{{DEEPEST}}}")
_BRACKET: Final = re.compile(r"[\[\]{}]")

_UNKNOWN_STARTER: Final = (
    "numeric",
    '# low = \n# high = \n# or kind = "categorical" and levels = [], or kind = "boolean"\n',
)
"""For text files: the type would have to come from the values, so a person says what it is."""

_STARTER_HEAD: Final = """\
# A starter schema: names and types only; no value of the data was read.
#
# Fill in every bound and every level from PUBLIC knowledge: a codebook, a law,
# common sense. Bounds or levels looked up in the data would leak it, and no
# guarantee would cover that. Values outside the bounds are clamped; unknown
# levels go to `other`, or count as missing. Delete the columns you do not need:
# each adds noise to all the others.
constant = true
"""


def parse_toml(text: str) -> dict[str, Any]:
    """What a TOML text says; ValueError with one line for one that says nothing, or too much."""
    if len(text) > LONGEST_FILE:
        raise ValueError(f"more than {LONGEST_FILE:,} characters")
    plain = _TEXT_OR_COMMENT.sub(lambda found: "" if found["comment"] else "_", text)
    if _LONG_KEY.search(plain):
        raise ValueError(f"a key has more than {DEEPEST} parts")
    depth = 0
    for bracket in _BRACKET.finditer(plain):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > DEEPEST:
            raise ValueError(f"brackets are nested more than {DEEPEST} deep")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # of int()
        raise ValueError("a whole number has thousands of digits") from None


def read_toml(path: Path, kind: str, error: type[DpgramError], *, remedy: str) -> dict[str, Any]:
    """What the file at `path` says; `remedy` is for one that is not there."""
    try:
        raw = read_whole(path, LONGEST_FILE)
    except OSError as problem:
        got = problem.strerror or type(problem).__name__
        remedy = "Make it shorter" if problem.errno == errno.EFBIG else remedy
        raise error(f"the {kind} file {str(path)!r} cannot be read", got=got, remedy=remedy) from problem
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        what = f"the {kind} file {str(path)!r} cannot be read"
        raise error(what, got="bytes that are not UTF-8", remedy="Save it as UTF-8") from problem
    try:
        return parse_toml(text.replace("\r\n", "\n").replace("\r", "\n"))
    except ValueError as problem:
        in_a_line = isinstance(problem, tomllib.TOMLDecodeError)
        raise error(
            f"the {kind} file {str(path)!r} is not valid TOML: {problem}",
            remedy="Mend that line: texts stand in double quotes, sections in brackets"
            if in_a_line
            else "Take that out: no such file needs it",
        ) from None


def toml_table(form: Mapping[str, object]) -> str:
    """One column."""
    lines = "".join(f"{key} = {toml_value(value)}\n" for key, value in form.items())
    return f"\n[[columns]]\n{lines}"


def toml_value(value: object) -> str:
    """On one line."""
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    # JSON's quoting is TOML's; what no terminal shows is escaped too, so that a printed schema stays whole.
    text = json.dumps(value, ensure_ascii=False)
    return "".join(character if character.isprintable() else _toml_escape(character) for character in text)


def _toml_escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


UNTYPED: Final = ("unknown", "text", "by cell")
"""Types of which a starter schema cannot tell the kind: of objects, text files and workbooks."""


def starter_toml(column_types: Mapping[str, str]) -> str:
    """A TOML schema to fill in, from column names and Arrow type names only."""
    return _STARTER_HEAD + "".join(starter_table(name, type_name) for name, type_name in column_types.items())


def starter_table(name: str, type_name: str) -> str:
    """The part of a starter schema for one column, by its Arrow type."""
    word = re.match(r"[a-z_0-9]*", type_name)
    starter = _UNKNOWN_STARTER if type_name in UNTYPED else _starter(word.group() if word else "")
    if starter is None:
        return f"\n# left out: {toml_value(name)} (type {json.dumps(type_name)} is not supported)\n"
    kind, lines = starter
    return (
        f"\n[[columns]]  # {json.dumps(type_name)} in the data\n"
        f"kind = {toml_value(kind)}\nname = {toml_value(name)}\n{lines}"
    )


def _starter(type_word: str) -> tuple[str, str] | None:
    """The kind to start with for the first word of an Arrow type, and the lines a person must fill in."""
    return next(
        (
            (name, kind.starters[type_word])
            for name, kind in KINDS.items()
            if issubclass(kind, SourceColumn) and type_word in kind.starters
        ),
        None,
    )
