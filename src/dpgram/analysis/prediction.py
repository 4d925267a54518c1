"""New rows, in original units, as rows of the design; predictions with intervals.

The variance of a prediction x·β̂ is xᵀCx; a new row adds its own error variance s².
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Protocol, final, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy import stats

from dpgram.analysis.design import INTERCEPT, Design, Term
from dpgram.analysis.estimand import Kind
from dpgram.analysis.inference import infer
from dpgram.analysis.moments import Moments
from dpgram.analysis.quality import plausible_variance, residual_variance
from dpgram.errors import AnalysisError
from dpgram.schema import Boolean, Categorical, Legendre, Numeric, Ordinal, Product, Schema

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
    values = [_term_values(design.schema, term, table) for term in design.terms]
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
    quantile = stats.norm.isf(tail) if inference.degrees is None else stats.t.isf(tail, inference.degrees)
    estimate = x @ inference.estimate + design.base
    reach = float(quantile) * np.sqrt(variance)
    return Prediction(
        estimate=estimate, lower=estimate - reach, upper=estimate + reach, level=level, kind=kind, mean=mean
    )


def _term_values(schema: Schema, term: Term, table: _Columns) -> Vector:
    if term.source == INTERCEPT:
        return np.ones(1)
    column = schema.column(term.source)
    match column:
        case Numeric() | Boolean() | Ordinal():
            return table.numbers(column.name) - term.shift
        case Categorical():
            return np.asarray(table.levels(column) == term.level, dtype=np.float64)
        case Product(left=left, right=right):
            return _centred(schema, left, table) * _centred(schema, right, table)
        case Legendre(column=source, degree=degree):
            z = _centred(schema, source, table) / schema.encoded[schema.indices(source)[0]].half_width
            selector = np.zeros(degree + 1)
            selector[degree] = 1.0
            return np.asarray(np.polynomial.legendre.legval(z, selector))
    raise AnalysisError(f"{term.name!r} cannot be computed from new rows")


def _centred(schema: Schema, name: str, table: _Columns) -> Vector:
    return table.numbers(name) - schema.encoded[schema.indices(name)[0]].centre


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
        self._schema = schema
        self._rows = rows
        self.length = _length(rows)

    def numbers(self, name: str) -> Vector:
        """A numeric or boolean column as floats; dates as days since 1970, ordered levels as codes."""
        column = self._schema.column(name)
        if isinstance(column, Ordinal):
            codes = {level: float(code) for code, level in enumerate(column.levels)}
            return np.array([codes[level] for level in self.levels(column.choice)])
        raw = self._raw(name)
        try:
            if isinstance(column, Numeric) and column.dates and raw.dtype.kind not in "fiu":
                days = raw.astype("datetime64[us]") - np.datetime64("1970-01-01", "us")
                found = np.asarray(days / np.timedelta64(1, "D"), dtype=np.float64)
            else:
                found = raw.astype(np.float64)
        except (TypeError, ValueError):
            raise AnalysisError(f"the new rows' column {name!r} is not numeric") from None
        self._check_size(name, len(found))
        if name in self._clamped and isinstance(column, Numeric):
            return np.clip(found, *column.bounds)
        return found

    def levels(self, column: Categorical) -> npt.NDArray[np.object_]:
        """A categorical column as the schema's texts; unknown ones go to `other`, else they are refused."""
        known = frozenset(column.all_levels)
        texts = []
        for value in self._raw(column.name).tolist():
            text = _level_text(value)
            if text not in known and column.other is None:
                raise AnalysisError(
                    f"the new rows' column {column.name!r} has a level the schema does not know",
                    got=repr(text),
                    limit=", ".join(column.all_levels[:20]),
                )
            texts.append(text if text in known else column.other)
        self._check_size(column.name, len(texts))
        return np.array(texts, dtype=object)

    def _raw(self, name: str) -> npt.NDArray[np.generic]:
        try:
            values = self._rows[name]
        except (KeyError, IndexError, TypeError, LookupError):
            raise AnalysisError(f"the new rows have no column {name!r}") from None
        return np.atleast_1d(np.asarray(values))

    def _check_size(self, name: str, size: int) -> None:
        if size not in (1, self.length):
            raise AnalysisError(
                f"the new rows' column {name!r} has a length of its own", got=size, limit=str(self.length)
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


def _level_text(value: object) -> str:
    """Levels are compared by text, as in the schema: booleans as true/false, whole floats as integers."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
