"""Coverage of nominal 95% intervals of the adaptive release, for what they are said to be about.

    python benchmarks/adaptive_coverage.py                       # all cells: about half an hour on one core
    python benchmarks/adaptive_coverage.py --minutes 10          # goes on where it stopped
    python benchmarks/adaptive_coverage.py --cells t4 d5 n2000   # cells whose name has all these words
    python benchmarks/adaptive_coverage.py --report              # only writes the tables

n × ε × d × features × errors, the full model and a part of it, the same tables for every ε. The named
estimand is the bounded-influence functional at the release's own transform and radius (bounded_influence.py);
the OLS functional is known in closed form, and is asked for wherever the release gives it. What was counted
is appended to results/adaptive-coverage.csv, from which results/adaptive-coverage.md is made.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from accuracy import table
from bounded_influence import References, Truth, World
from dpgram import Release
from dpgram.analysis.inference import Inference
from dpgram.analysis.results import Regression
from dpgram.errors import AnalysisError, DpgramError
from seeded import adaptive_is_built, many_releases, seeded_release

Array = npt.NDArray[np.float64]
Estimand = Literal["named", "OLS"]

RESULTS = Path(__file__).parent / "results"
COUNTED, REFERENCES, RESULT = (
    RESULTS / "adaptive-coverage.csv",
    RESULTS / "adaptive-coverage-references.json",
    RESULTS / "adaptive-coverage.md",
)
DELTA = 1e-6
EPSILONS = (0.3, 1.0, 3.0)
TABLES: Mapping[int, int] = {2_000: 500, 20_000: 500, 200_000: 200}
"""Rows → simulated tables."""
TRUTH_ROWS: Mapping[int, int] = {2_000: 40_000, 20_000: 200_000, 200_000: 600_000}
"""Rows → rows of the table on which the functional at a release's transform is computed."""
REFERENCE_ROWS = 20_000_000
SEED = 20261117
CHUNK = 25
"""Tables between two writes."""
LEVEL = 0.95
POOLED = (0.94, 0.96)
LEAST, DOUBT = 0.93, 2.33
"""A cell fails where its coverage is below 93% by more than so many standard errors (one-sided 1%)."""
WORLDS = (
    *(
        World(features, errors, width)
        for width in (5, 20)
        for features in ("normal", "t4", "lognormal", "dummies")
        for errors in ("normal", "exponential")
    ),
    World("normal", "unequal", 5),
    World("lognormal", "unequal", 5),
)
UNEQUAL = "unequal"


def release_transform(release: Release) -> tuple[Array, float]:
    """T for rows v = (1, x, y) in original units, and R: rows longer than R in u = T v lose weight.

    A release of one plain Gram is about the encoded columns, and where its radius is the largest norm of the
    schema, which none of them exceeds, R = ∞.
    """
    columns = release.schema.encoded
    encoding = np.zeros((len(columns), len(columns)))
    encoding[0, 0] = 1.0
    for place, column in enumerate(columns[1:], start=1):
        encoding[place, place] = column.weight / column.half_width
        encoding[place, 0] = -column.weight * column.centre / column.half_width
    coordinates = getattr(release, "coordinates", None)
    if coordinates is not None:
        return coordinates.matrix @ encoding, release.radius
    clips = release.radius**2 < release.schema.max_norm_squared * (1.0 - 1e-9)
    return encoding, release.radius if clips else math.inf


def named_inference(fit: Regression) -> Inference:
    """Intervals for the estimand that the summary names."""
    return fit.inference()


def ols_inference(fit: Regression) -> Inference:
    """Intervals for the least-squares functional, where the release says that they are for it as well."""
    if not getattr(fit.moments, "least_squares", True):
        raise AnalysisError("these intervals are not for the least-squares functional")
    return fit.inference()


INFERENCES = {"named": named_inference, "OLS": ols_inference}


@dataclass(frozen=True)
class Cell:
    """One world and number of rows: its tables serve every ε."""

    world: World
    rows: int

    @property
    def name(self) -> str:
        return f"{self.world.name}/n{self.rows}"

    def matches(self, words: Sequence[str]) -> bool:
        return all(word in self.name.split("/") for word in words)


