"""Who may ask: this machine, this browser, these pages. Everything else is refused before any page is made.

- The server is bound to loopback; a `Host` that is not its own is refused, so that no name of somebody else's
  can be made to lead here.
- Every address holds a secret token, and the first browser that comes with it gets a cookie which no other
  gets: strict, not for scripts, and for addresses with the token only, since browsers send cookies to other
  ports of a machine too. Both are needed for every answer.
- What changes something is a POST from a page of this very address (`Origin`), no larger than a form.
- No answer is kept by the browser, framed, or allowed to load anything from elsewhere.
"""

from __future__ import annotations

import base64
import hmac
import time
from collections.abc import Callable
from typing import Final, final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpgram.core.noise import SystemEntropy
from dpgram.wizard.posted import LARGEST_FORM

COOKIE: Final = "dpgram_wizard"
HOSTS: Final = ("127.0.0.1", "localhost")
FORM_TYPE: Final = "application/x-www-form-urlencoded"
POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",  # with none at all, browsers would send no Origin either
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
REFUSED: Final = "dpgram wizard: refused. {why}\n"


@final
class Guard:
    """Stands before the pages, and knows when somebody was last let through."""

    def __init__(self, app: ASGIApp, *, port: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._hosts = {f"{name}:{port}" for name in HOSTS}
        self._clock = clock
        self.token = _secret()
        self._cookie = _secret()
        self._entered = False
        self._last_asked = clock()

    @property
    def idle(self) -> float:
        """Seconds since somebody was let through."""
        return self._clock() - self._last_asked

    def touch(self) -> None:
        """Begin to count anew."""
        self._last_asked = self._clock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        answer = self._refusal(scope, headers)
        if answer is None:
            answer = self._newcomer(scope, headers)
        safe = _with_headers(send)
        if answer is not None:
            await answer(scope, receive, safe)
            return
        self.touch()
        inside = dict(scope)
        inside["root_path"] = f"/{self.token}"
        await self._app(inside, _limited(receive), safe)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _refused(421, "This is not the address that the wizard was started with.")
        first, _, _ = str(scope["path"]).removeprefix("/").partition("/")
        if not hmac.compare_digest(first.encode(), self.token.encode()):
            return _refused(403, "The address holds no valid token. Use the one that the terminal shows.")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return _refused(405, "Pages are read and forms are sent, nothing else.")
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none") and (
            scope["method"] == "POST" or self._entered
        ):
            return _refused(403, "This was asked for by another site.")
        if scope["method"] == "POST":
            return self._form_refusal(headers, hosts[0].lower())
        return None

    def _form_refusal(self, headers: Headers, host: str) -> Response | None:
        if headers.getlist("origin") != [f"http://{host}"]:
            return _refused(403, "This form was not sent from a page of the wizard.")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_TYPE:
            return _refused(415, "This is not a form of the wizard.")
        length = headers.get("content-length", "")
        if not length.isdecimal():
            return _refused(411, "The form does not say how long it is.")
        if int(length) > LARGEST_FORM:
            return _refused(413, f"The form is larger than {LARGEST_FORM:,} bytes.")
        return None

    def _newcomer(self, scope: Scope, headers: Headers) -> Response | None:
        """None for the browser that has the cookie; the first one gets it, everybody else is refused."""
        if any(hmac.compare_digest(each.encode(), self._cookie.encode()) for each in _cookies(headers)):
            return None
        if self._entered or scope["method"] != "GET" or scope["path"] != f"/{self.token}/":
            return _refused(
                403,
                "Another browser uses this wizard, or this one has forgotten its cookie. "
                "End it in the terminal (Ctrl-C) and start it again with the job file: nothing is lost.",
            )
        self._entered = True
        self.touch()
        # A page and not a redirect: a strict cookie is not sent on a redirect that began elsewhere.
        answer = Response(
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>dpgram wizard</title>'
            '<link rel="icon" href="data:,"><script src="static/enter.js" defer></script></head>'
            '<body><main><h1>dpgram wizard</h1><p><a href="data">Begin</a></p></main></body></html>',
            media_type="text/html",
        )
        answer.set_cookie(
            COOKIE, self._cookie, path=f"/{self.token}/", httponly=True, samesite="strict", secure=False
        )
        return answer


def _refused(status: int, why: str) -> Response:
    return PlainTextResponse(REFUSED.format(why=why), status)


def _cookies(headers: Headers) -> list[str]:
    """Every value under our name: what other programs of this machine have set comes along, in any form."""
    pairs = (pair.partition("=") for line in headers.getlist("cookie") for pair in line.split(";"))
    return [value.strip() for name, _, value in pairs if name.strip() == COOKIE]


def _with_headers(send: Send) -> Send:
    """Every answer carries the headers above, unless it says one of them itself."""

    async def safe(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return safe


def _limited(receive: Receive) -> Receive:
    """A body that turns out longer than it said ends as if the browser had gone."""
    left = LARGEST_FORM

    async def limited() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        return {"type": "http.disconnect"} if left < 0 else message

    return limited


def _secret() -> str:
    """256 bits of the system's, as letters of an address."""
    return base64.urlsafe_b64encode(SystemEntropy().random_bytes(32)).rstrip(b"=").decode()
