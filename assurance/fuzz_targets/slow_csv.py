"""CSV once more, a character at a time: what `dpgram.sources.delimited` promises, written without its tools.

A record ends at a line feed outside quotes. A cell that begins with a quote ends at the next quote that is
not doubled; any other quote makes the file unreadable. One carriage return at the end of a cell without
quotes is not part of it; after a closing quote it must end the line. A number is a decimal number, blanks
before it allowed; what else stands in a column of numbers is unreadable, which an infinite number says.
"""

from __future__ import annotations

import math
import re
from typing import Final

MARK: Final = b"\xef\xbb\xbf"
NUMBER: Final = re.compile(
    r"[ \t]*([+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan))", re.IGNORECASE
)


class Unreadable(Exception):
    """A quote that neither opens nor closes a cell, or no end of it."""


def records(raw: bytes, separator: bytes = b",") -> list[list[str | None]]:
    """The records, cell by cell; None is a cell with nothing in it, not even quotes."""
    text = raw.removeprefix(MARK)
    found: list[list[str | None]] = []
    row: list[str | None] = []
    at, size = 0, len(text)
    while at < size:
        cell, at = _quoted(text, at, separator) if text[at : at + 1] == b'"' else _bare(text, at, separator)
        row.append(cell)
        if text[at : at + 1] == separator:
            at += 1
            if at < size:
                continue
            row.append(None)
        else:
            at += 2 if text[at : at + 2] == b"\r\n" else 1
        found.append(row)
        row = []
    return found


def _quoted(text: bytes, at: int, separator: bytes) -> tuple[str | None, int]:
    held, at = bytearray(), at + 1
    while True:
        end = text.find(b'"', at)
        if end < 0:
            raise Unreadable
        held += text[at:end]
        following = text[end + 1 : end + 2]
        if following == b'"':
            held += b'"'
            at = end + 2
            continue
        if following not in (b"", b"\n", b"\r", separator):
            raise Unreadable
        if following == b"\r" and text[end + 2 : end + 3] not in (b"", b"\n"):
            raise Unreadable
        return held.decode("utf-8", "replace"), end + 1


def _bare(text: bytes, at: int, separator: bytes) -> tuple[str | None, int]:
    end = at
    while end < len(text) and text[end : end + 1] not in (separator, b"\n"):
        if text[end : end + 1] == b'"':
            raise Unreadable
        end += 1
    cell = text[at:end].removesuffix(b"\r")
    return cell.decode("utf-8", "replace") or None, end


def number(cell: str | None) -> float | None:
    """The number in a cell; None where nothing stands there, infinite where something else does."""
    if cell is None or not cell.strip():
        return None
    found = NUMBER.fullmatch(cell)
    return math.inf if found is None else float(found.group(1))
