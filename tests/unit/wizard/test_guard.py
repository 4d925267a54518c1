"""Attacks on the wizard: each is refused before a page is made, and nothing is read, written or charged."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.wizard.browsing import HERE, PORT, Answer, Browser, ask, started

from dpgram.schema.schema import MAX_WIDTH
from dpgram.wizard.folder import Folder
from dpgram.wizard.guard import COOKIE, Guard
from dpgram.wizard.posted import LARGEST_FORM, MOST_FIELDS, Posted
from dpgram.wizard.steps.columns import FIELDS


@pytest.fixture
def browser(visits: Path) -> Browser:
    return started(visits)


def untouched(browser: Browser) -> bool:
    return browser.session.table is None and browser.session.path is None and browser.session.form == {}


READ = b"file=visits.csv&do=read"


class TestWhoMayAsk:
    def test_the_right_browser_gets_a_page(self, browser: Browser) -> None:
        answer = browser.ask("POST", "data", READ)
        assert answer.status == 303
        assert not untouched(browser)

    @pytest.mark.parametrize(
        "path", ["/", "/data", "/x/data", "/{short}/data", "/{token}x/data", "/static/style.css"]
    )
    def test_a_wrong_token(self, browser: Browser, path: str) -> None:
        asked = path.format(short=browser.token[:-1], token=browser.token)
        assert browser.ask("GET", asked).status == 403
        assert browser.ask("POST", asked, READ).status == 403
        assert untouched(browser)

    @pytest.mark.parametrize(
        "cookie",
        [
            None,
            "",
            f"{COOKIE}=",
            f"{COOKIE}=guess",
            "a=b",
            f'{COOKIE}="\\',
        ],
    )
    @pytest.mark.parametrize(
        "address", ["", "data", "columns", "progress", "static/wizard.js", "file-release"]
    )
    def test_a_wrong_cookie(self, browser: Browser, cookie: str | None, address: str) -> None:
        assert browser.ask("GET", address, cookie=cookie).status == 403
        assert browser.ask("POST", "data", READ, cookie=cookie).status == 403
        assert untouched(browser)

    @pytest.mark.parametrize(
        "others",
        ["{ours}; theme=dark mode", "a=b; {ours}", "{ours}; dpgram_wizard=zzz", "dpgram_wizard=zzz; {ours}",
         '{ours}; x="\\', "{ours};", "ü=ö; {ours}"],
    )  # fmt: skip
    def test_cookies_of_other_programs_come_along(self, browser: Browser, others: str) -> None:
        """Browsers send the cookies of every port of this machine, whatever they look like."""
        assert browser.ask("GET", "data", cookie=others.format(ours=browser.cookie)).status == 200
        assert browser.ask("GET", "data", cookie=others.format(ours=f"{COOKIE}=guess")).status == 403

    def test_one_browser_gets_the_cookie(self, visits: Path) -> None:
        browser = started(visits, enter=False)
        assert browser.ask("GET", "data").status == 403  # only the front door hands it out
        first = browser.ask("GET", "")
        assert first.status == 200
        cookie = first.headers["set-cookie"]
        assert re.search(rf"; Path=/{browser.token}/(;|$)", cookie)
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert browser.ask("GET", "").status == 403

    def test_secrets_are_long_and_differ(self, visits: Path) -> None:
        browsers = [started(visits) for _ in range(3)]
        secrets = {secret for each in browsers for secret in (each.token, each.cookie.partition("=")[2])}
        assert len(secrets) == 6
        assert all(len(secret) >= 43 for secret in secrets)  # 256 bits

    @pytest.mark.parametrize(
        "host",
        ["evil.example", f"evil.example:{PORT}", f"127.0.0.1.evil.example:{PORT}", "127.0.0.1",
         f"127.0.0.1:{PORT + 1}", f"[::1]:{PORT}", f"0.0.0.0:{PORT}", "", None],
    )  # fmt: skip
    def test_another_host_as_by_dns_rebinding(self, browser: Browser, host: str | None) -> None:
        assert browser.ask("GET", "data", host=host).status == 421
        assert browser.ask("POST", "data", READ, host=host).status == 421
        assert untouched(browser)

    def test_the_other_name_of_this_machine(self, browser: Browser) -> None:
        host = f"localhost:{PORT}"
        assert browser.ask("GET", "data", host=host).status == 200
        assert browser.ask("POST", "data", READ, host=host, origin=f"http://{host}").status == 303

    @pytest.mark.parametrize(
        "origin",
        [None, "null", "http://evil.example", f"https://127.0.0.1:{PORT}", f"http://127.0.0.1:{PORT + 1}", "http://127.0.0.1",
         f"http://localhost:{PORT}", f"{HERE}.evil.example", ""],
    )  # fmt: skip
    def test_a_post_from_elsewhere(self, browser: Browser, origin: str | None) -> None:
        assert browser.ask("POST", "data", READ, origin=origin).status == 403
        assert untouched(browser)

    @pytest.mark.parametrize("site", ["cross-site", "same-site"])
    def test_a_browser_that_says_so(self, browser: Browser, site: str) -> None:
        assert browser.ask("POST", "data", READ, sec_fetch_site=site).status == 403
        assert browser.ask("GET", "data", sec_fetch_site=site).status == 403
        assert untouched(browser)

    @pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
    def test_other_methods(self, browser: Browser, method: str) -> None:
        assert browser.ask(method, "data").status == 405

    @pytest.mark.parametrize(
        "kind", ["multipart/form-data; boundary=x", "text/plain", "application/json", None]
    )
    def test_other_kinds_of_forms(self, browser: Browser, kind: str | None) -> None:
        assert browser.ask("POST", "data", READ, content_type=kind).status == 415
        assert untouched(browser)

    def test_web_sockets(self, browser: Browser) -> None:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> dict[str, Any]:
            return {"type": "websocket.connect"}

        asyncio.run(browser.guard({"type": "websocket", "path": "/", "headers": []}, receive, send))
        assert [each["type"] for each in sent] == ["websocket.close"]


class TestForms:
    def test_a_huge_form(self, browser: Browser) -> None:
        body = READ + b"&x=" + b"a" * LARGEST_FORM
        assert browser.ask("POST", "data", body).status == 413
        assert browser.ask("POST", "data", body, content_length="10").status == 413, (
            "it lied about its length"
        )
        assert untouched(browser)

    @pytest.mark.parametrize("length", [None, "-1", "many", "1e3"])
    def test_a_form_without_a_length(self, browser: Browser, length: str | None) -> None:
        assert browser.ask("POST", "data", READ, content_length=length).status == 411

    @pytest.mark.parametrize(
        "body",
        [b"&".join(b"a=1" for _ in range(MOST_FIELDS + 1)), b"\xff\xfe", b"file=%ff%fe", b"no fields here"],
    )
    def test_a_form_that_is_none(self, browser: Browser, body: bytes) -> None:
        answer = browser.ask("POST", "data", body)
        assert answer.status == 422
        assert ("too many fields" in answer.text) == (len(body) > MOST_FIELDS)
        assert untouched(browser)

    def test_a_form_of_as_many_columns_as_a_schema_may_have(self) -> None:
        fields = [f"c{number}.{name}=1" for number in range(MAX_WIDTH) for name in ("kind", *FIELDS)]
        body = "&".join(fields).encode()
        assert len(body) < LARGEST_FORM
        assert len(Posted.parse(body).pairs) == len(fields)


class TestAnswers:
    @pytest.mark.parametrize("address", ["", "data", "static/style.css", "progress", "nowhere"])
    def test_every_answer_is_guarded(self, browser: Browser, address: str) -> None:
        for answer in (browser.ask("GET", address), browser.ask("GET", address, cookie=None)):
            assert answer.headers["cache-control"] == "no-store"
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'")
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "same-origin"

    def test_pages_name_no_other_place(self, browser: Browser) -> None:
        """No outside asset: whatever a page loads or leads to is relative."""
        browser.send("data", {"file": "visits.csv"}, press="do=read")
        for address in ("data", "columns", "people"):
            text = browser.open(address)
            places = re.findall(r'(?:src|href|action)="([^"]*)"', text)
            assert len(places) > 8
            assert [
                place for place in places if re.match(r"(?:\w+:)?//|\w+:", place) and place != "data:,"
            ] == []
            assert "style=" not in text
            assert "<script>" not in text

    def test_static_files_are_three(self, browser: Browser) -> None:
        assert browser.ask("GET", "static/style.css").status == 200
        for name in ("wizard.css", "..%2fapp.py", "../app.py", "app.py"):
            assert browser.ask("GET", f"static/{name}").status == 404

    def test_the_clock_is_wound_by_those_let_through(self, visits: Path) -> None:
        now = 0.0

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        def asked(guard: Guard, **headers: str) -> Answer:
            return ask(guard, "GET", f"/{guard.token}/", {"host": f"127.0.0.1:{PORT}", **headers})

        guard = Guard(app, port=PORT, clock=lambda: now)
        cookie = asked(guard).headers["set-cookie"].partition(";")[0]
        now = 10.0
        assert asked(guard).status == 403
        assert guard.idle == 10.0
        assert asked(guard, cookie=cookie).status == 200
        assert guard.idle == 0.0


class TestPaths:
    @pytest.fixture
    def outside(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("outside")
        (folder / "secret.csv").write_text("a,b\n1,2\n")
        return folder

    @pytest.mark.parametrize(
        "path",
        ["../secret.csv", "{outside}/secret.csv", "a/../../{name}/secret.csv", "link.csv",
         "linked/secret.csv", "/etc/passwd", "file:///etc/passwd", "s3://bucket/x.parquet",
         "visits.csv\0.txt", ".", "/", "~/secret.csv", "x" * 5_000],
    )  # fmt: skip
    def test_no_path_leads_out(self, browser: Browser, outside: Path, path: str) -> None:
        root = browser.session.folder.root
        (root / "link.csv").symlink_to(outside / "secret.csv")
        (root / "linked").symlink_to(outside, target_is_directory=True)
        typed = path.format(outside=outside, name=outside.name)
        browser.post("data", [("path", typed), ("do", "read")])
        assert list(browser.errors) == ["path"]
        browser.post("data", [("file", typed), ("do", "read")])
        assert list(browser.errors) == ["file"]
        assert untouched(browser)

    def test_links_out_are_not_listed(self, browser: Browser, outside: Path) -> None:
        root = browser.session.folder.root
        (root / "link.csv").symlink_to(outside / "secret.csv")
        (root / "loop.csv").symlink_to(root / "loop.csv")
        assert Folder.at(root).listed((".csv",)) == ["visits.csv"]

    def test_outputs_ledgers_and_keys_stay_inside(self, browser: Browser, outside: Path) -> None:
        browser.send("data", {"file": "visits.csv"}, press="do=read")
        browser.open("people")
        browser.send("people", {"expected": "2000"})
        browser.send("budget", {"path": f"{outside}/new.ledger"})
        assert list(browser.errors) == ["path"]
        browser.open("outputs")
        names = ("release", "explorer", "report", "evaluation", "registry", "key")
        browser.send("outputs", {name: f"../{outside.name}/{name}.html" for name in names} | {"sign": "new"})
        assert list(browser.errors) == list(names)
        assert sorted(path.name for path in outside.iterdir()) == ["secret.csv"]

    def test_a_folder_that_is_a_link_itself(
        self, visits: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        link = tmp_path_factory.mktemp("links") / "here"
        link.symlink_to(visits, target_is_directory=True)
        browser = started(link, str(link / "visits.csv"))
        browser.send("data", press="do=read")
        assert browser.session.table is not None


SCRIPT = "<script>alert(1)</script>"


class TestNamesAreText:
    def test_scripts_in_names_levels_and_files(self, tmp_path: Path) -> None:
        name = "<img src=x onerror=alert(1)>.csv"
        rows = "\n".join(f'{i % 50},"{SCRIPT}"' for i in range(200))
        (tmp_path / name).write_text(f'"{SCRIPT}","\'></td><svg onload=alert(1)>"\n{rows}\n')
        browser = started(tmp_path)
        pages = [browser.text]
        pages.append(browser.send("data", {"file": name}, press="do=read"))
        assert not browser.errors
        browser.open("columns")
        changes = {
            "c0.kind": "number",
            "c0.low": "0",
            "c0.high": "50",
            "c1.kind": "categorical",
            "c1.levels": f"{SCRIPT}\n'\"",
        }
        pages.append(browser.send("columns", dict(changes), press="do=check"))
        pages.append(browser.open("people"))
        pages.append(browser.send("people", {"expected": "200", "who": "person", "unit": SCRIPT}))
        pages.append(browser.send("people", {"expected": "200", "who": "row"}))
        pages.append(browser.send("budget", {"name": SCRIPT, "reason": SCRIPT, "epsilon": SCRIPT}))
        pages.append(browser.send("budget", {"name": SCRIPT, "reason": SCRIPT, "epsilon": "1"}))
        pages.append(browser.send("outputs", {"title": SCRIPT, "description": SCRIPT}))
        assert browser.address == "review"
        assert not browser.errors
        for text in pages:
            assert "<script>" not in text
            assert "<img" not in text
            assert "<svg" not in text
        assert sum("&lt;script&gt;" in text for text in pages) >= 6
