"""Every mechanism, from rows to a loaded release to a regression."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.flat import publish

import dpgram as dg
from dpgram.core.noise import SeededEntropy, simulation
from dpgram.document.fields import AdjacencyName
from dpgram.errors import BudgetExceeded, MechanismError, ReleaseError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import (
    MECHANISMS,
    Deflation,
    Eigenvectors,
    EigenvectorsZcdp,
    Gaussian,
    InverseNoise,
    InverseWishart,
    InverseWishartAdaptive,
    Laplace,
    Mechanism,
    Sketch,
    SketchAdaptive,
    Wishart,
    choice,
)
from dpgram.mechanisms._wishart_family import WishartFamily
from dpgram.privacy.guarantee import GaussianDP, gdp_mu_at_most, rho_at_most

from .releases import content_of, sealed

ROWS = 20_000

PARAMETERS: dict[str, Mechanism] = {
    "inverse-noise": InverseNoise(ridge=2000.0),
    "inverse-wishart": InverseWishart(degrees=ROWS),
    "inverse-wishart-adaptive": InverseWishartAdaptive(degrees=ROWS),
    "sketch-adaptive": SketchAdaptive(degrees=10**7),
}
"""Of the others the name is enough."""


@pytest.fixture(scope="module")
def table() -> dict[str, np.ndarray]:
    draw = simulation(1)
    x, z = draw.uniform(-1.0, 1.0, (2, ROWS))
    return {"x": x, "z": z, "y": 0.5 * x - 0.25 * z + draw.uniform(-0.25, 0.25, ROWS)}


@pytest.fixture(scope="module")
def schema() -> dg.Schema:
    return dg.Schema(dg.numeric("x", -1, 1), dg.numeric("z", -1, 1), dg.numeric("y", -1, 1))


@pytest.mark.filterwarnings("ignore:.*:dpgram.DpgramWarning")
@pytest.mark.parametrize("name", MECHANISMS)
def test_from_rows_to_a_regression(
    name: str, table: dict[str, np.ndarray], schema: dg.Schema, tmp_path: Path
) -> None:
    release = publish(
        table,
        schema,
        epsilon=2.0,
        delta=1e-6,
        mechanism=PARAMETERS.get(name, name),
        entropy=SeededEntropy(3),
        adaptive=False,
    )
    assert release.mechanism.name == name
    assert release.guarantee.epsilon == 2.0
    assert (release.guarantee.delta == 0.0) == MECHANISMS[name].pure
    assert release.guarantee.numerical_delta == 0.0
    again = dg.load(release.save(tmp_path / "r.json"))
    assert again == release
    assert str(again)
    fit = again.regress("y", on=["x", "z"])
    coefficients = np.array([fit.fitted_params["x"], fit.fitted_params["z"]])
    # The noise of every mechanism is far below the signal at this size; deflation is the worst by far.
    tolerance = 0.3 if name == "deflation" else 0.05
    np.testing.assert_allclose(coefficients, [0.5, -0.25], atol=tolerance)


@pytest.mark.parametrize(
    "asked",
    [
        "inverse-noise",
        InverseNoise(ridge=1e-9),
        Eigenvectors(rank=9),
        "inverse-wishart",
        InverseWishart(degrees=2),
        Wishart(degrees=1),
        "gauss",
        Gaussian,
        None,
    ],
    ids=str,
)
def test_parameters_that_do_not_fit_are_refused(
    asked: Any, table: dict[str, np.ndarray], schema: dg.Schema
) -> None:
    with pytest.raises(MechanismError) as caught:
        publish(table, schema, epsilon=1.0, delta=1e-6, mechanism=asked, adaptive=False)
    assert caught.value.limit


@pytest.mark.parametrize("kind", [Sketch, SketchAdaptive, Wishart, InverseWishart, InverseWishartAdaptive])
@pytest.mark.parametrize("degrees", [0, -3, 2.5, True, "many", 10**13])
def test_degrees_are_whole_numbers_in_range(kind: Any, degrees: Any) -> None:
    with pytest.raises(MechanismError, match="whole number") as caught:
        kind(degrees=degrees)
    assert caught.value.limit
    assert caught.value.remedy


@pytest.mark.parametrize("kind", [Eigenvectors, EigenvectorsZcdp, Deflation])
@pytest.mark.parametrize("rank", [0, 1.0, False])
def test_ranks_are_whole_numbers(kind: Any, rank: Any) -> None:
    with pytest.raises(MechanismError, match="whole number"):
        kind(rank=rank)


@pytest.mark.parametrize("ridge", [0.0, -1.0, float("inf"), float("nan"), True, "1"])
def test_ridges_are_positive_numbers(ridge: Any) -> None:
    with pytest.raises(MechanismError, match="positive number"):
        InverseNoise(ridge=ridge)


@pytest.mark.parametrize(
    "asked",
    [Sketch(degrees=np.int64(400)), Eigenvectors(rank=np.int32(2)), InverseNoise(ridge=np.float32(2000))],
    ids=lambda asked: asked.name,
)
def test_numbers_of_numpy_are_plain_ones(
    asked: Mechanism, table: dict[str, np.ndarray], schema: dg.Schema, tmp_path: Path
) -> None:
    assert all(type(value) in (int, float) for value in asked.parameters.values())
    ledger = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=10, delta=1e-5, delta_reserved=5e-6)
    assert dg.publish(table, schema, epsilon=1.0, delta=1e-6, mechanism=asked, ledger=ledger, adaptive=False)


def test_a_name_stands_for_the_defaults(table: dict[str, np.ndarray], schema: dg.Schema) -> None:
    asked: list[Any] = ["sketch", dg.mechanisms.Sketch(), dg.mechanisms.Sketch(degrees=400)]
    named, plain, other = (
        publish(
            table, schema, epsilon=2.0, delta=1e-6, mechanism=one, entropy=SeededEntropy(3), adaptive=False
        )
        for one in asked
    )
    assert named == plain
    assert other.mechanism.parameters["rows"] == 400
    assert named.mechanism.parameters["rows"] != 400


def test_a_ridge_is_in_encoded_units(table: dict[str, np.ndarray], schema: dg.Schema) -> None:
    """Whatever the row radius is: here 2, the length of a row of four cells of size 1."""
    release = publish(
        table,
        schema,
        epsilon=2.0,
        delta=1e-6,
        mechanism=InverseNoise(ridge=2000.0),
        entropy=SeededEntropy(3),
        adaptive=False,
    )
    assert release.radius == 2.0
    assert release.mechanism.parameters["ridge"] == 2000.0 * ROW_NORM_SQUARED / 4.0


def test_what_nobody_could_load_is_not_published(table: dict[str, np.ndarray], schema: dg.Schema) -> None:
    listed = cast("dict[str, type[Mechanism]]", MECHANISMS)
    before = dict(listed)
    del listed["laplace"]
    try:
        with pytest.raises(MechanismError, match="unknown mechanism"):
            publish(table, schema, epsilon=1.0, delta=0.0, mechanism=Laplace(), adaptive=False)
    finally:  # in its old place too: pages list mechanisms in this order
        listed.clear()
        listed.update(before)


@pytest.mark.parametrize("name", ["sketch", "inverse-wishart", "inverse-noise", "eigenvectors", "deflation"])
def test_draws_in_floats_have_a_public_limit_of_rows(
    name: str,
    table: dict[str, np.ndarray],
    schema: dg.Schema,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MECHANISMS[name], "rows_at_most", ROWS - 1)
    ledger = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=3, delta=1e-5, delta_reserved=5e-6)
    with pytest.raises(MechanismError, match="fewer rows"):
        publish(
            table,
            schema,
            epsilon=0.1,
            delta=1e-6,
            mechanism=PARAMETERS.get(name, name),
            ledger=ledger,
            adaptive=False,
        )
    assert not ledger.history()


def test_inverse_wishart_takes_its_degrees_from_public_rows(
    table: dict[str, np.ndarray], schema: dg.Schema
) -> None:
    release = publish(
        table,
        schema,
        epsilon=1.0,
        delta=1e-6,
        mechanism="inverse-wishart",
        adjacency="replace-one",
        rows=ROWS,
        entropy=SeededEntropy(1),
        adaptive=False,
    )
    assert release.mechanism.parameters["degrees"] == ROWS + schema.width


@pytest.mark.parametrize(("name", "fits"), [("eigenvectors", True), ("deflation", True), ("wishart", False)])
def test_a_ledger_without_a_reserve_takes_what_is_pure(
    name: str, fits: bool, table: dict[str, np.ndarray], schema: dg.Schema, tmp_path: Path
) -> None:
    """Drawn exactly, eigenvector sampling is pure to the letter; additive Wishart is (ε, δ) only."""
    ledger = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=3, delta=1e-6)
    delta = 0.0 if fits else 1e-8
    with nullcontext() if fits else pytest.raises(BudgetExceeded, match="reserve"):
        publish(table, schema, epsilon=0.1, delta=delta, mechanism=name, ledger=ledger, adaptive=False)
    assert len(ledger.history()) == fits


@pytest.mark.filterwarnings("ignore:.*:dpgram.DpgramWarning")
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_promise_smaller_than_its_noise_is_refused(name: str, relation: AdjacencyName) -> None:
    """The noise of ε = 8 under a stated ε of less, in a file whose digest and parameters agree with it."""
    draw = simulation(2)
    table = {"x": draw.uniform(-1.0, 1.0, 300), "y": draw.uniform(-1.0, 1.0, 300)}
    schema = dg.Schema(dg.numeric("x", -1, 1), dg.numeric("y", -1, 1))
    kind = MECHANISMS[name]
    few: dict[str, Any] = {"degrees": 1000} if issubclass(kind, WishartFamily) else {}
    release = publish(
        table,
        schema,
        epsilon=8.0,
        delta=0.0 if kind.pure else 1e-6,
        mechanism=PARAMETERS.get(name) or kind(**few),
        adjacency=relation,
        rows=300,
        entropy=SeededEntropy(3),
        adaptive=False,
    )
    assert dg.Release.from_json(release.to_json()) == release
    for stated in (7.9, 0.1):
        with pytest.raises(ReleaseError, match="contradict each other"):
            dg.Release.from_json(promising(release, stated))


def promising(release: dg.Release, epsilon: float) -> bytes:
    """The same noise with a stated ε, and whatever else a forger would have to change."""
    content = content_of(release)
    told, parameters = content["guarantee"], content["mechanism"]["parameters"]
    told["epsilon"] = epsilon
    if told["mu"] is not None:
        told["mu"] = gdp_mu_at_most(epsilon, told["delta"])
        told["rho"] = GaussianDP(told["mu"]).rho_at_least()
    if "epsilon" in parameters:
        parameters["epsilon"] = epsilon
    if "rho" in parameters:
        parameters["rho"] = rho_at_most(epsilon, told["delta"])
    return sealed(content)


@pytest.mark.parametrize("name", ["wishart", "eigenvectors-zcdp"])
def test_a_receipt_for_less_than_the_release_is_refused(
    name: str, table: dict[str, np.ndarray], schema: dg.Schema, tmp_path: Path
) -> None:
    reserve = {"currency": "rho"} if name == "eigenvectors-zcdp" else {"delta_reserved": 5e-6}
    ledger = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=3, delta=1e-5, **reserve)
    release = publish(table, schema, epsilon=0.5, delta=1e-6, mechanism=name, ledger=ledger, adaptive=False)
    content = content_of(release)
    event = content["receipt"]["event"]
    assert dg.Release.from_json(sealed(content)) == release
    for field in {"epsilon", "delta", "rho"} & set(event):
        less = {**content, "receipt": {**content["receipt"], "event": {**event, field: 0.5 * event[field]}}}
        with pytest.raises(ReleaseError, match="charged for less"):
            dg.Release.from_json(sealed(less))


@pytest.mark.filterwarnings("ignore:epsilon = 30 :dpgram.errors.DpgramWarning")
def test_the_limit_of_rows_holds_for_a_choice_left_open_too(
    table: dict[str, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With bounds to be learnt nothing is calibrated before the first pass but what `auto` chose."""
    monkeypatch.setattr(choice, "SEMIDEFINITE_CANDIDATES", ((Sketch(),),))
    monkeypatch.setattr(Sketch, "rows_at_most", ROWS - 1)
    ledger = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=30, delta=1e-5, delta_reserved=5e-6)
    with pytest.raises(MechanismError, match="fewer rows"):
        publish(
            table,
            dg.Schema(dg.numeric("x"), dg.numeric("z", -1, 1), dg.numeric("y", -1, 1)),
            epsilon=4.0,
            delta=1e-6,
            bounds_budget=0.3,
            mechanism=dg.mechanisms.Auto(semidefinite=True),
            ledger=ledger,
            adaptive=False,
        )
    assert not ledger.history()
