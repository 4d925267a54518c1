"""The whole path audited: publish() on worst-case neighbouring tables, both adjacencies, both mechanisms.

Two kinds of evidence. Exactly: with the same seed, the releases of two neighbours differ by the exact
contribution of the differing rows and by nothing else, and that contribution never exceeds the sensitivity
the noise was calibrated for. Statistically: repeated releases cannot be told apart better than promised, and
the same audit catches a `publish` whose noise is too small (confidence 0.999, fixed seeds).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flat import publish

from dpgram.audit import AuditResult, audit
from dpgram.audit.gram import Neighbours
from dpgram.core.noise import Entropy, SeededEntropy
from dpgram.core.run import Measure
from dpgram.engines.local import gram
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import (
    Drawn,
    Gaussian,
    MatrixLaplace,
)
from dpgram.privacy.accountant import GaussianEvent, PureEvent, curve_of
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.curves.base import PrivacyCurve
from dpgram.privacy.guarantee import Guarantee
from dpgram.release import Release
from dpgram.schema import Schema, categorical, numeric, product

EPSILON = {"gaussian": 8.0, "matrix-laplace": 1.0}
DELTA = 1e-4
"""Chosen so that a few hundred runs could refute them, if they were false."""


class Pair(NamedTuple):
    """Neighbouring tables that differ as much as the schema allows."""

    schema: Schema
    a: pa.Table
    b: pa.Table


def rows(*values: tuple[float, float]) -> pa.Table:
    return pa.table({"x": [x for x, _ in values], "y": [y for _, y in values]})


COMMON = ((0.3, -0.2), (-0.7, 0.1), (0.0, 0.9))
WITH_CONSTANT = Schema(numeric("x", -1, 1), numeric("y", -1, 1))
WITHOUT = Schema(numeric("x", -1, 1), numeric("y", -1, 1), constant=False)
PAIRS = {
    # One full-length row more: (1, 1, 1)/√3 of the radius in every column.
    "add-remove": Pair(WITH_CONSTANT, rows(*COMMON, (1.0, 1.0)), rows(*COMMON)),
    # Two orthogonal full-length rows.
    "replace-one": Pair(WITHOUT, rows(*COMMON, (1.0, 1.0)), rows(*COMMON, (1.0, -1.0))),
}
MECHANISMS = ["gaussian", "matrix-laplace"]


def released(pair: Pair, side: pa.Table, relation: Any, mechanism: str) -> Callable[[Entropy], Release]:
    def run(entropy: Entropy) -> Release:
        return publish(
            side,
            pair.schema,
            epsilon=EPSILON[mechanism],
            delta=DELTA,
            adjacency=relation,
            mechanism=mechanism,
            entropy=entropy,
            threads=1,
            progress=False,
            adaptive=False,
        )

    return run


def audited(relation: str, mechanism: str, runs: int, seed: int) -> AuditResult:
    pair = PAIRS[relation]
    exact = Neighbours(
        name=relation,
        a=np.array(gram(pair.a, pair.schema).cells),
        b=np.array(gram(pair.b, pair.schema).cells),
    )
    return audit(
        released(pair, pair.a, relation, mechanism),
        released(pair, pair.b, relation, mechanism),
        runs=runs,
        delta=DELTA,
        statistic=lambda found: exact.measure([Drawn(cells=r.lattice_matrix, noise=r.noise) for r in found]),
        names=exact.statistics,
        entropy=SeededEntropy(seed),
    )


def promised(relation: str, mechanism: str) -> PrivacyCurve:
    """The whole curve the release's own numbers promise, not only its (ε, δ)."""
    pair = PAIRS[relation]
    release = released(pair, pair.a, relation, mechanism)(SeededEntropy(0))
    if mechanism == "gaussian":
        return curve_of(GaussianEvent(mu=release.guarantee.mu or 0.0))
    return curve_of(PureEvent(epsilon=release.guarantee.epsilon))


