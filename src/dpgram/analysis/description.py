"""Counts, means and deviations of the columns, each with its interval.

With f a column as a function of the row, c the constant one and n = cᵀGc: the mean fᵀGc/n moves with the
noise by rᵀNc/n, r = f − mean·c, and its sampling error is deviation/√n. The variance v = rᵀGr/(n − 1) has a
noisy sum above and a noisy n below, and moves by (rᵀNr − v·cᵀNc)/n; of its sampling error second moments do
not tell, so the interval of a deviation is for the table. The number of rows, and of rows with a level, are
numbers of the table too: their only error is the noise. Where a release has histograms, counts and means are
those of them (histograms.py), of rows with missing cells too; deviations never are (row_sets.py).
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dpgram.analysis.asked import asked_columns, check_level
from dpgram.analysis.estimand import Kind, description_cautions, moved_cautions
from dpgram.analysis.forms import in_noise_coordinates, noise_covariance, residuals, symmetric_product
from dpgram.analysis.histograms import Histogram, histogram_count, histograms, of_the_same_rows
from dpgram.analysis.inference import check_kind
from dpgram.analysis.moments import Moments
from dpgram.analysis.normal_equations import too_noisy
from dpgram.analysis.row_sets import matrix_count, row_sets
from dpgram.analysis.summary import WIDTH, aligned
from dpgram.document.labels import Labels, written
from dpgram.document.terminal import escaped, in_lines, one_line
from dpgram.errors import AnalysisError
from dpgram.schema.encodings import EncodedColumn

if TYPE_CHECKING:
    from dpgram.analysis._frames import Frame
    from dpgram.document.document import Document

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

ROUGH: Final = 4.0
"""So many times as wide as the interval of the matrix, that of a histogram's mean is worth a word."""
COUNT_CELLS: Final = 3
"""The last cells of a line: a count and the ends of its interval."""

