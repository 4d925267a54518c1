"""The server: loopback only, one process, ends itself when nobody asks for a while."""

from __future__ import annotations

import asyncio
import contextlib
import html
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, final

import uvicorn

from dpgram.files import write_new
from dpgram.wizard.app import build
from dpgram.wizard.guard import Guard
from dpgram.wizard.session import Session

LOOPBACK: Final = "127.0.0.1"
LOOK_EVERY: Final = 1.0
"""Seconds between two looks at the clock."""


@final
class Wizard:
    """One session, served until the person ends it, the terminal interrupts it, or nobody asks any more."""

    def __init__(self, session: Session, *, port: int = 0, idle_seconds: float = 1800.0) -> None:
        self._session = session
        self._idle = idle_seconds
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((LOOPBACK, port))
        self.port: int = self._socket.getsockname()[1]
        self._guard = Guard(build(session, self.end), port=self.port)
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._guard,
                log_config=None,
                access_log=False,  # addresses hold the token
                lifespan="off",
                ws="none",
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=5,
            )
        )

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/{self._guard.token}/"

    def end(self) -> None:
        """Soon: answers that were begun are sent."""
        self._server.should_exit = True

    def serve(self, opened: Callable[[str], None] | None = None) -> None:
        """Until it ends; `opened` is called with the address as soon as there is an answer at it."""
        asyncio.run(self._serve(opened))

    async def _serve(self, opened: Callable[[str], None] | None) -> None:
        watch = asyncio.create_task(self._watch(opened))
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch

    async def _watch(self, opened: Callable[[str], None] | None) -> None:
        while not self._server.started:
            await asyncio.sleep(0.02)
        if opened is not None:
            await asyncio.to_thread(opened, self.address)
        while not self._server.should_exit:
            await asyncio.sleep(min(LOOK_EVERY, self._idle))
            if self._session.busy:
                self._guard.touch()
            elif self._guard.idle > self._idle:
                self.end()


@contextlib.contextmanager
def browser_opener() -> Iterator[Callable[[str], None]]:
    """A function that opens the browser at an address.

    By a file that only its owner may read, gone afterwards: whoever lists processes would see an address in a
    command.
    """
    with tempfile.TemporaryDirectory(prefix="dpgram-wizard-") as folder:
        place = Path(folder) / "open.html"

        def show(address: str) -> None:
            link = html.escape(address, quote=True)
            write_new(
                place,
                f'<!DOCTYPE html><meta charset="utf-8"><title>dpgram wizard</title>'
                f'<meta http-equiv="refresh" content="0; url={link}">'
                f'<p><a href="{link}">Open the wizard</a></p>'.encode(),
            )
            webbrowser.open(place.as_uri())

        yield show
