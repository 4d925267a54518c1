"""What must agree inside a release: the mechanism, its noise law, its guarantee, and the form of the receipt.

A digest shows that a file was not damaged; these checks show that it was not written by a confused program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

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
from dpgram.privacy.events import ApproximateEvent, ComposedEvent, GaussianEvent, PureEvent, parts_of
from dpgram.release_measurements import measured_delta, measured_price

if TYPE_CHECKING:
    from dpgram.privacy.receipt import Receipt
    from dpgram.release import Release

_HEX: Final = frozenset("0123456789abcdef")
_ROUNDING: Final = 1e-9


def one_story(release: Release) -> bool:
    """Whether a known mechanism with exactly its own parameters and law gives at least what is promised."""
    story = STORIES.get(release.mechanism.name)
    return story is not None and story(release)


def portion_of_one_table(release: Release) -> bool:
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


def paid_for(release: Release) -> bool:
    """Whether the events on the receipts are as large as what the release says of itself."""
    told, block = release.guarantee, release.block
    events = [receipt.event for receipt in release.receipts]
    if not events:
        return release.first_receipt is None
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
    if all(isinstance(part, PureEvent) for part in parts):
        epsilon = sum(part.epsilon for part in parts if isinstance(part, PureEvent))
        return told.mu is None and epsilon >= told.epsilon * (1 - _ROUNDING)
    return True


def _gaussian(release: Release) -> bool:
    """μ ≥ Δ/σ with Δ = 2^30 or √2·2^30, and ρ and (ε, δ) that follow from it (proofs/gaussian.md)."""
    law, told = release.noise, release.guarantee
    if not isinstance(law, SymmetricGaussian) or release.mechanism.parameters != {"sigma": law.sigma}:
        return False
    if not law.sigma > 0 or told.delta == 0 or not _plain_gram(release):
        return False
    own = _steps(release) * (ROW_NORM_SQUARED / law.sigma) ** 2
    return _gaussian_promise(release, math.sqrt(own + float(measured_price(release, _steps(release)))))


def _gaussian_promise(release: Release, mu: float) -> bool:
    """Whether μ, ρ and (ε, δ) promise no more than noise that is `mu`-GDP gives."""
    from dpgram.privacy.curves import GaussianCurve  # brings scipy, which is slow to load

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


def _matrix_laplace(release: Release) -> bool:
    """ε ≥ θ·2^30 or θ·2^31, and δ = 0 (proofs/matrix-laplace.md)."""
    law, told = release.noise, release.guarantee
    if not isinstance(law, MatrixLaplace) or release.mechanism.parameters != {"theta": law.theta}:
        return False
    whole = law.width == release.schema.width and told.delta == measured_delta(release)
    if not law.theta > 0 or not whole or not _plain_gram(release):
        return False
    own = _steps(release) * ROW_NORM_SQUARED * law.theta
    return told.epsilon >= (own + float(measured_price(release, _steps(release)))) * (1 - _ROUNDING)


def _laplace(release: Release) -> bool:
    """ε·b is at least the row's share on the diagonal alone, and δ = 0 (proofs/laplace.md)."""
    law, told = release.noise, release.guarantee
    if not isinstance(law, EntrywiseLaplace) or release.mechanism.parameters != {"scale": law.scale}:
        return False
    honest = law.diagonal_scale >= law.scale > 0 and told.delta == 0 and _plain_gram(release)
    return honest and told.epsilon * law.scale >= 0.5 * ROW_NORM_SQUARED


def _told(release: Release, **expected: object) -> bool:
    """Whether the parameters are the guarantee, these, and nothing else."""
    told = release.guarantee
    asked = {"epsilon": told.epsilon, "delta": told.delta, **expected}
    return told.delta > 0 and release.mechanism.parameters == asked


def _wishart(release: Release) -> bool:
    law = release.noise
    if not isinstance(law, AdditiveWishart) or not _told(release, scale=law.scale, degrees=law.degrees):
        return False
    return law.scale > 0 and law.degrees > release.schema.width and _plain_gram(release)


def _sketch(release: Release) -> bool:
    law = release.noise
    if not isinstance(law, WishartSketch) or not _told(release, ridge=law.ridge, rows=law.rows):
        return False
    return law.ridge > 0 and law.rows > 0 and _plain_gram(release)


