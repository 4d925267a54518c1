"""Persons, groups and blocks through publish(): nobody's rows, all of them, tell more than was promised.

Exactly: with one seed, releases with and without a person differ by that person's contribution alone, which
is bounded in trace and, jointly over groups, in Frobenius norm. Statistically: an audit passes, and the
row-level mode fails the very same one: equal ε, runs and seed (confidence 0.999).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flat import publish
from tests.flat import terms as agree

from dpgram.audit import AuditResult, audit
from dpgram.audit.gram import Cells, GramRun, Neighbours
from dpgram.core.noise import Entropy, SeededEntropy
from dpgram.document.fields import MeasuredRows
from dpgram.engines.local import add_up
from dpgram.errors import DpgramWarning, OptionsError, ReleaseError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import MECHANISMS, Auto, Drawn, InverseNoise, PublicFacts
from dpgram.mechanisms.choice import choose
from dpgram.mechanisms.laplace import DIAGONAL_WEIGHT
from dpgram.privacy.accountant import ComposedEvent, GaussianEvent, PureEvent, curve_of, guarantee_of
from dpgram.privacy.adjacency import AddRemove, adjacency
from dpgram.privacy.curves.base import PrivacyCurve
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.ledger import Ledger
from dpgram.publishing import ReleaseTerms
from dpgram.publishing.terms import matrix_pass
from dpgram.release import Release, load
from dpgram.schema import Schema, categorical, numeric
from dpgram.sums.exact_gram import ExactGram

SCHEMA = Schema(numeric("x", -1, 1), numeric("y", -1, 1))
VISITS = 9
"""Rows of the person in question; everybody else has one."""


def table(*, present: bool, visits: int = VISITS) -> pa.Table:
    others = [("a", 0.3, -0.2), ("b", -0.7, 0.1), ("c", 0.0, 0.9)]
    rows = others + [("person", 1.0, 1.0)] * (visits if present else 0)
    ids, x, y = zip(*rows, strict=True)
    region = ["north" if i % 2 else "south" for i in range(len(rows))]
    return pa.table(
        {"id": ids, "x": x, "y": y, "region": region, "w": [float(i % 4) for i in range(len(rows))]}
    )


EPSILON, DELTA, RUNS, SEED = 1.0, 1e-4, 800, 1
"""One test for every mode: the same promise, the same number of runs, the same seed."""
MODES: dict[str, dict[str, Any]] = {
    "persons": {"unit": "id"},
    "four rows a person": {"unit": "id", "unit_rows": 4},
    "rows": {},
}
SOUND = ["persons", "four rows a person"]


def summed(terms: ReleaseTerms, data: pa.Table) -> Cells:
    """The exact matrix that `publish` would add noise to."""
    (exact,) = add_up(data, matrix_pass((terms,), terms.rules), threads=1, progress=False)
    assert isinstance(exact, ExactGram)
    return exact.cells


def audited(mechanism: str, mode: str, *, visits: int = VISITS) -> tuple[AuditResult, PrivacyCurve]:
    """An audit of the draws on the tables with and without all rows of the person.

    Adding up is exact and the same each time, so it is done once; that the draws are those of whole releases
    is a test of its own. The curve is all that the mechanism claims, of which ε and δ are one point.
    """
    terms = agree(SCHEMA, epsilon=EPSILON, delta=DELTA, mechanism=mechanism, **MODES[mode])
    a, b = table(present=True, visits=visits), table(present=False)
    pair = Neighbours(name="person", a=summed(terms, a), b=summed(terms, b))
    found = audit(
        GramRun(mechanism=terms.mechanism, gram=pair.a),
        GramRun(mechanism=terms.mechanism, gram=pair.b),
        runs=RUNS,
        delta=DELTA,
        statistic=pair.measure,
        names=pair.statistics,
        entropy=SeededEntropy(SEED),
    )
    return found, curve_of(terms.event)


@pytest.mark.parametrize("mechanism", ["gaussian", "matrix-laplace"])
class TestAllRowsOfAPerson:
    """ε = 1, 800 runs, one seed: persons pass and rows fail, also for a person of four rows."""

    @pytest.mark.parametrize("mode", SOUND)
    def test_tell_no_more_than_promised(self, mechanism: str, mode: str) -> None:
        found, curve = audited(mechanism, mode)
        assert found.passes(Guarantee(EPSILON, DELTA))
        assert found.passes(curve)

    def test_tell_more_if_only_rows_were_promised(self, mechanism: str) -> None:
        found, curve = audited(mechanism, "rows")
        assert not found.passes(Guarantee(EPSILON, DELTA))
        assert not found.passes(curve)

    def test_tell_more_even_of_a_person_of_four_rows(self, mechanism: str) -> None:
        found, curve = audited(mechanism, "rows", visits=4)
        assert not found.passes(curve)

    @pytest.mark.parametrize("mode", MODES)
    def test_the_draws_audited_are_those_of_whole_releases(self, mechanism: str, mode: str) -> None:
        terms = agree(SCHEMA, epsilon=EPSILON, delta=DELTA, mechanism=mechanism, **MODES[mode])
        for present in (True, False):
            data = table(present=present)
            whole = released(data, mechanism, mode)(SeededEntropy(4))
            drawn = terms.mechanism.draw(summed(terms, data), SeededEntropy(4))
            assert (whole.lattice_matrix == drawn.cells).all()
            assert whole.mechanism.parameters == terms.used().parameters

    @pytest.mark.full
    @pytest.mark.parametrize("mode", MODES)
    def test_whole_releases(self, mechanism: str, mode: str) -> None:
        """The same audit with everything done anew in every run."""
        terms = agree(SCHEMA, epsilon=EPSILON, delta=DELTA, mechanism=mechanism, **MODES[mode])
        a, b = table(present=True), table(present=False)
        pair = Neighbours(name="person", a=summed(terms, a), b=summed(terms, b))
        found = audit(
            released(a, mechanism, mode),
            released(b, mechanism, mode),
            runs=RUNS,
            delta=DELTA,
            statistic=lambda releases: pair.measure(
                [Drawn(cells=release.lattice_matrix, noise=release.noise) for release in releases]
            ),
            names=pair.statistics,
            entropy=SeededEntropy(SEED),
        )
        assert found.passes(Guarantee(EPSILON, DELTA)) == (mode in SOUND)


def released(data: pa.Table, mechanism: str, mode: str) -> Callable[[Entropy], Release]:
    return lambda entropy: publish(
        data,
        SCHEMA,
        epsilon=EPSILON,
        delta=DELTA,
        mechanism=mechanism,
        entropy=entropy,
        threads=1,
        progress=False,
        **MODES[mode],
    )


def contribution(data: pa.Table, without: pa.Table, **options: Any) -> list[Any]:
    """What a person adds to each release, exactly: the noise of one seed cancels."""
    found = []
    for side in (data, without):
        made = publish(side, SCHEMA, epsilon=1.0, delta=1e-6, entropy=SeededEntropy(5), **options)
        several = made.values() if isinstance(made, dict) else made if isinstance(made, tuple) else [made]
        found.append([release.lattice_matrix for release in several])
    return [a - b for a, b in zip(*found, strict=True)]


@settings(deadline=None, max_examples=40)
@given(
    rows=st.lists(
        st.tuples(st.floats(), st.floats(), st.sampled_from(["north", "south", "else"]), st.floats()),
        min_size=1,
        max_size=12,
    ),
    unit_rows=st.sampled_from([None, 1, 2, 5]),
    split=st.sampled_from(
        [{}, {"by": categorical("region", ["north", "south"])}, {"weight": numeric("w", 0, 3)}]
    ),
)
def test_no_person_moves_all_releases_together_by_more_than_one_row(
    rows: list[tuple[float, float, str, float]], unit_rows: int | None, split: dict[str, Any]
) -> None:
    base = table(present=False)
    x, y, region, w = zip(*rows, strict=True)
    own = pa.table({"id": ["p"] * len(x), "x": x, "y": y, "region": region, "w": w}, schema=base.schema)
    steps = contribution(
        pa.concat_tables([own, base]), base, unit="id", unit_rows=unit_rows, mechanism="gaussian", **split
    )
    trace = sum(int(step[i, i]) for step in steps for i in range(len(step)))
    frobenius = sum(int(cell) ** 2 for step in steps for cell in step.ravel())
    assert 0 <= trace <= ROW_NORM_SQUARED
    assert frobenius <= ROW_NORM_SQUARED**2


@settings(deadline=None, max_examples=40)
@given(
    before=st.lists(
        st.tuples(st.floats(), st.floats(), st.sampled_from(["north", "south", "else"])),
        min_size=1,
        max_size=6,
    ),
    after=st.lists(
        st.tuples(st.floats(), st.floats(), st.sampled_from(["north", "south", "else"])),
        min_size=1,
        max_size=6,
    ),
    unit_rows=st.sampled_from([None, 1, 2]),
)
def test_a_replaced_person_moves_all_groups_together_by_no_more_than_one_matrix(
    before: list[tuple[float, float, str]], after: list[tuple[float, float, str]], unit_rows: int | None
) -> None:
    """From whatever groups to whatever others: Δ² ≤ 2·2^60, the price of one matrix under replace-one."""
    base = table(present=False)

    def with_person(rows: list[tuple[float, float, str]]) -> pa.Table:
        x, y, region = zip(*rows, strict=True)
        w = [1.0] * len(x)
        own = pa.table({"id": ["p"] * len(x), "x": x, "y": y, "region": region, "w": w}, schema=base.schema)
        return pa.concat_tables([own, base])

    options = {"unit": "id", "unit_rows": unit_rows, "mechanism": "gaussian", "adjacency": "replace-one"}
    by = categorical("region", ["north", "south"])
    steps = contribution(with_person(before), with_person(after), by=by, adaptive=False, **options)
    assert sum(int(cell) ** 2 for step in steps for cell in step.ravel()) <= 2 * ROW_NORM_SQUARED**2
    assert sum(float(np.abs(np.linalg.eigvalsh(step.astype(float))).sum()) for step in steps) <= (
        2 * ROW_NORM_SQUARED * (1 + 1e-9)
    )


class TestGroupsUnderReplaceOne:
    """At the price of one matrix, where that is proven; the number of rows of a group is no public fact."""

    GROUPS: ClassVar[dict[str, Any]] = {
        "by": categorical("region", ["north", "south"]),
        "adjacency": "replace-one",
        "entropy": SeededEntropy(1),
    }

    @pytest.mark.parametrize("mechanism", ["gaussian", "matrix-laplace"])
    @pytest.mark.parametrize("adaptive", [True, False])
    def test_the_noise_is_that_of_one_matrix(self, mechanism: str, adaptive: bool) -> None:
        delta = 1e-6 if mechanism == "gaussian" else 0.0
        asked: dict[str, Any] = {"epsilon": 1.0, "delta": delta, "adaptive": adaptive, "mechanism": mechanism}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DpgramWarning)
            found = publish(table(present=True), SCHEMA, **asked, **self.GROUPS)
            whole = publish(
                table(present=True), SCHEMA, adjacency="replace-one", entropy=SeededEntropy(1), **asked
            )
        for release in found.values():
            assert release.public_rows is None
            assert release.noise == whole.noise
            assert release.guarantee == whole.guarantee
            assert load_again(release) == release
        assert whole.public_rows == 12

    def test_learnt_bounds_pay_for_the_number_of_rows(self) -> None:
        draw = np.random.default_rng(1)
        data = {
            "x": draw.normal(size=8_000),
            "y": draw.uniform(-1, 1, 8_000),
            "region": draw.choice(["north", "south"], 8_000),
        }
        schema = Schema(numeric("x"), numeric("y", -1, 1))
        found = publish(
            data,
            schema,
            epsilon=2.0,
            delta=1e-6,
            bounds_budget=0.2,
            clip=1.5,
            **self.GROUPS,
        )
        for release in found.values():
            assert release.public_rows is None
            assert any(isinstance(each, MeasuredRows) for each in release.measured)
            assert load_again(release) == release

    @pytest.mark.parametrize("name", [n for n, kind in MECHANISMS.items() if not kind.replaced_in_groups])
    def test_other_mechanisms_are_refused(self, name: str) -> None:
        asked = MECHANISMS[name](**PARAMETERS.get(name, {}))
        with pytest.raises(OptionsError, match="changes two matrices"):
            agree(
                SCHEMA,
                epsilon=1.0,
                delta=1e-6,
                by=self.GROUPS["by"],
                adjacency="replace-one",
                mechanism=asked,
            )

    def test_entrywise_noise_would_cost_twice_as_much(self) -> None:
        """Why it is refused: the cells of one matrix move by less than those of two."""
        for width in range(1, 30):
            one = adjacency("replace-one").gram_l1(width, 1.0, diagonal=DIAGONAL_WEIGHT)
            two = 2.0 * AddRemove().gram_l1(width, 1.0, diagonal=DIAGONAL_WEIGHT)
            assert two > 1.2 * one

    def test_one_column_has_no_entrywise_noise(self) -> None:
        """`auto` takes it for a matrix of one cell under replace-one, but not where two can change."""
        one, two = (
            PublicFacts(width=1, adjacency=adjacency("replace-one"), two_matrices=b) for b in (False, True)
        )
        assert choose(Auto(), Guarantee(1.0), one, None).mechanism.name == "laplace"
        assert choose(Auto(), Guarantee(1.0), two, None).mechanism.name == "matrix-laplace"

    def test_files_say_nothing_else(self) -> None:
        import msgspec

        found = publish(
            table(present=True),
            SCHEMA,
            epsilon=1.0,
            delta=0.0,
            adaptive=False,
            mechanism="laplace",
            by=self.GROUPS["by"],
        )
        with pytest.raises(ReleaseError, match="contradict"):
            msgspec.structs.replace(found["north"], adjacency="replace-one")
        for release in publish(
            table(present=True), SCHEMA, epsilon=1.0, delta=0.0, adaptive=False, **self.GROUPS
        ).values():
            with pytest.raises(ReleaseError, match="a row count belongs"):
                msgspec.structs.replace(release, public_rows=12)


def load_again(release: Release) -> Release:
    return Release.from_json(release.to_json())


PARAMETERS: dict[str, dict[str, Any]] = {
    "inverse-noise": {"ridge": 10.0},
    "inverse-wishart": {"degrees": 100},
    "inverse-wishart-adaptive": {"degrees": 100},
}


class TestMechanisms:
    """Each of the twelve: proven for units of several rows, or refused."""

    @pytest.mark.parametrize("name", MECHANISMS)
    def test_proven_or_refused(self, name: str) -> None:
        asked, delta = MECHANISMS[name](**PARAMETERS.get(name, {})), 1e-6
        if asked.one_row_per_unit:
            with pytest.raises(OptionsError, match="units of one row only"):
                agree(SCHEMA, epsilon=1.0, delta=delta, unit="id", mechanism=asked)
            assert agree(SCHEMA, epsilon=1.0, delta=delta, unit="id", unit_rows=1, mechanism=asked)
        else:
            assert agree(SCHEMA, epsilon=1.0, delta=delta, unit="id", mechanism=asked)

    def test_those_proven_for_one_row_are_known(self) -> None:
        """A proof for several rows, or none any more, is a change that somebody has to make here as well."""
        found = {name for name, kind in MECHANISMS.items() if kind.one_row_per_unit}
        wishart = {"wishart", "sketch", "sketch-adaptive", "inverse-wishart", "inverse-wishart-adaptive"}
        assert found == wishart
        joint = {name for name, kind in MECHANISMS.items() if kind.joint_groups}
        assert joint == {"gaussian", "matrix-laplace", "laplace"}

    @pytest.mark.parametrize(
        "name", [n for n, kind in MECHANISMS.items() if not (kind.one_row_per_unit or kind.joint_groups)]
    )
    def test_groups_of_units_need_an_additive_noise(self, name: str) -> None:
        asked = MECHANISMS[name](**PARAMETERS.get(name, {}))
        groups = categorical("region", ["north", "south"])
        with pytest.raises(OptionsError, match="at the price of one"):
            agree(SCHEMA, epsilon=1.0, delta=1e-6, unit="id", by=groups, mechanism=asked)
        assert agree(SCHEMA, epsilon=1.0, delta=1e-6, by=groups, mechanism=asked)

    def test_the_inverse_moves_farther_for_several_rows(self) -> None:
        one, many = (
            InverseNoise(ridge=0.1).calibrated(
                Guarantee(1.0, 1e-6), PublicFacts(width=3, adjacency=AddRemove(), unit_rows=rows)
            )
            for rows in (1, 50)
        )
        assert many.sigma > 1.3 * one.sigma

    @pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
    def test_brute_force_over_small_units(self, relation: str) -> None:
        """Random units of up to four rows never pass the sensitivities that mechanisms pay for."""
        rng, rule = np.random.default_rng(7), adjacency(relation)
        for _ in range(3_000):
            width, ridge = int(rng.integers(1, 5)), float(rng.uniform(0.05, 3.0))
            common = rng.normal(size=(int(rng.integers(0, 4)), width)) * rng.uniform(0, 2)
            base = common.T @ common
            units = []
            for _ in range(2):
                x = rng.normal(size=(int(rng.integers(1, 5)), width)) * (rng.random((1, width)) < 0.7)
                scale = np.trace(x.T @ x)
                units.append(x.T @ x / scale if scale > 0 else np.zeros((width, width)))
            if relation == "add-remove":
                units[1] = np.zeros((width, width))
            a, b = base + units[0], base + units[1]
            step = a - b
            l1 = np.abs(step[np.triu_indices(width, 1)]).sum() + DIAGONAL_WEIGHT * np.abs(np.diag(step)).sum()
            values = np.linalg.eigvalsh(step)
            spectra = np.abs(np.linalg.eigvalsh(a) - np.linalg.eigvalsh(b))
            eye = ridge * np.eye(width)
            inverse = np.linalg.norm(np.linalg.inv(a + eye) - np.linalg.inv(b + eye))
            slack = 1 + 1e-9
            assert np.linalg.norm(step) <= rule.gram_frobenius(1.0) * slack
            assert l1 <= rule.gram_l1(width, 1.0, diagonal=DIAGONAL_WEIGHT) * slack
            assert values.max() - min(values.min(), 0.0) <= rule.utility_range(1.0) * slack
            assert spectra.sum() <= rule.eigenvalue_l1(1.0) * slack
            assert inverse <= rule.inverse_frobenius(1.0, ridge, rank=min(4, width)) * slack


class TestReleases:
    def test_units_are_recorded_and_counted(self, tmp_path: Path) -> None:
        data = pa.concat_tables([table(present=True)] * 500)
        data = data.set_column(0, "id", pa.array([f"p{i // 4}" for i in range(data.num_rows)]))
        persons = publish(
            data, SCHEMA, epsilon=10.0, delta=0.0, unit="id", mechanism="matrix-laplace", adaptive=False
        )
        rows = publish(data, SCHEMA, epsilon=10.0, delta=0.0, unit="id", unit_rows=4, adaptive=False)
        assert persons.count() == pytest.approx(data.num_rows / 4, rel=0.02)
        assert rows.count() == pytest.approx(data.num_rows, rel=0.02)
        again = load(rows.save(tmp_path / "r.dpgram.json"))
        assert again == rows
        assert again.unit_rule is not None
        assert (again.unit_rule.counts, again.unit_rule.rows_at_most) == ("rows", 4)
        assert "all rows of any one 'id'" in persons.guarantee.statement
        assert "each 'id' counts as one" in str(persons)

    def test_under_replace_one_the_number_of_units_is_public(self) -> None:
        base = table(present=True)
        odd = base.set_column(1, "x", pa.array([None] * base.num_rows, pa.float64()))
        for data in (base, pa.concat_tables([base, odd])):
            found = publish(
                data, SCHEMA, epsilon=1.0, delta=0.0, unit="id", adjacency="replace-one", adaptive=False
            )
            assert found.public_rows == 4
        with (
            pytest.warns(match="no row of the data was usable"),
            pytest.warns(match="cells are missing"),
            pytest.warns(match="nothing is counted before the matrix"),
        ):
            # Whose rows are all dropped is a unit all the same.
            found = publish(
                odd, SCHEMA, epsilon=1.0, delta=0.0, unit="id", adjacency="replace-one", adaptive=False
            )
        assert found.public_rows == 4

    def test_groups_for_one_charge(self, tmp_path: Path) -> None:
        ledger = Ledger.create(tmp_path / "l", name="l", epsilon=3.0, delta=1e-5)
        schema = Schema(*SCHEMA.columns, categorical("region", ["north", "south", "west"]))
        found = publish(
            table(present=True),
            schema,
            epsilon=1.0,
            delta=1e-6,
            mechanism="gaussian",
            by="region",
            ledger=ledger,
            adaptive=False,
        )
        assert list(found) == ["north", "south", "west"]
        assert len(ledger.history()) == 1
        assert ledger.verify(found).unclaimed == ()
        for level, release in found.items():
            assert release.group is not None
            assert (release.group.column, release.group.level) == ("region", level)
            assert release.schema == SCHEMA
            assert release.guarantee.epsilon == 1.0
            assert Release.from_json(release.to_json()) == release

    @pytest.mark.parametrize("delta", [1e-6, 0.0])
    def test_blocks_share_one_budget_optimally(self, delta: float, tmp_path: Path) -> None:
        schema = Schema(*(numeric(name, -1, 1) for name in "abcdefgh"))
        data = {name: [0.1, 0.2] for name in "abcdefgh"}
        blocks = [["a", "b"], list("abcdefgh"), ["c"]]
        currency: dict[str, Any] = {} if delta else {"delta": 0.0}
        ledger = Ledger.create(tmp_path / "l", **({"name": "l", "epsilon": 3.0, "delta": 1e-5} | currency))
        found = publish(data, schema, epsilon=1.0, delta=delta, blocks=blocks, ledger=ledger, adaptive=False)
        assert [release.columns[1:] for release in found] == [tuple(block) for block in blocks]
        assert ledger.verify(found).unclaimed == ()
        event = ledger.history()[0].event
        assert isinstance(event, ComposedEvent)
        assert len(event.parts) == 3
        assert guarantee_of(event, delta).epsilon == pytest.approx(1.0, rel=1e-6)
        assert guarantee_of(event, delta).epsilon <= 1.0 + 1e-12
        shares = [part.mu**2 if isinstance(part, GaussianEvent) else part.epsilon for part in event.parts]
        assert _objective(found) == pytest.approx(min(_moved(found, shares, delta)), rel=1e-6)
        for number, release in enumerate(found, start=1):
            assert release.block is not None
            assert (release.block.number, release.block.of) == (number, 3)
            assert release.guarantee.epsilon < 1.0
            assert release.block.joint.epsilon == 1.0
            assert "together" in str(release)
            own = (
                GaussianEvent(mu=release.guarantee.mu)
                if release.guarantee.mu
                else PureEvent(release.guarantee.epsilon)
            )
            assert curve_of(own).within(release.guarantee.epsilon, release.guarantee.delta)
            assert Release.from_json(release.to_json()) == release

    def test_contradictions_are_refused(self) -> None:
        import msgspec

        release = publish(table(present=True), SCHEMA, epsilon=1.0, delta=0.0, unit="id", adaptive=False)
        for change in ({"unit": None}, {"unit_rule": None}):
            with pytest.raises(ReleaseError, match="contradict"):
                msgspec.structs.replace(release, **change)

    def test_survey_weights_count_the_population(self) -> None:
        data = pa.table({"x": [0.0] * 4000, "y": [0.5] * 4000, "w": [1.0, 3.0, 5.0, -1.0] * 1000})
        found = publish(data, SCHEMA, epsilon=10.0, delta=0.0, weight=numeric("w", 0, 5), adaptive=False)
        assert found.count() == pytest.approx(9_000, rel=0.02)
        assert found.mean()["y"] == pytest.approx(0.5, abs=0.02)


def _objective(found: tuple[Release, ...]) -> float:
    """Σ d·σ², σ in encoded units."""
    return sum(r.schema.width * (r.noise.diagonal_sd * (r.radius / 2**15) ** 2) ** 2 for r in found)


def _moved(found: tuple[Release, ...], shares: list[float], delta: float) -> list[float]:
    """The same sum with the budget split a little otherwise: none is smaller."""
    totals = [_objective(found)]
    power = 1.0 if delta else 2.0
    for i in range(len(shares)):
        for j in range(len(shares)):
            moved = list(shares)
            moved[i] *= 1.05
            moved[j] -= moved[i] - shares[i] if i != j else 0.0
            if i != j and moved[j] > 0:
                totals.append(
                    sum(
                        r.schema.width
                        * (r.noise.diagonal_sd * (r.radius / 2**15) ** 2) ** 2
                        * (old / new) ** power
                        for r, old, new in zip(found, shares, moved, strict=True)
                    )
                )
    assert math.isfinite(max(totals))
    return totals
