"""Text that came out of a file: it must not be able to steer a terminal, or to make lines of its own."""

from __future__ import annotations

import html
import textwrap
import unicodedata
from collections.abc import Iterable
from typing import Final

JOINERS: Final = "\u200c\u200d"


def printable(text: str) -> str:
    """`text` with every control character spelled out; line ends stay."""
    return "\n".join(map(one_line, text.split("\n")))


def one_line(text: str) -> str:
    """The same with line ends spelled out as well.

    >>> from dpgram.document.terminal import one_line
    >>> one_line("a\\nb\\x1b[2J")
    'a\\\\nb\\\\x1b[2J'
    """
    return text if text.isprintable() else "".join(c if _harmless(c) else ascii(c)[1:-1] for c in text)


def _harmless(character: str) -> bool:
    """Also blanks of any width, and the joiners of Persian, Hindi and others, which Python does not print."""
    return character.isprintable() or character in JOINERS or unicodedata.category(character) == "Zs"


def in_lines(lines: Iterable[str]) -> str:
    """One text of these lines, and of no others: a name within one of them cannot begin a new one."""
    return "\n".join(map(one_line, lines))


def fact(name: str, value: str) -> list[str]:
    """A fact and its name, on lines of 80 columns."""
    head = f"{name}  "
    return textwrap.wrap(one_line(value), 80, initial_indent=head, subsequent_indent=" " * len(head))


def with_notes(lines: Iterable[str], notes: Iterable[str]) -> str:
    """The lines of a table, and below them notes, folded at 80 letters."""
    return in_lines([*lines, "", *(line for note in notes for line in textwrap.wrap(one_line(note), 80))])


def escaped(text: str) -> str:
    """For a page: what HTML would take for its own, and control characters, spelled out."""
    return html.escape(printable(text))
