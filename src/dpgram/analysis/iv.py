"""Instrumental variables: 2SLS and LIML from second moments, with errors that include the privacy noise.

S_W and S_Z are the residual sums of squares and products of y and the endogenous columns x, given the
controls (with the constant) and given controls and instruments together (analysis/forms.py). Both are

    β = A_xx⁻¹ A_xy,   A = S_W − k·S_Z,   k = 1 (2SLS),   k = min bᵀS_W b / bᵀS_Z b over b = (1, −β) (LIML).

The noise moves S_W and S_Z by rᵀN r, r the residual functions, and so β by A_xx⁻¹ times what it does to A·b;
the sampling part is s²A_xx⁻¹ with s² = bᵀS_W b/(n − p). Both rest on a first stage that stands clear of the
noise.

Anderson and Rubin's test needs no first stage: where β₀ is true, the instruments explain nothing of y − xβ₀,
so the coefficients π(β₀) of the instruments in its regression have mean zero and a covariance C(β₀), both of
sampling and of noise. β₀ is kept while πᵀC⁻¹π ≤ c, that is while c·C(β₀) − π(β₀)π(β₀)ᵀ, quadratic in β₀, is
positive semidefinite: its ends are eigenvalues of a quadratic eigenproblem. The set may be an interval, two
half-lines, the whole line or empty.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, final

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, chdtri, fdtrc, fdtri, ndtr, ndtri, stdtr, stdtrit

from dpgram.analysis.design import Design, build_design
from dpgram.analysis.estimand import (
    EQUAL_VARIANCE,
    MOVED_CAUTION,
    MOVED_REFUSAL,
    Kind,
    difference_cautions,
    moved_columns,
)
from dpgram.analysis.forms import (
    Residuals,
    in_noise_coordinates,
    noise_covariance,
    residuals,
    symmetric_product,
)
from dpgram.analysis.inference import NOISE_REMEDY, check_kind
from dpgram.analysis.labelled import LabelledMatrix, LabelledVector
from dpgram.analysis.moments import Moments
from dpgram.analysis.quality import SIGNAL_TO_NOISE
from dpgram.analysis.sampling import degrees_of_freedom
from dpgram.analysis.trust import noise_cautions, refusal_of, trusted, untrusted_caution
from dpgram.errors import AnalysisError

if TYPE_CHECKING:
    from dpgram.analysis._frames import Frame
    from dpgram.document.document import Document

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Stack = npt.NDArray[np.float64]
IVMethod = Literal["2sls", "liml"]
Piece = tuple[float, float]

METHODS: Final[tuple[IVMethod, ...]] = ("2sls", "liml")
HIDDEN: Final = 25.0
"""First stages with an F against the noise alone below this are refused: the noise could have made them."""
WEAK: Final = 10.0
"""The usual limit of the first-stage F below which 2SLS leans towards least squares."""
REAL: Final = 1e-7
"""A root with an imaginary part below this, in units of its size, is real."""

HIDDEN_REFUSAL: Final = (
    "the privacy noise hides the first stage: the F of the instruments for {name!r} against the noise alone "
    "is {strength:.2g}, where {limit:g} is asked for"
)
NO_LIML: Final = "the privacy noise hides the variance of the errors, which LIML divides by; 2SLS does not"
WEAK_CAUTION: Final = (
    "weak instruments: the first-stage F of {name!r} is {value:.2g}, below 10. Estimates lean towards least "
    "squares and these intervals are too short; those of anderson_rubin() hold"
)


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
@dataclass(frozen=True, slots=True, kw_only=True)
class AndersonRubin:
    """All values of an endogenous coefficient that are not rejected: one or several pieces, or none."""

    name: str
    level: float
    pieces: tuple[Piece, ...]

    @property
    def bounded(self) -> bool:
        """Whether the set has two finite ends."""
        return all(math.isfinite(end) for piece in self.pieces for end in piece)

    def __contains__(self, value: float) -> bool:
        return any(low <= value <= high for low, high in self.pieces)

    def __str__(self) -> str:
        head = f"{100 * self.level:g}% Anderson–Rubin set for {self.name}: "
        if not self.pieces:
            return head + "empty, no value agrees with all instruments"
        if self.pieces == ((-math.inf, math.inf),):
            return head + "every value, the instruments say nothing about it"
        told = " or ".join(f"{low:.5g} to {high:.5g}" for low, high in self.pieces)
        return head + told + ("" if self.bounded else " (unbounded: the instruments are weak)")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InstrumentalVariables:
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

    @property
    def params(self) -> LabelledVector:
        """Name → coefficient in original units."""
        self._check()
        return LabelledVector(self.names, np.where(self.trusted, self.estimate, np.nan))

    @property
    def bse(self) -> LabelledVector:
        """Name → standard error: sampling and privacy noise."""
        return LabelledVector(self.names, self._errors())

    @property
    def tvalues(self) -> LabelledVector:
        """Name → coefficient over its standard error."""
        return LabelledVector(self.names, self.estimate / self._errors())

    @property
    def pvalues(self) -> LabelledVector:
        """Name → two-sided p-value of the coefficient being zero."""
        ratio = np.abs(self.estimate / self._errors())
        tails = ndtr(-ratio) if self.degrees is None else stdtr(self.degrees, -ratio)
        return LabelledVector(self.names, np.asarray(2.0 * tails))

    @property
    def nobs(self) -> float:
        """The noisy number of rows."""
        return self.rows

    @property
    def df_resid(self) -> float:
        """Rows less coefficients."""
        return self.rows - len(self.names)

    def cov_params(self) -> LabelledMatrix:
        """The covariance of `params`: sampling and privacy noise.

        >>> found = release.iv("charges", "age", "smoker")
        >>> bool(found.cov_params()["age", "age"] ** 0.5 == found.bse["age"])
        True
        """
        self._check()
        clear = np.outer(self.trusted, self.trusted)
        return LabelledMatrix(self.names, np.where(clear, self.covariance, np.nan))

    def conf_int(self, level: float = 0.95) -> Mapping[str, tuple[float, float]]:
        """Name → coefficient ± quantile times its error; for weak instruments see `anderson_rubin`.

        >>> low, high = release.iv("charges", "age", "smoker").conf_int()["age"]
        >>> low < high
        True
        """
        reach = _quantile(level, self.degrees) * self._errors()
        ends = np.where(np.isnan(reach), np.inf, reach)
        return {
            name: (float(value - end), float(value + end))
            for name, value, end in zip(self.names, self.estimate, ends, strict=True)
        }

    def anderson_rubin(self, level: float = 0.95) -> AndersonRubin:
        """The values of the endogenous coefficient that the instruments do not reject, however weak they are.

        >>> print(release.iv("charges", "age", "smoker").anderson_rubin())
        95% Anderson–Rubin set for age: ...
        """
        if not 0.0 < level < 1.0:
            raise AnalysisError("the level of an interval is a probability", got=level, limit="0 < level < 1")
        return AndersonRubin(name=self.test.name, level=level, pieces=self.test.kept(level))

    def anderson_rubin_test(self, value: float = 0.0) -> float:
        """The p-value of the endogenous coefficient being `value`; it holds however weak the instruments are.

        >>> 0.0 <= release.iv("charges", "age", "smoker").anderson_rubin_test(0.0) <= 1.0
        True
        """
        return self.test.p_value(value)

    def to_frame(self, level: float = 0.95) -> Frame:
        """A frame with a row for each coefficient.

        >>> release.iv("charges", "age", "smoker").to_frame().columns
        ['name', 'estimate', 'std_error', 'low', 'high', 'p_value']
        """
        from dpgram.analysis._frames import frame_of

        ends = np.array(list(self.conf_int(level).values()))
        columns = {
            "name": list(self.names),
            "estimate": np.asarray(self.params).tolist(),
            "std_error": self._errors().tolist(),
            "low": ends[:, 0].tolist(),
            "high": ends[:, 1].tolist(),
            "p_value": np.asarray(self.pvalues).tolist(),
        }
        return frame_of(columns, numbers=[name for name in columns if name != "name"])

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
            f"rows         about {max(self.rows, 0.0):,.0f} (noisy)",
        ]
        lines.append(f"instruments  {', '.join(self.instruments)}")
        for stage in self.first_stage:
            told = f"F = {stage.f_statistic:.4g}, against the noise alone {stage.against_noise:.4g}"
            lines.append(f"first stage  {stage.name}: {told}")
        lines.append("")
        lines += self._table(level) if self.refusal is None else [f"No errors or intervals: {self.refusal}."]
        notes = [str(self.anderson_rubin(level)) + "."] if self.test.refusal is None else []
        notes.append(f"Intervals are for {self.meaning}.")
        if self.kind == "population":
            notes[-1] += f" Assumed: {EQUAL_VARIANCE}."
        notes += [f"Caution: {caution}." for caution in self.cautions]
        return "\n".join([*lines, "", *(line for note in notes for line in textwrap.wrap(note, width=100))])

    @property
    def meaning(self) -> str:
        """What is estimated, in one line."""
        if self.kind == "population":
            return (
                "the coefficients in the population (sampling and privacy noise) if the instruments are valid"
            )
        return f"the {self.method.upper()} coefficients of the table (privacy noise only)"

    def _table(self, level: float) -> list[str]:
        ends, p_values, errors = self.conf_int(level), self.pvalues, self._errors()
        cells = [("", "coefficient", "std. error", f"{100 * level:g}% from", "to", "p-value")]
        for i, name in enumerate(self.names):
            numbers = (
                f"{self.estimate[i]:.5g}",
                f"{errors[i]:.3g}",
                f"{ends[name][0]:.5g}",
                f"{ends[name][1]:.5g}",
                "<1e-16" if p_values[name] < 1e-16 else f"{p_values[name]:.2g}",
            )
            cells.append((name, *(numbers if self.trusted[i] else ("–",) * 5)))
        widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
        return [
            "  ".join([first.ljust(widths[0]), *(c.rjust(w) for c, w in zip(rest, widths[1:], strict=True))])
            for first, *rest in cells
        ]

    def _errors(self) -> Vector:
        self._check()
        return np.sqrt(np.where(self.trusted, np.diagonal(self.covariance), np.nan))

    def _check(self) -> None:
        if self.refusal is not None:
            remedy = NOISE_REMEDY if self.test.refusal is not None else "anderson_rubin() still has an answer"
            raise AnalysisError("no instrumental-variables estimate", got=self.refusal, remedy=remedy)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<InstrumentalVariables: {self.target} on {', '.join(self.endogenous)}, {self.method}>"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InstrumentTest:
    """π(β) = intercept + β·slope, its covariance a quadratic in β: behind Anderson and Rubin's test."""

    name: str
    intercept: Vector
    slope: Vector
    covariances: tuple[Matrix, Matrix, Matrix]
    """C₀, C₁, C₂ with C(β) = C₀ + βC₁ + β²C₂."""
    unit: float
    """A size of β of the order of one for the arithmetic."""
    degrees: float | None
    refusal: str | None

    def statistic(self, value: float) -> float:
        """π'C⁻¹π at a hypothesis."""
        self.check()
        weights = np.array([1.0, value, value**2]) / (1.0 + value**2)  # C and ππᵀ may share any factor
        pi = (self.intercept + value * self.slope) / math.sqrt(1.0 + value**2)
        covariance = np.tensordot(weights, np.array(self.covariances), axes=1)
        return float(pi @ np.linalg.solve(covariance, pi))

    def p_value(self, value: float) -> float:
        """Of the coefficient being `value`."""
        found, count = max(self.statistic(value), 0.0), len(self.slope)
        if self.degrees is None:
            return float(chdtrc(count, found))
        return float(fdtrc(count, self.degrees, found / count))

    def kept(self, level: float) -> tuple[Piece, ...]:
        """The values that are not rejected at 1 − level, as pieces of the line in order."""
        self.check()
        count = len(self.slope)
        limit = (
            chdtri(count, 1.0 - level) if self.degrees is None else count * fdtri(count, self.degrees, level)
        )
        parts = [limit * matrix * self.unit**i for i, matrix in enumerate(self.covariances)]
        first, second = self.intercept, self.slope * self.unit
        parts[0] = parts[0] - np.outer(first, first)
        parts[1] = parts[1] - np.outer(first, second) - np.outer(second, first)
        parts[2] = parts[2] - np.outer(second, second)
        ends = [end * self.unit for end in _real_roots(parts)]
        return _pieces(ends, self, limit)

    def check(self) -> None:
        """Raise where there is no such test."""
        if self.refusal is not None:
            raise AnalysisError("no Anderson–Rubin test", got=self.refusal)


