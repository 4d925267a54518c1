"""Everyday mistakes in Python, on the command line and in a job file.

Each gets a message in the words of the interface that was used, with a remedy, and leaves the ledger and the
folder as they were. Loud warnings, where something is allowed but seldom meant, are told as well.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.unit.releases import gaussian_release

import dpgram as dg
from dpgram.cli import run
from dpgram.engines import Partial, gram, partial_gram
from dpgram.errors import DpgramError, DpgramWarning
from dpgram.job import Job
from dpgram.planning import plan
from dpgram.publishing import starter_schema

SCHEMA = dg.Schema(dg.numeric("x", -1, 1), dg.numeric("y", 0, 10), dg.categorical("g", ["a", "b"]))
TABLE = {"x": [0.1, -0.2, 0.3, 0.9], "y": [5.0, 4.0, 3.0, 2.0], "g": ["a", "b", "a", "b"], "id": [1, 1, 2, 3]}
RELEASE = gaussian_release()
FIT = RELEASE.regress("charges", ["age", "smoker"], reference={"smoker": "yes"})
ASKED: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "ledger": "a.ledger", "progress": False}
TOML = """
[data]
file = "a.csv"
schema = "a.toml"
[rows]
missing = "drop"
[privacy]
epsilon = 1
delta = 1e-6
ledger = "a.ledger"
[outputs]
release = "new.json"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(TABLE).write_csv("a.csv")
    SCHEMA.to_file("a.toml")
    dg.Ledger.create("a.ledger", name="a", epsilon=2.0, delta=1e-5)
    dg.Ledger.create("persons.ledger", name="persons", epsilon=2.0, delta=1e-5, unit="id")
    dg.Ledger.create("persons2.ledger", name="persons", epsilon=2.0, delta=1e-5, unit="idd")
    Path("job.toml").write_text(TOML)
    Path("taken.json").write_text("mine")
    RELEASE.save("r.json")
    return tmp_path


def contents() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}


class Mistake(NamedTuple):
    """What was done, what must be said of it, and which remedy is given."""

    name: str
    done: Callable[[], object]
    what: str
    remedy: str


def publish(data: object = TABLE, schema: Any = SCHEMA, **options: Any) -> object:
    return dg.publish(data, schema, **{**ASKED, **options})


def forecast(**options: Any) -> object:
    return plan(SCHEMA, **{"epsilon": 1, "delta": 1e-6, "rows": dg.Rows(expected=1000), **options})


