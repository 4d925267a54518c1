"""`auto` by forecast: what it takes, what it says, and the facts by which it rules mechanisms out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgram.errors import GuaranteeError, MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import MECHANISMS, Auto, CalibratedMechanism, Gaussian, PublicFacts, Wishart
from dpgram.mechanisms.choice import CLOSE_TO_FLOOR, choose, forecast_error
from dpgram.privacy.adjacency import AddRemove, Adjacency, adjacency
from dpgram.privacy.curves.wishart_calibrate import sketch_ratio_at_most
from dpgram.privacy.guarantee import Guarantee
from dpgram_papers.wishart_degrees import wishart_degrees_at_least

SEMIDEFINITE = Auto(semidefinite=True)
RELATIONS = ("add-remove", "replace-one")
HIDDEN = 0.6
"""Relative error of the best additive noise from which on most of the assumed table cannot be seen."""
CHEAP = ("gaussian", "matrix-laplace", "laplace", "eigenvectors", "eigenvectors-zcdp", "deflation")


def facts(width: int, relation: str = "add-remove", rows: int | None = None) -> PublicFacts:
    return PublicFacts(width=width, adjacency=adjacency(relation), rows=rows)


def errors(guarantee: Guarantee, where: PublicFacts) -> dict[str, float]:
    made: dict[str, CalibratedMechanism] = {}
    for name in CHEAP:
        if not (guarantee.pure and name in {"gaussian", "eigenvectors-zcdp"}):
            made[name] = MECHANISMS[name]().calibrated(guarantee, where)
    return {name: forecast_error(mechanism, where) for name, mechanism in made.items()}


class TestRuledOut:
    """Each argument of ADR 13, on a grid that is wider than anybody's table."""

    @pytest.mark.parametrize("relation", RELATIONS)
    @pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-9])
    def test_sampled_directions_win_only_where_little_is_to_be_seen(
        self, relation: str, delta: float
    ) -> None:
        for width in (2, 5, 20, 100):
            for rows in (100, 10_000, 10**6, 10**8):
                for epsilon in (0.01, 0.1, 1.0, 10.0):
                    found = errors(Guarantee(epsilon, delta), facts(width, relation, rows))
                    added = min(found[n] for n in found if n in {"gaussian", "matrix-laplace"})
                    assert added < min(found[n] for n in found if n in CHEAP[3:]) or added > HIDDEN

    @pytest.mark.parametrize("relation", RELATIONS)
    def test_entrywise_laplace_wins_for_one_replaced_column_only(self, relation: str) -> None:
        for width in range(1, 60):
            found = errors(Guarantee(1.0), facts(width, relation))
            wins = found["laplace"] < found["matrix-laplace"] * (1.0 - 1e-9)
            assert wins == (width == 1 and relation == "replace-one")

    @pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0, 10.0])
    @pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-12])
    def test_sketches_have_no_less_noise_than_gaussian(self, epsilon: float, delta: float) -> None:
        """Of a table with nothing in it: w²√(2/r) against σ, for every r. A table adds to the left alone."""
        guarantee = Guarantee(epsilon, delta)
        sigma = Gaussian().calibrated(guarantee, facts(5)).sigma / ROW_NORM_SQUARED
        for rows in (10.0, 100.0, 1e4, 1e6, 1e9):
            ridge = 1.0 / sketch_ratio_at_most(guarantee, AddRemove(), degrees=rows)
            assert ridge * math.sqrt(2.0 / rows) >= sigma * (1.0 - 1e-6)

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 10.0])
    @pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-12])
    def test_wishart_noise_is_no_less_than_gaussian(self, epsilon: float, delta: float) -> None:
        """s²√(2k) ≥ σ already for k = m, that is, for d = 1."""
        guarantee = Guarantee(epsilon, delta)
        sigma = Gaussian().calibrated(guarantee, facts(5)).sigma / ROW_NORM_SQUARED
        for ratio in (0.1, 1.0, 5.0):
            degrees = wishart_degrees_at_least(guarantee, AddRemove(), ratio=ratio)
            assert math.sqrt(2.0 * degrees) / ratio >= sigma * (1.0 - 1e-6)


