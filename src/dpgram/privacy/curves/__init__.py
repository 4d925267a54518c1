"""Exact privacy curves δ(ε), and the least noise that meets a guarantee by them."""
