"""publish(): the order of its steps, what it refuses, what it charges, and what may depend on the data."""

from __future__ import annotations

import json
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
from msgspec.structs import replace
from tests.flat import publish
from tests.flat import terms as agree

import dpgram as dg
from dpgram.core.noise import SeededEntropy, SystemEntropy
from dpgram.core.run import Measure
from dpgram.engines.local import LocalEngine, gram
from dpgram.errors import (
    BudgetExceeded,
    DataError,
    DpgramError,
    DpgramWarning,
    GuaranteeError,
    LedgerError,
    MechanismError,
    OptionsError,
    SchemaError,
    SourceError,
)
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import Auto, Gaussian, MatrixLaplace, PublicFacts
from dpgram.mechanisms.choice import choose
from dpgram.privacy.accountant import GaussianEvent, PureEvent
from dpgram.privacy.adjacency import AddRemove, ReplaceOne, adjacency
from dpgram.privacy.curves.base import GaussianCurve
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.ledger import Ledger
from dpgram.publishing import CuratorReport, terms
from dpgram.release import Release
from dpgram.schema import Schema, boolean, categorical, legendre, numeric, product

SCHEMA = Schema(
    numeric("age", 18, 90),
    categorical("smoker", ["no", "yes"]),
    boolean("active"),
    numeric("charges", 0, 50_000),
    product("age", "charges"),
    legendre("age", 2),
)

KINDS = {"age": pa.float64(), "smoker": pa.string(), "active": pa.bool_(), "charges": pa.float64()}


def table(rows: int = 50) -> pa.Table:
    draw = np.random.default_rng(3)
    columns = {
        "age": draw.uniform(18, 90, rows).tolist(),
        "smoker": draw.choice(["no", "yes"], rows).tolist(),
        "active": draw.choice([True, False], rows).tolist(),
        "charges": draw.uniform(0, 50_000, rows).tolist(),
    }
    return pa.table({name: pa.array(columns[name], kind) for name, kind in KINDS.items()})


def one_row(**values: object) -> pa.Table:
    row = {"age": 40.0, "smoker": "no", "active": True, "charges": 100.0} | values
    return pa.table({name: pa.array([row[name]], kind) for name, kind in KINDS.items()})


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "a.ledger", name="a", epsilon=3.0, delta=1e-5)


