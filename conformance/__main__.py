"""Writes the vectors:

python -m conformance            the expected numbers of the releases that are there
python -m conformance KIND …     new releases of these kinds, and their numbers (then raise VERSION)
python -m conformance --missing  releases of the kinds that have no file yet
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from conformance.expected import expected
from conformance.releases import KINDS
from dpgram.release import load

FOLDER = Path(__file__).parent / "vectors"


def release_file(kind: str) -> Path:
    return FOLDER / f"{kind}.dpgram.json"


def expected_file(kind: str) -> Path:
    return FOLDER / f"{kind}.expected.json"


def main(asked: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    made = [kind for kind in KINDS if not release_file(kind).exists()] if asked == ["--missing"] else asked
    for kind in made:
        KINDS[kind]().save(release_file(kind))
    for kind in KINDS:
        found = expected(kind, load(release_file(kind)))
        text = json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        expected_file(kind).write_text(text.replace('},{"target"', '},\n{"target"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
