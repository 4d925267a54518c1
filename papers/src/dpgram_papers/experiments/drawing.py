"""Figures in the papers' layout: panels side by side, theirs in their colours, ours dashed in orange."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dpgram.errors import MissingExtra

Array: TypeAlias = npt.NDArray[np.float64]

OURS: Final = "#D55E00"
"""The colour of what dpgram adds to a figure."""
_SALT: Final = "dpgram"
"""Makes the names inside an SVG file the same every time."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One curve; `spread` is drawn as a bar of that length up and down."""

    label: str
    x: Sequence[float] | Array
    y: Sequence[float] | Array
    colour: str = "black"
    marker: str = ""
    dashed: bool = False
    spread: Sequence[float] | Array | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes."""

    title: str
    lines: tuple[Line, ...]
    x_label: str
    y_label: str
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    y_range: tuple[float, float] | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PaperFigure:
    """One figure."""

    title: str
    panels: tuple[Panel, ...]
    columns: int
    note: str = ""


def ours(label: str, x: Sequence[float] | Array, y: Sequence[float] | Array, *, marker: str = "D") -> Line:
    """A curve that the paper does not have."""
    return Line(label=label, x=x, y=y, colour=OURS, marker=marker, dashed=True)


def draw(paper_figure: PaperFigure, stem: Path) -> tuple[Path, Path]:
    """`stem`.png and `stem`.svg."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None

    columns = min(paper_figure.columns, len(paper_figure.panels))
    rows = -(-len(paper_figure.panels) // columns)
    figure: Any = Figure(figsize=(3.7 * columns + 0.6, 3.0 * rows + 1.3), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
    for axis, panel in zip(axes, paper_figure.panels, strict=False):
        _panel(axis, panel)
    for axis in axes[len(paper_figure.panels) :]:
        axis.set_visible(False)
    figure.suptitle(paper_figure.title, fontsize=11)
    shown: dict[str, Any] = {}
    for axis in axes[: len(paper_figure.panels)]:
        handles, labels = axis.get_legend_handles_labels()
        shown |= {label: handle for label, handle in zip(labels, handles, strict=True) if label not in shown}
    note = f"{paper_figure.note}\n" if paper_figure.note else ""
    figure.legend(
        shown.values(),
        shown.keys(),
        loc="outside lower center",
        ncols=min(4, max(1, columns + 1)),
        frameon=False,
        fontsize=8,
        title=f"{note}NOT PRIVATE: an experiment on public data",
        title_fontsize=8,
    )
    # Not with_suffix: "figure-4.3" has a dot of its own.
    png, svg = stem.parent / f"{stem.name}.png", stem.parent / f"{stem.name}.svg"
    figure.savefig(png, dpi=110, metadata={"Software": None})
    with mpl.rc_context({"svg.hashsalt": _SALT, "svg.fonttype": "none"}):
        figure.savefig(svg, metadata={"Date": None, "Creator": None})
    return png, svg


def _panel(axis: Any, panel: Panel) -> None:
    for line in panel.lines:
        axis.errorbar(
            np.asarray(line.x, dtype=np.float64),
            np.asarray(line.y, dtype=np.float64),
            yerr=None if line.spread is None else np.nan_to_num(np.asarray(line.spread, dtype=np.float64)),
            color=line.colour,
            marker=line.marker or None,
            linestyle="--" if line.dashed else "-",
            linewidth=1.3,
            markersize=3.6,
            elinewidth=0.6,
            label=line.label,
            zorder=3 if line.colour == OURS else 2,
        )
    axis.set_xscale(panel.x_scale)
    axis.set_yscale(panel.y_scale)
    if panel.y_range is not None:
        axis.set_ylim(*panel.y_range)
    axis.set_title(panel.title, fontsize=9)
    axis.set_xlabel(panel.x_label, fontsize=8)
    axis.set_ylabel(panel.y_label, fontsize=8)
    axis.tick_params(labelsize=7)
    axis.grid(visible=True, linewidth=0.3, alpha=0.5)
