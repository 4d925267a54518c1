"""Declared models: Newton steps that were measured beside the matrix.

At published coefficients θ₀ a step has s̃ = Σ w x̃ r + n and H̃ = Σ k·x̃x̃ᵀ + N, with x the features in
coordinates of their own, x̃ the same clipped at R, w = |x̃|/|x|, r the residual and k its slope (y − p and p'
for a logit). Then θ̂ = θ₀ + Δ with Δ = H̃⁻¹s̃. Since r is taken at the index of the row as it came, E(r | x) = 0
at the true coefficients whatever the clip is: it weighs rows, w² each, and moves nothing. The covariance is

    H⁻¹[J + σ_s²I + v(tr(S)I + S)]H⁻¹,   v = Var N_ij,   S = H⁻¹(κ²s̃s̃ᵀ + κσ_s²I)H⁻¹,

since θ̂ = θ₀ + H⁻¹s + H̃⁻¹(n − N·H⁻¹s): the noise of the Hessian matrix is multiplied by the step without
noise. S is what s̃ tells of that step's square, κ = (1 − kσ_s²/|s̃|²)₊ in k dimensions; Δ has noise of its own,
by whose square errors would be too large. J is the measured spread Σ ssᵀ of the scores of units (linear
models and counts), or J = c·H: for the logit c = 1, as E ssᵀ = Σ w²p(1 − p)x̃x̃ᵀ is at most H, and so it is
for the m rows of a person that count 1/m each, however they depend on each other. For the probit
p(1 − p) ≤ c·p' with c = √(π/8).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt
from scipy.special import chdtr, expit, ndtr

from dpgram.analysis.design import Design
from dpgram.analysis.moments import Moments
from dpgram.analysis.normal_equations import orthonormal
from dpgram.document.coordinates import Coordinates
from dpgram.document.fields import MeasuredStep
from dpgram.document.measurements import feature_schema
from dpgram.document.model_units import DIRECTION_BITS, SCORE_UNIT, WIDEST_CURVE
from dpgram.document.model_units import Curve as AnyCurve
from dpgram.errors import AnalysisError
from dpgram.lattice import ROW_NORM
from dpgram.schema import Schema

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Curve: TypeAlias = Literal["logistic", "probit", "poisson"]

CURVES: Final[tuple[Curve, ...]] = ("logistic", "probit", "poisson")
"""Those that are asked for by their family."""
SAMPLING: Final[Mapping[AnyCurve, float]] = {"logistic": 1.0, "probit": math.sqrt(math.pi / 8.0)}
"""c: the largest p(1 − p)/p'."""
LONGEST_STEP: Final[Mapping[AnyCurve, float]] = {"poisson": 1.0}
"""How far a step moves where the next one begins, in deviations: Newton's steps of counts overshoot."""
FLATTEST: Final = 0.02
"""The least variance that a direction of features is given, in those of the matrix."""
CLEAR: Final = 4.0
"""Deviations of the noise along one direction that the least eigenvalue of a Hessian matrix must have."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureSpace:
    """The features of a declared model in coordinates x = T v of their own, and its terms in them."""

    schema: Schema
    coordinates: Coordinates
    design: Design
    basis: Matrix
    """B: an orthonormal basis of the terms, as functions of x."""
    to_terms: Matrix
    """From θ in that basis to coefficients of the design's terms."""
    constant: Vector
    """The constant function, in the coordinates B."""

    @classmethod
    def of(
        cls, moments: Moments, design: Design, on: Sequence[str], coordinates: Coordinates | None
    ) -> FeatureSpace:
        """`coordinates` as a release has them; none: those in which the noise of its matrix is isotropic."""
        schema = feature_schema(moments.schema, on)
        places = [0, *(i for column in schema.columns for i in moments.schema.indices(column.name))]
        if coordinates is None:
            coordinates = _own_coordinates(moments, places)
        back = coordinates.inverse.T
        known = _null_space(moments, schema, back)
        vectors = back @ design.vectors[places]
        terms = vectors - known @ (known.T @ vectors)
        basis = orthonormal(terms)
        if basis.shape[1] < terms.shape[1]:
            raise AnalysisError(
                "the features are linearly dependent by construction", remedy="Leave out one of them."
            )
        one = np.zeros(schema.width)
        one[0] = 1.0 / schema.encoded[0].weight
        one = back @ one
        return cls(
            schema=schema,
            coordinates=coordinates,
            design=design,
            basis=basis,
            to_terms=np.asarray(np.linalg.inv(basis.T @ terms), dtype=np.float64),
            constant=basis.T @ (one - known @ (known.T @ one)),
        )

    @property
    def to_original(self) -> Matrix:
        """From θ to coefficients in original units."""
        return np.asarray(self.design.to_original / self.design.target_scale @ self.to_terms)

    def from_terms(self, coefficients: Vector) -> Vector:
        """θ of coefficients of the design's terms."""
        return np.asarray(np.linalg.solve(self.to_terms, coefficients))


