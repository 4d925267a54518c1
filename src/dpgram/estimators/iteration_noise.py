"""The noise of the 2J steps of private reweighted least squares, and what each way of accounting allows.

Each of J iterations perturbs a second moment (matrix) and a first moment (vector). All parameters are fixed
before the first iteration, so the whole fit is one composed event with an exact guarantee: the rule decides
how much noise there is, the accountant what it is worth.
proofs/robust.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias, final

from dpgram.errors import GuaranteeError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import (
    CalibratedGaussian,
    CalibratedMechanism,
    Gaussian,
    MatrixLaplace,
    Mechanism,
    PublicFacts,
    Wishart,
)
from dpgram.privacy.accountant import Event, GaussianEvent, PureEvent, composed, guarantee_of
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.curves.calibrate import (
    DISCRETE_SLACK,
    discrete_gaussian_sigma,
    discrete_mu_at_most,
    proven_sigma,
)
from dpgram.privacy.curves.rounding import SLACK, down, up
from dpgram.privacy.curves.search import greatest
from dpgram.privacy.guarantee import Guarantee, pure_rho_at_least, rho_at_most
from dpgram.publishing.measurements.moments import JointGaussian, MomentNoise, VectorLaw, VectorNoise

Accounting: TypeAlias = Literal["zcdp", "gdp", "advanced", "basic"]
MatrixNoiseName: TypeAlias = Literal["gaussian", "matrix-laplace", "wishart"]

MATRIX_NOISES: Final[Mapping[str, Mechanism]] = {
    mechanism.name: mechanism for mechanism in (Gaussian(), MatrixLaplace(), Wishart())
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IterationSettings:
    """What was asked for: public facts only."""

    guarantee: Guarantee
    adjacency: Adjacency
    width: int
    iterations: int
    accounting: Accounting
    first: VectorLaw
    second: MatrixNoiseName

    @property
    def facts(self) -> PublicFacts:
        """For the mechanisms of the second moment."""
        return PublicFacts(width=self.width, adjacency=self.adjacency)

    @property
    def first_l2(self) -> float:
        """How far one row can move the first moment."""
        return first_l2(self.adjacency)

    @property
    def approximate_steps(self) -> int:
        """Steps that are (ε', δ')-DP and not pure."""
        return self.iterations * ((self.first == "gaussian") + (not MATRIX_NOISES[self.second].pure))


def first_l2(adjacency: Adjacency) -> float:
    """|Δ Σ q t| in lattice units: one row, or one there and another back."""
    return float(adjacency.units_changed * ROW_NORM_SQUARED)


def first_l1(adjacency: Adjacency, width: int) -> float:
    """√d times that."""
    return up(math.sqrt(width) * first_l2(adjacency))


@lru_cache(maxsize=256)
def calibrated(settings: IterationSettings) -> MomentNoise:
    """The noise of every iteration under the accounting asked for. Proof: proofs/robust.md#robust-rules."""
    rule = _RULES.get(settings.accounting)
    if rule is None:
        raise GuaranteeError(
            "unknown accounting", got=repr(settings.accounting), limit=" or ".join(map(repr, _RULES))
        )
    if settings.second not in MATRIX_NOISES or settings.first not in ("gaussian", "laplace"):
        raise GuaranteeError(
            "unknown noise",
            got=f"first={settings.first!r}, second={settings.second!r}",
            limit=f"first: 'gaussian' or 'laplace'; second: {' or '.join(map(repr, MATRIX_NOISES))}",
        )
    needs_delta = settings.approximate_steps > 0 or settings.accounting != "basic"
    if needs_delta and settings.guarantee.pure:
        raise GuaranteeError(
            "this combination has no pure guarantee",
            got="delta = 0",
            limit="accounting='basic', first='laplace', second='matrix-laplace'",
            remedy="Give a delta such as 1e-6, or these parameters.",
        )
    return rule(settings)


@lru_cache(maxsize=256)
def exact_guarantee(settings: IterationSettings) -> Guarantee:
    """The exact guarantee of all iterations together at the asked δ, discreteness of the noise included.

    Proof: proofs/robust.md#robust-claim.
    """
    event, asked = event_of(settings), settings.guarantee
    exact = guarantee_of(event, 0.0).epsilon if asked.pure else discrete_epsilon(event, asked.delta)
    # The rule itself is a theorem, so its own (ε, δ) holds too.
    return Guarantee(min(exact, asked.epsilon), asked.delta)


def discrete_epsilon(event: Event, delta: float) -> float:
    """ε of the event at δ > 0, discreteness of the noise included."""
    return guarantee_of(event, delta * (1.0 - DISCRETE_SLACK)).epsilon + DISCRETE_SLACK


def event_of(settings: IterationSettings) -> Event:
    """What a ledger is charged for all iterations. Proof: proofs/robust.md#robust-claim."""
    return composed(list(calibrated(settings).events) * settings.iterations)


def _noise_of_each_step(settings: IterationSettings, epsilon: float, delta: float) -> MomentNoise:
    """Every step (ε', δ')-DP, the pure ones ε'-DP."""
    mechanism = MATRIX_NOISES[settings.second].calibrated(Guarantee(epsilon, delta), settings.facts)
    if settings.first == "gaussian":
        sigma = discrete_gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=settings.first_l2)
        return _with_gaussian_vector(settings, mechanism, sigma)
    return _with_laplace_vector(settings, mechanism, epsilon)


