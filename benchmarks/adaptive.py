"""Tables that chose nothing: how much of the R² of least squares the adaptive release keeps.

    python benchmarks/adaptive.py             # ε ∈ {0.1, 0.3, 1, 3}, 11 splits: some ten minutes on one core
    python benchmarks/adaptive.py --splits 3 --only gpa2 titanic

The tables are those of package_tables.py, the protocol is in docs/explanation/accuracy.md. Writes
results/adaptive.md, missed criteria included.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from accuracy import table
from dpgram.errors import DpgramError
from dpgram.privacy.curves.calibrate import gaussian_sigma
from package_tables import VERSIONS, HeldOut, held_out_tables, package_files
from seeded import NOT_BUILT, adaptive_is_built, many_releases, seeded_release

Array = npt.NDArray[np.float64]

RESULT = Path(__file__).parent / "results" / "adaptive.md"
EPSILONS = (0.1, 0.3, 1.0, 3.0)
DELTA = 1e-6
SPLITS = 11
OLS, PLAIN, ADAPTIVE = "OLS", "`adaptive=False`", "`adaptive=True`"
LEAST_R_SQUARED = 0.05
"""Tables on which least squares itself has less are shown, and not counted among the shares."""
WANTED: Mapping[float, float] = {0.3: 0.85, 1.0: 0.95}
"""ε → mean share of the R² of least squares."""
MARGIN = 0.01
"""No table may lose more than this on one plain Gram."""


@dataclass(frozen=True)
class Scores:
    """Median test R² of one table: of least squares, and by form and ε of the releases."""

    name: str
    rows: int
    width: int
    ols: float
    released: Mapping[tuple[str, float], float]
    refused: Mapping[tuple[str, float], int]

    @property
    def counted(self) -> bool:
        return self.ols > LEAST_R_SQUARED

    def share(self, form: str, epsilon: float) -> float:
        return self.released[form, epsilon] / self.ols


def r_squared(truth: Array, found: Array) -> float:
    return 1.0 - float(np.mean((truth - found) ** 2) / np.var(truth))


def least_squares(
    design: Array, y: Array, train: npt.NDArray[np.int64], test: npt.NDArray[np.int64]
) -> float:
    scale = np.maximum(np.abs(design).max(axis=0), 1e-300)
    theta = np.linalg.lstsq(design[train] / scale, y[train], rcond=1e-10)[0]
    return r_squared(y[test], design[test] / scale @ theta)


def private(one: HeldOut, train: dict[str, Array], test: dict[str, Array], **asked: float | bool) -> float:
    """Test R² of one any-target release; NaN where it, or the fit, is refused."""
    try:
        release = seeded_release(train, one.schema, delta=DELTA, **asked)
        found = release.regress(one.target).predict(test)
    except DpgramError:
        return float("nan")
    return r_squared(np.asarray(test[one.target], dtype=np.float64), found)


def measured(one: HeldOut, forms: Mapping[str, bool], splits: int) -> Scores:
    """The same splits and seeds for every form and ε; a refusal counts as predicting the mean, R² = 0."""
    y, design = one.columns[one.target].astype(np.float64), one.design()
    ols: list[float] = []
    found: dict[tuple[str, float], list[float]] = {(form, e): [] for form in forms for e in EPSILONS}
    for split in range(splits):
        order = np.random.default_rng([split, one.rows]).permutation(one.rows)
        cut = one.rows // 5
        test, train = order[:cut], order[cut:]
        ols.append(least_squares(design, y, train, test))
        train_rows, test_rows = one.part(train), one.part(test)
        for (form, epsilon), scores in found.items():
            asked = {"epsilon": epsilon, "seed": split, "adaptive": forms[form]}
            scores.append(private(one, train_rows, test_rows, **asked))
    return Scores(
        one.name,
        one.rows,
        one.width,
        float(np.median(ols)),
        {key: float(np.median(np.nan_to_num(scores, nan=0.0))) for key, scores in found.items()},
        {key: int(np.isnan(scores).sum()) for key, scores in found.items()},
    )


def tables_by_epsilon(scores: Sequence[Scores], forms: Sequence[str]) -> Iterator[str]:
    for epsilon in EPSILONS:
        yield f"## ε = {epsilon:g}\n"
        mu = 1.0 / gaussian_sigma(epsilon=epsilon, delta=DELTA, sensitivity=1.0)
        rows = []
        for one in scores:
            room = 0.8 * one.rows * mu / one.width**1.5
            cells = [one.name, f"{one.rows:,}", str(one.width), f"{room:,.0f}", f"{one.ols:.3f}"]
            for form in forms:
                refusals = one.refused[form, epsilon]
                note = f" ({refusals} refused)" if refusals else ""
                cells.append(f"{one.released[form, epsilon]:.3f}{note}")
                cells.append(f"{one.share(form, epsilon):.2f}" if one.counted else "")
            rows.append(cells)
        head = ["table", "rows", "d", "n̂μ/d^1.5", OLS]
        for form in forms:
            head += [form, "share"]
        yield from table(head, rows)


def summary(scores: Sequence[Scores], forms: Sequence[str]) -> Iterator[str]:
    counted = [one for one in scores if one.counted]
    rows = []
    for form in forms:
        for epsilon in EPSILONS:
            shares = {one.name: one.share(form, epsilon) for one in counted}
            worst = min(shares, key=lambda name: shares[name])
            mean = float(np.mean(list(shares.values())))
            rows.append([form, f"{epsilon:g}", f"{mean:.3f}", f"{shares[worst]:.2f} ({worst})"])
    yield f"Share of the R² of OLS kept, over the {len(counted)} tables counted:\n"
    yield from table(["form", "ε", "mean", "worst"], rows)


def criteria(scores: Sequence[Scores]) -> Iterator[str]:
    """Met or missed; only where both forms were run."""
    counted = [one for one in scores if one.counted]
    for epsilon, wanted in WANTED.items():
        mean = float(np.mean([one.share(ADAPTIVE, epsilon) for one in counted]))
        verdict = met(mean >= wanted)
        yield f"- Mean share at ε = {epsilon:g}: {mean:.3f}, wanted at least {wanted:g}: {verdict}."
    losses = {
        (one.name, epsilon): one.released[PLAIN, epsilon] - one.released[ADAPTIVE, epsilon]
        for one in scores
        for epsilon in EPSILONS
    }
    worse = [f"{name} at ε = {e:g} ({loss:.3f})" for (name, e), loss in losses.items() if loss > MARGIN]
    told = f": {', '.join(worse)}" if worse else ""
    yield (
        f"- Tables below {PLAIN} by more than {MARGIN:g}: {len(worse)} of {len(losses)} cells, wanted none: "
        f"{met(not worse)}{told}."
    )
    yield ""


def met(condition: bool) -> str:
    return "met" if condition else "**missed**"


HEAD = """# Tables that chose nothing

