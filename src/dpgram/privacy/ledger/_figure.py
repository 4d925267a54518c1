"""A ledger's history as a picture: what each charge took of the budget. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpgram.figures import BLUE, LIGHT, ORANGE, finished, new_figure
from dpgram.privacy.ledger import Ledger
from dpgram.privacy.ledger.history import ledger_history

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_NUMBERED = 20


def ledger_plot(ledger: Ledger, *, path: str | Path | None = None, dark: bool = False) -> Figure:
    """Spent so far after each charge, as a share of the budget; the charge itself on top."""
    lines = ledger_history(ledger)
    shares = np.array([line.share for line in lines])
    before = np.concatenate([[0.0], np.cumsum(shares)])[:-1] if lines else shares
    numbers = np.array([line.number for line in lines])
    figure, (axis,) = new_figure(4.2)
    axis.bar(numbers, before, color=LIGHT, width=0.7, label="spent before")
    axis.bar(numbers, shares, bottom=before, color=BLUE, width=0.7, label="this charge")
    axis.axhline(1.0, color=ORANGE, linewidth=1.8, linestyle="--", label="the whole budget")
    axis.set_ylim(0.0, 1.12)
    axis.set_xlim(0.4, max(len(lines), 4) + 0.6)
    step = 1 if len(lines) <= MOST_NUMBERED else -(-len(lines) // MOST_NUMBERED)
    axis.set_xticks(numbers[::step].tolist())
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axis.set_xlabel("charge")
    axis.set_ylabel("share of the budget")
    budget = ledger.guarantee
    axis.set_title(
        f"Budget ε = {budget.epsilon:g}, δ = {budget.delta:g}: {shares.sum():.1%} spent", loc="left"
    )
    figure.legend(loc="outside lower left", frameon=False, ncols=3)
    return finished(figure, path, dark=dark)
