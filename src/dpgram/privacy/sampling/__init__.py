"""Noise that is exact in law: random bits in, integers out."""
