"""Pure ε on three real tables: matrix Laplace and eigenvector sampling against Amin et al. as printed.

    python benchmarks/eigenvectors.py                  # quick: 5 runs on adult, 20 on the others
    python benchmarks/eigenvectors.py --full           # 50 runs each, and the sampler at d = 500
    python benchmarks/eigenvectors.py --diffprivlib    # with diffprivlib, in a throw-away environment

Writes results/eigenvectors.md. The tables are read from the folder that DPGRAM_DATA names.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from data_sets import data_sets
from dpgram.analysis.denoise import NO_NOISE, denoised
from dpgram.analysis.moments import EncodedNoise
from dpgram.core.noise import SeededEntropy
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import MECHANISMS, PublicFacts
from dpgram.noise import Deflation, EigenvectorSampling, EntrywiseLaplace, Law
from dpgram.privacy.adjacency import AddRemove, ReplaceOne
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.sampling.bingham import draw_direction, draw_frame, envelope_parameter
from dpgram_papers.amin import PrintedDeflation, PrintedEigenvectors, PrintedLaplace
from dpgram_papers.variant import Variant

Matrix = npt.NDArray[np.float64]
Draw = Callable[[SeededEntropy], Matrix]
Answer = Callable[[Matrix], Matrix]
Answers = dict[str, Answer]
RESULT = Path(__file__).parent / "results" / "eigenvectors.md"
EPSILONS = (0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
TABLES = {"wine_recognition": "data", "airfoil": "raw", "adult": "data"}
WIDTHS = (20, 50, 100, 200)
"""Of the frames in the table of the sampler."""
PATIENCE = 40.0
"""Seconds that one call of diffprivlib gets."""
OURS = tuple(
    (name, relation)
    for relation, names in (
        (AddRemove(), ("matrix-laplace", "laplace", "eigenvectors", "deflation")),
        (ReplaceOne(), ("matrix-laplace", "eigenvectors")),
    )
    for name in names
)
UNIT = 1.0 / ROW_NORM_SQUARED
"""A lattice unit, in units of one row's trace."""
DIFFPRIVLIB = ("diffprivlib==0.6.6", "scikit-learn<1.7")
"""Its import fails with later versions of scikit-learn."""
NONE = f"none in {PATIENCE:.0f} s"
GIVEN_UP = "not tried"
"""A larger ε makes the printed rule accept less: after one call without an answer no more are made."""

CHILD = """
import json, sys, time, warnings
import numpy as np
from diffprivlib.models.utils import covariance_eig
warnings.simplefilter("ignore")
request = json.load(sys.stdin)
rows = np.load(request["rows"])
for seed in range(request["runs"]):
    start = time.perf_counter()
    values, vectors = covariance_eig(rows, epsilon=request["epsilon"], norm=1.0, random_state=seed)
    took = time.perf_counter() - start
    print(json.dumps({"matrix": ((vectors * values) @ vectors.T).tolist(), "seconds": took}), flush=True)
"""


def encoded(name: str) -> Matrix:
    """Columns over their largest absolute value, categories one-hot, rows over the root of their number.

    The maxima are taken from the data, as in the paper, and stand for bounds that would be public.
    """
    table = pq.read_table(data_sets() / name / f"{TABLES[name]}.parquet")
    table = table.drop_columns([c for c in ("cultivar", "income_gt_50k") if c in table.column_names])
    parts: list[Matrix] = []
    for column in table.columns:
        values = column.to_numpy()
        if values.dtype.kind in "fiu":
            parts.append((values / np.abs(values).max())[:, None])
        else:
            levels = sorted(set(values.tolist()))
            parts.append(np.stack([values == level for level in levels], axis=1).astype(np.float64))
    return np.concatenate(parts, axis=1) / np.sqrt(len(parts))


def methods(gram: Matrix, rows: int, epsilon: float) -> Iterator[tuple[str, Draw, Answers]]:
    """Every method, and what turns one draw of it into each of its answers."""
    guarantee, width = Guarantee(epsilon), len(gram)
    plain = partial(held, rows=rows)
    for name, relation in OURS:
        law = (
            MECHANISMS[name]()
            .calibrated(guarantee, PublicFacts(width=width, adjacency=relation))
            .expected(np.ones(width))
        )
        answers: dict[str, Answer] = {", as published": plain}
        if not isinstance(law, Deflation):
            # The number of rows is public where rows are replaced.
            limit = rows if relation.name == "replace-one" else math.inf
            answers = {"": partial(best, law=law, unit=UNIT, rows=rows, limit=limit), **answers}
        yield f"{name}, {relation.name}", partial(redrawn, gram, law), answers
    values, scale = 0.5 * epsilon, 2.0 * width / epsilon
    sampled = EigenvectorSampling(
        value_scale=2.0 / values, total=0.25 * values, rank=width, split="adaptive", norm=1
    )
    uniform = msgspec.structs.replace(sampled, split="uniform")
    rivals: tuple[tuple[Variant, Law | None, float], ...] = (
        (PrintedEigenvectors(claimed=guarantee, split="adaptive"), sampled, UNIT),
        (PrintedEigenvectors(claimed=guarantee, split="uniform"), uniform, UNIT),
        (PrintedDeflation(claimed=guarantee), None, 1.0),
        (
            PrintedLaplace(claimed=guarantee, width=width),
            EntrywiseLaplace(scale=scale, diagonal_scale=scale),
            1.0,
        ),
    )
    for variant, printed_law, unit in rivals:
        answers = {"": plain}
        if printed_law is not None:
            answers[", denoised as ours"] = partial(best, law=printed_law, unit=unit, rows=rows, limit=rows)
        yield f"*{variant.name}*", partial(variant.draw, gram), answers
    yield "nothing released (0)", lambda _: np.zeros_like(gram), {"": plain}


