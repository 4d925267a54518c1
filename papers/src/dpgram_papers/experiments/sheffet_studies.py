"""Sheffet's two experiments."""

from __future__ import annotations

from dpgram_papers.experiments import sheffet_claims, sheffet_multiple, sheffet_single
from dpgram_papers.experiments.study import Study


def studies() -> tuple[Study, ...]:
    """Figures 1 to 4, and 5 and 6."""
    return (
        Study(
            name="sheffet-single",
            figures=("1", "2", "3", "4"),
            grid=lambda size, _: sheffet_single.grid(size),
            paper_figures=sheffet_claims.paper_figures,
            verdicts=sheffet_claims.verdicts,
            comparisons=sheffet_claims.comparisons,
        ),
        Study(
            name="sheffet-multiple",
            figures=("5", "6"),
            grid=lambda size, _: sheffet_multiple.grid(size),
            paper_figures=sheffet_multiple.paper_figures,
            verdicts=sheffet_multiple.verdicts,
            comparisons=sheffet_multiple.comparisons,
        ),
    )
