"""Exact privacy curves δ(ε), and the least noise that meets a guarantee by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgram import _when_used

if TYPE_CHECKING:
    from dpgram.privacy.curves.base import ConcentratedCurve, GaussianCurve, PrivacyCurve, PureCurve
    from dpgram.privacy.curves.calibrate import (
        discrete_gaussian_sigma,
        discrete_mu_at_most,
        gaussian_sigma,
        stacked_sigmas,
    )
    from dpgram.privacy.curves.loss_distribution import ComposedCurve, LeakyCurve
    from dpgram.privacy.curves.wishart import (
        AdaptiveCurve,
        AdditiveWishartCurve,
        InverseWishartCurve,
        SketchCurve,
    )

__all__ = [
    "AdaptiveCurve",
    "AdditiveWishartCurve",
    "ComposedCurve",
    "ConcentratedCurve",
    "GaussianCurve",
    "InverseWishartCurve",
    "LeakyCurve",
    "PrivacyCurve",
    "PureCurve",
    "SketchCurve",
    "discrete_gaussian_sigma",
    "discrete_mu_at_most",
    "gaussian_sigma",
    "stacked_sigmas",
]

__getattr__, __dir__ = _when_used(
    __name__,
    {
        "dpgram.privacy.curves.base": "ConcentratedCurve GaussianCurve PrivacyCurve PureCurve",
        "dpgram.privacy.curves.calibrate": (
            "discrete_gaussian_sigma discrete_mu_at_most gaussian_sigma stacked_sigmas"
        ),
        "dpgram.privacy.curves.loss_distribution": "LeakyCurve ComposedCurve",
        "dpgram.privacy.curves.wishart": "AdaptiveCurve AdditiveWishartCurve InverseWishartCurve SketchCurve",
    },
)
