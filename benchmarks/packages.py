"""diffprivlib, OpenDP and mbi in environments of their own, one call at a time, each with a time limit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import venv
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from eigenvectors import DIFFPRIVLIB

Array = npt.NDArray[np.float64]

PATIENCE = 10
"""Seconds of processor time that one call gets; after a call without an answer no larger ε is tried."""
LONGER: Mapping[str, int] = {"mbi": 60}
"""For packages that compile before they calculate."""
REQUIREMENTS: Mapping[str, Sequence[str]] = {
    "diffprivlib": DIFFPRIVLIB,
    "opendp": ("opendp[scikit-learn]",),
    "mbi": ("mbi==2.0.0",),
}

FRAME = """
import json, signal, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
{load}
for line in sys.stdin:
    job = json.loads(line)
    tables = np.load(job["file"])
    np.random.seed(job["seed"])
    signal.setitimer(signal.ITIMER_PROF, {patience})  # ends the process by default, compiled code or not
    start = time.process_time()
    answer = METHODS[job["method"]](tables["x"], tables["y"], job)
    seconds = time.process_time() - start
    signal.setitimer(signal.ITIMER_PROF, 0)
    print(json.dumps({{"answer": np.asarray(answer).tolist(), "seconds": seconds}}), flush=True)
"""

DIFFPRIVLIB_CALLS = """
from diffprivlib.models import PCA, LinearRegression

def regression(x, y, job):
    model = LinearRegression(
        epsilon=job["epsilon"], bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=job["seed"])
    model.fit(x, y)
    return np.append(np.ravel(model.intercept_)[0], model.coef_)

def pca(x, y, job):
    norm = x.shape[1] ** 0.5
    model = PCA(
        job["components"], epsilon=job["epsilon"], bounds=(-1, 1), data_norm=norm, random_state=job["seed"])
    return model.fit(x).components_

METHODS = {"regression": regression, "pca": pca}
"""

OPENDP_CALLS = """
import opendp.prelude as dp
dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")

def theil_sen(x, y, job):
    def model(scale):
        return dp.sklearn.linear_model.LinearRegression(
            dp.max_divergence(), x_bounds=[(-1.0, 1.0)], y_bounds=(-1.0, 1.0), scale=scale)
    fitted = model(model(1.0).measurement.map(1) / job["epsilon"]).fit(x, y)
    return [fitted.intercept_, fitted.coef_[0]]

def pca(x, y, job):
    rows, columns = x.shape
    model = dp.sklearn.decomposition.PCA(
        epsilon=job["epsilon"], row_norm=columns ** 0.5, n_samples=rows, n_features=columns,
        n_components=job["components"])
    return model.fit(x).components_

METHODS = {"theil-sen": theil_sen, "pca": pca}
"""

MBI_CALLS = """
import itertools
import jax, optax
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_enable_compilation_cache", False)
from mbi import Domain, LinearMeasurement
from mbi.extensions import MixtureOfProductsEstimator

BINS, STEPS = 8, 300
ESTIMATOR = MixtureOfProductsEstimator(optimizer=optax.adam(0.1))

def regression(x, y, job):
    table, generator = np.column_stack([x, y]), np.random.default_rng(job["seed"])
    width = table.shape[1]
    names = [str(j) for j in range(width)]
    cells = np.clip(((table + 1.0) * 0.5 * BINS).astype(int), 0, BINS - 1)
    pairs = list(itertools.combinations(range(width), 2))
    noise = job["unit_noise"] * len(pairs) ** 0.5
    measured = []
    for a, b in pairs:
        counts = np.bincount(cells[:, a] * BINS + cells[:, b], minlength=BINS * BINS)
        noisy = counts + noise * generator.standard_normal(BINS * BINS)
        measured.append(LinearMeasurement(noisy, (names[a], names[b]), noise))
    model = ESTIMATOR.estimate(Domain(names, [BINS] * width), measured, float(len(y)), iters=STEPS)
    centres = (2.0 * np.arange(BINS) + 1.0) / BINS - 1.0
    moments = np.eye(width + 1)
    for a, b in pairs:
        share = np.asarray(model.project((names[a], names[b])).datavector()).reshape(BINS, BINS)
        share = share / share.sum()
        moments[a + 1, b + 1] = moments[b + 1, a + 1] = centres @ share @ centres
        for place, margin in ((a + 1, share.sum(axis=1)), (b + 1, share.sum(axis=0))):
            moments[0, place] = moments[place, 0] = centres @ margin
            moments[place, place] = centres**2 @ margin
    return np.linalg.lstsq(moments[:width, :width], moments[:width, width], rcond=1e-8)[0]

