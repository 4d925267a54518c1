"""Scores in a file: continued, not repeated; and the whole pipeline audited through the public functions."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpgram.audit import Experiment, ScoreFile, audit, audit_all, audit_scores
from dpgram.audit.gram import audit_mechanism, experiment, worst_neighbours
from dpgram.audit.publication import Pipeline, audit_pipeline, drawn_of, stored, worst_tables
from dpgram.core.noise import Entropy, SeededEntropy
from dpgram.errors import DpgramError, GuaranteeError, SchemaError, SourceError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import Gaussian, InverseNoise, PublicFacts
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.guarantee import Guarantee
from dpgram.rows import Rows
from dpgram.schema import Schema
from dpgram.schema.columns import boolean, categorical, numeric

CALLS: list[float] = []


def noisy(shift: float, entropy: Entropy) -> float:
    CALLS.append(shift)
    return shift + float(entropy.generator().standard_normal())


def scores(runs: int, path: Path | None, *, what: str = "a normal", seed: int = 1) -> object:
    return audit(
        partial(noisy, 2.0),
        partial(noisy, 0.0),
        runs=runs,
        statistic=list,
        entropy=SeededEntropy(seed),
        scores=path,
        what=what,
    )


class TestAFileOfScores:
    def test_a_second_run_continues(self, tmp_path: Path) -> None:
        path = tmp_path / "scores"
        whole = scores(1700, None)
        CALLS.clear()
        scores(1000, path)
        assert len(CALLS) == 2000
        CALLS.clear()
        assert scores(1700, path) == whole
        assert len(CALLS) == 1400
        CALLS.clear()
        assert scores(1700, path) == whole
        assert scores(1200, path) == scores(1200, None)
        assert len(CALLS) == 2400, "of which none with the file"

    def test_an_unfinished_end_is_made_again(self, tmp_path: Path) -> None:
        path = tmp_path / "scores"
        whole = scores(1500, path)
        content = path.read_bytes()
        for cut in (1, 100, 4000, 4100):
            path.write_bytes(content[:-cut])
            assert scores(1500, path) == whole
            assert path.stat().st_size == len(content)

    def test_a_damaged_chunk_is_not_trusted(self, tmp_path: Path) -> None:
        path = tmp_path / "scores"
        whole = scores(1500, path)
        content = bytearray(path.read_bytes())
        content[-5000] ^= 1
        path.write_bytes(bytes(content))
        assert scores(1500, path) == whole

    def test_of_something_else_it_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "scores"
        scores(200, path)
        with pytest.raises(SourceError, match="another audit"):
            scores(200, path, what="another normal")
        path.write_text("my thesis\n")
        with pytest.raises(SourceError, match="no scores"):
            scores(200, path)
        assert path.read_text() == "my thesis\n"

    def test_progress_is_told(self, tmp_path: Path) -> None:
        told: list[tuple[int, int]] = []
        where = PublicFacts(width=2, adjacency=adjacency("add-remove"))
        mechanism = Gaussian().calibrated(Guarantee(8.0, 1e-4), where)
        for _ in range(2):
            audit_mechanism(
                mechanism,
                where,
                runs=600,
                entropy=SeededEntropy(1),
                scores=tmp_path / "s",
                tell=lambda done, of: told.append((done, of)),
            )
        assert told[0] == (0, 2400)
        assert told[-2:] == [(2400, 2400)] * 2, "the second time all is there from the start"

    def test_a_mechanism_of_other_parameters_is_another_audit(self, tmp_path: Path) -> None:
        where = PublicFacts(width=2, adjacency=adjacency("add-remove"))
        for epsilon in (8.0, 4.0):
            mechanism = Gaussian().calibrated(Guarantee(epsilon, 1e-4), where)
            run = partial(
                audit_mechanism, mechanism, where, runs=100, scores=tmp_path / "s", entropy=SeededEntropy(1)
            )
            if epsilon == 8.0:
                run()
        with pytest.raises(SourceError, match="another audit"):
            run()


def test_experiments_need_names_of_their_own() -> None:
    one = Experiment(name="x", run_a=partial(noisy, 1.0), run_b=partial(noisy, 0.0), statistic=list)
    with pytest.raises(GuaranteeError, match="same name"):
        audit_all([one, one], runs=100, entropy=SeededEntropy(1))


def test_scores_from_anywhere_can_be_judged() -> None:
    generator = np.random.default_rng(1)
    a, b = generator.normal(3.0, 1.0, (2000, 1)), generator.normal(0.0, 1.0, (2000, 1))
    assert 2.5 < audit_scores(a, b).mu_lower <= 3.0
    with pytest.raises(GuaranteeError, match="equally many"):
        audit_scores(a, b[:-1])


class TestUnitsOfSeveralRows:
    @pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
    def test_the_neighbours_have_several_directions_and_the_full_trace(self, relation: str) -> None:
        where = PublicFacts(width=4, adjacency=adjacency(relation), unit_rows=3)
        *_, several = worst_neighbours(where)
        step = (several.a - several.b).astype(float)
        sides = 1 if relation == "add-remove" else 2
        assert np.abs(np.linalg.eigvalsh(step)).sum() == pytest.approx(sides * ROW_NORM_SQUARED, rel=1e-6)
        assert np.linalg.matrix_rank(step) > sides

    def test_a_rank_that_was_not_paid_for_is_seen(self) -> None:
        """At a small ridge an inverse moves by Δ·√rank: priced for one row, a person of three refutes it."""
        facts = partial(PublicFacts, width=3, adjacency=adjacency("add-remove"))
        *_, several = worst_neighbours(facts(unit_rows=3))
        for paid, passes in ((facts(unit_rows=3), True), (facts(), False)):
            inverse = InverseNoise(ridge=0.02).calibrated(Guarantee(8.0, 1e-4), paid)
            found = audit_all([experiment(inverse, several)], runs=600, entropy=SeededEntropy(2))
            assert found.passes(inverse.curve(paid)) == passes


MIXED = Schema(
    numeric("x", -1, 1), boolean("f"), categorical("s", ["u", "v"]), numeric("d", "2020-01-01", "2021-01-01")
)


class TestPipelines:
    @pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
    @pytest.mark.parametrize("unit", [None, "id"])
    def test_the_tables_are_neighbours_and_far_apart(self, relation: str, unit: str | None) -> None:
        schema = Schema(*(numeric(f"x{k}", -1, 1) for k in range(3)), constant=False)
        pipeline = Pipeline(
            schema=schema,
            epsilon=1.0,
            delta=1e-6,
            options={"rows": Rows(radius=1.0, unit=unit), "adjacency": relation},
        )
        limit = adjacency(relation).gram_frobenius(float(ROW_NORM_SQUARED))
        farthest = 0.0
        for pair in worst_tables(pipeline):
            ((a,), (b,)) = pipeline.exact(pair.a), pipeline.exact(pair.b)
            distance = float(np.linalg.norm((a - b).astype(float)))
            assert distance <= limit
            farthest = max(farthest, distance)
            assert (len(pair.a) == len(pair.b)) == (relation == "replace-one")
        assert farthest == pytest.approx(limit, rel=1e-3)

    def test_every_kind_of_column_and_of_file(self, tmp_path: Path) -> None:
        pipeline = Pipeline(schema=MIXED, epsilon=4.0, delta=0.0, options={"adjacency": "replace-one"})
        for pair in worst_tables(pipeline):
            exact = [
                pipeline.exact(stored(pair.a, kind, tmp_path, kind)) for kind in ("table", "csv", "parquet")
            ]
            assert all((one[0] == exact[0][0]).all() for one in exact)
        with pytest.raises(SchemaError, match="folder"):
            stored(pair.a, "csv", None, "x")

    def test_several_releases_are_judged_together(self) -> None:
        """Two blocks share one budget, which both together keep."""
        schema = Schema(numeric("x", -1, 1), numeric("y", -1, 1), constant=False)
        pipeline = Pipeline(
            schema=schema.with_blocks([["x"], ["y"]]),
            epsilon=8.0,
            delta=1e-4,
            options={"mechanism": "gaussian", "rows": Rows(radius=1.0)},
        )
        found = audit_pipeline(pipeline, worst_tables(pipeline)[:1], runs=100, entropy=SeededEntropy(1))
        assert found.passes(pipeline.curve)
        assert "release 2" in " ".join(drawn_names(pipeline))

    def test_the_form_of_what_was_published_does_not_matter(self) -> None:
        pipeline = Pipeline(schema=Schema(numeric("x", -1, 1)), epsilon=1.0, delta=0.0)
        release = pipeline.publish(pa.table({"x": [0.5]}), SeededEntropy(1))
        (drawn,) = drawn_of(release)
        (release,) = release
        assert drawn_of(drawn) == (drawn,)
        assert len(drawn_of({"u": release, "v": release})) == 2
        assert len(drawn_of([release, drawn])) == 2


def drawn_names(pipeline: Pipeline) -> tuple[str, ...]:
    from dpgram.audit.gram import Neighbours
    from dpgram.audit.publication import ReleaseStatistics

    (pair, *_) = worst_tables(pipeline)
    exact = zip(pipeline.exact(pair.a), pipeline.exact(pair.b), strict=True)
    return ReleaseStatistics(pairs=tuple(Neighbours(name="", a=a, b=b) for a, b in exact)).names


def test_a_broken_score_file_header_is_no_scores(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"[1, 2]\n")
    with pytest.raises(DpgramError, match="no scores"):
        ScoreFile(tmp_path / "x", "y")