@dataclass
class Tally:
    """What a number of tables gave for one ε, model and estimand."""

    cell: str
    first: int
    tables: int
    adaptive: bool
    epsilon: float
    model: str
    estimand: str
    given: int = 0
    """Coefficients with an interval."""
    covered: int = 0
    asked: int = 0
    """All coefficients, those without an interval included."""
    answered: int = 0
    """Releases with at least one interval."""
    shares: float = 0.0
    """Σ of the covered part of a release's intervals,"""
    squares: float = 0.0
    """and of its square: coefficients of one release are not independent."""
    length: float = 0.0
    """Σ of the lengths of intervals, in standard errors of least squares without privacy."""
    truth: float = 0.0
    """Σ of the squared errors of the simulated truth, in squared standard errors of the interval."""

    def count(self, ends: Array, value: Array, error: Array, plain: Array) -> None:
        """One release; NaN ends where there is no interval."""
        trusted = np.isfinite(ends).all(axis=1)
        self.asked += len(value)
        if not trusted.any():
            return
        low, high = ends[trusted].T
        hits = (low <= value[trusted]) & (value[trusted] <= high)
        share = float(hits.mean())
        self.given += int(trusted.sum())
        self.covered += int(hits.sum())
        self.answered += 1
        self.shares += share
        self.squares += share * share
        self.length += float(np.sum((high - low) / plain[trusted]))
        self.truth += float(np.sum((error[trusted] / (high - low)) ** 2)) * (2 * 1.96) ** 2


COLUMNS = [field.name for field in fields(Tally)]


def ends_of(release: Release, world: World, model: str, estimand: Estimand) -> Array:
    """Intervals of one model; NaN throughout where they are refused."""
    chosen = world.models[model]
    nothing = np.full((len(chosen) + 1, 2), np.nan)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = release.regress("y", [world.names[j] for j in chosen])
            found = INFERENCES[estimand](fit)
            ends = found.conf_int(LEVEL)
    except AnalysisError:
        return nothing
    return np.where(found.trusted[:, None], ends, np.nan)


def plain_errors(world: World, model: str, rows: int) -> Array:
    """Standard errors of least squares without privacy, for errors of equal variance: the unit of lengths."""
    places = [0, *(1 + j for j in world.models[model])]
    gram = world.gram[np.ix_(places, places)]
    beta = world.least_squares[model]
    residual = world.gram[-1, -1] - beta @ world.gram[places, -1]
    return np.sqrt(residual * np.diagonal(np.linalg.inv(gram)) / rows)


def noise_seed(cell: Cell, number: int, epsilon: float) -> int:
    """Noise of its own for each release."""
    words = [SEED, number, round(1000 * epsilon), *cell.name.encode()]
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])


def simulate(cell: Cell, truth: Truth, first: int, tables: int, *, adaptive: bool) -> list[Tally]:
    """All ε, models and estimands on the same tables."""
    world = cell.world
    tallies = {
        (epsilon, model, estimand): Tally(cell.name, first, tables, adaptive, epsilon, model, estimand)
        for epsilon in EPSILONS
        for model in world.models
        for estimand in INFERENCES
    }
    plain = {model: plain_errors(world, model, cell.rows) for model in world.models}
    for number in range(first, first + tables):
        rows = world.rows(cell.rows, np.random.default_rng([SEED, number, *cell.name.encode()]))
        data = world.table(rows)
        for epsilon in EPSILONS:
            try:
                release = seeded_release(
                    data,
                    world.schema,
                    epsilon=epsilon,
                    delta=DELTA,
                    seed=noise_seed(cell, number, epsilon),
                    adaptive=adaptive,
                )
            except DpgramError as refusal:  # nothing may be refused because of rough bounds or few rows
                raise RuntimeError(f"{cell.name}, ε = {epsilon:g}, table {number}") from refusal
            for model, value, error in truth.at(*release_transform(release)):
                targets = {
                    "named": (value, error),
                    "OLS": (world.least_squares[model], np.zeros_like(error)),
                }
                for estimand, (target, doubt) in targets.items():
                    ends = ends_of(release, world, model, estimand)
                    tallies[epsilon, model, estimand].count(ends, target, doubt, plain[model])
    return list(tallies.values())


