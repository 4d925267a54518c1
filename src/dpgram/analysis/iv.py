"""Instrumental variables: 2SLS and LIML from second moments, with errors that include the privacy noise.

S_W and S_Z are the residual sums of squares and products of y and the endogenous columns x, given the
controls (with the constant) and given controls and instruments together (analysis/forms.py). Both are

    β = A_xx⁻¹ A_xy,   A = S_W − k·S_Z,   k = 1 (2SLS),   k = min bᵀS_W b / bᵀS_Z b over b = (1, −β) (LIML).

The noise moves S_W and S_Z by rᵀN r, r the residual functions, and so β by A_xx⁻¹ times what it does to A·b;
the sampling part is s²A_xx⁻¹ with s² = bᵀS_W b/(n − p). Both rest on a first stage that stands clear of the
noise.
Anderson and Rubin's test needs no first stage: anderson_rubin.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, fdtrc

from dpgram.analysis.anderson_rubin import InstrumentTest
from dpgram.analysis.design import Design, build_design, places_of
from dpgram.analysis.estimand import (
    MOVED_CAUTION,
    MOVED_REFUSAL,
    Kind,
    assumptions_of,
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
from dpgram.analysis.inference import check_kind
from dpgram.analysis.iv_results import FirstStage, InstrumentalVariables, IVMethod
from dpgram.analysis.moments import Moments
from dpgram.analysis.quality import SIGNAL_TO_NOISE
from dpgram.analysis.sampling import degrees_of_freedom
from dpgram.analysis.summary import noisy_weight
from dpgram.analysis.trust import noise_cautions, refusal_of, trusted, untrusted_caution
from dpgram.document.labels import Labels
from dpgram.document.original_units import original_columns
from dpgram.errors import AnalysisError

if TYPE_CHECKING:
    from dpgram.document.document import Document

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Stack = npt.NDArray[np.float64]

METHODS: Final[tuple[IVMethod, ...]] = ("2sls", "liml")
HIDDEN: Final = 25.0
"""First stages with an F against the noise alone below this are refused: the noise could have made them."""
WEAK: Final = 10.0
"""The usual limit of the first-stage F below which 2SLS leans towards least squares."""

HIDDEN_REFUSAL: Final = (
    "the privacy noise hides the first stage: the F of the instruments for {name!r} against the noise alone "
    "is {strength:.2g}, where {limit:g} is asked for"
)
NO_LIML: Final = "the privacy noise hides the variance of the errors, which LIML divides by; 2SLS does not"
WEAK_CAUTION: Final = (
    "weak instruments: the first-stage F of {name!r} is {value:.2g}, below 10. Estimates lean towards least "
    "squares and these intervals are too short; those of anderson_rubin() hold"
)


def iv(
    release: Document | Moments,
    target: str,
    endogenous: str | Sequence[str],
    instruments: str | Sequence[str],
    controls: str | Sequence[str] = (),
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
    inside, outside, held = _names(endogenous), _names(instruments), _names(controls)
    structural, reduced = _designs(moments, target, inside, outside, held, reference)
    model = _Model.of(moments, structural, reduced, inside, outside)
    return model.solve(target, held, method, kind)


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
    asked, schema = reference or {}, moments.schema
    columns = original_columns(schema)

    def sources(names: tuple[str, ...]) -> set[str]:
        return {schema.encoded[i].source for name in names for i in places_of(schema, name, columns)}

    own = sources(endogenous)
    made = {column.name for column in schema.columns_derived if own & set(column.factors)}
    computed = [name for name in controls if made & sources((name,))]
    if computed:
        raise AnalysisError(
            "a control is computed from an endogenous column, and so is endogenous itself",
            got=", ".join(computed),
            remedy="Leave it out, or name it among the endogenous columns, with an instrument of its own",
        )

    def design(features: tuple[str, ...]) -> Design:
        used = sources((*features, *controls))
        own = {name: level for name, level in asked.items() if name in used}
        return build_design(moments, target, (*features, *controls), reference=own)

    structural, reduced = design(endogenous), design(instruments)
    both = {term.name for term in structural.terms[1:]} & {term.name for term in reduced.terms[1:]}
    held = {columns[i].name for name in controls for i in places_of(schema, name, columns)}
    if shared := both - held:
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
            sampling = sampling * moments.sampling_factor * max(self._residual_sum(kappa), 0.0) / degrees
        else:
            sampling = np.zeros_like(sampling)
        order, jacobian = self._jacobian()
        clear = self._clear()
        names = tuple(design.names)
        cautions = [*noise_cautions(moments, self.given_all.solution), *difference_cautions(moments, kind)]
        if moved and kind == "table":
            cautions.append(MOVED_CAUTION)
        cautions += design.empty_cautions
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
            counted=noisy_weight(moments),
            test=test,
            assumptions=assumptions_of(moments, kind),
            legend=Labels(moments.schema).legend((design.target_name, *names)),
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
        """Of their coefficients for errors of variance one; the clip of rows makes it smaller (clip.py)."""
        resolvent = self.moments.sampling_factor * self.given_all.solution.resolvent
        return np.asarray(self.to_instruments @ resolvent @ self.to_instruments.T)

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
