"""Standard errors of instruments, discriminants and correlations where rows were clipped, beside the truth.

    python -m benchmarks.clipped_answers > benchmarks/results/clipped-answers.md  # minutes

Tables of 2,000 rows are drawn from a known law, taken into whitened coordinates and clipped at c√d, as an
adaptive release does, with next to no privacy noise. The truth is the deviation of the estimate over all
tables; shown is the mean standard error over it, with the sampling factor of clipped rows
(analysis/clip.py) and, in brackets, without. 1.00 is right, more is too wide. Beside a column of two values
the library uses no factor, so that both are the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpgram.analysis.association import correlations, partial_correlation
from dpgram.analysis.clip import ClipCounts
from dpgram.analysis.discriminant import discriminant
from dpgram.analysis.iv import iv
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.core.sums import length_bins
from dpgram.document.reach import BEYOND, CLIP_SQUARES, WITHIN
from dpgram.noise import SymmetricGaussian
from dpgram.schema import Schema, boolean, numeric

Array = npt.NDArray[np.float64]

ROWS = 2_000
LAWS = ("normal", "t4", "lognormal")
RADII = (0.7, 1.0, 1.4, 2.0)
NUMBERS = Schema(*(numeric(name, -40, 40) for name in ("z", "x", "w", "y")))
TWO_VALUES = Schema(numeric("x", -40, 40), numeric("w", -40, 40), boolean("y"))
SIGMA = 1e-3


def drawn(law: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Of variance one and mean zero."""
    if law == "t4":
        return np.clip(rng.standard_t(4, shape) / 2**0.5, -30, 30)
    if law == "lognormal":
        return np.clip((np.exp(0.5 * rng.normal(size=shape)) - np.exp(0.125)) / 0.604, -30, 30)
    return rng.normal(size=shape)


def numbers(law: str, rng: np.random.Generator) -> Array:
    """Rows of z, x, w, y: an instrument, what is endogenous, a control, the target."""
    z, w, u, v, e = drawn(law, (5, ROWS), rng)
    x = 0.7 * z + 0.4 * w + 0.5 * u + 0.5 * v
    return np.column_stack([z, x, w, 0.6 * x - 0.3 * w + 0.5 * u + 0.5 * e])


def two_values(law: str, rng: np.random.Generator) -> Array:
    """Rows of x, w, y: within both groups features have the same law about their means."""
    y = rng.random(ROWS) < 0.3
    x, w = drawn(law, (2, ROWS), rng)
    return np.column_stack([x + 0.7 * y, 0.5 * x + 0.8 * w - 0.3 * y, y])


def clipped(schema: Schema, values: Array, pilot: Array, c: float) -> Moments:
    """The moments of rows that were clipped at c√d in the coordinates that `pilot`, other rows, whitens."""
    encoded, first = (_encoded(schema, each) for each in (values, pilot))
    transform = np.linalg.inv(np.linalg.cholesky(first.T @ first / len(first)))
    u = encoded @ transform.T
    lengths, radius = np.sum(u**2, axis=1), c * np.sqrt(schema.width)
    u = u * np.sqrt(np.minimum(1.0, radius**2 / lengths))[:, None]
    shares = np.bincount(length_bins(lengths / radius**2, CLIP_SQUARES), minlength=WITHIN + BEYOND) / len(u)
    lost = float(np.mean(1.0 - np.minimum(1.0, radius**2 / lengths)))
    return Moments(
        gram=u.T @ u,
        schema=schema,
        noise=EncodedNoise.of(SymmetricGaussian(sigma=SIGMA)),
        radius=float(radius),
        lift=np.linalg.inv(transform).T,
        clip=ClipCounts(lost=lost, clipped=0.0, lost_sd=0.0, shares=tuple(shares.tolist())),
    )


def _encoded(schema: Schema, values: Array) -> Array:
    columns = [np.ones(len(values))]
    for column, line in zip(schema.encoded[1:], values.T, strict=True):
        columns.append((line - column.centre) / column.half_width)
    return np.column_stack(columns)


Asked = Callable[[Moments], tuple[float, float]]


def _slope(moments: Moments) -> tuple[float, float]:
    found = iv(moments, "y", "x", "z", ["w"])
    return found.params["x"], found.bse["x"]


def _logit(moments: Moments) -> tuple[float, float]:
    found = discriminant(moments, "y")
    return found.params["x"], found.bse["x"]


def _probit(moments: Moments) -> tuple[float, float]:
    found = discriminant(moments, "y", link="probit")
    return found.params["x"], found.bse["x"]


def _correlation(moments: Moments) -> tuple[float, float]:
    found = correlations(moments).pair("x", "y")
    return found.estimate, found.std_error


def _partial(moments: Moments) -> tuple[float, float]:
    found = partial_correlation(moments, "x", "y", ["w"])
    return found.estimate, found.std_error


ASKED: dict[str, tuple[Schema, Callable[[str, np.random.Generator], Array], Asked]] = {
    "instrument": (NUMBERS, numbers, _slope),
    "correlation of numbers": (NUMBERS, numbers, _correlation),
    "partial correlation": (NUMBERS, numbers, _partial),
    "correlation with two values": (TWO_VALUES, two_values, _correlation),
    "logit": (TWO_VALUES, two_values, _logit),
    "probit": (TWO_VALUES, two_values, _probit),
}


def measured(name: str, law: str, c: float, runs: int) -> tuple[float, float, float]:
    """Mean weight lost, and the mean standard error over the true one with the factor and without."""
    schema, make, ask = ASKED[name]
    told: list[tuple[float, float, float, float]] = []
    for run in range(runs):
        rng = np.random.default_rng([list(ASKED).index(name), LAWS.index(law), int(10 * c), run])
        moments = clipped(schema, make(law, rng), make(law, rng), c)
        assert moments.clip is not None
        estimate, error = ask(moments)
        _, plain = ask(without_factor(moments))
        told.append((moments.clip.lost, estimate, error, plain))
    lost, estimates, errors, plains = np.array(told).T
    true = float(np.std(estimates))
    return float(lost.mean()), float(errors.mean()) / true, float(plains.mean()) / true


def without_factor(moments: Moments) -> Moments:
    again = replace(moments)
    again.__dict__["sampling_factor"] = 1.0
    return again


def lines(runs: int) -> Iterator[str]:
    for name in ASKED:
        for law in LAWS:
            for c in RADII:
                lost, with_factor, without = measured(name, law, c, runs)
                yield f"| {name} | {law} | {c:g} | {lost:.3f} | {with_factor:.2f} ({without:.2f}) |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    runs = parser.parse_args().runs
    print("# Errors of other answers where rows were clipped\n")
    print(f"Made by `python -m benchmarks.clipped_answers`: {runs} tables of {ROWS:,} rows a line.")
    print("*Told over true*: the mean standard error over the deviation of the estimates (±3%), with the")
    print("sampling factor of clipped rows and, in brackets, without it.\n")
    print("| answer | rows | c | weight lost | told over true |")
    print("|---|---|---|---|---|")
    for line in lines(runs):
        print(line, flush=True)


if __name__ == "__main__":
    main()
