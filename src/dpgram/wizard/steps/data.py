"""Step 1, the data: which file, and the first look at it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from dpgram.errors import DpgramError
from dpgram.files import write_whole
from dpgram.publishing.starter import ROWS, starter_columns
from dpgram.schema.reading import LAYOUT_FORMS, SHEET_ROWS, FileLayout
from dpgram.sources import open_source
from dpgram.sources.files import file_format
from dpgram.sources.plain_columns import plain_texts
from dpgram.wizard.folder import TABLES, Folder
from dpgram.wizard.posted import Posted
from dpgram.wizard.session import Form, Session, Table, relative
from dpgram.wizard.words import beside, told

PREVIEW: Final = 6
LONGEST_CELL: Final = 60
EXAMPLE: Final = "made-up-people"
EXAMPLE_ROWS: Final = 5_000
SHEETS: Final = dict.fromkeys(("several sheets", "no such sheet", "has sheets", "the sheet of"), "sheet") | {
    f"`{name}`": name for name in SHEET_ROWS
}
"""What messages about the sheet of a workbook say."""


def values(session: Session) -> dict[str, Any]:
    files = session.folder.listed(TABLES)
    chosen = session.suggested
    return {
        "file": chosen if chosen in files else "",
        "path": "" if chosen in files else chosen,
        **{key: str(session.section("data").get(key, "")) for key in ("sheet", *SHEET_ROWS)},
    }


def view(session: Session) -> dict[str, Any]:
    return {
        "files": session.folder.listed(TABLES),
        "root": str(session.folder.root),
        "table": session.table,
        "looked_at": ROWS,
        "shown": PREVIEW,
        "reads": session.suggested,
        "is_sheet": bool(session.suggested) and file_format(Path(session.suggested)) == "workbook",
        "job": None if session.path is None else session.folder.shown(session.path),
    }


def take(session: Session, posted: Posted) -> dict[str, str]:
    """Read the named file as far as a first look needs it; what is wrong, by field."""
    if posted.text("do") == "example":
        return _example(session)
    typed = posted.text("path")
    sheet = posted.raw("sheet") if posted.text("sheet") else None
    try:
        place = session.folder.file(typed or posted.text("file"))
        return _opened(session, place, sheet, rows=_rows(session, posted, place, sheet))
    except DpgramError as problem:
        return beside(problem, SHEETS, "path" if typed else "file")


def _rows(session: Session, posted: Posted, place: Path, sheet: str | None) -> dict[str, Any]:
    """How many rows of the sheet are not of the table: as typed; of a table that was read, as it was read."""
    typed = {name: posted.number(name) for name in SHEET_ROWS}
    if not (_goes_on(session, place, sheet) and session.form.get("columns")):
        another = session.table is not None  # what was typed is about the table before
        return {} if another else {name: rows for name, rows in typed.items() if rows is not None}
    declared = session.section("data")
    none = {name: least if name in declared else None for name, (least, _) in SHEET_ROWS.items()}
    return {name: none[name] if rows is None else rows for name, rows in typed.items()}


def _opened(
    session: Session,
    place: Path,
    sheet: str | None = None,
    known: Form | None = None,
    rows: Mapping[str, Any] | None = None,
) -> dict[str, str]:
    """Go on with the job of this table, or begin one; `known` are public facts to begin with."""
    layout, starter = starter_columns(str(place), sheet=sheet, rows=rows)
    goes_on, declared = _goes_on(session, place, sheet), session.section("data")
    as_before = all(getattr(layout, name) == declared.get(name) for name in SHEET_ROWS)
    if goes_on and session.form.get("columns") and as_before:
        layout = FileLayout(**{key: declared.get(key) for key in LAYOUT_FORMS})
        table = Table(columns=starter, preview=_preview(place, layout, starter))
    else:
        table = Table(columns=starter, preview=_preview(place, layout, starter))
        stem = place.name.partition(".")[0]
        own = (
            session.job_path if goes_on else session.folder.root / session.folder.free(f"{stem}-job", ".toml")
        )
        form = {
            "data": {"file": relative(place, own), **layout.to_dict()},
            "columns": [column.entries for column in starter if column.entries is not None],
            "outputs": _names(session.folder, stem, own),
            **(known or {}),
        }
        if goes_on:
            session.accept(session.form | form)
        else:
            session.start_over(own, form)
    session.table, session.suggested = table, session.folder.shown(place)
    return {}


def _goes_on(session: Session, place: Path, sheet: str | None) -> bool:
    """Whether the job is about this table and not published yet, or about none so far."""
    if session.path is None or session.outcome is not None:
        return False
    declared = session.section("data")
    if not declared.get("file"):
        return True
    return session.folder.place(session.data) == place and declared.get("sheet") == sheet


def _names(folder: Folder, stem: str, job: Path) -> dict[str, str]:
    """Names of the files to write, in the folder and not taken."""
    asked = {
        "release": (stem, ".dpgram.json"),
        "explorer": (stem, ".html"),
        "report": (f"{stem}-report", ".html"),
    }
    return {key: relative(folder.root / folder.free(*name), job) for key, name in asked.items()}


def _preview(place: Path, layout: FileLayout, columns: tuple[Any, ...]) -> tuple[tuple[str, ...], ...]:
    names = [column.name for column in columns]
    source = open_source(str(place), names, layout=layout, batch_rows=1_000)
    for batch in islice(source.batches(), 1):
        head = batch.slice(0, PREVIEW)
        cells = [plain_texts(head.column(name)).to_pylist() for name in names]
        return tuple(tuple(map(_cell, row)) for row in zip(*cells, strict=True))
    return ()


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…"


def _example(session: Session) -> dict[str, str]:
    """The table of the demonstration, with the public facts that belong to it."""
    import io

    import pyarrow.csv

    from dpgram.demo import insurance

    place = session.folder.root / session.folder.free(EXAMPLE, ".csv")
    text = io.BytesIO()
    pyarrow.csv.write_csv(insurance.table(EXAMPLE_ROWS), text)
    declared = insurance.schema().to_dict()["columns"]
    try:
        write_whole(place, text.getvalue(), replace=False)
        known = {"columns": declared, "rows": {"expected": EXAMPLE_ROWS}}
        return _opened(session, place, known=known)
    except (DpgramError, OSError) as problem:
        return {"file": told(problem) if isinstance(problem, DpgramError) else "the folder cannot be written"}
