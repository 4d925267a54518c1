"""The mechanisms we stand behind, each calibrated exactly; one name each.

    publish(..., mechanism=mechanisms.Sketch(degrees=400))     # or "sketch", with defaults; or "auto"

Both sides of the wall share this package: analysts need each mechanism's `keeps_promise`.
"""

from __future__ import annotations

import difflib
from typing import Final, TypeAlias

from dpgram.errors import MechanismError
from dpgram.mechanisms._stated import StatedNoise
from dpgram.mechanisms.auto import Auto
from dpgram.mechanisms.base import CalibratedMechanism, Drawn, Mechanism, PublicFacts
from dpgram.mechanisms.deflation import CalibratedDeflation, Deflation
from dpgram.mechanisms.eigenvectors import (
    CalibratedEigenvectors,
    CalibratedEigenvectorsZcdp,
    Eigenvectors,
    EigenvectorsZcdp,
)
from dpgram.mechanisms.gaussian import CalibratedGaussian, Gaussian
from dpgram.mechanisms.inverse_noise import CalibratedInverseNoise, InverseNoise
from dpgram.mechanisms.inverse_wishart import (
    CalibratedInverseWishart,
    CalibratedInverseWishartAdaptive,
    InverseWishart,
    InverseWishartAdaptive,
)
from dpgram.mechanisms.laplace import CalibratedLaplace, Laplace
from dpgram.mechanisms.matrix_laplace import CalibratedMatrixLaplace, MatrixLaplace
from dpgram.mechanisms.sketch import CalibratedSketch, CalibratedSketchAdaptive, Sketch, SketchAdaptive
from dpgram.mechanisms.wishart import CalibratedWishart, Wishart

__all__ = [
    "MECHANISMS",
    "Auto",
    "CalibratedDeflation",
    "CalibratedEigenvectors",
    "CalibratedEigenvectorsZcdp",
    "CalibratedGaussian",
    "CalibratedInverseNoise",
    "CalibratedInverseWishart",
    "CalibratedInverseWishartAdaptive",
    "CalibratedLaplace",
    "CalibratedMatrixLaplace",
    "CalibratedMechanism",
    "CalibratedSketch",
    "CalibratedSketchAdaptive",
    "CalibratedWishart",
    "Deflation",
    "Drawn",
    "Eigenvectors",
    "EigenvectorsZcdp",
    "Gaussian",
    "InverseNoise",
    "InverseWishart",
    "InverseWishartAdaptive",
    "Laplace",
    "MatrixLaplace",
    "Mechanism",
    "MechanismLike",
    "PublicFacts",
    "Sketch",
    "SketchAdaptive",
    "StatedNoise",
    "Wishart",
    "as_mechanism",
]

MechanismLike: TypeAlias = Mechanism | Auto | str
"""What may be asked for: a mechanism with its parameters, the choice left open, or a name with defaults."""

MECHANISMS: Final[dict[str, type[Mechanism]]] = {
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
"""Every mechanism a release may name. Being in here is all it takes: what else is to know, it says itself."""


def as_mechanism(asked: MechanismLike) -> Mechanism | Auto:
    """The mechanism itself, or the one of that name with its defaults."""
    if isinstance(asked, Auto) or asked == Auto.name:
        return asked if isinstance(asked, Auto) else Auto()
    if isinstance(asked, str) and asked in MECHANISMS:
        return MECHANISMS[asked]()
    # Nobody could load a release of a mechanism that is not listed.
    if isinstance(asked, Mechanism) and MECHANISMS.get(asked.name) is type(asked):
        return asked
    remedy = None
    if isinstance(asked, type) and issubclass(asked, Mechanism | Auto):
        remedy = f"Write mechanisms.{asked.__name__}(), with brackets."
    elif isinstance(asked, str):
        near = difflib.get_close_matches(asked, MECHANISMS, n=1)
        remedy = f"Did you mean {near[0]!r}?" if near else "Leave the choice to auto"
    elif isinstance(asked, Mechanism):
        remedy = "List it in dpgram.mechanisms.MECHANISMS under its name."
    raise MechanismError(
        "unknown mechanism",
        got=repr(asked),
        limit=f"one of {', '.join([Auto.name, *MECHANISMS])}, or an object of dpgram.mechanisms",
        remedy=remedy,
    )
