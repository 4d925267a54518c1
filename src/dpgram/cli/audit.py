"""`dpgram audit`: what runs on the worst neighbours prove of a mechanism or of the whole pipeline."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, final

import typer

from dpgram.cli.console import (
    ADVANCED,
    AdjacencyOption,
    JsonFlag,
    print_facts,
    print_json,
    require_writable,
    say,
)
from dpgram.cli.mechanism_options import Degrees, Rank, asked_mechanism, with_parameters
from dpgram.errors import DpgramError, MechanismError

if TYPE_CHECKING:
    from dpgram.audit import Claim, JointAudit, Tell
    from dpgram.core.noise import Entropy
    from dpgram.mechanisms import Auto, Mechanism
    from dpgram.privacy.guarantee import Guarantee

VIOLATED: Final = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _AuditOptions:
    """What was asked for, of either kind of audit."""

    epsilon: float
    delta: float
    columns: int
    adjacency: Literal["add-remove", "replace-one"]
    person: int | None
    mechanism: Mechanism | Auto
    runs: int
    confidence: float
    workers: int
    entropy: Entropy | None
    output: Path | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Audited:
    """What was run, what it promises, and what was found."""

    subject: str
    claims: tuple[Claim, ...]
    promised: Guarantee
    found: JointAudit


def audit(
    epsilon: Annotated[float, typer.Option(help="ε that is promised.")],
    delta: Annotated[float, typer.Option(help="δ that is promised; 0 for a pure guarantee.")] = 0.0,
    mechanism: Annotated[
        str, typer.Option(help="The name of a mechanism, or module:Class for one of your own.")
    ] = "auto",
    publish: Annotated[
        bool,
        typer.Option("--publish", help="Audit the whole path from table to release, not only the draws."),
    ] = False,
    columns: Annotated[int, typer.Option(min=1, max=200, help="Columns of the matrix.")] = 3,
    adjacency: AdjacencyOption = "add-remove",
    person: Annotated[
        int | None,
        typer.Option(min=1, help="Neighbours differ in one person with this many rows, not in one row."),
    ] = None,
    rows: Annotated[
        int, typer.Option(min=0, help="Rows along the first column that both neighbours have (draws only).")
    ] = 0,
    ridge: Annotated[
        float | None,
        typer.Option(
            help="A public ridge, in squared lengths of the longest row, for mechanisms that take one.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    rank: Rank = None,
    degrees: Degrees = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", "-s", help="With --publish: your own columns.")
    ] = None,
    radius: Annotated[
        float | None, typer.Option(help="With --publish: a public row radius; 1 for the built-in columns.")
    ] = None,
    source: Annotated[
        Literal["table", "csv", "parquet"],
        typer.Option(help="With --publish: the form in which tables are read."),
    ] = "table",
    engine: Annotated[
        str | None, typer.Option(help="With --publish: the name of an engine, including your own.")
    ] = None,
    runs: Annotated[int, typer.Option(min=100, help="Runs of each neighbour.")] = 10_000,
    confidence: Annotated[
        float, typer.Option(help="Confidence with which all bounds hold together.")
    ] = 0.999,
    claim_epsilon: Annotated[
        float | None, typer.Option(help="Test the runs against this ε instead of the promised one.")
    ] = None,
    claim_delta: Annotated[
        float | None, typer.Option(help="Test the runs against this δ; the promised one by default.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes to use.")] = 1,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Keep the scores here; a second run continues them.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Draw from a seed, to repeat a run; by default from the system.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Try to refute a privacy guarantee by running it.

    A mechanism, or everything between a table and its release, is run many times on the worst neighbouring
    inputs. Whatever is run, the bounds hold with the stated confidence; an audit can refute a guarantee and
    never prove one. Exit code 1: the runs contradict the promise.

    \b
    Examples:
      dpgram audit --mechanism gaussian --epsilon 1 --delta 1e-6 \\
          --runs 20000 --workers 2
      dpgram audit --publish --person 4 --epsilon 4 --delta 1e-4 \\
          --runs 500 --output scores.dat
    """
    from dpgram.privacy.guarantee import Guarantee

    if output is not None:
        require_writable(output, overwrite=True, inputs=[schema])
    options = _AuditOptions(
        epsilon=epsilon,
        delta=delta,
        columns=columns,
        adjacency=adjacency,
        person=person,
        mechanism=_mechanism(
            # From squares of the longest row, which has length 1 where nobody says otherwise.
            mechanism,
            ridge=ridge if ridge is None or radius is None else ridge * radius**2,
            rank=rank,
            degrees=degrees,
        ),
        runs=runs,
        confidence=confidence,
        workers=workers,
        entropy=_entropy(seed),
        output=output,
    )
    with _progress(shown=sys.stderr.isatty() and not as_json) as tell:
        if publish:
            if rows:
                raise DpgramError(
                    "--rows is for audits of draws", remedy="Leave it out, or leave out --publish"
                )
            audited = _whole(options, schema, radius, source, engine, tell)
        else:
            if (schema, radius, engine, source) != (None, None, None, "table"):
                raise DpgramError(
                    "--schema, --radius, --source and --engine are for whole pipelines",
                    remedy="Add --publish",
                )
            audited = _draws(options, rows, tell)
    promised, claims = audited.promised, audited.claims
    if claim_epsilon is not None or claim_delta is not None:
        promised = Guarantee(
            epsilon if claim_epsilon is None else claim_epsilon, delta if claim_delta is None else claim_delta
        )
        claims = (promised,)
    violated = not all(audited.found.passes(claim) for claim in claims)
    _print_audit(audited, promised, options, violated=violated, as_json=as_json)
    if violated:
        raise typer.Exit(VIOLATED)


