"""Faults that need no watching: crowds, clocks, folders that may not be written, sources that go away.

Each scene plays in a folder of its own and returns what it played and every promise it found broken.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Final, Self, final
from unittest.mock import patch

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import dpgram
from dpgram import cli
from dpgram.engines import LocalEngine
from dpgram.errors import DpgramError, DpgramWarning, LearningError, LedgerError, SourceError
from dpgram.privacy.accountant import composed, price
from dpgram.privacy.ledger import Ledger
from dpgram.privacy.ledger import ledger as ledger_module
from dpgram.release import Release
from dpgram.schema import Schema, numeric

PROJECT: Final = Path(__file__).resolve().parents[1]
ROWS: Final = 20_000
SCHEMA: Final = Schema(numeric("age", 18, 90), numeric("bmi", 10, 60))
ASKED: Final[dict[str, Any]] = {
    "epsilon": 0.3,
    "delta": 1e-8,
    "adaptive": False,
    "engine": LocalEngine(threads=1),
    "progress": False,
}


@final
@dataclass(kw_only=True)
class Scene:
    """What a scene played."""

    plays: int = 0
    releases: int = 0
    problems: list[str] = field(default_factory=list)


def new_ledger(folder: Path, epsilon: float = 3.0) -> Ledger:
    return Ledger.create(folder / "a.ledger", name="a", epsilon=epsilon, delta=1e-5)


def table(rows: int = ROWS) -> pa.Table:
    return pa.table(
        {"age": [18.0 + i % 70 for i in range(rows)], "bmi": [15.0 + (i * 7) % 300 / 10 for i in range(rows)]}
    )


# One publisher of the crowd: until the ledger refuses, a release a file.
PUBLISHER: Final = """
import sys
import pyarrow as pa
import dpgram
from dpgram.engines import LocalEngine
from dpgram.errors import BudgetExceeded
from dpgram.schema import Schema, numeric
folder, me = sys.argv[1:]
data = pa.table({"age": [30.0] * 10, "bmi": [20.0] * 10})
schema = Schema(numeric("age", 18, 90), numeric("bmi", 10, 60))
engine = LocalEngine(threads=1)
asked = {"epsilon": 0.3, "delta": 1e-8, "adaptive": False, "engine": engine, "progress": False}
dpgram.publish(data, schema, ledger=None, **asked)
print("ready", flush=True)
sys.stdin.readline()
number = 0
try:
    while True:
        made = dpgram.publish(data, schema, ledger=f"{folder}/a.ledger", **asked)
        number += 1
        made.save(f"{folder}/{me}-{number}.json")
except BudgetExceeded:
    print(number)