class TestRelease:
    @pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
    def test_gaussian(self, relation: Any) -> None:
        release = publish(
            table(), SCHEMA, epsilon=1.0, delta=1e-6, mechanism="gaussian", adjacency=relation, adaptive=False
        )
        told = release.guarantee
        assert (told.epsilon, told.delta, told.numerical_delta) == (1.0, 1e-6, 0.0)
        assert told.mu is not None
        assert GaussianCurve(told.mu).delta(1.0) <= 1e-6
        assert told.rho == pytest.approx(told.mu**2 / 2)
        assert release.noise.diagonal_sd * told.mu == pytest.approx(
            adjacency(relation).gram_frobenius(float(ROW_NORM_SQUARED))
        )
        assert release.entropy == "system"
        assert release.receipt is None
        assert Release.from_json(release.to_json()) == release

    @pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
    def test_pure(self, relation: Any) -> None:
        release = publish(table(), SCHEMA, epsilon=1.0, delta=0.0, adjacency=relation, adaptive=False)
        assert release.mechanism.name == "matrix-laplace"
        assert (release.guarantee.epsilon, release.guarantee.delta) == (1.0, 0.0)
        assert release.guarantee.mu is None
        assert Release.from_json(release.to_json()) == release

    @pytest.mark.parametrize("mechanism", ["eigenvectors", "deflation"])
    def test_a_pure_guarantee_holds_without_exception(self, mechanism: str) -> None:
        release = publish(table(), SCHEMA, epsilon=1.0, delta=0.0, mechanism=mechanism, adaptive=False)
        assert release.guarantee.numerical_delta == 0
        assert "without exception" in release.guarantee.statement
        assert "numerical δ" not in str(release)

    def test_what_floating_point_cost_an_earlier_release_is_said(self) -> None:
        release = publish(table(), SCHEMA, epsilon=1.0, delta=1e-6, adaptive=False)
        earlier = replace(release, guarantee=replace(release.guarantee, numerical_delta=1e-12))
        assert "numerical δ" in str(earlier)

    def test_the_matrix_is_the_exact_one_plus_noise_of_the_stated_law(self) -> None:
        """Σ (cell − exact)² / variance over 10 releases of 45 cells: 450 degrees of freedom, α = 1e-6."""
        exact = gram(table(), SCHEMA).cells.astype(float)
        total = 0.0
        rows, columns = np.tril_indices(SCHEMA.width)
        for seed in range(10):
            release = publish(
                table(),
                SCHEMA,
                epsilon=1.0,
                delta=1e-6,
                mechanism="gaussian",
                entropy=SeededEntropy(seed),
                adaptive=False,
            )
            deviation = (release.lattice_matrix.astype(float) - exact)[rows, columns]
            sd = np.where(rows == columns, release.noise.diagonal_sd, release.noise.offdiagonal_sd)
            total += float(np.sum((deviation / sd) ** 2))
        degrees = 10 * len(rows)
        assert abs(total - degrees) < 4.9 * math.sqrt(2 * degrees)

    def test_next_to_no_noise_gives_the_table_back(self) -> None:
        with pytest.warns(DpgramWarning, match="epsilon"):
            release = publish(table(4000), SCHEMA, epsilon=1e6, delta=0.0, adaptive=False)
        assert release.count() == pytest.approx(4000, rel=1e-3)
        assert release.mean()["age"] == pytest.approx(np.mean(table(4000)["age"].to_numpy()), rel=1e-3)

    def test_fresh_noise_every_time(self) -> None:
        first, second = (publish(table(), SCHEMA, epsilon=1.0, delta=1e-6, adaptive=False) for _ in range(2))
        assert first.published.cells != second.published.cells

    def test_seeded_noise_is_marked(self) -> None:
        first, second = (
            publish(table(), SCHEMA, epsilon=1.0, delta=1e-6, entropy=SeededEntropy(1), adaptive=False)
            for _ in range(2)
        )
        assert first == second
        assert first.entropy == "seeded"

    def test_public_rows_are_those_read_before_any_was_dropped(self) -> None:
        data = pa.concat_tables([table(50), one_row(age=None), one_row(smoker="sometimes")])
        release = publish(data, SCHEMA, epsilon=1.0, delta=1e-6, adjacency="replace-one", adaptive=False)
        assert release.public_rows == 52
        assert publish(data, SCHEMA, epsilon=1.0, delta=1e-6, adaptive=False).public_rows is None

    def test_clip_is_the_radius(self) -> None:
        assert publish(table(), SCHEMA, epsilon=1.0, delta=1e-6, clip=1.5, adaptive=False).radius == 1.5
        unclipped = publish(table(), SCHEMA, epsilon=1.0, delta=1e-6, adaptive=False)
        assert unclipped.radius == pytest.approx(math.sqrt(SCHEMA.max_norm_squared))

    def test_strict_is_recorded(self) -> None:
        release = publish(
            table(), SCHEMA, epsilon=1.0, delta=1e-6, strict=True, missing="midpoint", adaptive=False
        )
        assert release.policy.strict
        assert release.policy.missing == "midpoint"

    def test_an_empty_table_is_published_like_any_other(self) -> None:
        with pytest.warns(DpgramWarning, match="no row"):
            release = publish(table(0), SCHEMA, epsilon=1.0, delta=1e-6, adaptive=False)
        assert Release.from_json(release.to_json()) == release


