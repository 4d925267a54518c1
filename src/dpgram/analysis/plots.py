"""Coefficients with intervals, scree and biplot of components, correlation heat map. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.design import INTERCEPT
from dpgram.document.labels import Labels
from dpgram.figures import (
    BLUE,
    CONVENTIONS,
    DIVERGING,
    GREY,
    LIGHT,
    ORANGE,
    finished,
    limits,
    new_figure,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpgram.analysis.association import Correlations
    from dpgram.analysis.estimand import Kind
    from dpgram.analysis.pca import Components
    from dpgram.analysis.results import Regression
    from dpgram.analysis.trend import Trend

MOST_LABELS: Final = 14
"""More columns than this are drawn without a label each: they could not be read."""
LONGEST: Final = 40
"""Letters of a label beside an axis,"""
SHORT: Final = 18
"""and where there are many or they lie in the plot."""


def coefficient_plot(
    fit: Regression,
    *,
    path: str | Path | None = None,
    level: float = 0.95,
    kind: Kind = "population",
    dark: bool = False,
) -> Figure:
    """Each coefficient's effect over its column's public range, so that one axis serves all of them.

    >>> from dpgram.analysis import coefficient_plot
    >>> figure = coefficient_plot(fit, path="coefficients.png")
    """
    inference = fit.inference(kind)
    shown = [i for i, name in enumerate(fit.names) if name != INTERCEPT]
    words = Labels(fit.design.schema)
    names = shortened([words[fit.names[i]] for i in shown], LONGEST)
    spans = np.array([_span(fit, i) for i in shown])
    figure, (axis,) = new_figure(1.6 + 0.34 * max(len(shown), 2))
    places = np.arange(len(shown))[::-1]
    axis.axvline(0.0, color=GREY, linewidth=0.8)
    fitted = spans * fit.values[shown]
    if inference.refusal is None:
        drawn = inference.bounded(level)[shown]
        ends = inference.conf_int(level)[shown][drawn] * spans[drawn, None]
        centre = inference.estimate[shown][drawn] * spans[drawn]
        edges = limits(ends[:, 0], ends[:, 1], centre, fitted)
        axis.set_xlim(*edges)
        _intervals(axis, places[drawn], ends, edges)
        axis.plot(
            centre,
            places[drawn],
            "o",
            color=BLUE,
            label=str(CONVENTIONS["unshrunken"]).format(level=f"{100 * level:g}", kind=kind),
        )
        _open_ended(axis, places[~drawn])
    axis.plot(
        fitted,
        places,
        "D",
        color=ORANGE,
        markerfacecolor="none",
        markersize=7,
        label=str(CONVENTIONS["fitted"]).format(method=fit.method),
    )
    axis.set_yticks(places, names)
    axis.set_ylim(-0.7, len(shown) - 0.3)
    target = fit.design.target_name
    what = _shortened(words.titled(target), LONGEST)
    axis.set_xlabel(str(CONVENTIONS["effects"]).format(target=what))
    title = f"Regression of {_shortened(words[target], LONGEST)}"
    if inference.refusal is not None:
        title += ": no intervals, the privacy noise is too large"
    axis.set_title(title, loc="left")
    figure.legend(loc="outside lower left", frameon=False, ncols=2)
    return finished(figure, path, dark=dark)


def _intervals(
    axis: Axes, places: npt.NDArray[np.int_], ends: npt.NDArray[np.float64], edges: tuple[float, float]
) -> None:
    """Lines from end to end; what reaches beyond the axis has an arrow and its number there."""
    inside = np.clip(ends, *edges)
    axis.hlines(places, inside[:, 0], inside[:, 1], color=BLUE, linewidth=2.2)
    for side, (marker, align) in enumerate((("<", "left"), (">", "right"))):
        for place, end in zip(places.tolist(), ends[:, side].tolist(), strict=True):
            if edges[0] <= end <= edges[1]:
                continue
            axis.plot([edges[side]], [place], marker, color=BLUE, clip_on=False)
            axis.annotate(
                f"{end:.3g}", (edges[side], place), (0, 5), textcoords="offset points", ha=align, fontsize=8
            )


def _open_ended(axis: Axes, places: npt.NDArray[np.int_]) -> None:
    """Arrows to both sides over the whole width: the noise leaves this coefficient no interval."""
    for number, place in enumerate(places.tolist()):
        axis.annotate(
            "",
            (1.0, place),
            (0.0, place),
            xycoords=("axes fraction", "data"),
            arrowprops={"arrowstyle": "<->", "color": LIGHT, "linewidth": 1.6},
        )
        if number == 0:
            axis.plot([], [], "-", color=LIGHT, label="no interval: the noise leaves none")


def _span(fit: Regression, position: int) -> float:
    """high − low of a numeric column; products and powers: of all factors; levels: one unit."""
    term, schema = fit.design.terms[position], fit.design.schema
    names = term.monomial or (term.name,)
    if all(schema.encoded[schema.indices(name)[0]].kind == "level" for name in names):
        return 1.0
    return 2.0 * term.scale


def trend_plot(
    trend: Trend, name: str, *, path: str | Path | None = None, level: float = 0.95, dark: bool = False
) -> Figure:
    """A coefficient in every window of a series, with intervals, and the straight line through all of them.

    >>> from dpgram.analysis import trend_plot
    >>> figure = trend_plot(series.trend("charges", ["age"]), "age", path="trend.png")
    """
    values, ends = trend.estimates(name), trend.conf_int(name, level)
    figure, (axis,) = new_figure(3.6)
    places, there = trend.places, ~np.isnan(ends[:, 0])
    axis.vlines(places[there], ends[there, 0], ends[there, 1], color=BLUE, linewidth=1.8)
    axis.plot(places[there], values[there], "o", color=BLUE, markersize=4, label=f"{100 * level:g}% interval")
    if not there.all():
        missing = places[~there]
        axis.plot(
            missing,
            np.full(len(missing), np.nan),
            "x",
            color=LIGHT,
            label="no interval: the noise leaves none",
        )
    if len(values) >= 3 and there.all():
        line = trend.slope(name)
        middle = float(np.average(values, weights=1.0 / trend.std_errors(name) ** 2))
        centre = float(np.average(places, weights=1.0 / trend.std_errors(name) ** 2))
        axis.plot(
            places,
            middle + line.estimate * (places - centre),
            "-",
            color=ORANGE,
            linewidth=1.4,
            label=f"straight line: {line.estimate:.3g} in one period, p = {line.pvalue:.2g}",
        )
    shown = range(0, len(places), -(-len(places) // (MOST_LABELS // 2)))
    axis.set_xticks(places[list(shown)], [_shortened(trend.labels[place], LONGEST // 2) for place in shown])
    axis.set_ylabel(_shortened(name, LONGEST))
    axis.set_title(f"{_shortened(name, LONGEST)} in the regression of {trend.target} over time", loc="left")
    figure.legend(loc="outside lower left", frameon=False, ncols=2)
    return finished(figure, path, dark=dark)


def component_plot(components: Components, *, path: str | Path | None = None, dark: bool = False) -> Figure:
    """Scree on the left with the noise level; on the right the loadings of the first two components.

    >>> from dpgram.analysis import component_plot
    >>> figure = component_plot(release.pca(), path="components.png")
    """
    two = len(components.variances) > 1
    figure, axes = new_figure(4.6, 2 if two else 1)
    _scree(axes[0], components)
    if two:
        _biplot(axes[1], components)
    return finished(figure, path, dark=dark)


def _scree(axis: Axes, components: Components) -> None:
    spectrum = components.spectrum[:30]
    numbers = np.arange(1, len(spectrum) + 1)
    clear = components.clear[: len(spectrum)]
    for stable, colour, word in ((True, BLUE, "stable"), (False, LIGHT, "mixed by the noise")):
        chosen = clear == stable
        if chosen.any():
            axis.bar(numbers[chosen], spectrum[chosen], color=colour, width=0.7, label=word)
    axis.axhline(
        components.noise_norm, color=ORANGE, linewidth=1.6, linestyle="--", label="reach of the noise"
    )
    axis.legend(frameon=False)
    step = 1 if len(spectrum) <= 12 else 5
    axis.set_xticks([number for number in numbers if number == 1 or number % step == 0])
    axis.set_xlabel("component")
    axis.set_ylabel("variance")
    axis.set_title("Scree", loc="left")


def _biplot(axis: Axes, components: Components) -> None:
    arrows = components.loadings[:, :2] * np.sqrt(np.maximum(components.variances[:2], 0.0))
    longest = np.argsort(-np.hypot(arrows[:, 0], arrows[:, 1]))
    limit = 1.3 * max(float(np.abs(arrows).max()), 1e-12)
    taken: list[tuple[float, float]] = []
    names = shortened(components.labels, SHORT)
    for rank, i in enumerate(longest):
        x, y = arrows[i]
        axis.annotate(
            "", (x, y), (0.0, 0.0), arrowprops={"arrowstyle": "->", "color": BLUE, "linewidth": 1.4}
        )
        crowded = any(abs(x - a) < 0.5 * limit and abs(y - b) < 0.09 * limit for a, b in taken)
        if rank >= MOST_LABELS or crowded:
            continue
        taken.append((x, y))
        axis.annotate(
            names[i],
            (x, y),
            xytext=(4 if x >= 0 else -4, 3 if y >= 0 else -3),
            textcoords="offset points",
            ha="left" if x >= 0 else "right",
            va="bottom" if y >= 0 else "top",
            fontsize=9,
        )
    axis.axhline(0.0, color=GREY, linewidth=0.6)
    axis.axvline(0.0, color=GREY, linewidth=0.6)
    axis.set_xlim(-limit, limit)
    axis.set_ylim(-limit, limit)
    for number, label in ((0, axis.set_xlabel), (1, axis.set_ylabel)):
        doubt = "" if components.stable[number] else ", NOT stable"
        label(f"component {number + 1} ({components.explained[number]:.0%}{doubt})")
    axis.set_title("Loadings", loc="left")


def correlation_plot(
    correlations: Correlations,
    *,
    path: str | Path | None = None,
    level: float = 0.95,
    dark: bool = False,
) -> Figure:
    """A heat map; grey for columns that the noise hides, empty where an interval includes zero.

    >>> from dpgram.analysis import correlation_plot
    >>> figure = correlation_plot(release.correlation(), path="correlations.png")
    """
    names, count = correlations.labels, len(correlations.names)
    known, distinct = ~np.isnan(correlations.estimate), correlations.distinct(level)
    shades = np.where(known & ~distinct, 0.0, correlations.estimate)
    figure, (axis,) = new_figure(min(1.6 + 0.42 * count, 9.0))
    axis.spines[:].set_visible(False)
    axis.set_facecolor(LIGHT)
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("dpgram", DIVERGING)
    image = axis.imshow(np.ma.masked_invalid(shades), cmap=colours, vmin=-1.0, vmax=1.0, aspect="equal")
    size = 9.0 if count <= 40 else max(360.0 / count, 4.0)
    short = shortened(names, SHORT)
    axis.set_xticks(range(count), short, rotation=45 if count <= 40 else 90, ha="right", fontsize=size)
    axis.set_yticks(range(count), short, fontsize=size)
    if count <= MOST_LABELS:
        for i, j in np.ndindex(count, count):
            text = f"{correlations.estimate[i, j]:.2f}" if distinct[i, j] else "" if known[i, j] else "–"
            deep = distinct[i, j] and abs(shades[i, j]) > 0.6
            axis.text(j, i, text, ha="center", va="center", fontsize=8, color="white" if deep else "black")
    figure.colorbar(image, ax=axis, shrink=0.8, label="correlation")
    axis.set_title(f"Correlations whose {100 * level:g}% interval excludes zero", loc="left")
    if correlations.hidden:
        axis.set_xlabel("grey: hidden by the privacy noise")
    return finished(figure, path, dark=dark)


def _shortened(name: str, longest: int) -> str:
    return shortened([name], longest)[0]