"""


def crowd(folder: Path, processes: int, epsilon: float) -> Scene:
    """Several processes publish to one ledger until it is empty: exactly what fits, each paid once."""
    ledger = new_ledger(folder, epsilon)
    alone = dpgram.publish(table(10), SCHEMA, **ASKED, ledger=ledger)
    assert alone.receipt is not None
    one = price(composed([alone.receipt.event]), ledger.currency).amount
    fits = ledger.total // one
    command = [sys.executable, "-c", PUBLISHER, str(folder)]
    publishers = [
        subprocess.Popen([*command, str(me)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for me in range(processes)
    ]
    for publisher in publishers:
        assert publisher.stdout is not None
        publisher.stdout.readline()
    for publisher in publishers:
        assert publisher.stdin is not None
        publisher.stdin.write("go\n")
        publisher.stdin.flush()
    told = [publisher.communicate(timeout=1200)[0].strip() for publisher in publishers]
    scene = Scene(plays=processes)
    if not all(text.isdigit() for text in told):
        scene.problems.append(f"a publisher did not end with a refusal: {told}")
    releases: dict[str, Release] = {path.name: dpgram.load(path) for path in folder.glob("*-*.json")}
    scene.releases = len(releases) + 1
    try:
        checked = ledger.verify({"alone": alone, **releases})
        if checked.unclaimed:
            scene.problems.append(f"{len(checked.unclaimed)} entries without a release")
    except LedgerError as problem:
        scene.problems.append(str(problem))
    if scene.releases != fits:
        scene.problems.append(f"{scene.releases} releases, but {fits} fit")
    if ledger.spent > ledger.total:
        scene.problems.append("overspent")
    return scene


CLOCK: Final = ("2026-05-01", "1970-01-01", "9999-12-31", "2026-04-30", "1901-12-13", "2038-01-20")


def clock_jumps(folder: Path) -> Scene:
    """The clock jumps between charges, decades back and ages ahead: entries keep their order."""
    moments: Iterator[str] = (moment for moment in CLOCK for _ in range(2))  # its charge and its closing

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromisoformat(next(moments)).replace(tzinfo=tz)

    ledger, releases, scene = new_ledger(folder), [], Scene()
    with patch.object(ledger_module, "datetime", Clock):
        for _ in CLOCK:
            releases.append(dpgram.publish(table(10), SCHEMA, **ASKED, ledger=ledger))
            scene.plays += 1
    checked = Ledger.open(ledger.path).verify(releases)
    scene.releases = len(releases)
    if checked.unclaimed or [one.receipt and one.receipt.entry for one in releases] != [*range(1, 12, 2)]:
        scene.problems.append("entries lost their order")
    if [entry.time[:10] for entry in ledger.history()] != [*CLOCK]:
        scene.problems.append("the times in the history are not those of the clock")
    return scene


def shut_folders(folder: Path) -> Scene:
    """A folder that may not be written: nothing is spent there, nor on a release that could not be kept."""
    new_ledger(folder)
    pq.write_table(table(10), folder / "a.parquet")
    SCHEMA.to_file(folder / "a.toml")
    shut = folder / "shut"
    shut.mkdir()
    shutil.copy(folder / "a.ledger", shut / "a.ledger")
    for path in (folder, folder / "a.ledger", shut / "a.ledger"):
        path.chmod(0o777)
    shut.chmod(0o555)
    scene = Scene()
    command = ["publish", str(folder / "a.parquet"), "-s", str(folder / "a.toml"), "--epsilon", "0.3"]
    command += ["--delta", "1e-8", "--json"]
    calls = {
        "the ledger's folder": [*command, "-l", str(shut / "a.ledger"), "-o", str(folder / "x.json")],
        "the release's folder": [*command, "-l", str(folder / "a.ledger"), "-o", str(shut / "x.json")],
    }
    # Once with all rights: what is imported at first use may lie where nobody can read it.
    _quietly([*command, "--no-ledger", "-o", str(folder / "rehearsal.json")])
    for what, call in calls.items():
        before = {path: path.read_bytes() for path in (folder / "a.ledger", shut / "a.ledger")}
        with _as_nobody():
            code = _quietly(call)
        scene.plays += 1
        if code != 2:
            scene.problems.append(f"{what}: exit code {code}")
        if any(path.read_bytes() != held for path, held in before.items()):
            scene.problems.append(f"{what}: something was spent")
        if (folder / "x.json").exists() or (shut / "x.json").exists():
            scene.problems.append(f"{what}: a release appeared")
    shut.chmod(0o755)
    if _quietly(calls["the release's folder"]) != 0:
        scene.problems.append("once the folder may be written, the same command fails")
    scene.releases = 1
    return scene


def _quietly(words: list[str]) -> int:
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return cli.run(words)


@contextmanager
def _as_nobody() -> Iterator[None]:
    """The superuser may write anywhere; for a while be nobody."""
    if os.geteuid() == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if os.getuid() == 0:
            os.seteuid(0)


class BrokenStream:
    """An Arrow stream that ends in an error after some batches."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        def batches() -> Iterator[pa.RecordBatch]:
            yield from table().to_batches(max_chunksize=5_000)[:2]
            raise OSError("the network went away")

        reader = pa.RecordBatchReader.from_batches(table(0).schema, batches())
        return reader.__arrow_c_stream__(requested_schema)


class DroppedCursor:
    """A database cursor that loses its connection while rows are fetched."""

    def __init__(self, honest: sqlite3.Cursor) -> None:
        self._honest, self._fetched = honest, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._honest, name)

    def fetchmany(self, size: int) -> list[Any]:
        self._fetched += 1
        if self._fetched > 1:
            raise sqlite3.OperationalError("server closed the connection unexpectedly")
        return self._honest.fetchmany(min(size, 100))


class DroppedDatabase:
    def __init__(self, path: Path) -> None:
        self._honest = sqlite3.connect(path, check_same_thread=False)

    def cursor(self) -> DroppedCursor:
        return DroppedCursor(self._honest.cursor())

    def close(self) -> None:
        self._honest.close()


