"""Makes the golden releases beside this file. Run it only to add files for a new version of the format.

    python tests/golden/make_releases.py VERSION

Files of earlier versions are never made again: that they can still be read is the point.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.flat import publish

from dpgram.core.noise import SeededEntropy
from dpgram.demo import insurance
from dpgram.privacy.ledger import Ledger
from dpgram.schema import Schema, boolean, categorical, legendre, numeric, product

HERE = Path(__file__).parent
PEOPLE = 2_000


def every_kind_of_column() -> Schema:
    return Schema(
        numeric("age", 18, 90, weight=0.5),
        categorical("sex", ["female"], other="other"),
        boolean("smoker"),
        numeric("charges", 0, 50_000),
        product("age", "charges"),
        legendre("age", 3),
    )


def main(version: int) -> None:
    table = insurance.table(PEOPLE)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "x.ledger", name="golden “ledger”", epsilon=3.0, delta=1e-5)
        paid = publish(table, insurance.schema(), epsilon=1.0, delta=1e-6, ledger=ledger, adaptive=False)
    paid.save(HERE / f"insurance-gaussian-v{version}.dpgram.json")
    pure = publish(
        table.set_column(
            table.column_names.index("smoker"), "smoker", [[s == "yes" for s in table["smoker"].to_pylist()]]
        ),
        every_kind_of_column(),
        epsilon=2.0,
        delta=0.0,
        adjacency="replace-one",
        missing="midpoint",
        clip=1.5,
        entropy=SeededEntropy(5),
        adaptive=False,
    )
    pure.save(HERE / f"insurance-matrix-laplace-v{version}.dpgram.json")


if __name__ == "__main__":
    main(int(sys.argv[1]))
