"""Audits of the whole path from a table to a release, for rows and for persons, under both adjacencies.

    pipeline = Pipeline(schema=schema, epsilon=1.0, delta=1e-6, options={"unit": "person_id"})
    found = audit_pipeline(pipeline, runs=2000, workers=2)
    found.passes(pipeline.claim)

Everything is done anew in every run: reading, encoding, clipping, adding up, pricing, drawing. The tables are
the worst the schema allows; a publisher of one's own takes the place of `publish`, an engine that of ours.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dpgram.audit import Experiment, JointAudit, Scores, Tell, audit_all
from dpgram.audit.gram import Cells, Neighbours
from dpgram.core.noise import Entropy
from dpgram.engines.local import LocalEngine, add_up
from dpgram.errors import SchemaError
from dpgram.mechanisms.base import Drawn
from dpgram.privacy.accountant import composed, curve_of
from dpgram.privacy.curves.base import PrivacyCurve
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing import Options, ReleaseTerms, publish_with, terms_of
from dpgram.publishing.terms import matrix_pass
from dpgram.release import Release
from dpgram.rows.rules import EVERY_ROW, Rows, row_rules
from dpgram.schema import Schema
from dpgram.schema.columns import Categorical, SourceColumn
from dpgram.sums.exact_gram import ExactGram

if TYPE_CHECKING:
    import pyarrow as pa

Published: TypeAlias = Release | Drawn | Mapping[str, Release] | Sequence[Release | Drawn]
SourceKind: TypeAlias = Literal["table", "csv", "parquet"]
OTHERS: Final = 3
"""Rows that both tables have, of one person each."""
PLAIN: Final[dict[str, Any]] = {"adaptive": False}
"""Integers of two runs can be compared where both were measured in the same coordinates."""
_NOT_PRICED: Final = frozenset({"engine", "progress", "report"})
_CHUNK: Final = 50
"""Whole releases take a thousand times as long as a draw: smaller chunks, so that less is lost."""

Publisher: TypeAlias = Callable[..., Any]
"""Called like `publish`: (data, schema, *, epsilon, delta, entropy, ...) → releases, or bare draws."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """All that is asked of a publisher but the data."""

    schema: Schema
    epsilon: float
    delta: float
    options: Options = field(default_factory=Options)
    """Rows, adjacency, mechanism, engine and so on, as `publish` takes them; one plain matrix is audited."""
    publisher: Publisher = publish_with

    def terms(self) -> tuple[ReleaseTerms, ...]:
        """What `publish` would promise: one for each block."""
        asked: dict[str, Any] = {k: v for k, v in self.options.items() if k not in _NOT_PRICED}
        return terms_of(self.schema, epsilon=self.epsilon, delta=self.delta, **PLAIN | asked)

    @property
    def rows(self) -> Rows:
        return self.options.get("rows", EVERY_ROW)

    @property
    def by(self) -> Categorical | None:
        """The column of groups, where there are some."""
        return row_rules(self.schema, self.rows).by

    @property
    def claim(self) -> Guarantee:
        """(ε, δ)."""
        return Guarantee(self.epsilon, self.delta)

    @property
    def curve(self) -> PrivacyCurve:
        """All that is promised, of which (ε, δ) is one point."""
        return curve_of(composed(one.event for one in self.terms()))

    def exact(self, data: object) -> tuple[Cells, ...]:
        """The matrices without noise, in the order of the releases: to aim the statistics. Not private."""
        terms = self.terms()
        sums = add_up(data, matrix_pass(terms, terms[0].rules), threads=1, progress=False)
        return tuple(found.cells for found in sums if isinstance(found, ExactGram))

    def publish(self, data: object, entropy: Entropy) -> Published:
        options: dict[str, Any] = {"progress": False, "entropy": entropy, "engine": LocalEngine(threads=1)}
        options |= PLAIN | self.options
        found: Published = self.publisher(
            data, self.schema, epsilon=self.epsilon, delta=self.delta, **options
        )
        return found


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TablePair:
    """Two tables that one row, or all rows of one person, make different."""

    name: str
    a: pa.Table
    b: pa.Table


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishRun:
    """One whole release of a fixed table; can be sent to another process."""

    pipeline: Pipeline
    data: object

    def __call__(self, entropy: Entropy) -> Published:
        return self.pipeline.publish(self.data, entropy)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseStatistics:
    """The statistics of every release of a run, side by side: what several tell together is seen too."""

    pairs: tuple[Neighbours, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What `__call__` returns."""
        if len(self.pairs) == 1:
            return self.pairs[0].statistics
        return tuple(
            f"release {number}: {name}"
            for number, pair in enumerate(self.pairs, start=1)
            for name in pair.statistics
        )

    def __call__(self, outputs: Sequence[Published]) -> Scores:
        runs = [drawn_of(output) for output in outputs]
        return np.column_stack(
            [pair.measure([run[place] for run in runs]) for place, pair in enumerate(self.pairs)]
        )


def drawn_of(output: Published) -> tuple[Drawn, ...]:
    """The published integers of a run, whatever form its releases come in."""
    if isinstance(output, Drawn):
        return (output,)
    if isinstance(output, Release):
        published = output.published
        return (
            Drawn(
                cells=output.lattice_matrix,
                noise=output.noise,
                exponent=published.exponent,
                kind=published.kind,
            ),
        )
    several = output.values() if isinstance(output, Mapping) else output
    return tuple(drawn for one in several for drawn in drawn_of(one))


