"""`kill -9` at any point of a publication with four passes: it can always be finished.

Never a second charge, never two noises for one measurement, nothing left behind once it is finished.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.flat import publish

import dpgram as dg
from dpgram.canonical_json import canonical_bytes
from dpgram.core.run import Measure
from dpgram.document.fields import MeasuredHistograms
from dpgram.errors import BudgetExceeded, DpgramError, DpgramWarning, SourceError
from dpgram.files import line_of
from dpgram.privacy.accountant import GaussianEvent, PureEvent
from dpgram.privacy.ledger import Ledger
from dpgram.publishing import publication
from dpgram.publishing._journal import Kept, interrupted_before, open_journal
from dpgram.publishing.measurements.base import cost_of
from dpgram.publishing.measurements.gram import FirstGram, Gram
from dpgram.release import Release
from dpgram.schema import Schema, numeric

SCRIPT = Path(__file__).with_name("killed_publications.py")
KINDS = ["levels", "octaves", "histograms", "gram", "reach", "clip"]
GOOD = {"published": [7], "public_rows": None}
ORDER = [*KINDS[:3], "zoom", *KINDS[3:]]


def runs_of(folder: Path, count: int) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), str(count)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(run: dict[str, Any]) -> None:
    """Charged once, closed once; what was drawn and kept is what comes out, and nothing else is drawn."""
    assert run["killed"] == -signal.SIGKILL, run["point"]
    assert run["finished"] == 0, run["point"]
    release, between = run["release"], run["between"]
    assert all(run["closed"])
    if "refused" in release:
        # The very end: the receipt was closed, and the file beside the ledger was not yet removed.
        assert "is of a publication that is over" in release["refused"]
        assert (between["closed"], len(run["entries"])) == ([True], 1), run["point"]
        assert len(run["left"]) == 2
        return
    measured = [each["kind"] for each in release["measurements"]]
    # Noise that nobody seeds decides whether a column is looked at again, between histograms and matrix.
    assert [kind for kind in measured if kind != "zoom"] == KINDS
    assert sorted(measured, key=ORDER.index) == measured
    charged = [release["receipt"]["receipt_id"]]
    if between["closed"] == [True]:
        # It had been finished, and its file was gone: the second call asks for a second release, and pays.
        assert not between["kept"]
        assert run["entries"][1:] == charged
    else:
        assert run["entries"] == charged, run["point"]
    assert run["left"] == ["some.ledger"], run["point"]
    stages = {line["stage"]: line["kept"] for line in run["between"]["kept"] if "stage" in line}
    seen = [each for stage in sorted(stages) for each in stages[stage]["published"]]
    for matrix in (each for each in seen if isinstance(each, list)):  # the last matrix itself
        assert matrix[0]["matrix"] == release["matrix"], run["point"]
    noted = [each for each in seen if not isinstance(each, list)]
    assert noted == release["measurements"][: len(noted)], run["point"]


@pytest.mark.skipif(os.name != "posix", reason="forks and signals of POSIX")
def test_killed_at_a_dozen_points(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, 12)
    assert len(runs) == 12
    for run in runs:
        check(run)
    assert {len(run["between"]["closed"]) for run in runs} == {0, 1}


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="forks and signals of POSIX")
def test_killed_at_two_hundred_points(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, 200)
    assert len(runs) == 200
    for run in runs:
        check(run)


class TestJournal:
    def test_two_at_once_have_a_file_each(self, tmp_path: Path) -> None:
        ledger = tmp_path / "some.ledger"
        with open_journal(ledger, {"a": 1}) as one, open_journal(ledger, {"a": 1}) as two:
            assert one.path != two.path
            assert one.receipt_id != two.receipt_id
            one.finish()
            two.finish()
        assert list(tmp_path.iterdir()) == []

    def test_it_is_found_again_and_only_by_the_same_request(self, tmp_path: Path) -> None:
        ledger = tmp_path / "some.ledger"
        with open_journal(ledger, {"a": 1}) as first:
            first.keep(0, Kept(published=[7], public_rows=None))
            number = first.receipt_id
        with open_journal(ledger, {"a": 2}) as other:
            assert not other.resumed
            assert other.kept(0) is None
        with open_journal(ledger, {"a": 1}) as again:
            assert again.resumed
            assert again.kept(0) == Kept(published=[7], public_rows=None)
            assert again.kept(1) is None
            assert again.receipt_id == number

    @pytest.mark.parametrize("cut", [1, 5, 40])
    def test_a_torn_line_was_never_there(self, tmp_path: Path, cut: int) -> None:
        ledger = tmp_path / "some.ledger"
        with open_journal(ledger, {}) as first:
            first.keep(0, Kept(published=[1], public_rows=3))
            first.keep(1, Kept(published=[2], public_rows=3))
        raw = first.path.read_bytes()
        first.path.write_bytes(raw[:-cut])
        with open_journal(ledger, {}) as again:
            assert again.kept(0) is not None
            assert again.kept(1) is None
            again.keep(1, Kept(published=[9], public_rows=3))
        with open_journal(ledger, {}) as third:
            kept = third.kept(1)
            assert kept is not None
            assert kept.published == [9]

    def test_a_disk_that_takes_a_little_at_a_time(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ledger, write = tmp_path / "some.ledger", os.write
        monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:7]))
        with open_journal(ledger, {}) as first:
            first.keep(0, Kept(published=["1" * 100], public_rows=None))
        with open_journal(ledger, {}) as again:
            assert again.resumed
            assert again.kept(0) == Kept(published=["1" * 100], public_rows=None)

    @pytest.mark.parametrize(
        "lines",
        [
            [{"stage": 1, "kept": GOOD}],
            [{"stage": 0, "kept": GOOD}, {"stage": 2, "kept": GOOD}],
            [{"stage": 0, "kept": GOOD}, {"stage": 0, "kept": GOOD}],
            [{"stage": 0, "kept": None}, {"stage": 1, "kept": GOOD}],
            [{"stage": 0, "kept": [1]}],
            [{"stage": 0, "kept": {}}],
            [{"stage": 0}],
            [{"stage": "0", "kept": GOOD}],
            [{"stage": [1], "kept": GOOD}],
            [{"stage": 1e300, "kept": GOOD}],
            [{"stage": 0, "kept": {"published": 7, "public_rows": None}}],
            [{"stage": 0, "kept": {"published": [7], "public_rows": "3"}}],
        ],
    )
    def test_whole_lines_that_no_publication_wrote_are_refused(
        self, tmp_path: Path, lines: list[dict[str, object]]
    ) -> None:
        ledger = tmp_path / "some.ledger"
        with open_journal(ledger, {"a": 1}) as first:
            path = first.path
        with path.open("ab") as stream:
            stream.writelines(line_of(canonical_bytes(line)) for line in lines)
        raw = path.read_bytes()
        for refused in (
            lambda: open_journal(ledger, {"a": 1}).__enter__(),
            lambda: interrupted_before(ledger, {"a": 1}),
        ):
            with pytest.raises(DpgramError, match=rf"{path.name} does not hold .* no copy can take"):
                refused()
        assert path.read_bytes() == raw

    @pytest.mark.parametrize("change", [{"id": []}, {"id": "../x"}, {"more": 1}])
    def test_a_head_that_no_publication_wrote_is_refused(
        self, tmp_path: Path, change: dict[str, object]
    ) -> None:
        ledger = tmp_path / "some.ledger"
        with open_journal(ledger, {}) as first:
            path = first.path
        head = json.loads(path.read_bytes().rsplit(b" ", 1)[0])
        path.write_bytes(line_of(canonical_bytes({**head, **change})))
        with pytest.raises(DpgramError, match="does not hold"), open_journal(ledger, {}):
            pass

    def test_it_is_for_its_owner_alone(self, tmp_path: Path) -> None:
        with open_journal(tmp_path / "some.ledger", {}) as journal:
            assert journal.path.stat().st_mode & 0o077 == 0

    @pytest.mark.skipif(os.name != "posix", reason="links, owners and modes of POSIX")
    @pytest.mark.parametrize(
        ("planted", "found"),
        [
            (lambda path, other: path.symlink_to(other), "a link"),
            (lambda path, other: path.symlink_to(other.with_name("not there")), "a link"),
            (lambda path, other: path.hardlink_to(other), "a second name"),
            (lambda path, other: os.mkfifo(path, 0o600), "no regular file"),
            (lambda path, other: path.mkdir(), "a folder|no regular file"),
            (lambda path, other: path.write_bytes(other.read_bytes()), "mode 6[46]4"),
        ],
    )
    def test_what_somebody_planted_under_its_name_is_refused_and_left_alone(
        self, tmp_path: Path, planted: Callable[[Path, Path], None], found: str
    ) -> None:
        ledger, other = tmp_path / "some.ledger", tmp_path / "other"
        other.write_bytes(b"precious")
        other.chmod(0o600)
        with open_journal(ledger, {"a": 1}) as journal:
            path = journal.path
            journal.finish()
        planted(path, other)
        for refused in (
            lambda: open_journal(ledger, {"a": 1}).__enter__(),
            lambda: interrupted_before(ledger, {"a": 1}),
        ):
            with pytest.raises(DpgramError, match=rf"its owner alone may open.*got .*({found})"):
                refused()
        assert other.read_bytes() == b"precious"
        assert not (tmp_path / "not there").exists()


def _shortened(value: Any) -> Any:
    if isinstance(value, list):
        return [_shortened(each) for each in value[: max(1, len(value) - 1)]]
    return {key: _shortened(each) for key, each in value.items()} if isinstance(value, dict) else value


def _enormous(value: Any) -> Any:
    if isinstance(value, list):
        return [_enormous(each) for each in value]
    if isinstance(value, dict):
        return {key: _enormous(each) for key, each in value.items()}
    return 2**53 if isinstance(value, int | float) else value


@pytest.mark.parametrize("forged", [_shortened, _enormous, lambda _: [], lambda _: [None], lambda _: [{}]])
@pytest.mark.parametrize("number", range(2))
def test_results_of_another_form_are_refused_and_charged_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forged: Callable[[Any], Any], number: int
) -> None:
    ledger = Ledger.create(tmp_path / "some.ledger", name="some", epsilon=2.0, delta=1e-5)
    table = {"x": [float(i % 10) for i in range(900)], "y": [float(i % 7) for i in range(900)]}
    schema = Schema(numeric("x"), numeric("y", 0, 10))

    def published() -> Release:
        found: Release = publish(
            table, schema, epsilon=1.0, delta=1e-6, ledger=ledger, progress=False, adaptive=True
        )
        return found

    with monkeypatch.context() as patch:
        patch.setattr(publication, "_close", lambda *_: None)
        published()
    (path,) = tmp_path.glob("*.unfinished-*")
    lines = [json.loads(line.rsplit(b" ", 1)[0]) for line in path.read_bytes().splitlines()]
    kept = lines[1 + number]["kept"]
    kept["published"] = forged(kept["published"])
    raw = b"".join(line_of(canonical_bytes(line)) for line in lines)
    path.write_bytes(raw)
    before = len(ledger.history())
    with pytest.raises(DpgramError, match=r"does not hold .* no copy can take"):
        published()
    assert len(ledger.history()) == before
    assert path.read_bytes() == raw


def test_results_that_no_charge_of_this_ledger_paid_for_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted beside a ledger, with the stages of another table: no crash leaves that."""
    ledger = Ledger.create(tmp_path / "some.ledger", name="some", epsilon=2.0, delta=1e-5)
    empty = ledger.path.read_bytes()
    table = {"x": [float(i % 10) for i in range(900)]}

    def published() -> Release:
        return dg.publish(
            table, Schema(numeric("x", 0, 10)), epsilon=1.0, delta=1e-6, ledger=ledger.path, progress=False
        )

    with monkeypatch.context() as patch:
        patch.setattr(publication, "_close", lambda *_: None)
        first = published()
        with pytest.warns(DpgramWarning) as said:
            assert published().published == first.published
    (path,) = tmp_path.glob("*.unfinished-*")
    (told,) = (str(each.message) for each in said)
    assert told.startswith("a publication with these options was interrupted after entry 1 of the ledger")
    assert told.endswith(f"for what was drawn, which it takes from {path.name}")
    raw = path.read_bytes()
    ledger.path.write_bytes(empty)
    with pytest.raises(DpgramError, match=r"no charge of this ledger has paid for.*Nothing was spent"):
        published()
    assert ledger.path.read_bytes() == empty
    assert path.read_bytes() == raw


