"""What is publicly known about a table: its columns, their bounds and levels."""

from dpgram.schema.columns import (
    Boolean,
    Categorical,
    Column,
    DerivedColumn,
    EncodedColumn,
    Legendre,
    Numeric,
    Product,
    boolean,
    categorical,
    legendre,
    numeric,
    product,
)
from dpgram.schema.ordered import Ordinal, ordinal
from dpgram.schema.schema import LONGEST_FILE, MAX_WIDTH, Schema, starter_toml

__all__ = [
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
    "boolean",
    "categorical",
    "legendre",
    "numeric",
    "ordinal",
    "product",
    "starter_toml",
]
