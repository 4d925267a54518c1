"""What a question names, columns and levels to compare with, checked before anything is computed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dpgram.errors import AnalysisError, shown
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
