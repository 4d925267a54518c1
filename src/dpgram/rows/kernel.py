"""q = round(a · min(1, R/|a|)) on the lattice, |q|² ≤ 2^30 exactly: the loops of the encoder, in two forms.

`_vectorised` is plain numpy and starts at once; `_compiled` is several times faster for each cell, but takes
about a second to load and, the first time on a machine, some ten seconds to compile. Both do the same IEEE
operations in the same order and give the same bits, so which one runs shows in time alone.
"""

from __future__ import annotations

import threading
from typing import Final, Protocol, final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Hashes = npt.NDArray[np.uint64]

# Kinds of source column, as the loops know them.
NUMBER: Final = 0
BOOLEAN: Final = 1
LEVELS: Final = 2

# Facts of a source column: its kind, the first encoded column it fills, how many it fills.
KIND, TARGET, SIZE = range(3)
# Its numbers: bounds, centre, 1/half_width, and weight · 2^15 / R.
LOW, HIGH, CENTRE, INVERSE_HALF_WIDTH, LATTICE_SCALE = range(5)
# Facts of a derived column: two factors (the second is −1 for a polynomial), the degree, the column it fills,
# and the encoded columns of the factors.
LEFT, RIGHT, DEGREE, RESULT, LEFT_LINE, RIGHT_LINE = range(6)
# Entries of the counts: cells clamped, missing and unknown, and rows clipped.
CLAMPED, MISSING, UNKNOWN, CLIPPED = range(4)

# Equal steps of a histogram between bounds, with a node at either end of each; then cells for what was lost.
STEPS: Final = 16
NODES: Final = STEPS + 1
LOST_MISSING, LOST_UNREADABLE, LOST_BELOW, LOST_ABOVE = range(4)

# Hashes of ids and rows, fixed for ever (dpgram.rows.units).
FNV_START: Final = np.uint64(0xCBF29CE484222325)
FNV_PRIME: Final = np.uint64(0x100000001B3)
GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
MIX_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
MIX_SECOND: Final = np.uint64(0x94D049BB133111EB)

COMPILE_AFTER: Final = 20_000_000
"""Cells that a process takes by numpy before it loads the compiled loops: some 800,000 rows of 24 columns, a
fifth of a second. Compiled code belongs to the process, so its cells are counted over all tables it reads;
numpy would still be ahead for some time, but not by more than the user notices."""


class Kernel(Protocol):
    """What both forms offer."""

    def encode_rows(
        self,
        rows: Floats,
        raw: Floats,
        count: int,
        sources: Integers,
        scales: Floats,
        derived: Integers,
        steps: Floats,
        constant: float,
        clip: bool,
        drop: bool,
        units: Integers,
        weights: Floats,
        counts: Integers,
        out: Floats,
    ) -> int:
        """Encode `count` rows into the lines of `out` (one line per column); returns how many were kept.

        The source cells are in the lines of `raw`, or, if `rows` is not empty, in its rows (`raw` is then
        scratch). They are numbers, truth values 0/1 or numbers of levels; NaN is missing, an infinite number
        unreadable, which is lost in the same way, −1 an unknown level. The rows kept come first in `out`, in
        their order. `units` is empty, or says of how many rows of one privacy unit each row is one; `weights`
        is empty, or has a factor in [0, 1] for each row. `counts` is added to.
        """

    def fill_rows(
        self,
        rows: Floats,
        raw: Floats,
        count: int,
        sources: Integers,
        scales: Floats,
        derived: Integers,
        steps: Floats,
        constant: float,
        whole: bool,
        missing: Bytes,
        counts: Integers,
        out: Floats,
    ) -> None:
        """The first half of `encode_rows`: cells in the lines of `out`, neither clipped nor dropped.

        If `whole`, they are rounded to whole numbers. `missing` is set to 1 where a row lacks something, else
        to 0.
        """

    def finish_rows(
        self,
        count: int,
        scale: float,
        drop: bool,
        units: Integers,
        weights: Floats,
        missing: Bytes,
        counts: Integers,
        norms: Floats,
        lines: Floats,
        out: Floats,
    ) -> int:
        """The second half, for lines in other coordinates: scale, clip, weigh, round, drop.

        Gives how many rows were kept; `norms` has their squared lengths before anything was clipped. `lines`
        stay as they are, the rows go to `out`.
        """

    def round_lines(self, lines: Floats, factor: Floats, limit: int) -> None:
        """The encoder's rounding for lines that something else has filled, in place: |q|² ≤ limit, exactly.

        `factor` is empty, or has a factor for each row, by which it is scaled before.
        """

    def count_rows(
        self,
        rows: Floats,
        units: Integers,
        levels: Integers,
        ends: Floats,
        cells: Integers,
    ) -> None:
        """Add each row's cells to the histogram of their column, 2^30 of each or as many as `units` says.

        Of column j, `levels[j]` is the number of levels, whose numbers its cells are, or 0 for numbers
        between the bounds in `ends[j]`. Line j of `cells` begins with the levels or nodes; the cells for what
        was lost follow. proofs/adaptive.md#adaptive-histograms
        """

    def clip_bins(self, lengths: Floats) -> Integers:
        """The bin of each |u|²/R² by what a clip at R takes: proofs/adaptive.md#adaptive-clip."""

    def reach_bins(self, lengths: Floats) -> Integers:
        """The bin of each |u|²/R² among the quarter octaves of |u|/R, by comparison with their ends."""

    def text_hashes(self, places: Integers, letters: Bytes) -> Hashes:
        """The hash of each text, whose letters are at places[i] … places[i + 1] − 1."""

    def row_hashes(self, seeds: Hashes, bits: Hashes) -> tuple[Hashes, Hashes]:
        """Two hashes of each row of `bits`, which begin with its seed."""


@final
class _Compiling:
    """Whether our loops are being compiled now, as the compiler tells; and whether the code is kept."""

    def __init__(self) -> None:
        self.started, self.ended, self.kept = 0, 0, True


COMPILING: Final = _Compiling()


def compiling() -> str | None:
    """A line for a progress bar while the loops are being compiled; else nothing."""
    if COMPILING.started == COMPILING.ended:
        return None
    if COMPILING.kept:
        return "compiling, once on this machine …"
    return "compiling, in each process: no folder can be written to keep the code (set NUMBA_CACHE_DIR) …"


@final
class _CellCounter:
    """How many cells this process has encoded."""

    def __init__(self) -> None:
        self._taken, self._lock = 0, threading.Lock()

    def take(self, cells: int) -> int:
        """Count these as well; gives how many there were before."""
        with self._lock:
            before = self._taken
            self._taken += cells
        return before


_CELLS: Final = _CellCounter()


def kernel(cells: int) -> Kernel:
    """The form to use for the next `cells` cells."""
    if _CELLS.take(cells) < COMPILE_AFTER:
        from dpgram.rows import _vectorised

        return _vectorised
    from dpgram.rows import _compiled

    return _compiled


def round_lines(lines: Floats, factor: Floats, limit: int) -> None:
    kernel(lines.size).round_lines(lines, factor, limit)
