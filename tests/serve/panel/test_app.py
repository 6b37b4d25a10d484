"""What all pages of the panel have in common: who gets in, forms, headers, errors, languages."""

from __future__ import annotations

import asyncio
import gzip
import re
import sqlite3
from contextlib import closing
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest
from tests.docs.fenced import ROOT
from tests.runtime.approvals.waiting_runs import leave_approval
from tests.serve.panel.panels import DIRECT, Browser, browse, browser_of
from tests.serve.panel.run_samples import put, started

from taoloop import MemoryJournal
from taoloop.errors import ConfigError, JournalLocked
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.serve.panel.access import ROLES, SESSION_S, Identity, Sessions, TokenAccess, parse_identity
from taoloop.serve.panel.app import is_cross_site
from taoloop.serve.panel.rendering import duration, static_file, untrusted, usd
from taoloop.testing import FakeClock


def test_without_a_session_every_page_asks_to_log_in() -> None:
    async def scenario(browser: Browser) -> None:
        response = await browser.request("GET", "/runs?q=a", allow_redirects=False)
        assert (response.status, response.headers["Location"]) == (303, "/login?next=%2Fruns%3Fq%3Da")
        assert "Token or key" in await browser.get("/login")
        assert "Nobody has this token" in await browser.get("/login?token=x", 401)
        part = await browser.request("GET", "/runs", headers={"HX-Request": "true"}, allow_redirects=False)
        assert (part.status, part.headers["HX-Redirect"]) == (401, "/login")
        stream = await browser.request("GET", "/live", headers={"Accept": "text/event-stream"}, allow_redirects=False)
        assert stream.status == 401

    browse(MemoryJournal(), scenario, person="")


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "//["]
)
def test_after_the_login_nobody_is_sent_elsewhere(target: str) -> None:
    async def scenario(browser: Browser) -> None:
        assert isinstance(browser.panel.state.access, TokenAccess)
        query = {"token": browser.panel.state.access.tokens["bob"], "next": target}
        response = await browser.request("GET", "/login", params=query, headers=DIRECT, allow_redirects=False)
        assert response.headers["Location"] == "/runs"

    browse(MemoryJournal(), scenario, person="")


def test_a_form_needs_the_token_of_its_session_and_a_page_of_this_origin() -> None:
    async def scenario(browser: Browser) -> None:
        for fields, headers in (
            ({"csrf": "x"}, {}),
            ({}, {}),
            ({"csrf": browser.csrf}, {"Sec-Fetch-Site": "same-site"}),
            ({"csrf": browser.csrf}, {"Origin": "https://evil.example"}),
        ):
            response = await browser.request("POST", "/views", data={"name": "a", **fields}, headers=headers)
            assert response.status == 403
            assert "This form is not from your session." in await response.text()
        assert "a" in await browser.post("/views", name="a", query="status=waiting")

    browse(MemoryJournal(), scenario)


def test_a_session_ends_when_the_person_logs_out() -> None:
    async def scenario(browser: Browser) -> None:
        await browser.post("/logout")
        assert (await browser.request("GET", "/runs", allow_redirects=False)).status == 303

    browse(MemoryJournal(), scenario, person="bob")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-www-form-urlencoded", b"csrf=\xff"),
        ("application/x-www-form-urlencoded; charset=none", b"csrf=x"),
        ("multipart/form-data", b"csrf"),
        ("multipart/form-data; boundary=b", b"csrf"),
    ],
)
def test_a_form_that_cannot_be_read_is_said(kind: str, body: bytes) -> None:
    async def scenario(browser: Browser) -> None:
        response = await browser.request("POST", "/preferences", data=body, headers={"Content-Type": kind})
        assert response.status == 400
        assert "This form cannot be read." in await response.text()

    browse(MemoryJournal(), scenario)


def test_an_open_page_is_told_nothing_after_the_logout() -> None:
    journal = MemoryJournal()

    async def scenario(browser: Browser) -> None:
        stream = await browser.request("GET", "/live")
        while b"grown" not in await stream.content.readline():
            pass
        await browser.post("/logout")
        await put(journal, "confidential", [started()])
        assert b"confidential" not in await stream.content.read()

    browse(journal, scenario, "bob")


def test_an_open_page_alone_keeps_no_session() -> None:
    async def scenario() -> None:
        clock, access = FakeClock(), TokenAccess([Identity(name="ann", role="viewer")])
        sessions = Sessions(access, clock)
        session = await sessions.find(sessions.open(Identity(name="ann", role="viewer")))
        assert session is not None
        clock.advance(SESSION_S)
        assert await sessions.is_open(session)
        clock.advance(1)
        assert not await sessions.is_open(session)

    asyncio.run(scenario())


