"""Changes and slopes of a series vary as their errors say: the noise of windows goes together.

The lines of one real stream without their noise get new noise again and again, so that privacy noise is all
that varies (kind="table"). Seeds are fixed. Errors that take windows for independent are off: the tests see
the difference.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.unit.series.streams import people, seeded

from dpgram.analysis import compare, trend
from dpgram.analysis.trend import _between
from dpgram.noise import SymmetricGaussian
from dpgram.noise.factor import coefficients, overlap, window_weights
from dpgram.series import Series
from dpgram.series._secret import open_secret
from dpgram.series.stream import Stream, secret_path

pytestmark = pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")

RUNS = 150
PERIODS = 4


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Series:
    tables = [people(2_000 * t, 2_000, seed=t) for t in range(PERIODS)]
    return seeded(tmp_path_factory.mktemp("trends") / "a.series", tables, adaptive=False, epsilon=2.0)


@pytest.fixture(scope="module")
def runs(series: Series) -> list[Stream]:
    """The same stream with other noise."""
    stream = Stream.read(series.path)
    with open_secret(secret_path(series.path), stream.head.series) as secret:
        kept = secret.past(PERIODS + 1)
    c, width = coefficients(12), stream.schema.width
    law, draw = SymmetricGaussian(sigma=stream.opening.sigma), np.random.default_rng(9)
    lower = np.tril_indices(width)
    found = []
    for _ in range(RUNS):
        periods = []
        for t, period in enumerate(stream.periods):
            noise = law.sample(width, draw)[lower]
            exact = [sum(c[t - s] * kept[s].cells[i] for s in range(t + 1)) for i in range(len(noise))]
            cells = tuple(str(x + round(z)) for x, z in zip(exact, noise, strict=True))
            periods.append(msgspec.structs.replace(period, cells=cells))
        digests = [stream.head_digest] * (PERIODS + 1)  # nobody looks at them here
        found.append(Stream(stream.head, periods, labels=stream.labels, digests=digests, size=stream.size))
    return found


def ratio(found: list[float], errors: list[float]) -> float:
    """The deviation of the estimates over what their errors say."""
    return float(np.std(found, ddof=1) / np.sqrt(np.mean(np.square(errors))))


SPREAD = 3.0 / (2.0 * RUNS) ** 0.5
"""Three deviations of an estimated deviation."""


@pytest.mark.parametrize("windows", [((2, 2), (3, 3)), ((1, 3), (1, 4))], ids=["periods", "running totals"])
def test_changes_vary_as_they_are_said_to(
    windows: tuple[tuple[int, int], tuple[int, int]], runs: list[Stream]
) -> None:
    changes, apart = [], []
    for stream in runs:
        found = trend([stream.release(*window) for window in windows], "y", ["x"], kind="table")
        changes.append(found.change("x"))
        apart.append(float(np.hypot(*found.std_errors("x"))))
    seen = [change.estimate for change in changes]
    said = [change.std_error for change in changes]
    assert abs(ratio(seen, said) - 1.0) < SPREAD
    if windows[0] == (2, 2):
        # Noise that two neighbouring periods share has opposite signs in them.
        assert np.mean(said) > 1.08 * np.mean(apart)
    else:
        assert ratio(seen, apart) < 1.0 - SPREAD


def test_a_slope_varies_as_it_is_said_to(runs: list[Stream]) -> None:
    slopes = []
    for stream in runs[:100]:
        windows = [stream.release(t, t) for t in range(1, PERIODS + 1)]
        slopes.append(trend(windows, "y", ["x"], kind="table").slope("x"))
    found = ratio([slope.estimate for slope in slopes], [slope.std_error for slope in slopes])
    assert abs(found - 1.0) < 3.0 / 200**0.5


def test_the_covariance_of_what_noise_does_to_two_windows() -> None:
    """E[D N r (D' N' r')ᵀ] by simulation, N and N' with a known correlation."""
    draw = np.random.default_rng(4)
    law, runs = SymmetricGaussian(sigma=2**0.5), 40_000
    one, other = draw.normal(size=(2, 3, 4))
    r, s = draw.normal(size=(2, 4))
    w, v = window_weights(2, 2, periods=4), window_weights(3, 3, periods=4)
    lines = np.array([[law.sample(4, draw) for _ in range(3)] for _ in range(runs)])
    first = np.einsum("t,ntab->nab", np.array([*map(float, w), 0.0]), lines)
    second = np.einsum("t,ntab->nab", np.array(list(map(float, v))), lines)
    moved, moved_other = first @ r @ one.T, second @ s @ other.T
    seen = moved.T @ moved_other / runs
    said = overlap(w, v) * _between(one, r, other, s)
    noise = np.sqrt(np.outer((moved**2).mean(axis=0), (moved_other**2).mean(axis=0)) * 2.0 / runs)
    assert np.abs(seen - said).max() < 5.0 * noise.max()
    assert np.abs(said).max() > 20.0 * noise.max()


def test_a_comparison_knows_it_too(series: Series) -> None:
    found = compare(series.period(3), series.period(2), "y", ["x"], kind="table")
    change = series.trend("y", ["x"], kind="table").change("x", 1, 2)
    assert found.difference.estimate[1] == pytest.approx(change.estimate)
    assert found.difference.std_errors[1] == pytest.approx(change.std_error)


def test_windows_that_overlap_and_sums_of_windows_are_refused(series: Series) -> None:
    from dpgram.analysis import pool, union
    from dpgram.errors import AnalysisError

    with pytest.raises(AnalysisError, match="periods in common"):
        compare(series.window(1, 2), series.window(2, 3), "y", ["x"])
    for add in (lambda pair: union(pair), lambda pair: pool(pair, "y", ["x"])):
        with pytest.raises(AnalysisError, match="windows of one series"):
            add([series.period(1), series.period(2)])
