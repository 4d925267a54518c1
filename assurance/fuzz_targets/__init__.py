"""What is fuzzed: each module has `seeds()` and `examine(data)`, which raises AssertionError on a finding.

The same functions serve the coverage-guided fuzzer (assurance.fuzz_targets.guided) and, with inputs built by
hypothesis, the tests in tests/fuzz.
"""
