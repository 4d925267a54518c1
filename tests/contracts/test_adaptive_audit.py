"""The whole adaptive path on neighbouring tables, row and person: what it tells is at most what was paid for.

Exactly: in the coordinates of every release, the shifts of all stages add up to no more than its guarantee.
Statistically: the likelihood ratio of everything that is published does not refute the guarantee, and does
refute it where some noise is missing or where rows are protected instead of persons (confidence 0.999, fixed
seeds).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from assurance.adaptive_audit import PERSONS, SCHEMA, SETTINGS, VISITS, Setting, audited, people, stages, told

import dpgram as dg
from dpgram.core import sums as core
from dpgram.core.noise import SeededEntropy
from dpgram.core.run import Measure
from dpgram.document.coordinates import Coordinates
from dpgram.document.fields import MeasuredMatrix, MeasuredZoom
from dpgram.engines.local import add_up
from dpgram.engines.passes import Pass
from dpgram.errors import GuaranteeError, MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import CalibratedGaussian, PublicFacts
from dpgram.privacy.adjacency import AddRemove
from dpgram.privacy.count_noise import CountNoise
from dpgram.publishing.measurements.each_group import EachGroup
from dpgram.publishing.measurements.gram import Gram
from dpgram.publishing.measurements.histograms import Clip
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import row_rules

RUNS, LONG = 120, 2_000


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding the libraries whose threads to limit takes most of the time of so small a release."""
    monkeypatch.setattr("threadpoolctl.threadpool_limits", lambda **_: contextlib.nullcontext())


every_setting = pytest.mark.parametrize("setting", list(SETTINGS.values()), ids=SETTINGS)


@every_setting
def test_in_every_release_the_stages_tell_no_more_than_was_paid_for(setting: Setting) -> None:
    """In exact sums, whatever coordinates the noise led to."""
    largest = 0.0
    for seed in range(12):
        release = setting.publish(setting.tables[seed % 2], SeededEntropy(seed))
        spent, promised = told(release, setting)
        # A table of sixty rows may look smaller through pure noise: then there is one matrix.
        closer = sum(len(each.columns) for each in release.measured if isinstance(each, MeasuredZoom))
        assert len(stages(release, setting)) == len(SCHEMA.columns) + closer + (
            1 if release.coordinates is None else 4
        )
        assert release.coordinates is not None or not setting.delta
        assert spent <= promised * (1.0 + 1e-9)

        largest = max(largest, spent / promised)
    # The row is far from all others: it is in every histogram, and clipped in both matrices.
    assert largest > 0.85


@pytest.mark.parametrize(
    "name", ["a row, Gaussian noise, add-remove", "a person of nine rows, Gaussian noise, replace-one"]
)
def test_the_whole_path_keeps_its_promise(name: str) -> None:
    setting = SETTINGS[name]
    found = audited(setting, runs=RUNS, seed=1)
    assert found.passes(setting.curve)
    assert found.mu_lower > 0.0  # it has seen the row


@pytest.mark.full
@every_setting
def test_nor_does_a_long_look_refute_it(setting: Setting) -> None:
    assert audited(setting, runs=LONG, seed=2).passes(setting.curve)


def test_rows_protected_for_persons_are_caught() -> None:
    """The same tables and audit, published as if every row were a person."""
    persons = Setting(rows=PERSONS, visits=VISITS)
    found = audited(replace(persons, rows=dg.Rows()), persons, runs=RUNS, seed=3)
    assert not found.passes(persons.curve)


def weak(which: Callable[[core.Sum], bool]) -> Callable[..., Any]:
    """A core that draws a twentieth of the noise that it has priced."""
    honest = Measure.draw

    def draw(self: Measure, exact: Any, entropy: Any) -> Any:
        noise = replace(self.noise, scale=self.noise.scale / 20.0) if which(self.what) else self.noise
        return honest(replace(self, noise=noise), exact, entropy)

    return draw


def test_a_first_matrix_with_too_little_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Setting()
    curve = setting.curve
    first = weak(lambda what: isinstance(what, core.Gram) and what.rowmap.transform is None)
    monkeypatch.setattr(Measure, "draw", first)
    assert not audited(setting, runs=RUNS, seed=4).passes(curve)


