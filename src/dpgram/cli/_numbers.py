"""What is given for a number on the command line and is none: said in plain words, with what was meant."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args, get_type_hints


def point_mistake(root: Any, arguments: Sequence[str]) -> str | None:
    """What to say of a whole number with a point or comma; None where there is none.

    Typer reads 12.000 as twelve, and whoever writes it may mean twelve thousand: neither is taken. `root` has
    all commands.
    """
    command, path, rest = root, "dpgram", list(arguments)
    while rest and rest[0] in getattr(command, "commands", {}):
        command, path, rest = command.commands[rest[0]], f"{path} {rest[0]}", rest[1:]
    options = _whole_options(command)
    for place, text in enumerate(rest[: rest.index("--") if "--" in rest else None]):
        option, sign, given = text.partition("=")
        if option in options and not sign:
            given = rest[place + 1] if place + 1 < len(rest) else ""
        if option in options and re.fullmatch(r"[+-]?[0-9]*[.,][0-9.,]*", given.strip()):
            return f"{_told(option, given, whole=True)}. See: {path} --help"
    return None


def _whole_options(command: Any) -> set[str]:
    """The flags of a command that take a whole number, by the types of its function."""
    function = getattr(command, "callback", None)
    if function is None:
        return set()
    hints = get_type_hints(inspect.unwrap(function))
    return {
        flag
        for each in command.params
        if hints.get(each.name) is int or int in get_args(hints.get(each.name))
        for flag in each.opts
    }


def number_mistake(problem: BaseException) -> str | None:
    """What to say of a value that is not read as a number; None for every other mistake."""
    option = next(iter(getattr(getattr(problem, "param", None), "opts", ())), "a value")
    for kind, given in _refused(problem):
        return _told(option, given, whole=kind.startswith("int_"))
    return None


def _told(option: str, given: str, *, whole: bool) -> str:
    meant = _meant(given, whole=whole)
    remedy = "" if meant is None else f". Write {meant}"
    return f"{option} must be a {'whole number' if whole else 'number'}; got {given!r:.100}{remedy}"


def _refused(problem: BaseException) -> Iterator[tuple[str, str]]:
    """What Typer's own reader has refused as a number: the kind of the error, and what was given."""
    old = re.match(r"'(.*)' is not a valid (int|float)", str(getattr(problem, "message", "")))
    if old is not None:  # of older versions
        yield f"{old[2]}_parsing", old[1]
    errors = getattr(problem.__cause__, "errors", None)
    for each in errors() if callable(errors) else ():
        kind, given = str(each.get("type", "")), each.get("input")
        if kind in ("int_parsing", "int_from_float", "float_parsing") and isinstance(given, str):
            yield kind, given


def _meant(given: str, *, whole: bool) -> str | None:
    """The number as it is to be written: 1.5 for 1,5, 6500 for 6,500 rows, and 6000 or 6 for 6,000."""
    text = given.strip()
    nothing_behind = re.fullmatch(r"([+-]?[0-9]+)[,.](0*)", text) if whole else None
    if nothing_behind is not None:
        plain, zeros = nothing_behind.groups()
        return f"{plain}000 or {plain}" if zeros == "000" and len(plain) <= len("999") else plain
    if re.fullmatch(r"[0-9]{1,3}(?:([,.'’_\s])[0-9]{3})(?:\1[0-9]{3})*", text) and (
        whole or len(re.findall(r"[,.'’_\s]", text)) > 1
    ):
        return re.sub(r"[^0-9]", "", text)
    if whole:
        exponent = re.fullmatch(r"([0-9]+)[eE]\+?([0-9]{1,2})", text)
        return None if exponent is None else f"{exponent[1]}{'0' * int(exponent[2])}"
    decimal = re.fullmatch(r"([+-]?[0-9]*),([0-9]+(?:[eE][+-]?[0-9]+)?)", text)
    return None if decimal is None else f"{decimal[1] or '0'}.{decimal[2]}"
