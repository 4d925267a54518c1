"""A disk that fails while a period is published, at any flush: the same call goes on, nothing is lost."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

import numpy as np
import pytest

import dpgram as dg
from dpgram.errors import DpgramError, DpgramWarning

SCHEMA = dg.Schema(dg.numeric("x", 0, 30), dg.numeric("y", 0, 60))
PERIODS = ("2026-01", "2026-02")


def month(number: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(number)
    ids = np.arange(400 * number, 400 * number + 400)
    return {"x": rng.normal(10, 1, 400), "y": rng.normal(20, 1, 400), "id": ids}


def begun(folder: Path, periods: int) -> dg.Series:
    """A series with so many periods, its charge in a ledger."""
    dg.Ledger.create(folder / "l.ledger", name="clinic", epsilon=5, delta=1e-5, unit="id")
    series = dg.Series.create(
        folder / "s.series",
        SCHEMA,
        epsilon=4,
        delta=1e-6,
        periods=6,
        rows=dg.Rows(unit="id"),
        ledger=folder / "l.ledger",
    )
    for number in range(periods):
        series.publish(month(number), PERIODS[number], progress=False)
    return series


@pytest.mark.parametrize("before", [0, 1])
def test_the_same_call_goes_on_after_any_flush_that_failed(tmp_path: Path, before: int) -> None:
    flush, failures = os.fsync, 0
    for bad in range(1, 100):
        folder = tmp_path / str(bad)
        folder.mkdir()
        series, calls, failed = begun(folder, before), 0, False

        def failing(handle: int, bad: int = bad) -> None:
            nonlocal calls
            calls += 1
            if calls == bad:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            flush(handle)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", failing)
            try:
                series.publish(month(before), PERIODS[before], progress=False)
            except DpgramError:
                failures, failed = failures + 1, True
        # What failed is completed, and not told as a repeat.
        told = contextlib.nullcontext() if failed else pytest.warns(DpgramWarning, match="published before")
        with told:
            again = dg.Series.open(folder / "s.series").publish(
                month(before), PERIODS[before], progress=False
            )
        assert dg.Series.open(folder / "s.series").labels == PERIODS[: before + 1]
        assert len(dg.Ledger.open(folder / "l.ledger").history()) == 1
        assert again.series is not None
        if calls < bad:  # there are no more
            break
    assert failures >= 3
