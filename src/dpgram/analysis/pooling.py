"""Several releases of one schema: β̂ = (Σ C_k⁻¹)⁻¹ Σ C_k⁻¹β̂_k, or one matrix from many.

`pool` combines coefficients of sites or years by inverse-variance weighting and tests whether they differ
more than their errors explain. `compare` looks at two of them. `union` adds matrices: the release of all
tables together, for when each alone is too noisy. `average` weights releases of the *same* table by 1/σ_k²:
their noise is independent, so a second release sharpens the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from dpgram.analysis.design import build_design
from dpgram.analysis.estimand import Kind
from dpgram.analysis.inference import Combined, Inference, WaldTest, infer
from dpgram.analysis.moments import EncodedNoise, Moments, NoisePart
from dpgram.analysis.trend import fitted_windows, noise_correlation, partly
from dpgram.document.terminal import in_lines, with_notes
from dpgram.errors import AnalysisError
from dpgram.noise.sampled import StandIn

if TYPE_CHECKING:
    from dpgram.document.document import Document

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

SOME_HAVE_NO_ROWS: Final = "noisy counts of some of the releases show no rows to speak of with"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pooled:
    """Coefficients common to several releases."""

    inference: Inference
    used: int
    """How many releases went in; those too noisy for inference are left out."""
    heterogeneity: float
    """Cochran's Q: Σ (β̂_k − β̂)ᵀC_k⁻¹(β̂_k − β̂)."""
    heterogeneity_degrees: int
    heterogeneity_p_value: float
    """Small when the sites do not share one regression."""

    def summary(self, level: float = 0.95) -> str:
        """The pooled coefficients as text.

        >>> from dpgram.analysis import pool
        >>> print(pool([release, another], "charges", ["age"]).summary())
        Regression pooled over 2 releases by inverse-variance weighting
        <BLANKLINE>
                         estimate  std. error  95% from … to
        (intercept)        1224.9         113  1004.3 … 1445.5
        age                105.83        2.19  101.53 … 110.13
        <BLANKLINE>
        Do the releases differ? Q = 0.418 on 2 degrees of freedom, p = 0.81.
        """
        ends, errors = self.inference.conf_int(level), self.inference.std_errors
        lines = [f"Regression pooled over {self.used} releases by inverse-variance weighting", ""]
        width = max(len(name) for name in self.inference.names)
        lines.append(f"{'':<{width}}  {'estimate':>12}  {'std. error':>10}  {100 * level:g}% from … to")
        for i, name in enumerate(self.inference.names):
            estimate = self.inference.estimate[i]
            lines.append(
                f"{name:<{width}}  {estimate:>12.5g}  {errors[i]:>10.3g}  {ends[i, 0]:.5g} … {ends[i, 1]:.5g}"
            )
        lines += [
            "",
            f"Do the releases differ? Q = {self.heterogeneity:.3g} on {self.heterogeneity_degrees} degrees",
        ]
        lines[-1] += f" of freedom, p = {self.heterogeneity_p_value:.2g}."
        return _with_cautions(lines, self.inference)

    def __str__(self) -> str:
        return self.summary()


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """Coefficients of one release less those of another, with the errors of both."""

    difference: Inference
    joint: WaldTest
    """Are all coefficients the same?"""

    def summary(self, level: float = 0.95) -> str:
        """The differences as text.

        >>> from dpgram.analysis import compare
        >>> print(compare(release, another, "charges", ["age"]).summary())
                       difference  95% from … to  (p-value)
        (intercept)        17.664  -423.64 … 458.97  (0.94)
        age               -1.0346  -9.6306 … 7.5615  (0.81)
        <BLANKLINE>
        All coefficients equal: p = 0.81
        """
        ends, p_values = self.difference.conf_int(level), self.difference.p_values()
        width = max(len(name) for name in self.difference.names)
        lines = [f"{'':<{width}}  {'difference':>12}  {100 * level:g}% from … to  (p-value)"]
        for i, name in enumerate(self.difference.names):
            value = self.difference.estimate[i]
            lines.append(
                f"{name:<{width}}  {value:>12.5g}  {ends[i, 0]:.5g} … {ends[i, 1]:.5g}  ({p_values[i]:.2g})"
            )
        lines += ["", f"All coefficients equal: p = {self.joint.pvalue:.2g}"]
        return _with_cautions(lines, self.difference)

    def __str__(self) -> str:
        return self.summary()


