"""What columns are called for people: the labels and units that the schema declares, else their names.

Tables and programs go by names; figures, titles and notes by these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date, timedelta
from typing import final

from dpgram.document.original_units import original_columns
from dpgram.schema import Schema
from dpgram.schema.columns import SourceColumn


def written(value: float, *, dates: bool) -> str:
    """A number for eyes: five digits, or the date of a day that is counted from 1970-01-01."""
    with suppress(OverflowError):  # no calendar has the days that a forged file may tell
        if dates and math.isfinite(value):
            return (date(1970, 1, 1) + timedelta(days=round(value))).isoformat()
    return f"{value:.5g}"


@final
class Labels:
    """Of all columns of a schema, by any name that an answer may have for them.

    >>> from dpgram.document.labels import Labels
    >>> columns = [dg.numeric("age", 18, 90, label="Age", units="years"), dg.categorical("g", ["a", "b"])]
    >>> words = Labels(dg.Schema(*columns))
    >>> words["age"], words.titled("age"), words["g=a"]
    ('Age', 'Age (years)', 'g=a')
    """

    def __init__(self, schema: Schema) -> None:
        self._labels: dict[str, str] = {}
        self._units: dict[str, str] = {}
        self._dates: set[str] = set()
        for column in schema.columns:
            if isinstance(column, SourceColumn):
                self._read(column)
        if not self._labels:
            return
        for encoded, original in zip(schema.encoded, original_columns(schema), strict=True):
            if original.monomial and any(name in self._labels for name in original.monomial):
                product = " × ".join(self[name] for name in original.monomial)
                for name in (original.name, encoded.name, encoded.source):
                    self._labels.setdefault(name, product)

    def _read(self, column: SourceColumn) -> None:
        about, levels = column.about, column.group_levels
        if column.cell_kind == "date":
            self._dates.add(column.name)
        if about.label is not None:
            self._labels[column.name] = about.label
        if about.units is not None and not levels:
            self._units[column.name] = about.units
        if levels and (about.label is not None or about.level_labels):
            told: Mapping[str, str] = dict(zip(levels, about.level_labels, strict=False))
            for name, level in zip(column.encoded_names, levels, strict=True):
                self._labels[name] = f"{about.label or column.name}: {told.get(level) or level}"

    def __getitem__(self, name: str) -> str:
        return self._labels.get(name, name)

    def label(self, name: str) -> str | None:
        """What was declared, or nothing."""
        return self._labels.get(name)

    def units(self, name: str) -> str | None:
        """What was declared, or nothing."""
        return self._units.get(name)

    def is_date(self, name: str) -> bool:
        """Whether its numbers are days since 1970-01-01."""
        return name in self._dates

    def shown(self, name: str, value: float) -> str:
        """A value of the column, or a mean of some: the date of a day, five digits of other numbers.

        >>> from dpgram.document.labels import Labels
        >>> columns = [dg.numeric("visit", "2020-01-01", "2025-12-31"), dg.numeric("age", 18, 90)]
        >>> words = Labels(dg.Schema(*columns))
        >>> words.shown("visit", 19904.3), words.shown("age", 19904.3)
        ('2024-06-30', '19904')
        """
        return written(value, dates=name in self._dates)

    def titled(self, name: str) -> str:
        """The label with the units behind it."""
        units = self._units.get(name)
        return self[name] if units is None else f"{self[name]} ({units})"

    def legend(self, names: Iterable[str]) -> str | None:
        """A sentence that says what names stand for; nothing where all speak for themselves."""
        told = [(name, self.titled(name)) for name in names]
        said = [f"{name} is {title}" for name, title in told if title != name]
        return None if not said else "; ".join(said)
