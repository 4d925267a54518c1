"""The four experiments of Amin et al."""

from __future__ import annotations

from dpgram_papers.experiments import amin_covariance, amin_regression
from dpgram_papers.experiments.amin_tables import FILES
from dpgram_papers.experiments.study import Study


def studies() -> tuple[Study, ...]:
    """Covariance on real and synthetic tables, then regression on both."""
    return (
        Study(
            name="amin-covariance-real",
            figures=("1",),
            grid=amin_covariance.real_grid,
            paper_figures=amin_covariance.real_figures,
            verdicts=amin_covariance.real_verdicts,
            comparisons=amin_covariance.comparisons,
            needs=FILES,
        ),
        Study(
            name="amin-covariance-synthetic",
            figures=("2",),
            grid=amin_covariance.synthetic_grid,
            paper_figures=amin_covariance.synthetic_figures,
            verdicts=amin_covariance.synthetic_verdicts,
            comparisons=amin_covariance.comparisons,
        ),
        Study(
            name="amin-regression-synthetic",
            figures=("3", "4"),
            grid=amin_regression.synthetic_grid,
            paper_figures=amin_regression.synthetic_figures,
            verdicts=amin_regression.synthetic_verdicts,
            comparisons=amin_regression.comparisons,
        ),
        Study(
            name="amin-regression-real",
            figures=("5",),
            grid=amin_regression.real_grid,
            paper_figures=amin_regression.real_figures,
            verdicts=amin_regression.real_verdicts,
            comparisons=amin_regression.comparisons,
            needs=FILES,
        ),
    )