def gaussian_vector(sensitivity: float, sigma: float) -> tuple[VectorNoise, Event]:
    """Noise of deviation σ on a vector that one row moves by `sensitivity` (L2), and what it costs."""
    return VectorNoise(law="gaussian", scale=proven_sigma(sigma)), GaussianEvent(mu=up(sensitivity / sigma))


def laplace_vector(sensitivity: float, epsilon: float) -> tuple[VectorNoise, Event]:
    """ε-DP noise on a vector that one row moves by `sensitivity` (L1), and what it costs."""
    scale = up(sensitivity / epsilon * (1.0 + 4.0 * SLACK))
    return VectorNoise(law="laplace", scale=scale), PureEvent(epsilon=up(sensitivity / scale))


def _with_gaussian_vector(
    settings: IterationSettings, mechanism: CalibratedMechanism, sigma: float
) -> MomentNoise:
    return _as_two_events(settings, mechanism, *gaussian_vector(settings.first_l2, sigma))


def _with_laplace_vector(
    settings: IterationSettings, mechanism: CalibratedMechanism, epsilon: float
) -> MomentNoise:
    return _as_two_events(
        settings, mechanism, *laplace_vector(first_l1(settings.adjacency, settings.width), epsilon)
    )


def _as_two_events(
    settings: IterationSettings, mechanism: CalibratedMechanism, noise: VectorNoise, event: Event
) -> MomentNoise:
    return MomentNoise(second=mechanism, first=noise, events=(mechanism.event(settings.facts), event))


def _as_one_event(settings: IterationSettings, mu: float) -> MomentNoise:
    """Both moments in one Gaussian release of μ: cheaper than apart, as one row cannot be worst for both."""
    return JointGaussian.calibrated(mu, settings.adjacency, width=settings.width).noise


def _basic(settings: IterationSettings) -> MomentNoise:
    """Σε' = ε, Σδ' = δ."""
    return _noise_of_each_step(
        settings, down(settings.guarantee.epsilon / (2 * settings.iterations)), _share_of_delta(settings, 1.0)
    )


def _advanced(settings: IterationSettings) -> MomentNoise:
    """√(2k ln(1/δ_s))ε' + kε'(e^{ε'} − 1) = ε for k = 2J steps; half of δ is δ_s where steps need some."""
    steps, total, epsilon = 2 * settings.iterations, settings.guarantee.delta, settings.guarantee.epsilon
    slack = 0.5 * total if settings.approximate_steps else total
    spread = math.sqrt(2.0 * steps * math.log(1.0 / slack))
    share = greatest(lambda e: up(spread * e + steps * e * math.expm1(min(e, 500.0))) <= epsilon)
    return _noise_of_each_step(settings, share, _share_of_delta(settings, 0.5))


def _share_of_delta(settings: IterationSettings, part: float) -> float:
    """δ' of each step that needs one, out of a part of δ; the slack for discreteness stays free."""
    if not settings.approximate_steps:
        return 0.0
    return down(part * settings.guarantee.delta * (1.0 - 2.0 * DISCRETE_SLACK) / settings.approximate_steps)


def _zcdp(settings: IterationSettings) -> MomentNoise:
    """Σρ' = ρ(ε, δ): Gaussian steps cost μ²/2, an ε'-DP step ε' tanh(ε'/2)."""
    wishart = settings.second == "wishart"  # known as (ε', δ')-DP only: half of δ goes to its failures
    delta = 0.5 * settings.guarantee.delta if wishart else settings.guarantee.delta
    each = down(rho_at_most(settings.guarantee.epsilon, down(delta)) / (2 * settings.iterations))
    if settings.first == settings.second == "gaussian":
        return _as_one_event(settings, down(math.sqrt(4.0 * each)))
    pure = greatest(lambda epsilon: pure_rho_at_least(epsilon) <= each)
    if settings.second == "gaussian":
        mechanism: CalibratedMechanism = _gaussian(settings, each)
    else:
        leak = down(delta / settings.iterations) if wishart else 0.0
        mechanism = MATRIX_NOISES[settings.second].calibrated(Guarantee(pure, leak), settings.facts)
    if settings.first == "gaussian":
        return _with_gaussian_vector(settings, mechanism, up(settings.first_l2 / math.sqrt(2.0 * each)))
    return _with_laplace_vector(settings, mechanism, pure)


def _gaussian(settings: IterationSettings, rho: float) -> CalibratedGaussian:
    sensitivity = settings.adjacency.gram_frobenius(float(ROW_NORM_SQUARED))
    return CalibratedGaussian(sigma=proven_sigma(up(sensitivity / math.sqrt(2.0 * rho))))


def _gdp(settings: IterationSettings) -> MomentNoise:
    """Σμ² = μ(ε, δ)²: exact, for Gaussian noise on both moments."""
    if not settings.first == settings.second == "gaussian":
        raise GuaranteeError(
            "accounting='gdp' adds up Gaussian noise",
            got=f"first={settings.first!r}, second={settings.second!r}",
            remedy="Take both 'gaussian', or accounting='zcdp'.",
        )
    mu = discrete_mu_at_most(settings.guarantee.epsilon, settings.guarantee.delta)
    return _as_one_event(settings, down(mu / math.sqrt(settings.iterations)))


_RULES: Final[Mapping[str, Callable[[IterationSettings], MomentNoise]]] = {
    "zcdp": _zcdp,
    "gdp": _gdp,
    "advanced": _advanced,
    "basic": _basic,
}
