"""Populations with known coefficients, and what bounded-influence regression finds in them.

A row v = (1, x, y) in published coordinates is u = T v, and counts with weight w² = min(1, R/|u|)². The
bounded-influence functional at (T, R) is β = argmin E w²(y − xβ)², in the full model or in a part of it; at
R = ∞ it is that of least squares, which is known in closed form here. At other (T, R) it is computed on large
simulated tables, where most of the simulation error is common to several functionals and cancels:

    f(T, R) ≈ [f_m(T, R) − f_m(T₀, R₀)] + [f_N(T₀, R₀) − f_N(I, ∞)] + f(I, ∞),

T₀ whitens the population, R₀ is the radius of a grid that weighs rows most nearly as R does, m rows serve for
each release anew, N for the grid once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.integrate import quad
from scipy.stats import norm, t

from dpgram.schema import Schema, boolean, numeric

Array = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Features = Literal["normal", "t4", "lognormal", "dummies"]
Errors = Literal["normal", "exponential", "unequal"]

OWN, COMMON = 0.8, 0.6
"""A feature is OWN·(its own factor) + COMMON·(a factor of all): unit variance, correlation 0.36."""
LOGNORMAL = 0.75
"""Standard deviation of the logarithm."""
RARE = 0.02
"""How often a dummy is one."""
REACH: Final[Mapping[str, float]] = {"normal": 6.0, "t4": 30.0, "lognormal": 30.0, "dummies": 6.0}
"""Factors are limited to this many standard deviations before the target is made from them."""
TARGET_REACH: Final[Mapping[str, float]] = {"normal": 60.0, "exponential": 60.0, "unequal": 120.0}
"""By kind of errors; about one row in a million would be longer."""
INTERCEPT = 0.5
SLOPES = (1.0, -0.7, 0.4, 0.0, -0.2)
"""Repeated as often as there are features, and scaled so that half of the target's variance is explained."""
GRID = tuple(2.0 ** (k / 2) for k in range(-2, 8))
"""R₀/√width: from 0.5 to 11. Beyond, least squares itself is the reference."""
CHUNK = 20_000


