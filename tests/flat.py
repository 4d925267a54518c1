"""`publish` and `plan` with every option by its own name, for tests that try many of them one by one."""

from __future__ import annotations

from typing import Any

from dpgram.core.noise import SystemEntropy
from dpgram.engines.federated import Partial, partial_gram
from dpgram.engines.local import LocalEngine
from dpgram.planning import Assumption
from dpgram.planning import plan as plan_request
from dpgram.publishing import Adaptive, ReleaseTerms, publish_with, requested, terms_of
from dpgram.publishing.publisher import named
from dpgram.publishing.request import Request
from dpgram.rows import Rows
from dpgram.rows.rules import RowRules, row_rules
from dpgram.schema import Schema

IN_ROWS = {
    "unit": "unit", "unit_rows": "unit_rows", "weight": "weight", "by": "by", "missing": "missing",
    "strict": "strict", "clip": "radius", "rows": "expected",
}  # fmt: skip
IN_ADAPTIVE = {"bounds_budget": "bounds", "levels_budget": "levels"}
ASSUMED = ("spread", "mean", "correlation", "r_squared")


def folded(schema: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The schema with its blocks, and the options as `publish` takes them; a plain release unless asked."""
    left = dict(options)
    rows = {
        IN_ROWS[name]: left.pop(name)
        for name in list(left)
        if name in IN_ROWS and type(left[name]) is not Rows
    }
    shares = {IN_ADAPTIVE[name]: left.pop(name) for name in list(left) if name in IN_ADAPTIVE}
    shares = {name: share for name, share in shares.items() if share is not None}
    if rows:
        left["rows"] = Rows(**rows)
    if shares:
        left["adaptive"] = Adaptive(**({"bounds": 0.0, "levels": 0.0} | shares))
    left.setdefault("adaptive", False)
    blocks, threads = left.pop("blocks", None), left.pop("threads", None)
    if threads is not None:
        left["engine"] = LocalEngine(threads=threads)
    return (schema if blocks is None else schema.with_blocks(blocks)), left


def publish(data: object, schema: Any, *, epsilon: float, delta: float, **options: Any) -> Any:
    """One release; for groups by level, for blocks a tuple."""
    folded_schema, left = folded(schema, options)
    source = left.pop("entropy", None)
    releases = publish_with(
        data,
        folded_schema,
        entropy=SystemEntropy() if source is None else source,
        epsilon=epsilon,
        delta=delta,
        **left,
    )
    if isinstance(folded_schema, Schema) and folded_schema.blocks is not None:
        return releases
    return named(releases) if options.get("by") is not None else releases[0]


def terms(schema: Any, *, epsilon: float, delta: float, **options: Any) -> ReleaseTerms:
    """What one release promises."""
    (found,) = all_terms(schema, epsilon=epsilon, delta=delta, **options)
    return found


def all_terms(schema: Any, *, epsilon: float, delta: float, **options: Any) -> tuple[ReleaseTerms, ...]:
    folded_schema, left = folded(schema, options)
    return terms_of(folded_schema, epsilon=epsilon, delta=delta, **left)


def request(schema: Any, *, epsilon: float, delta: float, **options: Any) -> Request:
    folded_schema, left = folded(schema, options)
    return requested(folded_schema, epsilon=epsilon, delta=delta, **left)


def plan(schema: Schema, *, epsilon: float, delta: float = 0.0, **options: Any) -> Any:
    """A forecast; `bounds_share`, `like` and assumptions by their own names."""
    left = dict(options)
    rows = Rows(expected=left.pop("rows", None), radius=left.pop("clip", None))
    assumed = {name: left.pop(name) for name in ASSUMED if name in left}
    like = left.pop("like", None)
    share = left.pop("bounds_share", 0.1)
    return plan_request(
        schema,
        epsilon=epsilon,
        delta=delta,
        rows=rows,
        adaptive=Adaptive(bounds=share),
        assume=Assumption(**assumed) if like is None else like,
        **left,
    )


def rules(schema: Schema, **options: Any) -> RowRules:
    """How rows count."""
    return row_rules(schema, Rows(**{IN_ROWS[name]: value for name, value in options.items()}))


def partial(data: object, schema: Schema, **options: Any) -> Partial:
    """One site's sums."""
    left = folded(schema, options)[1]
    del left["adaptive"]
    return partial_gram(data, schema, **left)
