"""A plan in words and in a table."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from dpgram.planning.forecast import WORTH_IT, Forecast

if TYPE_CHECKING:
    from dpgram.planning._advice import Advice
    from dpgram.planning._plan import Plan

WIDTH: Final = 80
"""Columns of a terminal that nobody has widened."""
Words: TypeAlias = Callable[[str, str], str]
"""A parameter's name and its value → how it is written where the plan is read."""


def in_python(name: str, value: str) -> str:
    return f"{name}={value}"


def header(plan: Plan) -> str:
    """What was asked and what is assumed."""
    guarantee = f"ε = {plan.epsilon:g}" + (f", δ = {plan.delta:g}" if plan.delta else ", δ = 0")
    asked = (
        f"Regression of {plan.target} on {plan.features} terms: about {plan.rows:,} rows, "
        f"{plan.width} encoded columns, {guarantee}, {plan.adjacency}"
    )
    return (
        f"{textwrap.fill(asked, WIDTH)}\n{textwrap.fill(f'Assumed, not looked up: {plan.assumption}', WIDTH)}"
    )


def table_rows(plan: Plan) -> list[list[str]]:
    rows = [
        [
            "mechanism",
            "noise",
            "SE ×",
            "worst",
            "rows",
            "2ε",
            "½ col.",
            "bounds",
            "verdict",
        ]
    ]
    rows.extend(
        [
            found.mechanism + ("*" if found.simulated else ""),
            f"{found.noise_in_rows:.3g}",
            _ratio(found.se_ratio),
            _ratio(found.worst_se_ratio),
            "–" if found.rows_needed is None else _short(found.rows_needed),
            _ratio(found.se_ratio_at_double_epsilon),
            _ratio(found.se_ratio_with_half_the_columns),
            _ratio(found.se_ratio_after_learning_bounds),
            found.verdict if found.works else "useless",  # "will not work" would not fit into 80 columns
        ]
        for found in plan.forecasts
    )
    return rows


def plan_text(plan: Plan, words: Words) -> str:
    """Headline, table, how to read it, and what to do."""
    parts = [plan.headline(), "", plan.table(), "", _legend(plan), "", _advice(plan, words)]
    if plan.models:
        parts += ["", *_models(plan)]
    if plan.left_out:
        reasons = (f"left out: {name} ({why})" for name, why in plan.left_out.items())
        parts += ["", *(textwrap.fill(reason, WIDTH, subsequent_indent="  ") for reason in reasons)]
    return "\n".join(parts)


def _models(plan: Plan) -> list[str]:
    """What every declared model costs and should give."""
    lines = []
    for found in plan.models:
        told = "noise will hide it"
        if found.se_ratio is None:
            told = "not forecast beside one plain matrix: only for adaptive releases"
        elif found.works:
            told = (
                f"SE × {_ratio(found.se_ratio)}, of which privacy noise alone makes {found.privacy:.2g} of "
                "the sampling error"
            )
        steps = f"{found.steps} Newton step{'s' * (found.steps > 1)}"
        line = f"declared: {found.family} of {found.target}, {found.share:.1%} of μ², {steps}: {told}"
        lines.append(textwrap.fill(line, WIDTH, subsequent_indent="  "))
    note = (
        "Of declared models SE × is over their standard error without privacy. The forecast of the adaptive "
        "release has what they leave; the table above is without them."
    )
    return [*lines, textwrap.fill(note, WIDTH)]


def _legend(plan: Plan) -> str:
    text = (
        "noise: σ of a diagonal cell in full-length rows. SE ×: standard error of a coefficient over that of "
        "ordinary least squares, median and worst. rows: how many it takes for a ratio of "
        f"{WORTH_IT:g}, that is, to be worth a quarter of them. 2ε, ½ col., bounds: the ratio with twice the "
        f"ε, with half the columns, after {plan.bounds_share:.0%} of the budget went into learning bounds."
    )
    if any(found.simulated for found in plan.forecasts):
        text += " *: adjusted by a short simulation."
    return textwrap.fill(text, WIDTH)


def _advice(plan: Plan, words: Words) -> str:
    best = plan.recommended
    lines = [_recommendation(plan, best, words)]
    if best is not None and best.without_interval:
        names = ", ".join(best.without_interval[:5])
        more = len(best.without_interval) - 5
        lines.append(f"No interval for {names}{f' and {more} more' if more > 0 else ''}: drowned in noise.")
    if plan.bounds_unknown:
        names = ", ".join(plan.bounds_unknown[:5])
        lines.append(f"Bounds of {names} must be learnt first: read the column “bounds”.")
    if plan.advice is not None:
        lines.append(_least_epsilon(plan.advice))
    return "\n".join(textwrap.fill(line, WIDTH, break_on_hyphens=False) for line in lines)


def _recommendation(plan: Plan, best: Forecast | None, words: Words) -> str:
    """The default first, where there is one, with one plain matrix beside it."""
    found, one = plan.adaptive, f"one plain matrix ({words('adaptive', 'False')})"
    if not plan.works:
        every = [plan.adaptive_rows_needed, *(f.rows_needed for f in plan.forecasts)]
        needed = [rows for rows in every if rows is not None]
        rows = f"about {_short(min(needed))} rows would be needed" if needed else "no number of rows would do"
        return (
            f"This will not work: with every mechanism the noise hides the regression; {rows} at this ε. "
            "Publish fewer columns, more rows, or with a larger epsilon."
        )
    plain = "" if best is None else _plain(best)
    if found is None:
        return f"Recommended: {plain}"
    if not found.works:
        few = f", since n·μ/d^1.5 is {found.signal:.2g}" if not found.told else ""
        return f"Recommended: {one} with {plain} The adaptive release, the default, would not do{few}."
    own = f"standard errors about {found.se_ratio:.3g} times those of least squares"
    if plan.adaptive_is_best:
        beside = "would not do" if best is None else f"{best.se_ratio:.3g} times"
        return f"Recommended: the default, an adaptive release, {own}. One plain matrix: {beside}."
    return f"Recommended: {one} with {plain} The adaptive default: {own}."


def _plain(best: Forecast) -> str:
    text = f"{best.mechanism}, standard errors {best.se_ratio:.3g} times those of least squares."
    if best.se_ratio > WORTH_IT:
        rows = "no number of rows" if best.rows_needed is None else f"about {_short(best.rows_needed)} rows"
        text += f" That is poor: {rows} would make it worth it."
    return text


def _least_epsilon(advice: Advice) -> str:
    if advice.refused:
        return f"A ratio of {advice.se_ratio:g} needs more than the ledger has left."
    if advice.epsilon is None:
        return f"This will not work: no ε up to 100 gives a ratio of {advice.se_ratio:g} with so many rows."
    how = "an adaptive release" if advice.mechanism == "adaptive" else str(advice.mechanism)
    return f"For a ratio of {advice.se_ratio:g}: ε = {advice.epsilon:.3g} with {how}."


def _ratio(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if math.isfinite(value) else "–"


def _short(count: int) -> str:
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if count >= size:
            return f"{count / (10**3 if letter == 'k' else size):.3g}{letter}"
    return str(count)
