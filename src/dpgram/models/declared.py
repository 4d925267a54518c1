"""A declared model: its target, its features, its share of the budget. Public facts only.

Every linear regression can be asked of a release without being declared. What a declaration adds is measured
after the matrix, inside the same guarantee: the model's score and its Hessian matrix at coefficients that
follow from the matrix, which give its coefficients whatever rows the matrix had to shorten; for linear models
and models of counts the spread of the scores too, from which errors follow that allow for unequal variances
and for persons with several rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, TypeAlias, final

from msgspec import Meta, Struct, structs

from dpgram.errors import GuaranteeError, SchemaError, real, shown, whole
from dpgram.schema import Schema
from dpgram.schema.encodings import EncodedColumn

Family: TypeAlias = Literal["linear", "logistic", "probit", "poisson"]
FAMILIES: Final[tuple[Family, ...]] = ("linear", "logistic", "probit", "poisson")
LEAST_SHARE: Final = 1e-6
"""Of one model: with less its noise would hide all."""
MOST_SHARE: Final = 0.4
"""Of all models whose shares were left out: what is measured before the matrix takes as much."""
TARGET_SIZES: Final = (1e-30, 1e30)
"""Of half the width of a target's bounds at least, and of their larger end at most: limits of residuals and
expected counts, which noise may make many times as large, are then numbers that a release file can hold."""
MOST_STEPS: Final = 8
LEAST_LIMIT: Final = 1.5
"""Deviations: Huber's regression has as many."""
MOST_LIMIT: Final = 1e6
USUAL_SHARE: Final = 0.25
"""Of one model, whose coefficients are measured anew."""
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=4000)]


