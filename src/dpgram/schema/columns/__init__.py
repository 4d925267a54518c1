"""The kinds of column a schema is made of, one file each: public facts → encoded columns with |z| ≤ 1.

Every kind adds at most weight² to a row's squared norm. Use the functions `numeric`, `categorical`,
`ordinal`, `boolean`, `product` and `legendre`: they take what people write (dates as ISO text, levels as
numbers). To add a kind, write its file and add it to `KINDS`.
"""

from collections.abc import Mapping
from typing import Final

from dpgram.schema.columns.base import (
    CellKind,
    Column,
    DerivedColumn,
    FileForm,
    SourceColumn,
    first_repeated,
)
from dpgram.schema.columns.boolean import Boolean, boolean
from dpgram.schema.columns.categorical import Categorical, categorical
from dpgram.schema.columns.legendre import MAX_DEGREE, Legendre, legendre
from dpgram.schema.columns.numeric import Numeric, numeric
from dpgram.schema.columns.ordinal import Ordinal, ordinal
from dpgram.schema.columns.product import Product, product
from dpgram.schema.encodings import CONSTANT

__all__ = [
    "CONSTANT",
    "KINDS",
    "MAX_DEGREE",
    "Boolean",
    "Categorical",
    "CellKind",
    "Column",
    "DerivedColumn",
    "FileForm",
    "Legendre",
    "Numeric",
    "Ordinal",
    "Product",
    "SourceColumn",
    "boolean",
    "categorical",
    "first_repeated",
    "legendre",
    "numeric",
    "ordinal",
    "product",
]

KINDS: Final[Mapping[str, type[Column]]] = {
    "numeric": Numeric,
    "categorical": Categorical,
    "ordinal": Ordinal,
    "boolean": Boolean,
    "product": Product,
    "legendre": Legendre,
}
"""By the name under which a schema declares it."""
