"""Audits of what is installed: all mechanisms and the whole pipeline, with the operating system's entropy."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from typing import Any, Final, final

import numpy as np

from assurance import adaptive_audit
from assurance.part import Finding, Part
from dpgram.audit.gram import audit_mechanism
from dpgram.audit.publication import Pipeline, audit_pipeline, worst_tables
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import MECHANISMS, PublicFacts
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.sampling.entropy import SystemEntropy
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
    rows: int = 0
    """Full rows along the first column that both neighbours have."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Of the mechanism."""
    curve: bool = True
    """Whether every point of the curve is held against the runs; else (ε, δ), where a point takes seconds."""


LOOSE: Final = Guarantee(8.0, 1e-4)
SETTINGS: Final[dict[str, Setting]] = {
    "gaussian": Setting(guarantee=LOOSE, runs=4000),
    "matrix-laplace": Setting(guarantee=Guarantee(3.0), runs=3000),
    "laplace": Setting(guarantee=Guarantee(3.0), runs=2000),
    "wishart": Setting(guarantee=LOOSE, runs=3000, parameters={"degrees": 40}, curve=False),
    "sketch": Setting(guarantee=LOOSE, runs=3000),
    "sketch-adaptive": Setting(guarantee=LOOSE, runs=1000, parameters={"degrees": 1000}, curve=False),
    "inverse-wishart": Setting(guarantee=LOOSE, runs=3000, parameters={"degrees": 2000}),
    "inverse-wishart-adaptive": Setting(
        guarantee=LOOSE, runs=1000, parameters={"degrees": 1000}, curve=False
    ),
    "inverse-noise": Setting(guarantee=LOOSE, runs=1500, parameters={"ridge": 10.0}),
    "eigenvectors": Setting(guarantee=Guarantee(8.0), runs=1000, rows=3),
    "eigenvectors-zcdp": Setting(guarantee=LOOSE, runs=1000, rows=3),
    "deflation": Setting(guarantee=Guarantee(8.0), runs=700, rows=3),
}


def _mechanism(name: str, relation: str, person: int) -> Finding:
    """One mechanism under one relation, for rows or for persons of several rows."""
    setting = SETTINGS[name]
    promised = setting.guarantee
    facts = PublicFacts(
        width=WIDTH if person == 1 else PERSON, adjacency=adjacency(relation), unit_rows=person
    )
    made = MECHANISMS[name](**setting.parameters).calibrated(promised, facts)
    common = np.zeros((facts.width, facts.width), dtype=np.int64)
    common[0, 0] = setting.rows * ROW_NORM_SQUARED
    runs = setting.runs if person == 1 else setting.runs // 3
    found = audit_mechanism(
        made, facts, runs=runs, delta=promised.delta, confidence=CONFIDENCE, common=common
    )
    holds = found.passes(promised) and (not setting.curve or found.passes(made.curve(facts)))
    who = "a row" if person == 1 else f"a person of {person} rows"
    return Finding(
        what=f"{name}, {relation} of {who}: ε = {promised.epsilon:g}, δ = {promised.delta:g}",
        figure=f"{runs:,} runs: ε ≥ {found.epsilon_lower:.2f}, μ ≥ {found.mu_lower:.2f}",
        holds=holds,
    )


SCHEMA: Final = Schema(numeric("x", -1, 1), numeric("y", -1, 1), constant=False)


def _pipelines() -> dict[str, Pipeline]:
    """Rows, persons, groups and blocks through the whole of publish."""
    whole = partial(Pipeline, schema=SCHEMA)
    found = {}
    options: Any
    for relation in ADJACENCIES:
        for unit, who in ((None, "a row"), ("id", f"a person of {PERSON} rows")):
            for mechanism, guarantee in (("gaussian", LOOSE), ("matrix-laplace", Guarantee(3.0))):
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
        epsilon=8.0,
        delta=1e-4,
        options={
            "rows": Rows(radius=1.0, unit="id", by=categorical("g", ["u", "v"])),
            "mechanism": "gaussian",
            "adaptive": False,
        },
    )
    found["publish in two blocks, add-remove of a row"] = whole(
        schema=SCHEMA.with_blocks([["x"], ["y"]]),
        epsilon=8.0,
        delta=1e-4,
        options={"rows": Rows(radius=1.0), "mechanism": "gaussian", "adaptive": False},
    )
    return found


PUBLISHES: Final = 200


def _pipeline(name: str) -> Finding:
    pipeline = _pipelines()[name]
    first, *_, last = worst_tables(pipeline, person_rows=PERSON)
    pairs = (first, last)  # like rows, and a person's rows in different directions and groups
    found = audit_pipeline(pipeline, pairs, runs=PUBLISHES, confidence=CONFIDENCE)
    return Finding(
        what=f"{name}: ε = {pipeline.epsilon:g}, δ = {pipeline.delta:g}",
        figure=f"{PUBLISHES:,} runs: ε ≥ {found.epsilon_lower:.2f}, μ ≥ {found.mu_lower:.2f}",
        holds=found.passes(pipeline.claim) and found.passes(pipeline.curve),
    )


ADAPTIVE_RUNS: Final = 1_000


def _adaptive(name: str) -> Finding:
    """The release by default: several stages, told apart by the likelihood ratio of all of them together."""
    setting = adaptive_audit.SETTINGS[name]
    found = adaptive_audit.audited(setting, runs=ADAPTIVE_RUNS, seed=None, confidence=CONFIDENCE)
    told, promised = adaptive_audit.told(setting.publish(setting.tables[0], SystemEntropy()), setting)
    return Finding(
        what=f"adaptive release, {name}: ε = {setting.epsilon:g}, δ = {setting.delta:g}",
        figure=f"{ADAPTIVE_RUNS:,} runs: ε ≥ {found.epsilon_lower:.2f}, μ ≥ {found.mu_lower:.2f}; exact "
        f"shifts of all stages are {told / promised:.2%} of the {'μ²' if setting.delta else 'ε'} promised",
        holds=found.passes(setting.curve) and told <= promised * (1.0 + 1e-9),
    )


def examine() -> Part:
    """Every mechanism × both relations × rows and persons, where defined, and the whole pipeline."""
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(_pipeline, name) for name in _pipelines()]
        jobs += [pool.submit(_adaptive, name) for name in adaptive_audit.SETTINGS]
        jobs += [
            pool.submit(_mechanism, name, relation, person)
            for person in (1, PERSON)
            for name, kind in MECHANISMS.items()
            for relation in ADJACENCIES
            if person == 1 or not kind.one_row_per_unit
        ]
        findings = [job.result() for job in jobs]
    return Part.counted(
        "Privacy audits",
        "Repeated runs on the worst neighbours with the operating system's entropy; lower bounds by "
        f"Clopper–Pearson, confidence {CONFIDENCE:g} each; a claim holds if nothing refutes it.",
        "audits run; none refutes its claim",
        findings,
    )
