"""Budgets on disk: charged before noise is drawn, durable, append-only."""

from dpgram.privacy.ledger.calculator import budget_for, release_for
from dpgram.privacy.ledger.history import ledger_history
from dpgram.privacy.ledger.ledger import Entry, Ledger
from dpgram.privacy.ledger.remaining import Left

__all__ = ["Entry", "Ledger", "Left", "budget_for", "ledger_history", "release_for"]
