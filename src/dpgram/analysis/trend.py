"""Coefficients over time: windows of one series, whose noises go together.

Y_t has noise of its own in every period, and the window i is Σ_s w_is Y_s. So the noises N_i, N_j of two
windows are jointly Gaussian with correlation ρ_ij = w_i·w_j/(|w_i||w_j|), cell by cell. To first order
β̂_i = β_i + J_i R_i (Bᵀ N_i r_i), r_i the residual, hence

    Cov(β̂_i, β̂_j) = ρ_ij o_i o_j · J_i R_i [(r_i·r_j) I + Bᵀ r_j r_iᵀ B] R_j J_jᵀ

with o the standard deviation of a cell off the diagonal. It is used as a correlation; every variance is
that of the window's own regression. Rows of separate windows are drawn apart. A running total holds the rows
of earlier ones: there Cov = the smaller of both sampling variances. proofs/series.md#series-trend
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.asked import quantile
from dpgram.analysis.design import Design, build_design
from dpgram.analysis.estimand import Kind, each_once
from dpgram.analysis.formulas import asked_question
from dpgram.analysis.inference import Inference, check_kind, infer
from dpgram.analysis.moments import Moments
from dpgram.analysis.unshrunken import unshrunken
from dpgram.document.terminal import in_lines
from dpgram.errors import AnalysisError
from dpgram.noise.factor import overlap

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from dpgram.analysis._frames import Frame
    from dpgram.document.document import Document
    from dpgram.document.fields import SeriesPart

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

LEAST_KNOWN: Final = 1e-12
"""What must be left of what windows tell of a slope, once they have told the level: the rest is rounding."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A difference or a slope, with its standard error under the noise that windows share."""

    what: str
    estimate: float
    std_error: float
    cautions: tuple[str, ...] = ()

    @property
    def pvalue(self) -> float:
        """Of no change at all, from both sides."""
        return math.erfc(abs(self.estimate) / (self.std_error * math.sqrt(2.0)))

    def conf_int(self, level: float = 0.95) -> tuple[float, float]:
        """By the normal law.

        >>> low, high = series.trend("charges", ["age"]).change("age").conf_int()
        >>> low < high
        True
        """
        reach = quantile(level) * self.std_error
        return self.estimate - reach, self.estimate + reach

    def lines(self) -> list[str]:
        """The change with its interval, and below it the cautions.

        >>> len(series.trend("charges", ["age"]).change("age").lines())
        1
        """
        low, high = self.conf_int()
        told = f"{self.what}: {self.estimate:.5g} ({low:.5g} to {high:.5g}), p = {self.pvalue:.2g}"
        return [told, *(f"Caution: {caution}." for caution in self.cautions)]

    def __str__(self) -> str:
        return in_lines(self.lines())


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trend:
    """One regression in every window of a series: estimates, intervals, and how their errors go together."""

    target: str
    names: tuple[str, ...]
    labels: tuple[str, ...]
    places: Vector
    """The middle of each window, counted in periods."""
    inferences: tuple[Inference, ...]
    covariances: Mapping[str, Matrix]
    """Of each coefficient, over all windows."""
    cautions: tuple[str, ...] = ()

    def estimates(self, name: str) -> Vector:
        """The coefficient in every window, un-shrunken.

        >>> trend = series.trend("charges", ["age"])
        >>> len(trend.estimates("age"))
        3
        """
        return np.array([one.estimate[one.names.index(self._known(name))] for one in self.inferences])

    def std_errors(self, name: str) -> Vector:
        """Its standard error in every window.

        >>> (series.trend("charges", ["age"]).std_errors("age") > 0).all()
        np.True_
        """
        return np.sqrt(np.diagonal(self.covariances[self._known(name)]))

    def conf_int(self, name: str, level: float = 0.95) -> Matrix:
        """An interval for each window: that of its own regression; NaN where it is too noisy for one.

        >>> series.trend("charges", ["age"]).conf_int("age").shape
        (3, 2)
        """
        ends = []
        for one in self.inferences:
            place = one.names.index(self._known(name))
            refused = one.refusal is not None or not one.trusted[place]
            ends.append([np.nan, np.nan] if refused else one.conf_int(level)[place].tolist())
        return np.array(ends)

    def change(self, name: str, first: str | int = 0, last: str | int = -1) -> Change:
        """The coefficient in one window less that in an earlier one: by default the last less the first.

        >>> trend = series.trend("charges", ["age"])
        >>> trend.change("age").pvalue > 0.001
        True
        """
        one, other = self._place(first), self._place(last)
        toward = np.zeros(len(self.labels))
        toward[other] += 1.0
        toward[one] -= 1.0
        return self._combined(name, toward, f"{name}, {self.labels[other]} less {self.labels[one]}")

    def slope(self, name: str) -> Change:
        """The straight line through all windows, by generalised least squares: the change in one period.

        >>> series.trend("charges", ["age"]).slope("age").what
        'age, change in one period'
        """
        if len(self.labels) < 3:
            raise AnalysisError("a slope needs three windows at least", got=len(self.labels))
        weights = _slope_weights(self.places, self.covariances[self._known(name)])
        if weights is None:
            raise AnalysisError(
                f"{name}: no straight line, one window is so much less noisy than the others that it decides "
                "alone",
                remedy="Make longer windows",
            )
        return self._combined(name, weights, f"{name}, change in one period")

    def _combined(self, name: str, weights: Vector, what: str) -> Change:
        covariance = self.covariances[self._known(name)]
        variance = max(float(weights @ covariance @ weights), np.finfo(np.float64).tiny)
        noisy = np.isnan(self.conf_int(name)[:, 0]) & (weights != 0.0)
        labels = [label for label, refused in zip(self.labels, noisy, strict=True) if refused]
        caution = f"too noisy for an interval of its own: {', '.join(labels)}; error and p-value may be wrong"
        return Change(
            what=what,
            estimate=float(weights @ self.estimates(name)),
            std_error=math.sqrt(variance),
            cautions=(caution,) if labels else (),
        )

    def _known(self, name: str) -> str:
        if name not in self.names:
            raise AnalysisError(
                "the trend has no such coefficient", got=repr(name), limit=", ".join(self.names)
            )
        return name

    def _place(self, window: str | int) -> int:
        if isinstance(window, str):
            if window not in self.labels:
                raise AnalysisError("the trend has no such window", got=repr(window))
            return self.labels.index(window)
        return range(len(self.labels))[window]

    def summary(self, level: float = 0.95) -> str:
        """A table for every coefficient: estimates and intervals, the straight line through them.

        >>> print(series.trend("charges", ["age"]).summary().splitlines()[0])
        charges over time
        """
        lines = [f"{self.target} over time", ""]
        width = max(6, *(len(label) for label in (*self.labels, *self.names)))
        for name in self.names:
            lines.append(f"{name:<{width}}  {'estimate':>12}  {'std. error':>10}  {100 * level:g}% from … to")
            rows = zip(
                self.labels,
                self.estimates(name),
                self.std_errors(name),
                self.conf_int(name, level),
                strict=True,
            )
            for label, value, error, (low, high) in rows:
                ends = "too noisy" if np.isnan(low) else f"{low:.5g} … {high:.5g}"
                lines.append(f"{label:<{width}}  {value:>12.5g}  {error:>10.3g}  {ends}")
            if len(self.labels) >= 3:
                lines += self._told_slope(name)
            lines.append("")
        return in_lines([*lines, *(f"Caution: {caution}." for caution in self.cautions)]).rstrip()

    def _told_slope(self, name: str) -> list[str]:
        try:
            return self.slope(name).lines()
        except AnalysisError as refusal:
            return [str(refusal)]

    def to_frame(self, level: float = 0.95) -> Frame:
        """One row for each coefficient in each window.

        >>> series.trend("charges", ["age"]).to_frame().shape
        (6, 6)
        """
        from dpgram.analysis._frames import frame_of

        every = [(name, place) for name in self.names for place in range(len(self.labels))]
        ends = {name: self.conf_int(name, level) for name in self.names}
        return frame_of(
            {
                "name": [name for name, _ in every],
                "window": [self.labels[place] for _, place in every],
                "estimate": [float(self.estimates(name)[place]) for name, place in every],
                "std_error": [float(self.std_errors(name)[place]) for name, place in every],
                "low": [float(ends[name][place, 0]) for name, place in every],
                "high": [float(ends[name][place, 1]) for name, place in every],
            }
        )

    def plot(
        self,
        name: str,
        path: str | Path | None = None,
        level: float = 0.95,
        *,
        dark: bool = False,
    ) -> Figure:
        """The coefficient over time with its intervals, as a matplotlib figure; written to `path` if given.

        >>> figure = series.trend("charges", ["age"]).plot("age", "trend.png")
        """
        from dpgram.analysis.plots import trend_plot

        return trend_plot(self, name, path=path, level=level, dark=dark)

    def __str__(self) -> str:
        return self.summary()


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Window:
    """One window of a series, fitted."""

    release: Document
    moments: Moments
    design: Design
    inference: Inference
    own_noise: Vector
    """The standard deviation of every coefficient by privacy noise alone."""
    toward: Matrix
    """J R Bᵀ: its rows say how noise on the normal equations moves each coefficient."""
    residual: Vector
    """r."""


