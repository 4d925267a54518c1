"""A series beside independent releases: noise, coverage on a real table in 60 months, files, time.

    python benchmarks/series.py            # about five minutes on one core; reads cps1988
    python benchmarks/series.py --noise    # the table of noise alone: some seconds, reads nothing

Noise is measured, not computed: lines of a stream are drawn around zero with the product's own scale and
sampler, windows made of them, and compared with draws of one release with the same guarantee. For coverage,
rows of 60 months are drawn with replacement from cps1988, the population; every stream has new rows and new
noise. The truth is the regression from the exact clipped matrix, in the coordinates of that stream: of the
rows up to that month (table), or of the population. Writes results/series.md.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cps_wages import SCHEMA as WAGES
from cps_wages import table as wages
from data_sets import data_sets
from dpgram.analysis.inference import infer
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.trend import fitted_windows
from dpgram.core.noise import Entropy
from dpgram.engines.local import LocalEngine, add_up
from dpgram.engines.passes import Pass
from dpgram.lattice import cell_unit
from dpgram.mechanisms import CalibratedGaussian, Gaussian, PublicFacts
from dpgram.noise import SymmetricGaussian
from dpgram.noise.factor import noise_factor, window_weights
from dpgram.privacy import SeededEntropy
from dpgram.privacy.adjacency import AddRemove
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing.publication import drawn
from dpgram.publishing.series import series_terms
from dpgram.release import Release
from dpgram.rows import Rows
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import row_rules
from dpgram.schema import Schema, numeric
from dpgram.series._curate import create, publish
from dpgram.series._records import KeptPeriod
from dpgram.series._secret import open_secret
from dpgram.series.stream import Stream, secret_path
from dpgram.sums.grams import GramStatistic

RESULT = Path(__file__).parent / "results" / "series.md"
EPSILON, DELTA = 1.0, 1e-6
PERIODS = 60
STREAMS = 30
SHOWN = range(5, PERIODS + 1, 5)
"""Running totals that are asked for."""
ON = ["education", "experience", "black", "city", "parttime", "region"]
ENGINE = LocalEngine(threads=1)
WIDE = Schema(*(numeric(f"x{k}", -1, 1) for k in range(20)))
NOISY = 60
"""Columns of the matrices of which noise is measured: 1,830 cells."""
REPEATS = 4
TIMED = (2_000, 20_000)
"""Rows of a period whose publication is timed."""
SIDE_BY_SIDE = (1, 2, 15, 30, 60)
"""Periods that are timed,"""
REPEATED = 40
"""so often."""
COMMANDS = 12
"""Runs of `dpgram series publish` of each of those periods: processes of their own."""
LIMITS = {12: 1.9, 60: 2.4, 120: 2.65}


def wide_table(period: int, rows: int) -> pa.Table:
    draw = np.random.default_rng([1, period])
    columns = {f"x{k}": draw.uniform(-1, 1, rows) for k in range(20)}
    return pa.table({**columns, "id": np.arange(rows * period, rows * (period + 1))})


def kept(path: Path, stream: Stream) -> list[KeptPeriod]:
    with open_secret(secret_path(path), stream.head.series) as secret:
        return secret.past(len(stream.periods) + 1)


def lines_of_noise(mechanism: CalibratedGaussian, count: int, entropy: Entropy) -> np.ndarray:
    """So many draws around zero, cells of the diagonal and cells below it on one scale."""
    nothing = np.zeros((NOISY, NOISY), dtype=object)
    lower = np.tril_indices(NOISY)
    scale = np.where(lower[0] == lower[1], 1.0, 2.0**0.5)
    found = [drawn(mechanism, nothing, entropy).cells[lower].astype(np.float64) * scale for _ in range(count)]
    return np.array(found)


def noise_table() -> Iterator[str]:
    """Measured and computed, for totals, single periods and windows of twelve."""
    facts = PublicFacts(width=NOISY, adjacency=AddRemove())
    alone = Gaussian().calibrated(Guarantee(EPSILON, DELTA), facts)
    unit = float(np.sqrt(np.mean(lines_of_noise(alone, 30, SeededEntropy(1)) ** 2)))
    yield (
        "| T | k | total, measured | computed | at most | adding up | period | computed | one by one "
        "| window of 12 | computed | adding up |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for periods, most in LIMITS.items():
        for often in (1, 2, 3):
            horizon = {"periods": periods, "participations": often}
            terms = series_terms(
                WIDE, epsilon=EPSILON, delta=DELTA, rows=Rows(unit="id"), adaptive=False, **horizon
            )
            stream = CalibratedGaussian(sigma=terms.stream(Fraction(0), terms.plain_encoder()).sigma)
            windows = {"total": (1, periods), "period": (periods, periods), "window": (periods - 11, periods)}
            seen: dict[str, list[float]] = defaultdict(list)
            for seed in range(REPEATS):
                lines = lines_of_noise(stream, periods, SeededEntropy(100 * periods + 10 * often + seed))
                for name, (first, last) in windows.items():
                    weights = [float(w) for w in window_weights(first, last, periods=periods)]
                    seen[name].append(float(np.mean((np.array(weights) @ lines[:last]) ** 2)))
            measured = {name: float(np.sqrt(np.mean(each))) / unit for name, each in seen.items()}
            computed = {name: noise_factor(*ends, **horizon) for name, ends in windows.items()}
            limit = f"{most}" if often == 1 else ""
            yield (
                f"| {periods} | {often} | **{measured['total']:.2f}** | {computed['total']:.2f} | {limit} "
                f"| {(often * periods) ** 0.5:.2f} | {measured['period']:.2f} | {computed['period']:.2f} "
                f"| {often**0.5:.2f} | {measured['window']:.2f} | {computed['window']:.2f} "
                f"| {(12 * often) ** 0.5:.2f} |"
            )


@dataclass
class Counted:
    """Intervals by what they are for."""

    covered: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    given: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    asked: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))


def exact_moments(release: Release, cells: list[int]) -> Moments:
    """The same release without noise, of these exact sums."""
    width = release.schema.width
    matrix = np.zeros((width, width))
    lower = np.tril_indices(width)
    matrix[lower] = np.array(cells, dtype=np.float64)
    matrix = (matrix + np.tril(matrix, -1).T) * cell_unit(release.radius)
    return replace(
        Moments.of(release), gram=matrix, noise=EncodedNoise.of(SymmetricGaussian(sigma=1e-90), 1.0)
    )


def population_cells(release: Release, frame: pa.Table) -> list[int]:
    encoder = Encoder(WAGES, clip=release.radius, coordinates=release.coordinates)
    work = Pass(rules=row_rules(WAGES, Rows()), statistics=(GramStatistic(encoder),))
    (exact,) = add_up(frame, work, threads=1, progress=False)
    return [int(cell) for cell in exact.cells[np.tril_indices(WAGES.width)]]


def truth(release: Release, cells: list[int]) -> tuple[tuple[str, ...], np.ndarray]:
    """Coefficients of the exact clipped matrix."""
    (window,) = fitted_windows([release], "log_wage", ON, kind="table")
    found = infer(exact_moments(release, cells), window.design, "table")
    return found.names, found.estimate


def coverage(folder: Path, streams: int) -> tuple[Counted, int]:
    """60 months of cps1988 again and again; also the size of the public file."""
    frame = wages(folder).to_arrow()
    months = frame.num_rows // PERIODS
    counted, size = Counted(), 0
    for seed in range(streams):
        draw = np.random.default_rng([88, seed])
        noise = SeededEntropy(seed)
        with TemporaryDirectory() as place:
            path = Path(place) / "cps.series"
            create(path, WAGES, epsilon=EPSILON, delta=DELTA, periods=PERIODS, entropy=noise)
            for t in range(1, PERIODS + 1):
                rows = frame.take(pa.array(draw.integers(0, frame.num_rows, months)))
                publish(path, rows, str(t), engine=ENGINE, progress=False, entropy=noise)
            stream, size = Stream.read(path), path.stat().st_size
            exact = kept(path, stream)
        whole = population_cells(stream.release(1, PERIODS), frame)
        for t in SHOWN:
            release = stream.release(1, t)
            own = [sum(cells) for cells in zip(*(each.cells for each in exact[:t]), strict=True)]
            for kind, cells in (("table", own), ("population", whole)):
                names, right = truth(release, cells)
                fit = release.regress("log_wage", ON).inference(kind)
                key = (kind, "early" if t <= 20 else "late")
                counted.asked[key] += len(names)
                if fit.refusal is not None:
                    continue
                ends = dict(zip(fit.names, fit.conf_int(0.95), strict=True))
                for name, value, clear in zip(names, right, fit.trusted, strict=True):
                    if clear and name in ends:
                        counted.given[key] += 1
                        counted.covered[key] += int(ends[name][0] <= value <= ends[name][1])
    return counted, size


def coverage_table(counted: Counted) -> Iterator[str]:
    yield "| intervals for | running totals | asked | given | covered |"
    yield "|---|---|---|---|---|"
    for kind in ("table", "population"):
        for part in ("early", "late"):
            yield _line(
                counted, kind, {"early": "months 5 to 20", "late": "months 25 to 60"}[part], [(kind, part)]
            )
        yield _line(counted, kind, "all", [(kind, "early"), (kind, "late")], strong="**")


def _line(counted: Counted, kind: str, what: str, keys: list[tuple[str, str]], strong: str = "") -> str:
    asked, given, covered = (
        sum(each[key] for key in keys) for each in (counted.asked, counted.given, counted.covered)
    )
    share = f"{covered / given:.1%}" if given else "–"
    return f"| the {kind} | {what} | {asked:,} | {given:,} | {strong}{share}{strong} |"


@dataclass(frozen=True)
class Timed:
    """Sixty periods of so many rows: sizes of both files, and processor seconds by period."""

    rows: int
    public: int
    secret: int
    publish: np.ndarray
    """To draw a period and write its line."""
    release: np.ndarray
    """To make the release of everything up to then."""
    both: np.ndarray
    """One after the other, as `Series.publish` does."""
    command: np.ndarray
    """`dpgram series publish`, a process of its own."""


def put_back(path: Path, content: bytes) -> None:
    """On the disk, as it was since the last period: `publish` would have to flush all of it otherwise."""
    with path.open("wb") as file:
        file.write(content)
        os.fsync(file.fileno())


@contextmanager
def many_periods(
    rows: int, noise: Entropy | None
) -> Iterator[tuple[tuple[Path, Path], dict[int, list[bytes]]]]:
    """Both files of a series with all of its periods, and what was in them before each of `SIDE_BY_SIDE`."""
    before = {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.series"
        files = (path, secret_path(path))
        horizon = {"periods": PERIODS, "rows": Rows(unit="id")}
        create(path, WIDE, epsilon=EPSILON, delta=DELTA, entropy=noise, **horizon)
        for t in range(1, PERIODS + 1):
            if t in SIDE_BY_SIDE:
                before[t] = [each.read_bytes() for each in files]
            publish(path, wide_table(t, rows), str(t), engine=ENGINE, progress=False, entropy=noise)
        yield files, before


def timed(rows: int) -> Timed:
    """Each of `SIDE_BY_SIDE` again and again, in turn, from copies of the files before it."""
    noise = SeededEntropy(7)
    with many_periods(rows, noise) as (files, before):
        sizes = [each.stat().st_size for each in files]
        seconds = np.zeros((REPEATED, 2, len(SIDE_BY_SIDE)))
        for run in range(REPEATED):
            for place, (t, raw) in enumerate(before.items()):
                for each, content in zip(files, raw, strict=True):
                    put_back(each, content)
                table = wide_table(t, rows)
                start = time.process_time()
                found = publish(files[0], table, str(t), engine=ENGINE, progress=False, entropy=noise)
                drawn = time.process_time()
                found.release(1, t)
                seconds[run, :, place] = drawn - start, time.process_time() - drawn
    publishing, releasing = np.quantile(seconds, 0.25, axis=0)
    both = np.quantile(seconds.sum(axis=1), 0.25, axis=0)
    command = np.quantile(commanded(rows), 0.25, axis=0)
    return Timed(
        rows=rows,
        public=sizes[0],
        secret=sizes[1],
        publish=publishing,
        release=releasing,
        both=both,
        command=command,
    )


def commanded(rows: int) -> np.ndarray:
    """The same by the command, from a Parquet file: a new process each time, with its imports."""
    seconds = np.zeros((COMMANDS, len(SIDE_BY_SIDE)))
    with many_periods(rows, None) as (files, before):
        data = files[0].with_name("rows.parquet")
        command = [Path(sys.executable).with_name("dpgram"), "series", "publish", files[0], data]
        for run in range(COMMANDS):
            for place, (t, raw) in enumerate(before.items()):
                for each, content in zip(files, raw, strict=True):
                    put_back(each, content)
                pq.write_table(wide_table(t, rows), data)
                start = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run([*command, "--period", str(t)], check=True, capture_output=True)
                end = resource.getrusage(resource.RUSAGE_CHILDREN)
                seconds[run, place] = end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime
    return seconds


def time_table(every: list[Timed]) -> Iterator[str]:
    periods = " | ".join(f"period {t}" for t in SIDE_BY_SIDE)
    yield f"| processor milliseconds | {periods} | last to second |"
    yield "|---" * (len(SIDE_BY_SIDE) + 2) + "|"
    for one in every:
        for what, each in (
            ("publish", one.publish),
            ("release of the total", one.release),
            ("both", one.both),
            ("the command", one.command),
        ):
            told = " | ".join(f"{1e3 * seconds:.1f}" for seconds in each)
            strong = "" if each is one.release else "**"
            ratio = f"{strong}{each[-1] / each[1]:.2f}{strong}"
            yield f"| {what}, {one.rows:,} rows | {told} | {ratio} |"


def files_and_time() -> list[str]:
    every = [timed(rows) for rows in TIMED]
    first = every[0]
    return [
        "## Files and time",
        "",
        f"20 columns, {PERIODS} periods of {first.rows:,} rows: public file {first.public / 1e6:.2f} MB,",
        f"curator's file {first.secret / 1e6:.2f} MB. Lower quartiles of {REPEATED} runs in turn within one",
        f"process, and of {COMMANDS} of `dpgram series publish`, on a machine on which other programs ran.",
        "`publish` reads the table, draws and writes; the release of the total adds up all lines.",
        "",
        *time_table(every),
        "",
        "The release is made of all lines, by the curator or by anybody who holds the public file.",
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise", action="store_true", help="only the table of noise, on the screen")
    parser.add_argument("--time", action="store_true", help="only files and time, in the file of results")
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--data", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.time:
        before = RESULT.read_text(encoding="utf-8").partition("## Files and time")[0]
        RESULT.write_text(before + "\n".join(files_and_time()), encoding="utf-8")
        return
    noise = list(noise_table())
    print("\n".join(noise), flush=True)
    if asked.noise:
        return
    counted, size = coverage(data_sets(asked.data), asked.streams)
    lines = [
        "# A series beside independent releases",
        "",
        f"Made by `python benchmarks/series.py` (ε = {EPSILON:g}, δ = {DELTA:g}, add/remove).",
        "",
        "## Noise, in multiples of one release with the same guarantee",
        "",
        "k is the number of periods in which a person may count, at any distance from each other. Measured:",
        f"root mean square over 1,830 cells of {REPEATS} streams. For k > 1 one release has a person once.",
        "",
        *noise,
        "",
        "## cps1988 in 60 months",
        "",
        f"{asked.streams} streams; 469 rows drawn with replacement from cps1988 in each month; adaptive,",
        "with the shares of a single release. Log wages on education, experience, ethnicity, city,",
        "part-time work and region, in every fifth running total.",
        f"Public file after 60 months: {size / 1e6:.2f} MB.",
        "",
        *coverage_table(counted),
        "",
        *files_and_time(),
    ]
    RESULT.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
