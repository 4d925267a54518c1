"""A release without a terminal: pages on this machine alone, from a file to a signed release.

Every page writes into one job file and asks the functions that the command line uses. Nothing is read before
the first step says so, and nothing is charged before the last click.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgram import _when_used

if TYPE_CHECKING:
    from dpgram.wizard.folder import Folder
    from dpgram.wizard.server import Wizard, browser_opener
    from dpgram.wizard.session import Session

__all__ = ["Folder", "Session", "Wizard", "browser_opener"]

__getattr__, __dir__ = _when_used(
    __name__,
    {
        "dpgram.wizard.folder": "Folder",
        "dpgram.wizard.server": "Wizard browser_opener",
        "dpgram.wizard.session": "Session",
    },
)
