"""From a file to a signed release, as a person who follows the pages: the decisions, the file, the charge."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.wizard.browsing import Browser, started
from tests.unit.wizard.conftest import write_visits

import dpgram as dg
from dpgram import cli
from dpgram.engines.find import find_engine
from dpgram.engines.passes import Pass
from dpgram.job import Job, differences
from dpgram.privacy.ledger import Ledger
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import row_rules
from dpgram.sums.grams import GramStatistic

COLUMNS = {
    "c0.low": "18",
    "c0.high": "90",
    "c1.kind": "categorical",
    "c1.levels": "no\nyes",
    "c2.low": "0",
    "c2.high": "50000",
}


def to_columns(browser: Browser) -> None:
    browser.send("data", {"file": "visits.csv"}, press="do=read")
    browser.follow("columns")


def to_budget(browser: Browser) -> None:
    to_columns(browser)
    browser.send("columns", dict(COLUMNS))
    browser.send("people", {"expected": "2000"})


def to_review(browser: Browser, **outputs: str) -> None:
    to_budget(browser)
    browser.send("budget")
    browser.send("outputs", dict(outputs))
    assert browser.address == "review", browser.errors


def test_the_bundled_table_takes_few_clicks_and_no_field(tmp_path: Path) -> None:
    """At most 15 clicks and 10 fields are promised."""
    browser = started(tmp_path)
    browser.send("data", press="do=example")
    browser.follow("columns")
    browser.send("columns")
    browser.send("people")
    browser.send("budget")
    browser.send("outputs", {"sign": "new"})
    browser.send("review", press="do=publish")
    assert browser.address == "done"
    assert (browser.clicks, browser.typed) == (8, 0)


def test_the_bundled_table_as_a_file_of_ones_own(tmp_path: Path) -> None:
    """Without its public facts: levels are the only fields, and a tick lets bounds be learnt."""
    import pyarrow.csv

    from dpgram.demo import insurance

    pyarrow.csv.write_csv(insurance.table(5_000), tmp_path / "people.csv")
    browser = started(tmp_path)
    browser.send("data", {"file": "people.csv"}, press="do=read")
    browser.follow("columns")
    levels = {"c1.levels": "female\nmale", "c6.levels": "north\neast\nsouth\nwest"}
    browser.send("columns", levels | {f"c{number}.learn": "on" for number in (0, 2, 3, 4, 7, 8)})
    assert browser.session.schema().undecided == ()
    browser.send("people", {"expected": "5000"})
    browser.send("budget")
    browser.send("outputs", {"sign": "new"})
    browser.send("review", press="do=publish")
    assert browser.address == "done"
    assert browser.clicks <= 15
    assert browser.typed <= 10
    assert dg.load(tmp_path / "people.dpgram.json").signature is not None


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    folder = write_visits(tmp_path_factory.mktemp("visits"))
    browser = started(folder)
    papers = {"evaluation": "visits-nist.html", "registry": "visits.yaml"}
    to_review(browser, sign="new", title="Visits", **papers)
    assert not (folder / "visits.ledger").exists()
    assert not (folder / "curator.key").exists()
    assert "1,987 of 1,987 rows" in browser.text
    browser.send("review", press="do=publish")
    assert browser.address == "done"
    return browser


class TestPublishing:
    def test_everything_is_there(self, published: Browser) -> None:
        root = published.session.folder.root
        release = dg.load(root / "visits.dpgram.json")
        public = published.text.split('class="key">')[1][:64]
        assert dg.load(root / "visits.dpgram.json", public_key=public).about.title == "Visits"
        assert release.receipt is not None
        assert release.guarantee.epsilon == 1
        for kind in ("explorer", "report", "evaluation"):
            answer = published.ask("GET", f"file-{kind}")
            assert answer.text.startswith("<!DOCTYPE html>")
            assert answer.headers["content-security-policy"].startswith("sandbox allow-scripts")
            assert "allow-same-origin" not in answer.headers["content-security-policy"]
            assert "connect-src" not in answer.headers["content-security-policy"]
        served = published.ask("GET", "file-release")
        assert served.content == (root / "visits.dpgram.json").read_bytes()
        assert served.headers["content-disposition"].startswith("attachment")
        assert published.ask("GET", "file-registry").content == (root / "visits.yaml").read_bytes()
        assert "Visits" in published.ask("GET", "file-registry").text
        assert published.ask("GET", "file-key").status == 404

    def test_exact_counts_are_not_in_the_job_file(self, published: Browser) -> None:
        assert "1987" not in published.session.job_path.read_text()

    def test_the_same_job_by_the_command_line_is_finished(self, published: Browser, capsys: Any) -> None:
        book = Ledger.open(published.session.folder.root / "visits.ledger")
        before = len(book.history())
        assert before > 0
        assert cli.run(["run", str(published.session.job_path), "--yes"]) == 0
        assert "finished before, and nothing was spent" in capsys.readouterr().out
        assert len(book.history()) == before

    def test_a_second_click_charges_nothing(self, published: Browser) -> None:
        book = Ledger.open(published.session.folder.root / "visits.ledger")
        before = len(book.history())
        for _ in range(2):
            published.post("review", [("do", "publish"), ("seen", published.session.state)])
            assert published.address in ("done", "review")
        assert len(book.history()) == before


BY_HAND = """
[data]
file = "visits.csv"

