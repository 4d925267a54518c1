"""From a table to its release: request, plan, measurements, and the order in which they are carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgram import _when_used
from dpgram.errors import require_publish

if TYPE_CHECKING:
    from dpgram.publishing.causes import Cause
    from dpgram.publishing.column_checks import ColumnCheck
    from dpgram.publishing.dry_run import Check, check
    from dpgram.publishing.expected import ExpectedAdaptive, expected_adaptive
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
    "ExpectedAdaptive",
    "LedgerLike",
    "Options",
    "ReleaseTerms",
    "check",
    "expected_adaptive",
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
        "dpgram.publishing.expected": "ExpectedAdaptive expected_adaptive",
        "dpgram.publishing.publisher": "CuratorReport interrupted publish publish_each publish_with "
        "published",
        "dpgram.publishing.request": "LedgerLike Options requested",
        "dpgram.publishing.split": "Adaptive",
        "dpgram.publishing.starter": "starter_schema",
        "dpgram.publishing.terms": "ReleaseTerms terms_of",
    },
)


def __getattr__(name: str) -> object:
    # What a plan takes and gives, which reads no data.
    if name in __all__ and name not in ("Adaptive", "ExpectedAdaptive", "expected_adaptive"):
        require_publish()
    return _fetch(name)
