"""Kalaja's pre-processing: from raw rows to |x| ≤ 1 and |y| ≤ 1 in training, by every way of the thesis.

Means, deviations and maxima are taken from the data as they are, as there: not private.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Split:
    """One fold after mapping."""

    x: Array
    y: Array
    test_x: Array
    test_y: Array


def _scores(x: Array, fitted_on: Array) -> Array:
    deviation = fitted_on.std(axis=0, ddof=1)
    return np.asarray((x - fitted_on.mean(axis=0)) / np.where(deviation == 0.0, 1.0, deviation))


def _lengths(x: Array) -> Array:
    lengths = np.linalg.norm(x, axis=1)
    return np.where(lengths == 0.0, 1.0, lengths)


def row(x: Array, y: Array, test: Rows) -> Split:
    """§3.3.1: z-scores of all rows, every row to length one, y over its largest (Wang's own way)."""
    z = _scores(x, x)
    z, v = z / _lengths(z)[:, None], y / np.abs(y).max()
    return Split(z[~test], v[~test], z[test], v[test])


def row_with_target(x: Array, y: Array, test: Rows) -> Split:
    """Eq. 3.4: y is divided by the length of its row as well, and again by the largest of what comes out."""
    z = _scores(x, x)
    lengths = _lengths(z)
    v = y / np.abs(y).max() / lengths
    v /= np.abs(v).max()
    z = z / lengths[:, None]
    return Split(z[~test], v[~test], z[test], v[test])


def largest(x: Array, y: Array, test: Rows) -> Split:
    """§3.3.2: all rows over the longest one, statistics of all rows."""
    z = _scores(x, x)
    z, v = z / _lengths(z).max(), y / np.abs(y).max()
    return Split(z[~test], v[~test], z[test], v[test])


def after_split(x: Array, y: Array, test: Rows) -> Split:
    """The same with statistics of the training rows."""
    return _by_training(x[~test], y[~test], x[test], y[test], intercept=False)


def with_intercept(x: Array, y: Array, test: Rows) -> Split:
    """The same with a constant column, before rows are divided by the longest."""
    return _by_training(x[~test], y[~test], x[test], y[test], intercept=True)


def clipped(c: float, *, also_test: bool) -> Callable[[Array, Array, Rows], Split]:
    """Eq. 3.8: columns cut at mean + c deviations of the training rows, then `after_split`."""

    def mapping(x: Array, y: Array, test: Rows) -> Split:
        train = x[~test]
        top = train.mean(axis=0) + c * train.std(axis=0, ddof=1)
        held_out = np.minimum(x[test], top) if also_test else x[test]
        return _by_training(np.minimum(train, top), y[~test], held_out, y[test], intercept=False)

    return mapping


def _by_training(x: Array, y: Array, test_x: Array, test_y: Array, *, intercept: bool) -> Split:
    z, other = _scores(x, x), _scores(test_x, x)
    if intercept:
        z = np.column_stack([np.ones(len(z)), z])
        other = np.column_stack([np.ones(len(other)), other])
    length, top = _lengths(z).max(), np.abs(y).max()
    return Split(z / length, y / top, other / length, test_y / top)


RAW_TARGET: Final = ("raw target", "raw target, intercept")
"""`after_split` and `with_intercept` of targets that nobody centred: the published sets come centred."""
CLIPS: Final = (1.0, 1.3, 1.6, 2.0)
MAPPINGS: Final[Mapping[str, Callable[[Array, Array, Rows], Split]]] = {
    "row": row,
    "row, y included": row_with_target,
    "max": largest,
    "max, after split": after_split,
    "max, intercept": with_intercept,
    RAW_TARGET[0]: after_split,
    RAW_TARGET[1]: with_intercept,
    **{f"clip {c:g}": clipped(c, also_test=False) for c in CLIPS},
    **{f"clip {c:g}, test too": clipped(c, also_test=True) for c in CLIPS},
}
