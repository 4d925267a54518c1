"""Everything that comes from outside, mutated: the short forms of assurance.fuzzing."""

from __future__ import annotations

import random
from collections import deque
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from assurance.fuzz_targets.guided import LONGEST
from assurance.fuzzing import SHARES, TARGETS, guided, why_not_guided
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.errors import ReleaseError
from dpgram.release import Release

SHORT = {
    "releases": 100,
    "partials": 150,
    "series": 80,
    "journals": 60,
    "schemas": 250,
    "commands": 40,
    "csv_tables": 200,
    "parquet_tables": 100,
    "one_row": 120,
}


def mutated(module: ModuleType, index: int, seed: int, rounds: int) -> bytes:
    seeds, dice = module.seeds(), random.Random(seed)
    data: bytes = seeds[index % len(seeds)]
    for _ in range(rounds):
        data = module.mutate(data, dice)
    return data


def fuzz(target: str, examples: int) -> None:
    module = import_module(f"assurance.fuzz_targets.{target}")

    @settings(max_examples=examples, deadline=None, database=None)
    @given(index=st.integers(0, 99), seed=st.integers(0, 2**32), rounds=st.integers(0, 4))
    def run(index: int, seed: int, rounds: int) -> None:
        module.examine(mutated(module, index, seed, rounds))

    run()


@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
@pytest.mark.parametrize("target", TARGETS)
def test_mutated_inputs(target: str) -> None:
    fuzz(target, SHORT[target])


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
@pytest.mark.parametrize("target", TARGETS)
def test_many_mutated_inputs(target: str) -> None:
    fuzz(target, 20 * SHORT[target])


@pytest.mark.parametrize("target", ["releases", "partials", "series", "schemas", "csv_tables"])
@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=300))
def test_any_bytes(target: str, data: bytes) -> None:
    import_module(f"assurance.fuzz_targets.{target}").examine(data)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("data", [b"", b"R5", b"Snull", b"R[]", b'S"x"', b"\xff" * 9], ids=repr)
def test_mutations_take_what_the_fuzzer_made(target: str, data: bytes) -> None:
    module = import_module(f"assurance.fuzz_targets.{target}")
    for seed in range(20):
        assert isinstance(module.mutate(data, random.Random(seed)), bytes)


def test_every_target_has_its_share_and_its_size() -> None:
    assert set(TARGETS) == set(SHARES) == set(LONGEST) == set(SHORT)
    assert sum(SHARES.values()) == pytest.approx(1.0)


@pytest.mark.skipif(why_not_guided() is not None, reason=str(why_not_guided()))
@pytest.mark.parametrize(
    "target",
    ["schemas", *(pytest.param(name, marks=pytest.mark.full) for name in TARGETS if name != "schemas")],
)
def test_guided_inputs(target: str) -> None:
    found = guided(target, seconds=3600, inputs=300)  # the inputs end it, on a busy machine too
    assert found.code == 0, found.finding
    assert found.inputs >= 200
    assert found.places > 100, "the fuzzer sees the code it runs"


def test_a_mended_digest_lets_edits_through_to_the_checks_behind_it() -> None:
    """The fuzzer has power: it is not stopped by the digest, the last of the checks."""
    releases = import_module("assurance.fuzz_targets.releases")
    raw = releases.seeds()[0][1:]
    assert releases.accepted(releases.sealed(raw)) is not None
    edited = raw.replace(b'"library":"0.1.0"', b'"library":"0.1.1"', 1)
    with pytest.raises(ReleaseError, match="does not match its digest"):
        Release.from_json(edited)
    assert releases.accepted(releases.sealed(edited)) is not None


def test_the_slow_reading_of_csv_differs_where_a_reader_errs(tmp_path: Path) -> None:
    """The comparison has power: a reader that drops a record, or misreads a cell, is found."""
    tables = import_module("assurance.fuzz_targets.csv_tables")
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,t\n1,x\n2,y\n")
    assert tables.compare(path)
    rows = tables.expectation(path.read_bytes(), ("a", "t"))
    for wrong in (rows[:1], [(1.0, "x"), (2.0, "x")], [(1.0, "x"), (None, "y")]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tables, "expectation", lambda raw, asked, wrong=wrong: wrong)
            with pytest.raises(AssertionError):
                tables.compare(path)


FLAWS = {
    "a cell must compare": (
        "lists",
        "x",
        "dpgram.sources.plain_columns._or_none",
        lambda read, cell: read(cell),
    ),
    "a text must be UTF-8": ("arrow", "t", "dpgram.rows.learnt_levels._text_of_bytes", bytes.decode),
    "so must one of SQLite": (
        "sqlite",
        "t",
        "dpgram.sources.sql._of_any_bytes",
        lambda connection: connection,
    ),
    "a text of Python must be Unicode": (
        "arrays of objects",
        "t",
        "dpgram.sources.plain_columns._decoded",
        lambda cell: cell,
    ),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_row_that_stops_something_is_found(flaw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search has power: what one cell can stop shows within a few hundred cells."""
    form, column, place, broken = FLAWS[flaw]
    target = import_module("assurance.fuzz_targets.one_row")
    module, _, name = place.rpartition(".")
    owner = import_module(module)
    monkeypatch.setattr(owner, name, broken)
    if name == "_text_of_bytes":  # it is also in the table of writers
        monkeypatch.setattr(
            owner, "_TEXTS", tuple((test, broken) for test, _ in owner._TEXTS[:2]) + owner._TEXTS[2:]
        )
    head = [list(target.FORMS).index(form), target.COLUMNS.index(column)]
    inputs = [bytes([*head, cell, *content]) for cell in range(256) for content in (b"", b"\xff")]
    with pytest.raises((AssertionError, TypeError, ValueError)):
        deque(map(target.examine, inputs), maxlen=0)
