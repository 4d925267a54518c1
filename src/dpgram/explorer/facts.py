"""Everything the explorer's page needs to know, as one JSON value: the release, and what Python knows of it.

The page computes from the release's own cells. What comes ready is the shape of the schema, the size of the
noise (E‖N‖ for every number of columns), the constants of the estimators, so that they are written down once,
and the texts.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from dpgram.analysis import (
    association,
    estimand,
    inference,
    noise_aware,
    normal_equations,
    quality,
    robust,
    sampling,
    trust,
)
from dpgram.analysis.description import Description, Told, describe
from dpgram.analysis.design import most_frequent
from dpgram.analysis.display import declared_models, guarantee_in_words
from dpgram.analysis.display import facts as display_facts
from dpgram.analysis.glm import CURVES
from dpgram.analysis.glm_results import GeneralizedLinear, declared_model
from dpgram.analysis.histograms import Histogram, histograms
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.pca import component_cautions
from dpgram.analysis.regress import regress
from dpgram.analysis.results import Regression
from dpgram.analysis.summary import noisy_weight, rows_fact
from dpgram.document.document import Document
from dpgram.document.labels import Labels
from dpgram.document.original_units import original_columns
from dpgram.errors import AnalysisError
from dpgram.figures import CONVENTIONS
from dpgram.lattice import cell_unit
from dpgram.noise import NoisyInverse

LEVELS: Final = (0.9, 0.95, 0.99)
"""Of intervals that the page offers."""


def page_facts(release: Document) -> dict[str, object]:
    """The page's data; nothing in it says more than the release does."""
    moments = Moments.of(release)
    inverse = isinstance(release.noise, NoisyInverse)
    guarantee = release.guarantee
    declared = [column.name for column in release.schema.columns]
    return {
        "release": release.to_json().decode("utf-8"),
        "digest": release.digest,
        "title": "" if release.about is None else release.about.title,
        "library": release.library,
        "constant": release.schema.constant,
        "columns": _encoded(moments),
        "declared": _declared(moments),
        "cell_unit": cell_unit(release.radius),
        "gram": moments.gram[np.tril_indices(len(moments.gram))].tolist() if inverse else None,
        "lift": None if moments.lift is None else moments.lift.ravel().tolist(),
        "sampling_factor": moments.sampling_factor,
        "complete_groups": moments.complete_groups,
        "known_sums": [list(each.items()) for each in release.schema.known_sums],
        "public_rows": moments.public_rows,
        "counted": _counted(moments),
        "noise": _noise(moments.noise, release.schema.width),
        "constants": _constants(),
        "meanings": {kind: estimand.meaning_of(moments, kind, moved=False) for kind in estimand.KINDS},
        "moved_meanings": {kind: estimand.meaning_of(moments, kind, moved=True) for kind in estimand.KINDS},
        "assumptions": {kind: list(estimand.assumptions_of(moments, kind)) for kind in estimand.KINDS},
        "cautions": {kind: list(estimand.difference_cautions(moments, kind)) for kind in estimand.KINDS},
        "refused_cautions": {
            kind: list(estimand.difference_cautions(moments, kind, refused=True)) for kind in estimand.KINDS
        },
        "correlation_cautions": {
            kind: list(association.correlation_cautions(moments, kind, ())) for kind in estimand.KINDS
        },
        "component_cautions": list(component_cautions(moments, ())),
        "moved_cautions": {
            "correlations": list(estimand.moved_cautions(moments, declared, "correlations")),
            "components": list(estimand.moved_cautions(moments, declared, "components", refused=True)),
        },
        "guarantee": {
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            "adjacency": release.adjacency,
            "words": guarantee_in_words(release),
        },
        "seeded": release.entropy == "seeded",
        "facts": display_facts(release),
        "histograms": [_histogram(found) for found in histograms(release).values()],
        "description": _description(release),
        "models": _models(release),
        "linear_models": [
            _linear_model(moments, target, on)
            for family, target, on in declared_models(release)
            if family == "linear"
        ],
        "conventions": CONVENTIONS,
    }


