"""The fewest degrees of freedom of additive Wishart noise, to hold against Sheffet's printed number.

dpgram itself fixes the degrees and looks for the scale.
"""

from __future__ import annotations

from dpgram.errors import GuaranteeError
from dpgram.privacy import Guarantee
from dpgram.privacy.adjacency import AddRemove, Adjacency
from dpgram.privacy.curves.search import least_integer
from dpgram.privacy.curves.wishart import DEGREES_AT_MOST, AdditiveWishartCurve


def wishart_degrees_at_least(guarantee: Guarantee, adjacency: Adjacency, *, ratio: float) -> int:
    """The least m = k − d + 1 for additive Wishart noise with τ = R²/s² given."""
    if guarantee.pure:
        raise GuaranteeError("the Wishart family has no pure form", got="delta = 0", limit="delta > 0")

    def enough(degrees: int) -> bool:
        return guarantee.met_by(
            AdditiveWishartCurve(adjacency=adjacency, degrees=float(degrees), ratio=ratio)
        )

    return least_integer(
        enough, start=2 if isinstance(adjacency, AddRemove) else 3, limit=int(DEGREES_AT_MOST)
    )
