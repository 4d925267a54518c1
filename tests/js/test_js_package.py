"""The JavaScript module: made of the explorer's own files, and held to the conformance vectors by Node."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from distribution.js_package import ARITHMETIC, SOURCE, assembled, build
from docs.examples import run_page

from dpgram.release import load

PROJECT = Path(__file__).resolve().parents[2]
VECTORS = PROJECT / "conformance" / "vectors"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="Node.js is not installed")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("js")
    package = assembled(folder)
    shutil.copy(SOURCE / "test.mjs", package)
    (package / "facts").mkdir()
    for path in VECTORS.glob("*.dpgram.json"):
        load(path).to_javascript(package / "facts" / path.name.replace(".dpgram", ""))
    return package


def compared(package: Path, wrong: str = "") -> tuple[int, dict[str, object]]:
    done = subprocess.run(
        [str(NODE), "test.mjs", str(VECTORS), "facts"], cwd=package, env={**os.environ, "WRONG": wrong},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@needs_node
def test_every_number_of_the_vectors_agrees(package: Path) -> None:
    code, told = compared(package)
    assert told["problems"] == []
    assert code == 0
    assert told["compared"] > 5000


@needs_node
@pytest.mark.parametrize("wrong", ["noise ignored", "sums of levels not used", "clip ignored"])
def test_a_careless_reader_fails(package: Path, wrong: str) -> None:
    code, told = compared(package, wrong)
    assert code == 1
    assert told["count"] > 50


@needs_node
def test_the_example_runs(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = PROJECT / "docs" / "how-to" / "javascript.md"
    (block,) = re.findall(r"^```js\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    for _ in run_page(page):
        pass
    shutil.copytree(package, tmp_path / "node_modules" / "dpgram")
    (tmp_path / "example.mjs").write_text(block, encoding="utf-8")
    done = subprocess.run([str(NODE), "example.mjs"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "smoker=yes" in done.stdout
    assert "no column height" in done.stdout


def test_there_is_no_second_copy_of_the_arithmetic(tmp_path: Path) -> None:
    assert not [path for path in SOURCE.rglob("*") if path.name in {own.name for own in ARITHMETIC.iterdir()}]
    with tarfile.open(build(tmp_path)) as archive:
        for path in ARITHMETIC.glob("*.js"):
            packed = archive.extractfile(f"package/arithmetic/{path.name}")
            assert packed is not None
            assert packed.read() == path.read_bytes()


def test_every_member_has_a_type() -> None:
    """What the classes of the module have, the types say, and the other way round."""
    module, types = ((SOURCE / name).read_text(encoding="utf-8") for name in ("dpgram.js", "dpgram.d.ts"))
    for name in ("Release", "Regression"):
        own = re.search(rf"^class {name} .*?^}}", module, re.MULTILINE | re.DOTALL)
        told = re.search(rf"^export class {name} .*?^}}", types, re.MULTILINE | re.DOTALL)
        assert own is not None
        assert told is not None
        members = set(re.findall(r"^  (?:get )?([a-z]\w*)\(", own[0], re.MULTILINE))
        described = set(re.findall(r"^  (?:readonly |private )?([a-z]\w*)[(:]", told[0], re.MULTILINE))
        assert members == described


def test_types_are_right(package: Path, tmp_path: Path) -> None:
    compiler = shutil.which("tsc")
    if compiler is None:
        pytest.skip("the TypeScript compiler is not installed")
    shutil.copytree(package, tmp_path / "node_modules" / "dpgram")
    (tmp_path / "use.mts").write_text(
        'import { read, type Coefficient } from "dpgram";\n'
        'const fit = read("").regress("y", ["a"], { level: 0.9, intercept: false });\n'
        "const first: Coefficient | undefined = fit.coefficients[0];\n"
        "export const low: number | null = first?.low ?? null;\n"
    )
    options = ["--noEmit", "--strict", "--module", "nodenext", "use.mts"]
    done = subprocess.run([compiler, *options], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
