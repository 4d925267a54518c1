"""The main job end to end on bundled data, told to somebody who has never heard of differential privacy.

Everything is computed while it runs. The table is synthetic (`insurance`), so it may be shown beside
the private answers; with real data the column "exact" is what nobody outside may ever see.
"""

from __future__ import annotations

import textwrap
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.design import INTERCEPT
from dpgram.analysis.display import guarantee_in_words
from dpgram.demo import insurance
from dpgram.errors import AnalysisError, BudgetExceeded, require_publish
from dpgram.privacy.ledger import Ledger
from dpgram.publishing import publish
from dpgram.release import Release, load
from dpgram.schema import Schema, numeric

if TYPE_CHECKING:
    import pyarrow as pa

    from dpgram.analysis.results import Regression

Say = Callable[[str], None]
Vector = npt.NDArray[np.float64]
Columns = Mapping[str, npt.NDArray[np.generic]]

BUDGET: Final = (1.2, 1e-6)
SPENT: Final = (1.0, 1e-6)
QUESTIONS: Final[Mapping[str, Sequence[str]]] = {
    "charges": ("age", "bmi", "children", "exercise", "smoker", "region"),
    "blood_pressure": ("age", "bmi", "exercise", "smoker"),
    "bmi": ("age", "exercise", "sex"),
}
"""Target → features. Any other choice would cost as little: nothing."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One coefficient, told privately and exactly."""

    target: str
    name: str
    private: float
    low: float
    high: float
    exact: float

    @property
    def covered(self) -> bool:
        """Whether the interval holds the exact value."""
        return self.low <= self.exact <= self.high


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the demonstration made, for programs and tests."""

    release: Path
    ledger: Path
    figure: Path | None
    page: Path
    """The explorer, to be opened in a browser."""
    answers: tuple[Answer, ...]
    patients: tuple[Answer, ...]
    refusal: str
    seconds: float


def run(folder: Path, *, people: int = insurance.PEOPLE, say: Say = print) -> Outcome:
    """Run the demonstration: `say` gets its text, `folder` its files."""
    require_publish("sklearn")  # the table of patients is scikit-learn's
    started = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    table = insurance.table(people)
    _introduce(say, people)
    ledger, release_path = _publish(folder, table, say)
    release = load(release_path)
    answers = _ask(release, table, say)
    figure = _figure(answers, folder / "coefficients.png", say)
    page = _page(release, folder / "insurance.html", say)
    refusal = _overspend(ledger, table, say)
    patients = _real_patients(say)
    seconds = time.perf_counter() - started
    _conclude(say, folder, seconds)
    return Outcome(
        release=release_path,
        ledger=ledger.path,
        figure=figure,
        page=page,
        answers=answers,
        patients=patients,
        refusal=refusal,
        seconds=seconds,
    )


_PROBLEM: Final = """
An insurer holds a table of {people:,} people: age, sex, body mass index, children, exercise, smoking, region,
blood pressure and yearly charges. Researchers want to know what drives charges and blood pressure, and next
year somebody will want to know something else. Handing out the table is out of the question. Even plain
averages and regression tables give a person away once enough of them are published: they are equations, and
equations can be solved.
"""
_REMEDY: Final = """
Differential privacy is the remedy: random noise is added, measured so that nobody can tell from the result
whether any given person was in the table at all. dpgram adds it once, to a small matrix from which every
linear regression can be computed. After that the table can be locked away.
"""
_BUDGET: Final = """
{ledger} now holds the privacy budget of this table: ε = {epsilon:g} and δ = {delta:g} for everything that
will ever be published from it. A small ε means strong protection. Every release is charged here first; what
does not fit is refused.
"""
_SCHEMA: Final = """
The schema ({schema}) lists public facts only: an age lies between 18 and 90, a region is one of four. Nothing
in it was looked up in the data.
"""
_NOISE: Final = """
The noise is of the kind "{name}". First every column was counted and a rough matrix drawn, with noise and
within the same promise. What these show decides how the last matrix is measured, so that its noise hides as
little as possible.
"""
_ANALYSTS: Final = """
From here on only {width} × {width} noisy numbers are used. The column "exact" is computed from the table
itself, which real analysts never see: it is here so that you can judge. The intervals allow for sampling and
for the privacy noise.
"""
_PATIENTS: Final = """
Noise is measured by what one person could change, so small tables suffer most. Here are 442 real diabetes
patients (the table that comes with scikit-learn): how much of the progression of their disease goes with body
mass index and blood pressure?
"""


def _introduce(say: Say, people: int) -> None:
    say(_heading("1. The problem"))
    say(_text(_PROBLEM.format(people=people)))
    say(_text(_REMEDY))


def _publish(folder: Path, table: pa.Table, say: Say) -> tuple[Ledger, Path]:
    schema = insurance.schema()
    schema_path, ledger_path = folder / "insurance.toml", folder / "insurance.ledger"
    schema.to_file(schema_path, overwrite=True)
    ledger_path.unlink(missing_ok=True)
    say(_heading("2. The curator sets a budget"))
    ledger = Ledger.create(ledger_path, name="insurance", epsilon=BUDGET[0], delta=BUDGET[1])
    say(_text(_BUDGET.format(ledger=ledger_path, epsilon=BUDGET[0], delta=BUDGET[1])))
    say(_heading("3. The curator publishes, once"))
    say(_text(_SCHEMA.format(schema=schema_path)))
    started = time.perf_counter()
    release = publish(
        table, schema, epsilon=SPENT[0], delta=SPENT[1], ledger=ledger, note="demonstration, first release"
    )
    seconds = time.perf_counter() - started
    path = release.save(folder / "insurance.dpgram.json", overwrite=True)
    say(_text(f"Published in {seconds:.1f} seconds, as {path}. Its promise:"))
    say(_text(guarantee_in_words(release), indent=4))
    say(_text(_NOISE.format(name=release.mechanism.name)))
    return ledger, path


def _ask(release: Release, table: pa.Table, say: Say) -> tuple[Answer, ...]:
    say(_heading("4. Analysts ask whatever they like, at no further cost, for ever"))
    say(_text(_ANALYSTS.format(width=release.schema.width)))
    answers: list[Answer] = []
    notes: list[str] = []
    for target, features in QUESTIONS.items():
        fit = release.regress(target, on=features)
        say(f"  What explains {target}?")
        found, told = _compare(fit, _columns(table), say)
        answers += found
        notes += told
    _tell(notes, say)
    covered = sum(answer.covered for answer in answers)
    say(_text(f"{covered} of the {len(answers)} intervals contain the exact coefficient."))
    return tuple(answers)


def _overspend(ledger: Ledger, table: pa.Table, say: Say) -> str:
    say(_heading("5. The budget cannot be overspent"))
    say(_text(f"In the ledger {ledger.left()}. A second release like the first is refused:"))
    try:
        publish(table, insurance.schema(), epsilon=SPENT[0], delta=SPENT[1], ledger=ledger)
    except BudgetExceeded as refusal:
        say(_text(str(refusal), indent=4))
        say(_text("Nothing was read, nothing was drawn, nothing was spent."))
        return str(refusal)
    raise AssertionError("the ledger let an overspending release pass")


def _real_patients(say: Say) -> tuple[Answer, ...]:
    """scikit-learn's diabetes table: real, and small enough to show where the limits are."""
    from sklearn.datasets import load_diabetes

    data = load_diabetes(scaled=False)
    names = [*data.feature_names, "progression"]
    values = dict(zip(names, np.column_stack([data.data, data.target]).T, strict=True))
    columns = {"bmi": values["bmi"], "bp": values["bp"], "progression": values["progression"]}
    schema = Schema(numeric("bmi", 15, 45), numeric("bp", 60, 140), numeric("progression", 0, 350))
    say(_heading("6. A small table of real patients"))
    say(_text(_PATIENTS))
    release = publish(columns, schema, epsilon=2.0, delta=1e-6, ledger=None)
    say(_text(_NOISE.format(name=release.mechanism.name)))
    found, notes = _compare(release.regress("progression", on=["bmi", "bp"]), columns, say)
    _tell(notes, say)
    say(_text("The intervals are wide, and say so. With thousands of rows the noise fades, as above."))
    return tuple(found)


