"""The folder of public data sets: whoever runs an experiment names it; it is looked for nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

from dpgram.errors import DpgramError


def data_folder(named: Path | None = None) -> Path | None:
    """The folder that was named, by the argument or else by DPGRAM_DATA; None: by nobody."""
    from_environment = os.environ.get("DPGRAM_DATA")
    if named is None and from_environment:
        named = Path(from_environment)
    if named is not None and not named.is_dir():
        raise DpgramError(
            "there is no such folder of data sets",
            got=named,
            remedy="Name one with --data or in the environment variable DPGRAM_DATA",
        )
    return named