@final
class Model(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One declared model. Made by `linear`, `logistic`, `probit` and `poisson`."""

    family: Family
    target: Name
    on: tuple[Name, ...] | None = None
    """The declared columns of its features; none: all others."""
    share: float | None = None
    """Of the budget, of μ². None: a quarter, less where many are declared."""
    steps: int | None = None
    """Newton steps; none: by the published number of rows."""
    limit: float | None = None
    """Deviations of the residual at which it is cut, at least; none: 2.5, for counts 6."""

    def features(self, schema: Schema) -> tuple[str, ...]:
        """The declared columns that it is fitted on.

        >>> dg.linear("charges").features(schema)
        ('age', 'smoker')
        """
        own = _source(schema, self.target)
        if self.on is not None:
            return self.on
        return tuple(
            column.name for column in schema.columns if column.name != own and own not in column.factors
        )

    @property
    def words(self) -> str:
        """Which model it is, for messages."""
        return f"{self.family}({self.target!r})"


def linear(
    target: str,
    on: Sequence[str] | None = None,
    *,
    share: float | None = None,
    limit: float | None = None,
) -> Model:
    """A linear regression whose errors allow for unequal variances, and for persons with several rows.

    Residuals are cut at `limit` deviations, or further out where noise allows. For targets whose errors are
    skewed, such as costs, a limit of 8 or 10 brings it close to least squares, at the price of more noise.

    >>> dg.linear("charges", ["age", "smoker"], limit=8).limit
    8.0
    """
    return _declared("linear", target, on, share, None, limit)


def logistic(
    target: str,
    on: Sequence[str] | None = None,
    *,
    share: float | None = None,
    steps: int | None = None,
) -> Model:
    """The logit of a yes/no column or of a level, by Newton steps from what the matrix tells.

    >>> dg.logistic("smoker=yes", ["age", "charges"], share=0.2).share
    0.2
    """
    return _declared("logistic", target, on, share, steps)


def probit(
    target: str,
    on: Sequence[str] | None = None,
    *,
    share: float | None = None,
    steps: int | None = None,
) -> Model:
    """The same with the normal distribution for a link.

    >>> dg.probit("smoker=yes", ["age"], steps=2).steps
    2
    """
    return _declared("probit", target, on, share, steps)


def poisson(
    target: str,
    on: Sequence[str] | None = None,
    *,
    share: float | None = None,
    steps: int | None = None,
    limit: float | None = None,
) -> Model:
    """The regression of a count, E y = e^(β·x), with errors for counts that vary more than Poisson's.

    Residuals are cut at `limit` deviations, or further out where noise allows.

    >>> dg.poisson("visits", ["age"]).family
    'poisson'
    """
    return _declared("poisson", target, on, share, steps, limit)


def model_of(facts: Mapping[str, object]) -> Model:
    """The model of a form: of a table in a job file, or of an option on the command line.

    >>> from dpgram.models.declared import model_of
    >>> model_of({"family": "logistic", "target": "smoker=yes", "steps": 2}).words
    "logistic('smoker=yes')"
    """
    family = facts["family"]
    if family not in FAMILIES:
        raise SchemaError("unknown family of models", got=repr(family), limit=", ".join(FAMILIES))
    if family == "linear" and facts.get("steps") is not None:
        raise SchemaError("a linear model has no steps", remedy="Leave steps out")
    if family in ("logistic", "probit") and facts.get("limit") is not None:
        raise SchemaError(f"a {family} model has no limit", remedy="Leave limit out")
    return _declared(family, *(facts.get(name) for name in ("target", "on", "share", "steps", "limit")))


def _declared(
    family: Family, target: object, on: object, share: object, steps: object, limit: object = None
) -> Model:
    if not isinstance(target, str) or not target:
        raise SchemaError(f"{family}: the target must be the name of a column", got=repr(target)[:100])
    named = f"{family}({target!r})"
    if isinstance(on, str) or not (on is None or isinstance(on, Sequence)):
        raise SchemaError(
            f"{named}: `on` must be a list of columns", got=repr(on)[:100], remedy=f"Write on=[{on!r}]"
        )
    part: float | None = None
    if share is not None:
        part = real(share)
        if part is None or not LEAST_SHARE <= part < 1.0:
            raise GuaranteeError(
                f"{named}: share must be a part of the budget",
                got=repr(share if part is None else part),
                limit=f"{LEAST_SHARE:g} ≤ share < 1",
            )
    number = None if steps is None else whole(steps)
    if steps is not None and (number is None or not 1 <= number <= MOST_STEPS):
        raise GuaranteeError(
            f"{named}: steps must be a whole number", got=shown(steps), limit=f"1 to {MOST_STEPS}"
        )
    reach: float | None = None
    if limit is not None:
        reach = real(limit)
        if reach is None or not LEAST_LIMIT <= reach <= MOST_LIMIT:
            raise GuaranteeError(
                f"{named}: limit must be a number of deviations",
                got=repr(limit if reach is None else reach),
                limit=f"{LEAST_LIMIT:g} to {MOST_LIMIT:g}",
            )
    features = None if on is None else tuple(str(name) for name in on)
    return Model(family=family, target=target, on=features, share=part, steps=number, limit=reach)


def checked_models(models: object, schema: Schema, *, left: float = 1.0) -> tuple[Model, ...]:
    """The models with their features named, or what is wrong with them. Reads no data.

    `left` is the part of the budget that they may have, so that shares that were left out fit into it.
    """
    if not isinstance(models, Sequence) or not all(isinstance(each, Model) for each in models):
        raise SchemaError(
            "models must be a list of declared models",
            got=repr(models)[:100],
            remedy='Write models=[dg.linear("cost"), dg.logistic("readmitted")]',
        )
    found = _with_shares([_checked(each, schema) for each in models], min(MOST_SHARE, left))
    seen: set[tuple[object, ...]] = set()
    for each in found:
        key = (each.family, each.target, frozenset(each.on or ()))
        if key in seen:
            raise SchemaError(f"{each.words} is declared twice", remedy="Leave one of them out")
        seen.add(key)
    return found


def _with_shares(models: Sequence[Model], most: float) -> tuple[Model, ...]:
    """Shares that were left out: the usual one, or as much less as all of them together may have."""
    given = sum(each.share for each in models if each.share is not None)
    without = sum(each.share is None for each in models)
    usual = min(USUAL_SHARE, max(most - given, LEAST_SHARE) / without) if without else 0.0
    return tuple(
        structs.replace(each, share=usual if each.share is None else float(each.share)) for each in models
    )


def _checked(model: Model, schema: Schema) -> Model:
    if model.family not in FAMILIES:
        raise SchemaError("unknown family of models", got=repr(model.family), limit=", ".join(FAMILIES))
    if not schema.constant:
        raise SchemaError(
            f"{model.words} needs the constant column", remedy="Leave constant=False out of the schema"
        )
    own = _source(schema, model.target)
    features = model.features(schema)
    if not features:
        raise SchemaError(f"{model.words} has no features", remedy="Name at least one column in `on`")
    for name in (own, *features):
        _refuse_open(model, schema, name)
    for name in features:
        if name == own or own in schema.column(name).factors:
            raise SchemaError(f"{model.words}: {name!r} belongs to the target and cannot be a feature")
    if len(set(features)) < len(features):
        raise SchemaError(f"{model.words} names a feature twice", got=", ".join(features))
    encoded = [each for each in _encoded(schema, own) if model.target in (own, each.name)]
    if len(encoded) > 1:
        example = encoded[-1].name
        raise SchemaError(
            f"{model.words}: a column of levels cannot be a target as a whole",
            remedy=f"Name one level, such as {example!r}",
        )
    _refuse_target(model, encoded[0])
    return structs.replace(model, on=tuple(features))


def _refuse_target(model: Model, target: EncodedColumn) -> None:
    """Yes/no for a logit or probit, a number that is never negative for counts, and nothing computed."""
    two_valued, number = target.kind in ("boolean", "level"), target.kind == "numeric"
    if model.family in ("logistic", "probit") and not two_valued:
        raise SchemaError(
            f"{model.words}: the target has more than two values",
            remedy="Name a yes/no column, or a level of a column: 'region=east'",
        )
    if model.family == "poisson" and not (number and target.centre >= (1.0 - 1e-12) * target.half_width):
        raise SchemaError(
            f"{model.words}: the target is not a column of counts",
            remedy="Name a numeric column whose bounds begin at 0 or above: numeric('visits', 0, 100)",
        )
    if not (number or two_valued):
        raise SchemaError(
            f"{model.words}: the target is computed from other columns",
            remedy="Declare it for a column that is in the table",
        )
    least, most = TARGET_SIZES
    if number and not (least <= target.half_width and abs(target.centre) + target.half_width <= most):
        raise SchemaError(
            f"{model.words}: the bounds of the target are too far away or too close together",
            limit=f"sizes from {least:g} to {most:g}",
            remedy="Publish the column in another unit",
        )


def _refuse_open(model: Model, schema: Schema, name: str) -> None:
    column = schema.column(name)
    for each in (name, *column.factors):
        if each in schema.unbounded:
            raise SchemaError(
                f"{model.words}: column {each!r} has no bounds",
                remedy=f"Give public ones, numeric({each!r}, low, high): values that learnt bounds move "
                "would move the coefficients",
            )
        if each in schema.without_levels:
            raise SchemaError(
                f"{model.words}: column {each!r} has no levels",
                remedy=f"List them, categorical({each!r}, [...])",
            )


def _source(schema: Schema, target: str) -> str:
    """The declared column that a target, or the level that it names, belongs to."""
    for column in schema.columns:
        if column.name == target or target in [each.name for each in _encoded(schema, column.name)]:
            return column.name
    return schema.column(target).name  # raises


def _encoded(schema: Schema, name: str) -> tuple[EncodedColumn, ...]:
    """The encoded columns of a declared one; none as long as its bounds or levels are open."""
    column = schema.column(name)
    known = {name, *column.factors}.isdisjoint((*schema.unbounded, *schema.without_levels))
    return column.encoded() if known else ()
