"""The report for the people who answer for the data: complete, static, and harmless whatever a file says."""

from __future__ import annotations

import json
import re
import warnings
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import numpy as np
import pytest
from assurance.isolated import Outcome
from assurance.page import FIGURES, PAGE, circumstances, figures, page
from assurance.part import Finding, Part
from scipy.stats import norm
from tests.flat import publish

import dpgram as dg
from dpgram.analysis.display import guarantee_in_words
from dpgram.cli import run
from dpgram.core.noise import SeededEntropy
from dpgram.demo import insurance
from dpgram.errors import DpgramWarning, LedgerError, ReleaseError
from dpgram.explorer.facts import page_facts
from dpgram.exports import summary_statistics
from dpgram.paperwork import evaluation_page, registry_entry
from dpgram.privacy.ledger import Ledger
from dpgram.release import Release
from dpgram.release.report import detection, suspicion_at_most

TABLE = insurance.table(3_000)


def seeded(schema: dg.Schema | None = None, table: object = TABLE, **options: object) -> Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        terms = {"epsilon": 1.0, "delta": 1e-6, "mechanism": "gaussian"} | options
        return publish(table, schema or insurance.schema(), entropy=SeededEntropy(1), **terms)


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.attributes: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_it_tells_what_the_release_says(tmp_path: Path) -> None:
    release = seeded()
    content = Tags(release.report(tmp_path / "r.html").read_text(encoding="utf-8"))
    assert release.digest in content.text
    assert "by a factor of at most 2.718" in content.text
    for column in release.schema.columns:
        assert column.name in content.text
    assert "protects nobody" in content.text  # seeded
    assert "script" not in content.seen
    assert not [name for name in content.attributes if name.startswith("on")]


def test_a_forged_statement_is_not_repeated(tmp_path: Path) -> None:
    honest = seeded()
    told = msgspec.structs.replace(honest.guarantee, statement="Perfectly safe, ε = 0.")
    forged = msgspec.structs.replace(honest, guarantee=told)
    shown = [
        forged.report(tmp_path / "r.html").read_text(encoding="utf-8"),
        str(forged),
        forged._repr_html_(),
        str(registry_entry(forged)),
        evaluation_page(forged),
        summary_statistics(forged).guarantee,
        str(page_facts(forged) | {"release": "the file itself, to be saved"}),
    ]
    for each in shown:
        assert "Perfectly safe" not in each
        assert "a factor of at most 2.718" in " ".join(each.split())
    assert str(forged.guarantee) == str(honest.guarantee) == "ε = 1, δ = 1e-06, μ = 0.2367"


def test_nor_is_that_of_all_blocks_together() -> None:
    honest = dg.load(Path(__file__).resolve().parents[2] / "conformance" / "vectors" / "block.dpgram.json")
    assert honest.block is not None
    told = msgspec.structs.replace(honest.block.joint, statement="Perfectly safe, ε = 0.")
    forged = msgspec.structs.replace(honest, block=msgspec.structs.replace(honest.block, joint=told))
    for show in (str, registry_entry, evaluation_page, lambda release: str(release.block.joint)):
        assert "Perfectly safe" not in str(show(forged))
    assert guarantee_in_words(honest, honest.block.joint) in str(registry_entry(forged))


