"""Sphinx settings. `make docs` builds with warnings as errors."""

from __future__ import annotations

import shutil
from importlib.metadata import version as installed_version
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

HERE = Path(__file__).parent

project = "dpgram"
author = "the dpgram developers"
copyright = "the dpgram developers"
release = installed_version("dpgram")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "dpgram"
html_static_path = ["_static"]
html_css_files = ["site.css"]
autodoc_typehints = "description"
autodoc_member_order = "bysource"
default_role = "literal"  # `name` in a docstring is code
nitpicky = False


def copy_pages_kept_elsewhere() -> None:
    """The proofs and the changelog live at the top of the repository; the site shows the same files."""
    generated = HERE / "generated"
    shutil.rmtree(generated, ignore_errors=True)
    shutil.copytree(HERE.parent / "proofs", generated / "proofs")
    shutil.copy(HERE.parent / "CHANGELOG.md", generated / "changelog.md")
    results = HERE.parent / "benchmarks" / "results"
    if results.is_dir():
        shutil.copytree(results, generated / "results")


copy_pages_kept_elsewhere()


def keep_bars(
    _app: Sphinx, _what: str, _name: str, _thing: object, _options: object, lines: list[str]
) -> None:
    """|x| is a length in our docstrings; reStructuredText would look for a substitution."""
    lines[:] = [line.replace("|", "\\|") for line in lines]


def setup(app: Sphinx) -> None:
    """Tables in examples are fences of kind csv, which no highlighter knows."""
    app.add_lexer("csv", TextLexer)
    app.connect("autodoc-process-docstring", keep_bars)