def fitted_windows(
    releases: Sequence[Document],
    target: str,
    on: Sequence[str] | None,
    *,
    kind: Kind,
    intercept: bool = True,
    reference: Mapping[str, str] | None = None,
) -> list[Window]:
    """The same regression in every window: levels are compared with the same one everywhere."""
    check_kind(kind)
    every = [Moments.of(release) for release in releases]
    asked = asked_question(every[0].schema, target, on, intercept=intercept, reference=reference)
    target, on, intercept = asked.target, asked.on, asked.intercept
    # The most frequent level may be another one in other windows: the last tells for all.
    model = build_design(every[-1], target, on, intercept=intercept, reference=asked.reference)
    found = []
    for release, moments in zip(releases, every, strict=True):
        design = build_design(moments, target, on, intercept=intercept, reference=model.references)
        inference = infer(moments, design, kind)
        noise = inference if kind == "table" else infer(moments, design, "table")
        found.append(
            Window(
                release=release,
                moments=moments,
                design=design,
                inference=inference,
                own_noise=np.sqrt(np.diagonal(noise.covariance)),
                toward=_toward(moments, design),
                residual=unshrunken(moments, design).residual,
            )
        )
    return found


def _slope_weights(places: Vector, covariance: Matrix) -> Vector | None:
    """Of the estimates, for the slope; None where rounding leaves nothing of it.

    In units of the errors, so that nothing is lost where these differ much.
    """
    with np.errstate(all="ignore"):
        scale = np.sqrt(np.diagonal(covariance))
        design = np.column_stack([np.ones(len(places)), places - places.mean()]) / scale[:, None]
        try:
            precise = np.linalg.solve(covariance / np.outer(scale, scale), design)
        except np.linalg.LinAlgError:
            return None
        (level, both), (_, line) = design.T @ precise
        known = level * line - both * both
        if not known > LEAST_KNOWN * level * line:  # so for numbers that are none
            return None
        return np.asarray((level * precise[:, 1] - both * precise[:, 0]) / known / scale)


