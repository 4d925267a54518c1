"""A release for human eyes: the guarantee in words, text for a terminal, escaped HTML for a notebook."""

from __future__ import annotations

import math
import re
import textwrap
from typing import TYPE_CHECKING, Final

import msgspec

from dpgram.analysis import descriptive
from dpgram.analysis.clip import clip_counts
from dpgram.analysis.histograms import of_the_same_rows
from dpgram.analysis.moments import Moments
from dpgram.analysis.row_sets import row_sets
from dpgram.document.fields import MeasuredHistograms, MeasuredStep, UnmeasuredModel
from dpgram.document.measurements import learnt_bounds, learnt_levels, learnt_radius
from dpgram.document.statement import SEEDED, in_words
from dpgram.document.terminal import escaped, printable
from dpgram.errors import DpgramError
from dpgram.lattice import cell_unit
from dpgram.noise import SampledLaw

WIDTH: Final = 80
"""Columns of a terminal that nobody has widened."""
MISSING: Final = {
    "drop": "rows with a missing value are left out",
    "midpoint": "a missing number counts as the midpoint of its range",
}
"""What was done about missing cells, for the matrix."""

if TYPE_CHECKING:
    from dpgram.document.document import Document
    from dpgram.document.fields import StatedGuarantee


def guarantee_in_words(release: Document, stated: StatedGuarantee | None = None) -> str:
    """A promise of the release as the numbers tell it, whatever the file's own statement says."""
    stated = stated or release.guarantee
    return in_words(
        epsilon=stated.epsilon,
        delta=stated.delta,
        adjacency=release.adjacency,
        unit=release.unit,
        numerical_delta=stated.numerical_delta,
    )


_DIGEST: Final = re.compile(r"\b[0-9a-f]{64}\b")
"""Digests and keys are copied from the screen: they stay in one piece, even beyond its edge."""


def as_text(release: Document, *, verified: bool = False) -> str:
    """One aligned block, as wide as a terminal; `verified` says that the signature was checked."""
    shown = [(name, printable(value)) for name, value in facts(release, verified=verified)]
    label = max(len(name) for name, _ in shown)
    lines = [_title(release)]
    for name, value in shown:
        lines += textwrap.wrap(
            value,
            width=WIDTH,
            initial_indent=f"  {name:<{label}}  ",
            subsequent_indent=" " * (label + 4),
            break_on_hyphens=False,
            break_long_words=_DIGEST.search(value) is None,
        )
    return "\n".join(lines)


def as_html(release: Document) -> str:
    """A small table; every text of the file is escaped."""
    rows = "".join(
        f"<tr><th style='text-align:left;vertical-align:top'>{escaped(name)}</th>"
        f"<td style='text-align:left'>{escaped(value)}</td></tr>"
        for name, value in facts(release)
    )
    return f"<div><strong>{escaped(_title(release))}</strong><table>{rows}</table></div>"


def _title(release: Document) -> str:
    return f"A differentially private release of {release.schema.width} encoded columns"


def facts(release: Document, *, verified: bool = False) -> list[tuple[str, str]]:
    """Every public fact of the file as a name and a text; nothing is escaped."""
    about = {} if release.about is None else msgspec.structs.asdict(release.about)
    found = [
        *((name, text) for name, text in about.items() if text),
        ("columns", _listed(release.columns)),
        ("guarantee", f"{release.guarantee} ({release.adjacency}). {guarantee_in_words(release)}"),
        ("mechanism", f"{release.mechanism.name} ({release.mechanism.choice})"),
        ("noise", _noise(release)),
        ("radius", _radius(release)),
        ("rows", _rows(release)),
        ("policy", _policy(release)),
        ("entropy", _entropy(release)),
    ]
    found += [*_learnt(release), *_models(release), *_part(release)]
    if release.receipt is not None:
        entries = " and ".join(str(each.entry) for each in release.receipts)
        number = "entries" if len(release.receipts) > 1 else "entry"
        found.append(("ledger", f"{release.receipt.ledger_name}, {number} {entries}"))
    if release.signature is not None:
        state = "verified" if verified else "signed but not verified here; a forger could name this key too"
        found.append(("signature", f"{state}: Ed25519, public key {release.signature.public_key}"))
    return [*found, ("made by", f"dpgram {release.library}"), ("digest", release.digest)]


