"""A trial: one test, run on something broken on purpose and on ours; it must catch the one, not the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from dpgram.audit import AuditResult, Claim, JointAudit


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the test said of one subject."""

    caught: bool
    figure: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The same test for both subjects; seeds are fixed, so it always says the same."""

    name: str
    broken: Callable[[bool], Outcome]
    """The broken subject; True asks for the long form."""
    ours: Callable[[bool], Outcome]
    short: bool = True
    """Whether the short form has enough power, in a second or so, to be worth running."""


def audited(found: AuditResult | JointAudit, *claims: Claim) -> Outcome:
    """Caught, where any of the claims is refuted."""
    return Outcome(
        caught=not all(found.passes(claim) for claim in claims),
        figure=f"ε ≥ {found.epsilon_lower:.2f}, μ ≥ {found.mu_lower:.2f}",
    )


def checked(breaches: tuple[str, ...]) -> Outcome:
    """Caught, where a check found anything."""
    return Outcome(caught=bool(breaches), figure=f"{len(breaches)} breaches")
