"""What an agent closes: what it owns, and nothing that the program keeps."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from taoloop import Agent, ScriptedModel, SqliteJournal
from taoloop.errors import ConfigError


class Client:
    """A connection, closed in one of three ways."""

    def __init__(self, name: str, log: list[str]) -> None:
        self._name, self._log = name, log

    def close(self) -> None:
        self._log.append(self._name)


class AsyncClient(Client):
    """One whose `close` is sync and shuts nothing: `aclose` does."""

    async def aclose(self) -> None:
        self._log.append(f"{self._name} async")


class Broken(Client):
    """One that fails."""

    def close(self) -> None:
        raise OSError("gone")


def test_an_agent_closes_what_it_owns_the_last_one_first() -> None:
    log: list[str] = []

    async def work() -> None:
        owned = [Client("a", log), AsyncClient("b", log)]
        async with Agent(model=ScriptedModel(["Rome."]), owns=owned) as agent:
            assert (await agent.run("Where?")).answer == "Rome."
            assert log == []

    asyncio.run(work())
    assert log == ["b async", "a"]


def test_a_journal_of_the_program_stays_open_and_an_owned_one_does_not(tmp_path: Path) -> None:
    async def work() -> None:
        kept, owned = SqliteJournal(tmp_path / "a.db"), SqliteJournal(tmp_path / "b.db")
        async with Agent(model=ScriptedModel(["Rome."]), journal=kept) as agent:
            await agent.run("Where?", run_id="r1")
        assert await kept.load("r1")
        await kept.close()
        async with Agent(model=ScriptedModel(["Rome."]), journal=owned, owns=[owned]) as agent:
            await agent.run("Where?", run_id="r1")

    asyncio.run(work())
    assert not (tmp_path / "b.db-wal").exists(), "it was closed"


def test_run_sync_closes_nothing_that_the_next_run_needs() -> None:
    log: list[str] = []
    agent = Agent(model=ScriptedModel(["Rome."]), owns=[Client("a", log)])
    agent.run_sync("Where?")
    assert log == []


def test_everything_is_closed_whatever_one_of_them_raises() -> None:
    log: list[str] = []
    agent = Agent(model=ScriptedModel(["Rome."]), owns=[Client("a", log), Broken("b", log), Client("c", log)])
    with pytest.raises(OSError, match="gone"):
        asyncio.run(agent.close())
    assert log == ["c", "a"]


def test_what_cannot_be_closed_is_named() -> None:
    with pytest.raises(ConfigError, match="The agent owns a int, which cannot be closed") as caught:
        asyncio.run(Agent(model=ScriptedModel(["Rome."]), owns=[3]).close())
    assert "aclose()" in caught.value.hint


def test_an_agent_prints_as_one_short_line_without_its_secrets() -> None:
    agent = Agent(model="offline", name="shop", tools=["calculator"], secrets={"k": "sk-secret"})
    assert repr(agent) == "<Agent 'shop': offline, 1 tool>"
    assert repr(Agent()) == "<Agent 'agent': default model, 0 tools>"
    assert repr(Agent(model=ScriptedModel(["a"]))) == "<Agent 'agent': scripted, 0 tools>"
