"""Tables beyond Wang's protocol: the library's own encoding, synthetic designs, held-out sets.

Tables are encoded by the library ([-1, 1] for numbers, one-hot groups, a constant column), so the row radius
is what the schema allows. Bounds are the range of the data widened by a tenth: fine for comparing, not a
way to publish. A method's loss is its excess test error over the non-private fit, as a part of what the
non-private fit gains on predicting the mean (where it gains nothing, as a part of the target's variance).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from candidates import Candidate, Noisy
from dpgram.analysis.design import build_design
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.normal_equations import isotropic
from dpgram.engines.local import gram
from dpgram.lattice import cell_unit
from dpgram.noise import MatrixLaplace, SymmetricGaussian
from dpgram.privacy.curves.calibrate import gaussian_sigma
from dpgram.schema import Column, Schema, categorical, numeric
from held_out import held_out_arrays

Array = npt.NDArray[np.float64]
Law = SymmetricGaussian | MatrixLaplace

DELTA = 1e-6
FOLDS = 5


@dataclass(frozen=True)
class Table:
    """Encoded second moments of the folds of one table: (training sum, test mean)."""

    name: str
    schema: Schema
    target: str
    folds: tuple[tuple[Array, Array], ...]


def law_of(epsilon: float, delta: float, width: int, sensitivity: float, mechanism: str = "auto") -> Law:
    """The noise `publish` would use, in the units of the matrix: `auto` takes the smaller deviation."""
    pure = MatrixLaplace(theta=epsilon / sensitivity, width=width)
    if delta == 0.0 or mechanism == "matrix-laplace":
        return pure
    gaussian = SymmetricGaussian(gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=sensitivity))
    return pure if mechanism == "auto" and pure.diagonal_sd <= gaussian.diagonal_sd else gaussian


def losses(
    table: Table, candidates: Mapping[str, Candidate], epsilon: float, draws: int, seed: int
) -> dict[str, float]:
    """Mean loss of each candidate under `auto` at (ε, 10⁻⁶), on the same noise."""
    generator = np.random.default_rng([seed, len(table.name), round(1000 * epsilon)])
    schema = table.schema
    law = law_of(epsilon, DELTA, schema.width, schema.max_norm_squared)
    design = build_design(_moments(table.folds[0][0], table, law), table.target, intercept=schema.constant)
    y = design.target_vector
    totals = dict.fromkeys(candidates, 0.0)
    gained = 0.0
    for train, test in table.folds:
        best, trivial = _nonprivate(train, test, y, constant=schema.constant)
        gained += trivial - best if trivial - best > 1e-9 * trivial else trivial
        for _ in range(draws):
            noisy = _moments(train + law.sample(schema.width, generator), table, law)
            problem = isotropic(noisy, design)
            batch = Noisy(
                problem.gram_xx[None],
                problem.gram_xy[None],
                np.array([problem.gram_yy]),
                problem.noise,
                problem.target_norm,
            )
            for name, candidate in candidates.items():
                residual = y - problem.function(candidate(batch)[0])
                totals[name] += (float(residual @ test @ residual) - best) / draws
    return {name: total / gained for name, total in totals.items()}


def _moments(matrix: Array, table: Table, law: Law) -> Moments:
    radius = math.sqrt(table.schema.max_norm_squared)
    return Moments(gram=matrix, schema=table.schema, noise=EncodedNoise.of(law), radius=radius)


def _nonprivate(train: Array, test: Array, y: Array, *, constant: bool) -> tuple[float, float]:
    """Test error of least squares and of the mean (or of zero, without a constant column)."""
    features = np.flatnonzero(y == 0.0)
    fitted = np.zeros_like(y)
    fitted[features] = np.linalg.lstsq(train[np.ix_(features, features)], (train @ y)[features], rcond=1e-10)[
        0
    ]
    mean = np.zeros_like(y)
    if constant:
        mean[0] = (train @ y)[0] / train[0, 0]
    errors = [float((y - f) @ test @ (y - f)) for f in (fitted, mean)]
    return errors[0], errors[1]


def encoded(name: str, frame: pl.DataFrame, target: str, *, seed: int = 0) -> Table:
    """A table in the library's encoding: text columns are categorical, all others numbers."""
    frame = frame.drop_nulls()
    columns: list[Column] = []
    for column in frame.columns:
        values = frame[column]
        if values.dtype == pl.String:
            columns.append(categorical(column, levels=sorted(values.unique().to_list())))
        else:
            low, high = values.cast(pl.Float64).to_numpy().min(), values.cast(pl.Float64).to_numpy().max()
            margin = 0.05 * (high - low) or 0.5
            columns.append(numeric(column, low=low - margin, high=high + margin))
    schema = Schema(*columns)
    unit = cell_unit(math.sqrt(schema.max_norm_squared))
    label = np.random.default_rng(seed).permutation(len(frame)) % FOLDS
    folds: list[tuple[Array, Array]] = []
    for k in range(FOLDS):
        train, test = (gram(frame.filter(rows), schema) for rows in (label != k, label == k))
        folds.append((train.cells.astype(float) * unit, test.cells.astype(float) * (unit / test.rows)))
    return Table(name, schema, target, tuple(folds))


