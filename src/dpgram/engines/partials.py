"""Partial sums of several sites, merged: the engine of `publish(Partials(files=[...]), ...)`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from dpgram.encoding import Missing
from dpgram.engines.work import Sums, Work, settled
from dpgram.errors import SourceError
from dpgram.gram import ExactGram
from dpgram.schema import Schema

if TYPE_CHECKING:
    from dpgram.engines.threads import Progress
    from dpgram.portions import Portions


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartialsEngine:
    """Reads no row: the sites did."""

    name: ClassVar[str] = "partials"

    def accepts(self, data: object) -> bool:
        """Partial files; nobody can have made `Partials` without having loaded its module."""
        kind = getattr(sys.modules.get("dpgram.federated"), "Partials", None)
        return isinstance(kind, type) and isinstance(data, kind)

    def gram(
        self,
        data: object,
        schema: Schema,
        clip: float | None = None,
        *,
        missing: Missing = "drop",
        strict: bool = False,
        progress: Progress = None,
    ) -> ExactGram:
        """The sum of the sites' matrices. Not private."""
        del progress
        (found,) = _merged(data, Work.of_gram(schema, clip, missing=missing, strict=strict))
        return found

    def portions(self, data: object, plan: Portions, *, progress: Progress = None) -> tuple[ExactGram, ...]:
        """The sums of the sites' matrices of every block and group. Not private."""
        del progress
        return _merged(data, Work.of_portions(plan))


def _merged(data: object, work: Work) -> Sums:
    from dpgram.federated import Partials

    if not isinstance(data, Partials):
        raise SourceError("this engine reads partial sums only", got=type(data).__name__, limit="Partials")
    return settled(data.merged(work), strict=work.encoder.strict)
