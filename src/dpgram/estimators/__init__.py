"""scikit-learn estimators that fit one private model straight from data.

Each fit spends budget: for many questions publish one release instead. Names are fetched when first used, so
scikit-learn is imported only by those who ask for an estimator.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from dpgram.errors import require_publish

require_publish()
require_publish("sklearn")

if TYPE_CHECKING:
    from dpgram.estimators.adassp import AdaSSP
    from dpgram.estimators.base import RepeatedFit, UnprotectedScore
    from dpgram.estimators.covariance import PrivateCovariance
    from dpgram.estimators.linear import PrivateLasso, PrivateLinearRegression
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
    from dpgram.estimators.robust import RobustRegression
    from dpgram.estimators.ssp import SSP

__all__ = [
    "SSP",
    "AdaSSP",
    "ColumnStandardizer",
    "Intercept",
    "MaxNormMapping",
    "OutputPerturbation",
    "PrivateCovariance",
    "PrivateLasso",
    "PrivateLinearRegression",
    "PrivatePCA",
    "PrivateRidge",
    "RepeatedFit",
    "RobustRegression",
    "RowNormMapping",
    "SigmaClipper",
    "UnprotectedScore",
]

_HOMES: Final = {
    "AdaSSP": "dpgram.estimators.adassp",
    "ColumnStandardizer": "dpgram.estimators.preprocessing",
    "Intercept": "dpgram.estimators.preprocessing",
    "MaxNormMapping": "dpgram.estimators.preprocessing",
    "OutputPerturbation": "dpgram.estimators.output_perturbation",
    "PrivateCovariance": "dpgram.estimators.covariance",
    "PrivateLasso": "dpgram.estimators.linear",
    "PrivateLinearRegression": "dpgram.estimators.linear",
    "PrivatePCA": "dpgram.estimators.pca",
    "PrivateRidge": "dpgram.estimators.ridge",
    "RepeatedFit": "dpgram.estimators.base",
    "RobustRegression": "dpgram.estimators.robust",
    "RowNormMapping": "dpgram.estimators.preprocessing",
    "SSP": "dpgram.estimators.ssp",
    "SigmaClipper": "dpgram.estimators.preprocessing",
    "UnprotectedScore": "dpgram.estimators.base",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dpgram.estimators' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
