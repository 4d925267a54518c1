"""The command line: thin commands over the same functions; one clear line and exit code 2 for an error."""

from __future__ import annotations

import shutil
import sys
import textwrap
import warnings
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from dpgram.cli import (
    analyse,
    audit,
    curate,
    demo,
    estimate,
    export,
    federate,
    jobs,
    ledger,
    pages,
    paperwork,
    plan,
    series,
    sign,
    wizard,
)
from dpgram.cli._help import unfold
from dpgram.cli._numbers import number_mistake, point_mistake
from dpgram.cli.console import WIDTH, JsonFlag, print_json, say
from dpgram.cli.plugins import Commands
from dpgram.errors import CheckError, DpgramError
from dpgram.job.words import in_commands

__all__ = ["JsonFlag", "app", "main", "print_json", "run", "say"]

USER_ERROR: Final = 2
INTERRUPTED: Final = 130
"""128 + SIGINT, as shells expect."""

_COMMAND_LINE_ERROR: Final[type[Exception]] = typer.BadParameter.__mro__[2]
"""Root of every mistake on the command line itself (click's ClickException); typer has no name for it."""

CURATORS: Final = "For curators, who hold the table"
ANALYSTS: Final = "For analysts, who hold a release"
OTHERS: Final = "To see for yourself"

app = typer.Typer(
    name="dpgram",
    cls=Commands,
    help="Publish one differentially private Gram matrix; run every regression on it.",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,  # a pretty traceback prints local variables, and those may hold rows
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("wizard", rich_help_panel=CURATORS)(wizard.wizard)
app.command("run", rich_help_panel=CURATORS)(jobs.run)
app.command("diff", rich_help_panel=CURATORS)(jobs.diff)
app.command("schema", rich_help_panel=CURATORS)(curate.schema)
app.command("codebook", rich_help_panel=CURATORS)(curate.codebook)
app.command("check", rich_help_panel=CURATORS)(curate.check)
app.command("plan", rich_help_panel=CURATORS)(plan.plan)
app.command("gram", rich_help_panel=CURATORS)(federate.gram)
app.command("publish", rich_help_panel=CURATORS)(curate.publish)
app.add_typer(series.app, name="series", rich_help_panel=CURATORS)
app.add_typer(sign.app, name="key", rich_help_panel=CURATORS)
app.command("sign", rich_help_panel=CURATORS)(sign.sign)
app.command("verify", rich_help_panel=ANALYSTS)(sign.verify)
app.command("show", rich_help_panel=ANALYSTS)(analyse.show)
app.command("regress", rich_help_panel=ANALYSTS)(analyse.regress)
app.command("describe", rich_help_panel=ANALYSTS)(estimate.describe)
app.command("iv", rich_help_panel=ANALYSTS)(estimate.iv)
app.command("within", rich_help_panel=ANALYSTS)(estimate.within)
app.command("did", rich_help_panel=ANALYSTS)(estimate.did)
app.command("discriminant", rich_help_panel=ANALYSTS)(estimate.discriminant)
app.command("correlation", rich_help_panel=ANALYSTS)(analyse.correlation)
app.command("pca", rich_help_panel=ANALYSTS)(analyse.pca)
app.command("explore", rich_help_panel=ANALYSTS)(pages.explore)
app.command("report", rich_help_panel=ANALYSTS)(pages.report)
app.command("export", rich_help_panel=ANALYSTS)(export.export)
app.command("registry", rich_help_panel=CURATORS)(paperwork.registry)
app.command("evaluation", rich_help_panel=CURATORS)(paperwork.evaluation)
app.add_typer(ledger.app, name="ledger", rich_help_panel=CURATORS)
app.command("audit", rich_help_panel=OTHERS)(audit.audit)
app.command("demo", rich_help_panel=OTHERS)(demo.demo)
unfold(app)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(version("dpgram"))
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; no traceback for anything a person can mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = _show_warning
        try:
            commands = typer.main.get_command(app)
            mistake = point_mistake(commands, arguments)
            if mistake is not None:
                return _refuse(mistake + _nothing_spent(arguments))
            code = commands.main(arguments, prog_name="dpgram", standalone_mode=False)
        except curate.InterruptedAfterCharge:
            return _interrupted()
        except (typer.Abort, KeyboardInterrupt):
            code = INTERRUPTED
        except DpgramError as problem:
            problem.reword(in_commands)
            if _spends(arguments):
                problem.say_nothing_was_spent()
            return _refuse(
                str(problem), curate.MUCH_IS_LOST if isinstance(problem, CheckError) else USER_ERROR
            )
        except _COMMAND_LINE_ERROR as problem:
            return _refuse(_usage(problem) + _nothing_spent(arguments))
        except OSError as problem:
            where = "" if problem.filename is None else f"{problem.filename}: "
            return _refuse(f"{where}{problem.strerror or type(problem).__name__}")
    if code == INTERRUPTED:
        return _interrupted(_nothing_spent(arguments))
    return code if isinstance(code, int) else 0


def _interrupted(told: str = "") -> int:
    typer.echo(f"dpgram: interrupted{told}", err=True)
    return INTERRUPTED


def _spends(arguments: Sequence[str]) -> bool:
    """Whether the command is one that could have charged a ledger."""
    return bool(arguments) and (arguments[0] in ("publish", "run") or arguments[:2] == ["series", "create"])


def _nothing_spent(arguments: Sequence[str]) -> str:
    return ". Nothing was spent" if _spends(arguments) else ""


def _refuse(message: str, code: int = USER_ERROR) -> int:
    say(_wrapped(f"dpgram: {' '.join(message.split())}"), err=True, as_it_is=True)
    return code


def _wrapped(message: str) -> str:
    """Folded between words for a person's terminal; one line for a file or a program."""
    if not sys.stderr.isatty():
        return message
    width = min(shutil.get_terminal_size().columns, WIDTH)
    return textwrap.fill(
        message, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _usage(problem: BaseException) -> str:
    context = getattr(problem, "ctx", None)
    command = "dpgram" if context is None else context.command_path
    message = number_mistake(problem) or getattr(problem, "format_message", problem.__str__)()
    message = message.replace("Value error, ", "").rstrip(".")
    return f"{message}{'' if message.endswith('?') else '.'} See: {command} --help"


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    text = in_commands(" ".join(str(message).split()))
    say(_wrapped(f"dpgram: warning: {text}"), err=True, as_it_is=True)
