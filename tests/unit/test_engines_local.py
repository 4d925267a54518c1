"""The local engine: the same bits for any order, batches, threads and source; clean errors and interrupts."""

from __future__ import annotations

import csv
import io
import os
import pty
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow.dataset import dataset

from dpgram.engines import base, local, passes
from dpgram.engines.local import gram
from dpgram.engines.threads import Run
from dpgram.errors import DataError, DpgramError, DpgramWarning, SchemaError, SourceError
from dpgram.rows.encoder import Encoder
from dpgram.schema import Schema, boolean, categorical, numeric, product
from dpgram.sums.exact_gram import ExactGram

from . import slow_encoder
from .tables import CLIPS, Table, tables

POLICIES = st.sampled_from(["drop", "midpoint"])
QUIET = pytest.mark.filterwarnings("ignore:no row of the data was usable")
UNCHECKED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow)


@QUIET
@settings(deadline=None, max_examples=60)
@given(tables(), CLIPS, POLICIES)
def test_equals_the_slow_integer_reference(table: Table, clip: float | None, missing: str) -> None:
    exact = gram(table.batch(), table.schema, clip, missing=missing, threads=1)
    assert exact.cells.tolist() == slow_encoder.gram(table.rows, table.schema, clip=clip, missing=missing)


@QUIET
@settings(deadline=None, max_examples=40)
@given(tables(max_rows=40), CLIPS, POLICIES, st.integers(1, 17), st.integers(1, 3), st.randoms())
def test_same_bits_for_any_order_batches_and_threads(
    table: Table, clip: float | None, missing: str, size: int, threads: int, shuffler: object
) -> None:
    batch = table.batch()
    whole = gram(batch, table.schema, clip, missing=missing, threads=1)
    order = list(range(batch.num_rows))
    shuffler.shuffle(order)
    mixed = batch.take(pa.array(order, pa.int64()))
    pieces = pa.Table.from_batches([mixed.slice(i, size) for i in range(0, len(order), size)], batch.schema)
    assert gram(pieces, table.schema, clip, missing=missing, threads=threads) == whole
    work = passes.gram_pass(Encoder(table.schema, clip=clip, missing=missing))
    halves = [mixed.slice(0, size), mixed.slice(size)]
    parts = [work.sums([(first, half)]) for first, half in zip((0, size), halves, strict=True)]
    assert passes.merge(parts) == (whole,)


def sources(table: Table, folder: Path) -> Iterator[tuple[str, object]]:
    """The same rows in every form of data."""
    batch = table.batch()
    columns = {name: table.column(name) for name in table.schema.source_columns}
    arrow = pa.Table.from_batches([batch])
    yield "Arrow table", arrow
    yield "Arrow stream", pa.RecordBatchReader.from_batches(batch.schema, [batch])
    yield "mapping", columns
    yield "pandas", pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})
    yield "pandas on Arrow", arrow.to_pandas(types_mapper=pd.ArrowDtype)
    yield "Polars", pl.from_arrow(arrow)
    yield "Polars query", pl.from_arrow(arrow).lazy()
    yield "DuckDB", duckdb.from_arrow(arrow)
    yield "Arrow dataset", dataset(arrow)
    pq.write_table(arrow, folder / "table.parquet", row_group_size=5)
    yield "Parquet", folder / "table.parquet"
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    # The shortest text that gives a float back; a missing cell is an empty one.
    writer.writerows([["" if row[name] is None else row[name] for name in columns] for row in table.rows])
    (folder / "table.csv").write_text(text.getvalue())
    odd = {"", None} if len(columns) == 1 else {""}  # CSV cannot tell these from "" or an empty line
    if odd.isdisjoint(cell for cells in columns.values() for cell in cells):
        yield "CSV", folder / "table.csv"


@QUIET
@settings(deadline=None, max_examples=25, suppress_health_check=UNCHECKED)
@given(table=tables(max_rows=20), missing=POLICIES)
def test_same_bits_for_every_source(table: Table, missing: str, tmp_path: Path) -> None:
    expected = gram(table.batch(), table.schema, missing=missing, threads=1)
    for name, data in sources(table, tmp_path):
        found = gram(data, table.schema, missing=missing, threads=2)
        assert np.array_equal(found.cells, expected.cells), name
        assert found.rows == expected.rows, name


NUMBERS = Schema(numeric("a", -1, 1), boolean("b"), numeric("c", -2, 3), product("a", "c"))


