"""What an engine is: something that adds integers up over the parts of a table. It holds no privacy code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dpgram.engines.passes import Pass, Sums
    from dpgram.engines.threads import Progress


class Engine(Protocol):
    """What every engine offers. All give the same bits: integer sums do not depend on order or grouping.

    An engine knows nothing of privacy: the ledger is charged and noise drawn by `dpgram.publishing`, on the
    driver. The contract that a new engine must pass is in `dpgram.testing`.
    """

    @property
    def name(self) -> str:
        """What `publish(..., engine=)` calls it."""

    @property
    def passes(self) -> int | None:
        """How often it can read one table: None for as often as is needed."""

    def accepts(self, data: object) -> bool:
        """Whether `engine="auto"` should take this engine for `data`; must be quick, and load nothing."""

    def add_up(self, data: object, work: Pass, *, progress: Progress = None) -> Sums:
        """The exact sums of one pass over the table. Not private."""
