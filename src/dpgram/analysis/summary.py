"""A regression for human eyes: text for a terminal, HTML for a notebook; plain rows for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.estimand import Kind
from dpgram.analysis.inference import Inference
from dpgram.analysis.moments import Moments
from dpgram.analysis.robust import REJECTED
from dpgram.document.labels import Labels
from dpgram.document.terminal import escaped, in_lines, one_line
from dpgram.errors import AnalysisError

if TYPE_CHECKING:
    from dpgram.analysis.quality import Quantity
    from dpgram.analysis.results import Regression
    from dpgram.analysis.robust import UnequalVariance

Matrix = npt.NDArray[np.float64]
WIDTH = 80
"""Columns of a terminal that nobody has widened."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Summary:
    """The pieces both forms print."""

    title: str
    facts: tuple[tuple[str, str], ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def as_text(fit: Regression, *, level: float, kind: Kind) -> str:
    """One aligned block, 80 columns wide; more only where names are long."""
    pieces = _pieces(fit, level, kind)
    label = max(len(name) for name, _ in pieces.facts)
    lines = [pieces.title, ""]
    for name, value in pieces.facts:
        lines += textwrap.wrap(
            one_line(value), WIDTH, initial_indent=f"{name:<{label}}  ", subsequent_indent=" " * (label + 2)
        )
    lines += ["", *aligned(pieces.header, pieces.rows)]
    for note in pieces.notes:
        lines += ["", *textwrap.wrap(one_line(note), WIDTH)]
    return in_lines(lines)


def as_html(fit: Regression, *, level: float, kind: Kind) -> str:
    """Two small tables; every text that came from the release is escaped."""
    pieces = _pieces(fit, level, kind)
    facts = "".join(
        f"<tr><th>{escaped(name)}</th><td>{escaped(value)}</td></tr>" for name, value in pieces.facts
    )
    header = "".join(f"<th>{escaped(cell)}</th>" for cell in pieces.header)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escaped(cell)}</td>" for cell in row) + "</tr>" for row in pieces.rows
    )
    notes = "".join(f"<p>{escaped(note)}</p>" for note in pieces.notes)
    return (
        f"<div><strong>{escaped(pieces.title)}</strong><table>{facts}</table>"
        f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>{notes}</div>"
    )


def as_latex(fit: Regression, *, level: float, kind: Kind) -> str:
    """A tabular with the rules of booktabs."""
    header, rows = _table(fit, fit.inference(kind), level)
    kept = [i for i, name in enumerate(header) if name != "t" and (name != "fitted" or len(header) == 2)]
    lines = [" & ".join(_latex(row[i]) for i in kept) + r" \\" for row in (header, *rows)]
    return in_lines(
        [
            rf"\begin{{tabular}}{{l{'r' * (len(kept) - 1)}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _latex(text: str) -> str:
    """With what LaTeX would take for a command written out, and control characters."""
    return "".join(LATEX.get(character, character) for character in one_line(text))


LATEX: Final = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "–": "--",
}


TOO_FEW: Final = 0.01
"""Part of all weight that a clip may take before it is said of the number of rows."""


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    between = "  " if sum(widths) + 2 * (len(widths) - 1) <= WIDTH else " "
    lines = []
    for first, *rest in (header, *rows):
        cells = [first.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(rest, widths[1:], strict=True))]
        lines.append(between.join(cells).rstrip())
    return lines


NO_ENDS: Final = "the noise excludes no value at this level"
TOO_LITTLE: Final = "the table tells too little about it to stand clear of the noise"
FIELDS: Final = ("estimate", "std_error", "t", "low", "high", "p_value")


def as_rows(fit: Regression, *, level: float, kind: Kind) -> list[dict[str, str | float | None]]:
    """name, fitted and `FIELDS` of every coefficient; None where the noise forbids an interval."""
    inference = fit.inference(kind)
    numbers: list[dict[str, float | None]] = [dict.fromkeys(FIELDS) for _ in fit.names]
    if inference.refusal is None:
        bounded = inference.bounded(level)
        for i, row in enumerate(_numbers(inference, level).tolist()):
            if bounded[i]:
                numbers[i] = dict(zip(FIELDS, row, strict=True))
    return [
        {"name": name, "fitted": float(value), **number}
        for name, value, number in zip(fit.names, fit.values, numbers, strict=True)
    ]


