"""A Stata data set (format 118, Stata 14 and later) with N, means and covariances, for `ssd` and `sem`.

Rows are told apart by `_type` (n, mean, cov), as in the CSV file. What `ssd` itself keeps in memory has no
published layout; docs/how-to/stata.md has the few lines that take it over. The layout of format 118 is that
of Stata's own description (`help dta`). We write it ourselves, so that analysts need nothing installed for
it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dpgram.exports.summary_statistics import SummaryStatistics

DOUBLE: Final = 65526
TEXT_WIDTH: Final = 32
LABEL: Final = "Denoised moments; errors of sem and regress leave the privacy noise out"
TIME: Final = "01 Jan 1960 00:00"
PARTS: Final = (
    "stata_data", "map", "variable_types", "varnames", "sortlist", "formats", "value_label_names",
    "variable_labels", "characteristics", "data", "strls", "value_labels", "/stata_data",
)  # fmt: skip
"""What the map says the places of; the end of the file is its last entry."""


def as_stata(statistics: SummaryStatistics) -> bytes:
    names = ("_type", "_name", *statistics.short_names())
    labels = ("n, mean or cov", "column of this covariance", *statistics.labels)
    count = len(statistics.names)
    rows = [
        ("n", "", [float(statistics.observations)] * count),
        ("mean", "", statistics.means.tolist()),
        *(("cov", name, row) for name, row in zip(names[2:], statistics.covariance.tolist(), strict=True)),
    ]
    data = b"".join(
        _fixed(kind, TEXT_WIDTH) + _fixed(name, TEXT_WIDTH) + struct.pack(f"<{count}d", *values)
        for kind, name, values in rows
    )
    label = LABEL.encode("utf-8")
    head = (
        b"<header><release>118</release><byteorder>LSF</byteorder><K>"
        + struct.pack("<H", len(names)) + b"</K><N>" + struct.pack("<Q", len(rows)) + b"</N>"
        + b"<label>" + struct.pack("<H", len(label)) + label + b"</label>"
        + b"<timestamp>" + struct.pack("<B", len(TIME)) + TIME.encode("ascii") + b"</timestamp></header>"
    )  # fmt: skip
    contents = {
        "variable_types": struct.pack(f"<{len(names)}H", TEXT_WIDTH, TEXT_WIDTH, *[DOUBLE] * count),
        "varnames": b"".join(_fixed(name, 129) for name in names),
        "sortlist": bytes(2 * (len(names) + 1)),
        "formats": b"".join(_fixed(f"%{TEXT_WIDTH}s", 57) for _ in range(2))
        + b"".join(_fixed("%10.0g", 57) for _ in range(count)),
        "value_label_names": bytes(129 * len(names)),
        "variable_labels": b"".join(_fixed(text, 321) for text in labels),
        "characteristics": b"".join(_notes(statistics.header("Stata"))),
        "data": data,
        "strls": b"",
        "value_labels": b"",
    }
    return _laid_out(head, contents)


def _laid_out(head: bytes, contents: dict[str, bytes]) -> bytes:
    """The parts in their order; the map has a fixed size, so all places are known before it is written."""
    map_size = len(b"<map></map>") + 8 * (len(PARTS) + 1)
    start = b"<stata_dta>" + head
    places = [0, len(start)]
    body, at = b"", len(start) + map_size
    for name, content in contents.items():
        places.append(at + len(body))
        body += f"<{name}>".encode() + content + f"</{name}>".encode()
    places.append(at + len(body))
    body += b"</stata_dta>"
    places.append(at + len(body))
    return start + b"<map>" + struct.pack(f"<{len(places)}Q", *places) + b"</map>" + body


def _notes(lines: tuple[str, ...]) -> list[bytes]:
    """Notes of the data set: `notes` in Stata lists them."""
    found = [("note0", str(len(lines)))]
    found += [(f"note{number}", line) for number, line in enumerate(lines, 1)]
    return [
        b"<ch>" + struct.pack("<I", 258 + len(text.encode()) + 1) + _fixed("_dta", 129) + _fixed(name, 129)
        + text.encode("utf-8") + b"\0</ch>"
        for name, text in found
    ]  # fmt: skip


def _fixed(text: str, width: int) -> bytes:
    """Zero at its end, and cut so that no letter is cut in two."""
    raw = text.encode("utf-8")[: width - (1 if width > TEXT_WIDTH else 0)]
    return raw.decode("utf-8", "ignore").encode("utf-8").ljust(width, b"\0")
