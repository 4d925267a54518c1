"""Bounds as the cells of their column are written: 50.000 is 50000 where a point stands between thousands."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, time
from typing import Any, Final

import pyarrow as pa

from dpgram.errors import SchemaError
from dpgram.schema.reading import Reading, reading
from dpgram.sources.text_cells import parse

MARKS: Final = ("decimal", "thousands", "prefix", "suffix")


def read_bound(text: str, kind: str, entry: Mapping[str, Any]) -> float | str:
    """The number, or the date as ISO text; ValueError in words for what is neither in the column's form."""
    rules = _rules(kind, entry)
    found = parse(pa.array([text]), "date" if kind == "date" else "number", rules)[0].as_py()
    if isinstance(found, datetime):
        return (found.date() if found.time() == time() else found).isoformat()
    if found is not None:
        number = float(found)
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if kind == "date":
        raise ValueError(
            f"{text!r} is no date. Write it as 2025-12-31, or as the dates of the column are written"
        )
    marks = f"the decimal mark is {rules.decimal or '.'!r}"
    if rules.thousands is not None:
        marks += f", and {rules.thousands!r} stands between thousands"
    raise ValueError(f"{text!r} is no number in the form of this column, in which {marks}")


def shown_bound(value: object, kind: str, entry: Mapping[str, Any]) -> str:
    """How `read_bound` reads this value."""
    if isinstance(value, str):
        form = entry.get("format")
        written = value if form is None else datetime.fromisoformat(value).strftime(form)
        try:
            return written if read_bound(written, kind, entry) == value else value
        except ValueError:
            return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return str(value).replace(".", _rules(kind, entry).decimal or ".")


def _rules(kind: str, entry: Mapping[str, Any]) -> Reading:
    """Those that say how a bound is written; none where they are wrong, which the schema tells."""
    known = ("format",) if kind == "date" else MARKS
    try:
        return reading("", {key: entry[key] for key in known if entry.get(key)})
    except SchemaError:
        return Reading()
