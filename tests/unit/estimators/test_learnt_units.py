"""Bounds that are learnt may be beyond what can be computed with: nobody knew before the charge."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import dpgram as dg
from dpgram import estimators
from dpgram.errors import AnalysisError


@pytest.mark.parametrize("name", ["PrivateLinearRegression", "PrivateLasso", "PrivateRidge"])
def test_what_was_paid_for_stays_and_is_told_of(name: str, tmp_path: Path) -> None:
    book = dg.Ledger.create(tmp_path / "own.ledger", name="own", epsilon=10, delta=1e-4)
    rows = np.random.default_rng(0).uniform(-1e300, 1e300, (5_000, 2))
    model = getattr(estimators, name)(
        epsilon=3, delta=1e-6, bounds="learn", target_bounds="learn", ledger=book
    )
    with pytest.raises(AnalysisError, match=r"paid for is in release_.* another unit") as told:
        model.fit(rows, rows.sum(axis=1) / 4)
    assert told.value.charged
    assert len(book.history()) == 1
    assert model.release_.matrix("encoded").shape == (4, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", estimators.RepeatedFit)
        assert model.fit(rows * 1e-300, rows.sum(axis=1) * 1e-300).coef_.shape == (2,)
