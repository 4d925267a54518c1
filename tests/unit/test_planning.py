"""Forecasts against the library itself on the assumed table, and against what must be true of any plan."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.flat import plan

import dpgram as dg
from dpgram.analysis.design import build_design
from dpgram.analysis.inference import infer
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.cli import run
from dpgram.core.noise import SeededEntropy, simulation
from dpgram.errors import AnalysisError, DpgramError, DpgramWarning
from dpgram.mechanisms import MECHANISMS, Auto, Eigenvectors, Sketch
from dpgram.planning import Plan
from dpgram.planning._assumption import Assumption
from dpgram.planning._least_rows import least_rows
from dpgram.planning._regression import DROWNED, AssumedRegression
from dpgram.privacy.adjacency import AddRemove
from dpgram.privacy.curves import spectral, wishart
from dpgram.privacy.curves.wishart_calibrate import adaptive_ratio_at_most
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing import expected, publish_with
from dpgram.publishing.split import budget_split

SCHEMA = dg.Schema(
    dg.numeric("age", 18, 90),
    dg.numeric("bmi", 10, 60),
    dg.legendre("age", 2),
    dg.boolean("active"),
    dg.categorical("smoker", ["no", "yes"]),
    dg.numeric("charges", 0, 70_000),
)
ADDITIVE = ("gaussian", "matrix-laplace", "laplace")


def quick(rows: int = 20_000, epsilon: float = 1.0, delta: float = 1e-6, **others: object) -> Plan:
    settings = {"mechanisms": ADDITIVE, **others}
    return plan(SCHEMA, rows=rows, epsilon=epsilon, delta=delta, **settings)


def measured_ratios(found: Plan, name: str, draws: int = 300) -> np.ndarray:
    """√(1 + mean square of the library's own estimates around the truth over Var of least squares)."""
    setting = found.setting
    regression = setting.regression
    gram = found.rows * regression.second
    mechanism = setting.calibrated(found.asked[name], Guarantee(found.epsilon, found.delta))
    law = mechanism.expected(found.rows * regression.values / setting.unit)
    generator = simulation(17)

    def moments(matrix: np.ndarray) -> Moments:
        noise = EncodedNoise.of(law, setting.unit)
        return Moments(gram=matrix, schema=SCHEMA, noise=noise, radius=setting.radius)

    design = build_design(moments(gram), found.target)
    truth = np.linalg.lstsq(
        design.vectors.T @ gram @ design.vectors, design.vectors.T @ gram @ design.target_vector, rcond=None
    )[0]
    exact = design.coefficients(truth)[1:]
    noisy = [
        infer(moments(law.redraw(gram / setting.unit, generator) * setting.unit), design).estimate[1:]
        for _ in range(draws)
    ]
    squares = np.mean((np.array(noisy) - exact) ** 2, axis=0)
    return np.sqrt(1.0 + squares * (found.rows - len(regression.spectrum)) / regression.variance)


@pytest.mark.parametrize("name", ADDITIVE)
@pytest.mark.parametrize(("rows", "epsilon"), [(20_000, 1.0), (100_000, 0.5)])
def test_forecasts_agree_with_the_library_on_the_assumed_table(name: str, rows: int, epsilon: float) -> None:
    found = quick(rows, epsilon)
    one = found.forecast(name)
    assert one.works
    forecast = np.array(list(one.se_ratios.values()))
    np.testing.assert_allclose(measured_ratios(found, name), forecast, rtol=0.12)


def test_closed_form_for_one_standardised_column_is_that_of_the_page() -> None:
    """y ~ x through the origin: ratio² = 1 + v·((|t|² + θ²)A⁻² + θ²A⁻²)/(s²A⁻¹), with v = σ²/2."""
    schema = dg.Schema(dg.numeric("x", -1, 1), dg.numeric("y", -1, 1), constant=False)
    found = plan(
        schema,
        rows=30_000,
        epsilon=1.0,
        delta=1e-6,
        spread=0.5,
        correlation=0.0,
        r_squared=0.36,
        mechanisms=["gaussian"],
    )
    one = found.forecasts[0]
    A, theta, s2 = 30_000 * 0.25, 0.6, 0.25 * 0.64
    v = one.noise**2 / 2.0
    degrees = (30_000 - 1) / 30_000
    kappa = 1.0 / (1.0 - v / A**2)
    expected = math.sqrt(1.0 + kappa * v * (1.0 + 2.0 * theta**2) / A / s2 * degrees)
    assert one.se_ratio == pytest.approx(expected, rel=1e-9)


def test_second_moments_have_what_was_assumed() -> None:
    assumption = Assumption(
        spread={"age": 0.4, "smoker": [0.8, 0.2], "*": 0.25},
        mean={"age": 0.1},
        correlation=0.3,
        r_squared=0.4,
    )
    names = SCHEMA.names
    features = [i for i, name in enumerate(names) if name not in {"(constant)", "charges"}]
    second = assumption.second_moments(SCHEMA, names.index("charges"), features)
    mean = second[0]
    covariance = second - np.outer(mean, mean)
    at = {name: i for i, name in enumerate(names)}
    assert mean[at["age"]] == pytest.approx(0.1)
    assert math.sqrt(covariance[at["age"], at["age"]]) == pytest.approx(0.4)
    assert math.sqrt(covariance[at["bmi"], at["bmi"]]) == pytest.approx(0.25)
    assert mean[at["smoker=no"]] == pytest.approx(0.8)
    assert covariance[at["age"], at["bmi"]] == pytest.approx(0.3 * 0.4 * 0.25)
    assert np.linalg.eigvalsh(second)[0] > -1e-12
    y = at["charges"]
    block, toward = covariance[np.ix_(features, features)], covariance[features, y]
    explained = toward @ np.linalg.pinv(block) @ toward / covariance[y, y]
    assert explained == pytest.approx(0.4)


def test_a_uniform_column_has_orthogonal_polynomials() -> None:
    schema = dg.Schema(dg.numeric("x", 0, 1), dg.legendre("x", 2), dg.legendre("x", 3), dg.numeric("y", 0, 1))
    second = Assumption(spread=3**-0.5, correlation=0.0, r_squared=0.0).second_moments(schema, 4, [1, 2, 3])
    np.testing.assert_allclose(np.diagonal(second)[[1, 2, 3, 4]], [1 / 3, 1 / 5, 1 / 7, 1 / 3], rtol=1e-9)
    np.testing.assert_allclose(second - np.diag(np.diagonal(second)), 0.0, atol=1e-12)


def test_more_rows_more_epsilon_and_fewer_columns_never_hurt() -> None:
    base, richer, longer = quick(), quick(epsilon=2.0), quick(rows=40_000)
    for name in ADDITIVE:
        one = base.forecast(name)
        assert richer.forecast(name).se_ratio < one.se_ratio
        assert longer.forecast(name).se_ratio < one.se_ratio
        assert one.se_ratio_at_double_epsilon == pytest.approx(richer.forecast(name).se_ratio)
        assert one.se_ratio_with_half_the_columns is not None
        assert one.se_ratio_with_half_the_columns < one.se_ratio < one.se_ratio_after_learning_bounds


def test_the_rows_needed_are_needed() -> None:
    for name in ADDITIVE:
        needed = quick().forecast(name).rows_needed
        assert needed is not None
        assert quick(rows=needed).forecast(name).se_ratio <= 2.0
        assert quick(rows=int(0.99 * needed)).forecast(name).se_ratio > 2.0


@pytest.mark.parametrize("start", [1, 700, 50_000, 10**8])
@pytest.mark.parametrize("slope", [0.7, 1.0, 1.6])
def test_the_search_for_rows_finds_the_least(start: int, slope: float) -> None:
    """Of ratios that fall as they should, faster and slower, with no answer at all for few rows."""

    def typical(rows: int) -> float:
        return math.inf if rows < 900 else math.sqrt(1.0 + (30_000.0 / rows) ** slope)

    looked: list[int] = []
    least = math.ceil(30_000.0 / 3.0 ** (1.0 / slope))
    search = {"start": start, "none": 10, "most": 10**9, "precision": 0.005}
    found = least_rows(lambda rows: looked.append(rows) or typical(rows), 2.0, **search)
    assert found is not None
    assert least <= found <= math.ceil(1.005 * least)
    assert len(looked) <= 20
    assert least_rows(lambda rows: 1.2 + typical(rows), 2.0, **search) is None


@pytest.mark.parametrize("epsilon", [0.04, 0.2, 5.0])
def test_noise_that_is_alike_in_all_directions_needs_no_matrix(epsilon: float) -> None:
    """The short form of the outcome against sums over all cells, drowned directions included."""
    setting = quick().setting
    regression = setting.regression
    mechanism = setting.calibrated(MECHANISMS["gaussian"](), Guarantee(epsilon, 1e-6))
    law = mechanism.expected(20_000 * regression.values / setting.unit)
    cells = law.cell_variances(regression.values) * setting.unit**2 / 20_000**2
    shares = cells[0, 1] / regression.spectrum**2
    found = setting.outcome(mechanism, 20_000)
    held = regression.spectrum * np.sqrt(np.maximum(shares / DROWNED, 1.0))
    assert (held > regression.spectrum).any() == (epsilon == 0.04)
    squares = (
        1.0
        + found.inflation
        * regression.noise(cells, held)
        * (20_000 - len(regression.spectrum))
        / regression.variance
    )
    assert found.ratios == pytest.approx(np.sqrt(squares), rel=1e-9)


def test_a_plan_of_many_columns_does_little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: what grows with the third power of the columns, and points of privacy curves."""
    counted: dict[str, int] = {}

    def count(module: Any, name: str) -> None:
        original = getattr(module, name)

        def counting(*given: Any, **named: Any) -> Any:
            counted[name] = counted.get(name, 0) + 1
            return original(*given, **named)

        monkeypatch.setattr(module, name, counting)

    count(np.linalg, "eigh")
    count(np.linalg, "eigvalsh")
    count(wishart, "_log_sketch_added")
    count(spectral, "draw_direction")
    count(expected, "blurred")
    adaptive_ratio_at_most.cache_clear()
    schema = dg.Schema(*(dg.numeric(f"x{k}", 0, 1) for k in range(80)))
    options = {"epsilon": 1.0, "delta": 1e-6, "rows": dg.Rows(expected=50_000)}
    str(dg.plan(schema, simulate=False, **options))
    assert "draw_direction" not in counted
    assert counted["eigh"] + counted["eigvalsh"] <= 180
    assert counted["_log_sketch_added"] <= 1_500
    assert counted["blurred"] <= 12
    dg.plan(schema, **options)
    assert counted["draw_direction"] <= 5 * 81


def test_columns_that_vary_differently_are_blurred_differently() -> None:
    """However little they vary: what is simulated once is for columns that are alike."""
    spreads = {"age": (0.0, 4e-4), "bmi": (0.0, 1e-4), "charges": (1e-4, 1e-4)}
    asked = (SCHEMA, Guarantee(1.0, 1e-6), budget_split(SCHEMA, True))
    options = {"rows": 20_000.0, "adjacency": AddRemove()}
    together = expected.expected_adaptive(*asked, **options, spreads=spreads).blur
    for name, spread in spreads.items():
        alone = expected.expected_adaptive(*asked, **options, spreads={name: spread}).blur
        assert together[name] == alone[name]
    assert together["age"] < together["bmi"]


def test_learning_bounds_costs_the_root_of_what_it_leaves() -> None:
    one = quick(bounds_share=0.19).forecast("gaussian")
    extra = (one.se_ratio_after_learning_bounds**2 - 1.0) / (one.se_ratio**2 - 1.0)
    assert extra == pytest.approx(1.0 / 0.81, rel=0.02)


def test_advice_reaches_the_wanted_accuracy_with_the_least_epsilon() -> None:
    found = quick(target_se_ratio=1.2)
    assert found.advice is not None
    assert found.advice.epsilon is not None
    assert found.advice.mechanism == "adaptive"
    reached = quick(epsilon=found.advice.epsilon)
    assert reached.adaptive is not None
    assert reached.adaptive.se_ratio == pytest.approx(1.2, abs=0.01)
    assert reached.adaptive_is_best
    found = dg.plan(
        SCHEMA,
        epsilon=1.0,
        delta=1e-6,
        rows=dg.Rows(expected=20_000),
        adaptive=False,
        mechanisms=ADDITIVE,
        target_se_ratio=1.2,
    )
    assert found.advice is not None
    assert found.advice.epsilon is not None
    best = min(quick(epsilon=found.advice.epsilon).forecasts, key=lambda f: f.se_ratio)
    assert best.se_ratio == pytest.approx(1.2, abs=0.01)
    assert best.mechanism == found.advice.mechanism
    assert quick(rows=40, target_se_ratio=1.0001).advice.epsilon is None


@pytest.mark.parametrize("rows", [1_000, 4_000, 20_000])
def test_an_adaptive_release_gives_what_was_forecast(rows: int) -> None:
    """Normal columns that go together as assumed, under bounds nine deviations away."""
    names = [f"x{i}" for i in range(5)]
    declared = dg.Schema(*(dg.numeric(name, -9, 9) for name in names), dg.numeric("y", -40, 40))
    asked: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
    found = dg.plan(
        declared,
        rows=dg.Rows(expected=rows),
        assume=Assumption(spread=1 / 9),
        mechanisms=["gaussian"],
        simulate=False,
        **asked,
    )
    assert found.adaptive is not None
    generator = np.random.default_rng(rows)
    common = generator.normal(size=(rows, 1))
    x = np.sqrt(0.8) * generator.normal(size=(rows, 5)) + np.sqrt(0.2) * common
    signal = x.sum(axis=1)
    y = signal + generator.normal(size=rows) * signal.std()
    table = {name: x[:, i] for i, name in enumerate(names)} | {"y": y}
    design = np.column_stack([np.ones(rows), x])
    left = y - design @ np.linalg.lstsq(design, y)[0]
    least = np.sqrt(np.diagonal(np.linalg.inv(design.T @ design))[1:] * (left @ left) / (rows - 6))
    ratios = []
    for seed in range(9):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DpgramWarning)
            (release,) = publish_with(table, declared, entropy=SeededEntropy(seed), progress=False, **asked)
            errors = release.regress("y").bse
        ratios += [errors[name] / own for name, own in zip(names, least, strict=True)]
    assert np.median(ratios) == pytest.approx(found.adaptive.se_ratio, rel=0.25)


def test_it_says_plainly_what_will_not_work() -> None:
    found = quick(rows=300, epsilon=0.1)
    assert not found.works
    assert found.recommended is None
    assert "This will not work" in str(found)
    assert all(one.verdict == "will not work" for one in found.forecasts)
    assert found.to_json()["forecasts"][0]["se_ratio"] is None


def test_every_mechanism_has_a_forecast_or_a_reason() -> None:
    from dpgram.mechanisms import MECHANISMS

    found = plan(SCHEMA, rows=50_000, epsilon=1.0, delta=1e-6, simulate=False)
    assert {one.mechanism for one in found.forecasts} == set(MECHANISMS)
    assert not found.left_out
    best = found.recommended
    assert best is not None
    assert best.se_ratio == min(one.se_ratio for one in found.forecasts)
    pure = quick(delta=0.0)
    assert "gaussian" in pure.left_out
    assert pure.recommended is not None
    assert pure.recommended.delta == 0.0


def test_only_semidefinite_mechanisms_when_asked() -> None:
    found = plan(
        SCHEMA,
        rows=50_000,
        epsilon=1.0,
        delta=1e-6,
        mechanisms=Auto(semidefinite=True),
        simulate=False,
    )
    assert {one.mechanism for one in found.forecasts} == {n for n, k in MECHANISMS.items() if k.semidefinite}
    assert found.semidefinite


def test_a_short_simulation_agrees_with_the_closed_form() -> None:
    names = ["eigenvectors-zcdp", "inverse-noise"]
    given = {"rows": 400_000, "epsilon": 10.0, "delta": 1e-6, "mechanisms": names}
    closed, simulated = (plan(SCHEMA, simulate=s, **given) for s in (False, True))
    for name in names:
        assert simulated.forecast(name).simulated
        assert not closed.forecast(name).simulated
        ratio = simulated.forecast(name).se_ratio / closed.forecast(name).se_ratio
        assert 0.75 < ratio < 1.33


def test_a_plan_from_a_similar_release_uses_its_moments() -> None:
    regression = quick(r_squared=0.2, correlation=0.5).setting.regression
    found = quick(like=regression.second)
    np.testing.assert_allclose(
        list(found.forecasts[0].se_ratios.values()),
        list(quick(r_squared=0.2, correlation=0.5).forecasts[0].se_ratios.values()),
    )
    assert "similar table" in str(found)
    with pytest.raises(AnalysisError, match="encoded column"):
        quick(like=np.eye(3))


def test_columns_without_bounds_are_planned_for() -> None:
    schema = dg.Schema(dg.numeric("income"), dg.numeric("y", 0, 1))
    found = plan(schema, rows=5000, epsilon=1.0, delta=1e-6, mechanisms=["gaussian"])
    assert found.bounds_unknown == ("income",)
    assert "income must be learnt" in str(found)


def test_dependent_features_are_refused() -> None:
    with pytest.raises(AnalysisError, match="dependent"):
        AssumedRegression.of(dg.Schema(dg.numeric("x", 0, 1), dg.numeric("y", 0, 1)), np.ones((3, 3)), "y")


@pytest.mark.parametrize(
    "wrong",
    [
        {"r_squared": 1.0},
        {"correlation": -0.9},
        {"correlation": 1.5},
        {"spread": 2.0},
        {"spread": {"agee": 0.2}},
        {"spread": {"smoker": [0.5]}},
        {"spread": {"age^P2": 0.5}},
        {"mechanisms": ["magic"]},
        {"target_se_ratio": 0.9},
        {"target_se_ratio": float("inf")},
        {"bounds_share": 1.0},
        {"target": "nobody"},
        {"rows": 0},
        {"epsilon": -1.0},
    ],
)
def test_impossible_assumptions_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(DpgramError) as caught:
        quick(**wrong)
    assert caught.value.what


class TestCommand:
    def schema(self, folder: Path) -> Path:
        SCHEMA.to_file(folder / "s.toml")
        return folder / "s.toml"

    def test_json_text_and_figure(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        pytest.importorskip("matplotlib", reason="figures need the extra `plot`")
        picture = tmp_path / "plan.png"
        words = ["plan", "-s", str(self.schema(tmp_path)), "--rows", "20000", "--epsilon", "1"]
        words += ["--delta", "1e-6", "--mechanism", "gaussian", "--mechanism", "laplace", "--spread", "0.3"]
        words += ["--spread", "smoker=0.7/0.3", "--target-se-ratio", "1.2", "--quick"]
        assert run([*words, "--figure", str(picture), "--json"]) == 0
        form = json.loads(capsys.readouterr().out)
        assert form["recommended"] == "gaussian"
        assert form["advice"]["epsilon"] > 0
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert run(words) == 0
        text = capsys.readouterr().out
        assert form["adaptive_is_best"]
        assert "Recommended: the default, an adaptive release, standard errors about" in " ".join(
            text.split()
        )
        assert "For a ratio of 1.2" in text
        assert run([*words, "--figure", str(picture)]) == 2

    def test_parameters_are_told_as_flags(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        dg.Schema(dg.numeric("age", 18, 90), dg.boolean("smoker")).to_file(tmp_path / "s.toml")
        words = ["plan", "-s", str(tmp_path / "s.toml"), "--rows", "2000", "--epsilon", "1", "--quick"]
        assert run([*words, "--delta", "1e-6"]) == 0
        assert "Recommended: one plain matrix (--no-adaptive) with" in capsys.readouterr().out

    def test_a_spread_that_is_no_number(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        words = ["plan", "-s", str(self.schema(tmp_path)), "--rows", "200", "--epsilon", "1", "--delta", "0"]
        assert run([*words, "--spread", "age=wide"]) == 2
        assert "spread" in capsys.readouterr().err


def test_a_plan_takes_the_objects_that_publish_takes() -> None:
    given: dict[str, Any] = {"rows": 50_000, "epsilon": 1.0, "delta": 1e-6, "simulate": False}
    few, many = (
        plan(SCHEMA, mechanisms=[Sketch(degrees=degrees)], **given).forecast("sketch")
        for degrees in (200, 20_000_000)
    )
    assert few.se_ratio > 1.5 * many.se_ratio, "a sketch of few rows errs by itself"
    narrow = plan(SCHEMA, mechanisms=[Eigenvectors(rank=SCHEMA.width)], **given)
    assert narrow.forecast("eigenvectors").se_ratio_with_half_the_columns is not None


@pytest.mark.parametrize(
    "wrong", [["auto"], "gaussian", [], ["sketch", Sketch(degrees=5)], Sketch()], ids=str
)
def test_lists_of_mechanisms_that_make_no_plan(wrong: Any) -> None:
    with pytest.raises(AnalysisError, match="each of them once"):
        plan(SCHEMA, rows=5000, epsilon=1.0, delta=1e-6, mechanisms=wrong)


class TestLedger:
    """A plan recommends nothing that its ledger would refuse, nor what it would charge far too much for."""

    SCHEMA = dg.Schema(dg.numeric("x", -1, 1), dg.numeric("y", 0, 10))

    def plan(self, ledger: object, **more: Any) -> dg.Plan:
        asked = ["gaussian", "matrix-laplace"]
        return dg.plan(
            self.SCHEMA,
            epsilon=1,
            delta=1e-6,
            rows=dg.Rows(expected=20_000),
            mechanisms=asked,
            ledger=ledger,
            **more,
        )

    @pytest.mark.filterwarnings("ignore:epsilon = 20 :dpgram.errors.DpgramWarning")
    @pytest.mark.parametrize(("total", "why"), [(2.0, "would take"), (20.0, "times as much for it as for")])
    def test_what_is_refused_or_dear_is_left_out(self, tmp_path: Path, total: float, why: str) -> None:
        assert self.plan(None).recommended.mechanism == "matrix-laplace"
        ledger = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=total, delta=1e-6)
        found = self.plan(ledger)
        assert [one.mechanism for one in found.forecasts] == ["gaussian"]
        assert why in found.left_out["matrix-laplace"]
        assert ledger.entries == 0

    def test_nothing_fits(self, tmp_path: Path) -> None:
        dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=0.1, delta=1e-6)
        found = self.plan(tmp_path / "a.ledger", target_se_ratio=1.1)
        assert found.recommended is None
        assert set(found.left_out) == {"gaussian", "matrix-laplace"}
        assert found.advice is not None
        assert found.advice.refused
        assert "more than the ledger has left" in str(found)

    def test_it_fits_a_terminal(self) -> None:
        found = dg.plan(self.SCHEMA, epsilon=1, delta=1e-6, rows=dg.Rows(expected=20_000), simulate=False)
        assert max(map(len, str(found).splitlines())) <= 80
