"""The audits of the assurance page, with few runs: that they work, and that a claim too good is refuted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from assurance import audits, series_audit

from dpgram.mechanisms import MECHANISMS
from dpgram.privacy.guarantee import Guarantee


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_has_a_setting_and_holds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        audits.SETTINGS,
        name,
        replace(audits.SETTINGS[name], runs=100, simulated=300, curve=False, common=(0,)),
    )
    monkeypatch.setattr(audits, "WANTED", 0.0)  # so few runs may prove nothing
    found = audits._mechanism(name, "add-remove", 1)
    assert found.holds
    assert name in found.what
    assert "100 runs" in found.figure


def test_the_adaptive_release_holds_and_its_figure_says_how_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audits, "RUNS", 100)
    # So few runs can prove most of no promise, but a good deal of what an ideal audit could by as many.
    monkeypatch.setattr(audits, "REACHED", 2.0)
    monkeypatch.setattr(audits, "WANTED", 0.5)
    found = audits._staged("adaptive release, a row, Gaussian noise, add-remove")
    assert found.holds
    assert "100 runs" in found.figure
    # In every stage the row is as far away as a row can be.
    assert "are 99.9" in found.figure or "are 100.0" in found.figure


def test_a_whole_stream_holds_and_its_figure_says_how_far(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "a person in one of three periods, plain columns"
    short = replace(series_audit.AUDITED[name], periods=2, comes=(1, 2))
    monkeypatch.setitem(series_audit.AUDITED, name, short)
    monkeypatch.setattr(audits, "RUNS", 100)
    monkeypatch.setattr(audits, "REACHED", 2.0)
    monkeypatch.setattr(audits, "WANTED", 0.5)
    found = audits._series(name)
    assert found.holds, found.figure
    assert "are 100.0%" in found.figure


def test_a_promise_that_is_too_good_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for ε = 60 is no noise for ε = 1."""
    monkeypatch.setattr(audits, "WANTED", 0.0)
    loud, quiet = Guarantee(60.0), Guarantee(1.0)
    monkeypatch.setitem(audits.SETTINGS, "laplace", audits.Setting(guarantee=quiet, runs=300, curve=False))
    assert audits._mechanism("laplace", "add-remove", 1).holds
    made = MECHANISMS["laplace"].calibrated
    monkeypatch.setattr(MECHANISMS["laplace"], "calibrated", lambda self, _, facts: made(self, loud, facts))
    assert not audits._mechanism("laplace", "add-remove", 1).holds
