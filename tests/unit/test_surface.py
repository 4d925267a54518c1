"""What a curator types: `publish`, `publish_each`, `Rows`, `Adaptive`, blocks in the schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpgram as dg
from dpgram.core.noise import SeededEntropy
from dpgram.errors import DpgramError, GuaranteeError, OptionsError, SchemaError
from dpgram.publishing import publish_with, requested

SCHEMA = dg.Schema(dg.numeric("x", -1, 1), dg.numeric("y", -1, 1), dg.categorical("g", ["a", "b"]))
TABLE = {"x": [0.1, -0.2, 0.3, 0.9], "y": [0.5, 0.4, -0.3, 0.2], "g": ["a", "b", "a", "b"]}
ASKED = {"epsilon": 1.0, "delta": 1e-6}


def test_groups_and_blocks_are_for_publish_each() -> None:
    for schema, rows in ((SCHEMA, dg.Rows(by="g")), (SCHEMA.with_blocks([["x"], ["y"]]), dg.Rows())):
        with pytest.raises(OptionsError, match="publish_each"):
            dg.publish(TABLE, schema, rows=rows, **ASKED)


def test_groups_are_named_by_their_level() -> None:
    found = dg.publish_each(TABLE, SCHEMA, rows=dg.Rows(by="g"), progress=False, **ASKED)
    assert list(found) == ["a", "b"]
    assert [one.group.level for one in found.values() if one.group is not None] == ["a", "b"]
    assert found["a"].columns == ("(constant)", "x", "y")


def test_blocks_are_named_by_their_number() -> None:
    schema = dg.Schema(*SCHEMA.columns, blocks=[["x", "y"], ["x", "g"]])
    found = dg.publish_each(TABLE, schema, progress=False, **ASKED)
    assert list(found) == ["block 1", "block 2"]
    assert found["block 2"].columns == ("(constant)", "x", "g=a", "g=b")
    assert all(one.schema.blocks is None for one in found.values())


def test_one_release_is_one_portion() -> None:
    assert list(dg.publish_each(TABLE, SCHEMA, progress=False, **ASKED)) == ["all"]


def test_a_number_of_rows_is_not_rows() -> None:
    for ask in (dg.publish, dg.plan):
        data = (TABLE,) if ask is dg.publish else ()
        with pytest.raises(SchemaError, match=r"Rows\(expected=10_000\)"):
            ask(*data, SCHEMA, rows=5_000, **ASKED)


@pytest.mark.parametrize("odd", [10**5000, -(10**5000), np.ones(2), 1j, object(), [1]], ids=type)
@pytest.mark.parametrize(
    "part", ["unit", "unit_rows", "weight", "by", "missing", "strict", "radius", "expected"]
)
def test_a_rule_of_any_type_is_refused_by_an_error_of_ours(part: str, odd: Any) -> None:
    rules = {"unit": "id"} if part == "unit_rows" else {}
    with pytest.raises(DpgramError):
        requested(SCHEMA, rows=dg.Rows(**{**rules, part: odd}), adaptive=False, **ASKED)


class TestAdaptive:
    OPEN = dg.Schema(dg.numeric("x"), dg.categorical("g"))

    def test_true_gives_a_share_to_what_is_open_only(self) -> None:
        closed, opened = (requested(schema, **ASKED).split for schema in (SCHEMA, self.OPEN))
        assert (closed.bounds, closed.levels) == (0.0, 0.0)
        assert (opened.bounds, opened.levels) == (0.1, 0.1)
        for split in (closed, opened):
            assert (split.histograms, split.first, split.clip) == (0.1, 0.25, 0.03)
            assert split.loss_at_most == 0.5

    def test_mechanisms_that_keep_to_one_matrix_learn_what_is_open_alone(self) -> None:
        for mechanism, rows in (("wishart", dg.Rows()), ("gaussian", dg.Rows(radius=1.0))):
            closed = requested(SCHEMA, mechanism=mechanism, rows=rows, **ASKED)
            assert not closed.split
            split = requested(dg.Schema(dg.numeric("x")), mechanism=mechanism, rows=rows, **ASKED).split
            assert (split.bounds, split.total) == (0.1, 0.1)
            # Shares that nobody needs take nothing from those that are.
            most = dg.Adaptive(bounds=0.79, histograms=0.0)
            request = requested(
                dg.Schema(dg.numeric("x")), mechanism=mechanism, rows=rows, adaptive=most, **ASKED
            )
            assert request.split.total == 0.79

    def test_false_refuses_what_is_open_and_names_the_remedy(self) -> None:
        with pytest.raises(SchemaError, match="adaptive=True"):
            requested(self.OPEN, adaptive=False, **ASKED)

    @pytest.mark.parametrize("shares", [{"bounds": 0.0}, {"levels": 0.0}])
    def test_no_share_is_not_learning(self, shares: dict[str, float]) -> None:
        with pytest.raises(SchemaError, match="has no"):
            requested(self.OPEN, adaptive=dg.Adaptive(**shares), **ASKED)

    @pytest.mark.parametrize("part", ["bounds", "levels", "histograms", "first", "clip"])
    @pytest.mark.parametrize("share", [-0.1, 1.0, 1e-12, True, "0.2", float("nan"), None, 10**5000], ids=type)
    def test_a_share_is_a_part_of_one(self, share: object, part: str) -> None:
        with pytest.raises(GuaranteeError, match="share of the budget"):
            requested(SCHEMA, adaptive=dg.Adaptive(**{part: share}), **ASKED)

    @pytest.mark.parametrize(
        "part", [-0.1, 0.0, 1.1, float("nan"), None, "0.1", True, [0.1], 10**5000, np.ones(2)], ids=type
    )
    def test_what_may_be_lost_is_a_part_of_all_rows(self, part: Any) -> None:
        with pytest.raises(GuaranteeError, match="loss_at_most"):
            requested(SCHEMA, adaptive=dg.Adaptive(loss_at_most=part), **ASKED)

    def test_a_fifth_is_left_for_the_matrix(self) -> None:
        with pytest.raises(GuaranteeError, match="too little"):
            requested(SCHEMA, adaptive=dg.Adaptive(histograms=0.3, first=0.4, clip=0.2), **ASKED)

    @pytest.mark.parametrize("shares", [{"clip": 0.0}, {"first": 0.0}])
    def test_columns_are_scaled_by_histograms(self, shares: dict[str, float]) -> None:
        with pytest.raises(GuaranteeError, match="histograms"):
            requested(SCHEMA, adaptive=dg.Adaptive(histograms=0.0, **shares), **ASKED)

    def test_anything_else_is_refused(self) -> None:
        with pytest.raises(GuaranteeError, match="True, False or Adaptive"):
            requested(SCHEMA, adaptive=0.2, **ASKED)


class TestBlocksInTheSchema:
    BLOCKS = SCHEMA.with_blocks([["x", "y"], ["x", "g"]])

    def test_files_keep_them(self, tmp_path: Path) -> None:
        self.BLOCKS.to_file(tmp_path / "a.toml")
        assert dg.Schema.from_file(tmp_path / "a.toml") == self.BLOCKS
        assert dg.Schema.from_dict(self.BLOCKS.to_dict()) == self.BLOCKS
        assert "blocks" not in SCHEMA.to_dict()

    def test_none_are_one(self) -> None:
        assert self.BLOCKS.with_blocks(None) == SCHEMA
        assert SCHEMA.in_blocks() == (SCHEMA,)

    @pytest.mark.parametrize(
        "blocks", ["xy", [["x"]], ["x", "y"], [["x"], []], [["x"], [1]], [["x", "x"], ["y"]], [["x"], ["z"]]]
    )
    def test_nonsense_is_refused(self, blocks: object) -> None:
        with pytest.raises(SchemaError):
            SCHEMA.with_blocks(blocks)


def test_seeded_releases_say_so() -> None:
    first, second = (
        publish_with(TABLE, SCHEMA, entropy=SeededEntropy(1), progress=False, **ASKED)[0] for _ in range(2)
    )
    assert first.entropy == "seeded"
    assert first.published == second.published
