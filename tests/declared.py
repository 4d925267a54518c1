"""One release with a declared model of every family, for tests of what shows them."""

from __future__ import annotations

import warnings

import numpy as np
from tests.flat import publish

import dpgram as dg
from dpgram.core.noise import SeededEntropy
from dpgram.errors import DpgramWarning
from dpgram.release import Release

CURVED = (
    ("logistic", "ill", ["age", "sex"]),
    ("probit", "ill", ["age"]),
    ("poisson", "visits", ["age", "sex"]),
)
"""Family, target and features of those that are not linear, in the order of declaration."""


def every_family() -> Release:
    rng = np.random.default_rng(8)
    n = 30_000
    age = rng.uniform(20, 80, n)
    sex = rng.choice(["f", "m"], n)
    cost = 100 + 3 * age + 50 * (sex == "m") + rng.standard_normal(n) * (5 + 1.5 * (age - 20))
    ill = rng.uniform(size=n) < 1 / (1 + np.exp(-(0.06 * (age - 50) - 0.5 * (sex == "m"))))
    visits = np.minimum(rng.poisson(np.exp(0.3 + 0.01 * (age - 50) + 0.3 * (sex == "m"))), 20).astype(float)
    table = {"age": age, "sex": sex, "cost": cost, "ill": ill, "visits": visits}
    schema = dg.Schema(
        dg.numeric("age", 20, 80),
        dg.categorical("sex", ["f", "m"]),
        dg.numeric("cost", -300, 900),
        dg.boolean("ill"),
        dg.numeric("visits", 0, 20),
    )
    models = [
        dg.linear("cost", on=["age", "sex"]),
        dg.logistic("ill", on=["age", "sex"]),
        dg.probit("ill", on=["age"]),
        dg.poisson("visits", on=["age", "sex"]),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        return publish(
            table, schema, epsilon=8.0, delta=1e-6, adaptive=True, models=models, entropy=SeededEntropy(3)
        )
