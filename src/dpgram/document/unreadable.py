"""Why the bytes of a file are no release or series, in words for whoever was sent it."""

from __future__ import annotations

import codecs
import json
from typing import Final

from dpgram.errors import ReleaseError

DAMAGED: Final = "Ask the curator for the original file"


def unreadable(raw: bytes, problem: ValueError, *, kind: str, form: str) -> ReleaseError:
    """Of a whole file, or of its first line; `form` is what a `kind` of file begins with."""
    text = raw.strip()
    if not text:
        return ReleaseError(f"this is not a {kind}: the file is empty", remedy=DAMAGED)
    if raw.startswith(b"\x1f\x8b"):
        return ReleaseError(f"this is not a {kind}: the file is packed (gzip)", remedy="Unpack it first")
    if raw.startswith(codecs.BOM_UTF8):
        return ReleaseError(
            f"this is not a {kind} as it was written: a program has put a byte-order mark in front",
            remedy=f"Save it as UTF-8 without one. {DAMAGED} otherwise",
        )
    if not text.startswith(b"{"):
        return ReleaseError(f"this is not a {kind}", limit=form, remedy=DAMAGED)
    if not text.endswith(b"}"):
        return ReleaseError(f"this {kind} seems to be cut short", got=f"{len(raw):,} bytes", remedy=DAMAGED)
    return ReleaseError(f"this is not a {kind}: it is not clean JSON", got=mistake(problem), remedy=DAMAGED)


def mistake(problem: ValueError) -> str:
    """What is wrong with a JSON text, and where."""
    if isinstance(problem, UnicodeDecodeError):
        return f"byte {problem.start + 1:,} is not UTF-8"
    if isinstance(problem, UnicodeEncodeError):
        return "a text that no UTF-8 can hold"
    if isinstance(problem, json.JSONDecodeError):
        return f"a mistake in line {problem.lineno:,}, at character {problem.colno:,}"
    text = str(problem)
    return text if len(text) <= 200 else text[:200] + "…"
