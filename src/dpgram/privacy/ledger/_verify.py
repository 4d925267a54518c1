"""The ledger against the releases that carry its receipts: what was edited, cut off, put back, used twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias, final

from dpgram.errors import LedgerError
from dpgram.privacy.ledger._file import LedgerTerms, Link, Record
from dpgram.privacy.receipt import Receipt


class PaidRelease(Protocol):
    """What `verify` needs of a release."""

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The receipts inside it: of one charge, or of two in files of earlier versions."""

    @property
    def adjacency(self) -> str:
        """The relation it was made under."""

    @property
    def unit(self) -> str | None:
        """The privacy unit it was made for."""

    @property
    def part(self) -> str | None:
        """Which of several releases that one charge paid for; None where it paid for this one alone."""


ReleaseOrReceipt: TypeAlias = Receipt | PaidRelease
"""A release, or its bare receipt."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The ledger is intact and every given release was paid for, once."""

    releases: int
    entries: int
    """Charges in the ledger."""
    unclaimed: tuple[int, ...]
    """Entries of charges that none of the given releases carries: spent, but not shown here."""


def verification(
    terms: LedgerTerms,
    links: tuple[Link, ...],
    releases: Iterable[ReleaseOrReceipt] | Mapping[str, ReleaseOrReceipt],
) -> Verification:
    """What the releases say about a chain that was found whole; `LedgerError` lists disagreements."""
    named = _named(releases)
    problems = _problems(terms, links, named)
    if problems:
        raise LedgerError(
            f"the ledger {terms.name!r} and the releases do not agree: " + "; ".join(problems),
            remedy="Treat the budget as overspent until every one of these is explained",
        )
    claimed = {receipt.entry for proof in named.values() for receipt in _receipts(proof)}
    charges = [link.record.entry for link in links if isinstance(link.record, Record)]
    unclaimed = tuple(entry for entry in charges if entry not in claimed)
    return Verification(releases=len(named), entries=len(charges), unclaimed=unclaimed)


def _problems(
    terms: LedgerTerms, links: tuple[Link, ...], named: Mapping[str, ReleaseOrReceipt]
) -> list[str]:
    problems: list[str] = []
    first_with: dict[tuple[str, str | None], str] = {}
    whole: dict[str, bool] = {}
    for label, proof in named.items():
        receipts = _receipts(proof)
        if not receipts:
            problems.append(f"{label} carries no receipt: it was never charged")
            continue
        receipt = receipts[-1]
        found = [_mismatch(terms, links, each) for each in receipts]
        wrong = next(filter(None, found), None) or _other_terms(terms, proof)
        if wrong:
            problems.append(f"{label} {wrong}")
        # One charge may pay for a release of each group or block, but not for two of the same.
        part = None if isinstance(proof, Receipt) else proof.part
        shared = (receipt.receipt_id, part)
        mixed = whole.setdefault(receipt.receipt_id, part is None) != (part is None)
        earlier = first_with.setdefault(shared, label)
        # One release given twice is no fault; a second release, or a bare receipt shown twice, is.
        if earlier != label and (isinstance(proof, Receipt) or named[earlier] != proof):
            problems.append(f"{label} uses the receipt of {earlier}: it was not charged itself")
        elif mixed:
            problems.append(f"{label} uses the receipt of another release: it was not charged itself")
    return problems


def _mismatch(terms: LedgerTerms, links: tuple[Link, ...], receipt: Receipt) -> str | None:
    if receipt.ledger_id != terms.ledger_id:
        return f"was charged to another ledger ({receipt.ledger_name!r}, {receipt.ledger_id})"
    if not 1 <= receipt.entry <= len(links):
        return (
            f"is entry {receipt.entry}, but the ledger ends at {len(links)}: entries were cut off, or an "
            "older copy was put back"
        )
    link, record = links[receipt.entry - 1], links[receipt.entry - 1].record
    same = (
        isinstance(record, Record)
        and record.receipt_id == receipt.receipt_id
        and record.event == receipt.event
    )
    if link.head != receipt.head or not same or terms.name != receipt.ledger_name:
        return (
            f"is entry {receipt.entry}, but the ledger holds another charge there: it was edited, or an "
            "older copy was put back and charged again, or the release was edited"
        )
    return None


def _other_terms(terms: LedgerTerms, proof: ReleaseOrReceipt) -> str | None:
    if isinstance(proof, Receipt) or (proof.adjacency, proof.unit) == (terms.adjacency, terms.unit):
        return None
    return f"was made for {proof.adjacency} neighbours of {unit_words(proof.unit)}, not as charged"


def unit_words(unit: str | None) -> str:
    """The privacy unit in words; None is one row."""
    return "one row" if unit is None else f"one {unit!r}"


def _named(
    releases: Iterable[ReleaseOrReceipt] | Mapping[str, ReleaseOrReceipt],
) -> dict[str, ReleaseOrReceipt]:
    if isinstance(releases, Mapping):
        return dict(releases)
    return {f"release {index}": proof for index, proof in enumerate(releases, start=1)}


def _receipts(proof: ReleaseOrReceipt) -> tuple[Receipt, ...]:
    return (proof,) if isinstance(proof, Receipt) else proof.receipts
