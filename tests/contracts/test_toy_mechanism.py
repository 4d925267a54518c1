"""A mechanism is one class and one line in `MECHANISMS`: a toy goes all the way that ours go.

It adds Gaussian noise of a multiple of the least scale, under a name of its own and the law of `gaussian`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt
import pytest
from tests.flat import plan, publish

import dpgram as dg
from dpgram import cli
from dpgram.audit.gram import audit_mechanism
from dpgram.canonical_json import canonical_bytes, parse_strictly, sha256_hex
from dpgram.core.noise import Entropy, SeededEntropy
from dpgram.errors import MechanismError, OptionsError, ReleaseError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import (
    MECHANISMS,
    CalibratedGaussian,
    CalibratedMechanism,
    Drawn,
    Gaussian,
    Mechanism,
    PublicFacts,
    StatedNoise,
)
from dpgram.noise import SymmetricGaussian
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.charged import Charged
from dpgram.privacy.curves.base import GaussianCurve, PrivacyCurve
from dpgram.privacy.events import Event
from dpgram.privacy.guarantee import GaussianDP, Guarantee, gdp_mu_at_most
from dpgram.publishing.compatibility import clash_of, mechanism_option

ROWS = 20_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cautious(Mechanism):
    """G + N, N symmetric Gaussian noise of `factor` times the least σ."""

    name: ClassVar[str] = "cautious"
    semidefinite: ClassVar[bool] = False
    joint_groups: ClassVar[bool] = True

    factor: float = 2.0

    def __post_init__(self) -> None:
        if not self.factor >= 1.0:
            raise MechanismError("less than the least noise", got=self.factor, limit="factor ≥ 1")

    def calibrated(self, guarantee: Guarantee, facts: PublicFacts) -> CalibratedCautious:
        return CalibratedCautious(sigma=self.factor * Gaussian().calibrated(guarantee, facts).sigma)

    @classmethod
    def keeps_promise(cls, stated: StatedNoise) -> bool:
        law = stated.law
        if not isinstance(law, SymmetricGaussian) or stated.parameters != {"sigma": law.sigma}:
            return False
        if not (law.sigma > 0 and stated.plain_gram):
            return False
        mu = math.sqrt(stated.adjacency.units_changed) * ROW_NORM_SQUARED / law.sigma
        return stated.curve_within(GaussianCurve(mu)) if stated.counted else stated.gaussian_within(mu)

    @classmethod
    def least_charge(cls, stated: StatedNoise) -> Charged:
        """After pure counts there is a μ for the matrix, and none for the whole."""
        if stated.mu is not None:
            return stated.promised
        sigma = stated.number("sigma")
        own = stated.adjacency.units_changed * (ROW_NORM_SQUARED / sigma) ** 2
        return Charged(mu_squared=own, epsilon=stated.counts_cost)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedCautious(CalibratedMechanism):
    kind: ClassVar[type[Mechanism]] = Cautious

    sigma: float

    @property
    def _noise(self) -> CalibratedGaussian:
        return CalibratedGaussian(sigma=self.sigma)

    def curve(self, facts: PublicFacts) -> PrivacyCurve:
        return self._noise.curve(facts)

    def event(self, facts: PublicFacts) -> Event:
        return self._noise.event(facts)

    def expected(self, values: npt.NDArray[np.float64]) -> SymmetricGaussian:
        return self._noise.expected(values)

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        return self._noise.draw(gram, entropy)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MECHANISMS, Cautious.name, Cautious)


SCHEMA = dg.Schema(dg.numeric("x", -1, 1), dg.numeric("z", -1, 1), dg.numeric("y", -1, 1))
OPEN = dg.Schema(dg.numeric("x"), dg.numeric("z", -1, 1), dg.numeric("y", -1, 1))
GROUPS = dg.categorical("g", ["north", "south"])


def table() -> dict[str, Any]:
    draw = np.random.default_rng(1)
    x, z = draw.uniform(-1.0, 1.0, (2, ROWS))
    y = 0.5 * x - 0.25 * z + draw.uniform(-0.25, 0.25, ROWS)
    return {"x": x, "z": z, "y": y, "g": draw.choice(["north", "south"], ROWS), "id": np.arange(ROWS) // 2}


def published(asked: Any = "cautious", schema: dg.Schema = SCHEMA, **options: Any) -> Any:
    given: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6, "entropy": SeededEntropy(3), "progress": False}
    return publish(table(), schema, mechanism=asked, **given | options)


@pytest.mark.usefixtures("registered")
class TestAllTheWay:
    def test_from_rows_to_the_explorer(self, tmp_path: Path) -> None:
        release = published()
        assert release.mechanism.name == "cautious"
        usual = published("gaussian")
        assert release.noise.sigma == 2.0 * usual.noise.sigma
        again = dg.load(release.save(tmp_path / "r.dpgram.json"))
        assert again == release
        fit = again.regress("y", ["x", "z"])
        np.testing.assert_allclose([fit.fitted_params["x"], fit.fitted_params["z"]], [0.5, -0.25], atol=0.05)
        assert len(fit.conf_int()) == 3
        predicted = fit.predict({"x": [0.4, -0.4], "z": [0.0, 0.8]})
        np.testing.assert_allclose(predicted, [0.2, -0.4], atol=0.05)
        assert "cautious" in again.explore(tmp_path / "page.html").read_text(encoding="utf-8")
        assert "cautious" in str(again)

    def test_parameters_of_its_own(self) -> None:
        assert published(Cautious(factor=3.0)).noise.sigma == pytest.approx(1.5 * published().noise.sigma)
        with pytest.raises(MechanismError, match="less than the least"):
            Cautious(factor=0.9)

    def test_a_ledger_pays_what_the_noise_costs(self, tmp_path: Path) -> None:
        ledger = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=3, delta=1e-5)
        release = publish(
            table(), SCHEMA, epsilon=1.0, delta=1e-6, mechanism="cautious", ledger=ledger, adaptive=False
        )
        assert release.receipt is not None
        assert release.receipt.event.mu == release.guarantee.mu
        assert dg.Release.from_json(release.to_json()) == release

    def test_a_ledger_pays_for_bounds_and_noise_at_once(self, tmp_path: Path) -> None:
        ledger = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=9, delta=1e-5)
        release = publish(
            table(), OPEN, epsilon=4.0, delta=1e-6, mechanism="cautious", ledger=ledger, bounds_budget=0.3
        )
        assert len(release.receipts) == 1
        assert dg.Release.from_json(release.to_json()) == release

    def test_groups_persons_and_what_is_learnt(self) -> None:
        """In groups of rows, for persons of several rows, and after bounds that were learnt."""
        for release in published(by=GROUPS).values():
            assert dg.Release.from_json(release.to_json()) == release
        for options in ({"unit": "id"}, {"schema": OPEN, "bounds_budget": 0.3}):
            release = published(epsilon=4.0, **options)
            assert release.mechanism.name == "cautious"
            assert dg.Release.from_json(release.to_json()) == release

    def test_what_its_class_does_not_state_is_refused(self) -> None:
        for options in ({"delta": 0.0}, {"blocks": [["x", "y"], ["z"]]}):
            with pytest.raises(OptionsError, match="cautious"):
                published(**options)

    def test_a_plan_an_audit_and_the_command_know_it(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = plan(SCHEMA, rows=ROWS, epsilon=2.0, delta=1e-6, simulate=False,
                       mechanisms=["gaussian", "cautious"])  # fmt: skip
        assert found.forecast("cautious").noise == pytest.approx(2.0 * found.forecast("gaussian").noise)
        facts = PublicFacts(width=2, adjacency=adjacency("add-remove"))
        made = Cautious().calibrated(Guarantee(8.0, 1e-4), facts)
        found = audit_mechanism(made, facts, runs=600, entropy=SeededEntropy(1))
        assert found.passes(made.curve(facts))
        options = ["--epsilon", "8", "--delta", "1e-4", "--columns", "2", "--runs", "300", "--seed", "1"]
        assert cli.run(["audit", "--mechanism", "cautious", *options]) == 0
        assert "draws of cautious" in capsys.readouterr().out

    @pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
    @pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (0.99, False), (0.1, False)])
    def test_a_file_may_not_promise_more_than_its_noise_gives(
        self, factor: float, accepted: bool, adjacency: str
    ) -> None:
        """A stated μ, and the ε that follows from it, of `factor` times what the noise has."""
        content: dict[str, Any] = parse_strictly(published(adjacency=adjacency).to_json())
        told = content["guarantee"]
        told["mu"] *= factor
        told["rho"] = GaussianDP(told["mu"]).rho_at_least()
        told["epsilon"] = GaussianCurve(told["mu"]).epsilon(told["delta"]) * (1.0 + 1e-9)
        assert gdp_mu_at_most(told["epsilon"], told["delta"]) == pytest.approx(told["mu"])
        content.pop("digest")
        forged = canonical_bytes(content | {"digest": sha256_hex(content)})
        if accepted:
            assert dg.Release.from_json(forged).guarantee.mu == told["mu"]
        else:
            with pytest.raises(ReleaseError, match="contradict each other"):
                dg.Release.from_json(forged)


def test_what_is_not_listed_is_neither_published_nor_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MechanismError, match="unknown mechanism") as caught:
        published(Cautious())
    assert "MECHANISMS" in str(caught.value)
    with monkeypatch.context() as listed:
        listed.setitem(MECHANISMS, Cautious.name, Cautious)
        content = published().to_json()
        assert clash_of(mechanism_option(Cautious), "blocks") is not None
    assert clash_of(mechanism_option(Cautious), "blocks") is None
    with pytest.raises(ReleaseError, match="not known"):
        dg.Release.from_json(content)
