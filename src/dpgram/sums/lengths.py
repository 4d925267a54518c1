"""The row radius from a noisy histogram of row lengths: shorter rows mean less noise, and more bias.

Row lengths are taken on the lattice, encoded without a clip, in 64 equal bins of the squared length. Of their
ends the one is taken that makes R²·‖N‖/(n·v·k) + λ·E(1 − R²/|a|²)₊ least: noise beside what the clip leaves
of the columns, and lost weight; v is the mean square of an encoded column and k = E min(|a|², R²)/E|a|². Many
rows make noise cheap, so that few are clipped. proofs/bounds.md
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from dpgram.document.measurements import LENGTH_BINS
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.counts import projected

Floats = npt.NDArray[np.float64]

_LOST: Final = 1.0 / 8.0
"""λ: rows that are scaled down still tell the same slopes, so lost weight counts little against noise."""
_LEAST_SPREAD: Final = 0.02
_SHIFT: Final = (ROW_NORM_SQUARED // LENGTH_BINS).bit_length() - 1


def length_places(lines: Floats) -> npt.NDArray[np.int64]:
    """The bin of each lattice row's squared length; rows are held by columns.

    Proof: proofs/bounds.md#bounds-parts.
    """
    # Integers below 2^53: every order of adding gives the same squares.
    squares = np.einsum("ij,ij->j", lines, lines).astype(np.int64)
    return np.asarray(np.minimum(squares >> _SHIFT, LENGTH_BINS - 1))


def chosen_radius(
    lengths: Floats, *, max_norm_squared: float, width: int, noise_norm: float, rows: float
) -> float:
    """R from noisy counts in rows; `noise_norm` is that of the noise for rows of length 1, in rows.

    Proof: proofs/bounds.md#bounds-after.
    """
    ends = max_norm_squared * np.arange(1, LENGTH_BINS + 1) / LENGTH_BINS
    middles = ends - 0.5 * max_norm_squared / LENGTH_BINS
    total = max(rows, 1.0)
    shares = projected(lengths, total) / total
    mean = float(shares @ middles)
    spread = max((mean - 1.0) / max(width - 1, 1), _LEAST_SPREAD)
    kept = np.minimum(ends[:, None], middles[None, :]) @ shares / mean
    lost = np.maximum(1.0 - ends[:, None] / middles[None, :], 0.0) @ shares
    noise = ends * noise_norm / (total * spread * kept)
    return math.sqrt(float(ends[int(np.argmin(noise + _LOST * lost))]))
