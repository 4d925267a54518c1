"""Release files: any bytes are refused with ReleaseError, or load as a release that saves to itself.

What loads is then asked what an analyst may ask. Each answer, or its refusal with one of our own errors, must
come within the limits of time and memory.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import random
import re
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from assurance.fuzz_targets.limits import limited
from assurance.fuzz_targets.questions import asked, require_one_line, some_of
from assurance.fuzz_targets.values import VALUES, places
from dpgram.core.noise import SeededEntropy
from dpgram.engines.local import LocalEngine
from dpgram.errors import DpgramError, DpgramWarning, ReleaseError
from dpgram.explorer.facts import page_facts
from dpgram.exports import summary_statistics
from dpgram.mechanisms import (
    Deflation,
    Eigenvectors,
    EigenvectorsZcdp,
    InverseNoise,
    InverseWishart,
    InverseWishartAdaptive,
)
from dpgram.paperwork import evaluation, registry_entry
from dpgram.publishing import Adaptive, publish_with
from dpgram.release import Release, report
from dpgram.rows import Rows
from dpgram.schema import Schema, boolean, categorical, legendre, numeric, product

GOLDEN: Final = Path(__file__).resolve().parents[2] / "tests" / "golden"
SEALED: Final = b"S"
"""First byte of an input whose digest is to be set right, so that what follows the digest is reached."""
AT_ONCE: Final = 3
"""Questions asked of one release while fuzzing; which ones depends on its bytes."""


def seeds() -> list[bytes]:
    """The golden files, as they are and sealed again; every mechanism and option; known forgeries."""
    golden = [path.read_bytes() for path in sorted(GOLDEN.glob("*.dpgram.json"))]
    files = [mark + raw for raw in golden for mark in (b"R", SEALED)]
    return files + [SEALED + raw for raw in (*_made(), *forgeries())]


def examine(data: bytes) -> None:
    """The first byte says whether the rest gets a digest that fits."""
    raw = data[1:]
    release = accepted(sealed(raw) if data[:1] == SEALED else raw)
    if release is not None:
        asked(release, QUESTIONS, some_of(QUESTIONS, data, AT_ONCE))


def mutate(data: bytes, dice: random.Random) -> bytes:
    """One to three values of the file replaced, scaled, deleted or doubled; the digest is mostly mended."""
    try:
        content = json.loads(data[1:])
    except (ValueError, RecursionError):
        return data
    if not isinstance(content, dict | list):
        return data
    change(content, dice)
    return dice.choice((SEALED, SEALED, b"R")) + json.dumps(content).encode()


def change(content: Any, dice: random.Random) -> None:
    """One to three values replaced, scaled, deleted or doubled, or a whole list of numbers, in place."""
    for _ in range(dice.randint(1, 3)):
        held = list(places(content))
        if not held:
            break
        holder, key = dice.choice(held)
        match dice.randrange(8):
            case 0:
                del holder[key]
            case 1:
                other, its = dice.choice(held)
                holder[key] = copy.deepcopy(other[its])
            case 2 if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case 3 | 4:
                _replace_everywhere(content, holder[key], _other_number(holder[key], dice))
            case 5 if isinstance(holder, list):
                _scatter(holder, dice)
            case _:
                holder[key] = copy.deepcopy(dice.choice(VALUES))


def _other_number(value: object, dice: random.Random) -> object:
    """Like the value, so that it may pass the checks: another size, sign or last digit."""
    if isinstance(value, str) and len(value) < 100 and re.fullmatch("-?[0-9]+", value):
        return dice.choice((str(-int(value)), value + "0" * dice.randint(1, 20), value[:-1], "0"))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    try:
        return type(value)(value * 10.0 ** dice.choice((-90, -30, -9, -3, -1, 1, 3, 9, 30, 90)))
    except OverflowError:
        return value


def _scatter(held: list[Any], dice: random.Random) -> None:
    """Many whole numbers of a list at once, about as large as each other: cells that do not fit together."""
    largest, share = 10 ** dice.randint(0, 38), dice.random()
    for place, value in enumerate(held):
        if isinstance(value, str) and re.fullmatch("-?[0-9]{1,100}", value) and dice.random() < share:
            held[place] = str(dice.randint(-largest, largest))


def _replace_everywhere(content: Any, old: object, new: object) -> None:
    """Wherever the same number stands: parameters, law and guarantee repeat each other and must agree."""
    if isinstance(old, dict | list) or old is None:
        return
    for holder, key in list(places(content)):
        if type(holder[key]) is type(old) and holder[key] == old:
            holder[key] = new


def sealed(raw: bytes) -> bytes:
    """The file with a digest that fits its content; unchanged where it is no JSON object."""
    try:
        content = json.loads(raw)
        if not isinstance(content, dict):
            return raw
        content.pop("digest", None)
        bare = {name: value for name, value in content.items() if name != "signature"}
        text = json.dumps(bare, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        content["digest"] = hashlib.sha256(text.encode()).hexdigest()
        return json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return raw


def accepted(raw: bytes) -> Release | None:
    """The release that the file holds; None where it is refused."""
    with limited("loading"):
        try:
            release = Release.from_json(raw)
        except ReleaseError as refusal:
            require_one_line(refusal)
            return None
        assert Release.from_json(release.to_json()) == release, "it does not save to itself"
    return release


def _fit(release: Release, **options: Any) -> Any:
    names = [column.name for column in release.schema.columns]
    return release.regress(names[-1], names[:-1], **options)


def _bootstrapped(release: Release) -> None:
    _fit(release, method="ols").bootstrap(20).conf_int()


def _judged(release: Release) -> None:
    fit = _fit(release)
    # Bounds simulate the noise a thousand times: for directions that takes seconds, honestly spent.
    bounds = [fit.error_bound] if fit.moments.noise.added else []
    for question in (fit.rsquared_estimate, fit.residual_variance, fit.cov_params, *bounds):
        try:
            str(question())
        except DpgramError:
            continue


def _components(release: Release, *, standardise: bool) -> None:
    found = release.pca(standardise=standardise)
    found.summary()
    found.to_frame()


def _histograms(release: Release) -> None:
    for column in release.schema.columns:
        with contextlib.suppress(DpgramError):
            found = release.histogram(column.name)
            str(found)
            found.mean("table").conf_int()


def _partial(release: Release) -> None:
    names = [column.name for column in release.schema.columns]
    str(release.partial_correlation(names[0], names[-1]))


QUESTIONS: Final[Mapping[str, Callable[[Release], object]]] = {
    "show": str,
    "html": lambda release: release._repr_html_(),
    "mean": lambda release: release.mean(),
    "histograms": _histograms,
    "covariance": lambda release: release.covariance(),
    "correlation": lambda release: release.correlation(),
    "original units": lambda release: release.matrix("original"),
    "second moments": lambda release: release.second_moments("original"),
    "auto": lambda release: _fit(release).summary(),
    "ols": lambda release: _fit(release, method="ols").to_frame(),
    "ridge": lambda release: _fit(release, method="ridge")._repr_html_(),
    "lasso": lambda release: _fit(release, method="lasso").summary(kind="table"),
    "elastic net": lambda release: _fit(release, method="elastic-net", intercept=False).summary(),
    "judged": _judged,
    "bootstrap": _bootstrapped,
    "partial correlation": _partial,
    "pca": lambda release: _components(release, standardise=False),
    "pca of correlations": lambda release: _components(release, standardise=True),
    # Without the scripts, which are the same on every page; the page holds no NaN.
    "explorer": lambda release: json.dumps(page_facts(release), allow_nan=False),
    "report": report.page,
    "guarantee": lambda release: str(release.guarantee),
    "registry": registry_entry,
    "evaluation": evaluation,
    "summary statistics": summary_statistics,
}
"""What an analyst does with a release."""


BY_MECHANISM: Final[Mapping[str, Mapping[str, Any]]] = {
    "gaussian": {},
    "matrix-laplace": {"delta": 0.0},
    "laplace": {"delta": 0.0},
    "wishart": {},
    "sketch": {},
    "sketch-adaptive": {},
    "inverse-wishart": {"mechanism": InverseWishart(degrees=60)},
    "inverse-wishart-adaptive": {"mechanism": InverseWishartAdaptive(degrees=60)},
    "inverse-noise": {"mechanism": InverseNoise(ridge=20.0)},
    "eigenvectors": {"delta": 0.0, "mechanism": Eigenvectors(rank=2)},
    "eigenvectors-zcdp": {"mechanism": EigenvectorsZcdp(rank=3)},
    "deflation": {"delta": 0.0, "mechanism": Deflation(rank=2)},
}
"""What each of them needs to be told."""


@cache
def _made() -> tuple[bytes, ...]:
    """Small releases of every mechanism, and of every option that adds a field."""
    people = 60
    table = pa.table(
        {
            "age": [18.0 + (7 * i) % 70 for i in range(people)],
            "sex": ["female", "male", "female"] * (people // 3),
            "id": [i // 2 for i in range(people)],
            "smoker": [i % 3 == 0 for i in range(people)],
            "weight": [1.0 + i % 4 for i in range(people)],
        }
    )
    age, sex, smoker = numeric("age", 18, 90), categorical("sex", ["female", "male"]), boolean("smoker")
    schema = Schema(age, sex, smoker)
    wide = Schema(age, smoker, product("age", "smoker"), legendre("age", 2), constant=False)
    options: list[dict[str, Any]] = [{"mechanism": name, **given} for name, given in BY_MECHANISM.items()]
    options += [
        {"rows": Rows(unit="id", unit_rows=2)},
        {"rows": Rows(by=sex), "schema": Schema(age, smoker)},
        {"schema": schema.with_blocks([["age"], ["sex", "smoker"]])},
        {"rows": Rows(weight=numeric("weight", 0, 4))},
        {"rows": Rows(radius=1.2), "adjacency": "replace-one"},
        {"adaptive": False},
        {"schema": wide, "epsilon": 50.0},
        {"schema": wide, "rows": Rows(missing="midpoint")},
        {"schema": Schema(numeric("age"), categorical("sex"), smoker), "rows": Rows(expected=people)}
        | {
            "adaptive": Adaptive(bounds=0.2, levels=0.2),
            "adjacency": "replace-one",
            "epsilon": 50.0,
        },
    ]
    found: list[bytes] = []
    for number, chosen in enumerate(options):
        found += _published(table, schema, SeededEntropy(number), chosen)
    for question in QUESTIONS.values():  # what is loaded at first use is no slow answer
        with warnings.catch_warnings(), contextlib.suppress(DpgramError):
            warnings.simplefilter("ignore", DpgramWarning)
            question(Release.from_json(found[0]))
    return tuple(found)


def _published(
    table: pa.Table, schema: Schema, entropy: SeededEntropy, chosen: dict[str, Any]
) -> list[bytes]:
    given = {"schema": schema, "epsilon": 1.0, "delta": 1e-6, **chosen}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        made = publish_with(table, entropy=entropy, progress=False, **given, engine=LocalEngine(threads=1))
    return [one.to_json() for one in made]


@cache
def forgeries() -> tuple[bytes, ...]:
    """Files that once hung a reader, or raised what is not ours."""
    spectral = [raw for raw in _made() if b'"eigenvectors"' in raw or b'"deflation"' in raw]
    found = []
    for raw in spectral:
        for digits in (20, 30, 40, 60):
            content = json.loads(raw)
            content["matrix"]["cells"][2] = "9" * digits
            found.append(sealed(json.dumps(content).encode()))
    return tuple(found)
