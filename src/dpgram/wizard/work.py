"""What takes longer than a page: one thing at a time, beside the server, with words about how far it is."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any, final

from dpgram.errors import DpgramError


@final
class Work:
    """One piece of work in a thread of its own. It finishes even where the server is told to end."""

    def __init__(self, title: str, then: str, do: Callable[[Work], Any]) -> None:
        self.title = title
        self.then = then
        """The page to go to afterwards."""
        self.lines: list[str] = []
        """What was done so far, in words; warnings among them. For the curator's screen only."""
        self.rows = 0
        self.problem: DpgramError | None = None
        self.broken = ""
        """What went wrong that nobody could mend: the kind of the error, never its words."""
        self._do = do
        self._thread = threading.Thread(target=self._run, name="dpgram-wizard")

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def start(self) -> Work:
        self._thread.start()
        return self

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)

    def say(self, text: str) -> None:
        self.lines.append(text)

    def progress(self, rows: int) -> None:
        self.rows = rows

    def _run(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = self._warned  # a terminal or a log must not get exact counts
            try:
                self._do(self)
            except DpgramError as problem:
                self.problem = problem
            except Exception as problem:  # noqa: BLE001 - whatever it is, the page says that it broke
                self.broken = type(problem).__name__

    def _warned(self, message: Warning | str, *_: object, **__: object) -> None:
        text = " ".join(str(message).split())
        if text not in self.lines:
            self.say(text)
