"""Audits of what is installed: all mechanisms and the whole pipeline, with the operating system's entropy."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from typing import Any, Final, final

import numpy as np

from assurance import adaptive_audit, series_audit
from assurance.densities import LikelihoodRatio
from assurance.foreseen import audit_foreseen
from assurance.ideal import WANTED, Ideal, ideal_of_scores
from assurance.part import Finding, Part
from assurance.stage import Stage, law_of
from dpgram.audit import Claim, Experiment, JointAudit, Scores
from dpgram.audit.gram import Cells, GramRun, Neighbours, worst_neighbours
from dpgram.audit.publication import (
    Pipeline,
    Published,
    PublishRun,
    ReleaseStatistics,
    TablePair,
    drawn_of,
    worst_tables,
)
from dpgram.core.noise import SystemEntropy, simulation
from dpgram.errors import DpgramWarning
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import MECHANISMS, PublicFacts
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.events import GaussianEvent
from dpgram.privacy.guarantee import Guarantee, gdp_mu_at_most
from dpgram.rows import Rows
from dpgram.schema import Schema
from dpgram.schema.columns import categorical, numeric

WORKERS: Final = 2
CONFIDENCE: Final = 0.99999
"""Of each audit: of some forty at once on fresh entropy, less than one in two thousand would err."""
ADJACENCIES: Final = ("add-remove", "replace-one")
WIDTH: Final = 2
PERSON: Final = 3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How a mechanism is audited: with little noise few runs tell much; the code is that of every ε."""

    guarantee: Guarantee
    runs: int
    common: tuple[int, ...] = (0,)
    """Numbers of full rows along the first column that both neighbours have: the worst of them is audited."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Of the mechanism."""
    simulated: int = 5_000
    """Draws of the law behind what an ideal audit proves."""
    curve: bool = True
    """Whether every point of the curve is held against the runs; else (ε, δ), where a point takes seconds."""


LOOSE: Final = Guarantee(8.0, 1e-4)
SEEN: Final = Guarantee(adaptive_audit.SEEN, 1e-4)
"""μ = 3.15: an audit of publish can see."""
SHARPLY_SEEN: Final = ("gaussian", "matrix-laplace", "laplace", "inverse-noise")
"""Mechanisms whose audit of a person proves something in a few thousand draws."""
SETTINGS: Final[dict[str, Setting]] = {
    "gaussian": Setting(guarantee=LOOSE, runs=3000),
    "matrix-laplace": Setting(guarantee=Guarantee(3.0), runs=3000),
    "laplace": Setting(guarantee=Guarantee(3.0), runs=3000),
    "wishart": Setting(guarantee=LOOSE, runs=3000, parameters={"degrees": 40}, curve=False),
    "sketch": Setting(guarantee=LOOSE, runs=3000),
    "sketch-adaptive": Setting(guarantee=LOOSE, runs=2000, parameters={"degrees": 1000}, curve=False),
    "inverse-wishart": Setting(guarantee=LOOSE, runs=3000, parameters={"degrees": 2000}),
    "inverse-wishart-adaptive": Setting(
        guarantee=LOOSE, runs=2000, parameters={"degrees": 1000}, curve=False
    ),
    "inverse-noise": Setting(guarantee=LOOSE, runs=3000, parameters={"ridge": 10.0}),
    "eigenvectors": Setting(guarantee=Guarantee(8.0), runs=3000, simulated=50_000, common=(0, 1, 3)),
    "eigenvectors-zcdp": Setting(guarantee=LOOSE, runs=3000, simulated=50_000, common=(0, 1, 3)),
    "deflation": Setting(guarantee=Guarantee(8.0), runs=3000, simulated=10_000, common=(0, 1, 3)),
}
ROUGHLY: Final = 2_000
"""Draws of the law by which the worst neighbours are found."""


