"""Budgets on disk: charged before noise is drawn, durable, append-only."""

from dpgram.privacy.ledger.ledger import Entry, Ledger

__all__ = ["Entry", "Ledger"]
