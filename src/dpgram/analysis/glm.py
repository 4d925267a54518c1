"""Logit and probit of a declared model: Newton steps that were measured beside the matrix.

At published coefficients θ₀ a step has s̃ = Σ w x̃(y − p) + n and H̃ = Σ p'x̃x̃ᵀ + N, with x the features in
coordinates of their own, x̃ the same clipped at R, w = |x̃|/|x|. Then θ̂ = θ₀ + Δ with Δ = H̃⁻¹s̃. Since p is
taken at the index of the row as it came, E(y − p | x) = 0 at the true coefficients whatever the clip is: it
weighs rows, w² each, and moves nothing. The covariance is

    H⁻¹[J + σ_s²I + v(|Δ|²I + ΔΔᵀ)]H⁻¹,   v = Var N_ij,   J = c·H,

in which c = 1 for the logit: E ss ᵀ = Σ w²p(1 − p)x̃x̃ᵀ is at most H, and so it is for the m rows of a person
that count 1/m each, however they depend on each other. For the probit p(1 − p) ≤ c·p' with c = √(π/8).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr, ndtri

from dpgram.analysis.design import Design
from dpgram.analysis.moments import Moments
from dpgram.analysis.normal_equations import orthonormal
from dpgram.document.coordinates import Coordinates
from dpgram.document.fields import MeasuredStep
from dpgram.document.measurements import feature_schema
from dpgram.document.model_units import DIRECTION_BITS, SCORE_UNIT, WIDEST_CURVE
from dpgram.errors import AnalysisError
from dpgram.lattice import ROW_NORM
from dpgram.schema import Schema

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Curve: TypeAlias = Literal["logistic", "probit"]

CURVES: Final[tuple[Curve, ...]] = ("logistic", "probit")
SAMPLING: Final[Mapping[Curve, float]] = {"logistic": 1.0, "probit": math.sqrt(math.pi / 8.0)}
"""c: the largest p(1 − p)/p'."""
CLEAR: Final = 4.0
"""Deviations of the noise along one direction that the least eigenvalue of a Hessian matrix must have."""
LEAST_SHARE: Final = 0.02
"""Of both values of the target: the first coefficients begin no nearer to 0 and 1."""
LEAST_ERROR: Final = 0.15
"""Of the target's variance: first coefficients are those of features that tell no more than this leaves."""
STEEPEST: Final = 12.0
"""Largest size of first coefficients, in deviations of the index."""


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
    """T with T v_S = Qᵀu: L_Sᵀ = QR, so that T = R⁻ᵀ, lower triangular, and |x| ≤ |u|."""
    if moments.lift is None:
        raise AnalysisError("this release has no coordinates of its own")
    triangle: Matrix = np.asarray(np.linalg.qr(moments.lift[:, list(places)], mode="r"))
    triangle *= np.where(np.diagonal(triangle) < 0.0, -1.0, 1.0)[:, None]
    return Coordinates.nearest(np.tril(np.linalg.inv(triangle.T)))


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


def first_coefficients(moments: Moments, space: FeatureSpace, curve: Curve) -> Vector:
    """θ₀: by discriminant analysis from the matrix, of a fit that is shrunken as far as its noise demands.

    Wherever noise hides something the next best is taken: it is only where Newton steps begin.
    """
    from dpgram.analysis.regress import regress

    design = space.design
    constant = moments.constant_vector()
    rows = moments.rows
    if constant is None or rows is None or rows <= 0.0:
        raise AnalysisError("the noisy number of rows does not stand clear of its noise")
    y = design.target_scale * design.target_vector + design.offset[0] * constant
    share = float(moments.form(constant[:, None], y[:, None])[0, 0]) / rows
    share = min(max(share, LEAST_SHARE), 1.0 - LEAST_SHARE)
    spread = share * (1.0 - share)
    names = list(dict.fromkeys(term.source for term in design.terms[1:]))
    fit = regress(moments, design.target, names, reference=dict(design.references))
    inside = np.linalg.solve(design.to_original, fit.values - design.offset)
    slopes: Vector = np.asarray(inside * design.target_scale, dtype=np.float64)
    """(a, b) of the 0/1 target on the design's terms, the intercept first."""
    slopes[0] += design.offset[0]
    error = y - design.vectors @ slopes
    left = float(moments.form(error[:, None], error[:, None])[0, 0]) / rows
    # Noise could make features tell too much, and coefficients too steep: two deviations of it are allowed.
    held = moments.project(error[:, None])
    left += 2.0 * moments.noise.diagonal_sd * float(np.sum(held**2)) / rows
    left = min(max(left, LEAST_ERROR * spread), spread)
    if curve == "logistic":
        factor = 1.0 / left
        shift = math.log(share / (1.0 - share)) - share * factor - (0.5 - share) * (factor - 1.0 / spread)
    else:
        place = float(ndtri(share))
        density = math.exp(-0.5 * place**2) / math.sqrt(2.0 * math.pi)
        tells = max(1.0 - (spread - left) / density**2, LEAST_ERROR)
        factor = 1.0 / (density * math.sqrt(tells))
        shift = place / math.sqrt(tells) - share * factor
    coefficients = factor * slopes
    coefficients[0] += shift
    theta = space.from_terms(coefficients)
    size = float(np.linalg.norm(theta))
    return np.asarray(theta * min(1.0, STEEPEST / size) if size else theta)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewtonStep:
    """One measured step in the coordinates B: where it began, what was seen there, where it leads."""

    start: Vector
    score: Vector
    hessian: Matrix
    score_sd: float
    hessian_sd: float
    """√v: the deviation of N_ij."""

    @classmethod
    def of(cls, measured: MeasuredStep, space: FeatureSpace) -> NewtonStep:
        unit = measured.radius / ROW_NORM
        width = space.schema.width
        cells = np.zeros((width, width))
        cells[np.tril_indices(width)] = [float(int(cell)) for cell in measured.cells]
        cells = cells + np.tril(cells, -1).T
        bent = unit**2 * WIDEST_CURVE[measured.family]
        score = np.array([float(int(cell)) for cell in measured.score]) * (unit / SCORE_UNIT)
        slopes = np.ldexp(np.array(measured.slopes, dtype=np.float64), -DIRECTION_BITS) * measured.size
        basis = space.basis
        return cls(
            start=basis.T @ slopes,
            score=basis.T @ score,
            hessian=basis.T @ cells @ basis * bent,
            score_sd=measured.score_sigma * unit / SCORE_UNIT,
            hessian_sd=measured.noise.sigma / math.sqrt(2.0) * bent,
        )

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
        return np.asarray(self.start + vectors @ (kept * along))

    def covariance(self, curve: Curve) -> Matrix:
        """Of θ̂: sampling and privacy noise. What is proven of it: proofs/models.md#models-errors."""
        inverse = np.linalg.inv(self.hessian)
        step = self.step()
        size = len(step)
        noise = self.score_sd**2 * np.eye(size)
        noise += self.hessian_sd**2 * (float(step @ step) * np.eye(size) + np.outer(step, step))
        found = SAMPLING[curve] * inverse + inverse @ noise @ inverse
        return np.asarray((found + found.T) / 2.0)


def chances(curve: Curve, index: Any) -> Vector:
    """p."""
    return np.asarray(expit(index) if curve == "logistic" else ndtr(index))
