"""What must agree inside a release: the mechanism, its noise law, its guarantee, and the form of the receipt.

A digest shows that a file was not damaged; these checks show that it was not written by a confused program.
For every mechanism the price of the stated noise is computed again under the stated adjacency, by the formula
or the curve of its proof: a file that promises more privacy than its noise gives is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from dpgram.document.measurements import measured_delta, measured_price
from dpgram.errors import GuaranteeError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.noise import (
    AdditiveWishart,
    Deflation,
    EigenvectorSampling,
    EntrywiseLaplace,
    InverseWishart,
    MatrixLaplace,
    NoisyInverse,
    SymmetricGaussian,
    WishartSketch,
)
from dpgram.privacy.curves.rounding import up
from dpgram.privacy.events import (
    ApproximateEvent,
    ComposedEvent,
    GaussianEvent,
    PureEvent,
    ZcdpEvent,
    parts_of,
)

if TYPE_CHECKING:
    from dpgram.document.document import Document
    from dpgram.privacy.adjacency import Adjacency
    from dpgram.privacy.curves.base import PrivacyCurve
    from dpgram.privacy.curves.wishart import InverseWishartCurve, SketchCurve
    from dpgram.privacy.receipt import Receipt

_HEX: Final = frozenset("0123456789abcdef")
_ROUNDING: Final = 1e-9
"""What two versions of a mathematical library may differ by; no promise is worth less for it."""
_KEPT: Final = 1.0 - 1e-6
"""Inverse temperatures stay a millionth below their budget: proofs/eigenvectors.md#eigenvectors-floats."""


def one_story(release: Document) -> bool:
    """Whether a known mechanism with exactly its own parameters and law gives at least what is promised."""
    story = STORIES.get(release.mechanism.name)
    try:
        with np.errstate(all="ignore"):  # a price that overflows is not a number, and keeps no promise
            return story is not None and story(release)
    except (ArithmeticError, GuaranteeError):  # numbers for which no price can be computed
        return False


def portion_of_one_table(release: Document) -> bool:
    """Whether unit, group and block say something that can be true together (proofs/units.md)."""
    several = release.unit_rule is not None and release.unit_rule.rows_at_most > 1
    name, block = release.mechanism.name, release.block
    if (release.unit is None) != (release.unit_rule is None) or (several and name in ONE_ROW_ONLY):
        return False
    if release.group is not None:
        proven = not several or name in JOINT_UNITS
        if block is not None or release.adjacency != "add-remove" or not proven:
            return False
    if block is None:
        return True
    own, joint = release.guarantee, block.joint
    stronger = own.epsilon <= joint.epsilon and own.delta <= joint.delta
    return block.number <= block.of and stronger and name in ("gaussian", "matrix-laplace")


def well_formed(receipt: Receipt) -> bool:
    """Whether the receipt could have come from a ledger."""
    hexadecimal = [(receipt.ledger_id, 32), (receipt.receipt_id, 32), (receipt.head, 64)]
    sized = len(receipt.ledger_name) <= 1000 and 1 <= receipt.entry <= 2**53
    return sized and all(len(text) == size and set(text) <= _HEX for text, size in hexadecimal)


def paid_for(release: Document) -> bool:
    """Whether the events on the receipts are as large as what the release says of itself."""
    told, block = release.guarantee, release.block
    events = [receipt.event for receipt in release.receipts]
    if not events or release.receipt is None:
        return not events
    if block is not None and len(events) == 1 and isinstance(events[0], ComposedEvent):
        if len(events[0].parts) != block.of:
            return False
        events = [events[0].parts[block.number - 1]]
    parts = [part for event in events for part in parts_of(event)]
    if measured_delta(release):
        # The guarantee was checked against the noise itself; here, that the δ of the levels was paid too.
        leak = sum(part.delta for part in parts if isinstance(part, ApproximateEvent))
        return leak >= measured_delta(release) * (1 - _ROUNDING)
    if all(isinstance(part, GaussianEvent) for part in parts):
        mu = math.sqrt(sum(part.mu**2 for part in parts if isinstance(part, GaussianEvent)))
        return told.mu is not None and mu >= told.mu * (1 - _ROUNDING)
    # Pure counts beside a mechanism of another kind: ε and δ add up, and ρ stands for itself.
    epsilon = sum(part.epsilon for part in parts if isinstance(part, PureEvent | ApproximateEvent))
    delta = sum(part.delta for part in parts if isinstance(part, ApproximateEvent))
    for part in parts:
        if isinstance(part, ZcdpEvent):
            return part.rho >= _number(release, "rho") * (1 - _ROUNDING)
        if isinstance(part, GaussianEvent):
            return True  # inverse-noise after pure counts: its own μ was checked against its noise
    paid = epsilon >= told.epsilon * (1 - _ROUNDING) and delta >= told.delta * (1 - _ROUNDING)
    return told.mu is None and paid


