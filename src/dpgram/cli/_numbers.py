"""What is given for a number on the command line and is none: said in plain words, with what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterator


def number_mistake(problem: BaseException) -> str | None:
    """What to say of a value that is not read as a number; None for every other mistake."""
    option = next(iter(getattr(getattr(problem, "param", None), "opts", ())), "a value")
    for kind, given in _refused(problem):
        whole = kind.startswith("int_")
        meant = _meant(given, whole=whole)
        remedy = "" if meant is None else f". Write {meant}"
        return f"{option} must be a {'whole number' if whole else 'number'}; got {given!r:.100}{remedy}"
    return None


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
    """The number as it is to be written, where it is clear: 1.5 for 1,5, and 6000 for 6,000 rows."""
    text = given.strip()
    if re.fullmatch(r"[0-9]{1,3}(?:([,.'’_\s])[0-9]{3})(?:\1[0-9]{3})*", text) and (
        whole or len(re.findall(r"[,.'’_\s]", text)) > 1
    ):
        return re.sub(r"[^0-9]", "", text)
    if whole:
        exponent = re.fullmatch(r"([0-9]+)[eE]\+?([0-9]{1,2})", text)
        return None if exponent is None else f"{exponent[1]}{'0' * int(exponent[2])}"
    decimal = re.fullmatch(r"([+-]?[0-9]*),([0-9]+(?:[eE][+-]?[0-9]+)?)", text)
    return None if decimal is None else f"{decimal[1] or '0'}.{decimal[2]}"