def audit_pipeline(
    pipeline: Pipeline,
    pairs: Sequence[TablePair] | None = None,
    *,
    runs: int,
    person_rows: int = 4,
    source: SourceKind = "table",
    folder: str | os.PathLike[str] | None = None,
    confidence: float = 0.999,
    workers: int = 1,
    entropy: Entropy | None = None,
    scores: str | os.PathLike[str] | None = None,
    tell: Tell | None = None,
) -> JointAudit:
    """Audit everything between a table and its release on the worst tables, or on `pairs` of one's own.

    Where the options name a unit, neighbours differ in all `person_rows` rows of one person. `source` says in
    what form the tables are read; files go to `folder`. Other arguments as in `dpgram.audit.audit`.
    """
    chosen = tuple(worst_tables(pipeline, person_rows=person_rows) if pairs is None else pairs)
    experiments = []
    for number, pair in enumerate(chosen):
        sides = [
            stored(table, source, folder, f"pair-{number}-{side}")
            for side, table in (("a", pair.a), ("b", pair.b))
        ]
        exact = [pipeline.exact(table) for table in (pair.a, pair.b)]
        measure = ReleaseStatistics(
            pairs=tuple(Neighbours(name=pair.name, a=a, b=b) for a, b in zip(*exact, strict=True))
        )
        experiments.append(
            Experiment(
                name=pair.name,
                run_a=PublishRun(pipeline=pipeline, data=sides[0]),
                run_b=PublishRun(pipeline=pipeline, data=sides[1]),
                statistic=measure,
                names=measure.names,
                chunk=_CHUNK,
            )
        )
    return audit_all(
        experiments,
        runs=runs,
        delta=pipeline.delta,
        confidence=confidence,
        workers=workers,
        entropy=entropy,
        scores=scores,
        what=_described(pipeline, chosen, source),
        tell=tell,
    )


def stored(table: pa.Table, source: SourceKind, folder: str | os.PathLike[str] | None, name: str) -> object:
    """The table itself, or the path of a file that holds it."""
    if source == "table":
        return table
    if folder is None:
        raise SchemaError(f"tables as {source} files need a folder to lie in", remedy="Give folder=")
    path = Path(folder) / f"{name}.{source}"
    if source == "csv":
        from pyarrow import csv

        csv.write_csv(table, path)
    else:
        from pyarrow import parquet

        parquet.write_table(table, path)
    return str(path)


def worst_tables(pipeline: Pipeline, *, person_rows: int = 4) -> tuple[TablePair, ...]:
    """Neighbours as far apart as values within the schema can make them.

    The person (or row) in question has every column at its end, so that the whole row is clipped where
    anything is; and one column at its end with the others in the middle. Under replace-one it is replaced by
    one with every second sign turned. A person of several rows also comes with rows in all directions.
    """
    schema, options = pipeline.schema, pipeline.options
    unit, by = pipeline.rows.unit, pipeline.by
    rows, replaced = (person_rows if unit else 1), options.get("adjacency", "add-remove") == "replace-one"
    columns = [column for column in schema.columns_read if by is None or column.name != by.name]
    width = len(columns)
    like, alone = np.ones((rows, width)), np.zeros((rows, width))
    alone[:, 0] = 1.0
    shapes = {"all columns": (like, like * (-1.0) ** np.arange(width)), "one column": (alone, None)}
    if rows > 1 and width > 1:
        first = np.arange(width // 2 if replaced else width)
        rest = np.arange(width // 2, width)
        shapes["several rows"] = (_along(first, rows, width), _along(rest, rows, width))
    pairs = []
    for name, (mine, other) in shapes.items():
        second = np.roll(mine, 1, axis=1) if other is None else other
        a = _table(columns, mine, unit, by)
        b = _table(columns, second if replaced else mine[:0], unit, by)
        pairs.append(TablePair(name=name, a=a, b=b))
    return tuple(pairs)


def _along(axes: npt.NDArray[np.intp], rows: int, width: int) -> Scores:
    """Rows along these columns in turn."""
    places = np.zeros((rows, width))
    places[np.arange(rows), np.resize(axes, rows)] = 1.0
    return places


def _table(
    columns: Sequence[SourceColumn], own: Scores, unit: str | None, by: Categorical | None
) -> pa.Table:
    """The rows of some others, near the middle, and those in question; −1 and 1 are the ends of a column.

    Where there are groups, rows fall into them in turn: a person has rows in all of them.
    """
    import pyarrow as pa

    others = 0.25 * np.cos(np.arange(OTHERS * len(columns))).reshape(OTHERS, len(columns))
    places = np.concatenate([others, own])
    found = {column.name: column.cells_at(places[:, k]) for k, column in enumerate(columns)}
    if by is not None:
        found[by.name] = pa.array(np.resize(by.all_levels, len(places)).tolist())
    if unit is not None:
        found[unit] = pa.array([f"other {k}" for k in range(OTHERS)] + ["the person"] * len(own))
    return pa.table(found)


def _described(pipeline: Pipeline, pairs: Sequence[TablePair], source: SourceKind) -> str:
    content = hashlib.sha256()
    for pair in pairs:
        content.update(repr((pair.name, pair.a.to_pydict(), pair.b.to_pydict())).encode())
    asked = re.sub(r" at 0x[0-9a-f]+", "", repr(pipeline))
    return f"{asked} of dpgram {version('dpgram')} on {source} neighbours {content.hexdigest()[:16]}"
