"""The mechanisms we stand behind, each calibrated exactly; one name each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dpgram.mechanisms.base import Drawn, Facts, Mechanism
from dpgram.mechanisms.gaussian import Gaussian
from dpgram.mechanisms.matrix_laplace import MatrixLaplace

__all__ = ["MECHANISMS", "Drawn", "Facts", "Gaussian", "MatrixLaplace", "Mechanism"]

MECHANISMS: Final[Mapping[str, type[Mechanism]]] = {
    "gaussian": Gaussian,
    "matrix-laplace": MatrixLaplace,
}
