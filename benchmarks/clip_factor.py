"""The sampling factor of clipped rows (analysis/clip.py) beside the truth, on simulated rows.

    python benchmarks/clip_factor.py          # a minute on one core

For features of four kinds and errors of two, rows are whitened and clipped at c√d. The truth is the ratio of
the diagonal of A⁻¹E(w⁴e²xxᵀ)A⁻¹ to that of s²A⁻¹, least, mean and largest over the slopes; the factor is what
the library would use from exact counts of row lengths. Writes results/clip-factor.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpgram.analysis.clip import ClipCounts
from dpgram.core.sums import length_bins
from dpgram.document.reach import BEYOND, CLIP_SQUARES, WITHIN

Array = npt.NDArray[np.float64]

RESULT = Path(__file__).parent / "results" / "clip-factor.md"
ROWS = 200_000
RADII = (0.6, 1.0, 1.4, 2.0, 3.0)


def features(kind: str, width: int, generator: np.random.Generator) -> Array:
    if kind == "t4":
        return generator.standard_t(4, size=(ROWS, width))
    x = generator.normal(size=(ROWS, width))
    if kind == "lognormal":
        return np.exp(x)
    if kind == "dummy":
        x[:, 0] = generator.random(ROWS) < 0.02
    return x


def compared(x: Array, e: Array) -> Iterator[str]:
    width = x.shape[1]
    y = x.sum(axis=1) / np.sqrt(width) + e
    v = np.column_stack([np.ones(ROWS), x, y])
    u = np.linalg.solve(np.linalg.cholesky(v.T @ v / ROWS), v.T).T
    lengths = (u**2).sum(axis=1)
    for c in RADII:
        radius = c * np.sqrt(width + 2)
        w2 = np.minimum(1.0, radius**2 / lengths)
        X = v[:, :-1]
        inverse = np.linalg.inv((X * w2[:, None]).T @ X / ROWS)
        residual = y - X @ (inverse @ ((X * w2[:, None]).T @ y / ROWS))
        middle = (X * (w2**2 * residual**2)[:, None]).T @ X / ROWS
        plain = float((w2 * residual**2).sum() / w2.sum())
        truth = (np.diagonal(inverse @ middle @ inverse) / (plain * np.diagonal(inverse)))[1:]
        counts = np.bincount(length_bins(lengths / radius**2, CLIP_SQUARES), minlength=WITHIN + BEYOND) / ROWS
        exact = ClipCounts(lost=0.0, clipped=0.0, lost_sd=0.0, shares=tuple(counts.tolist()))
        found = exact.sampling_factor(float(radius), width + 2, constant=True)
        yield (
            f"{c:g} | {1.0 - w2.mean():.3f} | {truth.min():.2f} | {truth.mean():.2f} | {truth.max():.2f} | "
            f"{found:.2f} | {np.sqrt(found / truth.mean()):.2f}"
        )


def main() -> None:
    told = (
        f"Made by `benchmarks/clip_factor.py`, {ROWS:,} rows a line, exact counts of lengths. *Truth*: what "
        "s²A⁻¹ must be multiplied with, over the slopes. *Errors*: the standard error with the factor over "
        "the true one at the mean slope. A dummy that is one in 2% of the rows is clipped nearly always: its "
        "own slope is the least of its line, and its standard error too long."
    )
    lines = [
        "# The sampling factor of clipped rows",
        "",
        told,
        "",
        "| errors | features | c | weight lost | least | truth, mean | largest | factor | errors |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    generator = np.random.default_rng(0)
    for errors in ("normal", "exponential"):
        for width in (5, 20):
            for kind in ("normal", "t4", "lognormal", "dummy"):
                x = features(kind, width, generator)
                e = (
                    generator.normal(size=ROWS)
                    if errors == "normal"
                    else generator.exponential(size=ROWS) - 1
                )
                lines += [f"| {errors} | {kind}, {width} | {line} |" for line in compared(x, e)]
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