def declared_models(release: Document) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Family, target and features of every model that was declared and measured."""
    steps = [each for each in release.measured if isinstance(each, MeasuredStep)]
    return tuple(dict.fromkeys((each.family, each.target, each.on) for each in steps))


def unmeasured_models(release: Document) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """The same of those that noise left without a measurement."""
    found = [each for each in release.measured if isinstance(each, UnmeasuredModel)]
    return tuple((each.family, each.target, each.on) for each in found)


def _models(release: Document) -> list[tuple[str, str]]:
    """What was declared beforehand, and what of it was not measured."""
    counted = any(isinstance(each, MeasuredHistograms) for each in release.measured)
    left = "the matrix has its share" if counted and release.coordinates is None else "its share is unused"
    told = [
        ("declared models", declared_models(release), ""),
        (
            "not measured",
            unmeasured_models(release),
            f": noise hides what it begins with; {left}",
        ),
    ]
    return [
        (name, "; ".join(f"{family} of {target} on {', '.join(on)}{why}" for family, target, on in models))
        for name, models, why in told
        if models
    ]


def _learnt(release: Document) -> list[tuple[str, str]]:
    """What was learnt privately, inside the stated guarantee."""
    facts: list[tuple[str, str]] = []
    if names := learnt_bounds(release):
        ends = {column.name: column.bounds for column in release.schema.columns}
        found = [(name, own) for name in names if (own := ends.get(name)) is not None]
        bounds = [f"{name} in [{low:.4g}, {high:.4g}]" for name, (low, high) in found]
        facts.append(("learnt bounds", ", ".join(bounds) + "; values outside were moved to them"))
    facts += [
        ("learnt levels", f"{column}: {', '.join(levels) or 'none'}; the rest is other")
        for column, levels in learnt_levels(release).items()
    ]
    if learnt_radius(release):
        facts.append(("learnt radius", f"{release.radius:.4g}"))
    return facts


def _part(release: Document) -> list[tuple[str, str]]:
    """Whose rows, which of several releases, and how rows were weighted; nothing for a plain table."""
    facts = []
    if release.unit_rule is not None:
        most = f"{release.unit_rule.rows_at_most:,}"
        counted = {
            "units": f"each {release.unit!r} counts as one, with at most {most} of its rows",
            "rows": f"at most {most} rows of each {release.unit!r}; every row counts equally",
        }
        facts.append(("unit", counted[release.unit_rule.counts]))
    if release.group is not None:
        facts.append(("group", f"the rows with {release.part} only; each group has its own release"))
    if release.series is not None:
        part = release.series
        often = (
            f"a person counts in at most {part.participations}"
            if release.unit is not None
            else "each row in one"
        )
        place = f"the rows of {part}, of a series of {part.periods} periods ({often})"
        facts.append(("series", f"{place}; ε and δ are for all periods together"))
    if release.block is not None:
        joint = release.block.joint
        place = f"number {release.block.number} of {release.block.of} releases of the same rows"
        together = (
            f"together: ε = {joint.epsilon:g}, δ = {joint.delta:g}. {guarantee_in_words(release, joint)}"
        )
        facts.append(("block", f"{place}; {together}"))
    if release.survey_weight is not None:
        survey = release.survey_weight
        facts.append(("weights", f"rows count by {survey.column!r}, from 0 to {survey.at_most:g}"))
    return facts


def _noise(release: Document) -> str:
    unit = cell_unit(release.radius)
    if isinstance(release.noise, SampledLaw):
        return "drawn around the exact matrix, so its size depends on the direction"
    diagonal, off = release.noise.diagonal_sd * unit, release.noise.offdiagonal_sd * unit
    units = "encoded units" if release.coordinates is None else "its own coordinates"
    return f"standard deviation {diagonal:.4g} on the diagonal and {off:.4g} off it, in {units}"


def _rows(release: Document) -> str:
    named = "" if release.unit is None else f" {release.unit!r}"
    public = "" if release.public_rows is None else f"; {release.public_rows:,}{named} were read (public)"
    if not release.schema.constant:
        return "no constant column, so no count" + public
    units = release.unit_rule is not None and release.unit_rule.counts == "units"
    what = f" {release.unit!r}" if units else ""
    clipped = _clipped(release) and of_the_same_rows(release) is None
    weighted = " in weight" if clipped or release.survey_weight is not None else ""
    try:
        count, apart = descriptive.count(release), row_sets(release, Moments.of(release))
    except DpgramError as refusal:  # of a forged file; whatever else it says is shown
        return f"no count: {refusal.what}" + public
    complete = (
        "" if apart is None else f"; about {apart.complete:,.0f} have no missing value: the matrix has these"
    )
    return f"about {count:,.0f}{what}{weighted} (noisy){complete}" + public


def _radius(release: Document) -> str:
    if release.coordinates is not None:
        counted = clip_counts(release)
        lost = "" if counted is None else f" (about {counted.lost:.2%} of all weight, by noisy counts)"
        return f"{release.radius:.4g} in its own coordinates: longer rows count less{lost}"
    allowed = math.sqrt(release.schema.max_norm_squared)
    if _clipped(release):
        return f"{release.radius:.4g}, below the {allowed:.4g} the schema allows: long rows count less"
    return f"{release.radius:.4g}, so that no row is clipped"


def _clipped(release: Document) -> bool:
    return release.coordinates is not None or release.radius**2 < release.schema.max_norm_squared * (1 - 1e-9)


def _policy(release: Document) -> str:
    strict = "; every value was promised to lie within its bounds" if release.policy.strict else ""
    stops = release.policy.stop_if_check_fails
    checked = "; much of the table that could not be used would have stopped the publication" if stops else ""
    return MISSING[release.policy.missing] + strict + checked


def _entropy(release: Document) -> str:
    if release.entropy == "system":
        return "the operating system's"
    return SEEDED


def _listed(names: tuple[str, ...], most: int = 12) -> str:
    if len(names) <= most:
        return ", ".join(names)
    return ", ".join(names[:most]) + f", … ({len(names)} in all)"
