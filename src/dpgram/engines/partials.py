"""Partial sums of several sites, merged: the engine of `publish(Partials(files=[...]), ...)`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from dpgram.engines.passes import Pass, Sums, sums_or_raise
from dpgram.errors import SourceError

if TYPE_CHECKING:
    from dpgram.engines.threads import Progress


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartialsEngine:
    """Reads no row: the sites did."""

    name: ClassVar[str] = "partials"
    passes: ClassVar[int | None] = 1

    def accepts(self, data: object) -> bool:
        """Partial files; nobody can have made `Partials` without having loaded its module."""
        kind = getattr(sys.modules.get("dpgram.engines.federated"), "Partials", None)
        return isinstance(kind, type) and isinstance(data, kind)

    def add_up(self, data: object, work: Pass, *, progress: Progress = None) -> Sums:
        """The sums of the sites' matrices. **Not private.**"""
        del progress
        return _merged(data, work)


def _merged(data: object, work: Pass) -> Sums:
    from dpgram.engines.federated import Partials

    if not isinstance(data, Partials):
        raise SourceError("this engine reads partial sums only", got=type(data).__name__, limit="Partials")
    return sums_or_raise(data.merged(work), work)
