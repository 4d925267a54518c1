"""Where the pure matrix Laplace noise is smaller than the Gaussian's: predicted and measured.

Predicted: d + 1 ≤ (ε/μ(ε, δ))² under add/remove, half of it under replace-one, from the deviations of a cell.
Measured: both mechanisms are drawn at the same widths, and their root mean square cells and mean operator
norms compared; matrix Laplace noise has the relatively larger norm, so by that measure it crosses earlier.

    python benchmarks/crossover.py            # writes results/crossover.md, about two minutes
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from dpgram.core.noise import SeededEntropy
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import Gaussian, MatrixLaplace, PublicFacts
from dpgram.privacy.adjacency import AddRemove, Adjacency, ReplaceOne
from dpgram.privacy.guarantee import Guarantee, gdp_mu_at_most

RESULT = Path(__file__).parent / "results" / "crossover.md"
EPSILONS = (0.1, 0.5, 1.0, 3.0, 10.0)
DELTAS = (1e-4, 1e-6, 1e-9, 1e-12)
MEASURED = ((1.0, 1e-6), (1.0, 1e-9), (0.1, 1e-6), (3.0, 1e-6))
CELLS = 50_000
LEAST_DRAWS = 50
WIDTHS = (2, 5, 10, 16, 25, 50)
"""Drawn cells of each mechanism at each width."""


def predicted(epsilon: float, delta: float, relation: Adjacency) -> int:
    """The widest table for which the pure noise is the smaller one."""
    ratio = (epsilon / gdp_mu_at_most(epsilon, delta)) ** 2
    return max(0, math.floor(ratio * (1.0 if relation == AddRemove() else 0.5) - 1.0))


def ratios(epsilon: float, delta: float, width: int, relation: Adjacency, seed: int) -> tuple[float, float]:
    """Matrix Laplace noise over Gaussian noise: root mean square of cells, and mean operator norm."""
    facts = PublicFacts(width=width, adjacency=relation)
    zero = np.zeros((width, width), dtype=np.int64)
    entropy = SeededEntropy(seed)
    squares, norms = [], []
    for mechanism in (
        MatrixLaplace().calibrated(Guarantee(epsilon), facts),
        Gaussian().calibrated(Guarantee(epsilon, delta), facts),
    ):
        count = CELLS // width**2 + LEAST_DRAWS
        drawn = np.stack([mechanism.draw(zero, entropy).cells for _ in range(count)]).astype(float)
        squares.append(math.sqrt(np.mean(drawn**2)))
        norms.append(float(np.mean(np.linalg.norm(drawn, 2, axis=(1, 2)))))
    return squares[0] / squares[1], norms[0] / norms[1]


def law_ratio(epsilon: float, delta: float, width: int, relation: Adjacency) -> tuple[float, float]:
    """The same two ratios from the stated noise laws."""
    facts = PublicFacts(width=width, adjacency=relation)
    laplace = MatrixLaplace().calibrated(Guarantee(epsilon), facts).law(width)
    gaussian = Gaussian().calibrated(Guarantee(epsilon, delta), facts).law(width)
    deviation = laplace.diagonal_sd / gaussian.diagonal_sd
    return deviation, laplace.expected_norm(width) / gaussian.expected_norm(width)


def measured_crossing(epsilon: float, delta: float, relation: Adjacency) -> tuple[float, float]:
    """The widths at which the two measured ratios pass one: √(d + 1) fitted around the predicted width."""
    middle = predicted(epsilon, delta, relation)
    widths = sorted({max(2, round(middle * factor)) for factor in (0.6, 0.8, 1.0, 1.2, 1.4)})
    found = np.array([ratios(epsilon, delta, width, relation, seed=width) for width in widths])
    roots = np.sqrt(np.array(widths) + 1.0)
    crossings = []
    for column in range(2):
        slope, intercept = np.polyfit(roots, found[:, column], 1)
        crossings.append(float(((1.0 - intercept) / slope) ** 2 - 1.0))
    return crossings[0], crossings[1]


def main() -> None:
    lines = [
        "# Gaussian or matrix Laplace: which has less noise",
        "",
        "Made by `benchmarks/crossover.py`. Widest encoded table (columns d) for which the *pure* release",
        "has a smaller standard deviation in every cell than the (ε, δ) one at the same ε. Beyond it `auto`",
        "takes the Gaussian (without a ledger; with one, both are compared at equal price).",
        "",
    ]
    for relation in (AddRemove(), ReplaceOne()):
        lines += [
            f"## {relation.name}: predicted width",
            "",
            "| ε \\ δ | " + " | ".join(f"{delta:g}" for delta in DELTAS) + " |",
            "|---|" + "---|" * len(DELTAS),
        ]
        for epsilon in EPSILONS:
            cells = [str(predicted(epsilon, delta, relation)) for delta in DELTAS]
            lines.append(f"| {epsilon:g} | " + " | ".join(cells) + " |")
        lines.append("")
    lines += [
        "## Predicted and measured crossing",
        "",
        "Each mechanism drawn at five widths around the prediction; the measured crossing is where the",
        "fitted ratio of noises is one. By operator norm the pure noise loses earlier: its largest",
        "eigenvalue is relatively larger (noise_norms.md).",
        "",
        "| adjacency | ε | δ | d by cells, predicted | measured | d by norm, predicted | measured |",
        "|---|---|---|---|---|---|---|",
    ]
    for relation in (AddRemove(), ReplaceOne()):
        for epsilon, delta in MEASURED:
            real = (epsilon / gdp_mu_at_most(epsilon, delta)) ** 2
            exact = real * (1.0 if relation == AddRemove() else 0.5) - 1.0
            by_law = [width for width in range(2, 60) if law_ratio(epsilon, delta, width, relation)[1] < 1.0]
            cells, norm = measured_crossing(epsilon, delta, relation)
            lines.append(
                f"| {relation.name} | {epsilon:g} | {delta:g} | {exact:.1f} | {cells:.1f} "
                f"| {max(by_law)} | {norm:.1f} |"
            )
    lines += [
        "",
        "## How much is at stake",
        "",
        "Both mechanisms at ε = 1, δ = 10⁻⁶, add/remove, in units of one full row's square.",
        "",
        "| d | matrix Laplace σ | Gaussian σ | ratio | measured ratio | norm ratio | measured norm ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for width in WIDTHS:
        facts = PublicFacts(width=width, adjacency=AddRemove())
        laplace = MatrixLaplace().calibrated(Guarantee(1.0), facts).law(width).diagonal_sd / ROW_NORM_SQUARED
        gaussian = (
            Gaussian().calibrated(Guarantee(1.0, 1e-6), facts).law(width).diagonal_sd / ROW_NORM_SQUARED
        )
        stated = law_ratio(1.0, 1e-6, width, AddRemove())
        seen = ratios(1.0, 1e-6, width, AddRemove(), seed=100 + width)
        lines.append(
            f"| {width} | {laplace:.3f} | {gaussian:.3f} | {stated[0]:.3f} | {seen[0]:.3f} "
            f"| {stated[1]:.3f} | {seen[1]:.3f} |"
        )
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