def references(world: World, rows: int) -> References:
    """Simulated once for each world, and kept."""
    kept = json.loads(REFERENCES.read_text()) if REFERENCES.exists() else {}
    key = f"{world.name}, {rows} rows"
    if key not in kept:
        found = References.simulate(world, rows, SEED)
        kept[key] = {
            "radii": [str(radius) for radius in found.radii],
            "values": {model: np.round(lines, 7).tolist() for model, lines in found.values.items()},
        }
        REFERENCES.write_text(json.dumps(kept) + "\n", encoding="utf-8")
    one = kept[key]
    values = {model: np.array(lines) for model, lines in one["values"].items()}
    return References(tuple(float(radius) for radius in one["radii"]), values)


def read_counted() -> list[Tally]:
    if not COUNTED.exists():
        return []
    found = []
    with COUNTED.open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            cells = {
                field.name: line[field.name] == "True"
                if field.name == "adaptive"
                else line[field.name]
                if field.name in ("cell", "model", "estimand")
                else float(line[field.name])
                if field.name in ("epsilon", "shares", "squares", "length", "truth")
                else int(line[field.name])
                for field in fields(Tally)
            }
            found.append(Tally(**cells))
    return found


def append(tallies: Iterable[Tally]) -> None:
    fresh = not COUNTED.exists()
    with COUNTED.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerows(asdict(tally) for tally in tallies)


def run(
    cells: Sequence[Cell], *, adaptive: bool, minutes: float, reference_rows: int, tables: int | None
) -> None:
    """Cell after cell, writing every few tables, until all are done or the time is over."""
    done = {(tally.cell, tally.first) for tally in read_counted() if tally.adaptive == adaptive}
    end = time.monotonic() + 60.0 * minutes
    with many_releases():
        for cell in cells:
            wanted = range(0, TABLES[cell.rows] if tables is None else tables, CHUNK)
            left = [first for first in wanted if (cell.name, first) not in done]
            if not left:
                continue
            started = time.process_time()
            truth = Truth(cell.world, references(cell.world, reference_rows), TRUTH_ROWS[cell.rows], SEED)
            for first in left:
                if time.monotonic() > end:
                    print("stopped: time is over", flush=True)
                    return
                append(simulate(cell, truth, first, CHUNK, adaptive=adaptive))
            spent = time.process_time() - started
            print(f"{cell.name}: {CHUNK * len(left)} tables, {spent:.0f} s", flush=True)


@dataclass(frozen=True)
class Coverage:
    """A sum of tallies."""

    coverage: float
    error: float
    """Its standard error, releases taken as independent, their intervals not."""
    given: float
    """The part of all coefficients that have an interval."""
    length: float
    truth: float
    releases: int

    @classmethod
    def of(cls, tallies: Sequence[Tally]) -> Coverage:
        given, answered = (sum(getattr(t, name) for t in tallies) for name in ("given", "answered"))
        asked = sum(t.asked for t in tallies)
        if answered < 2:
            return cls(math.nan, math.nan, given / max(asked, 1), math.nan, math.nan, answered)
        mean = sum(t.shares for t in tallies) / answered
        spread = sum(t.squares for t in tallies) / answered - mean**2
        # Two releases that happen to miss equally often have no spread: no error is below that of independent
        # intervals of which LEAST cover.
        independent = math.sqrt(LEAST * (1.0 - LEAST) / given)
        return cls(
            sum(t.covered for t in tallies) / given,
            max(math.sqrt(max(spread, 0.0) / answered), independent),
            given / asked,
            sum(t.length for t in tallies) / given / (2 * 1.96),
            math.sqrt(sum(t.truth for t in tallies) / given),
            answered,
        )

    @property
    def fails(self) -> bool:
        return LEAST - self.coverage > DOUBT * self.error

    def text(self) -> str:
        if math.isnan(self.coverage):
            return f"refused (but {self.releases})" if self.releases else "refused"
        part = "" if self.given > 0.995 else f" ({self.given:.0%} given)"
        shown = f"{self.coverage:.1%}{part}"
        return f"**{shown}**" if self.fails else shown


