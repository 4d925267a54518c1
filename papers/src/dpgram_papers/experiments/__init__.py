"""The papers' experiments, run again: figures in their layout, claims checked by code, ours beside.

NOT PRIVATE: research code on public or simulated tables. Draws are seeded and made in floats.
"""