def _mechanism(name: str, relation: str, person: int) -> Finding:
    """One mechanism under one relation, for rows or for persons of several rows."""
    setting = SETTINGS[name]
    promised = setting.guarantee
    facts = PublicFacts(
        width=WIDTH if person == 1 else PERSON, adjacency=adjacency(relation), unit_rows=person
    )
    made = MECHANISMS[name](**setting.parameters).calibrated(promised, facts)
    generator, runs = simulation(7), setting.runs

    def ideal(ratio: LikelihoodRatio, draws: int) -> Ideal:
        law = GramRun(mechanism=made, gram=ratio.pair.a)(SystemEntropy()).noise
        return ideal_of_scores(
            *ratio.simulated(law, draws, generator), runs=runs, delta=promised.delta, confidence=CONFIDENCE
        )

    found = {rows: _likelihood_ratios(facts, rows) for rows in setting.common}
    if len(found) > 1:
        rough = {rows: [ideal(ratio, ROUGHLY) for ratio in ratios] for rows, ratios in found.items()}
        worst = max(
            rough, key=lambda rows: max(one.mu if promised.delta else one.epsilon for one in rough[rows])
        )
    else:
        (worst,) = found
    ratios = found[worst]
    ideals = [ideal(ratio, setting.simulated) for ratio in ratios]
    results = [
        audit_foreseen(
            Experiment(
                name=ratio.pair.name,
                run_a=GramRun(mechanism=made, gram=ratio.pair.a),
                run_b=GramRun(mechanism=made, gram=ratio.pair.b),
                statistic=ratio,
                names=ratio.names,
            ),
            thresholds=one.thresholds,
            runs=runs,
            delta=promised.delta,
            confidence=1.0 - (1.0 - CONFIDENCE) / len(ratios),
            entropy=SystemEntropy(),
        )
        for ratio, one in zip(ratios, ideals, strict=True)
    ]
    event = made.event(facts)
    mu = event.mu if isinstance(event, GaussianEvent) else None
    told = max(ratio.told(made.expected(np.zeros(facts.width))) for ratio in ratios) if mu else 0.0
    who = "a row" if person == 1 else f"a person of {person} rows"
    return _powerful(
        f"{name}, {relation} of {who}",
        JointAudit(results=tuple(each for one in results for each in one.results)),
        Ideal(epsilon=max(one.epsilon for one in ideals), mu=max(one.mu for one in ideals), thresholds=()),
        runs=runs,
        promised=promised,
        mu=mu,
        part=told / mu**2 if mu else None,
        claims=(promised, made.curve(facts)) if setting.curve else (promised,),
    )


def _likelihood_ratios(facts: PublicFacts, rows: int) -> tuple[LikelihoodRatio, ...]:
    """Of the worst neighbours that share so many rows."""
    common = np.zeros((facts.width, facts.width), dtype=np.int64)
    common[0, 0] = rows * ROW_NORM_SQUARED
    return tuple(LikelihoodRatio(pair=pair) for pair in worst_neighbours(facts, common))


SCHEMA: Final = Schema(numeric("x", -1, 1), numeric("y", -1, 1), constant=False)


def pipelines() -> dict[str, Pipeline]:
    """Rows, persons, groups and blocks through the whole of publish."""
    whole = partial(Pipeline, schema=SCHEMA)
    found = {}
    options: Any
    for relation in ADJACENCIES:
        for unit, who in ((None, "a row"), ("id", f"a person of {PERSON} rows")):
            for mechanism, guarantee in (("gaussian", SEEN), ("matrix-laplace", Guarantee(3.0))):
                options = {
                    "rows": Rows(radius=1.0, unit=unit),
                    "adjacency": relation,
                    "mechanism": mechanism,
                    "adaptive": False,
                }
                found[f"publish with {mechanism}, {relation} of {who}"] = whole(
                    epsilon=guarantee.epsilon, delta=guarantee.delta, options=options
                )
    found["publish for two groups, add-remove of a person in both"] = whole(
        epsilon=SEEN.epsilon,
        delta=SEEN.delta,
        options={
            "rows": Rows(radius=1.0, unit="id", by=categorical("g", ["u", "v"])),
            "mechanism": "gaussian",
            "adaptive": False,
        },
    )
    found["publish in two blocks, add-remove of a row"] = whole(
        schema=SCHEMA.with_blocks([["x"], ["y"]]),
        epsilon=SEEN.epsilon,
        delta=SEEN.delta,
        options={"rows": Rows(radius=1.0), "mechanism": "gaussian", "adaptive": False},
    )
    return found


