"""Where rows are encoded and summed: on this machine, or on many."""

from __future__ import annotations

from dpgram.errors import require_publish

require_publish("pyarrow", "numba")  # all that the workers of a cluster need: none of them draws noise
