"""Whether every quote of a CSV file opens a cell, closes one or is doubled.

A cell that begins with a quote runs to the next single quote, over the ends of lines. In a file where quotes
inside cells are not doubled, one record can so swallow its neighbours, and the promise that one row changes
one row is void. Parsers mend or skip such places silently; here the file is refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from dpgram.errors import SourceError
from dpgram.schema.reading import FileLayout
from dpgram.sources.text_bytes import BLOCK, BYTE_ORDER_MARK, open_bytes

QUOTE = b'"'
REMEDY = 'Write it again with a program that doubles each " inside a cell, or as Parquet.'


def check_quotes(path: Path, separator: str, layout: FileLayout) -> None:
    """Refuse a file with a quote that neither opens nor closes a cell nor is doubled, or that stays open.

    Counting from 0, a quote of even number opens a cell or is the second of a doubled pair, so it stands
    after a separator, the end of a line or a quote; one of odd number closes a cell or is the first of a
    pair, so one of these follows it. The two conditions together with an even total are also sufficient.
    """
    before = _allowed_bytes(separator, "\n")
    after = _allowed_bytes(separator, "\r\n")
    inside = 0  # the number of quotes so far, modulo 2
    with open_bytes(path, layout) as file:
        for start, last, block, following in _windows(file):
            count = block.count(QUOTE)
            if count:
                window = np.frombuffer(last + block + following, np.uint8)
                at = 1 + np.flatnonzero(window[1 : 1 + len(block)] == ord(QUOTE))
                opening, closing = at[inside::2], at[1 - inside :: 2]
                # Parsers disagree about a carriage return that ends no line.
                lone = (window[closing + 1] == ord("\r")) & (window[closing + 2] != ord("\n"))
                stray = np.concatenate(
                    [opening[~before[window[opening - 1]]], closing[~after[window[closing + 1]] | lone]]
                )
                if stray.size:
                    raise _stray(path, layout, start + int(stray.min()) - 1)
                inside ^= count & 1
    if inside:
        raise SourceError(
            f"the file {str(path)!r} ends inside a quoted cell: it is cut short, or a quote is not closed",
            remedy=REMEDY,
        )


def _allowed_bytes(*characters: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    table = np.zeros(256, np.bool_)
    table[list("".join(characters).encode() + QUOTE)] = True
    return table


def _windows(file: IO[bytes]) -> Iterator[tuple[int, bytes, bytes, bytes]]:
    """Each block with its place, the byte before it and the two after it; line ends beyond the file."""
    last = b"\n"
    first = file.read(len(BYTE_ORDER_MARK))
    start = len(first) if first == BYTE_ORDER_MARK else 0
    block = first[start:] + file.read(BLOCK)
    while block:
        following = file.read(BLOCK)
        yield start, last, block, (following[:2] + b"\n\n")[:2]
        start += len(block)
        last, block = block[-1:], following


def _stray(path: Path, layout: FileLayout, place: int) -> SourceError:
    with open_bytes(path, layout) as file:
        blocks = iter(lambda: file.read(BLOCK), b"")
        line = 1 + sum(block.count(b"\n") for block in itertools.islice(blocks, place // BLOCK))
        line += next(blocks, b"")[: place % BLOCK].count(b"\n")
    return SourceError(
        f"a quote in line {line} of {str(path)!r} neither opens nor closes a cell nor is doubled",
        limit="quotes as every CSV writer sets them, so that one record cannot alter how others are read",
        remedy=REMEDY,
    )
