"""The papers' own mechanisms, with their constants as printed and their true guarantees: baselines only.

`publish`, the mechanisms and the analyst's side import nothing of it. The estimators that are the papers' own
(`SSP`, `AdaSSP`, `RobustRegression`) take their printed constants from it, and `dpgram reproduce` runs its
experiments; tests/unit/papers/test_variants.py has the list.
"""
