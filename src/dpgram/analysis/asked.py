"""What a question names, columns and levels, checked before anything is computed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from scipy.special import ndtri, stdtrit

from dpgram.errors import AnalysisError, real, shown
from dpgram.schema import Schema


def asked_columns(schema: Schema, on: object) -> list[str]:
    """The names in `on`; one text in place of a list is refused, and told as a list."""
    if isinstance(on, Iterable) and not isinstance(on, str):
        given = list(on)
        names = [name for name in given if isinstance(name, str)]
        if len(names) == len(given):
            return names
    raise AnalysisError(
        "`on` must be a list of column names", got=shown(on), remedy=f"Write on={_listed(schema, on)}"
    )


def check_level(level: object) -> None:
    """The level of an interval: 0.95, and not 95."""
    number = real(level)
    if number is None or not 0.0 < number < 1.0:
        remedy = None
        if number is not None and 1.0 < number < 100.0:
            remedy = f"For {number:g}% write {number / 100.0:g}"
        raise AnalysisError(
            "the level of an interval must be a probability",
            got=shown(level),
            limit="0 < level < 1",
            remedy=remedy,
        )


def quantile(level: float, degrees: float | None = None) -> float:
    """How many standard errors an interval of this level reaches to either side."""
    check_level(level)
    tail = 0.5 * (1.0 - level)
    return float(-ndtri(tail)) if degrees is None else float(-stdtrit(degrees, tail))


def _listed(schema: Schema, on: object) -> str:
    if not isinstance(on, str):
        return str([column.name for column in schema.columns[:2]])
    known = {*schema.names, *(column.name for column in schema.columns)}
    parts = [part.strip() for part in re.split(r"[+,]", on) if part.strip()]
    return str([on] if on in known or not parts else parts)


def asked_reference(schema: Schema, reference: object) -> dict[str, str]:
    """Column → level; a level alone is refused, and told with the column that has it."""
    if reference is None:
        return {}
    if isinstance(reference, Mapping):
        return dict(reference)
    fits = [column.name for column in schema.columns if reference in column.group_levels]
    level = reference if fits else "level"
    raise AnalysisError(
        "`reference` must say of which column it is a level",
        got=shown(reference),
        remedy=f"Write reference={{{(fits or ['column'])[0]!r}: {level!r}}}",
    )
