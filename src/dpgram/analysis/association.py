"""Correlations and partial correlations ρ = s_xy / √(s_xx s_yy) of residuals, with intervals.

s_ab = r_aᵀG r_b for the residual functions r (analysis/forms.py): what is left of x and y once other columns,
or only their means, are accounted for. With a = r_x/√s_xx and b = r_y/√s_yy the noise moves ρ by ⟨S, N⟩ to
first order, S = sym(abᵀ) − (ρ/2)(aaᵀ + bbᵀ), so its variance is a quadratic in ρ; the population adds the
sampling variance (analysis/sampling.py). The interval holds all ρ with (ρ̂ − ρ)² ≤ q²·Var(ρ): the variance is
taken at the hypothesis, which keeps it inside [-1, 1].

A column whose sum of squares does not stand clear of the noise has no correlation: noise over noise is a
number between -1 and 1 like any other, and often a large one. Of the sums that only just pass, more are too
large than too small, and their correlations too small: the end away from zero allows for that (`_allowance`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from dpgram.analysis.asked import asked_columns, quantile
from dpgram.analysis.design import build_design, places_of
from dpgram.analysis.estimand import MOVED_REFUSAL, Kind, difference_cautions, moved_cautions, moved_columns
from dpgram.analysis.forms import Residuals, in_noise_coordinates, residuals
from dpgram.analysis.inference import check_kind
from dpgram.analysis.moments import Moments
from dpgram.analysis.normal_equations import too_noisy
from dpgram.analysis.quality import SIGNAL_TO_NOISE
from dpgram.analysis.sampling import (
    NORMAL_ERRORS,
    correlation_variance,
    degrees_of_freedom,
    two_valued_skewness,
)
from dpgram.analysis.trust import refusal_of
from dpgram.document.labels import Labels
from dpgram.document.original_units import original_columns
from dpgram.document.terminal import in_lines, one_line
from dpgram.errors import AnalysisError

if TYPE_CHECKING:
    from pathlib import Path

    from dpgram.analysis._frames import Frame
    from dpgram.document.document import Document

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

HALVINGS: Final = 50
"""Steps of the search for the ends of an interval: more than a float has digits."""
PASSED_BY_LUCK: Final = 2.0
"""Deviations of its noise by which a sum that only just passed is taken to be too large;"""
PASSED_CLEARLY: Final = 3.0
"""none at this many deviations above the limit, and in proportion between."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """A (partial) correlation with its standard error."""

    left: str
    right: str
    given: tuple[str, ...]
    estimate: float
    std_error: float
    kind: Kind
    noise: tuple[float, float, float]
    """(c₀, c₁, c₂) of the noise variance c₀ + c₁ρ + c₂ρ² at the hypothesis ρ."""
    degrees: float | None
    """Rows behind the sampling error, less the columns accounted for; nothing for the table."""
    skewness: tuple[float | None, float | None] = (None, None)
    """Of the two columns where they have two values only."""
    sampling_factor: float = 1.0
    """What a clip of rows makes of the sampling variance."""
    allowance: float = 1.0
    """Factor of the end away from zero, for sums of squares that only just passed."""
    cautions: tuple[str, ...] = ()
    """How what is estimated differs from the correlation of the rows that came in."""

    def conf_int(self, level: float = 0.95) -> tuple[float, float]:
        """All correlations that noise and sampling do not exclude; inside [-1, 1].

        >>> low, high = release.partial_correlation("age", "charges").conf_int()
        >>> round(low, 2), round(high, 2)
        (0.52, 0.58)
        """
        allowance = np.array([self.allowance])
        low, high = _ends(np.array([self.estimate]), self.variance_at, allowance, quantile(level))
        return float(low[0]), float(high[0])

    @property
    def p_value(self) -> float:
        """Two-sided, of no correlation."""
        error = math.sqrt(float(self.variance_at(np.zeros(1))[0]))
        return float(2.0 * ndtr(-abs(self.estimate) / error)) if error > 0 else 0.0

    def variance_at(self, rho: Vector) -> Vector:
        """The variance of the estimate where ρ is true.

        >>> import numpy as np
        >>> found = release.partial_correlation("age", "charges")
        >>> bool(found.variance_at(np.array([found.estimate]))[0] ** 0.5 == found.std_error)
        True
        """
        left, right = (np.full(rho.shape, np.nan if g is None else g) for g in self.skewness)
        return _variance_at(rho, self.noise, left, right, self.degrees, self.sampling_factor)

    def __str__(self) -> str:
        given = f" given {', '.join(self.given)}" if self.given else ""
        low, high = self.conf_int()
        pair = f"correlation of {self.left} and {self.right}{given}"
        told = f"{pair}: {self.estimate:.3f} (95% interval {low:.3f} to {high:.3f})"
        return one_line(". Caution: ".join([told, *self.cautions]))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Correlations:
    """The correlations of all pairs of columns, each with its interval; NaN for what the noise hides."""

    names: tuple[str, ...]
    sources: tuple[str, ...]
    """The declared column of each name."""
    labels: tuple[str, ...]
    """What each is called in figures: its label where the schema has one."""
    kind: Kind
    estimate: Matrix
    std_error: Matrix
    noise: tuple[Matrix, Matrix, Matrix]
    """(c₀, c₁, c₂) of the noise variance c₀ + c₁ρ + c₂ρ² of each pair at the hypothesis ρ."""
    degrees: float | None
    """Rows behind the sampling error; nothing for the table."""
    skewness: Vector
    """Of the columns that have two values only, NaN for the others."""
    sampling_factor: float
    """What a clip of rows makes of the sampling variance between two numbers."""
    allowance: Vector
    """Factor of the end away from zero for each column that only just passed, else 1."""
    cautions: tuple[str, ...] = ()
    about_the_middle: tuple[str, ...] = ()
    """Products and powers that stand for those of columns less the middle of their public range."""

    @property
    def hidden(self) -> tuple[str, ...]:
        """Columns without a correlation: their variance does not stand clear of the noise."""
        lost = np.isnan(np.diagonal(self.estimate))
        return tuple(name for name, gone in zip(self.names, lost, strict=True) if gone)

    @property
    def assumption(self) -> str | None:
        """What the sampling error rests on; nothing for the table, whose only error is noise of known law."""
        return NORMAL_ERRORS if self.kind == "population" else None

    def conf_int(self, level: float = 0.95) -> tuple[Matrix, Matrix]:
        """Lower and upper ends, pair by pair.

        >>> low, high = release.correlation().conf_int()
        >>> low.round(2)[0], high.round(2)[0]
        (array([ 1.  ,  0.07, -0.1 ,  0.3 ]), array([ 1.  ,  0.1 , -0.07,  0.34]))
        """
        allowance = np.outer(self.allowance, self.allowance)
        return _ends(self.estimate, self._variance, allowance, quantile(level))

    def distinct(self, level: float = 0.95) -> npt.NDArray[np.bool_]:
        """Which pairs have an interval that excludes zero.

        >>> release.correlation().distinct().all()
        np.True_
        """
        low, high = self.conf_int(level)
        return np.asarray((low > 0.0) | (high < 0.0))

    def pair(self, left: str, right: str) -> Correlation:
        """One of them by the names of its columns.

        >>> print(release.correlation().pair("age", "charges"))
        correlation of age and charges: 0.319 (95% interval 0.300 to 0.338)
        """
        left, right = self._called(left), self._called(right)
        for name in (left, right):
            if name not in self.names:
                raise AnalysisError(f"no column {name!r} here", limit=", ".join(self.names[:20]))
            if name in self.hidden:
                raise AnalysisError(
                    f"no correlation: the variance of {name!r} does not stand clear of the noise"
                )
        i, j = self.names.index(left), self.names.index(right)
        known = [None if math.isnan(g) else float(g) for g in self.skewness[[i, j]]]
        level, slope, curvature = (float(part[i, j]) for part in self.noise)
        return Correlation(
            left=left,
            right=right,
            given=(),
            estimate=float(self.estimate[i, j]),
            std_error=float(self.std_error[i, j]),
            kind=self.kind,
            noise=(level, slope, curvature),
            degrees=self.degrees,
            skewness=(known[0], known[1]),
            sampling_factor=self.sampling_factor,
            allowance=float(self.allowance[i] * self.allowance[j]),
            cautions=self.cautions,
        )

    def _called(self, name: str) -> str:
        """A product or power by what it stands for, also where it is asked for as it was declared."""
        whole = name not in self.names and self.sources.count(name) == 1
        return self.names[self.sources.index(name)] if whole else name

    def strongest(self, count: int = 10, level: float = 0.95) -> tuple[Correlation, ...]:
        """Pairs of different declared columns whose interval excludes zero, the surest to be strong first.

        In the order of the end of the interval that is nearer to zero: how strong it is at least.

        >>> [(found.left, found.right) for found in release.correlation().strongest(2)]
        [('smoker=no', 'charges'), ('smoker=yes', 'charges')]
        """
        low, high = self.conf_int(level)
        least = np.maximum(np.maximum(low, -high), 0.0)
        pairs = [
            (float(least[i, j]), i, j)
            for i, j in zip(*np.nonzero(np.triu(np.nan_to_num(least), 1) > 0.0), strict=True)
            if self.sources[i] != self.sources[j]
        ]
        pairs.sort(key=lambda found: (-found[0], found[1:]))
        return tuple(self.pair(self.names[i], self.names[j]) for _, i, j in pairs[:count])

    def to_frame(self, level: float = 0.95) -> Frame:
        """A frame with a row for each pair of columns; null where the noise hides a column.

        >>> release.correlation().to_frame().shape
        (6, 6)
        """
        from dpgram.analysis._frames import frame_of

        low, high = self.conf_int(level)
        above, below = np.triu_indices(len(self.names), 1)
        numbers = {"correlation": self.estimate, "std_error": self.std_error, "low": low, "high": high}
        return frame_of(
            {
                "left": [self.names[i] for i in above],
                "right": [self.names[i] for i in below],
                **{name: _or_none(values[above, below]) for name, values in numbers.items()},
            },
            numbers=tuple(numbers),
        )

    def plot(self, path: str | Path | None = None, level: float = 0.95, *, dark: bool = False) -> object:
        """A heat map as a matplotlib figure; written to `path` when given.

        >>> figure = release.correlation().plot("correlations.png")
        """
        from dpgram.analysis.plots import correlation_plot

        return correlation_plot(self, path=path, level=level, dark=dark)

    def summary(self, count: int = 10, level: float = 0.95) -> str:
        """The strongest pairs with their intervals, and what the noise hides.

        >>> print(release.correlation().summary(2))
        The strongest of 6 correlations, with 95% intervals (population)
        <BLANKLINE>
        smoker=no   charges  -0.722  -0.742 to -0.703
        smoker=yes  charges   0.722  0.703 to 0.742
        <BLANKLINE>
        Intervals for the population take numbers to scatter around straight lines with normal errors.
        """
        found = self.strongest(count, level)
        pairs = len(self.names) * (len(self.names) - 1) // 2
        lines = [
            f"The strongest of {pairs:,} correlations, with {100 * level:g}% intervals ({self.kind})",
            "",
        ]
        widths = [max((len(getattr(pair, side)) for pair in found), default=0) for side in ("left", "right")]
        for pair in found:
            low, high = pair.conf_int(level)
            lines.append(
                f"{pair.left:<{widths[0]}}  {pair.right:<{widths[1]}}  {pair.estimate:+.3f}  "
                f"{low:.3f} to {high:.3f}".replace("+", " ")
            )
        if not found:
            lines.append("None: every interval includes zero.")
        return in_lines([*lines, "", *self.notes()])

    def notes(self) -> tuple[str, ...]:
        """What a reader must know, one sentence each.

        >>> release.correlation(kind="table").notes()
        ()
        """
        told = [f"{self.assumption}."] if self.assumption is not None else []
        if self.hidden:
            listed = ", ".join(self.hidden[:5])
            more = f" and {len(self.hidden) - 5} more" if len(self.hidden) > 5 else ""
            told.append(f"Hidden by the noise: {listed}{more}.")
        if self.about_the_middle:
            listed = ", ".join(self.about_the_middle[:3]) + (" …" if len(self.about_the_middle) > 3 else "")
            told.append(
                f"Products and powers ({listed}) are those of columns less the middle of their public range."
            )
        return (*told, *(f"Caution: {caution}." for caution in self.cautions))

    def _variance(self, rho: Matrix) -> Matrix:
        left, right = self.skewness[:, None], self.skewness[None, :]
        return _variance_at(rho, self.noise, left, right, self.degrees, self.sampling_factor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.estimate, dtype=dtype)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<Correlations of {len(self.names)} columns, {len(self.hidden)} of them hidden by the noise>"


def correlations(
    release: Document | Moments, on: Sequence[str] | None = None, *, kind: Kind = "population"
) -> Correlations:
    """The correlations of all columns but products and powers (of those named in `on`), with intervals.

    >>> from dpgram.analysis import correlations
    >>> correlations(release, ["age", "charges"]).estimate.round(2)
    array([[1.  , 0.32],
           [0.32, 1.  ]])
    """
    moments = Moments.of(release)
    check_kind(kind)
    schema = moments.schema
    constant = moments.constant_vector()
    if constant is None or not schema.constant:
        raise AnalysisError(
            "this release has no constant column, so it has no means", remedy="Publish with constant=True"
        )
    if (moments.rows or 0.0) <= 0.0:
        raise too_noisy()
    places = _places(moments, on)
    derived = {i for column in schema.columns_derived for i in schema.indices(column.name)}
    columns = original_columns(schema) if derived else ()
    axes = np.eye(schema.width)[:, places] / moments.weights[places]
    names = [schema.encoded[i].name for i in places]
    for k, place in enumerate(places):
        if place in derived and columns[place].monomial:  # as values, not about the middle of their range
            names[k], parts = columns[place].name, columns[place].parts
            axes[:, k] = 0.0
            axes[list(parts), k] = np.array(list(parts.values())) / columns[place].scale
    found = residuals(moments, constant[:, None], axes)
    squares = np.diagonal(found.sums)
    clear = squares > SIGNAL_TO_NOISE * _noise_of_squares(moments, found)
    with np.errstate(invalid="ignore", divide="ignore"):
        units = found.functions / np.sqrt(np.where(clear, squares, np.nan))
        rho = np.clip(found.sums / np.sqrt(np.outer(squares, squares)), -1.0, 1.0)
    rho[~clear], rho[:, ~clear] = np.nan, np.nan
    np.fill_diagonal(rho, np.where(clear, 1.0, np.nan))
    noise = _noise_quadratic(moments, units, found.inflation)
    degrees = degrees_of_freedom(moments, 1) if kind == "population" else None
    means = np.zeros(schema.width)
    means[places] = _means(moments, axes)
    skewness = two_valued_skewness(moments, means)[places]
    factor = moments.sampling_factor
    variance = _variance_at(rho, noise, skewness[:, None], skewness[None, :], degrees, factor)
    np.fill_diagonal(variance, np.where(clear, 0.0, np.nan))
    sources = tuple(schema.encoded[i].source for i in places)
    words = Labels(schema)
    return Correlations(
        names=tuple(names),
        sources=sources,
        labels=tuple(words[name] for name in names),
        kind=kind,
        estimate=rho,
        std_error=np.sqrt(variance),
        noise=noise,
        degrees=degrees,
        skewness=skewness,
        sampling_factor=factor,
        allowance=_allowance(squares, _noise_of_squares(moments, found)),
        cautions=correlation_cautions(moments, kind, sources),
        about_the_middle=tuple(
            name for i, name in zip(places, names, strict=True) if i in derived and not columns[i].monomial
        ),
    )


def partial_correlation(
    release: Document | Moments,
    left: str,
    right: str,
    given: Sequence[str] | None = None,
    *,
    kind: Kind = "population",
) -> Correlation:
    """Correlation of two columns once the columns `given` are accounted for (all others by default).

    >>> from dpgram.analysis import partial_correlation
    >>> round(partial_correlation(release, "age", "charges", ["smoker"]).estimate, 2)
    0.55
    """
    moments = Moments.of(release)
    check_kind(kind)
    # By the names of encoded columns: what was asked for may be that of a product, as `age:bmi`.
    pair = tuple(build_design(moments, name, []).target for name in (left, right))
    if pair[0] == pair[1]:
        raise AnalysisError(
            "a correlation needs two different columns",
            got=f"{left} twice",
            remedy="Name another column",
        )
    if given is None:
        taken = {moments.schema.encoded[i].source for name in pair for i in moments.schema.indices(name)}
        given = [column.name for column in moments.schema.columns if column.name not in taken]
    designs = [build_design(moments, name, given) for name in (left, right)]
    targets = np.column_stack([design.target_vector for design in designs])
    found = residuals(moments, designs[0].vectors, targets)
    refusal = refusal_of(found.solution, moments)
    if refusal is not None:
        raise AnalysisError("no partial correlation", got=refusal, remedy="Give fewer columns")
    moved = [name for design in designs for name in moved_columns(moments, design)]
    if moved and kind == "population":
        raise AnalysisError("no partial correlation", got=MOVED_REFUSAL)
    squares, noise = np.diagonal(found.sums), _noise_of_squares(moments, found)
    for name, clear in zip((left, right), squares > SIGNAL_TO_NOISE * noise, strict=True):
        if not clear:
            raise AnalysisError(
                f"no partial correlation: what is left of {name!r} does not stand clear of the noise",
                remedy="Give fewer columns",
            )
    rho = float(np.clip(found.sums[0, 1] / math.sqrt(squares[0] * squares[1]), -1.0, 1.0))
    parts = _noise_quadratic(moments, found.functions / np.sqrt(squares), found.inflation)
    level, slope, curvature = (float(part[0, 1]) for part in parts)
    known = len(found.slopes)
    degrees = degrees_of_freedom(moments, known) if kind == "population" else None
    # Given other columns, what is left of a two-valued one has more values than two.
    skewness = _own_skewness(moments, pair) if known == 1 else (None, None)
    answer = Correlation(
        left=left,
        right=right,
        given=tuple(given),
        estimate=rho,
        std_error=0.0,
        kind=kind,
        noise=(level, slope, curvature),
        degrees=degrees,
        skewness=skewness,
        sampling_factor=moments.sampling_factor if _numbers(moments, pair) else 1.0,
        allowance=float(np.prod(_allowance(squares, noise))),
        cautions=correlation_cautions(moments, kind, moved),
    )
    return replace(answer, std_error=math.sqrt(float(answer.variance_at(np.array([rho]))[0])))


def correlation_cautions(moments: Moments, kind: Kind, columns: Iterable[str]) -> tuple[str, ...]:
    """How they differ from those of the rows that came in; `columns` as they are declared."""
    found = difference_cautions(moments, kind, of="correlations")
    return (*found, *moved_cautions(moments, columns, "correlations"))


def _numbers(moments: Moments, names: Iterable[str]) -> bool:
    """Whether none of these columns has two values only."""
    encoded, indices = moments.schema.encoded, moments.schema.indices
    return all(encoded[indices(name)[0]].kind not in ("level", "boolean") for name in names)


def _own_skewness(moments: Moments, names: Iterable[str]) -> tuple[float | None, float | None]:
    found = two_valued_skewness(moments, _means(moments, np.diag(1.0 / moments.weights)))
    left, right = (found[moments.schema.indices(name)[0]] for name in names)
    return (None if math.isnan(left) else float(left), None if math.isnan(right) else float(right))


def _means(moments: Moments, vectors: Matrix) -> Vector:
    """The noisy mean of each function of the row."""
    constant = moments.constant_vector()
    if constant is None or not moments.rows:
        return np.zeros(vectors.shape[1])
    toward = moments.consistent_gram @ in_noise_coordinates(moments, constant)
    return np.asarray(in_noise_coordinates(moments, vectors).T @ toward / moments.rows)


def _places(moments: Moments, on: Sequence[str] | None) -> list[int]:
    """Positions of the encoded columns asked for, without the constant."""
    schema = moments.schema
    names = [column.name for column in schema.columns_read] if on is None else asked_columns(schema, on)
    columns = original_columns(schema) if schema.columns_derived else ()
    places = [i for name in names for i in places_of(schema, name, columns)]
    if len(set(places)) < len(places):
        raise AnalysisError("a column is named twice", got=", ".join(names))
    if len(names) < 2:
        raise AnalysisError(
            "a correlation takes two columns",
            got=f"{names[0]} alone" if names else "none",
            remedy="This release has no more" if on is None else "Name two at least, or none to have all",
        )
    if any(schema.encoded[i].kind == "constant" for i in places):
        raise AnalysisError("the constant column has no correlations")
    return places


def _noise_of_squares(moments: Moments, found: Residuals) -> Vector:
    """The deviation of the noise in each Σ residual²."""
    return np.asarray(moments.noise.diagonal_sd * np.sum(found.functions**2, axis=0))


def _allowance(squares: Vector, noise: Vector) -> Vector:
    """√(s/(s − what luck may have added)) where s passed the limit by little, else 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        above = np.where(noise > 0.0, squares / noise, np.inf) - SIGNAL_TO_NOISE
        luck = PASSED_BY_LUCK * np.clip(1.0 - above / PASSED_CLEARLY, 0.0, 1.0)
        clear = above + SIGNAL_TO_NOISE
        return np.where(above > 0.0, 1.0 / np.sqrt(1.0 - luck / np.where(above > 0.0, clear, 1e9)), np.nan)


