"""The papers' own mechanisms, with their constants as printed and their true guarantees: baselines only.

Research code in a distribution of its own. dpgram imports nothing of it, so whoever has not installed it
cannot reach a variant that is not private; installed, it adds the command `dpgram reproduce`.
"""
