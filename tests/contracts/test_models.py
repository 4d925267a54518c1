"""Declared models: rows that stay bounded, prices that add up, directions from what is published alone."""

from __future__ import annotations

import contextlib
import math
import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from assurance.adaptive_audit import MODEL_SETTINGS, PLAIN_SETTINGS, Setting, audited, told
from assurance.broken_models import LINEAR, SCHEMA, STEP, unexplained
from scipy.special import expit, ndtr
from scipy.stats import poisson

import dpgram as dg
from dpgram.core.noise import SeededEntropy
from dpgram.core.units import PolicyCounts
from dpgram.document.fields import MeasuredStep, UnitRule, UnmeasuredModel
from dpgram.document.measurements import measured_price
from dpgram.engines import LocalEngine
from dpgram.engines.passes import Failed, Pass
from dpgram.errors import (
    AnalysisError,
    DpgramError,
    DpgramWarning,
    GuaranteeError,
    OptionsError,
    ReleaseError,
    SchemaError,
)
from dpgram.explorer.facts import page_facts
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.publishing import publish_with
from dpgram.publishing._adaptive_prices import calibrate_adaptive
from dpgram.publishing.measurements.models import Step
from dpgram.publishing.request import requested
from dpgram.rows.encoder import EncodedChunk
from dpgram.rows.rules import RowRules
from dpgram.sums._curves import KEPT, curved, limited_expectation, residual_and_root, rising
from dpgram.sums.models import LONGEST, check_direction

ROWS = 4_000


def schema(**more: Any) -> dg.Schema:
    return dg.Schema(
        dg.numeric("x", 0, 100),
        dg.numeric("y", -50, 50),
        dg.boolean("b"),
        dg.categorical("g", ["r", "s", "t"]),
        dg.numeric("k", 0, 40),
        **more,
    )


