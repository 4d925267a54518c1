"""What is fuzzed: each module has `seeds()`, `mutate(data, dice)` and `examine(data)`.

`examine` raises AssertionError on a finding; any other exception is one too. The same functions serve the
coverage-guided fuzzer (assurance.fuzz_targets.guided) and the tests in tests/fuzz.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def scratch() -> Path:
    """A folder for the input at hand, deleted when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="dpgram-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
