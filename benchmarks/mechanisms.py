"""Every mechanism of dpgram against the papers' own constants: calibrated noise, and errors on one matrix.

    python benchmarks/mechanisms.py calibration   # writes results/calibration-vs-papers.md, under a minute
    python benchmarks/mechanisms.py errors        # writes results/mechanisms.md, a few minutes on one core

Everything is in units of one full row's square (R = 1).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpgram.core.noise import SeededEntropy
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import MECHANISMS, InverseNoise, PublicFacts, Sketch
from dpgram.noise import NoiseLaw
from dpgram.noise.sampled import gram_of_inverse
from dpgram.privacy.adjacency import AddRemove, ReplaceOne
from dpgram.privacy.curves.wishart_calibrate import sketch_ratio_at_most
from dpgram.privacy.guarantee import Guarantee, gdp_mu_at_most
from dpgram_papers.amin import PrintedDeflation, PrintedEigenvectors, PrintedLaplace
from dpgram_papers.analyze_gauss import AnalyzeGauss
from dpgram_papers.kalaja import SufficientStatistics
from dpgram_papers.park_welling import OneSidedWishart
from dpgram_papers.sheffet import PrintedAdaptive, PrintedInverseWishart, PrintedSketch, PrintedWishart
from dpgram_papers.sheffet_inverse import PrintedInverseNoise
from dpgram_papers.variant import Variant
from dpgram_papers.wishart_degrees import wishart_degrees_at_least

Matrix = npt.NDArray[np.float64]
RESULTS = Path(__file__).parent / "results"
EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTAS = {"e⁻⁹": math.exp(-9.0), "10⁻⁶": 1e-6}
WIDTHS = (5, 22, 100)
ROWS = 100_000
REPEATS = 5
RIDGE = 0.01 * ROWS
"""L of the noise on the inverse: one percent of the rows."""


# Calibrated constants -----------------------------------------------------------------------------------


def settings() -> Iterator[tuple[str, Guarantee]]:
    for epsilon in EPSILONS:
        for name, delta in DELTAS.items():
            yield f"({epsilon:g}, {name})", Guarantee(epsilon, delta)


def table(title: str, head: list[str], rows: Iterator[list[str]]) -> list[str]:
    return [
        f"## {title}",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
    ]


def gaussian_rows() -> Iterator[list[str]]:
    for name, claimed in settings():
        printed = AnalyzeGauss(claimed=claimed).sigma
        ours = 1.0 / gdp_mu_at_most(claimed.epsilon, claimed.delta)
        replaced = math.sqrt(2.0) * ours
        # The printed noise has the full variance off the diagonal as well, where half is enough.
        yield [name, *(f"{x:.3f}" for x in (printed, ours, replaced, printed / ours))]


def sketch_rows() -> Iterator[list[str]]:
    for name, claimed in settings():
        for rows in (44, 200):
            text, appendix = (
                PrintedSketch(claimed=claimed, rows=rows, theorem=t).ridge for t in ("3.1", "B.1")
            )
            ours, replaced = (
                1.0 / sketch_ratio_at_most(claimed, a, degrees=rows) for a in (AddRemove(), ReplaceOne())
            )
            numbers = (text, appendix, ours, replaced)
            yield [
                name,
                str(rows),
                *(f"{x:.2f}" for x in numbers),
                *ratios((text, appendix), (ours, replaced)),
            ]


def ratios(printed: tuple[float, float], ours: tuple[float, float]) -> list[str]:
    """Text against add/remove and replace-one, then the appendix."""
    return [f"{a / b:.1f}" for a in printed for b in ours]


def wishart_rows() -> Iterator[list[str]]:
    width = 22
    for name, claimed in settings():
        text, appendix = (
            PrintedWishart(claimed=claimed, width=width, theorem=t).degrees for t in ("4.1", "B.3")
        )
        ours, replaced = (
            wishart_degrees_at_least(claimed, a, ratio=1.0) + width - 1 for a in (AddRemove(), ReplaceOne())
        )
        numbers = (text, appendix, ours, replaced)
        yield [name, *map(str, numbers), *ratios((text, appendix), (ours, replaced))]


def posterior_rows() -> Iterator[list[str]]:
    degrees = ROWS + 22
    for name, claimed in settings():
        text, appendix = (
            PrintedInverseWishart(claimed=claimed, degrees=degrees, theorem=t).prior for t in ("5.1", "B.4")
        )
        ours = 1.0 / sketch_ratio_at_most(claimed, ReplaceOne(), degrees=degrees)
        yield [name, *(f"{x:.1f}" for x in (text, appendix, ours, text / ours, appendix / ours))]


def inverse_rows() -> Iterator[list[str]]:
    for name, claimed in settings():
        cells = []
        for bound in (0.1, 1.0):
            variant = PrintedInverseNoise(claimed=claimed, bound=bound, surplus=1.0)
            needed = variant.sensitivity / gdp_mu_at_most(claimed.epsilon, claimed.delta)
            cells += [f"{variant.sigma:.3g}", f"{needed:.3g}", f"{variant.sigma / needed:.2f}"]
        yield [name, *cells]


def regression_rows() -> Iterator[list[str]]:
    for name, claimed in settings():
        wang, kalaja = (SufficientStatistics(claimed=claimed, constant=c) for c in ("wang", "kalaja"))
        two = SufficientStatistics(claimed=claimed, algorithm="ssp").needed_sigma
        numbers = (wang.sigma, kalaja.sigma, wang.needed_sigma, two)
        yield [name, *(f"{x:.2f}" for x in numbers), "yes" if wang.step_is_valid else "no"]


def pure_rows() -> Iterator[list[str]]:
    for width in WIDTHS:
        printed = PrintedLaplace(claimed=Guarantee(1.0), width=width).scale
        ours = [a.gram_l1(width, 1.0, diagonal=0.5 ** (1.0 / 3.0)) for a in (AddRemove(), ReplaceOne())]
        yield [
            str(width),
            f"{printed:.1f}",
            *(f"{x:.2f}" for x in ours),
            *(f"{printed / x:.2f}" for x in ours),
        ]


def calibration() -> list[str]:
    lines = [
        "# Calibrated noise against the papers' constants",
        "",
        'Made by `python benchmarks/mechanisms.py calibration`. Rows |x| ≤ 1. "Ours" is the least noise on',
        "the exact curve, under add/remove and under replace-one; the papers' claims are about replaced rows",
        "(Analyze Gauss, SSP and AdaSSP: added or removed). A ratio is printed over ours.",
        "",
    ]
    both = ["/ add-remove", "/ replace-one"]
    lines += table(
        "Gaussian: σ of a diagonal cell",
        ["(ε, δ)", "Analyze Gauss", "ours", "ours, replace-one", "ratio"],
        gaussian_rows(),
    )
    lines += table(
        "Sketch: ridge w²",
        ["(ε, δ)", "r", "Thm 3.1", "Thm B.1", "add-remove", "replace-one"]
        + [f"{t} {b}" for t in ("3.1", "B.1") for b in both],
        sketch_rows(),
    )
    lines += table(
        "Additive Wishart: degrees of freedom k for scale 1, d = 22",
        ["(ε, δ)", "Thm 4.1", "Thm B.3", "add-remove", "replace-one"]
        + [f"{t} {b}" for t in ("4.1", "B.3") for b in both],
        wishart_rows(),
    )
    lines += ["(Theorem 4.1 claims nothing for ε ≥ 1.)", ""]
    lines += table(
        f"Inverse Wishart: prior ψ for ν = {ROWS} + 22, replace-one",
        ["(ε, δ)", "Thm 5.1", "Thm B.4", "ours", "5.1 / ours", "B.4 / ours"],
        posterior_rows(),
    )
    lines += table(
        "Noise on the inverse: σ, ρ = 1, replace-one (a ratio below 1 is too little noise)",
        ["(ε, δ)", "B = 0.1: Thm B.5", "needed", "ratio", "B = 1: Thm B.5", "needed", "ratio"],
        inverse_rows(),
    )
    lines += table(
        "SSP and AdaSSP: noise multiplier",
        ["(ε, δ)", "AdaSSP", "Kalaja", "three joint shares", "two joint shares", "AdaSSP's step valid"],
        regression_rows(),
    )
    lines += table(
        "Entrywise Laplace: scale of an off-diagonal cell at ε = 1",
        ["d", "2d/ε", "add-remove", "replace-one", "ratio", "ratio, replace-one"],
        pure_rows(),
    )
    lines += [
        "Eigenvector sampling: inverse temperature ε_i/4 as printed; ε_i/2 is allowed under replace-one, ε_i",
        "under add/remove. Eigenvalues: Lap(2/ε₀) as printed and under replace-one, else Lap(1/ε₀).",
    ]
    return lines


ERRORS_INTRODUCTION = f"""\
Made by `python benchmarks/mechanisms.py errors`. One synthetic Gram matrix for each width: n = {ROWS:,}
rows of length 1, eigenvalues ∝ 1/i. A cell is the Frobenius, then the spectral distance to it, the mean of
{REPEATS} draws, in units of one row's square; the known mean of the noise is subtracted and nothing else is
repaired. Ours are calibrated for add/remove; *as printed* in italics, for the papers' replaced rows (Analyze
Gauss: added or removed). Both sketches have the same r, which ours chooses; ν is n for ours and n + d as
printed. The noise on the inverse has the ridge L = n/100, and as printed a promise that is exactly true.
Theorems 4.1 and B.5 claim nothing for ε ≥ 1; their constants are used all the same.
"""


# Errors -------------------------------------------------------------------------------------------------


def synthetic(width: int) -> npt.NDArray[np.int64]:
    """n full-length rows whose second moments have eigenvalues ∝ 1/i in a random basis, on the lattice."""
    generator = np.random.default_rng(width)
    basis = np.linalg.qr(generator.standard_normal((width, width)))[0]
    values = 1.0 / np.arange(1, width + 1)
    values *= ROWS / values.sum()
    gram = np.rint((basis * values) @ basis.T * ROW_NORM_SQUARED).astype(np.int64)
    return np.tril(gram) + np.tril(gram, -1).T


@dataclass(frozen=True)
class Contestant:
    """A name and a way to one centred estimate of the Gram matrix."""

    name: str
    draw: Callable[[SeededEntropy], Matrix]


def of_mechanism(name: str, guarantee: Guarantee, cells: npt.NDArray[np.int64]) -> Contestant:
    width = len(cells)
    facts = PublicFacts(width=width, adjacency=AddRemove(), rows=ROWS)
    kind = MECHANISMS[name]
    asked = InverseNoise(ridge=RIDGE) if kind is InverseNoise else kind().guessed(facts)
    mechanism = asked.calibrated(guarantee, facts)
    exact = cells.astype(np.float64)
    first = mechanism.draw(cells, SeededEntropy(0)).noise

    def draw(entropy: SeededEntropy) -> Matrix:
        # An adaptive mechanism's law differs from draw to draw; the others are redrawn from theirs.
        law = mechanism.draw(cells, entropy).noise if name.endswith("-adaptive") else first
        drawn = law.redraw(exact, entropy.generator()) - law.mean_diagonal * np.eye(width)
        return np.asarray(drawn / ROW_NORM_SQUARED)

    kind = "" if isinstance(first, NoiseLaw) else ", sampled"
    return Contestant(f"{name}{kind}", draw)


def of_variant(variant: Variant, gram: Matrix, shift: float = 0.0) -> Contestant:
    mark = "" if variant.private else " (NOT PRIVATE)"
    return Contestant(
        f"*{variant.name}*{mark}", lambda entropy: variant.draw(gram, entropy) - shift * np.eye(len(gram))
    )


def of_printed_inverse(guarantee: Guarantee, gram: Matrix) -> Contestant:
    """Theorem B.5 under its promise, turned back into a Gram matrix as ours is."""
    least = float(np.linalg.eigvalsh(gram)[0])
    variant = PrintedInverseNoise(claimed=guarantee, bound=1.0, surplus=least - 1.0)

    def draw(entropy: SeededEntropy) -> Matrix:
        noisy = variant.draw(gram, entropy)
        return gram_of_inverse(noisy, least, variant.sigma) + least * np.eye(len(gram))

    return Contestant(f"*{variant.name}*, promised λ_min", draw)


def contestants(guarantee: Guarantee, cells: npt.NDArray[np.int64]) -> Iterator[Contestant]:
    gram, width = cells / ROW_NORM_SQUARED, len(cells)
    if guarantee.pure:
        for name in ("matrix-laplace", "laplace", "eigenvectors", "deflation"):
            yield of_mechanism(name, guarantee, cells)
        one_sided = OneSidedWishart(claimed=guarantee)
        yield of_variant(PrintedLaplace(claimed=guarantee, width=width), gram)
        yield of_variant(PrintedEigenvectors(claimed=guarantee, split="adaptive"), gram)
        yield of_variant(PrintedEigenvectors(claimed=guarantee, split="uniform"), gram)
        yield of_variant(PrintedDeflation(claimed=guarantee), gram)
        yield of_variant(one_sided, gram, (width + 1) * one_sided.scale)
        return
    pure = {"matrix-laplace", "laplace", "eigenvectors", "deflation"}
    for name in (name for name in MECHANISMS if name not in pure):
        yield of_mechanism(name, guarantee, cells)
    facts = PublicFacts(width=width, adjacency=AddRemove(), rows=ROWS)
    rows = Sketch().calibrated(guarantee, facts).rows
    sketch = PrintedSketch(claimed=guarantee, rows=rows)
    wishart = PrintedWishart(claimed=guarantee, width=width)
    posterior = PrintedInverseWishart(claimed=guarantee, degrees=ROWS + width)
    yield of_variant(AnalyzeGauss(claimed=guarantee), gram)
    yield of_variant(wishart, gram, float(wishart.degrees))
    yield of_variant(sketch, gram, sketch.ridge)
    yield of_variant(PrintedAdaptive(claimed=guarantee, degrees=rows, algorithm=2), gram)
    yield of_variant(posterior, gram, posterior.prior)
    yield of_variant(PrintedAdaptive(claimed=guarantee, degrees=ROWS + width, algorithm=5), gram)
    yield of_printed_inverse(guarantee, gram)


def errors_of(contestant: Contestant, gram: Matrix) -> str:
    entropy = SeededEntropy(7)
    found = []
    for _ in range(REPEATS):
        error = contestant.draw(entropy) - gram
        found.append((np.linalg.norm(error), np.linalg.norm(error, 2)))
    frobenius, spectral = np.mean(found, axis=0)
    return f"{frobenius:.4g}, {spectral:.4g}"


def errors() -> list[str]:
    lines = [
        "# Errors of every mechanism, ours against as printed",
        "",
        *ERRORS_INTRODUCTION.splitlines(),
        "",
        *(
            f"- d = {width}: |G|_F = {np.linalg.norm(synthetic(width) / ROW_NORM_SQUARED):.4g}, "
            f"λ_min = {np.linalg.eigvalsh(synthetic(width) / ROW_NORM_SQUARED)[0]:.4g}"
            for width in WIDTHS
        ),
        "",
    ]
    for label, delta in {**DELTAS, "0": 0.0}.items():
        for width in WIDTHS:
            cells = synthetic(width)
            gram = cells / ROW_NORM_SQUARED
            found: dict[str, list[str]] = {}
            for epsilon in EPSILONS:
                started = time.perf_counter()
                for contestant in contestants(Guarantee(epsilon, delta), cells):
                    found.setdefault(contestant.name, []).append(errors_of(contestant, gram))
                print(
                    f"δ = {label}, d = {width}, ε = {epsilon}: {time.perf_counter() - started:.1f} s",
                    flush=True,
                )
            head = ["mechanism", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)]
            lines += table(f"δ = {label}, d = {width}", head, ([name, *row] for name, row in found.items()))
    return lines


def main() -> None:
    what = sys.argv[1] if len(sys.argv) > 1 else "calibration"
    name, made = {
        "calibration": ("calibration-vs-papers.md", calibration),
        "errors": ("mechanisms.md", errors),
    }[what]
    (RESULTS / name).write_text("\n".join(made()).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
