"""`dpgram registry` and `dpgram evaluation`: the papers about a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dpgram.cli.console import JsonFlag, ReleaseFile, print_json, require_writable, say
from dpgram.cli.pages import Overwrite, print_written


def registry(
    release: ReleaseFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The YAML file to write.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the data product; the title of the release by default.")
    ] = None,
    curator: Annotated[str | None, typer.Option(help="Who publishes.")] = None,
    curator_type: Annotated[
        Literal["Government", "Industry", "Nonprofit"] | None,
        typer.Option(help="What kind of house that is."),
    ] = None,
    region: Annotated[
        str | None, typer.Option(help="Region that the data describe, or whose laws apply.")
    ] = None,
    sector: Annotated[
        Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"] | None,
        typer.Option(help="The domain of the data."),
    ] = None,
    intended_use: Annotated[
        str | None, typer.Option(help="What it is for; analyses of moments by default.")
    ] = None,
    published: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="Day of publication; today by default.")
    ] = None,
    author: Annotated[
        list[str] | None, typer.Option(help="Who wrote the entry; one for each --author.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Write an entry for the public registry of deployments.

    All that the release says is filled in; what only the curator knows is marked where it was not given.

    \b
    Example:
      dpgram registry insurance.dpgram.json -o insurance.yaml \\
          --curator "An office" --curator-type Government
    """
    from dpgram.release import load

    require_writable(output, overwrite=overwrite, inputs=[release])
    written = load(release).registry(
        output,
        name=name,
        curator=curator,
        curator_type=curator_type,
        region=region,
        sector=sector,
        intended_use=intended_use,
        published=published,
        authors=author or (),
        overwrite=overwrite,
    )
    print_written(written, as_json=as_json)


def evaluation(
    release: ReleaseFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")],
    ledger: Annotated[
        Path | None, typer.Option("--ledger", "-l", help="The ledger, as evidence of the budget.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Write an evaluation of a release after NIST SP 800-226.

    Every item is answered with its evidence, or says what the curator must still attest; --json prints them.

    \b
    Example:
      dpgram evaluation insurance.dpgram.json -o evaluation.html \\
          --ledger insurance.ledger
    """
    from dataclasses import asdict

    from dpgram.paperwork import evaluation as evaluated
    from dpgram.release import load

    require_writable(output, overwrite=overwrite, inputs=[release, ledger])
    loaded = load(release)
    written = loaded.evaluation(output, ledger=ledger, overwrite=overwrite)
    if as_json:
        items = [asdict(item) for item in evaluated(loaded, ledger)]
        print_json({"output": str(written), "items": items})
        return
    print_written(written, as_json=False)
    left = sum(bool(item.attest) for item in evaluated(loaded, ledger))
    say(f"{left} points are left for the curator to attest")
