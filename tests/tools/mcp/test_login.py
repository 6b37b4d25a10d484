"""Logging in to a server behind a real authorization server: the redirect, the tokens, and their refreshing."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from taoloop import Agent, ScriptedModel
from taoloop.core.stored_events import encode_fact
from taoloop.errors import ConfigError, McpFailed
from taoloop.tools.mcp import McpOAuth, McpServer, close_all, close_server, log_in, log_out, mcp_tools
from taoloop.tools.mcp.token_store import token_store

from .calling import only, told, use
from .login_server import Accounts, guarded_server, machine_server


@pytest.fixture(scope="module")
def guarded() -> Iterator[tuple[str, Accounts]]:
    with guarded_server() as (url, accounts):
        yield url, accounts
        close_all()


@pytest.fixture
def server(guarded: tuple[str, Accounts], tmp_path: Path) -> McpServer:
    url, accounts = guarded
    accounts.grants.clear()
    return McpServer(
        name="shop",
        url=url,
        oauth=McpOAuth(tokens=tmp_path / "tokens.json"),
        tiers={"*": "read"},
        pins=tmp_path / "pins",
    )


async def browse(url: str) -> None:
    """What a browser does: go to the page, and follow the redirects of it."""
    async with httpx2.AsyncClient() as client:
        response = await client.get(url)
        assert response.status_code == 302
        page = await client.get(response.headers["location"])
        assert "You can close this page" in page.text
        assert urlsplit(response.headers["location"]).hostname == "127.0.0.1"


def browser() -> Any:
    tasks: list[asyncio.Task[None]] = []

    async def show(url: str) -> None:
        tasks.append(asyncio.create_task(browse(url)))

    return show


def test_without_a_login_the_error_names_the_command(server: McpServer) -> None:
    loaded = mcp_tools(server)
    assert "wants a login" in told(loaded)
    assert "tao login FILE shop" in told(loaded)


def test_after_a_login_tools_are_called_and_no_token_is_in_trace_or_log(
    server: McpServer, guarded: tuple[str, Accounts], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert asyncio.run(log_in(server, browser())) is True
    script: list[Any] = [{"tool_calls": [{"name": "shop.stock", "args": {"item": "tea"}}]}, "done"]
    result = asyncio.run(Agent(model=ScriptedModel(script), tools=mcp_tools(server).tools).run("How much tea?"))
    stored = b"".join(encode_fact(event.fact) for event in result.trace).decode()
    assert "12 tea" in stored
    assert not [token for token in guarded[1].issued if token in stored + caplog.text]
    assert server.oauth is not None
    assert server.oauth.tokens is not None
    if os.name != "nt":
        assert server.oauth.tokens.stat().st_mode & 0o777 == 0o600
    asyncio.run(log_out(server))
    close_server(server)
    assert "wants a login" in told(mcp_tools(server))


def test_tokens_are_refreshed_by_a_later_process(server: McpServer, guarded: tuple[str, Accounts]) -> None:
    """Before they end, as the stored time says; and where the server refuses them earlier."""
    accounts = guarded[1]
    asyncio.run(log_in(server, browser()))
    store = token_store(server)
    record = asyncio.run(store.load())
    asyncio.run(store.save({**record, "expires_at": 1.0}))
    assert use(only(mcp_tools(server), "shop.stock"), item="tea") in ("12 tea", {"result": "12 tea"})
    assert accounts.grants == ["code", "refresh"]
    close_server(server)
    accounts.access.clear()
    assert use(only(mcp_tools(server), "shop.stock"), item="tea") in ("12 tea", {"result": "12 tea"})
    assert accounts.grants == ["code", "refresh", "refresh"]
    close_server(server)
    accounts.access.clear()
    accounts.refresh.clear()
    assert "wants a login" in told(mcp_tools(server)), "a login that is over is one that is needed"


def test_a_refused_login_keeps_nothing(server: McpServer) -> None:
    async def refuse(url: str) -> None:
        async def say_no() -> None:
            redirect, state = (httpx2.URL(url).params[name] for name in ("redirect_uri", "state"))
            async with httpx2.AsyncClient() as client:
                assert (await client.get(redirect.replace("/callback", "/other?code=1"))).status_code == 404
                await client.get(f"{redirect}?error=access_denied&error_description=not+you&state={state}")

        tasks.append(asyncio.create_task(say_no()))

    tasks: list[asyncio.Task[None]] = []
    with pytest.raises(McpFailed, match="not you"):
        asyncio.run(log_in(server, refuse))
    assert "tokens" not in asyncio.run(token_store(server).load())


@pytest.mark.parametrize("query", ["code=evil", "code=evil&state=evil", "error=access_denied&error_description=evil"])
def test_a_request_of_somebody_else_does_not_end_the_login(server: McpServer, query: str) -> None:
    tasks: list[asyncio.Task[None]] = []

    async def show(url: str) -> None:
        async with httpx2.AsyncClient() as client:
            assert (await client.get(f"{httpx2.URL(url).params['redirect_uri']}?{query}")).status_code == 404
        tasks.append(asyncio.create_task(browse(url)))

    assert asyncio.run(log_in(server, show)) is True


@pytest.fixture
def machine() -> Iterator[tuple[str, list[dict[str, str]]]]:
    with machine_server() as served:
        yield served
        close_all()


def test_a_machine_gets_tokens_for_its_secret(tmp_path: Path, machine: tuple[str, list[dict[str, str]]]) -> None:
    origin, requests = machine
    oauth = McpOAuth(
        grant="client_credentials",
        client_id="robot",
        client_secret="a-secret-of-a-robot",
        issuer=origin,
        tokens=tmp_path / "tokens.json",
    )
    server = McpServer(name="shop", url=f"{origin}/mcp", oauth=oauth, pins=tmp_path / "pins")
    loaded = mcp_tools(server)
    assert told(loaded) == ""
    assert [tool.name for tool in loaded.tools] == ["shop.stock"]
    assert requests[0]["grant_type"] == "client_credentials"
    assert "a-secret-of-a-robot" in loaded.tools[0].secrets.values(), "so that runs redact it"
    assert "a-secret-of-a-robot" not in repr(server)


def test_a_secret_goes_to_no_other_authorization_server(
    tmp_path: Path, machine: tuple[str, list[dict[str, str]]]
) -> None:
    origin, requests = machine
    oauth = McpOAuth(
        grant="client_credentials",
        client_id="robot",
        client_secret="a-secret-of-a-robot",
        issuer="https://auth.example",
        tokens=tmp_path / "tokens.json",
    )
    loaded = mcp_tools(McpServer(name="shop", url=f"{origin}/mcp", oauth=oauth, pins=tmp_path / "pins"))
    assert "issuer mismatch" in told(loaded)
    assert "https://auth.example" in told(loaded)
    assert requests == []


@pytest.mark.parametrize("missing", ["client_id", "client_secret", "issuer"])
def test_a_machine_needs_all_of_it(missing: str) -> None:
    settings: dict[str, Any] = {"client_id": "a", "client_secret": "b", "issuer": "https://c.example"}
    with pytest.raises(ConfigError, match=f"needs `{missing}`"):
        McpOAuth(grant="client_credentials", **{**settings, missing: ""})


def test_a_file_that_others_can_read_is_refused(server: McpServer) -> None:
    assert server.oauth is not None
    assert server.oauth.tokens is not None
    store = token_store(server)
    asyncio.run(store.save({"tokens": {"access_token": "a"}}))
    server.oauth.tokens.chmod(0o644)
    with pytest.raises(ConfigError, match="others can read") as caught:
        asyncio.run(store.load())
    assert "chmod 600" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"version": 1, "data": 5}', b"\0" * 40, b"\xff\xfe", b'{"version": 1, "data": {"shop', b"[" * 9_999],
)
def test_a_broken_file_is_forgotten_with_all_that_was_in_it(server: McpServer, content: bytes) -> None:
    assert server.oauth is not None
    assert server.oauth.tokens is not None
    server.oauth.tokens.write_bytes(content)
    server.oauth.tokens.chmod(0o600)
    if content:
        with pytest.raises(ConfigError, match="no tokens of taoloop") as caught:
            asyncio.run(token_store(server).load())
        assert "--forget" in caught.value.hint
    assert asyncio.run(log_out(server)) == bool(content)
    assert server.oauth.tokens.exists() == (not content)
    assert asyncio.run(token_store(server).load()) == {}
    assert not asyncio.run(log_out(server))


@pytest.mark.parametrize("content", ['{"version": 2, "data": {}}', '{"name": "package"}', "[1]"])
def test_a_file_of_another_program_is_never_removed(server: McpServer, content: str) -> None:
    assert server.oauth is not None
    assert server.oauth.tokens is not None
    server.oauth.tokens.write_text(content)
    with pytest.raises(ConfigError, match="no tokens of taoloop"):
        asyncio.run(log_out(server))
    assert server.oauth.tokens.read_text() == content


def test_forgetting_one_server_keeps_the_others_and_closes_the_file(server: McpServer) -> None:
    assert server.oauth is not None
    assert server.oauth.tokens is not None
    other = replace(server, name="other")
    for store in (token_store(server), token_store(other)):
        asyncio.run(store.save({"tokens": {"access_token": "a"}}))
    server.oauth.tokens.chmod(0o644)
    assert not asyncio.run(log_out(server))
    assert asyncio.run(token_store(server).load()) == {}
    assert asyncio.run(token_store(other).load()) == {"tokens": {"access_token": "a"}}


def test_without_a_keyring_the_error_names_the_file(guarded: tuple[str, Accounts]) -> None:
    import keyring  # noqa: PLC0415  # only these two tests
    from keyring.backends.fail import Keyring  # noqa: PLC0415  # the same

    before = keyring.get_keyring()
    keyring.set_keyring(Keyring())  # type: ignore[no-untyped-call]  # the package has it so
    try:
        with pytest.raises(ConfigError, match="no keyring") as caught:
            token_store(McpServer(name="shop", url=guarded[0], oauth=McpOAuth()))
        assert "oauth: {tokens: FILE}" in (caught.value.hint or "")
    finally:
        keyring.set_keyring(before)


def test_tokens_are_kept_in_the_keyring(guarded: tuple[str, Accounts]) -> None:
    import keyring  # noqa: PLC0415  # as above
    from keyring.backend import KeyringBackend  # noqa: PLC0415  # the same

    class Memory(KeyringBackend):
        priority = 1

        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]  # the same
            self.entries: dict[tuple[str, str], str] = {}

        def get_password(self, service: str, username: str) -> str | None:
            return self.entries.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            self.entries[service, username] = password

        def delete_password(self, service: str, username: str) -> None:
            del self.entries[service, username]

    before, memory = keyring.get_keyring(), Memory()
    keyring.set_keyring(memory)
    try:
        store = token_store(McpServer(name="shop", url=guarded[0], oauth=McpOAuth()))
        asyncio.run(store.save({"tokens": {"access_token": "a"}}))
        [(service, entry)] = memory.entries
        assert service == "taoloop-mcp"
        assert entry.startswith("shop-")
        assert asyncio.run(store.load()) == {"tokens": {"access_token": "a"}}
        asyncio.run(store.save({}))
        assert not memory.entries
        memory.entries[service, entry] = "broken"
        assert not asyncio.run(store.forget())
        assert not memory.entries
    finally:
        keyring.set_keyring(before)
