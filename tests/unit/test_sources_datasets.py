"""Arrow datasets: every file with its own types, as a list of the same files; guessed types are refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from tests.flat import publish

import dpgram as dg
from dpgram.core.noise import SeededEntropy
from dpgram.engines import gram
from dpgram.engines.dask import DaskEngine
from dpgram.errors import SourceError
from dpgram.rows.units import unit_ids
from dpgram.sources import Source, open_source

DAY = dt.date(2020, 1, 1)
NAIVE = dt.datetime(2020, 1, 1)  # noqa: DTZ001  without a zone on purpose
MORNING = NAIVE.replace(hour=3)
SINGLE = pa.array([1.0], pa.float32())
NUMBER = dg.Schema(dg.numeric("v", 0, 10))

IDS: dict[str, tuple[pa.Array, pa.Array]] = {
    "float and double": (SINGLE, pa.array([16777216.0, 16777217.0])),
    "day and moment": (pa.array([DAY]), pa.array([MORNING, NAIVE])),
    "truth value and integer": (pa.array([True]), pa.array([7, 8])),
    "text and bytes": (pa.array(["a"]), pa.array([b"\xff", b"a"])),
    "text and float": (pa.array(["a"]), pa.array([7.0, 1e16])),
    "text and moment": (pa.array(["a"]), pa.array([MORNING, NAIVE])),
    "zoned and naive": (pa.array([NAIVE.replace(tzinfo=dt.UTC)]), pa.array([NAIVE, MORNING])),
    "seconds and nanoseconds": (
        pa.array([0], pa.timestamp("s")),
        pa.array([1, 2], pa.timestamp("ns")),
    ),
    "levels and text": (pa.array(["a"]).dictionary_encode(), pa.array(["b", "a"])),
    "nothing and text": (pa.nulls(1), pa.array(["b", "a"])),
}

CELLS: dict[str, tuple[pa.Array, int]] = {
    "a large integer": (pa.array([3, 2**40]), 4),
    "a word": (pa.array(["3", "x"]), 3),
    "a fraction": (pa.array([3.0, 4.5]), 4),
    "a moment": (pa.array(["3", "2020-01-01"]), 3),
}


def files(folder: Path, **columns: tuple[pa.Array, ...]) -> list[Path]:
    """Parquet files, of which number i has cells number i of each column."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number}.parquet" for number in range(len(next(iter(columns.values()))))]
    for number, path in enumerate(paths):
        pq.write_table(pa.table({name: cells[number] for name, cells in columns.items()}), path)
    return paths


def opened(data: object) -> Source:
    return open_source(data, ["id"], kinds={"id": "id"})


def ids(data: object) -> list[str | None]:
    return [text for batch in opened(data).batches() for text in unit_ids(batch.column(0), "id").to_pylist()]


def sent_ids(data: object) -> list[str | None]:
    """As another machine reads them."""
    found = opened(data).sendable_pieces()
    assert found is not None
    batches = (batch for piece in found.pieces for batch in found.read(piece))
    return [text for batch in batches for text in unit_ids(batch.column(0), "id").to_pylist()]


@pytest.mark.parametrize("pair", IDS)
@pytest.mark.parametrize("read", [ids, sent_ids])
@pytest.mark.parametrize("turned", [False, True])
def test_ids_are_those_of_the_files(
    pair: str, read: Callable[[object], list[str | None]], turned: bool, tmp_path: Path
) -> None:
    cells = IDS[pair][::-1] if turned else IDS[pair]
    paths = files(tmp_path, id=cells)
    expected = ids(paths)
    assert read(ds.dataset(paths)) == expected
    assert len(set(IDS[pair][1].to_pylist())) == len(set(ids(paths[:1] if turned else paths[1:])))


@pytest.mark.parametrize("cell", CELLS)
def test_no_cell_stops_the_reading(cell: str, tmp_path: Path) -> None:
    second, used = CELLS[cell]
    paths = files(tmp_path, v=(pa.array([1, 2], pa.int32()), second))
    found = gram(ds.dataset(paths), NUMBER)
    assert found.counts.rows_used == used
    assert found == gram(paths, NUMBER)


@pytest.mark.parametrize("form", ["feather", "orc"])
def test_other_files_with_types(form: str, tmp_path: Path) -> None:
    if form == "orc":
        pa_orc = pytest.importorskip("pyarrow.orc", reason="this pyarrow has no ORC")
    write = pa.feather.write_feather if form == "feather" else pa_orc.write_table
    write(pa.table({"id": SINGLE}), str(tmp_path / "0"))
    write(pa.table({"id": [16777216.0, 16777217.0]}), str(tmp_path / "1"))
    data = ds.dataset([tmp_path / "0", tmp_path / "1"], format=form)
    assert ids(data) == ["1", "16777216", "16777217"]