def _own_coordinates(moments: Moments, places: Sequence[int]) -> Coordinates:
    """T in which the features vary alike in every direction, as far as the noise of the matrix tells.

    L_Sᵀ = QR, so that T₀ = R⁻ᵀ is lower triangular and T₀ v_S = Qᵀu: there noise is the same everywhere. Then
    T = chol(S)⁻¹T₀, S = (QᵀG̃Q/n̂)₊ + f·I, f the edge of that noise or `FLATTEST`, whichever is larger, in
    declared columns times the median of their variances.
    """
    if not moments.rows or moments.rows <= 0.0:
        raise AnalysisError("the noisy number of rows does not stand clear of its noise")
    lift = np.eye(moments.schema.width) if moments.lift is None else moments.lift
    turn, triangle = np.linalg.qr(lift[:, list(places)])
    signs = np.where(np.diagonal(triangle) < 0.0, -1.0, 1.0)
    turn, triangle = turn * signs, triangle * signs[:, None]
    values, vectors = np.linalg.eigh(turn.T @ moments.consistent_gram @ turn / moments.rows)
    edge = 2.0 * moments.noise.diagonal_sd * math.sqrt(len(places)) / moments.rows
    usual = 1.0 if moments.lift is not None else float(np.median(np.maximum(values, 0.0)))
    held = np.maximum(values, 0.0) + max(edge, FLATTEST * usual)
    lower = np.linalg.cholesky((vectors * held) @ vectors.T)
    return Coordinates.nearest(np.tril(np.linalg.solve(lower, np.linalg.inv(triangle.T))))


def _null_space(moments: Moments, schema: Schema, back: Matrix) -> Matrix:
    """Functions of x that are zero in every row: the levels of a column add up to the constant."""
    groups = [schema.indices(column.name) for column in schema.columns if column.group_levels]
    if not moments.complete_groups or not groups:
        return np.zeros((schema.width, 0))
    weights = np.array([column.weight for column in schema.encoded])
    ones = np.zeros((schema.width, len(groups)))
    for number, members in enumerate(groups):
        ones[list(members), number] = 1.0 / weights[list(members)]
    ones[0, :] = -1.0 / weights[0]
    return np.asarray(np.linalg.qr(back @ ones)[0])


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewtonStep:
    """One measured step in the coordinates B: where it began, what was seen there, where it leads."""

    curve: AnyCurve
    start: Vector
    score: Vector
    hessian: Matrix
    score_sd: float
    hessian_sd: float
    """√v: the deviation of N_ij."""
    spread: Matrix | None
    """M̃, noisy Σ ssᵀ, where it was measured,"""
    spread_sd: float
    """and the deviation of its noise off the diagonal."""
    scale_variance: float = 0.0
    """The relative variance of the Hessian matrix as a whole, beside that of N."""

    @classmethod
    def of(cls, measured: MeasuredStep, space: FeatureSpace) -> NewtonStep:
        unit = measured.radius / ROW_NORM
        bent = unit**2 * WIDEST_CURVE[measured.family] * measured.cap
        scored = unit * measured.limit / SCORE_UNIT
        score = np.array([float(int(cell)) for cell in measured.score]) * scored
        slopes = np.ldexp(np.array(measured.slopes, dtype=np.float64), -DIRECTION_BITS) * measured.size
        basis, own = space.basis, measured.spread
        spread: Matrix | None = None
        spread_sd = 0.0
        if own is not None:
            held = (ROW_NORM * own.bound * scored) ** 2
            spread = basis.T @ _symmetric(own.cells, space.schema.width) @ basis * held
            spread_sd = own.noise.sigma / math.sqrt(2.0) * held
        return cls(
            curve=measured.family,
            start=basis.T @ slopes,
            score=basis.T @ score,
            hessian=basis.T @ _symmetric(measured.cells, space.schema.width) @ basis * bent,
            score_sd=measured.score_sigma * scored,
            hessian_sd=measured.noise.sigma / math.sqrt(2.0) * bent,
            spread=spread,
            spread_sd=spread_sd,
        )

    @property
    def finite(self) -> bool:
        """Whether these are numbers to compute with: a forged file may say anything."""
        sizes = np.array([self.score_sd, self.hessian_sd, self.spread_sd])
        with np.errstate(over="ignore"):
            every = [self.start, self.score, self.hessian.ravel(), sizes**2]
        if self.spread is not None:
            every.append(self.spread.ravel())
        return bool(np.isfinite(np.concatenate(every)).all())

    @property
    def edge(self) -> float:
        """Of the eigenvalues that noise alone has."""
        return 2.0 * self.hessian_sd * math.sqrt(len(self.start))

    @property
    def clear(self) -> bool:
        """Whether the Hessian matrix stands clear of its noise in every direction."""
        along = math.sqrt(2.0) * self.hessian_sd
        return bool(np.linalg.eigvalsh(self.hessian)[0] > CLEAR * along)

    def step(self) -> Vector:
        """Δ = H̃⁻¹s̃."""
        return np.asarray(np.linalg.solve(self.hessian, self.score))

    def careful_end(self) -> Vector:
        """θ₀ + Δ with Δ shrunken as far as its noise demands, direction by direction: for predictions.

        Noise of variance v_i in a step Δ_i of variance g² leaves g²/(g² + v_i) of it.
        """
        values, vectors = np.linalg.eigh(self.hessian)
        held = np.maximum(values, max(self.edge, np.finfo(np.float64).tiny))
        along = (vectors.T @ self.score) / held
        noise = (self.score_sd / held) ** 2
        size = max(float(np.mean(along**2 - noise)), 0.0)
        kept = size / (size + noise) if size > 0.0 else np.zeros(len(along))
        moved = vectors @ (kept * along)
        length, longest = float(np.linalg.norm(moved)), LONGEST_STEP.get(self.curve, math.inf)
        return np.asarray(self.start + moved * (longest / length if length > longest else 1.0))

    def _squared_score(self) -> Matrix:
        """E(ssᵀ | s̃) of the score without noise, were its cells normal and of the same variance.

        κ²s̃s̃ᵀ + κσ_s²I with κ = (1 − kσ_s²/|s̃|²)₊: proofs/models.md#models-errors.
        """
        size, noise, square = len(self.score), self.score_sd**2, float(self.score @ self.score)
        left = max(0.0, 1.0 - size * noise / square) if square > 0.0 else 0.0
        return np.asarray(left**2 * np.outer(self.score, self.score) + left * noise * np.eye(size))

    def covariance(self, sampling: Matrix | None = None) -> Matrix:
        """Of θ̂: sampling, with J for the spread of scores (none: c·H), and privacy noise.

        What is proven of it: proofs/models.md#models-errors.
        """
        inverse = np.linalg.inv(self.hessian)
        size = len(self.score)
        middle = SAMPLING[self.curve] * self.hessian if sampling is None else sampling
        middle = middle + self.score_sd**2 * np.eye(size)
        scores = self._squared_score()
        steps = inverse @ scores @ inverse
        middle += self.hessian_sd**2 * (float(np.trace(steps)) * np.eye(size) + steps)
        middle += self.scale_variance * scores
        found = inverse @ middle @ inverse
        return np.asarray((found + found.T) / 2.0)


