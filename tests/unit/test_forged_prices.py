"""Files that promise more than was paid for, under right digests: each is refused when it is loaded."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from tests.flat import publish

import dpgram as dg
from dpgram import mechanisms
from dpgram.core.noise import SeededEntropy
from dpgram.document.fields import MeasuredLevels
from dpgram.errors import ReleaseError
from dpgram.mechanisms import MECHANISMS
from dpgram.privacy import gdp_mu_at_most
from dpgram.privacy.receipt import next_receipt_id
from dpgram.publishing.publisher import publish_with

from .releases import content_of, sealed, set_at

pytestmark = pytest.mark.filterwarnings("ignore:(epsilon|delta) = :dpgram.errors.DpgramWarning")

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
TABLE = {"age": np.linspace(18, 90, 3000), "c": ["a", "b", "c"] * 1000}
OPEN = dg.Schema(dg.numeric("age", 18, 90), dg.categorical("c"))


def first_edition() -> dict[str, Any]:
    """A file of the first edition with learnt bounds, levels and radius."""
    found: dict[str, Any] = json.loads((GOLDEN / "insurance-learnt-v1.dpgram.json").read_bytes())
    return found


def refused(content: dict[str, Any], match: str) -> None:
    with pytest.raises(ReleaseError, match=match):
        dg.Release.from_json(sealed(content))


@pytest.fixture(scope="module", params=["matrix-laplace", "gaussian"])
def learnt(request: pytest.FixtureRequest) -> dg.Release:
    """With learnt levels."""
    found: dg.Release = publish(
        TABLE,
        OPEN,
        epsilon=2,
        delta=1e-6,
        mechanism=request.param,
        levels_budget=0.2,
        entropy=SeededEntropy(1),
    )
    return found


class TestLearntLevels:
    """The threshold of levels follows from their noise and their δ: a lower one shows rows."""

    def with_levels(self, learnt: dg.Release, **changes: Any) -> dict[str, Any]:
        content, threshold = content_of(learnt), changes.pop("threshold", None)
        (found,) = (each for each in content["measurements"] if each["kind"] == "levels")
        found.update(changes)
        for column in found["columns"] if threshold is not None else ():
            column["threshold"] = threshold
        return content

    def test_the_honest_one_loads(self, learnt: dg.Release) -> None:
        assert dg.Release.from_json(sealed(self.with_levels(learnt))) == learnt

    @pytest.mark.parametrize("threshold", ["0", str(-(10**15)), str(2**30)])
    def test_a_lower_threshold_is_refused(self, learnt: dg.Release, threshold: str) -> None:
        refused(self.with_levels(learnt, threshold=threshold), "contradict")

    def test_a_threshold_lower_by_a_row_in_a_million_is_refused(self, learnt: dg.Release) -> None:
        (found,) = (each for each in learnt.measured if isinstance(each, MeasuredLevels))
        threshold = int(found.columns[0].threshold)
        refused(self.with_levels(learnt, threshold=str(threshold - threshold // 10**6)), "contradict")

    @pytest.mark.parametrize("delta", [1e-100, 1e-300, 5e-324])
    def test_a_smaller_delta_is_refused(self, learnt: dg.Release, delta: float) -> None:
        content = self.with_levels(learnt, delta=delta)
        if learnt.mechanism.name == "matrix-laplace":
            content["guarantee"]["delta"] = delta
        refused(content, "contradict")

    @pytest.mark.parametrize("delta", [0.0, 1e-300])
    def test_in_files_of_the_first_edition_too(self, delta: float) -> None:
        content = first_edition()
        content["learnt"]["level_delta"] = delta
        # What a file without such a δ states.
        content["guarantee"]["mu"] = None if delta else gdp_mu_at_most(2.0, 1e-6)
        refused(content, "contradict")

    def test_the_first_edition_cannot_lower_its_threshold(self) -> None:
        content = first_edition()
        for column in content["learnt"]["levels"]:
            column["threshold"] = "0"
        refused(content, "contradict")


class TestFirstEdition:
    """Counts without a scale have no price."""

    @pytest.mark.parametrize("part", ["count", "octave", "bin", "level", "length"])
    def test_a_part_without_a_scale_is_refused(self, part: str) -> None:
        content = first_edition()
        assert content["learnt"][f"{part}_scale"] is not None
        content["learnt"][f"{part}_scale"] = None
        refused(content, "no scale")


@pytest.fixture(scope="module")
def whitened() -> dict[str, Any]:
    draw = np.random.default_rng(4)
    x = draw.uniform(0, 10, 5000)
    schema = dg.Schema(dg.numeric("x", 0, 10), dg.numeric("y", -20, 40))
    table = {"x": x, "y": 2 * x + draw.normal(0, 2, 5000)}
    (release,) = publish_with(table, schema, epsilon=2, delta=1e-6, entropy=SeededEntropy(3))
    return content_of(release)


class TestCoordinates:
    """Coordinates that depend on data need the measurements they came from."""

    @pytest.mark.parametrize(
        ("without", "fine"),
        [
            ({}, True),
            ({"clip"}, True),
            ({"gram"}, False),
            ({"gram", "reach"}, False),
            ({"histograms"}, False),
            ({"histograms", "gram", "reach", "clip"}, False),
        ],
    )
    def test_without_what_they_came_from(
        self, whitened: dict[str, Any], without: set[str], fine: bool
    ) -> None:
        content = copy.deepcopy(whitened)
        assert [each["kind"] for each in content["measurements"]] == ["histograms", "gram", "reach", "clip"]
        left = [each for each in content["measurements"] if each["kind"] not in without]
        content.update(measurements=left)
        if not left:
            del content["measurements"]
        if fine:
            assert dg.Release.from_json(sealed(content)).coordinates is not None
        else:
            refused(content, "what was measured contradicts")

    def test_standardised_columns_need_histograms_alone(self, whitened: dict[str, Any]) -> None:
        content = copy.deepcopy(whitened)
        first = content["measurements"][1]["coordinates"]
        content["measurements"] = content["measurements"][:1]
        content["coordinates"] = first
        assert dg.Release.from_json(sealed(content)).coordinates is not None
        del content["measurements"]
        refused(content, "what was measured contradicts")


KNOWN = dg.Schema(dg.numeric("age", 18, 90), dg.categorical("c", ["a", "b", "c"]))
UNBOUNDED = dg.Schema(dg.numeric("age"), dg.categorical("c", ["a", "b", "c"]))
Paid: TypeAlias = Callable[..., list[dg.Release]]
PURE: dict[str, Any] = {"delta": 0.0}
BLOCKS: dict[str, Any] = {"blocks": [["age"], ["c"]]}
HALF_PURE: dict[str, Any] = {"event": "pure/1", "epsilon": 1.0}
NEARLY_NOTHING = [{"event": "pure/1", "epsilon": 1e-9}, {"event": "gaussian/1", "mu": 1e-9}]


@pytest.fixture
def paid(tmp_path: Path) -> Paid:
    """Releases that a ledger was charged for."""

    def publish_on_ledger(schema: dg.Schema = KNOWN, **options: Any) -> list[dg.Release]:
        zcdp = options.get("mechanism") == "eigenvectors-zcdp"
        ledger = dg.Ledger.create(
            tmp_path / "a.ledger",
            name="a",
            epsilon=50 * options.get("epsilon", 2.0),
            delta=1e-3,
            delta_reserved=1e-4,
            currency="rho" if zcdp else None,
            adjacency=options.get("adjacency", "add-remove"),
        )
        found = publish(TABLE, schema, **{"epsilon": 2.0, "delta": 1e-6, **options}, ledger=ledger)
        if isinstance(found, dg.Release):
            return [found]
        return list(found.values() if isinstance(found, dict) else found)

    return publish_on_ledger


def composed_of(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"event": "composed/1", "parts": list(parts)}


def with_event(release: dg.Release, event: dict[str, Any]) -> dict[str, Any]:
    return set_at(content_of(release), "receipt.event", event)


NEEDING = {
    "inverse-wishart": mechanisms.InverseWishart(degrees=3000),
    "inverse-wishart-adaptive": mechanisms.InverseWishartAdaptive(degrees=3000),
    "inverse-noise": mechanisms.InverseNoise(ridge=100.0),
}
HONEST: dict[str, dict[str, Any]] = {
    **{name: {"mechanism": NEEDING.get(name, name)} for name in MECHANISMS},
    **{
        f"{name}, learnt bounds": {
            "mechanism": NEEDING.get(name, name),
            "schema": UNBOUNDED,
            "bounds_budget": 0.3,
        }
        for name in MECHANISMS
    },
    "gaussian, learnt levels": {"schema": OPEN, "levels_budget": 0.2},
    "gaussian, learnt levels with the least noise": {
        "schema": OPEN,
        "adaptive": dg.Adaptive(bounds=0, levels=0.5, histograms=0, first=0, clip=0),
        "epsilon": 1000.0,
    },
    "pure, learnt levels": {"schema": OPEN, "levels_budget": 0.2, "mechanism": "matrix-laplace"},
    "adaptive": {"adaptive": True},
    "adaptive, pure": {"adaptive": True, **PURE},
    "adaptive, levels": {"adaptive": True, "schema": OPEN},
    "replace-one": {"adjacency": "replace-one"},
    "blocks": BLOCKS,
    "blocks, pure": {**BLOCKS, **PURE},
    "blocks, levels": {**BLOCKS, "schema": OPEN, "levels_budget": 0.2},
    "blocks, adaptive": {**BLOCKS, "adaptive": True},
    "blocks, adaptive, levels": {**BLOCKS, "adaptive": True, "schema": OPEN},
    "groups": {"by": "c"},
    "models": {"models": [dg.linear("age", share=0.3)]},
    "adaptive, models": {"adaptive": True, "models": [dg.linear("age", share=0.3)]},
}


class TestReceipts:
    """The receipts are for everything that the release promises, and belong together."""

    @pytest.mark.filterwarnings("ignore:epsilon = 1000 lets:dpgram.errors.DpgramWarning")
    @pytest.mark.parametrize("kind", HONEST)
    def test_honest_ones_load_and_a_thousandth_of_each_part_does_not(self, paid: Paid, kind: str) -> None:
        for release in paid(**HONEST[kind]):
            assert dg.Release.from_json(release.to_json()) == release
            for place in ["receipt"] + ["first_receipt"] * (release.first_receipt is not None):
                content = content_of(release)
                event = content[place]["event"]
                for number, part in enumerate(event.get("parts", [event])):
                    for name in {*part} - {"event"}:
                        if not part[name]:
                            continue
                        less = copy.deepcopy(content)
                        mended = less[place]["event"]
                        mended = mended["parts"][number] if "parts" in mended else mended
                        mended[name] *= 0.001
                        refused(less, "charged for less")

    @pytest.fixture
    def pure(self, paid: Paid) -> dg.Release:
        (found,) = paid(**PURE)
        return found

    @pytest.mark.parametrize("event", [HALF_PURE, composed_of(*NEARLY_NOTHING)], ids=["half", "nothing"])
    def test_less_than_the_price_is_refused(self, pure: dg.Release, event: dict[str, Any]) -> None:
        refused(with_event(pure, event), "charged for less")

    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"entry": 99},
            {"ledger_id": "0" * 32, "entry": 99, "receipt_id": "1" * 32},
            {"ledger_id": "0" * 32},
            {"receipt_id": "1" * 32},
        ],
        ids=str,
    )
    def test_two_halves_that_are_not_of_one_publication_are_refused(
        self, pure: dg.Release, changes: dict[str, Any]
    ) -> None:
        content = with_event(pure, HALF_PURE)
        first = {**content["receipt"], "entry": 1}
        second = {**first, "entry": 2, "receipt_id": next_receipt_id(first["receipt_id"])}
        dg.Release.from_json(sealed(content | {"first_receipt": first, "receipt": second}))
        first |= changes
        if not changes:
            second = first
        refused(content | {"first_receipt": first, "receipt": second}, "not of one publication")

    def test_a_receipt_for_learnt_levels_is_for_the_rest_too(self, paid: Paid) -> None:
        (release,) = paid(OPEN, levels_budget=0.2)
        content = content_of(release)
        leak = content["receipt"]["event"]["parts"][-1]
        assert leak["event"] == "approximate/1"
        content["receipt"]["event"] = composed_of({"event": "gaussian/1", "mu": 1e-9}, leak)
        refused(content, "charged for less")

    def test_the_receipt_of_blocks_is_for_all_of_them(self, paid: Paid) -> None:
        first, _ = paid(**BLOCKS)
        parts = content_of(first)["receipt"]["event"]["parts"]
        refused(with_event(first, parts[0]), "charged for less")
        nothing = {"event": "gaussian/1", "mu": 1e-12}
        refused(with_event(first, composed_of(parts[0], nothing)), "charged for less")
        refused(with_event(first, composed_of(*parts, nothing)), "charged for less")

    def test_each_block_has_its_own_part(self, paid: Paid) -> None:
        first, second = paid(**BLOCKS)
        parts = content_of(first)["receipt"]["event"]["parts"]
        assert parts[0] != parts[1]
        smaller = first if parts[0]["mu"] > parts[1]["mu"] else second
        refused(with_event(smaller, composed_of(*parts[::-1])), "charged for less")
