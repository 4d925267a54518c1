"""Linear hypotheses as people write them: "age = 2 * bmi", "region=north - region=south = 0", matrices.

A name of a coefficient may hold any character, so the text is read with the names at hand: the longest one
that fits is taken. A backtick on either side settles what is meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.design import INTERCEPT, Design
from dpgram.errors import AnalysisError

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Asked: TypeAlias = str | Sequence[str] | npt.ArrayLike | tuple[npt.ArrayLike, npt.ArrayLike]

NUMBER: Final = re.compile(r"\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?")
LIKE_A_NAME: Final = re.compile(r"[^\s,=+*/()]+")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hypotheses:
    """L β = c, one row for each."""

    matrix: Matrix
    values: Vector
    texts: tuple[str, ...]


def hypotheses(design: Design, asked: Asked) -> Hypotheses:
    """What is asked, as a matrix: texts, a row or a matrix of numbers, or a pair (matrix, values)."""
    if isinstance(asked, str):
        return _joined([_Reader(design, asked).all()])
    if isinstance(asked, Sequence) and asked and all(isinstance(text, str) for text in asked):
        return _joined([_Reader(design, str(text)).all() for text in asked])
    values: npt.ArrayLike = 0.0
    if isinstance(asked, tuple) and len(asked) == 2 and np.ndim(asked[0]) == 2:
        asked, values = asked
    matrix = np.atleast_2d(np.asarray(asked, dtype=np.float64))
    if matrix.ndim != 2 or matrix.shape[1] != len(design.terms) or not np.isfinite(matrix).all():
        raise AnalysisError(
            "a hypothesis must be text, or a matrix with a column for each coefficient",
            got=f"shape {matrix.shape}",
            limit=f"{len(design.terms)} columns: {', '.join(design.names[:20])}",
        )
    sides = np.broadcast_to(np.asarray(values, dtype=np.float64), (len(matrix),))
    texts = tuple(_told(design, row, value) for row, value in zip(matrix, sides.tolist(), strict=True))
    return Hypotheses(matrix=matrix, values=np.array(sides), texts=texts)


def _joined(parts: Sequence[Sequence[tuple[Vector, float, str]]]) -> Hypotheses:
    rows = [row for part in parts for row in part]
    return Hypotheses(
        matrix=np.array([row for row, _, _ in rows]),
        values=np.array([value for _, value, _ in rows]),
        texts=tuple(text for _, _, text in rows),
    )


def _told(design: Design, row: Vector, value: float) -> str:
    parts = [
        name if factor == 1.0 else f"{factor:g} * {name}"
        for name, factor in zip(design.names, row.tolist(), strict=True)
        if factor != 0.0
    ]
    return f"{' + '.join(parts)} = {value:g}".replace("+ -", "- ")


def spellings(design: Design) -> Mapping[str, int]:
    """What may be written for each coefficient: its name, and what statsmodels and R would call it."""
    found: dict[str, int] = {}
    for i, term in enumerate(design.terms):
        names = [term.name]
        if term.source == INTERCEPT:
            names += ["Intercept", "(Intercept)", "const"]
        elif term.level is not None:
            names += [f"{term.source}[T.{term.level}]", f"C({term.source})[T.{term.level}]"]
        else:
            names.append(term.source)
        for name in names:
            found.setdefault(name, i)
    return found


@final
class _Reader:
    """Recursive descent over one text; every expression is linear: (factors, constant)."""

    def __init__(self, design: Design, text: str) -> None:
        self._text, self._at = text, 0
        self._design = design
        self._names = sorted(spellings(design).items(), key=lambda pair: -len(pair[0]))

    def all(self) -> list[tuple[Vector, float, str]]:
        found = self._one()
        while self._takes(","):
            found += self._one()
        if self._rest():
            raise self._problem()
        return found

    def _one(self) -> list[tuple[Vector, float, str]]:
        """`a`, `a = b` or `a = b = c`; without a sign of equality it is said to be zero."""
        start = self._at
        sides = [self._sum()]
        while self._takes("="):
            sides.append(self._sum())
        text = self._text[start : self._at].strip().replace("`", "")
        if len(sides) == 1:
            sides.append((np.zeros(len(self._design.terms)), 0.0))
            text += " = 0"
        last_row, last_value = sides[-1]
        rows = [(row - last_row, last_value - value) for row, value in sides[:-1]]
        if any(not row.any() for row, _ in rows):
            raise AnalysisError("a hypothesis names no coefficient", got=repr(self._text))
        return [(row, value, text) for row, value in rows]

    def _sum(self) -> tuple[Vector, float]:
        row, value = self._product()
        while (sign := 1.0 if self._takes("+") else -1.0 if self._takes("-") else 0.0) != 0.0:
            other, more = self._product()
            row, value = row + sign * other, value + sign * more
        return row, value

    def _product(self) -> tuple[Vector, float]:
        row, value = self._factor()
        while (divides := self._takes("/")) or self._takes("*"):
            other, more = self._factor()
            if other.any() and (row.any() or divides):
                raise AnalysisError("a hypothesis must be linear in the coefficients", got=repr(self._text))
            if other.any():
                row, value, other, more = other, more, row, value
            if divides and more == 0.0:
                raise AnalysisError("a hypothesis divides by zero", got=repr(self._text))
            factor = 1.0 / more if divides else more
            row, value = row * factor, value * factor
        return row, value

    def _factor(self) -> tuple[Vector, float]:
        nothing = np.zeros(len(self._design.terms))
        if self._takes("-"):
            row, value = self._factor()
            return -row, -value
        if (place := self._name()) is not None:
            nothing[place] = 1.0
            return nothing, 0.0
        rest = self._rest()
        if number := NUMBER.match(rest):
            self._at += number.end()
            return nothing, float(number.group())
        if self._takes("("):
            found = self._sum()
            if not self._takes(")"):
                raise self._problem()
            return found
        raise self._problem()

    def _name(self) -> int | None:
        rest = self._rest()
        for name, place in self._names:
            quoted = f"`{name}`"
            if rest.startswith(quoted):
                self._at += len(quoted)
                return place
            ends = rest[len(name) : len(name) + 1]
            whole = not (name[-1:].isalnum() and (ends.isalnum() or ends == "_"))
            if rest.startswith(name) and whole:
                self._at += len(name)
                return place
        return None

    def _takes(self, symbol: str) -> bool:
        if self._rest().startswith(symbol):
            self._at += len(symbol)
            return True
        return False

    def _rest(self) -> str:
        rest = self._text[self._at :]
        self._at += len(rest) - len(rest.lstrip())
        return self._text[self._at :]

    def _problem(self) -> AnalysisError:
        rest = self._rest()
        word = LIKE_A_NAME.match(rest)
        return AnalysisError(
            f"no coefficient {word.group()!r} in this regression" if word else "a hypothesis cannot be read",
            got=repr(self._text),
            limit=", ".join(self._design.names[:20]),
            remedy='Write it like "age - bmi = 0"; names with blanks or signs go between backticks.',
        )
