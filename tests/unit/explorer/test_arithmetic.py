"""The page's arithmetic is Python's: every number of the explorer, computed by Node, agrees to six digits."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.flat import publish
from tests.node import NODE, in_node

import dpgram as dg
from dpgram import explorer
from dpgram.core.noise import SeededEntropy
from dpgram.demo import insurance
from dpgram.errors import AnalysisError, DpgramWarning
from dpgram.explorer.facts import page_facts
from dpgram.mechanisms import InverseNoise
from dpgram.release import Release

pytestmark = pytest.mark.skipif(NODE is None, reason="Node.js is not installed")

DIGITS = 1e-6
GOLDEN = Path(__file__).resolve().parents[2] / "golden"

HARNESS = """
const { facts, questions } = JSON.parse(require("fs").readFileSync(0, "utf-8"));
const { momentsOf } = dpgram.moments;
const { buildDesign } = dpgram.design;
const moments = facts === null ? null : momentsOf(facts);
const at = (name) => moments.columns.findIndex((column) => column.name === name);
const asked = {
  regress({ target, on, method, alpha, kind, level, reference = {} }) {
    const design = buildDesign(moments, at(target), on, reference);
    const fit = dpgram.regression.regress(moments, design, method, alpha);
    const inference = dpgram.inference.infer(moments, design, kind, level);
    const { rSquared, residualVariance } = dpgram.inference.quality(moments, design, inference);
    const { refusal, coefficients, cautions, meaning, assumptions, unequalVariance } = inference;
    const values = Array.from(fit.values);
    const told = { names: design.names, refusal, coefficients, rSquared, residualVariance };
    Object.assign(told, { cautions, meaning, assumptions, unequalVariance });
    return { ...fit, values, ...told, fitCautions: fit.cautions };
  },
  correlation({ kind, level }) {
    const read = dpgram.design.readColumns(moments).map(({ position }) => position);
    const cautions = dpgram.covariance.associationCautions(moments, "correlations", read, kind);
    const { estimate, low, high } = dpgram.covariance.correlation(moments, kind, level);
    const part = (all) => read.map((i) => read.map((j) => all[i - 1][j - 1]));
    return { estimate: part(estimate), low: part(low), high: part(high), cautions };
  },
  components({ on, standardise }) {
    const positions = on.flatMap((name) => moments.declared.find((column) => column.name === name).positions);
    const cautions = dpgram.covariance.associationCautions(moments, "components", positions);
    return { ...dpgram.covariance.components(moments, positions, standardise), cautions };
  },
  questions({ target, on, kind, level, persons }) {
    const design = buildDesign(moments, at(target), on);
    const fit = dpgram.regression.regress(moments, design, "auto");
    const inference = dpgram.inference.infer(moments, design, kind, level);
    const quality = dpgram.inference.quality(moments, design, inference);
    const sources = dpgram.design.placesByColumn(moments, design);
    const test = (places) => dpgram.inference.jointTest(inference, design.names, places);
    return {
      tests: Object.fromEntries([...sources].map(([name, places]) => [name, test(places)])),
      all: test([...sources.values()].flat()),
      needed: dpgram.prediction.neededColumns(moments, design).map((column) => column.name),
      predictions: persons.map((person) =>
        dpgram.prediction.predict(moments, { design, fit, inference, quality }, person)),
    };
  },
  margins({ target, on, kind, level, at: place }) {
    const design = buildDesign(moments, at(target), on);
    const inference = dpgram.inference.infer(moments, design, kind, level);
    return dpgram.contrasts.marginalEffects(moments, design, inference, place);
  },
  iv(question) {
    const asked = { ...question, target: at(question.target) };
    const { design, ...told } = dpgram.instruments.instrumental(moments, asked);
    return told;
  },
  models: ({ level, person }) => facts.models.map((model) => {
    if (model.refused) return model;
    const design = dpgram.models.modelDesign(moments, model);
    return {
      family: model.family, target: model.target, rows: dpgram.models.modelTable(model, level),
      prediction: dpgram.models.predictModel(model, design, moments, person, level),
    };
  }),
  fTails: ({ asked }) => asked.map(([f, first, second]) => dpgram.distributions.fTail(f, first, second)),
  tails: ({ points, degrees }) => points.map((t) => dpgram.distributions.upperTail(t, degrees)),
  quantiles: ({ tails, degrees }) => tails.map((p) => dpgram.distributions.upperQuantile(p, degrees)),
  eigen({ rows }) {
    const { values, vectors } = dpgram.algebra.eigen(dpgram.algebra.fromRows(rows, rows.length));
    return { values: Array.from(values), vectors: Array.from(vectors.cells) };
  },
  python({ target, on, method, alpha }) {
    const design = buildDesign(moments, at(target), on);
    const fit = dpgram.regression.regress(moments, design, method, alpha);
    const inference = dpgram.inference.infer(moments, design, "population", 0.95);
    const quality = dpgram.inference.quality(moments, design, inference);
    const model = dpgram.downloads.modelOf(moments, { design, fit, inference, quality, features: on });
    const { asJson, asCsv, asPython } = dpgram.downloads;
    return { json: asJson(model), csv: asCsv(model), python: asPython(model) };
  },
};
const told = questions.map((question) => {
  try {
    return asked[question.ask](question);
  } catch (problem) {
    if (!(problem instanceof dpgram.moments.Refusal)) throw problem;
    return { refused: problem.message };
  }
});
// What JSON has no word for.
const named = (_, value) => (typeof value === "number" && !Number.isFinite(value) ? String(value) : value);
console.log(JSON.stringify(told, named));
"""


def ask(release: Release | None, *questions: Mapping[str, object]) -> list[dict[str, object]]:
    program = "\n".join([*map(explorer.script, explorer.ARITHMETIC), HARNESS])
    facts = None if release is None else page_facts(release)
    return json.loads(in_node(program, {"facts": facts, "questions": questions}))


def seeded(table: object, schema: dg.Schema, seed: int = 3, **options: object) -> Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        return publish(table, schema, entropy=SeededEntropy(seed), **options)


def mixed_schema(*, constant: bool = True) -> dg.Schema:
    return dg.Schema(
        dg.numeric("age", 18, 90),
        dg.numeric("bmi", 10, 60, weight=0.7),
        dg.categorical("smoker", ["no", "yes"]),
        dg.categorical("region", list(insurance.REGIONS), weight=0.5),
        dg.numeric("exercise", 0, 20),
        dg.numeric("charges", 0, 70_000),
        dg.product("age", "bmi"),
        dg.legendre("age", 2),
        constant=constant,
    )


CASES: dict[str, dict[str, object]] = {
    "gaussian": {"mechanism": "gaussian", "epsilon": 1.0, "delta": 1e-6},
    "matrix-laplace": {"mechanism": "matrix-laplace", "epsilon": 2.0, "delta": 0.0},
    "laplace": {"mechanism": "laplace", "epsilon": 4.0, "delta": 0.0},
    "wishart": {"mechanism": "wishart", "epsilon": 4.0, "delta": 1e-6},
    "inverse-noise": {"mechanism": InverseNoise(ridge=500.0), "epsilon": 8.0, "delta": 1e-6},
    "sketch": {"mechanism": "sketch", "epsilon": 8.0, "delta": 1e-6},
    "replace-one": {"mechanism": "gaussian", "epsilon": 1.0, "delta": 1e-6, "adjacency": "replace-one"},
    "clipped": {"mechanism": "gaussian", "epsilon": 1.0, "delta": 1e-6, "clip": 1.5},
    "drowned": {"mechanism": "gaussian", "epsilon": 0.01, "delta": 1e-6},
    "midpoint": {"mechanism": "gaussian", "epsilon": 1.0, "delta": 1e-6, "missing": "midpoint"},
}


@pytest.fixture(scope="module")
def releases() -> dict[str, Release]:
    table = insurance.table(20_000)
    made = {name: seeded(table, mixed_schema(), adaptive=False, **options) for name, options in CASES.items()}
    made["no constant"] = seeded(table, mixed_schema(constant=False), adaptive=False, **CASES["replace-one"])
    made["adaptive"] = seeded(table, mixed_schema(), epsilon=1.0, delta=1e-6, adaptive=True)
    made["adaptive pure"] = seeded(table, mixed_schema(), epsilon=3.0, delta=0.0, adaptive=True)
    persons = table.append_column("person", [np.arange(20_000) // 3])
    made["persons"] = seeded(persons, mixed_schema(), adaptive=False, **CASES["gaussian"], unit="person")
    learnt = dg.Schema(
        dg.numeric("age", 18, 90), dg.numeric("bmi"), dg.numeric("charges"), dg.product("age", "bmi")
    )
    made["learnt"] = seeded(table, learnt, epsilon=3.0, delta=1e-6, adaptive=True)
    crossed = dg.Schema(*mixed_schema().columns[:6], *CROSSED)
    made["crossed"] = seeded(table, crossed, epsilon=8.0, delta=1e-6, adaptive=False)
    made["crossed, adaptive"] = seeded(table, crossed, epsilon=8.0, delta=1e-6, adaptive=True)
    for name in ("gaussian", "matrix-laplace"):
        made[f"golden {name}"] = dg.load(GOLDEN / f"insurance-{name}-v1.dpgram.json")
    return made


CROSSED = (dg.product("smoker", "age"), dg.product("exercise", "smoker"), dg.product("smoker", "region"))
EVERY = [
    *CASES,
    "no constant",
    "adaptive",
    "adaptive pure",
    "persons",
    "learnt",
    "crossed",
    "crossed, adaptive",
    "golden gaussian",
    "golden matrix-laplace",
]


def close(found: object, wanted: Sequence[float] | float) -> None:
    np.testing.assert_allclose(np.asarray(found, dtype=np.float64), wanted, rtol=DIGITS, atol=0.0)


def same_fit(release: Release, question: Mapping[str, object], told: dict[str, object]) -> None:
    on = list(question["on"])
    alpha, method, kind = question["alpha"], question["method"], question["kind"]
    intercept = release.schema.constant
    try:
        fit = release.regress(question["target"], on, method=method, alpha=alpha, intercept=intercept)
    except AnalysisError:
        assert "refused" in told
        return
    assert tuple(told["names"]) == fit.names
    # A coefficient's digits are counted against the largest effect: the intercept is a difference.
    sizes = np.maximum(np.abs(fit.values), 1e-6 * np.abs(fit.values).max())
    np.testing.assert_array_less(np.abs(np.array(told["values"]) - fit.values), DIGITS * sizes + 1e-300)
    close(told["penalty"], fit.penalty)
    if fit.effective_parameters is not None:
        close(told["effective"], fit.effective_parameters)
    inference = fit.inference(kind)
    assert told["refusal"] == inference.refusal
    assert [*told["cautions"]] == [*inference.cautions]
    assert [*told["fitCautions"]] == [*fit.cautions]
    assert told["meaning"] == inference.meaning
    assert tuple(told["assumptions"]) == inference.assumptions
    frame = fit.to_frame(question["level"], kind)
    for theirs, ours in (("estimate", "estimate"), ("error", "std_error"), ("low", "low"), ("high", "high")):
        for row, wanted in zip(told["coefficients"], frame[ours].to_list(), strict=True):
            if wanted is None:
                assert row[theirs] is None
            else:
                close(row[theirs], wanted)
    for row, wanted in zip(told["coefficients"], frame["p_value"].to_list(), strict=True):
        if wanted is not None and wanted > 1e-300:
            np.testing.assert_allclose(row["p"], wanted, rtol=1e-5)
    for name, quantity in (("rSquared", fit.rsquared_estimate), ("residualVariance", fit.residual_variance)):
        try:
            found = quantity(kind)
        except AnalysisError:
            assert "refused" in told[name]
            continue
        close(told[name]["estimate"], found.estimate)
        if name == "residualVariance":
            assert told[name].keys() == {"estimate"}
            continue
        close(told[name]["error"], found.std_error)
        close([told[name]["low"], told[name]["high"]], found.conf_int(question["level"]))


@pytest.mark.parametrize("name", EVERY)
def test_regressions_agree(releases: dict[str, Release], name: str) -> None:
    release = releases[name]
    declared = [column.name for column in release.schema.columns]
    questions = [
        {"ask": "regress", "target": target, "on": [n for n in on if n in declared], "method": method,
         "alpha": alpha, "kind": kind, "level": level}
        for target, on, level in (
            ("charges", [n for n in declared if n != "charges"], 0.95),
            ("charges", ["age", "smoker"], 0.9),
            ("charges", ["region", "smoker"], 0.99),
            ("smoker=yes", ["exercise", "age", "region"], 0.95),
            ("bmi", ["age"], 0.95),
            ("bmi", [], 0.95),
            ("charges", ["smoker", "age", "smoker*age"], 0.95),
            ("charges", ["smoker*age", "exercise*smoker"], 0.95),
            ("charges", ["smoker*region"], 0.95),
            ("charges", ["region", "smoker*region", "bmi"], 0.95),
        )
        if target in release.columns
        for method, alpha, kind in (
            ("auto", None, "population"), ("ols", None, "table"), ("ridge", None, "population"),
            ("ridge", 12.5, "table"), ("ridge", 1e5, "population"),
        )
    ]  # fmt: skip
    for question, told in zip(questions, ask(release, *questions), strict=True):
        same_fit(release, question, told)


@pytest.mark.parametrize("name", EVERY)
def test_correlations_and_components_agree(releases: dict[str, Release], name: str) -> None:
    release = releases[name]
    declared = [column.name for column in release.schema.columns]
    questions = [
        {"ask": "components", "on": on, "standardise": standardise}
        for on in (declared, ["age", "bmi", "charges"], ["smoker", "age"])
        if set(on) <= set(declared)
        for standardise in (False, True)
    ]
    asked = [("population", 0.95), ("table", 0.9)]
    kinds = [{"ask": "correlation", "kind": kind, "level": level} for kind, level in asked]
    answers = ask(release, *kinds, *questions)
    correlations, found = answers[: len(kinds)], answers[len(kinds) :]
    for (kind, level), told in zip(asked, correlations, strict=True):
        try:
            wanted = release.correlation(kind=kind)
        except AnalysisError:
            assert "refused" in told
            continue
        assert told["cautions"] == list(wanted.cautions)
        for name, values in zip(
            ("estimate", "low", "high"), (wanted.estimate, *wanted.conf_int(level)), strict=True
        ):
            np.testing.assert_allclose(np.array(told[name], dtype=np.float64), values, rtol=DIGITS, atol=1e-9)
    for question, told in zip(questions, found, strict=True):
        try:
            python = release.pca(on=question["on"], standardise=question["standardise"])
        except AnalysisError:
            assert "refused" in told
            continue
        assert tuple(told["names"]) == python.names
        assert told["cautions"] == list(python.cautions)
        for key, values in (
            ("variance", python.variances), ("explained", python.explained), ("sine", python.sines)
        ):  # fmt: skip
            close([component[key] for component in told["list"]], values)
        assert [component["stable"] for component in told["list"]] == python.stable.tolist()
        close(told["noiseReach"], python.noise_norm)
        loadings = np.array([component["loadings"] for component in told["list"]]).T
        aligned = loadings * np.sign(np.sum(loadings * python.loadings, axis=0))
        np.testing.assert_allclose(aligned, python.loadings, atol=1e-6)


@pytest.mark.parametrize("degrees", [None, 1.0, 2.5, 17.3, 200.0, 49_873.2, 3e8])
def test_tails_and_quantiles_are_those_of_scipy(degrees: float | None) -> None:
    law = stats.norm if degrees is None else stats.t(degrees)
    points = [0.0, 1e-6, 0.3, 1.0, 1.96, 4.0, 9.5, 30.0]
    levels = [0.4, 0.1, 0.05, 0.025, 0.005, 1e-6]
    tails, quantiles = ask(
        None,
        {"ask": "tails", "points": points, "degrees": degrees},
        {"ask": "quantiles", "tails": levels, "degrees": degrees},
    )
    np.testing.assert_allclose(tails, law.sf(points), rtol=1e-8)
    np.testing.assert_allclose(quantiles, law.isf(levels), rtol=1e-10)


def test_eigenvalues_are_those_of_lapack() -> None:
    """Also where many are equal, or zero, or of very different sizes."""
    rng = np.random.default_rng(5)
    turn = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    shapes = [
        np.zeros((3, 3)),
        np.array([[2.0]]),
        np.diag([3.0, 1.0, 3.0, -2.0]),
        np.ones((6, 6)),
        (turn * np.repeat([1.0, 0.0, -4.0], 4)) @ turn.T,
        (turn * 10.0 ** np.arange(-6.0, 6.0)) @ turn.T,
    ]
    for matrix, found in zip(
        shapes, ask(None, *({"ask": "eigen", "rows": m.tolist()} for m in shapes)), strict=True
    ):
        symmetric = (matrix + matrix.T) / 2
        scale = max(np.abs(symmetric).max(), 1.0)
        np.testing.assert_allclose(found["values"], np.linalg.eigvalsh(symmetric), atol=1e-13 * scale)
        vectors = np.array(found["vectors"]).reshape(matrix.shape)
        np.testing.assert_allclose(vectors @ vectors.T, np.eye(len(matrix)), atol=1e-13)
        np.testing.assert_allclose(
            vectors @ symmetric @ vectors.T, np.diag(found["values"]), atol=1e-12 * scale
        )


CUBIC = ("eigen", "times", "timesTransposed", "orthonormal", "triangleInverse", "form", "spectral")
"""Steps of which one takes as many multiplications as the cube of the width."""


def test_a_click_takes_a_few_cubic_steps() -> None:
    """Fit, intervals and quality together, as a click in the page asks for: milliseconds for 100 columns.

    What takes the time is counted: the clock would measure what else the machine does.
    """
    counted = """
      const counts = {};
      for (const name of %s) {
        const plain = dpgram.algebra[name];
        dpgram.algebra[name] = (...given) => ((counts[name] = (counts[name] ?? 0) + 1), plain(...given));
      }
    """
    click = """
      const features = moments.declared.slice(1).map((column) => column.name);
      const design = buildDesign(moments, 1, features);
      dpgram.regression.regress(moments, design, "auto");
      const inference = dpgram.inference.infer(moments, design, "population", 0.95);
      dpgram.inference.quality(moments, design, inference);
      console.log(JSON.stringify(counts));
    """
    first, *others = map(explorer.script, explorer.ARITHMETIC)
    assert "dpgram.algebra =" in first
    harness = HARNESS.split("const asked", maxsplit=1)[0]
    program = "\n".join([first, counted % json.dumps(CUBIC), *others, harness, click])
    found = []
    for width in (10, 100):
        rows = np.random.default_rng(0).uniform(-1, 1, (2000, width))
        names = [f"x{i}" for i in range(width)]
        schema = dg.Schema(*(dg.numeric(name, -1, 1) for name in names))
        release = seeded(dict(zip(names, rows.T, strict=True)), schema, epsilon=20.0, delta=1e-6)
        found.append(json.loads(in_node(program, {"facts": page_facts(release), "questions": []})))
    assert found[0] == found[1], "not one for each column"
    assert 0 < sum(found[1].values()) <= 20


class TestDownloads:
    ROWS = (
        {"age": 33, "bmi": 27.5, "smoker": "yes", "region": "south", "exercise": 3.0},
        {"age": 71, "bmi": 41.0, "smoker": "no", "region": "north", "exercise": 0.0},
    )

    @pytest.mark.parametrize("name", ["gaussian", "no constant"])
    @pytest.mark.parametrize(("method", "alpha"), [("auto", None), ("ridge", 30.0)])
    def test_the_python_code_predicts_and_refits(
        self, releases: dict[str, Release], tmp_path: Path, name: str, method: str, alpha: float | None
    ) -> None:
        release = releases[name]
        on = ["age", "bmi", "smoker", "region", "exercise", "age*bmi", "age^P2"]
        question = {"ask": "python", "target": "charges", "on": on, "method": method, "alpha": alpha}
        (told,) = ask(release, question)
        namespace: dict[str, object] = {}
        exec(told["python"], namespace)
        intercept = release.schema.constant
        fit = release.regress("charges", on, method=method, alpha=alpha, intercept=intercept)
        wanted = fit.predict({key: [row[key] for row in self.ROWS] for key in self.ROWS[0]})
        close([namespace["predict"](row) for row in self.ROWS], wanted)
        again = namespace["refit"](release.save(tmp_path / "r.json"))
        np.testing.assert_allclose(again.values, fit.values, rtol=1e-9)

    def test_the_python_code_reads_every_kind_of_column(self) -> None:
        rng = np.random.default_rng(4)
        grades = ["low", 'so "so"', "day(high)\n\u202e", "3"]
        days = np.datetime64("2020-01-01") + rng.integers(0, 900, 5000)
        table = {
            "since": days,
            "grade": np.array(grades)[rng.integers(0, 4, 5000)],
            "member": rng.uniform(size=5000) < 0.4,
            "y": rng.uniform(0, 1, 5000),
            "town": rng.choice(["a", 'b"'], 5000),
        }
        schema = dg.Schema(
            dg.numeric("since", "2020-01-01", "2022-12-31"),
            dg.ordinal("grade", grades),
            dg.boolean("member"),
            dg.numeric("y", 0, 1),
            dg.categorical("town", ["a", 'b"']),
            dg.product("since", "grade"),
            dg.legendre("grade", 3),
            dg.product("town", "since"),
            dg.product("member", "town"),
        )
        release = seeded(table, schema, epsilon=20.0, delta=1e-6)
        on = ["since", "grade", "member", "since*grade", "grade^P3", "town*since", "member*town"]
        (told,) = ask(release, {"ask": "python", "target": "y", "on": on, "method": "auto", "alpha": None})
        assert set(told["python"]) <= set(map(chr, range(32, 127))) | {"\n"}
        namespace: dict[str, object] = {}
        exec(told["python"], namespace)
        dates = [date(2021, 2, 3), date(2022, 3, 4), date(2020, 1, 1), date(2022, 12, 31)]
        rows = [
            {"since": day, "grade": grade, "member": member, "town": town}
            for day, grade, member, town in zip(
                dates, grades, (True, False, True, False), ("a", 'b"', 'b"', "a"), strict=True
            )
        ]
        wanted = release.regress("y", on).predict(rows)
        close([namespace["predict"](row) for row in rows], wanted)

    def test_json_and_csv_hold_the_table(self, releases: dict[str, Release]) -> None:
        release = releases["gaussian"]
        (told,) = ask(
            release,
            {"ask": "python", "target": "charges", "on": ["age", "smoker"], "method": "auto", "alpha": None},
        )
        fit = release.regress("charges", ["age", "smoker"])
        model = json.loads(told["json"])
        assert model["release"]["digest"] == release.digest
        assert [c["name"] for c in model["coefficients"]] == list(fit.names)
        close([c["fitted"] for c in model["coefficients"]], fit.values)
        head, *lines = told["csv"].splitlines()
        assert head == "name,fitted,estimate,std_error,low,high,p_value"
        close([float(line.split(",")[3]) for line in lines], list(fit.bse.values()))

    def test_hostile_names_stay_text(self) -> None:
        """No name can end a literal, start a formula or hide characters in the code."""
        names = ['"); import os; ("', "=1+1", "a\nb\\", "\u202egnp.exe", "\U0001f600", "it's", "</script>"]
        rng = np.random.default_rng(0)
        table = {name: rng.uniform(0, 1, 5000) for name in names}
        schema = dg.Schema(*(dg.numeric(name, 0, 1) for name in names))
        release = seeded(table, schema, epsilon=5.0, delta=1e-6)
        on = names[1:]
        (told,) = ask(
            release, {"ask": "python", "target": names[0], "on": on, "method": "auto", "alpha": None}
        )
        assert told["python"].isascii()
        assert told["python"].isprintable() or set(told["python"]) <= set(map(chr, range(32, 127))) | {"\n"}
        namespace: dict[str, object] = {}
        exec(told["python"], namespace)
        assert namespace["TARGET"] == names[0]
        assert namespace["FEATURES"] == on
        fit = release.regress(names[0], on)
        row = {name: 0.25 + 0.1 * i for i, name in enumerate(on)}
        close(namespace["predict"](row), fit.predict({name: [value] for name, value in row.items()})[0])
        assert "\r\n'=1+1," in told["csv"]
        assert '"a\nb\\"' in told["csv"]