def _entropy(seed: int | None) -> Entropy | None:
    from dpgram.core.noise import SeededEntropy

    return None if seed is None else SeededEntropy(seed)


def _draws(options: _AuditOptions, rows: int, tell: Tell | None) -> _Audited:
    import numpy as np

    from dpgram.audit.gram import audit_mechanism
    from dpgram.lattice import ROW_NORM_SQUARED
    from dpgram.mechanisms import Mechanism, PublicFacts
    from dpgram.mechanisms.choice import choose
    from dpgram.privacy.adjacency import adjacency as named
    from dpgram.privacy.guarantee import Guarantee

    facts = PublicFacts(
        width=options.columns, adjacency=named(options.adjacency), unit_rows=options.person or 1
    )
    _refuse_one_row_only(options.mechanism, options.person)
    asked = Guarantee.checked(options.epsilon, options.delta, None)
    if isinstance(options.mechanism, Mechanism) and not _listed(options.mechanism):
        # The curve of somebody's own may be wrong: that is what an audit is for.
        mechanism = options.mechanism.calibrated(asked, facts)
    else:
        chosen = choose(options.mechanism, asked, facts, None)
        mechanism, asked = chosen.mechanism, chosen.guarantee
    common = np.zeros((options.columns, options.columns), dtype=np.int64)
    common[0, 0] = rows * ROW_NORM_SQUARED
    found = audit_mechanism(
        mechanism,
        facts,
        runs=options.runs,
        delta=asked.delta,
        confidence=options.confidence,
        workers=options.workers,
        entropy=options.entropy,
        common=common,
        scores=options.output,
        tell=tell,
    )
    who = "one row" if options.person is None else f"a person of up to {options.person} rows"
    return _Audited(
        subject=f"draws of {mechanism.name}, {options.columns} columns, {options.adjacency} of {who}",
        claims=(asked, mechanism.curve(facts)),
        promised=asked,
        found=found,
    )


def _whole(
    options: _AuditOptions,
    schema: Path | None,
    radius: float | None,
    source: Literal["table", "csv", "parquet"],
    engine: str | None,
    tell: Tell | None,
) -> _Audited:
    from dpgram.audit.publication import Pipeline, audit_pipeline
    from dpgram.publishing import Options
    from dpgram.rows.rules import Rows
    from dpgram.schema import Schema
    from dpgram.schema.columns import numeric

    if not _listed(options.mechanism):
        raise MechanismError(
            "publish draws with the mechanisms of dpgram only",
            got=repr(options.mechanism),
            remedy="Leave out --publish",
        )
    builtin = Schema(*(numeric(f"x{k + 1}", -1, 1) for k in range(options.columns)), constant=False)
    longest = 1.0 if schema is None and radius is None else radius
    publishing: Options = {
        "adjacency": options.adjacency,
        "mechanism": options.mechanism,
        "rows": Rows(radius=longest, unit=None if options.person is None else "person"),
    }
    if engine is not None:
        publishing["engine"] = engine
    pipeline = Pipeline(
        schema=builtin if schema is None else Schema.from_file(schema),
        epsilon=options.epsilon,
        delta=options.delta,
        options=publishing,
    )
    with tempfile.TemporaryDirectory() as folder:
        found = audit_pipeline(
            pipeline,
            runs=options.runs,
            person_rows=options.person or 1,
            source=source,
            folder=folder,
            confidence=options.confidence,
            workers=options.workers,
            entropy=options.entropy,
            scores=options.output,
            tell=tell,
        )
    who = "one row" if options.person is None else f"a person of {options.person} rows"
    used = pipeline.terms()[0].mechanism.name
    return _Audited(
        subject=f"publish from a {source} with {used}, {pipeline.schema.width} columns, "
        f"{options.adjacency} of {who}",
        claims=(pipeline.claim, pipeline.curve),
        promised=pipeline.claim,
        found=found,
    )


