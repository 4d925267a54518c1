"""The single-use proof that a release was paid for. It travels inside the release: public facts only."""

from __future__ import annotations

from typing import final

import msgspec

from dpgram.privacy.events import Event


@final
class Receipt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One durable entry of one ledger. `head` commits to that entry and to every entry before it.

    It hides what it commits to: each entry holds 128 random bits that stay in the ledger.
    """

    ledger_name: str
    """The name the curator gave to the data set's ledger."""
    ledger_id: str
    """128 random bits drawn when the ledger was created, in hexadecimal."""
    entry: int
    """The number of the entry, counted from 1."""
    receipt_id: str
    """128 random bits drawn for this charge alone, in hexadecimal."""
    event: Event
    head: str
    """The head of the hash chain right after this entry: SHA-256, in hexadecimal."""