def table(rows: int = ROWS, seed: int = 0) -> pa.Table:
    generator = np.random.default_rng(seed)
    x = generator.normal(30, 5, rows)
    return pa.table(
        {
            "x": x,
            "y": 0.5 * (x - 30) + generator.normal(0, 2, rows),
            "b": generator.random(rows) < expit(0.2 * (x - 32)),
            "g": generator.choice(["r", "s", "t"], rows, p=[0.5, 0.3, 0.2]),
            "k": generator.poisson(np.exp(0.5 + 0.05 * (x - 30))),
            "id": generator.integers(0, rows // 3, rows),
            "w": generator.uniform(0.5, 4.0, rows),
        }
    )


def release(models: Any, *, data: pa.Table | None = None, seed: int = 1, **options: Any) -> dg.Release:
    options = {"epsilon": 4.0, "delta": 1e-6, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        (found,) = publish_with(
            table() if data is None else data,
            options.pop("schema", schema()),
            models=models,
            entropy=SeededEntropy(seed),
            engine=LocalEngine(threads=1),
            progress=False,
            **options,
        )
    return found


EVERY = (
    dg.linear("y", share=0.08),
    dg.logistic("b", ["x", "g"], share=0.1),
    dg.probit("g=s", ["x", "y"], share=0.1, steps=2),
    dg.poisson("k", ["x", "g"], share=0.1),
)


class TestRows:
    def test_long_directions_are_refused(self) -> None:
        check_direction((LONGEST, 0), 2)
        for wrong in ((LONGEST, 1), (1,), (1, 2, 3)):
            with pytest.raises(DpgramError):
                check_direction(wrong, 2)

    @pytest.mark.parametrize(("curve", "library"), [("logistic", expit), ("probit", ndtr)])
    def test_curves_are_those_of_the_library_and_stay_within_bounds(self, curve: Any, library: Any) -> None:
        index = np.concatenate([np.linspace(-12, 12, 4001), [-1e300, 1e300, np.inf, -np.inf, 0.0, -0.0]])
        chance, root = curved(curve, index)
        tame = np.clip(index, -40.0, 40.0)
        np.testing.assert_allclose(chance, library(index), rtol=0, atol=1e-7)
        slope = expit(index) * expit(-index) * 4.0 if curve == "logistic" else np.exp(-0.5 * tame**2)
        np.testing.assert_allclose(root**2, slope, rtol=0, atol=1e-7)
        for found in (chance, root):
            assert (found >= 0.0).all()
            assert (found <= 1.0).all()

    @pytest.mark.parametrize("limit", [0.3, 4.0, 30.0])
    def test_residuals_and_weights_stay_within_bounds(self, limit: float) -> None:
        generator = np.random.default_rng(2)
        odd = [-1e300, 1e300, np.inf, -np.inf, np.nan, 0.0]
        index = np.concatenate([generator.normal(0, 30, 4_000), odd])
        truth = np.concatenate([generator.integers(0, 500, 4_000).astype(float), np.zeros(len(odd))])
        for curve in ("linear", "poisson"):
            gap, root = residual_and_root(curve, index, truth, limit, 2.0)
            assert (np.abs(gap) <= 1.0).all()
            assert ((root >= 0.0) & (root <= 1.0)).all()

    def test_counts_are_limited_and_their_expectation_taken_off(self) -> None:
        """E r = 0 under Poisson's law, wherever the limit bites; without it, it would not be."""
        mean, limit, cap = np.array([0.02, 0.3, 1.0, 4.0, 12.0]), 2.0, 3.0
        counts = np.arange(400.0)
        for own in mean:
            law = poisson.pmf(counts, own)
            index = np.full(len(counts), np.log(own))
            gap, root = residual_and_root("poisson", index, counts, limit, cap)
            assert abs(float(law @ gap)) < 1e-9
            assert root[0] ** 2 == pytest.approx(min(own, cap) / cap, abs=1e-12)
            np.testing.assert_allclose(rising(index), own, rtol=1e-12)
        unit = np.where(mean > cap, cap / mean, 1.0) / limit
        wanted = [
            float(poisson.pmf(counts, own) @ np.clip((counts - own) * each, -KEPT, KEPT))
            for own, each in zip(mean, unit, strict=True)
        ]
        np.testing.assert_allclose(limited_expectation(mean, unit), wanted, atol=1e-10)
        assert min(wanted) < -0.01

    def test_what_is_not_added_up_is_nearly_nothing(self) -> None:
        """Beyond 48 counts, where the limit is six deviations away."""
        counts = np.arange(4_000.0)
        for own in (40.0, 60.0, 400.0):
            limit = 6.0 * np.sqrt(own)
            law = poisson.pmf(counts, own)
            found = float(law @ np.clip((counts - own) / limit, -KEPT, KEPT))
            assert abs(found) < 1e-7

    def test_no_score_of_a_spread_is_longer_than_the_lattice_allows(self) -> None:
        generator = np.random.default_rng(4)
        scores = np.rint(generator.normal(size=(2, 5_000)) * 2.0 ** generator.uniform(0, 29, 5_000))
        a = LINEAR.spread_rows(scores)
        assert (np.rint(a) == a).all()
        squares = (a.astype(np.int64) ** 2).sum(axis=0)
        assert squares.max() <= ROW_NORM_SQUARED
        assert squares.max() > 0.999 * ROW_NORM_SQUARED
        short = np.linalg.norm(scores, axis=0) < 0.05 * 2**30
        np.testing.assert_allclose(a[:, short], scores[:, short] / (2**15 * 0.1), atol=1.0)

    @pytest.mark.parametrize("size", [1, 2, 7, 200])
    @pytest.mark.parametrize("kind", ["units", "rows"])
    @pytest.mark.parametrize("step", [STEP, LINEAR], ids=["logistic", "linear"])
    def test_scores_and_hessians_of_units_are_bounded(self, size: int, kind: Any, step: Any) -> None:
        """All rows of one person, far out and all on the same side; both forms of counting."""
        rules = RowRules(schema=SCHEMA, unit="id", unit_rule=UnitRule(counts=kind, rows_at_most=200))
        largest = 0.0
        corners = ((100.0, 50.0, True), (0.0, -50.0, True), (100.0, -50.0, False), (52.0, 1.0, True))
        for x, y, truth in corners:
            rows = pa.record_batch(
                {"x": [x] * size, "y": [y] * size, "b": [truth] * size, "id": ["p"] * size}
            )
            work = Pass(rules=rules, statistics=(step,))
            sums = work.join(work.split([(0, rows)], 1))
            assert not isinstance(sums, Failed)
            found: Any = sums[0]
            score = math.sqrt(sum(int(cell) ** 2 for cell in found.score))
            assert score <= ROW_NORM_SQUARED
            assert int(np.trace(found.matrix)) <= ROW_NORM_SQUARED
            assert int(np.trace(found.spread[:, : len(found.spread)])) <= ROW_NORM_SQUARED
            largest = max(largest, score / ROW_NORM_SQUARED)
        assert kind == "rows" or largest > 0.3

    def test_a_row_whose_target_is_unknown_tells_nothing(self) -> None:
        lines = np.full((4, 2), 1000.0)
        chunk = EncodedChunk(lines=lines, counts=PolicyCounts(), lengths=np.ones(2))
        ones = np.ones(2)
        scores, bent = STEP.lattice_rows(chunk, np.array([np.nan, 1.0]), ones, ones)
        assert not scores[:, 0].any()
        assert not bent[:, 0].any()
        assert scores[:, 1].any()


class TestPrices:
    @pytest.mark.parametrize("adaptive", [True, False])
    @pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
    @pytest.mark.parametrize("models", [EVERY, EVERY[:1], (dg.logistic("b", share=0.4, steps=5),)])
    def test_everything_together_costs_what_was_asked_for(
        self, adjacency: Any, models: Any, adaptive: bool
    ) -> None:
        found = release(models, adjacency=adjacency, adaptive=adaptive)
        assert (found.coordinates is not None) == adaptive
        changed = 1 if adjacency == "add-remove" else 2
        sigma = found.noise.sigma
        whole = measured_price(found, changed) + changed * (ROW_NORM_SQUARED / Fraction(sigma)) ** 2
        promised = Fraction(found.guarantee.mu or 0.0) ** 2
        assert whole <= promised
        assert whole > promised * (1 - Fraction(1, 10**9))

    def test_a_model_gets_its_share(self) -> None:
        found = release(EVERY)
        own = [each for each in found.measured if isinstance(each, MeasuredStep)]
        whole = Fraction(found.guarantee.mu or 0.0) ** 2
        for model in EVERY:
            steps = [each for each in own if each.target == model.target]
            price = sum((_price(each) for each in steps), Fraction(0))
            assert float(price / whole) == pytest.approx(model.share, rel=1e-9)
            assert sum(each.share for each in steps) == pytest.approx(model.share)

    def test_a_file_that_promises_more_is_refused(self) -> None:
        found = release(EVERY[:2])
        place, step = next(
            (i, each) for i, each in enumerate(found.measured) if isinstance(each, MeasuredStep)
        )
        assert step.spread is not None
        halved = msgspec.structs.replace(step.noise, sigma=step.noise.sigma / 2)
        quieter = msgspec.structs.replace(step.spread.noise, sigma=step.spread.noise.sigma / 2)
        for change in (
            {"noise": halved},
            {"score_sigma": step.score_sigma / 2},
            {"spread": msgspec.structs.replace(step.spread, noise=quieter)},
        ):
            measured = list(found.measured)
            measured[place] = msgspec.structs.replace(step, **change)
            with pytest.raises(ReleaseError, match="guarantee"):
                msgspec.structs.replace(found, measurements=tuple(measured)).__post_init__()

    def test_models_that_cannot_be_paid_are_refused(self) -> None:
        asked = {"epsilon": 1.0, "delta": 1e-6}
        with pytest.raises(GuaranteeError, match="declared models"):
            requested(schema(), models=[dg.linear("y", share=0.5)], **asked)
        request = requested(schema(), models=[dg.linear("y", share=0.3)], **asked)
        assert calibrate_adaptive(request, "gaussian").matrices_rest > 0


def _price(each: Any) -> Fraction:
    sigmas = [each.noise.sigma, each.score_sigma]
    sigmas += [] if each.spread is None else [each.spread.noise.sigma]
    return sum(((ROW_NORM_SQUARED / Fraction(sigma)) ** 2 for sigma in sigmas), Fraction(0))


class TestDeclarations:
    @pytest.mark.parametrize(
        ("model", "said"),
        [
            (lambda: dg.logistic("y"), "more than two values"),
            (lambda: dg.logistic("g"), "cannot be a target as a whole"),
            (lambda: dg.linear("z"), "no column 'z'"),
            (lambda: dg.linear("y", ["x", "z"]), "no column 'z'"),
            (lambda: dg.linear("y", ["x", "x"]), "twice"),
            (lambda: dg.linear("y", ["y"]), "belongs to the target"),
            (lambda: dg.linear("y", []), "no features"),
            (lambda: dg.linear("o"), "no bounds"),
            (lambda: dg.logistic("b", ["o"]), "no bounds"),
            (lambda: dg.logistic("b", ["c"]), "no levels"),
            (lambda: dg.poisson("b"), "not a column of counts"),
            (lambda: dg.poisson("y"), "not a column of counts"),
            (lambda: dg.linear("x*y"), "computed from other columns"),
        ],
    )
    def test_what_makes_no_sense_is_refused_before_anything_is_read(self, model: Any, said: str) -> None:
        open_columns = [dg.numeric("o"), dg.categorical("c")] if said in ("no bounds", "no levels") else []
        odd = dg.Schema(*schema().columns, dg.product("x", "y"), *open_columns)
        with pytest.raises(SchemaError, match=said):
            requested(odd, epsilon=1.0, delta=1e-6, models=[model()])

    @pytest.mark.parametrize(
        ("low", "high"), [(-1e51, 1e51), (0.0, 1e60), (0.0, 1e-49), (1e40, 2e40)], ids=str
    )
    @pytest.mark.parametrize("family", [dg.linear, dg.poisson])
    def test_targets_whose_step_no_file_could_hold_are_refused(
        self, tmp_path: Any, family: Any, low: float, high: float
    ) -> None:
        if family is dg.poisson and low < 0.0:
            low = 0.0
        ledger = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=2, delta=1e-5)
        data = {"x": [0.1, 0.2], "y": [low, high]}
        declared = dg.Schema(dg.numeric("x", -1, 1), dg.numeric("y", low, high))
        with pytest.raises(SchemaError, match="too far away or too close together"):
            dg.publish(data, declared, epsilon=1, delta=1e-6, models=[family("y")], ledger=ledger)
        assert ledger.left().share == 1.0

    @pytest.mark.parametrize("share", [0.0, 1.0, -0.1, True, "0.1", math.nan])
    def test_shares_are_parts(self, share: Any) -> None:
        with pytest.raises(GuaranteeError, match="share"):
            dg.linear("y", share=share)

    @pytest.mark.parametrize("steps", [0, 9, True, 1.5])
    def test_steps_are_few(self, steps: Any) -> None:
        with pytest.raises(GuaranteeError, match="steps"):
            dg.logistic("b", steps=steps)

    def test_shares_that_are_left_out_fit(self) -> None:
        one = requested(schema(), epsilon=1.0, delta=1e-6, models=[dg.linear("y")])
        assert [model.share for model in one.models] == [0.25]
        many = [
            dg.linear("y"),
            dg.linear("x"),
            dg.logistic("b"),
            dg.probit("b"),
            dg.logistic("g=r", share=0.1),
        ]
        shares = [model.share for model in requested(schema(), epsilon=1.0, delta=1e-6, models=many).models]
        assert sum(shares) == pytest.approx(0.4)
        assert shares[4] == 0.1
        assert shares[2] == pytest.approx(0.075)

    def test_they_fit_beside_bounds_and_levels_that_are_learnt(self) -> None:
        open_schema = dg.Schema(
            dg.numeric("x", 0, 100), dg.numeric("y", 0, 1), dg.numeric("z"), dg.categorical("g")
        )
        models = [dg.linear("y", ["x"]), dg.linear("x", ["y"])]
        found = requested(open_schema, epsilon=1.0, delta=1e-6, models=models)
        assert found.split.total == pytest.approx(0.8)
        assert found.models[0].share == pytest.approx(0.11)

    def test_a_name_for_a_list_is_refused(self) -> None:
        with pytest.raises(SchemaError, match="list of columns"):
            dg.linear("y", "x")

    def test_what_is_no_model_is_refused(self) -> None:
        for wrong in ("linear", [1], [dg.linear("y"), dg.linear("y")]):
            with pytest.raises(SchemaError):
                requested(schema(), epsilon=1.0, delta=1e-6, models=wrong)

    @pytest.mark.parametrize(
        "options",
        [
            {"delta": 0.0},
            {"mechanism": "matrix-laplace"},
            {"mechanism": "wishart"},
            {"adaptive": False, "mechanism": "matrix-laplace"},
            {
                "rows": dg.Rows(radius=1.0),
                "schema": dg.Schema(dg.numeric("x", 0, 100), dg.numeric("y", -50, 50), dg.categorical("g")),
            },
            {"rows": dg.Rows(by="g")},
            {"schema": schema(blocks=[["x", "y"], ["b", "g"]])},
        ],
    )
    def test_what_does_not_go_together_is_refused(self, options: dict[str, Any]) -> None:
        with pytest.raises(OptionsError):
            release([dg.linear("y", ["x"])], **options)

    def test_a_ledger_of_epsilon_alone_refuses_them(self, tmp_path: Any) -> None:
        ledger = dg.Ledger.create(tmp_path / "pure.ledger", name="pure", epsilon=3, delta=0.0)
        with pytest.raises(OptionsError):
            dg.publish(table(), schema(), epsilon=1, delta=1e-6, ledger=ledger, models=[dg.linear("y")])


class TestProgram:
    def test_coefficients_follow_from_what_is_published_alone(self) -> None:
        assert unexplained(release(EVERY)) == ()

    def test_a_plain_release_has_them_too(self) -> None:
        found = release(EVERY, adaptive=False, epsilon=20.0)
        assert found.coordinates is None
        assert len(found.models) == 4
        assert dg.Release.from_json(found.to_json()) == found
        slope = found.regress("y").inference()
        assert slope.robust
        assert slope.estimate[1] == pytest.approx(0.5, abs=0.05)
        assert found.regress("b", family="logistic").params["x"] == pytest.approx(0.2, abs=0.05)
        assert found.regress("k", family="poisson").params["x"] == pytest.approx(0.05, abs=0.02)

    def test_so_has_one_with_a_public_radius(self) -> None:
        found = release(EVERY[:1], rows=dg.Rows(radius=1.5))
        assert (found.radius, len(found.models)) == (1.5, 1)

    def test_what_came_before_is_what_it_would_be_without_their_share(self) -> None:
        """Models change prices, and nothing else of what is measured before them."""
        with_models, without = release(EVERY), release(())
        kinds = [type(each) for each in without.measured]
        assert [type(each) for each in with_models.measured][: len(kinds)] == kinds
        assert with_models.measured[0] == without.measured[0]

    @pytest.mark.parametrize(
        "rows",
        [dg.Rows(), dg.Rows(unit="id"), dg.Rows(unit="id", unit_rows=2), dg.Rows(missing="midpoint")],
    )
    def test_it_goes_with_every_rule_for_rows(self, rows: dg.Rows) -> None:
        found = release(EVERY, rows=rows)
        assert len(found.models) == 4
        assert dg.Release.from_json(found.to_json()) == found

    def test_survey_weights_weigh_scores_and_products(self) -> None:
        weighted = dg.Rows(weight=dg.numeric("w", 0, 4))
        found = release(EVERY[:2], rows=weighted, epsilon=20.0)
        assert found.regress("b", family="logistic").params["x"] == pytest.approx(0.2, abs=0.05)

    def test_few_rows_leave_the_models_out_and_the_matrix_gets_their_share(self) -> None:
        few = release(EVERY, data=table(30), epsilon=0.5)
        assert few.coordinates is None
        assert few.models == ()
        assert sum(isinstance(each, UnmeasuredModel) for each in few.measured) == 4
        assert dg.Release.from_json(few.to_json()) == few
        assert "poisson of k on x, g: noise hides what it begins with; the matrix has its share" in " ".join(
            str(few).split()
        )
        assert "not measured" in dict(page_facts(few)["facts"])
        with pytest.raises(AnalysisError, match="declared and not measured"):
            few.regress("b", family="logistic")
        promised = Fraction(few.guarantee.mu or 0.0) ** 2
        sigma = few.noise.sigma
        whole = measured_price(few, 1) + (ROW_NORM_SQUARED / Fraction(sigma)) ** 2
        assert promised * (1 - Fraction(1, 10**9)) < whole <= promised

    def test_where_noise_shows_after_the_matrix_their_share_is_unused(self) -> None:
        few = release(EVERY, data=table(30), epsilon=0.5, adaptive=False)
        shares = [each.share for each in few.measured if isinstance(each, UnmeasuredModel)]
        assert len(shares) == 4
        assert "noise hides what it begins with; its share is unused" in " ".join(str(few).split())
        own = (ROW_NORM_SQUARED / Fraction(few.noise.sigma)) ** 2
        assert float(own) == pytest.approx((1.0 - sum(shares)) * (few.guarantee.mu or 0.0) ** 2, rel=1e-6)

    @pytest.mark.parametrize("adaptive", [True, False])
    def test_a_ledger_pays_once(self, tmp_path: Any, adaptive: bool) -> None:
        ledger = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=2, delta=1e-6)
        found = dg.publish(
            table(), schema(), epsilon=1, delta=1e-6, ledger=ledger, models=EVERY, adaptive=adaptive
        )
        assert len(ledger.history()) == len(found.receipts) == 1
        paid = sum(Fraction(receipt.event.mu) ** 2 for receipt in found.receipts)
        assert float(paid) == pytest.approx((found.guarantee.mu or 0.0) ** 2, rel=1e-9)

    def test_batches_and_threads_do_not_matter(self) -> None:
        one = release(EVERY)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DpgramWarning)
            (other,) = publish_with(
                pa.Table.from_batches(table().to_batches(max_chunksize=117)),
                schema(),
                epsilon=4.0,
                delta=1e-6,
                models=EVERY,
                entropy=SeededEntropy(1),
                engine=LocalEngine(threads=2),
                progress=False,
            )
        assert other == one


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding the libraries whose threads to limit takes most of the time of so small a release."""
    monkeypatch.setattr("threadpoolctl.threadpool_limits", lambda **_: contextlib.nullcontext())


AUDITED = MODEL_SETTINGS | {f"{name}, plain matrix": one for name, one in PLAIN_SETTINGS.items()}
SHORT = ("a person of nine rows, replace-one", "a row, add-remove, plain matrix")


@pytest.mark.usefixtures("one_thread")
class TestAudit:
    """On neighbouring tables, row and person: what a release tells is at most what was paid for."""

    @pytest.mark.parametrize("setting", AUDITED.values(), ids=AUDITED)
    def test_in_every_release_the_stages_tell_no_more_than_was_paid_for(self, setting: Setting) -> None:
        largest, measured = 0.0, 0
        for seed in range(8):
            found = setting.publish(setting.tables[seed % 2], SeededEntropy(seed))
            measured += len(found.models)
            spent, promised = told(found, setting)
            assert spent <= promised * (1.0 + 1e-9)
            largest = max(largest, spent / promised)
        assert measured >= 8
        assert largest > 0.5

    @pytest.mark.parametrize(
        "name",
        [*SHORT, *(pytest.param(name, marks=pytest.mark.full) for name in AUDITED if name not in SHORT)],
    )
    def test_the_whole_path_keeps_its_promise(self, name: str) -> None:
        setting = AUDITED[name]
        assert audited(setting, runs=120, seed=1).passes(setting.curve)

    @pytest.mark.parametrize("name", ["a row, add-remove", "a row, add-remove, plain matrix"])
    def test_steps_with_too_little_noise_are_caught(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        honest = Step.draw

        def quieter(true: Any, noisy: Any) -> tuple[str, ...]:
            return tuple(str(int(a) + (int(b) - int(a)) // 300) for a, b in zip(true, noisy, strict=True))

        def weak(self: Step, exact: Any, entropy: Any) -> MeasuredStep:
            drawn = honest(self, exact, entropy)
            below = np.tril_indices(len(exact[0].matrix))
            spread = drawn.spread
            if spread is not None:
                cells = quieter(exact[0].spread[below], spread.cells)
                spread = msgspec.structs.replace(spread, cells=cells)
            return msgspec.structs.replace(
                drawn,
                score=quieter(exact[0].score, drawn.score),
                cells=quieter(exact[0].matrix[below], drawn.cells),
                spread=spread,
            )

        monkeypatch.setattr(Step, "draw", weak)
        setting = replace(AUDITED[name], epsilon=3.0)
        assert not audited(setting, runs=120, seed=2).passes(setting.curve)


class TestForged:
    """Whatever a file says that passes the checks on loading, an analysis answers or refuses."""

    @pytest.mark.parametrize(
        "change",
        [
            {"radius": 1e49},
            {"radius": 1e-49},
            {"size": 1e49},
            {"score": ("9" * 40,) * 4},
        ],
    )
    def test_steps(self, change: dict[str, Any]) -> None:
        found = release([dg.logistic("b", ["x", "g"], steps=1)])
        place, step = next((i, e) for i, e in enumerate(found.measured) if isinstance(e, MeasuredStep))
        if "score" in change:
            change = {"score": ("9" * 40,) * len(step.score)}
        measured = list(found.measured)
        measured[place] = msgspec.structs.replace(step, **change)
        forged = dg.Release.from_json(msgspec.structs.replace(found, measurements=tuple(measured)).to_json())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(DpgramError):
                forged.regress("b", family="logistic").summary()

    def test_linear_steps(self) -> None:
        found = release([dg.linear("y", ["x"])])
        place, own = next((i, e) for i, e in enumerate(found.measured) if isinstance(e, MeasuredStep))
        assert own.spread is not None
        huge = ("9" * 40,) * len(own.cells)
        for change in (
            {"cells": huge},
            {"spread": msgspec.structs.replace(own.spread, cells=huge)},
            {"limit": 1e49},
            {"radius": 1e-49},
            {"on": ("x", "g")},
            {"target": "x"},
            {"family": "poisson"},
        ):
            measured = list(found.measured)
            measured[place] = msgspec.structs.replace(own, **change)
            with contextlib.suppress(DpgramError):
                text = msgspec.structs.replace(found, measurements=tuple(measured)).to_json()
                forged = dg.Release.from_json(text)
                for target, on in (("y", ["x"]), ("y", ["g"]), ("x", ["y"])):
                    with contextlib.suppress(DpgramError):
                        forged.regress(target, on).summary()
                with contextlib.suppress(DpgramError):
                    forged.regress("y", ["x"], family="poisson").summary()
