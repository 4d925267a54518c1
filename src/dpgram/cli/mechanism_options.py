"""The options that say which mechanism, shared by several commands, and the mechanism made of them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from dpgram.cli.console import ADVANCED
from dpgram.errors import MechanismError

if TYPE_CHECKING:
    from dpgram.mechanisms import Auto, Mechanism

Ridge: TypeAlias = Annotated[
    float | None, typer.Option(help="A public ridge, for inverse-noise.", rich_help_panel=ADVANCED)
]
Rank: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Directions to keep, for eigenvectors and deflation.", rich_help_panel=ADVANCED),
]
Degrees: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Degrees of freedom, for sketches and the Wishart family.", rich_help_panel=ADVANCED),
]
Psd: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--psd",
        help="Publish a positive semidefinite matrix; auto then chooses among those.",
        rich_help_panel=ADVANCED,
    ),
]


def asked_mechanism(
    name: str,
    *,
    ridge: float | None = None,
    rank: int | None = None,
    degrees: int | None = None,
    psd: bool = False,
) -> Mechanism | Auto:
    """The mechanism of this name with the parameters that were given on the command line."""
    from dpgram.mechanisms import MECHANISMS, Auto, as_mechanism

    given = {"ridge": ridge, "rank": rank, "degrees": degrees}
    parameters = {option: value for option, value in given.items() if value is not None}
    asked = as_mechanism(name)
    if isinstance(asked, Auto):
        _refuse_foreign(asked.name, set(parameters))
        return Auto(semidefinite=psd)
    if psd and not asked.semidefinite:
        raise MechanismError(
            f"what {name} publishes need not be positive semidefinite",
            got=f"--psd with --mechanism {name}",
            limit=f"one of {', '.join(n for n, kind in MECHANISMS.items() if kind.semidefinite)}",
            remedy="Leave --psd out (analyses correct for the noise), or leave the mechanism to auto.",
        )
    return with_parameters(type(asked), parameters)


def with_parameters(kind: type[Mechanism], parameters: dict[str, float]) -> Mechanism:
    """The mechanism with these parameters, refused where it has no such."""
    _refuse_foreign(kind.name, set(parameters) - _parameters(kind))
    return kind(**parameters)


def _parameters(kind: type[Mechanism]) -> set[str]:
    return {field.name for field in fields(kind)} if is_dataclass(kind) else set()


def _refuse_foreign(name: str, excess: set[str]) -> None:
    from dpgram.mechanisms import MECHANISMS

    if excess:
        takers = [other for other, kind in MECHANISMS.items() if excess <= _parameters(kind)]
        raise MechanismError(
            f"mechanism {name!r} has no parameter {' or '.join(sorted(excess))}",
            got=" ".join(f"--{one}" for one in sorted(excess)),
            limit=f"taken by {', '.join(takers) or 'no mechanism'}",
            remedy="Use one of these, or leave it out.",
        )
