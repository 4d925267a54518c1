"""Every pair of options under every mechanism: it works, or the table refuses it before a row is read."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.flat import partial as partial_gram
from tests.flat import publish

from dpgram.core.noise import SeededEntropy
from dpgram.engines.federated import Partials
from dpgram.engines.local import LocalEngine
from dpgram.errors import OptionsError
from dpgram.mechanisms import (
    MECHANISMS,
    Auto,
    InverseNoise,
    InverseWishart,
    InverseWishartAdaptive,
    Mechanism,
)
from dpgram.mechanisms.choice import choose
from dpgram.models import linear
from dpgram.publishing import _learning as learning
from dpgram.publishing import terms
from dpgram.publishing.compatibility import (
    LEARNING,
    REPLACED_IN_GROUPS,
    clash_of,
    clashes,
    mechanism_option,
)
from dpgram.release import Release
from dpgram.schema import Schema, categorical, numeric

BY = categorical("g", ["north", "south"])

OPTIONS: dict[str, dict[str, Any]] = {
    "strict": {"strict": True},
    "learnt bounds": {"bounds_budget": 0.2},
    "learnt levels": {"levels_budget": 0.1},
    "adaptive=True": {"adaptive": True},
    "models": {"models": (), "adaptive": True},
    "a public clip": {"clip": 1.5},
    "delta=0": {"delta": 0.0},
    "adjacency='replace-one'": {"adjacency": "replace-one"},
    "by": {"by": BY},
    "blocks": {"blocks": [["a", "c"], ["b"]]},
    "several rows per unit": {"unit": "id"},
    "one row per unit": {"unit": "id", "unit_rows": 1},
    "weight": {"weight": numeric("w", 0, 4)},
    "missing": {"missing": "midpoint"},
    "rows": {"rows": 4_000},
    "partial sums": {},
    "a stream": {},
}
ASKED: dict[str, Mechanism | Auto] = {
    "auto": Auto(),
    "auto, semidefinite": Auto(semidefinite=True),
    **{name: kind() for name, kind in MECHANISMS.items()},
    "inverse-noise": InverseNoise(ridge=50.0),
    "inverse-wishart": InverseWishart(degrees=60),
    "inverse-wishart-adaptive": InverseWishartAdaptive(degrees=60),
}
"""Every mechanism, with parameters where it cannot be calibrated without."""


def people(rows: int = 4_000) -> pa.Table:
    draw = np.random.default_rng(5)
    return pa.table(
        {
            "a": draw.uniform(-1.0, 1.0, rows),
            "b": draw.uniform(0.0, 10.0, rows),
            "c": draw.choice(["x", "y"], rows),
            "g": draw.choice(["north", "south"], rows),
            "id": draw.integers(0, rows // 2, rows),
            "w": draw.uniform(0.5, 4.0, rows),
        }
    )


TABLE = people()


def schema_for(used: frozenset[str]) -> Schema:
    a = numeric("a") if "learnt bounds" in used else numeric("a", -1, 1)
    c = categorical("c") if "learnt levels" in used else categorical("c", ["x", "y"])
    return Schema(a, numeric("b", 0, 10), c)


def data_for(used: frozenset[str], schema: Schema, options: dict[str, Any], folder: Path) -> Any:
    if "a stream" in used:
        return TABLE.to_reader()
    if "partial sums" not in used:
        return TABLE
    if schema.unbounded or schema.without_levels:  # no site could have summed anything up
        schema = Schema(numeric("a", -1, 1), numeric("b", 0, 10), categorical("c", ["x", "y"]))
    counted = {
        k: v for k, v in options.items() if k in ("unit", "unit_rows", "by", "weight", "missing", "strict")
    }
    clip = options.get("clip")
    made = partial_gram(TABLE, schema, clip=clip if isinstance(clip, float) else None, **counted)
    path = folder / "site.partial"
    path.unlink(missing_ok=True)
    return Partials(files=[made.save(path)])


def expected(asked: Mechanism | Auto, used: frozenset[str]) -> bool:
    """Whether the table refuses any two of these."""
    given = {option for option in used if option in NAMES}
    if "models" in used:
        given.add("adaptive=True")
    if "a public clip" in used or mechanism_option(asked) not in TWO_MATRICES:
        given.discard("adaptive=True")  # one matrix is measured, and in one pass
    if {"several rows per unit", "by"} <= given:
        given.add("units in several groups")
    if {"adjacency='replace-one'", "by"} <= used:
        given.add(REPLACED_IN_GROUPS)
    given.add(mechanism_option(asked))
    return any(clash_of(one, other) for one, other in combinations(sorted(given), 2))


TWO_MATRICES = {"mechanism='auto'", "mechanism='gaussian'", "mechanism='matrix-laplace'"}
NAMES = {name for clash in clashes() for name in (clash.one, clash.other)}


class Spy:
    """Counts passes."""

    name, passes = "local", None

    def __init__(self, inner: Any) -> None:
        self.inner, self.read = inner, 0
        self.name, self.passes = inner.name, inner.passes

    def accepts(self, data: object) -> bool:
        return bool(self.inner.accepts(data))

    def add_up(self, data: object, work: Any, *, progress: Any = None) -> Any:
        self.read += 1
        return self.inner.add_up(data, work, progress=progress)


def engine_for(used: frozenset[str]) -> Spy:
    from dpgram.engines.partials import PartialsEngine

    return Spy(PartialsEngine() if "partial sums" in used else LocalEngine(threads=1))


PAIRS = [frozenset(pair) for pair in combinations(OPTIONS, 2)]
TOGETHER = [pair for pair in PAIRS if not pair >= {"partial sums", "a stream"}]


SLOW = {"auto, semidefinite", "wishart", "sketch-adaptive", "inverse-wishart-adaptive"}
"""Mechanisms whose curves take seconds: every fifth pair here, all of them in the long form."""


@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
@pytest.mark.parametrize(
    ("name", "step"),
    [(name, 5 if name in SLOW else 1) for name in ASKED]
    + [pytest.param(name, 1, marks=pytest.mark.full) for name in sorted(SLOW)],
)
def test_every_pair_works_or_is_in_the_table(
    name: str, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The same public facts give the same noise: calibrating it once is enough.
    calibrated = lru_cache(maxsize=None)(choose)
    for module in (learning, terms):
        monkeypatch.setattr(module, "choose", calibrated)
    wrong = []
    for used in TOGETHER[::step]:
        keys = [key for option in used for key in OPTIONS[option]]
        if len(set(keys)) < len(keys):  # two values of one option
            continue
        options: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-6}
        for option in used:
            options |= OPTIONS[option]
        if "models" in used:  # of columns that are not open
            options["models"] = [linear("b", ["c" if "learnt bounds" in used else "a"])]
        schema, engine = schema_for(used), engine_for(used)
        data = data_for(used, schema, options, tmp_path)
        try:
            found = publish(
                data,
                schema,
                mechanism=ASKED[name],
                entropy=SeededEntropy(7),
                engine=engine,
                progress=False,
                **options,
            )
        except OptionsError:
            outcome = "refused" if engine.read == 0 else "refused after reading"
        except Exception as problem:  # noqa: BLE001  (any other failure is what this test looks for)
            outcome = f"{type(problem).__name__}: {problem}"
        else:
            several = list(found.values()) if isinstance(found, dict) else found
            releases = [several] if isinstance(several, Release) else several
            for release in releases:
                assert Release.from_json(release.to_json()) == release
            outcome = "works"
        if outcome != ("refused" if expected(ASKED[name], used) else "works"):
            wrong.append((sorted(used), outcome))
    assert wrong == []


def test_learning_goes_with_nearly_everything() -> None:
    """What is learnt before the matrix is refused only with what the table names, and why."""
    others = {other for clash in clashes() for other in (clash.one, clash.other)}
    refused = {o for learnt in LEARNING for o in others if clash_of(learnt, o)}
    free = {"by", "blocks", "several rows per unit", "adjacency='replace-one'", mechanism_option(Auto())}
    assert not refused & free
    assert refused >= {"strict", "partial sums", "a stream"}


def test_the_table_names_each_pair_once_and_says_why() -> None:
    pairs = [frozenset((clash.one, clash.other)) for clash in clashes()]
    assert len(set(pairs)) == len(pairs)
    assert all(clash.why and clash.remedy and clash.one != clash.other for clash in clashes())
