"""Folders with a table in them, as a curator has them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """A small table that is in order."""
    draw = random.Random(1)
    rows = [
        f"{draw.randint(18, 90)},{draw.choice(['no', 'yes'])},{draw.randint(0, 50_000)}" for _ in range(2_000)
    ]
    (tmp_path / "visits.csv").write_text("age,smoker,charges\n" + "\n".join(rows) + "\n")
    return tmp_path
