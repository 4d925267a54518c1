"""The terms of a release: which noise its matrix gets and what that promises, before a row is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Unpack, final

import msgspec

from dpgram.document.fields import AdjacencyName, Block, MechanismUsed, Policy, StatedGuarantee
from dpgram.document.statement import in_words
from dpgram.engines.passes import Pass
from dpgram.errors import GuaranteeError
from dpgram.mechanisms import (
    Auto,
    CalibratedGaussian,
    CalibratedMechanism,
    Gaussian,
    MatrixLaplace,
    PublicFacts,
)
from dpgram.mechanisms.choice import choose
from dpgram.privacy.accountant import Currency, Event, GaussianEvent, composed, curve_of, parts_of
from dpgram.privacy.curves.calibrate import DISCRETE_SLACK
from dpgram.privacy.curves.rounding import down, up
from dpgram.privacy.exact_sums import float_up, root_up
from dpgram.privacy.guarantee import GaussianDP, Guarantee
from dpgram.publishing._blocks import gaussian_shares, pure_shares
from dpgram.publishing._model_steps import ModelsBudget
from dpgram.publishing.measurements.gram import Gram
from dpgram.publishing.request import Asked, LedgerLike, Request, open_ledger, requested
from dpgram.publishing.split import SLACK
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import RowRules
from dpgram.schema import Schema


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseTerms:
    """The matrix of one release: its columns, its noise, its promise. Public facts only."""

    encoder: Encoder
    facts: PublicFacts
    guarantee: Guarantee
    """What this release promises by itself, what was measured before it included."""
    mechanism: CalibratedMechanism
    event: Event
    """Of the matrix alone."""
    gaussian: GaussianDP | None
    """The exact Gaussian parameter of the whole release, where it has one."""
    reason: str
    rules: RowRules
    block: Block | None = None

    @property
    def schema(self) -> Schema:
        return self.encoder.schema

    @property
    def radius(self) -> float:
        """R: no row is longer."""
        return self.encoder.radius

    @property
    def policy(self) -> Policy:
        """What happens to values outside the schema, as the release records it."""
        return Policy(missing=self.encoder.missing, strict=self.encoder.strict)

    @property
    def unit(self) -> str | None:
        """The column whose values are protected as a whole; None: the row."""
        return self.rules.unit

    @property
    def measurement(self) -> Gram:
        return Gram(encoder=self.encoder, mechanism=self.mechanism, facts=self.facts)

    def used(self) -> MechanismUsed:
        """The mechanism as the release records it."""
        parameters = msgspec.to_builtins(self.mechanism)
        return MechanismUsed(name=self.mechanism.name, parameters=parameters, choice=self.reason)

    def stated(self) -> StatedGuarantee:
        """The guarantee as the release records it, in numbers and words."""
        return stated(self.guarantee, self.facts.adjacency.name, self.unit, self.gaussian)


def stated(
    promised: Guarantee, adjacency: AdjacencyName, unit: str | None, gaussian: GaussianDP | None
) -> StatedGuarantee:
    """A guarantee in numbers and words."""
    return StatedGuarantee(
        epsilon=promised.epsilon,
        delta=promised.delta,
        mu=None if gaussian is None else gaussian.mu,
        rho=None if gaussian is None else gaussian.rho_at_least(),
        statement=in_words(epsilon=promised.epsilon, delta=promised.delta, adjacency=adjacency, unit=unit),
    )


def matrix_pass(terms: Sequence[ReleaseTerms], rules: RowRules) -> Pass:
    """One pass that adds up the matrices of all blocks and groups."""
    return Pass(rules=rules, statistics=tuple(one.measurement.statistic for one in terms))


def terms_of(
    schema: Schema, *, epsilon: float, delta: float, ledger: LedgerLike | None = None, **asked: Unpack[Asked]
) -> tuple[ReleaseTerms, ...]:
    """Validate and price it, for every block. Reads no data, spends nothing, raises what `publish` would."""
    book = open_ledger(ledger)
    request = requested(schema, epsilon=epsilon, delta=delta, **asked)
    terms = matrix_terms(request, None if book is None else book.currency)
    if book is not None:
        event = plain_price(request, terms)
        book.check(event, adjacency=request.adjacency, unit=request.rules.unit, note=request.note)
    return terms


def plain_price(request: Request, terms: Sequence[ReleaseTerms]) -> Event:
    """What a publication that learns nothing before the matrix is charged: its matrices, and its models."""
    if not request.models:
        return composed(one.event for one in terms)
    return GaussianEvent(mu=root_up(Fraction(ModelsBudget.of(request).whole * SLACK)))


def matrix_terms(request: Request, currency: Currency | None) -> tuple[ReleaseTerms, ...]:
    """The terms of a publication that learns nothing before the matrix."""
    encoders = request.encoders(request.rules.schema)
    if request.models:
        return (_beside_models(request, encoders[0]),)
    if request.rules.schema.blocks is not None:
        return _in_blocks(request, encoders, currency)
    (encoder,) = encoders
    facts = request.facts(encoder)
    chosen = choose(request.mechanism, request.guarantee, facts, currency)
    event = chosen.mechanism.event(facts)
    return (
        ReleaseTerms(
            encoder=encoder,
            facts=facts,
            guarantee=chosen.guarantee,
            mechanism=chosen.mechanism,
            event=event,
            gaussian=GaussianDP(event.mu) if isinstance(event, GaussianEvent) else None,
            reason=chosen.reason,
            rules=request.rules,
        ),
    )


def _beside_models(request: Request, encoder: Encoder) -> ReleaseTerms:
    """What declared models, which are measured after it, leave for the matrix: Gaussian noise.

    Proof: proofs/models.md#models-composition.
    """
    budget, facts = ModelsBudget.of(request), request.facts(encoder)
    whole = budget.whole
    for price in budget.least_prices:
        Gaussian().of_mu_squared(price, facts)  # raises
    mechanism = Gaussian().of_mu_squared((1.0 - request.split.models) * whole * SLACK, facts)
    asked = "auto" if isinstance(request.mechanism, Auto) else "asked for by name"
    return ReleaseTerms(
        encoder=encoder,
        facts=facts,
        guarantee=request.guarantee,
        mechanism=mechanism,
        event=mechanism.event(facts),
        gaussian=GaussianDP(math.sqrt(whole)),
        reason=f"{asked}: its noise composes exactly with that of declared models",
        rules=request.rules,
    )


def _in_blocks(
    request: Request, encoders: Sequence[Encoder], currency: Currency | None
) -> tuple[ReleaseTerms, ...]:
    """The noise of each block, all together within the guarantee, with the least Σ d_b·σ_b².

    Proof: proofs/blocks.md#blocks-split.
    """
    asked = request.mechanism
    pure = currency == "epsilon" if isinstance(asked, Auto) else asked.pure
    pure = pure or request.guarantee.pure
    own = _pure_blocks(request, encoders) if pure else _gaussian_blocks(request, encoders)
    whole = composed(one.event for one in own)
    squares = sum(part.mu**2 for part in parts_of(whole) if isinstance(part, GaussianEvent))
    gaussian = GaussianDP(up(math.sqrt(squares))) if squares else None
    joint = Guarantee(request.guarantee.epsilon, request.guarantee.delta if gaussian else 0.0)
    if not curve_of(whole).within(joint.epsilon, joint.delta):
        raise GuaranteeError("the blocks together would promise less than was asked", got=request.guarantee)
    return numbered_blocks(own, joint, gaussian)


def numbered_blocks(
    own: Sequence[ReleaseTerms], joint: Guarantee, gaussian: GaussianDP | None
) -> tuple[ReleaseTerms, ...]:
    """The terms of every block, each with what all of them promise together."""
    promise = stated(joint, own[0].facts.adjacency.name, own[0].unit, gaussian)
    return tuple(
        ReleaseTerms(
            encoder=one.encoder,
            facts=one.facts,
            guarantee=one.guarantee,
            mechanism=one.mechanism,
            event=one.event,
            gaussian=one.gaussian,
            reason=one.reason,
            rules=one.rules,
            block=Block(number=number, of=len(own), joint=promise),
        )
        for number, one in enumerate(own, start=1)
    )


def _gaussian_blocks(request: Request, encoders: Sequence[Encoder]) -> tuple[ReleaseTerms, ...]:
    """Σ μ_b² is the μ² of the whole guarantee. Proof: proofs/blocks.md#blocks-gaussian."""
    joint = Gaussian().calibrated(request.guarantee, request.facts(encoders[0]))
    return tuple(
        gaussian_block(
            request,
            encoder,
            # Δ is the same for every block in lattice units, so μ_b = μ·√share is σ_b = σ/√share.
            CalibratedGaussian(sigma=up(joint.sigma / math.sqrt(share))),
            f"blocks: {share:.1%} of μ², for the least sum of d·σ² over all blocks",
        )
        for encoder, share in zip(encoders, gaussian_shares(encoders), strict=True)
    )


