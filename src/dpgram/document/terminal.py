"""Text for a terminal that came out of a file: it must not be able to steer the terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` with every control character spelled out; line ends stay."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
