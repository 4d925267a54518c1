"""Rows of a table → numbers → bounded integers: which rows count, and how much."""

from dpgram.rows.rules import Rows

__all__ = ["Rows"]