def broken_sources(folder: Path) -> dict[str, object]:
    """Tables that cannot be read to their end, by what is wrong with them."""
    people = table()
    whole = folder / "whole.parquet"
    pq.write_table(people, whole, row_group_size=5_000, compression="none", use_dictionary=False)
    raw = whole.read_bytes()
    (folder / "cut.parquet").write_bytes(raw[: len(raw) // 2])
    # Zeros over a page header: the row groups before it are read, then it breaks.
    (folder / "holed.parquet").write_bytes(_without_header(raw))
    pyarrow.csv.write_csv(people, folder / "whole.csv")
    text = (folder / "whole.csv").read_bytes()
    (folder / "quote.csv").write_bytes(text[: len(text) // 2] + b'\n1,"')
    packed = gzip.compress(text)
    (folder / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    parts = folder / "parts"
    parts.mkdir()
    pq.write_table(people, parts / "1.parquet")
    (parts / "2.parquet").write_bytes(raw[:-40])
    base = folder / "base.db"
    with sqlite3.connect(base) as connection:
        connection.execute("CREATE TABLE people (age REAL, bmi REAL)")
        connection.executemany("INSERT INTO people VALUES (?, ?)", [(30.0, 20.0)] * 500)
    connection.close()
    return {
        "a Parquet file cut in half": folder / "cut.parquet",
        "a Parquet file with a hole": folder / "holed.parquet",
        "a folder with one broken file": parts,
        "a CSV file that ends inside a cell": folder / "quote.csv",
        "a packed CSV file cut in half": folder / "cut.csv.gz",
        "a stream that breaks": BrokenStream(),
        "a database that goes away": (DroppedDatabase(base), "SELECT age, bmi FROM people"),
    }


def _without_header(raw: bytes) -> bytes:
    """Zeros where the third row group begins."""
    metadata = pq.ParquetFile(pa.BufferReader(raw)).metadata
    start = metadata.row_group(2).column(0).data_page_offset
    return raw[:start] + bytes(64) + raw[start + 64 :]


def lost_sources(folder: Path) -> Scene:
    """Each broken table is refused with SourceError before anything is spent; a whole one then passes."""
    ledger, scene = new_ledger(folder), Scene()
    untouched = ledger.path.read_bytes()
    for what, data in broken_sources(folder).items():
        scene.plays += 1
        try:
            dpgram.publish(data, SCHEMA, **ASKED, ledger=ledger)
            scene.problems.append(f"{what}: a release was made")
        except SourceError as problem:
            if "\n" in str(problem):
                scene.problems.append(f"{what}: not one line: {problem}")
        except Exception as problem:  # noqa: BLE001  (any other is a finding)
            scene.problems.append(f"{what}: {type(problem).__name__}: {problem}")
        if ledger.path.read_bytes() != untouched:
            scene.problems.append(f"{what}: something was spent")
    ledger.verify([dpgram.publish(folder / "whole.parquet", SCHEMA, **ASKED, ledger=ledger)])
    scene.releases = 1
    return scene


def vanishing_table(folder: Path) -> Scene:
    """Learning reads the table again after the charge. If it is gone, the error says what was spent.

    When it is back, the same call goes on from there: what was charged is claimed by its release.
    """
    ledger, scene = new_ledger(folder), Scene(plays=1)
    place = folder / "people.parquet"
    pq.write_table(table(3_000), place)
    schema = Schema(numeric("age"), numeric("bmi", 10, 60))

    def publish(progress: Callable[[int], None] | None) -> Release:
        return dpgram.publish(
            place,
            schema,
            epsilon=1.0,
            delta=1e-6,
            ledger=ledger,
            progress=progress,
            adaptive=dpgram.Adaptive(bounds=0.3),
        )

    def vanish(_: int) -> None:
        place.unlink(missing_ok=True)

    try:
        publish(vanish)
        scene.problems.append("a release was made of a table that is gone")
    except LearningError as problem:
        if problem.spent is None or "the budget was spent" not in str(problem):
            scene.problems.append(f"it does not say what was spent: {problem}")
    except DpgramError as problem:
        scene.problems.append(f"it does not say what was spent: {problem}")
    if len(ledger.history()) != 1:
        scene.problems.append(f"{len(ledger.history())} entries")
    pq.write_table(table(3_000), place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)  # it says that it goes on
        checked = ledger.verify([publish(None)])
    scene.releases = 1
    if checked.unclaimed or checked.entries != 1:
        scene.problems.append("the charge was lost, or made again")
    return scene


SCENES: Final[dict[str, Callable[[Path], Scene]]] = {
    "the clock jumps": clock_jumps,
    "a folder may not be written": shut_folders,
    "a source cannot be read to its end": lost_sources,
    "a table vanishes after the charge": vanishing_table,
}
