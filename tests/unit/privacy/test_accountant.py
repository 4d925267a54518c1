"""Events, prices, capacities and the exact curve of one event: against mpmath, enumeration, dp-accounting."""

from __future__ import annotations

import itertools
import json
import math
import re
from fractions import Fraction
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.errors import BudgetExceeded, DpgramError, GuaranteeError, LedgerError
from dpgram.privacy.accountant import (
    ApproximateEvent,
    Balance,
    ComposedEvent,
    Currency,
    Event,
    GaussianEvent,
    PureEvent,
    ZcdpEvent,
    capacity,
    composed,
    curve_of,
    decode_event,
    delta_of,
    describe,
    encode_event,
    guarantee_of,
    price,
)
from dpgram.privacy.curves.loss_distribution import ComposedCurve, gaussian_deltas_up
from dpgram.privacy.exact_sums import (
    UNITS,
    float_down,
    float_up,
    root_down,
    root_up,
    units_down,
    units_up,
)
from dpgram.privacy.guarantee import GaussianDP, Guarantee

REFERENCE = Path(__file__).resolve().parents[2] / "reference" / "dp_accounting.json"
CURRENCIES: tuple[Currency, ...] = ("mu2", "rho", "epsilon")

positive = st.floats(1e-6, 50.0)
GAUSSIAN = st.builds(GaussianEvent, positive)
PURE = st.builds(PureEvent, positive)
ZCDP = st.builds(ZcdpEvent, positive)
APPROXIMATE = st.builds(ApproximateEvent, st.one_of(st.just(0.0), positive), st.floats(1e-12, 0.1))
PART = st.one_of(GAUSSIAN, PURE, ZCDP, APPROXIMATE)
EVENT = st.one_of(PART, st.builds(ComposedEvent, st.lists(PART, min_size=1, max_size=4).map(tuple)))


class TestEvents:
    @settings(deadline=None, derandomize=True)
    @given(EVENT)
    def test_bytes_and_back(self, event: Event) -> None:
        assert decode_event(encode_event(event)) == event
        assert encode_event(decode_event(encode_event(event))) == encode_event(event)

    @pytest.mark.parametrize(
        ("event", "text"),
        [
            (GaussianEvent(0.5), '{"event":"gaussian/1","mu":0.5}'),
            (PureEvent(1.0), '{"event":"pure/1","epsilon":1.0}'),
            (ZcdpEvent(0.1), '{"event":"zcdp/1","rho":0.1}'),
            (ApproximateEvent(1.0, 1e-9), '{"event":"approximate/1","epsilon":1.0,"delta":1e-9}'),
            (
                ComposedEvent((PureEvent(1.0), GaussianEvent(0.5))),
                '{"event":"composed/1","parts":[{"event":"pure/1","epsilon":1.0},{"event":"gaussian/1","mu":0.5}]}',
            ),
        ],
    )
    def test_the_written_form_may_never_change(self, event: Event, text: str) -> None:
        assert encode_event(event) == text.encode()
        assert decode_event(text) == event

    def test_equal_numbers_have_equal_bytes(self) -> None:
        forms = {encode_event(GaussianEvent(number)) for number in (1, 1.0, np.float64(1.0))}
        assert len(forms) == 1

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "[]",
            "{}",
            "null",
            '{"event":"gaussian/2","mu":1}',
            '{"event":"gaussian","mu":1}',
            '{"event":"poisson/1","mu":1}',
            '{"event":"gaussian/1"}',
            '{"event":"gaussian/1","mu":1,"note":"x"}',
            '{"event":"gaussian/1","mu":-1}',
            '{"event":"gaussian/1","mu":0}',
            '{"event":"gaussian/1","mu":1e999}',
            '{"event":"gaussian/1","mu":NaN}',
            '{"event":"gaussian/1","mu":"1"}',
            '{"event":"gaussian/1","mu":true}',
            '{"event":"approximate/1","epsilon":1,"delta":0}',
            '{"event":"approximate/1","epsilon":1,"delta":1}',
            '{"event":"composed/1","parts":[]}',
            '{"event":"composed/1","parts":[{"event":"composed/1","parts":[]}]}',
            '{"event":"pure/1","epsilon":1}garbage',
        ],
    )
    def test_anything_unknown_fails_closed(self, text: str) -> None:
        with pytest.raises(LedgerError, match="cannot be understood"):
            decode_event(text)
        with pytest.raises(LedgerError):
            decode_event(b"\xff" + text.encode())

    @pytest.mark.parametrize(
        "value",
        [0.0, -1.0, math.inf, -math.inf, math.nan, True, "1", None, pytest.param(10**400, id="huge")],
    )
    @pytest.mark.parametrize("kind", [GaussianEvent, PureEvent, ZcdpEvent])
    def test_values_are_finite_and_positive(self, kind: type, value: object) -> None:
        with pytest.raises(GuaranteeError):
            kind(value)

    def test_composition_is_flat_and_not_empty(self) -> None:
        pair = ComposedEvent((PureEvent(1.0), GaussianEvent(0.5)))
        assert composed([pair, PureEvent(2.0)]) == ComposedEvent((*pair.parts, PureEvent(2.0)))
        assert composed([PureEvent(2.0)]) == PureEvent(2.0)
        for parts in [(), (pair,), ("x",)]:
            with pytest.raises(GuaranteeError):
                ComposedEvent(parts)
        with pytest.raises(GuaranteeError):
            composed([])

    def test_events_are_frozen(self) -> None:
        with pytest.raises(AttributeError):
            GaussianEvent(1.0).mu = 2.0


