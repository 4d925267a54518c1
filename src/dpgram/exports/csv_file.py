"""Text that every program reads: lines of comment, then N, means and covariances.

`_TYPE_` and `_NAME_` are the columns of SAS's TYPE=COV data sets; R reads it with `comment.char = "#"`.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpgram.exports.summary_statistics import SummaryStatistics


def as_csv(statistics: SummaryStatistics) -> bytes:
    text = io.StringIO()
    for line in statistics.header("A program that reads this file"):
        text.write(f"# {line}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["_TYPE_", "_NAME_", *statistics.names])
    writer.writerow(["N", "", *[statistics.observations] * len(statistics.names)])
    writer.writerow(["MEAN", "", *map(repr, statistics.means.tolist())])
    for name, row in zip(statistics.names, statistics.covariance.tolist(), strict=True):
        writer.writerow(["COV", name, *map(repr, row)])
    return text.getvalue().encode("utf-8")
