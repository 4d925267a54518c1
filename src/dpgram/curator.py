"""publish(): validate → price → aggregate → charge → draw → Release. The order is the guarantee.

Everything a person can get wrong is found before the ledger is touched; the charge is durable before noise is
drawn; after it nothing is left that could fail for a reason of the user's. No decision looks at a row, at a
count or at anything else in the data: whether `publish` succeeds, and everything it says but the cells,
follows from public facts alone.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal, Unpack, final, overload

import numpy as np

from dpgram.columns import Categorical, Numeric
from dpgram.encoding import PolicyCounts
from dpgram.engines.base import Engine
from dpgram.engines.find import find_engine
from dpgram.engines.threads import Progress
from dpgram.errors import DpgramWarning, MechanismError, SchemaError
from dpgram.gram import ExactGram
from dpgram.mechanisms import Drawn, Mechanism
from dpgram.privacy.accountant import composed, describe
from dpgram.privacy.entropy import Entropy, SystemEntropy
from dpgram.release import Release
from dpgram.release_parts import AdjacencyName, Group, Learnt, MissingPolicy, PublishedMatrix
from dpgram.schema import Schema
from dpgram.shares import Sharing
from dpgram.terms import (
    Asked,
    LedgerLike,
    Terms,
    agree,
    agree_all,
    check_request,
    check_schema,
    opened,
    portions,
)
from dpgram.wishes import wishes

__all__ = [
    "LedgerLike",
    "Options",
    "Report",
    "Terms",
    "agree",
    "check_request",
    "publish",
    "published_matrix",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """For the curator's eyes only: the counts are exact, so they must not leave with the release."""

    counts: PolicyCounts
    mechanism: str
    reason: str
    price: str
    seconds: float
    """How long reading and adding up took."""
    learnt: Learnt | None = None
    """What was learnt privately; this part is in the release as well."""
    portion: str | None = None
    """Which of several releases this is about: its group or block."""


class Options(Asked, total=False):
    """What `publish` takes beside the data, the schema, ε and δ, and how rows and columns are split."""

    clip: float | Literal["private"] | None
    bounds_budget: float | None
    levels_budget: float | None
    engine: str | Engine
    threads: int | None
    entropy: Entropy | None
    progress: Progress
    report: Callable[[Report], None] | None


