"""The papers' experiments in their smallest form: laws of the tables, reconstructions, files, claims."""

from __future__ import annotations

import csv
import json
import math
import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpgram import cli
from dpgram.cli.plugins import GROUP
from dpgram.core.noise import SeededEntropy, simulation
from dpgram.errors import DpgramError
from dpgram.estimators import OutputPerturbation
from dpgram.privacy.adjacency import ReplaceOne
from dpgram.privacy.curves.wishart import AdditiveWishartCurve
from dpgram.privacy.guarantee import Guarantee
from dpgram_papers.experiments import amin_regression, sheffet_multiple, sheffet_single
from dpgram_papers.experiments.clipped_rows import ClippedRows
from dpgram_papers.experiments.comparisons import Comparison, summary, worthless
from dpgram_papers.experiments.kalaja_mapping import MAPPINGS
from dpgram_papers.experiments.reproduce import PAPERS, Reproduction, reproduce, studies_of
from dpgram_papers.experiments.sheffet_single import DELTA, WIDTH, WISHART_DEGREES, WISHART_SCALES
from dpgram_papers.sheffet_adaptive_degrees import PrintedAdaptiveDegrees

pytest.importorskip("matplotlib")

PROJECT = Path(__file__).resolve().parents[3]
DESIGNS = {"one target": sheffet_single.design(1), "many targets": sheffet_multiple.design(1)}


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_the_moment_of_clipped_rows(design: ClippedRows) -> None:
    """Every cell within 5 of its own standard errors (α = 0.0005 over 820 cells); not so without clipping."""
    rows = design.clipped(1 << 17, simulation(3))
    found = rows.T @ rows / len(rows)
    squares = (rows**2).T @ rows**2 / len(rows)
    error = np.sqrt(np.maximum(squares - found**2, 1e-12) / len(rows))
    assert np.all(np.abs(found - design.moment()) < 5.0 * error)
    plain = design.rows(1 << 17, simulation(3))
    assert np.any(np.abs(found - plain.T @ plain / len(plain)) > 20.0 * error)


@pytest.mark.parametrize("exponent", [13, pytest.param(20, marks=pytest.mark.full)])
@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_the_limit_law_has_the_spread_of_the_rows(design: ClippedRows, exponent: int) -> None:
    """Variances of 80 draws agree on average within 5% (their noise is about 1%), both ways; 2^20 is where
    `--full` begins to draw from the limit."""
    count, generator = 1 << exponent, simulation(4)
    direct = np.stack([design.row_by_row(count, generator) for _ in range(80)])
    limit = np.stack([design.in_the_limit(count, generator) for _ in range(80)])
    upper = np.triu_indices(direct.shape[1], 1)
    ratio = limit.var(axis=0)[upper] / direct.var(axis=0)[upper]
    assert math.exp(np.log(ratio).mean()) == pytest.approx(1.0, abs=0.05)
    gap = (limit.mean(axis=0) - direct.mean(axis=0))[upper] / np.sqrt(2.0 * direct.var(axis=0)[upper] / 80)
    assert np.abs(gap).max() < 5.0


def test_huge_tables_take_the_limit_and_small_ones_do_not() -> None:
    design = sheffet_single.design(1)
    one = design.gram(1 << 12, simulation(5), direct=1 << 12)
    np.testing.assert_allclose(one, design.row_by_row(1 << 12, simulation(5)) / design.bound**2)
    other = design.gram(1 << 13, simulation(5), direct=1 << 12)
    np.testing.assert_allclose(other, design.in_the_limit(1 << 13, simulation(5)) / design.bound**2)


def test_more_degrees_only_where_the_least_eigenvalue_allows() -> None:
    variant = PrintedAdaptiveDegrees(claimed=Guarantee(0.5, DELTA), least=44)
    plans = [variant.plan(size * np.eye(22), simulation(6)) for size in (0.0, 1e2, 1e3, 1e4, 1e5)]
    ridges, degrees = zip(*plans, strict=True)
    assert list(ridges) == sorted(ridges, reverse=True)
    assert list(degrees) == sorted(degrees)
    assert ridges[0] > 0.0 == ridges[-1]
    assert degrees[0] == 44 < degrees[-1]
    assert variant.private
    assert variant.draw(1e5 * np.eye(22), SeededEntropy(1)).shape == (22, 22)


