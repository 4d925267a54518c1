"""The papers' own mechanisms, with their constants as printed and their true guarantees: baselines only.

Nothing else in dpgram imports this package, and `publish` cannot reach it.
"""
