"""What a release states and what a job asks for, beside each other: whether the one was made of the other.

Everything is compared that a release says of itself. What it does not say (the table, a note, a guess of the
number of rows, how far out a model cuts residuals, which loss would have stopped it) cannot be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dpgram import __version__
from dpgram.document.fields import (
    MeasuredBins,
    MeasuredClip,
    MeasuredHistograms,
    MeasuredLengths,
    MeasuredLevels,
    MeasuredMatrix,
    MeasuredOctaves,
    MeasuredStep,
    MeasuredZoom,
    UnmeasuredModel,
)
from dpgram.mechanisms import Auto, as_mechanism
from dpgram.rows.encoder import Encoder

if TYPE_CHECKING:
    from dpgram.document.fields import MechanismUsed
    from dpgram.publishing.request import Request
    from dpgram.publishing.split import BudgetSplit
    from dpgram.release import Release
    from dpgram.schema import Schema
    from dpgram.schema.columns import Column

Difference: TypeAlias = tuple[str, object, object]
"""What differs, as it is in the release, as it is in the job."""

ROUNDING: Final = 1e-6
"""Of a share that is computed from prices, and of a radius."""
_BOUNDS: Final = frozenset({"low", "high", "learn"})
_LEVELS: Final = frozenset({"levels", "learn"})
_NONE: Final = "none"
_UNSET: Final = "not given"


def stated_otherwise(release: Release, request: Request) -> Iterator[Difference]:
    """In what a release differs from what is asked for, beside ε and its unit."""
    rules = request.rules
    yield from _delta(release, request)
    yield from _unlike("unit_rows", _rows_of_a_unit(release.unit_rule), _rows_of_a_unit(rules.unit_rule))
    yield from _unlike("weight", *(_UNSET if it is None else it for it in (_weight(release), _weight(rules))))
    group = None if release.group is None else release.group.column
    yield from _unlike("by", group or _UNSET, _UNSET if rules.by is None else rules.by.name)
    blocks = 1 if release.block is None else release.block.of
    yield from _unlike("blocks", blocks, request.blocks)
    if blocks != request.blocks:
        return
    place = 0 if release.block is None else release.block.number - 1
    asked = rules.schema.in_blocks()[place]
    yield from _columns(release.schema, asked)
    if release.series is not None:  # the file of the series states the rest
        return
    yield from _learnt(release, rules.schema)
    yield from _models(release, request)
    yield from _shares(release, request.split)
    yield from _radius(release, request)
    yield from _mechanism(release, request)


def _unlike(name: str, there: object, here: object) -> Iterator[Difference]:
    if there != here:
        yield name, there, here


def _rows_of_a_unit(rule: Any) -> str:
    """Without a rule every row counts; with one, each unit as one or so many rows of it."""
    if rule is None or rule.counts == "units":
        return _UNSET
    return str(rule.rows_at_most)


def _weight(of: Any) -> str | None:
    weight = getattr(of, "survey_weight", None) or getattr(of, "weight", None)
    return None if weight is None else f"{weight.column!r} up to {weight.at_most:g}"


def _columns(there: Schema, here: Schema) -> Iterator[Difference]:
    """Column by column, as far as the job does not leave them open."""
    names = [[column.name for column in schema.columns] for schema in (there, here)]
    if names[0] != names[1]:
        yield "columns", ", ".join(names[0]), ", ".join(names[1])
        return
    for old, new in zip(there.columns, here.columns, strict=True):
        open_keys = (_BOUNDS if new.name in here.unbounded else frozenset()) | (
            _LEVELS if new.name in here.without_levels else frozenset()
        )
        forms = [_form(column, open_keys) for column in (old, new)]
        for key in dict.fromkeys([*forms[0], *forms[1]]):
            yield from _unlike(f"{key} of {new.name!r}", *(_shown(form.get(key, _UNSET)) for form in forms))
    yield from _unlike("constant", there.constant, here.constant)


def _form(column: Column, without: frozenset[str]) -> Mapping[str, object]:
    return {key: value for key, value in column.to_dict().items() if key not in without}


def _learnt(release: Release, schema: Schema) -> Iterator[Difference]:
    for what, kinds, here in (
        ("columns with learnt bounds", (MeasuredOctaves, MeasuredBins), schema.unbounded),
        ("columns with learnt levels", (MeasuredLevels,), schema.without_levels),
    ):
        there = {one.column for each in release.measured if isinstance(each, kinds) for one in each.columns}
        yield from _unlike(what, ", ".join(sorted(there)) or _NONE, ", ".join(sorted(here)) or _NONE)


def _models(release: Release, request: Request) -> Iterator[Difference]:
    """Family, target, features and share of each, and its steps where the job says how many."""
    shares: dict[tuple[str, str, tuple[str, ...]], float] = {}
    steps: dict[tuple[str, str, tuple[str, ...]], int] = {}
    for each in release.measured:
        if isinstance(each, MeasuredStep | UnmeasuredModel):
            key = (each.family, each.target, tuple(each.on))
            shares[key] = shares.get(key, 0.0) + each.share
            steps[key] = steps.get(key, 0) + isinstance(each, MeasuredStep)
    asked = {(model.family, model.target, tuple(model.on or ())): model for model in request.models}
    if set(shares) != set(asked):
        yield "models", "; ".join(map(_model, shares)) or _NONE, "; ".join(map(_model, asked)) or _NONE
        return
    for key, model in asked.items():
        yield from _share(f"share of {_model(key)}", shares[key], model.share or 0.0)
        if model.steps is not None and steps[key]:
            yield from _unlike(f"steps of {_model(key)}", steps[key], model.steps)


def _model(key: tuple[str, str, tuple[str, ...]]) -> str:
    family, target, on = key
    return f"{family} {target!r} on {', '.join(on)}"


def _shares(release: Release, split: BudgetSplit) -> Iterator[Difference]:
    """Whether it is adaptive, and with which shares; what was not measured for want of rows is left out."""
    found = {type(each): each.share for each in release.measured}
    adaptive = MeasuredHistograms in found
    if adaptive != (split.histograms > 0.0):
        yield "adaptive", _flag(adaptive), _flag(not adaptive)
        return
    if not adaptive:
        return
    for kind, name in (
        (MeasuredHistograms, "histograms"),
        (MeasuredOctaves, "bounds"),
        (MeasuredLevels, "levels"),
    ):
        yield from _share(f"share of {name}", found.get(kind, 0.0), getattr(split, name))
    if release.block is not None or MeasuredZoom in found:
        return  # other parts have taken some of what follows
    if MeasuredMatrix in found:
        yield from _share("share of first", found[MeasuredMatrix], split.first)
    if MeasuredClip in found:  # half of it, as much as the counts before the first matrix
        yield from _share("share of clip", 2.0 * found[MeasuredClip], split.clip)


def _share(name: str, there: float, here: float) -> Iterator[Difference]:
    if not math.isclose(there, here, rel_tol=ROUNDING):
        yield name, f"{there:.6g}", f"{here:.6g}"


def _radius(release: Release, request: Request) -> Iterator[Difference]:
    """Of a matrix that is measured as it is: what was asked for, or the longest row of the schema."""
    if any(isinstance(each, MeasuredHistograms | MeasuredLengths) for each in release.measured):
        if request.radius is not None:
            yield "radius", "chosen by noisy counts", _shown(float(request.radius))
        return
    if request.split.histograms:
        return
    here = Encoder(release.schema, clip=request.radius).radius
    if not math.isclose(release.radius, here, rel_tol=ROUNDING):
        yield "radius", f"{release.radius:.6g}", f"{here:.6g}"


def _mechanism(release: Release, request: Request) -> Iterator[Difference]:
    used, asked = release.mechanism, request.mechanism
    if isinstance(asked, Auto):
        yield from _unlike("mechanism", used.name, used.name if _by_itself(used) else _expected(request))
        return
    yield from _unlike("mechanism", used.name, asked.name)
    if used.name == asked.name and asked.parameters and release.library == __version__:
        yield from _parameters(release, request)


def _by_itself(used: MechanismUsed) -> bool:
    """Whether nobody named it."""
    return used.choice.startswith(Auto.name)


def _parameters(release: Release, request: Request) -> Iterator[Difference]:
    """Of a mechanism that was given some: as the same version calibrates them, they are in the release."""
    from dpgram.publishing.terms import matrix_terms

    if request.split:
        return
    terms = matrix_terms(request, None)[0 if release.block is None else release.block.number - 1]
    there, here = release.mechanism.parameters, terms.used().parameters
    if any(not _same(there.get(name), value) for name, value in here.items()):
        given = ", ".join(f"{name} {_shown(value)}" for name, value in request.mechanism.parameters.items())
        yield "the mechanism", "one with other parameters", f"one with {given}"


def _same(one: object, other: object) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=ROUNDING)
    return one == other


def _expected(request: Request) -> str:
    """Which mechanism it would be."""
    from dpgram.publishing.dry_run import price_of

    return price_of(request, None).mechanism


def _delta(release: Release, request: Request) -> Iterator[Difference]:
    """Pure noise needs no δ, or only that of learnt levels, whatever was allowed."""
    stated = release.guarantee if release.block is None else release.block.joint
    asked = request.guarantee.delta
    if stated.delta == asked:
        return
    used = as_mechanism(release.mechanism.name)
    pure = not isinstance(used, Auto) and used.pure
    less = stated.delta in (0.0, request.split.levels * asked)
    if not (pure and less and used.name == _expected(request)):
        yield "delta", stated.delta, asked


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_shown, value[:20])) + (", …]" if len(value) > 20 else "]")
    return str(value)
