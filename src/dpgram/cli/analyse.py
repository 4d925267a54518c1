"""The analyst's commands: show, regress, correlation, pca. They read a release and never a row."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dpgram.cli.console import (
    JsonFlag,
    KindOption,
    Level,
    ReleaseFile,
    given_names,
    given_pairs,
    print_json,
    print_table,
    say,
)
from dpgram.cli.sign import PublicKeyIfAny, given_public_key
from dpgram.errors import AnalysisError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from dpgram.analysis.description import Told
    from dpgram.analysis.estimand import Kind
    from dpgram.analysis.quality import Quantity
    from dpgram.analysis.results import Regression
    from dpgram.release import Release


def show(release: ReleaseFile, public_key: PublicKeyIfAny = None, as_json: JsonFlag = False) -> None:
    """Show what a release promises and contains.

    With a public key it also checks the signature, and refuses a release that is not signed with it.

    \b
    Example:
      dpgram show insurance.dpgram.json
    """
    from dpgram.analysis.display import as_text, guarantee_in_words
    from dpgram.document.labels import Labels
    from dpgram.release import load

    verified = public_key is not None
    loaded = load(release, public_key=None if public_key is None else given_public_key(public_key))
    means, hidden = _means(loaded)
    closer = _closer_means(loaded) if means else {}
    if as_json:
        told = loaded.guarantee
        print_json(
            {
                "columns": loaded.columns,
                "schema": loaded.schema.to_dict(),
                "guarantee": {
                    "epsilon": told.epsilon,
                    "delta": told.delta,
                    "mu": told.mu,
                    "statement": guarantee_in_words(loaded),
                },
                "adjacency": loaded.adjacency,
                "mechanism": loaded.mechanism.name,
                "entropy": loaded.entropy,
                "count": loaded.count() if loaded.schema.constant else None,
                "count_in_matrix": _count_in_matrix(loaded),
                "mean": means,
                "closer_mean": {name: mean.estimate for name, (mean, _) in closer.items()},
                "receipt": None if loaded.receipt is None else loaded.receipt.ledger_name,
                "signed_by": None if loaded.signature is None else loaded.signature.public_key,
                "verified": verified,
                "digest": loaded.digest,
            }
        )
        return
    say(as_text(loaded, verified=verified))
    if means:
        say("")
        words = Labels(loaded.schema)
        print_table(
            [(name, words.shown(name, value)) for name, value in means.items()], ("column", "noisy mean")
        )
    for _, caution in closer.values():
        say(f"\nCaution: {caution}.")
    if hidden is not None:
        say("")
        say(f"It tells no means: {hidden}")


def _count_in_matrix(release: Release) -> float | None:
    """The noisy number of rows without a missing cell, where that is clearly another than the count."""
    from dpgram.analysis.moments import Moments
    from dpgram.analysis.row_sets import row_sets

    try:
        found = row_sets(release, Moments.of(release))
    except AnalysisError:  # of a forged file: whatever else it says is shown
        return None
    return None if found is None else found.complete


def _means(release: Release) -> tuple[dict[str, float], AnalysisError | None]:
    """The noisy means, or why there are none: a release is shown whatever its noise hides."""
    if not release.schema.constant:
        return {}, None
    try:
        return release.mean(), None
    except AnalysisError as refusal:
        return {}, refusal


def _closer_means(release: Release) -> dict[str, tuple[Told, str]]:
    """By column the mean of the matrix, where that of a histogram is rough beside it, and what to say."""
    try:
        columns = release.describe().columns
    except AnalysisError:  # whatever else it says is shown
        return {}
    told = ((column.name, column.closer, column.caution) for column in columns)
    return {name: (mean, words) for name, mean, words in told if mean is not None and words is not None}


def regress(
    release: ReleaseFile,
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="The column to predict, or a formula such as 'y ~ a * b'.")
    ],
    on: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to use, separated by commas, or one for each --on; all by default. A name with a "
            "comma goes by itself, or between quotation marks: --on '\"age, years\",bmi'."
        ),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=LEVEL", help="The level to compare with; the most frequent one by default."
        ),
    ] = None,
    family: Annotated[
        Literal["linear", "logistic", "probit", "poisson"],
        typer.Option(help="All but linear ones must have been declared by the curator."),
    ] = "linear",
    method: Annotated[
        Literal["auto", "ols", "ridge", "lasso", "elastic-net"], typer.Option(help="How to fit.")
    ] = "auto",
    alpha: Annotated[float | None, typer.Option(help="The penalty, in encoded units.")] = None,
    no_intercept: Annotated[bool, typer.Option("--no-intercept", help="Fit through the origin.")] = False,
    level: Level = 0.95,
    kind: KindOption = "population",
    as_json: JsonFlag = False,
) -> None:
    """Regress any column on any others.

    It costs no privacy, however often it is done.

    \b
    Examples:
      dpgram regress insurance.dpgram.json charges --on age,bmi,smoker
      dpgram regress insurance.dpgram.json charges --on region \\
          --reference region=south
      dpgram regress insurance.dpgram.json "charges ~ age + C(smoker)"
      dpgram regress insurance.dpgram.json bmi --method ols --json
    """
    from dpgram.release import load

    loaded = load(release)
    if family != "linear":
        if (method, alpha, no_intercept, kind) != ("auto", None, False, "population"):
            raise AnalysisError(
                f"a declared {family} model takes no --method, --alpha, --no-intercept or --kind",
                remedy="Leave them out",
            )
        _declared(loaded, target, on, reference, family, level, as_json=as_json)
        return
    fit = loaded.regress(
        target,
        on=given_names(on, loaded.schema),
        method=method,
        alpha=alpha,
        intercept=not no_intercept,
        reference=given_pairs(reference, loaded.schema),
        kind=kind,
    )
    if as_json:
        print_json(_fit(fit, level, kind))
    else:
        say(fit.summary(level, kind))


def _declared(
    loaded: Release,
    target: str,
    on: list[str] | None,
    reference: list[str] | None,
    family: Literal["logistic", "probit", "poisson"],
    level: float,
    *,
    as_json: bool,
) -> None:
    """A logit, probit or model of counts that the curator declared."""
    from dpgram.analysis import declared_model

    fit = declared_model(
        loaded,
        target,
        given_names(on, loaded.schema),
        family=family,
        reference=given_pairs(reference, loaded.schema),
    )
    if not as_json:
        say(fit.summary(level))
        return
    ends = fit.conf_int(level)
    print_json(
        {
            "family": fit.family,
            "target": fit.target,
            "on": list(fit.on),
            "rows": fit.rows,
            "rows_are": fit.counted,
            "steps": fit.steps,
            "coefficients": {
                name: {
                    "estimate": value,
                    "std_error": fit.bse[name],
                    "low": ends[name][0],
                    "high": ends[name][1],
                }
                for name, value in fit.params.items()
            },
            "cautions": list(fit.cautions),
        }
    )


def correlation(
    release: ReleaseFile,
    columns: Annotated[
        list[str] | None,
        typer.Option(help="Columns to show, separated by commas, or one for each --columns; all by default."),
    ] = None,
    level: Level = 0.95,
    kind: KindOption = "population",
    as_json: JsonFlag = False,
) -> None:
    """Show the correlations of columns with their intervals.

    A dash is a column that the privacy noise hides, a dot a correlation whose interval includes zero. The
    strongest follow with their intervals.

    \b
    Example:
      dpgram correlation insurance.dpgram.json --columns age,bmi,charges
    """
    from dpgram.release import load

    loaded = load(release)
    found = loaded.correlation(given_names(columns, loaded.schema), kind=kind)
    low, high = found.conf_int(level)
    if as_json:
        print_json(
            {
                "columns": found.names,
                "correlation": _with_null(found.estimate),
                "std_error": _with_null(found.std_error),
                "level": level,
                "low": _with_null(low),
                "high": _with_null(high),
                "kind": kind,
                "assumption": found.assumption,
                "hidden": found.hidden,
                "cautions": found.cautions,
            }
        )
        return
    distinct = found.distinct(level)
    rows = [
        [
            name,
            *(
                "–" if math.isnan(value) else f"{value:+.2f}" if clear else "·"
                for value, clear in zip(found.estimate[i], distinct[i], strict=True)
            ),
        ]
        for i, name in enumerate(found.names)
    ]
    print_table(rows, ["", *found.names])
    legend = {"·": "the interval includes zero", "–": "hidden by the privacy noise"}
    shown = [f"{sign} {what}" for sign, what in legend.items() if any(sign in row[1:] for row in rows)]
    if shown:
        say("  " + "; ".join(shown))
    say("\n" + found.summary(level=level))


def _with_null(matrix: npt.NDArray[np.float64]) -> list[list[float | None]]:
    return [[None if math.isnan(value) else value for value in row] for row in matrix.tolist()]


def pca(
    release: ReleaseFile,
    components: Annotated[int | None, typer.Option(min=1, help="How many; all by default.")] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(help="Columns to use, separated by commas, or one for each --on; all by default."),
    ] = None,
    standardise: Annotated[
        bool, typer.Option("--standardise", help="Give every column variance one first.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Find the principal components of columns.

    A component that the noise may have mixed with a neighbour is marked as not stable.

    \b
    Example:
      dpgram pca insurance.dpgram.json --components 2
    """
    from dpgram.release import load

    loaded = load(release)
    found = loaded.pca(components, given_names(on, loaded.schema), standardise=standardise)
    if as_json:
        print_json(
            {
                "columns": found.names,
                "standardised": found.standardised,
                "components": [
                    {
                        "variance": float(found.variances[i]),
                        "explained": float(found.explained[i]),
                        "stable": bool(found.stable[i]),
                        "expected_sine": float(found.sines[i]),
                        "loadings": found.loadings[:, i].tolist(),
                    }
                    for i in range(len(found.variances))
                ],
                "cautions": found.cautions,
            }
        )
        return
    say(found.summary() + "\n")
    rows = [
        [name, *(f"{value:+.3f}" for value in loadings)]
        for name, loadings in zip(found.names, found.loadings.tolist(), strict=True)
    ]
    print_table(rows, ["loading", *(str(i + 1) for i in range(len(found.variances)))])


