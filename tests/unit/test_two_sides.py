"""Two sides: with the base install an analyst can do everything; what else is missing is one line each.

Programs run in processes of their own in which packages cannot be imported, though they are installed here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import dpgram as dg
from dpgram import cli
from dpgram.core.noise import SeededEntropy
from dpgram.demo import insurance
from dpgram.errors import PUBLISHING
from dpgram.publishing import publish_with
from dpgram.series._curate import create, publish

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
EVERYTHING = (
    *PUBLISHING, "llvmlite", "sklearn", "joblib", "pandas", "matplotlib", "plotly", "cryptography", "duckdb",
    "dask", "distributed", "fsspec", "pyspark", "adbc_driver_manager", "statsmodels",
)  # fmt: skip
"""All that `pip install dpgram` does not bring."""
PACKAGES = {"flint": "python-flint", "sklearn": "scikit-learn"}


def line(package: str, extra: str) -> str:
    return (
        f"this needs the package {package!r}, which is not installed. "
        f"Install it with: pip install 'dpgram[{extra}]'"
    )


def without(missing: tuple[str, ...], program: str, folder: Path) -> Any:
    """What `program` leaves in `told`, where these modules cannot be imported."""
    whole = f"""
import json, sys
for name in {missing!r}:
    sys.modules[name] = None
told = {{}}
def refusal(action):
    from dpgram.errors import MissingExtra
    try:
        action()
    except MissingExtra as problem:
        return str(problem)
    return None
def command(*arguments):
    import contextlib, io
    from dpgram.cli import run
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([str(argument) for argument in arguments])
    return [code, out.getvalue(), err.getvalue()]
{program}
print(json.dumps(told))
"""
    done = subprocess.run(
        [sys.executable, "-c", whole], capture_output=True, text=True, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


JOB = """
[data]
file = "people.parquet"
schema = "people.toml"
[privacy]
epsilon = 1
delta = 1e-6
ledger = false
[outputs]
release = "job.dpgram.json"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release, a table and a schema, as an analyst and a curator would have them."""
    from pyarrow import csv, parquet

    place = tmp_path_factory.mktemp("sides")
    for source in GOLDEN.glob("*.dpgram.json"):
        (place / source.name.replace("-v1", "")).write_bytes(source.read_bytes())
    (large,) = publish_with(
        insurance.table(20_000),
        insurance.schema(),
        epsilon=5.0,
        delta=1e-6,
        entropy=SeededEntropy(3),
        adaptive=False,
    )
    large.save(place / "large.dpgram.json")
    generator = np.random.default_rng(0)
    reform, after = generator.random((2, 20_000)) < 0.5
    (reformed,) = publish_with(
        {
            "reform": reform,
            "after": after,
            "visits": generator.uniform(0, 8, 20_000) + 2.0 * (reform & after),
        },
        dg.Schema(
            dg.boolean("reform"),
            dg.boolean("after"),
            dg.product("reform", "after"),
            dg.numeric("visits", 0, 10),
        ),
        epsilon=5.0,
        delta=1e-6,
        entropy=SeededEntropy(3),
        adaptive=False,
    )
    reformed.save(place / "reform.dpgram.json")
    for source in (GOLDEN / "first_ledger").iterdir():
        (place / source.name).write_bytes(source.read_bytes())
    table = insurance.table(200)
    parquet.write_table(table, place / "people.parquet")
    csv.write_csv(table, place / "people.csv")
    insurance.schema().to_file(place / "people.toml")
    (place / "job.toml").write_text(JOB)
    noise = SeededEntropy(3)
    months = place / "months.series"
    create(months, insurance.schema(), epsilon=5.0, delta=1e-6, periods=12, adaptive=False, entropy=noise)
    for month in (1, 2):
        publish(months, insurance.table(20_000, month), f"m{month}", progress=False, entropy=noise)
    return place


ANALYST = """
import numpy as np
import dpgram as dg
from dpgram import analysis
release = dg.load("large.dpgram.json")
for kind in ("learnt", "matrix-laplace"):
    told[kind] = len(dg.load(f"insurance-{kind}.dpgram.json").columns)
