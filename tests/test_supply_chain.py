"""What dpgram is made from and shipped as: few dependencies, true bounds, a lock, builds that repeat."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from distribution.build import PAPERS, Built, build
from distribution.clean_install import try_out_both
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from dpgram.errors import PUBLISHING

PROJECT = Path(__file__).resolve().parents[1]
METADATA = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RUNTIME = [Requirement(text) for text in METADATA["dependencies"]]
EXTRAS = {
    name: [Requirement(text) for text in texts] for name, texts in METADATA["optional-dependencies"].items()
}
LIBRARY_EXTRAS = (
    "publish", "frame", "plot", "duckdb", "sql", "office", "dask", "spark", "federated", "sign", "wizard",
)  # fmt: skip
OURS = "dpgram"
LOCK = (PROJECT / "requirements-dev.lock").read_text(encoding="utf-8")
PINNED = re.compile(r"^([a-z0-9][a-z0-9.-]*)==(\S+)(?: ; ([^\\\n]+?))? \\$", re.MULTILINE)


def lower_bound(requirement: Requirement) -> Version:
    (only,) = requirement.specifier
    assert only.operator == ">=", f"{requirement}: one lower bound and nothing else"
    return Version(only.version)


def oldest() -> dict[str, Version]:
    lines = (PROJECT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line.split("==") for line in lines if not line.startswith("#")]
    return {name: Version(version) for name, version in pinned}


class TestVersion:
    def test_every_distribution_has_the_same(self) -> None:
        papers = tomllib.loads((PROJECT / "papers/pyproject.toml").read_text(encoding="utf-8"))["project"]
        r_package = (PROJECT / "r/DESCRIPTION").read_text(encoding="utf-8")
        node = json.loads((PROJECT / "js/package.json").read_text(encoding="utf-8"))
        (needed,) = [Requirement(text) for text in papers["dependencies"] if text.startswith(OURS)]
        found = {
            papers["version"],
            *re.findall(r"^Version: (\S+)$", r_package, re.MULTILINE),
            node["version"],
        }
        assert found == {METADATA["version"]} == {only.version for only in needed.specifier}

    def test_the_changelog_begins_with_it(self) -> None:
        changelog = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
        assert re.findall(r"^## ([0-9.]+)", changelog, re.MULTILINE)[0] == METADATA["version"]


class TestDependencies:
    def test_the_base_is_the_analysts_side(self) -> None:
        assert {requirement.name for requirement in RUNTIME} == {"numpy", "scipy", "msgspec", "typer", "rich"}

    def test_they_are_few(self) -> None:
        assert len([*RUNTIME, *EXTRAS["publish"]]) <= 12

    @pytest.mark.parametrize("name", ["duckdb", "sql", "dask", "spark", "federated", "test", "docs"])
    def test_what_reads_tables_brings_the_curators_side(self, name: str) -> None:
        (own,) = [requirement for requirement in EXTRAS[name] if requirement.name == OURS]
        assert "publish" in own.extras

    def test_publish_is_what_the_code_asks_for(self) -> None:
        modules = {"python-flint": "flint", "scikit-learn": "sklearn"}
        brought = {modules.get(requirement.name, requirement.name) for requirement in EXTRAS["publish"]}
        assert brought == {*PUBLISHING, "sklearn"}

    @pytest.mark.parametrize("requirement", [*RUNTIME, *EXTRAS["publish"]], ids=str)
    def test_each_is_justified(self, requirement: Requirement) -> None:
        page = (PROJECT / "docs" / "reference" / "dependencies.md").read_text(encoding="utf-8")
        assert re.search(rf"^\| [^|]*\b{re.escape(requirement.name)}\b[^|]* \| \w", page, re.MULTILINE)

    @pytest.mark.parametrize("name", [name for name in EXTRAS if name not in ("test", "docs")])
    def test_each_extra_is_explained(self, name: str) -> None:
        page = (PROJECT / "docs" / "reference" / "dependencies.md").read_text(encoding="utf-8")
        assert f"`{name}`" in page

    def test_the_oldest_are_those_declared(self) -> None:
        """So that `make test-oldest` tests what pyproject.toml promises."""
        declared = {
            canonicalize_name(requirement.name): lower_bound(requirement)
            for requirement in [*RUNTIME, *(r for name in LIBRARY_EXTRAS for r in EXTRAS[name])]
            if requirement.name != OURS
        }
        indirect = {"click", "pyparsing", "pytest"}
        assert {name: version for name, version in oldest().items() if name not in indirect} == declared


class TestLock:
    def test_everything_has_hashes_and_nothing_has_an_address(self) -> None:
        assert "://" not in LOCK
        assert "--index" not in LOCK
        assert "--find-links" not in LOCK
        blocks = re.split(r"(?m)^(?=[a-z0-9])", LOCK)[1:]
        assert len(blocks) > 80
        for block in blocks:
            assert PINNED.match(block), block.splitlines()[0]
            assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block.splitlines()[0]

    def test_it_holds_what_is_declared(self) -> None:
        pinned: dict[str, list[Version]] = {}
        for name, version, _ in PINNED.findall(LOCK):
            pinned.setdefault(name, []).append(Version(version))
        wanted = [*RUNTIME, *(r for group in EXTRAS.values() for r in group if r.name != OURS)]
        for requirement in wanted:
            versions = pinned.get(canonicalize_name(requirement.name), [])
            assert versions, f"{requirement} is not in the lock: make lock"
            assert all(requirement.specifier.contains(version) for version in versions), requirement


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    if not (PROJECT / ".git").exists():
        pytest.skip("not a git checkout, so nothing says which files belong to the project")
    return build(tmp_path_factory.mktemp("dist"))


class TestBuild:
    def test_the_wheel_holds_the_package_and_nothing_else(self, built: Built) -> None:
        with zipfile.ZipFile(built.wheel) as archive:
            names = archive.namelist()
        folder = f"dpgram-{METADATA['version']}.dist-info"
        assert {name.split("/")[0] for name in names} == {"dpgram", folder}
        assert not [name for name in names if "papers" in name]
        endings = {Path(name).suffix for name in names if name.startswith("dpgram/")}
        assert endings == {".py", ".typed", ".json", ".html", ".css", ".js"}
        wanted = {"py.typed", "release/release_schema.json", "pages/style.css", "explorer/drawing/view.js"}
        assert {f"dpgram/{name}" for name in wanted} <= set(names)
        assert f"{folder}/licenses/LICENSE" in names
        assert sum(name.startswith("dpgram/explorer/") and name.endswith(".js") for name in names) > 5

    def test_the_sdist_holds_the_sources_and_nothing_else(self, built: Built) -> None:
        with tarfile.open(built.sdist) as archive:
            members = archive.getmembers()
        inside = {member.name.split("/", 1)[1].split("/")[0] for member in members if "/" in member.name}
        assert inside == {
            "src", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "MANIFEST.in",
            "PKG-INFO", "setup.cfg",
        }  # fmt: skip
        assert not [member.name for member in members if "papers" in member.name]
        assert {(member.uid, member.gid, member.uname) for member in members} == {(0, 0, "")}
        assert len({member.mtime for member in members}) == 1

    def test_every_module_is_shipped(self, built: Built) -> None:
        tracked = subprocess.run(
            ["git", "ls-tree", "-r", "--name-only", built.commit, "src/dpgram"],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        assert len(tracked) > 100
        with zipfile.ZipFile(built.wheel) as archive:
            assert {name.removeprefix("src/") for name in tracked} <= set(archive.namelist())

    def test_the_papers_are_a_wheel_of_their_own(self, built: Built, tmp_path: Path) -> None:
        research = build(tmp_path, of=PAPERS, commit=built.commit)
        with zipfile.ZipFile(research.wheel) as archive:
            names = archive.namelist()
            (entry_points,) = (name for name in names if name.endswith("entry_points.txt"))
            assert "reproduce = dpgram_papers.command:reproduce" in archive.read(entry_points).decode()
            (about,) = (name for name in names if name.endswith("METADATA"))
            needs = re.findall(r"^Requires-Dist: (.+)$", archive.read(about).decode(), re.MULTILINE)
        assert {name.split("/")[0].split("-")[0] for name in names} == {"dpgram_papers"}
        assert "dpgram_papers/experiments/reproduce.py" in names
        (only,) = map(Requirement, needs)
        assert only.name == "dpgram"
        assert only.specifier.contains(METADATA["version"]), "both are released together"

    @pytest.mark.full
    def test_a_second_build_gives_the_same_bytes(self, built: Built, tmp_path: Path) -> None:
        assert build(tmp_path / "elsewhere", commit=built.commit).digests == built.digests

    @pytest.mark.full
    def test_the_date_is_the_only_thing_that_varies(self, built: Built, tmp_path: Path) -> None:
        """Power: the comparison does see a difference."""
        other = build(tmp_path / "elsewhere", commit=built.commit, epoch=1_000_000_000)
        assert set(other.digests) == set(built.digests)
        assert all(other.digests[name] != digest for name, digest in built.digests.items())

    @pytest.mark.full
    @pytest.mark.parametrize("kind", ["wheel", "sdist"])
    def test_it_works_in_an_empty_environment(self, built: Built, tmp_path: Path, kind: str) -> None:
        analyst, curator = try_out_both(getattr(built, kind), folder=tmp_path)
        assert analyst.version == curator.version == METADATA["version"]
        assert analyst.distributions < curator.distributions
