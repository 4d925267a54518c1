"""What the page of a series needs beside its running total: the lines of the stream, facts of each window.

The page adds up windows and their noises itself, from lines and weights. What follows from noisy counts comes
ready for every window that it offers: the weight that was clipped, levels without rows, cautions in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dpgram.analysis import estimand
from dpgram.analysis.design import most_frequent
from dpgram.analysis.moments import Moments
from dpgram.analysis.trend import repeated_persons
from dpgram.document.document import Document
from dpgram.noise.factor import window_weights

LENGTHS: Final = (1, 2, 3, 4, 6, 12)
"""Of the windows that the page offers, in periods; running totals beside them."""


def offered_windows(count: int) -> list[tuple[int, int]]:
    """The first and last period of each window that the page offers, each once."""
    apart = [
        (last - length + 1, last)
        for length in LENGTHS
        if length <= count
        for last in range(length, count + 1, length)
    ]
    return list(dict.fromkeys([*apart, *((1, last) for last in range(1, count + 1))]))


def trend_facts(
    windows: Sequence[Document], lines: Sequence[Sequence[str]], labels: Sequence[str]
) -> dict[str, object]:
    """Of the windows in `offered_windows`; `lines` are the cells of Y_t."""
    part = windows[0].series
    if part is None:
        raise TypeError("these are not windows of a series")
    texts: dict[str, int] = {}
    total = window_weights(1, len(lines), periods=part.periods, bits=part.bits)
    return {
        "labels": list(labels),
        "lines": [[float(int(cell)) for cell in line] for line in lines],
        "weights": [float(weight) for weight in reversed(total)],
        "lengths": [length for length in LENGTHS if length <= len(lines)],
        "repeated": {kind: repeated_persons(part, kind) for kind in estimand.KINDS},
        "windows": list(_windows(windows, texts)),
        "texts": list(texts),
    }


def _windows(windows: Sequence[Document], texts: dict[str, int]) -> Iterator[dict[str, object]]:
    """Most windows have the same cautions: each text is there once, and is meant by its number."""

    def numbered(words: Sequence[str]) -> list[int]:
        return [texts.setdefault(each, len(texts)) for each in words]

    for release in windows:
        moments, part = Moments.of(release), release.series
        if part is None:
            raise TypeError("this is not a window of a series")
        yield {
            "ends": [part.first, part.last],
            "name": str(part),
            "sampling_factor": moments.sampling_factor,
            "empty": sorted(moments.empty_levels),
            "references": [
                [column.name, most_frequent(moments, column.name)]
                for column in moments.schema.columns
                if column.group_levels
            ],
            "cautions": {
                kind: numbered(estimand.difference_cautions(moments, kind)) for kind in estimand.KINDS
            },
            "refused_cautions": {
                kind: numbered(estimand.difference_cautions(moments, kind, refused=True))
                for kind in estimand.KINDS
            },
        }
