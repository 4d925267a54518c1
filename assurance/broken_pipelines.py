"""Publishers broken on purpose: faults between the table and the release, and around the draw.

Of one plain matrix; what can go wrong between the stages of an adaptive release: `broken_adaptive`.
"""

from __future__ import annotations

import tempfile
from functools import partial
from typing import Any, Final, Literal

import msgspec
import numpy as np
import pyarrow as pa
from pyarrow import compute, csv

from assurance.trials import Outcome, Trial, audited, checked
from dpgram.audit import audit_all
from dpgram.audit.checks import leaked_facts, reused_noise, unpaid_draws
from dpgram.audit.gram import Cells, Neighbours, experiment
from dpgram.audit.publication import Pipeline, Publisher, audit_pipeline, worst_tables
from dpgram.core.noise import Entropy, SeededEntropy, SystemEntropy
from dpgram.document.fields import PublishedMatrix
from dpgram.engines.local import LocalEngine, gram
from dpgram.lattice import ROW_NORM
from dpgram.mechanisms import Drawn, Gaussian, PublicFacts
from dpgram.mechanisms.base import IntegerMatrix
from dpgram.privacy.adjacency import adjacency as adjacency_named
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.ledger import Ledger
from dpgram.publishing import publish_each, publish_with, terms_of
from dpgram.release import Release
from dpgram.rows import Rows
from dpgram.schema import Schema
from dpgram.schema.columns import categorical, numeric

Fault = Literal["none", "files are not clipped", "target is not clipped"]
CLIP: Final = 0.5
COLUMNS: Final = 4
SCHEMA: Final = Schema(*(numeric(f"x{k}", -1, 1) for k in range(COLUMNS)), constant=False)
COUNTING: Final = Schema(numeric("x", -1, 1), numeric("y", -1, 1))
"""With the constant 1, whose cell is the number of rows."""
PROMISE: Final = Guarantee(2.0, 1e-4)


def by_hand(
    data: Any, schema: Schema, *, epsilon: float, delta: float, fault: Fault = "none", **options: Any
) -> Drawn:
    """Somebody's own pipeline: read, clip whole rows to the radius, round to the lattice, add up, draw."""
    table = csv.read_csv(data) if isinstance(data, str) else data
    rows = np.clip(np.column_stack([table[name].to_numpy() for name in schema.source_columns]), -1.0, 1.0)
    radius, kept = options["rows"].radius, rows[:, -1].copy()
    if not (fault == "files are not clipped" and isinstance(data, str)):
        measured = rows[:, :-1] if fault == "target is not clipped" else rows
        lengths = np.linalg.norm(measured, axis=1)
        rows = rows * np.minimum(1.0, radius / np.maximum(lengths, 1e-300))[:, None]
    if fault == "target is not clipped":
        rows[:, -1] = kept
    lattice = np.trunc(rows * (ROW_NORM / radius)).astype(np.int64)
    facts = PublicFacts(width=schema.width, adjacency=adjacency_named(options.get("adjacency", "add-remove")))
    mechanism = Gaussian().calibrated(Guarantee(epsilon, delta), facts)
    return mechanism.draw(lattice.T @ lattice, options["entropy"])


def _pipeline(publisher: Publisher = publish_with, **options: Any) -> Pipeline:
    asked: Any = {"rows": Rows(radius=CLIP), "mechanism": "gaussian", "adaptive": False, **options}
    return Pipeline(
        schema=SCHEMA,
        epsilon=PROMISE.epsilon,
        delta=PROMISE.delta,
        options=asked,
        publisher=publisher,
    )


def _clipped(publisher: Publisher, source: Literal["table", "csv"], long: bool) -> Outcome:
    """The row with every column at its end, which has to be clipped; in the long form all pairs."""
    pipeline = _pipeline(publisher)
    pairs = worst_tables(pipeline)
    with tempfile.TemporaryDirectory() as folder:
        found = audit_pipeline(
            pipeline,
            pairs if long else pairs[:1],
            runs=300 if long else 100,
            source=source,
            folder=folder,
            entropy=SeededEntropy(3),
        )
    return audited(found, pipeline.curve)


def unclipped(fault: Fault, source: Literal["table", "csv"]) -> Trial:
    """Rows, or one of their columns, keep their length on one way into the matrix."""
    return Trial(
        name=f"clipping: {fault}",
        broken=partial(_clipped, partial(by_hand, fault=fault), source),
        ours=partial(_clipped, publish_with, source),
    )


VISITS: Final = 9


def _persons(pipeline: Pipeline, long: bool) -> Outcome:
    """All rows of a person against none; the short form draws from matrices that are added up once."""
    protected = _pipeline(rows=Rows(radius=CLIP, unit="id"))
    pairs = worst_tables(protected, person_rows=VISITS)[:1]
    if long:
        found = audit_pipeline(pipeline, pairs, runs=400, entropy=SeededEntropy(3))
        return audited(found, protected.curve)
    (terms,) = pipeline.terms()
    exact = [
        Neighbours(name=pair.name, a=pipeline.exact(pair.a)[0], b=pipeline.exact(pair.b)[0]) for pair in pairs
    ]
    drawn = [experiment(terms.mechanism, pair) for pair in exact]
    return audited(audit_all(drawn, runs=600, entropy=SeededEntropy(3)), protected.curve)


def rows_for_persons() -> Trial:
    """A guarantee for persons that was priced and bounded for rows."""
    return Trial(
        name="persons of nine rows protected as if they had one",
        broken=partial(_persons, _pipeline()),
        ours=partial(_persons, _pipeline(rows=Rows(radius=CLIP, unit="id"))),
    )