def _with_cautions(lines: Sequence[str], found: Inference) -> str:
    notes = [f"Caution: {caution}." for caution in found.cautions]
    return with_notes(lines, notes) if notes else in_lines(lines)


def pool(
    releases: Sequence[Document | Moments],
    target: str,
    on: Sequence[str] | None = None,
    *,
    kind: Kind = "population",
    intercept: bool = True,
    reference: Mapping[str, str] | None = None,
) -> Pooled:
    """One regression from several releases of one schema, each weighted by the inverse of its covariance.

    >>> from dpgram.analysis import pool
    >>> pooled = pool([release, another], "charges", ["age"])
    >>> pooled.used, round(pooled.heterogeneity_p_value, 2)
    (2, 0.81)
    """
    _refuse_repeated(releases)
    found = _inferences(releases, target, on, kind=kind, intercept=intercept, reference=reference)
    trusted = [one for one in found if one.refusal is None and one.trusted.all()]
    if not trusted:
        raise AnalysisError(
            "each of the releases is too noisy for this regression on its own",
            got=found[0].refusal,
            remedy="Add their matrices first: regress(union(releases), ...)",
        )
    names, estimate, covariance, q = _weighted(trusted)
    degrees = sum(len(one.names) for one in trusted) - len(names)
    left_out = len(found) - len(trusted)
    cautions = dict.fromkeys(caution for one in trusted for caution in one.cautions)
    if lacking := partly(one.names for one in trusted):
        cautions[f"{SOME_HAVE_NO_ROWS} {', '.join(lacking)}: the others tell of them"] = None
    if left_out:
        cautions[
            f"{left_out} of the releases were left out: each is too noisy for this regression on its own"
        ] = None
    return Pooled(
        inference=_plain(
            replace(trusted[0], names=names, trusted=np.ones(len(names), np.bool_)),
            estimate,
            covariance,
            tuple(cautions),
        ),
        used=len(trusted),
        heterogeneity=q,
        heterogeneity_degrees=degrees,
        heterogeneity_p_value=float(chdtrc(degrees, q)) if degrees else 1.0,
    )


def compare(
    first: Document | Moments,
    second: Document | Moments,
    target: str,
    on: Sequence[str] | None = None,
    *,
    kind: Kind = "population",
    intercept: bool = True,
    reference: Mapping[str, str] | None = None,
) -> Comparison:
    """Coefficients of `first` less those of `second`; the two tables must have no rows in common.

    >>> from dpgram.analysis import compare
    >>> found = compare(release, another, "charges", ["age"])
    >>> round(found.joint.pvalue, 2)
    0.81
    """
    _refuse_same([first, second])
    every = _inferences([first, second], target, on, kind=kind, intercept=intercept, reference=reference)
    for found in every:
        if found.refusal is not None:
            raise AnalysisError("the releases cannot be compared", got=found.refusal)
    names = tuple(name for name in every[0].names if name in every[1].names)
    cautions = dict.fromkeys((*every[0].cautions, *every[1].cautions))
    if lacking := partly(one.names for one in every):
        cautions[f"{SOME_HAVE_NO_ROWS} {', '.join(lacking)}: they are not compared"] = None
    one, other = (found.combined(_chosen(found.names, names), names) for found in every)
    shared = _noise_shared(first, second, target, on, names, intercept=intercept, reference=reference)
    one = replace(one, trusted=one.trusted & other.trusted)
    covariance = one.covariance + other.covariance
    if shared is not None:
        covariance = covariance - shared - shared.T
    difference = _plain(one, one.estimate - other.estimate, covariance, tuple(cautions))
    return Comparison(difference=difference, joint=difference.wald_test())