class TestTheBestAttack:
    def test_gaussian_noise_has_the_exact_curve(self) -> None:
        release = seeded()
        mu = release.guarantee.mu
        assert mu is not None
        assert detection(release, 0.05) == pytest.approx(norm.sf(norm.isf(0.05) - mu))

    def test_no_test_on_simulated_noise_does_better(self) -> None:
        """Neighbours that differ by μ standard deviations: the best test has exactly this power."""
        release = seeded()
        rng = np.random.default_rng(0)
        mu, draws = release.guarantee.mu, 400_000
        threshold = norm.isf(0.05)
        found = float(np.mean(rng.standard_normal(draws) + mu > threshold))
        assert found == pytest.approx(detection(release, 0.05), abs=4 * 0.5 / draws**0.5)

    @pytest.mark.parametrize("alarms", [0.0, 1e-4, 0.02, 0.3, 0.9, 1.0])
    def test_a_pure_promise_bounds_both_errors(self, alarms: float) -> None:
        release = seeded(mechanism="matrix-laplace", epsilon=0.7, delta=0.0)
        power, growth = detection(release, alarms), np.exp(0.7)
        assert alarms <= power <= 1
        assert power <= growth * alarms + 1e-12
        assert 1 - alarms <= growth * (1 - power) + 1e-12

    def test_suspicion_follows_the_odds(self) -> None:
        release = seeded()
        for before in (0.01, 0.5, 0.99):
            after = suspicion_at_most(release.guarantee.epsilon, before)
            assert after / (1 - after) == pytest.approx(np.e * before / (1 - before))