@overload
def publish(
    data: object, schema: Schema, *, epsilon: float, delta: float, **options: Unpack[Options]
) -> Release: ...
@overload
def publish(
    data: object,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    by: str | Categorical,
    **options: Unpack[Options],
) -> dict[str, Release]: ...
@overload
def publish(
    data: object,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    blocks: Sequence[Sequence[str]],
    **options: Unpack[Options],
) -> tuple[Release, ...]: ...
def publish(
    data: object,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    adjacency: AdjacencyName = "add-remove",
    clip: float | Literal["private"] | None = None,
    bounds_budget: float | None = None,
    levels_budget: float | None = None,
    mechanism: str = "auto",
    ledger: LedgerLike | None = None,
    missing: MissingPolicy = "drop",
    strict: bool = False,
    unit: str | None = None,
    unit_rows: int | None = None,
    by: str | Categorical | None = None,
    blocks: Sequence[Sequence[str]] | None = None,
    weight: str | Numeric | None = None,
    rows: int | None = None,
    ridge: float | None = None,
    rank: int | None = None,
    degrees: int | None = None,
    psd: bool = False,
    engine: str | Engine = "auto",
    threads: int | None = None,
    entropy: Entropy | None = None,
    progress: Progress = None,
    report: Callable[[Report], None] | None = None,
    note: str = "",
) -> Release | dict[str, Release] | tuple[Release, ...]:
    """One (epsilon, delta)-differentially private release of the Gram matrix of `data` under `schema`.

    `clip` is a public row radius (none: the largest norm the schema allows, so nothing is clipped), or
    "private" to choose one privately. `bounds_budget` and `levels_budget` are shares of this release's budget
    that pay for learning bounds and levels the schema leaves open: see docs/how-to/no-bounds.md. `ledger`
    is charged before noise is drawn; without one nothing keeps count of what was spent. `missing` and
    `strict` say what happens to values outside the schema. `rows` is a public guess of the number of rows,
    for warnings and forecasts. `ridge` (in encoded units), `rank` and `degrees` are public parameters of the
    mechanisms that have them: see docs/reference/mechanisms.md; `psd=True` asks for a positive semidefinite
    matrix, so that `auto` chooses among the mechanisms that give one. `report` receives, before the charge,
    what the curator may know and nobody else (where something is learnt, the number of rows; then, after it,
    all counts and what was learnt); `note` stays in the ledger.

    `unit` names the column that says whose row it is: the guarantee then covers all rows of a person, who
    counts as one; with `unit_rows=k` every row counts alike, and at most k rows of a person count. `weight`
    names a column of survey weights with public bounds. `by` names a column of public groups, each of which
    gets a release of its own at the price of one. `engine` says where rows are read and added up: "local",
    "dask", "spark", an engine object with its options, or "auto", by the type of `data`
    (docs/how-to/engines.md). `blocks` lists groups of columns, each of which gets a
    release of its own; they share the budget.
    """
    source = SystemEntropy() if entropy is None else entropy
    book = opened(ledger)
    if book is not None and source.label != "system":
        raise MechanismError(
            "seeded noise can be removed by whoever knows the seed, so no ledger pays for it",
            remedy="Leave entropy out; or, for an experiment, leave the ledger out",
        )
    check_schema(schema)
    chosen = find_engine(engine, data, threads=threads)
    asked = wishes(schema, bounds_budget=bounds_budget, levels_budget=levels_budget, clip=clip)
    if asked:
        _refuse_shares(unit_rows=unit_rows, by=by, blocks=blocks, weight=weight)
        _refuse_elsewhere(chosen)
        from dpgram.learnt_release import publish_learnt, refuse_beside, requested

        refuse_beside(asked, strict=strict, ridge=ridge, rank=rank, degrees=degrees)
        if psd:
            raise MechanismError(
                "a semidefinite matrix needs bounds and levels that are known",
                remedy="Leave psd out, or give them",
            )
        request = requested(
            schema,
            asked,
            epsilon=epsilon,
            delta=delta,
            adjacency=adjacency,
            clip=clip,
            mechanism=mechanism,
            missing=missing,
            rows=rows,
            note=note,
            unit=unit,
        )
        return publish_learnt(
            data, request, source=source, book=book, threads=threads, progress=progress, report=report
        )
    if clip == "private":
        raise SchemaError("a private clip was asked for but no share of the budget pays for it")
    terms = agree_all(
        schema,
        blocks=blocks,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        clip=clip,
        mechanism=mechanism,
        ledger=book,
        missing=missing,
        strict=strict,
        unit=unit,
        unit_rows=unit_rows,
        by=by,
        weight=weight,
        rows=rows,
        ridge=ridge,
        rank=rank,
        degrees=degrees,
        psd=psd,
        note=note,
    )
    # A broken installation must be found before the charge, not after it.
    source.rehearse()
    started = time.perf_counter()
    grams = _aggregate(data, terms, chosen, progress)
    seconds = time.perf_counter() - started
    parts = [(one, level) for one in terms for level in _levels(one.sharing)]
    public_rows = _public_rows(grams[0], terms[0])
    if rows is None and public_rows is not None and terms[0].guarantee.delta * public_rows > 1.0:
        warnings.warn(
            f"delta = {delta:g} is above one in the {public_rows} {'rows' if unit is None else 'units'}: "
            "it would allow one to be told",
            DpgramWarning,
            stacklevel=2,
        )
    for (one, level), exact in zip(parts, grams, strict=True):
        _refuse_too_many_rows(one.mechanism, exact.counts.rows_used)
        if report is not None:
            # Before the charge: a report that fails must not cost a release that was paid for.
            report(_report(one, level, exact, seconds))
    receipt = None
    if book is not None:
        event = composed(one.event for one in terms)
        receipt = book.charge(event, adjacency=terms[0].facts.adjacency, unit=unit, note=note)
    releases = []
    for (one, level), exact in zip(parts, grams, strict=True):
        drawn = one.mechanism.draw(exact.cells, source)
        releases.append(
            Release(
                library=version("dpgram"),
                schema=one.schema,
                radius=one.radius,
                policy=one.policy,
                adjacency=adjacency,
                unit=unit,
                public_rows=public_rows,
                mechanism=one.used(),
                noise=drawn.noise,
                guarantee=one.stated(),
                entropy=source.label,
                published=published_matrix(drawn),
                receipt=receipt,
                unit_rule=one.sharing.rule,
                group=_group(one.sharing, level),
                block=one.block,
                survey_weight=one.sharing.weight,
            )
        )
    if blocks is not None:
        return tuple(releases)
    if by is not None:
        return {release.group.level: release for release in releases if release.group is not None}
    return releases[0]