class TestExact:
    @settings(deadline=None, derandomize=True)
    @given(st.fractions(min_value=0, max_value=100))
    def test_directions(self, amount: Fraction) -> None:
        assert units_down(amount) <= amount <= units_up(amount)
        assert units_up(amount) - units_down(amount) <= Fraction(1, UNITS)
        assert Fraction(float_down(amount)) <= amount <= Fraction(float_up(amount))
        assert Fraction(root_down(amount)) ** 2 <= amount <= Fraction(root_up(amount)) ** 2
        assert root_up(amount) <= math.nextafter(math.nextafter(root_down(amount), math.inf), math.inf)


class TestPrice:
    @settings(deadline=None, derandomize=True)
    @given(st.floats(1e-9, 50.0))
    def test_pure_costs_are_the_tight_ones_rounded_up(self, epsilon: float) -> None:
        with mp.workdps(50):
            quantile = mp.sqrt(2) * mp.erfinv(1 - 2 / (1 + mp.exp(mp.mpf(epsilon))))
            mu2, rho = (2 * quantile) ** 2, epsilon * mp.tanh(mp.mpf(epsilon) / 2)
            for currency, true in [("mu2", mu2), ("rho", rho), ("epsilon", mp.mpf(epsilon))]:
                amount = price(PureEvent(epsilon), currency).amount
                charged = mp.mpf(amount.numerator) / amount.denominator
                assert true <= charged <= true * (1 + mp.mpf(10) ** -13)

    @pytest.mark.parametrize("epsilon", [700.0, 701.0, 1e4, 1e300])
    def test_absurd_epsilons_have_a_price(self, epsilon: float) -> None:
        amount = price(PureEvent(epsilon), "mu2").amount
        assert 7 * Fraction(epsilon) <= amount <= Fraction(epsilon) * Fraction(8001, 1000)

    @settings(deadline=None, derandomize=True)
    @given(st.floats(1e-150, 1e6))
    def test_gaussian_costs_are_exact(self, mu: float) -> None:
        square = Fraction(mu) ** 2
        assert square <= price(GaussianEvent(mu), "mu2").amount < square + Fraction(1, UNITS)
        assert square / 2 <= price(GaussianEvent(mu), "rho").amount < square / 2 + Fraction(1, UNITS)
        assert price(GaussianEvent(mu), "mu2").amount > 0

    @settings(deadline=None, derandomize=True)
    @given(st.lists(st.one_of(PURE, APPROXIMATE), min_size=1, max_size=5))
    def test_parts_add_up(self, parts: list[Event]) -> None:
        for currency in CURRENCIES:
            whole = price(composed(parts), currency)
            pieces = [price(part, currency) for part in parts]
            slack = Fraction(len(parts), UNITS)
            assert 0 <= sum(piece.amount for piece in pieces) - whole.amount <= slack
            assert 0 <= sum(piece.delta for piece in pieces) - whole.delta <= slack

    def test_tiny_events_are_never_free(self) -> None:
        for event in [PureEvent(1e-300), ZcdpEvent(5e-324), ApproximateEvent(1e-200, 5e-324)]:
            assert price(event, "rho").amount > 0
        assert price(PureEvent(5e-324), "mu2").amount > 0
        assert price(ApproximateEvent(0.0, 5e-324), "mu2").delta > 0
        assert price(ApproximateEvent(0.0, 1e-9), "mu2").amount == 0

    @pytest.mark.parametrize(
        ("event", "currency", "remedy"),
        [
            (ZcdpEvent(0.1), "mu2", 'currency="rho"'),
            (ComposedEvent((PureEvent(1.0), ZcdpEvent(0.1))), "mu2", 'currency="rho"'),
            (GaussianEvent(0.1), "epsilon", "delta=0"),
            (ZcdpEvent(0.1), "epsilon", "delta=0"),
        ],
    )
    def test_what_a_currency_cannot_express_is_refused(
        self, event: Event, currency: Currency, remedy: str
    ) -> None:
        with pytest.raises(LedgerError, match=re.escape(remedy)):
            price(event, currency)

    def test_unknown_currency(self) -> None:
        for call in (lambda: price(PureEvent(1.0), "gold"), lambda: capacity(Guarantee(1.0, 1e-6), "gold")):
            with pytest.raises(LedgerError, match="one of 'mu2', 'rho', 'epsilon'"):
                call()


