"""Every fit goes the way of all publications: read, charge, draw; receipts; taken up again after a crash."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpgram.core.noise import SeededEntropy
from dpgram.engines.local import LocalEngine
from dpgram.errors import BudgetExceeded, DpgramWarning, MechanismError
from dpgram.estimators import (
    SSP,
    AdaSSP,
    ColumnStandardizer,
    LpRegression,
    OutputPerturbation,
    PrivateCovariance,
    PrivateLasso,
    PrivateLinearRegression,
    PrivatePCA,
    PrivateRidge,
    SigmaClipper,
)
from dpgram.privacy.accountant import composed
from dpgram.privacy.ledger import Ledger
from dpgram.publishing import publication
from dpgram.publishing._journal import Journal

BOUNDS = {"bounds": (-1.0, 1.0)}
TARGET = BOUNDS | {"target_bounds": (-1.0, 1.0)}
PLAIN = {"adaptive": False}
"""One plain matrix: adaptive releases are tested in tests/contracts/test_adaptive.py."""
NORMED = {"x_norm": 1.0, "y_bound": 1.0}
FITS = {
    "linear": lambda **o: PrivateLinearRegression(1.0, 1e-6, **TARGET, **PLAIN, **o),
    "lasso": lambda **o: PrivateLasso(1.0, 1e-6, **TARGET, **PLAIN, **o),
    "joint ridge": lambda **o: PrivateRidge(1.0, 1e-6, mechanism="joint-gaussian", **TARGET, **o),
    "pure ridge": lambda **o: PrivateRidge(1.0, 0.0, **TARGET, **PLAIN, **o),
    "pca": lambda **o: PrivatePCA(1, epsilon=1.0, delta=1e-6, **BOUNDS, **PLAIN, **o),
    "covariance": lambda **o: PrivateCovariance(1.0, 1e-6, **BOUNDS, **PLAIN, **o),
    "ssp": lambda **o: SSP(1.0, 1e-6, **NORMED, **o),
    "adassp": lambda **o: AdaSSP(1.0, 1e-6, **NORMED, **o),
    "robust": lambda **o: LpRegression(1.0, 1e-6, iterations=4, **NORMED, **o),
    "output": lambda **o: OutputPerturbation(1.0, 1e-6, **NORMED, **o),
    "gamma output": lambda **o: OutputPerturbation(1.0, 0.0, **NORMED, **o),
    "standardizer": lambda **o: ColumnStandardizer(epsilon=1.0, delta=1e-6, **BOUNDS, **o),
    "clipper": lambda **o: SigmaClipper(epsilon=1.0, delta=1e-6, **BOUNDS, **o),
}
STAGES = {"robust": 4}
every_fit = pytest.mark.parametrize("name", FITS)


def table(rows: int = 300) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(4).uniform(-0.7, 0.7, (rows, 2))
    return x, 0.5 * x[:, 0] - 0.2 * x[:, 1]


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "a.ledger", name="a", epsilon=9.0, delta=1e-5)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens, in order: "read", "charge", "draw"."""
    told: list[str] = []

    def watched(owner: Any, method: str, word: str) -> None:
        real = getattr(owner, method)

        def telling(*arguments, **options):
            told.append(word)
            return real(*arguments, **options)

        monkeypatch.setattr(owner, method, telling)

    watched(LocalEngine, "add_up", "read")
    watched(Ledger, "charge", "charge")
    watched(publication.Stage, "record", "draw")
    return told


def left_over(book: Ledger) -> list[Path]:
    return sorted(book.path.parent.glob(f"{book.path.name}.unfinished*"))


@every_fit
def test_a_fit_reads_charges_and_draws_in_this_order(name: str, book: Ledger, log: list[str]) -> None:
    fit = FITS[name](ledger=book).fit(*table())
    assert log == ["read", "charge", "draw"] + ["read", "draw"] * (STAGES.get(name, 1) - 1)
    (entry,) = book.history()
    assert fit.receipt_ is not None
    assert fit.receipt_.event == entry.event
    assert entry.note == type(fit).__name__
    assert fit.entropy_ == "system"
    assert left_over(book) == []
    if hasattr(fit, "event_"):
        assert fit.event_ == entry.event


@every_fit
def test_without_a_ledger_there_is_no_receipt_and_a_seed_is_named(name: str) -> None:
    fit = FITS[name](entropy=SeededEntropy(1)).fit(*table())
    assert fit.receipt_ is None
    assert fit.entropy_ == "seeded"


