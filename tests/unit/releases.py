"""Releases made by hand for the tests of the file and of what it shows."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpgram.analysis.display import in_words
from dpgram.canonical_json import canonical_bytes, sha256_hex
from dpgram.document.fields import (
    MechanismUsed,
    Policy,
    PublishedMatrix,
    StatedGuarantee,
)
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED
from dpgram.noise import MatrixLaplace, SymmetricGaussian
from dpgram.privacy.events import GaussianEvent
from dpgram.privacy.receipt import Receipt
from dpgram.release import Release
from dpgram.schema import Schema, boolean, categorical, legendre, numeric, product

SIGMA = 4.3 * ROW_NORM_SQUARED


def triangle(matrix: npt.NDArray[Any]) -> tuple[str, ...]:
    return tuple(str(int(matrix[i, j])) for i in range(len(matrix)) for j in range(i + 1))


def schema() -> Schema:
    return Schema(
        numeric("age", 18, 90),
        categorical("smoker", ["no", "yes"]),
        boolean("active", weight=0.5),
        numeric("charges", 0, 50_000, weight=2.0),
        product("age", "charges"),
        legendre("age", 2),
    )


def encoded_rows(declared: Schema, rows: int, seed: int) -> npt.NDArray[np.float64]:
    """Rows that obey the schema, in encoded units."""
    draw = np.random.default_rng(seed)
    z = {name: draw.uniform(-1, 1, rows) for name in ("age", "charges")} | {
        "active": draw.choice([-1.0, 1.0], rows)
    }
    smoker = draw.integers(2, size=rows)
    blocks = {
        "(constant)": np.ones(rows),
        "smoker=no": 1.0 - smoker,
        "smoker=yes": smoker.astype(float),
        "age*charges": z["age"] * z["charges"],
        "age^P2": (3 * z["age"] ** 2 - 1) / 2,
        **z,
    }
    return np.column_stack([blocks[column.name] * column.weight for column in declared.encoded])


def gaussian_release(**changes: Any) -> Release:
    """A release with real content; `changes` replaces fields."""
    declared = changes.pop("schema", schema())
    radius = math.sqrt(declared.max_norm_squared)
    if "published" not in changes:
        rows = np.round(encoded_rows(declared, 400, 1) * ROW_NORM / radius)
        changes["published"] = PublishedMatrix(kind="gram", exponent=0, cells=triangle(rows.T @ rows))
    fields: dict[str, Any] = {
        "library": "0.1.0",
        "schema": declared,
        "radius": radius,
        "policy": Policy(missing="drop", strict=False),
        "adjacency": "add-remove",
        "mechanism": MechanismUsed(name="gaussian", parameters={"sigma": SIGMA}, choice="asked for"),
        "noise": SymmetricGaussian(sigma=SIGMA),
        "guarantee": StatedGuarantee(
            epsilon=1.0,
            delta=1e-6,
            mu=ROW_NORM_SQUARED / SIGMA,
            statement=in_words(epsilon=1.0, delta=1e-6, adjacency="add-remove", unit=None),
        ),
        "entropy": "system",
        "receipt": Receipt(
            ledger_name="insurance",
            ledger_id="0" * 32,
            entry=1,
            receipt_id="1" * 32,
            event=GaussianEvent(mu=ROW_NORM_SQUARED / SIGMA),
            head="2" * 64,
        ),
    }
    return Release(**(fields | changes))


def laplace_release(**changes: Any) -> Release:
    theta = 1.0 / (2 * ROW_NORM_SQUARED)
    return gaussian_release(
        **{
            "adjacency": "replace-one",
            "public_rows": 400,
            "mechanism": MechanismUsed(
                name="matrix-laplace", parameters={"theta": theta}, choice="delta = 0 was asked for"
            ),
            "noise": MatrixLaplace(theta=theta, width=schema().width),
            "guarantee": StatedGuarantee(epsilon=1.0, delta=0.0, statement="…"),
            "receipt": None,
        }
        | changes
    )


RELEASES = pytest.mark.parametrize(
    "release", [gaussian_release(), laplace_release()], ids=["gaussian", "laplace"]
)


def content_of(release: Release) -> dict[str, Any]:
    return json.loads(release.to_json())


def sealed(content: dict[str, Any]) -> bytes:
    """A file with that content and a matching digest: what a careful forger would write."""
    content = {key: value for key, value in content.items() if key != "digest"}
    return canonical_bytes(content | {"digest": sha256_hex(content)})


def set_at(content: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    copy = json.loads(json.dumps(content))
    *parents, last = path.split(".")
    place = copy
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place[part]
    place[int(last) if isinstance(place, list) else last] = value
    return copy


def zeros(width: int) -> PublishedMatrix:
    return PublishedMatrix(kind="gram", exponent=0, cells=("0",) * (width * (width + 1) // 2))
