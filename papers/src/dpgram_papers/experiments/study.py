"""What an experiment of a paper is: a grid, its figures, the claims checked on it, ours against theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, final

from dpgram_papers.experiments.claims import Verdict
from dpgram_papers.experiments.comparisons import Comparison
from dpgram_papers.experiments.drawing import PaperFigure
from dpgram_papers.experiments.grid import Grid, GridResults

Size: TypeAlias = Literal["tiny", "quick", "full"]
"""How much of a paper's grid: for a test, for minutes, or as in the paper."""

SEED: Final = 2015


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One grid of one paper."""

    name: str
    """Of its CSV file."""
    figures: tuple[str, ...]
    grid: Callable[[Size, Path | None], Grid]
    """By size and the folder of data sets."""
    paper_figures: Callable[[GridResults], Mapping[str, PaperFigure]]
    verdicts: Callable[[GridResults], list[Verdict]]
    comparisons: Callable[[GridResults], list[Comparison]]
    needs: tuple[str, ...] = ()
    """Files in the folder of data sets without which it cannot run."""

    def lacks(self, data: Path | None) -> str | None:
        """Why it cannot run here; None where it can."""
        if not self.needs:
            return None
        if data is None:
            return "it needs the folder of data sets (give --data, or set DPGRAM_DATA)"
        absent = [name for name in self.needs if not (data / name).exists()]
        return f"the folder of data sets lacks {', '.join(absent)}" if absent else None
