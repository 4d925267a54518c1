"""What a release file says: public facts and the noisy matrix, read and checked.

A `Document` holds public facts and the noisy matrix, nothing else: its fields are a closed list, and none but
the cells depends on the data. Loading validates everything, executes nothing and imports nothing that the
file names. The format is described in docs/reference/release-format.md.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct

from dpgram.canonical_json import canonical_bytes, parse_strictly, sha256_hex
from dpgram.document._checks import (
    consistent_noise,
    consistent_unit_group_block,
    mechanism_of,
    of_one_publication,
    paid_for,
    well_formed,
)
from dpgram.document.coordinates import Coordinates
from dpgram.document.fields import (
    About,
    AdjacencyName,
    Block,
    Group,
    Learnt,
    Measurements,
    MechanismUsed,
    Policy,
    PublishedMatrix,
    SeriesPart,
    StatedGuarantee,
    SurveyWeight,
    UnitRule,
)
from dpgram.document.measurements import consistent, of_first_edition
from dpgram.document.original_units import in_original_units, symmetric
from dpgram.document.signature import Signature
from dpgram.document.unreadable import DAMAGED, unreadable
from dpgram.errors import DpgramError, ReleaseError
from dpgram.lattice import LATTICE_BITS, cell_unit
from dpgram.noise import Law, NoisyInverse
from dpgram.noise.sampled import gram_of_inverse
from dpgram.privacy.receipt import Receipt
from dpgram.schema import Schema

FORMAT: Final = "dpgram-release"
VERSION: Final = 1
OPTIONAL_FIELDS: Final = frozenset(
    {
        "unit_rule",
        "group",
        "block",
        "survey_weight",
        "learnt",
        "measurements",
        "coordinates",
        "first_receipt",
        "series",
        "about",
        "signature",
    }
)
"""Left out of the file where they are None: files from before these fields keep their bytes and digests."""

Units: TypeAlias = Literal["encoded", "original"]
Matrix: TypeAlias = npt.NDArray[np.float64]

_FORM: Final = f'a JSON object with "format": "{FORMAT}"'


class Document(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """One private second-moment matrix and the public facts around it.

    cells · 2^exponent · (radius / 2^15)² is the matrix M of the rows u: those of the encoded columns v or, in
    coordinates of its own, of u = T v. Then T⁻¹ M T⁻ᵀ is the matrix in encoded units.
    """

    format: Literal["dpgram-release"] = FORMAT
    version: Literal[1] = VERSION
    library: Annotated[str, Meta(max_length=64)]
    schema: Schema
    radius: Annotated[float, Meta(gt=1e-50, lt=1e50)]
    lattice_bits: Literal[15] = LATTICE_BITS
    policy: Policy
    adjacency: AdjacencyName
    unit: Annotated[str, Meta(max_length=1000)] | None = None
    public_rows: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    mechanism: MechanismUsed
    noise: Law
    guarantee: StatedGuarantee
    entropy: Literal["system", "seeded"]
    published: PublishedMatrix = msgspec.field(name="matrix")
    receipt: Receipt | None = None
    unit_rule: UnitRule | None = None
    group: Group | None = None
    block: Block | None = None
    survey_weight: SurveyWeight | None = None
    learnt: Learnt | None = None
    """Only in files of the first edition: `measured` has it in the form of today."""
    measurements: Measurements | None = None
    """What was measured beside the matrix, in order, inside the same guarantee."""
    coordinates: Coordinates | None = None
    """u = T v, of which the matrix was made; none: it is that of the encoded columns v."""
    first_receipt: Receipt | None = None
    """Only in files of earlier versions, whose charge came in two parts: that of what could stop them."""
    series: SeriesPart | None = None
    """Which periods of a series were added up, where this is a part of one: the guarantee is then that of all
    periods together."""
    about: About | None = None
    """Title, description, contact and licence, where the curator gave any."""
    signature: Signature | None = None

    def __post_init__(self) -> None:
        width = self.schema.width
        expected = width * (width + 1) // 2
        if len(self.published.cells) != expected:
            raise ReleaseError(
                f"the matrix has the wrong size for its {width} columns",
                got=f"{len(self.published.cells)} cells",
                limit=f"{expected} cells",
                remedy=DAMAGED,
            )
        if (self.public_rows is None) != (self.adjacency == "add-remove" or self.group is not None):
            raise ReleaseError(
                "a row count belongs in a release of a whole table under replace-one, and only there",
                got=self.adjacency,
            )
        if mechanism_of(self) is None:
            raise ReleaseError(
                "the mechanism of this release is not known",
                got=repr(self.mechanism.name),
                remedy="Load it with the version of dpgram that made it, or a later one",
            )
        if not consistent_unit_group_block(self):
            raise ReleaseError(
                "the unit, group, block and adjacency of this release contradict each other", remedy=DAMAGED
            )
        if (self.learnt is not None and self.measurements is not None) or not consistent(self):
            raise ReleaseError("what was measured contradicts the schema or itself", remedy=DAMAGED)
        if not consistent_noise(self):
            raise ReleaseError(
                "the mechanism, its noise and its guarantee contradict each other", remedy=DAMAGED
            )
        if not all(map(well_formed, self.receipts)):
            raise ReleaseError("the ledger receipt is not well formed", remedy=DAMAGED)
        if self.receipt is not None and self.entropy != "system":
            raise ReleaseError("no ledger pays for seeded noise, but a receipt is there", remedy=DAMAGED)
        if not of_one_publication(self.receipts):
            raise ReleaseError("the ledger receipts are not of one publication", remedy=DAMAGED)
        if not paid_for(self):
            raise ReleaseError("the ledger was charged for less than this release", remedy=DAMAGED)

    @cached_property
    def measured(self) -> Measurements:
        """What was measured before the matrix, in order: noisy counts with their laws."""
        if self.learnt is not None:
            return of_first_edition(self.learnt)
        return self.measurements or ()

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The charge that paid for this release; in files of earlier versions there may be two, in order."""
        return tuple(each for each in (self.first_receipt, self.receipt) if each is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the matrix's rows and columns, in order."""
        return self.schema.names

    @property
    def part(self) -> str | None:
        """Which of several releases under one charge this is; None where the charge was for it alone."""
        if self.group is not None:
            return f"{self.group.column} = {self.group.level}"
        if self.series is not None:
            return f"{self.series} of a series"
        return None if self.block is None else f"block {self.block.number} of {self.block.of}"

    @cached_property
    def lattice_matrix(self) -> npt.NDArray[np.object_]:
        """The published integers as a full symmetric matrix, without the factor 2^exponent."""
        width = self.schema.width
        rows, columns = np.tril_indices(width)
        cells = np.array([int(cell) for cell in self.published.cells], dtype=object)
        matrix = np.empty((width, width), dtype=object)
        matrix[rows, columns] = cells
        matrix[columns, rows] = cells
        matrix.flags.writeable = False
        return matrix

    @property
    def measured_matrix(self) -> Matrix:
        """The noisy matrix where it was measured: there its noise has the stated law."""
        return self._lattice() * cell_unit(self.radius)

    def _lattice(self) -> Matrix:
        lattice: Matrix = np.ldexp(self.lattice_matrix.astype(np.float64), self.published.exponent)
        if isinstance(self.noise, NoisyInverse):
            lattice = gram_of_inverse(lattice, self.noise.ridge, self.noise.sigma)
        return lattice

    def matrix(self, units: Units = "encoded") -> Matrix:
        """The noisy matrix. Encoded: every column within ±weight. Original: the columns as declared.

        Where an inverse was published, the Gram matrix it stands for.

        In original units a column is x = centre + half_width · (encoded / weight): numbers as they were,
        false and true as 0 and 1, levels as 0 and 1, products and Legendre columns of the scaled factors.

        >>> round(float(release.matrix("original")[0, 0]))  # the noisy number of rows
        20024
        """
        encoded = self.measured_matrix
        if self.coordinates is not None:
            back = self.coordinates.inverse
            encoded = symmetric(back @ encoded @ back.T)
        if units == "encoded":
            return encoded
        if units == "original":
            return in_original_units(self.schema, encoded)
        raise ReleaseError("unknown units", got=repr(units), limit='"encoded" or "original"')

    @property
    def count_scale(self) -> float:
        """What a weight of 1 in the matrix stands for: the rows a unit may have, times the largest weight."""
        rule, survey = self.unit_rule, self.survey_weight
        rows = float(rule.rows_at_most) if rule is not None and rule.counts == "rows" else 1.0
        return rows if survey is None else rows * survey.at_most

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of every other field but the signature, which does not change it."""
        return sha256_hex(self._content())

    def to_json(self) -> bytes:
        """The file: canonical JSON with the digest among its fields, and a newline.

        >>> import json
        >>> json.loads(release.to_json())["guarantee"]["epsilon"]
        1.0
        """
        signed = {} if self.signature is None else {"signature": msgspec.to_builtins(self.signature)}
        return canonical_bytes({**self._content(), **signed, "digest": self.digest}) + b"\n"

    @classmethod
    def from_json(cls, raw: bytes) -> Self:
        """The release in `raw`, or ReleaseError with the reason.

        >>> dg.Release.from_json(release.to_json()) == release
        True
        """
        if not isinstance(raw, bytes):
            raise ReleaseError(
                "a release is read from bytes",
                got=type(raw).__name__,
                remedy='Write Release.from_json(text.encode()), or for a file dpgram.load("a.dpgram.json")',
            )
        try:
            content = parse_strictly(raw)
        except ValueError as problem:
            raise unreadable(raw, problem, kind="release", form=_FORM) from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ReleaseError("this is not a release", limit=_FORM)
        if content.get("version") != VERSION:
            raise ReleaseError(
                "this release has a version of the format that is not known here",
                got=_shortened(content.get("version")),
                limit=str(VERSION),
                remedy="Read it with a newer dpgram",
            )
        digest = content.pop("digest", None)
        try:
            release = cls(**_converted(cls, content))
            actual = release.digest
        except ReleaseError:
            raise
        except (DpgramError, ValueError, ArithmeticError) as problem:
            raise ReleaseError(
                "the release does not follow the format", got=_shortened(problem), remedy=DAMAGED
            ) from None
        if digest != actual:
            raise ReleaseError(
                "the content of the release does not match its digest: it was damaged or edited",
                remedy=DAMAGED,
            )
        return release

    def _content(self) -> dict[str, object]:
        """Every field but the digest and the signature, which speak of the others, as plain JSON values."""
        held = {field.encode_name: getattr(self, field.name) for field in _fields(type(self))}
        del held["signature"]
        return {
            name: _plain(value)
            for name, value in held.items()
            if value is not None or name not in OPTIONAL_FIELDS
        }


def _plain(value: object) -> object:
    """Plain JSON values. A schema has its own JSON form, which is not that of its attributes."""
    return value.to_dict() if isinstance(value, Schema) else msgspec.to_builtins(value)


@cache
def _fields(cls: type[Document]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Those of the file; to look their types up takes longer than all else on the way to a file or back."""
    return msgspec.structs.fields(cls)


def _converted(cls: type[Document], content: dict[str, object]) -> dict[str, Any]:
    """Each field converted to its type; every field must be there but the optional ones, and no other."""
    fields = {field.encode_name: field for field in _fields(cls)}
    odd_ones = (fields.keys() ^ content.keys()) - (OPTIONAL_FIELDS - content.keys())
    if odd_ones:
        odd = min(odd_ones)
        raise ValueError(f"the field {_shortened(odd)!r} is {'missing' if odd in fields else 'not known'}")
    return {fields[name].name: _typed(name, value, fields[name].type) for name, value in content.items()}


def _typed(name: str, value: object, kind: object) -> object:
    try:
        if kind is not Schema:
            return msgspec.convert(value, kind)
        schema = Schema.from_dict(msgspec.convert(value, dict[str, object]))
    except (msgspec.ValidationError, DpgramError) as problem:
        raise ValueError(f"{name}: {problem}") from None
    if unfinished(schema):
        raise ValueError(f"{name}: a column has no bounds or no levels, or there are several blocks")
    return schema


def unfinished(schema: Schema) -> bool:
    """Whether no matrix can have these columns: bounds or levels are missing, or there are several blocks."""
    return bool(schema.unbounded or schema.without_levels or schema.blocks is not None)


def _shortened(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else text[:200] + "…"
