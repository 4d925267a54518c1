"""The kernel's two forms: the same bits and counts whichever runs; when the compiled one is loaded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba.core import event

from dpgram.engines import threads
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED
from dpgram.rows import _compiled, _vectorised, kernel
from dpgram.rows.encoder import Encoder, PolicyCounts
from dpgram.rows.kernel import Kernel
from dpgram.schema import Schema, boolean, categorical, legendre, numeric, ordinal, product

from .tables import CLIPS, Table, tables

FORMS: tuple[Kernel, ...] = (_vectorised, _compiled)
POLICIES = st.sampled_from(["drop", "midpoint"])
UNIT_ROWS = st.integers(1, 7) | st.sampled_from([10**3, 2**30, 2**30 + 1, 2**40])
FACTORS = st.floats(0.0, 1.0) | st.sampled_from([0.0, 1.0, 0.5, 5e-324, 1 - 2**-53])


@dataclass(frozen=True)
class Found:
    lines: list[bytes]
    counts: list[PolicyCounts]


def found(form: Kernel, encoder: Encoder, batch: pa.RecordBatch, **options: Any) -> Found:
    """Everything that comes out of the encoder, from Arrow and from an array, to the last bit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "kernel", lambda _: form)
        batches = encoder.batch_encoder()
        lines = list(batches.read(batch))
        rows = np.ascontiguousarray(np.array(lines, np.float64).reshape(len(lines), batch.num_rows).T)
        units = options.get("unit_rows")
        copies = [
            (chunk.lines.tobytes(), chunk.counts)
            for part in (batches.encode(batch, unit_rows=units), batches.encode_array(rows, **options))
            for chunk in part
        ]
    return Found([line for line, _ in copies], [counts for _, counts in copies])


def same(encoder: Encoder, batch: pa.RecordBatch, **options: Any) -> None:
    plain, quick = (found(form, encoder, batch, **options) for form in FORMS)
    assert plain == quick


@settings(deadline=None, max_examples=400)
@given(tables(), CLIPS, POLICIES, st.booleans(), st.booleans(), st.data())
def test_both_forms_give_the_same_bits(
    table: Table, clip: float | None, missing: str, with_units: bool, with_weights: bool, data: st.DataObject
) -> None:
    count = len(table.rows)
    options: dict[str, Any] = {}
    if with_units:
        options["unit_rows"] = np.array(data.draw(st.lists(UNIT_ROWS, min_size=count, max_size=count)), int)
    if with_weights:
        options["weights"] = np.array(data.draw(st.lists(FACTORS, min_size=count, max_size=count)), float)
    same(Encoder(table.schema, clip=clip, missing=missing), table.batch(), **options)


WIDE = Schema(
    *(numeric(f"x{i}", -1, 1, weight=1.0 + i) for i in range(4)),
    boolean("b"),
    categorical("c", ["u", "v", "w"]),
    ordinal("o", ["lo", "mid", "hi"]),
    legendre("x0", 5),
    product("x1", "b"),
    product("c", "x2"),
    product("b", "c", weight=0.3),
)


def long_batch(rows: int) -> pa.RecordBatch:
    """Rows beyond a chunk and many tiles, a tenth of them with gaps; cells at bounds, beyond, and on ties."""
    draw = np.random.default_rng(7)
    numbers = draw.integers(-(2**16), 2**16, (4, rows)) / 2**16  # steps that end on halves of the lattice
    numbers[0] = draw.choice([-1.0, 1.0, 0.0, -0.0, 1.5, -np.inf], rows)
    numbers[:, draw.random(rows) < 0.02] = np.nan
    words = {"b": [True, False], "c": ["u", "v", "w", "else"], "o": ["lo", "mid", "hi", "else"]}
    lines = {f"x{i}": pa.array(line) for i, line in enumerate(numbers)}
    for name, levels in words.items():
        lines[name] = pa.array([None if k < 0 else levels[k] for k in draw.integers(-1, len(levels), rows)])
    return pa.record_batch(lines)


@pytest.mark.parametrize("missing", ["drop", "midpoint"])
@pytest.mark.parametrize("clip", [None, 1.0, 3.0])
@pytest.mark.parametrize("extra", ["nothing", "units", "weights", "both"])
def test_long_tables(clip: float | None, missing: Any, extra: str) -> None:
    draw = np.random.default_rng(8)
    batch = long_batch(9_001)
    options: dict[str, Any] = {}
    if extra in {"units", "both"}:
        options["unit_rows"] = draw.integers(1, 5, batch.num_rows)
    if extra in {"weights", "both"}:
        options["weights"] = draw.random(batch.num_rows)
    same(Encoder(WIDE, clip=clip, missing=missing), batch, **options)


