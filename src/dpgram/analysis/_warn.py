"""Cautions as Python warnings, attributed to the caller's line."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from dpgram.errors import DpgramWarning


def warn_each(cautions: Iterable[str], *, depth: int = 4) -> None:
    """One DpgramWarning for each caution; `depth` frames above lies the user's call."""
    for caution in cautions:
        warnings.warn(caution, DpgramWarning, stacklevel=depth)
