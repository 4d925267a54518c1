"""Figures: coefficients with intervals, scree and biplot of components, correlation heat map.

Needs matplotlib (the extra `plot`). Colours are from Okabe and Ito's palette and from cividis, both readable
with any colour vision; every figure is legible at 800 pixels width.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from dpgram.analysis.design import INTERCEPT
from dpgram.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpgram.analysis.inference import Kind
    from dpgram.analysis.results import Regression

BLUE: Final = "#0072B2"
ORANGE: Final = "#D55E00"
GREY: Final = "#666666"
DPI: Final = 100
WIDTH: Final = 8.0
"""Inches; 800 pixels at 100 dots per inch."""


def _figure(height: float, columns: int = 1) -> tuple[Figure, Sequence[Axes]]:
    """A figure of its own, without pyplot: no global state, no window."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = [figure.add_subplot(1, columns, i + 1) for i in range(columns)]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _written(figure: Figure, path: str | Path | None) -> Figure:
    if path is not None:
        figure.savefig(Path(path), dpi=DPI)
    return figure


def coefficient_plot(
    fit: Regression, *, path: str | Path | None = None, level: float = 0.95, kind: Kind = "population"
) -> Figure:
    """Each coefficient's effect over its column's public range, so that one axis serves all of them."""
    inference = fit.inference(kind)
    shown = [i for i, name in enumerate(fit.names) if name != INTERCEPT]
    names = [fit.names[i] for i in shown]
    spans = np.array([_span(fit, i) for i in shown])
    figure, (axis,) = _figure(1.6 + 0.34 * max(len(shown), 2))
    places = np.arange(len(shown))[::-1]
    axis.axvline(0.0, color=GREY, linewidth=0.8)
    fitted = spans * fit.values[shown]
    if inference.refusal is None:
        ends = inference.conf_int(level)[shown] * spans[:, None]
        centre = inference.estimate[shown] * spans
        axis.hlines(places, ends[:, 0], ends[:, 1], color=BLUE, linewidth=2.2)
        axis.plot(centre, places, "o", color=BLUE, label=f"un-shrunken, {100 * level:g}% interval ({kind})")
    axis.plot(
        fitted,
        places,
        "D",
        color=ORANGE,
        markerfacecolor="none",
        markersize=7,
        label=f"fitted ({fit.method})",
    )
    axis.set_yticks(places, names)
    axis.set_ylim(-0.7, len(shown) - 0.3)
    axis.set_xlabel(f"change of {fit.target} over the column's public range, or against the reference level")
    title = f"Regression of {fit.target}"
    if inference.refusal is not None:
        title += ": no intervals, the privacy noise is too large"
    axis.set_title(title, loc="left")
    figure.legend(loc="outside lower left", frameon=False, ncols=2)
    return _written(figure, path)


def _span(fit: Regression, position: int) -> float:
    """high − low of a numeric column; products: of both factors; levels and Legendre columns: one unit."""
    from dpgram.analysis.moments import scale_factors

    term = fit.design.terms[position]
    if term.level is not None:
        return 1.0
    column = fit.design.schema.encoded[fit.design.schema.indices(term.source)[0]]
    if column.kind == "legendre":
        return 1.0
    return 2.0 * scale_factors(fit.design.schema)[term.source]
