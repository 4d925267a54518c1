"""Denoised second moments in the files of other programs: CSV, SAS (XPORT), Stata, lavaan.

All of them are made of one `SummaryStatistics`, positive semidefinite, and all say what the errors and
intervals of that program leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dpgram.exports.csv_file import as_csv
from dpgram.exports.lavaan import as_lavaan
from dpgram.exports.stata import as_stata
from dpgram.exports.summary_statistics import SummaryStatistics, summary_statistics
from dpgram.exports.xport import as_xport

__all__ = [
    "FORMATS",
    "SummaryStatistics",
    "as_csv",
    "as_lavaan",
    "as_stata",
    "as_xport",
    "summary_statistics",
]

FORMATS: Final[Mapping[str, Callable[[SummaryStatistics], bytes]]] = {
    ".csv": as_csv,
    ".xpt": as_xport,
    ".dta": as_stata,
    ".R": as_lavaan,
}
"""By the ending of the file's name."""
