"""What a reader must find in each release: numbers to eight digits, and refusals."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.estimand import Kind
from dpgram.analysis.linear_step import declared_step
from dpgram.analysis.moments import Moments
from dpgram.analysis.results import Regression
from dpgram.analysis.robust import UnequalVariance
from dpgram.errors import AnalysisError, DpgramWarning, ReleaseError
from dpgram.release import Release

VERSION: Final = 2
"""Of the vectors; a change of a release or of a question makes a new one."""

NEW_ROWS: Final[Mapping[str, Sequence[object]]] = {
    "age": [30.0, 62.5],
    "bmi": [22.0, 31.0],
    "smoker": ["no", "yes"],
    "region": ["south", "north"],
    "children": ["0", "2"],
    "exercise": [1.5, 4.0],
    "charges": [4000.0, 12000.0],
    "grade": ["low", "high"],
    "active": [True, False],
    "visit": ["2020-06-01", "2023-02-15"],
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One regression; `rows` are new ones to predict for."""

    target: str
    on: tuple[str, ...]
    intercept: bool = True
    reference: Mapping[str, str] = field(default_factory=dict)
    kind: Kind = "population"
    level: float = 0.95
    smaller: tuple[str, ...] = ()
    """Features of a regression inside this one, to compare it with."""


FIVE: Final = ("age", "bmi", "smoker", "region", "exercise")
USUAL: Final = (
    Question(target="charges", on=FIVE, smaller=("age", "bmi", "smoker")),
    Question(target="charges", on=FIVE, kind="table", level=0.9),
    Question(target="charges", on=("age",), intercept=False),
    Question(target="smoker=yes", on=("age", "bmi"), smaller=("age",)),
)
QUESTIONS: Final[Mapping[str, tuple[Question, ...]]] = {
    "plain": (
        Question(target="charges", on=("age", "bmi", "age:bmi", "smoker"), reference={"smoker": "yes"}),
        Question(target="charges", on=("age", "age^2", "age^3", "grade", "active", "visit")),
        Question(target="charges", on=("age:bmi", "smoker")),
        Question(target="age:bmi", on=("charges", "exercise")),
        Question(target="charges", on=(*FIVE, "grade", "active", "visit"), kind="table", smaller=FIVE),
    ),
    "crossed": (
        Question(target="charges", on=("smoker", "age", "smoker*age"), smaller=("smoker", "age")),
        Question(target="charges", on=("smoker*age",)),
        Question(target="charges", on=("smoker", "exercise", "exercise*smoker"), reference={"smoker": "yes"}),
        Question(target="bmi", on=("smoker", "region", "smoker*region"), kind="table"),
        Question(target="bmi", on=("smoker*region",)),
    ),
    "through-origin": (
        Question(target="charges", on=("age", "bmi", "smoker"), intercept=False),
        Question(target="charges", on=("smoker", "region", "age"), intercept=False, kind="table"),
        Question(target="charges", on=("age",)),
    ),
    "numbers": (
        Question(target="charges", on=("age", "bmi", "exercise"), smaller=("age",)),
        Question(target="charges", on=("age", "bmi", "age*bmi"), kind="table", level=0.9),
        Question(target="charges", on=("age",), intercept=False),
    ),
    "one-group-through-origin": (
        Question(target="charges", on=("age", "bmi", "smoker"), intercept=False, smaller=("age", "smoker")),
        Question(target="charges", on=("smoker",), intercept=False, kind="table"),
    ),
    "adaptive": (
        *USUAL,
        Question(target="charges", on=("age", "bmi", "age:bmi", "age^2", "smoker"), kind="table"),
    ),
    "adaptive-crossed": (
        Question(
            target="charges", on=("smoker", "age", "smoker*age", "bmi"), smaller=("age", "smoker", "bmi")
        ),
        Question(target="charges", on=("smoker*age",), kind="table"),
    ),
    "empty-level": (
        Question(target="charges", on=("age", "bmi", "region")),
        Question(target="bmi", on=("region",), kind="table"),
    ),
    "learnt": (
        Question(target="charges", on=("age", "region")),
        Question(target="charges", on=("age", "region"), kind="table"),
        Question(target="bmi", on=("age",), kind="table"),
        Question(target="age", on=("region",)),
    ),
    "rare": (
        Question(target="charges", on=("age", "bmi", "children"), smaller=("age", "bmi")),
        Question(target="bmi", on=("children", "age"), kind="table"),
    ),
    "block": (Question(target="charges", on=("age", "bmi", "smoker"), smaller=("age",)),),
    "models": (
        Question(target="charges", on=("age", "bmi", "smoker"), smaller=("age", "bmi")),
        Question(target="charges", on=("age", "bmi", "smoker"), kind="table"),
        Question(target="charges", on=("smoker", "bmi", "age"), reference={"smoker": "yes"}, level=0.9),
        Question(target="charges", on=("age", "bmi", "smoker"), intercept=False),
        Question(target="charges", on=FIVE),
    ),
    "models-persons": (
        Question(
            target="charges",
            on=("region", "smoker", "age", "smoker*age"),
            smaller=("region", "smoker", "age"),
        ),
        Question(
            target="charges",
            on=("smoker*age", "age", "smoker", "region"),
            reference={"region": "north"},
            kind="table",
        ),
        Question(target="smoker=yes", on=("age", "bmi", "age*bmi")),
        Question(target="charges", on=("region", "smoker", "age")),
    ),
    "models-faint": (
        Question(target="charges", on=("age", "bmi", "smoker")),
        Question(target="bmi", on=("age", "region"), smaller=("age",)),
        Question(target="bmi", on=("age", "region"), kind="table"),
        Question(target="exercise", on=("age", "smoker")),
        Question(target="exercise", on=("age", "smoker"), kind="table"),
    ),
}