def _refuse_one_row_only(asked: Mechanism | Auto, person: int | None) -> None:
    from dpgram.mechanisms import Mechanism

    if isinstance(asked, Mechanism) and asked.one_row_per_unit and (person or 1) > 1:
        raise MechanismError(
            f"{asked.name} is proven for units of one row only",
            got=f"{person} rows",
            remedy="Leave out --person",
        )


def _mechanism(name: str, *, ridge: float | None, rank: int | None, degrees: int | None) -> Mechanism | Auto:
    """The one of this name, or of the class that `module:Class` names, with these parameters."""
    own = _own_class(name)
    if own is None:
        return asked_mechanism(name, ridge=ridge, rank=rank, degrees=degrees)
    given = {"ridge": ridge, "rank": rank, "degrees": degrees}
    return with_parameters(own, {option: value for option, value in given.items() if value is not None})


def _listed(asked: Mechanism | Auto) -> bool:
    """Whether it is a mechanism of dpgram, or the choice among them."""
    from dpgram.mechanisms import MECHANISMS, Auto

    return isinstance(asked, Auto) or MECHANISMS.get(asked.name) is type(asked)


def _own_class(name: str) -> type[Mechanism] | None:
    """The class that `module:Class` names; None for a plain name."""
    from importlib import import_module

    from dpgram.mechanisms import Mechanism

    module, colon, kind = name.partition(":")
    if not colon:
        return None
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)  # as `python -m` would: a class in the folder one works in
    try:
        found = getattr(import_module(module), kind)
    except (ImportError, AttributeError, ValueError) as problem:
        raise MechanismError("there is no such mechanism", got=f"{name} ({problem})") from problem
    if not (isinstance(found, type) and issubclass(found, Mechanism)):
        raise MechanismError(f"{name} is not a Mechanism", remedy="Inherit from dpgram.mechanisms.Mechanism")
    return found


def _print_audit(
    audited: _Audited, promised: Guarantee, options: _AuditOptions, *, violated: bool, as_json: bool
) -> None:
    found = audited.found
    shown = found.delta_lower(promised.epsilon)
    if as_json:
        print_json(
            {
                "audited": audited.subject,
                "claim": {"epsilon": promised.epsilon, "delta": promised.delta},
                "runs": options.runs,
                "pairs": [name for name, _ in found.results],
                "confidence": options.confidence,
                "epsilon_at_least": found.epsilon_lower,
                "at_delta": found.results[0][1].delta,
                "delta_at_least": shown,
                "mu_at_least": found.mu_lower,
                "violated": violated,
                "scores": None if options.output is None else str(options.output),
            }
        )
        return
    name, strongest = max(found.results, key=lambda result: result[1].mu_lower)
    print_facts(
        {
            "audited": audited.subject,
            "claim": f"ε = {promised.epsilon:g}, δ = {promised.delta:g}",
            "runs": f"{options.runs:,} of each side of {len(found.results)} pairs of neighbours",
            "bounds": f"ε ≥ {found.epsilon_lower:.3f} at δ = {found.results[0][1].delta:g}, "
            f"δ ≥ {shown:.3g} at ε = {promised.epsilon:g}, μ ≥ {found.mu_lower:.3f}",
            "confidence": f"{options.confidence:g}, all bounds together",
            "best event": f"{name}: {strongest.by_mu}",
        }
    )
    if violated:
        say("  VIOLATION: the runs contradict the promise")
    else:
        say("  nothing found that contradicts the promise (which is no proof of it)")
    if options.output is not None:
        say(f"  scores are in {options.output}; the same command with more --runs continues them")


@contextlib.contextmanager
def _progress(*, shown: bool) -> Iterator[Tell | None]:
    """A bar; nothing where nobody looks."""
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("runs", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)
