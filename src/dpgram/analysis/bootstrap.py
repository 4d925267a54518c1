"""Parametric bootstrap: pretend that a corrected estimate is the truth, publish it again and again, refit.

Works for every mechanism that can redraw its release. Each replicate gives t* = (β* − β₀)/se*, β₀ being the
pretended truth; the interval is the closed form's with q, the quantile of |t*|, in the place of 1.96, so a
skewed or heavy-tailed noise shows in q. `kind="population"` also draws a new table:
Xᵀε ~ N(0, s²XᵀX), |ε|² ~ s²χ²_n. The estimate itself would be too noisy a truth: R and θ̂ are more spread than
A⁻¹ and θ. So the eigenvalues of R are drawn to their mean until tr R² falls by κ, and θ̂ to zero until
|t|² + |θ̂|² does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.asked import check_level
from dpgram.analysis.design import Design
from dpgram.analysis.estimand import Kind
from dpgram.analysis.inference import Inference, infer, residual_degrees
from dpgram.analysis.moments import Moments
from dpgram.analysis.unshrunken import Unshrunken, unshrunken
from dpgram.core.noise import simulation
from dpgram.errors import AnalysisError

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bootstrap:
    """Replicates of the un-shrunken coefficients, in original units."""

    inference: Inference
    replicates: Matrix
    """One row for each simulated release."""
    ratios: Matrix
    """t* of each replicate and coefficient: the pivot at the pretended truth."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        return self.inference.names

    @property
    def std_errors(self) -> Vector:
        """Standard deviations of the replicates."""
        return np.asarray(self.replicates.std(axis=0, ddof=1))

    def conf_int(self, level: float = 0.95) -> Matrix:
        """The closed form with the bootstrap quantile of |t*|; one row for each coefficient."""
        check_level(level)
        return self.inference.ends(np.quantile(np.abs(self.ratios), level, axis=0))


def bootstrap(
    moments: Moments, design: Design, *, draws: int = 400, kind: Kind = "population", seed: int = 0
) -> Bootstrap:
    """Redraw the release `draws` times around the corrected estimate and refit each."""
    if draws < 20:
        raise AnalysisError("there are too few bootstrap draws", got=draws, limit="at least 20")
    inference = infer(moments, design, kind)
    width = len(inference.std_errors)  # refuses where the noise makes inference meaningless
    solution = unshrunken(moments, design)
    generator = simulation(seed)
    truth = _Truth.of(moments, design, solution)
    known = design.coefficients(design.from_measured(truth.function, moments))
    replicates = np.empty((draws, width))
    ratios = np.empty_like(replicates)
    for i in range(draws):
        gram = truth.sampled(generator) if kind == "population" else truth.gram()
        again = infer(replace(moments, gram=moments.noise.redraw(gram, generator)), design, kind)
        replicates[i] = again.estimate
        ratios[i] = again.ratios(known)
    return Bootstrap(inference=inference, replicates=replicates, ratios=ratios)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Truth:
    """A Gram matrix on the span of features and target, and its exact regression."""

    span: Matrix
    """Orthonormal: the features' coordinates, then the target's own direction."""
    block: Matrix
    rest: Matrix
    """What the columns outside the span hold; a sampled release's error depends on it too."""
    features: Matrix
    """The Gram matrix of the features."""
    scores: Matrix
    """A square root of it."""
    theta: Vector
    error_variance: float
    degrees: float
    function: Vector
    """The exact regression as a function of the encoded row."""

    @classmethod
    def of(cls, moments: Moments, design: Design, solution: Unshrunken) -> _Truth:
        target = moments.project(design.target_vector)
        inside = solution.basis.T @ target
        outside = target - solution.basis @ inside
        size = float(np.linalg.norm(outside))
        values, vectors = np.linalg.eigh(solution.resolvent)
        values = _drawn_together(values, solution.inflation)
        features = (vectors / values) @ vectors.T
        theta = solution.slopes / size * _drawn_to_zero(solution.slopes / size, solution.inflation)
        degrees = residual_degrees(moments, design) or 1.0
        residual = max(solution.residual_sum, 0.0) / size**2
        toward = features @ theta
        block = np.block(
            [[features, toward[:, None]], [toward[None, :], np.array([[theta @ toward + residual]])]]
        )
        span = np.column_stack([solution.basis, outside / size])
        return cls(
            span=span,
            block=block,
            rest=_rest(moments, span),
            features=features,
            scores=vectors / np.sqrt(values),
            theta=theta,
            error_variance=residual / max(degrees, 1.0),
            degrees=max(degrees, 1.0),
            function=solution.basis @ (inside + size * theta),
        )

    def gram(self) -> Matrix:
        """The truth in encoded space."""
        return np.asarray(self.span @ self.block @ self.span.T + self.rest)

    def sampled(self, generator: np.random.Generator) -> Matrix:
        """A table drawn around it, with the same features and new errors."""
        sd = self.error_variance**0.5
        white = generator.standard_normal(len(self.theta))
        scores = sd * (self.scores @ white)
        squares = self.error_variance * (generator.chisquare(self.degrees) + float(white @ white))
        block = self.block.copy()
        block[:-1, -1] += scores
        block[-1, :-1] += scores
        block[-1, -1] = self.theta @ self.features @ self.theta + 2.0 * self.theta @ scores + squares
        return np.asarray(self.span @ block @ self.span.T + self.rest)


def _rest(moments: Moments, span: Matrix) -> Matrix:
    """Q G₊ Q with Q the projection away from the span: nothing when noise was added, which needs none."""
    if moments.noise.added:
        return np.zeros_like(moments.gram)
    values, vectors = np.linalg.eigh(moments.consistent_gram)
    away = vectors - span @ (span.T @ vectors)
    return np.asarray((away * np.maximum(values, 0.0)) @ away.T)


def _drawn_together(values: Vector, inflation: float) -> Vector:
    """r̄ + c(r_i − r̄) with Σ of squares 1/κ of what it was; not below a hundredth of the smallest."""
    mean = float(values.mean())
    spread = float(np.sum((values - mean) ** 2))
    if spread == 0.0:
        return values
    wanted = float(values @ values) / inflation - len(values) * mean**2
    drawn = mean + np.sqrt(max(wanted, 0.0) / spread) * (values - mean)
    return np.asarray(np.maximum(drawn, 0.01 * values.min()))


def _drawn_to_zero(theta: Vector, inflation: float) -> float:
    """s with 1 + |sθ|² = (1 + |θ|²)/κ, or 0."""
    size = float(theta @ theta)
    return float(np.sqrt(max((1.0 + size) / inflation - 1.0, 0.0) / size)) if size > 0.0 else 0.0