def test_counts_with_too_little_noise_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Setting()
    curve = setting.curve
    monkeypatch.setattr(Measure, "draw", weak(lambda what: not isinstance(what, core.Gram)))
    assert not audited(setting, runs=RUNS, seed=5).passes(curve)


@pytest.mark.parametrize("seed", range(8))
def test_a_person_in_several_groups_adds_no_more_than_in_one(seed: int) -> None:
    """In coordinates of each group's own, to all matrices together, and to the counts of one group only."""
    generator = np.random.default_rng(seed)
    release = Setting().publish(people(), SeededEntropy(0))
    first = next(each for each in release.measured if isinstance(each, MeasuredMatrix))
    facts = PublicFacts(width=SCHEMA.width, adjacency=AddRemove())
    lower = np.tril(generator.normal(size=(3, SCHEMA.width, SCHEMA.width))) + 3 * np.eye(SCHEMA.width)
    encoders = [
        Encoder(SCHEMA, clip=float(longest), coordinates=Coordinates.nearest(own))
        for own, longest in zip((*lower[:2], first.coordinates.matrix), (0.1, 1.0, first.radius), strict=True)
    ]
    noise = CountNoise(law="discrete-gaussian", scale=2.0**30)
    matrices = EachGroup(
        tuple(Gram(encoder=one, mechanism=CalibratedGaussian(sigma=2.0**40), facts=facts) for one in encoders)
    )
    lengths = EachGroup(tuple(Clip(noise=noise, share=0.1, units_changed=1, encoder=one) for one in encoders))
    work = Pass(
        rules=row_rules(SCHEMA, dg.Rows(unit="id", by=dg.categorical("g", ["u", "v", "w"]))),
        statistics=(matrices.statistic, lengths.statistic),
    )
    own = [tuple(pair) for pair in generator.uniform(-1, 1, (VISITS, 2)).tolist()]
    data = people(*own)
    data = data.append_column("g", [[["u", "v", "w"][int(k)] for k in generator.integers(0, 3, len(data))]])
    without = data.filter(pc.not_equal(data["id"], data["id"][len(data) - 1]))
    with_, less = (work.by_statistic(add_up(one, work, threads=1, progress=False)) for one in (data, without))
    moved = [np.asarray(a.cells - b.cells, np.float64) for a, b in zip(with_[0], less[0], strict=True)]
    assert sum(float(np.trace(one)) for one in moved) <= ROW_NORM_SQUARED
    assert sum(float(np.trace(one)) for one in moved) > 0.001 * ROW_NORM_SQUARED
    assert all(np.linalg.eigvalsh(one)[0] > -1e-6 * ROW_NORM_SQUARED for one in moved)
    counted = np.concatenate([(a.cells - b.cells).ravel() for a, b in zip(with_[1], less[1], strict=True)])
    assert counted.sum() == np.abs(counted).sum() == ROW_NORM_SQUARED
    assert matrices.event == matrices.members[0].event
    with pytest.raises(MechanismError, match="one price"):
        EachGroup((*matrices.members[:2], lengths.members[2]))


@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")  # that this protects little
def test_no_noise_is_smaller_than_the_proof_covers() -> None:
    """At ε = 50 and δ near 1 the last matrix had less than 2^26, where the theorem on integers ends."""
    shares = dg.Adaptive(histograms=0.01, first=0.0, clip=0.0)
    release = dg.publish(people(), SCHEMA, epsilon=50.0, delta=1.0 - 1e-12, adaptive=shares, progress=False)
    (histograms,) = release.measured
    assert release.guarantee.mu is not None
    assert release.guarantee.mu > 2.0**4
    assert release.noise.sigma >= 2.0**26
    assert histograms.scale >= 2.0**26


@pytest.mark.parametrize("part", ["first", "clip"])
def test_a_share_too_small_to_be_drawn_costs_nothing(part: str, tmp_path: Any) -> None:
    """It was refused after the histograms had been charged."""
    book = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=1, delta=1e-5)
    shares = dg.Adaptive(**{"first": 0.1, "clip": 0.1, part: 1e-9})
    with pytest.raises(GuaranteeError, match="more noise than can be drawn"):
        dg.publish(people(), SCHEMA, epsilon=1e-4, delta=0.0, adaptive=shares, ledger=book, progress=False)
    assert book.entries == 0