@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_the_kept_wishart_scales_are_exact(epsilon: float) -> None:
    spare = float(WISHART_DEGREES - WIDTH + 1)

    def meets(scale: float) -> bool:
        curve = AdditiveWishartCurve(adjacency=ReplaceOne(), degrees=spare, ratio=1.0 / scale)
        return curve.within(epsilon, DELTA)

    assert meets(WISHART_SCALES[epsilon])
    assert not meets(0.97 * WISHART_SCALES[epsilon])


def test_mappings_bound_the_training_rows() -> None:
    generator = simulation(7)
    x, y = generator.standard_gamma(1.0, (200, 4)), generator.standard_normal(200)
    test = np.arange(200) % 10 == 0
    for name, mapping in MAPPINGS.items():
        split = mapping(x, y, test)
        assert np.linalg.norm(split.x, axis=1).max() <= 1.0 + 1e-12, name
        assert np.abs(split.y).max() <= 1.0 + 1e-12, name
        assert len(split.test_y) == test.sum() == len(split.test_x)


@pytest.fixture(scope="module")
def sheffet(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    return reproduce("sheffet", tmp_path_factory.mktemp("sheffet"), size="tiny")


class TestSheffet:
    def test_everything_is_written(self, sheffet: Reproduction) -> None:
        names = {file.name for file in sheffet.files}
        assert {f"sheffet-figure-{k}.{kind}" for k in range(1, 7) for kind in ("png", "svg")} <= names
        assert {"sheffet-single.csv", "sheffet-claims.md", "sheffet-surpassed.csv"} <= names
        assert all(file.stat().st_size > 100 for file in sheffet.files)

    def test_claims_have_a_verdict_and_a_reason(self, sheffet: Reproduction) -> None:
        assert len(sheffet.verdicts) >= 20
        assert all(verdict.found for verdict in sheffet.verdicts)
        outcomes = {verdict.claim: verdict.outcome for verdict in sheffet.verdicts}
        assert {"pass", "fail", "false as printed"} <= set(outcomes.values())
        assert outcomes["subtracting the expected noise is consistently better"] == "pass"

    def test_the_default_is_ahead_where_something_is_left_to_gain(self, sheffet: Reproduction) -> None:
        open_ = [row for row in sheffet.comparisons if not row.arrived]
        assert len(open_) >= 4
        assert all(row.ratio > 1.0 for row in open_)

    def test_a_second_run_measures_nothing_and_writes_the_same(self, sheffet: Reproduction) -> None:
        folder = sheffet.files[0].parent
        before = {file: file.read_bytes() for file in sheffet.files}
        heard: list[tuple[int, int]] = []
        reproduce("sheffet", folder, size="tiny", tell=lambda _, done, of: heard.append((done, of)))
        assert all(done == of for done, of in heard)
        assert {file: file.read_bytes() for file in sheffet.files} == before


def test_park_and_welling(tmp_path: Path) -> None:
    made = reproduce("park-welling", tmp_path, size="tiny")
    title = (tmp_path / "park-welling-surpassed.md").read_text(encoding="utf-8").splitlines()[0]
    assert "dpgram's LpRegression against" in title
    assert [row.ratio > 1.0 for row in made.comparisons] == [True, True]
    outcomes = {verdict.place: verdict.outcome for verdict in made.verdicts}
    assert outcomes["eq. 6–11"] == "false as printed"
    assert outcomes["§3"] == "pass"  # in the paper's own currency, the expected loss


def test_amin_without_data_says_what_it_skips(tmp_path: Path) -> None:
    made = reproduce("amin", tmp_path, size="tiny")
    assert set(made.skipped) == {"amin-covariance-real", "amin-regression-real"}
    assert all("DPGRAM_DATA" in reason for reason in made.skipped.values())
    assert made.verdicts
    assert {"amin-figure-2.png", "amin-figure-3.png", "amin-figure-4.png"} <= {f.name for f in made.files}


@pytest.mark.parametrize(("paper", "least"), [("amin", 10), ("wang", 7), ("kalaja", 11)])
def test_papers_on_real_tables(paper: str, least: int, tmp_path: Path, shared_data: Path) -> None:
    made = reproduce(paper, tmp_path, size="tiny", data=shared_data)
    assert not made.skipped
    assert len(made.verdicts) >= least
    wanted = {number for study in studies_of(paper) for number in study.figures}
    assert {f"{paper}-figure-{number}.png" for number in wanted} <= {file.name for file in made.files}


def test_one_figure_runs_its_study_alone(tmp_path: Path) -> None:
    made = reproduce("sheffet", tmp_path, size="tiny", figure="5")
    assert {file.name for file in made.files} == {
        "sheffet-multiple.csv", "sheffet-figure-5.png", "sheffet-figure-5.svg",
        "sheffet-claims.md", "sheffet-claims.csv", "sheffet-surpassed.md", "sheffet-surpassed.csv",
    }  # fmt: skip
    with pytest.raises(DpgramError, match="no such figure"):
        reproduce("sheffet", tmp_path, figure="9")
    with pytest.raises(DpgramError, match="unknown paper"):
        reproduce("nobody", tmp_path)


def test_every_paper_has_studies_and_figures() -> None:
    figures = {paper: [n for study in studies_of(paper) for n in study.figures] for paper in PAPERS}
    assert figures["sheffet"] == [str(k) for k in range(1, 7)]
    assert figures["amin"] == [str(k) for k in range(1, 6)]
    assert figures["kalaja"] == [f"4.{k}" for k in range(1, 9)]
    assert figures["park-welling"] == figures["wang"] == ["1"]


def compared(theirs: float, ours: float, setting: str = "s") -> Comparison:
    return Comparison(
        figure="F",
        guarantee="(1, 0)",
        setting=setting,
        rival="r",
        theirs=theirs,
        ours=ours,
        floor=1.0,
        nothing=1.8,
    )


def test_summary_leaves_out_what_has_arrived() -> None:
    lines = summary([compared(4.0, 2.0), compared(1.6, 4.0), compared(0.5, 1.2)])
    assert "| F | (1, 0) | 1 of 2 | 0.40 | 1.20 | 2 | s (r) | 2; 1 |" in lines
    assert compared(1.0, -0.1).ratio == math.inf


def test_settings_worse_than_nothing_are_named() -> None:
    rows = [
        compared(4.0, 2.0, "wine, ε = 0.01"),
        compared(1.9, 2.0, "wine, ε = 0.1"),
        compared(1.9, 1.7, "wine, ε = 1"),
        compared(1.6, 4.0, "adult, ε = 0.01"),
        compared(9.0, 1.2, "bike, ε = 1"),
    ]
    assert worthless(rows)[2:] == ["| F | wine, ε = 0.01, 0.1 | adult, ε: all |"]
    assert worthless(rows[2:3])[2:] == []


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command as papers/pyproject.toml declares it, whether the package is installed or not."""
    project = tomllib.loads((PROJECT / "papers" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    entries = [
        metadata.EntryPoint(name, value, GROUP) for name, value in project["entry-points"][GROUP].items()
    ]
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: metadata.EntryPoints(entries))


@pytest.mark.usefixtures("installed")
def test_the_command_and_its_options_are_documented(capsys: pytest.CaptureFixture[str]) -> None:
    page = (PROJECT / "docs" / "how-to" / "reproduce.md").read_text(encoding="utf-8")
    assert cli.run(["reproduce", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "dpgram reproduce sheffet" in shown
    options = set(re.findall(r"--[a-z]+", shown)) - {"--help"}
    assert {"--data", "--figure", "--tiny", "--json"} <= options
    assert options <= set(re.findall(r"`(--[a-z]+)`", page))


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("by", ["--data", "DPGRAM_DATA"])
def test_a_folder_of_data_that_is_not_there_is_one_line(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = str(tmp_path / "absent")
    monkeypatch.delenv("DPGRAM_DATA", raising=False)
    named = ["--data", absent] if by == "--data" else []
    if not named:
        monkeypatch.setenv("DPGRAM_DATA", absent)
    output = tmp_path / "out"
    assert cli.run(["reproduce", "sheffet", "--tiny", "-o", str(output), *named]) == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert f"no such folder of data sets; got {absent}" in told
    assert not output.exists()


@pytest.mark.usefixtures("installed")
def test_data_that_nobody_named_is_looked_for_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DPGRAM_DATA", raising=False)
    assert cli.run(["reproduce", "wang", "--tiny", "-o", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert "give --data, or set DPGRAM_DATA" in told


@pytest.mark.usefixtures("installed")
def test_data_by_option_and_by_environment(
    tmp_path: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpgram_papers.data import data_folder

    monkeypatch.setenv("DPGRAM_DATA", str(shared_data))
    assert data_folder() == shared_data
    assert data_folder(tmp_path) == tmp_path
    monkeypatch.delenv("DPGRAM_DATA")
    assert data_folder() is None
    folder = ["--data", str(shared_data), "-o", str(tmp_path)]
    assert cli.run(["reproduce", "wang", "--tiny", "--processes", "1", *folder]) == 0
    assert (tmp_path / "wang-table.csv").is_file()


@pytest.mark.usefixtures("installed")
def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["reproduce", "sheffet", "--tiny", "--figure", "5", "--processes", "1", "-o", str(tmp_path)]
    assert cli.run([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["paper"] == "sheffet"
    assert {claim["outcome"] for claim in told["claims"]} <= {
        "pass",
        "pass, fitted",
        "holds in part",
        "fail",
        "false as printed",
        "not measured",
    }
    with (tmp_path / "sheffet-multiple.csv").open() as file:
        assert next(csv.reader(file))[:5] == ["seed", "log2_rows", "run", "log2_direct", "m"]
    assert cli.run(arguments) == 0
    printed = capsys.readouterr().out
    assert "NOT PRIVATE" in printed
    assert "one plain matrix of dpgram has the smaller error in" in printed
    assert cli.run([*arguments, "--full"]) == 2
    assert "one size at a time" in capsys.readouterr().err


def noise_states(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fills, while the test runs, with the state that each draw of seeded noise began from."""
    seen: list[str] = []
    for name in ("discrete_gaussian", "discrete_laplace", "random_bytes", "generator"):
        method = getattr(SeededEntropy, name)

        def watched(source: SeededEntropy, *given: Any, plain: Any = method) -> Any:
            drawn = plain(source, *given)
            begun = drawn if isinstance(drawn, np.random.Generator) else source._generator
            seen.append(str(begun.bit_generator.state))  # after the draw, which tells its beginning apart too
            return drawn

        monkeypatch.setattr(SeededEntropy, name, watched)
    return seen


PAIRED = ("park-welling",)
"""Each method gets the same noise on the same table: differences are what its figure shows."""


@pytest.mark.parametrize("paper", [paper for paper in PAPERS if paper not in PAIRED])
def test_no_two_draws_of_a_cell_share_their_noise(
    paper: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An estimator copies the source it is given: one source for several fits is the same noise in each."""
    seen = noise_states(monkeypatch)
    for study in studies_of(paper):
        grid = study.grid("tiny", shared_data)
        for cell in grid.cells[:: max(1, len(grid.cells) - 1)]:
            seen.clear()
            grid.measure(cell, 3)
            assert len(seen) == len(set(seen)), f"{study.name}, {cell}"


def test_two_fits_of_output_perturbation_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """In every run, for every α and target."""
    fits: list[tuple[float, ...]] = []
    fit = OutputPerturbation.fit

    def kept(model: OutputPerturbation, X: Any, y: Any) -> OutputPerturbation:
        found = fit(model, X, y).coef_
        fits.append(tuple(np.round(found / np.linalg.norm(found), 6)))  # at ε = 0.01 nearly all is noise
        return model

    monkeypatch.setattr(OutputPerturbation, "fit", kept)
    amin_regression.measure(Path(), ("d = 10", 1000, 2, 3, 0.01), 1)
    assert len(fits) == len(amin_regression.ALPHAS) * 2 * 3
    assert len(set(fits)) == len(fits)
