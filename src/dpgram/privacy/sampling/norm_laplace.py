"""Norm Laplace noise for pure guarantees, exact in law: bits in, integers out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpgram.core.balls import (
    START_BITS,
    ChiSquared,
    RandomBytes,
    RevealedTogether,
    Uniforms,
    decided,
    nearest_integer,
)


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