def gaussian_delta(epsilon: float, mu: float) -> mp.mpf:
    mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def zcdp_delta(epsilon: float, rho: mp.mpf) -> mp.mpf:
    """min over α of e^{(α−1)(αρ−ε)} (1 − 1/α)^α / (α − 1)."""

    def bound(log_excess: mp.mpf) -> mp.mpf:
        excess = mp.exp(log_excess)
        order = 1 + excess
        return mp.exp(excess * (order * rho - epsilon)) * (excess / order) ** order / excess

    best = mp.findroot(lambda x: mp.diff(lambda t: mp.log(bound(t)), x), mp.log(epsilon / rho))
    return bound(best)


class TestCapacity:
    @pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 5.0, 50.0])
    @pytest.mark.parametrize("delta", [1e-20, 1e-6, 1e-2])
    def test_is_within_the_budget_and_nearly_all_of_it(self, epsilon: float, delta: float) -> None:
        reserve = delta / 4
        left = mp.mpf(delta) - mp.mpf(reserve)
        guarantee = Guarantee(epsilon, delta)
        with mp.workdps(40):
            mu2 = capacity(guarantee, "mu2", reserve)
            mu = mp.sqrt(mp.mpf(mu2.numerator) / mu2.denominator)
            assert gaussian_delta(epsilon, mu) <= left < gaussian_delta(epsilon, mu * (1 + mp.mpf("1e-7")))
            amount = capacity(guarantee, "rho", reserve)
            rho = mp.mpf(amount.numerator) / amount.denominator
            assert zcdp_delta(epsilon, rho) <= left < zcdp_delta(epsilon, rho * (1 + mp.mpf("1e-7")))
        assert capacity(guarantee, "epsilon", reserve) == pytest.approx(Fraction(epsilon), rel=1e-15)

    def test_the_documented_example(self) -> None:
        """Nine Gaussian (1, 1e-6) releases fit into (3, 1e-5), a tenth does not."""
        guarantee = Guarantee(3.0, 1e-5)
        one = price(GaussianEvent(1 / 4.225), "mu2").amount
        assert 9 * one <= capacity(guarantee, "mu2") < 10 * one
        assert 3 * price(PureEvent(1.0), "epsilon").amount == capacity(guarantee, "epsilon", 1e-5)

    @pytest.mark.parametrize(
        ("delta", "currency", "reserve"),
        [(0.0, "mu2", 0.0), (0.0, "rho", 0.0), (1e-6, "mu2", 1e-6), (1e-6, "epsilon", 2e-6)],
    )
    def test_no_delta_left(self, delta: float, currency: Currency, reserve: float) -> None:
        with pytest.raises(LedgerError, match="δ above its reserve"):
            capacity(Guarantee(1.0, delta), currency, reserve)

    def test_reserve_must_be_a_probability(self) -> None:
        for reserve in (-1e-9, math.nan, 1.0):
            with pytest.raises(GuaranteeError):
                capacity(Guarantee(1.0, 1e-6), "mu2", reserve)


