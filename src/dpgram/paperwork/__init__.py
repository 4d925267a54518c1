"""Papers that a disclosure board signs: the entry for the public registry, and an evaluation after NIST.

Both are written from the release itself, and from the ledger where one is given. What only the curator can
know stands there as an open point.
"""

from __future__ import annotations

from dpgram.paperwork.evaluation import Item, evaluation, evaluation_page
from dpgram.paperwork.facts import OPEN
from dpgram.paperwork.registry import REQUIRED, SCHEMA_READ, registry_entry, registry_yaml

__all__ = [
    "OPEN",
    "REQUIRED",
    "SCHEMA_READ",
    "Item",
    "evaluation",
    "evaluation_page",
    "registry_entry",
    "registry_yaml",
]