def reasons(inference: Inference, level: float) -> list[str | None]:
    """Why each coefficient has no interval; nothing where it has one."""
    if inference.refusal is not None:
        return [inference.refusal] * len(inference.names)
    bounded = inference.bounded(level)
    return [
        None if bounded[i] else NO_ENDS if inference.trusted[i] else TOO_LITTLE
        for i in range(len(inference.names))
    ]


def _numbers(inference: Inference, level: float) -> Matrix:
    """One row of `FIELDS` for each coefficient."""
    columns = (
        inference.estimate,
        inference.std_errors,
        inference.ratios(),
        inference.conf_int(level),
        inference.p_values(),
    )
    return np.column_stack(columns)


def _pieces(fit: Regression, level: float, kind: Kind) -> _Summary:
    inference = fit.inference(kind)
    words, target = Labels(fit.design.schema), fit.design.target_name
    told = "" if words.titled(target) == target else f" ({_listed(words, target)})"
    title = f"Regression of {target}{told} from a private release"
    facts = [("fitted by", _method(fit)), rows_fact(fit.moments)]
    if inference.refusal is None:
        about = "" if fit.design.intercept else f"; about {number(fit.design.base)}, not about the mean"
        told = _told(fit.rsquared_estimate, kind) + about
        if fit.penalty > 0.0:
            told = f"{_own_rsquared(fit)}; un-shrunken {told}"
        facts += [("R²", told), ("error sd", _error_sd(fit, kind))]
    elif fit.penalty > 0.0:
        facts.append(("R²", _own_rsquared(fit)))
    for group, reference in fit.design.references.items():
        facts.append((f"{group}", f"compared with {reference!r}"))
    header, rows = _table(fit, inference, level)
    notes = _notes(fit, inference, level, words)
    return _Summary(title=title, facts=tuple(facts), header=header, rows=rows, notes=notes)


def _listed(words: Labels, name: str) -> str:
    """Label and units, as far as they are declared."""
    return ", ".join(said for said in (words.label(name), words.units(name)) if said is not None)


