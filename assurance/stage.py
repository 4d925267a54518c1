"""One noisy measurement on two neighbours: what it tells of their difference, and its likelihood ratio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

from dpgram.noise import MatrixLaplace, SymmetricGaussian

Cells = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What one measurement published, and what it would have been without noise on either side."""

    seen: Cells
    one: Cells
    other: Cells
    scale: float
    law: Literal["gaussian", "laplace", "matrix-laplace"]
    model: bool = False
    """Whether a declared model was measured."""

    @property
    def told(self) -> float:
        """μ² or ε of what the neighbours differ by."""
        step = (self.one - self.other) / self.scale
        if self.law == "gaussian":
            return float((step**2).sum())
        if self.law == "laplace":
            return float(np.abs(step).sum())
        return float(np.abs(np.linalg.eigvalsh(step)).sum())

    @property
    def log_ratio(self) -> float:
        """Of the densities of what was seen; for matrix Laplace noise nearly so."""
        from_one, from_other = (self.seen - self.one) / self.scale, (self.seen - self.other) / self.scale
        if self.law == "gaussian":
            return 0.5 * float((from_other**2).sum() - (from_one**2).sum())
        if self.law == "laplace":
            return float(np.abs(from_other).sum() - np.abs(from_one).sum())
        return float(_nuclear(from_other) - _nuclear(from_one))

    @property
    def left_over(self) -> tuple[float, int]:
        """How large the noise of the true input is: Σ(seen − exact)²/Var of its cells, and their number.

        `one` has to be the true input. Cells of a symmetric matrix count once.
        """
        noise = (self.seen - self.one) / self.scale
        if self.law == "gaussian" and noise.ndim == 1:
            return float((noise**2).sum()), noise.size
        if self.law == "laplace":
            return float((noise**2).sum() / 2.0), noise.size
        # σ² on the diagonal and σ²/2 off it; matrix Laplace noise has σ² = (d + 1)/θ².
        spread = 1.0 if self.law == "gaussian" else len(noise) + 1.0
        lower = np.tril_indices(len(noise), -1)
        squares = (np.diagonal(noise) ** 2).sum() + 2.0 * (noise[lower] ** 2).sum()
        return float(squares / spread), len(noise) * (len(noise) + 1) // 2

    def simulated(self, draws: int, generator: np.random.Generator) -> tuple[Cells, Cells]:
        """Log-ratios as the law of the noise gives them: of draws around `one`, and around `other`."""
        step = (self.one - self.other) / self.scale
        if self.law == "gaussian":
            size = float((step**2).sum())
            around = generator.normal(0.0, np.sqrt(size), (2, draws))
            return around[0] + 0.5 * size, around[1] - 0.5 * size
        if self.law == "laplace":
            moved = step[step != 0.0][:, None]
            noise = generator.laplace(0.0, 1.0, (2, len(moved), draws))
            return (
                (np.abs(noise[0] + moved) - np.abs(noise[0])).sum(axis=0),
                (np.abs(noise[1]) - np.abs(noise[1] - moved)).sum(axis=0),
            )
        width = len(step)
        z = generator.standard_normal((4, draws, width + 1, width))
        squares = np.einsum("sdki,sdkj->sdij", z, z)
        noise = 0.5 * (squares[:2] - squares[2:])
        return (
            _nuclear(noise[0] + step) - _nuclear(noise[0]),
            _nuclear(noise[1]) - _nuclear(noise[1] - step),
        )


def _nuclear(matrix: Cells) -> Cells:
    """‖M‖_* of one matrix, or of each of many."""
    return np.asarray(np.abs(np.linalg.eigvalsh(matrix)).sum(axis=-1))


def law_of(noise: object) -> dict[str, Any]:
    if isinstance(noise, SymmetricGaussian):
        return {"scale": noise.sigma, "law": "gaussian"}
    if isinstance(noise, MatrixLaplace):
        return {"scale": 1.0 / noise.theta, "law": "matrix-laplace"}
    raise TypeError(type(noise).__name__)
