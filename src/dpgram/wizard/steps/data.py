"""Step 1, the data: which file, and the first look at it."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any, Final

from dpgram.errors import DpgramError
from dpgram.files import write_whole
from dpgram.publishing.starter import ROWS, starter_columns
from dpgram.schema.reading import FileLayout
from dpgram.sources import open_source
from dpgram.sources.plain_columns import plain_texts
from dpgram.wizard.folder import TABLES, Folder
from dpgram.wizard.posted import Posted
from dpgram.wizard.session import Form, Session, Table, relative
from dpgram.wizard.words import beside, told

PREVIEW: Final = 6
LONGEST_CELL: Final = 60
EXAMPLE: Final = "made-up-people"
EXAMPLE_ROWS: Final = 5_000
SHEETS: Final = dict.fromkeys(("several sheets", "no such sheet", "has sheets", "the sheet of"), "sheet")
"""What messages about the sheet of a workbook say."""


def values(session: Session) -> dict[str, Any]:
    files = session.folder.listed(TABLES)
    chosen = session.suggested
    return {
        "file": chosen if chosen in files else "",
        "path": "" if chosen in files else chosen,
        "sheet": session.section("data").get("sheet", ""),
    }


def view(session: Session) -> dict[str, Any]:
    return {
        "files": session.folder.listed(TABLES),
        "root": str(session.folder.root),
        "table": session.table,
        "looked_at": ROWS,
        "shown": PREVIEW,
        "reads": session.suggested,
        "job": None if session.path is None else session.folder.shown(session.path),
    }


def take(session: Session, posted: Posted) -> dict[str, str]:
    """Read the named file as far as a first look needs it; what is wrong, by field."""
    if posted.text("do") == "example":
        return _example(session)
    typed = posted.text("path")
    sheet = posted.raw("sheet") if posted.text("sheet") else None
    try:
        return _opened(session, session.folder.file(typed or posted.text("file")), sheet)
    except DpgramError as problem:
        return beside(problem, SHEETS, "path" if typed else "file")


def _opened(
    session: Session, place: Path, sheet: str | None = None, known: Form | None = None
) -> dict[str, str]:
    """Go on with the job of this table, or begin one; `known` are public facts to begin with."""
    layout, starter = starter_columns(str(place), sheet=sheet)
    goes_on = _goes_on(session, place, sheet)
    if goes_on and session.form.get("columns"):
        declared = session.section("data")
        layout = FileLayout(**{key: declared.get(key) for key in ("encoding", "separator", "sheet")})
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
