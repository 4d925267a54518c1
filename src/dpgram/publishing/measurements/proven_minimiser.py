"""The ridge minimiser within a ball, computed to a proven error: in ball arithmetic, not in floats.

θ* = argmin ½Σ(tᵢ − qᵢᵀθ)² + (λ/2)|θ|² over |θ| ≤ R.

Output perturbation adds noise to a number that is computed from the data, so the number must be the one in
the proof. The minimiser is (S + (λ + ν)I)⁻¹b with ν = 0, or the ν > 0 at which |θ| = R. Newton's method on
1/|θ(ν)|, which is concave, rises to that ν from 0. For any feasible θ̂ and ν ≥ 0, with
g = (S + (λ + ν)I)θ̂ − b, duality bounds the distance to the minimiser: |θ̂ − θ*|² ≤ (ν(R² − |θ̂|²) +
|g|²/(λ + ν))/λ (proofs/output-perturbation.md).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from dpgram.errors import MechanismError

if TYPE_CHECKING:
    from flint import arb, arb_mat

Integers = npt.NDArray[np.int64]

START_BITS: Final = 256
MOST_BITS: Final = 1 << 14
_STEPS: Final = 200


def on_grid(
    second: Integers, first: Integers, *, unit: int, ridge: float, radius: float, scale: float
) -> npt.NDArray[np.object_]:
    """The minimiser times `scale` as integers, each within 1 of the truth; S, b = second/unit, first/unit.

    Proof: proofs/output-perturbation.md#output-perturbation-lemma.
    """
    from flint import ctx

    bits = START_BITS
    while bits <= MOST_BITS:
        with ctx.workprec(bits), suppress(ZeroDivisionError):  # a ball holds zero: known too roughly to tell
            found = _attempt(second, first, unit, ridge, radius, scale)
            if found is not None:
                return found
        bits *= 2
    raise MechanismError(
        "the minimiser could not be computed to the precision its noise needs",
        limit=f"{MOST_BITS} bits",
        remedy="Give a larger alpha.",
    )


def _attempt(
    second: Integers, first: Integers, unit: int, ridge: float, radius: float, scale: float
) -> npt.NDArray[np.object_] | None:
    """One pass at the precision of the context; None where the proof of its error fails.

    ZeroDivisionError where a pivot, or what a step is divided by, cannot be told from zero at that precision.

    Proof: proofs/output-perturbation.md#output-perturbation-lemma.
    """
    from flint import arb, arb_mat

    width = len(first)
    gram = arb_mat([[arb(int(cell)) / unit for cell in row] for row in second])
    right = arb_mat([[arb(int(cell)) / unit] for cell in first])
    identity = arb_mat([[arb(int(i == j)) for j in range(width)] for i in range(width)])
    penalty, reach, shift = arb(ridge), arb(radius), arb(0)
    theta = (gram + identity * penalty).solve(right)
    for _ in range(_STEPS):
        length = _dot(theta, theta).sqrt()
        if not length > reach:
            break
        matrix = gram + identity * (penalty + shift)
        curvature = _dot(theta, matrix.solve(theta))
        if not curvature > 0:
            raise ZeroDivisionError
        step = (length / reach - 1) * length**2 / curvature
        shift = (shift + step).mid()
        theta = (gram + identity * (penalty + shift)).solve(right)
        if step.abs_upper() <= (shift + penalty) * _close():
            break
    feasible = _feasible(theta, reach)
    residual = (gram + identity * (penalty + shift)) * feasible - right
    gap = shift * (reach**2 - _dot(feasible, feasible)) + _dot(residual, residual) / (penalty + shift)
    error = (gap.abs_upper() / penalty).sqrt() * arb(scale)
    if not error < arb(1) / 4:
        return None
    cells = np.empty(width, dtype=object)
    for i in range(width):
        cells[i] = int((feasible[i, 0] * scale + 0.5).mid().floor().unique_fmpz())
    return cells


def _feasible(theta: arb_mat, reach: arb) -> arb_mat:
    """θ at the midpoints of its balls, shortened to the ball of radius R where it is not surely inside."""
    from flint import arb_mat

    middle = arb_mat([[theta[i, 0].mid()] for i in range(theta.nrows())])
    length = _dot(middle, middle).sqrt()
    if length <= reach:
        return middle
    shorter = reach / length * (1 - _close())
    return arb_mat([[(middle[i, 0] * shorter).mid()] for i in range(theta.nrows())])


def _close() -> arb:
    """What counts as equal, by half of the bits of the context: more bits must bring the error down."""
    from flint import arb, ctx

    return arb(2) ** (-ctx.prec // 2)


def _dot(a: arb_mat, b: arb_mat) -> arb:
    return (a.transpose() * b)[0, 0]