@final
@dataclass(frozen=True, slots=True)
class _Share:
    """What is left of the promise for the matrix, once what was measured before it is subtracted."""

    epsilon: float
    delta: float
    whole: bool
    """Whether that is all of it."""

    def stated(self, epsilon: object) -> bool:
        """Whether a mechanism's own ε is this one; a difference is known up to rounding only."""
        near = isinstance(epsilon, float) and math.isclose(epsilon, self.epsilon, rel_tol=_ROUNDING)
        return epsilon == self.epsilon if self.whole else near


def _share(release: Document) -> _Share:
    """Pure counts and a matrix compose by adding ε and δ; nothing was measured: all of it."""
    told = release.guarantee
    if not release.measured:
        return _Share(told.epsilon, told.delta, whole=True)
    before = float(measured_price(release, _steps(release)))
    return _Share(told.epsilon - before, told.delta - measured_delta(release), whole=False)


def _gaussian(release: Document) -> bool:
    """μ ≥ Δ/σ with Δ = 2^30 or √2·2^30, and ρ and (ε, δ) that follow from it (proofs/gaussian.md)."""
    law, told = release.noise, release.guarantee
    if not isinstance(law, SymmetricGaussian) or release.mechanism.parameters != {"sigma": law.sigma}:
        return False
    if not law.sigma > 0 or told.delta == 0 or not _plain_gram(release):
        return False
    own = _steps(release) * (ROW_NORM_SQUARED / law.sigma) ** 2
    return _gaussian_promise(release, math.sqrt(own + float(measured_price(release, _steps(release)))))


def _gaussian_promise(release: Document, mu: float) -> bool:
    """Whether μ, ρ and (ε, δ) promise no more than noise that is `mu`-GDP gives."""
    from dpgram.privacy.curves.base import GaussianCurve  # brings scipy, which is slow to load

    told, leak = release.guarantee, measured_delta(release)
    if leak:  # learnt levels have a δ of their own, so there is no μ for the whole
        rest = told.delta * (1 + _ROUNDING) - leak
        met = rest > 0 and GaussianCurve(mu).within(told.epsilon * (1 + _ROUNDING), rest)
        return met and told.mu is None and told.rho is None
    if told.mu is None or told.mu < mu * (1 - _ROUNDING):
        return False
    if told.rho is not None and told.rho < 0.5 * told.mu * told.mu * (1 - _ROUNDING):
        return False
    return GaussianCurve(told.mu).within(told.epsilon * (1 + _ROUNDING), told.delta * (1 + _ROUNDING))


def _matrix_laplace(release: Document) -> bool:
    """ε ≥ θ·2^30 or θ·2^31, and δ = 0 (proofs/matrix-laplace.md)."""
    law, told = release.noise, release.guarantee
    if not isinstance(law, MatrixLaplace) or release.mechanism.parameters != {"theta": law.theta}:
        return False
    whole = law.width == release.schema.width and told.delta == measured_delta(release)
    if not law.theta > 0 or not whole or not _plain_gram(release):
        return False
    own = _steps(release) * ROW_NORM_SQUARED * law.theta
    return told.epsilon >= (own + float(measured_price(release, _steps(release)))) * (1 - _ROUNDING)


def _laplace(release: Document) -> bool:
    """ε ≥ Δ_w/b with w = b/b_ii the weight of the diagonal, and δ = 0 (proofs/laplace.md)."""
    law, told = release.noise, release.guarantee
    if not isinstance(law, EntrywiseLaplace) or release.mechanism.parameters != {"scale": law.scale}:
        return False
    pure = told.delta == measured_delta(release)
    if not (law.diagonal_scale >= law.scale > 0 and pure and _plain_gram(release)):
        return False
    weight = law.scale / law.diagonal_scale
    sensitivity = _relation(release).gram_l1(release.schema.width, float(ROW_NORM_SQUARED), diagonal=weight)
    return _share(release).epsilon * (1 + _ROUNDING) >= sensitivity / law.scale


def _told(release: Document, **expected: object) -> bool:
    """Whether the parameters are the guarantee, these, and nothing else."""
    share, parameters = _share(release), dict(release.mechanism.parameters)
    own = share.stated(parameters.pop("epsilon", None)) and parameters.pop("delta", None) == share.delta
    return share.delta > 0 and own and parameters == expected


def _within(release: Document, curve: PrivacyCurve) -> bool:
    """Whether the curve of the stated noise keeps the stated (ε, δ), and no more is stated than that."""
    told, share = release.guarantee, _share(release)
    plain = told.mu is None and told.rho is None
    return plain and curve.within(share.epsilon * (1 + _ROUNDING), share.delta * (1 + _ROUNDING))


