"""Budgets on disk."""

from __future__ import annotations

from dpgram.privacy.receipt import Receipt

__all__ = ["Receipt"]