def _factor(features: Features, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    reach = REACH[features]
    if features == "t4":
        made = rng.standard_t(4, shape) / math.sqrt(2.0)
    elif features == "lognormal":
        mean = math.exp(0.5 * LOGNORMAL**2)
        made = (np.exp(LOGNORMAL * rng.standard_normal(shape)) - mean) / (
            mean * math.sqrt(math.expm1(LOGNORMAL**2))
        )
    else:
        made = rng.standard_normal(shape)
    return np.clip(made, -reach, reach, out=made)


def _factor_moments(features: Features) -> tuple[float, float]:
    """Mean and variance of a factor with its limit."""
    reach = REACH[features]
    if features == "lognormal":
        mean = math.exp(0.5 * LOGNORMAL**2)
        deviation = mean * math.sqrt(math.expm1(LOGNORMAL**2))

        def value(z: float) -> float:
            return min((math.exp(LOGNORMAL * z) - mean) / deviation, reach)

        law, end = norm, 12.0
    elif features == "t4":

        def value(z: float) -> float:
            return max(-reach, min(z / math.sqrt(2.0), reach))

        law, end = t(4), 3e4
    else:

        def value(z: float) -> float:
            return max(-reach, min(z, reach))

        law, end = norm, 12.0

    def moment(power: int) -> float:
        kink = reach * math.sqrt(2.0)
        places = [-end, *(place for place in (-kink, -6.0, 0.0, 6.0, kink) if -end < place < end), end]
        return sum(
            quad(lambda z: value(z) ** power * law.pdf(z), low, high, limit=200)[0]
            for low, high in itertools.pairwise(places)
        )

    first = moment(1)
    return first, moment(2) - first**2


@final
@dataclass(frozen=True)
class World:
    """A linear population: E[y | x] is linear, so least squares finds `slopes` whatever the errors are."""

    features: Features
    errors: Errors
    width: int
    """Number of features."""

    @property
    def name(self) -> str:
        return f"{self.features}/{self.errors}/d{self.width}"

    @property
    def target_reach(self) -> float:
        return TARGET_REACH[self.errors]

    @property
    def dummies(self) -> int:
        return max(1, self.width // 5) if self.features == "dummies" else 0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"x{j}" for j in range(self.width))

    @property
    def models(self) -> Mapping[str, tuple[int, ...]]:
        """Which features each model has."""
        return {"full": tuple(range(self.width)), "part": (0, 1, self.width - 1)}

    @cached_property
    def schema(self) -> Schema:
        """Rough public bounds."""
        reach = 10.0 if REACH[self.features] <= 6.0 else (OWN + COMMON) * REACH[self.features]
        low = -3.0 if self.features == "lognormal" else -reach
        numbers = self.width - self.dummies
        columns = [numeric(name, low, reach) for name in self.names[:numbers]]
        rare = [boolean(name) for name in self.names[numbers:]]
        return Schema(*columns, *rare, numeric("y", -self.target_reach, self.target_reach))

    @cached_property
    def feature_moments(self) -> tuple[Array, Array]:
        """Mean and covariance of the features."""
        numbers = self.width - self.dummies
        first, second = _factor_moments(self.features)
        mean, covariance = np.full(self.width, RARE), np.eye(self.width) * RARE * (1.0 - RARE)
        mean[:numbers] = (OWN + COMMON) * first
        covariance[:numbers, :numbers] = second * (COMMON**2 + OWN**2 * np.eye(numbers))
        return mean, covariance

    @cached_property
    def slopes(self) -> Array:
        """A dummy's slope is of the size of the error: rare levels matter to those who have them."""
        numbers = self.width - self.dummies
        slopes = np.resize(SLOPES, self.width)
        covariance = self.feature_moments[1][:numbers, :numbers]
        slopes[:numbers] /= math.sqrt(slopes[:numbers] @ covariance @ slopes[:numbers])
        slopes[numbers:] = 1.0
        return slopes

    @cached_property
    def gram(self) -> Array:
        """E v vᵀ."""
        mean, covariance = self.feature_moments
        total = np.concatenate([[1.0], mean, [INTERCEPT + mean @ self.slopes]])
        gram = np.outer(total, total)
        gram[1:-1, 1:-1] += covariance
        gram[1:-1, -1] += covariance @ self.slopes
        gram[-1, 1:-1] = gram[1:-1, -1]
        gram[-1, -1] += self.slopes @ covariance @ self.slopes + 1.0
        return gram

    @cached_property
    def least_squares(self) -> dict[str, Array]:
        """The functional of each model, intercept first."""
        return functionals(self, self.gram)

    def rows(self, count: int, rng: np.random.Generator) -> Array:
        """Rows v = (1, x, y)."""
        numbers = self.width - self.dummies
        made = np.empty((count, self.width + 2))
        made[:, 0] = 1.0
        factors = _factor(self.features, rng, (count, numbers + 1))
        x = made[:, 1:-1]
        np.multiply(factors[:, :-1], OWN, out=x[:, :numbers])
        x[:, :numbers] += COMMON * factors[:, -1:]
        x[:, numbers:] = rng.random((count, self.dummies)) < RARE
        y = made[:, -1]
        y[:] = INTERCEPT + x @ self.slopes + self._errors(x, rng)
        np.clip(y, -self.target_reach, self.target_reach, out=y)
        return made

    def _errors(self, x: Array, rng: np.random.Generator) -> Array:
        """Unit variance; for "unequal" on average, and growing with the first feature as costs do."""
        if self.errors == "normal":
            return rng.standard_normal(len(x))
        skewed = rng.standard_exponential(len(x)) - 1.0
        if self.errors == "exponential":
            return skewed
        mean, covariance = self.feature_moments
        size = np.abs(x[:, 0] - mean[0] + 1.0)
        return np.asarray(skewed * size / math.sqrt(1.0 + covariance[0, 0]))

    def table(self, rows: Array) -> npt.NDArray[np.float64] | pa.Table:
        """What is published: an array where every column is a number, which is read fastest."""
        if not self.dummies:
            return np.ascontiguousarray(rows[:, 1:])
        numbers = self.width - self.dummies
        columns = {name: rows[:, 1 + j].copy() for j, name in enumerate(self.names)}
        for name in self.names[numbers:]:
            columns[name] = columns[name] == 1.0
        return pa.table({**columns, "y": rows[:, -1].copy()})


def functionals(world: World, gram: Array) -> dict[str, Array]:
    """argmin of the quadratic form in each model, intercept first."""
    found = {}
    for name, chosen in world.models.items():
        places = [0, *(1 + j for j in chosen)]
        found[name] = np.linalg.solve(gram[np.ix_(places, places)], gram[places, -1])
    return found


def weighted_gram(rows: Array | Singles, transform: Array, radii: Sequence[float]) -> Array:
    """Σ w² v vᵀ for each radius; the rows that keep their whole weight are added up once."""
    width = rows.shape[1]
    found = np.zeros((len(radii), width, width))
    turned = np.ascontiguousarray(transform.T.astype(rows.dtype))
    for start in range(0, len(rows), CHUNK):
        part = rows[start : start + CHUNK]
        u = part @ turned
        squared = np.einsum("ij,ij->i", u, u)
        whole: Array | None = None
        for place, radius in enumerate(radii):
            long = np.flatnonzero(squared > radius * radius)
            if 3 * len(long) > len(part):  # not worth the two parts
                kept = part * np.sqrt(np.minimum(1.0, radius * radius / squared))[:, None]
                found[place] += kept.T @ kept
                continue
            if whole is None:
                whole = (part.T @ part).astype(np.float64)
            found[place] += whole
            if len(long):
                lost = part[long] * np.sqrt(1.0 - radius * radius / squared[long])[:, None]
                found[place] -= lost.T @ lost
    return found


@final
@dataclass(frozen=True)
class References:
    """The functional of each model at (T₀, R₀) for the radii of the grid and, last, for least squares."""

    radii: tuple[float, ...]
    """R₀/√width."""
    values: Mapping[str, Array]
    """Model → one line for each radius."""

    @classmethod
    def simulate(cls, world: World, rows: int, seed: int) -> References:
        """On `rows` streamed rows, with the difference to least squares as what is simulated."""
        transform, size = whitening(world), math.sqrt(world.width + 2)
        radii = (*GRID, math.inf)
        scaled = [radius * size for radius in radii]
        totals = np.zeros((len(radii), *world.gram.shape))
        rng = np.random.default_rng([seed, *world.name.encode()])
        for _ in range(math.ceil(rows / CHUNK)):
            totals += weighted_gram(world.rows(CHUNK, rng), transform, scaled)
        found = [functionals(world, total) for total in totals]
        values = {
            model: np.array([one[model] - found[-1][model] + truth for one in found])
            for model, truth in world.least_squares.items()
        }
        return cls(radii, values)

    def nearest(self, radius: float) -> int:
        """The place of the radius (over √width) that weighs rows most nearly alike."""
        if radius > GRID[-1] * math.sqrt(2.0):
            return len(self.radii) - 1
        return int(np.argmin(np.abs(np.log(np.array(GRID) / radius))))


def whitening(world: World) -> Array:
    """T₀ with T₀ᵀT₀ = (E v vᵀ)⁻¹."""
    return np.linalg.inv(np.linalg.cholesky(world.gram))


@final
class Truth:
    """The functional at the transform and radius of any release, from one simulated table in two halves."""

    def __init__(self, world: World, references: References, rows: int, seed: int) -> None:
        self._world, self._references = world, references
        rng = np.random.default_rng([seed, *world.name.encode(), 1])
        half = CHUNK * math.ceil(rows / (2 * CHUNK))
        self._halves = [self._singles(half, rng) for _ in range(2)]
        scaled = [radius * math.sqrt(world.width + 2) for radius in references.radii]
        grids = [weighted_gram(half, whitening(world), scaled) for half in self._halves]
        self._at_grid = [[functionals(world, gram) for gram in grid] for grid in grids]

    def _singles(self, rows: int, rng: np.random.Generator) -> Singles:
        parts = [self._world.rows(CHUNK, rng).astype(np.float32) for _ in range(rows // CHUNK)]
        return np.concatenate(parts)

    def at(self, transform: Array, radius: float) -> Iterator[tuple[str, Array, Array]]:
        """Model, functional, and the standard error of its simulation (of the m rows)."""
        world = self._world
        spread = math.sqrt(float(np.trace(transform @ world.gram @ transform.T)) / (world.width + 2))
        place = self._references.nearest(radius / spread / math.sqrt(world.width + 2))
        found = [functionals(world, weighted_gram(half, transform, [radius])[0]) for half in self._halves]
        for model in world.models:
            first, second = (
                one[model] - grid[place][model] for one, grid in zip(found, self._at_grid, strict=True)
            )
            value = self._references.values[model][place] + 0.5 * (first + second)
            yield model, value, 0.5 * np.abs(first - second)
