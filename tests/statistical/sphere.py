"""The law ∝ exp(uᵀMu) on the sphere by quadrature: what samplers of directions are held against."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def sphere_cells(exponent: Floats, cells: int) -> tuple[Floats, Floats]:
    """Exact probabilities, under ∝ exp(uᵀMu) on S², of equal bands of the third coordinate squared."""
    heights, weights = np.polynomial.legendre.leggauss(400)
    angles = np.linspace(0.0, 2.0 * np.pi, 400, endpoint=False)
    ring = np.sqrt(1.0 - heights**2)
    points = np.stack(
        [np.outer(ring, np.cos(angles)), np.outer(ring, np.sin(angles)), np.outer(heights, np.ones(400))],
        axis=-1,
    )
    density = np.exp(np.einsum("abi,ij,abj->ab", points, exponent, points)).sum(axis=1) * weights
    edges = np.linspace(0.0, 1.0, cells + 1)
    band = np.clip(np.digitize(np.abs(heights), edges) - 1, 0, cells - 1)
    mass = np.bincount(band, density, minlength=cells)
    return edges, mass / mass.sum()
