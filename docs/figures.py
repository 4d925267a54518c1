"""The pictures of docs/explanation/for-curators.md, drawn by the library's own arithmetic.

python docs/figures.py     # writes them anew
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from scipy.stats import norm

import dpgram as dg
from dpgram.analysis.plots import BLUE, GREY, ORANGE, new_figure
from dpgram.privacy.guarantee import gdp_mu_at_most

FOLDER: Final = Path(__file__).resolve().parent / "explanation" / "figures"
GREEN: Final = "#009E73"
EPSILON: Final = 1.0
DELTA: Final = 1e-6


def two_worlds(path: Path) -> None:
    """What may be published of one cell, with one person in the table and without."""
    mu = gdp_mu_at_most(EPSILON, DELTA)
    figure, (axis,) = new_figure(3.2)
    x = np.linspace(-3.6, 3.8, 400)
    axis.fill_between(x, norm.pdf(x), color=BLUE, alpha=0.18)
    axis.plot(x, norm.pdf(x), color=BLUE, linewidth=2, label="without you")
    axis.fill_between(x, norm.pdf(x, mu), color=ORANGE, alpha=0.18)
    axis.plot(x, norm.pdf(x, mu), color=ORANGE, linewidth=2, linestyle="--", label="with you")
    axis.set_yticks([])
    axis.set_xticks([])
    axis.set_xlabel("what is published (the exact number plus noise)")
    axis.set_ylabel("how likely")
    axis.set_title("ε = 1, δ = 10⁻⁶: the same number is about as likely with you as without you", fontsize=11)
    axis.legend(frameon=False)
    figure.savefig(path, dpi=100)


def suspicion(path: Path) -> None:
    """How sure somebody can become at most, from what they thought before: odds grow by e^ε at most."""
    figure, (axis,) = new_figure(3.6)
    epsilon = np.geomspace(0.05, 10.0, 200)
    styles = [(0.5, BLUE, "-"), (0.1, ORANGE, "--"), (0.01, GREEN, "-.")]
    for before, colour, style in styles:
        odds = before / (1 - before) * np.exp(epsilon)
        axis.plot(
            epsilon,
            100 * odds / (1 + odds),
            color=colour,
            linestyle=style,
            linewidth=2,
            label=f"{before:.0%} sure before",
        )
    axis.set_xscale("log")
    axis.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axis.minorticks_off()
    axis.axvline(1.0, color=GREY, linewidth=0.8, linestyle=":")
    axis.set_ylim(0, 100)
    axis.set_xlabel("ε of everything published together")
    axis.set_ylabel("sure afterwards, at most (%)")
    axis.set_title("How far a suspicion about one person can grow", fontsize=11)
    axis.legend(frameon=False)
    figure.savefig(path, dpi=100)


def price(path: Path) -> None:
    """Standard errors with privacy over those without, by `dpgram.plan`."""
    schema = dg.Schema(
        dg.numeric("age", 18, 90),
        dg.numeric("bmi", 10, 60),
        dg.categorical("smoker", ["no", "yes"]),
        dg.numeric("charges", 0, 50_000),
    )
    figure, (axis,) = new_figure(3.6)
    epsilons = np.geomspace(0.1, 10.0, 13)
    for rows, colour, style in [(2_000, GREEN, "-."), (20_000, ORANGE, "--"), (200_000, BLUE, "-")]:
        ratios = []
        for epsilon in epsilons:
            plan = dg.plan(
                schema,
                epsilon=float(epsilon),
                delta=DELTA,
                rows=dg.Rows(expected=rows),
                mechanisms=["gaussian"],
                simulate=False,
            )
            best = plan.forecasts[0]
            ratios.append(best.se_ratio if best.works else np.nan)
        axis.plot(epsilons, ratios, color=colour, linestyle=style, linewidth=2, label=f"{rows:,} people")
    axis.axhline(1.0, color=GREY, linewidth=0.8, linestyle=":")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axis.set_yticks([1, 2, 5, 10], ["1 (no loss)", "2", "5", "10"])
    axis.minorticks_off()
    axis.set_ylim(0.9, 12)
    axis.set_xlabel("ε")
    axis.set_ylabel("intervals wider by a factor of")
    axis.set_title("What privacy costs in accuracy: less, the more people there are", fontsize=11)
    axis.legend(frameon=False)
    figure.savefig(path, dpi=100)


PICTURES: Final = {"two-worlds.png": two_worlds, "suspicion.png": suspicion, "price.png": price}


def main(folder: Path = FOLDER) -> None:
    """Draw all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        draw(folder / name)


if __name__ == "__main__":
    main()
