"""The server itself: loopback alone, an end of its own, an address that no list of processes shows."""

from __future__ import annotations

import socket
import stat
import threading
import time
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import pytest

from dpgram import cli
from dpgram.wizard import Folder, Session, Wizard, browser_opener
from dpgram.wizard import server as server_module

FOR_EVER = 300
"""Seconds, on the busiest machine."""


@pytest.fixture
def session(visits: Path) -> Session:
    return Session.started(Folder.at(visits), None)


def status(address: str) -> int:
    try:
        with urllib.request.urlopen(address, timeout=FOR_EVER) as answer:
            return int(answer.status)
    except HTTPError as refused:
        return int(refused.code)


def test_it_answers_on_loopback_and_ends_when_told(session: Session) -> None:
    wizard = Wizard(session)
    seen: list[int] = []

    def opened(address: str) -> None:
        seen.extend(
            (status(address), status(address), status(address.replace(address.split("/")[3], "guess")))
        )
        wizard.end()

    wizard.serve(opened)
    assert seen == [200, 403, 403]
    with pytest.raises(OSError, match=r"."), socket.create_connection(("127.0.0.1", wizard.port)):
        pass


def test_it_is_bound_to_loopback_alone(session: Session) -> None:
    wizard = Wizard(session)
    # Whoever is bound to all addresses of a machine would be in the way of this one.
    with socket.socket() as other:
        other.bind(("127.0.0.2", wizard.port))
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", wizard.port))
    wizard.end()
    wizard.serve()


def test_it_ends_when_nobody_asks(session: Session) -> None:
    wizard = Wizard(session, idle_seconds=0.05)
    begun = time.monotonic()
    wizard.serve()
    assert time.monotonic() - begun < FOR_EVER


def test_work_is_not_idleness(session: Session) -> None:
    go_on = threading.Event()
    session.begin("waiting", "data", lambda _: go_on.wait(FOR_EVER))
    wizard = Wizard(session, idle_seconds=0.05)
    thread = threading.Thread(target=wizard.serve)
    thread.start()
    thread.join(0.5)
    assert thread.is_alive()
    go_on.set()
    thread.join(FOR_EVER)
    assert not thread.is_alive()


def test_the_browser_is_opened_by_a_private_file(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(server_module.webbrowser, "open", lambda place: opened.append(place))
    with browser_opener() as show:
        show("http://127.0.0.1:1/secret/")
        place = Path(opened[0].removeprefix("file://"))
        assert "secret" not in opened[0]
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        assert 'url=http://127.0.0.1:1/secret/"' in place.read_text()
    assert not place.exists()


def test_what_the_command_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["--folder", str(tmp_path / "nowhere")], "there is no folder"),
        (["--folder", str(tmp_path), "nothing.csv"], "leads out of the folder"),
        (["--folder", str(tmp_path), str(tmp_path / "nothing.csv")], "there is no file"),
    ):
        assert cli.run(["wizard", "--no-browser", *arguments]) == 2
        assert words in capsys.readouterr().err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
        assert cli.run(["wizard", "--no-browser", "--folder", str(tmp_path), "--port", port]) == 2
    assert "cannot be used" in capsys.readouterr().err