class TestExactly:
    @pytest.mark.parametrize("relation", PAIRS)
    @pytest.mark.parametrize("mechanism", MECHANISMS)
    def test_neighbours_differ_by_the_differing_rows_alone(self, relation: str, mechanism: str) -> None:
        pair = PAIRS[relation]
        first, second = (
            released(pair, side, relation, mechanism)(SeededEntropy(7)).lattice_matrix
            for side in (pair.a, pair.b)
        )
        step = (gram(pair.a, pair.schema).cells - gram(pair.b, pair.schema).cells).astype(object)
        assert (first - second == step).all()
        limit = adjacency(relation).gram_frobenius(float(ROW_NORM_SQUARED))
        frobenius = math.sqrt(sum(int(cell) ** 2 for cell in step.ravel()))
        # These pairs are the worst there are: the sensitivity is met to the last digits, and not passed.
        assert 0.999 * limit < frobenius <= limit

    @settings(max_examples=60, deadline=None)
    @given(
        x=st.floats() | st.none(),
        y=st.floats() | st.none(),
        level=st.sampled_from(["a", "b", "c", "?", None]),
        clip=st.sampled_from([None, 0.5, 1.0, 1.7, 100.0]),
        missing=st.sampled_from(["drop", "midpoint"]),
    )
    def test_no_row_whatever_moves_the_matrix_by_more(
        self, x: float | None, y: float | None, level: str | None, clip: float | None, missing: Any
    ) -> None:
        """Trace and Frobenius norm of one row's contribution stay within 2^30, in integers."""
        schema = Schema(
            numeric("x", -1, 1, weight=1.3),
            numeric("y", 0, 5),
            categorical("l", ["a", "b", "c"]),
            product("x", "y"),
        )
        kinds = {"x": pa.float64(), "y": pa.float64(), "l": pa.string()}
        base = {"x": [0.5, -0.2], "y": [1.0, 2.0], "l": ["a", "b"]}
        row = {"x": x, "y": y, "l": level}
        table = pa.table({n: pa.array(base[n], kind) for n, kind in kinds.items()})
        more = pa.table({n: pa.array([*base[n], row[n]], kind) for n, kind in kinds.items()})
        with_row, without = (
            publish(
                side,
                schema,
                epsilon=1.0,
                delta=0.0,
                clip=clip,
                missing=missing,
                entropy=SeededEntropy(1),
                adaptive=False,
            ).lattice_matrix
            for side in (more, table)
        )
        step = with_row - without
        assert sum(int(cell) ** 2 for cell in step.ravel()) <= ROW_NORM_SQUARED**2
        assert 0 <= sum(int(step[i, i]) for i in range(len(step))) <= ROW_NORM_SQUARED


class TestStatistically:
    @pytest.mark.parametrize(
        ("relation", "mechanism"), [("add-remove", "gaussian"), ("replace-one", "matrix-laplace")]
    )
    def test_publish_keeps_its_promise(self, relation: str, mechanism: str) -> None:
        found = audited(relation, mechanism, runs=200, seed=1)
        assert found.passes(promised(relation, mechanism))
        assert found.passes(Guarantee(EPSILON[mechanism], DELTA))

    def test_a_third_of_the_noise_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        promise = promised("add-remove", "gaussian")
        _weaken(Gaussian, 1 / 3, monkeypatch)
        assert not audited("add-remove", "gaussian", runs=200, seed=2).passes(promise)

    @pytest.mark.full
    @pytest.mark.parametrize("relation", PAIRS)
    @pytest.mark.parametrize("mechanism", MECHANISMS)
    def test_publish_keeps_its_promise_under_a_long_look(self, relation: str, mechanism: str) -> None:
        assert audited(relation, mechanism, runs=4000, seed=3).passes(promised(relation, mechanism))

    @pytest.mark.full
    @pytest.mark.parametrize("relation", PAIRS)
    @pytest.mark.parametrize(("mechanism", "factor"), [(Gaussian, 0.8), (MatrixLaplace, 1 / 3)])
    def test_a_long_look_catches_less(
        self, relation: str, mechanism: Any, factor: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A fifth too little Gaussian noise; of matrix Laplace noise, whose worst event is rarer, a third."""
        promise = promised(relation, mechanism.name)
        _weaken(mechanism, factor, monkeypatch)
        assert not audited(relation, mechanism.name, runs=4000, seed=4).passes(promise)


def _weaken(mechanism: Any, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw with `factor` times the noise, while everything the release says stays the same."""
    honest: Any = Measure.draw

    def draw(self: Measure, exact: Any, entropy: Entropy) -> Any:
        scale = self.noise.scale * factor if mechanism is Gaussian else self.noise.scale / factor
        return honest(replace(self, noise=replace(self.noise, scale=scale)), exact, entropy)

    monkeypatch.setattr(Measure, "draw", draw)