[[columns]]
kind = "numeric"
name = "age"
low = 18
high = 90

[[columns]]
kind = "categorical"
name = "smoker"
levels = ["no", "yes"]

[[columns]]
kind = "numeric"
name = "charges"
low = 0
high = 50000

[rows]
expected = 2000

[privacy]
epsilon = 0.5
delta = 1e-7
ledger = "visits.ledger"
reason = "house policy"

[[models]]
family = "logistic"
target = "smoker=yes"
on = ["age"]

[outputs]
release = "visits.dpgram.json"
explorer = "visits.html"
report = "visits-report.html"
"""


def exact_gram(job: Job) -> Any:
    rules = row_rules(job.schema, job.rows)
    work = Pass(rules=rules, statistics=(GramStatistic(Encoder(rules.schema)),))
    (sums,) = find_engine("local", job.data).add_up(job.data, work, progress=False)
    return sums.cells


def test_the_job_file_asks_for_the_same_release(visits: Path) -> None:
    """As one that somebody wrote by hand: same decisions, plan, price and exact matrix."""
    Ledger.create(visits / "visits.ledger", name="visits", epsilon=3, delta=1e-5)
    (visits / "by-hand.toml").write_text(BY_HAND)
    browser = started(visits)
    to_budget(browser)
    asked = {"pays": "existing", "existing": "visits.ledger", "epsilon": "0.5", "delta": "1e-7"}
    browser.send("budget", {**asked, "reason": "house policy"})
    browser.send("outputs", {"family": "logistic", "target": "smoker=yes", "on": ["age"]}, press="do=stay")
    browser.send("outputs")
    assert browser.address == "review"
    by_hand, by_wizard = (Job.from_file(visits / name) for name in ("by-hand.toml", "visits-job.toml"))
    assert differences(by_hand, by_wizard) == ()
    assert replace(by_hand, path=None) == replace(by_wizard, path=None)
    assert by_hand.price() == by_wizard.price() == browser.session.review.check.price
    plans = [replace(job, mechanism="gaussian").plan() for job in (by_hand, by_wizard)]
    assert plans[0].to_json() == plans[1].to_json()
    assert (exact_gram(by_hand) == exact_gram(by_wizard)).all()


class TestNothingTooEarly:
    def test_nothing_is_read_before_step_1_says_so(
        self, visits: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read: list[str] = []
        real = {}
        for module, name in (("data", "starter_columns"), ("data", "open_source"), ("columns", "check")):
            place = f"dpgram.wizard.steps.{module}.{name}"
            real[place] = pytest.importorskip(f"dpgram.wizard.steps.{module}").__dict__[name]

            def spy(data: Any, *rest: Any, _real: Any = real[place], **options: Any) -> Any:
                read.append(str(data))
                return _real(data, *rest, **options)

            monkeypatch.setattr(place, spy)
        (visits / "old.toml").write_text(BY_HAND)
        for what in (None, "visits.csv", "old.toml"):
            browser = started(visits, what)
            for address in ("data", "columns", "people", "budget", "outputs", "review", "work", "done"):
                browser.open(address)
                assert browser.address == "data"
            browser.post("review", [("do", "publish")])
            browser.post("columns", [("do", "check")])
        assert read == []
        browser.send("data", press="do=read")
        assert read

    def test_nothing_is_charged_before_the_last_click(self, visits: Path) -> None:
        book = Ledger.create(visits / "visits.ledger", name="visits", epsilon=3, delta=1e-5)
        before = (visits / "visits.ledger").read_bytes()
        browser = started(visits)
        to_budget(browser)
        browser.send("budget", {"pays": "existing", "existing": "visits.ledger"})
        browser.send("outputs")
        assert browser.address == "review"
        assert book.left().share == 1
        assert (visits / "visits.ledger").read_bytes() == before
        assert not (visits / "visits.dpgram.json").exists()
        browser.send("review", press="do=publish")
        assert book.left().share < 1

    def test_what_was_changed_meanwhile_is_not_published(self, visits: Path) -> None:
        """Two tabs: the review in one is out of date as soon as the other changes a decision."""
        browser = started(visits)
        to_review(browser)
        seen = browser.session.state
        browser.open("budget")
        browser.send("budget", {"epsilon": "2"})
        browser.post("review", [("do", "publish"), ("seen", seen)])
        assert "changed since this page was shown" in browser.errors["job"]
        assert not (visits / "visits.ledger").exists()
        browser.send("review", press="do=review")
        assert "spend ε = 2" in browser.text

    def test_a_step_of_an_old_tab_changes_nothing(self, visits: Path) -> None:
        browser = started(visits)
        to_budget(browser)
        browser.open("people")
        old = browser.form("people").fields
        browser.send("people", {"expected": "3000"})
        browser.post("people", old)
        assert browser.address == "people"
        assert "out of date" in browser.text
        assert browser.session.form["rows"]["expected"] == 3000


class TestComingBack:
    def test_reload_and_back_lose_nothing(self, visits: Path) -> None:
        browser = started(visits)
        to_review(browser)
        before = browser.session.state
        for address in ("review", "outputs", "budget", "people", "columns", "data", "review"):
            first, second = browser.open(address), browser.open(address)
            assert first == second
            assert browser.address == address
        assert browser.session.state == before
        assert browser.session.review is not None

    def test_saving_a_step_unchanged_changes_nothing(self, visits: Path) -> None:
        browser = started(visits)
        to_review(browser)
        before = browser.session.job_path.read_bytes()
        for address in ("columns", "people", "budget", "outputs"):
            browser.open(address)
            browser.send(address)
            assert not browser.errors
            assert browser.session.job_path.read_bytes() == before, address

    def test_what_was_typed_wrong_is_kept(self, visits: Path) -> None:
        browser = started(visits)
        to_columns(browser)
        browser.send("columns", {**COLUMNS, "c0.low": "90", "c0.high": "18"})
        assert list(browser.errors) == ["c0.low"]
        browser.open("data")
        browser.open("columns")
        assert dict(browser.form("columns").fields)["c2.high"] == "50000"
        browser.send("columns", {"c0.low": "18", "c0.high": "90"})
        assert browser.address == "people"

    def test_a_job_file_is_gone_on_with(self, visits: Path) -> None:
        browser = started(visits)
        to_budget(browser)
        del browser
        again = started(visits, "visits-job.toml")
        again.send("data", press="do=read")
        again.follow("columns")
        fields = dict(again.form("columns").fields)
        assert {name: fields[name] for name in COLUMNS} == COLUMNS
        again.send("columns")
        again.send("people")
        again.send("budget")
        again.send("outputs")
        assert again.address == "review"

    def test_a_new_ledger_is_decided_on_again(self, visits: Path) -> None:
        """Its name and total are not in the job file: the pages say so before, and ask afterwards."""
        browser = started(visits)
        to_budget(browser)
        browser.send("budget", {"total_epsilon": "7"})
        assert "name and total of the new ledger are not" in browser.text
        again = started(visits, "visits-job.toml")
        again.send("data", press="do=read")
        again.open("review")
        assert "Decide on name and total in step 4" in again.text
        again.post("review", [("do", "review")])
        assert "Decide on name and total in step 4" in again.errors["job"]

    def test_a_job_in_a_folder_below_is_gone_on_with(self, visits: Path) -> None:
        (visits / "jobs").mkdir()
        text = BY_HAND.replace('"visits', '"../visits')
        (visits / "jobs" / "old.toml").write_text(text)
        browser = started(visits, "jobs/old.toml")
        browser.send("data", press="do=read")
        assert browser.session.job_path == visits / "jobs" / "old.toml"
        assert browser.session.form["privacy"]["epsilon"] == 0.5

    def test_what_no_page_shows_is_kept(self, visits: Path) -> None:
        text = BY_HAND.replace(
            "[rows]\n",
            '[[columns]]\nkind = "product"\nleft = "age"\nright = "smoker"\n\n[rows]\nstrict = true\n',
        )
        text = text.replace(
            'ledger = "visits.ledger"', 'ledger = false\nmechanism = "gaussian"\nadaptive = { bounds = 0.25 }'
        )
        text = text.replace('name = "age"', 'name = "age"\nweight = 2\ndescription = "years"')
        (visits / "old.toml").write_text(text)
        before = tomllib.loads(text)
        browser = started(visits, "old.toml")
        browser.send("data", press="do=read")
        for address in ("columns", "people", "budget", "outputs"):
            browser.open(address)
            browser.send(address)
            assert not browser.errors
        assert tomllib.loads((visits / "old.toml").read_text()) == before
        assert browser.address == "review"

    @pytest.mark.parametrize(
        ("line", "other"),
        [
            ('file = "visits.csv"', 'file = ["visits.csv", "more.csv"]'),
            ('file = "visits.csv"', 'file = "env:DB"\nquery = "SELECT 1"'),
            ("[rows]", '[series]\nfile = "visits.series"\nperiod = "2025"\n\n[rows]'),
        ],
    )
    def test_a_job_that_the_pages_cannot_show(self, visits: Path, line: str, other: str) -> None:
        (visits / "old.toml").write_text(BY_HAND.replace(line, other))
        with pytest.raises(dg.errors.JobError, match="dpgram run"):
            started(visits, "old.toml")

    def test_a_job_that_reads_elsewhere(self, visits: Path) -> None:
        (visits / "old.toml").write_text(BY_HAND.replace("visits.csv", "../visits.csv"))
        with pytest.raises(dg.errors.JobError, match="leads out of the folder"):
            started(visits, "old.toml")


OUTSIDE = {
    "release": ('"visits.dpgram.json"', '"../OUT.dpgram.json"'),
    "ledger": ('"visits.ledger"', '"../visits.ledger"'),
    "report": ('"visits-report.html"', '"/tmp/report.html"'),
    "key": ("[outputs]", '[outputs]\nkey = "../curator.key"'),
    "link": ('"visits.html"', '"away/visits.html"'),
}


class TestAJobThatLeadsOut:
    """Nothing outside of the folder is written, charged or signed with, whoever wrote the job file."""

    @pytest.fixture
    def inside(self, tmp_path: Path) -> Path:
        inside, outside = tmp_path / "inside", tmp_path / "outside"
        inside.mkdir()
        outside.mkdir()
        (inside / "away").symlink_to(outside)
        return write_visits(inside)

    @pytest.mark.parametrize(("line", "other"), OUTSIDE.values(), ids=OUTSIDE)
    def test_it_is_refused_at_the_start(self, inside: Path, line: str, other: str) -> None:
        (inside / "old.toml").write_text(BY_HAND.replace(line, other))
        with pytest.raises(dg.errors.JobError, match="leads out of the folder"):
            started(inside, "old.toml")

    def test_and_before_the_charge(self, inside: Path) -> None:
        """A folder inside becomes a link that leads out, after the review or before it."""
        (inside / "pages").mkdir()
        browser = started(inside)
        to_review(browser, report="pages/report.html")
        (inside / "pages").rmdir()
        (inside / "pages").symlink_to(inside.parent / "outside")
        browser.send("review", press="do=publish")
        assert "leads out of the folder" in browser.text
        assert "Nothing was spent." in browser.text
        assert not (inside / "visits.ledger").exists()
        browser.post("review", [("do", "review")])
        assert "leads out of the folder" in browser.text
        assert list((inside.parent / "outside").iterdir()) == []


def test_closing_ends_it(visits: Path) -> None:
    browser = started(visits)
    browser.send("end")
    assert browser.ended
    assert "closed" in browser.text


def test_the_last_page_needs_no_server(visits: Path) -> None:
    """It may have ended before a slow browser asks for a style or a script; the page's policy allows both to
    come from itself alone."""
    browser = started(visits)
    answer = browser.ask("POST", "end")
    assert re.findall(r'(?:src|action)="', answer.text) == []
    assert re.findall(r'<link .*?href="(.*?)"', answer.text) == ["data:,"]
    (style,) = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    assert style == browser.ask("GET", "static/style.css").text
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = answer.headers["content-security-policy"]
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{allowed}';")
    assert "unsafe" not in policy


def test_a_mistake_of_ours_tells_no_cell(visits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = started(visits)
    to_columns(browser)

    def breaks(*_: object, **__: object) -> None:
        raise ValueError("the cell holds 4711")

    monkeypatch.setattr("dpgram.wizard.steps.columns.check", breaks)
    with pytest.raises(AssertionError):
        browser.send("columns", dict(COLUMNS), press="do=check")
    browser.open("work")
    assert "ValueError" in browser.text
    assert "4711" not in browser.text


def test_progress_is_told_in_json(visits: Path) -> None:
    browser = started(visits)
    assert json.loads(browser.ask("GET", "progress").text)["done"] is True
    to_columns(browser)
    browser.send("columns", dict(COLUMNS), press="do=check")
    told = json.loads(browser.ask("GET", "progress").text)
    assert told["done"] is True
    assert told["lines"] == ["every row is read; nothing is spent and nothing is written"]
