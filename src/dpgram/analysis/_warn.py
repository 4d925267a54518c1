"""Cautions as Python warnings, attributed to the caller's line."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from dpgram.errors import DpgramWarning


def warn_once(cautions: Iterable[str], told: set[str], *, depth: int = 4) -> None:
    """A DpgramWarning for each caution not yet `told`; `depth` frames above lies the user's call."""
    for caution in cautions:
        if caution not in told:
            warnings.warn(caution, DpgramWarning, stacklevel=depth)
            told.add(caution)
