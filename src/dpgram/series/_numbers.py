"""Whole numbers of a series, added up fast: in 64 bits where they fit, exactly in every case."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dpgram.noise.factor import over_one

Numbers: TypeAlias = npt.NDArray[Any]
"""Of 64 bits, or of any size where one of them is `LARGEST` or more."""

LARGEST: Final = 1 << 54
"""As many of them as a series has periods add up to less than 2^63."""
_HALF: Final = 27
"""Bits of the lower half of such a number."""
_LIMB: Final = 20
_LIMBS: Final = 5
"""A weight is taken in so many pieces of so many bits: a product and its sum stay below 2^56."""


def numbers(values: Sequence[int]) -> Numbers:
    """An array of them, of 64 bits where all fit.

    >>> from dpgram.series._numbers import numbers
    >>> numbers([3, -4]).dtype, numbers([3, 2**70]).dtype
    (dtype('int64'), dtype('O'))
    """
    try:
        found: Numbers = np.array(values, np.int64)
    except OverflowError:
        return np.array(values, object)
    fits = bool(((found < LARGEST) & (found > -LARGEST)).all())
    return found if fits else found.astype(object)


def weighted(weights: Sequence[Fraction], lines: Numbers) -> list[int]:
    """Σ_s w_s Y_s of every column, rounded to whole numbers: floor(x + ½), exactly.

    Weights have hundreds of bits. With their first hundred the sum is known to 2⁻³⁷, which nearly always
    tells the rounded one; where it does not, that column is added up with all bits.

    Proof: proofs/series.md#series-file.
    """
    if lines.dtype == object:
        return _exactly(weights, lines)
    bits = _LIMB * _LIMBS
    whole = [(weight.numerator << bits) // weight.denominator for weight in weights]
    mask = (1 << _LIMB) - 1
    limbs = [[(each >> (_LIMB * i)) & mask for each in whole] for i in range(_LIMBS - 1)]
    limbs.append([each >> (bits - _LIMB) for each in whole])
    pieces = np.array(limbs, np.int64)
    upper, lower = pieces @ (lines >> _HALF), pieces @ (lines & ((1 << _HALF) - 1))
    slack, half = len(weights) * LARGEST, 1 << (bits - 1)
    found, doubtful = list[int](), list[int]()
    for place, (high, low) in enumerate(zip(upper.T.tolist(), lower.T.tolist(), strict=True)):
        total = half
        for i in range(_LIMBS):
            total += ((high[i] << _HALF) + low[i]) << (_LIMB * i)
        found.append(total >> bits)
        if (total - slack) >> bits != (total + slack) >> bits:
            doubtful.append(place)
    exact = _exactly(weights, lines[:, doubtful]) if doubtful else []
    for place, value in zip(doubtful, exact, strict=True):
        found[place] = value
    return found


def _exactly(weights: Sequence[Fraction], lines: Numbers) -> list[int]:
    """With all bits."""
    tops, bottom = over_one(weights)
    sums = np.array(tops, object) @ lines.astype(object)
    return [(2 * total + bottom) // (2 * bottom) for total in sums.tolist()]
