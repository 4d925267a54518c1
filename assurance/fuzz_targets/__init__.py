"""What is fuzzed: each module has `seeds()`, `mutate(data, dice)` and `examine(data)`.

`examine` raises AssertionError on a finding; any other exception is one too. The same functions serve the
coverage-guided fuzzer (assurance.fuzz_targets.guided) and the tests in tests/fuzz.
"""
