"""More of the analyst's commands: describe, iv, within, did, discriminant. They never read a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from dpgram.cli.console import (
    JsonFlag,
    KindOption,
    Level,
    ReleaseFile,
    given_names,
    given_pairs,
    print_json,
    say,
)

if TYPE_CHECKING:
    from dpgram.analysis.description import Description, Told
    from dpgram.analysis.effects import Effects
    from dpgram.analysis.iv_results import InstrumentalVariables

Target: TypeAlias = Annotated[str, typer.Argument(metavar="TARGET", help="The column to explain.")]
Controls: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="Columns to account for, separated by commas, or one for each --controls."),
]
References: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=LEVEL", help="The level to compare with; the most frequent one by default."),
]


def describe(
    release: ReleaseFile,
    on: Annotated[
        list[str] | None,
        typer.Option(help="Columns to describe, separated by commas, or one for each --on; all by default."),
    ] = None,
    level: Level = 0.95,
    kind: KindOption = "population",
    as_json: JsonFlag = False,
) -> None:
    """Count rows and levels, and show means and deviations with their intervals.

    \b
    Example:
      dpgram describe insurance.dpgram.json --on age,smoker
    """
    from dpgram.release import load

    loaded = load(release)
    found = loaded.describe(given_names(on, loaded.schema), level=level, kind=kind)
    if as_json:
        print_json(_description(found))
    else:
        say(str(found))


def _description(found: Description) -> dict[str, object]:
    return {
        "level": found.level,
        "kind": found.kind,
        "rows": _told(found.rows),
        "counted": found.counted,
        "columns": [
            {
                "name": column.name,
                "label": column.label,
                "units": column.units,
                "mean": _told(column.mean),
                "deviation": _told(column.deviation),
                "count": None if column.count is None else _told(column.count),
            }
            for column in found.columns
        ],
        "cautions": found.cautions,
    }


def _told(told: Told) -> dict[str, float]:
    return {
        "estimate": told.estimate,
        "std_error": told.std_error,
        "low": told.low,
        "high": told.high,
    }


def iv(
    release: ReleaseFile,
    target: Target,
    endogenous: Annotated[
        list[str],
        typer.Option(help="Columns that the errors go together with, separated by commas."),
    ],
    instruments: Annotated[
        list[str],
        typer.Option(help="Columns that move these and the target through them alone."),
    ],
    controls: Controls = None,
    method: Annotated[Literal["2sls", "liml"], typer.Option(help="How to fit.")] = "2sls",
    reference: References = None,
    level: Level = 0.95,
    kind: KindOption = "population",
    as_json: JsonFlag = False,
) -> None:
    """Regress by instrumental variables.

    With the first stage, and with the Anderson–Rubin set, which holds however weak the instruments are.

    \b
    Example:
      dpgram iv insurance.dpgram.json charges --endogenous bmi \\
          --instruments age --controls smoker
    """
    from dpgram.release import load

    loaded = load(release)
    schema = loaded.schema
    found = loaded.iv(
        target,
        given_names(endogenous, schema) or [],
        given_names(instruments, schema) or [],
        given_names(controls, schema) or [],
        method=method,
        kind=kind,
        reference=given_pairs(reference, schema),
    )
    if as_json:
        print_json(_instruments(found, level))
    else:
        say(found.summary(level))


def _instruments(found: InstrumentalVariables, level: float) -> dict[str, object]:
    """Coefficients, or why there are none; the set that may be there without them."""
    pieces = None
    if found.test.refusal is None:
        # An end that JSON has no number for, infinity, is null.
        pieces = [list(piece) for piece in found.anderson_rubin(level).pieces]
    return {
        "target": found.target,
        "endogenous": found.endogenous,
        "instruments": found.instruments,
        "controls": found.controls,
        "method": found.method,
        "level": level,
        "intervals": {
            "kind": found.kind,
            "estimand": found.meaning,
            "assumptions": list(found.assumptions),
            "refusal": found.refusal,
        },
        "coefficients": None if found.refusal is not None else found.as_rows(level),
        "first_stage": [
            {
                "name": stage.name,
                "f_statistic": stage.f_statistic,
                "p_value": stage.p_value,
                "against_noise": stage.against_noise,
                "numerator": stage.numerator,
                "denominator": stage.denominator,
            }
            for stage in found.first_stage
        ],
        "anderson_rubin": {"pieces": pieces, "reason": found.test.refusal},
        "nobs": found.nobs,
        "cautions": found.cautions,
    }


def within(
    release: ReleaseFile,
    target: Target,
    on: Annotated[list[str], typer.Option(help="Columns whose slopes are asked for, separated by commas.")],
    group: Annotated[list[str], typer.Option(help="Categorical columns within whose groups rows compare.")],
    level: Level = 0.95,
    kind: KindOption = "population",
    as_json: JsonFlag = False,
) -> None:
    """Show slopes within groups (fixed effects).

    \b
    Example:
      dpgram within insurance.dpgram.json charges --on age,bmi --group region
    """
    from dpgram.release import load

    loaded = load(release)
    schema = loaded.schema
    found = loaded.within(target, given_names(on, schema) or [], given_names(group, schema) or [], kind=kind)
    _show(found, level, as_json=as_json)


def did(
    release: ReleaseFile,
    target: Target,
    treated: Annotated[str, typer.Option(help="The yes/no column that says who was treated.")],
    after: Annotated[str, typer.Option(help="The yes/no column that says whether it was afterwards.")],
    controls: Controls = None,
    level: Level = 0.95,
    kind: KindOption = "population",
    as_json: JsonFlag = False,
) -> None:
    """Show a difference in differences.

    How much more the target changed afterwards for the treated. The curator must have declared the product
    of the two columns.

    \b
    Example:
      dpgram did clinics.dpgram.json visits --treated reform --after after
    """
    from dpgram.release import load

    loaded = load(release)
    found = loaded.did(target, treated, after, given_names(controls, loaded.schema) or [], kind=kind)
    _show(found, level, as_json=as_json)


def _show(found: Effects, level: float, *, as_json: bool) -> None:
    if not as_json:
        say(found.summary(level))
        return
    inference = found.inference
    print_json(
        {
            "target": found.target,
            "estimand": found.estimand,
            "assumption": found.assumption,
            "level": level,
            "intervals": {
                "kind": inference.kind,
                "estimand": inference.meaning,
                "assumptions": list(inference.assumptions),
                "refusal": inference.refusal,
            },
            "coefficients": None if inference.refusal is not None else found.as_rows(level),
            "nobs": found.nobs,
            "cautions": inference.cautions,
        }
    )


def discriminant(
    release: ReleaseFile,
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A yes/no column, or a level such as smoker=yes.")
    ],
    on: Annotated[
        list[str] | None,
        typer.Option(help="Columns to use, separated by commas, or one for each --on; all by default."),
    ] = None,
    link: Annotated[Literal["logit", "probit"], typer.Option(help="Which coefficients.")] = "logit",
    reference: References = None,
    level: Level = 0.95,
    kind: KindOption = "population",
    as_json: JsonFlag = False,
) -> None:
    """Show approximate logit or probit coefficients, by discriminant analysis.

    They are exact for features that are normal, and an approximation for others.

    \b
    Example:
      dpgram discriminant insurance.dpgram.json smoker=yes --on age,charges
    """
    from dpgram.release import load

    loaded = load(release)
    schema = loaded.schema
    found = loaded.discriminant(
        target,
        given_names(on, schema),
        link=link,
        kind=kind,
        reference=given_pairs(reference, schema),
    )
    if not as_json:
        say(found.summary(level))
        return
    print_json(
        {
            "target": found.target,
            "link": found.link,
            "level": level,
            "kind": found.kind,
            "assumption": found.assumption,
            "share": found.share,
            "coefficients": found.as_rows(level),
            "nobs": found.nobs,
            "cautions": found.cautions,
        }
    )
