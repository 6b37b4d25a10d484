"""The panel under `/panel` of a gateway: who logs in with which key, and until when."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

from aiohttp import ClientSession, CookieJar
from tests.serve.gateway.clients import NOTE, ask, send_note
from tests.serve.gateway.conftest import Running, agent, client, config_of, gateway, upstream

from taoloop.core.events import ApprovalGiven
from taoloop.serve.gateway.auth.keys import ApiKey, new_key
from taoloop.serve.gateway.auth.panel_access import GatewayAccess
from taoloop.serve.panel.access import Identity
from taoloop.testing import FakeClock

ADMIN_SECRET, ADMIN_KEY = new_key("root-of-all")
VIEWER_SECRET, VIEWER_KEY = new_key("vera")
PLAIN_SECRET, PLAIN_KEY = new_key("shop")
KEYS = {"keys": (replace(VIEWER_KEY, panel="viewer"), PLAIN_KEY), "admin_keys": (ADMIN_KEY,)}


def visit(running: Running, *requests: tuple[str, str, dict[str, str]], **headers: str) -> list[tuple[int, str]]:
    """The answers to these requests of one browser."""

    async def main() -> list[tuple[int, str]]:
        answers = []
        async with ClientSession(cookie_jar=CookieJar(unsafe=True), headers=headers) as session:
            for method, path, form in requests:
                data = form if method == "POST" else None
                async with session.request(method, f"{running.url}{path}", data=data) as response:
                    answers.append((response.status, await response.text()))
        return answers

    return asyncio.run(main())


def log_in(secret: str) -> tuple[str, str, dict[str, str]]:
    return "POST", "/panel/login", {"credential": secret}


def test_keys_with_a_role_open_the_panel_and_others_do_not() -> None:
    with upstream("Hello.") as server, gateway(config_of(agent(server), **KEYS)) as running:
        for secret, status, role in ((ADMIN_SECRET, 200, "admin"), (VIEWER_SECRET, 200, "viewer")):
            assert visit(running, log_in(secret))[0][0] == status
            assert f" · {role}</span>" in visit(running, log_in(secret))[0][1]
        assert visit(running, log_in(PLAIN_SECRET))[0][0] == 401
        assert running.process.panel_link("http://x") == "http://x/panel/"


def test_without_keys_the_printed_token_opens_it() -> None:
    with upstream("Hello.") as server, gateway(config_of(agent(server))) as running:
        link = running.process.panel_link("")
        assert [status for status, _ in visit(running, ("GET", link, {}), ("GET", "/panel", {}))] == [200, 200]
        (status, page), *_ = visit(running, ("GET", "/panel/runs", {}))
        assert (status, "Token or key" in page) == (200, True)
        assert visit(running, ("GET", link, {}), Host="evil.example")[0][0] == 421


def test_the_pages_keep_to_their_mount() -> None:
    with upstream("Hello.") as server, gateway(config_of(agent(server))) as running:
        (_, page), *_ = visit(running, ("GET", running.process.panel_link(""), {}))
        addresses = re.findall(r'(?:href|src|action)="([^"]+)"', page)
        assert [address for address in addresses if not address.startswith(("/panel/", "#"))] == []
        status, text = visit(running, ("GET", next(a for a in addresses if "panel.css" in a), {}))[0]
        assert (status, "--accent" in text) == (200, True)


def test_what_a_run_of_the_gateway_asks_is_answered_in_the_panel_with_a_key() -> None:
    secret, key = new_key("ann")
    shop_secret, shop = new_key("shop")
    keys = (replace(key, panel="approver"), shop)

    async def answer(running: Running, path: str) -> str:
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
            async with session.post(f"{running.url}/panel/login", data={"credential": secret}) as response:
                assert response.status == 200
            async with session.get(f"{running.url}{path}") as response:
                page = await response.text()
            fields = {name: re.findall(rf'name="{name}" value="([^"]+)"', page)[0] for name in ("csrf", "digest")}
            async with session.post(f"{running.url}{path}/approve", data=fields) as response:
                return await response.text()

    with upstream(NOTE, "Done.") as server, gateway(config_of(agent(server, tools=[send_note]), keys=keys)) as running:
        chat = client(running, api_key=shop_secret).chat.completions
        chat.create(model="assistant", messages=ask("Send a note that says hello."))
        [trace] = running.traces()
        page = asyncio.run(answer(running, f"/panel/inbox/{trace.run_id}/call_1"))
        assert re.search("The gateway resumes run|goes on|is over", page)  # it may have done so already
        facts = [event.fact for trace in running.traces() for event in trace]
        [given] = [fact for fact in facts if isinstance(fact, ApprovalGiven)]
        assert (given.by, given.authenticated) == ("ann", "gateway_key")


def test_a_session_ends_with_its_key() -> None:
    now: dict[str, Any] = {}

    class Snapshot:
        def __init__(self, *keys: ApiKey) -> None:
            self.config = config_of(keys=keys, admin_keys=(ADMIN_KEY,))

        def owner_key(self, name: str) -> ApiKey | None:
            return next((key for key in self.config.keys if key.name == name), None)

    async def scenario() -> None:
        access = GatewayAccess(lambda: now["snapshot"], FakeClock())
        vera = Identity(name="vera", role="viewer", authenticated="gateway_key")
        now["snapshot"] = Snapshot(replace(VIEWER_KEY, panel="viewer"))
        assert await access.confirm(vera) == vera
        now["snapshot"] = Snapshot(replace(VIEWER_KEY, panel="approver"))
        assert await access.confirm(vera) == replace(vera, role="approver")
        now["snapshot"] = Snapshot(replace(VIEWER_KEY, panel="viewer", blocked=True))
        assert await access.confirm(vera) is None
        now["snapshot"] = Snapshot()
        assert await access.confirm(vera) is None
        assert await access.confirm(Identity(name="root-of-all", role="admin")) is not None
        assert await access.confirm(Identity(name="root-of-all", role="viewer")) is None

    asyncio.run(scenario())
