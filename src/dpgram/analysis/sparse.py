"""min ½ θᵀAθ − bᵀθ + αn(ρ|θ|₁ + ½(1−ρ)|θ|²) from the Gram matrix alone, by scikit-learn's coordinate descent.

The solver wants rows, so it is given as many as there are columns: X = √(p/n)·A^{1/2}, whose Gram matrix is A
up to the scale. A must be positive semidefinite: repair it first.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import numpy.typing as npt

from dpgram.errors import AnalysisError

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

ITERATIONS = 20_000


def elastic_net(
    gram_xx: Matrix, gram_xy: Vector, *, rows: float, alpha: float, l1_ratio: float
) -> npt.NDArray[np.float64]:
    """θ of the elastic net with scikit-learn's meaning of `alpha` and `l1_ratio` (1 is the lasso)."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import enet_path

    width = len(gram_xx)
    if width == 0:
        return np.zeros(0)
    values, vectors = np.linalg.eigh(gram_xx)
    values = np.maximum(values, 0.0)
    kept = values > 1e-12 * max(float(values[-1]), 1e-300)
    roots = np.sqrt(values * (width / rows))
    inverse = np.divide(1.0, roots, out=np.zeros_like(roots), where=kept)
    square_root = np.asfortranarray((vectors * roots) @ vectors.T)
    toward = vectors[:, kept] @ (vectors[:, kept].T @ gram_xy) * (width / rows)
    response = vectors @ (inverse * (vectors.T @ toward))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            _, path, _ = enet_path(
                square_root,
                response,
                l1_ratio=l1_ratio,
                alphas=[alpha],
                precompute=np.ascontiguousarray(square_root.T @ square_root),
                Xy=np.ascontiguousarray(toward),
                max_iter=ITERATIONS,
                tol=1e-8,
            )
        except ConvergenceWarning:
            raise AnalysisError(
                "coordinate descent did not converge on this matrix",
                got=f"alpha={alpha:g}",
                remedy="Take a larger alpha, or method='auto'.",
            ) from None
    return np.asarray(path[:, 0], dtype=np.float64)


def noise_level_alpha(width: int, offdiagonal_sd: float, size: float, rows: float) -> float:
    """α with αn = o·√(1+|θ|²)·√(2 ln 2p): the largest of p noisy scores whose true value is zero, about."""
    return offdiagonal_sd * math.sqrt(1.0 + size**2) * math.sqrt(2.0 * math.log(2.0 * max(width, 1))) / rows