def _real_roots(parts: Sequence[Matrix]) -> list[float]:
    """Real t with det(P₀ + tP₁ + t²P₂) = 0, in order."""
    from scipy.linalg import eig

    size = len(parts[0])
    scale = max(float(np.abs(part).max()) for part in parts)
    zero, one = np.zeros((size, size)), np.eye(size)
    left = np.block([[zero, one], [-parts[0] / scale, -parts[1] / scale]])
    right = np.block([[one, zero], [zero, parts[2] / scale]])
    roots = eig(left, right, right=False)
    roots = roots[np.isfinite(roots)]
    return sorted(float(root.real) for root in roots if abs(root.imag) <= REAL * (1.0 + abs(root)))


def _pieces(ends: Sequence[float], test: InstrumentTest, limit: float) -> tuple[Piece, ...]:
    """The gaps between the ends in which the test does not reject, joined where they touch."""
    edges = [-math.inf, *ends, math.inf]
    pieces: list[Piece] = []
    for low, high in pairwise(edges):
        if test.statistic(_inside(low, high, test.unit)) > limit:
            continue
        if pieces and pieces[-1][1] == low:
            pieces[-1] = (pieces[-1][0], high)
        else:
            pieces.append((low, high))
    return tuple(pieces)


def _inside(low: float, high: float, unit: float) -> float:
    if math.isinf(low) and math.isinf(high):
        return 0.0
    if math.isinf(low):
        return high - unit - abs(high)
    if math.isinf(high):
        return low + unit + abs(low)
    return 0.5 * (low + high)


