"""The pages: every GET shows the state and changes nothing, every POST changes it and leads back to a page.

So reloading, going back and a second tab never send a form twice.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any, Final, final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from dpgram.errors import DpgramError
from dpgram.pages import STYLE, source
from dpgram.wizard.posted import Posted
from dpgram.wizard.session import Session, Typed
from dpgram.wizard.steps import STEPS, Step, review
from dpgram.wizard.words import told

STATIC: Final = {
    "style.css": (STYLE + source("dpgram.wizard", "static/wizard.css"), "text/css"),
    "wizard.js": (source("dpgram.wizard", "static/wizard.js"), "text/javascript"),
    "enter.js": (source("dpgram.wizard", "static/enter.js"), "text/javascript"),
}
PAGE_POLICY: Final = (
    "sandbox allow-scripts allow-downloads allow-popups allow-modals; default-src 'none'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; frame-ancestors 'none'"
)
"""For pages that are made of a release: pages of their own, which may not touch those of the wizard."""
LAST_STYLE: Final = STATIC["style.css"][0]
_LAST_HASH: Final = base64.b64encode(sha256(LAST_STYLE.encode()).digest()).decode()
LAST_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_LAST_HASH}'; "
    "img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""For the last page, which holds its style: when a browser asks for another file, nobody may be there."""


@final
class Pages:
    """Answers, made from one session."""

    def __init__(self, session: Session, end: Callable[[], None]) -> None:
        self._session = session
        self._end = end
        self._templates = Environment(
            loader=PackageLoader("dpgram.wizard", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def page(self, name: str, status: int = 200, **facts: Any) -> Response:
        """One page; names, levels and cells are text, whatever they hold."""
        facts = {
            "steps": STEPS,
            "here": name,
            "job_name": self._job_name,
            "published": self._session.outcome is not None and any(name == step.address for step in STEPS),
            "unspent": f"Nothing {'more ' if self._session.spent else ''}was spent.",
            "pending": self._session.new_ledger is not None,
            "errors": {},
            **facts,
        }
        return HTMLResponse(self._templates.get_template(f"{name}.html").render(**facts), status)

    @property
    def _job_name(self) -> str:
        path = self._session.path
        return "" if path is None else self._session.folder.shown(path)

    def show(self, step: Step) -> Response:
        session = self._session
        if session.table is None and step.address != "data":
            return to("data")
        typed = session.typed.get(step.address)
        shown = step.module.values(session)
        if typed is not None and typed.posted is not None:
            shown = {name: typed.posted.again(name, value) for name, value in shown.items()}
        return self.page(
            step.address,
            v=shown,
            errors={} if typed is None else typed.errors,
            state=session.state if session.path is not None else "",
            **step.module.view(session),
        )

    def take(self, step: Step, posted: Posted) -> Response:
        session = self._session
        if session.busy:
            return to("work")
        if session.table is None and step.address != "data":
            return to("data")
        if session.outcome is not None and step.address != "data":  # the page says that it is published
            return to("done" if step.address == "review" else step.address)
        if step.address != "data" and posted.text("state") not in ("", session.state):
            session.typed[step.address] = Typed(
                posted=None,
                errors={
                    "state": "this step was sent from a page that was out of date, perhaps in another tab. "
                    "Here is what holds now: change it again if you need to"
                },
            )
            return to(step.address)
        try:
            errors = step.module.take(session, posted)
        except OSError as problem:
            errors = {
                "state": f"the job file cannot be written: {problem.strerror}. Mend that and send it again"
            }
        if errors:
            session.typed[step.address] = Typed(posted=posted, errors=errors)
            return to(step.address)
        session.typed.pop(step.address, None)
        return self._onwards(step, posted)

    def _onwards(self, step: Step, posted: Posted) -> Response:
        session = self._session
        if session.busy or (session.work is not None and posted.text("do") in ("check", "publish")):
            return to("work")
        if posted.text("do") == "stay" or step.address == "data":
            return to(step.address)
        if step.address == "outputs":
            return self.take(STEPS[-1], Posted((("do", "review"),)))
        return to("work" if step.address == "review" else step.then)

    def work(self) -> Response:
        work = self._session.work
        if work is None:
            return to("data")
        if not work.done:
            return self.page("work", work=work, then="")
        if work.problem is not None or work.broken:
            problem = "" if work.problem is None else told(work.problem)
            charged = work.then == "done" and self._session.spent
            return self.page("stopped", work=work, problem=problem, charged=charged)
        return to(work.then)

    def progress(self) -> Response:
        work = self._session.work
        if work is None:
            return JSONResponse({"done": True, "rows": 0, "lines": []})
        return JSONResponse({"done": work.done, "rows": work.rows, "lines": work.lines})

    def done(self) -> Response:
        outcome = self._session.outcome
        if outcome is None:
            return to("review")
        return self.page("done", **review.finished(self._session, outcome))

    def file(self, kind: str) -> Response:
        """One of the files that were made."""
        place = review.made(self._session).get(kind)
        if place is None or not place.is_file():
            return self.page("missing", 404)
        content = place.read_bytes()
        if kind in ("explorer", "report", "evaluation"):
            return Response(content, media_type="text/html", headers={"Content-Security-Policy": PAGE_POLICY})
        name = quote(place.name)
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
        return Response(content, media_type="application/octet-stream", headers=headers)

    def end(self) -> Response:
        if self._session.busy:
            return to("work")
        answer = self.page("ended", style=LAST_STYLE)
        answer.headers["Content-Security-Policy"] = LAST_POLICY
        self._end()
        return answer


def to(address: str) -> Response:
    return RedirectResponse(address, 303)


def build(
    session: Session, end: Callable[[], None], broken: Callable[[Exception], None] | None = None
) -> Starlette:
    """The application for one session; `end` is called when the person is done.

    `broken` is told of errors that nobody meant; without it the page alone tells that there was one.
    """
    pages = Pages(session, end)

    def safely(act: Callable[[], Response]) -> Response:
        with session.lock:
            try:
                return act()
            except DpgramError as problem:
                return pages.page("broken", 422, problem=told(problem))
            except Exception as problem:  # noqa: BLE001 - its words may hold cells: the kind is told, no more
                if broken is not None:
                    broken(problem)
                kind = type(problem).__name__
                return pages.page("broken", 500, problem=f"dpgram met an error of its own ({kind})")

    def getting(act: Callable[[], Response]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            del request
            return await run_in_threadpool(safely, act)

        return answer

    def posting(act: Callable[[Posted], Response]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            try:
                body = await request.body()
            except ClientDisconnect:
                return Response(status_code=413)
            return await run_in_threadpool(safely, lambda: act(Posted.parse(body)))

        return answer

    async def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            return Response(status_code=404)
        content, media_type = STATIC[name]
        return Response(content, media_type=media_type)

    async def file(request: Request) -> Response:
        return await run_in_threadpool(safely, partial(pages.file, request.path_params["kind"]))

    routes = [
        Route("/", getting(lambda: to("data"))),
        Route("/static/{name}", static),
        Route("/work", getting(pages.work)),
        Route("/progress", getting(pages.progress)),
        Route("/done", getting(pages.done)),
        Route("/file-{kind}", file),
        Route("/end", posting(lambda _: pages.end()), methods=["POST"]),
    ]
    for step in STEPS:
        routes += [
            Route(f"/{step.address}", getting(partial(pages.show, step)), methods=["GET"]),
            Route(f"/{step.address}", posting(partial(pages.take, step)), methods=["POST"]),
        ]
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    return app
