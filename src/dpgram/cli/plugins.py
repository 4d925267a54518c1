"""Commands that other installed packages add, by entry points of the group `dpgram.commands`.

An entry point names a command and the function, or the Typer app, that carries it out. Nothing of such a
package is imported before its command is called: `dpgram --help` stays quick, and a package that is broken
spoils its own command only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, final

import typer
from typer.core import TyperGroup

from dpgram.errors import DpgramError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "dpgram.commands"
SHIPPED_APART: Final[Mapping[str, str]] = {"reproduce": "dpgram-papers"}
"""Commands of ours that are in packages of their own."""


@final
class Commands(TyperGroup):
    """dpgram's own commands, and after them those of other packages, which cannot replace them."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One by its name; None where there is none."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        try:
            return _added(cmd_name)
        except DpgramError:
            if ctx.resilient_parsing:  # a shell completes a line: nobody would see the message
                return None
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """After dpgram's own, those of other packages by name only, as more would have to be imported."""
        super().format_help(ctx, formatter)
        rows = sorted(
            (entry.name, f"Added by {_package(entry)}.")
            for entry in _entries()
            if entry.name not in self.commands
        )
        if rows:
            width = max(len(name) for name, _ in rows)
            lines = [f"  {name:<{width}}  {text}" for name, text in rows]
            typer.echo("\n".join([" Commands of other packages:", *lines, ""]))


def _entries() -> tuple[EntryPoint, ...]:
    from importlib import metadata

    return tuple(metadata.entry_points(group=GROUP))


def _package(entry: EntryPoint) -> str:
    return entry.value.split(":")[0].split(".")[0] if entry.dist is None else entry.dist.name


def _added(name: str) -> Any:
    found = [entry for entry in _entries() if entry.name == name]
    if len(found) > 1:
        packages = ", ".join(sorted(map(_package, found)))
        raise DpgramError(
            f"several packages add the command {name}", got=packages, remedy="Uninstall all but one"
        )
    if found:
        return _loaded(found[0])
    if name in SHIPPED_APART:
        package = SHIPPED_APART[name]
        raise DpgramError(
            f"the command {name} is in a package of its own, {package}, which is not installed",
            remedy=f"Install it: pip install {package}",
        )
    return None


def _loaded(entry: EntryPoint) -> Any:
    try:
        return _command(entry.name, entry.load())
    except Exception as problem:
        raise DpgramError(
            f"the command {entry.name} cannot be loaded",
            got=f"{type(problem).__name__}: {problem}",
            remedy=f"Reinstall or uninstall {_package(entry)}",
        ) from problem


def _command(name: str, loaded: object) -> Any:
    if isinstance(loaded, typer.Typer):
        return typer.main.get_command(loaded)
    if not callable(loaded):
        raise TypeError(f"a command is a function or a Typer app, not of type {type(loaded).__name__}")
    # As for dpgram's own: a pretty traceback prints local variables, and those may hold rows.
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    app.command(name)(loaded)
    return typer.main.get_command(app)