def test_unions(tmp_path: Path) -> None:
    in_files = ds.dataset(files(tmp_path, id=IDS["float and double"]))
    data = ds.dataset([in_files, ds.dataset(pa.table({"id": SINGLE}))])
    assert ids(data) == ["1", "16777216", "16777217", "1"]


def test_a_column_that_a_file_has_not(tmp_path: Path) -> None:
    pq.write_table(pa.table({"v": [1, 2]}), tmp_path / "other.parquet")
    assert ids(ds.dataset([*files(tmp_path, id=(SINGLE,)), tmp_path / "other.parquet"])) == ["1", None, None]


def test_a_column_that_a_file_has_twice(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_arrays([SINGLE, SINGLE], names=["id", "id"]), tmp_path / "twice.parquet")
    with pytest.raises(SourceError, match="several columns named 'id'"):
        ids(ds.dataset([*files(tmp_path, id=(SINGLE,)), tmp_path / "twice.parquet"]))


@pytest.mark.parametrize("read", [ids, sent_ids])
def test_types_are_refused_in_files_without_rows(
    read: Callable[[object], list[str | None]], tmp_path: Path
) -> None:
    paths = files(tmp_path, id=(SINGLE, pa.array([], pa.duration("s"))))
    with pytest.raises(SourceError, match="cannot tell units apart"):
        read(ds.dataset(paths))


def test_no_files(tmp_path: Path) -> None:
    assert ids(ds.dataset(tmp_path, schema=pa.schema([("id", pa.string())]))) == []


class TestFilters:
    def test_rows(self, tmp_path: Path) -> None:
        paths = files(tmp_path, id=(pa.array([16777216.0]), pa.array([16777217.0])))
        data = ds.dataset(paths).filter(ds.field("id") > 16777216)
        assert ids(data) == ["16777217"]
        parts = [ds.dataset(path) for path in paths]
        assert ids(ds.dataset(parts).filter(ds.field("id") < 16777217)) == ["16777216"]
        assert ids(ds.dataset(pa.table({"id": [1, 2]})).filter(ds.field("id") > 1)) == ["2"]

    def test_not_for_other_machines(self, tmp_path: Path) -> None:
        data = ds.dataset(files(tmp_path, id=(SINGLE,))).filter(ds.field("id") > 0)
        assert opened(data).sendable_pieces() is None

    def test_on_files_of_several_types(self, tmp_path: Path) -> None:
        """A filter sees what Arrow has cast, also in columns that nobody asks for."""
        paths = files(tmp_path, id=(SINGLE, SINGLE), v=(pa.array([1], pa.int32()), pa.array(["x"])))
        data = ds.dataset(paths)
        assert ids(data) == ["1", "1"]
        with pytest.raises(SourceError, match=r"the type of column 'v'; got int32 and string") as raised:
            opened(data.filter(ds.field("v") > 0))
        assert raised.value.__cause__ is None


class TestGuessedTypes:
    @pytest.mark.parametrize(("form", "text"), [("csv", "id\n7\n"), ("json", '{"id": 7}\n')])
    @pytest.mark.parametrize(
        "make", [lambda d: d, lambda d: d.filter(ds.field("id") > 0), lambda d: ds.dataset([d])]
    )
    def test_text_files(self, form: str, text: str, make: Callable[[Any], Any], tmp_path: Path) -> None:
        (tmp_path / "people").write_text(text)
        with pytest.raises(SourceError, match=r"guesses types .* list of their paths"):
            opened(make(ds.dataset(tmp_path / "people", format=form)))

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for key in ("07", "7"):
            files(tmp_path / f"id={key}", v=(pa.array([1]),))
        return tmp_path

    def test_keys_as_text(self, folder: Path) -> None:
        keys = ds.partitioning(pa.schema([("id", pa.string())]), flavor="hive")
        data = ds.dataset(folder, partitioning=keys)
        assert ids(data) == sent_ids(data) == ids(folder) == ["07", "7"]
        assert ids(data.filter(ds.field("id") == "07")) == ["07"]

    @pytest.mark.parametrize("dictionary", [False, True])
    def test_keys_as_integers(self, folder: Path, dictionary: bool) -> None:
        keys = ds.HivePartitioning.discover(infer_dictionary=dictionary)
        data = ds.dataset(folder, partitioning=keys)
        with pytest.raises(SourceError, match=r"'id' comes from folder names.*got int32"):
            opened(data)
        with pytest.raises(SourceError, match="comes from folder names"):
            gram(data, dg.Schema(dg.categorical("id", ["07", "7"])))
        assert gram(data, dg.Schema(dg.numeric("id", 0, 10))).counts.rows_used == 2

    def test_a_declared_type_of_keys(self, folder: Path) -> None:
        """Only ids are refused: Arrow never guesses int64."""
        keys = ds.partitioning(pa.schema([("id", pa.int64())]), flavor="hive")
        data = ds.dataset(folder, partitioning=keys)
        with pytest.raises(SourceError, match="comes from folder names"):
            opened(data)
        assert gram(data, dg.Schema(dg.categorical("id", ["7"]))).counts.rows_used == 2