def _ratio(ridge: float) -> float:
    """t: the squared length of a row over the ridge, as the calibration rounds it."""
    return up(ROW_NORM_SQUARED / ridge)


def _wishart(release: Document) -> bool:
    """The exact curve of m = k − d + 1 and τ = 2^30/s² (proofs/additive-wishart.md)."""
    law, width = release.noise, release.schema.width
    if not isinstance(law, AdditiveWishart) or not _told(release, scale=law.scale, degrees=law.degrees):
        return False
    if not (law.scale > 0 and law.degrees > width and _plain_gram(release)):
        return False
    from dpgram.privacy.curves.wishart import AdditiveWishartCurve

    spare, ratio = float(law.degrees - width + 1), ROW_NORM_SQUARED / law.scale
    return _within(release, AdditiveWishartCurve(adjacency=_relation(release), degrees=spare, ratio=ratio))


def _sketch(release: Document) -> bool:
    """The exact curve of r and t = 2^30/w² (proofs/sketch.md)."""
    law = release.noise
    if not isinstance(law, WishartSketch) or not _told(release, ridge=law.ridge, rows=law.rows):
        return False
    if not (law.ridge >= 1 and law.rows > 0 and _plain_gram(release)):
        return False
    return _within(release, _sketch_curve(release, law.rows, law.ridge))


def _inverse_wishart(release: Document) -> bool:
    """The exact curve of ν and t = 2^30/ψ (proofs/inverse-wishart.md)."""
    law = release.noise
    if not isinstance(law, InverseWishart) or not _told(release, prior=law.prior, degrees=law.degrees):
        return False
    if not (law.prior >= 1 and law.degrees > release.schema.width + 1 and _plain_gram(release)):
        return False
    return _within(release, _inverse_wishart_curve(release, law.degrees, law.prior))


def _sketch_adaptive(release: Document) -> bool:
    """The look and the draw at the largest ridge together (proofs/sketch.md#sketch-adaptive)."""
    law = release.noise
    largest, mu, beta = (_number(release, name) for name in ("largest_ridge", "mu", "beta"))
    if not isinstance(law, WishartSketch):
        return False
    told = _told(release, largest_ridge=largest, rows=law.rows, mu=mu, beta=beta)
    if not (told and 1 <= law.ridge <= largest and law.rows > 0 and _plain_gram(release)):
        return False
    return _looked(release, _sketch_curve(release, law.rows, largest), mu, beta)


def _inverse_wishart_adaptive(release: Document) -> bool:
    """The look and the draw at the largest prior together (proofs/inverse-wishart.md)."""
    law = release.noise
    largest, mu, beta = (_number(release, name) for name in ("largest_prior", "mu", "beta"))
    if not isinstance(law, InverseWishart):
        return False
    told = _told(release, largest_prior=largest, degrees=law.degrees, mu=mu, beta=beta)
    enough = law.degrees > release.schema.width + 1
    if not (told and 1 <= law.prior <= largest and enough and _plain_gram(release)):
        return False
    return _looked(release, _inverse_wishart_curve(release, law.degrees, largest), mu, beta)


def _number(release: Document, name: str) -> float:
    """A parameter that must be a float; not a number, which no comparison passes, where it is none."""
    found = release.mechanism.parameters.get(name)
    return found if isinstance(found, float) else math.nan


def _sketch_curve(release: Document, rows: int, ridge: float) -> SketchCurve:
    from dpgram.privacy.curves.wishart import SketchCurve

    return SketchCurve(adjacency=_relation(release), degrees=float(rows), ratio=_ratio(ridge))


def _inverse_wishart_curve(release: Document, degrees: int, prior: float) -> InverseWishartCurve:
    from dpgram.privacy.curves.wishart import InverseWishartCurve

    return InverseWishartCurve(adjacency=_relation(release), degrees=float(degrees), ratio=_ratio(prior))


def _looked(release: Document, inner: SketchCurve | InverseWishartCurve, mu: float, beta: float) -> bool:
    """Whether a look at the least eigenvalue and then `inner` keep the guarantee."""
    from dpgram.privacy.curves.wishart import AdaptiveCurve

    return _within(release, AdaptiveCurve(inner=inner, mu=mu, beta=beta))


