"""A SAS transport file (version 5) that holds a data set of TYPE=SSCP, as PROC REG takes it in place of rows.

The layout is that of SAS's technical note TS-140: records of 80 bytes, one header for the library, one for
the data set, 140 bytes about each variable, then rows of IBM floating-point numbers and padded text. We
write it ourselves, since the field that says TYPE=SSCP is not within reach of the libraries that write such
files, and since analysts need not install the readers of tables for it.

Names have eight letters there. `INTERCEP` is the constant, which today's SAS calls Intercept: see
docs/how-to/sas.md.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from dpgram.exports.summary_statistics import SummaryStatistics

RECORD: Final = 80
LONGEST_NAME: Final = 8
LONGEST_LABEL: Final = 40
CONSTANT: Final = "INTERCEP"
TIME: Final = "01JAN60:00:00:00"
"""The same for every file, so that the same release gives the same bytes."""
LABEL: Final = "Denoised; errors leave privacy noise out"
SEEDED: Final = "SEEDED noise, protects nobody: for tests"
"""In the label of the names: a data set has room for one sentence, and it is taken."""


def as_xport(statistics: SummaryStatistics) -> bytes:
    names = (CONSTANT, *(name.upper() for name in statistics.short_names(LONGEST_NAME)))
    labels = (statistics.few_words, *statistics.labels)  # the constant needs no other word
    sums = statistics.sums
    rows = [("SSCP", name, sums[i].tolist()) for i, name in enumerate(names)]
    rows.append(("N", "", [float(statistics.observations)] * len(names)))
    texts = [
        ("_TYPE_", "intervals of PROC REG leave noise out"),
        ("_NAME_", SEEDED if statistics.seeded else "column"),
    ]
    described = [
        _variable(number, name, label, number=False) for number, (name, label) in enumerate(texts, 1)
    ]
    described += [
        _variable(place, name, label, number=True)
        for place, (name, label) in enumerate(zip(names, labels, strict=True), 3)
    ]
    data = b"".join(
        _text(kind, 8) + _text(name, 8) + b"".join(ibm_float(value) for value in values)
        for kind, name, values in rows
    )
    return b"".join(
        [
            _header("LIBRARY", "000000000000000000000000000000"),
            _text("SAS", 8) + _text("SAS", 8) + _text("SASLIB", 8) + _text("6.06", 8) + _text("dpgram", 8),
            b" " * 24 + _text(TIME, 16),
            _text(TIME, RECORD),
            _header("MEMBER", "000000000000000001600000000140"),
            _header("DSCRPTR", "000000000000000000000000000000"),
            _text("SAS", 8)
            + _text("MOMENTS", 8)
            + _text("SASDATA", 8)
            + _text("6.06", 8)
            + _text("dpgram", 8),
            b" " * 24 + _text(TIME, 16),
            _text(TIME, 16) + b" " * 16 + _text(LABEL, LONGEST_LABEL) + _text("SSCP", 8),
            _header("NAMESTR", f"000000{len(described):04d}00000000000000000000"),
            _padded(b"".join(described)),
            _header("OBS", "000000000000000000000000000000"),
            _padded(data),
        ]
    )


def _header(kind: str, rest: str) -> bytes:
    return _text(f"HEADER RECORD*******{kind:<8}HEADER RECORD!!!!!!!{rest}", RECORD)


def _variable(place: int, name: str, label: str, *, number: bool) -> bytes:
    """140 bytes about one variable: both kinds are eight bytes wide."""
    return struct.pack(
        ">hhhh8s40s8shhh2s8shhl52x",
        1 if number else 2,
        0,
        8,
        place,
        _text(name, LONGEST_NAME),
        _text(label, LONGEST_LABEL),
        b" " * 8,
        0,
        0,
        0,
        b"\0\0",
        b" " * 8,
        0,
        0,
        8 * (place - 1),
    )


def _text(value: str, width: int) -> bytes:
    return value.encode("ascii", "replace")[:width].ljust(width)


def _padded(content: bytes) -> bytes:
    return content + b" " * (-len(content) % RECORD)


def ibm_float(value: float) -> bytes:
    """m·16^e with 1/16 ≤ m < 1: sign, e + 64 in seven bits, m in 56. A float's 53 bits fit exactly.

    >>> from dpgram.exports.xport import ibm_float
    >>> ibm_float(-118.625).hex()
    'c276a00000000000'
    """
    if value == 0.0:
        return bytes(8)
    if not np.isfinite(value):
        return b"." + bytes(7)  # SAS's missing value
    fraction, binary = np.frexp(abs(value))
    exponent = -(-int(binary) // 4)
    mantissa = int(np.ldexp(float(fraction), 56 - (4 * exponent - int(binary))))
    if not -64 <= exponent <= 63:  # beyond 7e75: no number of a table
        return b"." + bytes(7)
    return struct.pack(">Q", (int(value < 0.0) << 63) | ((exponent + 64) << 56) | mantissa)
