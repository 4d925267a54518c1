"""What a browser has sent from a form: names and texts, within limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final
from urllib.parse import parse_qsl

from dpgram.errors import JobError

LARGEST_FORM: Final = 1 << 20
"""Bytes: a table of 200 columns takes a tenth of it."""
MOST_FIELDS: Final = 10_000


@final
@dataclass(frozen=True, slots=True)
class Posted:
    """The fields of one form, in their order."""

    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, body: bytes) -> Posted:
        try:
            pairs = parse_qsl(
                body.decode("ascii"),
                keep_blank_values=True,
                strict_parsing=bool(body),
                errors="strict",
                max_num_fields=MOST_FIELDS,
            )
        except ValueError as problem:
            raise JobError("this form cannot be read", remedy="Go back and send it again") from problem
        return cls(tuple((name, value.replace("\r\n", "\n")) for name, value in pairs))

    def __contains__(self, name: str) -> bool:
        return any(name == each for each, _ in self.pairs)

    def text(self, name: str) -> str:
        """One field without blanks around it; empty where there is none."""
        return self.raw(name).strip()

    def raw(self, name: str) -> str:
        return next((value for each, value in self.pairs if each == name), "")

    def all(self, name: str) -> list[str]:
        """The ticked values of boxes that share a name."""
        return [value for each, value in self.pairs if each == name]

    def lines(self, name: str) -> list[str]:
        """One text for each line that holds something, as it stands."""
        return [line for line in self.raw(name).split("\n") if line.strip()]

    def number(self, name: str) -> int | float | str | None:
        """A number where it is one, None for nothing, else the text: the library says what is wrong."""
        text = self.text(name).replace("−", "-")
        if not text:
            return None
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
        return text

    def values(self) -> dict[str, str | list[str]]:
        """For filling the form in again."""
        found: dict[str, str | list[str]] = {}
        for name, value in self.pairs:
            if name in found:
                before = found[name]
                found[name] = [*(before if isinstance(before, list) else [before]), value]
            else:
                found[name] = value
        return found