class TestAuto:
    @pytest.mark.parametrize("relation", RELATIONS)
    @pytest.mark.parametrize("rows", [None, 500, 10**7])
    def test_takes_the_least_error_of_all_where_the_table_can_be_seen(
        self, relation: str, rows: int | None
    ) -> None:
        for width in (1, 3, 12, 40):
            for epsilon in (0.1, 1.0, 5.0):
                where = facts(width, relation, rows)
                found = errors(Guarantee(epsilon, 1e-6), where)
                chosen = choose(Auto(), Guarantee(epsilon, 1e-6), where, None)
                if min(found["gaussian"], found["matrix-laplace"]) < HIDDEN:
                    assert found[chosen.mechanism.name] <= min(found.values()) * (1.0 + 1e-9)
                assert chosen.reason.startswith("auto: less noise than ")

    def test_one_replaced_column_gets_the_plain_laplace(self) -> None:
        chosen = choose(Auto(), Guarantee(1.0), facts(1, "replace-one"), None)
        assert chosen.mechanism.name == "laplace"

    def test_it_takes_milliseconds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Only mechanisms with a formula are calibrated: those that take seconds are ruled out before."""
        for name, kind in MECHANISMS.items():
            if name not in ("gaussian", "matrix-laplace", "laplace"):
                monkeypatch.setattr(kind, "calibrated", lambda *_, name=name: pytest.fail(name))
        for width in (1, 60):
            for relation in RELATIONS:
                for asked in (Guarantee(1.0, 1e-6), Guarantee(1.0)):
                    choose(Auto(), asked, facts(width, relation), None)


class TestSemidefinite:
    @pytest.mark.parametrize("width", [3, 30])
    @pytest.mark.parametrize("epsilon", [0.3, 3.0])
    def test_takes_the_better_semidefinite_one_and_says_why(self, width: int, epsilon: float) -> None:
        where, asked = facts(width, rows=50_000), Guarantee(epsilon, 1e-6)
        chosen = choose(SEMIDEFINITE, asked, where, None)
        assert chosen.mechanism.kind.semidefinite
        rivals = [MECHANISMS[name]().calibrated(asked, where) for name in ("wishart", "sketch")]
        best = min(rivals, key=lambda rival: forecast_error(rival, where))
        assert chosen.mechanism == best
        floor = forecast_error(Gaussian().calibrated(asked, where), where)
        assert floor * (1.0 - 1e-6) <= forecast_error(chosen.mechanism, where) <= CLOSE_TO_FLOOR * floor
        assert "semidefinite" in chosen.reason

    def test_nothing_semidefinite_is_pure(self) -> None:
        with pytest.raises(MechanismError, match="delta = 0"):
            choose(SEMIDEFINITE, Guarantee(1.0), facts(3), None)

    def test_replaced_rows_too(self) -> None:
        relation: Adjacency = adjacency("replace-one")
        where = PublicFacts(width=4, adjacency=relation, rows=2000)
        assert choose(SEMIDEFINITE, Guarantee(1.0, 1e-6), where, None).mechanism.kind.semidefinite


def test_the_forecast_error_of_added_noise_is_that_of_its_cells() -> None:
    where = facts(2, rows=3)
    sigma = Gaussian().calibrated(Guarantee(1.0, 1e-6), where).sigma / ROW_NORM_SQUARED
    values = np.array([2.0, 1.0])
    inverse = 1.0 / values
    expected = sigma**2 * (np.sum(inverse**2) + 0.5 * 2 * inverse[0] * inverse[1])
    found = forecast_error(Gaussian().calibrated(Guarantee(1.0, 1e-6), where), where)
    assert found == pytest.approx(math.sqrt(expected) / 2.0)


@pytest.mark.parametrize("epsilon", [250.0, 400.0, 1000.0])
@pytest.mark.parametrize("name", ["wishart", "sketch"])
def test_what_is_chosen_keeps_its_guarantee(name: str, epsilon: float) -> None:
    facts = PublicFacts(width=2, adjacency=AddRemove())
    found = choose(MECHANISMS[name](), Guarantee(epsilon, 1e-6), facts, None)
    assert found.mechanism.curve(facts).within(epsilon * (1 + 1e-9), 1e-6 * (1 + 1e-9))


def test_noise_that_would_not_do_is_refused_before_anything_is_charged() -> None:
    """The search for Wishart noise fails at this very large epsilon: its own curve tells."""
    with pytest.raises(GuaranteeError, match="known to keep"):
        choose(Wishart(), Guarantee(300.0, 1e-6), PublicFacts(width=2, adjacency=AddRemove()), None)