METHODS = {"regression": regression}
"""

CALLS: Mapping[str, str] = {
    "diffprivlib": DIFFPRIVLIB_CALLS,
    "opendp": OPENDP_CALLS,
    "mbi": MBI_CALLS,
}
"""What each package is asked, as (x, y, job) → coefficients (intercept first) or components.

mbi: all two-way marginals of eight bins a column, with noise, as one model of the whole table (a mixture of
products: the graphical model of all pairs would be the full table of cells); least squares on its moments.
"""


@dataclass(frozen=True)
class Answer:
    """What a package gave: coefficients (intercept first) or components, and how long it took."""

    value: Array
    seconds: float


@dataclass(frozen=True)
class Job:
    """One call on columns and a target that lie in [-1, 1]."""

    label: str
    """Of the table."""
    method: str
    x: Array
    y: Array
    epsilon: float
    seed: int
    components: int = 0
    unit_noise: float = 0.0
    """Deviation of Gaussian noise that pays for a sensitivity of 1, for packages that do not calibrate."""

    def hopeless_after(self, late: Job) -> bool:
        """The same call with as large an ε, or a larger one, which takes longer still."""
        return self.label == late.label and self.method == late.method and self.epsilon >= late.epsilon


@dataclass(frozen=True)
class Package:
    """A package in its environment."""

    name: str
    python: Path
    version: str

    def answers(self, jobs: Sequence[Job]) -> list[Answer | None]:
        """One for each job; None where the call, or one with a smaller ε before it, took too long."""
        found: list[Answer | None] = [None] * len(jobs)
        waiting = list(range(len(jobs)))
        with TemporaryDirectory() as folder:
            files: dict[int, Path] = {}
            for job in jobs:
                if id(job.x) not in files:
                    files[id(job.x)] = Path(folder) / f"{len(files)}.npz"
                    np.savez(files[id(job.x)], x=job.x, y=job.y)
            while waiting:
                lines, timed_out = self._run([self._line(jobs[i], files[id(jobs[i].x)]) for i in waiting])
                for i, line in zip(waiting, lines, strict=False):
                    found[i] = line
                if not timed_out:
                    break
                late = jobs[waiting[len(lines)]]
                waiting = [i for i in waiting[len(lines) + 1 :] if not jobs[i].hopeless_after(late)]
        return found

    def _line(self, job: Job, file: Path) -> str:
        names = ("method", "epsilon", "seed", "components", "unit_noise")
        return json.dumps({**{name: getattr(job, name) for name in names}, "file": str(file)})

    def _run(self, lines: Sequence[str]) -> tuple[list[Answer], bool]:
        program = FRAME.format(load=CALLS[self.name], patience=LONGER.get(self.name, PATIENCE))
        done = subprocess.run(
            [self.python, "-c", program],
            input="\n".join(lines),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            env={
                **os.environ,
                "OPENBLAS_NUM_THREADS": "1",
                "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
            },
        )
        if done.returncode not in (0, -signal.SIGPROF):
            raise RuntimeError(f"{self.name} failed; its message is above")
        given = [json.loads(one) for one in done.stdout.splitlines()]
        return [Answer(np.array(one["answer"]), one["seconds"]) for one in given], done.returncode != 0


@contextmanager
def installed(without: Collection[str] = ()) -> Iterator[dict[str, Package]]:
    """The packages that could be installed, in folders that are removed at the end."""
    with ExitStack() as stack:
        found = {}
        for name, requirements in REQUIREMENTS.items():
            if name in without:
                continue
            folder = Path(stack.enter_context(TemporaryDirectory(prefix=f"peers-{name}-")))
            venv.create(folder, with_pip=True)
            python = folder / "bin" / "python"
            install = [python, "-m", "pip", "install", "-q", *requirements]
            if subprocess.run(install, check=False).returncode == 0:
                found[name] = Package(name, python, _version(python, name))
        yield found


def _version(python: Path, name: str) -> str:
    program = f"from importlib.metadata import version; print(version({name!r}))"
    return subprocess.run(
        [python, "-c", program], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
