"""A browser without a window: reads the forms of a page, fills them in and sends them as a real one does."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from dpgram.wizard.app import build
from dpgram.wizard.folder import Folder
from dpgram.wizard.guard import Guard
from dpgram.wizard.session import Session

PORT = 8123
HERE = f"http://127.0.0.1:{PORT}"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()


def ask(app: Guard, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Answer:
    """One request as a server would hand it to the application."""
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
        "raw_path": path.encode(), "query_string": b"", "root_path": "", "scheme": "http",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()],
        "server": ("127.0.0.1", PORT), "client": ("127.0.0.1", 50_000),
    }  # fmt: skip
    sent: list[dict[str, Any]] = []
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return waiting.pop() if waiting else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    asyncio.run(app(scope, receive, send))
    head = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], head, b"".join(each.get("body", b"") for each in sent[1:]))


@dataclass
class Form:
    """Fields as the page fills them in, and the buttons."""

    fields: list[tuple[str, str]] = field(default_factory=list)
    buttons: list[tuple[str, str]] = field(default_factory=list)
    boxes: set[tuple[str, str]] = field(default_factory=set)
    """Radio buttons and tick boxes, ticked or not."""


class Forms(HTMLParser):
    """The forms of a page, by their action."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: dict[str, Form] = {}
        self._form: Form | None = None
        self._select = self._area = ""
        self._options: list[tuple[str, bool]] = []
        self._text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._form = self.forms.setdefault(facts["action"], Form())
        if self._form is None:
            return
        if tag == "input" and "name" in facts:
            kind = facts.get("type", "text")
            pair = (facts["name"], facts.get("value", "on" if kind == "checkbox" else ""))
            if kind in ("radio", "checkbox"):
                self._form.boxes.add(pair)
            if kind not in ("radio", "checkbox") or "checked" in facts:
                self._form.fields.append(pair)
        elif tag == "button":
            self._form.buttons.append((facts.get("name", ""), facts.get("value", "")))
        elif tag == "select":
            self._select, self._options = facts["name"], []
        elif tag == "option" and self._select:
            self._options.append((facts["value"], "selected" in facts))
        elif tag == "textarea":
            self._area, self._text = facts["name"], ""

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if self._form is None:
            return
        if tag == "form":
            self._form = None
        elif tag == "select" and self._options:
            chosen = [value for value, selected in self._options if selected]
            self._form.fields.append((self._select, (chosen or [self._options[0][0]])[0]))
            self._select = ""
        elif tag == "textarea":
            # HTML leaves out one line end after the tag.
            self._form.fields.append((self._area, self._text.removeprefix("\n")))


class Browser:
    """One browser with its cookies. Counts what a person would have to do."""

    def __init__(self, session: Session, *, enter: bool = True) -> None:
        self.session = session
        self.ended = False
        self.guard = Guard(build(session, self._end, self._broken), port=PORT)
        self.cookie = ""
        self.token = self.guard.token
        self.address = ""
        self.text = ""
        self.status = 0
        self.clicks = self.typed = 0
        if enter:
            answer = self.ask("GET", "")
            assert answer.status == 200
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
            self.open("data")

    def _end(self) -> None:
        self.ended = True

    def _broken(self, problem: Exception) -> None:
        raise problem

    def ask(self, method: str, address: str, body: bytes = b"", **changes: str | None) -> Answer:
        """One request with the headers of this browser; `changes` replace or (None) leave out some."""
        usual: dict[str, str | None] = {"host": f"127.0.0.1:{PORT}", "cookie": self.cookie or None}
        if method == "POST":
            usual |= {
                "origin": HERE,
                "content-type": "application/x-www-form-urlencoded",
                "content-length": str(len(body)),
            }
        headers = usual | {name.replace("_", "-"): value for name, value in changes.items()}
        path = address if address.startswith("/") else f"/{self.token}/{address}"
        return ask(
            self.guard, method, path, {name: text for name, text in headers.items() if text is not None}, body
        )

    def open(self, address: str) -> str:
        """GET, and whatever it leads to."""
        return self._arrive(self.ask("GET", address), address)

    def _arrive(self, answer: Answer, address: str) -> str:
        for _ in range(20):
            if answer.status != 303:
                break
            address = answer.headers["location"]
            if address == "work" and self.session.work is not None:
                self.session.work.wait(300.0)  # for ever, on the busiest machine
                assert self.session.work.done
                assert not self.session.work.broken
            answer = self.ask("GET", address)
        self.address, self.text, self.status = address, answer.text, answer.status
        return self.text

    def form(self, action: str) -> Form:
        return Forms(self.text).forms[action]

    def follow(self, address: str) -> str:
        """Click a link that is on the page."""
        assert f'href="{address}"' in self.text, f"no link to {address}"
        self.clicks += 1
        return self.open(address)

    def send(self, action: str, changes: dict[str, str | list[str]] | None = None, *, press: str = "") -> str:
        """Fill in and press a button, given as `name=value`; the one without a name by default."""
        form = self.form(action)
        changed = dict(changes or {})
        known = {name for name, _ in (*form.fields, *form.boxes)}
        assert set(changed) <= known, set(changed) - known
        pairs = [(name, value) for name, value in form.fields if name not in changed]
        boxes = {name for name, _ in form.boxes}
        for name, value in changed.items():
            many = value if isinstance(value, list) else [value]
            pairs += [(name, each) for each in many]
            self.clicks += name in boxes
            self.typed += name not in boxes
        name, _, value = press.partition("=")
        assert (name, value) in form.buttons, f"no button {press!r} among {form.buttons}"
        if name:
            pairs.append((name, value))
        self.clicks += 1
        return self.post(action, pairs)

    def post(self, action: str, pairs: list[tuple[str, str]]) -> str:
        content = urlencode([(name, value.replace("\n", "\r\n")) for name, value in pairs])
        return self._arrive(self.ask("POST", action, content.encode()), action)

    @property
    def errors(self) -> dict[str, str]:
        """The messages beside the fields, by field."""
        found = re.findall(r'<p class="error" id="(.*?)-error">(.*?)</p>', self.text)
        return {unescape(name): unescape(text) for name, text in found}


def started(folder: Path, what: str | None = None, *, enter: bool = True) -> Browser:
    place = Folder.at(folder)
    return Browser(Session.started(place, None if what is None else Path(what)), enter=enter)