PUBLISHES: Final = 1_500
PURE_PUBLISHES: Final = 3_000
"""Pure noise tells neighbours apart by rarer events: with fewer runs an audit often proves too little."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LikelihoodRatios:
    """The log-likelihood ratio of all releases of a run, and then whatever else tells neighbours apart."""

    exact: tuple[tuple[Cells, Cells], ...]
    """Of each release the matrices of both neighbours, without noise."""
    others: ReleaseStatistics

    @property
    def names(self) -> tuple[str, ...]:
        return ("likelihood ratio", *self.others.names)

    def stages(self, output: Published) -> list[Stage]:
        return [
            Stage(
                seen=np.ldexp(drawn.cells.astype(np.float64), drawn.exponent),
                one=one.astype(np.float64),
                other=other.astype(np.float64),
                **law_of(drawn.noise),
            )
            for drawn, (one, other) in zip(drawn_of(output), self.exact, strict=True)
        ]

    def __call__(self, outputs: Sequence[Published]) -> Scores:
        ratios = [sum(stage.log_ratio for stage in self.stages(output)) for output in outputs]
        return np.column_stack([ratios, self.others(outputs)])


def likelihood_ratios(pipeline: Pipeline, pair: TablePair) -> LikelihoodRatios:
    exact = tuple(zip(pipeline.exact(pair.a), pipeline.exact(pair.b), strict=True))
    pairs = tuple(Neighbours(name=pair.name, a=one, b=other) for one, other in exact)
    return LikelihoodRatios(exact=exact, others=ReleaseStatistics(pairs=pairs))


def _pipeline(name: str) -> Finding:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)  # so large an ε protects little: it is to be seen
        return _audit_of_publish(name)


def _audit_of_publish(name: str) -> Finding:
    """All of publish, by the law's own score, on those of the worst tables that are told most of."""
    pipeline = pipelines()[name]
    runs = PUBLISHES if pipeline.delta else PURE_PUBLISHES
    found = []
    for pair in worst_tables(pipeline, person_rows=PERSON):
        measure = likelihood_ratios(pipeline, pair)
        stages = measure.stages(pipeline.publish(pair.a, SystemEntropy()))
        found.append((sum(stage.told for stage in stages), pair, measure, stages))
    told, pair, measure, stages = max(found, key=lambda one: one[0])
    generator = simulation(7)
    parts = [stage.simulated(SIMULATED, generator) for stage in stages]
    one, other = (np.sum([part[side] for part in parts], axis=0) for side in (0, 1))
    ideal = ideal_of_scores(one, other, runs=runs, delta=pipeline.delta, confidence=CONFIDENCE)
    result = audit_foreseen(
        Experiment(
            name=name,
            run_a=PublishRun(pipeline=pipeline, data=pair.a),
            run_b=PublishRun(pipeline=pipeline, data=pair.b),
            statistic=measure,
            names=measure.names,
        ),
        thresholds=ideal.thresholds,
        runs=runs,
        delta=pipeline.delta,
        confidence=CONFIDENCE,
        entropy=SystemEntropy(),
    )
    mu = gdp_mu_at_most(pipeline.epsilon, pipeline.delta) if pipeline.delta else None
    return _powerful(
        name,
        result,
        ideal,
        runs=runs,
        promised=Guarantee(pipeline.epsilon, pipeline.delta),
        mu=mu,
        part=told / (mu**2 if mu else pipeline.epsilon),
        claims=(pipeline.claim, pipeline.curve),
    )


SIMULATED: Final = 50_000


def _powerful(
    what: str,
    found: JointAudit,
    ideal: Ideal,
    *,
    runs: int,
    promised: Guarantee,
    mu: float | None,
    part: float | None,
    claims: Sequence[Claim],
) -> Finding:
    """Nothing is refuted, no more is told than promised, and the audit proves most of what can be proven.

    `part` is what the neighbours' exact sums tell, of the promised μ² or ε, where that can be added up.
    """
    letter = "μ" if promised.delta else "ε"
    proven, possible = (found.mu_lower, ideal.mu) if promised.delta else (found.epsilon_lower, ideal.epsilon)
    whole = mu if promised.delta else promised.epsilon
    figure = f"{runs:,} runs"
    if part is not None:
        figure += f"; exact shifts are {part:.1%} of the {'μ²' if mu else 'ε'} promised"
    shares = [
        f"{proven / one:.0%} of {name}" for name, one in (("promised", whole), ("ideal", possible)) if one
    ]
    figure += f"; proven is {' and '.join(shares)}"
    cells = (
        f"{letter} = {whole:.3g}" if whole else "(ε, δ)",
        f"{letter} ≥ {possible:.2f}",
        f"{letter} ≥ {proven:.2f}",
    )
    # Where neighbours differ by all that is promised, that is what has to be shown.
    reached = mu is not None and part is not None and part > REACHED
    strong = proven >= WANTED * (mu if mu is not None and reached else possible)
    within = part is None or part <= 1.0 + ROUNDING
    return Finding(
        what=f"{what}: ε = {promised.epsilon:g}, δ = {promised.delta:g}",
        figure=figure,
        cells=cells,
        holds=strong and within and all(found.passes(claim) for claim in claims),
    )


REACHED: Final = 0.99
ROUNDING: Final = 1e-9


_KINDS: Final = {
    "adaptive release": adaptive_audit.SETTINGS,
    "adaptive release with closer looks": adaptive_audit.WIDE_SETTINGS,
    "adaptive release with declared models": adaptive_audit.MODEL_SETTINGS,
    "plain release with declared models": adaptive_audit.PLAIN_SETTINGS,
}
STAGED: Final = {f"{kind}, {name}": one for kind, each in _KINDS.items() for name, one in each.items()}
"""Releases of several stages."""


