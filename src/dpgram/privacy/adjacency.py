"""Who is a neighbour of whom, and how far one neighbour can move each statistic.

A row (or a privacy unit) contributes V = xxᵀ (or a sum of such) with V ⪰ 0 and trace V ≤ s. Everything here
is in closed form, rounded up, and attained by some pair of neighbours; the proofs: proofs/adjacency.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, final

from dpgram.errors import GuaranteeError
from dpgram.privacy.curves.rounding import up


class Adjacency(ABC):
    """One relation between neighbouring data sets, with the sensitivity of each statistic under it."""

    __slots__ = ()

    name: ClassVar[Literal["add-remove", "replace-one"]]
    units_changed: ClassVar[Literal[1, 2]]
    """Units added and removed to reach a neighbour, each of trace ≤ s (matrix Laplace: θ = ε/(units·s))."""

    @abstractmethod
    def gram_frobenius(self, s: float) -> float:
        """max |G − G'|_F: s, or √2·s, because |V − V'|² = |V|² + |V'|² − 2⟨V, V'⟩ and ⟨V, V'⟩ ≥ 0."""

    @abstractmethod
    def gram_l1(self, width: int, s: float, *, diagonal: float = 1.0) -> float:
        """max Σ_{i<j}|ΔG_ij| + diagonal·Σ_i|ΔG_ii|: the L1 sensitivity of the (weighted) upper triangle."""

    @abstractmethod
    def eigenvalue_l1(self, s: float) -> float:
        """max Σ_i |λ_i(G) − λ_i(G')| over the sorted eigenvalues."""

    @abstractmethod
    def utility_range(self, s: float) -> float:
        """max − min over unit vectors u of uᵀ(G − G')u.

        Sampling u ∝ exp(c·uᵀGu) has a loss of range η = c·utility_range(s): it is η-DP and η²/8-zCDP.
        """

    @abstractmethod
    def inverse_frobenius(self, s: float, ridge: float, *, rank: int = 1) -> float:
        """max |(G + L·I)⁻¹ − (G' + L·I)⁻¹|_F for a public ridge L; a unit has at most `rank` rows."""

    @abstractmethod
    def stacked_mu(self, x_norm: float, y_bound: float, precisions: tuple[float, float, float]) -> float:
        """max of √(p₁|Δxxᵀ|_F² + p₂|Δxy|² + p₃|Δy²|²) over |x| ≤ x_norm, |y| ≤ y_bound, with pᵢ = 1/σᵢ².

        It is the μ of releasing all three at once with Gaussian noise of those precisions.
        """

    @final
    def extreme_eigenvalue(self, s: float) -> float:
        """max |λ_i(G) − λ_i(G')| for any one i, λ_min among them: s under both relations, by interlacing.

        Proof: proofs/adjacency.md#adjacency-eigenvalues.
        """
        return _checked("s", s)


@final
@dataclass(frozen=True, slots=True)
class AddRemove(Adjacency):
    """Neighbours differ by one row (or unit) that is present or absent; the number of rows is private too."""

    name = "add-remove"
    units_changed = 1

    def gram_frobenius(self, s: float) -> float:
        """|V|_F ≤ trace V ≤ s, attained by one full-length row.

        Proof: proofs/adjacency.md#adjacency-frobenius.
        """
        return _checked("s", s)

    def gram_l1(self, width: int, s: float, *, diagonal: float = 1.0) -> float:
        """(diagonal + (d − 1)/2)·s, attained by a row with d equal entries.

        Proof: proofs/adjacency.md#adjacency-l1-added.
        """
        _check_width(width)
        return up(_checked("s", s) * (_checked("diagonal", diagonal) + 0.5 * (width - 1)))

    def eigenvalue_l1(self, s: float) -> float:
        """s: every eigenvalue moves up and together they move by trace V.

        Proof: proofs/adjacency.md#adjacency-eigenvalues.
        """
        return _checked("s", s)

    def utility_range(self, s: float) -> float:
        """s: uᵀVu lies in [0, s]. Proof: proofs/adjacency.md#adjacency-utility."""
        return _checked("s", s)

    def inverse_frobenius(self, s: float, ridge: float, *, rank: int = 1) -> float:
        """s/(L(L + s)) for one row, attained at G = 0. A unit of several rows can do more: see the proof.

        Proofs: proofs/adjacency.md#adjacency-inverse, proofs/inverse-noise.md#inverse-noise-sensitivity.
        """
        _checked("s", s)
        _checked("ridge", ridge)
        if rank < 1:
            raise GuaranteeError("a unit has at least one row", got=rank, limit="rank ≥ 1")
        if rank == 1:
            return up(s / (ridge * (ridge + s)))
        share = s / rank
        if share <= ridge:
            return up(0.5 * math.sqrt(s / ridge) / ridge)
        return up(math.sqrt(rank) * share / (ridge * (ridge + share)))

    def stacked_mu(self, x_norm: float, y_bound: float, precisions: tuple[float, float, float]) -> float:
        """√(p₁Bx⁴ + p₂Bx²By² + p₃By⁴), attained by one full-length row.

        Proof: proofs/adjacency.md#adjacency-stacked.
        """
        x2, y2 = _checked("x_norm", x_norm) ** 2, _checked("y_bound", y_bound) ** 2
        p1, p2, p3 = _precisions(precisions)
        return up(math.sqrt(p1 * x2 * x2 + p2 * x2 * y2 + p3 * y2 * y2))


