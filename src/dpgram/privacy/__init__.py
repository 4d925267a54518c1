"""What privacy costs, how much noise it takes, and who has spent it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgram import _when_used
from dpgram.privacy.adjacency import AddRemove, Adjacency, ReplaceOne, adjacency

if TYPE_CHECKING:
    from dpgram.core.noise import Entropy, SeededEntropy, SystemEntropy
    from dpgram.privacy.accountant import capacity, composed, curve_of, describe, guarantee_of, price
    from dpgram.privacy.curves.calibrate import gaussian_sigma
    from dpgram.privacy.events import (
        ApproximateEvent,
        ComposedEvent,
        Event,
        GaussianEvent,
        PureEvent,
        ZcdpEvent,
    )
    from dpgram.privacy.guarantee import (
        GaussianDP,
        Guarantee,
        ZeroConcentrated,
        gdp_mu_at_most,
        pure_mu_at_least,
        pure_rho_at_least,
        rho_at_most,
    )
    from dpgram.privacy.receipt import Receipt

__all__ = [
    "AddRemove",
    "Adjacency",
    "ApproximateEvent",
    "ComposedEvent",
    "Entropy",
    "Event",
    "GaussianDP",
    "GaussianEvent",
    "Guarantee",
    "PureEvent",
    "Receipt",
    "ReplaceOne",
    "SeededEntropy",
    "SystemEntropy",
    "ZcdpEvent",
    "ZeroConcentrated",
    "adjacency",
    "capacity",
    "composed",
    "curve_of",
    "describe",
    "gaussian_sigma",
    "gdp_mu_at_most",
    "guarantee_of",
    "price",
    "pure_mu_at_least",
    "pure_rho_at_least",
    "rho_at_most",
]

__getattr__, __dir__ = _when_used(
    __name__,
    {
        "dpgram.privacy.accountant": "capacity composed curve_of describe guarantee_of price",
        "dpgram.privacy.curves.calibrate": "gaussian_sigma",
        "dpgram.privacy.events": "ApproximateEvent ComposedEvent Event GaussianEvent PureEvent ZcdpEvent",
        "dpgram.privacy.guarantee": (
            "GaussianDP Guarantee ZeroConcentrated gdp_mu_at_most pure_mu_at_least pure_rho_at_least "
            "rho_at_most"
        ),
        "dpgram.privacy.receipt": "Receipt",
        "dpgram.core.noise": "Entropy SeededEntropy SystemEntropy",
    },
)