def _noise_shared(
    first: Document | Moments,
    second: Document | Moments,
    target: str,
    on: Sequence[str] | None,
    names: tuple[str, ...],
    *,
    intercept: bool,
    reference: Mapping[str, str] | None,
) -> Matrix | None:
    """The covariance of both estimates of `names` by noise that two windows of a series share, if any is."""
    if isinstance(first, Moments) or isinstance(second, Moments):
        return None
    part, other = first.series, second.series
    if part is None or other is None or part.series != other.series:
        return None
    if part.first <= other.last and other.first <= part.last:
        raise AnalysisError(
            "the two windows have periods in common",
            got=f"{part} and {other}",
            remedy="Compare windows that do not overlap, or use Series.trend(…, running=True)",
        )
    # The first window tells the reference levels here as it does for the differences.
    model = build_design(Moments.of(first), target, on, intercept=intercept, reference=reference)
    one, two = fitted_windows(
        [first, second], target, on, kind="table", intercept=intercept, reference=model.references
    )
    noise = [_chosen(window.design.names, names) @ window.own_noise for window in (one, two)]
    return noise_correlation(one, two, names) * np.outer(*noise)


def _weighted(found: Sequence[Inference]) -> tuple[tuple[str, ...], Vector, Matrix, float]:
    """Names, (Σ S'C⁻¹S)⁻¹ Σ S'C⁻¹β̂ with its covariance, and Cochran's Q.

    S picks the coefficients that a release has of all: a level without rows in one of them is in others.
    """
    longest = max((one.names for one in found), key=len)
    names = tuple(dict.fromkeys((*longest, *(name for one in found for name in one.names))))
    places = [[names.index(name) for name in one.names] for one in found]
    scale = np.ones(len(names))
    for one, own in zip(found[::-1], places[::-1], strict=True):
        errors = np.sqrt(np.diagonal(one.covariance))
        scale[own] = np.where(errors > 0.0, errors, 1.0)
    precision, toward = np.zeros((len(names), len(names))), np.zeros(len(names))
    parts = []
    for one, own in zip(found, places, strict=True):
        weight = np.linalg.inv(one.covariance / np.outer(scale[own], scale[own]))
        estimate = one.estimate / scale[own]
        precision[np.ix_(own, own)] += weight
        toward[own] += weight @ estimate
        parts.append((own, estimate, weight))
    total = np.linalg.inv(precision)
    mean = total @ toward
    apart = [(estimate - mean[own], weight) for own, estimate, weight in parts]
    q = float(sum(each @ weight @ each for each, weight in apart))
    return names, mean * scale, total * np.outer(scale, scale), q


def _chosen(every: tuple[str, ...], names: tuple[str, ...]) -> Matrix:
    """The rows of the unit matrix that pick these of all coefficients."""
    return np.eye(len(every))[[every.index(name) for name in names]]


def _refuse_same(releases: Sequence[Document | Moments]) -> list[Document]:
    """The rows of a release that is given twice would count twice."""
    if isinstance(releases, Mapping):
        raise AnalysisError("releases are put together as a list", got="a dict", remedy="Give its .values()")
    documents = [one for one in releases if not isinstance(one, Moments)]
    if len({one.digest for one in documents}) < len(documents):
        raise AnalysisError(
            "the same release is given twice, and its rows would count twice", remedy="Give it once"
        )
    return documents


def _refuse_repeated(releases: Sequence[Document | Moments]) -> None:
    """Nor must noise that several of them have in common count as if they had not."""
    documents = _refuse_same(releases)
    every = [one.series.series for one in documents if one.series is not None]
    if len(set(every)) < len(every):
        raise AnalysisError(
            "two of the releases are windows of one series, whose noise is correlated",
            remedy="Ask the series for the window that holds both: series.window(first, last)",
        )


def union(releases: Sequence[Document | Moments]) -> Moments:
    """ΣG̃_k: the moments of all tables together; the noises add up.

    >>> from dpgram.analysis import regress, union
    >>> both = union([release, another])
    >>> round(both.rows), regress(both, "charges", ["age"]).names
    (40015, ('(intercept)', 'age'))
    """
    _refuse_repeated(releases)
    every = [_with_added_noise(one) for one in _same_coordinates(_same_schema(releases))]
    public = [one.public_rows for one in every if one.public_rows is not None]
    return replace(
        every[0],
        gram=np.sum([one.gram for one in every], axis=0),
        noise=EncodedNoise(parts=tuple(part for one in every for part in one.noise.parts)),
        radius=min(one.radius for one in every),
        complete_groups=all(one.complete_groups for one in every),
        public_rows=sum(public) if len(public) == len(every) else None,
        learnt_bounds=frozenset().union(*(one.learnt_bounds for one in every)),
    )


