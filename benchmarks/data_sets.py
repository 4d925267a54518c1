"""The folder of data sets that a benchmark reads, named with --data or in DPGRAM_DATA."""

from __future__ import annotations

import sys
from pathlib import Path

from dpgram.errors import DpgramError
from dpgram_papers.data import data_folder


def data_sets(named: Path | None = None) -> Path:
    """Ends the benchmark where nobody named one."""
    try:
        folder = data_folder(named)
    except DpgramError as problem:
        sys.exit(str(problem))
    if folder is None:
        sys.exit("this benchmark reads real tables: set DPGRAM_DATA to their folder")
    return folder
