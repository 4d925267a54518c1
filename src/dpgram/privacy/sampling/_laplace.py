"""Matrix Laplace and norm Laplace noise for pure guarantees, exact in law: bits in, integers out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpgram.errors import MechanismError
from dpgram.privacy.sampling._balls import (
    START_BITS,
    ChiSquared,
    RandomBytes,
    RevealedTogether,
    Uniforms,
    decided,
    nearest_integer,
    nearest_integers,
)


def matrix_laplace(
    width: int, theta: float, random_bytes: RandomBytes, *, start_bits: int = START_BITS
) -> npt.NDArray[np.object_]:
    """The integer matrix round((Z₁ᵀZ₁ − Z₂ᵀZ₂)/(2θ)), Z₁ and Z₂ of d+1 rows of standard normals.

    Proof: proofs/entropy.md#entropy-theorem.
    """
    if not 0.0 < theta < float("inf") or width < 1:
        raise MechanismError(
            "matrix Laplace noise needs a positive width and a positive, finite theta",
            got=(width, theta),
            limit="width ≥ 1, 0 < theta < ∞",
        )
    uniforms = Uniforms(2 * (width + 1) * width, random_bytes, start_bits)
    return decided(uniforms, lambda: _rounded(uniforms, width, theta))


def _rounded(uniforms: Uniforms, width: int, theta: float) -> npt.NDArray[np.object_] | None:
    """The rounded matrix, or None while the bits read leave a cell undecided.

    Proof: proofs/entropy.md#entropy-theorem.
    """
    from flint import arb, arb_mat

    normals = uniforms.normals()
    half = len(normals) // 2
    rows = 2 * (width + 1)
    z = arb_mat(rows, width, normals)
    signed = arb_mat(rows, width, normals[:half] + [-x for x in normals[half:]])
    scale = 1 / (2 * arb(theta))
    return nearest_integers(z.transpose() * signed * scale)


def norm_laplace(
    width: int, scale: float, random_bytes: RandomBytes, *, start_bits: int = START_BITS
) -> npt.NDArray[np.object_]:
    """The integers nearest to (scale/2)·χ²_{2d}·z/|z|, z of d standard normals: density ∝ e^{−|v|/scale}.

    Proof: proofs/entropy.md#entropy-ball.
    """
    uniforms = Uniforms(width + width % 2, random_bytes, start_bits)
    square = ChiSquared(2 * width, random_bytes, start_bits)

    def cells() -> npt.NDArray[np.object_] | None:
        from flint import arb

        normals = uniforms.normals()[:width]
        length = sum((x * x for x in normals), arb(0)).sqrt()
        factor = arb(scale) * square.ball() / (2 * length)
        found = [nearest_integer(x * factor) for x in normals]
        return None if None in found else np.array(found, dtype=object)

    return decided(RevealedTogether(uniforms, square), cells)
