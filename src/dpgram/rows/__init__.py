"""Rows of a table → numbers → bounded integers: which rows count, and how much."""