def average(releases: Sequence[Document | Moments]) -> Moments:
    """Σ w_kG̃_k with w_k ∝ 1/σ_k²: for releases of the same table only.

    >>> from dpgram.analysis import average
    >>> asked = {"epsilon": 1, "delta": 1e-6, "ledger": None, "mechanism": "gaussian", "adaptive": False}
    >>> first, second = (dg.publish(table, schema, **asked) for _ in range(2))
    >>> both = average([first, second])
    >>> round(both.noise.diagonal_sd / average([first]).noise.diagonal_sd, 2)
    0.71
    """
    _refuse_repeated(releases)
    every = [_with_added_noise(one) for one in _same_coordinates(_same_schema(releases))]
    if len({one.radius for one in every}) > 1:
        raise AnalysisError(
            "the releases were clipped to different radii, so their matrices differ in more than noise"
        )
    precisions = np.array([1.0 / one.noise.diagonal_sd**2 for one in every])
    weights = precisions / precisions.sum()
    parts = [
        NoisePart(law=part.law, unit=part.unit * float(weight))
        for one, weight in zip(every, weights, strict=True)
        for part in one.noise.parts
    ]
    gram = np.sum([weight * one.gram for one, weight in zip(every, weights, strict=True)], axis=0)
    return replace(
        every[0],
        gram=gram,
        noise=EncodedNoise(parts=tuple(parts)),
        complete_groups=all(one.complete_groups for one in every),
        learnt_bounds=frozenset().union(*(one.learnt_bounds for one in every)),
    )


def _inferences(
    releases: Sequence[Document | Moments],
    target: str,
    on: Sequence[str] | None,
    *,
    kind: Kind,
    intercept: bool,
    reference: Mapping[str, str] | None,
) -> list[Inference]:
    every = _same_schema(releases)
    # The most frequent level may be another one elsewhere: all are compared with that of the first release.
    first = build_design(every[0], target, on, intercept=intercept, reference=reference)
    return [
        infer(one, build_design(one, target, on, intercept=intercept, reference=first.references), kind)
        for one in every
    ]


def _same_schema(releases: Sequence[Document | Moments]) -> list[Moments]:
    every = [Moments.of(release) for release in releases]
    if not every:
        raise AnalysisError("no releases were given")
    if any(one.schema.as_counted() != every[0].schema.as_counted() for one in every):
        raise AnalysisError(
            "the releases have different schemas",
            remedy="Only matrices of the same columns and bounds can be combined",
        )
    return every


def _same_coordinates(every: list[Moments]) -> list[Moments]:
    """Matrices of other coordinates are not to be added; groups of one call share theirs."""
    first = every[0].lift
    for one in every:
        alike = one.lift is first if one.lift is None or first is None else np.array_equal(one.lift, first)
        if not alike:
            raise AnalysisError(
                "the releases were measured in different coordinates, so their matrices cannot be added",
                remedy="Pool their coefficients with pool(), or ask for releases with adaptive=False",
            )
    return every


def _with_added_noise(moments: Moments) -> Moments:
    """Sampled releases by their stand-in: errors that depend on each matrix cannot be added otherwise."""
    if moments.noise.added:
        return moments
    parts = [
        NoisePart(law=part.law.additive, unit=part.unit) if isinstance(part.law, StandIn) else part
        for part in moments.noise.parts
    ]
    return replace(
        moments,
        gram=moments.gram - moments.noise.mean_diagonal * np.eye(len(moments.gram)),
        noise=EncodedNoise(parts=tuple(parts)),
    )


def _plain(model: Inference, estimate: Vector, covariance: Matrix, cautions: tuple[str, ...]) -> Inference:
    """Sums of several errors: the normal reference, no term in which the noise grows with the hypothesis."""
    nothing = np.zeros_like(estimate)

    def combine(matrix: Matrix) -> Combined:
        variances = np.einsum("ij,ij->i", matrix @ covariance, matrix)
        blank = np.zeros(len(matrix))
        clear = ~((matrix != 0.0) & ~model.trusted).any(axis=1)
        return Combined(level=variances, slope=blank, curvature=blank, trusted=clear)

    return replace(
        model,
        estimate=estimate,
        covariance=covariance,
        level=np.diagonal(covariance),
        slope=nothing,
        curvature=nothing,
        degrees=None,
        combine=combine,
        cautions=cautions,
    )
