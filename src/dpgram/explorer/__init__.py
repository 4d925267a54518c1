"""The explorer: one HTML file in which an analyst asks a release questions, without a server or a network.

Everything is inside the file: the release, and our own arithmetic and drawing in plain JavaScript. A content
security policy lets only these very scripts run, by their hashes, and forbids every connection.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from dpgram.explorer.facts import page_facts

if TYPE_CHECKING:
    from dpgram.document.document import Document

__all__ = ["ARITHMETIC", "SCRIPTS", "page", "source"]

SCRIPTS: Final = (
    "algebra.js",
    "distributions.js",
    "moments.js",
    "design.js",
    "regression.js",
    "inference.js",
    "covariance.js",
    "downloads.js",
    "sheet.js",
    "charts.js",
    "panels.js",
    "view.js",
)
"""In the order in which they build on each other; `view.js` starts the page."""

ARITHMETIC: Final = SCRIPTS[: SCRIPTS.index("sheet.js")]
"""What needs no browser."""


def page(release: Document) -> str:
    scripts = [source(name) for name in SCRIPTS]
    parts = {
        "policy": _policy(scripts),
        "style": source("style.css"),
        "data": _inside_script(page_facts(release)),
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    # In one pass: a column may be called {{scripts}}.
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], source("page.html"))


def source(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(scripts: list[str]) -> str:
    """Only these scripts, no connection, no frame, no form; styles and images from the page itself."""
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def _inside_script(value: object) -> str:
    """JSON that no HTML parser can mistake for markup: what could end or open a tag is written as \\uXXXX."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
