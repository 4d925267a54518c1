"""A whole stream on neighbouring tables, person by person: what it tells is at most what was paid for.

Exactly: in the coordinates of every stream, the squared shifts of all lines and counts add up to no more than
μ² of the series, and to nearly that for the worst person. (Broken variants, and the statistical audit of
repeated streams, are in assurance/broken_series.py, which tests/audit runs.)
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from assurance.series_audit import SETTINGS, StreamSetting, spent

from dpgram.core.noise import SeededEntropy

pytestmark = pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding the libraries whose threads to limit takes most of the time of so small a release."""
    monkeypatch.setattr("threadpoolctl.threadpool_limits", lambda **_: contextlib.nullcontext())


def shares(setting: StreamSetting, seeds: range) -> list[float]:
    """μ² told of the person, as parts of what was promised."""
    promised = setting.terms().mu ** 2
    found = []
    for seed in seeds:
        tables = setting.tables(there=seed % 2 == 0)
        found.append(spent(setting.publish(tables, SeededEntropy(seed).split(setting.periods)), setting))
    return [told / promised for told in found]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_stream_tells_of_a_person_what_was_paid_for(name: str) -> None:
    found = shares(SETTINGS[name], range(2))
    assert max(found) <= 1.0
    # Who comes late moves no count of the first period, and fewer lines.
    assert min(found) > (0.6 if name == "late" else 0.99)


@pytest.mark.full
@pytest.mark.parametrize("name", SETTINGS)
def test_a_stream_tells_of_a_person_what_was_paid_for_in_forty_streams(name: str) -> None:
    assert max(shares(SETTINGS[name], range(40))) <= 1.0


def test_the_test_sees_a_person_who_was_not_paid_for() -> None:
    """Priced for one period and counted in two: more is told than was promised."""
    setting = SETTINGS["plain columns"]
    once = replace(setting, participations=1)
    stream = once.publish(once.tables(there=True), SeededEntropy(1).split(once.periods))
    assert spent(stream, setting) > 1.5 * once.terms().mu ** 2
