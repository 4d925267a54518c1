"""The job file: strictly read, shown before it spends, re-runnable, silent about what a check has found."""

from __future__ import annotations

import json
import shlex
import sqlite3
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpgram as dg
from dpgram.cli import run as command
from dpgram.errors import BudgetExceeded, CheckError, DpgramError, JobError, LedgerError
from dpgram.job import Job, Outputs, _file, differences
from dpgram.job._series import Growing
from dpgram.job.words import OPTIONS, as_flag, as_key, in_commands, reworded
from dpgram.release import SigningKey

TEXT = """
[about]
title = "Small people"
licence = "CC BY 4.0"

[data]
file = "people.csv"

[[columns]]
kind = "numeric"
name = "x"
low = -1
high = 1

[[columns]]
kind = "categorical"
name = "g"
levels = ["a", "b"]

[rows]
missing = "drop"

[privacy]
epsilon = 1
delta = 1e-6
ledger = "people.ledger"
reason = "the policy of the house"
approved_by = "the data protection officer"
note = "spring"

[outputs]
release = "people.dpgram.json"
explorer = "people.html"
report = "report.html"
"""
MUCH_IS_LOST = 3
"""Exit code of a dry run: two of the five rows cannot be used."""
ROWS = "x,g,id\n0.5,a,1\n3.0,b,1\n,a,2\n-0.5,b,3\n0.1,c,3\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text(ROWS)
    (tmp_path / "job.toml").write_text(TEXT)
    dg.Ledger.create(tmp_path / "people.ledger", name="people", epsilon=3, delta=1e-5)
    return tmp_path


def job_of(folder: Path, *changes: tuple[str, str]) -> Job:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "job.toml").write_text(text)
    return Job.from_file(folder / "job.toml")


def charges(folder: Path) -> int:
    """Entries of the ledger; an adaptive release has two."""
    return len(dg.Ledger.open(folder / "people.ledger").history())


