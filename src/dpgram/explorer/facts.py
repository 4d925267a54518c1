"""Everything the explorer's page needs to know, as one JSON value: the release, and what Python knows of it.

The page computes from the release's own cells. What comes ready is the shape of the schema, the size of the
noise (E‖N‖ for every number of columns), the constants of the estimators, so that they are written down once,
and the texts.
"""

from __future__ import annotations

import numpy as np

from dpgram.analysis import (
    association,
    estimand,
    inference,
    noise_aware,
    normal_equations,
    quality,
    sampling,
    trust,
)
from dpgram.analysis.design import most_frequent
from dpgram.analysis.display import facts as display_facts
from dpgram.analysis.display import guarantee_in_words
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.document.document import Document
from dpgram.document.fields import MeasuredStep
from dpgram.document.labels import Labels
from dpgram.document.original_units import original_columns
from dpgram.lattice import cell_unit
from dpgram.noise import NoisyInverse


def page_facts(release: Document) -> dict[str, object]:
    """The page's data; nothing in it says more than the release does."""
    moments = Moments.of(release)
    inverse = isinstance(release.noise, NoisyInverse)
    guarantee = release.guarantee
    return {
        "release": release.to_json().decode("utf-8"),
        "digest": release.digest,
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
        "noise": _noise(moments.noise, release.schema.width),
        "constants": _constants(),
        "meanings": {kind: estimand.meaning_of(moments, kind, moved=False) for kind in estimand.KINDS},
        "moved_meanings": {kind: estimand.meaning_of(moments, kind, moved=True) for kind in estimand.KINDS},
        "assumptions": {kind: list(estimand.assumptions_of(moments, kind)) for kind in estimand.KINDS},
        "cautions": {kind: list(estimand.difference_cautions(moments, kind)) for kind in estimand.KINDS},
        "refused_cautions": {
            kind: list(estimand.difference_cautions(moments, kind, refused=True)) for kind in estimand.KINDS
        },
        "guarantee": {
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            "adjacency": release.adjacency,
            "words": guarantee_in_words(release),
        },
        "seeded": release.entropy == "seeded",
        "robust_targets": sorted(
            {
                each.target
                for each in release.measured
                if isinstance(each, MeasuredStep) and each.family == "linear"
            }
        ),
        "facts": display_facts(release),
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
    readers = {column.name: list(column.python_reader) for column in schema.columns_read}
    return [
        {
            "name": column.name,
            "kind": column.kind,
            "positions": list(schema.indices(column.name)),
            "factors": list(column.factors),
            "group": bool(column.group_levels),
            "reference": most_frequent(moments, column.name) if column.group_levels else None,
            "bounds": None if column.bounds is None else list(column.bounds),
            "reader": readers.get(column.name),
            "learnt": column.name in moments.learnt_bounds,
            "wide": column.name in moments.wide_bounds,
        }
        for column in schema.columns
    ]


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
    }
