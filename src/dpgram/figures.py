"""Figures in our colours: Okabe and Ito's palette and cividis, both readable with any colour vision.

Needs matplotlib (the extra `plot`). Every figure is legible at 800 pixels width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.errors import DpgramError, MissingExtra
from dpgram.files import written

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Vector = npt.NDArray[np.float64]

BLUE: Final = "#0072B2"
ORANGE: Final = "#D55E00"
GREY: Final = "#666666"
LIGHT: Final = "#B8B8B8"
NIGHT: Final = "#14191D"
PAPER: Final = "#E8EDF1"
DIVERGING: Final = ("#5B3C99", "#A99CCB", "#FFFFFF", "#F0A558", "#B35806")
"""Of correlations from −1 to 1: purple is negative, orange positive. In the page the middle is the ground."""
WIDE: Final = 3.0
"""An interval that reaches this many times farther than the median one is cut off at the edge of a chart, and
says so by an arrow and its number."""
CONVENTIONS: Final[Mapping[str, object]] = {
    "diverging": DIVERGING,
    "effects": "change of {target} over the column's public range, or against the reference level",
    "fitted": "fitted ({method})",
    "unshrunken": "un-shrunken, {level}% interval ({kind})",
    "wide": WIDE,
}
"""What figures and the explorer's charts have in common."""
DPI: Final = 100
WIDTH: Final = 8.0
"""Inches; 800 pixels at 100 dots per inch."""


def shortened(names: Sequence[str], longest: int) -> list[str]:
    """Names cut to a length so that no two look alike: where the beginnings do, the middle is cut out."""
    ends = [_cut(name, longest) for name in names]
    head = (longest - 1) // 3
    middles = [
        short if short == name or ends.count(short) == 1 else f"{name[:head]}…{name[head + 1 - longest :]}"
        for name, short in zip(names, ends, strict=True)
    ]
    return [
        short if middles.index(short) == place else f"{place + 1}: {_cut(short, longest - 5)}"
        for place, short in enumerate(middles)
    ]


def _cut(name: str, longest: int) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"


def limits(low: Vector, high: Vector, estimate: Vector, fitted: Vector) -> tuple[float, float]:
    """As far as an axis goes: a few intervals much wider than the others must not flatten these."""
    clear = (low > 0.0) | (high < 0.0)
    centres = np.concatenate([fitted, estimate[clear]])
    most = 1.25 * float(np.abs(centres).max(initial=0.0))
    if len(low):
        most = max(most, WIDE * float(np.median(np.maximum(np.abs(low), np.abs(high)))))
    seen = np.concatenate([centres, np.clip(low, -most, most), np.clip(high, -most, most), [0.0]])
    room = 0.05 * float(np.ptp(seen)) or 1.0
    return float(seen.min()) - room * (seen.min() < 0.0), float(seen.max()) + room * (seen.max() > 0.0)


def new_figure(height: float, columns: int = 1) -> tuple[Figure, Sequence[Axes]]:
    """A figure of its own, without pyplot: no global state, no window."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    figure = _shown_in_notebooks()(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = [figure.add_subplot(1, columns, i + 1) for i in range(columns)]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


@cache
def _shown_in_notebooks() -> type[Figure]:
    """A figure that shows itself: matplotlib leaves that to pyplot, which keeps every figure it has made."""
    from matplotlib.figure import Figure

    @final
    class NotebookFigure(Figure):
        def _repr_png_(self) -> bytes:
            stream = BytesIO()
            self.savefig(stream, format="png", dpi=DPI)
            return stream.getvalue()

    return NotebookFigure


def finished(figure: Figure, path: str | Path | None, *, dark: bool) -> Figure:
    """In the right colours; written as PNG, SVG or PDF, as the name of the file says.

    A figure that is there is replaced, as plotting libraries do: it can be drawn again.
    """
    if dark:
        _darken(figure)
    if path is not None:
        stream = BytesIO()
        figure.savefig(stream, format=format_of(path), dpi=DPI)
        written(path, stream.getvalue(), overwrite=True)
    return figure


def format_of(path: str | Path) -> str:
    """What the name of a figure's file says, without its point; refused where nothing draws it."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    file = Path(path)
    ending = file.suffix.removeprefix(".").lower()
    if ending not in FigureCanvasBase.get_supported_filetypes():
        raise DpgramError(
            "the name of a figure's file must end in its format",
            got=repr(file.name),
            limit=".png, .svg, .pdf",
            remedy=f"Name it {file.stem}.png",
        )
    return ending


def _darken(figure: Figure) -> None:
    """Light writing on a dark ground. Marks keep their colours: they stand out on both."""
    figure.set_facecolor(NIGHT)
    legends = [*figure.legends, *(axis.get_legend() for axis in figure.axes)]
    texts = [text for legend in legends if legend is not None for text in legend.get_texts()]
    for axis in figure.axes:
        axis.tick_params(colors=PAPER, which="both")
        axis.spines[:].set_color(GREY)
        texts += [axis.xaxis.label, axis.yaxis.label, axis.title, axis.xaxis.get_offset_text()]
        texts.append(axis.yaxis.get_offset_text())
        axis.set_title(axis.get_title(loc="left"), loc="left", color=PAPER)
        if not axis.images:  # a heat map has its own colours, and numbers written on them
            axis.set_facecolor(NIGHT)
            texts += axis.texts
    for text in texts:
        text.set_color(PAPER)
