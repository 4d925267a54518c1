"""Examinations beyond the tests; `make assurance` runs them all and writes docs/assurance.md."""
