"""Series broken on purpose: noise used twice, people who come too often, too low a price, wrong windows.

Noise that is used twice, or priced as if a person moved one line alone, is caught by the audit of a whole
stream. Whether a person counts too often shows in the exact sums of the curator's file, and what a window
holds beside its own periods is a fact about fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from assurance.series_audit import (
    ENGINE,
    PLAIN,
    SCHEMA,
    StreamAudit,
    StreamSetting,
    allowed,
    exact_sums,
    fresh,
    reused,
    spent,
)
from assurance.trials import Outcome, Trial, audited, checked
from dpgram.core.noise import SeededEntropy
from dpgram.errors import MechanismError, ReleaseError
from dpgram.noise import factor
from dpgram.noise.factor import coefficients, window_weights
from dpgram.publishing.series import SeriesTerms
from dpgram.rows.participation import LeftOut
from dpgram.series import _curate
from dpgram.series._records import lower_sums
from dpgram.series._secret import open_secret
from dpgram.series.stream import Stream, secret_path

Patch = Callable[[], AbstractContextManager[Any]]

RUNS, LONG = 100, 2_000


def _stream_audit(sources: Any, long: bool) -> Outcome:
    found = StreamAudit(setting=PLAIN, sources=sources).audited(LONG if long else RUNS)
    return audited(found, PLAIN.curve)


def noise_reused() -> Trial:
    """The same Z in every period: the difference of two lines has none."""
    return Trial(
        name="series: the noise of one period used again in the next",
        broken=partial(_stream_audit, reused),
        ours=partial(_stream_audit, fresh),
    )


def _often(patch: Patch, long: bool) -> Outcome:
    """Do the sums that were kept hold more than the rule allows?"""
    del long
    setting = StreamSetting(participations=1, adaptive=False)
    tables = setting.tables(there=True)
    with TemporaryDirectory() as folder, patch():
        path = Path(folder) / "a.series"
        noise = SeededEntropy(3)
        _curate.create(path, SCHEMA, entropy=noise, **setting.facts)
        for number, table in enumerate(tables, start=1):
            _curate.publish(path, table, str(number), engine=ENGINE, progress=False, entropy=noise)
        stream = Stream.read(path)
        with open_secret(secret_path(path), stream.head.series) as secret:
            kept = secret.past(len(tables) + 1)
    encoder = setting.terms().plain_encoder()
    breaches = [
        f"period {number} does not hold those who may count"
        for number, (table, own) in enumerate(zip(allowed(tables, setting), kept, strict=True), start=1)
        if own.cells != tuple(lower_sums(exact_sums(encoder, table)).tolist())
    ]
    return checked(tuple(breaches))


def _nobody_left_out() -> AbstractContextManager[Any]:
    return mock.patch.object(_curate, "left_out_of", lambda secret, *_: LeftOut(secret.key, ()))


def participation_not_enforced() -> Trial:
    """Whoever comes every month counts every month, at the price of one."""
    return Trial(
        name="series: participations hoped for instead of enforced",
        broken=partial(_often, _nobody_left_out),
        ours=partial(_often, nullcontext),
    )


def _priced(patch: Patch, long: bool) -> Outcome:
    """μ² told, exactly, against what was promised; and whether the files themselves are refused."""
    breaches: list[str] = []
    setting = StreamSetting(participations=2, adaptive=long)
    promised = setting.terms().mu ** 2
    for seed in range(4 if long else 1):
        with patch():
            try:
                stream = setting.publish(
                    setting.tables(there=True), SeededEntropy(seed).split(setting.periods)
                )
            except MechanismError:
                breaches.append("a draw that its charge does not cover")
                continue
        told = spent(stream, setting)
        if told > promised * (1 + 1e-9):
            breaches.append(f"μ² = {told:.3g} told, {promised:.3g} promised")
        try:
            stream.release(1, len(stream.periods))
        except ReleaseError:
            breaches.append("the release does not keep its promise")
    return checked(tuple(breaches))


@contextmanager
def _single_period() -> Iterator[None]:
    one_line = property(lambda terms: coefficients(1, terms.bits)[0] ** 2)
    # A second period would be refused, and so would the file: the audit must see it by itself.
    unseen = mock.patch.object(_curate, "_refuse_changed"), mock.patch.object(Stream, "check")
    with mock.patch.object(SeriesTerms, "moved", one_line), unseen[0], unseen[1]:
        yield


def single_period_sensitivity() -> Trial:
    """The noise of a stream in which a person moves one line alone."""
    return Trial(
        name="series: the sensitivity of a single period",
        broken=partial(_priced, _single_period),
        ours=partial(_priced, nullcontext),
    )


def _unrounded(periods: int, bits: int) -> tuple[Fraction, ...]:
    """1/√(1 − x) is its own weight of totals: of the factor before it was rounded."""
    found = [Fraction(1, 1 << bits)]
    for j in range(1, periods):
        found.append(found[-1] * Fraction(2 * j - 1, 2 * j))
    return tuple(found)


def _windows(patch: Patch, long: bool) -> Outcome:
    """What every window holds of every period: all of its own, nothing of the others."""
    periods = 60 if long else 12
    window_weights.cache_clear()
    breaches = []
    with patch():
        for last in range(1, periods + 1):
            for first in {1, last, max(1, last - 11)}:
                weights = window_weights(first, last, periods=periods, bits=12)
                c = coefficients(periods, 12)
                for s in range(1, last + 1):
                    held = sum(weights[t - 1] * c[t - s] for t in range(s, last + 1))
                    if held != int(first <= s):
                        breaches.append(f"{first} to {last} holds {float(held):.6f} of period {s}")
    window_weights.cache_clear()
    return checked(tuple(breaches))


def unrounded_weights() -> Trial:
    """Weights of the factor before rounding: exact sums of millions of rows show through."""
    return Trial(
        name="series: windows by the factor before it was rounded",
        broken=partial(_windows, lambda: mock.patch.object(factor, "_total_weights", _unrounded)),
        ours=partial(_windows, nullcontext),
    )


def trials() -> tuple[Trial, ...]:
    """What could go wrong between one period and the next."""
    return (noise_reused(), participation_not_enforced(), single_period_sensitivity(), unrounded_weights())
