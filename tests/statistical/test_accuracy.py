"""The default regression against published AdaSSP on the eight sets with published results (Wang's protocol).

The short form of benchmarks/accuracy.py: ten draws a fold with fixed seeds. The Monte Carlo error of a
geometric mean is then about 2%, and the targets are further away than that.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.wang_protocol import DELTA, SETS, Task, adassp, compared, load_task, published

from dpgram.analysis.noise_aware import noise_aware
from dpgram.noise import MatrixLaplace, SymmetricGaussian
from dpgram.privacy.curves.calibrate import gaussian_sigma

SENSITIVITY = 2.0
DRAWS = 10


@pytest.fixture(scope="module")
def tasks(shared_data: Path) -> tuple[Task, ...]:
    return tuple(load_task(shared_data, name) for name in SETS)


def less_noise(width: int, epsilon: float) -> SymmetricGaussian | MatrixLaplace:
    pure = MatrixLaplace(theta=epsilon / SENSITIVITY, width=width)
    gaussian = SymmetricGaussian(gaussian_sigma(epsilon=epsilon, delta=DELTA, sensitivity=SENSITIVITY))
    return pure if pure.diagonal_sd <= gaussian.diagonal_sd else gaussian


def test_the_protocol_is_the_published_one(shared_data: Path, tasks: tuple[Task, ...]) -> None:
    """Non-private and trivial rows agree to the published digits; AdaSSP within Monte Carlo error."""
    results = published(shared_data)
    for task in tasks:
        assert task.nonprivate() == pytest.approx(results[task.name, "non-private", 1.0], abs=2e-6)
        assert task.trivial() == pytest.approx(results[task.name, "trivial", 1.0], abs=4e-6)
    z_scores = [
        compared(task, epsilon, results[task.name, "AdaSSP", epsilon], 200, 3)[1]
        for task in tasks
        for epsilon in (0.1, 1.0)
    ]
    # 16 squared z-scores: the mean of χ²₁₆/16 passes 2 with probability below 1%.
    assert np.mean(np.square(z_scores)) < 2.0


@pytest.mark.parametrize(("epsilon", "target"), [(1.0, 0.28), (0.1, 0.45)])
def test_excess_error_relative_to_adassp(tasks: tuple[Task, ...], epsilon: float, target: float) -> None:
    ratios = []
    for task in tasks:
        k, generator = task.width, np.random.default_rng([5, *task.name.encode()])
        law, nonprivate = less_noise(k + 1, epsilon), task.nonprivate()
        errors = []
        for fold in task.folds:
            for _ in range(DRAWS):
                noisy = fold.train + law.sample(k + 1, generator)
                fit = noise_aware(noisy[:k, :k], noisy[:k, k], noisy[k, k], noise=law)
                errors.append(fold.mse(fit.theta))
        rival = adassp(task, epsilon, 100, generator).mean()
        if epsilon == 1.0:
            assert np.mean(errors) < rival
        ratios.append((np.mean(errors) - nonprivate) / (rival - nonprivate))
    assert np.exp(np.mean(np.log(ratios))) <= target
