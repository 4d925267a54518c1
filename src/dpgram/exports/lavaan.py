"""An R script with what lavaan takes in place of data: sample.cov, sample.mean, sample.nobs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpgram.exports.summary_statistics import SummaryStatistics


def as_lavaan(statistics: SummaryStatistics) -> bytes:
    names = ", ".join(json.dumps(name) for name in statistics.short_names())
    numbers = ",\n    ".join(", ".join(map(repr, row)) for row in statistics.covariance.tolist())
    called = [
        f"#   {short}: {label}"
        for short, label in zip(statistics.short_names(), statistics.labels, strict=True)
    ]
    lines = [
        *(f"# {line}" for line in statistics.header("lavaan")),
        "# Columns:",
        *(" ".join(line.split()) for line in called),
        "# Use: source this file, then",
        "#   lavaan::sem(model, sample.cov = moments$cov, sample.mean = moments$mean,",
        "#               sample.nobs = moments$nobs)",
        "moments <- local({",
        f"  names <- c({names})",
        "  list(",
        f"    nobs = {statistics.observations},",
        f"    mean = stats::setNames(c({', '.join(map(repr, statistics.means.tolist()))}), names),",
        f"    cov = matrix(c({numbers}), nrow = length(names), dimnames = list(names, names))",
        "  )",
        "})",
    ]
    return ("\n".join(lines) + "\n").encode("utf-8")