for method in ("auto", "ols", "ridge", "lasso", "elastic-net"):
    fit = release.regress("charges", ["age", "bmi", "smoker"], method=method)
    told[method] = fit.fitted_params["smoker=yes"]
    told[f"{method} interval"] = fit.conf_int()["smoker=yes"]
rows = {"age": [30, 60], "bmi": [25.0, 30.0], "smoker": ["no", "yes"]}
told["predicted"] = fit.predict(rows).tolist()
told["between"] = fit.get_prediction(rows).conf_int(obs=True)[:, 0].tolist()
told["joint"] = float(fit.f_test("smoker").pvalue)
told["bootstrap"] = fit.bootstrap(draws=20).std_errors.tolist()
told["bound"] = fit.error_bound().norm
told["r_squared"] = fit.rsquared_estimate().estimate
told["summary"] = len(fit.summary()) + len(fit._repr_html_()) + len(str(release)) + len(release._repr_html_())
told["pca"] = release.pca(2).variances.tolist()
told["partial"] = release.partial_correlation("age", "charges", ["bmi"]).estimate
told["correlation"] = len(release.correlation().names)
told["union"] = analysis.regress(analysis.union([release]), "charges", ["age"]).fitted_params["age"]
told["pool"] = str(analysis.pool([release, analysis.union([release])], "charges", ["age"]))
told["compare"] = str(analysis.compare(release, analysis.union([release]), "charges", ["age"]))
told["page"] = release.explore("python.html").stat().st_size
told["report"] = release.report("python-report.html").stat().st_size
rows = dg.Rows(expected=9000)
plan = dg.plan(release.schema, rows=rows, epsilon=1, delta=1e-6, simulate=False, mechanisms=["gaussian"])
told["plan"] = str(plan)
ledger = dg.Ledger.create("python.ledger", name="t", epsilon=1.0, delta=1e-6)
told["left"] = str(ledger.left())
"""


def test_the_analyst_needs_nothing_but_the_base(folder: Path) -> None:
    light = without(EVERYTHING, ANALYST, folder)
    (folder / "python.ledger").unlink()
    assert light == without((), ANALYST, folder)
    assert light["lasso"] > 0
    assert all(low < high for low, high in (light[f"{m} interval"] for m in ("auto", "lasso")))


RELEASE = "insurance-gaussian.dpgram.json"
PUBLISH = ("people.parquet", "--schema", "people.toml", "--epsilon", "1", "--delta", "1e-6", "--no-ledger")
FREE: dict[str, tuple[str, ...]] = {
    "show": (RELEASE,),
    "codebook": (RELEASE,),
    "regress": (RELEASE, "charges", "--on", "age,bmi", "--method", "lasso", "--json"),
    "describe": (RELEASE, "--on", "age,smoker"),
    "correlation": (RELEASE,),
    "iv": (RELEASE, "charges", "--endogenous", "bmi", "--instruments", "age"),
    "within": (RELEASE, "charges", "--on", "age", "--group", "region"),
    "did": ("reform.dpgram.json", "visits", "--treated", "reform", "--after", "after"),
    "discriminant": (RELEASE, "smoker=yes", "--on", "age"),
    "pca": (RELEASE, "--components", "2"),
    "explore": (RELEASE, "-o", "page.html"),
    "report": (RELEASE, "-o", "report.html"),
    "export": (RELEASE, "-o", "moments.csv"),
    "registry": (RELEASE, "-o", "registry.yaml"),
    "evaluation": (RELEASE, "-o", "evaluation.html"),
    "plan": (
        "--schema", "people.toml", "--rows", "50000", "--epsilon", "1", "--delta", "1e-6", "--quick",
        "--mechanism", "gaussian",
    ),
    "diff": ("job.toml", "job.toml"),
    "series plan": ("--periods", "60", "--epsilon", "1", "--delta", "1e-6"),
    "series explore": ("months.series", "-o", "months.html"),
    "series show": ("months.series", "--trend", "charges", "--on", "age"),
    "series window": ("months.series", "m1", "m2", "-o", "window.dpgram.json"),
    "ledger create": ("new.ledger", "--name", "new", "--epsilon", "1", "--delta", "1e-6"),
    "ledger plan": ("--releases", "4", "--total-epsilon", "2"),
    "ledger show": ("new.ledger",),
    "ledger left": ("new.ledger",),
    "ledger verify": ("visits.sqlite", "visits-1.dpgram.json", "visits-2.dpgram.json"),
}  # fmt: skip
"""Commands that work with the base install, in an order in which they can be run."""
REFUSED: dict[str, tuple[tuple[str, ...], str, str]] = {
    "schema": (("people.csv",), "pyarrow", "publish"),
    "check": (("people.csv", "--schema", "people.toml"), "pyarrow", "publish"),
    "gram": (("people.csv", "--schema", "people.toml", "--partial", "x.partial"), "pyarrow", "publish"),
    "publish": ((*PUBLISH, "-o", "x.json"), "pyarrow", "publish"),
    "run": (("job.toml", "--yes"), "pyarrow", "publish"),
    "series create": (
        (
            "new.series",
            "--schema",
            "people.toml",
            "--periods",
            "12",
            "--epsilon",
            "1",
            "--delta",
            "1e-6",
            "--no-ledger",
        ),
        "pyarrow",
        "publish",
    ),
    "series publish": (("months.series", "people.csv", "--period", "m3"), "pyarrow", "publish"),
    "wizard": (("--no-browser",), "pyarrow", "publish"),
    "audit": (("--mechanism", "gaussian", "--epsilon", "1", "--delta", "1e-6"), "pyarrow", "publish"),
    "demo": (("-o", "demo"), "pyarrow", "publish"),
    "ledger plot": (("new.ledger", "-o", "x.png"), "matplotlib", "plot"),
    "key new": (("x.key",), "cryptography", "sign"),
    "key show": (("people.toml",), "cryptography", "sign"),
    "sign": ((RELEASE, "--key", "people.toml"), "cryptography", "sign"),
    "verify": (("signed.json", "--public-key", "made.pub"), "cryptography", "sign"),
}
"""Command → arguments, the package that is missing, the extra that brings it."""
OTHERS = {"reproduce"}
"""From another distribution, which says for itself what it needs."""


def commands(group: Any, before: str = "") -> set[str]:
    found: set[str] = set()
    for name, command in group.commands.items():
        inner = getattr(command, "commands", None)
        found |= commands(command, f"{before}{name} ") if inner else {f"{before}{name}"}
    return found


def test_every_command_is_on_one_side() -> None:
    every = commands(typer.main.get_command(cli.app))
    assert set(FREE).isdisjoint(REFUSED)
    assert every - OTHERS == {*FREE, *REFUSED}


def test_every_command_works_or_names_the_extra_in_one_line(folder: Path) -> None:
    from dpgram.release import load
    from dpgram.release.signing import SigningKey

    key = SigningKey.create(folder / "made.key")
    (folder / "made.pub").write_text(key.public, encoding="ascii")
    load(folder / RELEASE).sign(key).save(folder / "signed.json")
    calls = {name: [*name.split(), *arguments] for name, arguments in FREE.items()}
    calls |= {name: [*name.split(), *arguments] for name, (arguments, _, _) in REFUSED.items()}
    program = f"for name, call in {calls!r}.items():\n    told[name] = command(*call)"
    told = without(EVERYTHING, program, folder)
    for name in FREE:
        code, out, err = told[name]
        assert (code, err) == (0, ""), name
        assert out, name
    for name, (_, package, extra) in REFUSED.items():
        assert told[name] == [2, "", f"dpgram: {line(package, extra)}\n"], name
    assert not (folder / "x.json").exists()


PYTHON = {
    "publish": "import dpgram; dpgram.publish",
    "series": "import dpgram; dpgram.Series.create('x.series', None, epsilon=1, delta=1e-6, periods=12)",
    "period": "import dpgram; dpgram.Series.open('months.series').publish(None, 'm3')",
    "CuratorReport": "import dpgram; dpgram.CuratorReport",
    "publishing": "from dpgram.publishing import publish",
    "estimators": "from dpgram.estimators import PrivateRidge",
    "audit": "from dpgram.audit import audit",
    "sources": "from dpgram.sources import open_source",
    "engines": "from dpgram.engines.federated import partial_gram",
    "spark": "from dpgram.engines.spark import SparkEngine",
    "table": "from dpgram.demo import insurance; insurance.table(10)",
}


def test_every_entry_of_the_curator_names_the_extra(folder: Path) -> None:
    program = f"for name, code in {PYTHON!r}.items():\n    told[name] = refusal(lambda: exec(code, {{}}))"
    told = without(EVERYTHING, program, folder)
    assert told == dict.fromkeys(PYTHON, line("pyarrow", "publish"))


def test_other_extras_are_named_from_python_too(folder: Path) -> None:
    program = f"""
