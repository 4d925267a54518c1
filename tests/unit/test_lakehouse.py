"""Folders of Delta, Iceberg and Hudi tables are refused: they keep the files of earlier versions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from polars._plr import PyLazyFrame
from polars._utils.wrap import wrap_ldf

import dpgram as dg
from dpgram.cli import run
from dpgram.engines import gram
from dpgram.engines.dask import DaskEngine
from dpgram.errors import SourceError
from dpgram.sources import column_types

SCHEMA = dg.Schema(dg.numeric("v", 0, 10))
TABLE = pa.table({"v": [1, 2, 3]})
NOTES = {
    "Delta": "_delta_log/00000000000000000000.json",
    "Hudi": ".hoodie/hoodie.properties",
    "a part of Hudi's": "region=north/.hoodie_partition_metadata",
    "Iceberg": "metadata/v2.metadata.json",
    "Iceberg's of a catalogue": "metadata/00001-1f3a.gz.metadata.json",
    "Iceberg's manifests": "metadata/snap-1.avro",
}


def table_with(note: str, folder: Path) -> Path:
    """Two versions of one table, and what tells them apart."""
    data = folder / "people's table" / ("data" if note.startswith("metadata") else "region=north")
    data.mkdir(parents=True)
    for version in (1, 2):
        pq.write_table(TABLE, data / f"part-{version}.parquet")
    place = data.parent / note
    place.parent.mkdir(exist_ok=True)
    place.touch()
    return data.parent


def link(folder: Path) -> Path:
    made = folder.parent / "elsewhere.parquet"
    made.symlink_to(next(folder.rglob("*.parquet")))
    return made


def view(folder: Path) -> Any:
    connection = duckdb.connect()
    path = f"{folder}/*/*.parquet".replace("'", "''")
    connection.execute(f"CREATE MACRO files() AS TABLE SELECT * FROM read_parquet('{path}')")
    connection.execute('CREATE TEMP VIEW "all" AS FROM files()')
    return connection


def outer(folder: Path) -> Any:
    return pafs.SubTreeFileSystem(str(folder), pafs.LocalFileSystem())


def memory(folder: Path) -> str:
    """The same files in a file system of fsspec's."""
    import fsspec

    system = fsspec.filesystem("memory")
    for path in filter(Path.is_file, folder.rglob("*")):
        system.pipe(f"/{folder.parent.name}/{path.relative_to(folder.parent)}", path.read_bytes())
    return f"memory://{folder.parent.name}"


