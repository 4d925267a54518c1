"""E‖N‖ of the two noise laws by simulation, and the coefficients that `dpgram.noise` carries.

For N on k columns with ν degrees of freedom (GOE: ν = ∞) write c = ν/k and divide the simulated E‖N‖ by the
edge of the limiting spectrum. What is missing to one, times k^(2/3), is smooth in k^(-1/3) and 1/c, and a
polynomial in both is fitted to it by weighted least squares. Run it to print the table and the coefficients:

    python benchmarks/noise_norms.py            # writes results/noise_norms.md, about five minutes
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
RESULT = Path(__file__).parent / "results" / "noise_norms.md"
SEED = 20260101
DRAWS = {2: 400_000, 3: 300_000, 4: 200_000, 5: 150_000, 8: 80_000, 12: 50_000, 20: 25_000, 35: 10_000}
DRAWS |= {60: 5_000, 100: 2_500, 200: 500, 350: 120, 500: 60}
RATIOS = (0.0, 1.5, 2.0, 4.0, 10.0, math.inf)
"""c = ν/k; 0 stands for its least value, 1 + 1/k: the noise on every column of the release."""


def wishart(generator: np.random.Generator, batch: int, k: int, nu: int) -> Array:
    """Standard Wishart matrices by Bartlett's decomposition."""
    lower = np.tril(generator.standard_normal((batch, k, k)), -1)
    diagonal = np.arange(k)
    lower[:, diagonal, diagonal] = np.sqrt(generator.chisquare(nu - diagonal, size=(batch, k)))
    return lower @ lower.transpose(0, 2, 1)


def norms(generator: np.random.Generator, k: int, nu: float, draws: int) -> Array:
    """Simulated ‖N‖ divided by the edge of its limiting spectrum."""
    batch = max(1, min(draws, 1_000_000 // (k * k)))
    found: list[Array] = []
    for _ in range(math.ceil(draws / batch)):
        if math.isinf(nu):
            z = generator.standard_normal((batch, k, k))
            noise = 0.5 * (z + z.transpose(0, 2, 1)) / math.sqrt(2.0 * k)
        else:
            noise = wishart(generator, batch, k, int(nu)) - wishart(generator, batch, k, int(nu))
            noise /= k * laplace_edge(nu / k)
        values = np.linalg.eigvalsh(noise)
        found.append(np.maximum(-values[:, 0], values[:, -1]))
    return np.concatenate(found)


def laplace_edge(c: float) -> float:
    """The largest value of the free difference of two Marchenko–Pastur laws of ratio c."""
    u = (math.sqrt(c * c + 4.0 * c) - c - 1.0) / (2.0 * c - 1.0)
    z = math.sqrt(u)
    return 2.0 * c * z / (1.0 - u) + 1.0 / z


def features(k: float, c: float) -> list[float]:
    """1, k^(-1/3), k^(-2/3) times 1, 1/c, 1/c²."""
    return [k ** (-a / 3.0) * c ** (-float(b)) for a in range(3) for b in range(3)]


def main() -> None:
    generator = np.random.Generator(np.random.PCG64(SEED))
    rows: list[list[float]] = []
    short: list[float] = []
    weight: list[float] = []
    table: list[tuple[int, float, float, float]] = []
    for k, draws in DRAWS.items():
        for ratio in RATIOS:
            nu = ratio if math.isinf(ratio) else float(max(k + 1, round(ratio * k)))
            if ratio and nu <= k + 1:
                continue
            found = norms(generator, k, nu, draws)
            mean, error = float(found.mean()), float(found.std() / math.sqrt(len(found)))
            table.append((k, nu, mean, error))
            rows.append(features(k, nu / k))
            short.append((1.0 - mean) * k ** (2.0 / 3.0))
            weight.append(1.0 / (k ** (2.0 / 3.0) * math.hypot(error, 3e-4)))
    w = np.array(weight)
    coefficients = np.linalg.lstsq(np.array(rows) * w[:, None], np.array(short) * w, rcond=None)[0]
    lines = [
        "# Expected operator norm of the noise over the edge of its limiting spectrum",
        "",
        f"Made by `benchmarks/noise_norms.py`, seed {SEED}. k columns, ν degrees of freedom (∞: symmetric",
        "Gaussian); *fit* is what `dpgram.noise` uses.",
        "",
        "| k | ν | simulated | standard error | fit | fit / simulated − 1 |",
        "|---|---|---|---|---|---|",
    ]
    worst = 0.0
    for (k, nu, mean, error), row in zip(table, rows, strict=True):
        fit = 1.0 - k ** (-2.0 / 3.0) * float(np.dot(row, coefficients))
        worst = max(worst, abs(fit / mean - 1.0))
        shown = "∞" if math.isinf(nu) else f"{nu:.0f}"
        lines.append(f"| {k} | {shown} | {mean:.5f} | {error:.5f} | {fit:.5f} | {fit / mean - 1.0:+.4f} |")
    lines += ["", f"Largest difference: {worst:.2%}.", "", "Coefficients, by rows k^(0, −1/3, −2/3):", ""]
    lines += ["    " + ", ".join(f"{x:.4f}" for x in coefficients[3 * a : 3 * a + 3]) for a in range(3)]
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
