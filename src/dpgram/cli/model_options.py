"""Declared models on the command line: `--model "logistic:readmitted~age,ward;share=0.2"`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from dpgram.cli.console import given_names
from dpgram.errors import OptionsError

if TYPE_CHECKING:
    from dpgram.models import Model
    from dpgram.schema import Schema

NUMBERS: Final[Mapping[str, Callable[[str], float]]] = {"share": float, "steps": int, "limit": float}
"""What may stand behind the columns, and how it is read."""

Models: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="FAMILY:TARGET~COLUMN,...;share=...",
        help="Declare a model beforehand (repeatable): linear, logistic, probit or poisson, and its target; "
        "where they are wanted its columns, all others by default, and share, steps, limit.",
    ),
]


def asked_models(texts: list[str] | None, schema: Schema) -> tuple[Model, ...]:
    """The models that were asked for; what they ask of the schema is checked where all else is."""
    return tuple(_model(text, schema) for text in texts or ())


def _model(text: str, schema: Schema) -> Model:
    from dpgram.models.declared import model_of

    said, *numbers = text.split(";")
    family, between, rest = said.partition(":")
    target, _, columns = rest.partition("~")
    if not between or not target.strip():
        raise OptionsError(
            "--model names a family and a target",
            got=repr(text),
            remedy='Write --model "logistic:readmitted~age,ward;share=0.2"',
        )
    facts: dict[str, object] = {"family": family.strip(), "target": target.strip()}
    if columns.strip():
        facts["on"] = given_names([columns], schema)
    for one in numbers:
        if one.strip():
            name, value = _number(one, text)
            if name in facts:
                raise OptionsError(
                    f"--model says {name} twice", got=repr(text), remedy=f"Leave one {name}=… out"
                )
            facts[name] = value
    return model_of(facts)


def _number(said: str, text: str) -> tuple[str, float]:
    name, _, value = (part.strip() for part in said.partition("="))
    try:
        return name, NUMBERS[name](value)
    except (KeyError, ValueError):
        raise OptionsError(
            "after its columns --model takes share, steps or limit, each with a number",
            got=f"{said.strip()!r} in {text!r}",
            remedy="Write ;share=0.2",
        ) from None
