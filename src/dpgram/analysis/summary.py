"""A regression for human eyes: text for a terminal, HTML for a notebook; plain rows for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, final

import numpy as np

from dpgram.analysis.estimand import Kind
from dpgram.analysis.inference import Inference
from dpgram.errors import AnalysisError

if TYPE_CHECKING:
    from dpgram.analysis.quality import Quantity
    from dpgram.analysis.results import Regression

WIDTH = 96


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
    """One aligned block, at most about 96 columns wide."""
    pieces = _pieces(fit, level, kind)
    label = max(len(name) for name, _ in pieces.facts)
    lines = [pieces.title, ""]
    for name, value in pieces.facts:
        lines += textwrap.wrap(
            value, WIDTH, initial_indent=f"{name:<{label}}  ", subsequent_indent=" " * (label + 2)
        )
    widths = [max(len(row[i]) for row in (pieces.header, *pieces.rows)) for i in range(len(pieces.header))]
    lines.append("")
    for row in (pieces.header, *pieces.rows):
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True)),
        ]
        lines.append("  ".join(cells).rstrip())
    for note in pieces.notes:
        lines += ["", *textwrap.wrap(note, WIDTH)]
    return "\n".join(lines)


def as_html(fit: Regression, *, level: float = 0.95, kind: Kind = "population") -> str:
    """Two small tables; every text that came from the release is escaped."""
    pieces = _pieces(fit, level, kind)
    facts = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in pieces.facts
    )
    header = "".join(f"<th>{escape(cell)}</th>" for cell in pieces.header)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in pieces.rows
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in pieces.notes)
    return (
        f"<div><strong>{escape(pieces.title)}</strong><table>{facts}</table>"
        f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>{notes}</div>"
    )


def as_rows(fit: Regression, *, level: float, kind: Kind) -> list[dict[str, str | float | None]]:
    """name, fitted, estimate, std_error, low, high, p_value; None where the noise forbids an interval."""
    inference = fit.inference(kind)
    fields = ("estimate", "std_error", "low", "high", "p_value")
    numbers: list[dict[str, float | None]] = [dict.fromkeys(fields) for _ in fit.names]
    if inference.refusal is None:
        ends, errors, p_values = inference.conf_int(level), inference.std_errors, inference.p_values()
        columns = np.column_stack([inference.estimate, errors, ends, p_values])
        for i, row in enumerate(columns.tolist()):
            if inference.trusted[i]:
                numbers[i] = dict(zip(fields, row, strict=True))
    return [
        {"name": name, "fitted": float(value), **number}
        for name, value, number in zip(fit.names, fit.values, numbers, strict=True)
    ]


def _pieces(fit: Regression, level: float, kind: Kind) -> _Summary:
    inference = fit.inference(kind)
    title = f"Regression of {fit.target} from a private release"
    facts = [("fitted by", _method(fit)), ("rows" if fit.moments.unit is None else "units", _rows(fit))]
    if inference.refusal is None:
        facts += [("R²", _told(fit.r_squared, kind)), ("error sd", _error_sd(fit, kind))]
    for group, reference in fit.design.references.items():
        facts.append((f"{group}", f"compared with {reference!r}"))
    header, rows = _table(fit, inference, level)
    notes = _notes(fit, inference, level)
    return _Summary(title=title, facts=tuple(facts), header=header, rows=rows, notes=notes)


def _table(
    fit: Regression, inference: Inference, level: float
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    percent = f"{100 * level:g}%"
    if inference.refusal is not None:
        rows = tuple((name, f"{value:.5g}") for name, value in zip(fit.names, fit.values, strict=True))
        return ("", "fitted"), rows
    ends, errors, p_values = inference.conf_int(level), inference.std_errors, inference.p_values()
    header = ("", "fitted", "un-shrunken", "std. error", f"{percent} from", "to", "p-value")
    body = tuple(
        (
            name,
            f"{fit.values[i]:.5g}",
            *(
                (
                    f"{inference.estimate[i]:.5g}",
                    f"{errors[i]:.3g}",
                    f"{ends[i, 0]:.5g}",
                    f"{ends[i, 1]:.5g}",
                    _p_value(float(p_values[i])),
                )
                if inference.trusted[i]
                else ("–",) * 5
            ),
        )
        for i, name in enumerate(fit.names)
    )
    return header, body


def _notes(fit: Regression, inference: Inference, level: float) -> tuple[str, ...]:
    notes = []
    if inference.refusal is None:
        notes.append(
            f"The {100 * level:g}% intervals are for {inference.meaning}. They are centred at the "
            "un-shrunken estimate; the fitted column is the one to predict with."
        )
        if inference.assumption is not None:
            notes[-1] += f" {inference.assumption}."
    else:
        notes.append(
            f"No intervals: {inference.refusal}. The fitted values are the best guess for prediction."
        )
    notes += [f"Caution: {caution}." for caution in (*fit.cautions, *inference.cautions)]
    return tuple(notes)


def _method(fit: Regression) -> str:
    shrunk = f", penalty {fit.penalty:.4g} in encoded units" if fit.penalty > 0 else ""
    if fit.effective_parameters is not None:
        shrunk = (
            f", the noise leaves {fit.effective_parameters:.1f} of {len(fit.names)} parameters to be fitted"
        )
    intercept = "" if fit.design.intercept else ", no intercept"
    return f"{fit.method}{shrunk}{intercept}"


def _rows(fit: Regression) -> str:
    rows, unit = fit.moments.rows, fit.moments.unit
    # Rows of a person weigh 1/m or 1/k each, so what the matrix counts is persons, or parts of them.
    counted = "" if unit is None else f"; all rows of one {unit!r} count at most as one"
    return "unknown (no constant column)" if rows is None else f"about {max(rows, 0.0):,.0f} (noisy{counted})"


def _told(quantity: Callable[[Kind], Quantity], kind: Kind) -> str:
    try:
        found = quantity(kind)
    except AnalysisError as refusal:
        return f"not available: {refusal.what}"
    low, high = found.conf_int()
    return f"{found.estimate:.3f} (95% interval {low:.3f} to {high:.3f})"


def _error_sd(fit: Regression, kind: Kind) -> str:
    try:
        found = fit.residual_variance(kind)
    except AnalysisError as refusal:
        return f"not available: {refusal.what}"
    return f"{np.sqrt(found.estimate):.4g}"


def _p_value(value: float) -> str:
    return "<1e-16" if value < 1e-16 else f"{value:.2g}"
