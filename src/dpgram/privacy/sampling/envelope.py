"""Candidates for a direction with density ∝ exp(c·uᵀRu) on the sphere, judged exactly.

For any numbers m and x < 1 and any matrix W with |I − Wᵀ(mI − cR)W| ≤ x, let n be k standard normals, z = Wn,
u = z/|z| and q = |n|²/|z|². Accepted with probability

    exp(c·uᵀRu − m + (k/2)(1 + ln(2(1 − x)q/k))),

which is at most 1, u has exactly the wanted density. m, W and x come from floats and are exact numbers from
then on: they decide about speed, not about the law. Floats also throw out, with a margin, the candidates that
are surely rejected; all others are judged in ball arithmetic. Proof: proofs/eigenvectors.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.core.balls import RandomBytes, Uniforms, below
from dpgram.privacy.sampling.bingham import candidates_at_once, envelope_parameter

if TYPE_CHECKING:
    from flint import arb, arb_mat

FloatArray = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

SLACK_AT_MOST: Final = 2.0**-10
"""Of k·x: what the bound x costs is then less than 2^−11 of all acceptances."""

LARGEST_EXPONENT: Final = 2.0**40
"""Of c·λ_max(R): up to here eigenvalues in floats are good enough for m (proofs/eigenvectors.md)."""
_MOST_STEPS: Final = 80
"""From afar each step takes a factor 9/4 off the condition of WᵀSW, and a few more finish."""

FIRST_BITS: Final = 64
"""Bits of each uniform that are read for every candidate."""
_EDGE: Final = np.uint64(1 << 36)
"""Numbers nearer than 2^−28 to 0 or 1 are not judged in floats: the bits not read would matter too much."""
_NORMAL_ERROR: Final = 2.0**-32
"""Relative error of the length of a vector of normals made from 64 bits each, with room."""
_FLOAT_ERROR: Final = 2.0**-40
"""Relative error of a handful of float operations, with a lot of room."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixBall:
    """A matrix known to within a distance: |R − mid|_F ≤ error, both exact numbers.

    Proof: proofs/eigenvectors.md#eigenvectors-balls.
    """

    mid: arb_mat
    error: arb

    @classmethod
    def of(cls, balls: arb_mat, error: arb) -> Self:
        """What is within `error` of some point of `balls`: their radii are added up.

        One radius for all cells does not grow when the matrix is reflected; a radius for each would.
        """
        from flint import arb, arb_mat

        mid = balls.mid()
        ones = arb_mat(balls.ncols(), 1, [1] * balls.ncols())
        radii = sum((row.abs_upper() for row in ((balls - mid) * ones).entries()), arb(0))
        return cls(mid=mid, error=(radii + error).upper())

    def floats(self) -> FloatArray:
        """The midpoints, to the precision of floats."""
        return _as_floats(self.mid)