@every_fit
def test_seeded_noise_is_paid_for_by_no_ledger(name: str, book: Ledger, log: list[str]) -> None:
    with pytest.raises(MechanismError, match="seeded noise can be removed"):
        FITS[name](ledger=book, entropy=SeededEntropy(1)).fit(*table())
    assert log == []
    assert book.history() == ()


@every_fit
def test_what_the_ledger_cannot_pay_is_refused_before_a_row_is_read(
    name: str, tmp_path: Path, log: list[str]
) -> None:
    poor = Ledger.create(tmp_path / "b.ledger", name="b", epsilon=0.01, delta=1e-9)
    with pytest.raises(BudgetExceeded):
        FITS[name](ledger=poor).fit(*table())
    assert log == []
    assert left_over(poor) == []


@pytest.mark.parametrize(
    ("name", "after"), [(name, after) for name in FITS for after in {0, STAGES.get(name, 1) - 1}]
)
def test_an_interrupted_fit_is_taken_up_again(
    name: str, after: int, book: Ledger, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed once a stage was kept: the same fit charges nothing again and draws only what is left."""
    stages = STAGES.get(name, 1)
    keep = Journal.keep

    def killed(self: Journal, stage: int, result: object) -> None:
        keep(self, stage, result)
        if stage == after:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "keep", killed)
        with pytest.raises(KeyboardInterrupt):
            FITS[name](ledger=book).fit(*table())
    assert len(left_over(book)) == 1
    drawn = log.count("draw")
    with pytest.warns(DpgramWarning, match="continues it"):
        fit = FITS[name](ledger=book).fit(*table())
    assert log.count("charge") == 1
    assert drawn == after + 1
    assert log.count("draw") == stages
    assert len(book.history()) == 1
    assert fit.receipt_ is not None
    assert left_over(book) == []


def test_another_fit_is_not_taken_for_the_interrupted_one(
    book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = table()

    def killed(self: Journal, stage: int, result: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "keep", killed)
        with pytest.raises(KeyboardInterrupt):
            AdaSSP(1.0, 1e-6, **NORMED, ledger=book).fit(x, y)
    SSP(1.0, 1e-6, **NORMED, ledger=book).fit(x, y)
    AdaSSP(1.0, 1e-6, x_norm=2.0, y_bound=1.0, ledger=book).fit(x, y)
    AdaSSP(1.0, 1e-6, **NORMED, ledger=book).fit(x[:, :1], y)
    assert len(book.history()) == 4
    assert len(left_over(book)) == 1


def test_all_iterations_are_charged_as_what_they_draw(book: Ledger) -> None:
    from dpgram.estimators.iteration_noise import calibrated

    fit = FITS["robust"](ledger=book)
    fit.fit(*table())
    (entry,) = book.history()
    parameters = fit._parameters(2)
    assert entry.event == composed(list(calibrated(fit._settings(parameters)).events) * 4)


@pytest.mark.parametrize(
    "model",
    [
        AdaSSP(1.0, 1e-4, **NORMED, adjacency="replace-one"),
        LpRegression(1.0, 1e-4, iterations=2, **NORMED, adjacency="replace-one"),
        OutputPerturbation(1.0, 1e-4, **NORMED, adjacency="replace-one"),
        PrivateRidge(1.0, 1e-4, mechanism="joint-gaussian", **TARGET, adjacency="replace-one"),
        ColumnStandardizer(epsilon=1.0, delta=1e-4, **BOUNDS, adjacency="replace-one"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_one_warning_of_a_delta_above_one_in_the_rows(model) -> None:
    """Only where the number of rows is public, and once however many stages there are."""
    x = np.resize([-0.5, 0.5], (10_001, 1))
    with pytest.warns(DpgramWarning, match="more than one in 10001 rows") as caught:
        model.set_params(entropy=SeededEntropy(1)).fit(x, np.zeros(10_001))
    assert len(caught) == 1
    model.set_params(adjacency="add-remove", entropy=SeededEntropy(1)).fit(x, np.zeros(10_001))


def test_extreme_public_bounds_are_refused_and_not_overflowed() -> None:
    """high − low must be a number: else z would be none, and a row could add anything."""
    from dpgram.errors import GuaranteeError

    with pytest.raises(GuaranteeError, match="bounds"):
        ColumnStandardizer(epsilon=1.0, bounds=(-1.5e308, 1.5e308)).fit([[math.pi]])
