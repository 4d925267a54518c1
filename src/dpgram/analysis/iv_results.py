"""What a regression with instruments answers: coefficients, the first stage, sets that need none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.anderson_rubin import AndersonRubin, InstrumentTest
from dpgram.analysis.asked import check_level
from dpgram.analysis.estimand import Kind
from dpgram.analysis.estimates import Estimates, as_lines
from dpgram.analysis.inference import NOISE_REMEDY
from dpgram.document.terminal import fact, one_line, with_notes
from dpgram.errors import AnalysisError

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
IVMethod = Literal["2sls", "liml"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStage:
    """How much the instruments tell about one endogenous column."""

    name: str
    f_statistic: float
    """Wald's F of the instruments' coefficients; their covariance has the sampling error and the noise."""
    p_value: float
    against_noise: float
    """The same against the privacy noise alone: what the noise could have made by itself is about 1."""
    numerator: int
    denominator: float | None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InstrumentalVariables(Estimates):
    """A regression with endogenous columns, in original units."""

    target: str
    endogenous: tuple[str, ...]
    instruments: tuple[str, ...]
    controls: tuple[str, ...]
    method: IVMethod
    kind: Kind
    names: tuple[str, ...]
    estimate: Vector
    covariance: Matrix
    privacy_covariance: Matrix
    """The part of it that the privacy noise makes."""
    kappa: float
    """k of the k-class: 1 for 2SLS."""
    first_stage: tuple[FirstStage, ...]
    rows: float
    degrees: float | None
    refusal: str | None
    """Why there are no errors and intervals of the usual kind; Anderson–Rubin sets may still exist."""
    trusted: npt.NDArray[np.bool_]
    cautions: tuple[str, ...]
    test: InstrumentTest
    assumptions: tuple[str, ...] = ()
    """What the sampling error rests on."""
    legend: str | None = None
    counted: str = "noisy"
    """What the number of rows is, in words."""
    """What the names stand for, where the schema says so."""

    @property
    def nobs(self) -> float:
        """The noisy number of rows."""
        return self.rows

    @property
    def df_resid(self) -> float:
        """Rows less coefficients."""
        return self.rows - len(self.names)

    def anderson_rubin(self, level: float = 0.95) -> AndersonRubin:
        """The values of the endogenous coefficient that the instruments do not reject, however weak they are.

        >>> print(release.iv("charges", "age", "smoker").anderson_rubin())
        95% Anderson–Rubin set for age: ...
        """
        check_level(level)
        return AndersonRubin(name=self.test.name, level=level, pieces=self.test.kept(level))

    def anderson_rubin_test(self, value: float = 0.0) -> float:
        """The p-value of the endogenous coefficient being `value`; it holds however weak the instruments are.

        >>> 0.0 <= release.iv("charges", "age", "smoker").anderson_rubin_test(0.0) <= 1.0
        True
        """
        return self.test.p_value(value)

    def summary(self, level: float = 0.95) -> str:
        """Coefficients with intervals, the first stage, the Anderson–Rubin set and warnings as text.

        >>> print(release.iv("charges", "age", "smoker").summary().splitlines()[0])
        Instrumental variables: charges on age (2SLS), from a private release
        """
        title = (
            f"Instrumental variables: {self.target} on {', '.join(self.endogenous)} ({self.method.upper()})"
        )
        lines = [
            f"{title}, from a private release",
            "",
            *fact("rows       ", f"about {max(self.rows, 0.0):,.0f} ({self.counted})"),
        ]
        lines.append(f"instruments  {', '.join(self.instruments)}")
        for stage in self.first_stage:
            told = f"F = {stage.f_statistic:.4g}, against the noise alone {stage.against_noise:.4g}"
            lines.append(f"first stage  {stage.name}: {told}")
        lines.append("")
        if self.refusal is None:
            lines += as_lines(self.as_rows(level), level)
        else:
            lines.append(f"No errors or intervals: {self.refusal}.")
        notes = [str(self.anderson_rubin(level)) + "."] if self.test.refusal is None else []
        notes.append(f"Intervals are for {self.meaning}.")
        if self.assumptions:
            notes[-1] += f" Assumed: {'; '.join(self.assumptions)}."
        if self.legend is not None:
            notes.append(f"Columns: {self.legend}.")
        notes += [f"Caution: {caution}." for caution in self.cautions]
        return with_notes(lines, notes)

    @property
    def meaning(self) -> str:
        """What is estimated, in one line."""
        if self.kind == "population":
            return (
                "the coefficients in the population (sampling and privacy noise) if the instruments are valid"
            )
        return f"the {self.method.upper()} coefficients of the table (privacy noise only)"

    def _check(self) -> None:
        if self.refusal is not None:
            remedy = NOISE_REMEDY if self.test.refusal is not None else "anderson_rubin() still has an answer"
            raise AnalysisError("no instrumental-variables estimate", got=self.refusal, remedy=remedy)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        told = f"{self.target} on {', '.join(self.endogenous)}, {self.method}"
        return f"<InstrumentalVariables: {one_line(told)}>"
