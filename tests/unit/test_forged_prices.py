"""Files that promise more than was paid for, under right digests: each is refused when it is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.flat import publish

import dpgram as dg
from dpgram.document.fields import MeasuredLevels
from dpgram.errors import ReleaseError
from dpgram.privacy import gdp_mu_at_most
from dpgram.privacy.sampling.entropy import SeededEntropy

from .releases import content_of, sealed

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
