"""Many publishes in one process of their own: the short form of assurance.soak, which also times them."""

from __future__ import annotations

import pytest
from assurance.soak import Course, course_apart, left_alive_apart


def judge(found: Course) -> None:
    """Time and bytes are left to the long form: what would make them grow is counted, here and in
    test_ledger_check.py."""
    assert found.descriptors[1] <= found.descriptors[0]
    assert found.threads[1] <= found.threads[0] + 1
    assert found.unclaimed == found.publishes - found.publishes // 10
    assert found.ledger_bytes < found.publishes * 1000


def test_no_file_stays_open_and_no_charge_is_lost() -> None:
    judge(course_apart(50))


@pytest.mark.full
def test_two_thousand_publishes_leave_nothing_open() -> None:
    judge(course_apart(2000))


def test_no_object_stays_alive() -> None:
    left = left_alive_apart()
    assert left["dropped"] == {}
    # It would be seen, down to one small object a call.
    assert left["kept"]["dpgram.release.release.Release"] == 20
    assert left["receipts kept"]["dpgram.privacy.receipt.Receipt"] == 20
