"""The files that a job writes, one set for each release."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import final

from dpgram.errors import JobError
from dpgram.files import refuse_ledger, same_as
from dpgram.schema import Schema


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The files that a job writes."""

    release: Path
    explorer: Path | None = None
    report: Path | None = None
    registry: Path | None = None
    """The entry for the public registry of deployments."""
    evaluation: Path | None = None
    """The evaluation after NIST SP 800-226."""
    key: Path | None = None
    """The private key that signs the release; it is read, not written."""

    def for_parts(self, schema: Schema, by: str | None) -> tuple[Outputs, ...]:
        """One for each group or block: visits.north.dpgram.json, visits.block-1.dpgram.json and so on."""
        labels = part_labels(schema, by)
        if not labels:
            return (self,)
        return tuple(
            Outputs(
                release=with_label(self.release, label),
                key=self.key,
                **{kind: with_label(path, label) for kind, path in self.pages.items()},
            )
            for label in labels
        )

    @property
    def pages(self) -> dict[str, Path]:
        """The pages and papers that are made of the release, by their kind."""
        asked = {
            "explorer": self.explorer,
            "report": self.report,
            "registry": self.registry,
            "evaluation": self.evaluation,
        }
        return {kind: path for kind, path in asked.items() if path is not None}


def part_labels(schema: Schema, by: str | None) -> list[str]:
    """How files of several releases are told apart; nothing for one."""
    if by is None:
        return [f"block-{number}" for number in range(1, len(schema.blocks or ()) + 1)]
    labels = [re.sub(r"[^\w-]+", "_", level) for level in schema.column(by).group_levels]
    if len(set(labels)) < len(labels):  # levels that look alike once written as file names
        labels = [f"{number}-{label}" for number, label in enumerate(labels, start=1)]
    return labels


def with_label(path: Path, label: str) -> Path:
    stem, dot, ending = path.name.partition(".")
    return path.with_name(f"{stem}.{label}{dot}{ending}")


def taken(path: Path, what: str) -> JobError:
    return JobError(
        f"the output {path} is there already, and is {what}",
        remedy="Name another `release` below [outputs], or move that file away. A second publication is "
        "charged again",
    )


def refuse_inputs(outputs: list[Path], inputs: list[Path]) -> None:
    """What a job writes must take the place of nothing that it reads, nor of a ledger, nor of one another."""
    for number, output in enumerate(outputs):
        if same_as(output, outputs[:number]) is not None:
            raise JobError(
                f"two outputs of this job are one file, {output}",
                remedy="Name another file below [outputs] for one of them",
            )
        read = same_as(output, inputs)
        if read is not None:
            raise JobError(
                f"the output {output} would replace what this job reads",
                got=None if read == output else f"the file {read}",
                remedy="Name another file below [outputs]",
            )
        refuse_ledger(output)


def refuse_taken(paths: list[Path]) -> None:
    for path in paths:
        if path.exists():
            raise JobError(
                f"the output {path} exists already, and this job has not made it",
                remedy="Name another file below [outputs], or move that one away",
            )
        try:
            tempfile.TemporaryFile(dir=path.parent).close()
        except OSError as problem:
            raise JobError(
                f"the output {path} cannot be written",
                got=problem.strerror or type(problem).__name__,
                remedy="Name a file below [outputs] in a folder that exists and may be written",
            ) from problem
