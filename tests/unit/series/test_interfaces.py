"""A series from the command line and from job files, and what an analyst's process loads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import csv
from tests.unit.series.streams import SCHEMA, names, people, seeded

import dpgram as dg
from dpgram import cli
from dpgram.analysis.moments import Moments
from dpgram.errors import JobError
from dpgram.explorer.facts import page_facts
from dpgram.exports.summary_statistics import summary_statistics

pytestmark = pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")

JOB = """
[data]
file = "{month}.csv"
schema = "visits.toml"
[rows]
unit = "id"
[privacy]
epsilon = 2
delta = 1e-6
ledger = "visits.ledger"
[series]
file = "visits.series"
period = "{month}"
periods = {periods}
[outputs]
release = "until-{month}.dpgram.json"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    SCHEMA.to_file("visits.toml")
    for number, month in enumerate(["september", "october"]):
        csv.write_csv(people(900 * number, 1_000), f"{month}.csv")
        (tmp_path / f"{month}-job.toml").write_text(JOB.format(month=month, periods=12))
    dg.Ledger.create("visits.ledger", name="visits", epsilon=4, delta=1e-5, unit="id")
    return tmp_path


def test_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    create = "series create visits.series --schema visits.toml --periods 12 --epsilon 2 --delta 1e-6"
    assert cli.run([*create.split(), "--unit", "id", "--ledger", "visits.ledger"]) == 0
    for month in ("september", "october"):
        call = f"series publish visits.series {month}.csv --period {month} -o {month}.json"
        assert cli.run(call.split()) == 0
    said = capsys.readouterr().out
    assert "rows left out" in said
    assert "2 of 12 periods" in said
    assert cli.run(["series", "window", "visits.series", "september", "october", "-o", "both.json"]) == 0
    assert dg.load("both.json") == dg.load("october.json")
    capsys.readouterr()
    assert cli.run(["series", "show", "visits.series", "--trend", "y", "--on", "x", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["published"] == ["september", "october"]
    assert len(shown["trend"]["x"]["estimate"]) == 2
    assert cli.run(["series", "publish", "visits.series", "--period", "november"]) == 2
    assert "it is not clear whether the period has rows" in capsys.readouterr().err
    assert len(dg.Ledger.open(folder / "visits.ledger").history()) == 1


def test_a_count_that_is_a_weight_says_how_much_is_missing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Few rows in the first period: the clip that it fixed takes a tenth of all weight and more."""
    series = seeded(folder / "few.series", [people(300 * t, 300, seed=t) for t in range(12)], epsilon=1.0)
    total = series.total()
    moments = Moments.of(total)
    assert moments.rows is not None
    assert moments.clip is not None
    assert moments.rows < 0.95 * 3_600
    said = f"so that about {moments.clip.lost:.1%} is missing here"
    answers = {
        "regress": total.regress("y", ["x"]).summary(),
        "page": json.dumps(page_facts(total), ensure_ascii=False),
        "export": "\n".join(summary_statistics(total).header("x")),
    }
    for name, text in answers.items():
        assert said in " ".join(text.split()), name
    total.save("few.json")
    assert cli.run(["regress", "few.json", "y", "--on", "x", "--json"]) == 0
    assert said in json.loads(capsys.readouterr().out)["nobs_is"]
    assert "missing here" not in str(total.describe())  # histograms count every row
    low, high = (getattr(total.describe().rows, end) for end in ("low", "high"))
    assert low < 3_600 < high
    # Beside several rows of a person there is no histogram of all rows.
    several = seeded(
        folder / "rows.series",
        [people(300 * t, 300, seed=t) for t in range(3)],
        rows=dg.Rows(unit="id", unit_rows=2),
    )
    assert "rows that were scaled down count less" in str(several.total().describe())


def test_new_rows_under_an_old_name_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    create = "series create visits.series --schema visits.toml --periods 12 --epsilon 2 --delta 1e-6"
    assert cli.run([*create.split(), "--unit", "id", "--no-ledger"]) == 0
    call = "series publish visits.series september.csv --period september"
    assert cli.run(call.split()) == 0
    first = capsys.readouterr()
    assert "published september: 1 of 12 periods" in first.out
    assert "published before" not in first.out + first.err
    before = (folder / "visits.series").read_bytes()
    call = "series publish visits.series october.csv --period september"
    assert cli.run(call.split()) == 0
    again = capsys.readouterr()
    assert "september was published before, and nothing has changed: 1 of 12" in " ".join(again.out.split())
    assert "published september:" not in again.out
    assert "warning: period 'september' was published before" in again.err
    assert cli.run([*call.split(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["published_before"] is True
    call = "series publish visits.series october.csv --period october --json"
    assert cli.run(call.split()) == 0
    assert json.loads(capsys.readouterr().out)["published_before"] is False
    assert (folder / "visits.series").read_bytes().startswith(before)


def test_a_file_twice_is_no_period(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    series = dg.Series.create(
        "visits.series", SCHEMA, epsilon=2, delta=1e-6, periods=12, rows=dg.Rows(unit="id")
    )
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    call = "series publish visits.series october.csv *.csv --period october"
    assert cli.run(call.split()) == 2
    assert "the same rows would be counted twice" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert series.publish("october.csv", "october", progress=False) == series.total()


@pytest.mark.parametrize(("extra", "usual"), [("", False), (",5,1\n", True)])
def test_a_table_of_people_who_have_counted_is_told(
    extra: str, usual: bool, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dg.Series.create("visits.series", SCHEMA, epsilon=2, delta=1e-6, periods=12, rows=dg.Rows(unit="id"))
    for month in ("september", "october"):
        csv.write_csv(people(0, 1_000), f"{month}.csv")
    (folder / "october.csv").write_text((folder / "october.csv").read_text() + extra)
    for month in ("september", "october"):
        assert cli.run(["series", "publish", "visits.series", f"{month}.csv", "--period", month]) == 0
        told = capsys.readouterr().err
        assert ("of persons who have counted already" in told) == (month == "october")
    assert f"1,000 of 1,00{len(extra) and 1} rows are of persons" in told
    assert "is this the right file?" in told
    assert ("Check the column names" in told) == usual


def test_a_job_with_an_old_period_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["run", "september-job.toml", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["published_before"] is False
    assert cli.run(["run", "september-job.toml", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["published_before"] is False
    mistyped = JOB.format(month="october", periods=12).replace('period = "october"', 'period = "september"')
    (folder / "october-job.toml").write_text(mistyped)
    assert cli.run(["run", "october-job.toml", "--dry-run"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Period 'september' of visits.series was published before" in said
    assert "write another `period` below [series]" in said
    assert cli.run(["run", "october-job.toml", "--yes"]) == 0
    done = capsys.readouterr()
    assert "publishing october.csv" not in done.err
    assert "september of visits.series was published before: october.csv is not read" in done.err
    assert dg.load("until-october.dpgram.json") == dg.load("until-september.dpgram.json")
    (folder / "until-october.dpgram.json").unlink()
    assert cli.run(["run", "october-job.toml", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["published_before"] is True


@pytest.mark.parametrize(
    "name", ["", ".NOT-PRIVATE", ".NOT-PRIVATE.restored", ".unfinished-0123456789abcdef"]
)
def test_no_page_replaces_a_file_of_the_series(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    series = seeded(folder / "visits.series", [people(0, 50)])
    (folder / "other").mkdir()
    (folder / "link").symlink_to(folder)
    there = folder / f"visits.series{name}"
    before = there.read_bytes() if there.exists() else None
    for target in (there, folder / "other" / ".." / there.name, folder / "link" / there.name):
        assert cli.run(["series", "explore", str(series.path), "-o", str(target), "--overwrite"]) == 2
        said = capsys.readouterr().err
        assert "is a file of the series itself" in said or "would replace what this command reads" in said
    assert (there.read_bytes() if there.exists() else None) == before
    assert series.explore(folder / "visits.series.html").exists()


@pytest.mark.parametrize("name", ["visits.series", "visits.series.NOT-PRIVATE", "october.csv"])
@pytest.mark.parametrize("command", ["publish", "window", "show"])
def test_no_output_replaces_what_is_read(
    command: str, name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    series = seeded(folder / "visits.series", [people(0, 50)])
    call = {
        "publish": ["visits.series", "october.csv", "--period", "october", "-o"],
        "window": ["visits.series", "1", "1", "-o"],
        "show": ["visits.series", "--trend", "y", "--on", "x", "--plot"],
    }[command]
    if command != "publish" and name == "october.csv":
        pytest.skip("it reads no table")
    before = (folder / name).read_bytes()
    assert cli.run(["series", command, *call, name, "--overwrite"]) == 2
    assert "would replace what this command reads" in capsys.readouterr().err
    assert (folder / name).read_bytes() == before
    assert dg.Series.open(series.path).labels == series.labels


def test_an_interrupt_tells_whether_the_series_was_charged(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    create = "series create visits.series --schema visits.toml --periods 12 --epsilon 2 --delta 1e-6"
    call = [*create.split(), "--unit", "id", "--ledger", "visits.ledger"]
    for where, said in (
        ("dpgram.publishing.series.open_ledger", "dpgram: interrupted. Nothing was spent"),
        ("dpgram.series._curate.create_secret", "entry 1 of the ledger was charged before the interrupt"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(where, interrupt)
            assert cli.run(call) == 130
        told = capsys.readouterr().err
        assert said in " ".join(told.split())
        assert ("Nothing was spent" in told) == ("Nothing was spent" in said)
    assert cli.run(call) == 0
    assert len(dg.Ledger.open("visits.ledger").history()) == 1


def test_jobs_add_periods_to_one_series(folder: Path) -> None:
    for month in ("september", "october"):
        job = dg.Job.from_file(folder / f"{month}-job.toml")
        assert job.run(progress=False).state == "published"
        assert job.run(progress=False).state == "finished"
    ledger = dg.Ledger.open("visits.ledger")
    assert len(ledger.history()) == 1
    series = dg.Series.open("visits.series")
    assert series.labels == ("september", "october")
    until = dg.load("until-october.dpgram.json")
    assert until == series.total()
    assert not [name for name in names(folder) if "unfinished" in name]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('unit = "id"', 'unit = "id"\nmissing = "midpoint"', "missing is drop there, midpoint here"),
        ('unit = "id"', 'unit = "id"\nunit_rows = 1', "unit_rows is not given there, 1 here"),
        ('unit = "id"', 'unit = "id"\nstrict = true', "strict is False there, True here"),
        ('unit = "id"', 'unit = "id"\nradius = 1.0', "radius is not given there, 1.0 here"),
        ("delta = 1e-6", "delta = 1e-6\nadaptive = false", "histograms is 0.1 there, 0.0 here"),
        ("delta = 1e-6", "delta = 1e-6\nadaptive = { first = 0.3 }", "first is 0.25 there, 0.3 here"),
        ('"visits.ledger"', '"other.ledger"', "the ledger 'other' has no charge for it"),
        ('"visits.ledger"', "false", "it was paid for by a ledger"),
    ],
)
@pytest.mark.parametrize("month", ["september", "october"])
def test_a_job_that_would_create_another_series_is_refused(
    month: str, old: str, new: str, words: str, folder: Path
) -> None:
    """In a later period, and where the period of the job is published already."""
    dg.Ledger.create("other.ledger", name="other", epsilon=4, delta=1e-5, unit="id")
    dg.Job.from_file(folder / "september-job.toml").run(progress=False)
    text = JOB.format(month=month, periods=12)
    assert old in text
    (folder / "job.toml").write_text(text.replace(old, new))
    before = (folder / "visits.series").read_bytes()
    job = dg.Job.from_file(folder / "job.toml")
    for look in (job.review, job.run):
        with pytest.raises(JobError, match=words):
            look(progress=False)
    assert (folder / "visits.series").read_bytes() == before


def shown_labels(page: Path) -> list[str]:
    """The periods of the trends that a page offers."""
    text = page.read_text(encoding="utf-8").partition('<script type="application/json" id="data">')[2]
    labels: list[str] = json.loads(text.partition("</script>")[0])["series"]["labels"]
    return labels


def test_the_page_of_a_job_has_trends_up_to_its_period(folder: Path) -> None:
    jobs = []
    for month in ("september", "october"):
        text = JOB.format(month=month, periods=12) + f'explorer = "{month}.html"\n'
        (folder / f"{month}-job.toml").write_text(text)
        jobs.append(dg.Job.from_file(folder / f"{month}-job.toml"))
        assert jobs[-1].run(progress=False).state == "published"
    assert shown_labels(folder / "october.html") == ["september", "october"]
    # Made again when the series has gone on: what was published up to then.
    before = (folder / "september.html").read_text()
    (folder / "september.html").unlink()
    assert jobs[0].run(progress=False).state == "finished"
    assert shown_labels(folder / "september.html") == ["september"]
    assert (folder / "september.html").read_text() == before
    (folder / "september.html").unlink()
    for name in ("visits.series", "visits.series.NOT-PRIVATE"):
        (folder / name).unlink()
    other = dg.Series.create(folder / "visits.series", SCHEMA, epsilon=4, delta=1e-5, periods=3)
    assert other.labels == ()
    with pytest.raises(JobError, match=r"not of the series visits\.series"):
        jobs[0].run(progress=False)


def test_a_job_of_another_series_is_refused(folder: Path) -> None:
    dg.Job.from_file(folder / "september-job.toml").run(progress=False)
    (folder / "october-job.toml").write_text(JOB.format(month="october", periods=24))
    with pytest.raises(JobError, match="periods is 12 there, 24 here"):
        dg.Job.from_file(folder / "october-job.toml").run(progress=False)
    text = JOB.format(month="october", periods=12).replace('period = "october"\n', "")
    (folder / "october-job.toml").write_text(text)
    with pytest.raises(JobError, match=r"'period' of .series. is missing"):
        dg.Job.from_file(folder / "october-job.toml")


def test_an_analyst_loads_nothing_that_reads_rows(folder: Path) -> None:
    series = dg.Series.create("a.series", SCHEMA, epsilon=4, delta=1e-5, periods=3)
    for number in (1, 2):
        series.publish(people(1_000 * number, 1_000), f"m{number}", progress=False)
    code = (
        "import warnings; warnings.simplefilter('ignore'); import sys, dpgram\n"
        "found = dpgram.Series.open('a.series'); found.window(1, 2).regress('y', ['x']).conf_int()\n"
        "print(found); found.trend('y', ['x']).change('x')\n"
        "print([name for name in ('pyarrow', 'dpgram.publishing', 'dpgram.rows', 'dpgram.sums', "
        "'dpgram.engines') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder
    )
    assert done.stdout.splitlines()[-1] == "[]"