class TestWhatIsSigned:
    def test_each_bound_says_where_it_comes_from(self, tmp_path: Path) -> None:
        schema = dg.Schema(
            dg.numeric("age", 18, 90, source="membership rules, §4"),
            dg.numeric("bmi"),
            dg.numeric("charges", 0, 50_000),
            dg.product("age", "charges"),
        )
        release = seeded(schema, insurance.table(20_000), epsilon=3.0, adaptive=True)
        text = " ".join(Tags(release.report(tmp_path / "r.html").read_text(encoding="utf-8")).text.split())
        assert "declared in advance: membership rules, §4" in text
        assert "declared in advance; no source stated" in text
        assert "bounds learnt privately, under the same guarantee" in text
        assert "computed from age and charges" in text
        low, high = (f"{end:.5g}" for end in release.schema.column("bmi").bounds)
        assert f"{low} to {high}" in text
        assert not re.search(r"\d\.\d{8,}", text), "numbers for people"

    def test_it_speaks_of_its_own_columns(self, tmp_path: Path) -> None:
        schema = dg.Schema(dg.numeric("wage", 0, 1), dg.numeric("hours", 0, 1))
        rng = np.random.default_rng(0)
        table = {"wage": rng.uniform(0, 1, 3_000), "hours": rng.uniform(0, 1, 3_000)}
        page = seeded(schema, table).report(tmp_path / "r.html").read_text(encoding="utf-8")
        text = Tags(page.split("</style>")[1]).text
        assert "how wage goes with hours" in text
        assert not re.search(r"smok|charges|region|\bage\b", text)

    def test_histograms_and_losses_are_shown(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        values = rng.uniform(0, 1, 20_000)
        values[:3_000] = np.nan
        schema = dg.Schema(dg.numeric("x", 0, 1), dg.categorical("town", ["a", "b"]))
        table = {"x": values, "town": rng.choice(["a", "b"], 20_000)}
        release = seeded(schema, table, epsilon=2.0, adaptive=True)
        page = release.report(tmp_path / "r.html").read_text(encoding="utf-8")
        assert page.count("Noisy histogram of") == 2
        assert f"missing about {release.histogram('x').lost['missing']:,.0f}" in page
        assert page.count('class="stable"') == len(release.histogram("x").counts) + 2

    def test_who_what_for_whom_and_approval(self, tmp_path: Path) -> None:
        ledger = Ledger.create(tmp_path / "x.ledger", name="insurance", epsilon=3, delta=1e-5)
        options = {"epsilon": 1.0, "delta": 1e-6, "mechanism": "gaussian", "note": "approved by: the office"}
        release = publish(TABLE, insurance.schema(), ledger=ledger, **options)
        about = {"title": "Insured", "description": "Members.", "contact": "data@x", "licence": "CC BY"}
        page = release.described(**about).report(tmp_path / "r.html", ledger=ledger.path)
        shown = page.read_text(encoding="utf-8")
        summary = Tags(shown.split("</dl>")[0]).text
        for words in ("data@x", "Members.", "CC BY", "approved by: the office", "of the ledger insurance"):
            assert words in summary
        assert "<title>Report: Insured</title>" in shown
        assert str(ledger.left()) in summary


def test_the_papers_beside_it_are_made_by_the_commands_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create("LEDGER", name="insurance", epsilon=3, delta=1e-5)
    release = publish(TABLE, insurance.schema(), ledger=ledger, epsilon=1.0, delta=1e-6, mechanism="gaussian")
    release.save("RELEASE")
    page = release.report("r.html", ledger="LEDGER").read_text(encoding="utf-8")
    section = page.split('<section id="papers">')[1].split("</section>")[0]
    assert page.index('id="papers"') < page.index("<h2>Signed for</h2>")
    commands = [line for line in re.findall("<code>(.*?)</code>", section) if line.startswith("dpgram ")]
    assert len(commands) == 2
    for command in commands:
        assert run(command.split()[1:]) == 0
    assert Path("evaluation.html").read_text(encoding="utf-8").count("To attest") > 5
    assert release.digest[:8] in Path("entry.yaml").read_text(encoding="utf-8")
    assert "--ledger" not in release.report("public.html").read_text(encoding="utf-8")


def test_figures_of_assurance_are_those_of_its_page(tmp_path: Path) -> None:
    """`make assurance` writes both; `python -m assurance.page` the figures alone."""
    told = figures(PAGE.read_text(encoding="utf-8"))
    assert json.loads(FIGURES.read_text(encoding="utf-8")) == told
    text = " ".join(Tags(seeded().report(tmp_path / "r.html").read_text(encoding="utf-8")).text.split())
    assert f"Examined on {told['made']}: version {told['version']}" in text
    for part in told["parts"]:
        assert part["part"] in text
    finding = Finding(what="a", figure="b", holds=False)
    part = Part(title="Soak", how="", findings=(finding,))
    failing = page([Outcome(part=part, seconds=1.0)], circumstances(), seconds=1.0)
    assert figures(failing)["parts"] == [{"part": "Soak", "findings": 1, "holds": False}]


class TestTheLedger:
    def test_history_and_what_is_left(self, tmp_path: Path) -> None:
        ledger = Ledger.create(tmp_path / "x.ledger", name="insurance", epsilon=3, delta=1e-5)
        options = {"epsilon": 1.0, "delta": 1e-6, "mechanism": "gaussian"}
        release = publish(TABLE, insurance.schema(), ledger=ledger, note="the <first>", **options)
        written = release.report(tmp_path / "r.html", ledger=ledger.path)
        content = Tags(written.read_text(encoding="utf-8"))
        assert "the <first>" in content.text
        assert str(ledger.left()) in content.text
        assert re.search(r"spent \d+\.\d%", content.text)
        assert "protects nobody" not in content.text

    def test_another_ledger_is_refused(self, tmp_path: Path) -> None:
        ours, other = (
            Ledger.create(tmp_path / f"{name}.ledger", name=name, epsilon=3, delta=1e-5)
            for name in ("a", "b")
        )
        options = {"epsilon": 1.0, "delta": 1e-6, "mechanism": "gaussian"}
        release = publish(TABLE, insurance.schema(), ledger=ours, **options)
        with pytest.raises(LedgerError):
            release.report(tmp_path / "r.html", ledger=other.path)


def test_hostile_names_are_text(tmp_path: Path) -> None:
    names = ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(2)>", "\u202eabc", "x" * 4_000]
    rng = np.random.default_rng(0)
    schema = dg.Schema(*(dg.numeric(name, 0, 1) for name in names), dg.categorical("<b>", ["</td>", "&amp;"]))
    table = {name: rng.uniform(0, 1, 500) for name in names} | {"<b>": rng.choice(["</td>", "&amp;"], 500)}
    release = seeded(schema, table)
    content = Tags(release.report(tmp_path / "r.html").read_text(encoding="utf-8"))
    assert not {"script", "img", "b"} & set(content.seen)
    assert names[0] in content.text
    assert "</td>, &amp;" in content.text
    assert content.seen.count("table") == 5
    assert (tmp_path / "r.html").stat().st_size < 200_000


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="cannot be written"):
        seeded().report(tmp_path / "nowhere" / "r.html")
