"""`dpgram wizard`: a release without a terminal, in the browser of this machine."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from dpgram.cli.console import JsonFlag, print_json, say
from dpgram.errors import JobError, MissingExtra, require_publish


def wizard(
    what: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE or JOB]", help="A table to begin with, or a job file to go on with."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="The folder it may read and write; by default the one you are in."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; a free one by default.")] = 0,
    idle: Annotated[int, typer.Option(min=1, max=1440, help="Minutes without use after which it ends.")] = 30,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the browser, or only print the address.")
    ] = True,
    as_json: JsonFlag = False,
) -> None:
    """Publish in the browser, step by step.

    Walks from a table to a signed release and its report, and writes the job file for `dpgram run`. The pages
    are served by this machine to one browser only. Nothing is read before the first step says so, and nothing
    is charged before the last click.

    \b
    Examples:
      dpgram wizard
      dpgram wizard visits.csv
      dpgram wizard visits-job.toml
    """
    require_publish()
    for module in ("starlette", "uvicorn", "jinja2", "cryptography"):
        if find_spec(module) is None:
            raise MissingExtra(module, "wizard")
    from dpgram.wizard import Folder, Session, Wizard, browser_opener

    start = Path.cwd() if folder is None else folder
    if not start.is_dir():
        raise JobError(f"there is no folder {str(start)!r}", remedy="Check the path")
    session = Session.started(Folder.at(start), None if what is None else what.absolute())
    try:
        served = Wizard(session, port=port, idle_seconds=60.0 * idle)
    except OSError as problem:
        raise JobError(
            f"port {port} cannot be used", got=problem.strerror, remedy="Leave --port out"
        ) from problem
    with browser_opener() as show:

        def opened(address: str) -> None:
            if as_json:
                print_json({"address": address, "folder": str(session.folder.root)})
                sys.stdout.flush()  # whoever started it waits for this line
            else:
                say(f"the wizard is at {address}", as_it_is=True)
                say("It is for this machine and one browser only; Ctrl-C ends it", err=True)
            if browser:
                show(address)

        served.serve(opened)
    say("the wizard has ended" + _where(session.path), err=True, as_it_is=True)


def _where(path: Path | None) -> str:
    return "" if path is None else f": to go on, dpgram wizard {path}"