Made by `benchmarks/adaptive.py`: {splits} splits (a fifth of the rows is test), δ = 10⁻⁶, one any-target
release a split and `release.regress(target).predict`; {minutes:.1f} minutes of processor time. Figures are
medians of R² on the test rows; a refusal counts as 0, predicting the mean.

Tables, targets and features are listed in `benchmarks/package_tables.py` ({versions}); the list was
committed before any of them was run. Public bounds are ranges rounded outwards to half a power of ten.
Constants of the release were chosen on the development sets and frozen before this was run: the protocol is
in docs/explanation/accuracy.md. d is the width of the Gram matrix, constant and target included. Tables on
which OLS has an R² of at most {least:g} have no share.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--only", nargs="+", default=(), help="names of tables; nothing is written then")
    arguments = parser.parse_args()
    forms = {PLAIN: False, ADAPTIVE: True} if adaptive_is_built() else {PLAIN: False}
    start, scores = time.process_time(), []
    with package_files() as folder, many_releases():
        for one in held_out_tables(folder):
            if arguments.only and one.name not in arguments.only:
                continue
            scores.append(measured(one, forms, arguments.splits))
            print(scores[-1].name, f"OLS {scores[-1].ols:.3f}", scores[-1].released, flush=True)
    lines = [*summary(scores, list(forms))]
    lines += criteria(scores) if ADAPTIVE in forms else [NOT_BUILT + "\n"]
    lines += tables_by_epsilon(scores, list(forms))
    versions = ", ".join(f"{name} {version}" for name, version in VERSIONS.items())
    head = HEAD.format(
        splits=arguments.splits,
        minutes=(time.process_time() - start) / 60.0,
        versions=versions,
        least=LEAST_R_SQUARED,
    )
    print("\n".join(lines))
    if not arguments.only:
        RESULT.write_text("\n".join([head, *lines]).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