def iv(
    release: Document | Moments,
    target: str,
    endogenous: str | Sequence[str],
    instruments: str | Sequence[str],
    controls: Sequence[str] = (),
    *,
    method: IVMethod = "2sls",
    kind: Kind = "population",
    reference: Mapping[str, str] | None = None,
) -> InstrumentalVariables:
    """`target` on the `endogenous` columns and `controls`, with `instruments` for the endogenous ones.

    >>> from dpgram.analysis import iv
    >>> iv(release, "charges", "age", "smoker")
    <InstrumentalVariables: charges on age, 2sls>
    """
    moments = Moments.of(release)
    check_kind(kind)
    if method not in METHODS:
        raise AnalysisError("unknown method", got=repr(method), limit=", ".join(METHODS))
    inside, outside = _names(endogenous), _names(instruments)
    structural, reduced = _designs(moments, target, inside, outside, tuple(controls), reference)
    model = _Model.of(moments, structural, reduced, inside, outside)
    return model.solve(target, tuple(controls), method, kind)


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _designs(
    moments: Moments,
    target: str,
    endogenous: tuple[str, ...],
    instruments: tuple[str, ...],
    controls: tuple[str, ...],
    reference: Mapping[str, str] | None,
) -> tuple[Design, Design]:
    """y on endogenous and controls; y on instruments and controls."""
    if not endogenous or not instruments:
        raise AnalysisError("name at least one endogenous column and one instrument")
    asked = reference or {}

    def design(features: tuple[str, ...]) -> Design:
        schema, used = moments.schema, (*features, *controls)
        sources = {schema.encoded[i].source for name in used for i in schema.indices(name)}
        own = {name: level for name, level in asked.items() if name in sources}
        return build_design(moments, target, (*features, *controls), reference=own)

    structural, reduced = design(endogenous), design(instruments)
    both = {term.name for term in structural.terms[1:]} & {term.name for term in reduced.terms[1:]}
    if shared := both - {
        term.name for term in structural.terms if term.source in controls or term.name in controls
    }:
        raise AnalysisError("a column is both endogenous and an instrument", got=", ".join(sorted(shared)))
    return structural, reduced


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Model:
    """What is left of y and x given the controls, and given controls and instruments."""

    moments: Moments
    structural: Design
    inside: tuple[int, ...]
    """Places of the endogenous terms in the structural design."""
    given_controls: Residuals
    given_all: Residuals
    to_terms: Matrix
    """From coordinates of the controls' span to coefficients of the controls' terms."""
    to_instruments: Matrix
    """From coordinates of the span of controls and instruments to the instruments' coefficients."""
    instruments: tuple[str, ...]

    @classmethod
    def of(
        cls,
        moments: Moments,
        structural: Design,
        reduced: Design,
        endogenous: tuple[str, ...],
        instruments: tuple[str, ...],
    ) -> _Model:
        inside = _places(structural, endogenous)
        outside = _places(reduced, instruments)
        if len(outside) < len(inside):
            raise AnalysisError(
                "there are fewer instruments than endogenous coefficients",
                got=len(outside),
                limit=f"at least {len(inside)}",
            )
        controls = np.delete(structural.vectors, inside, axis=1)
        targets = np.column_stack([structural.target_vector, structural.vectors[:, list(inside)]])
        given_controls = residuals(moments, controls, targets)
        given_all = residuals(moments, reduced.vectors, targets)
        if given_all.solution.basis.shape[1] < reduced.vectors.shape[1]:
            raise AnalysisError(
                "instruments and controls are linearly dependent by construction",
                remedy="Leave out one of them.",
            )
        # A target's own part in the span is in `slopes`, so that these are coefficients of the terms.
        to_all = np.linalg.inv(given_all.solution.basis.T @ in_noise_coordinates(moments, reduced.vectors))
        to_controls = given_controls.solution.basis.T @ in_noise_coordinates(moments, controls)
        return cls(
            moments=moments,
            structural=structural,
            inside=inside,
            given_controls=given_controls,
            given_all=given_all,
            to_terms=np.asarray(np.linalg.inv(to_controls), dtype=np.float64),
            to_instruments=np.asarray(to_all[list(outside)], dtype=np.float64),
            instruments=instruments,
        )

    def solve(
        self, target: str, controls: tuple[str, ...], method: IVMethod, kind: Kind
    ) -> InstrumentalVariables:
        """All of the answer."""
        moments, design = self.moments, self.structural
        degrees = first = None
        if kind == "population":
            degrees = degrees_of_freedom(moments, len(design.terms))
            first = degrees_of_freedom(moments, len(self.given_all.slopes))
        stages = tuple(self._first_stage(j, first) for j in range(len(self.inside)))
        refusal = refusal_of(self.given_all.solution, moments)
        moved = bool(moved_columns(moments, design))
        if moved and kind == "population":
            refusal = refusal or MOVED_REFUSAL
        test = self._test(first, refusal, kind)
        hidden = [stage for stage in stages if not stage.against_noise > HIDDEN]
        if refusal is None and hidden:
            worst = min(hidden, key=lambda stage: stage.against_noise)
            refusal = HIDDEN_REFUSAL.format(name=worst.name, strength=worst.against_noise, limit=HIDDEN)
        kappa: float | None = 1.0
        if method == "liml" and refusal is None:
            kappa = self._kappa()
        if kappa is None:
            kappa, refusal = 1.0, NO_LIML
        theta, privacy, sampling = self._estimate(
            kappa, liml=method == "liml" and len(self.to_instruments) > len(self.inside)
        )
        if degrees is not None:
            sampling = sampling * max(self._residual_sum(kappa), 0.0) / degrees
        else:
            sampling = np.zeros_like(sampling)
        order, jacobian = self._jacobian()
        clear = self._clear()
        names = tuple(design.names)
        cautions = [*noise_cautions(moments, self.given_all.solution), *difference_cautions(moments, kind)]
        if moved and kind == "table":
            cautions.append(MOVED_CAUTION)
        if refusal is None:
            cautions += [
                WEAK_CAUTION.format(name=stage.name, value=stage.f_statistic)
                for stage in stages
                if stage.f_statistic < WEAK
            ]
            if not clear.all():
                cautions.append(untrusted_caution([n for n, ok in zip(names, clear, strict=True) if not ok]))
        whole = privacy + sampling
        return InstrumentalVariables(
            target=target,
            endogenous=tuple(names[i] for i in self.inside),
            instruments=self.instruments,
            controls=controls,
            method=method,
            kind=kind,
            names=names,
            estimate=design.to_original @ (order @ theta) + design.offset,
            covariance=jacobian @ whole @ jacobian.T,
            privacy_covariance=jacobian @ privacy @ jacobian.T,
            kappa=kappa,
            first_stage=stages,
            rows=moments.rows or math.nan,
            degrees=degrees,
            refusal=refusal,
            trusted=clear,
            cautions=tuple(cautions),
            test=test,
        )

    def _kappa(self) -> float | None:
        """LIML's k, the least bᵀS_W b / bᵀS_Z b; nothing where the noise hides bᵀS_Z b.

        With as many instruments as endogenous coefficients some b has the ratio 1, and none less.
        """
        if len(self.to_instruments) == len(self.inside):
            return 1.0
        from scipy.linalg import eigh

        more = self.given_all
        try:
            kappa = float(eigh(self.given_controls.sums, more.sums, eigvals_only=True)[0])
        except np.linalg.LinAlgError:
            return None
        b, _ = self._beta(kappa)
        noise = self.moments.noise.diagonal_sd * float(np.sum((more.functions @ b) ** 2))
        return kappa if float(b @ more.sums @ b) > SIGNAL_TO_NOISE * noise else None

    def _beta(self, kappa: float) -> tuple[Vector, Matrix]:
        """(1, −β) and A_xx⁻¹."""
        A = self.given_controls.sums - kappa * self.given_all.sums
        inverse: Matrix = np.asarray(np.linalg.inv(A[1:, 1:]), dtype=np.float64)
        return np.concatenate([[1.0], -inverse @ A[1:, 0]]), inverse

    def _residual_sum(self, kappa: float) -> float:
        b, _ = self._beta(kappa)
        return float(b @ self.given_controls.sums @ b)

    def _estimate(self, kappa: float, *, liml: bool) -> tuple[Vector, Matrix, Matrix]:
        """(β, γ), its covariance from the noise, and from sampling for errors of variance one."""
        fewer, more = self.given_controls, self.given_all
        b, inverse = self._beta(kappa)
        x = slice(1, None)
        errors, shorter = (found.functions @ b for found in (fewer, more))
        moved = symmetric_product(fewer.functions[:, x], errors[:, None])
        moved = moved - kappa * symmetric_product(more.functions[:, x], shorter[:, None])
        if liml:
            share = more.sums[x] @ b / float(b @ more.sums @ b)
            moved = moved - share[:, None, None] * (
                np.outer(errors, errors) - kappa * np.outer(shorter, shorter)
            )
        shapes_beta: Stack = np.tensordot(inverse, moved, axes=1)
        solution, slopes = fewer.solution, fewer.slopes[:, x]
        toward = solution.basis @ solution.resolvent
        shapes_gamma = symmetric_product(toward, errors[:, None])
        shapes_gamma = shapes_gamma - np.tensordot(slopes, shapes_beta, axes=1)
        privacy = noise_covariance(self.moments.noise, np.concatenate([shapes_beta, shapes_gamma]))
        across = -slopes @ inverse
        sampling = np.block([[inverse, across.T], [across, solution.resolvent + slopes @ inverse @ slopes.T]])
        theta = np.concatenate([-b[1:], fewer.slopes @ b])
        return theta, privacy * more.inflation, sampling

    def _jacobian(self) -> tuple[Matrix, Matrix]:
        """From (β, γ) to coefficients of the design's terms, and on to original units."""
        count = len(self.structural.terms)
        others = [i for i in range(count) if i not in self.inside]
        order = np.zeros((count, count))
        order[list(self.inside), range(len(self.inside))] = 1.0
        order[np.ix_(others, range(len(self.inside), count))] = self.to_terms
        return order, self.structural.to_original @ order

    def _clear(self) -> npt.NDArray[np.bool_]:
        """Which coefficients lean on directions of the controls that the noise could have made."""
        _, jacobian = self._jacobian()
        lean = jacobian[:, len(self.inside) :]
        used = np.abs(lean).sum(axis=1) > 0.0
        return np.asarray(~used) | trusted(self.given_controls.solution, lean, self.moments)

    def _noise_of_instruments(self, residual: Vector) -> Matrix:
        """Covariance of the instruments' coefficients from the noise, in a regression with this residual."""
        solution = self.given_all.solution
        spread = self.moments.noise.residual_covariance(residual, solution.basis)
        toward = self.to_instruments @ solution.resolvent
        return np.asarray(solution.inflation * (toward @ spread @ toward.T))

    def _sampling_of_instruments(self) -> Matrix:
        return np.asarray(self.to_instruments @ self.given_all.solution.resolvent @ self.to_instruments.T)

    def _first_stage(self, which: int, degrees: float | None) -> FirstStage:
        found = self.given_all
        coefficients = self.to_instruments @ found.slopes[:, 1 + which]
        noise = self._noise_of_instruments(found.functions[:, 1 + which])
        covariance, count = noise, len(coefficients)
        if degrees is not None:
            variance = max(float(found.sums[1 + which, 1 + which]), 0.0) / degrees
            covariance = noise + variance * self._sampling_of_instruments()
        statistic = _wald(coefficients, covariance) / count
        p_value = (
            chdtrc(count, statistic * count)
            if degrees is None
            else fdtrc(count, degrees, max(statistic, 0.0))
        )
        return FirstStage(
            name=self.structural.names[self.inside[which]],
            f_statistic=statistic,
            p_value=float(p_value),
            against_noise=_wald(coefficients, noise) / count,
            numerator=count,
            denominator=degrees,
        )

    def _test(self, degrees: float | None, refusal: str | None, kind: Kind) -> InstrumentTest:
        found, design = self.given_all, self.structural
        count = len(self.to_instruments)
        if len(self.inside) > 1:
            refusal = refusal or "it has one for a single endogenous coefficient only"
        elif kind == "table" and count > 1:
            refusal = (
                refusal or "with more instruments than needed no value makes all of them agree in a table"
            )
        slopes, sums, r = found.slopes[:, :2], found.sums[:2, :2], found.functions[:, :2]
        # In original units: y − β₀x has the vector t_y − β₀·x·(unit of x in units of y).
        place = self.inside[0]
        unit = float(design.to_original[place, place])
        pieces = [self._noise_of_instruments(each) for each in (r[:, 0], r[:, 1], r[:, 0] - r[:, 1])]
        parts = [pieces[0], pieces[2] - pieces[0] - pieces[1], pieces[1]]
        if degrees is not None:
            shape = self._sampling_of_instruments() / degrees
            for i, size in enumerate((sums[0, 0], -2.0 * sums[0, 1], sums[1, 1])):
                parts[i] = parts[i] + size * shape
        ratio = math.sqrt(max(float(sums[0, 0]), 1e-300) / max(float(sums[1, 1]), 1e-300))
        return InstrumentTest(
            name=design.names[place],
            intercept=self.to_instruments @ slopes[:, 0],
            slope=-(self.to_instruments @ slopes[:, 1]) / unit,
            covariances=(parts[0], parts[1] / unit, parts[2] / unit**2),
            unit=abs(unit) * ratio,
            degrees=degrees,
            refusal=refusal,
        )


def _places(design: Design, names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(i for name in names for i in design.positions(name)))


def _wald(estimate: Vector, covariance: Matrix) -> float:
    scale = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    if not (scale > 0.0).all():
        return math.inf
    shared = covariance / np.outer(scale, scale)
    return float((estimate / scale) @ np.linalg.solve(shared, estimate / scale))


def _quantile(level: float, degrees: float | None) -> float:
    if not 0.0 < level < 1.0:
        raise AnalysisError("the level of an interval is a probability", got=level, limit="0 < level < 1")
    tail = 0.5 * (1.0 - level)
    return float(-ndtri(tail)) if degrees is None else float(-stdtrit(degrees, tail))
