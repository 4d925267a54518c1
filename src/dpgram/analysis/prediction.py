"""New rows, in original units, as rows of the design; predictions with intervals.

The variance of a prediction x·β̂ is xᵀCx; a new row adds its own error variance s². A level in which noisy
counts show no rows is not in the fit, so a row with it is predicted as if it had the reference level, of
which no interval can tell how wrong that is: it has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, final, runtime_checkable

import numpy as np
import numpy.typing as npt

from dpgram.analysis._fieller import fieller_interval
from dpgram.analysis._warn import warn_once
from dpgram.analysis.design import INTERCEPT, Design, Term
from dpgram.analysis.inference import Combined, Inference
from dpgram.analysis.moments import Moments
from dpgram.analysis.quality import plausible_variance, residual_variance
from dpgram.errors import AnalysisError
from dpgram.schema import Schema

if TYPE_CHECKING:
    from dpgram.analysis._frames import Frame

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

NO_ROWS: Final = (
    "noisy counts show no rows to speak of with {names}, so the fit knows nothing of such a row: it is "
    "predicted as if it had the reference level"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Prediction:
    """Predictions of the un-shrunken regression, in original units, with intervals for each row."""

    predicted_mean: Vector
    inference: Inference
    combined: Combined
    variance: Vector
    """xᵀCx."""
    error_variance: float
    """s²: what a new observation adds."""
    base: float = 0.0
    refusals: tuple[str | None, ...] = ()
    """For each row why it has no interval, where it has a level without rows; none if no level is so."""

    @property
    def se_mean(self) -> Vector:
        """Standard errors of the expectation at each row; NaN where the noise leaves it no interval."""
        return np.sqrt(np.where(self._bounded(0.95), self.variance, np.nan))

    @property
    def se_obs(self) -> Vector:
        """Standard errors of a new observation at each row."""
        return np.sqrt(np.where(self._bounded(0.95), self.variance + self.error_variance, np.nan))

    def conf_int(self, level: float = 0.95, *, obs: bool = False) -> Matrix:
        """Lower and upper ends for the expectation at each row; with `obs` for a new observation.

        NaN for a row with a level that has no rows: `refusals` says so.

        >>> fit.get_prediction({"age": [30], "smoker": ["no"]}).conf_int().round()
        array([[1943., 2190.]])
        """
        quantile = self.inference.quantile(level)
        found = self.combined
        low, high = fieller_interval(
            self.predicted_mean - self.base,
            found.level + (self.error_variance if obs else 0.0),
            found.slope,
            found.curvature,
            quantile,
        )
        clear = found.trusted
        ends = np.column_stack([np.where(clear, low, -np.inf), np.where(clear, high, np.inf)]) + self.base
        ends[self._refused] = np.nan
        return ends

    def summary_frame(self, level: float = 0.95) -> Frame:
        """A frame with statsmodels' columns.

        >>> fit.get_prediction({"age": [30], "smoker": ["no"]}).summary_frame().columns[:2]
        ['mean', 'mean_se']
        """
        from dpgram.analysis._frames import frame_of

        mean, new = self.conf_int(level), self.conf_int(level, obs=True)
        columns = {
            "mean": self.predicted_mean,
            "mean_se": self.se_mean,
            "mean_ci_lower": mean[:, 0],
            "mean_ci_upper": mean[:, 1],
            "obs_ci_lower": new[:, 0],
            "obs_ci_upper": new[:, 1],
        }
        return frame_of(columns, numbers=list(columns))

    def __repr__(self) -> str:
        return f"<Prediction: {len(self.predicted_mean)} rows, {self.inference.kind}>"

    @property
    def _refused(self) -> npt.NDArray[np.bool_]:
        refusals = self.refusals or (None,) * len(self.predicted_mean)
        return np.array([refusal is not None for refusal in refusals], dtype=np.bool_)

    def _bounded(self, level: float) -> npt.NDArray[np.bool_]:
        ends = self.inference.quantile(level) ** 2 * self.combined.curvature < 1.0
        return np.asarray(self.combined.trusted & ends & ~self._refused)


def design_matrix(design: Design, rows: object, clamped: frozenset[str] = frozenset()) -> Matrix:
    """One row of term values for each new row; columns are looked up by their declared names.

    Values of the `clamped` columns are moved into their bounds, as those of the table were.
    """
    table = _Columns(design.schema, rows, clamped)
    values = [_term_values(term, table) for term in design.terms]
    length = table.length
    return np.column_stack([np.broadcast_to(value, (length,)) for value in values])


def refusals_of(design: Design, rows: object) -> tuple[str | None, ...]:
    """For each new row why nothing tells about it: its levels without rows; nothing for the others.

    None at all where every level of the fit has rows.
    """
    if not design.empty_levels:
        return ()
    table = _Columns(design.schema, rows, frozenset())
    sources = {column.name: column.source for column in design.schema.encoded}
    has = {
        name: np.broadcast_to(table.values(name) == 1.0, (table.length,))
        for name in design.empty_levels
        if table.has(sources[name])
    }
    found = [[name for name, places in has.items() if places[row]] for row in range(table.length)]
    return tuple(NO_ROWS.format(names=", ".join(names)) if names else None for names in found)


def warn_of(refusals: Sequence[str | None]) -> None:
    """Each of them once; two frames above lies the user's call."""
    warn_once(dict.fromkeys(refusal for refusal in refusals if refusal is not None), set())


def predict_with_intervals(
    moments: Moments, design: Design, inference: Inference, rows: object
) -> Prediction:
    """x·β̂ for each row x, with what its intervals need."""
    inference.check()
    x = design_matrix(design, rows, moments.learnt_bounds)
    return Prediction(
        predicted_mean=x @ inference.estimate + design.base,
        inference=inference,
        combined=inference.combine(x),
        variance=np.einsum("ij,ij->i", x @ inference.covariance, x),
        error_variance=plausible_variance(residual_variance(moments, design, inference.kind)),
        base=design.base,
        refusals=refusals_of(design, rows),
    )


def _term_values(term: Term, table: _Columns) -> Vector:
    if term.source == INTERCEPT:
        return np.ones(1)
    if term.monomial:
        return np.asarray(np.prod([table.values(name) for name in term.monomial], axis=0))
    return np.asarray(table.values(term.name) - term.shift)


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
        self._derived = {
            name: part
            for column in schema.columns_derived
            for name, part in zip(column.encoded_names, column.parts, strict=True)
        }
        self._encoded = {column.name: column for column in schema.encoded}
        self._rows = rows
        self.length = _length(rows)

    def values(self, name: str) -> npt.NDArray[Any]:
        """Numbers in original units (dates as days since 1970, ordered levels as codes), or levels.

        Of one level by its own name, `region=north`: 0 or 1.
        """
        own = self._encoded.get(name)
        if own is not None and own.level is not None:
            return np.asarray(self.values(own.source) == own.level, dtype=np.float64)
        if name in self._derived:  # nobody is asked for what follows from other columns
            encoding = self._derived[name]
            factors = [self._encoded[factor] for factor in encoding.factors]
            centred = [self.values(factor.name) - factor.centre for factor in factors]
            return encoding.original(centred, [factor.half_width for factor in factors])
        column = self._read[name]
        found = column.new_values(self._raw(name))
        self._check_size(name, len(found))
        if name in self._clamped and column.bounds is not None:
            return np.asarray(np.clip(found, *column.bounds))
        return found

    def has(self, name: str) -> bool:
        """Whether the new rows have this column: one that no term needs may be left out."""
        try:
            self._rows[name]
        except (KeyError, IndexError, TypeError, LookupError):
            return False
        return True

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