class TestBalance:
    @settings(deadline=None, derandomize=True)
    @given(st.lists(st.one_of(PURE, APPROXIMATE), max_size=8), st.floats(0.1, 100.0), st.floats(0.0, 0.1))
    def test_never_goes_below_zero(self, events: list[Event], total: float, reserve: float) -> None:
        balance = Balance(total=Fraction(total), reserve=Fraction(reserve))
        for event in events:
            cost = price(event, "epsilon")
            if balance.fits(cost):
                balance = balance.after(cost)
            else:
                with pytest.raises(BudgetExceeded):
                    balance.after(cost)
            assert balance.left >= 0
            assert balance.left_delta >= 0

    def test_small_charges_add_up(self) -> None:
        """A float sum would lose the small ones: 1 + 1e-17 is 1."""
        balance = Balance(total=Fraction(1), reserve=Fraction(0))
        balance = balance.after(price(PureEvent(1.0 - 1e-16), "epsilon"))
        fine = price(PureEvent(1e-17), "epsilon")
        paid = 0
        while balance.fits(fine):
            balance, paid = balance.after(fine), paid + 1
        assert paid == 11  # 1 − 1e-16 is 1 − 2⁻⁵³ = 1 − 1.11e-16 as a float


def enumerated_delta(epsilons: list[float], epsilon: float) -> mp.mpf:
    """δ(ε) of independent randomised responses, over all 2^k outputs."""
    total = mp.mpf(0)
    for signs in itertools.product((1, -1), repeat=len(epsilons)):
        first = second = mp.mpf(1)
        for sign, part in zip(signs, epsilons, strict=True):
            first /= 1 + mp.exp(-sign * mp.mpf(part))
            second /= 1 + mp.exp(sign * mp.mpf(part))
        total += max(first - mp.exp(mp.mpf(epsilon)) * second, mp.mpf(0))
    return total


def mixed_delta(epsilons: list[float], mu: float, epsilon: float) -> mp.mpf:
    total = mp.mpf(0)
    for signs in itertools.product((1, -1), repeat=len(epsilons)):
        chance, loss = mp.mpf(1), mp.mpf(0)
        for sign, part in zip(signs, epsilons, strict=True):
            chance /= 1 + mp.exp(-sign * mp.mpf(part))
            loss += sign * mp.mpf(part)
        total += chance * gaussian_delta(mp.mpf(epsilon) - loss, mu)
    return total


