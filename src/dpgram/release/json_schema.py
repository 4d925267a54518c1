"""The JSON Schema of a release file, made from the same types that read it.

`python -m dpgram.release.json_schema` writes release_schema.json again; a test fails when the two differ.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from dpgram.document.document import FORMAT, OPTIONAL_FIELDS, VERSION
from dpgram.release.release import Release
from dpgram.schema import MAX_WIDTH, Schema

FILE: Final = Path(__file__).with_name("release_schema.json")

_NAME: Final = {"type": "string", "minLength": 1}
_WEIGHT: Final = {"type": "number", "minimum": 1e-6, "maximum": 1e6, "default": 1}
_BOUND: Final = {
    "description": "A number, or an ISO date for a column of dates.",
    "type": ["number", "string"],
}
_COLUMNS: Final[Mapping[str, tuple[Mapping[str, object], list[str]]]] = {
    "numeric": ({"name": _NAME, "low": _BOUND, "high": _BOUND}, ["name", "low", "high"]),
    "categorical": (
        {
            "name": _NAME,
            "levels": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
            "other": {"type": "string"},
        },
        ["name", "levels"],
    ),
    "ordinal": (
        {
            "name": _NAME,
            "levels": {"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": True},
        },
        ["name", "levels"],
    ),
    "boolean": ({"name": _NAME}, ["name"]),
    "product": ({"left": _NAME, "right": _NAME}, ["left", "right"]),
    "legendre": ({"column": _NAME, "degree": {"type": "integer", "minimum": 2}}, ["column", "degree"]),
}


def json_schema() -> dict[str, object]:
    """A closed object: every field required but the optional ones, none beside them."""
    fields = [field for field in msgspec.structs.fields(Release) if field.type is not Schema]
    schemas, components = msgspec.json.schema_components(
        [field.type for field in fields], ref_template="#/$defs/{name}"
    )
    properties: dict[str, object] = {
        field.encode_name: schema for field, schema in zip(fields, schemas, strict=True)
    }
    properties["schema"] = _schema_of_the_schema()
    properties["digest"] = {
        "type": "string",
        "pattern": "^[0-9a-f]{64}$",
        "description": "SHA-256 of the canonical JSON of all other fields but the signature.",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{FORMAT}, version {VERSION}",
        "type": "object",
        "properties": dict(sorted(properties.items())),
        "required": sorted(properties.keys() - OPTIONAL_FIELDS),
        "additionalProperties": False,
        "$defs": components,
    }


def as_file() -> str:
    """The text of the committed file."""
    return json.dumps(json_schema(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _schema_of_the_schema() -> dict[str, object]:
    columns = [
        {
            "type": "object",
            "properties": {"kind": {"const": kind}, **parts, "weight": _WEIGHT},
            "required": ["kind", *required],
            "additionalProperties": False,
        }
        for kind, (parts, required) in _COLUMNS.items()
    ]
    return {
        "type": "object",
        "properties": {
            "constant": {"type": "boolean"},
            "columns": {
                "type": "array",
                "items": {"oneOf": columns},
                "minItems": 1,
                "maxItems": MAX_WIDTH,
            },
        },
        "required": ["columns", "constant"],
        "additionalProperties": False,
    }


if __name__ == "__main__":
    FILE.write_text(as_file(), encoding="utf-8")
