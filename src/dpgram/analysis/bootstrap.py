"""Parametric bootstrap: pretend the corrected estimate is the truth, publish it again and again, refit.

Works for every mechanism that can redraw its release. Each replicate gives t* = (β* − β̂)/se*; the interval is
β̂ ± q·se with q the quantile of |t*|, so a skewed or heavy-tailed noise shows in q while the standard error
stays the closed form's. `kind="population"` also draws a new table: Xᵀε ~ N(0, s²XᵀX), |ε|² ~ s²χ²_n.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.design import Design
from dpgram.analysis.inference import Inference, Kind, infer, residual_degrees
from dpgram.analysis.moments import Moments
from dpgram.analysis.unshrunken import Unshrunken, unshrunken
from dpgram.errors import AnalysisError
from dpgram.privacy.entropy import simulation

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
    """t* of each replicate and coefficient."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        return self.inference.names

    @property
    def std_errors(self) -> Vector:
        """Standard deviations of the replicates."""
        return np.asarray(self.replicates.std(axis=0, ddof=1))

    def conf_int(self, level: float = 0.95) -> Matrix:
        """β̂ ± q·se, q the bootstrap quantile of |t*|; one row for each coefficient."""
        if not 0.0 < level < 1.0:
            raise AnalysisError("the level of an interval is a probability", got=level, limit="0 < level < 1")
        quantile = np.quantile(np.abs(self.ratios), level, axis=0)
        reach = quantile * self.inference.std_errors
        return np.column_stack([self.inference.estimate - reach, self.inference.estimate + reach])


def bootstrap(
    moments: Moments, design: Design, *, draws: int = 400, kind: Kind = "population", seed: int = 0
) -> Bootstrap:
    """Redraw the release `draws` times around the corrected estimate and refit each."""
    if draws < 20:
        raise AnalysisError("too few bootstrap draws", got=draws, limit="at least 20")
    inference = infer(moments, design, kind)
    errors = inference.std_errors  # refuses where the noise makes inference meaningless
    solution = unshrunken(moments, design)
    generator = simulation(seed)
    truth = _Truth.of(moments, design, solution)
    replicates = np.empty((draws, len(errors)))
    ratios = np.empty_like(replicates)
    for i in range(draws):
        gram = truth.sampled(generator) if kind == "population" else truth.gram()
        again = infer(replace(moments, gram=moments.noise.redraw(gram, generator)), design, kind)
        replicates[i] = again.estimate
        ratios[i] = (again.estimate - inference.estimate) / np.sqrt(np.diagonal(again.covariance))
    return Bootstrap(inference=inference, replicates=replicates, ratios=ratios)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Truth:
    """A Gram matrix whose exact regression is the corrected estimate, on the span of features and target."""

    span: Matrix
    """Orthonormal: the features' coordinates, then the target's own direction."""
    block: Matrix
    features: Matrix
    """R⁻¹, the Gram matrix of the features."""
    scores: Matrix
    """A square root of it."""
    theta: Vector
    error_variance: float
    degrees: float
    size: float
    """The target's length outside the features."""

    @classmethod
    def of(cls, moments: Moments, design: Design, solution: Unshrunken) -> _Truth:
        target = moments.project(design.target_vector)
        inside = solution.basis.T @ target
        outside = target - solution.basis @ inside
        size = float(np.linalg.norm(outside))
        features = np.asarray(np.linalg.inv(solution.resolvent), dtype=np.float64)
        theta = (solution.theta - inside) / size
        degrees = residual_degrees(moments, design) or 1.0
        residual = max(solution.residual_sum, 0.0) / size**2
        toward = features @ theta
        block = np.block(
            [[features, toward[:, None]], [toward[None, :], np.array([[theta @ toward + residual]])]]
        )
        values, vectors = np.linalg.eigh(features)
        return cls(
            span=np.column_stack([solution.basis, outside / size]),
            block=block,
            features=features,
            scores=vectors * np.sqrt(np.maximum(values, 0.0)),
            theta=theta,
            error_variance=residual / max(degrees, 1.0),
            degrees=max(degrees, 1.0),
            size=size,
        )

    def gram(self) -> Matrix:
        """The truth in encoded space."""
        return np.asarray(self.span @ self.block @ self.span.T)

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
        return np.asarray(self.span @ block @ self.span.T)
