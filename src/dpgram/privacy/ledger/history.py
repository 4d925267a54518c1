"""The history of a ledger as a person reads it: one line for each charge."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from dpgram.errors import GuaranteeError
from dpgram.privacy.accountant import CURRENCIES, describe, guarantee_of
from dpgram.privacy.ledger.ledger import Entry, Ledger


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLine:
    """One charge, ready to be shown. Numbers are rounded for reading; the exact ones are in `Entry`."""

    number: int
    time: str
    release: str
    """What was released, such as "Gaussian, μ = 0.2367"."""
    guarantee: str
    """What it promises by itself, such as "ε = 0.8725 at δ = 1e-05"."""
    cost: float
    """In the ledger's currency, whose sign is `sign`, less what was given back."""
    sign: str
    share: float
    """The part of the whole budget it took, 0 to 1."""
    left: float
    """What was left after it, in the ledger's currency."""
    note: str

    @property
    def plain(self) -> str:
        """Without the ledger's currency: what was promised, and the share it took."""
        text = f"{self.number}. {self.time}  {self.guarantee}, {self.share:.1%} of the budget"
        return f"{text}  {self.note}" if self.note else text

    def __str__(self) -> str:
        text = f"{self.number}. {self.time}  {self.release} ({self.guarantee})"
        text += f"  cost {self.sign} = {self.cost:.4g} ({self.share:.1%}), left {self.left:.4g}"
        return f"{text}  {self.note}" if self.note else text


def ledger_history(ledger: Ledger) -> tuple[HistoryLine, ...]:
    """Every charge of `ledger` as a line, oldest first."""
    spent, lines = Fraction(0), []
    for entry in ledger.history():
        spent += entry.cost
        lines.append(_line(ledger, entry, spent))
    return tuple(lines)


def _line(ledger: Ledger, entry: Entry, spent: Fraction) -> HistoryLine:
    return HistoryLine(
        number=entry.number,
        time=entry.time,
        release=describe(entry.event),
        guarantee=_guarantee(ledger, entry),
        cost=float(entry.cost),
        sign=CURRENCIES[ledger.currency],
        share=float(entry.cost / ledger.total),
        left=float(ledger.total - spent),
        note=entry.note,
    )


def _guarantee(ledger: Ledger, entry: Entry) -> str:
    delta = ledger.guarantee.delta
    try:
        epsilon = guarantee_of(entry.event, delta).epsilon
    except GuaranteeError:
        return f"no finite ε at δ = {delta:g}"
    return f"ε = {epsilon:.4g} at δ = {delta:g}" if delta else f"ε = {epsilon:.4g}"
