"""A tenth of the noise is missing: in mechanisms, the whole of publish, adaptive releases, models and series.

Mechanisms and publish are caught by an audit whose event is foreseen. Where a release has many cells, the
noise itself shows it far sooner: what was published less the exact sums, against the variance that is stated.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final, Literal, final

import numpy as np

from assurance import adaptive_audit, audits, series_audit
from assurance.broken_mechanisms import Misstated, facts, quieter
from assurance.densities import LikelihoodRatio
from assurance.foreseen import audit_foreseen
from assurance.ideal import gaussian_ideal
from assurance.series_audit import StreamSetting
from assurance.stage import Stage
from assurance.trials import Outcome, Trial, audited
from dpgram.audit import Experiment
from dpgram.audit.gram import GramRun, worst_neighbours
from dpgram.audit.publication import Pipeline, PublishRun, worst_tables
from dpgram.core.noise import Entropy, Integers, SeededEntropy
from dpgram.errors import DpgramWarning
from dpgram.mechanisms import CalibratedMechanism, Gaussian
from dpgram.privacy.guarantee import GaussianDP, gdp_mu_at_most

LEFT: Final = 0.9
CONFIDENCE: Final = 0.999


@final
class QuietEntropy(Entropy):
    """Integers of nine tenths of the scale that is asked for, whoever asks."""

    label: ClassVar[Literal["system", "seeded"]] = "seeded"

    def __init__(self, source: Entropy) -> None:
        self._source = source

    def discrete_gaussian(self, scale: float, count: int) -> Integers:
        """With 0.9·scale."""
        return self._source.discrete_gaussian(LEFT * scale, count)

    def discrete_laplace(self, scale: float, count: int) -> Integers:
        """With 0.9·scale."""
        return self._source.discrete_laplace(LEFT * scale, count)

    def generator(self) -> np.random.Generator:
        """As it is."""
        return self._source.generator()

    def split(self, count: int) -> list[Entropy]:
        """As quiet as this one."""
        return [QuietEntropy(each) for each in self._source.split(count)]

    def random_bytes(self, count: int) -> bytes:
        """As they are."""
        return self._source.random_bytes(count)

    def rehearse(self) -> None:
        """Nothing to load."""


def as_it_is(source: Entropy) -> Entropy:
    """Noise of the scale that is asked for."""
    return source


def _mechanism(mechanism: CalibratedMechanism, relation: str, mu: float, runs: int, _: bool) -> Outcome:
    ratio = LikelihoodRatio(pair=worst_neighbours(facts(relation))[0])
    found = audit_foreseen(
        Experiment(
            name="",
            run_a=GramRun(mechanism=mechanism, gram=ratio.pair.a),
            run_b=GramRun(mechanism=mechanism, gram=ratio.pair.b),
            statistic=ratio,
            names=ratio.names,
        ),
        thresholds=(0.0,),
        runs=runs,
        delta=0.0,
        confidence=CONFIDENCE,
        entropy=SeededEntropy(5),
    )
    return audited(found, GaussianDP(mu))


def mechanisms() -> tuple[Trial, ...]:
    """Gaussian noise under both relations."""
    made, mu = [], gdp_mu_at_most(audits.SEEN.epsilon, audits.SEEN.delta)
    for relation in audits.ADJACENCIES:
        honest = Gaussian().calibrated(audits.SEEN, facts(relation))
        broken = Misstated(honest, quieter(honest, LEFT))
        made.append(
            Trial(
                name=f"noise 10% too small: gaussian, {relation}",
                broken=partial(_mechanism, broken, relation, mu, 8_000),
                ours=partial(_mechanism, honest, relation, mu, 8_000),
                short=False,
            )
        )
    return tuple(made)


@final
@dataclass(frozen=True, slots=True)
class SuppliedRun:
    """A run of publish whose noise comes from what `supply` makes of a source."""

    run: PublishRun
    supply: Callable[[Entropy], Entropy]

    def __call__(self, entropy: Entropy) -> object:
        return self.run(self.supply(entropy))


def _publish(pipeline: Pipeline, supply: Callable[[Entropy], Entropy], _: bool) -> Outcome:
    mu = gdp_mu_at_most(pipeline.epsilon, pipeline.delta)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)  # so large an ε protects little: it is to be seen
        pair = worst_tables(pipeline)[0]
        measure = audits.likelihood_ratios(pipeline, pair)
        runs = [SuppliedRun(PublishRun(pipeline=pipeline, data=data), supply) for data in (pair.a, pair.b)]
        found = audit_foreseen(
            Experiment(
                name="",
                run_a=runs[0],
                run_b=runs[1],
                statistic=measure,
                names=measure.names,
            ),
            thresholds=gaussian_ideal(mu, runs=PUBLISHES, delta=0.0, confidence=CONFIDENCE).thresholds,
            runs=PUBLISHES,
            delta=pipeline.delta,
            confidence=CONFIDENCE,
            entropy=SeededEntropy(6),
        )
        return audited(found, pipeline.curve)


PUBLISHES: Final = 5_000


def publish() -> Trial:
    """One plain matrix, from table to release."""
    pipeline = audits.pipelines()["publish with gaussian, add-remove of a row"]
    return Trial(
        name="noise 10% too small: publish with gaussian, add-remove of a row",
        broken=partial(_publish, pipeline, QuietEntropy),
        ours=partial(_publish, pipeline, as_it_is),
        short=False,
    )


def _noise(publish: Callable[[Entropy], Sequence[Stage]], entropy: Entropy, runs: int) -> Outcome:
    found = adaptive_audit.drawn_against_stated(partial(publish, entropy), runs=runs)
    # Short runs see the counts, of which a release has many.
    wrong = [one for one in found if not one.right]
    return Outcome(caught=bool(wrong), figure=", ".join(map(str, wrong or found)))


LONGER: Final = 6
"""Times as many releases in the long form, which sees the noise of matrices and models too."""


def _noise_trial(name: str, publish: Callable[[Entropy], Sequence[Stage]], short: int) -> Trial:
    def tried(supply: Callable[[Entropy], Entropy]) -> Callable[[bool], Outcome]:
        return lambda long: _noise(publish, supply(SeededEntropy(7)), LONGER * short if long else short)

    return Trial(name=f"noise 10% too small: {name}", broken=tried(QuietEntropy), ours=tried(as_it_is))


def staged() -> tuple[Trial, ...]:
    """Every stage, with declared models and without, and beside one plain matrix."""
    return tuple(
        _noise_trial(name, partial(adaptive_audit.drawn_stages, audits.STAGED[name]), 60)
        for name in audits.DRAWN
    )


def series() -> tuple[Trial, ...]:
    """Every line and count of a stream."""
    return tuple(
        _noise_trial(f"series, {name}", partial(_stream, setting), 20)
        for name, setting in series_audit.AUDITED.items()
        if setting.adaptive
    )


def _stream(setting: StreamSetting, entropy: Entropy) -> Sequence[Stage]:
    tables = setting.tables(there=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        return series_audit.stages(setting.publish(tables, entropy.split(setting.periods)), setting)


def trials() -> tuple[Trial, ...]:
    """Everything that a tenth less noise can be hidden in."""
    return (*mechanisms(), publish(), *staged(), *series())
