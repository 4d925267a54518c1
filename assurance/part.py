"""One examination and what it found: the common form of every part of the assurance page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the page: what was examined, the figure measured, and whether what we promise holds."""

    what: str
    figure: str
    holds: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """An examination: its title, one sentence on how it was made, and its findings."""

    title: str
    how: str
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        return all(finding.holds for finding in self.findings)
