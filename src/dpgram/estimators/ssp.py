"""θ = (XᵀX + N₁)⁻¹(Xᵀy + N₂): sufficient statistics perturbation, as printed and as it should be."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias, final

import numpy as np

from dpgram.errors import GuaranteeError
from dpgram.estimators.norm_bounded import Agreed, Deal, NormBoundedRegressor
from dpgram.noise import SymmetricGaussian
from dpgram.papers.kalaja import SufficientStatistics
from dpgram.privacy.curves.calibrate import discrete_mu_at_most
from dpgram.privacy.events import Event
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.sampling.entropy import Entropy
from dpgram.publishing import LedgerLike
from dpgram.publishing.measurements.gram import full_matrix
from dpgram.publishing.measurements.moments import JointGaussian, MeasuredMoments
from dpgram.publishing.measurements.moments import Moments as MomentsMeasurement
from dpgram.publishing.publication import Program
from dpgram.sums.moments import Floats, clipped

VariantName: TypeAlias = Literal["wang2018", "kalaja2020", "exact"]

_PRINTED: Final[Mapping[tuple[str, str], Literal["wang", "wang-code", "kalaja"]]] = {
    ("ssp", "wang2018"): "wang-code",
    ("ssp", "kalaja2020"): "kalaja",
    ("adassp", "wang2018"): "wang",
    ("adassp", "kalaja2020"): "kalaja",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Noisy XᵀX and Xᵀy in the units of the data, and the deviation on the diagonal of the first."""

    second: Floats
    first: Floats
    sigma: float


def printed_variant(
    algorithm: Literal["ssp", "adassp"], variant: str, agreed: Agreed
) -> SufficientStatistics | None:
    """The paper's own constants; None for "exact"."""
    if variant == "exact":
        return None
    constant = _PRINTED.get((algorithm, variant))
    if constant is None:
        raise GuaranteeError(
            "unknown variant", got=repr(variant), limit="'wang2018', 'kalaja2020' or 'exact'"
        )
    return SufficientStatistics(
        claimed=agreed.guarantee, adjacency=agreed.adjacency, algorithm=algorithm, constant=constant
    )


def exact_noise(agreed: Agreed) -> JointGaussian:
    """One joint Gaussian release on the exact curve, discreteness included."""
    if agreed.guarantee.pure:
        raise GuaranteeError(
            "Gaussian noise cannot give a pure guarantee",
            got="delta = 0",
            limit="delta > 0",
            remedy="Give a delta such as 1e-6, or use RobustRegression or OutputPerturbation with delta=0.",
        )
    mu = discrete_mu_at_most(agreed.guarantee.epsilon, agreed.guarantee.delta)
    return JointGaussian.calibrated(mu, agreed.adjacency, width=agreed.width)


def exact_deal(agreed: Agreed) -> Deal:
    """What is asked for is what is given."""
    return Deal(event=exact_noise(agreed).event, guarantee=agreed.guarantee)


def printed_deal(printed: SufficientStatistics) -> Deal:
    """Baselines state what their noise is truly worth, in real arithmetic, and warn.

    Proof: proofs/adassp.md#adassp-printed.
    """
    claimed = printed.claimed
    true = Guarantee(printed.true_epsilon(claimed.delta), claimed.delta)
    if printed.private:
        caution = (
            f"{printed.name} is a baseline with the constants of the paper, drawn in floats: not for data "
            f'that need protection. Use variant="exact"'
        )
    else:
        caution = (
            f"{printed.name} DOES NOT MEET its claim {claimed}: its noise is worth ε = {true.epsilon:.3g} at "
            f'δ = {claimed.delta:g}. A baseline, drawn in floats; use variant="exact"'
        )
    return Deal(event=None, guarantee=true, caution=caution)


def exact_moments(agreed: Agreed, price: Event) -> Program[Moments]:
    """Integer sums of lattice rows with discrete Gaussian noise (proofs/adassp.md)."""
    noise = exact_noise(agreed)
    measurement = MomentsMeasurement(rows=agreed.rows(), noise=noise.noise)
    answer = yield agreed.stage(measurement, price)
    second, first = in_lattice_units(answer.published[0])
    return Moments(
        second=second * agreed.second_unit,
        first=first * agreed.first_unit,
        sigma=noise.second * agreed.second_unit,
    )


def in_lattice_units(measured: MeasuredMoments) -> tuple[Floats, Floats]:
    """What was published, as numbers."""
    width = len(measured.first)
    second = full_matrix(measured.second.matrix.cells, width).astype(np.float64)
    return second, np.array([int(cell) for cell in measured.first], dtype=np.float64)


def float_rows(x: Floats, y: Floats, agreed: Agreed) -> tuple[Floats, Floats]:
    """The rows of a baseline in units of the bounds: |x| ≤ 1 and |y| ≤ 1, in floats."""
    finite = np.isfinite(x).all(axis=1) & np.isfinite(y)
    bounded = np.clip(y[finite], -agreed.y_bound, agreed.y_bound) / agreed.y_bound
    return clipped(x[finite].T, agreed.x_norm).T / agreed.x_norm, bounded


class PerturbedMoments(NormBoundedRegressor, ABC):
    """A regression from noisy XᵀX and Xᵀy: exact, or one of the variants that papers printed."""

    family: ClassVar[Literal["ssp", "adassp"]]

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        x_norm: float | None = None,
        y_bound: float | None = None,
        variant: VariantName = "exact",
        adjacency: str = "add-remove",
        ledger: LedgerLike | None = None,
        entropy: Entropy | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.x_norm = x_norm
        self.y_bound = y_bound
        self.variant = variant
        self.adjacency = adjacency
        self.ledger = ledger
        self.entropy = entropy

    def _deal(self, agreed: Agreed) -> Deal:
        printed = printed_variant(self.family, self.variant, agreed)
        return exact_deal(agreed) if printed is None else printed_deal(printed)

    @final
    def _printed(self, agreed: Agreed) -> SufficientStatistics:
        printed = printed_variant(self.family, self.variant, agreed)
        if printed is None:
            raise TypeError("the exact variant is no baseline")
        return printed


@final
class SSP(PerturbedMoments):
    """(XᵀX + N₁)⁻¹(Xᵀy + N₂) without a ridge: unstable where the noise reaches an eigenvalue.

    `variant="exact"` (default): one joint Gaussian release, (ε, δ)-DP to the letter. "wang2018": the noise of
    the published program, which does not split ε over its two releases and is worth about 1.6ε;
    "kalaja2020": the classical noise of two shares. Both are baselines in floats: `private_` is False, `fit`
    warns, and `guarantee_` holds what their noise is truly worth. proofs/adassp.md
    """

    family: ClassVar[Literal["ssp", "adassp"]] = "ssp"

    def _program(self, agreed: Agreed, price: Event) -> Program[Floats]:
        moments = yield from exact_moments(agreed, price)
        return _solved(moments.second, moments.first)

    def _baseline(self, x: Floats, y: Floats, agreed: Agreed, entropy: Entropy) -> Floats:
        printed = self._printed(agreed)
        rows, target = float_rows(x, y, agreed)
        generator = entropy.generator()
        law = SymmetricGaussian(sigma=printed.sigma)
        second = rows.T @ rows + np.eye(agreed.width) + law.sample(agreed.width, generator)
        first = rows.T @ target + printed.sigma * generator.standard_normal(agreed.width)
        return _solved(second, first) * (agreed.y_bound / agreed.x_norm)


def _solved(matrix: Floats, right: Floats) -> Floats:
    """The least-squares solution: a singular noisy matrix has one too."""
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0], dtype=np.float64)
