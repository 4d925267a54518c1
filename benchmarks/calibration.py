"""How long one calibration takes: the Gaussian is promised in under a millisecond.

python benchmarks/calibration.py            # writes results/calibration.md, a few seconds
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from dpgram.privacy.adjacency import AddRemove, ReplaceOne
from dpgram.privacy.curves.calibrate import discrete_gaussian_sigma, gaussian_sigma, stacked_sigmas
from dpgram.privacy.curves.wishart_calibrate import (
    adaptive_ratio_at_most,
    sketch_ratio_at_most,
)
from dpgram.privacy.guarantee import GaussianDP, Guarantee, gdp_mu_at_most, rho_at_most
from dpgram_papers.wishart_degrees import wishart_degrees_at_least

RESULT = Path(__file__).parent / "results" / "calibration.md"
REPEATS = 25
SETTINGS = [(0.001, 1e-30), (0.1, 1e-9), (1.0, 1e-6), (10.0, 1e-12), (50.0, 0.5)]


ASKED = Guarantee(1.0, 1e-6)
WISHART: dict[str, Callable[[], object]] = {
    "ridge of a sketch, r = 44, add-remove": lambda: sketch_ratio_at_most(ASKED, AddRemove(), degrees=44),
    "ridge of a sketch, r = 44, replace-one": lambda: sketch_ratio_at_most(ASKED, ReplaceOne(), degrees=44),
    "ridge of a sketch, r = 10¹¹, replace-one": lambda: sketch_ratio_at_most(
        ASKED, ReplaceOne(), degrees=1e11
    ),
    "adaptive ridge, r = 44, replace-one": lambda: adaptive_ratio_at_most(
        ASKED, ReplaceOne(), degrees=44, mu=0.06, beta=2.5e-7
    ),
    "degrees of additive Wishart, τ = 1, add-remove": lambda: wishart_degrees_at_least(
        ASKED, AddRemove(), ratio=1.0
    ),
    "degrees of additive Wishart, τ = 1, replace-one": lambda: wishart_degrees_at_least(
        ASKED, ReplaceOne(), ratio=1.0
    ),
}


def median_milliseconds(call: Callable[[float, float], object]) -> tuple[float, float]:
    """(median, ninth decile) over the settings and repeats."""
    times = []
    for _ in range(REPEATS):
        for epsilon, delta in SETTINGS:
            start = time.perf_counter()
            call(epsilon, delta)
            times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times), statistics.quantiles(times, n=10)[-1]


def main() -> None:
    calls: dict[str, Callable[[float, float], object]] = {
        "gaussian_sigma": lambda e, d: gaussian_sigma(epsilon=e, delta=d, sensitivity=1.0),
        "discrete_gaussian_sigma": lambda e, d: discrete_gaussian_sigma(
            epsilon=e, delta=d, sensitivity=2.0**30
        ),
        "gdp_mu_at_most": gdp_mu_at_most,
        "GaussianDP.epsilon_at_most": lambda e, d: GaussianDP(min(e, 1.0)).epsilon_at_most(d),
        "rho_at_most": rho_at_most,
        "stacked_sigmas, replace-one": lambda e, d: stacked_sigmas(
            ReplaceOne(), mu=gdp_mu_at_most(e, d), x_norm=1.0, y_bound=0.5, costs=(1.0, 2.0, 0.5)
        ),
    }
    lines = [
        "# Time of one calibration",
        "",
        f"Python {platform.python_version()}, one core, {REPEATS} repeats of",
    ]
    lines += [f"(ε, δ) in {SETTINGS}.", "", "| call | median, ms | nine in ten below, ms |", "|---|---|---|"]
    for name, call in calls.items():
        call(1.0, 1e-6)
        median, slow = median_milliseconds(call)
        lines.append(f"| `{name}` | {median:.3f} | {slow:.3f} |")
    lines += ["", "The Wishart family at (1, 10⁻⁶), once each.", "", "| call | ms |", "|---|---|"]
    for name, once in WISHART.items():
        start = time.perf_counter()
        once()
        lines.append(f"| {name} | {1e3 * (time.perf_counter() - start):.0f} |")
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
