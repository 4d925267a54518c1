"""An entry for the public registry of differential-privacy deployments, as YAML, from a release.

The registry (github.com/opendp/deployments-registry-data) takes one YAML file for each deployment and
checks it against schemas/deployments-schema.yaml. What follows was read on the day that `SCHEMA_READ` says,
at commit 057e5d81cf60150dd3307e0cf4504b957802fb3b; a later schema may ask for more. `REQUIRED` is our own
list of what it demands; enumerations are those of its fields. Names, region, sector and the kind of house
are the curator's: what was not given is marked `OPEN`, and the file says so at its top.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from dpgram.analysis.display import guarantee_in_words
from dpgram.errors import ReleaseError
from dpgram.paperwork.facts import (
    OPEN,
    charges_of,
    exactness_of,
    learnt_from_the_table,
    measured_before,
    mechanism_of,
    proof_of,
    relation_of,
    unit_of,
    units_of,
)

if TYPE_CHECKING:
    from dpgram.document.document import Document

SCHEMA_READ: Final = "2026-11-17"
CuratorType: TypeAlias = Literal["Government", "Industry", "Nonprofit"]
Sector: TypeAlias = Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"]

REQUIRED: Final = (
    ("url_slug",),
    ("deployment", "basic", "name"),
    ("deployment", "basic", "data_curators", "data_curator_name"),
    ("deployment", "basic", "data_curators", "data_curator_type"),
    ("deployment", "basic", "description"),
    ("deployment", "basic", "intended_use"),
    ("deployment", "basic", "data_product_type"),
    ("deployment", "basic", "data_product_region"),
    ("deployment", "basic", "publication_date"),
    ("deployment", "administrative", "status"),
    ("deployment", "administrative", "registry_authors"),
    ("deployment", "administrative", "tier"),
)
"""Fields without which the registry refuses an entry; each of the list `data_curators` must have both."""

Entry: TypeAlias = Mapping[str, object]


def registry_entry(
    release: Document,
    *,
    name: str | None = None,
    curator: str | None = None,
    curator_type: CuratorType | None = None,
    region: str | None = None,
    sector: Sector | None = None,
    intended_use: str | None = None,
    published: date | str | None = None,
    authors: Sequence[str] = (),
) -> dict[str, object]:
    """The entry as plain values. The day is today unless `published` says otherwise."""
    if curator_type is not None and curator_type not in get_args(CuratorType):
        raise ReleaseError(
            "unknown kind of curator", got=repr(curator_type), limit=", ".join(get_args(CuratorType))
        )
    if sector is not None and sector not in get_args(Sector):
        raise ReleaseError("unknown sector", got=repr(sector), limit=", ".join(get_args(Sector)))
    about = release.about
    title = name or (
        about.title if about is not None and about.title else f"{OPEN}: name of the data product"
    )
    basic: dict[str, object] = {
        "name": title,
        "data_curators": [
            {
                "data_curator_name": curator or f"{OPEN}: who publishes",
                "data_curator_type": curator_type or f"{OPEN}: {', '.join(get_args(CuratorType))}",
            }
        ],
        "description": _description(release),
        "intended_use": intended_use
        or "Linear regressions, correlations, principal components and other analyses of second moments, "
        "any number "
        "of them, by anybody who holds the file.",
        "data_product_type": "Summary statistics",
        "data_product_region": region or f"{OPEN}: region that the data describe, or whose laws apply",
        "publication_date": _day(published),
    }
    if sector is not None:
        basic["data_product_sector"] = sector
    return {
        "url_slug": _slug(title, release.digest),
        "deployment": {
            "basic": basic,
            "dp_variant": _variant(release),
            "privacy_loss": _privacy_loss(release),
            "deployment_model": _model(release),
            "implementation": _implementation(release),
            "administrative": {
                "status": "Draft",
                "registry_authors": list(authors) or [f"{OPEN}: who wrote this entry"],
                "tier": 3,
            },
        },
    }


def registry_yaml(entry: Entry) -> str:
    """The entry as YAML, with the open points listed at its top."""
    open_points = [".".join(path) for path, value in _leaves(entry) if OPEN in str(value)]
    head = [
        "# Entry for the registry of differential-privacy deployments (opendp/deployments-registry-data).",
        f"# Written by dpgram from a release, after the registry's schema as read on {SCHEMA_READ}.",
    ]
    head += [f"# {OPEN}: {path}" for path in open_points]
    return "\n".join([*head, *_yaml(entry, 0)]) + "\n"


def _leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, str(name)))
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, path)
    else:
        yield path, value


def _yaml(value: object, depth: int) -> list[str]:
    """Block style; texts in double quotes, which YAML reads as JSON does."""
    margin = "  " * depth
    lines: list[str] = []
    for name, inner in value.items() if isinstance(value, Mapping) else ():
        if isinstance(inner, Mapping):
            lines += [f"{margin}{name}:", *_yaml(inner, depth + 1)]
        elif isinstance(inner, list):
            lines.append(f"{margin}{name}:")
            for each in inner:
                inside = (
                    _yaml(each, depth + 2) if isinstance(each, Mapping) else [f"{margin}    {_scalar(each)}"]
                )
                lines += [f"{margin}  - {inside[0].strip()}", *inside[1:]]
        else:
            lines.append(f"{margin}{name}: {_scalar(inner)}")
    return lines


def _scalar(value: object) -> str:
    """JSON's escapes are YAML's too; but 1e-06 without a point is a text to some readers of YAML."""
    text = json.dumps(value, ensure_ascii=True)
    return text.replace("e", ".0e") if isinstance(value, float) and "." not in text else text


def _slug(title: str, digest: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    return f"{words[:60].strip('-') or 'release'}-{digest[:8]}"


def _day(published: date | str | None) -> str:
    if published is None:
        return datetime.now(UTC).date().isoformat()
    try:
        return (published if isinstance(published, date) else date.fromisoformat(published)).isoformat()
    except ValueError:
        raise ReleaseError(
            "the day of publication is not a date", got=repr(published), limit="YYYY-MM-DD"
        ) from None


def _description(release: Document) -> str:
    told = "" if release.about is None else release.about.description
    columns = [column.name for column in release.schema.columns]
    more = f" and {len(columns) - 20} more" if len(columns) > 20 else ""
    made = (
        f"One noisy second-moment (Gram) matrix of the columns {', '.join(columns[:20])}{more}, with the "
        "law of its "
        "noise, in one JSON file."
    )
    return f"{told} {made}".strip()


def _variant(release: Document) -> dict[str, object]:
    unprotected = (
        f"The number of rows or units ({release.public_rows:,}), which is the same in neighbouring tables."
        if release.public_rows is not None
        else "None."
    )
    moved = (
        "values outside were moved to them"
        if not release.policy.strict
        else "a value outside would have stopped the publication"
    )
    if release.policy.stop_if_check_fails:
        moved += "; so would much of the table that cannot be used"
    return {
        "variant_name": "Pure DP" if release.guarantee.delta == 0.0 else "Approximate DP",
        "data_domain": "Tables with the declared columns: " + "; ".join(_columns(release)) + f"; {moved}.",
        "unprotected_quantities": f"{unprotected} Bounds, levels and weights of columns are public facts "
        "that were "
        "declared beforehand"
        + (
            f", but for {learnt}, which are protected." if (learnt := learnt_from_the_table(release)) else "."
        ),
    }


def _columns(release: Document) -> Iterator[str]:
    for column in release.schema.columns[:50]:
        kind, reach = column.described
        yield f"{column.name} ({kind}: {reach})"
    if len(release.schema.columns) > 50:
        yield f"and {len(release.schema.columns) - 50} more"


def _privacy_loss(release: Document) -> dict[str, object]:
    stated = release.guarantee if release.block is None else release.block.joint
    details = [guarantee_in_words(release, stated)]
    if stated.mu is not None:
        details.append(f"Exactly: Gaussian differential privacy with mu = {stated.mu:.6g}.")
    if stated.rho is not None:
        details.append(f"Zero-concentrated with rho = {stated.rho:.6g}.")
    if release.block is not None:
        details.append(
            f"For all {release.block.of} releases together; this one alone has epsilon = "
            f"{release.guarantee.epsilon:g}."
        )
    found: dict[str, object] = {
        "privacy_unit": unit_of(release),
        "privacy_unit_details": relation_of(release),
        "privacy_parameters": {"epsilon": stated.epsilon, "delta": stated.delta},
        "privacy_parameters_details": " ".join(details),
    }
    units = units_of(release)
    if units is not None:
        found["number_of_privacy_units"] = round(units)  # noisy, where it is not public
    return found


def _model(release: Document) -> dict[str, object]:
    charged = charges_of(release)
    return {
        "model_name": "Central",
        "trust_assumptions": "The curator, and the machines that read the table, see the rows and are "
        "trusted with "
        "them and with carrying out the publication. Analysts and everybody else need not be trusted: they "
        "see the "
        "file alone, whatever else they know.",
        "actors": "Curator: holds the table and publishes once. Analysts: hold the file and ask it any "
        "number of "
        "questions at no further cost.",
        "release_type": "One release",
        "release_type_details": f"Charged before the noise was drawn: {charged}. Further releases of the "
        "same table are "
        "charged to the same ledger, which refuses beyond its budget."
        if charged
        else f"{OPEN}: no ledger was charged, so nothing here says what else is published from this table.",
        "data_source_type": "Static",
        "access_type": "Non-interactive",
    }


def _implementation(release: Document) -> dict[str, object]:
    before = measured_before(release)
    learnt = learnt_from_the_table(release)
    pre = [
        f"Rows with a missing cell: {release.policy.missing}.",
        f"Learnt from the table inside the guarantee: {learnt}."
        if learnt
        else "No bound or level was learnt.",
        f"{OPEN}: whether bounds, levels and epsilon were chosen without looking at the table.",
    ]
    composition = (
        f"In one event, in order: {'; '.join(before)}; then the matrix with the rest. Prices add up "
        "exactly, in mu "
        "squared for Gaussian noise and in epsilon otherwise."
        if before
        else "One matrix, drawn once."
    )
    if release.group is not None:
        composition += f" One of several releases for disjoint groups ({release.part}), which cost as much "
        "as one together."
    if release.block is not None:
        composition += f" This is {release.part}; what all of them promise together is stated."
    return {
        "preprocessing_and_hyperparameter_tuning": " ".join(pre),
        "mechanisms": f"{mechanism_of(release)} Implemented in dpgram {release.library}. "
        f"{exactness_of(release)} Randomness: "
        f"{'operating system' if release.entropy == 'system' else 'a known seed: it protects nobody'}. "
        f"Not interactive, so no timing of answers. Proof: {proof_of(release)} of dpgram. {OPEN}: how the "
        "table itself "
        "is protected and who has access.",
        "composition": composition,
        "post_processing": "None in the file: the matrix is published as it was drawn, and may have negative "
        "eigenvalues. Analysts denoise by the published law of the noise.",
        "justification": f"{OPEN}: who decided on epsilon and delta, and why.",
        "utility": "Regressions from the file state standard errors that hold the noise, and refuse where "
        "it hides the "
        "answer.",
        "additional_information": f"SHA-256 of the release: {release.digest}",
    }
