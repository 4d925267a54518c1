"""What every HTML page of dpgram shares: one frame, one style sheet, one policy.

A page is one file that works without a network. Everything is inside it; a content security policy lets only
its own scripts run, by their hashes, and forbids every connection.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from dpgram.document.terminal import escaped

__all__ = ["STYLE", "as_script", "page", "source"]


def source(package: str, name: str) -> str:
    """A file that is shipped beside the modules of a package; `name` may lead into its folders."""
    return files(package).joinpath(*name.split("/")).read_text(encoding="utf-8")


STYLE: Final = source(__name__, "style.css")
"""Colours, writing, forms, tables, notices and paper, for all pages."""


def page(title: str, body: str, *, style: str = "", scripts: Sequence[str] = (), data: object = None) -> str:
    """The whole file. `body` is markup, `title` is text, `data` reaches the scripts as `#data`, in JSON."""
    parts = {
        "policy": _policy(scripts),
        "title": escaped(title),
        "style": STYLE + style,
        "body": body,
        "data": "" if data is None else _data(data),
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    # In one pass: a column may be called {{scripts}}.
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], source(__name__, "frame.html"))


def as_script(module: str, name: str) -> str:
    """An ES module as a plain script, since a file on disk cannot import others.

    What it exports becomes `dpgram.<name>`, and what it imports is read from there. Modules keep to three
    forms, each at the start of a line: `import { … } from "./x.js";`, `import * as x from "./x.js";` and
    `export { … };`.
    """
    script = re.sub(_NAMED, lambda found: f"const {{{_renamed(found[1])}}} = dpgram.{found[2]};", module)
    script = re.sub(_WHOLE, r"const \1 = dpgram.\2;", script)
    script = re.sub(_EXPORT, lambda found: f"dpgram.{name} = {{{found[1]}}};", script)
    if left := re.search(r"^(?:import|export)\b.*", script, re.MULTILINE):
        raise ValueError(f"{name}.js: this form cannot be put into a page: {left[0]}")
    return f'(function (dpgram) {{\n"use strict";\n{script}}})(globalThis.dpgram ??= {{}});\n'


_NAMED: Final = re.compile(r'^import \{([^}]*)\} from "[./\w]*?(\w+)\.js";$', re.MULTILINE)
_WHOLE: Final = re.compile(r'^import \* as (\w+) from "[./\w]*?(\w+)\.js";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export \{([^}]*)\};$", re.MULTILINE)


def _renamed(names: str) -> str:
    """`a as b` in an import is `a: b` where an object is taken apart."""
    return re.sub(r"(\w+) as (\w+)", r"\1: \2", names)


def _policy(scripts: Sequence[str]) -> str:
    """Only these scripts, no connection, no frame, no form; styles and images from the page itself."""
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts) or "'none'"
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def _data(value: object) -> str:
    """JSON that no HTML parser can mistake for markup: what could end or open a tag is written as \\uXXXX."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="data">{text}</script>'
