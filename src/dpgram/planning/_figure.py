"""The standard-error ratio against ε, one line for each mechanism. Needs matplotlib (the extra `plot`).

Okabe and Ito's colours, each used once solid and once dashed: twelve lines that any colour vision can tell
apart, with a marker shape of their own besides.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from dpgram.errors import MissingExtra
from dpgram.figures import DPI, GREY, WIDTH, finished
from dpgram.mechanisms import MECHANISMS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpgram.planning._plan import Plan

COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS: Final = "osD^vPX<>*hp"
TALLEST: Final = 20.0
"""Ratios above this are off the figure: nobody would publish for them."""


def accuracy_plot(plan: Plan, *, path: Path | None = None) -> Figure:
    """Both axes logarithmic; a line ends where the mechanism would give no interval any more."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter, NullFormatter
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    figure = Figure(figsize=(WIDTH, 4.8), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.add_subplot(1, 1, 1)
    axis.spines[["top", "right"]].set_visible(False)
    order = [*MECHANISMS, "adaptive"]
    hidden: list[str] = []
    for name, (levels, ratios) in plan.curves().items():
        number = order.index(name)
        if not levels or min(ratios) > TALLEST:
            hidden.append(name)
            continue
        axis.plot(
            levels,
            ratios,
            color="black" if name == "adaptive" else COLOURS[number % len(COLOURS)],
            linestyle="-" if number < len(COLOURS) or name == "adaptive" else "--",
            marker=None if name == "adaptive" else MARKERS[number],
            markersize=4.5,
            linewidth=2.6 if name == "adaptive" else 1.8,
            label="adaptive (the default)" if name == "adaptive" else name,
        )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_ylim(0.97, TALLEST)
    axis.set_yticks([1, 1.2, 1.5, 2, 3, 5, 10, 20])
    for shown in (axis.xaxis, axis.yaxis):
        shown.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        shown.set_minor_formatter(NullFormatter())
    axis.axhline(1.0, color=GREY, linewidth=0.8)
    axis.axvline(plan.epsilon, color=GREY, linewidth=0.8, linestyle=":")
    axis.set_xlabel("ε" + (f" (δ = {plan.delta:g})" if plan.delta else " (δ = 0)"))
    axis.set_ylabel("standard error, in those of least squares")
    axis.set_title(
        f"Forecast for {plan.target}: {plan.rows:,} rows, {plan.width} encoded columns", loc="left"
    )
    if len(hidden) < len(order):
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)
    if hidden:
        figure.supxlabel(
            f"off the figure: {', '.join(hidden)}", fontsize=8, color=GREY, x=0.02, horizontalalignment="left"
        )
    return finished(figure, path, dark=False)
