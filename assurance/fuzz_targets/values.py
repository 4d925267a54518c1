"""What may stand anywhere in a damaged or forged JSON value, and where it may stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

VALUES: Final[tuple[object, ...]] = (
    None, True, 0, -1, 1, 2, 3, 40, 2**53, 10**400, 0.5, -0.0, 1e-9, 1e9, 1e-40, 1e40, 1e-100, 1e100, 1e-308,
    1e308, 5e-324, "", "0", "-1", "1", "9" * 40, "-" + "9" * 40, "9" * 60, "1" + "0" * 30, "gaussian",
    "wishart", "gram", "inverse", "1970-01-01", "replace-one", "add-remove", "seeded", "system", "\u202e",
    "\ud800", "x" * 300, [], {}, [[]], "9" * 5000, {"kind": "numeric", "name": "a", "low": 0, "high": 1},
)  # fmt: skip


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place that holds a value; of long lists the first few."""
    keys = list(value) if isinstance(value, dict) else range(min(len(value), 6))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])
