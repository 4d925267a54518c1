"""Rows of a table → numbers → bounded integers: which rows count, and how much."""

from dpgram.core.units import PolicyCounts
from dpgram.rows.encoder import Encoder, Missing
from dpgram.rows.rules import EVERY_ROW, RowRules, Rows, row_rules

__all__ = ["EVERY_ROW", "Encoder", "Missing", "PolicyCounts", "RowRules", "Rows", "row_rules"]
