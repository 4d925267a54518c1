"""Many publishes in one process: the short form of assurance.soak."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from assurance.soak import BYTES_EACH, SLOWER, course, course_apart

import dpgram
from dpgram import insurance
from dpgram.privacy.ledger import Ledger
from dpgram.release import Release


def test_no_file_stays_open_and_no_charge_is_lost(tmp_path: Path) -> None:
    """Time is left to the long form: what would make it grow is counted in test_ledger_check.py."""
    found = course(50, tmp_path)
    assert found.descriptors[1] <= found.descriptors[0]
    assert found.threads[1] <= found.threads[0] + 1
    assert found.unclaimed == 50 - 5
    assert found.ledger_bytes < 50 * 1000


def growth(publish: Callable[[], object], times: int = 15) -> float:
    """Bytes held by Python objects and arrays for each call, once everything is warm."""
    for _ in range(5):
        publish()
    tracemalloc.start()
    try:
        publish()
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(times):
            publish()
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / times
    finally:
        tracemalloc.stop()


def test_no_object_stays_alive(tmp_path: Path) -> None:
    table, schema = insurance.table(50), insurance.schema()
    ledger = Ledger.create(tmp_path / "a.ledger", name="a", epsilon=3.0, delta=1e-5)

    def publish() -> Release:
        return dpgram.publish(
            table, schema, epsilon=1e-3, delta=1e-9, ledger=ledger, mechanism="gaussian", progress=False
        )

    kept: list[Release] = []
    assert growth(publish) < 3_000
    assert growth(lambda: kept.append(publish())) > 6_000, "it would be seen"


@pytest.mark.full
def test_two_thousand_publishes_neither_leak_nor_slow_down() -> None:
    found = course_apart(2000)
    assert found.growth < 2 * BYTES_EACH
    assert found.last < SLOWER * found.first
    assert found.unclaimed == 2000 - 200
