"""What every kind of measurement must hold: bounded, additive, row by row, sent anywhere, priced, and noisy.

A row, or all rows of a unit, moves the exact sums by no more than `event` pays for; sums do not depend on how
rows are batched, nor a row's integers on the other rows; everything survives being sent to a worker or kept
in a file; and the noise has the scale that was paid for. A new kind without a case here fails.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import math
import pickle
import pkgutil
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from dpgram.canonical_json import canonical_bytes, parse_strictly
from dpgram.core.noise import SeededEntropy
from dpgram.engines.passes import Failed, Pass, Sums, merge
from dpgram.errors import DpgramError
from dpgram.privacy.adjacency import Adjacency, adjacency
from dpgram.privacy.events import ApproximateEvent, GaussianEvent, PureEvent, parts_of
from dpgram.publishing import measurements
from dpgram.publishing.measurements.base import Measurement
from dpgram.publishing.measurements.each_group import EachGroup
from dpgram.publishing.publication import measured
from dpgram.rows.rules import RowRules
from dpgram.sums.from_bytes import sum_from_bytes

from .measurement_cases import (
    CASES,
    NAMES,
    ODD,
    RELATIONS,
    RULES,
    TEXTS,
    UNITS,
    Case,
    GammaMinimiserCase,
    LaplaceMomentsCase,
    LevelsCase,
    Row,
)

ALPHA = 1e-6

every_case = pytest.mark.parametrize("case", list(CASES.values()), ids=CASES)
every_relation = pytest.mark.parametrize("relation", list(map(adjacency, RELATIONS)), ids=RELATIONS)
ADD_REMOVE = adjacency("add-remove")


def batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) if rows else [()] * 5
    types = [pa.float64()] * 3 + [pa.string()] * 2
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.record_batch(arrays, names=[*NAMES, "g", "who"])


def ordinary(count: int, seed: int = 1) -> list[Row]:
    """Rows of which a few have gaps and wild values."""
    draw = np.random.default_rng(seed)
    numbers = draw.normal(0.0, 0.7, (count, 3))
    wild = draw.random(numbers.shape) < 0.1
    numbers[wild] = draw.choice(ODD, int(wild.sum()))
    texts = draw.choice(TEXTS, count)
    return [
        (*row, text, f"p{i % 97}") for i, (row, text) in enumerate(zip(numbers.tolist(), texts, strict=True))
    ]


def odd_rows() -> list[Row]:
    """Huge, tiny, missing: all together and each among ordinary values, and rows of full length."""
    same = [(value, value, value) for value in ODD]
    mixed = [row for value in ODD for row in ((value, 0.3, 0.3), (0.3, value, 1.0), (0.3, -0.9, value))]
    full = [
        (math.cos(angle), math.sin(angle), sign * 2.0)
        for angle in np.linspace(0.0, math.pi, 9)
        for sign in (-1.0, 0.0, 1.0)
    ]
    corners = [(a, b, y) for a, b, y in itertools.product((-9.0, 9.0), (-9.0, 0.0, 9.0), (-9.0, 0.3, 9.0))]
    texts = itertools.cycle((*TEXTS, "x" * 300))
    return [(*row, text, "p") for row, text in zip([*same, *mixed, *full, *corners], texts, strict=False)]


def exact(measurement: Measurement, *batches: Sequence[Row], rules: RowRules = RULES) -> Sums:
    work = Pass(rules=rules, statistics=(measurement.statistic,))
    if rules.unit is None:
        found = work.sums([(0, batch(rows)) for rows in batches])
    else:
        found = work.join(
            itertools.chain.from_iterable(work.split([(0, batch(rows))], 1) for rows in batches)
        )
    assert not isinstance(found, Failed)
    return found


def batched(rows: list[Row], size: int) -> Iterator[list[Row]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


def every_kind() -> set[type[Measurement]]:
    """All classes of the package that can be made."""
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.iter_modules(measurements.__path__, f"{measurements.__name__}.")
    ]
    return {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Measurement) and not inspect.isabstract(value)
    }


def test_every_kind_has_a_case() -> None:
    made = [case.measurement(ADD_REMOVE) for case in CASES.values()]
    # What measures each group by itself has no row function of its own: test_adaptive_audit.py.
    assert {type(one) for one in made} == every_kind() - {EachGroup}
    kinds = [kind.kind for kind in every_kind()]
    assert len(set(kinds)) == len(kinds)


@every_case
def test_one_row_adds_no_more_than_is_paid_for(case: Case) -> None:
    measurement = case.measurement(ADD_REMOVE)
    nothing = case.cells(measurement, exact(measurement, []))
    found = [case.loss(case.cells(measurement, exact(measurement, [row])), nothing) for row in odd_rows()]
    assert max(found) <= case.price(measurement, ADD_REMOVE) * (1 + 1e-12)
    assert max(found) > case.tight * case.price(measurement, ADD_REMOVE)


@every_case
def test_one_row_in_the_place_of_another_moves_no_more_than_is_paid_for(case: Case) -> None:
    relation = adjacency("replace-one")
    measurement = case.measurement(relation)
    alone = [case.cells(measurement, exact(measurement, [row])) for row in odd_rows()]
    found = [case.loss(one, other) for one, other in itertools.combinations(alone, 2)]
    assert max(found) <= case.price(measurement, relation) * (1 + 1e-12)
    assert max(found) > case.tight_replaced * case.price(measurement, relation)


@every_case
def test_all_rows_of_a_unit_add_no_more_than_is_paid_for(case: Case) -> None:
    measurement = case.measurement(ADD_REMOVE)
    nothing = case.cells(measurement, exact(measurement, [], rules=UNITS))
    price = case.price(measurement, ADD_REMOVE)
    draw = np.random.default_rng(5)
    for size in (1, 2, 5, 30):
        for _ in range(6):
            chosen = [odd_rows()[place] for place in draw.integers(0, len(odd_rows()), size)]
            together = case.cells(measurement, exact(measurement, chosen, rules=UNITS))
            assert case.loss(together, nothing) <= price * (1 + 1e-12)


@every_case
@every_relation
def test_the_event_is_the_price_computed_by_hand(case: Case, relation: Adjacency) -> None:
    measurement = case.measurement(relation)
    by_hand, parts = case.price(measurement, relation), list(parts_of(measurement.event))
    if isinstance(case, LevelsCase):
        assert parts.pop() == ApproximateEvent(epsilon=0.0, delta=case.delta)
    if isinstance(case, LaplaceMomentsCase):
        assert parts.pop(0) == GaussianEvent(mu=1e-9)
    (part,) = parts
    stated = part.epsilon if isinstance(part, PureEvent) else part.mu
    assert isinstance(part, PureEvent) == (case.l1 or isinstance(case, GammaMinimiserCase))
    assert stated >= by_hand * (1 - 1e-15)
    assert stated == pytest.approx(by_hand, rel=1e-5)  # the grids of angles are that fine


@every_case
def test_sums_of_parts_are_the_sum_of_the_whole(case: Case) -> None:
    measurement, rows = case.measurement(ADD_REMOVE), ordinary(300)
    whole = exact(measurement, rows)
    alone = [exact(measurement, [row]) for row in rows]
    # Every row by itself: no other row, and no place in a batch, changes its integers.
    assert merge(alone) == merge(alone[::-1]) == whole
    assert merge([exact(measurement, rows[:100]), exact(measurement, rows[100:])]) == whole
    assert merge([whole, exact(measurement, [])]) == whole
    zero = Pass(rules=RULES, statistics=(measurement.statistic,)).zero()
    assert merge([whole, zero]) == whole


@every_case
@pytest.mark.parametrize("size", [1, 7, 999, 1000, 1001, 2500])
def test_batches_do_not_matter(case: Case, size: int) -> None:
    measurement, rows = case.measurement(ADD_REMOVE), ordinary(3000)
    kept = rows if size > 1 else rows[:500]
    whole = exact(measurement, kept)
    assert exact(measurement, *batched(kept, size)) == whole
    assert exact(measurement, *batched(kept[::-1], size)) == whole


@every_case
def test_removing_rows_leaves_the_others_as_they_were(case: Case) -> None:
    measurement, rows = case.measurement(ADD_REMOVE), ordinary(2000)
    draw, whole = np.random.default_rng(9), exact(measurement, rows)
    for share in (0.001, 0.3, 0.9):
        gone = draw.random(len(rows)) < share
        left = exact(measurement, [row for row, out in zip(rows, gone, strict=True) if not out])
        taken = exact(measurement, [row for row, out in zip(rows, gone, strict=True) if out])
        assert merge([left, taken]) == whole


@every_case
def test_units_come_in_any_order(case: Case) -> None:
    measurement, rows = case.measurement(ADD_REMOVE), ordinary(400)
    assert exact(measurement, rows, rules=UNITS) == exact(measurement, rows[::-1], rules=UNITS)
    assert exact(measurement, rows[:150], rows[150:], rules=UNITS) == exact(measurement, rows, rules=UNITS)


@every_case
def test_a_measurement_can_be_sent_to_another_process(case: Case) -> None:
    measurement, rows = case.measurement(ADD_REMOVE), ordinary(200)
    there = pickle.loads(pickle.dumps(measurement))
    assert there == measurement
    assert exact(there, rows) == exact(measurement, rows)
    assert there.event == measurement.event
    sums = exact(measurement, rows)
    one, other = (measured(each, sums, RULES, SeededEntropy(3)) for each in (there, measurement))
    assert one == other


@every_case
def test_sums_can_be_sent_as_bytes(case: Case) -> None:
    for sums in (exact(case.measurement(ADD_REMOVE), ordinary(200)), exact(case.measurement(ADD_REMOVE), [])):
        for found in sums:
            raw = found.to_bytes()
            assert sum_from_bytes(raw) == found
            assert type(sum_from_bytes(raw)) is type(found)
            for forged in (
                raw[:-1],
                raw[:50],
                raw[:-1] + bytes([raw[-1] ^ 1]),
                raw[:60] + b"9" + raw[61:],
                b"",
            ):
                with pytest.raises(DpgramError):
                    sum_from_bytes(forged)


@every_case
def test_what_was_drawn_can_be_kept_in_a_file(case: Case) -> None:
    measurement = case.measurement(ADD_REMOVE)
    for seed in range(20):
        published = measured(measurement, exact(measurement, ordinary(200)), RULES, SeededEntropy(seed))
        kept = parse_strictly(canonical_bytes(measurement.to_json(published)))
        assert measurement.from_json(kept) == published
        assert measurement.to_json(measurement.from_json(kept)) == measurement.to_json(published)


@every_case
def test_the_noise_has_its_scale(case: Case) -> None:
    """χ² of the cells that are published whatever the noise; ten per cent off is rejected both ways."""
    measurement, source = case.measurement(ADD_REMOVE), SeededEntropy(17)
    sums = exact(measurement, [(0.3, 0.4, 0.5, "u", "p")] * 2000)
    found: list[np.ndarray] = []
    while not found or len(found) * case.statistic(np.array(found[:1]))[1] < case.degrees:
        noisy, true = case.seen(measurement, measured(measurement, sums, RULES, source), sums)
        found.append(np.subtract(noisy, true))
    for factor, accepted in ((1.0, True), (0.9, False), (1.1, False)):
        statistic, degrees = case.statistic(np.array(found) / factor)
        p = 2.0 * min(stats.chi2.cdf(statistic, degrees), stats.chi2.sf(statistic, degrees))
        assert (p > ALPHA) == accepted, (factor, statistic / degrees)
