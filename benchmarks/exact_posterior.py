"""How much the closed form of the default regression gives away against the exact posterior.

    python benchmarks/exact_posterior.py [--draws 3] [--data FOLDER]      # about two minutes on one core

The model behind the default, without any approximation: the exact Gram matrix is positive semidefinite,
A = GᵀG with a flat prior on the square G, coefficients θ ~ N(0, pI), Ã = A + N, b̃ = A θ + n. Hamiltonian
Monte Carlo gives the posterior means of A and of A θ; the estimate of least expected prediction error is
E[A]⁻¹ E[A θ]. Both estimators get the same releases and the same p = m·yᵀy/tr A, so what differs is the
algebra only. Writes results/exact_posterior.md.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from candidates import Noisy, posterior
from data_sets import data_sets
from dpgram.noise import SymmetricGaussian
from wang_protocol import SETS, Task, adassp, load_task, symmetric_noise

Array = npt.NDArray[np.float64]

RESULT = Path(__file__).parent / "results" / "exact_posterior.md"
EPSILON, SIGMA = 0.1, 2.0 * 36.305
"""Gaussian noise of one release of [x, y] with |x|, |y| ≤ 1 at (0.1, 10⁻⁶)."""
WARM_UP, KEPT, LEAPS = 250, 400, 24
SEED = 20261115


@dataclass
class State:
    """One point of every chain: G and z = θ/√p, in units where σ = 1."""

    root: Array
    z: Array

    def moved(self, step: Array, by: State) -> State:
        """This state plus `step` times another, chain by chain."""
        return State(self.root + step[:, None, None] * by.root, self.z + step[:, None] * by.z)

    def energy(self) -> Array:
        """½|·|² of every chain."""
        return np.asarray(0.5 * ((self.root**2).sum(axis=(1, 2)) + (self.z**2).sum(axis=1)))

    def where(self, mask: npt.NDArray[np.bool_], other: State) -> State:
        """The other state in the chains of the mask."""
        root = np.where(mask[:, None, None], other.root, self.root)
        return State(root, np.where(mask[:, None], other.z, self.z))


def posterior_means(A: Array, b: Array, p: float, generator: np.random.Generator) -> tuple[Array, Array]:
    """E[A] and E[A θ] for each of a batch of noisy (A, b), noise with σ = 1."""
    count, width = b.shape
    scale = math.sqrt(p)

    def density(state: State) -> tuple[Array, State, Array, Array]:
        exact = state.root.transpose(0, 2, 1) @ state.root
        theta = scale * state.z
        product = np.einsum("nij,nj->ni", exact, theta)
        error, residual = exact - A, product - b
        value = (
            -0.5 * (error**2).sum(axis=(1, 2)) - (residual**2).sum(axis=1) - 0.5 * (state.z**2).sum(axis=1)
        )
        outer = residual[:, :, None] * theta[:, None, :]
        slope = State(
            -2.0 * state.root @ (error + outer + outer.transpose(0, 2, 1)),
            -2.0 * scale * np.einsum("nij,nj->ni", exact, residual) - state.z,
        )
        return value, slope, exact, product

    values, vectors = np.linalg.eigh(A)
    start = np.sqrt(np.maximum(values, 1.0))[:, :, None] * vectors.transpose(0, 2, 1)
    state = State(start, 0.1 * generator.standard_normal((count, width)))
    value, slope, exact, product = density(state)
    step = np.full(count, 0.02)
    total_A, total_b = np.zeros_like(A), np.zeros_like(b)
    for iteration in range(WARM_UP + KEPT):
        momentum = State(generator.standard_normal(start.shape), generator.standard_normal((count, width)))
        before = value - momentum.energy()
        length = step * generator.uniform(0.7, 1.3)
        new, new_slope = state, slope
        with np.errstate(over="ignore", invalid="ignore"):  # a path that flies off is rejected below
            for _ in range(LEAPS):
                momentum = momentum.moved(0.5 * length, new_slope)
                new = new.moved(length, momentum)
                new_value, new_slope, new_exact, new_product = density(new)
                momentum = momentum.moved(0.5 * length, new_slope)
            gained = np.nan_to_num(new_value - momentum.energy() - before, nan=-np.inf)
        accept = np.exp(np.minimum(0.0, gained))
        taken = generator.uniform(size=count) < accept
        state, slope = state.where(taken, new), slope.where(taken, new_slope)
        value = np.where(taken, new_value, value)
        exact = np.where(taken[:, None, None], new_exact, exact)
        product = np.where(taken[:, None], new_product, product)
        if iteration < WARM_UP:
            step = np.clip(step * np.exp(0.15 * (accept - 0.8)), 1e-4, 0.5)
        else:
            total_A, total_b = total_A + exact, total_b + product
    return total_A / KEPT, total_b / KEPT


def compare(task: Task, m: float, draws: int) -> tuple[float, float]:
    """Excess over non-private relative to AdaSSP: closed form, exact posterior."""
    generator, k = np.random.default_rng([SEED, len(task.name)]), task.width
    noisy = np.concatenate(
        [fold.train + symmetric_noise(generator, draws, k + 1, SIGMA) for fold in task.folds]
    )
    batch = Noisy(noisy[:, :k, :k], noisy[:, :k, k], noisy[:, k, k], SymmetricGaussian(SIGMA))
    closed = posterior(np.array([m]), np.zeros(1))(batch)
    p = m * task.trivial()  # yᵀy / tr A: rows have length one
    mean_A, mean_b = posterior_means(batch.A / SIGMA, batch.b / SIGMA, p, generator)
    exact: Array = np.asarray(np.linalg.solve(mean_A, mean_b[..., None])[..., 0], dtype=np.float64)
    nonprivate = task.nonprivate()
    rival = float(adassp(task, EPSILON, 400, generator).mean()) - nonprivate
    ratios = []
    for theta in (closed, exact):
        errors = [fold.mse(theta[i * draws : (i + 1) * draws]).mean() for i, fold in enumerate(task.folds)]
        ratios.append((float(np.mean(errors)) - nonprivate) / rival)
    return ratios[0], ratios[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=3, help="releases a fold")
    parser.add_argument("--data", type=Path, help="the folder of data sets; by default that of DPGRAM_DATA")
    arguments = parser.parse_args()
    folder = data_sets(arguments.data)
    head = (
        f"Made by `benchmarks/exact_posterior.py`, {arguments.draws} releases a fold, Gaussian, (0.1, 10⁻⁶)."
    )
    what = "Excess test error over the non-private fit relative to AdaSSP, the default's m held fixed."
    lines = [
        "# Closed form and exact posterior\n",
        f"{head} {what}\n",
        "| set | closed form, m=1 | exact, m=1 | closed form, m=2 | exact, m=2 |",
        "|---|---|---|---|---|",
    ]
    found = []
    for name in SETS:
        task = load_task(folder, name)
        found.append([ratio for m in (1.0, 2.0) for ratio in compare(task, m, arguments.draws)])
        lines.append(f"| {name} | " + " | ".join(f"{ratio:.3f}" for ratio in found[-1]) + " |")
        print(lines[-1], flush=True)
    means = np.exp(np.log(np.array(found)).mean(axis=0))
    lines.append("| geometric mean | " + " | ".join(f"**{mean:.3f}**" for mean in means) + " |")
    print(lines[-1])
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
