"""`dpgram explore` and `dpgram report`: pages made from a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpgram.cli.console import JsonFlag, ReleaseFile, print_json, require_writable, say
from dpgram.errors import DpgramError

PageFile = Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]


def explore(
    release: ReleaseFile, output: PageFile, overwrite: Overwrite = False, as_json: JsonFlag = False
) -> None:
    """Write a web page for exploring a release.

    One HTML file with everything inside: it needs no server, no network and nothing installed.

    \b
    Example:
      dpgram explore insurance.dpgram.json -o insurance.html
    """
    from dpgram.release import load

    require_writable(output, overwrite=overwrite, inputs=[release])
    require_page(output)
    print_written(load(release).explore(output, overwrite=overwrite), as_json=as_json)


def report(
    release: ReleaseFile,
    output: PageFile,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", "-l", help="The ledger, to show the history of the budget.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a report for those responsible for the data.

    What was released, what the guarantee means, what an attacker can and cannot learn, and the budget.

    \b
    Example:
      dpgram report insurance.dpgram.json -o report.html \\
          --ledger insurance.ledger
    """
    from dpgram.release import load

    require_writable(output, overwrite=overwrite, inputs=[release, ledger])
    require_page(output)
    print_written(load(release).report(output, ledger=ledger, overwrite=overwrite), as_json=as_json)


def require_page(output: Path) -> None:
    """Refuse a name by which no browser would open the page."""
    if output.suffix.lower() not in (".html", ".htm"):
        raise DpgramError(
            "the name of a page must end in its format",
            got=repr(output.name),
            limit=".html, .htm",
            remedy=f"Name it {output.stem}.html",
        )


def print_written(written: Path, *, as_json: bool) -> None:
    size = written.stat().st_size
    if as_json:
        print_json({"output": str(written), "bytes": size})
    else:
        say(f"wrote {written} ({f'{size / 1e6:.1f} MB' if size >= 1e6 else f'{size / 1e3:.0f} kB'})")