@final
@dataclass(frozen=True, slots=True)
class ReplaceOne(Adjacency):
    """Neighbours have the same, public number of rows (or units) and differ in the content of one."""

    name = "replace-one"
    units_changed = 2

    def gram_frobenius(self, s: float) -> float:
        """√2·s, attained by two orthogonal full-length rows.

        Proof: proofs/adjacency.md#adjacency-frobenius.
        """
        return up(math.sqrt(2.0) * _checked("s", s))

    def gram_l1(self, width: int, s: float, *, diagonal: float = 1.0) -> float:
        """½√((d + 2κ)² + 4⌊d²/4⌋)·s with κ = 2·diagonal − 1: √(d²/2 + d + 1)·s for even d and equal weights.

        Attained by rows that are constant on two halves of the columns. For diagonal < 3/4 and odd d it is
        proven only as a bound, with d²/4 in place of its integer part.

        Proof: proofs/adjacency.md#adjacency-l1-replaced.
        """
        _check_width(width)
        kappa = 2.0 * _checked("diagonal", diagonal) - 1.0
        _checked("s", s)
        if width == 1:
            return up(diagonal * s)
        if kappa < 0.0:
            raise GuaranteeError("the diagonal weight is too small", got=diagonal, limit="diagonal ≥ 1/2")
        quarters = width * width if kappa < 0.5 else 4 * (width * width // 4)
        return up(0.5 * math.sqrt((width + 2.0 * kappa) ** 2 + quarters) * s)

    def eigenvalue_l1(self, s: float) -> float:
        """2s: one step up and one step down, on different eigenvalues.

        Proof: proofs/adjacency.md#adjacency-eigenvalues.
        """
        return 2.0 * _checked("s", s)

    def utility_range(self, s: float) -> float:
        """2s: uᵀ(V − V')u reaches both s and −s when the two rows are orthogonal.

        Proof: proofs/adjacency.md#adjacency-utility.
        """
        return 2.0 * _checked("s", s)

    def inverse_frobenius(self, s: float, ridge: float, *, rank: int = 1) -> float:
        """√2 times the add/remove bound: the difference of two positive semidefinite changes.

        Proof: proofs/adjacency.md#adjacency-inverse.
        """
        return up(math.sqrt(2.0) * AddRemove().inverse_frobenius(s, ridge, rank=rank))

    def stacked_mu(self, x_norm: float, y_bound: float, precisions: tuple[float, float, float]) -> float:
        """The largest over 0 ≤ b ≤ By of p₁(2Bx⁴ − 2u²) + p₂(Bx²(By² + b²) + 2By·b·u) + p₃(By² − b²)².

        Here u = min(p₂By·b/(2p₁), Bx²). It is convex in b² up to the point where u is capped, and beyond has
        at most one interior maximum, so four candidates hold the largest value.

        Proof: proofs/adjacency.md#adjacency-stacked.
        """
        x2, y = _checked("x_norm", x_norm) ** 2, _checked("y_bound", y_bound)
        p1, p2, p3 = _precisions(precisions)
        capped = min(y, 2.0 * p1 * x2 / (p2 * y))
        candidates = [0.0, capped, y]
        discriminant = 0.25 * y * y - 0.5 * p2 * x2 / p3
        if discriminant > 0.0:
            candidates.append(min(max(0.5 * y - math.sqrt(discriminant), capped), y))

        def squared(b: float) -> float:
            u = min(0.5 * p2 * y * b / p1, x2)
            cross = p2 * (x2 * (y * y + b * b) + 2.0 * y * b * u)
            return 2.0 * p1 * (x2 * x2 - u * u) + cross + p3 * (y * y - b * b) ** 2

        return up(math.sqrt(max(map(squared, candidates))))


_RELATIONS: Final[Mapping[str, Adjacency]] = {"add-remove": AddRemove(), "replace-one": ReplaceOne()}


def adjacency(name: str) -> Adjacency:
    """The relation of that name: "add-remove" or "replace-one"."""
    try:
        return _RELATIONS[name]
    except (KeyError, TypeError):  # a list has no hash
        raise GuaranteeError(
            "unknown adjacency",
            got=repr(name)[:100],
            limit=" or ".join(map(repr, _RELATIONS)),
            remedy="Give adjacency='add-remove' unless the number of rows is public.",
        ) from None


def _checked(what: str, value: float) -> float:
    if not (math.isfinite(value) and value > 0.0):
        raise GuaranteeError(f"{what} must be a positive number", got=value, limit="0 < value < inf")
    return float(value)


def _check_width(width: int) -> None:
    if width < 1:
        raise GuaranteeError("a Gram matrix has at least one column", got=width, limit="width ≥ 1")


def _precisions(precisions: tuple[float, float, float]) -> tuple[float, float, float]:
    p1, p2, p3 = precisions
    return (
        _checked("the precision of xxᵀ", p1),
        _checked("the precision of xy", p2),
        _checked("that of y²", p3),
    )
