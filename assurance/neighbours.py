"""A search for neighbours that differ by more than is claimed: exact integers, every source that carries ids.

Pairs of small tables that differ in one row, or in all rows of one person, added to or removed from the table
or put in place of another one's. Ids are chosen to be confused: see `id_tables`. The differences of the exact
sums are compared with the claimed bounds, in Frobenius and in nuclear norm. All seeds are fixed. Half of the
matrices are in coordinates as a first matrix gives them, with a clip there. Histograms of all columns and of
the lengths of rows are compared too, in L1 and L2, for the pairs that are added up alone.

To be fast, the tables of a batch are read as one (with a column that says which is which), and each is added
up as a group of its own: the readers, the policies and the sums are those of `publish`. A part of the pairs
is done again table by table by the engine itself.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from assurance.id_tables import FILES, SOURCES, Columns, Person
from assurance.part import Finding, Part
from dpgram.document.coordinates import Coordinates
from dpgram.document.fields import SurveyWeight, UnitRule
from dpgram.engines.dask import DaskEngine
from dpgram.engines.local import LocalEngine
from dpgram.engines.passes import Pass, Sums, gram_pass
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.adjacency import adjacency
from dpgram.rows.batch import RowBatch
from dpgram.rows.encoder import Encoder
from dpgram.schema import Schema
from dpgram.schema.columns import categorical, numeric
from dpgram.sources import ids
from dpgram.sums.clip import ClipStatistic
from dpgram.sums.counts import ExactCounts
from dpgram.sums.exact_gram import ExactGram
from dpgram.sums.grams import GramStatistic
from dpgram.sums.histograms import HistogramColumn, HistogramsStatistic

PAIRS: Final = 100_000
WORKERS: Final = 2
BATCH: Final = 500
"""Pairs that are read together."""
ALONE: Final = 2
"""Pairs of every batch that are read and added up by the engine, each table by itself."""
ROUNDING: Final = 1.0 + 2.0**-40
"""Of nuclear norms, which are computed in floats; Frobenius norms are compared as integers."""

SCHEMA: Final = Schema(numeric("x", -1, 1), categorical("t", ["a", "b"], other="rest"))
STANDARDISED: Final = Coordinates.nearest(
    np.array(
        [
            [1.0, 0.0, 0.0, 0.0, 0.0],
            [-2.0, 6.0, 0.0, 0.0, 0.0],
            [-1.0, 0.0, 2.5, 0.0, 0.0],
            [-0.8, 0.0, 0.0, 2.2, 0.0],
            [-0.3, 0.0, 0.0, 0.0, 9.0],
        ]
    )
)
TURNED: Final = Coordinates.nearest(
    np.array(
        [
            [1.1, 0.0, 0.0, 0.0, 0.0],
            [-2.0, 6.0, 0.0, 0.0, 0.0],
            [-0.9, 1.7, 2.5, 0.0, 0.0],
            [0.4, -3.0, -0.3, 3.1, 0.0],
            [-1.2, 0.1, 2.2, -0.7, 40.0],
        ]
    )
)
"""Coordinates such as histograms give, and a first matrix: a rare level is enlarged."""
HISTOGRAMS: Final = (
    HistogramColumn(name="x", bounds=(-1.0, 1.0)),
    HistogramColumn(name="t", bounds=None, levels=3),
)
NUMBERS: Final = (1.0, 1.0, 1.0, -1.0, -1.0, 0.25, 9.0, -9.0, float("nan"), 0.0)
TEXTS: Final = ("a", "a", "a", "b", "b", "?", "")
WEIGHTS: Final = (2.0, 2.0, 0.5, 9.0, -1.0)
SIZES: Final = (1, 1, 2, 3, 7, 25)
"""Rows of a person."""

Relation = Literal["add-remove", "replace-one"]
Row = tuple[Any, float, str, float]
"""Whose it is, and what it holds."""
Cells = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two neighbours."""

    one: list[Row]
    other: list[Row]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a batch of pairs has in common. Without a rule, rows count one by one."""

    source: str
    relation: Relation
    rule: UnitRule | None
    clip: float | None
    missing: Literal["drop", "midpoint"]
    weighted: bool
    coordinates: Coordinates | None = None
    """As in the second pass of an adaptive release; these need a clip."""

    @property
    def encoder(self) -> Encoder:
        return Encoder(SCHEMA, clip=self.clip, missing=self.missing, coordinates=self.coordinates)

    def plan(self, tables: Sequence[str]) -> Pass:
        return gram_pass(
            self.encoder,
            unit=None if self.rule is None else "id",
            rule=self.rule,
            by=categorical("which", tables),
            weight=SurveyWeight(column="w", at_most=2.0) if self.weighted else None,
        )


@final
@dataclass(slots=True)
class Found:
    """How far the neighbours of one source went, as a part of what is claimed."""

    pairs: int = 0
    alone: int = 0
    frobenius: float = 0.0
    nuclear: float = 0.0
    histograms: float = 0.0
    """The largest L1 or L2 difference of a histogram."""
    beyond: int = 0
    """Pairs that differ by more than is claimed."""
    worst: str = field(default="")


def setting(source: str, dice: random.Random) -> Setting:
    rules = (
        None,
        UnitRule(counts="units", rows_at_most=1024),
        UnitRule(counts="units", rows_at_most=1024),
        UnitRule(counts="units", rows_at_most=3),
        UnitRule(counts="rows", rows_at_most=3),
    )
    turned = dice.choice((None, STANDARDISED, TURNED, TURNED))
    return Setting(
        source=source,
        relation=dice.choice(("add-remove", "replace-one")),
        rule=dice.choice(rules),
        clip=dice.choice((None, None, 0.7) if turned is None else (0.7, 3.0, 50.0)),
        missing=dice.choice(("drop", "midpoint")),
        weighted=dice.random() < 0.25,
        coordinates=turned,
    )


def pair(asked: Setting, dice: random.Random) -> Pair:
    """A few persons, and one more (or one more row) on either side, or another one in its place."""
    persons = SOURCES[asked.source].persons
    count = dice.randint(3, 5)
    if dice.random() < 0.5:
        start = dice.randrange(len(persons))  # those that are easily confused stand side by side
        persons = (*persons[start:], *persons[:start])[:count]
    first, second, *others = dice.sample(persons, count)
    common = [row for who in others for row in _rows(who, dice)]
    if asked.rule is None:
        changes = [_rows(first, dice)[:1], _rows(second, dice)[:1]]
    else:
        # In place of a person comes one of the same or of another id, which nobody else has.
        changes = [_rows(first, dice), _rows(dice.choice((first, second)), dice)]
    if asked.relation == "add-remove":
        changes[dice.randrange(2)] = []
    one, other = ([*common, *change] for change in changes)
    dice.shuffle(one)
    dice.shuffle(other)
    return Pair(one=one, other=other)


def _rows(person: Person, dice: random.Random) -> list[Row]:
    """Often all alike, which is where bounds are met; under all spellings of the id."""
    count = dice.choice(SIZES)
    kinds = 1 if dice.random() < 0.5 else count
    numbers, texts, weights = (
        dice.choices(NUMBERS, k=kinds),
        dice.choices(TEXTS, k=kinds),
        dice.choices(WEIGHTS, k=kinds),
    )
    contents = list(zip(numbers, texts, weights, strict=True)) * (count // kinds)
    return [(who, *content) for who, content in zip(dice.choices(person, k=count), contents, strict=True)]


def columns_of(tables: Sequence[tuple[str, Sequence[Row]]]) -> Columns:
    """The rows of several tables, each with the name of its table."""
    flat = [(name, *row) for name, rows in tables for row in rows]
    return {name: [row[place] for row in flat] for place, name in enumerate(("which", "id", "x", "t", "w"))}


def sums(asked: Setting, tables: Sequence[Sequence[Row]], folder: Path) -> list[Cells]:
    """The exact matrix of every table, all of them read as one."""
    names = [str(number) for number in range(len(tables))]
    plan = asked.plan(names)
    data = SOURCES[asked.source].make(columns_of(list(zip(names, tables, strict=True))), folder)
    reader, adder = plan.reader(), plan.adder()
    # All rows of a unit must come together, and tables must not share units: their names go before the ids.
    rows = [reader.read(batch) for batch in _batches(data, plan)]
    lines = [np.concatenate(parts) for parts in zip(*(part.lines for part in rows), strict=True)]
    count = sum(map(len, rows))
    if plan.rules.unit is None:
        adder.add(RowBatch(lines=lines, rows=count))
    else:
        group = len(SCHEMA.source_columns)
        owners = pa.chunked_array([part.ids for part in rows], pa.large_string()).combine_chunks()
        tables_of = pa.array(lines[group].astype(np.int64)).cast(pa.large_string())
        named = pc.binary_join_element_wise(tables_of, owners, pa.scalar("/", pa.large_string()))
        adder.add(RowBatch(lines=lines, rows=count, ids=named))
    _close(data)
    return _cells(adder.result())


def _batches(data: Any, plan: Pass) -> Iterator[pa.RecordBatch]:
    if not hasattr(data, "to_delayed"):
        yield from plan.open(data).batches_in_this_thread()
        return
    for part in data[list(plan.columns)].to_delayed():  # as `DaskEngine` has it read by its workers
        yield from plan.open(part.compute(scheduler="sync")).batches_in_this_thread()


def sum_alone(asked: Setting, rows: Sequence[Row], folder: Path) -> Cells:
    """The exact matrix of one table by the engine that `publish` takes."""
    return _cells(_sums_alone(asked, (GramStatistic(asked.encoder),), rows, folder))[0]


def counts_alone(asked: Setting, rows: Sequence[Row], folder: Path) -> list[list[int]]:
    """The exact histograms of one table: of each column and, in coordinates, of lengths."""
    lengths = [ClipStatistic(asked.encoder, reach) for reach in (False, True)] if asked.coordinates else []
    found = _sums_alone(asked, (HistogramsStatistic(HISTOGRAMS), *lengths), rows, folder)
    return [line for one in found if isinstance(one, ExactCounts) for line in one.cells.tolist()]


def _sums_alone(asked: Setting, statistics: tuple[Any, ...], rows: Sequence[Row], folder: Path) -> Sums:
    plan = asked.plan(["0"])
    plan = Pass(rules=replace(plan.rules, by=None), statistics=statistics)
    data = SOURCES[asked.source].make(columns_of([("0", rows)]), folder)
    if hasattr(data, "to_delayed"):
        found = DaskEngine(scheduler="threads").add_up(data, plan)
    else:
        found = LocalEngine(threads=1).add_up(data, plan, progress=False)
    _close(data)
    return found


def _cells(found: Sums) -> list[Cells]:
    return [one.cells for one in found if isinstance(one, ExactGram)]


def _close(data: Any) -> None:
    if isinstance(data, tuple):
        data[0].close()


def measure(found: Found, relation: Relation, one: Cells, other: Cells, what: str) -> None:
    """Compare a difference with what is claimed: |Δ|_F as integers, the nuclear norm but for rounding."""
    steps = (one - other).tolist()
    squared = sum(cell * cell for row in steps for cell in row)
    s, replaced = ROW_NORM_SQUARED, relation == "replace-one"
    allowed = s * s * (2 if replaced else 1)
    nuclear = float(np.abs(np.linalg.eigvalsh(np.array(steps, np.float64))).sum())
    most = adjacency(relation).eigenvalue_l1(float(s))
    found.pairs += 1
    if squared > allowed or nuclear > most * ROUNDING:
        found.beyond += 1
        found.worst = found.worst or what
    found.frobenius = max(found.frobenius, (squared / allowed) ** 0.5)
    found.nuclear = max(found.nuclear, nuclear / most)


def measure_histograms(
    found: Found, relation: Relation, one: list[list[int]], other: list[list[int]], what: str
) -> None:
    """Each histogram: |Δ|₁ and |Δ|₂² as integers."""
    s, changed = ROW_NORM_SQUARED, 2 if relation == "replace-one" else 1
    for a, b in zip(one, other, strict=True):
        steps = [x - y for x, y in zip(a, b, strict=True)]
        whole, squared = sum(map(abs, steps)), sum(step * step for step in steps)
        if whole > changed * s or squared > changed * s * s:
            found.beyond += 1
            found.worst = found.worst or what
        found.histograms = max(found.histograms, whole / (changed * s), (squared / (changed * s * s)) ** 0.5)


def search(
    pairs: int, *, seed: int = 1, sources: Sequence[str] = tuple(SOURCES), batch: int = BATCH
) -> dict[str, Found]:
    """So many pairs, shared out evenly among the sources; the same ones each time."""
    found = {source: Found() for source in sources}
    shares = _shares(pairs, sources)
    with tempfile.TemporaryDirectory(prefix="dpgram-neighbours-") as place:
        folder = Path(place)
        for number, source in enumerate(sources):
            dice = random.Random(f"{seed} {source}")
            left = shares[number]
            while left > 0:
                asked = setting(source, dice)
                size = min(left, batch)
                _batch(asked, [pair(asked, dice) for _ in range(size)], found[source], folder)
                left -= size
    return found


def _shares(pairs: int, sources: Sequence[str]) -> list[int]:
    """Even, but for the slowest."""
    parts = [SLOW.get(source, 1.0) for source in sources]
    ends = [round(pairs * sum(parts[:place]) / sum(parts)) for place in range(len(parts) + 1)]
    return [end - start for start, end in pairwise(ends)]


SLOW: Final = {"Parquet folders": 0.2, "workbooks": 0.2}
"""Each batch makes a folder for every id in it, or a sheet cell by cell."""


def _batch(asked: Setting, made: Sequence[Pair], found: Found, folder: Path) -> None:
    ones = sums(asked, [neighbours.one for neighbours in made], folder)
    others = sums(asked, [neighbours.other for neighbours in made], folder)
    for neighbours, one, other in zip(made, ones, others, strict=True):
        measure(found, asked.relation, one, other, f"{asked}: {neighbours}")
    for neighbours in made[:ALONE]:
        one, other = (sum_alone(asked, rows, folder) for rows in (neighbours.one, neighbours.other))
        measure(found, asked.relation, one, other, f"alone, {asked}: {neighbours}")
        first, second = (counts_alone(asked, rows, folder) for rows in (neighbours.one, neighbours.other))
        measure_histograms(found, asked.relation, first, second, f"histograms, {asked}: {neighbours}")
        found.pairs -= 1
        found.alone += 1


def search_everywhere(pairs: int, *, seed: int = 1) -> dict[str, Found]:
    """The same, in several processes."""
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        jobs = {
            source: pool.submit(search, share, seed=seed, sources=(source,))
            for source, share in zip(SOURCES, _shares(pairs, tuple(SOURCES)), strict=True)
        }
        return {source: job.result()[source] for source, job in jobs.items()}


def examine() -> Part:
    """All sources, and what the search makes of ids that lose something."""
    found = search_everywhere(PAIRS)
    files = sum(one.pairs for name, one in found.items() if name in FILES)
    alone = sum(one.alone for one in found.values())
    return Part(
        title="Neighbours: exact differences against what is claimed",
        how=f"{PAIRS:,} pairs of tables that differ in one row or in all rows of one person, added, removed "
        f"or replaced, in {len(SOURCES)} forms that carry ids, {files:,} of them in files and databases; "
        f"{alone:,} pairs also table by table through the whole engine. Ids are such as are easily confused. "
        "Each line has the largest difference of the exact sums, as a part of the claimed bound.",
        findings=(*(finding(name, one) for name, one in found.items()), *map(_power, FLAWS)),
    )


def finding(name: str, found: Found) -> Finding:
    figure = f"{found.pairs:,} pairs: Frobenius {found.frobenius:.4f}, nuclear {found.nuclear:.4f}"
    figure += f"; histograms {found.histograms:.4f}"
    # A search whose neighbours stay far from the bound would find nothing anyway.
    near = min(found.frobenius, found.nuclear, found.histograms) > 0.9
    if found.beyond:
        figure += f"; {found.beyond:,} beyond the bound"
    return Finding(what=name, figure=figure, holds=found.beyond == 0 and near)


def _lossy(letters: bytes) -> str | None:
    return letters.decode("utf-8", "replace") or None


FLAWS: Final[Mapping[str, tuple[str, dict[str, object]]]] = {
    "text with stray bytes replaced": ("CSV in Latin-1 and others", {"escaped": _lossy}),
    "the same in Arrow's text": ("Arrow text of any bytes", {"escaped": _lossy}),
    "surrogates replaced": ("numpy U of any text", {"escaped": _lossy}),
    "bytes decoded with losses": ("numpy S", {"bytes_id": _lossy}),
    "the same in SQLite": ("SQLite", {"bytes_id": _lossy}),
    "large numbers rounded": ("lists of objects", {"whole_id": lambda number: str(int(float(number)))}),
    "7.0 in a text another id than 7": ("CSV in UTF-8", {"_WHOLE": re.compile("(?!)")}),
    "Decimal(7.00) another id than 7": ("lists of objects", {"decimal_id": str}),
}
"""Ids as they were, or might have been: the source, and what is put into `dpgram.sources.ids` for them."""


def with_flaw(name: str, pairs: int = 400) -> Found:
    """What the search finds with one of the flaws put in."""
    source, parts = FLAWS[name]
    whole = {part: getattr(ids, part) for part in parts}
    try:
        for part, broken in parts.items():
            setattr(ids, part, broken)
        return search(pairs, sources=[source], batch=50)[source]
    finally:
        for part, sound in whole.items():
            setattr(ids, part, sound)


def _power(name: str) -> Finding:
    found = with_flaw(name)
    return Finding(
        what=f"put back on purpose: {name} ({FLAWS[name][0]})",
        figure=f"{'caught' if found.beyond else 'NOT CAUGHT'}: {found.beyond:,} of {found.pairs:,} pairs go "
        f"beyond it, Frobenius {found.frobenius:.2f}, nuclear {found.nuclear:.2f}",
        holds=found.beyond > 0,
    )
