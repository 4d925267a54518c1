"""The parts of a release file: closed, frozen records. Nothing in them but the cells depends on the data."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, final

from msgspec import Meta, Struct

AdjacencyName: TypeAlias = Literal["add-remove", "replace-one"]
MissingPolicy: TypeAlias = Literal["drop", "midpoint"]
Text: TypeAlias = Annotated[str, Meta(max_length=4000)]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]
Probability: TypeAlias = Annotated[float, Meta(ge=0, lt=1)]
Cell: TypeAlias = Annotated[str, Meta(pattern=r"^(0|-?[1-9][0-9]{0,59})\Z", max_length=61)]
"""A whole number in plain decimal digits: beyond 2^53 a JSON number would be rounded by some readers."""


@final
class MechanismUsed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which mechanism, its calibrated parameters in lattice units, and why it was taken (public facts only).

    The parameters of each mechanism are a closed list: see `release_checks.STORIES`.
    """

    name: Annotated[str, Meta(max_length=64)]
    parameters: dict[str, float | int | Annotated[str, Meta(max_length=64)]]
    choice: Text


@final
class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was done with values outside the schema: a declared rule per row, fixed before looking."""

    missing: MissingPolicy
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
class PublishedMatrix(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Lower triangle by rows, cell (i, j) at i(i+1)/2 + j: symmetric because nothing else can be written."""

    kind: Literal["gram", "inverse"]
    exponent: Annotated[int, Meta(ge=-256, le=256)]
    cells: tuple[Cell, ...]