class TestOrder:
    """validate → price → aggregate → charge → draw → (report)."""

    @pytest.fixture
    def steps(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        seen: list[str] = []

        def spied(owner: Any, name: str, label: str) -> None:
            original: Callable[..., Any] = getattr(owner, name)

            def wrapper(*args: Any, **kwargs: Any) -> Any:
                seen.append(label)
                return original(*args, **kwargs)

            monkeypatch.setattr(owner, name, wrapper)

        spied(terms, "choose", "choose")
        spied(Ledger, "check", "check")
        spied(LocalEngine, "add_up", "aggregate")
        spied(Ledger, "charge", "charge")
        spied(Measure, "draw", "draw")
        return seen

    def test_order(self, steps: list[str], ledger: Ledger) -> None:
        publish(
            table(),
            SCHEMA,
            epsilon=1.0,
            delta=1e-6,
            ledger=ledger,
            report=lambda _: steps.append("report"),
            adaptive=False,
        )
        assert steps == ["choose", "check", "aggregate", "charge", "draw", "report"]

    def test_what_does_not_fit_is_refused_before_the_data_is_read(
        self, steps: list[str], ledger: Ledger
    ) -> None:
        with pytest.raises(BudgetExceeded):
            publish(table(), SCHEMA, epsilon=4.0, delta=1e-5, ledger=ledger, adaptive=False)
        assert steps == ["choose", "check"]

    def test_a_refused_charge_draws_nothing(
        self, steps: list[str], ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Somebody else spends the budget between the check and the charge."""
        event = GaussianEvent(mu=0.7)

        def race(_: int) -> None:
            ledger.charge(event, adjacency="add-remove", unit=None)

        with pytest.raises(BudgetExceeded):
            publish(table(), SCHEMA, epsilon=1.0, delta=1e-6, ledger=ledger, progress=race, adaptive=False)
        assert "draw" not in steps
        assert [entry.event for entry in ledger.history()] == [event]

    def test_a_failed_draw_stays_charged(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object) -> None:
            raise RuntimeError("no entropy")

        monkeypatch.setattr(Measure, "draw", broken)
        with pytest.raises(RuntimeError, match="no entropy"):
            publish(table(), SCHEMA, epsilon=1.0, delta=1e-6, ledger=ledger, adaptive=False)
        assert len(ledger.history()) == 1

    def test_agree_reads_and_spends_nothing(self, steps: list[str], ledger: Ledger) -> None:
        terms = agree(SCHEMA, epsilon=1.0, delta=1e-6, ledger=ledger)
        assert steps == ["choose", "check"]
        assert terms.mechanism.name == "gaussian"
        assert ledger.history() == ()


BAD_CALLS: dict[str, tuple[dict[str, Any], type[DpgramError]]] = {
    "epsilon zero": ({"epsilon": 0.0}, GuaranteeError),
    "epsilon negative": ({"epsilon": -1.0}, GuaranteeError),
    "epsilon nan": ({"epsilon": math.nan}, GuaranteeError),
    "epsilon text": ({"epsilon": "1"}, GuaranteeError),
    "epsilon bool": ({"epsilon": True}, GuaranteeError),
    "epsilon tiny": ({"epsilon": 1e-9}, GuaranteeError),
    "epsilon enormous": ({"epsilon": 1000.0, "mechanism": "gaussian"}, DpgramError),
    "delta negative": ({"delta": -1e-6}, GuaranteeError),
    "delta one": ({"delta": 1.0}, GuaranteeError),
    "delta none": ({"delta": None}, GuaranteeError),
    "gaussian without delta": ({"delta": 0.0, "mechanism": "gaussian"}, OptionsError),
    "pure release dearer than the budget": ({"delta": 0.0}, BudgetExceeded),
    "adjacency unknown": ({"adjacency": "swap"}, GuaranteeError),
    "adjacency not the ledger's": ({"adjacency": "replace-one"}, LedgerError),
    "clip zero": ({"clip": 0.0}, DpgramError),
    "clip text": ({"clip": "tight"}, DpgramError),
    "mechanism unknown": ({"mechanism": "gauss"}, MechanismError),
    "missing unknown": ({"missing": "guess"}, DpgramError),
    "unit rows without a unit": ({"unit_rows": 3}, GuaranteeError),
    "unit that is published": ({"unit": "age"}, SchemaError),
    "unit with a mechanism for one row": (
        {"unit": "person", "mechanism": "sketch", "delta": 1e-6},
        OptionsError,
    ),
    "unit not the ledger's": ({"unit": "person"}, LedgerError),
    "unit that is no name": ({"unit": 7}, GuaranteeError),
    "too many rows a unit": ({"unit": "person", "unit_rows": 10**6}, GuaranteeError),
    "unit and group in one column": ({"unit": "x", "by": categorical("x", ["a"])}, SchemaError),
    "groups of a number": ({"by": "age"}, SchemaError),
    "groups under replace-one": (
        {"by": categorical("region", ["north"]), "adjacency": "replace-one", "mechanism": "laplace"},
        OptionsError,
    ),
    "one block": ({"blocks": [["age"]]}, SchemaError),
    "a block that is text": ({"blocks": ["age", "age"]}, SchemaError),
    "a block with an unknown column": ({"blocks": [["age"], ["height"]]}, SchemaError),
    "a block that repeats a column": ({"blocks": [["age", "age"], ["age"]]}, SchemaError),
    "blocks with another mechanism": ({"blocks": [["age"], ["age"]], "mechanism": "sketch"}, OptionsError),
    "blocks and groups": (
        {"blocks": [["age"], ["age"]], "by": categorical("region", ["north"])},
        OptionsError,
    ),
    "weights from below zero": ({"weight": numeric("w", -1, 1)}, SchemaError),
    "weights without bounds": ({"weight": numeric("w")}, SchemaError),
    "rows zero": ({"rows": 0}, GuaranteeError),
    "rows text": ({"rows": "many"}, GuaranteeError),
    "threads zero": ({"threads": 0}, DpgramError),
    "threads text": ({"threads": "2"}, DpgramError),
    "threads fraction": ({"threads": 1.5}, DpgramError),
    "seeded entropy": ({"entropy": SeededEntropy(1)}, MechanismError),
    "over budget": ({"epsilon": 4.0, "delta": 1e-5}, BudgetExceeded),
    "schema of another type": ({"schema": {"age": 1}}, SchemaError),
    "schema without bounds": ({"schema": Schema(numeric("age"))}, SchemaError),
    "column missing": ({"schema": Schema(numeric("height", 0, 3))}, SourceError),
    "file missing": ({"data": "nowhere.parquet"}, SourceError),
    "data of a strange type": ({"data": 5}, SourceError),
    "strict violation": (
        {"data": pa.concat_tables([table(), one_row(age=200.0)]), "strict": True},
        DataError,
    ),
    "note too long": ({"note": "x" * 5000}, LedgerError),
}


class TestUserErrors:
    @pytest.mark.parametrize("case", BAD_CALLS)
    def test_the_ledger_is_unchanged_to_the_byte(self, case: str, ledger: Ledger) -> None:
        arguments, error = BAD_CALLS[case]
        call: dict[str, Any] = {"data": table(), "schema": SCHEMA, "epsilon": 1.0, "delta": 1e-6} | arguments
        before = ledger.path.read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DpgramWarning)
            with pytest.raises(error):
                publish(call.pop("data"), call.pop("schema"), ledger=ledger, **call)
        assert ledger.path.read_bytes() == before
        assert [entry.name for entry in ledger.path.parent.iterdir()] == [ledger.path.name]

    def test_a_bar_that_fails_before_the_charge_costs_nothing(self, ledger: Ledger) -> None:
        def failing(_: object) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            publish(table(), SCHEMA, epsilon=1.0, delta=1e-6, ledger=ledger, progress=failing)
        assert ledger.history() == ()

    @pytest.mark.parametrize("adaptive", [True, False])
    def test_a_report_that_fails_costs_no_release(self, adaptive: bool, ledger: Ledger) -> None:
        """It comes after the draw, and cannot stop what was paid for."""

        def failing(_: object) -> None:
            raise ZeroDivisionError

        with pytest.warns(DpgramWarning, match="the release is whole"):
            release = publish(
                table(), SCHEMA, epsilon=1.0, delta=1e-6, ledger=ledger, report=failing, adaptive=adaptive
            )
        assert release.receipt is not None
        assert len(ledger.history()) == 1

    def test_a_broken_installation_is_found_before_the_charge(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def missing(*_: object) -> None:
            raise ImportError("no sampler")

        monkeypatch.setattr(SystemEntropy, "discrete_gaussian", missing)
        with pytest.raises(ImportError, match="no sampler"):
            publish(table(), SCHEMA, epsilon=1.0, delta=1e-6, ledger=ledger, adaptive=False)
        assert ledger.history() == ()

    def test_ledger_of_a_strange_type(self) -> None:
        with pytest.raises(LedgerError, match="path"):
            publish(table(), SCHEMA, epsilon=1.0, delta=1e-6, ledger=5, adaptive=False)

    def test_ledger_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(LedgerError):
            publish(table(), SCHEMA, epsilon=1.0, delta=1e-6, ledger=tmp_path / "none.ledger", adaptive=False)
        assert list(tmp_path.iterdir()) == []

    def test_strict_names_column_and_row_but_no_value(self) -> None:
        data = pa.concat_tables([table(), one_row(charges=123_456.789)])
        with pytest.raises(DataError) as caught:
            publish(data, SCHEMA, epsilon=1.0, delta=1e-6, strict=True, adaptive=False)
        assert "charges" in str(caught.value)
        assert "123" not in str(caught.value)


class TestLedger:
    def test_receipt_and_charge_agree(self, ledger: Ledger) -> None:
        release = publish(
            table(), SCHEMA, epsilon=1.0, delta=1e-6, ledger=ledger.path, note="first", adaptive=False
        )
        (entry,) = ledger.history()
        assert release.receipt is not None
        assert release.receipt.event == entry.event == GaussianEvent(mu=release.guarantee.mu or 0.0)
        assert (release.receipt.entry, release.receipt.head) == (1, entry.head)
        assert entry.note == "first"
        assert ledger.verify([Release.from_json(release.to_json())]).unclaimed == ()

    def test_a_whole_budget_can_be_spent_at_once(self, tmp_path: Path) -> None:
        for number, delta in enumerate((1e-6, 0.0)):
            book = Ledger.create(tmp_path / f"{number}.ledger", name="x", epsilon=1.0, delta=delta)
            publish(table(), SCHEMA, epsilon=1.0, delta=delta, ledger=book, adaptive=False)
            with pytest.raises(BudgetExceeded):
                publish(table(), SCHEMA, epsilon=0.01, delta=delta, ledger=book, adaptive=False)

    def test_nine_gaussian_releases_fit_where_not_one_pure_one_does(self, ledger: Ledger) -> None:
        """privacy-math section 11: nine (1, 1e-6) releases within (3, 1e-5), in the ledger's μ²."""
        for _ in range(9):
            release = publish(table(5), SCHEMA, epsilon=1.0, delta=1e-6, ledger=ledger, adaptive=False)
            assert release.mechanism.name == "gaussian"
            assert "equal price" in release.mechanism.choice
        assert len(ledger.history()) == 9

    def test_three_pure_releases_fit_into_a_pure_budget_of_three(self, tmp_path: Path) -> None:
        book = Ledger.create(tmp_path / "pure.ledger", name="x", epsilon=3.0, delta=0.0)
        for _ in range(3):
            release = publish(table(5), SCHEMA, epsilon=1.0, delta=1e-6, ledger=book, adaptive=False)
            assert release.mechanism.name == "matrix-laplace"
            assert release.guarantee.delta == 0.0
            assert release.receipt is not None
            assert release.receipt.event == PureEvent(epsilon=1.0)
        with pytest.raises(BudgetExceeded):
            publish(table(5), SCHEMA, epsilon=0.01, delta=0.0, ledger=book, adaptive=False)


class TestAuto:
    @pytest.mark.parametrize(
        ("relation", "epsilon", "delta", "largest"),
        [
            (AddRemove(), 1.0, 1e-6, 16),
            (AddRemove(), 1.0, 1e-9, 29),
            (AddRemove(), 0.1, 1e-6, 12),
            (AddRemove(), 3.0, 1e-6, 20),
            (ReplaceOne(), 1.0, 1e-6, 7),
            (ReplaceOne(), 1.0, 1e-9, 14),
        ],
    )
    def test_crosses_over_where_the_mathematics_says(
        self, relation: Any, epsilon: float, delta: float, largest: int
    ) -> None:
        """privacy-math section 2: pure while d + 1 ≤ (ε/μ)², halved under replace-one."""
        for width in range(2, 40):  # of one column: test_choice.py
            facts = PublicFacts(width=width, adjacency=relation)
            chosen = choose(Auto(), Guarantee(epsilon, delta), facts, None)
            assert chosen.mechanism.name == ("matrix-laplace" if width <= largest else "gaussian")
            assert chosen.guarantee.delta == (0.0 if width <= largest else delta)

    @pytest.mark.parametrize("width", [14, 20])
    def test_measured_noise_agrees_with_the_choice(self, width: int) -> None:
        """Root mean square of the diagonal over 60 draws: 840 cells and more, the two differ by 8 %."""
        facts, asked = PublicFacts(width=width, adjacency=AddRemove()), Guarantee(1.0, 1e-6)
        zero = np.zeros((width, width), dtype=np.int64)
        entropy = SeededEntropy(11)
        measured = {}
        for kind in (Gaussian, MatrixLaplace):
            mechanism = kind().calibrated(asked, facts)
            draws = [np.diag(mechanism.draw(zero, entropy).cells).astype(float) for _ in range(120)]
            measured[kind.name] = float(np.sqrt(np.mean(np.square(draws))))
        assert choose(Auto(), asked, facts, None).mechanism.name == min(measured, key=measured.__getitem__)

    @pytest.mark.parametrize("currency", [None, "mu2"])
    def test_where_gaussian_noise_is_not_proven_the_pure_one_is_taken(self, currency: Any) -> None:
        facts = PublicFacts(width=100, adjacency=AddRemove())
        chosen = choose(Auto(), Guarantee(1e5, 1e-6), facts, currency)
        assert chosen.mechanism.name == "matrix-laplace"
        assert "not proven" in chosen.reason

    def test_reason_is_public_and_in_the_release(self) -> None:
        release = publish(table(), SCHEMA, epsilon=1.0, delta=1e-6, adaptive=False)
        assert release.mechanism.name == "matrix-laplace"
        assert release.guarantee.delta == 0.0
        assert "less noise than gaussian" in release.mechanism.choice
        asked = publish(table(), SCHEMA, epsilon=1.0, delta=1e-6, mechanism="matrix-laplace", adaptive=False)
        assert asked.mechanism.choice == "asked for by name"
        assert asked.guarantee.delta == 0.0

    @pytest.mark.parametrize("currency", ["mu2", "rho"])
    @pytest.mark.parametrize("width", [1, 5, 40])
    def test_at_equal_price_the_pure_rival_costs_what_the_gaussian_does(
        self, currency: Any, width: int
    ) -> None:
        facts = PublicFacts(width=width, adjacency=AddRemove())
        chosen = choose(Auto(), Guarantee(1.0, 1e-6), facts, currency)
        assert chosen.mechanism.name == "gaussian"


ODD_ROWS = [
    one_row(),
    one_row(age=90.0, charges=50_000.0, smoker="yes", active=False),
    one_row(age=1e300),
    one_row(age=-math.inf),
    one_row(charges=math.nan),
    one_row(age=None),
    one_row(smoker="unheard of"),
    one_row(smoker=None, active=None),
]


def public_part(release: Release) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(release.to_json())
    del content["digest"], content["matrix"]["cells"]
    if content["receipt"] is not None:
        content["receipt"] = sorted(content["receipt"])
    return content


class TestNothingButTheCellsDependsOnTheData:
    @pytest.mark.parametrize("missing", ["drop", "midpoint"])
    @pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_neighbours_differ_in_nothing_else(
        self, relation: Any, missing: Any, delta: float, tmp_path: Path
    ) -> None:
        base = table(12)
        books = iter(range(1000))

        def released(data: pa.Table) -> Release:
            book = Ledger.create(
                tmp_path / f"{next(books)}.ledger", name="x", epsilon=2.0, delta=delta, adjacency=relation
            )
            return publish(
                data,
                SCHEMA,
                epsilon=1.0,
                delta=delta,
                adjacency=relation,
                missing=missing,
                ledger=book,
                adaptive=False,
            )

        want = public_part(released(base))
        for row in ODD_ROWS:
            if relation == "add-remove":
                neighbour = pa.concat_tables([base, row])
            else:
                neighbour = pa.concat_tables([base.slice(1), row])
            assert public_part(released(neighbour)) == want

    @settings(max_examples=40, deadline=None)
    @given(
        rows=st.lists(
            st.fixed_dictionaries(
                {
                    "age": st.none() | st.floats(),
                    "smoker": st.none() | st.sampled_from(["no", "yes", "", "NO"]),
                    "active": st.none() | st.booleans(),
                    "charges": st.none() | st.floats(),
                }
            ),
            max_size=4,
        )
    )
    def test_publish_is_total(self, rows: list[dict[str, object]]) -> None:
        """Whatever a row holds, the release succeeds with the same public part."""
        data = pa.concat_tables([table(0), *(one_row(**row) for row in rows)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DpgramWarning)
            release = publish(data, SCHEMA, epsilon=1.0, delta=1e-6, adaptive=False)
            assert public_part(release) == public_part(
                publish(table(3), SCHEMA, epsilon=1.0, delta=1e-6, adaptive=False)
            )


class TestReport:
    def test_counts_go_to_the_curator_only(self) -> None:
        data = pa.concat_tables([table(50), one_row(age=None), one_row(age=200.0), one_row(smoker="x")])
        reports: list[CuratorReport] = []
        release = publish(data, SCHEMA, epsilon=1.0, delta=1e-6, report=reports.append, adaptive=False)
        (report,) = reports
        assert report.counts.rows_read == 53
        assert report.counts.rows_used == 51
        assert report.counts.cells_clamped >= 1
        assert report.reason == release.mechanism.choice
        assert "rows_used" not in release.to_json().decode()
        assert "51" not in release.library


class TestWarnings:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"epsilon": 11.0, "delta": 1e-6}, "epsilon"),
            ({"epsilon": 1.0, "delta": 1e-3}, "delta"),
            ({"epsilon": 1.0, "delta": 1e-5, "rows": 1_000_000}, "rows"),
        ],
    )
    def test_weak_promises_are_called_weak(self, arguments: dict[str, Any], words: str) -> None:
        with pytest.warns(DpgramWarning, match=words):
            agree(SCHEMA, **arguments)

    def test_delta_above_one_in_the_public_rows(self) -> None:
        call: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-4, "mechanism": "gaussian"}
        with pytest.warns(DpgramWarning, match="20000 rows"):
            publish(table(20_000), SCHEMA, adjacency="replace-one", **call)
        publish(table(20_000), SCHEMA, **call)  # the number is private: no word about it
        publish(table(9_000), SCHEMA, adjacency="replace-one", **call)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("asks_for_a_ledger")
