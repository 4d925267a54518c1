"""The forecast of declared models: beside what releases gave, and what makes it better or worse."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit

import dpgram as dg
from dpgram.core.noise import SeededEntropy
from dpgram.engines import LocalEngine
from dpgram.errors import GuaranteeError, SchemaError
from dpgram.planning import Plan
from dpgram.publishing import publish_with

SCHEMA = dg.Schema(dg.numeric("x", -4, 4), dg.numeric("z", -4, 4), dg.numeric("y", -12, 12), dg.boolean("t"))
MODELS = (dg.linear("y", ["x", "z"], share=0.2), dg.logistic("t", ["x", "z"], share=0.2))


def planned(epsilon: float = 1.0, rows: int = 20_000, models: tuple[dg.models.Model, ...] = MODELS) -> Plan:
    return dg.plan(
        SCHEMA,
        epsilon=epsilon,
        delta=1e-6,
        rows=dg.Rows(expected=rows),
        mechanisms=["gaussian"],
        models=models,
        simulate=False,
    )


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_it_is_what_a_release_gives(epsilon: float) -> None:
    """Within a fifth of the errors of one release: these vary little from one draw to the next."""
    rows = 20_000
    draw = np.random.default_rng(1)
    x = draw.normal(size=(rows, 2))
    table = {
        "x": x[:, 0],
        "z": x[:, 1],
        "y": x @ [1.0, -0.5] + draw.normal(size=rows),
        "t": draw.random(rows) < expit(x @ [0.4, -0.3]),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (release,) = publish_with(
            table,
            SCHEMA,
            epsilon=epsilon,
            delta=1e-6,
            models=MODELS,
            entropy=SeededEntropy(5),
            engine=LocalEngine(threads=1),
            progress=False,
        )
    linear, logit = planned(epsilon).models
    error = release.regress("y", ["x", "z"]).inference().std_errors[1]
    assert linear.se_ratio == pytest.approx(error * np.sqrt(rows), rel=0.2)
    chance = expit(x @ [0.4, -0.3])
    without = 1.0 / np.sqrt(np.sum(chance * (1.0 - chance) * x[:, 0] ** 2))
    assert logit.se_ratio == pytest.approx(
        release.regress("t", family="logistic").bse["x"] / without, rel=0.2
    )


def test_more_rows_and_a_larger_epsilon_help() -> None:
    for now, more in ((planned(), planned(epsilon=2.0)), (planned(), planned(rows=80_000))):
        for one, other in zip(now.models, more.models, strict=True):
            assert one.se_ratio > other.se_ratio > 1.0
            assert one.privacy > other.privacy


def test_few_rows_hide_a_logit() -> None:
    found = planned(rows=30)
    assert not found.models[1].works
    assert "noise will hide it" in str(found)
    assert found.to_json()["models"][1]["se_ratio"] is None


def test_the_matrix_has_what_models_leave() -> None:
    alone, beside = planned(models=()).adaptive, planned().adaptive
    assert alone is not None
    assert beside is not None
    assert beside.sigma > alone.sigma


def test_it_is_told_in_words() -> None:
    assert "declared: linear of y, 20.0% of μ², 1 Newton step: SE ×" in " ".join(str(planned()).split())


def test_what_publish_refuses_is_refused() -> None:
    with pytest.raises(SchemaError, match="more than two values"):
        planned(models=(dg.logistic("y"),))
    with pytest.raises(GuaranteeError, match="declared models"):
        planned(models=(dg.linear("y", share=0.5),))


def test_nothing_is_forecast_beside_one_plain_matrix_nor_recommended_that_publish_refuses() -> None:
    for options in ({"adaptive": False}, {"rows": dg.Rows(expected=20_000, radius=1.0)}):
        asked = {"epsilon": 1.0, "delta": 1e-6, "rows": dg.Rows(expected=20_000), "models": MODELS, **options}
        found = dg.plan(SCHEMA, simulate=False, target_se_ratio=2.0, **asked)
        assert [(each.se_ratio, each.privacy, each.works) for each in found.models] == [(None,) * 3] * 2
        assert "not forecast beside one plain matrix" in " ".join(str(found).split())
        assert [each.mechanism for each in found.forecasts] == ["gaussian"]
        assert "models cannot be combined" in found.left_out["matrix-laplace"]
        assert found.recommended is not None
        assert found.advice is not None
        assert found.advice.mechanism in ("gaussian", "adaptive")
