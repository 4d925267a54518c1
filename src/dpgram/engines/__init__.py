"""Where rows are encoded and summed: on this machine, or on many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgram import _when_used
from dpgram.errors import require_publish

require_publish("pyarrow")  # all that the workers of a cluster need: none of them draws noise

if TYPE_CHECKING:
    from dpgram.engines.base import Engine
    from dpgram.engines.dask import DaskEngine
    from dpgram.engines.federated import Partial, Partials, partial_gram
    from dpgram.engines.find import find_engine
    from dpgram.engines.local import LocalEngine, gram
    from dpgram.engines.passes import Pass, Sums, gram_pass, merge
    from dpgram.engines.spark import SparkEngine
    from dpgram.engines.threads import Progress

__all__ = [
    "DaskEngine",
    "Engine",
    "LocalEngine",
    "Partial",
    "Partials",
    "Pass",
    "Progress",
    "SparkEngine",
    "Sums",
    "find_engine",
    "gram",
    "gram_pass",
    "merge",
    "partial_gram",
]

__getattr__, __dir__ = _when_used(
    __name__,
    {
        "dpgram.engines.base": "Engine",
        "dpgram.engines.dask": "DaskEngine",
        "dpgram.engines.federated": "Partial Partials partial_gram",
        "dpgram.engines.find": "find_engine",
        "dpgram.engines.local": "LocalEngine gram",
        "dpgram.engines.passes": "Pass Sums gram_pass merge",
        "dpgram.engines.spark": "SparkEngine",
        "dpgram.engines.threads": "Progress",
    },
)