WEIGHTS: Final = "rows that were scaled down count less, so that all counts here are too small"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A number with its standard error and interval."""

    estimate: float
    std_error: float
    low: float
    high: float

    @property
    def shown(self) -> tuple[float, float, float]:
        """The estimate and the ends, for eyes: noise can take an estimate out of what is possible."""
        return min(max(self.estimate, self.low), self.high), self.low, self.high

    def __str__(self) -> str:
        value, low, high = self.shown
        return f"{value:.5g} ({low:.5g} to {high:.5g})"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDescription:
    """What a release tells about one encoded column, in original units."""

    name: str
    mean: Told
    """Of a level or a truth value: its share."""
    deviation: Told
    count: Told | None
    """The number of rows with this level, or with true; nothing for numbers."""
    label: str | None = None
    """What it is, as the schema says; nothing where it says nothing."""
    units: str | None = None
    dates: bool = False
    """Whether the mean is a day, counted from 1970-01-01, and the deviation in days."""
    closer: Told | None = None
    """The mean over complete rows, as the matrix tells it, where that of a histogram is rough beside it."""

    @property
    def caution(self) -> str | None:
        """What to say of a rough mean."""
        if self.closer is None:
            return None
        value, low, high = (written(value, dates=self.dates) for value in self.closer.shown)
        return (
            f"the mean of {self.name} comes from a histogram between far bounds, and is rough; over complete "
            f"rows, those far from the others counting less, it is {value} ({low} to {high})"
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Description:
    """The number of rows and every column, with intervals."""

    level: float
    kind: Kind
    rows: Told
    columns: tuple[ColumnDescription, ...]
    cautions: tuple[str, ...] = ()
    counted: str = "rows"
    """What all counts are of: rows, units where each counts as one, or weight."""

    def __repr__(self) -> str:
        rows = self.rows.shown[0]
        return f"<Description: {len(self.columns)} columns, {rows:,.0f} {self.counted}, {self.kind}>"

    def __getitem__(self, name: str) -> ColumnDescription:
        for column in self.columns:
            if column.name == name:
                return column
        raise AnalysisError(
            f"no column {name!r} here", limit=", ".join(column.name for column in self.columns[:20])
        )

    def to_frame(self) -> Frame:
        """A frame with a row for each column.

        >>> release.describe().to_frame().columns[:4]
        ['name', 'label', 'units', 'mean']
        """
        from dpgram.analysis._frames import frame_of

        found: dict[str, list[object]] = {
            field: [getattr(column, field) for column in self.columns] for field in ("name", "label", "units")
        }
        for field in ("mean", "deviation", "count"):
            told = [getattr(column, field) for column in self.columns]
            for end, key in (("", "estimate"), ("_low", "low"), ("_high", "high")):
                found[field + end] = [None if each is None else getattr(each, key) for each in told]
        return frame_of(found, numbers=list(found)[3:], texts=list(found)[:3])

    def __str__(self) -> str:
        lines = [self._told_rows(), ""]
        cells = self._cells()
        table = aligned(cells[0], cells[1:])
        if max(map(len, table)) > WIDTH:
            table = _in_two(cells)
        lines += table
        for note in self.notes():
            lines += ["", *textwrap.wrap(one_line(note), WIDTH)]
        return in_lines(lines)

    def notes(self) -> tuple[str, ...]:
        """What a reader must know, one sentence each.

        >>> release.describe().notes()[0]
        '95% intervals: of means for the population (sampling and privacy noise), of the rest for the table.'
        """
        whose = "for the table (privacy noise only)"
        if self.kind == "population":
            whose = "of means for the population (sampling and privacy noise), of the rest for the table"
        told = [f"{100 * self.level:g}% intervals: {whose}."]
        said = [f"{column.name} is {column.label}" for column in self.columns if column.label is not None]
        if said:
            told.append(f"Columns: {'; '.join(said)}.")
        if days := [column.name for column in self.columns if column.dates]:
            told.append(f"Deviations in days: {', '.join(days)}.")
        return (*told, *(f"Caution: {caution}." for caution in self.cautions))

    def _repr_html_(self) -> str:
        head, *body = self._cells()
        rows = "".join("<tr>" + "".join(f"<td>{escaped(c)}</td>" for c in row) + "</tr>" for row in body)
        titles = "".join(f"<th>{escaped(cell)}</th>" for cell in head)
        notes = "".join(f"<p>{escaped(note)}</p>" for note in self.notes())
        count = f"<p>{escaped(self._told_rows())}</p>"
        return (
            f"<div>{count}<table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>{notes}</div>"
        )

    def _told_rows(self) -> str:
        rows, low, high = self.rows.shown
        return f"{self.counted}: {rows:,.0f} ({low:,.0f} to {high:,.0f})"

    def _cells(self) -> list[tuple[str, ...]]:
        """Heading and rows; a column of units where any are declared."""
        with_units = any(column.units is not None for column in self.columns)
        head = ("", *(("units",) if with_units else ()))
        cells: list[tuple[str, ...]] = [
            (*head, "mean", "from", "to", "deviation", "from", "to", "count", "from", "to")
        ]
        for column in self.columns:
            numbers: list[str] = []
            numbers += [written(value, dates=column.dates) for value in column.mean.shown]
            numbers += [f"{value:.5g}" for value in column.deviation.shown]
            values = () if column.count is None else column.count.shown
            numbers += [f"{value:,.0f}" for value in values] or [""] * 3
            units = (column.units or "",) if with_units else ()
            cells.append((column.name, *units, *numbers))
        return cells


def _in_two(cells: Sequence[tuple[str, ...]]) -> list[str]:
    """Means and deviations, and below them the counts of what is counted: too wide side by side."""
    counts = [row for row in cells if any(row[-COUNT_CELLS:])]
    upper = aligned(cells[0][:-COUNT_CELLS], [row[:-COUNT_CELLS] for row in cells[1:]])
    first, *others = [(row[0], *row[-COUNT_CELLS:]) for row in counts]
    return [*upper, "", *aligned(first, others)] if others else upper


def describe(
    release: Document | Moments,
    on: Sequence[str] | None = None,
    *,
    level: float = 0.95,
    kind: Kind = "population",
) -> Description:
    """Counts, means and deviations with intervals, of all columns that were read or of those in `on`.

    >>> from dpgram.analysis import describe
    >>> print(describe(release, ["age"])["age"].mean)
    49.823 (49.587 to 50.06)
    """
    check_kind(kind)
    check_level(level)
    moments = Moments.of(release)
    constant = moments.constant_vector()
    if constant is None:
        raise AnalysisError(
            "this release has no constant column, so it has no counts or means",
            remedy="Publish with constant=True",
        )
    if (moments.rows or 0.0) <= 0.0:
        raise too_noisy()
    quantile = float(-ndtri(0.5 * (1.0 - level)))
    places = _places(moments, on)
    found = _centred(moments, constant, places)
    scale = moments.count_scale
    sources = {moments.schema.encoded[i].source for i in places}
    counted: dict[str, Histogram] = {}
    if not isinstance(release, Moments) and of_the_same_rows(release) is not None:
        counted = histograms(release)
    words = Labels(moments.schema)
    own = [
        _column(moments, constant, place, found, k, quantile, kind, scale) for k, place in enumerate(places)
    ]
    columns = tuple(
        _counted_column(column, moments.schema.encoded[place], counted, quantile, kind)
        for column, place in zip(own, places, strict=True)
    )
    columns = tuple(
        replace(
            column,
            label=words.label(column.name),
            units=words.units(column.name),
            dates=words.is_date(column.name),
            closer=matrix.mean if _is_rough(column, matrix) else None,
        )
        for column, matrix in zip(columns, own, strict=True)
    )
    rows, apart = matrix_count(moments, constant), None
    if counted and not isinstance(release, Moments):
        rows, apart = histogram_count(release), row_sets(release, moments)
    return Description(
        level=level,
        kind=kind,
        rows=_told(*rows, quantile, 0.0, math.inf, scale),
        columns=columns,
        cautions=(
            *description_cautions(moments, kind, counted=bool(counted)),
            *([WEIGHTS] if moments.clipped and not counted else []),
            *([] if apart is None else [apart.caution]),
            *moved_cautions(moments, sources, "means and deviations"),
            *(column.caution for column in columns if column.caution is not None),
        ),
        counted=_counted(moments),
    )


def _is_rough(column: ColumnDescription, matrix: ColumnDescription) -> bool:
    """Whether a histogram between far bounds tells a mean far less closely than the matrix does."""
    width, narrower = (each.mean.high - each.mean.low for each in (column, matrix))
    return column.count is None and width > ROUGH * narrower


def _counted(moments: Moments) -> str:
    """What a count of the release is a number of: with `unit_rows` of rows again."""
    if moments.survey_weight is not None:
        return f"weight ({moments.survey_weight!r})"
    units = moments.unit_rule is not None and moments.unit_rule.counts == "units"
    return f"units ({moments.unit!r})" if units else "rows"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Centred:
    """Means of z, sums of squares around them, and the variance that the noise gives to both.

    That of a sum of squares is n² times that of its quotient by the noisy n.
    """

    means: Vector
    mean_noise: Vector
    squares: Vector
    square_noise: Vector


def _centred(moments: Moments, constant: Vector, places: Sequence[int]) -> _Centred:
    axes = np.eye(moments.schema.width)[:, list(places)] / moments.weights[list(places)]
    found = residuals(moments, constant[:, None], axes)
    rows = moments.rows or 1.0
    one = in_noise_coordinates(moments, constant)
    toward = moments.consistent_gram @ one
    variances = np.maximum(np.diagonal(found.sums), 0.0) / max(rows - 1.0, 1.0)
    noises, squares = np.empty(len(places)), np.empty(len(places))
    for k, residual in enumerate(found.functions.T):
        shapes = np.stack(
            [
                symmetric_product(residual[:, None], one[:, None])[0],
                np.outer(residual, residual) - variances[k] * np.outer(one, one),
            ]
        )
        noises[k], squares[k] = np.diagonal(noise_covariance(moments.noise, shapes))
    return _Centred(
        means=in_noise_coordinates(moments, axes).T @ toward / rows,
        mean_noise=noises * found.inflation / rows**2,
        squares=np.diagonal(found.sums),
        square_noise=squares * found.inflation,
    )


def _level_count(moments: Moments, constant: Vector, place: int) -> tuple[float, float]:
    """The number of rows with a level, or with true, as the matrix tells it; the deviation of its noise."""
    column = moments.schema.encoded[place]
    function = np.zeros(moments.schema.width)
    function[place] = 1.0 / column.weight
    if column.kind == "boolean":
        function = 0.5 * (function + constant)
    own, one = (in_noise_coordinates(moments, each) for each in (function, constant))
    variance = noise_covariance(moments.noise, symmetric_product(own[:, None], one[:, None]))
    return float(own @ moments.consistent_gram @ one), math.sqrt(float(variance[0, 0]))


def _column(
    moments: Moments,
    constant: Vector,
    place: int,
    found: _Centred,
    k: int,
    quantile: float,
    kind: Kind,
    scale: float,
) -> ColumnDescription:
    column = moments.schema.encoded[place]
    rows, unit = moments.rows or 1.0, column.half_width
    variance = max(float(found.squares[k]), 0.0) / max(rows - 1.0, 1.0)
    error = float(found.mean_noise[k]) + (variance / rows if kind == "population" else 0.0)
    centre = column.centre
    least = 0.0 if column.kind == "level" else centre - unit
    most = 1.0 if column.kind == "level" else centre + unit
    mean = centre + unit * float(found.means[k])
    count = None
    if column.kind in ("level", "boolean"):
        count = _told(*_level_count(moments, constant, place), quantile, 0.0, math.inf, scale)
    return ColumnDescription(
        name=column.name,
        mean=_told(mean, unit * math.sqrt(error), quantile, least, most),
        deviation=_deviation(float(found.squares[k]), float(found.square_noise[k]), rows, quantile, unit),
        count=count,
    )


def _counted_column(
    told: ColumnDescription,
    column: EncodedColumn,
    counted: Mapping[str, Histogram],
    quantile: float,
    kind: Kind,
) -> ColumnDescription:
    """Where there is a histogram, mean and count are those of it: a clip of rows does not touch them."""
    histogram = counted.get(column.source)
    if histogram is None:
        return told
    if histogram.numbers:
        mean = histogram.mean(kind)
        ends = float(histogram.values[0]), float(histogram.values[-1])
        return replace(told, mean=_told(mean.estimate, mean.std_error, quantile, *ends))
    level = "true" if column.level is None else column.level
    share = histogram.share(level, kind)
    rows = float(histogram.counts[list(histogram.values).index(level)])
    return replace(
        told,
        mean=_told(share.estimate, share.std_error, quantile, 0.0, 1.0),
        count=_told(rows, histogram.noise_sd, quantile, 0.0, math.inf),
    )


def _deviation(square: float, noise: float, rows: float, quantile: float, unit: float) -> Told:
    """√(sum of squares/(n − 1)); its ends are those of the sum."""
    reach = quantile * math.sqrt(noise)
    low, middle, high = (
        unit * math.sqrt(max(value, 0.0) / max(rows - 1.0, 1.0))
        for value in (square - reach, square, square + reach)
    )
    error = unit * math.sqrt(noise) / (2.0 * math.sqrt(max(square, 1e-300) * max(rows - 1.0, 1.0)))
    return Told(estimate=middle, std_error=error if square > 0.0 else math.nan, low=low, high=high)


def _told(
    estimate: float, error: float, quantile: float, low: float, high: float, scale: float = 1.0
) -> Told:
    ends = np.clip([estimate - quantile * error, estimate + quantile * error], low, high)
    return Told(
        estimate=estimate * scale,
        std_error=error * scale,
        low=float(ends[0]) * scale,
        high=float(ends[1]) * scale,
    )


def _places(moments: Moments, on: Sequence[str] | None) -> tuple[int, ...]:
    """Positions of the encoded columns that were read, not computed from others."""
    schema = moments.schema
    read = [i for column in schema.columns_read for i in schema.indices(column.name)]
    if on is None:
        return tuple(read)
    places = [i for name in asked_columns(schema, on) for i in schema.indices(name)]
    if derived := [schema.encoded[i].name for i in places if i not in read]:
        raise AnalysisError(
            "products and polynomials are not described", got=", ".join(derived), remedy="Name their columns"
        )
    return tuple(places)
