"""dpgram: publish one private Gram matrix, run every regression on it.

The curator's side: `Schema` and its columns, `Ledger`, `publish`. The analyst's side: `load`, `Release`.
Names are fetched when first used, so `import dpgram` is quick and an analyst never imports what reads data.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dpgram import mechanisms
    from dpgram.errors import DpgramError, DpgramWarning
    from dpgram.planning import Assumption, Plan, plan
    from dpgram.privacy.ledger import Ledger
    from dpgram.publishing import Adaptive, Check, CuratorReport, check, publish, publish_each
    from dpgram.release import Release, load
    from dpgram.rows import Rows
    from dpgram.schema import Schema, boolean, categorical, legendre, numeric, ordinal, product

    __version__: str

__all__ = [
    "Adaptive",
    "Assumption",
    "Check",
    "CuratorReport",
    "DpgramError",
    "DpgramWarning",
    "Ledger",
    "Plan",
    "Release",
    "Rows",
    "Schema",
    "__version__",
    "boolean",
    "categorical",
    "check",
    "legendre",
    "load",
    "mechanisms",
    "numeric",
    "ordinal",
    "plan",
    "product",
    "publish",
    "publish_each",
]

_HOMES: Final = {
    "Adaptive": "dpgram.publishing",
    "Assumption": "dpgram.planning",
    "Check": "dpgram.publishing",
    "DpgramError": "dpgram.errors",
    "DpgramWarning": "dpgram.errors",
    "Ledger": "dpgram.privacy.ledger",
    "Plan": "dpgram.planning",
    "Release": "dpgram.release",
    "CuratorReport": "dpgram.publishing",
    "Rows": "dpgram.rows",
    "Schema": "dpgram.schema",
    "boolean": "dpgram.schema",
    "categorical": "dpgram.schema",
    "check": "dpgram.publishing",
    "legendre": "dpgram.schema",
    "load": "dpgram.release",
    "numeric": "dpgram.schema",
    "ordinal": "dpgram.schema",
    "plan": "dpgram.planning",
    "product": "dpgram.schema",
    "publish": "dpgram.publishing",
    "publish_each": "dpgram.publishing",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("dpgram")
    if name == "mechanisms":
        return import_module("dpgram.mechanisms")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dpgram' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
