"""Everything that was broken on purpose: is it caught, and does ours pass the same test?"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Final

from assurance import (
    broken_adaptive,
    broken_measurements,
    broken_mechanisms,
    broken_models,
    broken_pipelines,
    broken_series,
    broken_sizes,
)
from assurance.part import Finding, Part
from assurance.trials import Outcome, Trial

WORKERS: Final = 2


def trials() -> tuple[Trial, ...]:
    """All of them, the same in every process."""
    parts = (
        broken_mechanisms,
        broken_sizes,
        broken_measurements,
        broken_adaptive,
        broken_models,
        broken_pipelines,
        broken_series,
    )
    return tuple(trial for part in parts for trial in part.trials())


def _outcome(place: int, ours: bool) -> Outcome:
    trial, long = trials()[place], True
    return trial.ours(long) if ours else trial.broken(long)


def examine() -> Part:
    """The long form of every trial, two at a time."""
    listed = trials()
    # The slowest first, so that the two processes end together.
    order = sorted(range(len(listed)), key=lambda place: listed[place].short)
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        jobs = {
            (place, ours): pool.submit(_outcome, place, ours) for place in order for ours in (False, True)
        }
        outcomes = {key: job.result() for key, job in jobs.items()}
    findings = []
    for place, trial in enumerate(listed):
        broken, ours = outcomes[place, False], outcomes[place, True]
        findings.append(
            Finding(
                what=trial.name,
                figure=f"{'caught' if broken.caught else 'NOT CAUGHT'} ({broken.figure}); "
                f"ours {'FAILS' if ours.caught else 'passes'} ({ours.figure})",
                holds=broken.caught and not ours.caught,
            )
        )
    return Part.counted(
        "Broken on purpose",
        "Each variant is put through the test that ours has to pass: an audit (confidence 0.999), a "
        "check (dpgram.audit.checks), an exact bound on what one person adds to a sum, or the publication's "
        "own refusal to draw what nobody paid for.",
        "variants caught, with ours passing the same test",
        findings,
    )
