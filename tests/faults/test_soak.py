"""Many publishes in one process: the short form of assurance.soak."""

from __future__ import annotations

from pathlib import Path

import pytest
from assurance.soak import BYTES_EACH, SLOWER, course, course_apart


def test_nothing_piles_up(tmp_path: Path) -> None:
    """Time is left to the long form: what would make it grow is counted in test_ledger_check.py."""
    found = course(80, tmp_path)
    assert found.descriptors[1] <= found.descriptors[0]
    assert found.threads[1] <= found.threads[0] + 1
    assert found.unclaimed == 80 - 8
    assert found.ledger_bytes < 80 * 1000
    assert found.growth < 8_000


@pytest.mark.full
def test_two_thousand_publishes_neither_leak_nor_slow_down() -> None:
    found = course_apart(2000)
    assert found.growth < 2 * BYTES_EACH
    assert found.last < SLOWER * found.first
    assert found.unclaimed == 2000 - 200