def numbers(rows: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    values = rng.uniform(-3, 4, (rows, 3))
    values[:, 1] = rng.integers(0, 2, rows)
    values[rng.random(values.shape) < 0.001] = np.nan
    return values


@pytest.mark.parametrize("rows", [1, 7, 8, 4_000, 4_001, 200_003])
def test_same_bits_straight_from_an_array(rows: int) -> None:
    """The short way for float64 arrays gives what the long way through Arrow gives."""
    values = numbers(rows)
    through_arrow = pa.table(dict(zip("abc", values.T.copy(), strict=True)))
    expected = gram(through_arrow, NUMBERS, 1.5, threads=1)
    read_only = values.copy()
    read_only.flags.writeable = False
    for form in (values, np.asfortranarray(values), values[::-1], read_only, values.astype(">f8")):
        for threads in (1, 2, 3):
            assert gram(form, NUMBERS, 1.5, threads=threads) == expected
    assert gram(np.ma.masked_invalid(values), NUMBERS, 1.5).cells.tolist() == expected.cells.tolist()


def test_the_callers_array_is_not_written_to() -> None:
    values = numbers(10_000)
    before = values.copy()
    gram(values, NUMBERS)
    np.testing.assert_array_equal(values, before)


def test_a_wrong_number_of_columns_is_refused() -> None:
    with pytest.raises(SourceError, match="3 columns"):
        gram(np.zeros((5, 2)), NUMBERS)


def test_strict_errors_keep_their_row_numbers() -> None:
    values = np.zeros((100_000, 3))
    values[77_777, 2] = 9.0
    named = pa.table(dict(zip("abc", values.T.copy(), strict=True)))
    for data in (values, named):
        for threads in (1, 2):
            with pytest.raises(
                DataError, match="outside the declared bounds in column 'c' at row 77777"
            ) as raised:
                gram(data, NUMBERS, strict=True, threads=threads)
            assert raised.value.row == 77_777


def test_no_usable_row_warns_and_gives_zero() -> None:
    empty = pa.table({"a": pa.array([], pa.float64())})
    lost = pa.table({"a": [None, float("nan")]})
    schema = Schema(numeric("a", 0, 1))
    for data in (empty, lost, np.empty((0, 1)), np.full((3, 1), np.nan)):
        with pytest.warns(DpgramWarning, match="no row of the data was usable"):
            assert not gram(data, schema).cells.any()
    for data in (empty, np.empty((0, 1))):
        with pytest.raises(DataError, match="no row of the data was usable"):
            gram(data, schema, strict=True)


def test_success_does_not_depend_on_one_rows_values() -> None:
    """Whatever a single cell holds, the engine finishes."""
    schema = Schema(numeric("a", 0, 1), categorical("b", ["x"]), boolean("c"))
    for cell in (
        None,
        float("nan"),
        float("inf"),
        -1e308,
        5e-324,
        "text",
        b"\xff",
        10**400,
        object(),
        (),
        "😀",
    ):
        rows = {"a": [0.5, cell], "b": ["x", cell], "c": [True, cell]}
        assert gram(rows, schema).counts.rows_read == 2


@pytest.mark.parametrize("threads", [0, -1, True])
def test_bad_number_of_threads(threads: int) -> None:
    with pytest.raises(DpgramError, match="number of threads"):
        gram(np.zeros((1, 3)), NUMBERS, threads=threads)


def test_arguments_are_checked_before_data_is_opened() -> None:
    with pytest.raises(SchemaError, match="clip radius"):
        gram("no such file.parquet", NUMBERS, clip=-1)


def test_the_engine_follows_the_protocol() -> None:
    engine: base.Engine = local.LocalEngine()
    (found,) = engine.add_up(numbers(10), passes.gram_pass(Encoder(NUMBERS)))
    assert isinstance(found, ExactGram)


def test_progress_function_sees_all_rows(capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[int] = []
    gram(numbers(150_000), NUMBERS, progress=seen.append)
    assert seen[-1] == 150_000
    assert seen == sorted(seen)
    gram(numbers(100), NUMBERS)  # not a terminal: silent
    gram(numbers(100), NUMBERS, progress=False)
    assert capfd.readouterr() == ("", "")


def read_to_the_end(terminal: int) -> str:
    pieces = []
    try:
        while piece := os.read(terminal, 4096):
            pieces.append(piece)
    except OSError:  # how Linux says that the other side is closed
        pass
    return b"".join(pieces).decode()


def test_a_bar_is_drawn_on_a_terminal_and_taken_away(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        "import numpy as np\n"
        "from dpgram.engines.local import gram\n"
        "from dpgram.schema import Schema, numeric\n"
        "gram(np.zeros((300_000, 2)), Schema(numeric('a', -1, 1), numeric('b', -1, 1)))\n"
    )
    keyboard, screen = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=screen, env=environment
    ) as run:
        os.close(screen)
        shown = read_to_the_end(keyboard)
        assert run.stdout is not None
        assert run.stdout.read() == b""
    os.close(keyboard)
    assert run.returncode == 0
    assert "300000/300000" in shown
    assert shown.rstrip().endswith("\x1b[2K")  # the line is erased at the end


class Slow:
    """An Arrow stream without an end, which tells when it is well under way: more was taken than is read
    ahead."""

    def __init__(self) -> None:
        self.under_way = threading.Event()
        self.given = 0

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        batch = pa.record_batch(dict(zip("abc", numbers(1000).T.copy(), strict=True)))

        def batches() -> Iterator[pa.RecordBatch]:
            while True:
                self.given += 1
                if self.given == 10:
                    self.under_way.set()
                time.sleep(0.001)
                yield batch

        return pa.RecordBatchReader.from_batches(batch.schema, batches()).__arrow_c_stream__(requested_schema)


def working_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("dpgram")}


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own handling of SIGINT, which a shell's background job is started without."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_stops_all_workers(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Slow()
    before = working_threads()
    all_started, watch = threading.Event(), Run._watch

    def watched(run: Run, *given: object) -> None:
        all_started.set()
        watch(run, *given)

    monkeypatch.setattr(Run, "_watch", watched)

    def interrupt() -> None:
        data.under_way.wait()
        if threads > 1:
            all_started.wait()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    helper = threading.Thread(target=interrupt)
    helper.start()
    with pytest.raises(KeyboardInterrupt):  # the stream has no end: without the interrupt neither has this
        gram(data, NUMBERS, threads=threads)
    helper.join()
    assert working_threads() <= before
    given = data.given
    time.sleep(0.05)
    assert data.given == given


