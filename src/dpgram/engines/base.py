"""An engine maps encode + Gram over the parts of a table and merges the sums; it holds no privacy code."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Protocol

from dpgram.encoding import Encoder, Missing
from dpgram.errors import DataError, DpgramWarning
from dpgram.gram import ExactGram, GramSum
from dpgram.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from dpgram.engines.threads import Progress
    from dpgram.portions import Portions

BATCH_CELLS: Final = 1 << 21
"""Most cells of a batch (16 MB of floats): few enough that memory does not depend on the table."""
BATCH_BLOCKS: Final = 16
"""Most blocks of a batch: few enough that workers end together."""


class Engine(Protocol):
    """What every engine offers. All give the same bits: integer sums do not depend on order or grouping.

    An engine knows nothing of privacy: the ledger is charged and noise drawn by `publish`, on the driver. The
    contract that a new engine must pass is in `dpgram.testing`.
    """

    @property
    def name(self) -> str:
        """What `publish(..., engine=)` calls it."""

    def accepts(self, data: object) -> bool:
        """Whether `engine="auto"` should take this engine for `data`; must be quick, and load nothing."""

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
        """The exact Gram matrix of the encoded table. Not private."""

    def portions(self, data: object, plan: Portions, *, progress: Progress = None) -> tuple[ExactGram, ...]:
        """The exact matrix of every block and, in it, of every group, from one pass. Not private."""


def batch_rows(encoder: Encoder, columns: int) -> int:
    """Rows of a batch: whole blocks, in memory that does not depend on the table."""
    block = encoder.block_rows
    return block * min(BATCH_BLOCKS, max(1, BATCH_CELLS // (block * columns)))


def gram_of(encoder: Encoder, batches: Iterable[tuple[int, pa.RecordBatch]]) -> ExactGram:
    """The Gram matrix of one part of a table: batches, each with the number of its first row."""
    blocks, total = encoder.blocks(), GramSum(encoder.schema.width)
    for first_row, batch in batches:
        for block in blocks.encode(batch, first_row=first_row):
            total.add(block)
    return total.result()


def finished(gram: ExactGram, *, strict: bool) -> ExactGram:
    """`gram`, with a loud warning to the curator (an error in strict mode) where no row was usable.

    A warning and not an error: whether a release succeeds must not depend on a single row.
    """
    some_row_used((gram,), strict=strict)
    return gram


def some_row_used(grams: tuple[ExactGram, ...], *, strict: bool) -> None:
    """Warn the curator loudly (in strict mode: stop) where no row was usable in any of the matrices."""
    if all(gram.rows == 0 for gram in grams):
        what = "no row of the data was usable: the release will hold noise alone"
        remedy = "Check the column names, types, levels and missing values against the schema"
        if strict:
            raise DataError("no row of the data was usable", remedy=remedy)
        # Where warnings are errors it is not given: one row would decide whether there is a release.
        with contextlib.suppress(DpgramWarning):
            warnings.warn(f"{what}. {remedy}", DpgramWarning, stacklevel=3)