def _toward(moments: Moments, design: Design) -> Matrix:
    solution = unshrunken(moments, design)
    jacobian = design.to_original @ np.linalg.inv(solution.basis.T @ moments.project(design.vectors))
    return np.asarray(jacobian @ solution.resolvent @ solution.basis.T)


def noise_correlation(one: Window, other: Window, names: Sequence[str]) -> Matrix:
    """The correlation of coefficients by shared noise; rows: of one window, columns: of the other.

    Proof: proofs/series.md#series-trend.
    """
    first, second = one.release.series, other.release.series
    if first is None or second is None or first.series != second.series:
        raise AnalysisError("the releases are not of one series")
    norms = math.sqrt(overlap(first.weights, first.weights) * overlap(second.weights, second.weights))
    shared = overlap(first.weights, second.weights) / norms
    mine = (one.toward[[one.design.names.index(name) for name in names]], one.residual)
    theirs = (other.toward[[other.design.names.index(name) for name in names]], other.residual)
    sizes = np.outer(np.diagonal(_between(*mine, *mine)), np.diagonal(_between(*theirs, *theirs)))
    return np.asarray(shared * _between(*mine, *theirs) / np.sqrt(sizes))


def _between(toward: Matrix, residual: Vector, other: Matrix, residual_other: Vector) -> Matrix:
    """Cov(D N r, D' N r') for noise with Var N_ij = 1 and Var N_ii = 2: (r·r') D D'ᵀ + (D r')(D' r)ᵀ."""
    along = np.outer(toward @ residual_other, other @ residual)
    return np.asarray(float(residual @ residual_other) * (toward @ other.T) + along)


