"""The standard errors that one regression would have, before there is a release, on a table that is assumed.

With G = n·S, S assumed, the noise E of a release moves a coefficient by p_jᵀE r to first order, r the
residual as a function of the encoded row and p_j = V A⁻¹Jᵀe_j. In the eigenbasis of G every mechanism's E
has uncorrelated cells of known variance V_kl (`Law.cell_variances`), so

    Var(p_jᵀE r) = Σ_k V_kk p_k²r_k² + Σ_{k<l} V_kl (p_k r_l + p_l r_k)².

Second order: noise inflates an inverse, by κ = 1/(1 − x) with x = v·tr A⁻² for noise of variance v in every
cell, in general x = the Perron root of V_kl/a_k² in the eigendirections of A (analysis/unshrunken.py). As in
an analysis, directions drowned by noise are left out of x, and what leans on them gets no interval; each of
them adds up to `DROWNED` to κ, and no direction moves an estimate by more than one of that share does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.design import INTERCEPT, Design, build_design
from dpgram.analysis.inference import infer
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.normal_equations import orthonormal
from dpgram.analysis.trust import LOST, LOST_PART, OWN_LIMIT, REST_LIMIT, REST_LIMIT_BESIDE_LOST
from dpgram.errors import AnalysisError
from dpgram.noise import Law, SymmetricGaussian
from dpgram.schema import Schema

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

SINGULAR: Final = 1e-10
"""Features whose smallest eigenvalue is below this part of the largest are dependent by assumption."""

DROWNED: Final = 0.3
"""The share v/a² at which what a drowned direction does to estimates levels off; found on two real tables
(concrete and nmes1988 of benchmarks/planner.py); the others there are the evidence."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegressionOutcome:
    """What a release would give for one regression."""

    ratios: Vector
    """Standard error over that of least squares, for all coefficients but the intercept; inf: no interval."""
    clear: npt.NDArray[np.bool_]
    """Which of them would get an interval."""
    refused: bool
    """Whether no interval at all would be given."""
    inflation: float
    """κ."""

    @property
    def typical(self) -> float:
        """The median ratio; infinite where nothing would be given."""
        return float("inf") if self.refused else float(np.median(self.ratios))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlikeRegression:
    """What noise that is alike in all directions does to a regression: numbers that no turn changes."""

    loads: Matrix
    spectrum: Vector
    across: Vector
    """r in the eigendirections of A."""
    residual_squared: float
    variance: Vector
    trace: float
    """tr S."""

    def outcome(self, variance: float, rows: float) -> RegressionOutcome:
        """Of noise of this variance off the diagonal, n = 1, and twice that on it.

        Var(pᵀE r) = v(|p|²|r|² + (pᵀr)²), and the Perron root is v·tr A⁻².
        """
        shares = variance * self.spectrum**-2.0
        reach = self.loads / self.held(shares)
        noise = np.sum(reach**2, axis=1) * self.residual_squared + (reach @ self.across) ** 2
        return self.told(shares, variance * noise, float(shares[shares <= LOST].sum()), rows)

    def held(self, shares: Vector) -> Vector:
        """A drowned direction is held back by the noise itself: it moves estimates as at the limit."""
        return np.asarray(self.spectrum * np.sqrt(np.maximum(shares / DROWNED, 1.0)))

    def told(self, shares: Vector, noise: Vector, root: float, rows: float) -> RegressionOutcome:
        """By each direction's share v/a², the noise of first order and the Perron root."""
        kept = shares <= LOST
        shown = float(shares[kept].sum())
        if not kept.any() or max(root, shown) >= 1.0 or rows <= len(self.spectrum):
            lost = np.full(len(self.variance), np.inf)
            return RegressionOutcome(
                ratios=lost, clear=np.zeros(len(lost), dtype=bool), refused=True, inflation=np.inf
            )
        inflation = (1.0 + float(np.minimum(shares[~kept], DROWNED).sum())) / (1.0 - root)
        degrees = rows - len(self.spectrum)
        # How far a coefficient leans on weak directions: v(JA⁻²Jᵀ)_jj/|J_j|².
        squares = self.loads**2
        own = squares @ shares / np.maximum(squares.sum(axis=1), np.finfo(float).tiny)
        return RegressionOutcome(
            ratios=np.sqrt(1.0 + inflation * noise * degrees / self.variance),
            clear=1.0 + own / (1.0 - shown) <= OWN_LIMIT,
            refused=_refused(shares / (1.0 - shown)),
            inflation=inflation,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StandardisedRegression:
    """A regression on standardised columns, before a first matrix says how they go together."""

    regression: AssumedRegression
    moments: Matrix
    """S₀, their second moments."""
    basis: Matrix
    """The eigendirections of A in their coordinates, a column each."""
    residual: Vector

    def whitened(self, values: Vector, vectors: Matrix) -> AlikeRegression:
        """In the coordinates of an adaptive release, u = S₁^(−½)T₀a for what was seen of S₀, S₁.

        By B′ = S₁^(½)B, with BᵀSB = D = diag(a): the new A⁻¹ has the eigenvalues of D^(−½)B′ᵀB′D^(−½).
        """
        old = self.regression
        whitening = vectors.T / np.sqrt(values)[:, None]
        turned = (vectors * np.sqrt(values)).T
        scaled = (turned @ self.basis) / np.sqrt(old.spectrum)
        inverse, directions = np.linalg.eigh(scaled.T @ scaled)
        back = directions / np.sqrt(inverse)
        return AlikeRegression(
            loads=(old.loads / np.sqrt(old.spectrum)) @ back,
            spectrum=1.0 / inverse,
            across=back.T @ (scaled.T @ (turned @ self.residual)),
            residual_squared=float(np.sum((turned @ self.residual) ** 2)),
            variance=old.variance,
            trace=float(np.sum((whitening @ self.moments) * whitening)),
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class AssumedRegression:
    """One regression on a table with E aaᵀ = S. Without slots, so that sums over cells are done once."""

    schema: Schema
    target: str
    on: tuple[str, ...] | None
    names: tuple[str, ...]
    """Coefficients other than the intercept."""
    second: Matrix
    """S."""
    values: Vector
    """Eigenvalues of S."""
    vectors: Matrix
    loads: Matrix
    """J in the eigendirections of A, a row for each coefficient: p_j for n = 1 is loads/spectrum @ turn."""
    residual: Vector
    """r in the eigenbasis of S."""
    variance: Vector
    """n·Var of least squares, for each coefficient: s²(JA⁻¹Jᵀ)_jj."""
    spectrum: Vector
    """Eigenvalues of A for n = 1."""
    turn: Matrix
    """Eigendirections of A in the eigenbasis of S, a row each."""

    @classmethod
    def of(cls, schema: Schema, second: Matrix, target: str, on: Sequence[str] | None = None) -> Self:
        """The regression of `target` on the named columns (all others by default), with an intercept."""
        moments = Moments(
            gram=second,
            schema=schema,
            noise=EncodedNoise.of(SymmetricGaussian(sigma=0.0)),
            radius=schema.max_norm_squared**0.5,
        )
        design = build_design(moments, target, on, intercept=schema.constant)
        basis = orthonormal(moments.project(design.vectors))
        outside = moments.project(design.target_vector)
        outside = outside - basis @ (basis.T @ outside)
        A = basis.T @ second @ basis
        spectrum, directions = np.linalg.eigh((A + A.T) / 2.0)
        if spectrum[0] <= SINGULAR * spectrum[-1]:
            raise AnalysisError(
                "the features would be linearly dependent in the assumed table",
                remedy="Leave out one of them, or assume other spreads.",
            )
        inverse = (directions / spectrum) @ directions.T
        residual = outside - basis @ (inverse @ (basis.T @ (second @ outside)))
        jacobian = _slopes(
            design, design.to_original @ np.linalg.inv(basis.T @ moments.project(design.vectors))
        )
        values, vectors = np.linalg.eigh((second + second.T) / 2.0)
        solved = jacobian @ inverse
        return cls(
            schema=schema,
            target=target,
            on=None if on is None else tuple(on),
            names=tuple(name for name in design.names if name != INTERCEPT),
            second=second,
            values=np.maximum(values, 0.0),
            vectors=vectors,
            loads=jacobian @ directions,
            residual=vectors.T @ residual,
            variance=float(residual @ second @ residual) * np.einsum("ij,ij->i", solved, jacobian),
            spectrum=spectrum,
            turn=(basis @ directions).T @ vectors,
        )

    @property
    def spreads(self) -> dict[str, tuple[float, float]]:
        """The assumed mean and deviation of each column of numbers, −1 and 1 being its bounds."""
        found = {}
        for place, column in enumerate(self.schema.encoded):
            if column.kind != "numeric":
                continue
            square, mean = self.second[place, place] / column.weight**2, 0.0
            if self.schema.constant:
                mean = self.second[place, 0] / (column.weight * self.schema.encoded[0].weight)
            found[column.name] = (float(mean), float(np.sqrt(max(square - mean**2, SINGULAR))))
        return found

    def standardised(self, blur: Mapping[str, float]) -> StandardisedRegression:
        """The same regression with columns less their means over their deviations, overstated by `blur`."""
        overstated = np.array([blur.get(column.name, 1.0) for column in self.schema.encoded])
        plain = _standardising(self.second, constant=self.schema.constant) / overstated[:, None]
        return StandardisedRegression(
            regression=self,
            moments=plain @ self.second @ plain.T,
            basis=np.linalg.solve(plain.T, self.vectors @ self.turn.T),
            residual=np.linalg.solve(plain.T, self.vectors @ self.residual),
        )

    def outcome(self, law: Law, rows: float, unit: float, factor: float = 1.0) -> RegressionOutcome:
        """Of a release with this law for a table of `rows` rows; `unit` is a lattice unit in encoded units.

        `factor` multiplies all variances: what a simulation found the first order to be off by.
        """
        width = len(self.values)
        cells = law.cell_variances(rows * self.values / unit) * (factor * unit**2 / rows**2)
        invariant = width > 1 and np.ptp(cells[0, 1:]) == 0.0 == np.ptp(
            np.diagonal(cells) - 2.0 * cells[0, 1]
        )
        if invariant:
            return self._alike.outcome(float(cells[0, 1]), rows)
        shares = float(cells.sum()) / (width * (width + 1.0)) * self.spectrum**-2.0
        noise = self.noise(cells, self._alike.held(shares))
        return self._alike.told(shares, noise, self._perron(cells, shares <= LOST), rows)

    def noise(self, cells: Matrix, strengths: Vector | None = None) -> Vector:
        """Σ_k V_kk p_k²r_k² + Σ_{k<l} V_kl(p_k r_l + p_l r_k)², for every coefficient.

        `strengths` stand in for the eigenvalues of A, where some are drowned.
        """
        off = cells.copy()
        np.fill_diagonal(off, 0.0)
        reach = (self.loads / (self.spectrum if strengths is None else strengths)) @ self.turn
        products = reach * self.residual
        squares = reach**2 @ (off @ self.residual**2)
        crossed = np.einsum("ij,ij->i", products @ off, products)
        return np.asarray(squares + crossed + products**2 @ np.diagonal(cells))

    def error_of(self, errors: Matrix) -> Vector:
        """p_jᵀE r for one error matrix E in encoded units, n = 1."""
        turned = self.vectors.T @ (errors @ (self.vectors @ self.residual))
        return np.asarray((self.loads / self.spectrum) @ (self.turn @ turned))

    def estimated(self, published: Sequence[Matrix], noise: EncodedNoise, radius: float) -> Matrix:
        """The library's own estimates from these matrices in encoded units, a row for each."""
        moments = [Moments(gram=gram, schema=self.schema, noise=noise, radius=radius) for gram in published]
        asked = build_design(moments[0], self.target, self.on, intercept=self.schema.constant)
        # The first level of each column and not the most frequent one, which noise could change.
        first = {name: self.schema.column(name).group_levels[0] for name in asked.references}
        design = build_design(
            moments[0], self.target, self.on, intercept=self.schema.constant, reference=first
        )
        slopes = [i for i, name in enumerate(design.names) if name != INTERCEPT]
        return np.array([infer(each, design).estimate[slopes] for each in moments])

    @cached_property
    def _alike(self) -> AlikeRegression:
        return AlikeRegression(
            loads=self.loads,
            spectrum=self.spectrum,
            across=self.turn @ self.residual,
            residual_squared=float(self.residual @ self.residual),
            variance=self.variance,
            trace=float(self.values.sum()),
        )

    def _perron(self, cells: Matrix, kept: npt.NDArray[np.bool_]) -> float:
        """The largest eigenvalue of M_kl/a_k², M the cells in the eigendirections of A that are not lost."""
        if not kept.any():
            return float("inf")
        weights = self.turn[kept] ** 2
        moved = weights @ cells @ weights.T
        moved.flat[:: len(moved) + 1] *= 0.5
        scaled = moved / np.outer(self.spectrum[kept], self.spectrum[kept])
        return float(np.linalg.eigvalsh((scaled + scaled.T) / 2.0)[-1])


def _standardising(second: Matrix, *, constant: bool) -> Matrix:
    """T₀ of a table with these moments: the means are taken off where there is a constant to do it by."""
    transform = np.eye(len(second))
    variances = np.diagonal(second).copy()
    if constant:
        transform[1:, 0] = -second[1:, 0] / second[0, 0]
        variances[1:] -= second[1:, 0] ** 2 / second[0, 0]
    return transform / np.sqrt(np.maximum(variances, SINGULAR * np.diagonal(second)))[:, None]


def _slopes(design: Design, jacobian: Matrix) -> Matrix:
    return jacobian[[i for i, name in enumerate(design.names) if name != INTERCEPT]]


def _refused(shares: Vector) -> bool:
    """The rule by which analyses refuse intervals (analysis/trust.py), on forecast shares."""
    kept = shares[shares <= LOST]
    lost = len(shares) - len(kept)
    return lost > LOST_PART * len(shares) or 1.0 + float(kept.sum()) > (
        REST_LIMIT_BESIDE_LOST if lost else REST_LIMIT
    )
