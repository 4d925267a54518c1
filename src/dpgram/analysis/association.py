"""Partial correlation ρ = s_xy / √(s_xx s_yy) of the residuals of x and y given other columns.

s_ab = r_aᵀG r_b for the residual functions r; the noise moves it by r_aᵀN r_b to first order, so ρ moves by
⟨S, N⟩ with S = sym(r_x r_yᵀ)/√(s_xx s_yy) − (ρ/2)(r_x r_xᵀ/s_xx + r_y r_yᵀ/s_yy). The population adds
(1−ρ²)²/(n−k) (normal data). The interval is made on Fisher's scale atanh ρ. Given nothing, it is the plain
correlation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from scipy.special import ndtr, ndtri

from dpgram.analysis.design import build_design
from dpgram.analysis.estimand import MOVED_CAUTION, MOVED_REFUSAL, Kind, difference_cautions, moved_columns
from dpgram.analysis.inference import check_kind
from dpgram.analysis.moments import Moments
from dpgram.analysis.quality import SIGNAL_TO_NOISE
from dpgram.analysis.trust import refusal_of
from dpgram.analysis.unshrunken import unshrunken
from dpgram.errors import AnalysisError

if TYPE_CHECKING:
    from dpgram.document.document import Document


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """A (partial) correlation with its standard error."""

    left: str
    right: str
    given: tuple[str, ...]
    estimate: float
    std_error: float
    kind: Kind
    cautions: tuple[str, ...] = ()
    """How what is estimated differs from the correlation of the rows that came in."""

    def conf_int(self, level: float = 0.95) -> tuple[float, float]:
        """On Fisher's scale, brought back: inside [-1, 1] by construction.

        >>> low, high = release.partial_correlation("age", "charges").conf_int()
        >>> round(low, 2), round(high, 2)
        (0.51, 0.58)
        """
        inside = min(max(self.estimate, -0.999999), 0.999999)
        reach = float(-ndtri(0.5 * (1.0 - level))) * self.std_error / (1.0 - inside**2)
        middle = math.atanh(inside)
        return math.tanh(middle - reach), math.tanh(middle + reach)

    @property
    def p_value(self) -> float:
        """Two-sided, of no correlation."""
        return float(2.0 * ndtr(-abs(self.estimate) / self.std_error)) if self.std_error > 0 else 0.0

    def __str__(self) -> str:
        given = f" given {', '.join(self.given)}" if self.given else ""
        low, high = self.conf_int()
        pair = f"correlation of {self.left} and {self.right}{given}"
        told = f"{pair}: {self.estimate:.3f} (95% interval {low:.3f} to {high:.3f})"
        return ". Caution: ".join([told, *self.cautions])


def partial_correlation(
    release: Document | Moments,
    left: str,
    right: str,
    given: Sequence[str] | None = None,
    *,
    kind: Kind = "population",
) -> Correlation:
    """Correlation of two columns once the columns `given` are accounted for (all others by default).

    >>> from dpgram.analysis import partial_correlation
    >>> round(partial_correlation(release, "age", "charges", ["smoker"]).estimate, 2)
    0.55
    """
    moments = Moments.of(release)
    check_kind(kind)
    if given is None:
        taken = {
            moments.schema.encoded[i].source for name in (left, right) for i in moments.schema.indices(name)
        }
        given = [column.name for column in moments.schema.columns if column.name not in taken]
    designs = [build_design(moments, name, given) for name in (left, right)]
    x, y = (unshrunken(moments, design) for design in designs)
    refusal = refusal_of(x, moments)
    if refusal is not None:
        raise AnalysisError("no partial correlation", got=refusal, remedy="Give fewer columns")
    moved = any(moved_columns(moments, design) for design in designs)
    if moved and kind == "population":
        raise AnalysisError("no partial correlation", got=MOVED_REFUSAL)
    # The two residuals share R, so their product is corrected as each residual sum is.
    off = moments.noise.offdiagonal_sd**2
    shared = float(x.outside @ y.outside) * off * float(np.trace(x.resolvent))
    across = (
        float(x.outside @ moments.consistent_gram @ y.outside - x.scores @ x.resolvent @ y.scores) + shared
    )
    noise = SIGNAL_TO_NOISE * moments.noise.diagonal_sd
    for name, found in ((left, x), (right, y)):
        if found.residual_sum <= noise * float(found.residual @ found.residual):
            raise AnalysisError(
                f"no partial correlation: what is left of {name!r} does not stand clear of the noise",
                remedy="Give fewer columns",
            )
    scale = math.sqrt(x.residual_sum * y.residual_sum)
    rho = min(max(across / scale, -1.0), 1.0)
    product = np.outer(x.residual, y.residual)
    shape = (product + product.T) / (2.0 * scale) - 0.5 * rho * (
        np.outer(x.residual, x.residual) / x.residual_sum + np.outer(y.residual, y.residual) / y.residual_sum
    )
    variance = moments.noise.functional_variance(shape) * x.inflation
    if kind == "population":
        rows = moments.rows
        if rows is None or rows <= len(x.theta) + 2:
            raise AnalysisError("the number of rows is unknown or too small", remedy='Use kind="table"')
        variance += (1.0 - rho**2) ** 2 / (rows - len(x.theta))
    return Correlation(
        left=left,
        right=right,
        given=tuple(given),
        estimate=rho,
        std_error=math.sqrt(variance),
        kind=kind,
        cautions=(*difference_cautions(moments, kind), *([MOVED_CAUTION] if moved else [])),
    )