def _conclude(say: Say, folder: Path, seconds: float) -> None:
    say(_heading("7. Try it yourself"))
    say(_text(f"All of this took {seconds:.0f} seconds. The files are in {folder}. Ask the release more:"))
    release = folder / "insurance.dpgram.json"
    for command in (
        f"dpgram show {release}",
        f"dpgram regress {release} charges --on age,smoker",
        f"dpgram correlation {release} --columns age,bmi,charges",
        f"dpgram ledger show {folder / 'insurance.ledger'}",
    ):
        say(f"    {command}")


def _compare(fit: Regression, columns: Columns, say: Say) -> tuple[list[Answer], list[str]]:
    """Print and return private and exact coefficients, and what the library has to say about them."""
    exact = _least_squares(fit, columns)
    intervals, notes = _intervals(fit)
    answers = [
        Answer(
            target=fit.target,
            name=name,
            private=value,
            low=intervals[name][0],
            high=intervals[name][1],
            exact=exact[name],
        )
        for name, value in fit.fitted_params.items()
    ]
    say(_table(answers))
    return answers, notes


def _tell(notes: list[str], say: Say) -> None:
    """What holds for several regressions is said once."""
    for note in dict.fromkeys(notes):
        say(_text(f"Note: {note}.", indent=4))


def _intervals(fit: Regression) -> tuple[Mapping[str, tuple[float, float]], list[str]]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            found = fit.conf_int()
        except AnalysisError as refusal:
            return dict.fromkeys(fit.names, (np.nan, np.nan)), [str(refusal)]
    return found, [str(warning.message) for warning in heard]


