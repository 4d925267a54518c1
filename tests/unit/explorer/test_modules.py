"""The page's modules: valid by themselves, and the same when put into a page."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest

import dpgram as dg
from dpgram import explorer, pages
from dpgram.explorer.facts import page_facts
from dpgram.figures import WIDE, limits, shortened

NODE = shutil.which("node")
FOLDER = Path(explorer.__file__).parent


def test_every_module_is_listed_after_those_it_imports() -> None:
    found = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.js")}
    assert found == set(explorer.SCRIPTS)
    for place, name in enumerate(explorer.SCRIPTS):
        text = (FOLDER / name).read_text(encoding="utf-8")
        needed = re.findall(r'from "(.*)";', text)
        before = {(FOLDER / other).resolve() for other in explorer.SCRIPTS[:place]}
        assert {(FOLDER / name).parent.joinpath(other).resolve() for other in needed} <= before, name


def test_arithmetic_knows_no_browser() -> None:
    for name in explorer.ARITHMETIC:
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert not re.search(r"\b(document|window|navigator|localStorage|location)\b\.", text), name
        assert "drawing/" not in text


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
def test_arithmetic_is_made_of_es_modules(tmp_path: Path) -> None:
    """As another program would import them, with nothing of Python between."""
    shutil.copytree(FOLDER / "arithmetic", tmp_path / "arithmetic")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    lines = [f'import * as m{i} from "./{name}";' for i, name in enumerate(explorer.ARITHMETIC)]
    counts = ", ".join(f"Object.keys(m{i}).length" for i in range(len(lines)))
    (tmp_path / "all.js").write_text("\n".join([*lines, f"console.log(Math.min({counts}));"]))
    done = subprocess.run([str(NODE), tmp_path / "all.js"], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 0


def test_imports_and_exports_become_plain_statements() -> None:
    module = 'import {\n  a, b as c,\n} from "../x/y.js";\nimport * as z from "./z.js";\nexport { d };\n'
    script = pages.as_script(module, "own")
    assert "const {\n  a, b: c,\n} = dpgram.y;" in script
    assert "const z = dpgram.z;" in script
    assert "dpgram.own = { d };" in script


@pytest.mark.parametrize("form", ['import a from "./a.js";', "export default a;", "export function f() {}"])
def test_other_forms_are_refused(form: str) -> None:
    with pytest.raises(ValueError, match=re.escape(form)):
        pages.as_script(form + "\n", "own")


def in_node(code: str) -> object:
    """What the page's modules give without a browser."""
    stub = "globalThis.addEventListener = () => {};\n"
    scripts = [explorer.script(name) for name in explorer.SCRIPTS if name not in STARTS]
    done = subprocess.run(
        [str(NODE), "-"], input=stub + "\n".join([*scripts, f"console.log(JSON.stringify({code}))"]),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


STARTS = ("drawing/view.js",)
"""Needs a page at once."""


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
def test_charts_follow_the_rules_of_figures() -> None:
    """Names that are cut, and how far an axis goes, in the page as in matplotlib."""
    names = ["short", "a name that is long and ends in one", "a name that is long and ends in two", "x" * 30]
    names += ["y" * 40 + "1" + "z" * 20, "y" * 40 + "2" + "z" * 20]
    assert in_node(f"dpgram.elements.distinct({json.dumps(names)}, 20)") == shortened(names, 20)
    assert len(set(shortened(names, 20))) == len(names)
    low, high = [0.5, -0.2, -40.0, 0.1], [0.7, 0.3, 45.0, 0.2]
    estimate, fitted = [0.6, 0.05, 2.5, 0.15], [0.55, 0.04, 0.3, 0.14]
    effects = [
        dict(zip(("low", "high", "estimate", "fitted"), each, strict=True))
        for each in zip(low, high, estimate, fitted, strict=True)
    ]
    wanted = limits(*map(np.array, (low, high, estimate, fitted)))
    assert in_node(f"dpgram.charts.limits({json.dumps(effects)}, {WIDE})") == pytest.approx(wanted)
    assert wanted[1] < 2.0, "the wide one is cut off"
    assert limits(*map(np.array, (low[:2], high[:2], estimate[:2], fitted[:2])))[1] > 0.7


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
def test_an_address_says_all_of_a_view() -> None:
    release = dg.load(Path(__file__).resolve().parents[2] / "golden" / "insurance-gaussian-v1.dpgram.json")
    address = (
        "view=person&y=bmi&x=age&x=smoker&method=ridge&lambda=0.5&level=0.9&kind=table&endogenous=age&ivMethod=liml"
        '&reference=["smoker","yes"]&person=["age",33]&person=["smoker","no"]&instrument=region&pair=age&pair=bmi'
    )
    code = """
      (() => {
        const moments = dpgram.moments.momentsOf(FACTS);
        const state = dpgram.address.fromAddress(moments, ADDRESS);
        const text = dpgram.address.toAddress(moments, state);
        const again = dpgram.address.toAddress(moments, dpgram.address.fromAddress(moments, "#" + text));
        const start = dpgram.address.toAddress(moments, dpgram.address.initialState(moments));
        return [text, again, start];
      })()
    """
    facts, asked = json.dumps(page_facts(release)), json.dumps(address)
    text, again, start = in_node(code.replace("FACTS", facts).replace("ADDRESS", asked))
    assert start == ""
    assert text == again
    assert sorted(parse_qsl(text)) == sorted(parse_qsl(address))


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
def test_a_column_may_have_a_name_that_every_object_knows() -> None:
    """No level was chosen of a column called "constructor": neither at the start nor after a reset."""
    release = dg.load(Path(__file__).resolve().parents[2] / "golden" / "insurance-gaussian-v1.dpgram.json")
    code = """
      (() => {
        const moments = dpgram.moments.momentsOf(FACTS);
        const session = { moments, state: dpgram.address.initialState(moments) };
        const start = session.state.references;
        session.change = (changes) => Object.assign(session.state, changes);
        const [{ remedies: [[, reset]] }] = dpgram.fit_panel.nothingChosen(session, [], "");
        reset();
        return [start, session.state.references].map((each) => each["constructor"] === undefined);
      })()
    """
    assert in_node(code.replace("FACTS", json.dumps(page_facts(release)))) == [True, True]
