"""What an analyst knows: G̃ = G + N where it was measured, the law of N, and the linear facts tables obey.

The matrix is that of the rows u = T v: of the encoded columns v themselves or, in an adaptive release, of
published coordinates. There the noise is the same in every direction, so estimation happens there and only
results are moved to original units. A function f·v of the encoded row is (Lᵀf)·u with L = T⁻¹. One fact is
worth using: the levels of a categorical column add up to the constant column in every row, so G·u = 0 for
u = e_constant/w₀ − Σ e_level/w. With P the projection onto the complement of all such u, P G P = G while
P N P has less noise: that is the least-squares estimate under this constraint, and it keeps the shape of the
noise (orthogonally invariant laws stay what they are on the range of P).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.clip import ClipCounts, clip_counts
from dpgram.analysis.histograms import empty_levels
from dpgram.core.noise import simulation
from dpgram.document.fields import MeasuredStep
from dpgram.document.measurements import learnt_bounds, unresolved
from dpgram.document.original_units import refuse_beyond_floats
from dpgram.errors import AnalysisError
from dpgram.lattice import cell_unit
from dpgram.noise import NoiseLaw, SampledLaw
from dpgram.noise.sampled import StandIn
from dpgram.schema import Schema

if TYPE_CHECKING:
    from dpgram.document.document import Document
    from dpgram.document.fields import UnitRule

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

CLIP_SLACK = 1e-9
"""A radius within this of the schema's largest norm clips nothing: it is the same number after rounding."""
SMALLEST, LARGEST = 1e-35, 1e35
"""Sizes of cells and of noise in encoded units: a row has about 1, a full table 10^10."""
SHIFT = 1.0
"""Standard errors by which, at the very most, a clip moves what is still called least squares; half of it in
simulations."""
CLEAREST = 1e15
"""Largest cell, in deviations of its noise: beyond it a float of that size cannot hold the noise."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisePart:
    """One independent noise: a law in lattice units and the size of a lattice unit in encoded units."""

    law: NoiseLaw | StandIn
    unit: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedNoise:
    """The noise N in encoded units: a sum of independent laws (one, unless releases were added)."""

    parts: tuple[NoisePart, ...]

    @classmethod
    def of(cls, law: NoiseLaw | StandIn, unit: float = 1.0) -> Self:
        """One law, `unit` encoded units to each of its own.

        >>> from dpgram.analysis import EncodedNoise
        >>> from dpgram.noise import SymmetricGaussian
        >>> EncodedNoise.of(SymmetricGaussian(sigma=3.0), unit=2.0).diagonal_sd
        6.0
        """
        return cls(parts=(NoisePart(law=law, unit=unit),))

    @property
    def added(self) -> bool:
        """Whether noise was added to the matrix, so that its law does not depend on the table."""
        return not any(isinstance(part.law, StandIn) for part in self.parts)

    @property
    def diagonal_sd(self) -> float:
        """σ: the standard deviation of N_ii."""
        return math.hypot(*(part.law.diagonal_sd * part.unit for part in self.parts))

    @property
    def offdiagonal_sd(self) -> float:
        """The standard deviation of N_ij; σ/√2 for the orthogonally invariant laws."""
        return math.hypot(*(part.law.offdiagonal_sd * part.unit for part in self.parts))

    @property
    def mean_diagonal(self) -> float:
        """c with E N = c·I."""
        return sum(part.law.mean_diagonal * part.unit for part in self.parts)

    def expected_norm(self, width: int) -> float:
        """E‖N‖ on `width` columns; for a sum of laws the root of the sum of squares (exact for Gaussians).

        >>> from dpgram.analysis import Moments
        >>> round(Moments.of(release).noise.expected_norm(5))
        46
        """
        if width == 0 or self.diagonal_sd == 0.0:
            return 0.0
        return math.hypot(*(part.law.expected_norm(width) * part.unit for part in self.parts))

    def residual_covariance(self, residual: Vector, basis: Matrix) -> Matrix:
        """Cov(BᵀN r) = Bᵀ[o²(|r|²I + rrᵀ) + (s² − 2o²) diag(r²)]B, s = sd N_ii, o = sd N_ij.

        Cells are uncorrelated. The invariant laws have s² = σ² = 2o²: (σ²/2)(|r|² BᵀB + Bᵀr rᵀB).

        >>> import numpy as np
        >>> from dpgram.analysis import Moments
        >>> noise = Moments.of(release).noise
        >>> (noise.residual_covariance(np.ones(5), np.eye(5)[:, :2]) / noise.diagonal_sd**2).round(2)
        array([[3. , 0.5],
               [0.5, 3. ]])
        """
        off = self.offdiagonal_sd**2
        along = basis.T @ residual
        covariance = off * (float(residual @ residual) * (basis.T @ basis) + np.outer(along, along))
        excess = self.diagonal_sd**2 - 2.0 * off
        if abs(excess) > 1e-9 * off:
            covariance += excess * (basis.T * residual**2) @ basis
        return np.asarray(covariance, dtype=np.float64)

    def functional_variance(self, shape: Matrix) -> float:
        """Var⟨S, N⟩ = s² Σ S_ii² + 2o² Σ_{i≠j} S_ij² for a symmetric S.

        >>> import numpy as np
        >>> from dpgram.analysis import Moments
        >>> noise = Moments.of(release).noise
        >>> round(noise.functional_variance(np.eye(5)) / noise.diagonal_sd**2, 6)  # the variance of a trace
        5.0
        """
        diagonal = float(np.sum(np.diagonal(shape) ** 2))
        off = float(np.sum(shape**2)) - diagonal
        return self.diagonal_sd**2 * diagonal + 2.0 * self.offdiagonal_sd**2 * off

    def redraw(self, gram: Matrix, generator: np.random.Generator) -> Matrix:
        """A published matrix as it might have come out, had `gram` been the exact one.

        >>> import numpy as np
        >>> from dpgram.analysis import Moments
        >>> moments = Moments.of(release)
        >>> again = moments.noise.redraw(moments.gram, np.random.default_rng(0))
        >>> bool((again != moments.gram).all())
        True
        """
        first, *others = self.parts
        drawn = first.law.redraw(gram / first.unit, generator) * first.unit
        for part in others:
            drawn = drawn + part.law.sample(len(gram), generator) * part.unit
        return np.asarray(drawn, dtype=np.float64)


@final
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Moments:
    """One noisy Gram matrix in the coordinates where it was measured, with the public facts needed to use it.

    Without slots, so that what every analysis starts from is computed once.
    """

    gram: Matrix
    schema: Schema
    noise: EncodedNoise
    radius: float
    lift: Matrix | None = None
    """Lᵀ: from functions of the encoded row to functions of u; none where these are the same."""
    clip: ClipCounts | None = None
    """What the clip took from rows in coordinates of their own, where that was counted."""
    empty_levels: frozenset[str] = frozenset()
    """Encoded columns of levels that noisy counts show to be empty, or nearly so."""
    complete_groups: bool = True
    """Whether in every row the levels of each categorical column add up to one."""
    public_rows: int | None = None
    unit: str | None = None
    """The column whose values are protected as a whole, when that is not the row."""
    unit_rule: UnitRule | None = None
    """How the rows of one of them count together."""
    survey_weight: str | None = None
    """The column that weighs rows, where one does."""
    count_scale: float = 1.0
    """What a weight of 1 in the matrix stands for: the rows a unit may have, times the largest weight."""
    learnt_bounds: frozenset[str] = frozenset()
    """Numeric columns whose bounds were learnt, so that some values of the table lay outside."""
    linear_steps: tuple[MeasuredStep, ...] = ()
    """What was measured for declared linear models."""
    wide_bounds: frozenset[str] = frozenset()
    """Those of them whose learnt bounds are far wider than the values."""
    of_series: bool = False
    """Whether it is a window of a series, whose coordinates the first period has fixed."""

    @classmethod
    def of(cls, source: Document | Moments) -> Moments:
        """The moments of a release (or themselves).

        >>> from dpgram.analysis import Moments
        >>> round(Moments.of(release).rows)
        20016
        """
        if isinstance(source, Moments):
            return source
        refuse_beyond_floats(source.schema)
        unit, gram, law = cell_unit(source.radius), source.measured_matrix, source.noise
        size = float(np.abs(gram).max())
        _refuse_beyond_floats(unit, size)
        # A law that depends on the matrix is looked at from the published one, always with the same seed.
        seen = law.stand_in(gram / unit, simulation(0)) if isinstance(law, SampledLaw) else law
        noise = EncodedNoise.of(seen, unit)
        _refuse_beyond_floats(noise.diagonal_sd, noise.offdiagonal_sd, noise.mean_diagonal)
        if size > CLEAREST * noise.diagonal_sd:
            raise _beyond_floats(f"cells up to {CLEAREST:g} times the noise")
        return cls(
            gram=gram,
            schema=source.schema,
            noise=noise,
            radius=source.radius,
            lift=None if source.coordinates is None else source.coordinates.inverse.T,
            clip=clip_counts(source),
            empty_levels=empty_levels(source),
            complete_groups=source.policy.missing == "drop",
            public_rows=source.public_rows,
            unit=source.unit,
            unit_rule=source.unit_rule,
            survey_weight=None if source.survey_weight is None else source.survey_weight.column,
            count_scale=source.count_scale,
            linear_steps=tuple(
                each for each in source.measured if isinstance(each, MeasuredStep) and each.family == "linear"
            ),
            wide_bounds=frozenset(unresolved(source)),
            learnt_bounds=frozenset(learnt_bounds(source)),
            of_series=source.series is not None,
        )

    def __repr__(self) -> str:
        return f"<Moments: {self.schema.width} columns, noise of deviation {self.noise.diagonal_sd:.4g}>"

    @property
    def clipped(self) -> bool:
        """Whether rows may have been scaled down, so that long ones count less."""
        if self.lift is not None:
            return self.clip is None or self.clip.lost > 0.0
        return self.radius**2 < self.schema.max_norm_squared * (1.0 - CLIP_SLACK)

    @cached_property
    def sampling_factor(self) -> float:
        """What s²A must be multiplied with for the sampling error of rows that were clipped (clip.py)."""
        if self.lift is None or self.clip is None:
            return 1.0
        width = self.schema.width - self.known_null_space.shape[1]
        return self.clip.sampling_factor(self.radius, width, constant=self.schema.constant)

    @cached_property
    def least_squares(self) -> bool:
        """Whether so little weight was clipped that the regression is that of the rows as they came."""
        if not self.clipped:
            return True
        if self.lift is None or self.clip is None or not self.rows or self.rows <= 0.0:
            return False
        return self.clip.largest_shift(self.radius, self.rows) <= SHIFT

    @cached_property
    def weights(self) -> Vector:
        """The weight of every encoded column."""
        return np.array([column.weight for column in self.schema.encoded])

    @cached_property
    def known_null_space(self) -> Matrix:
        """Orthonormal columns with G·u = 0 in every table: levels, and products with them, add up.

        Proof: proofs/adaptive.md#adaptive-null.
        """
        known = self.schema.known_sums if self.complete_groups else ()
        if not known:
            return np.zeros((self.schema.width, 0))
        sums = np.zeros((self.schema.width, len(known)))
        for number, function in enumerate(known):
            sums[list(function), number] = list(function.values())
        return np.asarray(np.linalg.qr(self._lifted(sums))[0])

    def _lifted(self, functions: Matrix) -> Matrix:
        return functions if self.lift is None else self.lift @ functions

    @cached_property
    def consistent_gram(self) -> Matrix:
        """P (G̃ − E N) P: unbiased for G, with the noise along the known null space removed."""
        return self.projected_gram(self.noise.mean_diagonal)

    def projected_gram(self, mean: float) -> Matrix:
        """P (G̃ − mean·I) P.

        >>> from dpgram.analysis import Moments
        >>> import numpy as np
        >>> moments = Moments.of(release)
        >>> bool(np.allclose(moments.projected_gram(0.0) @ moments.known_null_space, 0.0))
        True
        """
        gram = self.gram - mean * np.eye(len(self.gram))
        null = self.known_null_space
        if null.shape[1] == 0:
            return gram
        gram = gram - null @ (null.T @ gram)
        gram = gram - (gram @ null) @ null.T
        return np.asarray((gram + gram.T) / 2.0)

    @cached_property
    def encoded_gram(self) -> Matrix:
        """The consistent Gram matrix as that of the encoded columns; its noise is not the same everywhere."""
        if self.lift is None:
            return self.consistent_gram
        back = self.lift.T @ self.consistent_gram @ self.lift
        return np.asarray((back + back.T) / 2.0)

    def project(self, vectors: Matrix) -> Matrix:
        """P Lᵀv for each function v of the encoded row: as functions where the matrix was measured.

        Proof: proofs/adaptive.md#adaptive-submodel.

        >>> import numpy as np
        >>> from dpgram.analysis import Moments
        >>> Moments.of(release).project(np.eye(5))[2].round(2) + 0.0
        array([ 0.33,  0.  ,  0.67, -0.33,  0.  ])
        """
        return self.within(self._lifted(vectors))

    def within(self, functions: Matrix) -> Matrix:
        """P f for functions of u: without what every table has as zero.

        >>> from dpgram.analysis import Moments
        >>> import numpy as np
        >>> moments = Moments.of(release)
        >>> bool(np.allclose(moments.known_null_space.T @ moments.within(np.eye(5)), 0.0))
        True
        """
        null = self.known_null_space
        return np.asarray(functions - null @ (null.T @ functions))

    def form(self, left: Matrix, right: Matrix) -> Matrix:
        """FᵀGH for functions F and H of the encoded row, one in each column: their sums of products.

        >>> import numpy as np
        >>> from dpgram.analysis import Moments
        >>> moments = Moments.of(release)
        >>> constant = moments.constant_vector()
        >>> round(float(moments.form(constant, constant)))
        20016
        """
        return np.asarray(self.project(left).T @ self.consistent_gram @ self.project(right))

    def constant_vector(self) -> Vector | None:
        """f with f·v = 1 for every encoded row v; nothing when no column of the schema says so.

        >>> from dpgram.analysis import Moments
        >>> Moments.of(release).constant_vector()
        array([1., 0., 0., 0., 0.])
        """
        schema = self.schema
        vector = np.zeros(schema.width)
        if schema.constant:
            vector[0] = 1.0 / self.weights[0]
            return vector
        if self.complete_groups:
            for column in schema.columns:
                if column.group_levels:
                    vector[list(schema.indices(column.name))] = 1.0 / column.weight
                    return vector
        return None

    @cached_property
    def rows(self) -> float | None:
        """The noisy number of rows (under a clip: their total weight); the public one when no cell tells."""
        constant = self.constant_vector()
        if constant is None:
            return None if self.public_rows is None else float(self.public_rows)
        held = self.project(constant)
        return float(held @ self.consistent_gram @ held)


def _refuse_beyond_floats(*sizes: float) -> None:
    """Sizes whose fourth powers, and quotients of them, are not floats: no table is behind such a file."""
    if not all(size == 0.0 or SMALLEST <= size <= LARGEST for size in sizes):
        raise _beyond_floats(f"sizes from {SMALLEST:g} to {LARGEST:g} in encoded units")


def _beyond_floats(limit: str) -> AnalysisError:
    return AnalysisError(
        "the numbers of this release are too large or too small to compute with",
        limit=limit,
        remedy="A release of a real table has no such numbers: ask the curator for the original file",
    )