IN_PYTHON = [
    Mistake(
        "ε as text", lambda: publish(epsilon="1"), "epsilon must be a number; got '1'", "epsilon=1, without"
    ),
    Mistake("δ as text", lambda: publish(delta="x"), "delta must be a number", "delta=1e-6"),
    Mistake("ε below 0", lambda: publish(epsilon=-1), "epsilon must be a positive number", "epsilon=1.0"),
    Mistake("δ = 1", lambda: publish(delta=1), "delta must be a small probability", "delta=1e-6"),
    Mistake(
        "ε of nothing", lambda: publish(epsilon=None), "epsilon must be a number; got None", "epsilon=1.0"
    ),
    Mistake("too much", lambda: publish(epsilon=5), "would take", "still fits"),
    Mistake(
        "a Series", lambda: publish(pd.Series([1.0])), "a pandas Series is one column", "the whole DataFrame"
    ),
    Mistake(
        "a polars Series", lambda: publish(pl.Series([1.0])), "a polars Series is one column", "DataFrame"
    ),
    Mistake(
        "a database", lambda: publish("postgresql://h/d"), "names a database and not a table", "(address,"
    ),
    Mistake(
        "a web page", lambda: publish("https://x.org/a.csv"), "https:// is not fetched", "Download the file"
    ),
    Mistake(
        "a web page, checked",
        lambda: dg.check("https://x.org/a.csv", SCHEMA),
        "https:// is not fetched",
        "Download the file",
    ),
    Mistake(
        "table and schema in the other order",
        lambda: publish(SCHEMA, TABLE),
        "the schema stands where the table belongs",
        "Write publish(table, schema, …)",
    ),
    Mistake(
        "the same, checked",
        lambda: dg.check(SCHEMA, TABLE),  # type: ignore[arg-type]
        "the schema stands where",
        "publish(table, schema",
    ),
    Mistake(
        "a rule of rows beside them",
        lambda: publish(unit="id"),
        "'unit' is a field of Rows",
        "Write rows=Rows(unit='id')",
    ),
    Mistake(
        "a rule of rows beside them, checked",
        lambda: dg.check(TABLE, SCHEMA, unit="id"),  # type: ignore[call-arg]
        "'unit' is a field of Rows",
        "Write rows=Rows(unit='id')",
    ),
    Mistake(
        "a share beside them",
        lambda: publish(histograms=0.2),
        "'histograms' is a field of Adaptive",
        "Write adaptive=Adaptive(histograms=0.2)",
    ),
    Mistake(
        "levels in one text",
        lambda: dg.categorical("smoker", "no,yes"),
        "must be a list; got one text",
        "Write ['no', 'yes']",
    ),
    Mistake(
        "levels in one text, ordered",
        lambda: dg.ordinal("smoker", "no; yes"),
        "must be a list; got one text",
        "Write ['no', 'yes']",
    ),
    Mistake(
        "one level as a text",
        lambda: dg.categorical("smoker", "no"),
        "must be a list; got one text",
        "Write ['no', …], each level as a text",
    ),
    Mistake("no data", lambda: publish(None), "the data are None", "the path of one"),
    Mistake("an open file", lambda: publish(io.BytesIO(b"x,y")), "an open file is no table", "Give its path"),
    Mistake(
        "a list of dicts", lambda: publish([{"x": 1}]), "a list of dicts is no table", "polars.DataFrame"
    ),
    Mistake(
        "a file that is not there", lambda: publish("b.csv"), "no file or folder 'b.csv'", "Check the path"
    ),
    Mistake("an unknown format", lambda: publish("taken.json"), "format of the file 'taken.json'", "Convert"),
    Mistake(
        "a file twice", lambda: publish(["a.csv", "a.csv"]), "counted twice; got 'a.csv'", "every file once"
    ),
    Mistake(
        "a file and its pattern", lambda: publish(["a.csv", "*.csv"]), "counted twice", "every file once"
    ),
    Mistake(
        "a query on a table",
        lambda: publish(("a.csv", "SELECT * FROM a")),
        "the file is a table and no database, so it takes no query; got a name that ends in .csv",
        "Leave the query out",
    ),
    Mistake(
        "no such unit",
        lambda: publish(rows=dg.Rows(unit="idd"), ledger="persons2.ledger"),
        "no column 'idd'",
        "Correct Rows(unit='idd'), which names the column of ids. Near names: 'id'",
    ),
    Mistake("no such column", lambda: publish({"x": [1.0]}), "'y'", "Correct the names"),
    Mistake("a schema as a path", lambda: publish(schema="a.toml"), "needs a Schema", "Schema.from_file"),
    Mistake("rows as a number", lambda: publish(rows=5), "who is protected", "rows=Rows(expected=10_000)"),
    Mistake(
        "no bounds",
        lambda: publish(schema=dg.Schema(dg.numeric("x")), adaptive=False),
        "'x'",
        "adaptive=True",
    ),
    Mistake("another unit", lambda: publish(rows=dg.Rows(unit="id")), "protects one row", "without a unit"),
    Mistake(
        "another relation", lambda: publish(adjacency="replace-one"), "add-remove", "adjacency='add-remove'"
    ),
    Mistake("a ledger that is not there", lambda: publish(ledger="b.ledger"), "b.ledger", "Ledger.create"),
    Mistake("no such mechanism", lambda: publish(mechanism="gausian"), "gausian", "Did you mean 'gaussian'?"),
    Mistake(
        "Gaussian and pure", lambda: publish(delta=0, mechanism="gaussian"), "delta=0", "delta such as 1e-6"
    ),
    Mistake("groups", lambda: publish(rows=dg.Rows(by="g")), "several releases", "publish_each"),
    Mistake("no such engine", lambda: publish(engine="sparc"), "no such engine", "Check the name"),
    Mistake("no release", lambda: dg.load(None), "a release is read from a file; got None", "its path"),
    Mistake("a release as a dict", lambda: dg.load({}), "a release is read from a file; got {}", "its path"),
    Mistake(
        "no columns", lambda: RELEASE.correlation([]), "takes two columns; got none", "Name two at least"
    ),
    Mistake(
        "a figure of no kind", lambda: RELEASE.pca().plot("x.foo"), "end in its format; got 'x.foo'", "x.png"
    ),
    Mistake(
        "a figure in no folder", lambda: RELEASE.pca().plot("no/x.png"), "no/x.png", "a folder that exists"
    ),
    Mistake(
        "a release as text",
        lambda: dg.Release.from_json(RELEASE.to_json().decode()),
        "a release is read from bytes; got str",
        "text.encode()",
    ),
    Mistake(
        "a level in percent", lambda: FIT.conf_int(95), "must be a probability; got 95", "For 95% write 0.95"
    ),
    Mistake("statsmodels' intercept", lambda: FIT.params["Intercept"], "'Intercept'", "Write '(intercept)'"),
    Mistake("statsmodels' level", lambda: FIT.params["C(smoker)[T.no]"], "[T.no]' here", "Write 'smoker=no'"),
    Mistake("a coefficient by place", lambda: FIT.params[0], "there is no 0 here", "numpy.asarray"),
    Mistake("a misspelt coefficient", lambda: FIT.cov_params()["(intercept)", "aeg"], "'aeg'", "Write 'age'"),
    Mistake("a cell by one name", lambda: FIT.cov_params()[3], "has two names; got 3", '["age", "bmi"]'),
    Mistake(
        "robust errors",
        lambda: RELEASE.regress("age", cov_type="HC1"),
        "regress takes no cov_type: robust errors come with models that the curator declared; got 'HC1'",
        "Ask the curator for models=[dg.linear('age')]",
    ),
    Mistake(
        "plan without rows",
        lambda: forecast(rows=dg.Rows()),
        "expected number of rows",
        "Rows(expected=10_000)",
    ),
    Mistake("plan with ε as text", lambda: forecast(epsilon="2"), "must be a number", "epsilon=2, without"),
    Mistake(
        "bounds the wrong way round",
        lambda: dg.Schema(dg.numeric("x", 1, -1)),
        "'x' are empty or reversed",
        "the smaller one first",
    ),
    Mistake(
        "a ledger twice",
        lambda: dg.Ledger.create("a.ledger", name="a", epsilon=1, delta=1e-6),
        "a ledger is never replaced",
        "choose another path",
    ),
    Mistake(
        "a reserve as a share",
        lambda: dg.Ledger.create("c.ledger", name="c", epsilon=1, delta=1e-6, delta_reserved=0.1),
        "δ above its reserve",
        "smaller delta_reserved",
    ),
]