def expected(kind: str, release: Release) -> dict[str, object]:
    """All that a reader is asked about one release, and what it must answer."""
    moments = Moments.of(release)
    noise = moments.noise
    return {
        "version": VERSION,
        "release": f"{kind}.dpgram.json",
        "digest": release.digest,
        "noise": {
            "added": noise.added,
            "diagonal_sd": noise.diagonal_sd,
            "offdiagonal_sd": noise.offdiagonal_sd,
            "mean_diagonal": noise.mean_diagonal,
        },
        "columns": list(release.columns),
        "rows": moments.rows,
        "encoded_gram": _rows(moments.encoded_gram),
        "second_moments": _rows(release.second_moments()),
        "covariance": _covariance(release),
        "questions": [_answered(release, question) for question in QUESTIONS.get(kind, USUAL)],
    }


def _covariance(release: Release) -> object:
    try:
        return _rows(np.asarray(release.covariance().values))
    except (AnalysisError, ReleaseError) as refusal:
        return {"refused": str(refusal)}


def _answered(release: Release, question: Question) -> dict[str, object]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        try:
            fit = _fit(release, question, question.on)
        except AnalysisError as refusal:
            return {**asdict(question), "refused": str(refusal)}
        return {**asdict(question), **_fitted(fit), **_inferred(release, question, fit)}


def _fit(release: Release, question: Question, on: Sequence[str]) -> Regression:
    return release.regress(
        question.target,
        list(on),
        intercept=question.intercept,
        reference={name: level for name, level in question.reference.items() if name in on},
        kind=question.kind,
    )


def _fitted(fit: Regression) -> dict[str, object]:
    rows = _new_rows(fit)
    return {
        "declared": declared_step(fit.moments, fit.design) is not None,
        "names": list(fit.names),
        "fitted": fit.values.tolist(),
        "effective_parameters": fit.effective_parameters,
        "new_rows": rows,
        "fitted_predictions": fit.predict(rows).tolist(),
    }


def _inferred(release: Release, question: Question, fit: Regression) -> dict[str, object]:
    found = fit.inference()
    if found.refusal is not None:
        return {"refusal": found.refusal}
    predicted = fit.get_prediction(_new_rows(fit))
    told = found.bounded(question.level)
    return {
        "refusal": None,
        "unequal_variance": _test(found.unequal_variance),
        "degrees": found.degrees,
        "estimate": _numbers(np.where(found.bounded(), found.estimate, np.nan)),
        "covariance_of_estimates": _rows(np.asarray(fit.cov_params().values)),
        "std_errors": _numbers(found.std_errors),
        "low": _numbers(np.where(told, found.conf_int(question.level)[:, 0], np.nan)),
        "high": _numbers(np.where(told, found.conf_int(question.level)[:, 1], np.nan)),
        "t_values": _numbers(np.where(found.bounded(), found.ratios(), np.nan)),
        "p_values": _numbers(found.p_values()),
        "r_squared": _quantity(lambda: fit.rsquared_estimate().estimate),
        "residual_variance": _quantity(lambda: fit.residual_variance().estimate),
        "predictions": {
            "mean": _numbers(predicted.predicted_mean),
            "mean_interval": _rows(predicted.conf_int(question.level)),
            "observation_interval": _rows(predicted.conf_int(question.level, obs=True)),
        },
        "tests": _tests(release, question, fit),
    }


def _test(found: UnequalVariance | None) -> list[float] | None:
    return None if found is None else [found.statistic, found.degrees, found.pvalue, found.ratio]


def _new_rows(fit: Regression) -> Mapping[str, Sequence[object]]:
    return {column.name: NEW_ROWS[column.name] for column in fit.moments.schema.columns_read}


def _tests(release: Release, question: Question, fit: Regression) -> dict[str, object]:
    """Each column by itself, and the smaller regression."""
    try:
        found = {name: [test.statistic, test.pvalue] for name, test in fit.wald_test_terms().items()}
    except AnalysisError as refusal:
        return {"refused": str(refusal)}
    if question.smaller:
        test = fit.compare_f_test(_fit(release, question, question.smaller))
        return {"columns": found, "smaller": [test.statistic, test.pvalue]}
    return {"columns": found}


def _quantity(told: Callable[[], float]) -> object:
    try:
        return told()
    except AnalysisError as refusal:
        return {"refused": str(refusal)}


def _numbers(values: npt.NDArray[np.float64]) -> list[float | str | None]:
    """JSON has no words for what is not a number: null for nothing, "Inf" and "-Inf" for no end."""
    endless = {float("inf"): "Inf", float("-inf"): "-Inf"}
    return [None if np.isnan(value) else endless.get(value, value) for value in values.tolist()]


def _rows(matrix: npt.NDArray[np.float64]) -> list[list[float | str | None]]:
    return [_numbers(np.asarray(row)) for row in matrix]
