"""The artefact: one private matrix with everything an analyst needs to use it honestly, in one JSON file.

A `Release` holds public facts and the noisy matrix, nothing else: its fields are a closed list, and none but
the cells depends on the data. Loading validates everything, executes nothing and imports nothing that the
file names. The format is described in docs/reference/release-format.md.
"""

from __future__ import annotations

import math
import os
import re
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, Literal, Self, final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct

from dpgram.canonical_json import canonical_bytes, parse_strictly, sha256_hex
from dpgram.errors import ReleaseError, SchemaError
from dpgram.lattice import LATTICE_BITS, ROW_NORM_SQUARED, cell_unit
from dpgram.noise import MatrixLaplace, NoiseLaw, SymmetricGaussian
from dpgram.schema import Schema

FORMAT: Final = "dpgram-release"
VERSION: Final = 1
LARGEST_FILE: Final = 1 << 27
"""Bytes. Twice what the widest schema can need; whatever is larger is not a release."""

Units = Literal["encoded", "original"]
AdjacencyName = Literal["add-remove", "replace-one"]
Text = Annotated[str, Meta(max_length=4000)]
Positive = Annotated[float, Meta(gt=0)]
Probability = Annotated[float, Meta(ge=0, lt=1)]

_CELL: Final = re.compile(r"0|-?[1-9][0-9]{0,59}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


@final
class GaussianParameters(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """σ of the diagonal, in lattice units."""

    sigma: Positive


@final
class GaussianUsed(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="name", tag="gaussian"
):
    """The symmetric discrete Gaussian, and why it was taken."""

    parameters: GaussianParameters
    choice: Text


@final
class MatrixLaplaceParameters(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """θ, in reciprocal lattice units."""

    theta: Positive


@final
class MatrixLaplaceUsed(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="name", tag="matrix-laplace"
):
    """The difference of two Wisharts, and why it was taken."""

    parameters: MatrixLaplaceParameters
    choice: Text


MechanismUsed = GaussianUsed | MatrixLaplaceUsed


@final
class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was done with values outside the schema: a declared rule per row, fixed before looking."""

    missing: Literal["drop", "midpoint"]
    strict: bool


@final
class StatedGuarantee(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """(ε, δ)-differential privacy of this one release, in numbers and in words."""

    epsilon: Positive
    delta: Probability
    numerical_delta: Probability = 0.0
    """What a sampler in floating point adds to δ; 0 for exact samplers."""
    mu: Positive | None = None
    """The exact Gaussian-DP parameter, where the mechanism has one."""
    rho: Positive | None = None
    """The zero-concentrated parameter, where the mechanism has one."""
    statement: Text

    def __str__(self) -> str:
        return self.statement


@final
class ReceiptRecord(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ledger's answer to the charge: which ledger, which entry, and the head of its chain then."""

    ledger: Text
    entry: Annotated[int, Meta(ge=0, le=2**53)]
    head: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]


@final
class PublishedMatrix(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Lower triangle by rows, cell (i, j) at i(i+1)/2 + j: symmetric because nothing else can be written."""

    kind: Literal["gram", "inverse"]
    exponent: Annotated[int, Meta(ge=-256, le=256)]
    cells: tuple[str, ...]


@final
class Release(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """One private second-moment matrix and the public facts around it.

    In encoded units the matrix is cells · 2^exponent · (radius / 2^15)².
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
    noise: NoiseLaw
    guarantee: StatedGuarantee
    entropy: Literal["system", "seeded"]
    published: PublishedMatrix = msgspec.field(name="matrix")
    receipt: ReceiptRecord | None = None

    def __post_init__(self) -> None:
        width = self.schema.width
        expected = width * (width + 1) // 2
        if len(self.published.cells) != expected:
            raise ReleaseError(
                f"the matrix has the wrong size for its {width} columns",
                got=f"{len(self.published.cells)} cells",
                limit=f"{expected} cells",
                remedy=_DAMAGED,
            )
        if not all(map(_CELL.fullmatch, self.published.cells)):
            raise ReleaseError(
                "a cell of the matrix is not a whole number in plain decimal digits", remedy=_DAMAGED
            )
        if (self.public_rows is None) != (self.adjacency == "add-remove"):
            raise ReleaseError(
                "the row count must be stated under replace-one and only there", got=self.adjacency
            )
        _check_noise(self)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the matrix's rows and columns, in order."""
        return tuple(self.schema.names)

    @cached_property
    def lattice_matrix(self) -> npt.NDArray[np.object_]:
        """The published integers as a full symmetric matrix, without the factor 2^exponent."""
        width = self.schema.width
        rows, columns = np.tril_indices(width)
        matrix = np.empty((width, width), dtype=object)
        cells = np.array([int(cell) for cell in self.published.cells], dtype=object)
        matrix[rows, columns] = cells
        matrix[columns, rows] = cells
        return matrix

    def matrix(self, units: Units = "encoded") -> npt.NDArray[np.float64]:
        """The noisy matrix. Encoded: every column within ±weight. Original: the columns as declared.

        In original units a column is x = centre + half_width · (encoded / weight): numbers as they were,
        false and true as 0 and 1, levels as 0 and 1, products and Legendre columns of the scaled factors.
        """
        from dpgram.moments import in_original_units

        unit = cell_unit(self.radius)
        encoded = np.ldexp(self.lattice_matrix.astype(np.float64), self.published.exponent) * unit
        if units == "encoded":
            return encoded
        if units == "original":
            return in_original_units(self.schema, encoded)
        raise ReleaseError("unknown units", got=repr(units), limit='"encoded" or "original"')

    def count(self) -> float:
        """The number of rows used, as the noisy constant cell tells it; it need not be whole."""
        from dpgram.moments import count

        return count(self)

    def mean(self) -> dict[str, float]:
        """The noisy mean of each column, in original units."""
        from dpgram.moments import mean

        return mean(self)

    def covariance(self) -> npt.NDArray[np.float64]:
        """The noisy covariance in original units, without negative eigenvalues; order: `columns[1:]`."""
        from dpgram.moments import covariance

        return covariance(self)

    def correlation(self) -> npt.NDArray[np.float64]:
        """The noisy correlation; NaN for a column whose variance the noise swallowed. Order: `columns[1:]`."""
        from dpgram.moments import correlation

        return correlation(self)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of every other field."""
        return sha256_hex(self._fields())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file whole or not at all: a temporary file beside it, flushed, then renamed."""
        target = Path(path)
        try:
            _write_atomically(target, self.to_json())
        except OSError as problem:
            raise ReleaseError(
                f"the release cannot be written to {target}",
                got=problem.strerror or type(problem).__name__,
                remedy="Choose a folder that exists and may be written.",
            ) from problem
        return target

    def to_json(self) -> bytes:
        """The file: canonical JSON with the digest among its fields, and a newline."""
        fields = self._fields()
        return canonical_bytes({**fields, "digest": sha256_hex(fields)}) + b"\n"

    @classmethod
    def from_json(cls, raw: bytes) -> Self:
        """The release in `raw`, or ReleaseError with the reason."""
        try:
            content = parse_strictly(raw)
        except ValueError as problem:
            raise ReleaseError(
                "this is not a release: it is not clean JSON", got=_reason(problem), remedy=_DAMAGED
            ) from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ReleaseError("this is not a release", limit=f'a JSON object with "format": "{FORMAT}"')
        if content.get("version") != VERSION:
            raise ReleaseError(
                "this release has a version of the format that is not known here",
                got=_shortened(content.get("version")),
                limit=str(VERSION),
                remedy="Read it with a newer dpgram.",
            )
        digest = content.pop("digest", None)
        try:
            release = msgspec.convert(content, cls, dec_hook=_decode)
            actual = release.digest
        except SchemaError as problem:
            raise ReleaseError("the schema in the release is not valid", got=str(problem)) from None
        except (msgspec.ValidationError, ValueError, OverflowError, RecursionError) as problem:
            raise ReleaseError(
                "the release does not follow the format", got=_reason(problem), remedy=_DAMAGED
            ) from None
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest) or digest != actual:
            raise ReleaseError(
                "the content of the release does not match its digest: it was damaged or edited",
                remedy=_DAMAGED,
            )
        return release

    def _fields(self) -> dict[str, object]:
        fields: dict[str, object] = msgspec.to_builtins(self, enc_hook=_encode)
        return fields


def load(path: str | os.PathLike[str]) -> Release:
    """Read and check a release file. Nothing in it is executed; nothing it names is imported."""
    source = Path(path)
    try:
        with source.open("rb") as stream:
            raw = stream.read(LARGEST_FILE + 1)
    except OSError as problem:
        raise ReleaseError(
            f"the release {source} cannot be read", got=problem.strerror or type(problem).__name__
        ) from problem
    if len(raw) > LARGEST_FILE:
        raise ReleaseError(f"{source} is too large to be a release", limit=f"{LARGEST_FILE} bytes")
    return Release.from_json(raw)


_DAMAGED: Final = "Ask the curator for the original file."


def _encode(value: object) -> object:
    if isinstance(value, Schema):
        return value.to_dict()
    raise TypeError(f"a release cannot hold a {type(value).__name__}")


def _decode(kind: type, value: object) -> object:
    if kind is Schema:
        if not isinstance(value, dict):
            raise SchemaError("the schema must be an object")
        return Schema.from_dict(value)
    raise TypeError(f"a release cannot hold a {kind.__name__}")


def _check_noise(release: Release) -> None:
    """The mechanism, its noise law and its guarantee must tell one story."""
    match release.mechanism, release.noise:
        case GaussianUsed(parameters=used), SymmetricGaussian(sigma=sigma):
            steps = 1.0 if release.adjacency == "add-remove" else math.sqrt(2)
            told = release.guarantee.mu
            agree = used.sigma == sigma and told is not None and release.guarantee.delta > 0
            agree = agree and told is not None and told * sigma >= steps * ROW_NORM_SQUARED * (1 - 1e-9)
        case MatrixLaplaceUsed(parameters=used), MatrixLaplace(theta=theta, width=width):
            steps = 1.0 if release.adjacency == "add-remove" else 2.0
            agree = used.theta == theta and width == release.schema.width and release.guarantee.delta == 0
            agree = agree and theta * steps * ROW_NORM_SQUARED <= release.guarantee.epsilon * (1 + 1e-9)
        case _:
            agree = False
    if not agree or release.published.kind != "gram" or release.published.exponent != 0:
        raise ReleaseError(
            "the mechanism, its noise and its guarantee contradict each other", remedy=_DAMAGED
        )


def _reason(problem: Exception) -> str:
    return _shortened(problem)


def _shortened(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else text[:200] + "…"


def _write_atomically(target: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