def _noise_quadratic(moments: Moments, units: Matrix, inflation: float) -> tuple[Matrix, Matrix, Matrix]:
    """(c₀, c₁, c₂) with Var⟨S(ρ), N⟩ = c₀ + c₁ρ + c₂ρ² for every pair of columns a, b of `units`."""
    off = moments.noise.offdiagonal_sd**2
    inner = units.T @ units
    own = np.diagonal(inner)
    level = off * (np.outer(own, own) + inner**2)
    slope = -2.0 * off * inner * np.add.outer(own, own)
    curvature = 0.5 * off * (np.add.outer(own**2, own**2) + 2.0 * inner**2)
    excess = moments.noise.diagonal_sd**2 - 2.0 * off
    if abs(excess) > 1e-9 * off:  # the diagonal is not as noisy as rotations of the rest would be
        squares = units**2
        second, third = squares.T @ squares, (squares * units).T @ units
        level += excess * second
        slope -= excess * (third + third.T)
        fourth = np.diagonal(second)
        curvature += 0.25 * excess * (np.add.outer(fourth, fourth) + 2.0 * second)
    return level * inflation, slope * inflation, curvature * inflation


def _variance_at(
    rho: Matrix,
    noise: tuple[Matrix, Matrix, Matrix] | tuple[float, float, float],
    left: Matrix,
    right: Matrix,
    degrees: float | None,
    factor: float,
) -> Matrix:
    """Noise plus, where there are `degrees`, sampling variance of a correlation estimate where ρ is true."""
    level, slope, curvature = noise
    variance = np.maximum(level + slope * rho + curvature * rho**2, 0.0)
    if degrees is None:
        return np.asarray(variance)
    return np.asarray(variance + correlation_variance(rho, left, right, degrees, factor))


def _ends(
    estimate: Matrix, variance: Callable[[Matrix], Matrix], allowance: Matrix, quantile: float
) -> tuple[Matrix, Matrix]:
    """The nearest ρ on either side with (ρ̂ − ρ)² = q²·Var(ρ), or ±1: found by halving."""
    ends = []
    for edge in (-1.0, 1.0):
        inside, outside = estimate.copy(), np.where(np.isnan(estimate), np.nan, edge)
        open_ended = (estimate - outside) ** 2 <= quantile**2 * variance(outside)
        for _ in range(HALVINGS):
            middle = 0.5 * (inside + outside)
            within = (estimate - middle) ** 2 <= quantile**2 * variance(middle)
            inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
        end = np.where(open_ended, edge, inside)
        end = np.where(end * edge > 0.0, end * allowance, end)
        ends.append(np.clip(end, -1.0, 1.0))
    for end in ends:
        end[np.isnan(estimate)] = np.nan
    if estimate.ndim == 2:
        for end in ends:
            np.fill_diagonal(end, np.diagonal(estimate))
    return ends[0], ends[1]


def _or_none(values: Vector) -> list[float | None]:
    return [None if math.isnan(value) else float(value) for value in values]
