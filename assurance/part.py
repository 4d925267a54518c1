"""One examination and what it found: the common form of every part of the assurance page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the page: what was examined, the figure measured, and whether what we promise holds."""

    what: str
    figure: str
    holds: bool
    cells: tuple[str, ...] = ()
    """Figures with columns of their own; none where these do not apply."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """An examination: its title, one sentence on how it was made, and its findings."""

    title: str
    how: str
    findings: tuple[Finding, ...]
    columns: tuple[str, ...] = ()
    """What the cells of its findings are."""

    @classmethod
    def counted(
        cls, title: str, how: str, what: str, findings: Sequence[Finding], columns: tuple[str, ...] = ()
    ) -> Self:
        """The findings, and first of all how many of them hold."""
        held = sum(finding.holds for finding in findings)
        whole = Finding(what=what, figure=f"{held} of {len(findings)}", holds=held == len(findings))
        return cls(title=title, how=how, findings=(whole, *findings), columns=columns)

    @property
    def holds(self) -> bool:
        return all(finding.holds for finding in self.findings)