def test_control_c_ends_a_program_without_noise(tmp_path: Path) -> None:
    """As a person would: SIGINT to a process that waits for its source; an ordinary KeyboardInterrupt,
    nothing else."""
    script = tmp_path / "run.py"
    script.write_text(
        "import signal, time, pyarrow as pa\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from dpgram.engines.local import gram\n"
        "from dpgram.schema import Schema, numeric\n"
        "batch = pa.record_batch({c: [0.5] * 1000 for c in 'abcdefgh'})\n"
        "def batches():\n"
        "    for _ in range(500):\n"
        "        yield batch\n"
        "    print('ready', flush=True)\n"
        "    while True:\n"
        "        time.sleep(0.01)\n"
        "        yield batch\n"
        "schema = Schema(*(numeric(c, -1, 1) for c in 'abcdefgh'))\n"
        "try:\n"
        "    gram(pa.RecordBatchReader.from_batches(batch.schema, batches()), schema)\n"
        "except KeyboardInterrupt:\n"
        "    print('stopped', flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate()
    assert (out, err, process.returncode) == ("stopped\n", "", 0)


class Breaking:
    """A stream that fails after a few batches."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        batch = pa.record_batch(dict(zip("abc", numbers(100).T.copy(), strict=True)))

        def batches() -> Iterator[pa.RecordBatch]:
            for _ in range(5):
                yield batch
            raise OSError("the disk has gone, with the value 12345")

        return pa.RecordBatchReader.from_batches(batch.schema, batches()).__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_failing_source_stops_the_run(threads: int) -> None:
    with pytest.raises(SourceError) as raised:
        gram(Breaking(), NUMBERS, threads=threads)
    assert "12345" not in str(raised.value)


@pytest.mark.parametrize("threads", [1, 2])
def test_memory_does_not_grow_with_the_table(threads: int) -> None:
    """However long the stream: no more batches are alive at once than the workers and the queue can hold."""
    alive, most = 0, 0

    def gone() -> None:
        nonlocal alive
        alive -= 1

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal alive, most
        for _ in range(300):
            columns = numbers(1000).T.copy()  # Arrow points into it, and so keeps it alive
            alive, most = alive + 1, max(most, alive + 1)
            weakref.finalize(columns, gone)
            yield pa.record_batch([pa.array(column) for column in columns], names=["a", "b", "c"])

    schema = pa.schema(dict.fromkeys("abc", pa.float64()))
    gram(pa.RecordBatchReader.from_batches(schema, batches()), NUMBERS, threads=threads)
    assert alive == 0
    assert most <= 8  # of 300