def _refuse_shares(**given: object) -> None:
    """Learning bounds the influence of a row or unit that counts as one, not of weighted or split rows."""
    for name, value in given.items():
        if value is not None:
            raise SchemaError(
                f"{name} does not go with learning bounds, levels or a radius",
                remedy="Give public bounds, levels and radius, or learn them in a release of their own",
            )


def _refuse_elsewhere(engine: Engine) -> None:
    if engine.name != "local":
        raise SchemaError(
            "bounds, levels and a radius are learnt by the local engine only",
            got=f"the engine {engine.name!r}",
            remedy="Give public bounds, levels and radius, or data that this machine can read by itself",
        )


def _aggregate(
    data: object, terms: Sequence[Terms], engine: Engine, progress: Progress
) -> tuple[ExactGram, ...]:
    """One pass over the data: a matrix for each block or group."""
    plan, used = portions(terms), terms[0].encoder
    if plan is not None:
        return engine.portions(data, plan, progress=progress)
    exact = engine.gram(
        data, used.schema, used.clip, missing=used.missing, strict=used.strict, progress=progress
    )
    return (exact,)


def _levels(shared: Sharing) -> tuple[str | None, ...]:
    return (None,) if shared.by is None else shared.by.all_levels


def _group(shared: Sharing, level: str | None) -> Group | None:
    return None if shared.by is None or level is None else Group(column=shared.by.name, level=level)


def _public_rows(exact: ExactGram, terms: Terms) -> int | None:
    """Rows before any was dropped, or units: under replace-one that number is public, no other is."""
    if terms.facts.adjacency.name == "add-remove":
        return None
    return exact.counts.rows_read if terms.unit is None else exact.counts.units_read


def _report(terms: Terms, level: str | None, exact: ExactGram, seconds: float) -> Report:
    group, block = _group(terms.sharing, level), terms.block
    portion = None if block is None else f"block {block.number} of {block.of}"
    return Report(
        counts=exact.counts,
        mechanism=terms.mechanism.name,
        reason=terms.reason,
        price=describe(terms.event),
        seconds=seconds,
        portion=portion if group is None else f"{group.column} = {group.level}",
    )


def published_matrix(drawn: Drawn) -> PublishedMatrix:
    """The lower triangle, row by row, as decimal strings."""
    rows, columns = np.tril_indices(len(drawn.cells))
    cells = tuple(str(int(cell)) for cell in drawn.cells[rows, columns])
    return PublishedMatrix(kind=drawn.kind, exponent=drawn.exponent, cells=cells)


def _refuse_too_many_rows(mechanism: Mechanism, rows: int) -> None:
    """Like the overflow of the sums: a limit of the arithmetic, public and far away (docs/limits.md)."""
    if mechanism.rows_at_most is not None and rows > mechanism.rows_at_most:
        raise MechanismError(
            f"{mechanism.name} needs eigenvalues or an inverse, whose error is bounded for fewer rows only",
            limit=f"{mechanism.rows_at_most:,} rows",
            remedy="Use gaussian or matrix-laplace, which need neither",
        )