def redrawn(gram: Matrix, law: Law, entropy: SeededEntropy) -> Matrix:
    """A release of the law, in units of one row's trace."""
    return law.redraw(gram / UNIT, entropy.generator()) * UNIT


def best(drawn: Matrix, *, law: Law, unit: float, rows: int, limit: float) -> Matrix:
    """What `Release.second_moments` makes of a release: the noise taken out by its law."""
    if isinstance(law, EigenvectorSampling):
        cleaned = denoised(law.denoised(drawn / unit) * unit, NO_NOISE, limit)
    else:
        cleaned = denoised(drawn, EncodedNoise.of(law, unit), limit)
    return held(cleaned, rows)


def held(drawn: Matrix, rows: int) -> Matrix:
    """The eigenvalues brought into [0, n], as for all methods in the paper."""
    values, vectors = np.linalg.eigh(0.5 * (drawn + drawn.T))
    return (vectors * np.clip(values, 0.0, rows)) @ vectors.T


def error(answer: Matrix, gram: Matrix, rows: int) -> float:
    """|Ĉ − C|_F/n."""
    return float(np.linalg.norm(answer - gram)) / rows


def theirs(python: Path, rows: Matrix, epsilon: float, runs: int) -> tuple[list[Matrix], list[float]]:
    """What diffprivlib answers before its time is over; one process for all runs."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.npy"
        np.save(file, rows)
        request = json.dumps({"rows": str(file), "epsilon": epsilon, "runs": runs})
        with subprocess.Popen(
            [python, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as child:
            try:
                answered, _ = child.communicate(request, timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                child.kill()
                answered, _ = child.communicate()
            else:
                if child.returncode:
                    raise RuntimeError("diffprivlib failed; its message is above")
    answers = [json.loads(line) for line in answered.splitlines() if line.endswith("}")]
    return [np.array(a["matrix"]) for a in answers], [a["seconds"] for a in answers]


def answer_of(python: Path, rows: Matrix, gram: Matrix, epsilon: float, runs: int) -> str:
    drawn, _ = theirs(python, rows, epsilon, runs)
    if not drawn:
        return NONE
    count = len(rows)
    return f"{np.mean([error(held(one, count), gram, count) for one in drawn]):.4g} ({len(drawn)} runs)"


def comparison(full: bool, python: Path | None) -> Iterator[str]:
    for name in TABLES:
        rows = encoded(name)
        count, width = rows.shape
        gram = rows.T @ rows
        runs = 50 if full else (5 if width > 50 else 20)
        yield f"## {name}: n = {count}, d = {width}, {runs} runs"
        yield ""
        yield "| method | " + " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS) + " |"
        yield "|---|" + "---|" * len(EPSILONS)
        found: dict[str, list[str]] = {}
        for epsilon in EPSILONS:
            for label, draw, answers in methods(gram, count, epsilon):
                entropy = SeededEntropy(1)
                drawn = [draw(entropy) for _ in range(runs)]
                for suffix, answer in answers.items():
                    mean = np.mean([error(answer(one), gram, count) for one in drawn])
                    found.setdefault(label + suffix, []).append(f"{mean:.4g}")
            if python is not None:
                cells = found.setdefault("diffprivlib", [])
                cells.append(answer_of(python, rows, gram, epsilon, runs) if NONE not in cells else GIVEN_UP)
            print(name, epsilon, flush=True)
        yield from (f"| {label} | " + " | ".join(cells) + " |" for label, cells in found.items())
        yield ""


def printed_acceptance(exponent: Matrix, generator: np.random.Generator) -> float:
    """The mean acceptance probability of the printed rule, over 4,000 candidates."""
    spectrum = np.linalg.eigvalsh(exponent)
    levels, width = spectrum[-1] - spectrum, len(spectrum)
    b = envelope_parameter(levels)
    precisions = 1.0 + 2.0 * levels / b
    points = generator.standard_normal((4000, width)) / np.sqrt(precisions)
    squares = points**2 / np.sum(points**2, axis=1, keepdims=True)
    logs = -squares @ levels - 0.5 * width * np.log(squares @ precisions)
    return float(np.mean(np.exp(logs - 0.5 * (width * np.log(width / b) - (width - b)))))


def sampler(full: bool, python: Path | None) -> Iterator[str]:
    yield "## The sampler of directions"
    yield ""
    yield from SAMPLER_INTRODUCTION.splitlines()
    yield "|---|---|---|---|---|"
    for width in (*WIDTHS, *((500,) if full else ())):
        generator = np.random.default_rng(width)
        basis = np.linalg.qr(generator.standard_normal((width, width)))[0]
        values = 1.0 / np.arange(1, width + 1)
        gram = (basis * (100_000 * values / values.sum())) @ basis.T
        candidates = [draw_direction(gram / width, generator).candidates for _ in range(50)]
        start = time.perf_counter()
        draw_frame(gram, np.full(width, 1.0 / width), generator)
        took = time.perf_counter() - start
        printed = printed_acceptance(gram / (4.0 * width), generator)
        other = "not run"
        if python is not None:
            root = np.linalg.cholesky(gram).T
            norms = np.linalg.norm(root, axis=1)
            pieces = np.maximum(np.ceil(norms**2), 1.0).astype(int)
            rows = np.repeat(root / np.sqrt(pieces)[:, None], pieces, axis=0)
            _, seconds = theirs(python, rows, 1.0, 1)
            other = f"{seconds[0]:.1f} s" if seconds else NONE
        yield f"| {width} | {50 / sum(candidates):.0%} | {took:.2f} | {printed:.1e} | {other} |"
        print("sampler", width, flush=True)
    yield ""


def environment(folder: str) -> Path | None:
    """A fresh environment with diffprivlib in it, or nothing where it cannot be installed."""
    venv.create(folder, with_pip=True)
    python = Path(folder) / "bin" / "python"
    done = subprocess.run([python, "-m", "pip", "install", "-q", *DIFFPRIVLIB], check=False)
    return python if done.returncode == 0 else None


SAMPLER_INTRODUCTION = """\
n = 100,000 full-length rows, eigenvalues ∝ 1/i; ε = 1 spread evenly over the d directions of a full
decomposition (c = ε/d each, add/remove). Acceptance: of the first direction, ours over 50 draws, the printed
rule's by its mean probability over 4,000 candidates at c = ε/(4d). One thread. diffprivlib has
the printed rule.