class TestFile:
    def test_what_it_says(self, folder: Path) -> None:
        job = job_of(folder)
        assert job.data == str(folder / "people.csv")
        assert job.schema == dg.Schema(dg.numeric("x", -1, 1), dg.categorical("g", ["a", "b"]))
        assert (job.epsilon, job.delta, job.ledger) == (1, 1e-6, folder / "people.ledger")
        assert job.outputs == Outputs(
            release=folder / "people.dpgram.json",
            explorer=folder / "people.html",
            report=folder / "report.html",
        )

    def test_every_public_rule_for_rows_has_its_key(self) -> None:
        assert set(_file.SECTIONS["rows"]) == {each.name for each in fields(dg.Rows)}

    def test_tables_in_a_line(self, folder: Path) -> None:
        job = job_of(
            folder,
            ("epsilon = 1", 'epsilon = 1\nmechanism = { name = "sketch", degrees = 400 }'),
            ("delta", "adaptive = { bounds = 0.3 }\ndelta"),
        )
        assert job.mechanism == dg.mechanisms.Sketch(degrees=400)
        assert job.adaptive == dg.Adaptive(bounds=0.3)

    def test_a_schema_of_its_own(self, folder: Path) -> None:
        job = job_of(folder)
        job.schema.to_file(folder / "schema.toml")
        start, end = TEXT.index("[[columns]]"), TEXT.index("[rows]")
        text = (TEXT[:start] + TEXT[end:]).replace('"people.csv"', '"people.csv"\nschema = "schema.toml"')
        (folder / "job.toml").write_text(text)
        assert Job.from_file(folder / "job.toml") == job

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ("epsilon = 1", "epsilom = 1", r"\[privacy\] has no key 'epsilom'.*Did you mean 'epsilon'"),
            ("[privacy]", "[privasy]", r"no section or key 'privasy'.*Did you mean 'privacy'"),
            (
                "epsilon = 1",
                'epsilon = "1"',
                r"must be a number; got the text '1'.*epsilon = 1, without quot",
            ),
            ("epsilon = 1\n", "", r"'epsilon' of \[privacy\] is missing.*epsilon = 1"),
            ("delta = 1e-6\n", "", r"'delta' of \[privacy\] is missing.*0 for a pure"),
            ('ledger = "people.ledger"\n', "", r"'ledger' of \[privacy\] is missing.*or false"),
            ('ledger = "people.ledger"', "ledger = true", "must be a path, or false"),
            ('missing = "drop"', "epsilon = 2", r"\[rows\] has no key 'epsilon'.*belongs below \[privacy\]"),
            ('missing = "drop"', 'missing = "dorp"', "missing"),
            ('missing = "drop"', "strict = 1", "must be true or false"),
            ('missing = "drop"', "unit_rows = 2.5", "must be a whole number"),
            ('[rows]\nmissing = "drop"', 'rows = 5\nmissing = "drop"', "column 'g'|a section"),
            ('file = "people.csv"', "file = []", "a path, or a list of paths"),
            ("[rows]", "[models]\ny = 1\n[rows]", "a table of its own"),
            ("[rows]", "[[models]]\nfamily = 'linear'\n[rows]", "'target' of .* is missing"),
            ("[rows]", "[[models]]\nfamilly = 'linear'\n[rows]", "Did you mean 'family'"),
            ("[rows]", "[[models]]\nfamily = 'gamma'\ntarget = 'y'\n[rows]", "unknown family"),
            ("[rows]", "[[models]]\nfamily = 'linear'\ntarget = 'y'\nsteps = 2\n[rows]", "no steps"),
            ("[rows]", "[[models]]\nfamily = 'linear'\ntarget = 'y'\non = 'x'\n[rows]", "a list of columns"),
            ("low = -1", "lwo = -1", "column 'x'"),
            ('kind = "numeric"', 'kind = "number"', "unknown kind"),
            ("epsilon = 1", "epsilon = 1\nadaptive = { bonds = 0.2 }", "Did you mean 'bounds'"),
            ("epsilon = 1", "epsilon = 1\nmechanism = { degrees = 4 }", "needs a `name`"),
            ("epsilon = 1", 'epsilon = 1\nmechanism = { name = "sketch", degree = 4 }', "mean 'degrees'"),
            ("epsilon = 1", 'epsilon = 1\nmechanism = "gausian"', "gausian"),
            ('reason = "the policy of the house"', f'reason = "{"x" * 500}"', "at most 400 characters"),
            ("[about]", "[about", "not valid TOML"),
            ("epsilon = 1", f"epsilon = {'9' * 5000}", "not valid TOML: a whole number has thousands"),
            ("epsilon = 1", f"epsilon = {'[' * 2000}", "not valid TOML: brackets are nested"),
            ("epsilon = 1", f"a{'.a' * 2000} = 1", "not valid TOML: a key has more than"),
            ('file = "people.csv"', 'file = "people.csv"\nschema = "x.toml"', "both"),
        ],
    )
    def test_mistakes_are_named(self, folder: Path, old: str, new: str, words: str) -> None:
        with pytest.raises(DpgramError, match=words) as caught:
            job_of(folder, (old, new)).run()
        assert "job.toml" in str(caught.value)
        assert charges(folder) == 0

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(JobError, match="cannot be read"):
            Job.from_file(tmp_path / "none.toml")

    def test_no_ledger_yet(self, folder: Path) -> None:
        (folder / "people.ledger").unlink()
        with pytest.raises(LedgerError, match="dpgram ledger create") as caught:
            job_of(folder).run()
        assert "--unit" not in str(caught.value)
        assert "--adjacency" not in str(caught.value)

    @pytest.mark.parametrize("unit", ["id", "patient id"])
    def test_the_ledger_that_it_asks_for_is_the_one_it_takes(
        self, folder: Path, unit: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (folder / "people.ledger").unlink()
        (folder / "people.csv").write_text(ROWS.replace("id", unit))
        job_of(
            folder,
            ('missing = "drop"', f'missing = "drop"\nunit = "{unit}"\nexpected = 100'),
            ("delta = 1e-6", 'delta = 1e-6\nadjacency = "replace-one"'),
        )
        assert command(["run", str(folder / "job.toml"), "--dry-run"]) == 2
        line = capsys.readouterr().err.partition("Create it once: dpgram ")[2].partition(", or write")[0]
        told = line.replace("NAME", "people").replace("--epsilon TOTAL", "--epsilon 3")
        assert command(shlex.split(told.replace("--delta TOTAL", "--delta 1e-5"))) == 0
        assert command(["run", str(folder / "job.toml"), "--dry-run"]) == MUCH_IS_LOST


class TestRun:
    def test_everything_is_written_once(self, folder: Path) -> None:
        job = job_of(folder)
        done = job.run(progress=False)
        assert done.state == "published"
        assert [path.name for path in done.written] == ["people.dpgram.json", "people.html", "report.html"]
        release = dg.load(folder / "people.dpgram.json")
        assert done.releases == (release,)
        assert release.about is not None
        assert release.about.title == "Small people"
        assert (release.guarantee.epsilon, release.guarantee.delta) == (1.0, 1e-6)
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        again = job.run(progress=False)
        assert (again.state, again.written, again.releases) == ("finished", (), (release,))
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    def test_papers_are_written_with_the_release(self, folder: Path) -> None:
        more = 'report = "report.html"\nregistry = "entry.yaml"\nevaluation = "nist.html"'
        done = job_of(folder, ('report = "report.html"', more)).run(progress=False)
        assert [path.name for path in done.written][3:] == ["entry.yaml", "nist.html"]
        assert "Small people" in (folder / "entry.yaml").read_text()
        assert "holds the charge of this release" in (folder / "nist.html").read_text(encoding="utf-8")

    def test_reason_and_approval_are_in_the_ledger(self, folder: Path) -> None:
        job_of(folder).run(progress=False)
        entries = dg.Ledger.open(folder / "people.ledger").history()
        assert [entry.note for entry in entries] == [
            "spring; reason: the policy of the house; approved by: the data protection officer"
        ]

    def test_review_comes_first_and_may_decline(self, folder: Path) -> None:
        seen: list[Any] = []

        def decline(review: Any) -> bool:
            seen.append(review)
            assert charges(folder) == 0
            return False

        job = job_of(folder, ('missing = "drop"', "expected = 5000"))
        assert job.run(accept=decline, progress=False).state == "declined"
        assert seen[0].check.counts["all"].cells_clamped == 1
        assert [one.mechanism for one in seen[0].plan.forecasts] == [seen[0].check.price.mechanism]
        assert charges(folder) == 0
        assert sorted(path.name for path in folder.iterdir()) == ["job.toml", "people.csv", "people.ledger"]

    def test_nothing_public_reveals_what_was_accepted(self, folder: Path) -> None:
        """One table that the check complains about and one that it does not: the same public content."""
        plain = ('note = "spring"', 'note = "spring"\nadaptive = false')  # of others more follows from noise
        untidy = job_of(folder, plain).run(progress=False).releases[0]
        (folder / "people.csv").write_text("x,g\n0.1,a\n0.2,b\n0.3,a\n")
        names = (("people.dpgram.json", "b.json"), ("people.html", "b.html"), ("report.html", "c.html"))
        tidy = job_of(folder, plain, *names)
        public = [json.loads(one.to_json()) for one in (untidy, tidy.run(progress=False).releases[0])]
        for one in public:
            for drawn in ("matrix", "receipt", "digest"):
                del one[drawn]
        assert public[0] == public[1]

    def test_a_missing_page_is_made_again_at_no_cost(self, folder: Path) -> None:
        job = job_of(folder)
        job.run(progress=False)
        (folder / "report.html").unlink()
        assert [path.name for path in job.run(progress=False).written] == ["report.html"]
        assert charges(folder) == 1

    def test_a_signature_before_and_after(self, folder: Path) -> None:
        key = SigningKey.create(folder / "curator.key")
        signing = ('report = "report.html"', 'report = "report.html"\nkey = "curator.key"')
        job_of(folder).run(progress=False)
        job_of(folder, signing).run(progress=False)
        dg.load(folder / "people.dpgram.json", public_key=key.public)
        assert charges(folder) == 1

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ("epsilon = 1", "epsilon = 0.5", "epsilon is 1.0 there, 0.5 here"),
            ('name = "x"', 'name = "id"', "columns"),
            ("Small", "Tall", "title"),
            ('"people.ledger"', "false", "paid for by a ledger"),
        ],
    )
    def test_another_job_does_not_take_its_place(self, folder: Path, old: str, new: str, words: str) -> None:
        job_of(folder).run(progress=False)
        before = (folder / "people.dpgram.json").read_bytes()
        with pytest.raises(JobError, match=words):
            job_of(folder, (old, new)).run(progress=False)
        assert (folder / "people.dpgram.json").read_bytes() == before
        assert charges(folder) == 1

    @pytest.mark.parametrize("name", ["people.dpgram.json", "people.html"])
    def test_files_of_others_are_left_alone(self, folder: Path, name: str) -> None:
        (folder / name).write_text("mine")
        job = job_of(folder)
        for look in (job.review, job.run):
            with pytest.raises(JobError, match="already"):
                look(progress=False)
        assert (folder / name).read_text() == "mine"
        assert charges(folder) == 0

    @pytest.mark.parametrize("kind", ["release", "explorer", "report"])
    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("people.csv", "would replace what this job reads"),
            ("people.ledger", "would replace what this job reads"),
            ("link.ledger", "would replace what this job reads"),
            ("job.toml", "would replace what this job reads"),
            ("people.ledger-journal", "a name that the ledger people.ledger needs"),
            ("other.json", "two outputs of this job are one file"),
        ],
    )
    def test_no_output_replaces_what_is_read(self, folder: Path, kind: str, name: str, words: str) -> None:
        (folder / "link.ledger").symlink_to(folder / "people.ledger")
        names = {"release": "people.dpgram.json", "explorer": "people.html", "report": "report.html"}
        changes = [(f'{kind} = "{names[kind]}"', f'{kind} = "{name}"')]
        if name == "other.json":
            changes.append(("[outputs]", '[outputs]\nregistry = "../' + folder.name + '/other.json"'))
        before = (folder / "people.csv").read_bytes()
        job = job_of(folder, *changes)
        for look in (job.review, job.run):
            with pytest.raises(DpgramError, match=words):
                look(progress=False)
        assert charges(folder) == 0
        assert (folder / "people.csv").read_bytes() == before

    @pytest.mark.parametrize("kind", ["release", "explorer", "report"])
    def test_a_dry_run_refuses_a_place_that_the_run_would_refuse(
        self, folder: Path, kind: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        job_of(folder, (f'{kind} = "', f'{kind} = "no-such-folder/'))
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        said = []
        for how in ("--dry-run", "--yes"):
            assert command(["run", str(folder / "job.toml"), how]) == 2
            said.append(capsys.readouterr().err.strip().splitlines()[-1])
        assert "in a folder that exists" in said[0]
        assert said[0] == said[1]
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    @pytest.mark.filterwarnings("ignore:a publication with these options was interrupted")
    def test_an_interrupted_run_is_continued(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The ledger has room for one release alone: the second run must not be refused for it."""
        (folder / "people.ledger").unlink()
        dg.Ledger.create(folder / "people.ledger", name="people", epsilon=1, delta=1.1e-6)
        job = job_of(folder)

        def interrupt(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(dg.Release, "save", interrupt)
            with pytest.raises(KeyboardInterrupt):
                job.run(progress=False)
        assert charges(folder) == 1
        seen: list[bool] = []
        done = job.run(accept=lambda review: not seen.append(review.continued), progress=False)
        assert (done.state, seen, charges(folder)) == ("published", [True], 1)
        assert job.run(progress=False).state == "finished"

    def test_a_finished_job_is_not_priced_again(self, folder: Path) -> None:
        """The ledger has nothing left for another job."""
        (folder / "people.ledger").unlink()
        dg.Ledger.create(folder / "people.ledger", name="people", epsilon=1, delta=1.1e-6)
        job = job_of(folder)
        assert not job.review(progress=False).continued
        job.run(progress=False)
        assert job.review(progress=False).continued
        other = job_of(folder, ("epsilon = 1", "epsilon = 0.5"))
        with pytest.raises(BudgetExceeded):
            other.check(progress=False)
        with pytest.raises(JobError, match="a release of another job: epsilon is 1"):
            other.review(progress=False)

    def test_a_refusal_of_the_ledger_comes_with_the_check(self, folder: Path) -> None:
        with pytest.raises(BudgetExceeded, match="Nothing was spent"):
            job_of(folder, ("epsilon = 1", "epsilon = 8")).review(progress=False)

    def test_groups_and_blocks_have_files_of_their_own(self, folder: Path) -> None:
        done = job_of(folder, ('missing = "drop"', 'by = "g"')).run(progress=False)
        assert [path.name for path in done.written if path.suffix == ".json"] == [
            "people.a.dpgram.json",
            "people.b.dpgram.json",
        ]
        assert job_of(folder, ('missing = "drop"', 'by = "g"')).run(progress=False).state == "finished"

    def test_without_a_ledger(self, folder: Path) -> None:
        assert job_of(folder, ('"people.ledger"', "false")).run(progress=False).state == "published"
        assert charges(folder) == 0


class TestQuery:
    """A database: its address comes from the environment, and stands in nothing that is written or said."""

    QUERY = "SELECT x, g FROM people WHERE id < 1000 -- a public filter"

    @pytest.fixture
    def database(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        place = folder / "very-secret-place.sqlite"
        connection = sqlite3.connect(place)
        pd.read_csv(folder / "people.csv").to_sql("people", connection, index=False)
        connection.commit()
        connection.close()
        monkeypatch.setenv("CLINIC_DB", f"sqlite:///{place}")
        return f"sqlite:///{place}"

    def asking(self, file: str) -> tuple[str, str]:
        return 'file = "people.csv"', f'file = "{file}"\nquery = "{self.QUERY}"'

    @pytest.mark.parametrize("file", ["env:CLINIC_DB", "very-secret-place.sqlite"])
    def test_the_result_is_published(self, folder: Path, database: str, file: str) -> None:
        plain = ('note = "spring"', 'note = "spring"\nadaptive = false')
        job = job_of(folder, self.asking(file), plain)
        (folder / "people.csv").unlink()
        assert job.check(progress=False).counts["all"].rows_read == 5
        assert job.run(progress=False).state == "published"
        assert job.run(progress=False).state == "finished"

    def test_it_stands_nowhere(self, folder: Path, database: str, capsys: Any) -> None:
        job = job_of(folder, self.asking("env:CLINIC_DB"))
        assert "very-secret" not in repr(job)
        before = {path.name for path in folder.iterdir()}
        for call in (["--dry-run"], ["--dry-run", "--json"], ["--yes"], ["--yes", "--json"]):
            lost = MUCH_IS_LOST if "--dry-run" in call else 0
            assert command(["run", str(folder / "job.toml"), *call]) == lost
        said = capsys.readouterr()
        assert "the query on env:CLINIC_DB" in said.out + said.err
        assert "very-secret" not in said.out + said.err
        public = {path for path in folder.iterdir() if path.name not in before} | {folder / "people.ledger"}
        assert {path.name for path in public} >= {"people.dpgram.json", "people.html", "report.html"}
        for path in public:
            written = path.read_bytes()
            for secret in (b"very-secret", b"CLINIC_DB", b"SELECT x", b"public filter"):
                assert secret not in written

    def test_a_database_that_does_not_answer(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
    ) -> None:
        job_of(folder, self.asking("env:CLINIC_DB"))
        monkeypatch.setenv("CLINIC_DB", f"sqlite:///{folder}/very-secret-place.sqlite")
        assert command(["run", str(folder / "job.toml"), "--yes"]) == 2
        told = capsys.readouterr().err
        assert "no database file" in told
        assert "very-secret" not in told
        assert "othing was spent" in told
        assert charges(folder) == 0

    @pytest.mark.parametrize(
        ("new", "words"),
        [
            ('file = "env:CLINIC_DB"', "a database needs a query.*query = "),
            ('file = "env:NOT_SET"\nquery = "SELECT 1"', "'NOT_SET' is not set.*Set NOT_SET"),
            ('file = "postgresql://me:pw@host/db"\nquery = "SELECT 1"', "may hold a password.*env:NAME"),
            ('file = ["a.sqlite", "b.sqlite"]\nquery = "SELECT 1"', "one database.*Name one `file`"),
            ('file = "people.csv"\nquery = 5', "'query' of .data. must be a text"),
        ],
    )
    def test_mistakes(self, folder: Path, new: str, words: str, capsys: Any) -> None:
        with pytest.raises(DpgramError, match=words):
            job_of(folder, ('file = "people.csv"', new)).run(progress=False)
        assert command(["run", str(folder / "job.toml"), "--yes"]) == 2
        told = capsys.readouterr().err
        assert "job.toml" in told
        assert "othing was spent" in told
        assert "me:pw" not in told
        assert charges(folder) == 0

    def test_another_query_is_told_by_diff(self, folder: Path, capsys: Any) -> None:
        job_of(folder, self.asking("env:CLINIC_DB"))
        text = (folder / "job.toml").read_text()
        (folder / "b.toml").write_text(text.replace("id < 1000", "id < 2000"))
        assert command(["diff", str(folder / "job.toml"), str(folder / "b.toml")]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert told == f"data: query was {self.QUERY}, is now {self.QUERY.replace('1000', '2000')}"


class TestCommand:
    def test_dry_run_spends_and_writes_nothing(self, folder: Path, capsys: Any) -> None:
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert command(["run", str(folder / "job.toml"), "--dry-run"]) == MUCH_IS_LOST
        told = capsys.readouterr().out
        assert "approved by  the data protection officer" in told
        assert "nothing was spent" in told
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ('unit = "id"', "a public guess of the number of values of 'id'"),
            ('unit = "id"\nexpected = 5000', "A row of this forecast is one value of 'id'"),
        ],
    )
    def test_with_a_unit_persons_are_expected(self, folder: Path, capsys: Any, line: str, words: str) -> None:
        job_of(folder, ('missing = "drop"', line), ('ledger = "people.ledger"', "ledger = false"))
        assert command(["run", str(folder / "job.toml"), "--dry-run"]) == MUCH_IS_LOST
        assert words in " ".join(capsys.readouterr().out.split())

    def test_a_forecast_is_told_in_the_keys_of_the_file(self, folder: Path, capsys: Any) -> None:
        job_of(
            folder,
            ('kind = "categorical"\nname = "g"\nlevels = ["a", "b"]', 'kind = "boolean"\nname = "g"'),
            ('missing = "drop"', "expected = 2000"),
            ('ledger = "people.ledger"', 'ledger = false\nmechanism = "matrix-laplace"'),
        )
        assert command(["run", str(folder / "job.toml"), "--dry-run"]) == MUCH_IS_LOST
        told = " ".join(capsys.readouterr().out.split())
        assert "Recommended: one plain matrix (adaptive = false) with" in told

    def test_a_dry_run_of_a_table_without_a_loss_leaves_with_none(self, folder: Path) -> None:
        (folder / "people.csv").write_text("x,g\n0.5,a\n-0.5,b\n")
        assert command(["run", str(folder / "job.toml"), "--dry-run"]) == 0

    def test_a_job_may_stop_if_the_check_fails(self, folder: Path, capsys: Any) -> None:
        gate = ("epsilon = 1", "epsilon = 1\nstop_if_check_fails = true")
        job = job_of(folder, gate)
        assert command(["run", str(folder / "job.toml"), "--yes"]) == MUCH_IS_LOST
        said = capsys.readouterr()
        assert "the job says to stop then" in said.err
        assert "Nothing was spent" in said.err
        assert "rows used" not in said.out + said.err
        assert charges(folder) == 0
        with pytest.raises(CheckError):
            job.run(progress=False)
        (folder / "people.csv").write_text("x,g\n" + "0.5,a\n-0.5,b\n" * 10)
        (release,) = job.run(progress=False).releases
        assert release.policy.stop_if_check_fails
        assert "would have stopped the publication" in release._repr_html_()
        assert "An exact check came first" in release.evaluation(folder / "nist.html").read_text()
        assert job.run(progress=False).state == "finished"
        with pytest.raises(JobError, match="stop_if_check_fails is True there, False here"):
            job_of(folder).run(progress=False)

    def test_without_it_nothing_of_the_check_is_in_the_release(self, folder: Path) -> None:
        (release,) = job_of(folder).run(progress=False).releases
        assert b"stop_if_check_fails" not in release.to_json()

    def test_somebody_must_decide(self, folder: Path, capsys: Any) -> None:
        assert command(["run", str(folder / "job.toml")]) == 2
        assert "--yes" in capsys.readouterr().err
        assert charges(folder) == 0

    @pytest.mark.parametrize("answer", [True, False])
    def test_it_asks(self, folder: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, answer: bool) -> None:
        monkeypatch.setattr("sys.stdin.isatty", lambda: True)
        monkeypatch.setattr("typer.confirm", lambda *_, **__: answer)
        assert command(["run", str(folder / "job.toml")]) == 0
        assert charges(folder) == answer
        assert ("Nothing was spent" in capsys.readouterr().out) == (not answer)

    def test_yes_and_again(self, folder: Path, capsys: Any) -> None:
        call = ["run", str(folder / "job.toml"), "--yes", "--json"]
        assert command(call) == 0
        assert json.loads(capsys.readouterr().out)["state"] == "published"
        assert command(call) == 0
        assert json.loads(capsys.readouterr().out)["state"] == "finished"
        assert command(call[:-1]) == 0
        assert "finished before, and nothing was spent" in capsys.readouterr().out
        assert charges(folder) == 1

    def test_diff(self, folder: Path, capsys: Any) -> None:
        other = TEXT.replace("epsilon = 1", "epsilon = 0.5").replace("high = 1", "high = 2")
        (folder / "b.toml").write_text(other)
        assert command(["diff", str(folder / "job.toml"), str(folder / "b.toml")]) == 0
        assert capsys.readouterr().out.splitlines() == [
            "column x: high was 1, is now 2",
            "privacy: epsilon was 1, is now 0.5",
        ]
        assert command(["diff", str(folder / "job.toml"), str(folder / "job.toml")]) == 0
        assert "the same" in capsys.readouterr().out


def test_every_difference_is_seen(folder: Path) -> None:
    """Whatever field of a job is changed, there is a line for it."""
    job = job_of(folder)
    others: dict[str, Any] = {
        "data": "x.csv",
        "query": "SELECT 1",
        "schema": dg.Schema(dg.numeric("x", -1, 1)),
        "epsilon": 2.0,
        "delta": 0.0,
        "ledger": None,
        "outputs": Outputs(release=Path("y.json")),
        "rows": dg.Rows(unit="id"),
        "adaptive": dg.Adaptive(bounds=0.4),
        "mechanism": "laplace",
        "adjacency": "replace-one",
        "models": (dg.linear("x"),),
        "engine": "dask",
        "threads": 3,
        "reason": "other",
        "approved_by": "other",
        "note": "other",
        "stop_if_check_fails": True,
        "about": {"title": "other"},
        "series": Growing(file=Path("x.series"), period="2026-11", periods=12),
    }
    assert set(others) == {each.name for each in fields(Job)} - {"path"}
    for name, value in others.items():
        assert differences(job, replace(job, **{name: value})), name
    assert differences(job, job) == ()


class TestWords:
    def test_each_interface_in_its_own(self) -> None:
        text = "Write rows=Rows(expected=10_000) and delta=1e-6, or adaptive=True with adjacency='add-remove'"
        assert reworded(text, as_flag) == (
            "Write --rows 10_000 and --delta 1e-6, or --adaptive with --adjacency add-remove"
        )
        assert reworded(text, as_key) == (
            'Write expected = 10_000 and delta = 1e-6, or adaptive = true with adjacency = "add-remove"'
        )

    def test_shares(self) -> None:
        text = "Give a larger share, Adaptive(bounds=…)"
        assert reworded(text, as_flag) == "Give a larger share, --bounds-share …"
        assert reworded(text, as_key) == "Give a larger share, adaptive.bounds = …"

    def test_without(self) -> None:
        text = "Publish with adaptive=False (--no-adaptive)"
        assert reworded(text, as_flag) == "Publish with --no-adaptive"
        assert reworded(text, as_key) == "Publish with adaptive = false"

    def test_commands_and_their_flags(self) -> None:
        text = (
            "release.iv('y', …) or models=[probit('y', on=[…])]; kind=\"table\", got on=['a', 'b']: see `on`"
        )
        assert in_commands(text) == 'dpgram iv or --model "probit:y~…"; --kind table, got --on a,b: see --on'

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("numeric('a (b)', low, high), or", 'kind = "numeric", name = "a (b)", low = …, high = …, or'),
            ('numeric("wgt", 0, 10) in', 'kind = "numeric", name = "wgt", low = 0, high = 10 in'),
            ("dg.categorical('g', [...]):", 'kind = "categorical", name = "g", levels = […]:'),
            ("dg.product('a', 'b=c')", 'kind = "product", left = "a", right = "b=c"'),
            ('legendre("a", 2).', 'kind = "legendre", column = "a", degree = 2.'),
            ("numeric(...) or boolean(...)", 'kind = "numeric" or kind = "boolean"'),
            ("logistic('Region'): no", "logistic model of 'Region': no"),
            ("one of auto, or an object of dpgram.mechanisms", "one of auto"),
            ("in the schema, or give it as Rows(by=…)", "in the schema"),
        ],
    )
    def test_declarations_are_written_as_in_a_schema(self, text: str, words: str) -> None:
        assert reworded(text, as_flag) == words
        assert reworded(text, as_key) == words

    def test_other_text_stays(self) -> None:
        text = "column 'epsilon' of the file a=b.csv; ε = 1, δ = 1e-6 (mu=0.2)"
        assert reworded(text, as_flag) == text

    def test_every_flag_exists(self) -> None:
        import inspect

        from dpgram.cli import curate, ledger

        commands = (curate.schema, curate.publish, ledger.create)
        known = {name for each in commands for name in inspect.signature(each).parameters}
        assert set(OPTIONS) - {"delta_reserved"} <= known


@pytest.mark.parametrize(
    ("line", "adaptive"), [("", True), ("adaptive = true", True), ("adaptive = false", False)]
)
def test_the_plan_is_of_the_matrices_that_will_be_measured(folder: Path, line: str, adaptive: bool) -> None:
    rows = ('missing = "drop"', 'missing = "drop"\nexpected = 20000')
    forecast = job_of(folder, rows, ("epsilon = 1\n", f"epsilon = 1\n{line}\n")).plan()
    assert forecast is not None
    assert (forecast.adaptive is not None) == adaptive


def test_a_file_declares_models(folder: Path) -> None:
    models = '[[models]]\nfamily = "logistic"\ntarget = "g=b"\non = ["x"]\nshare = 0.2\nsteps = 1\n'
    (folder / "job.toml").write_text(TEXT.replace("[rows]", models + "\n[rows]"))
    job = Job.from_file(folder / "job.toml")
    assert job.models == (dg.logistic("g=b", ["x"], share=0.2, steps=1),)
    (folder / "plain.toml").write_text(TEXT)
    (told,) = differences(Job.from_file(folder / "plain.toml"), job)
    assert told.startswith("models: logistic g=b (1) was not given")
