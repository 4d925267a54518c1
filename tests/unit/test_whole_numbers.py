"""Whole numbers that a person gives: of any type, refused alike where they are none or beyond every range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpgram as dg
from dpgram.engines import LocalEngine
from dpgram.errors import DpgramError, whole
from dpgram.estimators import PrivatePCA
from dpgram.privacy.ledger import budget_for, release_for

SCHEMA = dg.Schema(dg.numeric("x", 0, 1), dg.numeric("y", 0, 1))
TABLE = {"x": np.linspace(0, 1, 50), "y": np.linspace(1, 0, 50), "id": np.arange(50)}
ASK: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}


def publish(**options: Any) -> object:
    return dg.publish(TABLE, SCHEMA, **ASK, **{"adaptive": False, "progress": False} | options)


def create(**terms: Any) -> object:
    return dg.Series.create("own.series", SCHEMA, **ASK, ledger=None, **{"periods": 6} | terms)


TAKES: dict[str, Callable[[Any], object]] = {
    "threads": lambda value: publish(engine=LocalEngine(threads=value)),
    "degrees": lambda value: publish(mechanism=dg.mechanisms.Wishart(degrees=value)),
    "expected": lambda value: publish(rows=dg.Rows(expected=value)),
    "unit_rows": lambda value: publish(rows=dg.Rows(unit="id", unit_rows=value), mechanism="gaussian"),
    "planned rows": lambda value: dg.plan(
        SCHEMA, **ASK, rows=dg.Rows(expected=value), mechanisms=["gaussian"]
    ),
    "steps": lambda value: dg.logistic("x", steps=value),
    "planned periods": lambda value: dg.Series.plan(periods=value),
    "planned participations": lambda value: dg.Series.plan(periods=6, participations=value),
    "periods": lambda value: create(periods=value),
    "apart": lambda value: create(apart=value),
    "releases": lambda value: release_for(value, **ASK),
    "releases of a budget": lambda value: budget_for(value, **ASK),
    "components": lambda value: PrivatePCA(value, **ASK, bounds=(0, 1)).fit(np.c_[TABLE["x"], TABLE["y"]]),
}
LARGE = {"expected", "planned rows", "degrees"}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
@pytest.mark.parametrize("name", TAKES)
def test_integers_of_numpy_are_taken(name: str) -> None:
    TAKES[name](np.int64(9_000) if name in LARGE else np.int64(2))


@pytest.mark.parametrize("name", TAKES)
@pytest.mark.parametrize("value", [-(10**5000), 2.0, "2", True], ids=["huge", "float", "text", "flag"])
def test_what_is_no_whole_number_in_range_is_refused_in_words(name: str, value: Any) -> None:
    """The huge one has more digits than Python writes."""
    with pytest.raises(DpgramError, match=r"a value of type int|2\.0|2|True"):
        TAKES[name](value)


def test_a_whole_number_is_a_plain_one() -> None:
    assert type(whole(np.uint8(3))) is int
    assert [whole(value) for value in (True, np.True_, 2.0, "2", None)] == [None] * 5
