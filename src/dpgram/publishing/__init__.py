"""From a table to its release: request, plan, measurements, and the order in which they are carried out."""

from __future__ import annotations

from dpgram.errors import require_publish

require_publish()

from dpgram.publishing.publisher import Report, publish, published
from dpgram.publishing.request import LedgerLike, Options, requested
from dpgram.publishing.terms import Terms, agree, agree_all

__all__ = [
    "LedgerLike",
    "Options",
    "Report",
    "Terms",
    "agree",
    "agree_all",
    "publish",
    "published",
    "requested",
]
