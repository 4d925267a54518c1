"""What all tables of coefficients answer alike: errors, tests, intervals, a frame, lines of text.

Of an estimate with a covariance whose law is normal, or Student's t where there are degrees of freedom. A
coefficient that the noise leaves no interval has no number at all.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtr

from dpgram.analysis.asked import quantile
from dpgram.analysis.labelled import LabelledMatrix, LabelledVector
from dpgram.analysis.summary import aligned, number, p_value

if TYPE_CHECKING:
    from dpgram.analysis._frames import Frame

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

FIELDS: Final = ("name", "estimate", "std_error", "low", "high", "p_value")


class Estimates(ABC):
    """Coefficients in original units with their covariance: sampling and privacy noise."""

    __slots__ = ()
    names: tuple[str, ...]
    """Names of the coefficients, the intercept first."""
    estimate: Vector
    covariance: Matrix
    trusted: npt.NDArray[np.bool_]
    """Which of them have an interval: the others lean on directions that the noise could have made."""

    degrees: float | None
    """Of freedom, for Student's t; nothing means the normal law."""

    @abstractmethod
    def _check(self) -> None:
        """Raise where there is no estimate."""

    @property
    def params(self) -> LabelledVector:
        """Name → coefficient in original units."""
        self._check()
        return LabelledVector(self.names, np.where(self.trusted, self.estimate, np.nan))

    @property
    def bse(self) -> LabelledVector:
        """Name → standard error: sampling and privacy noise."""
        return LabelledVector(self.names, self._errors())

    @property
    def tvalues(self) -> LabelledVector:
        """Name → coefficient over its standard error."""
        return LabelledVector(self.names, self.estimate / self._errors())

    @property
    def pvalues(self) -> LabelledVector:
        """Name → two-sided p-value of the coefficient being zero."""
        ratio = np.abs(self.estimate / self._errors())
        tails = ndtr(-ratio) if self.degrees is None else stdtr(self.degrees, -ratio)
        return LabelledVector(self.names, np.asarray(2.0 * tails))

    def cov_params(self) -> LabelledMatrix:
        """The covariance of `params`.

        >>> found = release.discriminant("smoker=yes", ["age", "charges"])
        >>> bool(found.cov_params()["age", "age"] ** 0.5 == found.bse["age"])
        True
        """
        self._check()
        clear = np.outer(self.trusted, self.trusted)
        return LabelledMatrix(self.names, np.where(clear, self.covariance, np.nan))

    def conf_int(self, level: float = 0.95) -> Mapping[str, tuple[float, float]]:
        """Name → coefficient ± quantile times its error.

        >>> low, high = release.discriminant("smoker=yes", ["age"]).conf_int()["age"]
        >>> low < high
        True
        """
        reach = quantile(level, self.degrees) * self._errors()
        ends = np.where(np.isnan(reach), np.inf, reach)
        return {
            name: (float(value - end), float(value + end))
            for name, value, end in zip(self.names, self.estimate, ends, strict=True)
        }

    def to_frame(self, level: float = 0.95) -> Frame:
        """A frame with a row for each coefficient.

        >>> release.discriminant("smoker=yes", ["age"]).to_frame().columns
        ['name', 'estimate', 'std_error', 'low', 'high', 'p_value']
        """
        from dpgram.analysis._frames import frame_of

        rows = self.as_rows(level)
        return frame_of({field: [row[field] for row in rows] for field in FIELDS}, numbers=FIELDS[1:])

    def as_rows(self, level: float = 0.95) -> list[dict[str, str | float | None]]:
        """The same as a list of rows; None where the noise leaves no interval.

        >>> release.discriminant("smoker=yes", ["age"]).as_rows()[1]["name"]
        'age'
        """
        return as_rows(
            self.names, self.estimate, self._errors(), self.conf_int(level), self.pvalues, self.trusted
        )

    def _errors(self) -> Vector:
        self._check()
        return np.sqrt(np.where(self.trusted, np.diagonal(self.covariance), np.nan))


def ratio(coefficient: float) -> float:
    """e to the coefficient: of odds, or of expected counts. Held within the floats; NaN stays NaN."""
    return math.exp(min(coefficient, 700.0))


def as_rows(
    names: Sequence[str],
    estimate: Vector,
    errors: Vector,
    ends: Mapping[str, tuple[float, float]],
    p_values: LabelledVector,
    clear: npt.NDArray[np.bool_],
) -> list[dict[str, str | float | None]]:
    """`FIELDS` of every coefficient; None for what is not `clear` of the noise."""
    found: list[dict[str, str | float | None]] = []
    for i, name in enumerate(names):
        numbers = (float(estimate[i]), float(errors[i]), *ends[name], p_values[name])
        told: tuple[float | None, ...] = numbers if clear[i] else (None,) * len(numbers)
        found.append({"name": name, **dict(zip(FIELDS[1:], told, strict=True))})
    return found


def as_lines(rows: Sequence[Mapping[str, str | float | None]], level: float) -> list[str]:
    """A table of coefficients as text; dashes for what there is not."""
    header = ("", "coefficient", "std. error", f"{100 * level:g}% from", "to", "p-value")
    return aligned(header, [(str(row["name"]), *_cells(row)) for row in rows])


def _cells(row: Mapping[str, str | float | None]) -> tuple[str, ...]:
    estimate, error, low, high, p = (
        np.nan if row[field] is None else float(row[field] or 0.0) for field in FIELDS[1:]
    )
    return number(estimate), number(error, 3), number(low), number(high), p_value(p)
