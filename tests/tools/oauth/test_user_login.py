"""Logins of people against a real authorization server: whose token a call gets, and what is refused."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable, Coroutine, Iterator
from functools import wraps
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from tests.tools.oauth.authorization_server import AuthorizationServer

from taoloop import Agent, MemoryJournal, ScriptedModel
from taoloop.core.stored_events import event_record
from taoloop.errors import ConfigError, ToolError
from taoloop.testing.fakes import FakeClock
from taoloop.tools.oauth import OAuthClient, SqliteLoginStore, UserLogin, logins_of
from taoloop.tools.oauth.loopback import log_in
from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.tool import Tool, ToolContext

Test = Callable[..., Coroutine[Any, Any, None]]


def in_loop(test: Test) -> Callable[..., None]:
    """Run an async test in an event loop of its own."""

    @wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(test(**fixtures))

    return run


BACK = "https://agents.example/oauth/callback"


@pytest.fixture
def server() -> Iterator[AuthorizationServer]:
    with AuthorizationServer() as served:
        yield served


def tools_of(server: AuthorizationServer, store: Path, **options: Any) -> dict[str, Tool]:
    """The tools of its API."""
    source = OpenapiSource(
        document=server.document(),
        name="profile",
        base_url=server.url,
        auth={"person": {**server.settings(), **options}},
        token_file=str(store),
    )
    return {tool.name: tool for tool in openapi_tools(source).tools}


def login_of(server: AuthorizationServer, store: Path, clock: FakeClock | None = None) -> UserLogin:
    """The login of its API, with a clock of the test."""
    [made] = logins_of(tools_of(server, store).values())
    now = FakeClock(1_000.0).now if clock is None else clock.now
    return UserLogin(made.client, made._post, SqliteLoginStore(store, now=now), now=now)


def visit(url: str) -> dict[str, str]:
    """What the browser of a person brings back from an authorization server."""
    response = httpx2.get(url, follow_redirects=False)
    return dict(parse_qsl(urlsplit(response.headers["location"]).query))


async def logged_in(login: UserLogin, server: AuthorizationServer, person: str) -> None:
    """Let a person log in."""
    server.person = person
    started = await login.begin(person, BACK)
    assert await login.finish(visit(started.url), started.browser) == person


async def refused(login: UserLogin, fields: dict[str, str], browser: str) -> str:
    """Why a login is refused."""
    with pytest.raises(ToolError) as caught:
        await login.finish(fields, browser)
    assert caught.value.code == "login_failed"
    return caught.value.message


async def name_for(tool: Tool, user: str) -> Any:
    """What the API says of the person for whom a call is made."""
    output = await tool.invoke({}, ToolContext(user=user))
    return output.text


@in_loop
async def test_each_person_gets_calls_with_their_own_token_and_no_other(
    server: AuthorizationServer, tmp_path: Path
) -> None:
    store = tmp_path / "logins.db"
    me = tools_of(server, store)["profile_me"]
    assert me.login is not None
    await logged_in(me.login, server, "ann")
    with pytest.raises(ToolError) as caught:
        await name_for(me, "bob")
    assert caught.value.code == "login_required"
    with pytest.raises(ToolError):
        await name_for(me, "")
    await logged_in(me.login, server, "bob")
    ann, bob = await asyncio.gather(name_for(me, "ann"), name_for(me, "bob"))
    assert '"name":"ann"' in ann.replace(" ", "")
    assert '"name":"bob"' in bob.replace(" ", "")
    for text in (ann, bob):  # the API repeats the token, and nobody reads it
        assert "access-" not in text
        assert "[redacted:token]" in text
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    assert await me.login.forget("ann")
    with pytest.raises(ToolError):
        await name_for(me, "ann")


@in_loop
async def test_the_flow_uses_pkce_the_scopes_of_the_operations_and_a_state_of_its_own(
    server: AuthorizationServer, tmp_path: Path
) -> None:
    login = login_of(server, tmp_path / "logins.db")
    first, second = await login.begin("ann", BACK), await login.begin("ann", BACK)
    visit(first.url), visit(second.url)
    [one, other] = server.asked
    assert one["scope"] == "me"
    assert one["response_type"] == "code"
    assert one["redirect_uri"] == BACK
    assert len(one["code_challenge"]) == 43
    assert one["state"] != other["state"]
    assert one["code_challenge"] != other["code_challenge"]


@in_loop
async def test_a_state_that_is_forged_used_expired_or_anothers_gives_no_token(
    server: AuthorizationServer, tmp_path: Path
) -> None:
    clock = FakeClock(1_000.0)
    login = login_of(server, tmp_path / "logins.db", clock)
    started = await login.begin("ann", BACK)
    fields = visit(started.url)
    assert "never given out" in await refused(login, {**fields, "state": "forged"}, started.browser)
    assert "another browser" in await refused(login, fields, "another")
    assert "used before" in await refused(login, fields, started.browser)  # the wrong browser has used it up

    started = await login.begin("ann", BACK)
    fields = visit(started.url)
    assert await login.finish(fields, started.browser) == "ann"
    assert "used before" in await refused(login, fields, started.browser)  # a replay of code and state
    replayed = await login.begin("bob", BACK)
    state = dict(parse_qsl(urlsplit(replayed.url).query))["state"]
    assert "gave no token" in await refused(login, {"code": fields["code"], "state": state}, replayed.browser)
    assert not await login.is_logged_in("bob")

    late = await login.begin("ann", BACK)
    fields = visit(late.url)
    clock.advance(601)
    assert "expired" in await refused(login, fields, late.browser)
    server.person = None
    denied = await login.begin("ann", BACK)
    assert "access_denied" in await refused(login, visit(denied.url), denied.browser)


@in_loop
async def test_a_code_of_another_login_is_useless_because_of_pkce(server: AuthorizationServer, tmp_path: Path) -> None:
    login = login_of(server, tmp_path / "logins.db")
    victim, attacker = await login.begin("ann", BACK), await login.begin("eve", BACK)
    stolen = visit(victim.url)["code"]
    state = dict(parse_qsl(urlsplit(attacker.url).query))["state"]
    assert "gave no token" in await refused(login, {"code": stolen, "state": state}, attacker.browser)
    assert not await login.is_logged_in("eve")


@in_loop
async def test_a_ticket_is_for_one_person_once_and_not_for_ever(server: AuthorizationServer, tmp_path: Path) -> None:
    clock = FakeClock(1_000.0)
    login = login_of(server, tmp_path / "logins.db", clock)
    ticket = await login.invite("ann")
    assert await login.invited(ticket) == "ann"
    assert await login.invited("forged") is None
    await login.accept(ticket, BACK)
    assert await login.invited(ticket) is None
    with pytest.raises(ToolError):
        await login.accept(ticket, BACK)
    late = await login.invite("ann")
    clock.advance(601)
    assert await login.invited(late) is None


@in_loop
async def test_a_token_is_refreshed_before_its_end_and_once_after_a_401(
    server: AuthorizationServer, tmp_path: Path
) -> None:
    clock = FakeClock(1_000.0)
    store = tmp_path / "logins.db"
    login = login_of(server, store, clock)
    await logged_in(login, server, "ann")
    first = await login.token("ann")
    assert await login.token("ann") == first
    clock.advance(3_541)  # 59 s before its end
    tokens = await asyncio.gather(*(login.token("ann") for _ in range(5)))
    assert len(set(tokens)) == 1, "a rotated refresh token was used twice"
    assert tokens[0] != first

    tool = tools_of(server, store)["profile_me"]
    server.access.clear()  # the server has revoked the access tokens
    assert '"ann"' in await name_for(tool, "ann")
    server.refresh.clear()
    server.access.clear()
    with pytest.raises(ToolError) as caught:
        await name_for(tool, "ann")
    assert caught.value.code == "login_required"
    assert not await login.is_logged_in("ann")


@in_loop
async def test_an_api_that_refuses_new_tokens_too_asks_for_a_login_and_is_not_called_for_ever(
    server: AuthorizationServer, tmp_path: Path
) -> None:
    tool = tools_of(server, tmp_path / "logins.db")["profile_note"]
    assert tool.login is not None
    await logged_in(tool.login, server, "ann")
    server.routes["/note"] = (401, {}, b"")
    with pytest.raises(ToolError) as caught:
        await name_for(tool, "ann")
    assert caught.value.code == "login_required"
    assert [got.path for got in server.got].count("/note") == 2


@in_loop
async def test_a_server_that_fails_does_not_cost_a_login(server: AuthorizationServer, tmp_path: Path) -> None:
    clock = FakeClock(1_000.0)
    login = login_of(server, tmp_path / "logins.db", clock)
    await logged_in(login, server, "ann")
    token = await login.token("ann")
    server.fails_with = 503
    clock.advance(3_560)
    assert await login.token("ann") == token  # it is good for 40 s more
    clock.advance(100)
    with pytest.raises(ToolError) as caught:
        await login.token("ann")
    assert (caught.value.code, caught.value.retryable) == ("token_failed", True)
    server.fails_with = 0
    assert await login.token("ann") != token


@in_loop
async def test_two_processes_that_refresh_at_once_both_get_a_token(server: AuthorizationServer, tmp_path: Path) -> None:
    clock, store = FakeClock(1_000.0), tmp_path / "logins.db"
    one, other = login_of(server, store, clock), login_of(server, store, clock)
    await logged_in(one, server, "ann")
    clock.advance(4_000)
    first, second = await asyncio.gather(one.token("ann"), other.token("ann"))
    assert {server.access[first], server.access[second]} == {"ann"}
    assert await one.is_logged_in("ann")


@in_loop
async def test_an_answer_of_another_issuer_is_refused(server: AuthorizationServer, tmp_path: Path) -> None:
    made = login_of(server, tmp_path / "logins.db")
    client = OAuthClient(
        api="profile",
        authorization_url=made.client.authorization_url,
        token_url=made.client.token_url,
        client_id=made.client.client_id,
        client_secret=made.client.client_secret,
        issuer="https://login.example",
    )
    login = UserLogin(client, made._post, made.store)
    started = await login.begin("ann", BACK)
    assert "another authorization server" in await refused(login, visit(started.url), started.browser)


@in_loop
async def test_the_run_of_a_person_uses_their_login_and_no_token_is_stored(
    server: AuthorizationServer, tmp_path: Path
) -> None:
    tool = tools_of(server, tmp_path / "logins.db")["profile_me"]
    assert tool.login is not None
    await logged_in(tool.login, server, "ann")
    journal = MemoryJournal()
    for user, answer in (("ann", '"name":"ann"'), ("bob", "login_required")):
        replies = ["Thought: look\nAction: profile_me\nAction Input: {}", "Thought: done\nFinal Answer: Done."]
        agent = Agent(model=ScriptedModel(replies), tools=[tool], journal=journal, dialect="text")
        result = await agent.run("Who am I?", user=user)
        record = str([event_record(result.run_id, event) for event in result.trace.events])
        assert answer in record.replace(" ", "")
        assert "-secret" not in record
        assert "/authorize" not in record
        assert result.trace.user == user


@in_loop
async def test_a_login_on_this_machine_comes_back_to_the_loopback_address(
    server: AuthorizationServer, tmp_path: Path
) -> None:
    login = login_of(server, tmp_path / "logins.db")
    pages: list[asyncio.Task[httpx2.Response]] = []

    async def open_browser(url: str) -> None:
        def browse() -> httpx2.Response:
            back = dict(parse_qsl(urlsplit(url).query))["redirect_uri"]
            assert httpx2.get(back.replace("/oauth/callback", "/else")).status_code == 404
            assert "There is no login" in httpx2.get(f"{back}?state=forged&code=x").text  # and the login still waits
            return httpx2.get(url, follow_redirects=True)

        pages.append(asyncio.create_task(asyncio.to_thread(browse)))

    async def open_and_leave(url: str) -> None:
        pages.append(asyncio.create_task(asyncio.to_thread(httpx2.get, url, follow_redirects=True)))

    await log_in(login, "", open_browser)
    assert "You are logged in to profile" in (await pages[0]).text
    assert server.access[await login.token("")] == "ann"
    server.person = None
    with pytest.raises(ToolError, match="access_denied"):
        await log_in(login, "", open_and_leave)
    await pages[-1]


def test_settings_that_say_too_little_of_a_login_are_refused(server: AuthorizationServer, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="client_id"):
        tools_of(server, tmp_path / "logins.db", client_id="")
    document = server.document().replace("authorizationUrl", "x-nothing")
    source = OpenapiSource(document=document, base_url=server.url, auth={"person": server.settings()})
    with pytest.raises(ConfigError, match="authorization_url"):
        openapi_tools(source)


@in_loop
async def test_a_store_that_others_can_read_is_refused(tmp_path: Path) -> None:
    store = SqliteLoginStore(tmp_path / "logins.db")
    await store.save("token:x:ann", {"access_token": "a"})
    assert await store.load("token:x:ann") == {"access_token": "a"}
    store.path.chmod(0o644)
    with pytest.raises(ConfigError, match="Others can read"):
        await store.load("token:x:ann")


@in_loop
async def test_a_store_of_ones_own_is_used_in_place_of_the_file(server: AuthorizationServer, tmp_path: Path) -> None:
    class Store:
        def __init__(self) -> None:
            self.records: dict[str, Any] = {}

        async def load(self, key: str) -> Any:
            return self.records.get(key)

        async def save(self, key: str, record: Any, **_until: float | None) -> None:
            self.records[key] = dict(record)

        async def add(self, key: str, record: Any, **_until: float) -> bool:
            return self.records.setdefault(key, record) is record

        async def take(self, key: str) -> Any:
            return self.records.pop(key, None)

    store = Store()
    source = OpenapiSource(
        document=server.document(), base_url=server.url, auth={"person": server.settings()}, token_store=store
    )
    [login] = logins_of(openapi_tools(source).tools)
    await logged_in(login, server, "ann")
    assert [key.split(":")[0] for key in store.records] == ["token"]
    assert await login.token("ann")
