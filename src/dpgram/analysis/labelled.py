"""Numbers with names: a vector that is a mapping, a matrix that knows its rows; both are arrays for numpy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.document.terminal import escaped, in_lines, with_notes
from dpgram.errors import AnalysisError, UnknownName, shown

if TYPE_CHECKING:
    from dpgram.analysis._frames import Frame

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

MOST_SHOWN = 24
"""Rows that `repr` shows: about one screen;"""
WIDEST = 110
"""and letters in a line of it."""


@final
class LabelledVector(Mapping[str, float]):
    """Name → number, in order. `np.asarray` gives the numbers alone.

    >>> import numpy as np
    >>> round(fit.params["age"], 1), np.asarray(fit.params).round(1)
    (125.4, array([-1694.6,   125.4, 11026.9]))
    """

    __slots__ = ("_numbers", "_places")

    def __init__(self, names: tuple[str, ...], numbers: Vector) -> None:
        self._places = {name: i for i, name in enumerate(names)}
        self._numbers = np.array(numbers, dtype=np.float64)
        self._numbers.flags.writeable = False

    def __getitem__(self, name: str) -> float:
        try:
            return float(self._numbers[self._places[name]])
        except (KeyError, TypeError):
            raise unknown_name(tuple(self), name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self._numbers, dtype=dtype, copy=copy)

    def to_frame(self) -> Frame:
        """A frame of names and numbers.

        >>> fit.params.to_frame().columns
        ['name', 'value']
        """
        from dpgram.analysis._frames import frame_of

        return frame_of({"name": list(self), "value": self._numbers.tolist()}, numbers=["value"])

    def __repr__(self) -> str:
        shown = tuple(self)[:MOST_SHOWN]
        text = _table(shown, ("",), [[value] for value in self._numbers[: len(shown)].tolist()])
        return f"{text}\n… and {len(self) - len(shown)} more" if len(self) > len(shown) else text

    def _repr_html_(self) -> str:
        return _html(tuple(self), (), [[value] for value in self._numbers.tolist()])


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LabelledMatrix:
    """A square table of numbers whose rows and columns have the same names.

    >>> round(fit.cov_params()["age", "age"], 2)
    6.89
    """

    names: tuple[str, ...]
    values: Matrix
    cautions: tuple[str, ...] = ()
    """How it differs from that of the rows that came in, where it does."""

    def __getitem__(self, pair: tuple[str, str]) -> float:
        try:
            row, column = pair
        except (TypeError, ValueError):
            raise AnalysisError(
                "a cell of this matrix has two names", got=shown(pair), remedy='Write ["age", "bmi"]'
            ) from None
        for name in (row, column):
            if name not in self.names:
                raise unknown_name(self.names, name)
        return float(self.values[self.names.index(row), self.names.index(column)])

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.names), len(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def to_frame(self) -> Frame:
        """A frame with the names in its first column.

        >>> fit.cov_params().to_frame().columns
        ['name', '(intercept)', 'age', 'smoker=yes']
        """
        from dpgram.analysis._frames import frame_of

        columns = {name: self.values[:, i].tolist() for i, name in enumerate(self.names)}
        return frame_of({"name": list(self.names), **columns}, numbers=self.names)

    def __repr__(self) -> str:
        shown = self.names[:MOST_SHOWN]
        while True:
            text = _table(shown, shown, self.values[: len(shown), : len(shown)].tolist())
            if len(shown) <= 1 or len(text.split("\n", 1)[0]) <= WIDEST:
                break
            shown = shown[:-1]
        more = len(self.names) - len(shown)
        lines = [*text.split("\n"), *([f"… and {more} more rows and columns"] if more else [])]
        return with_notes(lines, self._notes()) if self.cautions else in_lines(lines)

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escaped(note)}</p>" for note in self._notes())
        return _html(self.names, self.names, self.values.tolist()) + notes

    def _notes(self) -> list[str]:
        return [f"Caution: {caution}." for caution in self.cautions]


_OF_OTHERS: Final = re.compile(r"(?:C\((?P<coded>[^,)]+)[^)]*\)|(?P<name>.+))\[T\.(?P<level>.*)\]")
"""A level as statsmodels and formulaic call it."""


def unknown_name(names: tuple[str, ...], asked: object) -> UnknownName:
    """The refusal, with the name that was probably meant, as other programs call it or misspelt."""
    from difflib import get_close_matches

    near: list[str] = []
    if isinstance(asked, str):
        wanted = asked
        if asked.lower() in ("intercept", "const", "constant", "_cons"):
            wanted = "(intercept)"
        elif (level := _OF_OTHERS.fullmatch(asked)) is not None:
            wanted = f"{level['coded'] or level['name']}={level['level']}"
        near = [wanted] if wanted in names else get_close_matches(asked, names, n=1)
    remedy = f"Write {near[0]!r}" if near else "Write one of these, or numpy.asarray(…) for numbers by place"
    return UnknownName(f"there is no {shown(asked)} here", limit=", ".join(names[:20]), remedy=remedy)


def _cell(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.5g}"


def _table(names: tuple[str, ...], header: tuple[str, ...], rows: list[list[float]]) -> str:
    cells = [["", *header], *([name, *map(_cell, row)] for name, row in zip(names, rows, strict=True))]
    if not any(header):
        cells = cells[1:]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return in_lines(
        "  ".join([first.ljust(widths[0]), *(c.rjust(w) for c, w in zip(rest, widths[1:], strict=True))])
        for first, *rest in cells
    )


def _html(names: tuple[str, ...], header: tuple[str, ...], rows: list[list[float]]) -> str:
    head = "".join(f"<th>{escaped(name)}</th>" for name in ("", *header)) if header else ""
    body = "".join(
        f"<tr><th style='text-align:left'>{escaped(name)}</th>"
        + "".join(f"<td>{_cell(value)}</td>" for value in row)
        + "</tr>"
        for name, row in zip(names, rows, strict=True)
    )
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"