def _staged(name: str) -> Finding:
    """Several stages, told apart by the likelihood ratio of all of them together."""
    setting = adaptive_audit.worst(STAGED[name], SEARCHED)
    told, promised = adaptive_audit.told(setting.publish(setting.tables[0], SystemEntropy()), setting)
    runs = RUNS if told / promised > NEARLY else PARTLY_RUNS
    if not setting.delta:
        runs = PURE_RUNS
    ideal = adaptive_audit.ideal(setting, runs=runs, confidence=CONFIDENCE)
    found = adaptive_audit.audited(
        setting, runs=runs, seed=None, confidence=CONFIDENCE, thresholds=ideal.thresholds
    )
    return _powerful(
        f"{name}, the worst of {SEARCHED} neighbours",
        found,
        ideal,
        runs=runs,
        promised=Guarantee(setting.epsilon, setting.delta),
        mu=promised**0.5 if setting.delta else None,
        part=told / promised,
        claims=(setting.curve,),
    )


RUNS: Final = 1_300
"""Of each neighbour: an audit of so many misses four fifths of μ = 3.15 once in some thousands of times."""
NEARLY: Final = 0.9
"""Of what is promised: where neighbours differ by so much, four fifths of it can be proven."""
PARTLY_RUNS: Final = 600
"""Where they differ by less: an ideal audit of as many runs is the measure then."""
PURE_RUNS: Final = 2_000
"""Where noise is pure, as of a publish."""
SEARCHED: Final = 40
"""Pairs of neighbours, of which the one is audited that a release tells most of."""
NOISE_RUNS: Final = 600


def _series(name: str) -> Finding:
    """A whole stream of a private series, told apart by all of its periods together."""
    setting = series_audit.AUDITED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)  # so large an ε protects little: it is to be seen
        mu, curve = setting.terms().mu, setting.curve
        stream = setting.publish(setting.tables(there=True), SystemEntropy().split(setting.periods))
        part = series_audit.spent(stream, setting) / mu**2
        ideal = series_audit.ideal(setting, part, runs=RUNS, confidence=CONFIDENCE)
        found = series_audit.audited_stream(
            setting,
            runs=RUNS,
            confidence=CONFIDENCE,
            thresholds=ideal.thresholds,
            entropy=SystemEntropy(),
        )
    return _powerful(
        f"series, {name}",
        found,
        ideal,
        runs=RUNS,
        promised=Guarantee(setting.epsilon, setting.delta),
        mu=mu,
        part=part,
        claims=(curve,),
    )


DRAWN: Final = tuple(f"{kind}, {next(iter(each))}" for kind, each in _KINDS.items())
"""One of each kind."""


def _drawn(name: str) -> Finding:
    """Noise as it was drawn, in all stages together, against what the release states of it."""
    draw = partial(adaptive_audit.drawn_stages, STAGED[name], SystemEntropy())
    found = adaptive_audit.drawn_against_stated(draw, runs=NOISE_RUNS)
    return Finding(
        what=f"{name}: variance of the noise drawn over that stated",
        figure=f"{NOISE_RUNS} releases: {', '.join(map(str, found))}",
        holds=all(one.right for one in found),
    )


def examine() -> Part:
    """Every mechanism × both relations × rows and persons, where defined, and the whole pipeline."""
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(_series, name) for name in series_audit.AUDITED]
        jobs += [pool.submit(_staged, name) for name in STAGED]
        jobs += [pool.submit(_pipeline, name) for name in pipelines()]
        jobs += [pool.submit(_drawn, name) for name in DRAWN]
        jobs += [
            pool.submit(_mechanism, name, relation, person)
            for person in (1, PERSON)
            for name in MECHANISMS
            for relation in ADJACENCIES
            if person == 1 or name in SHARPLY_SEEN
        ]
        findings = [job.result() for job in jobs]
    return Part.counted(
        "Privacy audits",
        "Repeated runs on the worst neighbours with the operating system's entropy; lower bounds by "
        f"Clopper–Pearson, confidence {CONFIDENCE:g} each; a claim holds if nothing refutes it. An audit "
        f"must also see sharply: at least {WANTED:.0%} of the promised μ has to be proven, or, where no "
        "neighbours differ by all of it, and for other laws, of what an ideal audit of the same neighbours "
        "could prove with as many runs, which knows the law and names its event beforehand.",
        "audits run; none refutes its claim",
        findings,
        ("promised", "ideal audit", "proven"),
    )
