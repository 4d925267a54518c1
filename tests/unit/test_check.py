"""check(): the dry run reads all, spends nothing, and refuses what publish would refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dpgram as dg
from dpgram.errors import BudgetExceeded, OptionsError, SchemaError

SCHEMA = dg.Schema(dg.numeric("x", -1, 1), dg.categorical("g", ["a", "b"]))
TABLE = {
    "x": [0.5, 3.0, None, -0.5, 0.1],
    "g": ["a", "b", "a", "b", "c"],
    "id": ["u", "u", "v", "w", "w"],
}


def test_counts_are_those_of_publish() -> None:
    told: list[dg.CuratorReport] = []
    dg.publish(TABLE, SCHEMA, epsilon=1.0, delta=1e-6, report=told.append, progress=False, adaptive=False)
    found = dg.check(TABLE, SCHEMA, progress=False)
    assert dict(found.counts) == {"all": told[0].counts}
    assert found.counts["all"].cells_clamped == 1
    assert found.counts["all"].cells_missing == 1
    assert found.counts["all"].cells_unknown == 1
    assert found.price is None
    assert found.radius == pytest.approx(3**0.5)


def test_units_groups_and_blocks() -> None:
    by_person = dg.check(TABLE, SCHEMA, rows=dg.Rows(unit="id"), progress=False).counts["all"]
    assert by_person.units_read == 3
    groups = dg.check(TABLE, SCHEMA, rows=dg.Rows(by="g"), progress=False).counts
    assert list(groups) == ["a", "b"]
    blocks = dg.check(TABLE, SCHEMA.with_blocks([["x"], ["g"]]), progress=False).counts
    assert list(blocks) == ["block 1", "block 2"]


def test_what_is_open_is_not_clamped_and_has_no_radius() -> None:
    found = dg.check(TABLE, dg.Schema(dg.numeric("x"), dg.categorical("g")), progress=False)
    assert found.radius is None
    assert found.counts["all"].cells_clamped == 0
    assert found.counts["all"].cells_unknown == 0
    assert found.counts["all"].cells_missing == 1


def test_the_price_is_told_and_not_charged(tmp_path: Path) -> None:
    ledger = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=1.0, delta=1e-5)
    before = ledger.path.read_bytes()
    found = dg.check(TABLE, SCHEMA, epsilon=0.5, delta=1e-6, ledger=ledger, progress=False)
    assert found.price is not None
    assert ledger.path.read_bytes() == before
    with pytest.raises(BudgetExceeded):
        dg.check(TABLE, SCHEMA, epsilon=5.0, delta=1e-6, ledger=ledger, progress=False)
    assert ledger.path.read_bytes() == before
    release = dg.publish(
        TABLE, SCHEMA, epsilon=0.5, delta=1e-6, ledger=ledger, progress=False, adaptive=False
    )
    assert found.price.mechanism == release.mechanism.name


def test_it_refuses_what_publish_refuses() -> None:
    with pytest.raises(SchemaError, match="has no bounds"):
        dg.check(TABLE, dg.Schema(dg.numeric("x")), epsilon=1.0, delta=1e-6, adaptive=False, progress=False)
    with pytest.raises(OptionsError):
        dg.check(TABLE, SCHEMA, epsilon=1.0, delta=0.0, mechanism="gaussian", progress=False)
    with pytest.raises(SchemaError, match="Rows"):
        dg.check(TABLE, SCHEMA, rows=5)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mechanism": "gausian"}, "gausian"),
        ({"rows": dg.Rows(expected=-5)}, "whole number above zero"),
        ({"models": [dg.logistic("nope")]}, "nope"),
        ({"models": [dg.logistic("x")]}, "x"),
        ({"delta": 2.0}, "delta"),
        ({"ledger": "nothing.ledger"}, "nothing.ledger"),
    ],
)
def test_what_was_given_is_checked_without_epsilon_too(given: dict[str, Any], words: str) -> None:
    with pytest.raises(dg.DpgramError, match=words):
        dg.check(TABLE, SCHEMA, progress=False, **given)


def test_a_stream_is_counted_without_epsilon() -> None:
    table = pa.table(TABLE)
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    assert dg.check(stream, SCHEMA, progress=False).counts["all"].rows_read == 5