def _counted(moments: Moments) -> dict[str, object]:
    """What the number of rows in the matrix is called, in which multiples it counts, and what it is."""
    weight = moments.survey_weight
    return {
        "name": rows_fact(moments)[0].capitalize(),
        "scale": 1.0 if weight is None else moments.count_scale,
        "words": noisy_weight(moments) if weight is None else f"{weight!r} added up, noisy",
    }


def _encoded(moments: Moments) -> list[dict[str, object]]:
    schema, words = moments.schema, Labels(moments.schema)
    factors = {
        name: part.factors
        for column in schema.columns_derived
        for name, part in zip(column.encoded_names, column.parts, strict=True)
    }
    return [
        {
            "name": column.name,
            "label": words[column.name],
            "title": words.titled(column.name),
            "original_name": own.name,
            "parts": list(own.parts.items()),
            "monomial": list(own.monomial),
            "factors": list(factors.get(column.name, ())),
            "source": column.source,
            "kind": column.kind,
            "level": column.level,
            "empty": column.name in moments.empty_levels,
            "degree": column.degree,
            "centre": column.centre,
            "weight": column.weight,
            "scale": own.scale,
        }
        for column, own in zip(schema.encoded, original_columns(schema), strict=True)
    ]


def _declared(moments: Moments) -> list[dict[str, object]]:
    schema = moments.schema
    read = {column.name: column for column in schema.columns_read}
    words = Labels(schema)
    return [
        {
            "name": column.name,
            "kind": column.kind,
            "positions": list(schema.indices(column.name)),
            "factors": list(column.factors),
            "group": bool(column.group_levels),
            "reference": most_frequent(moments, column.name) if column.group_levels else None,
            "bounds": None if column.bounds is None else list(column.bounds),
            "label": words.titled(column.name),
            "reader": list(read[column.name].python_reader) if column.name in read else None,
            "choices": [list(choice) for choice in read[column.name].choices] if column.name in read else [],
            "dates": column.name in read and read[column.name].cell_kind == "date",
            "learnt": column.name in moments.learnt_bounds,
            "wide": column.name in moments.wide_bounds,
        }
        for column in schema.columns
    ]


def _histogram(found: Histogram) -> dict[str, object]:
    return {
        "column": found.column,
        "numbers": found.numbers,
        "values": list(found.values),
        "counts": found.counts.tolist(),
        "lost": dict(found.lost),
        "noise_sd": found.noise_sd,
    }


def _description(release: Document) -> dict[str, object]:
    """Counts, means and deviations for every level and kind that can be asked for: they come ready."""
    try:
        found = {
            (kind, level): describe(release, kind=kind, level=level)
            for kind in estimand.KINDS
            for level in LEVELS
        }
    except AnalysisError as refusal:
        return {"refused": str(refusal)}
    first = found["population", LEVELS[0]]
    return {
        "rows": {str(level): _ends(found["table", level].rows) for level in LEVELS},
        "counted": first.counted,
        "cautions": {kind: list(found[kind, LEVELS[0]].cautions) for kind in estimand.KINDS},
        "columns": [_described(found, place) for place in range(len(first.columns))],
    }


def _described(found: Mapping[tuple[estimand.Kind, float], Description], place: int) -> dict[str, object]:
    own = {asked: told.columns[place] for asked, told in found.items()}
    table = {level: own["table", level] for level in LEVELS}
    counted = {str(level): None if each.count is None else _ends(each.count) for level, each in table.items()}
    return {
        "name": table[LEVELS[0]].name,
        "dates": table[LEVELS[0]].dates,
        "mean": {
            kind: {str(level): _ends(own[kind, level].mean) for level in LEVELS} for kind in estimand.KINDS
        },
        "deviation": {str(level): _ends(each.deviation) for level, each in table.items()},
        "count": counted,
    }


def _ends(told: Told) -> list[float | None]:
    return [_finite(value) for value in (told.estimate, told.low, told.high)]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _models(release: Document) -> list[dict[str, object]]:
    """Declared models beside linear ones, which the page computes itself, in the order of declaration."""
    found: list[dict[str, object]] = []
    for family, target, on in declared_models(release):
        if family not in CURVES:
            continue
        asked: dict[str, object] = {"family": family, "target": target, "on": list(on)}
        try:
            found.append(asked | _model(declared_model(release, target, on, family=family)))
        except AnalysisError as refusal:
            found.append(asked | {"refused": str(refusal)})
    return found