def _inverse_noise(release: Document) -> bool:
    """μ ≥ Δ/σ with Δ the sensitivity of (G + L·I)⁻¹ on its grid (proofs/inverse-noise.md)."""
    law, told, published = release.noise, release.guarantee, release.published
    expected = {"ridge": law.ridge, "sigma": law.sigma} if isinstance(law, NoisyInverse) else None
    if not isinstance(law, NoisyInverse) or release.mechanism.parameters != expected:
        return False
    if not (law.ridge > 0 and law.sigma > 0) or published.kind != "inverse":
        return False
    from dpgram.privacy.curves.inverse import inverse_exponent, inverse_sensitivity

    rule = release.unit_rule
    sensitivity = inverse_sensitivity(
        _relation(release),
        release.schema.width,
        law.ridge,
        unit_rows=1 if rule is None else rule.rows_at_most,
    )
    on_grid = published.exponent == inverse_exponent(law.ridge)
    if release.measured:  # pure counts came before it
        from dpgram.privacy.curves.base import GaussianCurve

        return on_grid and _within(release, GaussianCurve(sensitivity / law.sigma))
    return on_grid and told.mu is not None and _gaussian_promise(release, sensitivity / law.sigma)


def _eigenvectors(release: Document) -> bool:
    """ε ≥ Δ_λ/b + range·Σc_i, or ρ ≥ (Δ_λ/b)²/2 + range²·Σc_i²/8 (proofs/eigenvectors.md)."""
    law, told, parameters = release.noise, release.guarantee, release.mechanism.parameters
    pure = release.mechanism.name == "eigenvectors"
    if not isinstance(law, EigenvectorSampling) or law.norm != (1 if pure else 2):
        return False
    if not (law.value_scale > 0 and law.total >= 0 and _directions(release, law)):
        return False
    from dpgram.privacy.curves.spectral import eigenvalue_sensitivity

    relation = _relation(release)
    values = eigenvalue_sensitivity(relation, release.schema.width) / law.value_scale
    directions = relation.utility_range(1.0) * law.total / _KEPT
    if pure:
        share = _share(release)
        enough = share.epsilon * (1 + _ROUNDING) >= values + directions
        return enough and told.delta == measured_delta(release) and share.stated(parameters.get("epsilon"))
    from dpgram.privacy.curves.base import ConcentratedCurve

    rho = 0.5 * values**2 + 0.125 * directions**2
    enough = _number(release, "rho") * (1 + _ROUNDING) >= rho
    return enough and told.delta > 0 and _within(release, ConcentratedCurve(rho))


def _deflation(release: Document) -> bool:
    """ε ≥ k(1/b + range·c) (proofs/eigenvectors.md#eigenvectors-deflation)."""
    law, told = release.noise, release.guarantee
    if not isinstance(law, Deflation) or not (law.value_scale > 0 and law.temperature >= 0):
        return False
    step = 1.0 / law.value_scale + _relation(release).utility_range(1.0) * law.temperature / _KEPT
    share = _share(release)
    enough = share.epsilon * (1 + _ROUNDING) >= law.rank * step
    stated = share.stated(release.mechanism.parameters.get("epsilon"))
    return enough and stated and told.delta == measured_delta(release) and _directions(release, law)


def _directions(release: Document, law: EigenvectorSampling | Deflation) -> bool:
    """Whether the parameters are those of a mechanism that draws directions, and the rank is possible."""
    parameters = release.mechanism.parameters
    known = {"epsilon", "rho", "rank", "range_per_unit", "value_sensitivity", "split"}
    told = release.guarantee
    return (
        set(parameters) <= known
        and 1 <= law.rank <= release.schema.width
        and parameters.get("rank") == law.rank
        and told.mu is None
        and told.rho is None
        and _plain_gram(release)
    )


def _plain_gram(release: Document) -> bool:
    return release.published.kind == "gram" and release.published.exponent == 0


def _relation(release: Document) -> Adjacency:
    from dpgram.privacy.adjacency import adjacency

    return adjacency(release.adjacency)


def _steps(release: Document) -> int:
    return 1 if release.adjacency == "add-remove" else 2


ONE_ROW_ONLY: Final = frozenset(
    {"wishart", "sketch", "sketch-adaptive", "inverse-wishart", "inverse-wishart-adaptive"}
)
"""Mechanisms whose curves are proven for a change of rank one, so not for a unit of several rows."""
JOINT_UNITS: Final = frozenset({"gaussian", "matrix-laplace", "laplace"})
"""Mechanisms that may serve several groups at the price of one where a unit has rows in several of them."""

STORIES: Final[Mapping[str, Callable[[Document], bool]]] = {
    "gaussian": _gaussian,
    "matrix-laplace": _matrix_laplace,
    "laplace": _laplace,
    "wishart": _wishart,
    "sketch": _sketch,
    "sketch-adaptive": _sketch_adaptive,
    "inverse-wishart": _inverse_wishart,
    "inverse-wishart-adaptive": _inverse_wishart_adaptive,
    "inverse-noise": _inverse_noise,
    "eigenvectors": _eigenvectors,
    "eigenvectors-zcdp": _eigenvectors,
    "deflation": _deflation,
}
"""Every mechanism a release may name, and what must hold for it."""
