"""Mechanisms broken on purpose: noise of the wrong size or shape, and constants as some papers print them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final, final

import numpy as np
import numpy.typing as npt

from assurance.trials import Outcome, Trial, audited
from dpgram.audit import audit
from dpgram.audit.gram import audit_mechanism
from dpgram.core.noise import Entropy, SeededEntropy
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import (
    CalibratedGaussian,
    CalibratedInverseNoise,
    CalibratedLaplace,
    CalibratedMatrixLaplace,
    CalibratedMechanism,
    CalibratedSketch,
    Drawn,
    Gaussian,
    InverseNoise,
    Laplace,
    MatrixLaplace,
    Mechanism,
    PublicFacts,
    Sketch,
)
from dpgram.noise import Law
from dpgram.privacy.accountant import Event
from dpgram.privacy.adjacency import ReplaceOne, adjacency
from dpgram.privacy.curves.base import PrivacyCurve
from dpgram.privacy.guarantee import GaussianDP, Guarantee, gdp_mu_at_most
from dpgram_papers.analyze_gauss import AnalyzeGauss
from dpgram_papers.kalaja import SufficientStatistics
from dpgram_papers.park_welling import OneSidedWishart
from dpgram_papers.sheffet_inverse import PrintedInverseNoise

Floats = npt.NDArray[np.float64]
LOOSE: Final = Guarantee(8.0, 1e-4)
"""Little noise, so that few runs are enough: the code under test is the same at every ε."""
LEFT: Final = 0.7
"""What is left of the noise where a third of it is missing."""


@dataclass(frozen=True)
class Misstated(CalibratedMechanism):
    """Claims what `honest` claims and draws as `drawing` does: every wrong scale or sensitivity is this."""

    kind: ClassVar[type[Mechanism]] = Gaussian

    honest: CalibratedMechanism
    drawing: CalibratedMechanism

    def expected(self, values: Floats) -> Law:
        """As claimed."""
        return self.honest.expected(values)

    def curve(self, facts: PublicFacts) -> PrivacyCurve:
        """As claimed."""
        return self.honest.curve(facts)

    def event(self, facts: PublicFacts) -> Event:
        """As claimed."""
        return self.honest.event(facts)

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        """As drawn."""
        return self.drawing.draw(gram, entropy)


@final
@dataclass(frozen=True)
class UnderNoisedOffDiagonal(Misstated):
    """Off-diagonal cells of scale σ/2, where σ/√2 is right."""

    honest: CalibratedGaussian

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        """The diagonal of one draw, the rest of another."""
        quiet = CalibratedGaussian(sigma=math.sqrt(0.5) * self.honest.sigma)
        below, diagonal = quiet.draw(gram, entropy), self.honest.draw(gram, entropy)
        cells = below.cells.copy()
        np.fill_diagonal(cells, np.diagonal(diagonal.cells))
        return Drawn(cells=cells, noise=diagonal.noise)


SIZE_OF_NOISE: Final[dict[type[CalibratedMechanism], tuple[str, int]]] = {
    CalibratedGaussian: ("sigma", 1),
    CalibratedMatrixLaplace: ("theta", -1),
    CalibratedLaplace: ("scale", 1),
    CalibratedSketch: ("ridge", 1),
    CalibratedInverseNoise: ("sigma", 1),
}
"""Which parameter the noise is proportional to, and to what power."""


def quieter(mechanism: Any, factor: float) -> CalibratedMechanism:
    """The same mechanism with `factor` times the noise."""
    parameter, power = SIZE_OF_NOISE[type(mechanism)]
    size = getattr(mechanism, parameter) * factor**power
    changed: CalibratedMechanism = replace(mechanism, **{parameter: size})
    return changed


def facts(relation: str, width: int = 2) -> PublicFacts:
    """Public facts for a small matrix."""
    return PublicFacts(width=width, adjacency=adjacency(relation))


def _audit(mechanism: CalibratedMechanism, where: PublicFacts, sizes: tuple[int, int], long: bool) -> Outcome:
    found = audit_mechanism(mechanism, where, runs=sizes[long], entropy=SeededEntropy(5))
    return audited(found, mechanism.curve(where))


def too_quiet(
    asked: Mechanism, guarantee: Guarantee, where: PublicFacts, sizes: tuple[int, int], *, short: bool = True
) -> Trial:
    """30% of the noise is missing."""
    honest = asked.calibrated(guarantee, where)
    broken = Misstated(honest, quieter(honest, LEFT))
    return Trial(
        name=f"noise 30% too small: {asked.name}, {where.adjacency.name}",
        broken=partial(_audit, broken, where, sizes),
        ours=partial(_audit, honest, where, sizes),
        short=short,
    )


def wrong_sensitivity() -> Trial:
    """Calibrated for rows that are added or removed; rows are replaced."""
    where, other = facts("replace-one"), facts("add-remove")
    honest, small = Gaussian().calibrated(LOOSE, where), Gaussian().calibrated(LOOSE, other)
    return Trial(
        name="sensitivity of the other adjacency",
        broken=partial(_audit, Misstated(honest, small), where, (1500, 8000)),
        ours=partial(_audit, honest, where, (1500, 8000)),
    )


def off_diagonal() -> Trial:
    """Too little noise off the diagonal only, where a row along one column does not look."""
    where = facts("add-remove", 4)
    honest = Gaussian().calibrated(LOOSE, where)
    return Trial(
        name="off-diagonal cells under-noised",
        broken=partial(_audit, UnderNoisedOffDiagonal(honest, honest), where, (3000, 12_000)),
        ours=partial(_audit, honest, where, (3000, 12_000)),
    )


def _cells(outputs: Sequence[Floats]) -> Floats:
    """Every cell on and below the diagonal that is released."""
    rows, columns = np.tril_indices(len(outputs[0]))
    cells = np.stack([matrix[rows, columns] for matrix in outputs])
    return cells[:, np.isfinite(cells[0])]


def _eigenvalue(step: Floats, outputs: Sequence[Floats]) -> Floats:
    """Cells, and the least eigenvalue of M − a, whose sign one-sided noise cannot hide."""
    stacked = np.stack(outputs)
    return np.column_stack([_cells(outputs), np.linalg.eigvalsh(stacked - step)[:, 0]])


def _printed(
    draw: Any,
    grams: tuple[Floats, Floats],
    claim: Guarantee | GaussianDP,
    sizes: tuple[int, int],
    statistic: Any,
    long: bool,
) -> Outcome:
    found = audit(
        partial(draw, grams[0]),
        partial(draw, grams[1]),
        runs=sizes[long],
        delta=claim.delta if isinstance(claim, Guarantee) else 0.0,
        statistic=statistic,
        entropy=SeededEntropy(5),
    )
    return audited(found, claim)


def _of_gaussian_noise(claim: Guarantee) -> GaussianDP:
    """The same claim for noise that is known to be Gaussian: it refutes (ε, δ) in far fewer runs."""
    return GaussianDP(gdp_mu_at_most(claim.epsilon, claim.delta))


def _ours(mechanism: CalibratedMechanism, unit: float, gram: Floats, entropy: Entropy) -> Floats:
    """A draw of ours on the same matrix, whose rows are at most 1 long: `unit` is one in what is drawn."""
    drawn = mechanism.draw(np.rint(gram * ROW_NORM_SQUARED).astype(np.int64), entropy)
    return np.asarray(np.ldexp(drawn.cells.astype(np.float64), drawn.exponent) * unit)


def one_sided_wishart() -> Trial:
    """d + 1 degrees of freedom, as printed by Park and Welling and by Imtiaz and Sarwate."""
    claim, sizes = Guarantee(1.0), (1500, 8000)
    grams = (np.diag([1.0, 0.0]), np.zeros((2, 2)))
    ours = MatrixLaplace().calibrated(claim, facts("add-remove"))
    statistic = partial(_eigenvalue, grams[0])
    return Trial(
        name="as printed: one-sided Wishart noise of d + 1 degrees (Park and Welling)",
        broken=partial(_printed, OneSidedWishart(claimed=claim).draw, grams, claim, sizes, statistic),
        ours=partial(_printed, partial(_ours, ours, 1 / ROW_NORM_SQUARED), grams, claim, sizes, statistic),
    )


def noise_on_the_inverse() -> Trial:
    """Theorem B.5 of Sheffet, whose sensitivity has no unit: rows shorter than 1 get too little noise."""
    claim, bound, sizes = Guarantee(0.5, 1e-6), 0.1, (1500, 8000)
    printed = PrintedInverseNoise(claimed=claim, bound=bound, surplus=1.0)
    common = printed.promise * np.eye(2)
    grams = (common + np.diag([bound**2, 0.0]), common + np.diag([0.0, bound**2]))
    # Ours inverts G + L·I with the same L = 2B², so that the promise on σ_min holds by itself.
    ours = InverseNoise(ridge=2.0).calibrated(claim, facts("replace-one"))
    exact = (np.diag([1.0, 0.0]), np.diag([0.0, 1.0]))
    return Trial(
        name="as printed: noise on the inverse (Sheffet, Theorem B.5)",
        broken=partial(_printed, printed.draw, grams, claim, sizes, _cells),
        ours=partial(_printed, partial(_ours, ours, ROW_NORM_SQUARED), exact, claim, sizes, _cells),
    )


def coded_ssp() -> Trial:
    """Sufficient statistics with half the noise of the paper, as in its published program."""
    sizes, promise = (1500, 6000), _of_gaussian_noise(LOOSE)
    printed = SufficientStatistics(claimed=LOOSE, algorithm="ssp", constant="wang-code")
    ours = partial(_ours, Gaussian().calibrated(LOOSE, facts("add-remove")), 1 / ROW_NORM_SQUARED)
    row, nothing = np.ones((2, 2)), np.zeros((2, 2))
    return Trial(
        name="as coded: SSP with half the printed noise (Wang's program)",
        broken=partial(_printed, printed.draw, (row, nothing), promise, sizes, _cells),
        # The row (1, 1) has length √2: half of its square is a full row of ours.
        ours=partial(_printed, ours, (0.5 * row, nothing), promise, sizes, _cells),
    )


def sheffets_analyze_gauss() -> Trial:
    """σ² = 2 ln(2/δ)/ε, ε for ε², and rows that are replaced: three times the μ that (0.1, 10⁻⁶) allows."""
    claim, sizes = Guarantee(0.1, 1e-6), (80_000, 80_000)
    printed = AnalyzeGauss(claimed=claim, constant="sheffet", adjacency=ReplaceOne())
    grams, promise = (np.diag([1.0, 0.0]), np.diag([0.0, 1.0])), _of_gaussian_noise(claim)
    ours = partial(_ours, Gaussian().calibrated(claim, facts("replace-one")), 1 / ROW_NORM_SQUARED)
    return Trial(
        name="as printed: Analyze Gauss with ε for ε² (Sheffet, §2)",
        broken=partial(_printed, printed.draw, grams, promise, sizes, _cells),
        ours=partial(_printed, ours, grams, promise, sizes, _cells),
        short=False,
    )


def trials() -> tuple[Trial, ...]:
    """Everything that a mechanism can get wrong, as far as we thought of it."""
    return (
        too_quiet(Gaussian(), LOOSE, facts("add-remove"), (1500, 8000)),
        too_quiet(Gaussian(), LOOSE, facts("replace-one"), (1500, 8000), short=False),
        too_quiet(MatrixLaplace(), Guarantee(3.0), facts("add-remove", 1), (3000, 10_000)),
        too_quiet(Laplace(), Guarantee(3.0), facts("add-remove", 1), (2000, 8000)),
        too_quiet(Sketch(), LOOSE, facts("add-remove"), (6000, 20_000), short=False),
        too_quiet(InverseNoise(ridge=10.0), LOOSE, facts("add-remove"), (1500, 8000), short=False),
        wrong_sensitivity(),
        off_diagonal(),
        one_sided_wishart(),
        noise_on_the_inverse(),
        coded_ssp(),
        sheffets_analyze_gauss(),
    )
