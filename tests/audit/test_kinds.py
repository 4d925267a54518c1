"""The search over column kinds, in its short form: nothing goes beyond the bound, and what should does."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from assurance import kinds
from assurance.kinds import BATCH, random_schema, search_kinds

from dpgram.schema.columns import KINDS

pytestmark = pytest.mark.filterwarnings("ignore:no row of the data was usable")


def test_no_pair_of_any_kind_differs_by_more_than_is_claimed() -> None:
    found = search_kinds(6 * BATCH)
    assert found.pairs >= 6 * BATCH
    assert found.worst == ""
    assert min(found.frobenius, found.nuclear) > 0.99


def test_every_kind_is_searched() -> None:
    dice = random.Random(1)
    seen = {type(column) for _ in range(60) for column in random_schema(dice).columns}
    assert seen == set(KINDS.values())


def test_persons_counted_row_by_row_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = kinds._sums

    def careless(table: Any, encoder: Any, rule: Any, groups: Any, **more: Any) -> Any:
        return honest(table, encoder, None, groups, **more)

    monkeypatch.setattr(kinds, "_sums", careless)
    assert search_kinds(6 * BATCH).beyond > 0


def test_persons_counted_in_each_group_by_itself_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, grouped = kinds._sums, []

    def careless(table: pa.Table, encoder: Any, rule: Any, groups: Any, **more: Any) -> Any:
        if len(groups) > 1:
            apart = pc.binary_join_element_wise(table["id"], table["which"], " in ")
            table = table.set_column(table.column_names.index("id"), "id", apart)
        grouped.append(len(groups))
        return honest(table, encoder, rule, groups, **more)

    monkeypatch.setattr(kinds, "_sums", careless)
    found = search_kinds(9 * BATCH)
    assert max(grouped) == 2
    assert found.beyond > 0
    assert "2 groups" in found.worst


def test_a_bound_that_is_too_small_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaced rows held against the bound for rows that are added."""
    strict = partial(kinds.measure)

    def narrow(found: Any, relation: Any, one: Any, other: Any, what: str) -> None:
        strict(found, "add-remove", one, other, what)

    monkeypatch.setattr(kinds, "measure", narrow)
    assert search_kinds(6 * BATCH).beyond > 0