import dpgram as dg
from dpgram.release.signing import SigningKey
release = dg.load({RELEASE!r})
fit = release.regress("charges", ["age"])
told["frame"] = refusal(fit.to_frame)
told["components"] = refusal(release.pca().to_frame)
told["figure"] = refusal(fit.plot)
told["key"] = refusal(lambda: SigningKey.create("x"))
"""
    assert without(EVERYTHING, program, folder) == {
        "frame": line("polars", "frame"),
        "components": line("polars", "frame"),
        "figure": line("matplotlib", "plot"),
        "key": line("cryptography", "sign"),
    }


@pytest.mark.parametrize("module", PUBLISHING)
def test_one_missing_package_is_told_before_anything_is_spent(module: str, folder: Path) -> None:
    """An analyst may have pyarrow and polars for reasons of their own: half of the extra is not enough."""
    program = f"""
told["python"] = refusal(lambda: __import__("dpgram").publish)
told["estimators"] = refusal(lambda: __import__("dpgram.estimators"))
told["audits"] = refusal(lambda: __import__("dpgram.audit"))
for name in ("schema", "check", "gram", "publish", "audit"):
    told[name] = command(name, *{ {name: arguments for name, (arguments, _, _) in REFUSED.items()}!r}[name])
"""
    told = without((module,), program, folder)
    wanted = line(PACKAGES.get(module, module), "publish")
    assert [told[name] for name in ("python", "estimators", "audits")] == [wanted] * 3
    for name in ("schema", "check", "gram", "publish", "audit"):
        assert told[name] == [2, "", f"dpgram: {wanted}\n"], name


def test_scikit_learn_is_for_estimators_and_the_demonstration_only(folder: Path) -> None:
    program = """
told["estimators"] = refusal(lambda: __import__("dpgram.estimators"))
told["demo"] = command("demo", "-o", "demo")
told["publish"] = refusal(lambda: __import__("dpgram").publish)
"""
    told = without(("sklearn",), program, folder)
    wanted = line("scikit-learn", "publish")
    assert told == {"estimators": wanted, "demo": [2, "", f"dpgram: {wanted}\n"], "publish": None}


def test_a_missing_extra_is_an_import_error() -> None:
    """So that `try: import … except ImportError` works as it does for any package."""
    from dpgram.errors import DpgramError, MissingExtra

    assert issubclass(MissingExtra, ImportError)
    assert issubclass(MissingExtra, DpgramError)
