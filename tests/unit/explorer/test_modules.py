"""The page's modules: valid by themselves, and the same when put into a page."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dpgram import explorer, pages

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
