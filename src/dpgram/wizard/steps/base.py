"""What a step is."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Step:
    """One step: its address, its name on the pages, its module and the step after it."""

    address: str
    title: str
    module: ModuleType
    then: str
