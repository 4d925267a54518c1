"""Models that a curator declares beforehand, so that what they need beyond the matrix is measured too."""

from __future__ import annotations

from dpgram.models.declared import Family, Model, linear, logistic, poisson, probit

__all__ = ["Family", "Model", "linear", "logistic", "poisson", "probit"]
