"""Files of any layout, from the bytes to the exact sums: as an encoder in Python integers adds them up."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit import slow_encoder
from tests.unit.tables import CLIPS, Table, plain_columns, tables

from dpgram.engines.local import gram
from dpgram.errors import SourceError
from dpgram.schema import Schema, numeric

EXAMPLES = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def summed(path: Path, table: Table, clip: float | None, missing: str) -> list[list[int]]:
    found = gram(path, table.schema, clip, missing=missing, threads=1, progress=False)
    return [[int(cell) for cell in row] for row in found.cells]


def word(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return '"' + cell.replace('"', '""') + '"'
    if isinstance(cell, bool):
        return "yes" if cell else "0"
    return repr(cell)


@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
@settings(max_examples=EXAMPLES, deadline=None)
@given(
    table=tables(),
    clip=CLIPS,
    missing=st.sampled_from(["drop", "midpoint"]),
    end=st.sampled_from(["\n", "\r\n"]),
    mark=st.booleans(),
    extra=st.booleans(),
    packed=st.booleans(),
    last=st.booleans(),
)
def test_csv(
    folder: Path,
    table: Table,
    clip: float | None,
    missing: str,
    end: str,
    mark: bool,
    extra: bool,
    packed: bool,
    last: bool,
) -> None:
    names = [column.name for column in plain_columns(table.schema)]
    lines = [[f'"{name}"' for name in names], *([word(row[name]) for name in names] for row in table.rows)]
    lines = [["z", *line] if extra else line for line in lines]
    # A line of one empty cell is an empty line: a row with a missing value, unless it is the last.
    text = end.join(",".join(line) for line in lines) + (end if last or len(lines[-1]) == 1 else "")
    raw = (b"\xef\xbb\xbf" if mark else b"") + text.encode()
    path = folder / ("x.csv.gz" if packed else "x.csv")
    path.write_bytes(gzip.compress(raw, 1) if packed else raw)
    assert summed(path, table, clip, missing) == slow_encoder.gram(
        table.rows, table.schema, clip=clip, missing=missing
    )


@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
@settings(max_examples=EXAMPLES, deadline=None)
@given(
    table=tables(),
    clip=CLIPS,
    missing=st.sampled_from(["drop", "midpoint"]),
    layout=st.fixed_dictionaries(
        {
            "compression": st.sampled_from(["none", "snappy", "zstd"]),
            "use_dictionary": st.booleans(),
            "row_group_size": st.sampled_from([1, 3, 100]),
            "data_page_size": st.sampled_from([1, 1 << 20]),
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
            "write_statistics": st.booleans(),
        }
    ),
    parts=st.integers(1, 3),
)
def test_parquet(
    folder: Path, table: Table, clip: float | None, missing: str, layout: dict[str, object], parts: int
) -> None:
    place = Path(tempfile.mkdtemp(dir=folder))
    whole = pa.Table.from_batches([table.batch()])
    size = -(-max(whole.num_rows, 1) // parts)
    for number in range(parts):
        pq.write_table(whole.slice(number * size, size), place / f"{number}.parquet", **layout)
    assert summed(place, table, clip, missing) == slow_encoder.gram(
        table.rows, table.schema, clip=clip, missing=missing
    )


@settings(max_examples=EXAMPLES, deadline=None)
@given(keep=st.floats(0.0, 1.0, exclude_max=True), ending=st.sampled_from(["csv.gz", "parquet"]))
def test_a_cut_file_is_refused(folder: Path, keep: float, ending: str) -> None:
    """Whatever is missing of it: a sum of the rows before the cut would be a wrong answer in silence."""
    table = pa.table({"a": [float(i % 7) for i in range(500)]})
    path = folder / f"cut.{ending}"
    if ending == "parquet":
        pq.write_table(table, path, row_group_size=100)
    else:
        path.write_bytes(gzip.compress(b"a\n" + b"".join(b"%d\n" % (i % 7) for i in range(500))))
    raw = path.read_bytes()
    path.write_bytes(raw[: int(keep * len(raw))])
    with pytest.raises(SourceError):
        gram(path, Schema(numeric("a", 0, 7)), threads=1, progress=False)