def _least_squares(fit: Regression, columns: Columns) -> dict[str, float]:
    """The non-private regression on the rows themselves, with the same columns."""
    target = columns[fit.target].astype(np.float64)
    design = np.column_stack([_regressor(name, columns, len(target)) for name in fit.names])
    values = np.linalg.lstsq(design, target, rcond=None)[0]
    return dict(zip(fit.names, values.tolist(), strict=True))


def _regressor(name: str, columns: Columns, rows: int) -> Vector:
    if name == INTERCEPT:
        return np.ones(rows)
    if name in columns:
        return columns[name].astype(np.float64)
    column, level = name.split("=", 1)
    return np.asarray(columns[column] == level, dtype=np.float64)


def _columns(table: pa.Table) -> dict[str, npt.NDArray[np.generic]]:
    """The columns as arrays, rows with a missing value left out as the release's policy does."""
    complete = table.drop_null()
    return {name: complete.column(name).to_numpy() for name in complete.column_names}


def _figure(answers: Sequence[Answer], path: Path, say: Say) -> Path | None:
    try:
        from dpgram.demo._figure import draw
    except ImportError:
        say(_text("No figure: matplotlib is not installed (pip install 'dpgram[plot]')."))
        return None
    draw(answers, path)
    say(_text(f"A figure of all these coefficients: {path}"))
    return path


def _page(release: Release, path: Path, say: Say) -> Path:
    written = release.explore(path, overwrite=True)
    say(_text(f"Ask your own questions by clicking: open {written} in a browser. It needs no network."))
    return written


def _table(answers: Sequence[Answer]) -> str:
    rows = [("", "private", "95% interval", "exact")]
    rows += [
        (a.name, _number(a.private), f"{_number(a.low)} to {_number(a.high)}", _number(a.exact))
        for a in answers
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [
        "    "
        + "  ".join(
            [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    if np.isnan(value):
        return "?"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _heading(text: str) -> str:
    return f"\n{text}\n{'─' * len(text)}"


def _text(text: str, indent: int = 2) -> str:
    space = " " * indent
    return (
        textwrap.fill(" ".join(text.split()), width=90, initial_indent=space, subsequent_indent=space) + "\n"
    )
