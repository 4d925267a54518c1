"""From a table to its release: request, plan, measurements, and the order in which they are carried out."""

from __future__ import annotations

from dpgram.errors import require_publish

require_publish()

from dpgram.publishing.dry_run import Check, check
from dpgram.publishing.publisher import Report, publish, publish_each, publish_with, published
from dpgram.publishing.request import LedgerLike, Options, requested
from dpgram.publishing.split import Adaptive
from dpgram.publishing.terms import Terms, terms_of

__all__ = [
    "Adaptive",
    "Check",
    "LedgerLike",
    "Options",
    "Report",
    "Terms",
    "check",
    "publish",
    "publish_each",
    "publish_with",
    "published",
    "requested",
    "terms_of",
]
