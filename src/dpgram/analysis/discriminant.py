"""Logit and probit coefficients of a two-valued column from second moments: by discriminant analysis.

With (a, b) the least-squares coefficients of the 0/1 target y on the features x, s² its residual variance, p
the share of ones, q = 1 − p, t = Φ⁻¹(p) and ρ² = (pq − s²)/φ(t)²:

    logit:   slopes b/s²,             intercept log(p/q) − (p − a)/s² − (½ − p)(1/s² − 1/(pq))
    probit:  slopes b·k,              intercept t/√(1 − ρ²) − (p − a)·k,    k = 1/(φ(t)√(1 − ρ²))

The first is exact where features are normal with one covariance within each of the two groups (Fisher), the
second where features are normal altogether (Stein). For other features both are approximations.

Both are k·(a, b) plus an intercept that depends on (s², p), so noise moves them through (a, b), s² and p, all
of them forms of the release; rows move them by k·M⁻¹x·e + ∂s²·(e² − s²) + ∂p·(y − p), e the residual and
M = E xxᵀ, whose covariance is computed under the model by quadrature along the one direction that matters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, final

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr, ndtri

from dpgram.analysis.design import INTERCEPT, Design, build_design
from dpgram.analysis.estimand import MOVED_CAUTION, MOVED_REFUSAL, Kind, difference_cautions, moved_columns
from dpgram.analysis.estimates import Estimates, as_lines, ratio
from dpgram.analysis.forms import (
    Residuals,
    in_noise_coordinates,
    noise_covariance,
    residuals,
    symmetric_product,
)
from dpgram.analysis.inference import NOISE_REMEDY, check_kind
from dpgram.analysis.moments import Moments
from dpgram.analysis.prediction import design_matrix, refusals_of, warn_of
from dpgram.analysis.quality import SIGNAL_TO_NOISE
from dpgram.analysis.sampling import degrees_of_freedom
from dpgram.analysis.summary import noisy_weight
from dpgram.analysis.trust import noise_cautions, refusal_of, trusted, untrusted_caution
from dpgram.document.labels import Labels
from dpgram.document.terminal import fact, one_line, with_notes
from dpgram.errors import AnalysisError

if TYPE_CHECKING:
    from dpgram.document.document import Document

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Link = Literal["logit", "probit"]

LINKS: Final[tuple[Link, ...]] = ("logit", "probit")
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
STEP: Final = 1e-6
ASSUMPTIONS: Final[Mapping[Link, str]] = {
    "logit": "Approximate: exact for features that are normal in both groups, with one covariance",
    "probit": "Approximate: exact for features that are normal",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Discriminant(Estimates):
    """Approximate logit or probit coefficients in original units."""

    target: str
    link: Link
    kind: Kind
    design: Design
    names: tuple[str, ...]
    estimate: Vector
    covariance: Matrix
    trusted: npt.NDArray[np.bool_]
    share: float
    """p: the noisy share of rows in which the target is one."""
    rows: float
    learnt_bounds: frozenset[str]
    cautions: tuple[str, ...]
    degrees: float | None = None
    counted: str = "noisy"
    """What the number of rows is, in words."""

    @property
    def assumption(self) -> str:
        """Where the approximation would be exact."""
        return ASSUMPTIONS[self.link]

    @property
    def nobs(self) -> float:
        """The noisy number of rows."""
        return self.rows

    def odds_ratios(self, level: float = 0.95) -> Mapping[str, tuple[float, float, float]]:
        """Name → (odds ratio, low, high) of one unit more, for the logit.

        >>> ratio, low, high = release.discriminant("smoker=yes", ["age"]).odds_ratios()["age"]
        >>> low < ratio < high
        True
        """
        if self.link != "logit":
            raise AnalysisError(
                "odds ratios are those of the logit", got=self.link, remedy='Use link="logit"'
            )
        ends = self.conf_int(level)
        return {
            name: (ratio(value), ratio(ends[name][0]), ratio(ends[name][1]))
            for name, value in self.params.items()
            if name != INTERCEPT
        }

    def predict(self, rows: object) -> Vector:
        """The probability that the target is one: rows as for a regression, in original units.

        >>> found = release.discriminant("smoker=yes", ["charges"])
        >>> few, many = found.predict({"charges": [2_000, 30_000]})
        >>> few < many
        np.True_
        """
        warn_of(refusals_of(self.design, rows))
        index = design_matrix(self.design, rows, self.learnt_bounds) @ self.estimate
        return np.asarray(expit(index) if self.link == "logit" else ndtr(index))

    def summary(self, level: float = 0.95) -> str:
        """Coefficients with intervals, and what they rest on, as text.

        >>> print(release.discriminant("smoker=yes", ["age"]).summary().splitlines()[0])
        Logit of smoker=yes by discriminant analysis, from a private release
        """
        rows = f"about {max(self.rows, 0.0):,.0f} ({self.counted})"
        lines = [
            f"{self.link.capitalize()} of {self.target} by discriminant analysis, from a private release",
            "",
            *fact("rows ", f"{rows}, {self.share:.1%} of them with {self.target}"),
            "",
        ]
        lines += as_lines(self.as_rows(level), level)
        chance = "sampling and privacy noise" if self.kind == "population" else "privacy noise only"
        notes = [f"{self.assumption}. Errors and intervals: {chance}."]
        if (legend := Labels(self.design.schema).legend((self.target, *self.names))) is not None:
            notes.append(f"Columns: {legend}.")
        notes += [f"Caution: {caution}." for caution in self.cautions]
        return with_notes(lines, notes)

    def _check(self) -> None:
        """Where the noise leaves no answer, none was made."""

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<Discriminant: {self.link} of {one_line(self.target)} on {len(self.names)} coefficients>"


def discriminant(
    release: Document | Moments,
    target: str,
    on: Sequence[str] | None = None,
    *,
    link: Link = "logit",
    kind: Kind = "population",
    reference: Mapping[str, str] | None = None,
) -> Discriminant:
    """Approximate logit or probit coefficients of a level or a yes/no column on the columns `on`.

    >>> from dpgram.analysis import discriminant
    >>> discriminant(release, "smoker=yes", ["age", "charges"])
    <Discriminant: logit of smoker=yes on 3 coefficients>
    """
    moments = Moments.of(release)
    check_kind(kind)
    if link not in LINKS:
        raise AnalysisError("unknown link", got=repr(link), limit=", ".join(LINKS))
    design = build_design(moments, target, on, reference=reference)
    column = moments.schema.encoded[moments.schema.indices(target)[0]]
    if column.kind not in ("level", "boolean"):
        raise AnalysisError(
            f"{target!r} has more than two values", remedy="Name a yes/no column or a level: region=east."
        )
    fit = _Fit.of(moments, design)
    moved = bool(moved_columns(moments, design))
    refusal = refusal_of(fit.found.solution, moments)
    if moved and kind == "population":
        refusal = refusal or MOVED_REFUSAL
    refusal = refusal or fit.hidden(link)
    if refusal is not None:
        raise AnalysisError("no discriminant analysis", got=refusal, remedy=NOISE_REMEDY)
    covariance = fit.noise_part(link)
    if kind == "population":
        degrees = degrees_of_freedom(moments, len(design.terms))
        # Not by the sampling factor of clipped rows: beside a two-valued column it is too small.
        covariance = covariance + fit.sampling_part(link) / degrees
    to_original = design.to_original / design.target_scale
    clear = trusted(fit.found.solution, to_original @ fit.to_terms, moments)
    cautions = [*noise_cautions(moments, fit.found.solution), *difference_cautions(moments, kind)]
    cautions += [MOVED_CAUTION] if moved else []
    cautions += design.empty_cautions
    if not clear.all():
        lost = [name for name, ok in zip(design.names, clear, strict=True) if not ok]
        cautions.append(untrusted_caution(lost))
    return Discriminant(
        target=target,
        link=link,
        kind=kind,
        design=design,
        names=design.names,
        estimate=to_original @ fit.coefficients(link),
        covariance=to_original @ covariance @ to_original.T,
        trusted=clear,
        share=fit.share,
        rows=moments.rows or math.nan,
        learnt_bounds=moments.learnt_bounds,
        cautions=tuple(cautions),
        counted=noisy_weight(moments),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Fit:
    """Least squares of the 0/1 target on the design's terms, in their own scale."""

    moments: Moments
    found: Residuals
    terms: Matrix
    """The design's terms in the coordinates of the noise."""
    target: Vector
    constant: Vector
    to_terms: Matrix
    """From the orthonormal coordinates of the solution to coefficients of the terms."""
    slopes: Vector
    """(a, b)."""
    share: float
    error: float
    """s²."""

    @classmethod
    def of(cls, moments: Moments, design: Design) -> _Fit:
        constant = moments.constant_vector()
        rows = moments.rows
        if constant is None or rows is None or rows <= 0.0 or not design.intercept:
            raise AnalysisError(
                "a discriminant analysis needs a constant column and a positive number of rows"
            )
        # Truth values are encoded as ±1: y = ½(z + 1).
        y = design.target_scale * design.target_vector + design.offset[0] * constant
        found = residuals(moments, design.vectors, y[:, None])
        terms, target, one = (in_noise_coordinates(moments, each) for each in (design.vectors, y, constant))
        if found.solution.basis.shape[1] < terms.shape[1]:
            raise AnalysisError(
                "the features are linearly dependent by construction", remedy="Leave out one of them."
            )
        to_terms = np.asarray(np.linalg.inv(found.solution.basis.T @ terms), dtype=np.float64)
        return cls(
            moments=moments,
            found=found,
            terms=terms,
            target=target,
            constant=one,
            to_terms=to_terms,
            slopes=to_terms @ found.slopes[:, 0],
            share=float(target @ moments.consistent_gram @ one) / rows,
            error=float(found.sums[0, 0]) / rows,
        )

    @property
    def rows(self) -> float:
        return self.moments.rows or math.nan

    def hidden(self, link: Link) -> str | None:
        """Why the noise leaves no answer, if it does not."""
        noise = SIGNAL_TO_NOISE * self.moments.noise.diagonal_sd / self.rows
        residual = self.found.functions[:, 0]
        if self.error <= noise * float(residual @ residual):
            return "what the features leave of the target does not stand clear of the noise"
        spread = noise * float(self.target @ self.target)
        if not spread < self.share < 1.0 - spread:
            return "one of the target's two values is too rare to stand clear of the noise"
        if link == "probit" and not math.isfinite(self._factors(link, self.error, self.share)[0]):
            return "the features tell more about the target than a probit with normal features allows"
        return None

    @staticmethod
    def _factors(link: Link, error: float, share: float) -> tuple[float, float]:
        """(k, c): the coefficients are k·(a, b), and c more in the intercept."""
        spread = share * (1.0 - share)
        if link == "logit":
            odds = math.log(share / (1.0 - share))
            return 1.0 / error, odds - share / error - (0.5 - share) * (1.0 / error - 1.0 / spread)
        place = float(ndtri(share))
        density = math.exp(-0.5 * place**2) / math.sqrt(2.0 * math.pi)
        left = 1.0 - (spread - error) / density**2
        if left <= 0.0:
            return math.inf, math.nan
        k = 1.0 / (density * math.sqrt(left))
        return k, place / math.sqrt(left) - share * k

    def coefficients(self, link: Link) -> Vector:
        """Of the terms in their own scale."""
        k, c = self._factors(link, self.error, self.share)
        answer = k * self.slopes
        answer[0] += c
        return np.asarray(answer)

    def _derivatives(self, link: Link) -> tuple[float, Vector, Vector]:
        """k, and how the coefficients move with s² and with p."""
        k, _ = self._factors(link, self.error, self.share)
        moves = []
        for error, share in ((STEP * self.error, 0.0), (0.0, STEP * self.share * (1.0 - self.share))):
            ends = [
                self._factors(link, self.error + sign * error, self.share + sign * share) for sign in (1, -1)
            ]
            step = 2.0 * (error + share)
            move = (ends[0][0] - ends[1][0]) / step * self.slopes
            move[0] += (ends[0][1] - ends[1][1]) / step
            moves.append(move)
        return k, moves[0], moves[1]

    def noise_part(self, link: Link) -> Matrix:
        """Covariance of the coefficients from the noise."""
        k, by_error, by_share = self._derivatives(link)
        residual, one = self.found.functions[:, :1], self.constant[:, None]
        count = symmetric_product(one, one)
        error = (symmetric_product(residual, residual) - self.error * count) / self.rows
        share = (symmetric_product(self.target[:, None], one) - self.share * count) / self.rows
        solution = self.found.solution
        toward = solution.basis @ solution.resolvent @ self.to_terms.T
        slopes = symmetric_product(toward, residual)
        shapes = k * slopes + by_error[:, None, None] * error + by_share[:, None, None] * share
        return noise_covariance(self.moments.noise, shapes) * solution.inflation

    def sampling_part(self, link: Link) -> Matrix:
        """n times the covariance of the coefficients from drawing rows, under the model of the link."""
        k, by_error, by_share = self._derivatives(link)
        inverse = self.to_terms @ self.found.solution.resolvent @ self.to_terms.T * self.rows
        size = len(self.slopes)
        total = np.zeros((size, size))
        for weight, truth, centre, spread in self._rows_of_the_model(link):
            errors = truth - centre @ self.slopes
            moves = k * (centre @ inverse) * errors[:, None]
            moves = moves + np.outer(errors**2 - self.error, by_error)
            moves = moves + np.outer(truth - self.share, by_share)
            total += (moves.T * weight) @ moves
            total += k**2 * float(weight @ errors**2) * (inverse @ spread @ inverse)
        return (total + total.T) / 2.0

    def _rows_of_the_model(self, link: Link) -> Iterator[tuple[Vector, Vector, Matrix, Matrix]]:
        """(weights, y, E(x | place), Cov(x | place)) along the direction in which the target changes."""
        gram = self.moments.consistent_gram
        means = self.terms.T @ (gram @ self.constant) / self.rows
        moments = self.terms.T @ gram @ self.terms / self.rows
        whole = moments - np.outer(means, means)
        across = self.terms.T @ (gram @ self.target) / self.rows - means * self.share
        chance = WEIGHTS / WEIGHTS.sum()
        index = self.coefficients(link)
        if link == "probit":
            along, spread = _direction(whole, index)
            ones = ndtr(float(index @ means) + NODES * float(index @ along))
            centre = means + np.outer(NODES, along)
            yield chance * ones, np.ones(len(NODES)), centre, spread
            yield chance * (1.0 - ones), np.zeros(len(NODES)), centre, spread
            return
        p = self.share
        apart = across / (p * (1.0 - p))
        along, spread = _direction(whole - p * (1.0 - p) * np.outer(apart, apart), index)
        for truth, part, middle in ((1.0, p, means + (1.0 - p) * apart), (0.0, 1.0 - p, means - p * apart)):
            centre = middle + np.outer(NODES, along)
            yield part * chance, np.full(len(NODES), truth), centre, spread


def _direction(covariance: Matrix, index: Vector) -> tuple[Vector, Matrix]:
    """Cov·β/√(βᵀCov β), and what is left of the covariance once it is taken out."""
    slopes = index.copy()
    slopes[0] = 0.0
    toward = covariance @ slopes
    length = float(slopes @ toward)
    along = toward / math.sqrt(length) if length > 0.0 else np.zeros(len(index))
    return along, covariance - np.outer(along, along)
