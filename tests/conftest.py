"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Several workers that each start a BLAS thread for every core wait for one another most of the time. Before
# numpy is loaded, which reads it once.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

pytest_plugins = ("tests.luck",)

PROJECT = Path(__file__).resolve().parents[1]

# The same examples on every run: a test that failed once fails again, and none fails by chance, nor because
# the machine was busy.
settings.register_profile(
    "fixed", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fixed")


def _ask_no_more_for_a_ledger() -> None:
    """Of what most tests publish, no ledger should keep count."""
    from dpgram.publishing.request import warn_of_no_ledger

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warn_of_no_ledger()


@pytest.fixture(scope="session", autouse=True)
def _no_ledger_is_meant() -> None:
    _ask_no_more_for_a_ledger()


@pytest.fixture
def asks_for_a_ledger() -> Iterator[None]:
    """As in a new process, where the first publication without a word about a ledger warns."""
    from dpgram.publishing.request import warn_of_no_ledger

    warn_of_no_ledger.cache_clear()
    yield
    _ask_no_more_for_a_ledger()


def shared_data_folder() -> Path:
    return Path(os.environ.get("DPGRAM_DATA", PROJECT.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets; tests that need it are skipped where it is absent."""
    folder = shared_data_folder()
    if not folder.is_dir():
        pytest.skip("the folder of real data sets is not here (set DPGRAM_DATA to it)")
    return folder