def test_a_source_that_fails_on_resuming_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Charged, then interrupted before anything was drawn; then the table is away; then it is back."""
    ledger = Ledger.create(tmp_path / "some.ledger", name="some", epsilon=2.0, delta=1e-5)
    place = tmp_path / "some.csv"
    rows = "x\n" + "\n".join(str(i % 10) for i in range(100)) + "\n"
    place.write_text(rows, encoding="utf-8")
    schema = Schema(numeric("x", 0, 10))

    def published() -> Release:
        return publish(place, schema, epsilon=1.0, delta=1e-6, ledger=ledger, progress=False, adaptive=False)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Measure, "draw", stop)
        with pytest.raises(KeyboardInterrupt):
            published()
    (charged,) = ledger.history()
    place.unlink()
    with pytest.raises(SourceError):
        published()
    place.write_text(rows, encoding="utf-8")
    with pytest.warns(DpgramWarning, match="was interrupted after entry 1"):
        release = published()
    assert release.receipt is not None
    assert release.receipt.receipt_id == charged.receipt_id
    assert len(ledger.history()) == 1
    assert sorted(one.name for one in tmp_path.iterdir()) == ["some.csv", "some.ledger"]


@pytest.mark.parametrize("deltas", [(1e-5, 0.0), (0.0, 1e-5), (1e-5, 1e-5)])
def test_a_ledger_that_was_made_anew_pays_for_draws_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deltas: tuple[float, float]
) -> None:
    """It may count in another currency, in which what was drawn before would have another law."""
    path = tmp_path / "some.ledger"
    table = {"x": [float(i % 10) for i in range(900)]}
    schema = Schema(numeric("x", 0, 10))

    def published() -> Release:
        return dg.publish(table, schema, epsilon=1.0, delta=1e-6, ledger=path, progress=False)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    Ledger.create(path, name="some", epsilon=2.0, delta=deltas[0])
    with monkeypatch.context() as patch:
        for drawn_second in (FirstGram, Gram):
            patch.setattr(drawn_second, "record", stop)
        with pytest.raises(KeyboardInterrupt):
            published()
    path.unlink()
    ledger = Ledger.create(path, name="some", epsilon=2.0, delta=deltas[1])
    (left,) = tmp_path.glob("*.unfinished-*")
    before = left.read_bytes()
    release = published()
    law = "discrete-laplace" if deltas[1] == 0.0 else "discrete-gaussian"
    assert {each.law for each in release.measured if isinstance(each, MeasuredHistograms)} == {law}
    ledger.verify([release])
    assert len(ledger.history()) == 1
    assert left.read_bytes() == before


def test_what_was_interrupted_before_its_charge_must_fit_the_budget_again(tmp_path: Path) -> None:
    """A file that an unpaid run left is no promise: the whole price is held against the ledger anew."""
    ledger = Ledger.create(tmp_path / "some.ledger", name="some", epsilon=1.5, delta=1e-6)
    table = {"x": [float(i % 10) for i in range(500)]}
    schema = Schema(numeric("x", 0, 10))

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dg.publish(table, schema, epsilon=1.0, delta=1e-6, ledger=ledger, progress=stop)
    assert ledger.history() == ()
    dg.publish(table, schema, epsilon=1.3, delta=1e-6, ledger=ledger, adaptive=False, progress=False)
    with pytest.raises(BudgetExceeded, match="Nothing was spent"):
        dg.publish(table, schema, epsilon=1.0, delta=1e-6, ledger=ledger, progress=False)
    assert len(ledger.history()) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["some.ledger"]


@pytest.mark.parametrize("small", [1e-6, 1e-9])
def test_no_draw_costs_more_than_was_charged_however_small_that_was(small: float) -> None:
    for charged, drawn in (
        (GaussianEvent(mu=small), GaussianEvent(mu=1.01 * small)),
        (PureEvent(epsilon=small), PureEvent(epsilon=1.01 * small)),
    ):
        assert cost_of(charged).within(cost_of(charged))
        assert not cost_of(drawn).within(cost_of(charged))
