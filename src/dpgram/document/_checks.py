"""What must agree inside a release: the mechanism, its noise law, its guarantee, and the form of the receipt.

A digest shows that a file was not damaged; these checks show that it was not written by a confused program.
Every mechanism computes the price of the stated noise again under the stated adjacency (`keeps_promise` in
its file): a file that promises more privacy than its noise gives is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from dpgram.document.measurements import measured_delta, measured_price, thresholds_suffice
from dpgram.errors import GuaranteeError
from dpgram.noise import SymmetricGaussian
from dpgram.privacy.charged import Charged
from dpgram.privacy.events import ComposedEvent
from dpgram.privacy.receipt import next_receipt_id

if TYPE_CHECKING:
    from dpgram.document.document import Document
    from dpgram.document.fields import StatedGuarantee
    from dpgram.mechanisms import Mechanism, StatedNoise
    from dpgram.privacy.events import Event
    from dpgram.privacy.receipt import Receipt

_HEX: Final = frozenset("0123456789abcdef")
_ROUNDING: Final = 1e-9
"""What two versions of a mathematical library may differ by; no promise is worth less for it."""


def mechanism_of(release: Document) -> type[Mechanism] | None:
    """The mechanism that the file names; None where there is none of this name."""
    # Imported late: it brings scipy's functions, which only somebody with a file in hand has to wait for.
    from dpgram.mechanisms import MECHANISMS

    return MECHANISMS.get(release.mechanism.name)


def consistent_noise(release: Document) -> bool:
    """Whether a known mechanism with exactly its own parameters and law gives at least what is promised.

    The noise of a block must also give what all blocks promise together. The noise of the others is in their
    own files: this, and that the block's own promise is no weaker, are the checks that one file allows.
    """
    mechanism = mechanism_of(release)
    promises = [release.guarantee] if release.block is None else [release.guarantee, release.block.joint]
    try:
        with np.errstate(all="ignore"):  # a price that overflows is not a number, and keeps no promise
            if release.series is not None and not isinstance(release.noise, SymmetricGaussian):
                return False
            if not thresholds_suffice(release):
                return False
            return mechanism is not None and all(
                mechanism.keeps_promise(_stated(release, promise))
                and not (mechanism.pure and _currencies(promise))
                for promise in promises
            )
    except (ArithmeticError, GuaranteeError):  # numbers for which no price can be computed
        return False


def _currencies(promise: StatedGuarantee) -> dict[str, float]:
    """μ and ρ, where they are stated. Pure noise has neither."""
    stated = {"mu": promise.mu, "rho": promise.rho}
    return {name: value for name, value in stated.items() if value is not None}


def _stated(release: Document, promise: StatedGuarantee) -> StatedNoise:
    from dpgram.mechanisms import StatedNoise
    from dpgram.privacy.adjacency import adjacency

    relation = adjacency(release.adjacency)
    return StatedNoise(
        law=release.noise,
        parameters=release.mechanism.parameters,
        adjacency=relation,
        width=release.schema.width,
        unit_rows=1 if release.unit_rule is None else release.unit_rule.rows_at_most,
        published=release.published.kind,
        exponent=release.published.exponent,
        epsilon=promise.epsilon,
        delta=promise.delta,
        mu=promise.mu,
        rho=promise.rho,
        counted=bool(release.measured),
        counts_cost=float(measured_price(release, relation.units_changed)),
        leak=measured_delta(release),
        gain=1.0 if release.series is None else release.series.gain,
    )


def consistent_unit_group_block(release: Document) -> bool:
    """Whether unit, group and block say something that can be true together (proofs/units.md)."""
    several = release.unit_rule is not None and release.unit_rule.rows_at_most > 1
    mechanism, block = mechanism_of(release), release.block
    if mechanism is None or (several and mechanism.one_row_per_unit):
        return False
    if (release.unit is None) != (release.unit_rule is None):
        return False
    if release.group is not None:
        proven = not several or mechanism.joint_groups
        if release.adjacency == "replace-one":
            proven = proven and mechanism.replaced_in_groups
        if block is not None or not proven:
            return False
    if release.series is not None:
        rows_alone = release.unit is None and release.series.participations > 1
        if release.group is not None or block is not None or release.adjacency != "add-remove" or rows_alone:
            return False
    if block is None:
        return True
    return block.number <= block.of and mechanism.in_blocks and _no_weaker(release.guarantee, block.joint)


def _no_weaker(own: StatedGuarantee, joint: StatedGuarantee) -> bool:
    """Whether one block promises at least as much privacy as all together, in each of its currencies."""
    if own.epsilon > joint.epsilon or own.delta > joint.delta or own.numerical_delta > joint.numerical_delta:
        return False
    together = _currencies(joint)
    return all(
        name in together and value * (1 - _ROUNDING) <= together[name]
        for name, value in _currencies(own).items()
    )


def well_formed(receipt: Receipt) -> bool:
    """Whether the receipt could have come from a ledger."""
    hexadecimal = [(receipt.ledger_id, 32), (receipt.receipt_id, 32), (receipt.head, 64)]
    sized = len(receipt.ledger_name) <= 1000 and 1 <= receipt.entry <= 2**53
    return sized and all(len(text) == size and set(text) <= _HEX for text, size in hexadecimal)


def of_one_publication(receipts: Sequence[Receipt]) -> bool:
    """Whether each is the next charge of the publication that the one before it is of."""
    return all(
        first.ledger_id == second.ledger_id
        and first.entry < second.entry
        and second.receipt_id == next_receipt_id(first.receipt_id)
        for first, second in pairwise(receipts)
    )


def paid_for(release: Document) -> bool:
    """Whether the events on the receipts are as large as what the release says of itself.

    A block's receipts are those of all blocks, and must be as large as what these promise together.
    """
    if not release.receipts or release.receipt is None:
        return not release.receipts
    events = [receipt.event for receipt in release.receipts]
    block = release.block
    try:
        if not _covered(events, release, release.guarantee if block is None else block.joint):
            return False
        plain = len(events) == 1 and not release.measured
        if block is not None and plain and isinstance(events[0], ComposedEvent):
            parts = events[0].parts
            own = parts[block.number - 1 : block.number]
            return len(parts) == block.of and _covered(own, release, release.guarantee)
    except (ArithmeticError, GuaranteeError):  # numbers for which no price can be computed
        return False
    return True


def _covered(events: Sequence[Event], release: Document, promise: StatedGuarantee) -> bool:
    mechanism = mechanism_of(release)
    if mechanism is None:
        return False
    least = mechanism.least_charge(_stated(release, promise))
    return Charged.of(events).covers(least, rounding=_ROUNDING)
