"""What both papers say of a release, in sentences: unit, relation, mechanism, measurements, exactness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from dpgram.analysis.descriptive import count
from dpgram.analysis.histograms import of_the_same_rows
from dpgram.analysis.moments import Moments
from dpgram.document.fields import UnmeasuredModel
from dpgram.document.measurements import learnt_bounds, learnt_levels
from dpgram.errors import AnalysisError
from dpgram.noise import SampledLaw

if TYPE_CHECKING:
    from dpgram.document.document import Document

OPEN: Final = "TO BE FILLED IN"
"""Before whatever only the curator can know."""

PROOFS: Final[Mapping[str, str]] = {
    "gaussian": "gaussian",
    "matrix-laplace": "matrix-laplace",
    "laplace": "laplace",
    "wishart": "additive-wishart",
    "sketch": "sketch",
    "sketch-adaptive": "sketch",
    "inverse-wishart": "inverse-wishart",
    "inverse-wishart-adaptive": "inverse-wishart",
    "inverse-noise": "inverse-noise",
    "eigenvectors": "eigenvectors",
    "eigenvectors-zcdp": "eigenvectors",
    "deflation": "eigenvectors",
}
"""Mechanism → the page in proofs/ that proves its price."""

KINDS: Final[Mapping[str, str]] = {
    "rows": "a noisy number of rows",
    "levels": "noisy counts of levels, of which those above a threshold are named",
    "octaves": "noisy counts of powers of two",
    "bins": "noisy counts of equal bins",
    "lengths": "noisy counts of row lengths",
    "histograms": "a noisy histogram of every column",
    "zoom": "closer noisy histograms of some columns",
    "gram": "a first, rough matrix",
    "reach": "noisy counts of row lengths",
    "clip": "noisy counts of what the clip took",
    "step": "a score and a Hessian matrix of a declared model",
}


def exactness_of(release: Document) -> str:
    """What floating-point arithmetic has to do with the guarantee."""
    exact = (
        "Rows are rounded to whole numbers of bounded length, sums are exact integers, and noise is drawn "
        "exactly in law"
    )
    if isinstance(release.noise, SampledLaw):
        return (
            f"{exact}; where the mechanism looks at an eigenvalue or an inverse in floats, a bound on its "
            "error is part of the price."
        )
    return f"{exact} and added to them: no guarantee rests on floating-point arithmetic."


def unit_of(release: Document) -> str:
    """Who is protected, in two or three words."""
    return "Row" if release.unit is None else f"All rows of one {release.unit!r}"


def units_of(release: Document) -> float | None:
    """How many of them there are: public, or the noisy count of the release; nothing where neither tells.

    Never the weight that is left of them in the matrix, nor rows where a unit may have several.
    """
    if release.public_rows is not None:
        return float(release.public_rows)
    rule, histograms = release.unit_rule, of_the_same_rows(release)
    several = rule is not None and rule.counts == "rows" and rule.rows_at_most > 1
    clipped = histograms is None and Moments.of(release).clipped
    if several or clipped or release.survey_weight is not None:
        return None
    try:
        found = count(release)
    except AnalysisError:  # no constant column
        return None
    return found if found > 0.0 else None


def relation_of(release: Document) -> str:
    """Which tables are neighbours."""
    what = "one row" if release.unit is None else f"all rows of one {release.unit!r}"
    if release.adjacency == "add-remove":
        return f"Two tables are neighbours if one is the other with {what} added or removed."
    return (
        f"Two tables are neighbours if one is the other with {what} replaced; the number of "
        f"{'rows' if release.unit is None else 'units'} ({release.public_rows:,}) is the same in both and "
        "public."
    )


def mechanism_of(release: Document) -> str:
    parameters = ", ".join(f"{name} = {value}" for name, value in release.mechanism.parameters.items())
    return (
        f"{release.mechanism.name} ({parameters or 'no parameters'}, in lattice units) on the second-moment "
        "matrix "
        f"of rows of length at most {release.radius:g}. Why this one, in the words of the file: "
        f"{release.mechanism.choice}."
    )


def proof_of(release: Document) -> str:
    return f"proofs/{PROOFS.get(release.mechanism.name, 'measurements')}.md"


def measured_before(release: Document) -> tuple[str, ...]:
    """What was measured beside the matrix, each with its share of the budget."""
    return tuple(
        f"{KINDS[str(type(each).__struct_config__.tag)]} ({each.share:.2%} of the budget)"
        for each in release.measured
        if not isinstance(each, UnmeasuredModel)
    )


def learnt_from_the_table(release: Document) -> str:
    """What is usually declared and was learnt here, inside the guarantee; nothing where nothing was."""
    found = []
    if names := learnt_bounds(release):
        found.append(f"bounds of {', '.join(names)}")
    if levels := learnt_levels(release):
        found.append(f"levels of {', '.join(levels)}")
    return " and ".join(found)


def charges_of(release: Document) -> str:
    """The receipts, in words."""
    if not release.receipts:
        return ""
    told = ", ".join(f"entry {each.entry} (receipt {each.receipt_id})" for each in release.receipts)
    return f"ledger {release.receipts[0].ledger_name!r}, {told}"