def report(tallies: Sequence[Tally]) -> Iterator[str]:
    """For each estimand: the pooled line, and a table of all cells."""
    by_cell: dict[tuple[str, str], list[Tally]] = defaultdict(list)
    for tally in tallies:
        by_cell[tally.estimand, tally.cell].append(tally)
    for estimand in INFERENCES:
        names = [cell for kind, cell in by_cell if kind == estimand]
        groups = {"equal variance": [n for n in names if UNEQUAL not in n]}
        groups["skewed errors of unequal variance"] = [n for n in names if UNEQUAL in n]
        yield f"## {'The named estimand' if estimand == 'named' else 'The OLS functional'}\n"
        for label, chosen in groups.items():
            parts = [t for name in chosen for t in by_cell[estimand, name]]
            if parts:
                yield from _pooled(label, parts)
        rows = []
        for name in names:
            cells: list[str] = [*name.split("/")]
            for epsilon in EPSILONS:
                for model in ("full", "part"):
                    found = [t for t in by_cell[estimand, name] if t.epsilon == epsilon and t.model == model]
                    cells.append(Coverage.of(found).text())
            whole = Coverage.of(by_cell[estimand, name])
            tables = max(t.first + t.tables for t in by_cell[estimand, name])
            rows.append([*cells, f"{whole.length:.2f}", f"{whole.truth:.3f}", str(tables)])
        head = ["features", "errors", "d", "n"]
        head += [f"ε = {epsilon:g}, {model}" for epsilon in EPSILONS for model in ("full", "part")]
        yield from table([*head, "length", "truth", "tables"], rows)


def _pooled(label: str, tallies: Sequence[Tally]) -> Iterator[str]:
    pooled = Coverage.of(tallies)
    single: dict[tuple[str, float, str], list[Tally]] = defaultdict(list)
    for tally in tallies:
        single[tally.cell, tally.epsilon, tally.model].append(tally)
    found = {key: Coverage.of(parts) for key, parts in single.items()}
    low = [f"{c}, ε = {e:g}, {m}" for (c, e, m), one in found.items() if one.fails]
    refused = sum(math.isnan(one.coverage) for one in found.values())
    away = max(POOLED[0] - pooled.coverage, pooled.coverage - POOLED[1])
    verdict = "met" if away <= 0.0 else "**missed**" if away > pooled.error else "within its error"
    yield (
        f"- {label}: pooled {pooled.coverage:.2%} (± {pooled.error:.2%}), wanted {POOLED[0]:.0%} to "
        f"{POOLED[1]:.0%}: {verdict}; intervals given for {pooled.given:.1%} of "
        f"the coefficients, in {refused} of {len(found)} cells for none."
    )
    told = f": {'; '.join(low)}" if low else ""
    yield f"- {label}: cells significantly below {LEAST:.0%}: {len(low)}, wanted none{told}.\n"


HEAD = """# Coverage of the adaptive release's intervals

Made by `benchmarks/adaptive_coverage.py`: nominal 95%, add/remove, δ = 10⁻⁶, rough public bounds; releases
with `adaptive={adaptive}`. Each simulated table serves every ε. "Full" is the model of all features, "part"
one of three of them; coverage is over all coefficients that have an interval, the intercept included; bold:
below 93% by more than 2.33 standard errors (those of releases, whose intervals depend on each other, and no
less than those of independent intervals). *Length*: mean length over that of least squares without privacy.
*Truth*: error of the simulated estimand in standard errors of the intervals, root mean square.

Features have unit variance and correlation 0.36 (`dummies`: normal, and a fifth of the columns one in 2% of
the rows); half of the target's variance is explained. `unequal`: exponential errors whose deviation grows
with a feature.
"""


def write() -> None:
    for adaptive in (True, False):
        tallies = [tally for tally in read_counted() if tally.adaptive == adaptive]
        if tallies:
            lines = [HEAD.format(adaptive=adaptive), *report(tallies)]
            RESULT.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
            return


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", nargs="+", default=(), help="words of the cell's name: t4 d5 n2000")
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--tables", type=int, help="fewer or more than the usual number")
    parser.add_argument("--reference-rows", type=int, default=REFERENCE_ROWS)
    parser.add_argument("--plain", action="store_true", help="releases of one plain Gram")
    parser.add_argument("--report", action="store_true", help="nothing is run")
    chosen = parser.parse_args()
    if not chosen.report:
        cells = [Cell(world, rows) for rows in TABLES for world in WORLDS]
        run(
            [cell for cell in cells if cell.matches(chosen.cells)],
            adaptive=adaptive_is_built() and not chosen.plain,
            minutes=chosen.minutes,
            reference_rows=chosen.reference_rows,
            tables=chosen.tables,
        )
    write()


if __name__ == "__main__":
    main()