@pytest.mark.parametrize("columns", [1, 3, 22])
def test_rows_of_full_length(columns: int) -> None:
    """Rounding would make many of these too long: they are truncated, and some shortened after that."""
    schema = Schema(*(numeric(f"x{i}", -1, 1) for i in range(columns)), constant=False)
    rows = np.sign(np.random.default_rng(9).uniform(-1, 1, (2_345, columns)))
    rows[::2] *= 1 - 2**-16
    batch = pa.record_batch(dict(zip(schema.names, map(pa.array, rows.T), strict=True)))
    same(Encoder(schema), batch)
    same(Encoder(schema, clip=0.5), batch, unit_rows=np.arange(1, len(rows) + 1))


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_lines_of_other_sums(data: st.DataObject) -> None:
    width, rows = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 9))
    limit = data.draw(st.integers(1, 2_000) | st.just(ROW_NORM_SQUARED))
    halves = st.integers(-2 * ROW_NORM, 2 * ROW_NORM).map(lambda k: k / 2)
    cells = data.draw(st.lists(halves | st.floats(-1e3, 1e3), min_size=width * rows, max_size=width * rows))
    lines = np.array(cells, float).reshape(width, rows)
    # About as long as the limit allows, on either side of it: what the rule is made for.
    length = np.maximum(np.sqrt((lines**2).sum(axis=0)), np.sqrt(limit))
    near = np.sqrt(limit) / length * (1 + 1e-9)
    for held, factor in ((lines * near, np.empty(0)), (lines, near)):
        plain, quick = held.copy(), held.copy()
        _vectorised.round_lines(plain, factor, limit)
        _compiled.round_lines(quick, factor, limit)
        assert plain.tobytes() == quick.tobytes()


@settings(deadline=None, max_examples=200)
@given(st.lists(st.binary(max_size=20), max_size=80))
@example([b"x" * length for length in range(100)])
@example([b"a person with a very long name" * 99, *[b"short", b""] * 50])
def test_hashes_of_texts(texts: list[bytes]) -> None:
    places = np.cumsum([3, *map(len, texts)]).astype(np.int64)  # as in a slice: the first text is not at 0
    letters = np.frombuffer(b"***" + b"".join(texts), np.uint8)
    plain, quick = (form.text_hashes(places, letters) for form in FORMS)
    assert plain.dtype == quick.dtype == np.uint64
    assert plain.tobytes() == quick.tobytes()


def test_the_hash_of_a_text_is_fixed_for_ever() -> None:
    """FNV-1a and the finisher of SplitMix64, in Python's integers."""
    value = 0xCBF29CE484222325
    for letter in b"person 7":
        value = (value ^ letter) * 0x100000001B3 % 2**64
    value = (value + 0x9E3779B97F4A7C15) % 2**64
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
    expected = value ^ (value >> 31)
    for form in FORMS:
        (found,) = form.text_hashes(np.array([0, 8]), np.frombuffer(b"person 7", np.uint8))
        assert int(found) == expected


@pytest.mark.parametrize("width", [1, 2, 7])
def test_hashes_of_rows(width: int) -> None:
    draw = np.random.default_rng(width)
    seeds = draw.integers(0, 2**64, 500, np.uint64)
    bits = draw.integers(0, 2**64, (500, width), np.uint64)
    for plain, quick in zip(*(form.row_hashes(seeds, bits) for form in FORMS), strict=True):
        assert plain.dtype == quick.dtype == np.uint64
        assert plain.tobytes() == quick.tobytes()


def test_cells_of_all_tables_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_CELLS", kernel._CellCounter())
    monkeypatch.setattr(kernel, "COMPILE_AFTER", 1_000)
    assert [kernel.kernel(400) for _ in range(4)] == [_vectorised] * 3 + [_compiled]


def test_a_small_table_is_published_without_the_compiler() -> None:
    code = (
        "import sys\n"
        "from dpgram.demo import insurance\n"
        "from dpgram.publishing import publish\n"
        "publish(insurance.table(2_000), insurance.schema(), epsilon=1.0, delta=1e-6, progress=False)\n"
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


class _Watch(event.Listener):
    """What a user is told when a compilation begins."""

    def __init__(self) -> None:
        self.told: list[str | None] = []

    def on_start(self, event: Any) -> None:
        self.told.append(kernel.compiling())

    def on_end(self, event: Any) -> None:
        del event


@pytest.fixture
def watch() -> Iterator[_Watch]:
    found = _Watch()
    with event.install_listener("numba:compile", found):
        yield found


def _compile(module: str) -> None:
    def one() -> int:
        return 1

    one.__module__ = module
    numba.njit(one)()


def test_it_is_told_while_the_loops_are_compiled(watch: _Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    _compile("somebody.else")
    _compile(_compiled.__name__)
    monkeypatch.setattr(kernel.COMPILING, "kept", False)
    _compile(_compiled.__name__)
    other, kept, not_kept = watch.told
    assert other is None
    assert kept == "compiling, once on this machine …"
    assert not_kept is not None
    assert "in each process" in not_kept
    assert kernel.compiling() is None


def test_the_progress_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with threads.display(None, 100) as show:
        assert show is not None
        show(10)
        monkeypatch.setattr(kernel.COMPILING, "started", kernel.COMPILING.ended + 1)
    assert "compiling, once on this machine" in terminal.getvalue()
