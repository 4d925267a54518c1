"""What is publicly known about a table: its columns, their bounds and levels."""

from dpgram.schema.columns import (
    KINDS,
    Boolean,
    Categorical,
    Column,
    DerivedColumn,
    Legendre,
    Numeric,
    Ordinal,
    Product,
    SourceColumn,
    boolean,
    categorical,
    legendre,
    numeric,
    ordinal,
    product,
)
from dpgram.schema.encodings import EncodedColumn
from dpgram.schema.schema import MAX_WIDTH, Schema
from dpgram.schema.toml_form import LONGEST_FILE, starter_toml

__all__ = [
    "KINDS",
    "LONGEST_FILE",
    "MAX_WIDTH",
    "Boolean",
    "Categorical",
    "Column",
    "DerivedColumn",
    "EncodedColumn",
    "Legendre",
    "Numeric",
    "Ordinal",
    "Product",
    "Schema",
    "SourceColumn",
    "boolean",
    "categorical",
    "legendre",
    "numeric",
    "ordinal",
    "product",
    "starter_toml",
]
