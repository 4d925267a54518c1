"""A synthetic insurance table: the people of the demonstration and the tutorial. No real person is in it.

How a row is made (all effects are the true ones behind the table):

- age: 18 to 90, denser in the middle; sex: female or male, one half each; region: four, of 20 to 30 %;
- children: Poisson, mean 1.1, at most 8;
- exercise: hours a week, exponential with mean 3, at most 20;
- smoker: yes for 22 % at age 18, falling to 8 % at age 90; 4 points more for men;
- bmi = 25.5 + 0.045 (age − 18) − 0.25 exercise + N(0, 4.2²);
- blood_pressure = 104 + 0.36 (age − 18) + 0.8 (bmi − 27) + 4.5 smoker − 0.7 exercise + N(0, 10²);
- charges = 900 + 115 (age − 18) + 160 (bmi − 27) + 11,000 smoker + 420 children + 45 (blood_pressure − 120)
  − 120 exercise + 600 in the north + a skewed remainder (gamma, mean 0, standard deviation 3,000);
  at least 300
- four values of bmi in a thousand are missing, as in any real table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dpgram.core.noise import simulation
from dpgram.errors import require_publish
from dpgram.schema import Schema, categorical, numeric

if TYPE_CHECKING:
    import pyarrow as pa

PEOPLE: Final = 50_000
REGIONS: Final = ("north", "east", "south", "west")
_REGION_SHARES: Final = (0.2, 0.25, 0.25, 0.3)


def schema() -> Schema:
    """The public facts: ranges any insurer would know before seeing a single contract."""
    return Schema(
        numeric("age", 18, 90),
        categorical("sex", ["female", "male"]),
        numeric("bmi", 10, 60),
        numeric("children", 0, 8),
        numeric("exercise", 0, 20),
        categorical("smoker", ["no", "yes"]),
        categorical("region", list(REGIONS)),
        numeric("blood_pressure", 70, 200),
        numeric("charges", 0, 50_000),
    )


def table(people: int = PEOPLE, seed: int = 2024) -> pa.Table:
    """The table, the same for the same arguments."""
    require_publish("pyarrow")
    import pyarrow as pa

    draw = simulation(seed)
    age = np.floor(18 + 73 * draw.beta(1.6, 2.0, people))
    male = draw.random(people) < 0.5
    region = draw.choice(len(REGIONS), size=people, p=_REGION_SHARES)
    children = np.minimum(draw.poisson(1.1, people), 8)
    exercise = np.round(np.minimum(draw.exponential(3.0, people), 20.0), 1)
    smoker = draw.random(people) < 0.22 - 0.14 * (age - 18) / 72 + 0.04 * male
    bmi = np.round(25.5 + 0.045 * (age - 18) - 0.25 * exercise + draw.normal(0.0, 4.2, people), 1)
    pressure = np.round(
        104
        + 0.36 * (age - 18)
        + 0.8 * (bmi - 27)
        + 4.5 * smoker
        - 0.7 * exercise
        + draw.normal(0, 10, people)
    )
    remainder = draw.gamma(2.0, 3000 / np.sqrt(2.0), people) - 3000 * np.sqrt(2.0)
    charges = (
        900
        + 115 * (age - 18)
        + 160 * (bmi - 27)
        + 11_000 * smoker
        + 420 * children
        + 45 * (pressure - 120)
        - 120 * exercise
        + 600 * (region == 0)
        + remainder
    )
    unknown = draw.random(people) < 0.004
    return pa.table(
        {
            "age": pa.array(age.astype(np.int64)),
            "sex": pa.array(np.where(male, "male", "female").tolist()),
            "bmi": pa.array(bmi, mask=unknown),
            "children": pa.array(children.astype(np.int64)),
            "exercise": pa.array(exercise),
            "smoker": pa.array(np.where(smoker, "yes", "no").tolist()),
            "region": pa.array(np.array(REGIONS)[region].tolist()),
            "blood_pressure": pa.array(pressure),
            "charges": pa.array(np.round(np.maximum(charges, 300.0), 2)),
        }
    )
