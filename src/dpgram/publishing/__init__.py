"""From a table to its release: request, plan, measurements, and the order in which they are carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgram import _when_used
from dpgram.errors import require_publish

if TYPE_CHECKING:
    from dpgram.publishing.causes import Cause
    from dpgram.publishing.column_checks import ColumnCheck
    from dpgram.publishing.dry_run import Check, check
    from dpgram.publishing.publisher import (
        CuratorReport,
        interrupted,
        publish,
        publish_each,
        publish_with,
        published,
    )
    from dpgram.publishing.request import LedgerLike, Options, requested
    from dpgram.publishing.split import Adaptive
    from dpgram.publishing.starter import starter_schema
    from dpgram.publishing.terms import ReleaseTerms, terms_of

__all__ = [
    "Adaptive",
    "Cause",
    "Check",
    "ColumnCheck",
    "CuratorReport",
    "LedgerLike",
    "Options",
    "ReleaseTerms",
    "check",
    "interrupted",
    "publish",
    "publish_each",
    "publish_with",
    "published",
    "requested",
    "starter_schema",
    "terms_of",
]

_fetch, __dir__ = _when_used(
    __name__,
    {
        "dpgram.publishing.causes": "Cause",
        "dpgram.publishing.column_checks": "ColumnCheck",
        "dpgram.publishing.dry_run": "Check check",
        "dpgram.publishing.publisher": "CuratorReport interrupted publish publish_each publish_with "
        "published",
        "dpgram.publishing.request": "LedgerLike Options requested",
        "dpgram.publishing.split": "Adaptive",
        "dpgram.publishing.starter": "starter_schema",
        "dpgram.publishing.terms": "ReleaseTerms terms_of",
    },
)


def __getattr__(name: str) -> object:
    if name in __all__ and name != "Adaptive":  # which is also what a plan takes, and that reads no data
        require_publish()
    return _fetch(name)
