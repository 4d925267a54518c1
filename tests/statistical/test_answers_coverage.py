"""Intervals of descriptions, discriminants and effects: the short form of benchmarks/answers_coverage.py."""

from __future__ import annotations

import numpy as np
import pytest

import answers_coverage

RUNS = 60


@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
def test_they_cover_as_often_as_they_say() -> None:
    """Of 60 runs that each cover with 95%, 84% or less would happen once in two thousand cells."""
    found = [(name, rows, hits) for name, rows, _, hits in answers_coverage.cells(RUNS, 5_000)]
    pooled = [hit for _, _, hits in found for hit in hits if hit is not None]
    assert 0.93 < np.mean(pooled) < 0.97
    for name, rows, hits in found:
        given = [hit for hit in hits if hit is not None]
        assert len(given) > 0.8 * len(hits), (name, rows)
        assert np.mean(given) > 0.84, (name, rows)


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        (answers_coverage.described, "count (table)"),
        (answers_coverage.logits, "logit coefficient"),
        (answers_coverage.probits, "probit coefficient"),
        (answers_coverage.clinics, "difference in differences"),
    ],
)
def test_a_noise_stated_ten_times_too_small_shows(
    make: object, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers_coverage, "STATED", [0.1])
    hits = [
        hit
        for run in range(RUNS)
        for hit in make(5_000, 60.0, np.random.default_rng([run, 7]))[answer]
        if hit is not None
    ]
    assert len(hits) > 0.8 * RUNS
    assert np.mean(hits) < 0.9
