"""Coverage-guided fuzzing of one target with atheris, in this process.

python -m assurance.fuzz_targets.guided TARGET SECONDS CORPUS [INPUTS [SEED]]

Inputs that reach new code of dpgram are kept and changed further. An exception that is not the target's own
refusal, an input that takes longer than `SLOWEST` seconds, or more memory than `MEGABYTES`, ends the run with
a report and an exit code that is not 0.
"""

from __future__ import annotations

import random
import sys
from importlib import import_module
from pathlib import Path
from typing import Final

SLOWEST: Final = 60
"""Seconds by the clock, so many times the limit of computing (`limits.SECONDS`): the machine may be busy."""
MEGABYTES: Final = 2000
"""Of the whole process: an answer has its own limit, this finds what stays from one to the next."""
LONGEST: Final = {
    "releases": 20_000,
    "partials": 5_000,
    "series": 30_000,
    "journals": 30_000,
    "schemas": 2_000,
    "commands": 500,
    "csv_tables": 400,
    "parquet_tables": 32,
    "one_row": 40,
}
"""Targets, and the most bytes an input may have."""


def main() -> None:
    """Fuzz until the time or the number of inputs is up."""
    import atheris

    name, seconds, corpus, *inputs = sys.argv[1:]
    with atheris.instrument_imports(include=["dpgram"], enable_loader_override=False):
        target = import_module(f"assurance.fuzz_targets.{name}")
    folder = Path(corpus)
    for number, seed in enumerate(target.seeds()):
        (folder / f"seed-{number}").write_bytes(seed)
        target.examine(seed)  # what is compiled or imported at first use is no slow input
    limits = [f"-max_total_time={seconds}", f"-timeout={SLOWEST}", f"-rss_limit_mb={MEGABYTES}"]
    seed_number = inputs[1] if len(inputs) > 1 else "1"
    limits += [f"-max_len={LONGEST[name]}", f"-seed={seed_number}", f"-artifact_prefix={folder}/found-"]
    limits += [f"-runs={inputs[0]}"] if inputs else []

    def examine(data: bytes) -> None:
        try:
            target.examine(data)
        except BaseException:
            (folder / "found-input").write_bytes(data)
            raise

    def mutate(data: bytes, longest: int, seed: int) -> bytes:
        """Half by the target's own grammar, half blind."""
        dice = random.Random(seed)
        if dice.random() < 0.5:
            changed: bytes = target.mutate(data, dice)
            return changed if len(changed) <= longest else data
        blind: bytes = atheris.Mutate(data, longest)
        return blind

    atheris.Setup([sys.argv[0], *limits, str(folder)], examine, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