class TestInsideOneEvent:
    @settings(deadline=None, derandomize=True, max_examples=40)
    @given(st.lists(st.floats(0.01, 3.0), min_size=1, max_size=6), st.floats(0.0, 1.2))
    def test_pure_parts_compose_optimally(self, epsilons: list[float], share: float) -> None:
        epsilon = share * sum(epsilons)
        with mp.workdps(40):
            true = enumerated_delta(epsilons, epsilon)
            found = delta_of(composed(map(PureEvent, epsilons)), epsilon)
            assert true - mp.mpf(10) ** -35 <= found <= true * (1 + mp.mpf(10) ** -9) + mp.mpf(10) ** -14

    @settings(deadline=None, derandomize=True, max_examples=40)
    @given(st.lists(st.floats(0.01, 2.0), min_size=1, max_size=4), st.floats(0.01, 3.0), st.floats(0.0, 10.0))
    def test_pure_beside_gaussian(self, epsilons: list[float], mu: float, epsilon: float) -> None:
        event = composed([*map(PureEvent, epsilons), GaussianEvent(mu)])
        with mp.workdps(60):
            true = mixed_delta(epsilons, mu, epsilon)
            found = delta_of(event, epsilon)
            assert true <= found <= true * (1 + mp.mpf(10) ** -8) + mp.mpf(10) ** -280

    @settings(deadline=None, derandomize=True)
    @given(st.floats(1e-3, 10.0), st.floats(-40.0, 40.0))
    def test_gaussian_curve_on_both_sides(self, mu: float, x: float) -> None:
        with mp.workdps(400):
            true = gaussian_delta(x, mu)
            found = float(gaussian_deltas_up(np.array([x]), mu)[0])
            assert true <= found <= true * (1 + mp.mpf(10) ** -6) + mp.mpf(10) ** -280

    def test_gaussian_parts_add_in_mu_squared(self) -> None:
        event = composed([GaussianEvent(0.3), GaussianEvent(0.4)])
        assert delta_of(event, 1.0) == pytest.approx(GaussianDP(0.5).delta_at_most(1.0), rel=1e-12)

    @pytest.mark.parametrize("mu", [0.0, 0.3])
    def test_the_grid_is_above_the_enumeration_and_close(self, mu: float) -> None:
        epsilons = [0.01 * (7 + k) + 0.0003 * k * k for k in range(12)]
        exact, grid = ComposedCurve.of(epsilons, mu), ComposedCurve.of(epsilons, mu, most_atoms=4000)
        assert len(grid.losses) < len(exact.losses)
        step = 2.0 * sum(epsilons) / 4000
        for epsilon in np.linspace(0.01, 1.7, 15):
            assert exact.delta(epsilon) <= grid.delta(epsilon) <= exact.delta(epsilon - step)
        coarse = ComposedCurve.of(epsilons, mu, most_atoms=100)
        assert coarse.delta(0.7) > grid.delta(0.7)

    def test_many_different_parts(self) -> None:
        """200 different εs: far below the plain sum, above the all-Gaussian limit."""
        epsilons = [0.01 + 0.0009 * k for k in range(200)]
        event = composed([*map(PureEvent, epsilons), GaussianEvent(0.3)])
        found = guarantee_of(event, 1e-6).epsilon
        drift = sum(e * math.tanh(e / 2) for e in epsilons)
        assert drift < found < 0.6 * sum(epsilons)
        assert delta_of(event, found) <= 1e-6

    def test_against_dp_accounting(self) -> None:
        """Its grid is pessimistic by up to a few parts in 10⁵; ours is exact here."""
        reference = json.loads(REFERENCE.read_text())
        assert reference["tool"] == "dp-accounting"
        for case in reference["cases"]:
            event = composed(
                [
                    *map(GaussianEvent, case["mu"]),
                    *map(PureEvent, case["pure"]),
                    *(ApproximateEvent(*pair) for pair in case["approximate"]),
                ]
            )
            for epsilon, delta in zip(case["epsilon"], case["delta"], strict=True):
                assert delta * (1.0 - 2e-5) <= delta_of(event, epsilon) <= delta * (1.0 + 1e-11)

    def test_leaks(self) -> None:
        pair = composed([ApproximateEvent(0.5, 1e-3), ApproximateEvent(0.0, 1e-2)])
        assert delta_of(pair, 0.5) == pytest.approx(1 - 0.999 * 0.99, rel=1e-14)
        assert delta_of(pair, 0.0) == pytest.approx(1 - 0.999 * 0.99 * (1 - math.tanh(0.25)), rel=1e-12)
        assert guarantee_of(ApproximateEvent(0.7, 1e-6), 1e-6) == Guarantee(0.7, 1e-6)
        assert guarantee_of(ApproximateEvent(0.7, 1e-6), 2e-6).epsilon < 0.7
        with pytest.raises(GuaranteeError, match="delta at least 1e-06"):
            guarantee_of(ApproximateEvent(0.7, 1e-6), 1e-7)
        with pytest.raises(GuaranteeError, match="delta above 1e-06"):
            guarantee_of(composed([ApproximateEvent(0.7, 1e-6), GaussianEvent(0.1)]), 1e-6)

    def test_pure_at_delta_zero(self) -> None:
        assert guarantee_of(composed([PureEvent(0.5), PureEvent(0.25)]), 0.0) == Guarantee(0.75, 0.0)
        assert delta_of(composed([PureEvent(0.5), PureEvent(0.25)]), 0.75) == 0.0
        assert delta_of(composed([PureEvent(0.5), PureEvent(0.25)]), 0.7499) > 0.0
        with pytest.raises(GuaranteeError):
            guarantee_of(GaussianEvent(0.1), 0.0)

    def test_concentrated_parts(self) -> None:
        event = composed([ZcdpEvent(0.05), GaussianEvent(0.4), PureEvent(0.3)])
        rho = 0.05 + 0.08 + 0.3 * math.tanh(0.15)
        with mp.workdps(30):
            true = zcdp_delta(2.0, mp.mpf(rho))
        assert delta_of(event, 2.0) == pytest.approx(float(true), rel=1e-9)

    @settings(deadline=None, derandomize=True, max_examples=60)
    @given(st.lists(st.one_of(GAUSSIAN, PURE, APPROXIMATE), min_size=2, max_size=4), st.floats(0.0, 60.0))
    def test_order_does_not_matter_and_more_is_worse(self, parts: list[Event], epsilon: float) -> None:
        whole = delta_of(composed(parts), epsilon)
        assert delta_of(composed(reversed(parts)), epsilon) == pytest.approx(whole, rel=1e-9, abs=1e-280)
        # Both sides are rounded up, the whole by at least as much as any part.
        assert delta_of(composed(parts[:-1]), epsilon) <= whole * (1.0 + 1e-7) + 1e-280

    @settings(deadline=None, derandomize=True, max_examples=60)
    @given(EVENT, st.floats(-10.0, -1.0))
    def test_the_guarantee_holds_and_is_tight(self, event: Event, log_delta: float) -> None:
        delta = 10.0**log_delta
        try:
            epsilon = guarantee_of(event, delta).epsilon
        except GuaranteeError:
            assert delta_of(event, 1e9) >= delta * (1.0 - 1e-9)
            return
        assert delta_of(event, epsilon) <= delta
        if epsilon > 1e-9:
            assert delta_of(event, epsilon * (1.0 - 1e-6)) > delta * (1.0 - 1e-7)

    @settings(deadline=None, derandomize=True, max_examples=60)
    @given(st.lists(st.one_of(GAUSSIAN, PURE), min_size=1, max_size=3), st.floats(0.01, 20.0))
    def test_the_filter_is_never_cheaper_than_the_truth(self, parts: list[Event], epsilon: float) -> None:
        """μ²-GDP and ρ-zCDP at the charged price imply the exact curve of the event."""
        event = composed(parts)
        mu = root_up(price(event, "mu2").amount)
        rho = float_up(price(event, "rho").amount)
        true = delta_of(event, epsilon)
        for bound in (GaussianEvent(mu), ZcdpEvent(rho)):
            assert true <= delta_of(bound, epsilon) * (1.0 + 1e-7) + 1e-280

    def test_epsilon_must_be_a_number(self) -> None:
        for epsilon in (-1.0, math.nan, math.inf):
            with pytest.raises(GuaranteeError):
                delta_of(PureEvent(1.0), epsilon)
        with pytest.raises(GuaranteeError):
            guarantee_of(PureEvent(1.0), 1.0)

    def test_curves_answer_below_zero_too(self) -> None:
        """δ(−∞) = 1: the identity δ(−ε) = 1 − e^−ε + e^−ε δ(ε) holds for compositions."""
        for event in [composed([PureEvent(0.5), GaussianEvent(0.2)]), ApproximateEvent(0.5, 0.01)]:
            curve = curve_of(event)
            for epsilon in (0.1, 0.5, 2.0):
                mirrored = 1 - math.exp(-epsilon) + math.exp(-epsilon) * curve.delta(epsilon)
                assert curve.delta(-epsilon) == pytest.approx(mirrored, rel=1e-9)


@settings(deadline=None, derandomize=True)
@given(EVENT)
def test_every_event_can_be_described(event: Event) -> None:
    assert "=" in describe(event)


def test_errors_belong_to_the_tree() -> None:
    with pytest.raises(DpgramError):
        GaussianEvent(-1.0)