def trend(
    releases: Sequence[Document],
    target: str,
    on: Sequence[str] | None = None,
    *,
    kind: Kind = "population",
    intercept: bool = True,
    reference: Mapping[str, str] | None = None,
) -> Trend:
    """One regression in every one of these windows of a series, which follow each other or hold each other.

    >>> from dpgram.analysis import trend
    >>> trend([series.period(1), series.period(2)], "charges", ["age"]).names
    ('(intercept)', 'age')
    """
    if not releases:
        raise AnalysisError("no releases were given")
    ends = [_ends(release) for release in releases]
    apart = all(last < first for (_, last), (first, _) in pairwise(ends))
    running = all(a == c and b < d for (a, b), (c, d) in pairwise(ends))
    if not apart and not running:
        raise AnalysisError(
            "the windows of a trend must follow each other, or each hold the one before it",
            got=", ".join(f"{first} to {last}" for first, last in ends[:6]),
        )
    windows = fitted_windows(releases, target, on, kind=kind, intercept=intercept, reference=reference)
    names = tuple(
        name for name in windows[-1].design.names if all(name in one.design.names for one in windows)
    )
    cautions = [*each_once(caution for one in windows for caution in one.inference.cautions)]
    if lacking := partly(one.design.names for one in windows):
        cautions.append(
            "noisy counts of some of the windows show no rows to speak of with "
            f"{', '.join(lacking)}: left out of the trend"
        )
    part = releases[0].series
    repeated = None if part is None else repeated_persons(part, kind)
    if repeated is not None:
        cautions.append(repeated)
    if any(release.entropy == "seeded" for release in releases):
        cautions.append("the noise came from a seed: whoever knows it can remove it")
    return Trend(
        target=windows[-1].design.target,
        names=names,
        labels=tuple(str(release.series) for release in releases),
        places=np.array([0.5 * (first + last) for first, last in ends]),
        inferences=tuple(one.inference for one in windows),
        covariances=_covariances(windows, names, shared_rows=running and len(releases) > 1),
        cautions=tuple(cautions),
    )


def partly(every: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Coefficients that some of several fits have and others have not: of levels without rows there."""
    fits = list(every)
    return tuple(name for name in dict.fromkeys(chain(*fits)) if not all(name in names for names in fits))


def repeated_persons(part: SeriesPart, kind: Kind) -> str | None:
    """What to say where persons may be in several windows, and that matters."""
    if part.participations == 1 or kind == "table":
        return None
    return (
        "a person may count in several windows, whose rows are then not drawn apart: errors of changes "
        "leave that out"
    )


def _ends(release: Document) -> tuple[int, int]:
    if release.series is None:
        raise AnalysisError("a trend needs windows of a series", got="a release by itself")
    return release.series.first, release.series.last


def _covariances(windows: Sequence[Window], names: Sequence[str], *, shared_rows: bool) -> dict[str, Matrix]:
    count = len(windows)
    places = [[one.design.names.index(name) for name in names] for one in windows]
    noise = np.array([one.own_noise[place] for one, place in zip(windows, places, strict=True)])
    whole = np.array(
        [np.diagonal(one.inference.covariance)[place] for one, place in zip(windows, places, strict=True)]
    )
    sampling = np.maximum(whole - noise**2, 0.0)
    found = {name: np.diag(whole[:, number]) for number, name in enumerate(names)}
    for i in range(count):
        for j in range(i):
            both = np.diagonal(noise_correlation(windows[i], windows[j], names)) * noise[i] * noise[j]
            if shared_rows:
                both = both + np.minimum(sampling[i], sampling[j])
            for number, name in enumerate(names):
                found[name][i, j] = found[name][j, i] = both[number]
    return found
