"""Text that every program reads: lines of comment, then N, means and covariances.

`_TYPE_` and `_NAME_` are the columns of SAS's TYPE=COV data sets; R reads it with `comment.char = "#"`. A
name that begins as a formula does in spreadsheets has an apostrophe before it, in both places where it
stands, and so has one that begins with an apostrophe: without it, each is that of the release again. Control
characters are spelled out: a reader may end a line at a carriage return within a name.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Final

from dpgram.document.terminal import one_line

if TYPE_CHECKING:
    from dpgram.exports.summary_statistics import SummaryStatistics


_FORMULA: Final = re.compile(r"^(?=[=+\-@\t\r'])")
"""How a cell begins that a spreadsheet would compute, and one that would be mistaken for it afterwards."""
_FORMULA_WITHIN: Final = re.compile(r"(?<=[,;])(\s*)(?=[=+\-@])")
"""The same in a line of comment, which a spreadsheet splits into cells."""
APOSTROPHE: Final = "An apostrophe before a name keeps spreadsheets from computing it"


def as_csv(statistics: SummaryStatistics) -> bytes:
    text = io.StringIO()
    names = [_FORMULA.sub("'", one_line(name)) for name in statistics.names]
    comments = [*statistics.header("A program that reads this file")]
    for line in [*comments, APOSTROPHE] if names != [*statistics.names] else comments:
        text.write("# " + _FORMULA_WITHIN.sub(r"\1'", line) + "\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["_TYPE_", "_NAME_", *names])
    writer.writerow(["N", "", *[statistics.observations] * len(statistics.names)])
    writer.writerow(["MEAN", "", *map(repr, statistics.means.tolist())])
    for name, row in zip(names, statistics.covariance.tolist(), strict=True):
        writer.writerow(["COV", name, *map(repr, row)])
    return text.getvalue().encode("utf-8")
