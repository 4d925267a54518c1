"""The law of the noise inside a release, in lattice units: what an analyst may know and must use.

Both sides of the wall share this package; it needs numpy and msgspec only.
"""

from __future__ import annotations

from typing import TypeAlias

from dpgram.noise.additive import AdditiveWishart, EntrywiseLaplace, Matrix, MatrixLaplace, SymmetricGaussian
from dpgram.noise.sampled import (
    Deflation,
    EigenvectorSampling,
    InverseWishart,
    NoisyInverse,
    WishartSketch,
)

__all__ = [
    "AdditiveWishart",
    "Deflation",
    "EigenvectorSampling",
    "EntrywiseLaplace",
    "InverseWishart",
    "Law",
    "Matrix",
    "MatrixLaplace",
    "NoiseLaw",
    "NoisyInverse",
    "SampledLaw",
    "SymmetricGaussian",
    "WishartSketch",
]

SampledLaw: TypeAlias = WishartSketch | InverseWishart | NoisyInverse | EigenvectorSampling | Deflation
"""Releases drawn around the exact matrix; `stand_in` gives an additive law that stands in for one."""
NoiseLaw: TypeAlias = SymmetricGaussian | MatrixLaplace | EntrywiseLaplace | AdditiveWishart
"""Noise that was added to the exact matrix."""
Law: TypeAlias = NoiseLaw | SampledLaw
"""Every law a release may carry; the tag in the file says which."""