@pytest.mark.parametrize("mistake", IN_PYTHON, ids=[each.name for each in IN_PYTHON])
@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
def test_in_python(mistake: Mistake) -> None:
    before = contents()
    with pytest.raises(DpgramError) as caught:
        mistake.done()
    message = str(caught.value)
    assert mistake.what in message
    assert mistake.remedy
    assert mistake.remedy in message
    assert "--" not in message
    if "publish" in mistake.done.__code__.co_names:
        assert "othing was spent" in message
    assert contents() == before


class Command(NamedTuple):
    """A command line, what must be said of it, and which remedy is given."""

    line: str
    what: str
    remedy: str


FULL = "publish a.csv -s a.toml --epsilon 1 --delta 1e-6 --ledger a.ledger -o new.json"
PLAN = "plan -s a.toml --rows 1000 --epsilon 1 --delta 1e-6 --quick"
ON_THE_COMMAND_LINE = [
    Command(
        "publish a.csv -s a.toml --epsilon 1 --ledger a.ledger -o new.json", "--delta is missing", "--delta 0"
    ),
    Command(
        "publish a.csv -s a.toml --epsilon 1 --delta 1e-6 -o new.json", "neither --ledger nor", "--no-ledger"
    ),
    Command(f"{FULL} --no-ledger", "both --ledger and --no-ledger", "Give --ledger FILE"),
    Command("publish a.csv -s a.toml --delta 1e-6 --ledger a.ledger -o new.json", "--epsilon", "--help"),
    Command(FULL.replace("--epsilon 1", "--epsilon one"), "--epsilon", "--help"),
    Command(FULL.replace("--epsilon 1", "--epsilon 5"), "which has 100% left", "--epsilon 2"),
    Command(
        FULL.replace("--epsilon 1", "--epsilon -1"), "epsilon must be a positive number", "--epsilon 1.0"
    ),
    Command(FULL.replace("1e-6", "1.5"), "delta must be a small probability", "--delta 1e-6"),
    Command(FULL.replace("-o new.json", "-o taken.json"), "exists already", "--overwrite"),
    Command(FULL.replace("-o new.json", "-o no/new.json"), "cannot be written", "a folder that exists"),
    Command(FULL.replace("a.ledger", "b.ledger"), "b.ledger", "dpgram ledger create"),
    Command(FULL.replace("a.ledger", "persons.ledger"), "protects", "--unit id"),
    Command(f"{FULL} --adjacency replace-one", "add-remove neighbours", "--adjacency add-remove"),
    Command(FULL.replace("a.csv", "b.csv"), "no file or folder 'b.csv'", "Check the path"),
    Command(FULL.replace("a.csv", "https://x.org/a.csv"), "is not fetched", "Download the file"),
    Command(
        FULL.replace("a.csv", "a.csv ./a.csv"), "the same rows would be counted twice", "every file once"
    ),
    Command("gram a.csv a.csv -s a.toml -p a.partial", "counted twice; got 'a.csv' twice", "every file once"),
    Command(FULL.replace("a.toml", "b.toml"), "'b.toml' cannot be read", "dpgram schema"),
    Command(f"{FULL} --mechanism gausian", "gausian", "Did you mean 'gaussian'?"),
    Command(f"{FULL} --unit-rows 2", "unit", "--unit"),
    Command(
        FULL.replace("a.ledger", "persons2.ledger") + " --unit idd", "no column 'idd'", "Correct --unit idd, "
    ),
    Command("check a.csv -s a.toml --query SELECT", "is a table and no database", "the query out"),
    Command(f"{FULL} --sign no.key", "no.key cannot be read", "dpgram key new"),
    Command(f"{FULL} --epsylon 2", "--epsylon", "--help"),
    Command("plan -s a.toml --rows 1000 --epsilon 1", "--delta is missing", "--delta 1e-6"),
    Command("check a.csv -s a.toml --epsilon 1", "--delta is missing", "--delta 1e-6"),
    Command("ledger create a.ledger --name a --epsilon 1 --delta 1e-6", "never replaced", "another path"),
    Command(
        "ledger create c.ledger --name c --epsilon 1 --delta 1e-6 --delta-reserved 0.1",
        "δ above its reserve",
        "smaller",
    ),
    Command("ledger plan --each-epsilon 1", "how many releases", "--per-year 12 --years 5"),
    Command("regress r.json charges --on ,", "is empty; got ','", "leave the option out"),
    Command("regress r.json charges --on age --reference smokr=no", "no column 'smokr'", "mean 'smoker'?"),
    Command("regress r.json charges --alpha 3", "takes no alpha", "Use --method ridge"),
    Command("regress r.json charges~age --on smoker", "got --on smoker as well", "Leave out --on"),
    Command("regress r.json charges~age+", "got 'charges~age+'", '"y ~ a + b"'),
    Command("regress r.json charges~", "right of ~", '"charges~ 1"'),
    Command("regress r.json active --family probit", "dpgram discriminant", '--model "probit:active~…"'),
    Command("regress r.json active --family probit --alpha 3", "takes no --method, --alpha", "Leave them"),
    Command("correlation r.json --columns age", "takes two columns; got age alone", "Name two at least"),
    Command("ledger plot a.ledger -o b.foo", "must end in its format; got 'b.foo'", "Name it b.png"),
    Command(f"{PLAN} --figure b.foo", "must end in its format; got 'b.foo'", "Name it b.png"),
    Command(f"{PLAN} --target-se-ratio 0.5", "limit: --target-se-ratio > 1", "such as 1.2"),
    Command("run job.toml", "there is nobody to ask here", "--yes"),
    Command("run no.toml --yes", "no.toml' cannot be read", "Check the path"),
]


