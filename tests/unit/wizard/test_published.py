"""After the charge: what is published stays as it was said, and nothing is paid twice."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.unit.wizard.browsing import Browser, started
from tests.unit.wizard.conftest import write_visits
from tests.unit.wizard.test_flow import COLUMNS, to_budget, to_review

import dpgram as dg
from dpgram.privacy.ledger import Ledger
from dpgram.release import Release


def ticked(browser: Browser, form: str, name: str) -> list[str]:
    return [value for each, value in browser.form(form).fields if each == name]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    browser = started(write_visits(tmp_path_factory.mktemp("visits")))
    to_review(browser, sign="new", title="Visits")
    browser.send("review", press="do=publish")
    assert browser.address == "done"
    return browser


class TestAPublishedJob:
    def test_its_decisions_stay(self, published: Browser) -> None:
        said, file = published.open("done"), published.session.job_path.read_bytes()
        changes = {"columns": {"c0.high": "99"}, "people": {"expected": "9"}, "budget": {"epsilon": "0.1"}}
        for step, change in {**changes, "outputs": {"title": "Others"}}.items():
            published.open(step)
            assert "This job is published" in published.text
            published.send(step, dict(change))
            assert published.address == step
            assert "This job is published" in published.text
        assert published.open("done") == said
        assert "ε = 1)" in said
        assert published.session.job_path.read_bytes() == file

    def test_the_last_page_tells_of_the_release(self, published: Browser) -> None:
        """Even where the key and the ledger have been put away since."""
        root = published.session.folder.root
        said = published.open("done")
        for name in ("curator.key", "visits.ledger"):
            (root / name).rename(root / f"away-{name}")
        try:
            published.open("done")
        finally:
            for name in ("curator.key", "visits.ledger"):
                (root / f"away-{name}").rename(root / name)
        assert published.status == 200
        signature = dg.load(root / "visits.dpgram.json").signature
        assert signature is not None
        for text in (said, published.text):
            assert signature.public_key in text
            assert "ε = 1)" in text


def test_another_table_begins_another_job(visits: Path) -> None:
    """Nothing of the first one goes over: no files, no promise, no ledger, no guess, nothing typed."""
    shutil.copy(visits / "visits.csv", visits / "others.csv")
    browser = started(visits)
    to_review(browser, sign="new", title="Visits")
    browser.send("review", press="do=publish")
    browser.open("data")
    browser.send("data", {"file": "others.csv"}, press="do=read")
    browser.open("done")
    assert browser.address == "review"
    assert "published" not in browser.text
    assert set(browser.session.form) == {"data", "columns", "outputs"}
    assert browser.session.job_path.name == "others-job.toml"
    assert browser.open("people").count('value="2000"') == 0


def test_what_was_typed_for_one_table_is_not_of_another(visits: Path) -> None:
    shutil.copy(visits / "visits.csv", visits / "others.csv")
    browser = started(visits)
    to_budget(browser)
    browser.send("budget", {"total_epsilon": "7"})
    browser.open("columns")
    browser.send("columns", {"c0.low": "4711", "c0.high": "1"})
    assert browser.errors
    browser.open("data")
    browser.send("data", {"file": "others.csv"}, press="do=read")
    browser.follow("columns")
    assert not browser.errors
    assert "4711" not in browser.text
    assert browser.session.new_ledger is None
    assert (visits / "visits-job.toml").read_text().count("visits.ledger") == 1  # the first job is kept


def test_the_same_table_again_is_a_new_job_and_the_old_ledger_is_offered(published: Browser) -> None:
    root = published.session.folder.root
    browser = started(root)
    browser.send("data", {"file": "visits.csv"}, press="do=read")
    assert browser.session.job_path.name == "visits-job-2.toml"
    browser.follow("columns")
    browser.send("columns", dict(COLUMNS))
    browser.send("people", {"expected": "2000"})
    assert ticked(browser, "budget", "pays") == ["existing"]
    assert ticked(browser, "budget", "existing") == [""]
    browser.send("budget")
    assert "no ledger is chosen" in browser.errors["existing"]
    browser.send("budget", {"existing": "visits.ledger"})
    assert browser.session.form["privacy"]["ledger"] == "visits.ledger"


@pytest.mark.parametrize("total", ["3", "1"], ids=["enough left", "nothing left"])
def test_the_advice_after_a_failure_charges_nothing_twice(
    visits: Path, monkeypatch: pytest.MonkeyPatch, total: str
) -> None:
    """The release is written and the explorer is not: publish the same job again, through whichever step."""
    browser = started(visits)
    to_budget(browser)
    browser.send("budget", {"total_epsilon": total, "total_delta": "1e-6"})
    browser.send("outputs")

    def breaks(*_: Any) -> None:
        raise dg.errors.ReleaseError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Release, "explore", breaks)
        browser.send("review", press="do=publish")
    assert "may have been charged" in browser.text
    assert "Nothing was spent" not in browser.text
    paid = Ledger.open(visits / "visits.ledger").history()
    assert paid
    browser.open("budget")
    browser.send("budget")
    browser.send("outputs")
    assert browser.address == "review", browser.errors
    assert "is not paid again" in browser.text
    browser.send("review", press="do=publish")
    assert browser.address == "done"
    assert Ledger.open(visits / "visits.ledger").history() == paid
    assert (visits / "visits.html").exists()


def test_nothing_was_spent_is_said_where_it_holds(
    published: Browser, visits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not after a charge; and a check that breaks has charged nothing."""

    def breaks(*_: object, **__: object) -> None:
        raise dg.errors.JobError("this cannot be shown")

    with monkeypatch.context() as patch:
        patch.setattr("dpgram.wizard.steps.review.finished", breaks)
        published.open("done")
    assert "this cannot be shown" in published.text
    assert "Nothing was spent" not in published.text
    published.open("data")
    published.send("data", {"path": "nowhere.csv"}, press="do=read")
    assert "not in order. Nothing more was spent." in published.text

    browser = started(visits)
    to_budget(browser)
    browser.open("columns")
    monkeypatch.setattr("dpgram.wizard.steps.columns.check", lambda *_, **__: 1 / 0)
    with pytest.raises(AssertionError):
        browser.send("columns", press="do=check")
    browser.open("work")
    assert "ZeroDivisionError" in browser.text
    assert "charged" not in browser.text
    assert "Nothing was spent." in browser.text