def _inverse_wishart(release: Release) -> bool:
    law = release.noise
    if not isinstance(law, InverseWishart) or not _told(release, prior=law.prior, degrees=law.degrees):
        return False
    return law.prior > 0 and law.degrees > release.schema.width + 1 and _plain_gram(release)


def _sketch_adaptive(release: Release) -> bool:
    law, parameters = release.noise, release.mechanism.parameters
    largest, mu, beta = (parameters.get(name) for name in ("largest_ridge", "mu", "beta"))
    if not isinstance(law, WishartSketch) or not isinstance(largest, float):
        return False
    told = _told(release, largest_ridge=largest, rows=law.rows, mu=mu, beta=beta)
    return told and 0 <= law.ridge <= largest and law.rows > 0 and _plain_gram(release)


def _inverse_wishart_adaptive(release: Release) -> bool:
    law, parameters = release.noise, release.mechanism.parameters
    largest, mu, beta = (parameters.get(name) for name in ("largest_prior", "mu", "beta"))
    if not isinstance(law, InverseWishart) or not isinstance(largest, float):
        return False
    told = _told(release, largest_prior=largest, degrees=law.degrees, mu=mu, beta=beta)
    return (
        told and 0 <= law.prior <= largest and law.degrees > release.schema.width + 1 and _plain_gram(release)
    )


def _inverse_noise(release: Release) -> bool:
    """μ ≥ Δ/σ with Δ the sensitivity of (G + L·I)⁻¹ (proofs/inverse-noise.md)."""
    law, told = release.noise, release.guarantee
    expected = {"ridge": law.ridge, "sigma": law.sigma} if isinstance(law, NoisyInverse) else None
    if not isinstance(law, NoisyInverse) or release.mechanism.parameters != expected:
        return False
    if not (law.ridge > 0 and law.sigma > 0) or told.mu is None or release.published.kind != "inverse":
        return False
    from dpgram.privacy.adjacency import adjacency

    rule = release.unit_rule
    rank = 1 if rule is None else min(rule.rows_at_most, release.schema.width)
    sensitivity = adjacency(release.adjacency).inverse_frobenius(
        float(ROW_NORM_SQUARED), law.ridge, rank=rank
    )
    return _gaussian_promise(release, sensitivity / law.sigma)


def _spectral(release: Release) -> bool:
    law, told = release.noise, release.guarantee
    parameters = release.mechanism.parameters
    pure = release.mechanism.name != "eigenvectors-zcdp"
    if not isinstance(law, EigenvectorSampling | Deflation) or not _plain_gram(release):
        return False
    honest = (
        law.value_scale > 0 and 1 <= law.rank <= release.schema.width and parameters.get("rank") == law.rank
    )
    if pure:
        return honest and told.delta == 0 and parameters.get("epsilon") == told.epsilon
    return honest and told.delta > 0 and isinstance(parameters.get("rho"), float)


def _plain_gram(release: Release) -> bool:
    return release.published.kind == "gram" and release.published.exponent == 0


def _steps(release: Release) -> int:
    return 1 if release.adjacency == "add-remove" else 2


ONE_ROW_ONLY: Final = frozenset(
    {"wishart", "sketch", "sketch-adaptive", "inverse-wishart", "inverse-wishart-adaptive"}
)
"""Mechanisms whose curves are proven for a change of rank one, so not for a unit of several rows."""
JOINT_UNITS: Final = frozenset({"gaussian", "matrix-laplace", "laplace"})
"""Mechanisms that may serve several groups at the price of one where a unit has rows in several of them."""

STORIES: Final[Mapping[str, Callable[[Release], bool]]] = {
    "gaussian": _gaussian,
    "matrix-laplace": _matrix_laplace,
    "laplace": _laplace,
    "wishart": _wishart,
    "sketch": _sketch,
    "sketch-adaptive": _sketch_adaptive,
    "inverse-wishart": _inverse_wishart,
    "inverse-wishart-adaptive": _inverse_wishart_adaptive,
    "inverse-noise": _inverse_noise,
    "eigenvectors": _spectral,
    "eigenvectors-zcdp": _spectral,
    "deflation": _spectral,
}
"""Every mechanism a release may name, and what must hold for it."""