@pytest.mark.parametrize("command", ON_THE_COMMAND_LINE, ids=[each.line for each in ON_THE_COMMAND_LINE])
@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
def test_on_the_command_line(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents()
    assert run(command.line.split()) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert command.what in told.err
    assert command.remedy in told.err
    assert "Rows(" not in told.err
    if command.line.startswith(("publish", "run")):
        assert "othing was spent" in told.err
    assert contents() == before


class Line(NamedTuple):
    """A change of the job file, what must be said of it, and which remedy is given."""

    old: str
    new: str
    what: str
    remedy: str


IN_A_JOB_FILE = [
    Line(
        "epsilon = 1",
        'epsilon = "1"',
        "'epsilon' of [privacy] must be a number",
        "epsilon = 1, without quotes",
    ),
    Line("epsilon = 1", "epsilonn = 1", "[privacy] has no key 'epsilonn'", "Did you mean 'epsilon'?"),
    Line("epsilon = 1", "epsilon = 5", "which has 100% left", "epsilon = 2"),
    Line("epsilon = 1", "epsilon = -1", "epsilon must be a positive number", "epsilon = 1.0"),
    Line("delta = 1e-6\n", "", "'delta' of [privacy] is missing", "0 for a pure guarantee"),
    Line('ledger = "a.ledger"\n', "", "'ledger' of [privacy] is missing", "or false"),
    Line('"a.ledger"', '"b.ledger"', "there is no ledger b.ledger", "dpgram ledger create"),
    Line('"a.ledger"', '"persons.ledger"', "protects", 'unit = "id"'),
    Line('file = "a.csv"', 'file = "b.csv"', "no file or folder", "Check the path"),
    Line('file = "a.csv"', 'file = ["a.csv", "*.csv"]', "counted twice", "every file once"),
    Line("[outputs]", "[output]", "no section or key 'output'", "Did you mean 'outputs'?"),
    Line('"new.json"', '"taken.json"', "taken.json is there already", "another `release`"),
    Line('missing = "drop"', 'unit = "x"', "'x' identifies", "Leave it out"),
    Line('missing = "drop"', "expected = 1000.5", "'expected' of [rows] must be a whole number", "job.toml"),
    Line('schema = "a.toml"', "", "neither", "[[columns]]"),
]


@pytest.mark.parametrize("line", IN_A_JOB_FILE, ids=[f"{each.old} → {each.new}" for each in IN_A_JOB_FILE])
@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
def test_in_a_job_file(line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    assert line.old in TOML
    Path("job.toml").write_text(TOML.replace(line.old, line.new))
    before = contents()
    with pytest.raises(DpgramError) as caught:
        Job.from_file("job.toml").run(progress=False)
    for message in (str(caught.value), _told_by("run job.toml --yes", capsys)):
        assert "job.toml" in message
        assert line.what in message
        assert line.remedy in message
        assert "Rows(" not in message
    assert "othing was spent" in message
    assert contents() == before


def _told_by(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(command.split()) == 2
    return capsys.readouterr().err


LOUD = [
    ("a large ε", {"epsilon": 20.0, "ledger": None}, "values above 10 protect little"),
    ("a large δ", {"delta": 1e-3, "ledger": None}, "rarely wanted"),
    (
        "δ above one in the number of rows",
        {"rows": dg.Rows(expected=10**9), "delta": 1e-6},
        "may be revealed",
    ),
]


@pytest.mark.parametrize(("options", "words"), [each[1:] for each in LOUD], ids=[each[0] for each in LOUD])
def test_loud_warnings(options: dict[str, Any], words: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        publish(**options)
    assert any(words in str(each.message) and each.category is DpgramWarning for each in told)


def test_warnings_point_to_the_line_of_the_caller() -> None:
    """To be found, and to be shown once for each place."""
    table = {"x": ["1,5"] * 200}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asked = {"epsilon": 11, "delta": 1e-6, "adaptive": False, "progress": False}
        dg.publish(table, dg.Schema(dg.numeric("x", 0, 9)), **asked)
    assert {each.filename for each in told} == {__file__}
    found = " ".join(str(each.message) for each in told)
    assert "epsilon = 11" in found
    assert "column 'x'" in found


@pytest.mark.parametrize("name", ["no row", "no header", "a period again", "a partial for all"])
def test_warnings_of_every_part_point_to_it(name: str, tmp_path: Path) -> None:
    schema, table = dg.Schema(dg.numeric("x", 0, 9)), {"x": np.linspace(0, 9, 50)}
    partial, header = tmp_path / "a.partial", tmp_path / "b.csv"
    partial_gram(table, schema, progress=False).save(partial)
    partial.chmod(0o644)
    header.write_text("1,2\n3,4\n")
    series = dg.Series.create(tmp_path / "a.series", schema, epsilon=1, delta=1e-6, periods=2, ledger=None)
    series.publish(table, "m1", progress=False)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if name == "no row":
            gram({"x": np.full(3, np.nan)}, schema, progress=False)
        elif name == "no header":
            starter_schema(header)
        elif name == "a period again":
            series.publish(table, "m1", progress=False)
        else:
            Partial.load(partial)
    assert [each.filename for each in told] == [__file__]


def test_there_are_enough() -> None:
    assert len(IN_PYTHON) + len(ON_THE_COMMAND_LINE) + len(IN_A_JOB_FILE) >= 70
