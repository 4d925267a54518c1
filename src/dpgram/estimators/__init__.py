"""scikit-learn estimators that fit one private model straight from data.

Each fit spends budget: for many questions publish one release instead. Names are fetched when first used, so
scikit-learn is imported only by those who ask for an estimator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgram import _when_used
from dpgram.errors import require_publish

require_publish()
require_publish("sklearn")

if TYPE_CHECKING:
    from dpgram.estimators.adassp import AdaSSP
    from dpgram.estimators.base import RepeatedFit, UnprotectedScore
    from dpgram.estimators.covariance import PrivateCovariance
    from dpgram.estimators.declared import PrivateLogistic, PrivatePoisson, RobustRegression
    from dpgram.estimators.linear import PrivateLasso, PrivateLinearRegression
    from dpgram.estimators.lp_regression import LpRegression
    from dpgram.estimators.output_perturbation import OutputPerturbation
    from dpgram.estimators.pca import PrivatePCA
    from dpgram.estimators.preprocessing import (
        ColumnStandardizer,
        Intercept,
        MaxNormMapping,
        RowNormMapping,
        SigmaClipper,
    )
    from dpgram.estimators.ridge import PrivateRidge
    from dpgram.estimators.ssp import SSP

__all__ = [
    "SSP",
    "AdaSSP",
    "ColumnStandardizer",
    "Intercept",
    "LpRegression",
    "MaxNormMapping",
    "OutputPerturbation",
    "PrivateCovariance",
    "PrivateLasso",
    "PrivateLinearRegression",
    "PrivateLogistic",
    "PrivatePCA",
    "PrivatePoisson",
    "PrivateRidge",
    "RepeatedFit",
    "RobustRegression",
    "RowNormMapping",
    "SigmaClipper",
    "UnprotectedScore",
]

__getattr__, __dir__ = _when_used(
    __name__,
    {
        "dpgram.estimators.adassp": "AdaSSP",
        "dpgram.estimators.base": "RepeatedFit UnprotectedScore",
        "dpgram.estimators.covariance": "PrivateCovariance",
        "dpgram.estimators.declared": "PrivateLogistic PrivatePoisson RobustRegression",
        "dpgram.estimators.linear": "PrivateLasso PrivateLinearRegression",
        "dpgram.estimators.output_perturbation": "OutputPerturbation",
        "dpgram.estimators.pca": "PrivatePCA",
        "dpgram.estimators.preprocessing": (
            "ColumnStandardizer Intercept MaxNormMapping RowNormMapping SigmaClipper"
        ),
        "dpgram.estimators.ridge": "PrivateRidge",
        "dpgram.estimators.lp_regression": "LpRegression",
        "dpgram.estimators.ssp": "SSP",
    },
)
