"""The mechanisms we stand behind, each calibrated exactly; one name each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dpgram.mechanisms.base import Drawn, Facts, Mechanism
from dpgram.mechanisms.deflation import Deflation
from dpgram.mechanisms.eigenvectors import Eigenvectors, EigenvectorsZcdp
from dpgram.mechanisms.gaussian import Gaussian
from dpgram.mechanisms.inverse_noise import InverseNoise
from dpgram.mechanisms.inverse_wishart import InverseWishart, InverseWishartAdaptive
from dpgram.mechanisms.laplace import Laplace
from dpgram.mechanisms.matrix_laplace import MatrixLaplace
from dpgram.mechanisms.sketch import Sketch, SketchAdaptive
from dpgram.mechanisms.wishart import Wishart

__all__ = [
    "MECHANISMS",
    "Deflation",
    "Drawn",
    "Eigenvectors",
    "EigenvectorsZcdp",
    "Facts",
    "Gaussian",
    "InverseNoise",
    "InverseWishart",
    "InverseWishartAdaptive",
    "Laplace",
    "MatrixLaplace",
    "Mechanism",
    "Sketch",
    "SketchAdaptive",
    "Wishart",
]

MECHANISMS: Final[Mapping[str, type[Mechanism]]] = {
    "gaussian": Gaussian,
    "matrix-laplace": MatrixLaplace,
    "laplace": Laplace,
    "wishart": Wishart,
    "sketch": Sketch,
    "sketch-adaptive": SketchAdaptive,
    "inverse-wishart": InverseWishart,
    "inverse-wishart-adaptive": InverseWishartAdaptive,
    "inverse-noise": InverseNoise,
    "eigenvectors": Eigenvectors,
    "eigenvectors-zcdp": EigenvectorsZcdp,
    "deflation": Deflation,
}