def test_sessions_expire_and_end_with_the_rights_of_their_person() -> None:
    async def scenario() -> None:
        clock, access = FakeClock(), TokenAccess([Identity(name="ann", role="viewer")])
        sessions = Sessions(access, clock)
        cookie = sessions.open(Identity(name="ann", role="viewer"))
        assert await sessions.find(cookie) is not None
        clock.advance(SESSION_S - 1)
        assert await sessions.find(cookie) is not None
        clock.advance(SESSION_S + 1)
        assert await sessions.find(cookie) is None
        assert await sessions.find(sessions.open(Identity(name="eve", role="admin"))) is None
        assert await sessions.find("") is None

    asyncio.run(scenario())


def test_every_response_forbids_whatever_the_panel_does_not_need() -> None:
    async def scenario(browser: Browser) -> None:
        for path in ("/runs", "/login", "/nothing", "/static/panel.css"):
            response = await browser.request("GET", path)
            policy = response.headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'; script-src 'nonce-")
            assert "require-trusted-types-for 'script'" in policy
            assert "frame-ancestors 'none'" in policy
            assert response.headers["X-Content-Type-Options"] == "nosniff"
        text = await browser.get("/runs")
        nonce = re.findall(r'<script nonce="([^"]+)"', text)
        assert len(nonce) == 4
        assert re.search(r"<script(?! nonce)| on\w+=| style=", text) is None
        assert "unsafe" not in policy

    browse(MemoryJournal(), scenario)


def test_another_host_name_is_refused() -> None:
    async def scenario(browser: Browser) -> None:
        response = await browser.request("GET", "/runs", headers={"Host": "evil.example"})
        assert response.status == 421

    browse(MemoryJournal(), scenario)


def test_errors_are_pages_in_the_language_of_the_person() -> None:
    async def scenario(browser: Browser) -> None:
        assert "There is no such page." in await browser.get("/nothing", 404)
        assert "is not a day of the calendar" in await browser.get("/runs?since=yesterday", 400)
        await browser.post("/preferences", language="zh", theme="dark", next="/runs")
        page = await browser.get("/runs?since=yesterday", 400)
        assert '<html lang="zh-CN" data-theme="dark">' in page
        assert "不是有效的日期" in page
        part = await browser.get("/runs?since=yesterday", 400, is_fragment=True)
        assert "<html" not in part

    browse(MemoryJournal(), scenario)


class AwayJournal(MemoryJournal):
    """A journal whose file is locked."""

    async def find(self, *_: object, **__: object) -> object:  # type: ignore[override]  # it never answers
        raise JournalLocked("The database is locked.", hint="Try again.")


def test_a_database_that_cannot_be_read_is_said() -> None:
    async def scenario(browser: Browser) -> None:
        assert "The database is locked." in await browser.get("/runs", 503)

    async def main() -> None:
        async with browser_of(AwayJournal(), "") as browser:
            assert isinstance(browser.panel.state.access, TokenAccess)
            await browser.request(
                "GET",
                f"/login?token={browser.panel.state.access.tokens['ada']}",
                headers=DIRECT,
                allow_redirects=False,
            )
            await scenario(browser)

    asyncio.run(main())


def test_roles_include_each_other_and_are_read_from_the_command_line() -> None:
    assert [Identity(name="a", role="approver").may(role) for role in ROLES] == [True, True, False]
    assert parse_identity("a=b=admin") == Identity(name="a=b", role="admin")
    for text in ("ann", "ann=boss", "=admin", "probe=viewer"):
        with pytest.raises(ConfigError):
            parse_identity(text)
    with pytest.raises(ConfigError):
        TokenAccess([Identity(name="a", role="admin"), Identity(name="a", role="viewer")])


def test_pages_of_other_origins_are_recognised() -> None:
    assert is_cross_site({"Sec-Fetch-Site": "cross-site"})
    assert is_cross_site({"Origin": "http://localhost:1", "Host": "localhost:2"})
    assert is_cross_site({"Origin": "null", "Host": "localhost:2"})
    assert is_cross_site({"Origin": "http://[", "Host": "localhost:2"})
    assert not is_cross_site({"Origin": "http://localhost:2", "Host": "localhost:2"})
    assert not is_cross_site({"Sec-Fetch-Site": "same-origin", "Origin": "http://other"})
    assert not is_cross_site({})


def test_values_read_well() -> None:
    assert [duration(seconds) for seconds in (0.0021, 0.25, 5, 65, 3_600, 200_000)] == [
        *("2.1 ms", "0.25 s", "5.0 s", "1 min 5 s", "1 h", "2 d 7 h"),
    ]
    assert duration(200_000, "zh") == "2 天 7 小时"
    assert [usd(amount) for amount in (None, 0, 0.00012, 3.5)] == ["unknown", "$0.00", "$0.00012", "$3.50"]
    assert str(untrusted("<b>\u202eevil\x1b")) == "&lt;b&gt;\\u202eevil\\x1b"
    assert static_file("../app.py") is None


