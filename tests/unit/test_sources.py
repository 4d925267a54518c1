"""Every form of the same table gives the same batches: the asked columns, in order, each row once."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.sources import DeclaredKind, open_source

ROWS = 1_003
COLUMNS = ["smoker", "age", "visits"]
KINDS: dict[str, DeclaredKind] = {"smoker": "text", "age": "number", "visits": "number", "year": "number"}


def table() -> pa.Table:
    generator = np.random.default_rng(5)
    return pa.table(
        {
            "age": generator.uniform(18, 90, ROWS),
            "unused": pa.array([object().__class__.__name__] * ROWS),
            "smoker": pa.array([["no", "yes", None][i % 3] for i in range(ROWS)]),
            "visits": generator.integers(0, 40, ROWS),
        }
    )


def as_partitioned_folder(data: pa.Table, folder: Path) -> Path:
    root = folder / "partitioned"
    for year, start in (("2023", 0), ("2024", 600)):
        part = root / f"year={year}"
        part.mkdir(parents=True)
        pq.write_table(data.slice(start, 600), part / "part-0.parquet", row_group_size=250)
    (root / "_SUCCESS").touch()
    return root


def as_file(data: pa.Table, folder: Path) -> Path:
    path = folder / "table.parquet"
    pq.write_table(data, path, row_group_size=300)
    return path


def as_csv(data: pa.Table, folder: Path) -> Path:
    pl.from_arrow(data).write_csv(folder / "table.csv")
    return folder / "table.csv"


def as_tsv(data: pa.Table, folder: Path) -> Path:
    pl.from_arrow(data).write_csv(folder / "table.tsv", separator="\t")
    return folder / "table.tsv"


def as_gzip(data: pa.Table, folder: Path) -> Path:
    path = folder / "zipped.csv.gz"
    path.write_bytes(gzip.compress(as_csv(data, folder).read_bytes()))
    return path


def as_database(data: pa.Table, folder: Path) -> Path:
    path = folder / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", data)
        connection.execute("CREATE TABLE people AS FROM given")
    return path


FORMS: dict[str, Callable[[pa.Table, Path], object]] = {
    "table": lambda data, _: data,
    "chunked table": lambda data, _: pa.concat_tables([data.slice(0, 400), data.slice(400)]),
    "record batch": lambda data, _: data.combine_chunks().to_batches()[0],
    "reader": lambda data, _: data.to_reader(100),
    "dataset": lambda data, _: ds.dataset(data),
    "parquet dataset": lambda data, folder: ds.dataset(as_file(data, folder)),
    "capsule": lambda data, _: Capsule(data),
    "pandas": lambda data, _: data.to_pandas(),
    "pandas objects": lambda data, _: data.to_pandas().astype(object),
    "pandas categories": lambda data, _: data.to_pandas().astype({"smoker": "category"}),
    "pandas on Arrow": lambda data, _: data.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda data, _: pl.from_arrow(data),
    "polars categories": lambda data, _: pl.from_arrow(data).cast({"smoker": pl.Categorical}),
    "polars query": lambda data, _: pl.from_arrow(data).lazy().filter(pl.col("age") > 0),
    "polars scan": lambda data, folder: pl.scan_parquet(as_file(data, folder)),
    "duckdb relation": lambda data, folder: duckdb.connect().from_parquet(str(as_file(data, folder))),
    "duckdb query": lambda data, folder: (as_database(data, folder), "SELECT * FROM people ORDER BY rowid"),
    "duckdb in memory": lambda data, folder: (":memory:", f"FROM '{as_file(data, folder)}'"),
    "csv": as_csv,
    "csv.gz": as_gzip,
    "tsv": as_tsv,
    "csv list": lambda data, folder: [as_csv(data.slice(0, 333), folder), as_tsv(data.slice(333), folder)],
    "mapping of arrow": lambda data, _: {name: data[name] for name in data.column_names},
    "mapping of numpy": lambda data, _: {name: data[name].to_numpy() for name in data.column_names},
    "mapping of lists": lambda data, _: data.to_pydict(),
    "mapping of series": lambda data, _: dict(pl.from_arrow(data).to_dict()),
    "structured array": lambda data, _: data.to_pandas().to_records(index=False),
    "plain array": lambda data, _: data.select(COLUMNS).to_pandas().to_numpy(dtype=object),
    "file": lambda data, folder: as_file(data, folder),
    "file name": lambda data, folder: str(as_file(data, folder)),
    "list": lambda data, folder: [as_file(data, folder)],
    "folder": as_partitioned_folder,
    "glob": lambda data, folder: str(as_partitioned_folder(data, folder) / "*" / "*.parquet"),
}


class Capsule:
    """An object that offers the Arrow stream interface and nothing else."""

    def __init__(self, data: pa.Table) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._data.__arrow_c_stream__(requested_schema)


def rows_of(batches: list[pa.RecordBatch]) -> list[tuple[object, ...]]:
    """The rows as Python values; a missing number may be null or NaN, which means the same downstream."""
    columns = [
        [cell for batch in batches for cell in batch.column(i).to_pylist()] for i in range(len(COLUMNS))
    ]
    return [tuple(None if cell != cell else cell for cell in row) for row in zip(*columns, strict=True)]


EXPECTED = list(zip(*(table()[name].to_pylist() for name in COLUMNS), strict=True))


@pytest.mark.parametrize("batch_rows", [97, 65_536])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows_in_order(form: str, batch_rows: int, tmp_path: Path) -> None:
    source = open_source(FORMS[form](table(), tmp_path), COLUMNS, kinds=KINDS, batch_rows=batch_rows)
    batches = list(source.batches())
    assert all(batch.schema.names == COLUMNS for batch in batches)
    assert all(0 < batch.num_rows <= batch_rows for batch in batches)
    assert rows_of(batches) == EXPECTED
    assert source.rows in (None, ROWS)


@pytest.mark.parametrize("form", [form for form in FORMS if form not in ("reader", "capsule")])
def test_a_source_can_be_read_again(form: str, tmp_path: Path) -> None:
    source = open_source(FORMS[form](table(), tmp_path), COLUMNS, kinds=KINDS, batch_rows=200)
    assert rows_of(list(source.batches())) == rows_of(list(source.batches())) == EXPECTED


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("form", FORMS)
def test_feeds_cover_every_row_once_with_its_number(form: str, workers: int, tmp_path: Path) -> None:
    source = open_source(FORMS[form](table(), tmp_path), COLUMNS, kinds=KINDS, batch_rows=40)
    feeds = source.feeds(workers)
    assert len(feeds) == workers
    taken = []
    while feeds:  # round robin: every feed is used, as threads would
        feeds = tuple(
            feed for feed in feeds if (item := next(feed, None)) is not None and not taken.append(item)
        )
    taken.sort(key=lambda item: item[0])
    starts = np.cumsum([0, *(batch.num_rows for _, batch in taken)])
    assert [first for first, _ in taken] == starts[:-1].tolist()
    assert rows_of([batch for _, batch in taken]) == EXPECTED


def test_folder_names_become_columns(tmp_path: Path) -> None:
    folder = as_partitioned_folder(table(), tmp_path)
    numbers = pa.Table.from_batches(open_source(folder, ["year", "age"], kinds=KINDS).batches())
    assert numbers["year"].to_pylist() == [2023.0] * 600 + [2024.0] * (ROWS - 600)
    (texts,) = {batch.schema.field("year").type for batch in open_source(folder, ["year"]).batches()}
    assert texts == pa.string()


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=6),
    batch_rows=st.integers(1, 100),
    workers=st.integers(1, 4),
)
def test_any_chunking_gives_the_same_rows(sizes: list[int], batch_rows: int, workers: int) -> None:
    values = np.arange(sum(sizes), dtype=float)
    chunks = np.split(values, np.cumsum(sizes)[:-1])
    data = pa.table({"x": pa.chunked_array(chunks, pa.float64())})
    source = open_source(data, ["x"], batch_rows=batch_rows)
    read = [
        cell for feed in source.feeds(workers) for _, batch in feed for cell in batch.column(0).to_pylist()
    ]
    assert sorted(read) == values.tolist()
