"""Cells of rows → 64-bit floats. No cell makes a warning: a signalling NaN would, and so tell of one row."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def as_numpy_begins() -> AbstractContextManager[object]:
    """Within it numpy does what it does at first with numbers that it cannot hold.

    A caller may have it raise: then one row, with a number next to zero, could decide whether there is a
    release.
    """
    return np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")


def as_floats(line: npt.ArrayLike) -> Floats:
    """The same memory where it holds such floats already."""
    with np.errstate(all="ignore"):
        return np.asarray(line, np.float64)


def fill(target: Floats, line: npt.NDArray[Any]) -> None:
    """Copy a line of numbers of any width."""
    with np.errstate(all="ignore"):
        target[:] = line


def one_form(line: npt.NDArray[Any]) -> Floats:
    """A copy in which zeros and NaNs have one form: rows with the same numbers have the same bits."""
    with np.errstate(all="ignore"):
        found = np.array(line, np.float64) + 0.0  # −0.0 becomes 0.0
    found[np.isnan(found)] = np.nan
    return found