def _rows(count: int, *, last: float = 1.0) -> pa.Table:
    values = [round(0.1 * (k % 7) - 0.3, 3) for k in range(count - 1)] + [last]
    return pa.table({"x": values, "y": values[::-1], "g": ["u", "v"] * (count // 2) + ["u"] * (count % 2)})


def _asked(**more: Any) -> dict[str, Any]:
    return {
        "epsilon": 1.0,
        "delta": 1e-6,
        "mechanism": "gaussian",
        "engine": LocalEngine(threads=1),
        "progress": False,
        "adaptive": False,
        **more,
    }


def _released(table: pa.Table, *, entropy: Entropy | None = None, **more: Any) -> Release:
    source = SystemEntropy() if entropy is None else entropy
    (released,) = publish_with(table, COUNTING, entropy=source, **_asked(**more))
    return released


def _seeded(table: pa.Table) -> Release:
    return _released(table, entropy=SeededEntropy(11))


def _twice(publisher: Any, _: bool) -> Outcome:
    """Two tables, and one of them again."""
    tables = [_rows(6), _rows(7), _rows(7)]
    return checked(
        reused_noise(
            [publisher(table).lattice_matrix for table in tables],
            [gram(table, COUNTING, threads=1, progress=False).cells for table in tables],
        )
    )


def same_seed() -> Trial:
    """Noise that comes from the same seed at every release."""
    return Trial(
        name="seed reuse: the same noise in two releases",
        broken=partial(_twice, _seeded),
        ours=partial(_twice, _released),
    )


GROUP: Final = categorical("g", ["u", "v"])


def _groups_by_hand(table: pa.Table) -> list[IntegerMatrix]:
    """One seed for both groups."""
    (terms,) = terms_of(COUNTING, epsilon=1.0, delta=1e-6, mechanism="gaussian", adaptive=False)
    return [terms.mechanism.draw(exact, SeededEntropy(11)).cells for exact in _exact_groups(table)]


def _groups(table: pa.Table) -> list[IntegerMatrix]:
    found = publish_each(table, COUNTING, **_asked(), rows=Rows(by=GROUP))
    return [release.lattice_matrix for release in found.values()]


def _exact_groups(table: pa.Table) -> list[Cells]:
    parts = [table.filter(compute.equal(table["g"], level)) for level in GROUP.levels]
    return [gram(part, COUNTING, threads=1, progress=False).cells for part in parts]


def _both_groups(publisher: Any, _: bool) -> Outcome:
    table = _rows(9)
    return checked(reused_noise(publisher(table), _exact_groups(table)))


def same_noise_for_groups() -> Trial:
    """Two groups of one release with the same noise: their difference is exact."""
    return Trial(
        name="seed reuse: the same noise for two groups",
        broken=partial(_both_groups, _groups_by_hand),
        ours=partial(_both_groups, _groups),
    )


def _counted_in_words(table: pa.Table) -> Release:
    release = _released(table)
    told = msgspec.structs.replace(release.mechanism, choice=f"gaussian, good for {len(table)} rows")
    return msgspec.structs.replace(release, mechanism=told)


def _exact_count(table: pa.Table) -> Release:
    """The cell of the constant without noise: under add/remove the number of rows is a secret."""
    release = _released(table)
    exact = gram(table, COUNTING, threads=1, progress=False).cells
    cells = (str(int(exact[0, 0])), *release.published.cells[1:])
    return msgspec.structs.replace(
        release,
        published=PublishedMatrix(
            kind=release.published.kind, exponent=release.published.exponent, cells=cells
        ),
    )


def _refused_small(table: pa.Table) -> Release:
    """A helpful error for small tables tells when a table is small."""
    if len(table) < 7:
        raise ValueError("too few rows")
    return _released(table)


def _told_apart(publisher: Any, _: bool) -> Outcome:
    """Neighbours: one row more or less, and one row out of bounds."""
    return checked(leaked_facts(publisher, [_rows(7), _rows(6), _rows(8), _rows(7, last=1e9)]))


def leaks() -> tuple[Trial, ...]:
    """The number of rows in a sentence, in a cell, in an error."""
    return tuple(
        Trial(name=name, broken=partial(_told_apart, publisher), ours=partial(_told_apart, _released))
        for name, publisher in (
            ("n leaked: the exact number of rows in a sentence of the release", _counted_in_words),
            ("n leaked: the cell of the constant without noise", _exact_count),
            ("n leaked: an error for small tables", _refused_small),
        )
    )


def _paid(ledger: Ledger, entropy: Entropy) -> Release:
    return _released(_rows(6), ledger=ledger, entropy=entropy)


def _charged_after(ledger: Ledger, entropy: Entropy) -> Drawn:
    (terms,) = terms_of(
        COUNTING, epsilon=1.0, delta=1e-6, mechanism="gaussian", ledger=ledger, adaptive=False
    )
    drawn = terms.mechanism.draw(gram(_rows(6), COUNTING, threads=1, progress=False).cells, entropy)
    ledger.charge(terms.event, adjacency="add-remove", unit=None, note="")
    return drawn


def _order(publisher: Any, _: bool) -> Outcome:
    return checked(unpaid_draws(publisher))


def charge_after_draw() -> Trial:
    """Who interrupts between the draw and the charge has a release for nothing."""
    return Trial(
        name="ledger charged after the draw",
        broken=partial(_order, _charged_after),
        ours=partial(_order, _paid),
    )


def trials() -> tuple[Trial, ...]:
    """Everything around a mechanism that can go wrong, as far as we thought of it."""
    return (
        unclipped("files are not clipped", "csv"),
        unclipped("target is not clipped", "table"),
        rows_for_persons(),
        same_seed(),
        same_noise_for_groups(),
        *leaks(),
        charge_after_draw(),
    )
