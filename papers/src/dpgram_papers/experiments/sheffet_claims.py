"""What Sheffet says of Figures 1 to 4, and what came out; the figures themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from dpgram.privacy.adjacency import ReplaceOne
from dpgram.privacy.guarantee import Guarantee
from dpgram_papers.analyze_gauss import AnalyzeGauss
from dpgram_papers.experiments.claims import (
    Reading,
    Verdict,
    verdict_of_readings,
    verdict_on,
    verdict_on_parts,
)
from dpgram_papers.experiments.comparisons import Comparison
from dpgram_papers.experiments.drawing import Line, Panel, PaperFigure, ours
from dpgram_papers.experiments.grid import GridResults, Value
from dpgram_papers.experiments.sheffet_single import (
    DELTA,
    FITTED,
    FITTED_NAMES,
    FROM_FIT,
    GAUSS,
    GAUSS_EQUAL,
    LENGTH,
    MEDIANS,
    OURS,
    OWN,
    REPAIRED_EQUAL,
    SIX,
    SKETCH,
    WIDTH,
)
from dpgram_papers.sheffet import PrintedInverseWishart, PrintedSketch, PrintedWishart
from dpgram_papers.variant import Variant

HEADLINES: Final = (
    ("Algorithm 2", 0.1, 0.0192),
    ("Algorithm 1", 0.1, 0.0671),
    ("Algorithm 2", 0.5, 0.0058),
    ("Algorithm 1", 0.5, 0.0639),
)
"""Mean errors that §3.2 prints for n = 2²⁵."""
CLOSE: Final = 1.5
"""A printed number counts as reproduced within this factor."""
FAIRLY_LARGE: Final = 0.5
"""Our mark for an error that is "fairly large" where |β| is 2.8; the text gives no number."""

_STYLES: Final[Mapping[str, Sequence[tuple[str, str, str]]]] = {
    "1": (
        ("Algorithm 2", "blue", ""),
        ("Algorithm 1", "red", ""),
        (SKETCH, "black", ""),
        (f"Algorithm 2{FITTED}", "blue", "o"),
        (f"Algorithm 1{FITTED}", "red", "o"),
    ),
    "2": (("Algorithm 3", "blue", ""), ("Algorithm 3, shifted", "red", ""), ("non-private", "black", "")),
    "3": (
        ("non-private posterior", "black", ""),
        ("Algorithm 4", "blue", ""),
        ("Algorithm 5, from n + d", "red", ""),
        ("Algorithm 2", "green", ""),
        ("Algorithm 5", "magenta", ""),
    ),
    "4": (
        (GAUSS, "black", "s"),
        ("Analyze Gauss, scaled", "black", "o"),
        ("Algorithm 2", "blue", "s"),
        ("Algorithm 5", "blue", "o"),
        ("Algorithm 3", "magenta", "s"),
        ("Algorithm 3, shifted", "magenta", "o"),
    ),
}
_EXACT: Final = {"1": "dpgram, sketch", "2": "dpgram, wishart"}
_TITLES: Final = {
    "1": "the Johnson-Lindenstrauss estimators",
    "2": "additive Wishart noise",
    "3": "sampling from the inverse Wishart distribution",
    "4": "the six estimators of one regression",
}


def paper_figures(found: GridResults) -> Mapping[str, PaperFigure]:
    """One panel for each ε, in linear scale cut at the errors that say something, as in the paper."""
    return {
        number: PaperFigure(
            title=f"Sheffet, Figure {number}: {_TITLES[number]}",
            panels=tuple(_panel(found, number, epsilon) for epsilon in found.axis("epsilon")),
            columns=3,
            note="mean error, bars: one standard deviation over the runs",
        )
        for number in _STYLES
    }


def _panel(found: GridResults, number: str, epsilon: object) -> Panel:
    x = np.array([float(value) for value in found.axis("log2_rows")])
    at = {"epsilon": float(str(epsilon))}
    lines = [
        Line(
            label=name,
            x=x,
            y=found.series(name, "log2_rows", **at),
            colour=colour,
            marker=marker,
            spread=found.deviations(name, "log2_rows", **at),
        )
        for name, colour, marker in _STYLES[number]
    ]
    lines.append(ours("dpgram, one plain matrix", x, found.series(OURS, "log2_rows", **at)))
    if number in _EXACT:
        exact = _EXACT[number]
        lines.append(ours(f"{exact}, exact constants", x, found.series(exact, "log2_rows", **at), marker="^"))
    return Panel(
        title=f"ε = {epsilon}",
        lines=tuple(lines),
        x_label="log₂ n",
        y_label="|β̂ − β|",
        y_range=(0.0, 1.15 * LENGTH),
    )


def verdicts(found: GridResults) -> list[Verdict]:
    """In the order of the text."""
    return [*_figure_1(found), *_figure_2(found), *_figure_3(found), *_figure_4(found), *_privacy()]


def _everywhere(found: GridResults, test: Callable[[dict[str, float]], bool]) -> tuple[int, int]:
    """In how many (ε, n) the means of all columns pass a test."""
    passed = total = 0
    for epsilon in found.axis("epsilon"):
        for rows in found.axis("log2_rows"):
            means = {c: found.mean(c, epsilon=epsilon, log2_rows=rows) for c in found.columns}
            passed += test(means)
            total += 1
    return passed, total


def _clearly_behind(found: GridResults, one: str, other: str) -> int:
    """In how many (ε, n) the first has the larger mean, by more than three standard errors of the gap."""
    count = 0
    for epsilon in found.axis("epsilon"):
        for rows in found.axis("log2_rows"):
            step = found.values(one, epsilon=epsilon, log2_rows=rows) - found.values(
                other, epsilon=epsilon, log2_rows=rows
            )
            count += bool(step.mean() > 3.0 * step.std(ddof=1) / np.sqrt(len(step)))
    return count


def _all(place: str, claim: str, counts: tuple[int, int]) -> Verdict:
    return verdict_on(place, claim, counts[0] == counts[1], f"in {counts[0]} of {counts[1]} settings (ε, n)")


def _figure_1(found: GridResults) -> list[Verdict]:
    """Each claim under both readings of Algorithm 2, and of Algorithm 1, which takes its number of rows."""
    place = "§3.2, Figure 1"
    verdicts = [
        verdict_of_readings(
            place, "the non-private sketch is clearly the best for all n", *_both(found, _is_best)
        ),
        verdict_of_readings(
            place,
            "Algorithm 2 overtakes Algorithm 1 only at n of about 2¹⁹ or 2²⁰, in most experiments",
            *_both(found, _crossings),
        ),
    ]
    for name, epsilon, printed in HEADLINES:
        verdicts.append(
            verdict_of_readings(
                "§3.2",
                f"{name} at n = 2²⁵, ε = {epsilon}: mean error {printed}",
                *(_headline(found, f"{name}{reading}", epsilon, printed) for reading in ("", FITTED)),
            )
        )
    verdicts.append(
        verdict_of_readings(
            "§3.2",
            "at the largest n Algorithm 2 is 3.5 to 11 times better than Algorithm 1",
            *_both(found, _factors),
        )
    )
    return verdicts


def _both(found: GridResults, read: Callable[[GridResults, str], Reading]) -> tuple[Reading, Reading]:
    return read(found, ""), read(found, FITTED)


def _is_best(found: GridResults, reading: str) -> Reading:
    """Where Algorithm 2 needs no ridge it draws the law of the non-private sketch, and luck decides."""
    one, two, plain = (f"{name}{reading}" for name in ("Algorithm 1", "Algorithm 2", SKETCH))
    best = _everywhere(found, lambda m: m[plain] <= min(m[one], m[two]))
    close = _everywhere(found, lambda m: m[plain] <= 1.1 * min(m[one], m[two]))
    return Reading(
        best[0] == best[1],
        f"in {best[0]} of {best[1]} settings, within a tenth of the best in {close[0]}",
    )


def _crossings(found: GridResults, reading: str) -> Reading:
    """From which n on Algorithm 2 stays ahead; "about" is a factor of two to either side of 2¹⁹ and 2²⁰."""
    crossings = []
    for epsilon in found.axis("epsilon"):
        one, two = (
            found.series(f"{name}{reading}", "log2_rows", epsilon=epsilon)
            for name in ("Algorithm 1", "Algorithm 2")
        )
        sizes = [int(n) for n in found.axis("log2_rows")]
        start = next((n for i, n in enumerate(sizes) if (two < one)[i:].all()), None)
        crossings.append((epsilon, start))
    most = float(np.median([n or 99 for _, n in crossings]))
    told = ", ".join(f"{'never' if n is None else f'2^{n}'} (ε = {e})" for e, n in crossings)
    return Reading(18 <= most <= 21, told)


def _headline(found: GridResults, name: str, epsilon: float, printed: float) -> Reading:
    mean = found.mean(name, epsilon=epsilon, log2_rows=25)
    if np.isnan(mean):
        return Reading(None, "no such setting here")
    return Reading(
        bool(printed / CLOSE <= mean <= printed * CLOSE), f"{mean:.4f}, {mean / printed:.2f} times"
    )


def _factors(found: GridResults, reading: str) -> Reading:
    one, two = (
        np.array([found.mean(f"{name}{reading}", epsilon=e, log2_rows=25) for e in found.axis("epsilon")])
        for name in ("Algorithm 1", "Algorithm 2")
    )
    factors = one / two
    if np.isnan(factors).any():
        return Reading(None, "no such setting here")
    # The text names the two ends at ε = 0.1 and 0.5; the smallest ε may lie below.
    named = [f for e, f in zip(found.axis("epsilon"), factors, strict=True) if float(e) >= 0.1]
    return Reading(
        bool(min(named) >= 3.0 and max(named) <= 12.0),
        f"{min(named):.1f} to {max(named):.1f} times from ε = 0.1 on, {min(factors):.1f} at least",
    )


def _figure_2(found: GridResults) -> list[Verdict]:
    counts = _everywhere(found, lambda m: m["Algorithm 3, shifted"] < m["Algorithm 3"])
    return [_all("§4.1, Figure 2", "subtracting the expected noise is consistently better", counts)]


def _figure_3(found: GridResults) -> list[Verdict]:
    large = [
        found.mean(name, epsilon=epsilon, log2_rows=rows)
        for name in ("Algorithm 4", "Algorithm 5, from n + d")
        for epsilon in found.axis("epsilon")
        for rows in found.axis("log2_rows")
    ]
    costlier = _everywhere(found, lambda m: m["Algorithm 5, from n + d"] > m["Algorithm 4"])
    better = _everywhere(found, lambda m: m["Algorithm 5"] < m["Algorithm 2"])
    behind = _clearly_behind(found, "Algorithm 5", "Algorithm 2")
    spreads = [
        found.deviation(name, epsilon=epsilon, log2_rows=rows)
        / found.mean(name, epsilon=epsilon, log2_rows=rows)
        for name in ("Algorithm 4", "Algorithm 5, from n + d")
        for epsilon in found.axis("epsilon")
        for rows in found.axis("log2_rows")
    ]
    return [
        verdict_on(
            "§5.1, Figure 3",
            "Algorithms 4 and 5 (from n + d) have fairly large errors throughout",
            min(large) > FAIRLY_LARGE,
            f"never below {min(large):.2f}",
        ),
        _all(
            "§5.1, Figure 3",
            "halving the budget makes Algorithm 5 costlier than 4, even for large n",
            costlier,
        ),
        verdict_on(
            "§5.1, Figure 3",
            "Algorithm 5 outperforms the sketch (Algorithm 2) for all n, both with 2d degrees",
            behind == 0,
            f"in {better[0]} of {better[1]} settings, behind by three standard errors in {behind}; by their "
            f"laws its squared error is (r − p − 1)/(r − 2) times as large at equal degrees r, "
            f"{(2 * WIDTH - WIDTH) / (2 * WIDTH - 2):.2f} at 2d = {2 * WIDTH} and nearly 1 at many",
        ),
        verdict_on(
            "§5.1, Figure 3",
            "the variance of Algorithms 4 and 5 (from n + d) is too small to be seen",
            max(spreads) < 0.05,
            f"standard deviation at most {max(spreads):.1%} of the mean",
        ),
    ]


def _figure_4(found: GridResults) -> list[Verdict]:
    starts, transitions_hold = [], True
    for epsilon in found.axis("epsilon"):
        means = {name: found.series(name, "log2_rows", epsilon=epsilon) for name in SIX}
        gauss = np.minimum(means[GAUSS], means["Analyze Gauss, scaled"])
        # At the floor that clipping sets all are equal, and luck decides.
        wins = gauss <= 1.05 * np.min([means[n] for n in SIX], axis=0)
        start = next((i for i in range(len(wins)) if wins[i:].all()), None)
        transitions_hold &= start is not None
        starts.append((epsilon, None if start is None else found.axis("log2_rows")[start]))
    smallest = found.axis("log2_rows")[0]
    wild = [found.mean(GAUSS, epsilon=e, log2_rows=smallest) for e in found.axis("epsilon")]
    others = [
        min(found.mean(n, epsilon=e, log2_rows=smallest) for n in SIX if n != GAUSS)
        for e, w in zip(found.axis("epsilon"), wild, strict=True)
        if w > LENGTH
    ]
    largest = found.axis("log2_rows")[-1]

    def below(start: str, rows: Value) -> list[bool]:
        return [
            found.mean(f"{start}{name}", epsilon=e, log2_rows=rows)
            < found.mean("non-private", epsilon=e, log2_rows=rows)
            for name in SIX
            for e in found.axis("epsilon")
        ]

    closer, smaller = below("", largest), below(FROM_FIT, largest)
    by_rows = {rows: sum(below(FROM_FIT, rows)) for rows in found.axis("log2_rows")[::-4]}
    small = found.axis("log2_rows")[:3]
    plain, direct, zeroed = (
        np.array([found.mean(name, epsilon=e, log2_rows=n) for e in found.axis("epsilon") for n in small])
        for name in MEDIANS
    )
    wild_draws = plain > LENGTH
    as_bad, mended = (direct / plain)[wild_draws], (zeroed / plain)[wild_draws]
    return [
        verdict_on(
            "§6.1, Figure 4",
            "from some n on Analyze Gauss has the smallest error of the six",
            transitions_hold,
            "; ".join(f"ε = {e}: {'never' if n is None else f'from 2^{n}'}" for e, n in starts),
        ),
        verdict_on(
            "§6.1, Figure 4",
            "for the smallest n Analyze Gauss is out of scale (errors of 9, 12, 30 where |β| is 3)",
            max(wild) > 3.0 * LENGTH,
            "mean errors "
            + ", ".join(f"{w:.1f} (ε = {e})" for e, w in zip(found.axis("epsilon"), wild, strict=True)),
        ),
        verdict_on(
            "§6.1, Figure 4",
            "where it is, all other techniques have a fairly large error as well",
            min(others) > FAIRLY_LARGE if others else None,
            f"the best of them has {min(others):.2f}, {min(others) / LENGTH:.0%} of |β|; the 2.5 beside it "
            "in the text is where an error tells nothing"
            if others
            else "it is not, at these settings",
        ),
        verdict_on_parts(
            "§6.1, Figure 4",
            "eventually the errors of all six become smaller than that between the non-private fit and β",
            smaller,
            f"read as |β̃ − β̂| < |β̂ − β|: in {', '.join(f'{c} at n = 2^{n}' for n, c in by_rows.items())} of "
            f"{len(smaller)} cases (ε, method); clipping keeps the right side from falling with n. Read as "
            f"|β̃ − β| < |β̂ − β|: in {sum(closer)} at 2^{largest}, by luck alone",
            nowhere="not measured",  # "eventually" may lie beyond these n
        ),
        verdict_on(
            "§6, post-processing",
            "zeroing the negative eigenvalues is as bad as leaving them",
            bool(as_bad.max() > 0.5) if len(as_bad) else None,
            f"where the plain one errs by more than |β| (medians of draws, {len(as_bad)} settings): zeroed "
            f"over plain {as_bad.min():.2f} to {as_bad.max():.2f} if the singular matrix is solved directly, "
            f"{mended.min():.2f} to {mended.max():.2f} by its shortest solution, which the rival here gets"
            if len(as_bad)
            else "nowhere is the plain one out of scale here",
        ),
    ]


def _privacy() -> list[Verdict]:
    claimed, tight = Guarantee(0.1, DELTA), Guarantee(0.1, 1e-6)
    gauss = AnalyzeGauss(claimed=claimed, constant="sheffet", adjacency=ReplaceOne())
    statements: tuple[tuple[str, str, Variant], ...] = (
        ("Theorem 3.1", "a sketch of 44 rows", PrintedSketch(claimed=claimed, rows=44)),
        ("Theorem 4.1", "additive Wishart noise", PrintedWishart(claimed=claimed, width=WIDTH)),
        ("Theorem 5.1", "a posterior of 44 degrees", PrintedInverseWishart(claimed=claimed, degrees=44)),
        ("Corollary B.2", "w² = 8B²√(r ln(4/δ))", PrintedSketch(claimed=tight, rows=44, theorem="B.2")),
        ("§2", "Gaussian noise of variance 2Δ² ln(2/δ)/ε", gauss),
    )
    found = []
    for place, what, variant in statements:
        epsilon, delta = variant.claimed.epsilon, variant.claimed.delta
        reason = "by its exact curve"
        if not variant.private:
            reason = f"true δ at ε = {epsilon:g} is {variant.true_delta(epsilon):.2g}"
        claim = f"{what} is ({epsilon:g}, {delta:.2g})-private"
        found.append(verdict_on(place, claim, variant.private, reason, printed=True))
    return found


def comparisons(found: GridResults) -> list[Comparison]:
    """Each (ε, n) of the grid: dpgram against the best method of the paper at its guarantee."""
    rows = []
    rivals = (*OWN, *FITTED_NAMES, GAUSS_EQUAL, *REPAIRED_EQUAL)
    for epsilon in found.axis("epsilon"):
        for exponent in found.axis("log2_rows"):
            at = {"epsilon": epsilon, "log2_rows": exponent}
            best = min(rivals, key=lambda name: found.mean(name, **at))
            rows.append(
                Comparison(
                    figure="Sheffet 1–4",
                    guarantee="(ε, e⁻⁹), one row replaced",
                    setting=f"ε = {epsilon}, n = 2^{exponent}",
                    rival=best,
                    theirs=found.mean(best, **at),
                    ours=found.mean(OURS, **at),
                    floor=found.mean("non-private", **at),
                    nothing=LENGTH,
                )
            )
    return rows
