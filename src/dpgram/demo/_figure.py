"""The figure of the demonstration: every coefficient, private and exact, with one panel for each question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dpgram.analysis.design import INTERCEPT
from dpgram.demo.insurance import schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpgram.demo.run import Answer

BLUE: Final = "#0072B2"
ORANGE: Final = "#D55E00"


def draw(answers: Sequence[Answer], path: Path) -> None:
    """One panel for each target; each coefficient as its effect across its column's public range."""
    targets = list(dict.fromkeys(answer.target for answer in answers))
    shown = {t: [a for a in answers if a.target == t and a.name != INTERCEPT] for t in targets}
    heights = [len(shown[target]) + 1.2 for target in targets]
    figure = Figure(figsize=(8.0, 0.36 * sum(heights) + 1.1), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(targets), 1, height_ratios=heights)
    for axis, target in zip(np.atleast_1d(axes), targets, strict=True):
        _panel(axis, target, shown[target])
    figure.suptitle("Regressions from one private release, beside the exact ones", fontsize=12)
    handles, labels = np.atleast_1d(axes)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    figure.savefig(path)


def _panel(axis: Axes, target: str, answers: Sequence[Answer]) -> None:
    ranges = {column.name: 2 * column.half_width for column in schema().encoded if column.kind == "numeric"}
    scale = np.array([ranges.get(answer.name, 1.0) for answer in answers])
    place = np.arange(len(answers))[::-1]
    low, high, private, exact = (
        np.array([getattr(answer, field) for answer in answers]) * scale
        for field in ("low", "high", "private", "exact")
    )
    axis.axvline(0, color="#999999", linewidth=0.8)
    axis.hlines(place, low, high, color=BLUE, linewidth=5, alpha=0.35)
    axis.plot(private, place, "o", color=BLUE, markersize=6, label="private estimate, 95% interval")
    axis.plot(
        exact, place, "x", color=ORANGE, markersize=7, markeredgewidth=2, label="exact, from the table itself"
    )
    axis.set_yticks(place, [answer.name for answer in answers], fontsize=9)
    axis.set_ylim(-0.7, len(answers) - 0.3)
    axis.set_title(f"effect on {target}, across each column's public range", fontsize=10, loc="left")
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.tick_params(axis="x", labelsize=9)
    axis.spines[["top", "right", "left"]].set_visible(False)
