"""The least ridge and the largest sketch that meet a guarantee."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from dpgram.errors import GuaranteeError
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.curves.search import greatest, least_integer
from dpgram.privacy.curves.wishart import (
    DEGREES_AT_MOST,
    AdaptiveCurve,
    InverseWishartCurve,
    SketchCurve,
)
from dpgram.privacy.guarantee import Guarantee

_LIMIT: Final = int(DEGREES_AT_MOST)
_ROUGHLY: Final = 1e-5  # of tightness, given up where a curve takes long to evaluate
_KEPT: Final = 256
"""Searches whose result is kept: a plan, a check and the publication itself ask for the same one."""


@lru_cache(maxsize=_KEPT)
def sketch_ratio_at_most(guarantee: Guarantee, adjacency: Adjacency, *, degrees: float) -> float:
    """The largest t = R²/w² for a sketch of r rows, rounded down: the least ridge is w² = R²/t.

    It serves inverse-Wishart sampling with ν = r and ψ = w² as well: the larger direction is the same.
    """
    _check_approximate(guarantee)
    return greatest(
        lambda t: guarantee.met_by(SketchCurve(adjacency=adjacency, degrees=degrees, ratio=t)), start=0.01
    )


def sketch_degrees_at_most(guarantee: Guarantee, adjacency: Adjacency, *, ratio: float) -> int:
    """The largest number of rows r of a sketch with t = R²/w² given; 0 where not even one is private."""
    _check_approximate(guarantee)

    def too_many(degrees: int) -> bool:
        curve = SketchCurve(adjacency=adjacency, degrees=float(degrees), ratio=ratio)
        return degrees >= _LIMIT or not guarantee.met_by(curve)

    return least_integer(too_many, start=1, limit=_LIMIT) - 1


@lru_cache(maxsize=_KEPT)
def adaptive_ratio_at_most(
    guarantee: Guarantee,
    adjacency: Adjacency,
    *,
    degrees: float,
    mu: float,
    beta: float,
    family: type[SketchCurve | InverseWishartCurve] = SketchCurve,
) -> float:
    """The largest T for which a look at σ_min of μ-GDP that fails with β, then a draw, stay within (ε, δ)."""
    if beta >= guarantee.delta:
        raise GuaranteeError(
            "the failure probability of the look at σ_min must leave something of delta",
            got=beta,
            limit=f"beta < {guarantee.delta:g}",
            remedy="Take beta = delta/10.",
        )

    def fits(t: float) -> bool:
        inner = family(adjacency=adjacency, degrees=degrees, ratio=t)
        return guarantee.met_by(AdaptiveCurve(inner=inner, mu=mu, beta=beta))

    return greatest(fits, start=0.01, tolerance=_ROUGHLY)


def _check_approximate(guarantee: Guarantee) -> None:
    if guarantee.pure:
        raise GuaranteeError(
            "the Wishart family has no pure form", got="delta = 0", limit="delta > 0", remedy="Give a delta."
        )