def _fit(fit: Regression, level: float, kind: Kind) -> dict[str, object]:
    """Coefficients with intervals, null and a reason where there is none; what they are for."""
    from dpgram.analysis.summary import as_rows, noisy_weight, reasons

    inference = fit.inference(kind)
    rows = as_rows(fit, level=level, kind=kind)
    return {
        "target": fit.target,
        "method": fit.method,
        "penalty": fit.penalty,
        "level": level,
        "intervals": {
            "kind": kind,
            "estimand": inference.meaning,
            "assumptions": list(inference.assumptions),
            "robust": inference.robust,
            "refusal": inference.refusal,
        },
        "references": dict(fit.design.references),
        "coefficients": [
            {**row, "reason": reason} for row, reason in zip(rows, reasons(inference, level), strict=True)
        ],
        "nobs": fit.moments.rows,
        "nobs_is": noisy_weight(fit.moments),
        "rsquared": _number_or_reason(lambda: fit.rsquared_estimate(kind)),
        "residual_variance": _number_or_reason(lambda: fit.residual_variance(kind)),
        "cautions": [*fit.cautions, *inference.cautions],
    }


def _number_or_reason(ask: Callable[[], Quantity]) -> dict[str, object]:
    """An estimate with its error, or why there is none."""
    try:
        found = ask()
    except AnalysisError as refusal:
        return {"estimate": None, "std_error": None, "reason": str(refusal)}
    return {"estimate": found.estimate, "std_error": found.std_error, "reason": None}
