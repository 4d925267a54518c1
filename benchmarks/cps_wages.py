"""Log wages (CPS, March 1988): the education coefficient's standard error, forecast and measured.

    python benchmarks/cps_wages.py      # under a minute

log(wage) on education, experience and its square (as a Legendre polynomial), ethnicity, city, part-time work
and region, under public bounds: schooling 0 to 18 years, experience −5 to 65 years (the survey's people are
18 to 70 years old), weekly wages of 40 to 4,000 dollars. Writes results/cps-wages.md.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from data_sets import data_sets
from dpgram.analysis.design import build_design
from dpgram.analysis.inference import infer
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.core.noise import simulation
from dpgram.engines.local import gram
from dpgram.lattice import cell_unit
from dpgram.mechanisms import Auto, PublicFacts
from dpgram.mechanisms.choice import choose
from dpgram.planning import plan
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.guarantee import Guarantee
from dpgram.rows import Rows
from dpgram.schema import Schema, boolean, categorical, legendre, numeric

DELTA = 1e-6
DRAWS = 400
RESULT = Path(__file__).parent / "results" / "cps-wages.md"
TARGETS = {10.0: 1.15, 1.0: 4.5}
SCHEMA = Schema(
    numeric("education", 0, 18),
    numeric("experience", -5, 65),
    legendre("experience", 2),
    boolean("black"),
    boolean("city"),
    boolean("parttime"),
    categorical("region", ["midwest", "northeast", "south", "west"]),
    numeric("log_wage", float(np.log(40)), float(np.log(4000))),
)


def table(folder: Path) -> pl.DataFrame:
    frame = pl.read_parquet(folder / "cps1988" / "data.parquet")
    return frame.select(
        pl.col("education").cast(pl.Float64),
        pl.col("experience").cast(pl.Float64),
        black=pl.col("ethnicity").cast(pl.String) == "afam",
        city=pl.col("smsa").cast(pl.String) == "yes",
        parttime=pl.col("parttime").cast(pl.String) == "yes",
        region=pl.col("region").cast(pl.String),
        log_wage=pl.col("wage").log(),
    )


def measured(second: np.ndarray, rows: int, epsilon: float) -> tuple[str, float, float]:
    """(mechanism, root-mean-square error of `auto` over the OLS standard error, the same with sampling)."""
    radius = SCHEMA.max_norm_squared**0.5
    unit = cell_unit(radius)
    facts = PublicFacts(width=SCHEMA.width, adjacency=adjacency("add-remove"), rows=rows)
    chosen = choose(Auto(), Guarantee(epsilon, DELTA), facts, None).mechanism
    exact = second * rows
    law = chosen.expected(np.linalg.eigvalsh(exact) / unit)
    generator = simulation(1988)

    def moments(matrix: np.ndarray, sigma: float = unit) -> Moments:
        return Moments(gram=matrix, schema=SCHEMA, noise=EncodedNoise.of(law, sigma), radius=radius)

    design = build_design(moments(exact), "log_wage")
    at = design.positions("education")[0]
    plain = infer(moments(exact, 0.0), design)
    noisy = [
        infer(moments(law.redraw(exact / unit, generator) * unit), design).estimate[at] for _ in range(DRAWS)
    ]
    error = float(np.sqrt(np.mean((np.array(noisy) - plain.estimate[at]) ** 2)))
    ols = float(np.sqrt(plain.covariance[at, at]))
    return chosen.name, ols, float(np.hypot(error, ols) / ols)


def main() -> None:
    exact = gram(table(data_sets()), SCHEMA)
    rows = exact.rows
    second = exact.cells * cell_unit(SCHEMA.max_norm_squared**0.5) / rows
    clamped = exact.counts.cells_clamped
    lines = [
        "# Log wages: the education coefficient",
        "",
        f"Made by `python benchmarks/cps_wages.py`: March 1988 Current Population Survey, {rows:,} men;",
        f"{SCHEMA.width} encoded columns, public bounds, experience squared as a Legendre polynomial;",
        "δ = 10⁻⁶, add/remove, `auto`, no ledger.",
        f"The bounds clamp {clamped} cells (wages above 4,000 dollars a week), and least squares is that of",
        "the clamped table. Standard error (sampling and privacy) over that of least squares,",
        f"{DRAWS} simulated releases. The first forecast is given the table's second moments, the second",
        "nothing but the number of rows (spread 1/3, correlation 0.2, R² 0.5).",
        "",
        "| ε | mechanism | measured | target | forecast | off | forecast from public facts only |",
        "|---|---|---|---|---|---|---|",
    ]
    for epsilon, target in TARGETS.items():
        name, _, ratio = measured(second, rows, epsilon)
        given = {
            "rows": Rows(expected=rows),
            "epsilon": epsilon,
            "delta": DELTA,
            "mechanisms": [name],
        }
        forecast, blind = (
            plan(SCHEMA, target="log_wage", **more, **given).forecast(name).se_ratios["education"]
            for more in ({"assume": second}, {})
        )
        met = "≤" if ratio <= target else "**above**"
        lines.append(
            f"| {epsilon:g} | {name} | {ratio:.3f} | {met} {target:g} | {forecast:.3f} "
            f"| {forecast / ratio - 1:+.1%} | {blind:.3f} |"
        )
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines[-2:]))


if __name__ == "__main__":
    main()
