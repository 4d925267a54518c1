"""Leaving the choice of mechanism to the library; `choice` has how it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from dpgram.errors import MechanismError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Auto:
    """The mechanism of the least forecast error, decided from public facts only."""

    name: ClassVar[str] = "auto"

    semidefinite: bool = False
    """Whether to choose only among mechanisms that publish a positive semidefinite matrix."""

    def __post_init__(self) -> None:
        if not isinstance(self.semidefinite, bool):
            raise MechanismError(
                "semidefinite must be True or False", got=repr(self.semidefinite), limit="True or False"
            )

    @property
    def parameters(self) -> dict[str, float]:
        """What was asked for beside the default."""
        return {"semidefinite": True} if self.semidefinite else {}
