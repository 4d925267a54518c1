"""What a curator types: `publish`, `publish_each`, `Rows`, `Adaptive`, blocks in the schema."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpgram as dg
from dpgram.errors import GuaranteeError, OptionsError, SchemaError
from dpgram.privacy.sampling.entropy import SeededEntropy
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
            ask(*data, SCHEMA, rows=5_000, **ASKED)  # type: ignore[operator]


class TestAdaptive:
    OPEN = dg.Schema(dg.numeric("x"), dg.categorical("g"))

    def test_true_gives_a_share_to_what_is_open_only(self) -> None:
        assert requested(SCHEMA, adaptive=True, **ASKED).split.total == 0.0
        split = requested(self.OPEN, adaptive=True, **ASKED).split
        assert (split.bounds, split.levels, split.radius) == (0.2, 0.1, 0.0)

    def test_false_refuses_what_is_open_and_names_the_remedy(self) -> None:
        with pytest.raises(SchemaError, match="adaptive=True"):
            requested(self.OPEN, **ASKED)

    @pytest.mark.parametrize("shares", [{"bounds": 0.0}, {"levels": 0.0}])
    def test_no_share_is_not_learning(self, shares: dict[str, float]) -> None:
        with pytest.raises(SchemaError, match="has no"):
            requested(self.OPEN, adaptive=dg.Adaptive(**shares), **ASKED)

    @pytest.mark.parametrize("share", [-0.1, 1.0, 1e-12, True, "0.2", float("nan")])
    def test_a_share_is_a_part_of_one(self, share: object) -> None:
        with pytest.raises(GuaranteeError, match="share of the budget"):
            requested(SCHEMA, adaptive=dg.Adaptive(radius=share), **ASKED)  # type: ignore[arg-type]

    def test_anything_else_is_refused(self) -> None:
        with pytest.raises(GuaranteeError, match="True, False or Adaptive"):
            requested(SCHEMA, adaptive=0.2, **ASKED)  # type: ignore[arg-type]


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
            SCHEMA.with_blocks(blocks)  # type: ignore[arg-type]


def test_seeded_releases_say_so() -> None:
    first, second = (
        publish_with(TABLE, SCHEMA, entropy=SeededEntropy(1), progress=False, **ASKED)[0] for _ in range(2)
    )
    assert first.entropy == "seeded"
    assert first.published == second.published
