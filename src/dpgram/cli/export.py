"""`dpgram export`: a release in the files of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpgram.cli.console import JsonFlag, ReleaseFile, given_names, given_pairs, require_writable
from dpgram.cli.pages import Overwrite, print_written
from dpgram.errors import DpgramError


def export(
    release: ReleaseFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The file to write; its ending says for which program: .csv (any), .xpt (SAS), .dta "
            "(Stata), "
            ".R (lavaan), .json (the JavaScript module).",
        ),
    ],
    on: Annotated[
        list[str] | None,
        typer.Option(help="Columns to export, separated by commas, or one for each --on; all by default."),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=LEVEL",
            help="The level to leave out of a categorical column; the most frequent one by default.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Write denoised second moments for other programs.

    Positive semidefinite; the file says what the intervals of that program leave out: the privacy noise.

    \b
    Examples:
      dpgram export insurance.dpgram.json -o insurance.csv
      dpgram export insurance.dpgram.json -o insurance.xpt --on age,bmi,charges
    """
    from dpgram.release import load

    require_writable(output, overwrite=overwrite, inputs=[release])
    loaded = load(release)
    writers = {
        ".csv": loaded.to_csv,
        ".xpt": loaded.to_xport,
        ".dta": loaded.to_stata,
        ".r": loaded.to_lavaan,
    }
    ending = output.suffix.lower()
    if ending == ".json":
        if on is not None or reference is not None:
            raise DpgramError(
                "the JavaScript module reads the whole release", remedy="Leave out --on and --reference"
            )
        print_written(loaded.to_javascript(output, overwrite=overwrite), as_json=as_json)
        return
    if ending not in writers:
        raise DpgramError(
            "the ending of the output says for which program it is",
            got=repr(output.name),
            limit=".csv, .xpt, .dta, .R, .json",
        )
    written = writers[ending](
        output,
        given_names(on, loaded.schema),
        reference=given_pairs(reference, loaded.schema),
        overwrite=overwrite,
    )
    print_written(written, as_json=as_json)
