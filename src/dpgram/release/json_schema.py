"""The JSON Schema of a release file, made from the same types that read it.

`python -m dpgram.release.json_schema` writes release_schema.json again; a test fails when the two differ.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import msgspec

from dpgram.document.document import FORMAT, OPTIONAL_FIELDS, VERSION
from dpgram.release.release import Release
from dpgram.schema import KINDS, MAX_WIDTH, Schema
from dpgram.schema.reading import LAYOUT_FORMS

FILE: Final = Path(__file__).with_name("release_schema.json")


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
    return json.dumps(json_schema(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _schema_of_the_schema() -> dict[str, object]:
    columns = [column.form.json_schema(kind) for kind, column in KINDS.items()]
    return {
        "type": "object",
        "properties": {
            "constant": {"type": "boolean"},
            **LAYOUT_FORMS,
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