def taken(step: NewtonStep, space: FeatureSpace, moments: Moments, counts: Vector | None = None) -> str:
    """Which part of all rows, or of all `counts`, the Hessian matrix lacks: ends of a 95% interval, in words.

    Its constant cell is Σ w²·1[|residual| ≤ E] in a linear model, and Σ w²gλ in one of counts.
    """
    constant = moments.constant_vector()
    if constant is None:
        return "an unknown part"
    left, right = (moments.project(f) for f in (constant, constant if counts is None else counts))
    whole = float(left @ moments.consistent_gram @ right)
    noise = float((left @ left) * (right @ right) + (left @ right) ** 2) * moments.noise.offdiagonal_sd**2
    kept = float(space.constant @ step.hessian @ space.constant)
    own = 2.0 * (step.hessian_sd * float(space.constant @ space.constant)) ** 2
    if not whole > 0.0:
        return "an unknown part"
    reach = 1.96 * math.sqrt(own + noise * (kept / whole) ** 2) / whole
    low, high = (min(max(1.0 - kept / whole + side * reach, 0.0), 1.0) for side in (-1.0, 1.0))
    return f"{low:.1%} to {high:.1%}"


def _symmetric(cells: Sequence[str], width: int) -> Matrix:
    """The matrix whose lower triangle these are, by rows."""
    found = np.zeros((width, width))
    found[np.tril_indices(width)] = [float(int(cell)) for cell in cells]
    return np.asarray(found + np.tril(found, -1).T)


def weight_left(radius: float, width: int) -> float:
    """E w⁴x²/E w²x² of a feature x where `width` − 1 of them are normal: how far a clip evens scores out."""
    # ∫ over the law of |x|² = 1 + χ², in 200 equal parts of it.
    degrees = max(width - 1, 1)
    ends = np.linspace(0.0, degrees + 12.0 * math.sqrt(2.0 * degrees), 201)
    chances, squares = np.diff(chdtr(degrees, ends)), 0.5 * (ends[1:] + ends[:-1])
    weights = np.minimum(radius**2 / (1.0 + squares), 1.0)
    return float((weights**2 * squares) @ chances / ((weights * squares) @ chances))


def expected(curve: Curve, index: Any) -> Vector:
    """E y at an index: p, or the expected count."""
    if curve == "poisson":
        return np.exp(np.minimum(np.asarray(index, dtype=np.float64), LARGEST_INDEX))
    return np.asarray(expit(index) if curve == "logistic" else ndtr(index))


LARGEST_INDEX: Final = 700.0
"""Of a count's logarithm: e^700 is a float still."""