FORMS: dict[str, Callable[[Path], Any]] = {
    "folder": lambda folder: folder,
    "folder around it": lambda folder: folder.parent,
    "folder of a part": lambda folder: next(folder.rglob("*.parquet")).parent,
    "pattern": lambda folder: str(folder / "*" / "*.parquet"),
    "list": lambda folder: sorted(folder.rglob("*.parquet")),
    "one file": lambda folder: next(folder.rglob("*.parquet")),
    "link": link,
    "address": lambda folder: folder.as_uri(),
    "dataset": lambda folder: ds.dataset(sorted(map(str, folder.rglob("*.parquet")))),
    "filtered dataset": lambda folder: ds.dataset(folder, format="parquet").filter(ds.field("v") > 1),
    "dataset of a part": lambda folder: ds.dataset(
        next(folder.rglob("*.parquet")).name,
        filesystem=outer(next(folder.rglob("*.parquet")).parent),
        format="parquet",
    ),
    "Polars query": lambda folder: pl.scan_parquet(folder / "*" / "*.parquet").filter(pl.col("v") > 0),
    "Polars query of addresses": lambda folder: pl.scan_parquet(
        sorted(path.as_uri() for path in folder.rglob("*.parquet"))
    ),
    "Polars query of a dataset": lambda folder: pl.scan_pyarrow_dataset(
        ds.dataset(sorted(map(str, folder.rglob("*.parquet"))))
    ),
    "DuckDB relation": lambda folder: duckdb.read_parquet(f"{folder}/*/*.parquet").project("v"),
    "DuckDB query": lambda folder: (
        view(folder),
        "SELECT v FROM 'x'".replace("'x'", f'"{folder}/*/*.parquet"'),
    ),
    "DuckDB view": lambda folder: (view(folder), 'SELECT v FROM "all"'),
    "DuckDB relation of a view": lambda folder: view(folder).view("all").filter("v > 0"),
    "another machine": memory,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("note", NOTES)
def test_every_form_of_such_a_folder_is_refused(note: str, form: str, tmp_path: Path) -> None:
    folder = table_with(NOTES[note], tmp_path)
    with pytest.raises(SourceError, match="people would be counted several times") as refused:
        gram(FORMS[form](folder), SCHEMA)
    kind = next(kind for kind in ("Delta", "Hudi", "Iceberg") if kind in note)
    assert f"the folder of a {kind} table" in str(refused.value)
    assert "north" not in str(refused.value)  # a cell of all rows below it


@pytest.mark.parametrize("note", NOTES)
def test_dask(note: str, tmp_path: Path) -> None:
    dd = pytest.importorskip("dask.dataframe", reason="the extra 'dask' is not installed")
    folder = table_with(NOTES[note], tmp_path)
    paths = sorted(map(str, folder.rglob("*.parquet")))
    for data in (folder, *(dd.read_parquet(given) for given in (paths, paths[0], f"file://{paths[0]}"))):
        with pytest.raises(SourceError, match="people would be counted several times"):
            dg.publish(data, SCHEMA, epsilon=1, delta=0, ledger=None, engine=DaskEngine())


@pytest.mark.parametrize(
    "command",
    ["schema {0}", "check {0} -s {1}", "publish {0} -s {1} --epsilon 1 --delta 0 --no-ledger -o {2}"],
)
def test_commands(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = table_with(NOTES["Delta"], tmp_path)
    schema, release = tmp_path / "s.toml", tmp_path / "r.json"
    SCHEMA.to_file(schema)
    assert run([word.format(folder, schema, release) for word in command.split()]) == 2
    said = capsys.readouterr().err
    assert "people would be counted several times: the folder of a Delta table" in said
    assert '_delta_log". Read the table as it is now' in said
    assert not release.exists()


def test_types_are_refused_as_well(tmp_path: Path) -> None:
    folder = table_with(NOTES["Delta"], tmp_path)
    for data in (folder, folder.as_uri()):
        with pytest.raises(SourceError, match="several times"):
            column_types(data)


def test_other_folders_are_read(tmp_path: Path) -> None:
    for name in ("data", "metadata"):
        (tmp_path / name).mkdir()
    pq.write_table(TABLE, tmp_path / "data" / "a.parquet")
    (tmp_path / "data" / "a.csv").write_text("v\n1\n2\n3\n")
    (tmp_path / "metadata" / "codebook.json").write_text("{}")
    table_with(NOTES["Delta"], tmp_path / "data" / "unused").joinpath("x").touch()
    expected = gram(TABLE, SCHEMA)
    for data in ("a.parquet", "a.csv", "*.parquet"):
        assert gram(str(tmp_path / "data" / data), SCHEMA) == expected
    connection = view(tmp_path / "data" / "unused" / "people's table")
    mine = f"SELECT v FROM '{tmp_path}/data/*.parquet'"
    assert gram((connection, mine), SCHEMA) == expected
    # DuckDB's own reader of such tables may be named beside.
    connection.execute(f"CREATE VIEW other AS {mine} WHERE 'delta_scan(''{tmp_path}'')' <> ''")
    assert gram((connection, "SELECT v FROM other"), SCHEMA) == expected


def test_a_polars_scan_that_knows_the_table_is_read(tmp_path: Path) -> None:
    """As `scan_delta` and `scan_iceberg` make them, for which Polars asks Python which files count."""
    folder = table_with(NOTES["Delta"], tmp_path)

    class Table:
        def schema(self) -> pl.Schema:
            return pl.Schema({"v": pl.Int64})

        def to_dataset_scan(self, **_: object) -> tuple[pl.LazyFrame, str]:
            return pl.scan_parquet(next(folder.rglob("*-2.parquet"))), "2"

    query = partial(wrap_ldf, PyLazyFrame.new_from_dataset_object(Table()))
    assert gram(query(), SCHEMA) == gram(TABLE, SCHEMA)
