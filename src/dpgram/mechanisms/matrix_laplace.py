"""The matrix Laplace mechanism: the default for δ = 0, and for small tables the least noise of all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
import numpy.typing as npt

from dpgram import noise
from dpgram.core.noise import Entropy, Noise, on_matrix
from dpgram.errors import MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms._stated import ROUNDING, StatedNoise
from dpgram.mechanisms.base import (
    CalibratedMechanism,
    Drawn,
    Mechanism,
    PublicFacts,
)
from dpgram.privacy.curves.base import PrivacyCurve, PureCurve
from dpgram.privacy.events import Event, PureEvent
from dpgram.privacy.guarantee import Guarantee


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixLaplace(Mechanism):
    """G + round(W₁ − W₂), W₁ and W₂ independent Wishart_d(I/(2θ), d+1).

    ε-DP, with δ = 0 to the letter, for ε = θ·2^30 (add/remove) or θ·2^31 (replace-one) in lattice units. The
    noise has the Gaussian's shape with σ = √(d+1)/θ. Proof: proofs/matrix-laplace.md#matrix-laplace-claim; of
    the draw: proofs/entropy.md#entropy-theorem.
    """

    name: ClassVar[str] = "matrix-laplace"
    semidefinite: ClassVar[bool] = False
    pure: ClassVar[bool] = True
    joint_groups: ClassVar[bool] = True
    replaced_in_groups: ClassVar[bool] = True
    in_blocks: ClassVar[bool] = True
    adaptive: ClassVar[bool] = True
    quick: ClassVar[bool] = True

    def calibrated(self, guarantee: Guarantee, facts: PublicFacts) -> CalibratedMatrixLaplace:
        """θ = ε/(steps·2^30), rounded down; δ is not used."""
        theta = guarantee.epsilon / _trace(facts)
        # A division by a power of two is exact, except among the subnormal numbers; but the float of 0.1 lies
        # above one tenth, and ten such releases shall fit into a ledger of ε = 1.
        if Fraction(theta) * _trace(facts) > Fraction(repr(float(guarantee.epsilon))):
            theta = math.nextafter(theta, 0.0)
        return CalibratedMatrixLaplace(theta=theta)

    @classmethod
    def keeps_promise(cls, stated: StatedNoise) -> bool:
        """ε ≥ θ·2^30 or θ·2^31, with what was measured before, and no δ but that of learnt levels."""
        law = stated.law
        if not isinstance(law, noise.MatrixLaplace) or stated.parameters != {"theta": law.theta}:
            return False
        whole = law.width == stated.width and stated.delta == stated.leak
        if not law.theta > 0 or not whole or not stated.plain_gram:
            return False
        own = stated.adjacency.units_changed * ROW_NORM_SQUARED * law.theta
        return stated.epsilon >= (own + stated.counts_cost) * (1 - ROUNDING)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedMatrixLaplace(CalibratedMechanism):
    """G + round(W₁ − W₂) with its θ. proofs/matrix-laplace.md#matrix-laplace-claim"""

    kind: ClassVar[type[Mechanism]] = MatrixLaplace

    theta: float
    """The rate, per lattice unit of trace."""

    def __post_init__(self) -> None:
        if not 0.0 < self.theta < math.inf:
            raise MechanismError("theta must be a positive number", got=self.theta, limit="0 < theta < inf")

    def law(self, width: int) -> noise.MatrixLaplace:
        return noise.MatrixLaplace(theta=self.theta, width=width)

    def expected(self, values: npt.NDArray[np.float64]) -> noise.MatrixLaplace:
        """That of the noise, which is the same for every matrix."""
        return self.law(len(values))

    def curve(self, facts: PublicFacts) -> PrivacyCurve:
        """That of the worst ε-DP mechanism. Proof: proofs/matrix-laplace.md#matrix-laplace-tight."""
        return PureCurve(self._epsilon(facts))

    def event(self, facts: PublicFacts) -> Event:
        """Pure ε."""
        return PureEvent(epsilon=self._epsilon(facts))

    @property
    def added(self) -> Noise:
        return Noise("matrix-laplace", self.theta)

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        """Rounded noise on integers is rounding after noise: the pure guarantee survives it."""
        cells = on_matrix(gram, self.added, entropy)
        return Drawn(cells=cells, noise=self.law(len(gram)))

    def _epsilon(self, facts: PublicFacts) -> float:
        """θ·s for each semidefinite step between neighbours.

        Proof: proofs/matrix-laplace.md#matrix-laplace-lemma.
        """
        return self.theta * _trace(facts)


def _trace(facts: PublicFacts) -> int:
    """How far a neighbour is in trace, the steps there and back added up: 2^30 or 2^31.

    Proof: proofs/adjacency.md#adjacency-trace.
    """
    return facts.adjacency.units_changed * ROW_NORM_SQUARED