def _table(
    fit: Regression, inference: Inference, level: float
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    percent = f"{100 * level:g}%"
    if inference.refusal is not None:
        rows = tuple((name, f"{value:.5g}") for name, value in zip(fit.names, fit.values, strict=True))
        return ("", "fitted"), rows
    header = ("", "fitted", "un-shrunken", "std. error", "t", f"{percent} from", "to", "p-value")
    bounded = inference.bounded(level)
    body = tuple(
        (name, number(fit.values[i]), *(_cells(row) if bounded[i] else ("–",) * len(FIELDS)))
        for i, (name, row) in enumerate(zip(fit.names, _numbers(inference, level).tolist(), strict=True))
    )
    return header, body


def _cells(row: Sequence[float]) -> tuple[str, ...]:
    estimate, error, ratio, low, high, p = row
    return number(estimate), number(error, 3), number(ratio, 3), number(low), number(high), p_value(p)


def number(value: float, digits: int = 5) -> str:
    """Significant digits, or a dash for what there is not."""
    return "–" if np.isnan(value) else f"{value:.{digits}g}"


def _notes(fit: Regression, inference: Inference, level: float, words: Labels) -> tuple[str, ...]:
    notes = []
    if inference.refusal is None:
        notes.append(
            f"Estimand: {inference.meaning}. The {100 * level:g}% intervals are for it, centred at the "
            "un-shrunken estimate; the fitted column is the one to predict with."
        )
        if inference.unequal_variance is not None:
            notes.append(_robust_note(fit, inference.unequal_variance))
        if inference.assumptions:
            notes.append(f"Assumed: {'; '.join(inference.assumptions)}.")
    else:
        notes.append(
            f"No intervals: {inference.refusal}. The fitted values are the best guess for prediction."
        )
    if (legend := words.legend(fit.names)) is not None:
        notes.append(f"Columns: {legend}.")
    notes += [f"Caution: {caution}." for caution in (*fit.cautions, *inference.cautions)]
    if inference.refusal is None and (unbounded := _without_ends(fit, inference, level)):
        notes.append(f"Caution: no interval, error or p-value for {', '.join(unbounded)}: {NO_ENDS}.")
    return tuple(notes)


def _robust_note(fit: Regression, test: UnequalVariance) -> str:
    unit = fit.moments.unit
    clustered = "" if unit is None else f", and for any dependence of the rows of one {unit!r}"
    return (
        f"This model was declared: its errors are robust, allowing for unequal variances{clustered}. Test "
        f"for them: {test}; they count as unequal below p = {REJECTED:g}."
    )


def _without_ends(fit: Regression, inference: Inference, level: float) -> list[str]:
    lacking = inference.trusted & ~inference.bounded(level)
    return [name for name, lacks in zip(fit.names, lacking, strict=True) if lacks]


def _method(fit: Regression) -> str:
    units = "by the noise of each column" if fit.penalty_by_noise else "in encoded units"
    shrunk = f", penalty {fit.penalty:.4g} {units}" if fit.penalty > 0 else ""
    if fit.effective_parameters is not None:
        shrunk = (
            f", the noise leaves {fit.effective_parameters:.1f} of {len(fit.names)} parameters to be fitted"
        )
    intercept = "" if fit.design.intercept else ", no intercept"
    return f"{fit.method}{shrunk}{intercept}"


def rows_fact(moments: Moments) -> tuple[str, str]:
    """What was counted, and about how much of it: rows, persons, or weight where rows weigh differently."""
    rows, unit, weight = moments.rows, moments.unit, moments.survey_weight
    name = "weight" if weight is not None else "rows" if unit is None else "units"
    if rows is None:
        return name, "unknown (no constant column)"
    about = max(rows, 0.0)
    if weight is not None:
        public = moments.public_rows
        known = "how many rows have them is not published" if public is None else f"of {public:,} rows"
        return name, f"{weight!r} adds up to about {about * moments.count_scale:,.0f} (noisy); {known}"
    return name, f"about {about:,.0f} ({noisy_weight(moments)})"


def noisy_weight(moments: Moments) -> str:
    """What the number of rows in the matrix is, in words: a noisy count, or a sum of weights."""
    # Rows of a person weigh 1/m or 1/k each, so what the matrix counts is persons, or parts of them.
    counted = "" if moments.unit is None else f"; all rows of one {moments.unit!r} count at most as one"
    clipped = "; in weight: long rows count less" if moments.clipped else ""
    if moments.clipped and moments.clip is not None and moments.clip.lost > TOO_FEW:
        clipped += f", so that about {moments.clip.lost:.1%} is missing here"
    return f"noisy{counted}{clipped}"


def _told(quantity: Callable[[Kind], Quantity], kind: Kind) -> str:
    try:
        found = quantity(kind)
    except AnalysisError as refusal:
        return f"not available: {refusal.what}"
    low, high = found.conf_int()
    return f"{found.estimate:.3f} (95% interval {low:.3f} to {high:.3f})"


def _own_rsquared(fit: Regression) -> str:
    return f"{number(fit.fitted_rsquared, 3)} (noisy) of the fitted column"


def _error_sd(fit: Regression, kind: Kind) -> str:
    try:
        found = fit.residual_variance(kind)
    except AnalysisError as refusal:
        return f"not available: {refusal.what}"
    return f"{np.sqrt(found.estimate):.4g}"


def p_value(value: float) -> str:
    """Two digits, or a dash for what there is not."""
    if np.isnan(value):
        return "–"
    return "<1e-16" if value < 1e-16 else f"{value:.2g}"