class TestPublish:
    ROWS = dg.Rows(unit="id")

    @pytest.mark.parametrize("engine", ["local", "dask"])
    def test_persons_stay_apart(self, engine: str, tmp_path: Path) -> None:
        if engine == "dask":
            pytest.importorskip("dask", reason="the extra 'dask' is not installed")
        people = [float(2**24 + number) for number in range(400)]
        paths = files(
            tmp_path,
            id=(SINGLE, pa.array(people)),
            v=(pa.array([1], pa.int32()), pa.array([*("3" for _ in people[1:]), "x"])),
        )
        first, second = (
            publish(
                data,
                NUMBER,
                epsilon=1,
                delta=1e-6,
                unit="id",
                engine=DaskEngine(scheduler="threads") if engine == "dask" else "local",
                adaptive=False,
                entropy=SeededEntropy(3),
            )
            for data in (ds.dataset(paths), paths)
        )
        assert first == second
        assert dg.publish(ds.dataset(paths), NUMBER, epsilon=1, delta=1e-6, rows=self.ROWS).unit == "id"

    def test_nothing_is_charged_for_what_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "people.csv").write_text("id,v\n7,1\n")
        ledger = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=2, delta=1e-5, unit="id")
        data = ds.dataset(tmp_path / "people.csv", format="csv")
        with pytest.raises(SourceError, match="guesses types"):
            dg.publish(data, NUMBER, epsilon=1, delta=1e-6, rows=self.ROWS, ledger=ledger)
        assert ledger.spent == 0


class TestOldMoments:
    """INT96 has no bounds that a unit of time has, and ORC files hold what Arrow's nanoseconds do not."""

    FAR = tuple(NAIVE.replace(year=year) for year in (2001, 9999, 1))
    DATES = dg.Schema(dg.numeric("v", "2000-01-01", "2030-01-01"))

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        table = pa.table({"v": pa.array(self.FAR, pa.timestamp("us")), "n": [1, 2, 3]})
        pq.write_table(table, tmp_path / "old.parquet", use_deprecated_int96_timestamps=True)
        return tmp_path / "old.parquet"

    def test_dates_keep_their_year(self, path: Path) -> None:
        """9999 was read as 1816."""
        source = open_source(path, ["v"], kinds={"v": "date"})
        assert [cell for batch in source.batches() for cell in batch.column(0).to_pylist()] == [*self.FAR]

    def test_ids_are_refused_by_type(self, path: Path) -> None:
        for data in (path, [path], ds.dataset(path)):
            with pytest.raises(SourceError, match=r"'v' of .* got INT96"):
                open_source(data, ["v", "n"], kinds={"v": "id", "n": "number"})
        open_source(path, ["n"], kinds={"n": "id"})

    def test_datasets_would_wrap_around(self, path: Path) -> None:
        with pytest.raises(SourceError, match="got INT96"):
            gram(ds.dataset(path), self.DATES)
        assert gram(ds.dataset(path), dg.Schema(dg.numeric("n", 0, 3))).counts.rows_used == 3

    @pytest.mark.parametrize("year", [2001, 9999])
    def test_moments_in_orc_are_refused_whatever_they_are(self, year: int, tmp_path: Path) -> None:
        table = pa.table({"v": pa.array([NAIVE.replace(year=year)], pa.timestamp("s")), "n": [1.0]})
        orc.write_table(table, tmp_path / "a.orc")
        data = ds.dataset(tmp_path / "a.orc", format="orc")
        with pytest.raises(SourceError, match="'v' of the Arrow dataset holds timestamps"):
            gram(data, self.DATES)
        assert gram(data, dg.Schema(dg.numeric("n", 0, 3))).counts.rows_used == 1