def _linear_model(moments: Moments, target: str, on: tuple[str, ...]) -> dict[str, object]:
    """A declared linear model: its errors come from measurements of its own, so its answers come ready."""
    told: dict[str, object] = {"target": target, "on": list(on), "names": []}
    kinds: dict[str, object] = {}
    for kind in estimand.KINDS:
        kinds[kind] = None
        with contextlib.suppress(AnalysisError):
            fit = regress(moments, target, on, kind=kind)
            told["names"] = list(fit.names)
            kinds[kind] = _judged(fit, kind)
    return told | {"kinds": kinds}


def _judged(fit: Regression, kind: estimand.Kind) -> dict[str, object]:
    found = fit.inference(kind)
    test = found.unequal_variance
    answered = found.refusal is None and np.isfinite(found.covariance).all()
    return {
        "estimate": found.estimate.tolist(),
        "covariance": found.covariance.tolist() if answered else None,
        "linear": not found.slope.any() and not found.curvature.any() and bool(found.trusted.all()),
        "meaning": found.meaning,
        "assumptions": list(found.assumptions),
        "cautions": list(found.cautions),
        "unequal_variance": None
        if test is None
        else {
            "statistic": test.statistic,
            "degrees": test.degrees,
            "pvalue": test.pvalue,
            "ratio": test.ratio,
        },
    }


def _model(fit: GeneralizedLinear) -> dict[str, object]:
    known = np.isfinite(fit.covariance).all()
    return {
        "names": list(fit.names),
        "references": dict(fit.design.references),
        "estimate": [_finite(value) for value in fit.estimate],
        "errors": [_finite(value) for value in fit.bse.values()],
        "covariance": fit.covariance.tolist() if known else None,
        "fitted": fit.fitted.tolist(),
        "slope": _finite(fit.slope),
        "steps": fit.steps,
        "ratios": {"logistic": "odds ratio", "poisson": "rate ratio"}.get(fit.family),
        "cautions": list(fit.cautions),
    }


def _noise(noise: EncodedNoise, width: int) -> dict[str, object]:
    return {
        "diagonal_sd": noise.diagonal_sd,
        "offdiagonal_sd": noise.offdiagonal_sd,
        "mean_diagonal": noise.mean_diagonal,
        "added": noise.added,
        "expected_norms": [0.0, *(noise.expected_norm(k) for k in range(1, width + 1))],
    }


def _constants() -> dict[str, object]:
    return {
        "explained": noise_aware.EXPLAINED.tolist(),
        "log_prior": noise_aware.LOG_PRIOR.tolist(),
        "widening": noise_aware.WIDENING,
        "floor": noise_aware.FLOOR,
        "negligible": noise_aware.NEGLIGIBLE,
        "largest_misfit": noise_aware.LARGEST_MISFIT,
        "count_to_noise": normal_equations.COUNT_TO_NOISE,
        "signal_to_noise": quality.SIGNAL_TO_NOISE,
        "passed_by_luck": association.PASSED_BY_LUCK,
        "passed_clearly": association.PASSED_CLEARLY,
        "following": inference.FOLLOWING,
        "lost": trust.LOST,
        "lost_part": trust.LOST_PART,
        "own_limit": trust.OWN_LIMIT,
        "rest_limit": trust.REST_LIMIT,
        "rest_limit_beside_lost": trust.REST_LIMIT_BESIDE_LOST,
        "caution_inflation": trust.CAUTION_INFLATION,
        "sampled_caution": trust.SAMPLED_CAUTION,
        "close_caution": trust.CLOSE_CAUTION,
        "moved_caution": estimand.MOVED_CAUTION,
        "moved_refusal": estimand.MOVED_REFUSAL,
        "most_of_it": trust.MOST_OF_IT,
        "most_named": trust.MOST_NAMED,
        "normal_errors": sampling.NORMAL_ERRORS,
        "unequal_variance": robust.REJECTED,
    }
