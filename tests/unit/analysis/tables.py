"""Tables with known schemas, and their exact moments: what a release would hold without noise."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.noise import SymmetricGaussian
from dpgram.schema import (
    Boolean,
    Categorical,
    Legendre,
    Numeric,
    Product,
    Schema,
    boolean,
    categorical,
    legendre,
    numeric,
    product,
)

Table = Mapping[str, npt.NDArray[np.generic]]


def encode(schema: Schema, table: Table) -> npt.NDArray[np.float64]:
    """The encoding of the schema, written again from its definition."""
    length = len(next(iter(table.values())))
    columns = [np.ones(length)] if schema.constant else []

    def z(name: str) -> npt.NDArray[np.float64]:
        column = schema.column(name)
        if isinstance(column, Boolean):
            return np.where(table[name], 1.0, -1.0)
        assert isinstance(column, Numeric)
        return (table[name].astype(float) - column.centre) / column.half_width

    def lines(name: str) -> list[npt.NDArray[np.float64]]:
        column = schema.column(name)
        if not isinstance(column, Categorical):
            return [z(name)]
        return [(table[name] == level).astype(float) for level in column.all_levels]

    for column in schema.columns:
        match column:
            case Numeric() | Boolean():
                columns.append(column.weight * z(column.name))
            case Categorical():
                columns += [column.weight * (table[column.name] == level) for level in column.all_levels]
            case Product():
                for left in lines(column.left):
                    columns += [column.weight * left * right for right in lines(column.right)]
            case Legendre():
                selector = np.eye(column.degree + 1)[column.degree]
                columns.append(column.weight * np.polynomial.legendre.legval(z(column.column), selector))
    return np.column_stack(columns)


def exact_moments(schema: Schema, table: Table, sigma: float = 0.0, seed: int = 0) -> Moments:
    """G (+ symmetric Gaussian noise of scale sigma, in encoded units)."""
    rows = encode(schema, table)
    gram = rows.T @ rows
    law = SymmetricGaussian(sigma=sigma)
    if sigma > 0:
        gram = law.redraw(gram, np.random.default_rng(seed))
    return Moments(
        gram=gram, schema=schema, noise=EncodedNoise.of(law), radius=float(np.sqrt(schema.max_norm_squared))
    )


def insurance(n: int = 3000, seed: int = 1) -> dict[str, npt.NDArray[np.generic]]:
    """Numeric, boolean and categorical columns with effects of every kind."""
    rng = np.random.default_rng(seed)
    age, bmi = rng.uniform(18, 90, n), rng.uniform(15, 45, n)
    smoker, active = rng.choice(["no", "yes", "former"], n, p=[0.6, 0.25, 0.15]), rng.random(n) < 0.4
    region = rng.choice(["east", "north", "south", "west"], n)
    effect = {"no": 0.0, "yes": 9000.0, "former": 2500.0}
    charges = (
        6000
        + 180 * (age - 54)
        + 220 * (bmi - 30)
        + np.array([effect[s] for s in smoker])
        - 1500 * active
        + 4 * (age - 54) * (bmi - 30)
        + rng.normal(0, 3000, n)
    )
    return {
        "age": age,
        "bmi": bmi,
        "smoker": smoker,
        "active": active,
        "region": region,
        "charges": np.clip(charges, -30_000, 50_000),
    }


def insurance_schema(*, weights: bool = False, constant: bool = True, derived: bool = False) -> Schema:
    w = (0.5, 2.0, 0.7, 1.3, 1.9) if weights else (1.0,) * 5
    columns = [
        numeric("age", 18, 90, weight=w[0]),
        numeric("bmi", 10, 60, weight=w[1]),
        categorical("smoker", ["no", "yes", "former"], weight=w[2]),
        boolean("active", weight=w[3]),
        categorical("region", ["east", "north", "south", "west"]),
        numeric("charges", -30_000, 50_000, weight=w[4]),
    ]
    if derived:
        columns += [product("age", "bmi", weight=w[0]), legendre("age", 2, weight=w[4])]
    return Schema(*columns, constant=constant)
