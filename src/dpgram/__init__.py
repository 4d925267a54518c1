"""dpgram: publish one private Gram matrix, run every regression on it.

The curator's side: `Schema` and its columns, `Ledger`, `publish`. The analyst's side: `load`, `Release`.
Names are fetched when first used, so `import dpgram` is quick and an analyst never imports what reads data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpgram import mechanisms
    from dpgram.analysis import compare, pool, union
    from dpgram.errors import DpgramError, DpgramWarning
    from dpgram.job import Job
    from dpgram.models import linear, logistic, poisson, probit
    from dpgram.planning import Assumption, Plan, plan
    from dpgram.privacy.ledger import Ledger
    from dpgram.publishing import Adaptive, Check, CuratorReport, check, publish, publish_each
    from dpgram.release import Release, load
    from dpgram.rows import Rows
    from dpgram.schema import Schema, boolean, categorical, legendre, numeric, ordinal, product
    from dpgram.series import Series

    __version__: str

__all__ = [
    "Adaptive",
    "Assumption",
    "Check",
    "CuratorReport",
    "DpgramError",
    "DpgramWarning",
    "Job",
    "Ledger",
    "Plan",
    "Release",
    "Rows",
    "Schema",
    "Series",
    "__version__",
    "boolean",
    "categorical",
    "check",
    "compare",
    "legendre",
    "linear",
    "load",
    "logistic",
    "mechanisms",
    "numeric",
    "ordinal",
    "plan",
    "poisson",
    "pool",
    "probit",
    "product",
    "publish",
    "publish_each",
    "union",
]


def _when_used(
    folder: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a folder that imports what it offers when it is first used.

    `homes` has the names by the module they are in; under the folder's own name are modules it offers whole.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}
    offering = vars(sys.modules[folder])

    def fetch(name: str) -> object:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {folder!r} has no attribute {name!r}")
        whole = home == folder
        value: object = import_module(f"{folder}.{name}") if whole else getattr(import_module(home), name)
        offering[name] = value
        return value

    return fetch, lambda: sorted({*offering, *home_of})


_fetch, __dir__ = _when_used(
    __name__,
    {
        "dpgram": "__version__ mechanisms",
        "dpgram.analysis": "compare pool union",
        "dpgram.errors": "DpgramError DpgramWarning",
        "dpgram.job": "Job",
        "dpgram.models": "linear logistic poisson probit",
        "dpgram.planning": "Assumption Plan plan",
        "dpgram.privacy.ledger": "Ledger",
        "dpgram.publishing": "Adaptive Check CuratorReport check publish publish_each",
        "dpgram.release": "Release load",
        "dpgram.rows": "Rows",
        "dpgram.schema": "Schema boolean categorical legendre numeric ordinal product",
        "dpgram.series": "Series",
    },
)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("dpgram")
    return _fetch(name)