def test_the_scripts_of_a_page_are_there_before_htmx_begins() -> None:
    """It begins once the page is parsed: a deferred script would come too late for its extensions (nonces, events)."""

    async def scenario(browser: Browser) -> None:
        page = await browser.get("/runs")
        scripts = re.findall(r"<script ([^>]*)>", page)
        assert [re.findall(r"/static/([\w.-]+)\?", script)[0] for script in scripts] == [
            "htmx.min.js",
            "hx-csp.min.js",
            "hx-sse.min.js",
            "panel.js",
        ]
        assert not any("defer" in script or "async" in script for script in scripts)

    browse(MemoryJournal(), scenario)


def test_the_scripts_of_others_are_those_of_the_notice_and_all_scripts_are_small() -> None:
    folder = files("taoloop.serve.panel") / "static"
    scripts = {path.name: path.read_bytes() for path in folder.iterdir() if path.name.endswith(".js")}
    digests = dict(re.findall(r"^([0-9a-f]{64})  (\S+)$", (ROOT / "NOTICE").read_text(encoding="utf-8"), re.MULTILINE))
    vendored = {name: body for name, body in scripts.items() if name.endswith(".min.js")}
    assert digests == {sha256(body).hexdigest(): name for name, body in vendored.items()}
    assert sum(len(gzip.compress(body)) for body in scripts.values()) <= 25_000


@pytest.mark.parametrize("site", ["cross-site", "same-site", None])
def test_a_link_in_a_page_of_another_origin_logs_nobody_in_unasked(site: str | None) -> None:
    async def scenario(browser: Browser) -> None:
        assert isinstance(browser.panel.state.access, TokenAccess)
        token = browser.panel.state.access.tokens["bob"]
        headers = {} if site is None else {"Sec-Fetch-Site": site}
        response = await browser.request("GET", f"/login?token={token}&next=/inbox", headers=headers)
        page = await response.text()
        assert response.status == 200
        assert "This link logs you in as bob." in page
        assert "You are logged in as ada." in page
        assert "ada<span" in await browser.get("/runs"), "still the same person"
        response = await browser.request(
            "POST", "/login", data={"credential": token, "next": "/inbox"}, headers={"Sec-Fetch-Site": "cross-site"}
        )
        assert response.status == 403
        form = {"credential": token, "next": "/inbox", "csrf": browser.csrf}
        response = await browser.request("POST", "/login", data=form, headers={"Sec-Fetch-Site": "same-origin"})
        assert "bob<span" in await response.text()

    browse(MemoryJournal(), scenario)


def test_an_unknown_path_under_another_host_name_is_refused_like_any_other() -> None:
    async def scenario(browser: Browser) -> None:
        for method, path in (("GET", "/nothing"), ("DELETE", "/runs"), ("GET", "/static/nothing")):
            response = await browser.request(method, path, headers={"Host": "evil.example"})
            assert response.status == 421
            assert "There is no such page." not in await response.text()

    browse(MemoryJournal(), scenario)


def test_where_the_database_is_only_those_are_told_who_may_act_on_it(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    async def main() -> None:
        async with SqliteJournal(path, synchronous="NORMAL") as journal:
            await leave_approval(journal)
            for person, is_told in (("bob", False), ("ann", True)):
                async with browser_of(journal, person) as browser:
                    pages = [await browser.get(page) for page in ("/inbox/asks/call_1", "/runs/asks", "/costs")]
                    pages.append(await browser.get("/runs/asks/policy?profile=locked"))
                    with closing(sqlite3.connect(path)) as connection, connection:
                        connection.execute("UPDATE event SET body = '{' WHERE run_id = 'asks' AND seq = 1")
                    pages.append(await browser.get("/runs/asks"))
                    pages.append(await (await browser.request("GET", "/inbox/asks/call_1")).text())
                    assert any(str(path) in page for page in pages) is is_told
                    assert any("runs.db" in page for page in pages)
                with closing(sqlite3.connect(path)) as connection, connection:
                    connection.execute("DELETE FROM run")
                    connection.execute("DELETE FROM event")
                await leave_approval(journal)

    asyncio.run(main())


def test_durations_are_in_the_language_of_the_person() -> None:
    chinese = [duration(seconds, "zh") for seconds in (0.004, 0.25, 7.5, 65)]
    assert chinese == ["4.0 毫秒", "0.25 秒", "7.5 秒", "1 分 5 秒"]
    assert [duration(seconds) for seconds in (0.004, 0.25, 7.5)] == ["4.0 ms", "0.25 s", "7.5 s"]


def test_the_index_of_the_search_is_made_while_the_list_is_looked_at() -> None:
    class Indexed(MemoryJournal):
        async def prepare_search(self) -> None:
            prepared.append("begun")
            try:
                await asyncio.Event().wait()  # it takes long, and nobody waits for it
            finally:
                prepared.append("ended with the panel")

    prepared: list[str] = []

    async def scenario(browser: Browser) -> None:
        for _ in range(3):
            await browser.get("/runs")
        assert prepared == ["begun"]

    browse(Indexed(), scenario)
    assert prepared == ["begun", "ended with the panel"]
