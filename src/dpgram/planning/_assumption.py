"""The second moments E aaᵀ of a table nobody has looked at, from guessed spreads, means, correlation and R².

A number z ∈ [-1, 1] is taken to follow a beta law with the assumed mean and standard deviation, a boolean
column has the mean that its spread implies, the levels of a category have the assumed shares. Numbers and
booleans are correlated alike. Legendre and product columns follow from what they are computed of. The target
is y = Σ β_j x_j + error with coefficients of equal strength, alternating in sign, and the assumed R².
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt
from numpy.polynomial import legendre as polynomials
from scipy.special import roots_jacobi

from dpgram.errors import AnalysisError
from dpgram.schema import Column, Schema, SourceColumn
from dpgram.schema.columns import MAX_DEGREE, DerivedColumn
from dpgram.schema.encodings import BooleanEncoding, LegendreEncoding, LevelsEncoding, ProductEncoding

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Spread: TypeAlias = float | Mapping[str, float | Sequence[float]]
"""The standard deviation of z, for all numbers or by column ("*": the others); of a category, its shares."""

DEFAULT_SPREAD: Final = 1.0 / 3.0
"""Bounds that lie three standard deviations from the middle: public bounds are rarely tighter."""
DEFAULT_CORRELATION: Final = 0.2
DEFAULT_R_SQUARED: Final = 0.5


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """What is taken for granted about the table; nothing here may come from its rows."""

    spread: Spread = DEFAULT_SPREAD
    mean: Mapping[str, float] | None = None
    correlation: float = DEFAULT_CORRELATION
    r_squared: float = DEFAULT_R_SQUARED

    def __post_init__(self) -> None:
        if not 0.0 <= self.r_squared < 1.0:
            raise AnalysisError("r_squared is out of range", got=self.r_squared, limit="0 ≤ r_squared < 1")
        if not -1.0 < self.correlation < 1.0:
            raise AnalysisError(
                "the correlation is out of range", got=self.correlation, limit="-1 < correlation < 1"
            )

    def __str__(self) -> str:
        spread = f"{self._everywhere():.3g} of half the range" + (
            " unless given" if isinstance(self.spread, Mapping) and set(self.spread) - {"*"} else ""
        )
        return f"spread {spread}, correlation {self.correlation:g}, R² {self.r_squared:g}"

    def second_moments(self, schema: Schema, target: int, features: Sequence[int]) -> Matrix:
        """E aaᵀ in encoded units, for a target and features at these positions of the schema.

        >>> dg.Assumption(r_squared=0.3).second_moments(schema, target=4, features=[1, 3]).round(2)[4]
        array([ 0.  ,  0.04,  0.  , -0.06,  0.11])
        """
        self._refuse_unknown(schema)
        mean, covariance = self._independent(schema, schema.encoded[target].source)
        y, x = target, list(features)
        strength = covariance[np.ix_(x, x)]
        beta = np.resize([1.0, -1.0], len(x)) / np.sqrt(np.maximum(np.diagonal(strength), 1e-300))
        explained = float(beta @ strength @ beta)
        if explained > 0.0:
            toward = strength @ beta * math.sqrt(self.r_squared * covariance[y, y] / explained)
            # What is made of the target, or shares its group, leans on the features as far as on the target.
            leaning = covariance[:, y] / covariance[y, y]
            leaning[x] = 0.0
            covariance[:, x] += np.outer(leaning, toward)
            covariance[x, :] = covariance[:, x].T
        weights = np.array([column.weight for column in schema.encoded])
        return np.asarray((covariance + np.outer(mean, mean)) * np.outer(weights, weights))

    def _independent(self, schema: Schema, target: str) -> tuple[Vector, Matrix]:
        """Means and covariances of z before the target is tied to the features."""
        laws = {column.name: self._law(column) for column in schema.columns_read if not column.group_levels}
        names = list(laws)
        sizes = np.array([laws[name].spread for name in names])
        basic = np.outer(sizes, sizes) * self.correlation
        if target in names:
            basic[names.index(target), :] = basic[:, names.index(target)] = 0.0
        np.fill_diagonal(basic, sizes**2)
        if len(names) > 1 and self.correlation < -1.0 / (len(names) - 1):
            raise AnalysisError(
                "so negative a correlation is impossible for so many columns",
                got=self.correlation,
                limit=f"correlation ≥ {-1.0 / (len(names) - 1):.3g}",
            )
        mean, loading = np.zeros(schema.width), np.zeros((schema.width, len(names)))
        rest = np.zeros((schema.width, schema.width))
        if schema.constant:
            mean[0] = 1.0
        for column in schema.columns:
            at = list(schema.indices(column.name))
            match column.encoding:
                case LevelsEncoding(levels=levels):
                    shares = self._shares(column, len(levels))
                    mean[at] = shares
                    rest[np.ix_(at, at)] = np.diag(shares) - np.outer(shares, shares)
                case ProductEncoding() if len(at) > 1 or column.factors[0] not in laws:
                    pass  # with levels, once their shares are known
                case ProductEncoding() as pair:
                    left, right = laws[pair.left], laws[pair.right]
                    i, j = names.index(pair.left), names.index(pair.right)
                    loading[at, i] += right.mean
                    loading[at, j] += left.mean
                    mean[at] = left.mean * right.mean + basic[i, j]
                    rest[at, at] = basic[i, i] * basic[j, j] + basic[i, j] ** 2
                case LegendreEncoding():
                    pass  # all polynomials of one number together, below
                case _:
                    mean[at], loading[at, names.index(column.name)] = laws[column.name].mean, 1.0
        for i, name in enumerate(names):
            self._polynomials(schema, name, laws[name], i, mean, loading, rest)
        for derived in schema.columns_derived:
            if any(schema.column(name).group_levels for name in derived.factors):
                self._interactions(schema, derived, names, basic, mean, loading, rest)
        return mean, loading @ basic @ loading.T + rest

    def _interactions(
        self,
        schema: Schema,
        derived: DerivedColumn,
        names: list[str],
        basic: Matrix,
        mean: Vector,
        loading: Matrix,
        rest: Matrix,
    ) -> None:
        """Products with the levels of a group that is independent of the other factor.

        With shares p and a number z of mean m and variance s², 1[l]·z has mean p·m, leans on z with p, and
        what is left of it goes with the levels: (diag p − pp') times (s² + m²), and times m beside them.
        """
        at = list(schema.indices(derived.name))
        sides = [list(schema.indices(name)) for name in derived.factors]
        grouped = [bool(schema.column(name).group_levels) for name in derived.factors]
        if all(grouped):
            left, right = (mean[side] for side in sides)
            shares = np.outer(left, right).ravel()
            mean[at] = shares
            rest[np.ix_(at, at)] = np.diag(shares) - np.outer(shares, shares)
            for side, own, other in ((sides[0], left, right), (sides[1], right, left)):
                spread = np.diag(own) - np.outer(own, own)
                across = np.einsum("ij,k->ijk", spread, other)
                across = across if side is sides[0] else across.transpose(0, 2, 1)
                rest[np.ix_(side, at)] = across.reshape(len(own), -1)
                rest[np.ix_(at, side)] = rest[np.ix_(side, at)].T
            return
        group, number = (0, 1) if grouped[0] else (1, 0)
        shares, (place,) = mean[sides[group]], sides[number]
        i = names.index(derived.factors[number])
        spread = np.diag(shares) - np.outer(shares, shares)
        mean[at] = shares * mean[place]
        loading[at, i] += shares
        rest[np.ix_(at, at)] = spread * (basic[i, i] + mean[place] ** 2)
        rest[np.ix_(at, sides[group])] = spread * mean[place]
        rest[np.ix_(sides[group], at)] = spread * mean[place]

    def _polynomials(
        self, schema: Schema, name: str, law: _BetaLaw, i: int, mean: Vector, loading: Matrix, rest: Matrix
    ) -> None:
        """P_k(z) = its mean + slope·(z − mean) + a rest, exactly, for all Legendre columns of one number."""
        degrees = {
            schema.indices(column.name)[0]: column.encoding.degree
            for column in schema.columns_derived
            if isinstance(column.encoding, LegendreEncoding) and column.encoding.column == name
        }
        if not degrees:
            return
        at = list(degrees)
        nodes, weights = law.quadrature()
        powers = [polynomials.legval(nodes, np.eye(MAX_DEGREE + 1)[degree]) for degree in degrees.values()]
        values = np.array([nodes, *powers])
        means = values @ weights
        moved = values - means[:, None]
        covariance = (moved * weights) @ moved.T
        slopes = covariance[1:, 0] / covariance[0, 0]
        mean[at], loading[at, i] = means[1:], slopes
        rest[np.ix_(at, at)] = covariance[1:, 1:] - np.outer(slopes, slopes) * covariance[0, 0]

    def _law(self, column: SourceColumn) -> _BetaLaw:
        asked = self.spread.get(column.name) if isinstance(self.spread, Mapping) else None
        if asked is not None and not isinstance(asked, int | float):
            raise AnalysisError(f"the spread of {column.name!r} must be one number", got=repr(asked))
        mean = (self.mean or {}).get(column.name)
        if column.encoded_as is BooleanEncoding:
            spread = math.sqrt(1.0 - (mean or 0.0) ** 2) if asked is None else float(asked)
            mean = math.sqrt(max(1.0 - spread**2, 0.0)) if mean is None else mean
        else:
            everywhere = self._everywhere()
            spread, mean = (everywhere if asked is None else float(asked)), mean or 0.0
        largest = math.sqrt(max(1.0 - mean**2, 0.0))
        if not 0.0 < spread <= largest * (1.0 + 1e-9) or largest == 0.0:
            raise AnalysisError(
                f"the assumed spread of {column.name!r} is impossible between its bounds",
                got=spread,
                limit=f"0 < spread ≤ {largest:.3g}, where 1 is half the range",
            )
        return _BetaLaw(mean=mean, spread=min(spread, largest))

    def _everywhere(self) -> float:
        """The spread of every number that has none of its own."""
        common = self.spread.get("*", DEFAULT_SPREAD) if isinstance(self.spread, Mapping) else self.spread
        if not isinstance(common, int | float):
            raise AnalysisError("the spread of all other columns must be one number", got=repr(common))
        return float(common)

    def _refuse_unknown(self, schema: Schema) -> None:
        """A misspelt name would silently assume something else."""
        named = {*(self.spread if isinstance(self.spread, Mapping) else ()), *(self.mean or ())} - {"*"}
        for name in sorted(named):
            if schema.column(name).factors:
                raise AnalysisError(
                    f"{name!r} is computed from other columns", remedy="Give the spread of those."
                )

    def _shares(self, column: Column, levels: int) -> Vector:
        asked = self.spread.get(column.name) if isinstance(self.spread, Mapping) else None
        if asked is None:
            return np.full(levels, 1.0 / levels)
        shares = np.atleast_1d(np.asarray(asked, dtype=np.float64))
        if shares.shape != (levels,) or (shares < 0.0).any() or shares.sum() <= 0.0:
            raise AnalysisError(
                f"the spread of the category {column.name!r} is the share of each level",
                got=repr(asked),
                limit=f"{levels} shares, none of them negative",
            )
        return np.asarray(shares / shares.sum())


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _BetaLaw:
    """A beta law on [-1, 1] by its mean and standard deviation."""

    mean: float
    spread: float

    def quadrature(self) -> tuple[Vector, Vector]:
        """Nodes and weights, exact for products of two Legendre polynomials."""
        middle, variance = 0.5 * (1.0 + self.mean), 0.25 * self.spread**2
        total = middle * (1.0 - middle) / variance - 1.0
        if total <= 1e-9:  # all mass at the bounds
            return np.array([-1.0, 1.0]), np.array([1.0 - middle, middle])
        nodes, weights = roots_jacobi(MAX_DEGREE + 1, (1.0 - middle) * total - 1.0, middle * total - 1.0)
        return np.asarray(nodes), np.asarray(weights / weights.sum())
