"""The folder that the wizard may read and write: no path leads out of it, by dots, links or addresses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from dpgram.errors import JobError
from dpgram.sources.files import SUFFIXES

DEEPEST: Final = 3
"""Folders below the first one that are looked through for files."""
MOST_LISTED: Final = 200
LONGEST_PATH: Final = 1_000
LEDGERS: Final = (".ledger",)
TABLES: Final = tuple(SUFFIXES)


@final
@dataclass(frozen=True, slots=True)
class Folder:
    """Paths are shown and typed relative to `root`, which has no links in it."""

    root: Path

    @classmethod
    def at(cls, path: Path) -> Folder:
        return cls(path.resolve(strict=True))

    def place(self, text: str) -> Path:
        """Where a typed path leads, links followed; refused where that is not below the folder."""
        typed = text.strip()
        if not typed:
            raise JobError("no file is named", remedy="Type a name, such as visits.csv")
        if "\0" in typed or "://" in typed or len(typed) > LONGEST_PATH:
            raise JobError("this is not the path of a file", remedy=f"Type a path below {self.root}")
        try:
            found = (self.root / typed).resolve()
        except (OSError, RuntimeError) as problem:  # RuntimeError: links in a circle
            raise JobError("this path leads nowhere", remedy=f"Type a path below {self.root}") from problem
        if found == self.root or not found.is_relative_to(self.root):
            raise JobError(
                "this path leads out of the folder where the wizard was started",
                got=typed,
                limit=str(self.root),
                remedy="Move the file there, or start the wizard in another folder",
            )
        return found

    def file(self, text: str) -> Path:
        """A file that is there."""
        found = self.place(text)
        if not found.is_file():
            raise JobError(
                f"there is no file {self.shown(found)!r} in this folder", remedy="Choose one from the list"
            )
        return found

    def shown(self, path: Path) -> str:
        """Relative to the folder, as people type it."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return str(path)

    def listed(self, endings: tuple[str, ...]) -> list[str]:
        """Files with such names, the nearest first. Names alone are looked at."""
        found = [path for path in self._walk() if path.name.lower().endswith(endings)]
        return [self.shown(path) for path in found if self._is_inside(path)][:MOST_LISTED]

    def _is_inside(self, path: Path) -> bool:
        try:
            return path.resolve(strict=True).is_relative_to(self.root)
        except (OSError, RuntimeError):  # a link that leads nowhere, or in a circle
            return False

    def free(self, stem: str, ending: str) -> str:
        """A name in the folder that nobody has taken."""
        name, number = f"{stem}{ending}", 1
        while (self.root / name).exists():
            number += 1
            name = f"{stem}-{number}{ending}"
        return name

    def _walk(self) -> Iterator[Path]:
        for place, folders, names in os.walk(self.root):
            here = Path(place)
            deep = len(here.relative_to(self.root).parts)
            folders[:] = (
                sorted(each for each in folders if not each.startswith(".")) if deep < DEEPEST else []
            )
            yield from (here / name for name in sorted(names) if not name.startswith("."))
