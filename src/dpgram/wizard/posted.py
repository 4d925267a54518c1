"""What a browser has sent from a form: names and texts, within limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final
from urllib.parse import parse_qsl

from dpgram.errors import JobError

LARGEST_FORM: Final = 1 << 20
"""Bytes: a table of 200 columns takes a tenth of it."""
MOST_FIELDS: Final = 30_000
"""Nineteen for each column, and as many columns as a schema may have."""


@final
@dataclass(frozen=True, slots=True)
class Posted:
    """The fields of one form, in their order."""

    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, body: bytes) -> Posted:
        if body.count(b"&") >= MOST_FIELDS:
            raise JobError(
                "this form has too many fields",
                limit=f"{MOST_FIELDS:,}",
                remedy="Write the job file of so many columns by hand, for dpgram run",
            )
        try:
            pairs = parse_qsl(
                body.decode("ascii"),
                keep_blank_values=True,
                strict_parsing=bool(body),
                errors="strict",
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

    def again(self, name: str, value: Any) -> Any:
        """A field as it was sent. `value` is what holds: a list for boxes that share a name, a bool for one.

        Boxes that are not ticked are not sent at all, so these are never left as they were.
        """
        if isinstance(value, list):
            return self.all(name)
        if isinstance(value, bool):
            return name in self
        return self.raw(name) if name in self else value