@final
class Candidate:
    """Normals and a coin, known through their bits."""

    def __init__(self, words: Words, random_bytes: RandomBytes) -> None:
        *normals, coin = words.tolist()
        self.normals = Uniforms.known(normals, FIRST_BITS, random_bytes)
        self._coin = Uniforms.known([coin], FIRST_BITS, random_bytes)

    @property
    def bits(self) -> int:
        return self.normals.bits

    def extend(self) -> None:
        self.normals.extend()
        self._coin.extend()

    def coin(self) -> arb:
        """ln U."""
        return self._coin.balls()[0].log()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The law of candidates for R at inverse temperature c: z = Wn, with |I − Wᵀ(mI − cR)W| ≤ x.

    Proof: proofs/eigenvectors.md#eigenvectors-sampler.
    """

    inverse_temperature: float
    """c."""
    level: float
    """m."""
    slack: float
    """x."""
    floats: FloatArray
    """W, or where balls have mended it, W to the precision of floats."""
    mended: arb_mat | None = None
    """W as balls have mended it, exact."""

    @property
    def root(self) -> arb_mat:
        """W, exact. Made anew each time: kept for every direction it would take gigabytes."""
        from flint import arb_mat

        return arb_mat(self.floats.tolist()) if self.mended is None else self.mended

    @classmethod
    def around(cls, rest: MatrixBall, inverse_temperature: float) -> Self | None:
        """m = λ_max(cR) + b/2 and WWᵀ = (mI − cR)⁻¹ as well as floats tell, b as in `envelope_parameter`.

        None if R is not known well enough. Proof: proofs/eigenvectors.md#eigenvectors-sampler.
        """
        from flint import arb, arb_mat

        exponent = inverse_temperature * rest.floats()
        width = len(exponent)
        spectrum = np.linalg.eigvalsh(exponent)
        level = float(spectrum[-1] + 0.5 * envelope_parameter(spectrum[-1] - spectrum))
        floats = _float_root(level, exponent)
        unknown = 2.0 * inverse_temperature * float(rest.error)
        slack = _float_distance(floats, level, exponent) + unknown * float(np.linalg.norm(floats)) ** 2
        if slack * width < SLACK_AT_MOST:
            return cls(inverse_temperature=inverse_temperature, level=level, slack=slack, floats=floats)
        # Too close to singular for floats to tell how good W is: balls do, and mend it.
        inverse = _plus_identity(rest.mid * arb(-inverse_temperature), arb(level))
        root = arb_mat(floats.tolist())
        residual, distance = _residual(root, inverse)
        if not distance < 0.5:
            # So close that floats see nothing: start from afar, the steps go the whole way.
            root = _plus_identity(arb_mat(width, width), arb(_norm_above(inverse) ** -0.5))
            residual, distance = _residual(root, inverse)
        for _ in range(_MOST_STEPS):
            floats = _as_floats(root)
            slack = distance + unknown * float(np.linalg.norm(floats)) ** 2
            if slack * width < SLACK_AT_MOST:
                return cls(
                    inverse_temperature=inverse_temperature,
                    level=level,
                    slack=slack,
                    floats=floats,
                    mended=root,
                )
            # WᵀSW = I − X becomes I − (3/4)X² − (1/4)X³.
            root = (root + root * residual * arb(0.5)).mid()
            residual, distance = _residual(root, inverse)
        return None

    @property
    def width(self) -> int:
        """k."""
        return len(self.floats)

    def candidates(self, random_bytes: RandomBytes) -> Words:
        """The first 64 bits of a round of candidates: in each row pairs for Box–Muller, then a coin."""
        count, numbers = candidates_at_once(self.width), 2 * ((self.width + 1) // 2) + 1
        read = np.frombuffer(random_bytes(8 * count * numbers), dtype=">u8")
        return read.astype(np.uint64).reshape(count, numbers)

    def surely_rejected(self, words: Words) -> npt.NDArray[np.bool_]:
        """Which candidates are rejected whatever their further bits are.

        Proof: proofs/eigenvectors.md#eigenvectors-margin.
        """
        radii, angles, coins = words[:, 0:-1:2], words[:, 1:-1:2], words[:, -1]
        inside = _inside(radii).all(axis=1) & _inside(coins)
        with np.errstate(all="ignore"):
            lengths = np.sqrt(-2.0 * _logarithms(radii))
            turns = angles * (2.0 * math.pi * 2.0**-FIRST_BITS)
            normals = np.empty((len(words), words.shape[1] - 1))
            normals[:, ::2], normals[:, 1::2] = lengths * np.sin(turns), lengths * np.cos(turns)
            used = normals[:, : self.width]
            points = used @ self.floats.T
            whole, before, after = (_norms(vectors) for vectors in (normals, used, points))
            error = 4.0 * _NORMAL_ERROR * whole * (1.0 / before + np.linalg.norm(self.floats) / after)
            height = (1.0 - self.slack) * (before / after) ** 2
            scaled = np.log(2.0 * height / self.width)
            bound = 0.5 * self.width * (1.0 + scaled) - height
            coin = _logarithms(coins)
            margin = error * (2.0 * height + self.width) - _NORMAL_ERROR * coin
            margin += _FLOAT_ERROR * (height + self.width * (1.0 + np.abs(scaled)) - coin)
            return np.asarray(inside & (error < 0.125) & (coin - bound > margin))

    def point(self, uniforms: Uniforms, root: arb_mat) -> tuple[arb_mat, arb]:
        """z = Wn and |n|², W = `root`."""
        from flint import arb_mat

        normals = arb_mat(self.width, 1, uniforms.normals()[: self.width])
        return root * normals, (normals.transpose() * normals)[0, 0]

    def direction(self, uniforms: Uniforms, root: arb_mat) -> arb_mat:
        """u = z/|z|."""
        point, _ = self.point(uniforms, root)
        return point * (1 / (point.transpose() * point)[0, 0].sqrt())

    def accepts(self, candidate: Candidate, rest: MatrixBall, root: arb_mat) -> bool | None:
        """ln U < c·uᵀRu − m + (k/2)(1 + ln(2(1 − x)q/k)), or None while the bits read do not tell.

        Proof: proofs/eigenvectors.md#eigenvectors-sampler.
        """
        from flint import arb

        point, normals_squared = self.point(candidate.normals, root)
        squared = (point.transpose() * point)[0, 0]
        form = (point.transpose() * (rest.mid * point))[0, 0] / squared + arb(0, rest.error)
        ratio = 2 * (1 - arb(self.slack)) * normals_squared / (squared * self.width)
        height = arb(self.inverse_temperature) * form - arb(self.level) + (1 + ratio.log()) * self.width / 2
        return below(candidate.coin(), height)


def _float_root(level: float, exponent: FloatArray) -> FloatArray:
    """L⁻ᵀ with L Lᵀ = mI − cR in floats, or zero where that is not positive definite to floats."""
    from scipy.linalg import LinAlgError, cholesky, solve_triangular

    identity = np.eye(len(exponent))
    try:
        factor = cholesky(level * identity - exponent, lower=True)
    except LinAlgError:
        return 0.0 * identity
    return np.asarray(solve_triangular(factor, identity, lower=True, trans="T"))


def _float_distance(root: FloatArray, level: float, exponent: FloatArray) -> float:
    """At least |I − WᵀSW|_F for S = mI − cM: what floats find, and what they can have lost, twice.

    Proof: proofs/eigenvectors.md#eigenvectors-residual.
    """
    width = len(root)
    inverse = level * np.eye(width) - exponent
    found = float(np.linalg.norm(np.eye(width) - root.T @ (inverse @ root)))
    size = float(np.linalg.norm(inverse)) + abs(level) * width
    lost = (width + 8.0) * 2.0**-50 * size * float(np.linalg.norm(root)) ** 2
    return 2.0 * (found + lost + width * 2.0**-50)


def _residual(root: arb_mat, inverse: arb_mat) -> tuple[arb_mat, float]:
    """I − WᵀSW, and an upper bound of its Frobenius norm."""
    from flint import arb

    found = _plus_identity(-(root.transpose() * (inverse * root)), arb(1))
    return found, _norm_above(found)


def _plus_identity(matrix: arb_mat, times: arb) -> arb_mat:
    """The same matrix object, with `times` added to its diagonal."""
    for i in range(matrix.nrows()):
        matrix[i, i] = matrix[i, i] + times
    return matrix


def _norm_above(balls: arb_mat) -> float:
    """At least the Frobenius norm of every point: twice that of the midpoints in floats, and the radii.

    Proof: proofs/eigenvectors.md#eigenvectors-balls.
    """
    from flint import arb

    near = MatrixBall.of(balls, arb(0))
    return 2.0 * (float(np.linalg.norm(near.floats())) + float(near.error) + 2.0**-400)


def _as_floats(matrix: arb_mat) -> FloatArray:
    return np.array([float(x) for x in matrix.entries()]).reshape(matrix.nrows(), matrix.ncols())


def _inside(words: Words) -> npt.NDArray[np.bool_]:
    """Whether numbers with these first bits are 2^−28 or more away from 0 and from 1.

    Proof: proofs/eigenvectors.md#eigenvectors-margin.
    """
    return (words >= _EDGE) & (~words >= _EDGE)


def _logarithms(words: Words) -> FloatArray:
    """ln U, from whichever of U and 1 − U is the smaller.

    Proof: proofs/eigenvectors.md#eigenvectors-margin.
    """
    scale = 2.0**-FIRST_BITS
    small = words >> np.uint64(63) == 0
    return np.asarray(np.where(small, np.log(words * scale), np.log1p(-(~words * scale))))


def _norms(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", vectors, vectors)))
