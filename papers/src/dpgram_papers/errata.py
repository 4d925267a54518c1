"""The errata page: what the papers print, and what is true, computed from the variants.

python -m dpgram_papers.errata > docs/reference/errata.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from dpgram.privacy.adjacency import ReplaceOne
from dpgram.privacy.curves.search import least
from dpgram.privacy.curves.wishart_calibrate import sketch_degrees_at_most
from dpgram.privacy.guarantee import Guarantee
from dpgram_papers.amin import PrintedDeflation, PrintedEigenvectors, PrintedLaplace
from dpgram_papers.amin_sampler import PrintedSampler
from dpgram_papers.analyze_gauss import AnalyzeGauss
from dpgram_papers.bounds import (
    corollary_step,
    even_share_eigenvalue,
    exponential_mechanism_of_many,
    failures_of_corollary,
    failures_of_wishart_bound,
    failures_of_wishart_norm,
    gaussian_tail,
    printed_even_share_eigenvalue,
)
from dpgram_papers.experiments.claims import table
from dpgram_papers.kalaja import SufficientStatistics
from dpgram_papers.measured_bounds import AMIN_WIDTH, DRAWS, FAILURE, amin_gram, measured_bounds
from dpgram_papers.park_welling import OneSidedWishart, concentrated_overshoot, divergence_ratio
from dpgram_papers.sheffet import (
    PrintedAdaptive,
    PrintedInverseWishart,
    PrintedSketch,
    PrintedWishart,
    corollary_rows,
    sketch_ridge,
)
from dpgram_papers.sheffet_inverse import PrintedInverseNoise
from dpgram_papers.variant import Variant

TIGHT: Final = Guarantee(0.1, 1e-6)
USUAL: Final = Guarantee(1.0, 1e-6)
PURE: Final = Guarantee(1.0)
SKETCH_ROWS: Final = 44
WIDTH: Final = 22
POSTERIOR_DEGREES: Final = 100_022


def variants() -> tuple[Variant, ...]:
    """Every variant at the setting the page shows; those that fail, at a setting where they do."""
    return (
        AnalyzeGauss(claimed=USUAL),
        AnalyzeGauss(claimed=USUAL, repair="scaled"),
        AnalyzeGauss(claimed=USUAL, repair="zeroed"),
        AnalyzeGauss(claimed=TIGHT, constant="sheffet", adjacency=ReplaceOne()),
        PrintedSketch(claimed=USUAL, rows=SKETCH_ROWS, theorem="3.1"),
        PrintedSketch(claimed=USUAL, rows=SKETCH_ROWS, theorem="B.1"),
        PrintedSketch(claimed=TIGHT, rows=SKETCH_ROWS, theorem="B.2"),
        PrintedAdaptive(claimed=USUAL, degrees=SKETCH_ROWS, algorithm=2),
        PrintedWishart(claimed=USUAL, width=WIDTH, theorem="4.1"),
        PrintedWishart(claimed=USUAL, width=WIDTH, theorem="B.3"),
        PrintedInverseWishart(claimed=USUAL, degrees=POSTERIOR_DEGREES, theorem="5.1"),
        PrintedInverseWishart(claimed=USUAL, degrees=POSTERIOR_DEGREES, theorem="B.4"),
        PrintedAdaptive(claimed=USUAL, degrees=SKETCH_ROWS, algorithm=5),
        PrintedInverseNoise(claimed=Guarantee(0.5, 1e-6), bound=0.1, surplus=1.0),
        OneSidedWishart(claimed=PURE),
        PrintedEigenvectors(claimed=PURE, split="adaptive"),
        PrintedEigenvectors(claimed=PURE, split="uniform"),
        PrintedSampler(claimed=PURE, width=WIDTH),
        PrintedDeflation(claimed=PURE),
        PrintedLaplace(claimed=PURE, width=WIDTH),
        SufficientStatistics(claimed=USUAL, algorithm="adassp", constant="wang"),
        SufficientStatistics(claimed=USUAL, algorithm="adassp", constant="kalaja"),
        SufficientStatistics(claimed=USUAL, algorithm="adassp", constant="analytic"),
        SufficientStatistics(claimed=USUAL, algorithm="ssp", constant="wang"),
        SufficientStatistics(claimed=USUAL, algorithm="ssp", constant="wang-code"),
        SufficientStatistics(claimed=USUAL, algorithm="ssp", constant="kalaja"),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """An erratum that is no mechanism of its own."""

    where: str
    printed: str
    truth: str


def remarks() -> tuple[Remark, ...]:
    """The rest, with the numbers computed."""
    wide, narrow = concentrated_overshoot(10.0, 2), concentrated_overshoot(0.1, 50)
    public = 1000.0
    exact = sketch_degrees_at_most(USUAL, ReplaceOne(), ratio=1.0 / (public - 1.0))
    consistent = corollary_rows(USUAL, public, corrected=True)
    printed = corollary_rows(USUAL, public, corrected=False)
    ratio = sketch_ridge("B.2", TIGHT, SKETCH_ROWS) / sketch_ridge("B.1", TIGHT, SKETCH_ROWS)
    step = SufficientStatistics(claimed=USUAL)
    at_two, above = (failures_of_wishart_bound(2, 50, ratio, 0.1) for ratio in (2.0, 2.2))
    corollary = failures_of_corollary(1, 0.36, 10.0)
    norm, inverse = failures_of_wishart_norm(20, 43, 0.3)
    seen, printed_four, mended_four = exponential_mechanism_of_many(1000, 1.0)
    verb = "is" if step.step_is_valid else "is not"
    return (
        Remark(
            where="Park and Welling §3",
            printed="dropping the positive terms of the series bounds the cost",
            truth=(
                f"it bounds it from below: the cited theorem gives {narrow:.2f} to {wide:.2f} times ε "
                "(ε = 0.1, J = 50 to ε = 10, J = 2). The ε' = √(ε/J) is right all the same, by "
                f"KL ≤ ε' tanh(ε'/2): {divergence_ratio(10.0, 2):.2f} to {divergence_ratio(0.1, 50):.2f} "
                "times ε, and in zCDP"
            ),
        ),
        Remark(
            where="Sheffet Cor. B.2, w²",
            printed="w² ≥ 8B²√(r ln(4/δ)) suffices for Theorem B.1",
            truth=f"the 1/ε is missing: {ratio:.2f} of B.1's ridge at ε = 0.1, r = {SKETCH_ROWS}",
        ),
        Remark(
            where="Sheffet Cor. B.2, r",
            printed=f"r = ⌈(εw²/(8B² ln(4/δ)))²⌉ = {printed} for w² = 1000 B², ε = 1, δ = 10⁻⁶",
            truth=(
                f"its own w² gives ln(4/δ) to the first power, r = {consistent}; the exact curve allows "
                f"{exact}, {exact / consistent:.0f} times that"
            ),
        ),
        Remark(
            where="Sheffet Thm B.4",
            printed="ψ has the factor 1/(1 − ε/(2 ln(4/δ)))",
            truth=(
                "negative for ε > 2 ln(4/δ), and without bound as ε comes near it: the theorem needs "
                f"ε < 2 ln(4/δ), {2.0 * math.log(4.0 / USUAL.delta):.1f} at δ = 10⁻⁶"
            ),
        ),
        Remark(
            where="Sheffet Thm 4.1, B.3",
            printed="δ < 1/e is enough",
            truth=(
                "the last step of the proof drops −2 ln(4/δ) + 6 and so needs ln(4/δ) ≥ 3, "
                f"δ ≤ {4.0 * math.exp(-3.0):.3f}"
            ),
        ),
        Remark(
            where="Sheffet Alg. 4 (ν = n + d)",
            printed="ν depends on the number of rows",
            truth="right when rows are replaced; under add/remove ν itself tells, and dpgram refuses it",
        ),
        Remark(
            where="Sheffet Thm 4.2 (C.3)",
            printed="|β̃ − β̂| ≤ |β̂|/(C − 1) + (C − 2)/(C − 1)·… with probability 1 − ν, C ≥ 2",
            truth=(
                f"false: for y = 0 and C = 2 the bound is 0 and fails in {at_two:.0%} of draws, at C = 2.2 "
                f"in {above:.0%}, where 10% are allowed (p = 2, k = 50). Mended, for every C > 0: "
                "|β̂|/C + (√k + t)(√p + t)/σ_min, t = √(2 ln(4/ν)); see below"
            ),
        ),
        Remark(
            where="Sheffet Thm C.1, Cor. C.2, last step",
            printed="σ(√p + √(2 ln(2/ν)))/((1 − η)σ_min) ≤ η/C for every p ≥ 1 and ν < 1/e",
            truth=(
                "not for few columns: at η = ½, as in C.2, the left side is "
                f"{corollary_step(1, 0.05):.2f} times the right for p = 1, ν = 0.05 and "
                f"{corollary_step(2, 0.3):.2f} times for p = 2, ν = 0.3, and for η > ½ also η/(1 − η) is "
                "more than 2η. Only the proof fails. C.2 holds for every p, since ‖N‖ is at most η/2 of "
                f"σ_min, not η (`dpgram_papers.bounds.corollary_step`): it failed in {corollary:.1%} of "
                "draws at p = 1, ν = 0.36, where 36% are allowed"
            ),
        ),
        Remark(
            where="Sheffet App. C, Woodbury",
            printed="(A + UV)⁻¹ = A⁻¹ − A⁻¹U(I − VA⁻¹U)⁻¹VA⁻¹",
            truth="I + VA⁻¹U; this is what makes C.3 false, while C.1 survives it, as N and −N have one law",
        ),
        Remark(
            where="Sheffet Lemma A.3, second part",
            printed=(
                "‖αV − X‖ ≤ ‖V‖·|α − (√m − s)²| and ‖(αV)⁻¹ − X⁻¹‖ ≤ σ_min⁻¹(V)·|α⁻¹ − (√m + s)⁻²|, 0 < α ≤ m"
            ),
            truth=(
                "the signs are the wrong way round: (√m + s)² − α, and for α = m also (√m − s)⁻² − α⁻¹. As "
                f"printed they fail in {norm:.1%} and {inverse:.1%} of draws where 30% are allowed (d = 20, "
                "m = 43, α = m)"
            ),
        ),
        Remark(
            where="Sheffet §2, Gaussian tail",
            printed="Pr[x > μ + σ√ln(1/ν)] < ν",
            truth=f"√(2 ln(1/ν)): at ν = 10⁻⁶ the printed one is {gaussian_tail(1e-6):.1e}",
        ),
        Remark(
            where="Sheffet Thm 3.2",
            printed="|β̃ᴿ − βᴿ| ≤ η·f(βᴿ)/√(w² + σ_min)",
            truth="√f: f is a squared length, and the two sides have different units as printed",
        ),
        Remark(
            where="Sheffet §3.1",
            printed="2¹⁴ = 4,096",
            truth="4,096 is 2¹², and 2¹⁴ is 16,384; our runs begin at 2¹⁴",
        ),
        Remark(
            where="Amin Lemma 4",
            printed="Pr(ŷ ∉ G_2τ) < e^{−ετ/2Δ}·μ(G_τ)",
            truth=(
                f"divided by μ(G_τ): with 1,000 outcomes of which one is better by 2τ, and ετ/2Δ = 1, the "
                f"left side is {seen:.2f}, the printed right side {printed_four:.1e}, the mended one "
                f"{mended_four:.0f}. The paper's own proofs divide"
            ),
        ),
        Remark(
            where="Amin Algorithm 2",
            printed="Σ 1/(b + 2λ_i) = 0",
            truth=(
                "= 1 (no b > 0 makes it 0). Its λ_d(C) must be the largest eigenvalue, or Ω is not positive "
                "definite. By the order of Theorem 3 (Appendix A), which counts upwards, it is; in the text "
                "and in Appendix B, where Algorithm 2 stands, λ₁ is the largest, and λ₁(C) is meant"
            ),
        ),
        Remark(
            where="Wang, Kalaja",
            printed="each part is an (ε/3, δ/3) Gaussian mechanism",
            truth=(
                f"at ({USUAL.epsilon:g}, {USUAL.delta:g}) with √ln(6/δ) it {verb} one; the three together "
                f"are valid, with the multiplier {step.sigma:.4g} where {step.needed_sigma:.3g} is enough"
            ),
        ),
        Remark(
            where="Kalaja, preprocessing",
            printed="means, deviations, maxima and clip points are used as they are",
            truth="they are functions of the data: public input, or to be paid for",
        ),
    )


def page() -> str:
    """The whole page."""
    lines = [
        "# What the papers print, and what is true",
        "",
        "Made by `python -m dpgram_papers.errata`; a test keeps it current. Every row is a mechanism of",
        "`dpgram_papers` with the constants as printed, at one setting. True δ is that of the printed noise",
        "at the claimed ε, true ε that at the claimed δ, from the exact curves of dpgram (for rows |x| ≤ 1,",
        "neighbours as the claim has them). These variants are baselines; `publish` cannot reach them.",
        "",
        "| variant | paper, place | printed | claimed (ε, δ) | true δ | true ε | private |",
        "|---|---|---|---|---|---|---|",
    ]
    for variant in variants():
        claimed = variant.claimed
        lines.append(
            f"| {variant.name} | {variant.paper}, {variant.place} | {variant.printed} "
            f"| ({claimed.epsilon:g}, {claimed.delta:g}) | {variant.true_delta(claimed.epsilon):.2g} "
            f"| {_number(variant.true_epsilon(claimed.delta))} | {'yes' if variant.private else '**no**'} |"
        )
    lines += ["", "## Why", ""]
    said: dict[str, list[str]] = {}
    for variant in variants():
        said.setdefault(variant.explanation, []).append(variant.name)
    lines += [f"- {', '.join(names)}: {explanation}." for explanation, names in said.items()]
    lines += [
        "- True values of the pure variants are upper bounds (what their steps cost, added up), except that",
        "  of `sampler-printed`, a lower bound from one pair of neighbours; the adaptive ones are upper too.",
        "",
        "## Further errata",
        "",
    ]
    lines += table(("where", "printed", "truth"), ((one.where, one.printed, one.truth) for one in remarks()))
    lines += [
        "",
        "## Utility theorems, with every constant",
        "",
        "What the papers prove up to a constant, or with a slip, proved again (the arguments are in",
        "`dpgram_papers.bounds`) and held beside what is drawn: a bound that holds in",
        f"{1.0 - FAILURE:.0%} of draws, and the quantile of {DRAWS} draws there.",
        "",
    ]
    lines += table(
        ("theorem", "bound", "seen", "bound over seen", "answering 0"),
        (
            (
                one.what,
                f"{one.bound:.3g}",
                f"{one.seen:.3g}",
                f"{one.bound / one.seen:.2g}",
                f"{one.nothing:.3g}" + (", below the bound" if one.nothing < one.bound else ""),
            )
            for one in measured_bounds()
        ),
    )
    lines += [
        "",
        "Adaptive shares are taken from noisy eigenvalues: the bound has the least share that each direction",
        "can get while every eigenvalue is as close as Theorem 2 has it. Where answering 0 is below the",
        "bound, the bound says nothing. Corollary 2 of Amin et al. has an error of O(ζλ₁) with even shares",
        "once λ₁ is large enough; its constant is not stated. With every constant, d = 10, ε = 1, all",
        f"eigenvalues equal to λ₁ and {1.0 - FAILURE:.0%} of draws, the error is at most ζλ₁ from these on:",
        "",
    ]
    lines += table(
        ("ζ", "λ₁, with constants", "λ₁, as printed for O(ζλ₁)"),
        (
            (
                f"{part:g}",
                f"{even_share_eigenvalue(AMIN_WIDTH, 1.0, part, FAILURE):.3g}",
                f"{printed_even_share_eigenvalue(AMIN_WIDTH, 1.0, part):.3g}",
            )
            for part in (1.0, 0.5, 0.1)
        ),
    )
    top = float(np.linalg.eigvalsh(amin_gram())[-1])
    part = least(lambda part: printed_even_share_eigenvalue(AMIN_WIDTH, 1.0, part) <= top, tolerance=1e-4)
    lines += [
        "",
        f"The matrix above has λ₁ = {top:.3g}, so that the printed condition holds there for ζ ≥ {part:.2f}.",
        "",
        "How much noise the exact calibration saves against the printed constants:",
        "`benchmarks/results/calibration-vs-papers.md`.",
    ]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.3g}"


if __name__ == "__main__":
    import sys

    sys.stdout.write(page())
