"""round(W₁ − W₂) with W₁, W₂ ~ Wishart_d(I/(2θ), d+1), exact in law: bits in, integers out, balls in between.

Each normal variable is a real number known only through as many random bits as were needed. Ball arithmetic
carries the unknown rest, so a cell is rounded only when every continuation of the bits gives the same
integer; otherwise all uniforms get more bits and the matrix is computed again (proofs/entropy.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from dpgram.errors import MechanismError

if TYPE_CHECKING:
    from flint import arb

START_BITS: Final = 192
"""Bits of each uniform to begin with: cells near 2^45 are then undecided with probability about 2^-130."""


def matrix_laplace(
    width: int, theta: float, random_bytes: Callable[[int], bytes], *, start_bits: int = START_BITS
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
    from flint import ctx

    half = (width + 1) * width
    uniforms = [0] * (2 * half)
    bits = 0
    while True:
        more = start_bits if bits == 0 else bits
        uniforms = _extended(uniforms, more, random_bytes)
        bits += more
        with ctx.workprec(bits):
            cells = _rounded(uniforms, bits, width, theta)
        if cells is not None:
            return cells


def _extended(uniforms: list[int], more: int, random_bytes: Callable[[int], bytes]) -> list[int]:
    """Each uniform's integer numerator with `more` (a multiple of 8) further random bits behind it.

    Proof: proofs/entropy.md#entropy-theorem.
    """
    size = more // 8
    fresh = random_bytes(size * len(uniforms))
    return [
        (known << more) | int.from_bytes(fresh[k * size : (k + 1) * size], "big")
        for k, known in enumerate(uniforms)
    ]


def _rounded(uniforms: list[int], bits: int, width: int, theta: float) -> npt.NDArray[np.object_] | None:
    """The rounded matrix, or None while the bits read leave a cell undecided.

    Proof: proofs/entropy.md#entropy-theorem.
    """
    from flint import arb, arb_mat

    normals = _normals(uniforms, bits)
    half = len(normals) // 2
    rows = 2 * (width + 1)
    z = arb_mat(rows, width, normals)
    signed = arb_mat(rows, width, normals[:half] + [-x for x in normals[half:]])
    scale = 1 / (2 * arb(theta))
    entries = (z.transpose() * signed * scale).entries()
    point_five = arb((1, -1))
    cells = np.empty((width, width), dtype=object)
    for i in range(width):
        for j in range(i + 1):
            whole = (entries[i * width + j] + point_five).floor().unique_fmpz()
            if whole is None:
                return None
            cells[i, j] = cells[j, i] = int(whole)
    return cells


def _normals(uniforms: list[int], bits: int) -> list[arb]:
    """Box–Muller on balls: √(−2 ln U)·(sin 2πV, cos 2πV), U and V anywhere in their dyadic intervals.

    Proof: proofs/entropy.md#entropy-theorem.
    """
    from flint import arb

    exponent = -(bits + 1)
    radius = (1, exponent)
    normals: list[arb] = []
    for first, second in zip(uniforms[::2], uniforms[1::2], strict=True):
        u = arb((2 * first + 1, exponent), radius)
        v = arb((2 * second + 1, exponent), radius)
        length = (u.log() * -2).sqrt()
        sine, cosine = (v + v).sin_cos_pi()
        normals.append(length * sine)
        normals.append(length * cosine)
    return normals
