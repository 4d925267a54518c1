"""Attacks on floating point, after Mironov (2012), Haney et al. (2022) and Casacuberta et al. (2022).

Low bits: which values can come out at all, and how finely they lie, must not depend on the data. Sums:
neither order nor magnitude may move them. Every attack is also run on a naive form, which it breaks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import stats

from assurance.part import Finding, Part
from dpgram.audit.checks import leaked_facts
from dpgram.core.noise import Entropy, SeededEntropy
from dpgram.engines.local import LocalEngine, gram
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import MECHANISMS, CalibratedMechanism, CalibratedSketch, Drawn, PublicFacts, Sketch
from dpgram.mechanisms.base import as_floats, rounded
from dpgram.noise import WishartSketch
from dpgram.noise.sampled import wishart, with_ridge
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing import publish
from dpgram.rows import Rows
from dpgram.schema import Schema
from dpgram.schema.columns import numeric

Cells = npt.NDArray[np.int64]
PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "wishart": {"degrees": 40},
    "sketch": {"degrees": 1000},
    "sketch-adaptive": {"degrees": 1000},
    "inverse-wishart": {"degrees": 2000},
    "inverse-wishart-adaptive": {"degrees": 1000},
    "inverse-noise": {"ridge": 200.0},
}
ALPHA: Final = 1e-6
"""Of each test of low bits; seeds are fixed."""
SCHEMA: Final = Schema(numeric("x", -1, 1), numeric("y", -1, 1), constant=False)
TINY: Final = 2.0**-12
"""Its square is half of the last place of 1 in single precision."""


def mechanism(name: str, width: int = 3) -> CalibratedMechanism:
    """At ε = 1."""
    facts = PublicFacts(width=width, adjacency=adjacency("add-remove"))
    asked = MECHANISMS[name](**PARAMETERS.get(name, {}))
    return asked.calibrated(Guarantee(1.0, 0.0 if asked.pure else 1e-6), facts)


def grams(rows_at_most: int | None, width: int = 3) -> dict[str, Cells]:
    """Nothing, one row, a neighbour of that, a usual table, and as many rows as the mechanism allows."""
    full = np.zeros((width, width), dtype=np.int64)
    full[0, 0] = ROW_NORM_SQUARED
    some = np.arange(50 * width, dtype=np.int64).reshape(50, width) * 7919 % 20_001 - 10_000
    most = (rows_at_most or (1 << 33)) - 1
    huge = np.full((width, width), most * ROW_NORM_SQUARED // (4 * width) + 12_345, dtype=np.int64)
    np.fill_diagonal(huge, most * ROW_NORM_SQUARED // width - ROW_NORM_SQUARED)
    return {
        "nothing": 0 * full,
        "one row": full,
        "another row": np.roll(full, 1, axis=(0, 1)),
        "a table": some.T @ some,
        "the limit": huge,
        "the limit and a row": huge + full,
    }


def low_bits(cells: Sequence[int]) -> float:
    """The p-value of "the last three bits are uniform".

    A zero is left out: noisy eigenvalues that were averaged to one value make a multiple of the identity.
    """
    last = [cell & 7 for cell in cells if cell]
    return float(stats.chisquare(np.bincount(last, minlength=8)).pvalue)


def drawn_cells(
    draw: Callable[[Cells, Entropy], Drawn], exact: Cells, draws: int
) -> tuple[set[int], list[int]]:
    """The exponents and the cells of several draws."""
    entropy = SeededEntropy(8)
    found = [draw(exact, entropy) for _ in range(draws)]
    lower = np.tril_indices(len(exact))
    return {one.exponent for one in found}, [int(cell) for one in found for cell in one.cells[lower]]


def on_one_grid(draw: Callable[[Cells, Entropy], Drawn], tables: dict[str, Cells], draws: int) -> bool:
    """Whether, whatever the data, cells lie on one grid and fill it evenly."""
    exponents: set[int] = set()
    even = True
    for exact in tables.values():
        own, cells = drawn_cells(draw, exact, draws)
        exponents |= own
        even &= low_bits(cells) > ALPHA
    return even and len(exponents) == 1


def sketch_in_floats(sketch: CalibratedSketch, exact: Cells, entropy: Entropy) -> Drawn:
    """By a float Bartlett factor, rounded to lattice units: from 2^23 rows on floats are coarser."""
    drawn = wishart(with_ridge(as_floats(exact), sketch.ridge), sketch.rows, entropy.generator())
    return Drawn(
        cells=rounded(drawn / sketch.rows), noise=WishartSketch(ridge=sketch.ridge, rows=sketch.rows)
    )


def reachable(cell: int, exact: int, sketch: CalibratedSketch) -> bool:
    """Whether some float χ makes the one-column sketch (L·χ)²/r round to `cell`, L = √(G + w²) (Mironov)."""
    factor = math.sqrt(float(exact) + sketch.ridge)
    guess = math.sqrt(cell * sketch.rows) / factor
    low = guess - 40 * math.ulp(guess)
    tried = (low + k * math.ulp(guess) for k in range(81))
    return any(round((factor * x) * (factor * x) / sketch.rows) == cell for x in tried)


def given_away(
    draw: Callable[[Cells, Entropy], Drawn], sketch: CalibratedSketch, draws: int
) -> tuple[float, float, float]:
    """Mironov's attack on 2^27 − 1 rows and one row less: what it says of outputs of the former.

    The share of outputs that floats reach from that table alone, the share that they reach from the other one
    alone, and the p-value of "as many of each": all that the attack can use.
    """
    most = np.array([[((1 << 27) - 1) * ROW_NORM_SQUARED]], dtype=np.int64)
    entropy = SeededEntropy(1)
    own, other = int(most[0, 0]), int(most[0, 0]) - ROW_NORM_SQUARED
    ours = theirs = 0
    for _ in range(draws):
        cell = int(draw(most, entropy).cells[0, 0])
        from_own, from_other = reachable(cell, own, sketch), reachable(cell, other, sketch)
        ours += from_own and not from_other
        theirs += from_other and not from_own
    p_value = stats.binomtest(ours, ours + theirs).pvalue if ours + theirs else 1.0
    return ours / draws, theirs / draws, float(p_value)


def naive_laplace(exact: float, generator: np.random.Generator) -> float:
    """x ± ln(u) in floats: the textbook's sampler."""
    sign = 1.0 if generator.random() < 0.5 else -1.0
    return exact + sign * math.log(1.0 - generator.random())


