"""Σ f(row) in exact integers, f public and bounded: what engines add up. **Nothing here is private.**"""
