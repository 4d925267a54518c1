"""Crowds, clocks, shut folders, lost sources: nothing spent without trace, clear errors, safe retries."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from assurance.fault_scenes import SCENES, crowd


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder anybody can reach: those of the superuser's tests are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name).resolve()


@pytest.mark.parametrize("scene", SCENES)
def test_every_promise_is_kept(scene: str, folder: Path) -> None:
    found = SCENES[scene](folder)
    assert found.plays > 0
    assert found.releases > 0, "each scene ends with a retry that succeeds"
    assert not found.problems, "\n".join(found.problems)


def test_two_processes_share_a_budget(folder: Path) -> None:
    found = crowd(folder, processes=2, epsilon=1.0)
    assert found.releases > 5
    assert not found.problems, "\n".join(found.problems)


@pytest.mark.full
def test_six_processes_share_a_budget(folder: Path) -> None:
    found = crowd(folder, processes=6, epsilon=3.0)
    assert found.releases > 50
    assert not found.problems, "\n".join(found.problems)