def naive_reachable(value: float, exact: float) -> bool:
    """Whether some u = k/2^53 gives `value` from `exact`."""
    size = abs(value - exact)
    guess = round(math.exp(-size) * 2.0**53)
    sign = -1.0 if value > exact else 1.0
    near = range(max(1, guess - 60), min(1 << 53, guess + 61))
    return any(exact + sign * math.log(k * 2.0**-53) == value for k in near)


def naive_gram(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Σ x xᵀ in single precision, row after row."""
    products = np.einsum("ni,nj->nij", rows, rows).astype(np.float32)
    return np.asarray(np.cumsum(products, axis=0, dtype=np.float32)[-1], dtype=np.float32)


def lattice_gram(rows: npt.NDArray[np.float64]) -> Cells:
    """Ours, with radius 1."""
    table = pa.table({"x": rows[:, 0], "y": rows[:, 1]})
    return gram(table, SCHEMA, 1.0, threads=1, progress=False).cells


def order_attack(rows: int = 1 << 16) -> npt.NDArray[np.float64]:
    """A full row before, or after, many whose squares it swallows."""
    table = np.zeros((rows, 2))
    table[:, 0] = TINY
    table[0] = (1.0, 0.0)
    return table


def moved_by_order(add_up: Callable[[npt.NDArray[np.float64]], Any], rows: int = 1 << 16) -> float:
    """How far the order of rows moves the sum, in units of its last row's square."""
    table = order_attack(rows)
    one, other = (np.asarray(add_up(part), dtype=np.float64) for part in (table, table[::-1]))
    return float(np.abs(one - other).max())


EXTREMES: Final = (
    math.inf,
    -math.inf,
    math.nan,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    0.0,
    -0.0,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    1.0,
    math.nextafter(1.0, 2.0),
    math.nextafter(1.0, 0.0),
    0.1,
)


def extremes_are_bounded() -> bool:
    """Whether no pair of extreme values moves the sums by more than a full row, in exact integers."""
    base = [(0.3, -0.2), (0.1, 0.9)]
    without = lattice_gram(np.array(base))
    for x in EXTREMES:
        for y in EXTREMES:
            step = (lattice_gram(np.array([*base, (x, y)])) - without).astype(object)
            trace, frobenius = int(np.trace(step)), sum(int(cell) ** 2 for cell in step.ravel())
            if not (0 <= trace <= ROW_NORM_SQUARED and frobenius <= ROW_NORM_SQUARED**2):
                return False
    return True


def _published(table: pa.Table) -> Any:
    return publish(
        table,
        SCHEMA,
        epsilon=1.0,
        delta=1e-6,
        progress=False,
        rows=Rows(radius=1.0),
        engine=LocalEngine(threads=1),
        adaptive=False,
        ledger=None,
    )


def text_says_nothing() -> bool:
    """Whether releases of tables with any digits differ in their cells only, which are whole numbers."""
    tables = [
        pa.table({"x": [x, 0.25], "y": [0.1, 0.3]}) for x in (0.5, 1 / 3, 5e-324, -0.0, 1e308, math.nan)
    ]
    plain = all(
        cell.lstrip("-").isdigit() and not cell.startswith("-0")
        for table in tables
        for cell in _published(table).published.cells
    )
    return plain and not leaked_facts(_published, tables)


def examine() -> Part:
    """All attacks, on ours and on the naive forms."""
    even = [
        on_one_grid((made := mechanism(name)).draw, grams(made.kind.rows_at_most), 100) for name in MECHANISMS
    ]
    sketch = Sketch(degrees=1000).calibrated(
        Guarantee(1.0, 1e-6), PublicFacts(width=1, adjacency=adjacency("add-remove"))
    )
    right, wrong, chance = given_away(sketch.draw, sketch, 500)
    in_floats, never, caught = given_away(partial(sketch_in_floats, sketch), sketch, 500)
    generator = np.random.Generator(np.random.PCG64(1))
    values = [naive_laplace(1.0, generator) for _ in range(500)]
    naive = sum(not naive_reachable(value, 0.0) for value in values) / len(values)
    order, naive_order = moved_by_order(lattice_gram), moved_by_order(naive_gram)
    return Part(
        title="Floating point",
        how="The attacks of Mironov 2012, Haney et al. 2022 and Casacuberta et al. 2022 on the cells, sums "
        "and texts of releases, and on naive forms that they must break.",
        findings=(
            Finding(
                what="cells lie on one public grid and fill it evenly, from no row to the row limit",
                figure=f"{sum(even)} of {len(even)} mechanisms",
                holds=all(even),
            ),
            Finding(
                what="a sketch of 2^27 − 1 rows: the last digits of outputs point to it, or to one row less",
                figure=f"{right:.1%} and {wrong:.1%}; of one drawn in floats {in_floats:.1%} and {never:.1%}",
                holds=chance > ALPHA > caught,
            ),
            Finding(
                what="the same attack on Laplace noise in floats finds",
                figure=f"{naive:.0%} of outputs",
                holds=naive > 0.1,
            ),
            Finding(
                what="sums moved by the order of rows (a full row among 65,535 tiny ones)",
                figure=f"{order:g}; in single precision {naive_order:.2g} of a row's square",
                holds=order == 0.0 < naive_order,
            ),
            Finding(
                what="no extreme value (±inf, nan, subnormal, ±0, 1e308) moves a sum by more than one row",
                figure=f"{len(EXTREMES) ** 2} pairs",
                holds=extremes_are_bounded(),
            ),
            Finding(
                what="the text of a release differs between tables in its cells only",
                figure="6 tables",
                holds=text_says_nothing(),
            ),
        ),
    )
