"""The single-use proof that a release was paid for. It travels inside the release: public facts only."""

from __future__ import annotations

import hashlib
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
    """128 bits that no other charge has, in hexadecimal: random, or fixed before the charge."""
    event: Event
    head: str
    """The head of the hash chain right after this entry: SHA-256, in hexadecimal."""


def next_receipt_id(receipt_id: str) -> str:
    """The number of the second charge of a release that was paid for in two, as earlier versions did it.

    >>> from dpgram.privacy.receipt import next_receipt_id
    >>> next_receipt_id("0" * 32)
    '3624573f8f86cf8499828fb46e7fb3d0'
    """
    return hashlib.sha256(f"{receipt_id} goes on".encode()).hexdigest()[:32]
