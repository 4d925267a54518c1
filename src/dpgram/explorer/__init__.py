"""The explorer: one HTML file in which an analyst asks a release questions, without a server or a network.

`arithmetic/` is statistics: ES modules that know nothing of a browser. `drawing/` is what is seen. Both are
put into the file, with the release.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from dpgram import pages
from dpgram.explorer.facts import page_facts

if TYPE_CHECKING:
    from dpgram.document.document import Document

__all__ = ["ARITHMETIC", "SCRIPTS", "page", "script"]

ARITHMETIC: Final = (
    "arithmetic/algebra.js",
    "arithmetic/distributions.js",
    "arithmetic/moments.js",
    "arithmetic/design.js",
    "arithmetic/regression.js",
    "arithmetic/declared.js",
    "arithmetic/inference.js",
    "arithmetic/covariance.js",
    "arithmetic/downloads.js",
    "arithmetic/contrasts.js",
    "arithmetic/prediction.js",
    "arithmetic/models.js",
    "arithmetic/instruments.js",
    "arithmetic/trend.js",
)
"""What needs no browser, in the order in which they build on each other."""

SCRIPTS: Final = (
    *ARITHMETIC,
    "drawing/elements.js",
    "drawing/sheet.js",
    "drawing/charts.js",
    "drawing/address.js",
    "drawing/session.js",
    "drawing/question.js",
    "drawing/fit_panel.js",
    "drawing/person_panel.js",
    "drawing/instruments_panel.js",
    "drawing/models_panel.js",
    "drawing/columns_panel.js",
    "drawing/association_panel.js",
    "drawing/trend_panel.js",
    "drawing/view.js",
)
"""All of them; `view.js` starts the page."""


def page(release: Document, series: Mapping[str, object] | None = None) -> str:
    """Of a release; with `trend_facts` of the series whose running total it is, trends too."""
    title = "" if release.about is None else release.about.title
    kind = "release" if series is None else "series"
    return pages.page(
        f"Explore: {title}" if title else f"Explore a private {kind}",
        pages.source(__package__, "drawing/explorer.html"),
        style=pages.source(__package__, "drawing/explorer.css"),
        scripts=[script(name) for name in SCRIPTS],
        data=page_facts(release) | {"series": series},
    )


def script(name: str) -> str:
    """A module as it stands in the page; it can be run by itself after those before it in `SCRIPTS`."""
    return pages.as_script(pages.source(__package__, name), PurePosixPath(name).stem)
