"""New rows, in original units, as rows of the design; predictions with intervals.

The variance of a prediction x·β̂ is xᵀCx; a new row adds its own error variance s².
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from dpgram.analysis.design import INTERCEPT, Design, Term
from dpgram.analysis.estimand import Kind
from dpgram.analysis.inference import infer
from dpgram.analysis.moments import Moments
from dpgram.analysis.quality import plausible_variance, residual_variance
from dpgram.errors import AnalysisError
from dpgram.schema import Schema

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prediction:
    """Predictions of the un-shrunken regression, in original units, with an interval for each row."""

    estimate: Vector
    lower: Vector
    upper: Vector
    level: float
    kind: Kind
    mean: bool
    """Whether the interval is for the expectation at the row, not for a new observation."""


def design_matrix(design: Design, rows: object, clamped: frozenset[str] = frozenset()) -> Matrix:
    """One row of term values for each new row; columns are looked up by their declared names.

    Values of the `clamped` columns are moved into their bounds, as those of the table were.
    """
    table = _Columns(design.schema, rows, clamped)
    values = [_term_values(term, table) for term in design.terms]
    length = table.length
    return np.column_stack([np.broadcast_to(value, (length,)) for value in values])


def predict_with_intervals(
    moments: Moments, design: Design, rows: object, *, level: float, kind: Kind, mean: bool
) -> Prediction:
    """x·β̂ ± q·√(xᵀCx + s²), s² left out when `mean`."""
    if not 0.0 < level < 1.0:
        raise AnalysisError("the level of an interval is a probability", got=level, limit="0 < level < 1")
    inference = infer(moments, design, kind)
    inference.check()
    x = design_matrix(design, rows, moments.learnt_bounds)
    variance = np.einsum("ij,jk,ik->i", x, inference.covariance, x)
    if not mean:
        variance = variance + plausible_variance(residual_variance(moments, design, kind))
    tail = 0.5 * (1.0 - level)
    quantile = -ndtri(tail) if inference.degrees is None else -stdtrit(inference.degrees, tail)
    estimate = x @ inference.estimate + design.base
    reach = float(quantile) * np.sqrt(variance)
    return Prediction(
        estimate=estimate, lower=estimate - reach, upper=estimate + reach, level=level, kind=kind, mean=mean
    )


def _term_values(term: Term, table: _Columns) -> Vector:
    if term.source == INTERCEPT:
        return np.ones(1)
    values = table.values(term.source)
    if term.level is not None:
        return np.asarray(values == term.level, dtype=np.float64)
    return np.asarray(values - term.shift)


@runtime_checkable
class _ByName(Protocol):
    """Whatever gives a column for its name: a dict, a pandas, Polars or Arrow table."""

    def __getitem__(self, name: str, /) -> object: ...


@final
class _Columns:
    """New rows, whatever they came as: a mapping or frame of columns, or a sequence of mappings."""

    def __init__(self, schema: Schema, rows: object, clamped: frozenset[str]) -> None:
        self._clamped = clamped
        if isinstance(rows, Sequence) and rows and all(isinstance(row, Mapping) for row in rows):
            names = dict.fromkeys(name for row in rows for name in row)
            rows = {name: [row.get(name) for row in rows] for name in names}
        if not isinstance(rows, _ByName):
            raise AnalysisError(
                "new rows must be a mapping or a frame of columns", got=f"a {type(rows).__name__}"
            )
        self._read = {column.name: column for column in schema.columns_read}
        self._derived = {column.name: column for column in schema.columns_derived}
        self._encoded = {column.name: column for column in schema.encoded}
        self._rows = rows
        self.length = _length(rows)

    def values(self, name: str) -> npt.NDArray[Any]:
        """Numbers in original units (dates as days since 1970, ordered levels as codes), or levels."""
        if name in self._derived:  # nobody is asked for what follows from other columns
            encoding = self._derived[name].encoding
            factors = [self._encoded[factor] for factor in encoding.factors]
            centred = [self.values(factor.name) - factor.centre for factor in factors]
            return encoding.original(centred, [factor.half_width for factor in factors])
        column = self._read[name]
        found = column.new_values(self._raw(name))
        self._check_size(name, len(found))
        if name in self._clamped and column.bounds is not None:
            return np.asarray(np.clip(found, *column.bounds))
        return found

    def _raw(self, name: str) -> npt.NDArray[np.generic]:
        try:
            values = self._rows[name]
        except (KeyError, IndexError, TypeError, LookupError):
            raise AnalysisError(f"the new rows have no column {name!r}") from None
        return np.atleast_1d(np.asarray(values))

    def _check_size(self, name: str, size: int) -> None:
        if size not in (1, self.length):
            raise AnalysisError(
                f"column {name!r} of the new rows differs in length from the others",
                got=size,
                limit=str(self.length),
            )


def _length(rows: object) -> int:
    if isinstance(rows, Mapping):
        return max((np.size(value) for value in rows.values() if not _is_scalar(value)), default=1)
    height = getattr(rows, "num_rows", None)  # Arrow counts columns in len()
    if isinstance(height, int):
        return height
    return len(rows) if isinstance(rows, Sized) else 1


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | bytes) or np.ndim(np.asarray(value, dtype=object)) == 0