| d | acceptance, ours | full frame, s | acceptance, printed rule | diffprivlib, full frame |
"""

INTRODUCTION = """\
# Eigenvectors and matrix Laplace at pure ε, against Amin et al. as printed

Made by `benchmarks/eigenvectors.py`. Normalised Frobenius error |Ĉ − C|_F/n, the mean of the runs. Every
column is divided by its largest value (taken from the data, as in the paper; it stands for a public bound),
categories are one-hot, and a row is divided by the root of the number of declared columns, so that |x| ≤ 1.
Our lines are what `Release.second_moments` answers: the published matrix with its noise taken out by the
published law, which is post-processing; under replace-one n is public and bounds the trace. "As published"
is the matrix itself. The eigenvalues of every answer are brought into [0, n], as in the paper. As printed in
italics, and also with our post-processing ("denoised as ours"), which their laws allow; the paper's claim is
for replaced rows, so the fair comparison is with our replace-one lines; add-remove is dpgram's default.
"Nothing released" answers 0: a method that is worse tells less than nothing. *eigenvectors-printed* draws
from the law that the paper states, with a right sampler. diffprivlib has the printed sampler, which is
another law and not ε-DP from 8 columns on (errata), so that no post-processing by its law is possible; it is
given 40 s for all runs at one ε, and a call without an answer ends the row.

Reading: `matrix-laplace` and `eigenvectors` are both below the printed eigenvector sampling and below
diffprivlib at every ε on all three tables, under add/remove and under replace-one. Three things did it for
`eigenvectors`: the budget goes to the directions that can be seen, eigenvalues get 15% of it, and each
direction is given what it is expected to hold. For `matrix-laplace` it is the shrinkage of eigenvalues, which
matters where noise is large; where all eigenvalues are clear of it (airfoil from ε = 1 on) the answer is
within 1% of the published matrix. The comparison is still not one of signal everywhere: on wine below ε = 0.5
and on airfoil at 0.01 our answers are at or above "nothing released", and given our post-processing the
printed sampling is there at it, too, and slightly below ours. Both of ours are ahead of it even then from
ε = 0.5 (wine; 1 under replace-one) and 0.1 (airfoil, adult) on.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--diffprivlib", action="store_true")
    arguments = parser.parse_args()
    data_sets()  # ends here where there are none
    with tempfile.TemporaryDirectory() as folder:
        python = environment(folder) if arguments.diffprivlib else None
        lines = [*comparison(arguments.full, python), *sampler(arguments.full, python)]
    RESULT.write_text(INTRODUCTION + "\n" + "\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