def gaussian_block(
    request: Request,
    encoder: Encoder,
    mechanism: CalibratedGaussian,
    reason: str,
    *,
    price_before: float = 0.0,
    level_delta: float = 0.0,
) -> ReleaseTerms:
    """One block under Gaussian noise; `price_before` is the μ² of what was measured before it."""
    facts = request.facts(encoder)
    event = mechanism.event(facts)
    mu = event.mu if isinstance(event, GaussianEvent) else 0.0
    whole = GaussianDP(up(math.sqrt(mu * mu + price_before))) if price_before else GaussianDP(mu)
    # What integers and continuous noise differ by, as in the calibration of a single release.
    delta = request.guarantee.delta
    left = (delta - level_delta) * (1.0 - DISCRETE_SLACK)
    own = curve_of(GaussianEvent(mu=whole.mu)).epsilon(left) + DISCRETE_SLACK
    return ReleaseTerms(
        encoder=encoder,
        facts=facts,
        guarantee=Guarantee(min(own, request.guarantee.epsilon), delta),
        mechanism=mechanism,
        event=event,
        # With a δ of its own beside it, the whole has no μ.
        gaussian=None if level_delta else whole,
        reason=reason,
        rules=request.rules,
    )


def own_guarantee(
    request: Request, family: str, spent: Fraction, level_delta: float
) -> tuple[Guarantee, GaussianDP | None]:
    """What one block promises by itself, from the price of everything that it rests on."""
    delta = request.guarantee.delta
    if family == "pure":
        return Guarantee(min(float_up(spent), request.guarantee.epsilon), level_delta), None
    whole = GaussianDP(root_up(spent))
    left = (delta - level_delta) * (1.0 - DISCRETE_SLACK)
    own = curve_of(GaussianEvent(mu=whole.mu)).epsilon(left) + DISCRETE_SLACK
    # With a δ of its own beside it, the whole has no μ.
    return Guarantee(min(own, request.guarantee.epsilon), delta), None if level_delta else whole


def _pure_blocks(request: Request, encoders: Sequence[Encoder]) -> tuple[ReleaseTerms, ...]:
    """Σ ε_b = ε. Proof: proofs/blocks.md#blocks-pure."""
    return tuple(
        pure_block(
            request,
            encoder,
            down(request.guarantee.epsilon * share),
            f"blocks: {share:.1%} of ε, for the least sum of d·σ² over all blocks",
        )
        for encoder, share in zip(encoders, pure_shares(encoders), strict=True)
    )


def pure_block(
    request: Request,
    encoder: Encoder,
    epsilon: float,
    reason: str,
    *,
    price_before: float = 0.0,
    level_delta: float = 0.0,
) -> ReleaseTerms:
    """One block under matrix Laplace noise; `price_before` is the ε of what was measured before it."""
    facts = request.facts(encoder)
    mechanism = MatrixLaplace().calibrated(Guarantee(epsilon), facts)
    return ReleaseTerms(
        encoder=encoder,
        facts=facts,
        guarantee=Guarantee(up(epsilon + price_before) if price_before else epsilon, level_delta),
        mechanism=mechanism,
        event=mechanism.event(facts),
        gaussian=None,
        reason=reason,
        rules=request.rules,
    )
