"""Messages in the words of the interface that was used: parameters, flags or keys of a job file.

The library speaks of its parameters (`delta=1e-6`, `Rows(unit='id')`). Whoever wrote `--delta`, or a line of
a job file, is told about that. One literal table has both words for each parameter; the rest stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, final


@final
@dataclass(frozen=True, slots=True)
class Option:
    """A parameter as the two other interfaces call it."""

    flag: str
    key: str
    """Its key in the job file, below its section."""
    switch: bool = False
    """Whether the flag takes no value."""


OPTIONS: Final[Mapping[str, Option]] = {
    "epsilon": Option("--epsilon", "epsilon"),
    "delta": Option("--delta", "delta"),
    "ledger": Option("--ledger", "ledger"),
    "adaptive": Option("--adaptive", "adaptive", switch=True),
    "mechanism": Option("--mechanism", "mechanism"),
    "adjacency": Option("--adjacency", "adjacency"),
    "engine": Option("--engine", "engine"),
    "threads": Option("--threads", "threads"),
    "note": Option("--note", "note"),
    "unit": Option("--unit", "unit"),
    "unit_rows": Option("--unit-rows", "unit_rows"),
    "weight": Option("--weight", "weight"),
    "by": Option("--by", "by"),
    "missing": Option("--missing", "missing"),
    "strict": Option("--strict", "strict", switch=True),
    "radius": Option("--radius", "radius"),
    "expected": Option("--rows", "expected"),
    "sheet": Option("--sheet", "sheet"),
    "overwrite": Option("--overwrite", "overwrite", switch=True),
    "bounds_share": Option("--bounds-share", "adaptive.bounds"),
    "levels_share": Option("--levels-share", "adaptive.levels"),
    "histograms_share": Option("--histograms-share", "adaptive.histograms"),
    "first_share": Option("--first-share", "adaptive.first"),
    "delta_reserved": Option("--delta-reserved", "delta_reserved"),
    "currency": Option("--currency", "currency"),
}

PHRASES: Final[Mapping[str, str]] = {
    "Open it with Ledger.open": "Use it as it is",
    "Ledger.create": "dpgram ledger create",
    "mechanism=Auto(semidefinite=True)": "mechanism='auto' with semidefinite=True",
    "adaptive=False (--no-adaptive)": "adaptive=False",
    ", or give it as by=…": "",
    ", or give it as weight=…": "",
    ", or an object of dpgram.mechanisms": "",
}
"""What is called otherwise outside of Python, flags and keys alike."""

COMMANDS: Final[Mapping[str, str | Callable[[re.Match[str]], str]]] = {
    r"\brelease\.(\w+)\([^()]*\)": r"dpgram \1",
    r"\bmodels=\[(\w+)\('([^']*)', on=\[…\]\)\]": r'--model "\1:\2~…"',
    r"\bon=\[([^\]]*)\]": lambda found: f"--on {found[1]}".replace("'", "").replace(", ", ","),
    r"`on`": "--on",
    r"\b(method|kind)=\"([\w-]+)\"": r"--\1 \2",
    r"\btarget_se_ratio\b": "--target-se-ratio",
    r"\buse standardise=False": "leave --standardise out",
    r"\bkeep intercept=True": "leave --no-intercept out",
    r"\bintercept=False": "--no-intercept",
}
"""What only commands have: of Python's words, a pattern → how it is written on the command line."""

ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "numeric": ("name", "low", "high"),
    "categorical": ("name", "levels"),
    "ordinal": ("name", "levels"),
    "boolean": ("name",),
    "product": ("left", "right"),
    "legendre": ("column", "degree"),
}
"""The columns that Python declares by a function: its arguments, as the schema file calls them."""

Words = Callable[[str, str], str]
"""A parameter's name and its value (empty where none is said) → how it is written elsewhere."""

_VALUE: Final = r"'[^']*'|\"[^\"]*\"|…|[\w.+-]*[\w…]"
_CALL: Final = re.compile(rf"\bRows\(((?:\w+=(?:{_VALUE})(?:, )?)+)\)")
_SHARE: Final = re.compile(r"\bAdaptive\((bounds|levels|histograms|first)=…\)")
_GIVEN: Final = re.compile(rf"(?<![\w.-])({'|'.join(OPTIONS)})=({_VALUE})")


_ARGUMENT: Final = r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\.\.\.|[\w.+-]+"
_DECLARED: Final = re.compile(
    rf"(?<![\w.])(?:dg\.)?({'|'.join(ARGUMENTS)})\(((?:{_ARGUMENT})(?:, (?:{_ARGUMENT}))*)\)"
)
_MODEL: Final = re.compile(r"(?<![\w.])(linear|logistic|probit|poisson)\(('[^']*'|\"[^\"]*\")\)")


def _declaration(found: re.Match[str]) -> str:
    """`numeric('age', low, high)` as the schema file writes it."""
    kind, names = found[1], ARGUMENTS[found[1]]
    lines = [f'kind = "{kind}"']
    lines += [
        f"{name} = {_written(value)}"
        for name, value in zip(names, re.findall(_ARGUMENT, found[2]), strict=False)
        if value != "..."
    ]
    return ", ".join(lines)


def _written(value: str) -> str:
    """Text in the quotes of TOML; what is to be filled in as an ellipsis."""
    if value[0] in "'\"":
        return json.dumps(_bare(value), ensure_ascii=False)
    if value[0] == "[":
        return "[…]"
    return value if re.fullmatch(r"[+-]?[\d.]+", value) else "…"


def reworded(text: str, words: Words) -> str:
    """`text` with every `parameter=value` written as `words` does, and columns as the schema does."""
    plain = re.sub(r"\brows=(?=Rows\()", "", text)
    plain = _CALL.sub(lambda call: call[1], plain)
    plain = _SHARE.sub(lambda share: f"{share[1]}_share=…", plain)
    plain = _DECLARED.sub(_declaration, plain)
    plain = _MODEL.sub(r"\1 model of \2", plain)
    for phrase, other in PHRASES.items():
        plain = plain.replace(phrase, other)
    return _GIVEN.sub(lambda found: words(found[1], found[2]), plain)


def in_commands(text: str) -> str:
    """`text` for whoever gave a command: methods are commands, parameters are flags."""
    for pattern, other in COMMANDS.items():
        text = re.sub(pattern, other, text)
    return reworded(text, as_flag)


def as_flag(name: str, value: str) -> str:
    """`--delta 1e-6`."""
    option = OPTIONS[name]
    if option.switch and value in ("True", ""):
        return option.flag
    if option.switch and value == "False":
        return f"--no-{option.flag.removeprefix('--')}"
    return f"{option.flag} {_bare(value)}".rstrip()


def as_key(name: str, value: str) -> str:
    """`delta = 1e-6`, as TOML writes it."""
    option = OPTIONS[name]
    written = {"True": "true", "False": "false", "None": "…"}.get(value, value)
    if written.startswith("'"):
        written = '"' + _bare(written) + '"'
    return f"{option.key} = {written}"


def _bare(value: str) -> str:
    return value[1:-1] if value[:1] in ("'", '"') else value
