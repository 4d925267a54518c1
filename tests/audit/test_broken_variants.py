"""Deliberately broken variants: each is caught, and ours passes the very same test.

Short forms; `pytest -m full` runs the long ones. Bounds hold with confidence 0.999, and seeds are fixed; the
three checks that draw from the operating system err with probability below 10⁻⁷.
"""

from __future__ import annotations

import pytest
from assurance.broken import trials
from assurance.trials import Trial

TRIALS = trials()
SHORT = [trial for trial in TRIALS if trial.short]


@pytest.mark.parametrize("trial", SHORT, ids=lambda trial: trial.name)
def test_the_broken_one_is_caught_and_ours_passes(trial: Trial) -> None:
    broken, ours = trial.broken(False), trial.ours(False)
    assert broken.caught, broken.figure
    assert not ours.caught, ours.figure


@pytest.mark.full
@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.name)
def test_the_same_at_length(trial: Trial) -> None:
    broken, ours = trial.broken(True), trial.ours(True)
    assert broken.caught, broken.figure
    assert not ours.caught, ours.figure


def test_nothing_of_the_list_is_forgotten() -> None:
    names = " | ".join(trial.name for trial in TRIALS)
    for fault in (
        "noise 30% too small",
        "noise 10% too small: gaussian",
        "noise 10% too small: publish",
        "noise 10% too small: adaptive release, ",
        "noise 10% too small: adaptive release with declared models",
        "noise 10% too small: plain release with declared models",
        "noise 10% too small: series",
        "sensitivity",
        "off-diagonal",
        "files are not clipped",
        "target is not clipped",
        "seed reuse",
        "n leaked",
        "charged after the draw",
        "as printed",
        "T from exact data",
        "radius from exact data",
        "share used twice",
        "first matrix used and not published",
        "clip skipped in the second pass",
        "histograms that nobody paid for",
        "BLAS in the row function",
        "pilot from exact data |",
        "pilot from exact data, plain matrix",
        "residual not limited",
        "score of a row unbounded",
        "spread of scores not clipped",
        *(
            f"{kind}: {fault}"
            for kind in (
                "rows",
                "levels",
                "octaves",
                "bins",
                "histograms",
                "zoom",
                "reach",
                "clip",
                "first-gram",
                "step",
                "gram",
            )
            for fault in (
                "half the noise",
                "a row that counts twice",
                "counts over rows where persons are promised",
                "two results for one charge",
                "a stage that nobody paid for",
            )
        ),
    ):
        assert fault in names
    assert len({trial.name for trial in TRIALS}) == len(TRIALS)
