"""Folders with a table in them, as a curator has them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True, scope="module")
def quick_forecast() -> Iterator[None]:
    """At one ε instead of eight: nearly every test passes the page of the budget."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpgram.wizard.steps.budget.EPSILONS", (1.0,))
        yield


def write_visits(folder: Path) -> Path:
    """A small table that is in order."""
    draw = random.Random(1)
    rows = [
        f"{draw.randint(18, 90)},{draw.choice(['no', 'yes'])},{draw.randint(0, 50_000)}" for _ in range(1_987)
    ]
    (folder / "visits.csv").write_text("age,smoker,charges\n" + "\n".join(rows) + "\n")
    return folder


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    return write_visits(tmp_path)
