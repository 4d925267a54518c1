"""The registry entry has every field that is demanded; the evaluation has an answer or an open point."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpgram as dg
from dpgram.analysis.moments import Moments
from dpgram.cli import run
from dpgram.errors import DpgramWarning, LedgerError, ReleaseError
from dpgram.mechanisms import MECHANISMS
from dpgram.paperwork import OPEN, REQUIRED, evaluation, evaluation_page, registry_entry, registry_yaml
from dpgram.paperwork.evaluation import ITEMS
from dpgram.paperwork.facts import PROOFS
from dpgram.release import Release

PROJECT = Path(__file__).resolve().parents[2]
VECTORS = PROJECT / "conformance" / "vectors"
KINDS = sorted(path.name.removesuffix(".dpgram.json") for path in VECTORS.glob("*.dpgram.json"))
NAMES: dict[str, Any] = {
    "name": "People: a “test”",
    "curator": "An office",
    "curator_type": "Government",
    "region": "Nowhere",
    "sector": "Healthcare",
    "published": "2026-11-17",
    "authors": ["A. Clerk"],
}
ENUMERATIONS = {
    ("deployment", "basic", "data_product_type"): {"Summary statistics", "Dataset"},
    ("deployment", "dp_variant", "variant_name"): {"Pure DP", "Approximate DP"},
    ("deployment", "deployment_model", "model_name"): {"Central"},
    ("deployment", "deployment_model", "release_type"): {"One release", "Many releases"},
    ("deployment", "deployment_model", "data_source_type"): {"Static", "Dynamic"},
    ("deployment", "deployment_model", "access_type"): {"Non-interactive"},
    ("deployment", "administrative", "status"): {"Draft"},
}


def release(kind: str = "adaptive") -> Release:
    return dg.load(VECTORS / f"{kind}.dpgram.json")


def at(entry: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        entry = entry[0][name] if isinstance(entry, list) else entry[name]
    return entry


@pytest.mark.parametrize("kind", KINDS)
def test_every_required_field_is_there(kind: str) -> None:
    for names in ({}, NAMES):
        entry = registry_entry(release(kind), **names)
        for path in REQUIRED:
            assert at(entry, path), path
        for path, allowed in ENUMERATIONS.items():
            assert at(entry, path) in allowed
    assert OPEN not in json.dumps(at(entry, ("deployment", "basic")))
    parameters = at(entry, ("deployment", "privacy_loss", "privacy_parameters"))
    stated = release(kind)
    joint = stated.guarantee if stated.block is None else stated.block.joint
    assert parameters == {"epsilon": joint.epsilon, "delta": joint.delta}


@pytest.mark.parametrize("kind", KINDS)
def test_the_yaml_reads_back(kind: str, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    text = release(kind).registry(tmp_path / "entry.yaml", **NAMES).read_text(encoding="utf-8")
    assert yaml.safe_load(text) == registry_entry(release(kind), **NAMES)


def test_open_points_stand_at_the_top() -> None:
    text = registry_yaml(registry_entry(release()))
    for path in ("basic.name", "basic.data_curators.data_curator_type", "administrative.registry_authors"):
        assert f"# {OPEN}: deployment.{path}\n" in text
    assert f"# {OPEN}: deployment.basic" not in registry_yaml(registry_entry(release(), **NAMES))


def test_mistakes_in_an_entry() -> None:
    for wrong in ({"curator_type": "Club"}, {"sector": "Fishing"}, {"published": "yesterday"}):
        with pytest.raises(ReleaseError):
            registry_entry(release(), **wrong)


@pytest.mark.parametrize("kind", KINDS)
def test_every_item_has_an_answer_or_an_open_point(kind: str) -> None:
    items = evaluation(release(kind))
    assert len(items) == len(ITEMS)
    assert len({item.question for item in items}) == len(items)
    for item in items:
        assert item.answer or item.attest, item.question
        assert not item.answer or item.evidence or item.attest, item.question


def test_evidence_exists() -> None:
    """A paper that names a file of ours names one that is there."""
    named = {
        word.rstrip(":")
        for kind in KINDS
        for item in evaluation(release(kind))
        for text in item.evidence
        for word in text.split()
        if "/" in word and word.rstrip(":").endswith((".md", ".py"))
    }
    assert len(named) > 12
    assert [name for name in named if not (PROJECT / name).exists()] == []
    assert set(PROOFS) == set(MECHANISMS)
    assert all((PROJECT / "proofs" / f"{page}.md").exists() for page in PROOFS.values())


def question(items: Any, words: str) -> Any:
    (found,) = [item for item in items if words in item.question]
    return found


def test_answers_follow_the_release(tmp_path: Path) -> None:
    plain, persons, pure = (evaluation(release(kind)) for kind in ("plain", "persons", "pure"))
    assert "one row is one person" in question(plain, "unit of privacy").attest
    assert "'person'" in question(persons, "unit of privacy").answer
    assert "δ = 0" in question(pure, "How large is δ").answer
    assert "seed" in question(plain, "randomness").hazard
    assert "No ledger" in question(plain, "added up").hazard
    assert "bmi" in question(evaluation(release("learnt")), "outside the guarantee").answer


def test_hazards_are_named() -> None:
    rng = np.random.default_rng(1)
    schema = dg.Schema(dg.numeric("x", 0, 1), dg.numeric("y", 0, 1))
    table = {"x": rng.random(500), "y": rng.random(500)}
    with pytest.warns(DpgramWarning):
        found = dg.publish(table, schema, epsilon=12.0, delta=1e-2, mechanism="gaussian", adaptive=False)
    items = evaluation(found)
    assert question(items, "How large is ε").hazard
    assert question(items, "How large is δ").hazard
    assert not question(items, "randomness").hazard


def test_a_ledger_is_evidence(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    ledger = dg.Ledger.create(tmp_path / "p.ledger", name="people", epsilon=3.0, delta=1e-5)
    schema = dg.Schema(dg.numeric("x", 0, 1), dg.numeric("y", 0, 1))
    table = {"x": rng.random(500), "y": rng.random(500)}
    found = dg.publish(table, schema, epsilon=1.0, delta=1e-6, ledger=ledger, adaptive=False)
    item = question(evaluation(found, ledger.path), "added up")
    assert "holds the charge of this release" in item.answer
    assert not item.hazard
    other = dg.Ledger.create(tmp_path / "o.ledger", name="others", epsilon=3.0, delta=1e-5)
    with pytest.raises(LedgerError):
        evaluation(found, other.path)
    assert "entry 1" in json.dumps(registry_entry(found))


def test_a_page_cannot_be_broken_by_names() -> None:
    odd = release().described(title="<script>alert(1)</script>")
    assert "<script>alert" not in evaluation_page(odd)


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, entry, page = str(VECTORS / "adaptive.dpgram.json"), tmp_path / "e.yaml", tmp_path / "e.html"
    asked = ["--curator", "An office", "--curator-type", "Government", "--author", "A. Clerk"]
    assert run(["registry", source, "-o", str(entry), *asked]) == 0
    assert "An office" in entry.read_text()
    capsys.readouterr()
    assert run(["evaluation", source, "-o", str(page), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["items"]) == len(ITEMS)
    assert run(["evaluation", source, "-o", str(page), "--overwrite"]) == 0
    assert "points are left" in capsys.readouterr().out
    assert run(["registry", source, "-o", str(entry), "--overwrite", "--published", "soon"]) == 2
    assert "not a date" in capsys.readouterr().err


def stated_units(found: Release) -> int | None:
    return registry_entry(found)["deployment"]["privacy_loss"].get("number_of_privacy_units")


def test_units_are_counted_not_weighed() -> None:
    """Rows with gaps are not in the matrix, and far ones weigh less there; yet each is protected."""
    rng = np.random.default_rng(2)
    schema = dg.Schema(dg.numeric("x", 0, 20), dg.numeric("wage", 0, 5_000))
    table = {"x": rng.uniform(0, 20, 12_000), "wage": rng.lognormal(5.5, 0.9, 12_000)}
    table["x"][:1_000] = np.nan
    found = dg.publish(table, schema, epsilon=5.0, delta=1e-6)
    assert (Moments.of(found).rows or 0.0) < 11_500
    assert stated_units(found) == round(found.count())
    assert f"times about {found.count():,.0f} rows" in question(evaluation(found), "How large is δ").answer


def test_what_no_count_tells_is_not_stated() -> None:
    rng = np.random.default_rng(3)
    schema = dg.Schema(dg.numeric("x", 0, 1), dg.numeric("y", 0, 1))
    table = {"x": rng.random(600), "y": rng.random(600), "id": np.arange(600) // 2}
    rows = {"several": dg.Rows(unit="id", unit_rows=2), "clipped": dg.Rows(radius=0.5)}
    for name, rule in rows.items():
        data = {key: own for key, own in table.items() if name == "several" or key != "id"}
        found = dg.publish(
            data, schema, epsilon=5.0, delta=1e-6, rows=rule, adaptive=False, mechanism="gaussian"
        )
        assert stated_units(found) is None
        item = question(evaluation(found), "How large is δ")
        assert f"the number of {'units' if name == 'several' else 'rows'} is not known" in item.answer
        assert item.attest
    assert stated_units(release("weighted")) is None
    assert stated_units(release("persons")) == round(release("persons").count())
