"""Which coefficients the noise leaves an interval, and when it leaves none: v·r_i² of each direction decides.

In the eigendirections of the features, r_i = 1/(w_i + z) and κ = 1 + Σ v·r_i². A direction with v·r_i² above
`LOST` is lost: noise alone could have made it (a rare level, a near-duplicate column). A coefficient a is
trusted while its own inflation 1 + v·aᵀR²a/|a|² stays below `OWN_LIMIT`: it leans little on lost directions.
Nothing is trusted when the directions that are not lost have an inflation above `REST_LIMIT` between them
(`REST_LIMIT_BESIDE_LOST` if some are lost: a few lost directions beside clear ones are a rare level, beside
noisy ones they are noise), or when more than `LOST_PART` of all are lost.
The limits were set where simulated coverage ceases to hold; see benchmarks/results/coverage.md.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.design import Design
from dpgram.analysis.moments import Moments
from dpgram.analysis.unshrunken import Unshrunken

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

LOST: Final = 0.15
LOST_PART: Final = 0.15
"""The largest part of all directions that may be lost."""
OWN_LIMIT: Final = 1.15
REST_LIMIT: Final = 1.2
REST_LIMIT_BESIDE_LOST: Final = 1.1
MOST_OF_IT: Final = 0.25
"""Of the largest share in a weak direction: terms with less of it are not named."""
MOST_NAMED: Final = 5
CAUTION_INFLATION: Final = 1.1
"""From this κ on simulated intervals can be 8% longer than they need be."""

SAMPLED_CAUTION: Final = (
    "this mechanism's error depends on the table, so intervals in closed form are approximate: "
    "bootstrap() follows the mechanism itself"
)
CLOSE_CAUTION: Final = (
    "the privacy noise is close to what these features can bear: intervals tend to be too wide"
)


def refusal_of(solution: Unshrunken, moments: Moments, design: Design | None = None) -> str | None:
    """In plain words, why the noise makes all inference meaningless; nothing when it does not.

    With the `design` it says between which terms the noise cannot tell.
    """
    shares = solution.shares
    kept = shares[shares <= LOST]
    lost = len(shares) - len(kept)
    limit = REST_LIMIT_BESIDE_LOST if lost else REST_LIMIT
    if lost <= LOST_PART * len(shares) and 1.0 + float(kept.sum()) <= limit:
        return None
    norm = moments.noise.expected_norm(len(shares))
    return (
        "the privacy noise is too large for these features: the weakest combination of them has strength "
        f"{solution.smallest:.3g} (smallest eigenvalue) where the noise alone reaches {norm:.3g}, so its "
        f"coefficients could be almost anything{_between(solution, moments, design)}"
    )


def _between(solution: Unshrunken, moments: Moments, design: Design | None) -> str:
    """The terms that make up most of the weakest direction."""
    if design is None or not len(solution.shares):
        return ""
    inside = solution.basis.T @ moments.project(design.vectors)
    toward = np.asarray(np.linalg.solve(inside, solution.weakest), dtype=np.float64)
    return f" ({told_apart(design, toward)})"


def told_apart(design: Design, direction: Vector) -> str:
    """Which terms a direction in their span is made of: the largest shares, as many as make up most of it."""
    sizes = np.abs(direction) * np.linalg.norm(design.vectors, axis=0)
    order = [int(i) for i in np.argsort(-sizes) if sizes[i] >= MOST_OF_IT * sizes.max()]
    named = [design.names[i] for i in order[:MOST_NAMED]]
    more = f" and {len(order) - MOST_NAMED} more" if len(order) > MOST_NAMED else ""
    if len(named) == 1:
        return f"too little is known of {named[0]}"
    return f"too little tells {', '.join(named[:-1])} and {named[-1]}{more} apart"


def trusted(solution: Unshrunken, functionals: Matrix, moments: Moments) -> npt.NDArray[np.bool_]:
    """Which coefficients (rows of `functionals`, in the solution's coordinates) stand clear of the noise."""
    spread = np.sum((functionals @ solution.resolvent) ** 2, axis=1)
    sizes = np.maximum(np.sum(functionals**2, axis=1), np.finfo(np.float64).tiny)
    return np.asarray(1.0 + moments.noise.offdiagonal_sd**2 * spread / sizes <= OWN_LIMIT)


def noise_cautions(moments: Moments, solution: Unshrunken, *, refused: bool = False) -> tuple[str, ...]:
    """What the noise does to the intervals of this regression; nothing where they are refused."""
    if refused:
        return ()
    found = [] if moments.noise.added else [SAMPLED_CAUTION]
    if solution.inflation > CAUTION_INFLATION:
        found.append(CLOSE_CAUTION)
    return tuple(found)


def untrusted_caution(names: list[str]) -> str:
    """One sentence for the coefficients without an interval."""
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"no interval for {listed}: the table tells too little about it to stand clear of the noise"
