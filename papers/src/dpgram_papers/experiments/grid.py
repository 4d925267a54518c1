"""A grid of independent cells, measured once each: one line of a CSV file for each, kept for the next run.

A cell's randomness comes from the seed and the cell alone, so the order and the number of processes do not
change a number. What an interrupted run has finished stays.
"""

from __future__ import annotations

import csv
import math
import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dpgram.core.noise import SeededEntropy
from dpgram.errors import DpgramError, DpgramWarning

Array: TypeAlias = npt.NDArray[np.float64]
Value: TypeAlias = str | int | float
Key: TypeAlias = tuple[Value, ...]
Measure: TypeAlias = Callable[[Key, int], Mapping[str, float]]
"""(cell, seed) → the measured columns. A function of a module, so that another process can find it."""

PROCESSES_AT_MOST: Final = 2
_THREADS: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The cells, what is measured in each, and the names of both."""

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[Key, ...]
    measure: Measure
    together: int = 1
    """Consecutive cells that share work and so stay in one process."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GridResults:
    """Measured cells, to be asked for means and series."""

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[Key, ...]
    table: Array = field(repr=False)
    """Cells × columns."""

    def axis(self, key: str, **where: Value) -> list[Value]:
        """The values that a key takes, in the order of the grid."""
        place = self.keys.index(key)
        return list(dict.fromkeys(self.cells[i][place] for i in self._rows(where)))

    def values(self, column: str, **where: Value) -> Array:
        """One number for each cell that matches."""
        return self.table[self._rows(where), self.columns.index(column)]

    def mean(self, column: str, **where: Value) -> float:
        """Over all that match; nan where nothing does."""
        values = self.values(column, **where)
        return float(values.mean()) if len(values) else math.nan

    def deviation(self, column: str, **where: Value) -> float:
        """The standard deviation of what matches."""
        values = self.values(column, **where)
        return float(values.std(ddof=1)) if len(values) > 1 else math.nan

    def series(self, column: str, key: str, **where: Value) -> Array:
        """Means along a key."""
        return np.array([self.mean(column, **where, **{key: value}) for value in self.axis(key, **where)])

    def deviations(self, column: str, key: str, **where: Value) -> Array:
        """Standard deviations along a key."""
        return np.array(
            [self.deviation(column, **where, **{key: value}) for value in self.axis(key, **where)]
        )

    def _rows(self, where: Mapping[str, Value]) -> list[int]:
        wanted = [(self.keys.index(key), value) for key, value in where.items()]
        return [i for i, cell in enumerate(self.cells) if all(cell[k] == value for k, value in wanted)]


def run(
    grid: Grid, path: Path, *, seed: int, processes: int = 1, tell: Callable[[int, int], None] | None = None
) -> GridResults:
    """Measure what the file lacks, and return the grid. `tell` hears how many cells of how many are done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header = ("seed", *grid.keys, *grid.columns)
    lines = _read(path, header, 1 + len(grid.keys))
    wanted = {_text(seed, cell): cell for cell in grid.cells}
    missing = [cell for text, cell in wanted.items() if text not in lines]
    done = len(wanted) - len(missing)
    say = tell or (lambda _done, _of: None)
    say(done, len(wanted))
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        for cell, measured in _measured(grid, missing, seed, processes):
            line = [repr(float(measured[column])) for column in grid.columns]
            lines[_text(seed, cell)] = line
            writer.writerow([*_text(seed, cell), *line])
            file.flush()
            done += 1
            say(done, len(wanted))
    _write(path, header, lines, first=wanted)
    table = np.array([[float(cell) for cell in lines[text]] for text in wanted], dtype=np.float64)
    return GridResults(keys=grid.keys, columns=grid.columns, cells=tuple(wanted.values()), table=table)


def measured(grid: Grid, path: Path, *, seed: int) -> tuple[GridResults, int]:
    """What the file holds of the grid, nothing being run; and how many cells it lacks."""
    lines = _read(path, ("seed", *grid.keys, *grid.columns), 1 + len(grid.keys))
    found = {cell: lines[_text(seed, cell)] for cell in grid.cells if _text(seed, cell) in lines}
    table = np.array([[float(cell) for cell in line] for line in found.values()], dtype=np.float64)
    results = GridResults(keys=grid.keys, columns=grid.columns, cells=tuple(found), table=table)
    return results, len(grid.cells) - len(found)


def generator_of(seed: int, *parts: Value) -> np.random.Generator:
    """Randomness of its own for every combination of the parts."""
    return np.random.default_rng([seed, *"/".join(map(str, parts)).encode()])


def entropy_of(seed: int, *parts: Value) -> SeededEntropy:
    """The same for mechanisms. Estimators copy what they are given: each fit needs a source split off."""
    return SeededEntropy(np.random.SeedSequence([seed, *"/".join(map(str, parts)).encode()]))


def _measured(
    grid: Grid, cells: Sequence[Key], seed: int, processes: int
) -> Iterator[tuple[Key, Mapping[str, float]]]:
    count = min(processes, PROCESSES_AT_MOST, len(cells))
    if count <= 1:
        yield from ((cell, grid.measure(cell, seed)) for cell in cells)
        return
    # Each process computes with one thread: two that share two cores with BLAS's own threads are slower.
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))
    try:
        batches = [cells[i : i + grid.together] for i in range(0, len(cells), grid.together)]
        futures = {pool.submit(_batch, grid.measure, batch, seed): batch for batch in batches}
        for future in as_completed(futures):
            yield from zip(futures[future], future.result(), strict=True)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _batch(measure: Measure, cells: Sequence[Key], seed: int) -> list[Mapping[str, float]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)  # as in the process that asks
        return [dict(measure(cell, seed)) for cell in cells]


def _text(seed: int, cell: Key) -> tuple[str, ...]:
    return (str(seed), *map(str, cell))


def _read(path: Path, header: tuple[str, ...], keys: int) -> dict[tuple[str, ...], list[str]]:
    """Finished lines by seed and cell; a last line that an interruption cut short is dropped."""
    if not path.exists():
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerow(header)
        return {}
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    rows = list(csv.reader(whole.splitlines()))
    if not rows or tuple(rows[0]) != header:
        raise DpgramError(
            f"{path} holds the results of another experiment",
            got="other columns",
            remedy="Choose another --output folder, or move the file away",
        )
    return {tuple(row[:keys]): row[keys:] for row in rows[1:] if len(row) == len(header)}


def _write(
    path: Path,
    header: Iterable[str],
    lines: Mapping[tuple[str, ...], list[str]],
    *,
    first: Iterable[tuple[str, ...]],
) -> None:
    """The file in the grid's order, lines of other seeds and sizes after it."""
    order = list(dict.fromkeys([*first, *lines]))
    scratch = path.with_suffix(".csv.part")
    with scratch.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([*key, *lines[key]] for key in order)
    scratch.replace(path)