RAW: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "airfoil": ("sound_pressure_db", ()),
    "bike": ("cnt", ("instant",)),
    "concrete": ("compressive_strength_mpa", ()),
    "elevators": ("Goal", ()),
    "energy": ("heating_load", ("cooling_load",)),
    "parkinsons": ("total_UPDRS", ("motor_UPDRS", "subject_id")),
    "protein": ("RMSD", ()),
    "wine": ("quality", ()),
}
"""Set → target, and what is left out: a second target, a person's number, a row's number."""


def development(folder: Path) -> Iterator[Table]:
    """The eight sets in original units, and three tables of people with categories."""
    for name, (target, dropped) in RAW.items():
        frame = pl.read_parquet(folder / name / "raw.parquet").drop(dropped)
        yield encoded(name, frame, target)
    wages = pl.read_parquet(folder / "cps1988" / "data.parquet")
    yield encoded("cps1988", wages.with_columns(pl.col("wage").log()), "wage")
    visits = pl.read_parquet(folder / "nmes1988" / "data.parquet").drop("nvisits", "ovisits", "novisits")
    yield encoded("nmes1988", visits.with_columns(pl.col("visits").clip(0, 30)), "visits")
    adult = pl.read_parquet(folder / "adult" / "data.parquet").drop("native_country", "education", "fnlwgt")
    yield encoded("adult", adult.with_columns(pl.col("capital_gain").clip(0, 20_000)), "income_gt_50k")


def held_out() -> Iterator[Table]:
    """Sets that were first looked at after the estimator was frozen."""
    for name, x, y in held_out_arrays():
        frame = pl.DataFrame({f"x{i}": column for i, column in enumerate(x.T)}).with_columns(y=pl.Series(y))
        yield encoded(name, frame, "y")


SIGNALS: Mapping[str, float] = {
    "none": 0.0,
    "weak": 0.03,
    "even": 0.5,
    "in small directions": 0.5,
    "few": 0.7,
}
"""Kind of signal → R²."""


def synthetic(rows: Sequence[int], widths: Sequence[int], seed: int = 0) -> Iterator[tuple[str, Table]]:
    """(kind of signal, table): exact moments, flat or falling spectra, columns of mean square about 0.15."""
    generator = np.random.default_rng(seed)
    for width in widths:
        for kind, explained in SIGNALS.items():
            for falling in (0.0, 1.5):
                matrix = _population(generator, width, falling, kind, explained)
                columns = [numeric(f"x{i}", low=-1.0, high=1.0) for i in range(width)]
                schema = Schema(*columns, numeric("y", low=-1.0, high=1.0))
                for count in rows:
                    folds = ((matrix * count, matrix),)
                    yield kind, Table(f"{kind} {width} {falling} {count}", schema, "y", folds)


def _population(
    generator: np.random.Generator, width: int, falling: float, kind: str, explained: float
) -> Array:
    turn = np.linalg.qr(generator.standard_normal((width, width)))[0]
    spectrum = (1.0 + np.arange(width)) ** -falling
    spectrum *= 0.15 * width / spectrum.sum()
    covariance = (turn * spectrum) @ turn.T
    make: Mapping[str, Callable[[], Array]] = {
        "in small directions": lambda: turn @ (generator.standard_normal(width) / np.sqrt(spectrum)),
        "few": lambda: (np.arange(width) < max(1, width // 8)).astype(float),
    }
    theta = make.get(kind, lambda: generator.standard_normal(width))()
    theta *= math.sqrt(explained * 0.1 / float(theta @ covariance @ theta))
    mean = np.concatenate([[1.0], generator.uniform(-0.3, 0.3, width), [0.2]])
    matrix = np.outer(mean, mean)
    matrix[1:-1, 1:-1] += covariance
    matrix[-1, 1:-1] += covariance @ theta
    matrix[1:-1, -1] += covariance @ theta
    matrix[-1, -1] += 0.1
    return matrix
