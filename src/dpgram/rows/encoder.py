"""`Encoder`: rows of a table → integer rows q with |q|² ≤ 2^30, by public bounds and a clip to radius R.

The lattice has step R / 2^15. The encoded row a is scaled as a whole by min(1, R/|a|), multiplied by 2^15/R
and rounded to the nearest integers; a row whose integer squared norm would pass 2^30 is truncated towards
zero instead. So the sensitivity is a fact about integers. Whether encoding succeeds depends on declared types
only, never on a value: missing cells and unknown levels follow a declared policy, values outside the bounds
are clamped.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, final, get_args

import numpy as np
import numpy.typing as npt

from dpgram.core.units import PolicyCounts
from dpgram.document.coordinates import Coordinates
from dpgram.errors import SchemaError, real, shown
from dpgram.schema import Schema

if TYPE_CHECKING:  # compilers and readers are loaded only where rows are encoded
    from dpgram.rows.batch_encoder import BatchEncoder

Missing = Literal["drop", "midpoint"]
"""What happens to a row with a missing cell: left out, or the cell put at the middle of its range."""

LEAST_RADIUS: Final = 1e-9

CHUNK_ROWS: Final = 4_000
"""Most rows of a chunk: enough to feed the matrix product, few enough to stay near the processor. Not a power
of two, so that the lines of a chunk do not compete for the same places of the cache."""
LEAST_CHUNK_ROWS: Final = 1_000
CHUNK_CELLS: Final = 1 << 18
"""Most cells of a chunk between these: wide schemas get shorter chunks."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedBatch:
    """Lattice rows (k × d integers held as float64) of a batch, and what the policies did to it."""

    rows: npt.NDArray[np.float64]
    counts: PolicyCounts


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedChunk:
    """A chunk of lattice rows, held by columns: `lines` has one line for each column, then lines of zeros.

    The zeros fill up to a multiple of `LINE_GROUP` lines: the matrix product of 24 columns takes three
    quarters of the time of 23.
    """

    lines: npt.NDArray[np.float64]
    counts: PolicyCounts
    lengths: npt.NDArray[np.float64] | None = None
    """|u|²/R² of each row before the clip; only where there are coordinates."""


LINE_GROUP: Final = 4


@final
@dataclass(frozen=True, slots=True)
class Encoder:
    """Turns batches of a table into lattice rows by the schema and the policies. Holds public facts only.

    `clip` is a public radius (none: the largest norm the schema allows, so that nothing is clipped). `strict`
    raises at the first missing, unknown or out-of-range cell instead of following the policies; that it did
    not raise is then an assumption the reader of a release must be told.
    """

    schema: Schema
    _: KW_ONLY
    clip: float | None = None
    missing: Missing = "drop"
    strict: bool = False
    coordinates: Coordinates | None = None
    """u = T v, of which the lattice rows are made; none: the encoded columns v themselves."""
    radius: float = field(init=False)
    """R: every encoded row has norm at most R, which is 2^15 lattice units."""

    def __post_init__(self) -> None:
        if not isinstance(self.missing, str) or self.missing not in get_args(Missing):
            raise SchemaError(
                "the policy for missing values is unknown",
                got=shown(self.missing),
                limit=" or ".join(map(repr, get_args(Missing))),
            )
        if not isinstance(self.strict, bool):
            raise SchemaError("strict must be True or False", got=shown(self.strict))
        if self.schema.unbounded:
            raise SchemaError(
                f"column {self.schema.unbounded[0]!r} has no bounds",
                remedy=f"Give public ones: numeric({self.schema.unbounded[0]!r}, low, high)",
            )
        if self.schema.without_levels:
            raise SchemaError(
                f"column {self.schema.without_levels[0]!r} has no levels",
                remedy=f"List them: categorical({self.schema.without_levels[0]!r}, [...])",
            )
        largest = math.sqrt(self.schema.max_norm_squared) if self.coordinates is None else math.inf
        if self.coordinates is not None and (
            self.clip is None or self.coordinates.width != self.schema.width
        ):
            raise SchemaError(
                "coordinates need a clip radius and one line for each encoded column",
                remedy="This is a bug: please report it",
            )
        object.__setattr__(self, "radius", _radius(largest, self.clip))

    @property
    def clips(self) -> bool:
        """Whether the radius is less than what the schema allows."""
        return self.coordinates is not None or self.radius**2 < self.schema.max_norm_squared * (1 - 1e-12)

    @property
    def chunk_rows(self) -> int:
        return min(CHUNK_ROWS, max(LEAST_CHUNK_ROWS, CHUNK_CELLS // self.schema.width))

    def batch_encoder(self) -> BatchEncoder:
        """Working memory for one thread, which encodes chunk after chunk."""
        from dpgram.rows.batch_encoder import BatchEncoder

        return BatchEncoder(self)

    def encode(
        self, batch: Any, *, first_row: int = 0, unit_rows: npt.NDArray[np.integer[Any]] | None = None
    ) -> EncodedBatch:
        """All rows of a record batch that has the schema's source columns (others are ignored).

        `first_row` is the number of the batch's first row, for messages. `unit_rows` says, for each row, of
        how many rows of the same privacy unit it is one: m of them are weighted 1/√m and bounded by ⌊2^30/m⌋
        each, so that together they weigh no more than one row.
        """
        counts, rows = PolicyCounts(), [np.empty((0, self.schema.width))]
        for chunk in self.batch_encoder().encode(batch, first_row=first_row, unit_rows=unit_rows):
            counts += chunk.counts
            rows.append(chunk.lines[: self.schema.width].T.copy())  # the next chunk overwrites this one
        return EncodedBatch(rows=np.ascontiguousarray(np.concatenate(rows)), counts=counts)


def _radius(largest: float, clip: object) -> float:
    radius = checked_radius(clip)
    # A larger radius would clip nothing and only make the noise larger.
    return largest if radius is None else min(radius, largest)


def checked_radius(clip: object) -> float | None:
    """The radius that was given, as a float; None where none was."""
    if clip is None:
        return None
    radius = real(clip)
    if radius is None:
        raise SchemaError("the clip radius must be a number", got=shown(clip))
    if not (math.isfinite(radius) and radius >= LEAST_RADIUS):
        raise SchemaError(
            "the clip radius is out of range", got=radius, limit=f"at least {LEAST_RADIUS}, and finite"
        )
    return radius