class TestWithoutALedger:
    """A publication of which nobody said whether a ledger pays asks, once in a process."""

    DATA: ClassVar = {"x": [0.1, 0.2]}
    ASKED: ClassVar[dict[str, Any]] = {"epsilon": 1.0, "delta": 1e-6, "adaptive": False, "progress": False}

    @pytest.mark.parametrize("publish", [dg.publish, dg.publish_each])
    def test_it_asks_once(self, publish: Any) -> None:
        schema = dg.Schema(dg.numeric("x", -1, 1))
        with pytest.warns(DpgramWarning, match=r"give ledger=…, or ledger=None if that is meant") as told:
            publish(self.DATA, schema, **self.ASKED)
        assert [Path(one.filename).name for one in told] == ["test_publish.py"]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dg.publish(self.DATA, schema, **self.ASKED)
            dg.publish_each(self.DATA, schema, **self.ASKED)
        assert caught == []

    @pytest.mark.parametrize("publish", [dg.publish, dg.publish_each])
    @pytest.mark.filterwarnings("error")
    def test_an_answer_is_taken(self, publish: Any, tmp_path: Path) -> None:
        schema = dg.Schema(dg.numeric("x", -1, 1))
        publish(self.DATA, schema, ledger=None, **self.ASKED)
        ledger = dg.Ledger.create(tmp_path / "a.ledger", name="a", epsilon=2, delta=1e-5)
        publish(self.DATA, schema, ledger=ledger, **self.ASKED)
        assert ledger.history()

    @pytest.mark.filterwarnings("error")
    def test_where_warnings_are_errors_it_asks_every_time(self) -> None:
        for _ in range(2):
            with pytest.raises(DpgramWarning, match="no ledger keeps count"):
                dg.publish(self.DATA, dg.Schema(dg.numeric("x", -1, 1)), **self.ASKED)
