"""The search of neighbours, in its short form: nothing of ours goes beyond the bound, lossy ids do."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from assurance import neighbours
from assurance.neighbours import FLAWS, SOURCES, Found

from dpgram.document.coordinates import Coordinates
from dpgram.document.fields import UnitRule
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.sources import ids

pytestmark = [
    pytest.mark.filterwarnings("ignore:no row of the data was usable"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
PAIRS = 300


def test_no_pair_differs_by_more_than_is_claimed() -> None:
    found = neighbours.search(PAIRS, batch=10)
    assert sum(one.pairs for one in found.values()) == PAIRS
    assert all(one.pairs for one in found.values())
    assert {name: one.worst for name, one in found.items() if one.beyond} == {}
    assert max(one.frobenius for one in found.values()) > 0.99
    assert max(one.nuclear for one in found.values()) > 0.99
    assert max(one.histograms for one in found.values()) == 1.0


@pytest.mark.full
def test_nor_does_one_of_many() -> None:
    found = neighbours.search(20 * PAIRS)
    assert {name: one.worst for name, one in found.items() if one.beyond} == {}


@pytest.mark.parametrize("flaw", FLAWS)
def test_ids_that_lose_something_are_caught(flaw: str) -> None:
    before = vars(ids).copy()
    found = neighbours.with_flaw(flaw)
    assert found.beyond > 0
    assert vars(ids) == before


@pytest.mark.parametrize("source", SOURCES)
def test_tables_read_together_are_those_read_alone(source: str, tmp_path: Path) -> None:
    """Where no unit has more rows than count, the batch and the engine give the same integers."""
    dice = random.Random(3)
    asked = neighbours.setting(source, dice)
    while asked.rule is None or asked.rule.rows_at_most < 1024:
        asked = neighbours.setting(source, dice)
    tables = [neighbours.pair(asked, dice).one for _ in range(3)]
    together = neighbours.sums(asked, tables, tmp_path)
    alone = [neighbours.sum_alone(asked, rows, tmp_path) for rows in tables]
    assert [cells.tolist() for cells in together] == [cells.tolist() for cells in alone]


@pytest.mark.parametrize("coordinates", [neighbours.STANDARDISED, neighbours.TURNED])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_other_coordinates_keep_and_meet_the_bound(
    relation: neighbours.Relation, coordinates: Coordinates, tmp_path: Path
) -> None:
    """Persons and rows in the coordinates of an adaptive release: matrices and histograms."""
    dice, found = random.Random(4), Found()
    for rule in (None, UnitRule(counts="units", rows_at_most=1024), UnitRule(counts="rows", rows_at_most=3)):
        asked = neighbours.Setting(
            source="Arrow text",
            relation=relation,
            rule=rule,
            clip=0.7,
            missing="midpoint",
            weighted=False,
            coordinates=coordinates,
        )
        neighbours._batch(asked, [neighbours.pair(asked, dice) for _ in range(60)], found, tmp_path)
    assert found.beyond == 0, found.worst
    assert found.frobenius > 0.95
    assert found.histograms == 1.0


def test_a_row_that_counts_twice_in_a_histogram_is_seen() -> None:
    s, found = ROW_NORM_SQUARED, Found()
    neighbours.measure_histograms(found, "add-remove", [[s, s]], [[0, s]], "pair")
    neighbours.measure_histograms(found, "replace-one", [[s, 0]], [[0, s]], "pair")
    assert (found.beyond, found.histograms) == (0, 1.0)
    neighbours.measure_histograms(found, "add-remove", [[s, 1]], [[0, 0]], "pair")
    neighbours.measure_histograms(found, "replace-one", [[s, s]], [[0, 0], [0, 0]][:1], "pair")
    assert found.beyond == 1


@pytest.mark.parametrize(
    ("relation", "first", "second", "beyond"),
    [
        ("add-remove", 1, 0, 0),
        ("add-remove", 1, 1, 1),
        ("replace-one", 1, 1, 0),
        ("replace-one", 2, 1, 1),
    ],
)
def test_the_bound_is_met_and_passed(
    relation: neighbours.Relation, first: int, second: int, beyond: int
) -> None:
    """diag(s, −s) has |·|_F = √2·s and nuclear norm 2s: as much as a replaced row does."""
    found = Found()
    one, other = (
        np.diag(np.array(cells, np.int64) * ROW_NORM_SQUARED) for cells in ((first, 0), (0, second))
    )
    neighbours.measure(found, relation, one, other, "pair")
    assert found.beyond == beyond
    assert found.frobenius == pytest.approx(found.nuclear, rel=0.5)
