"""Sessions: conversations with ids, in any process, of several users."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent, MemoryJournal, Result, ScriptedModel, SqliteJournal, tool
from taoloop.errors import ConfigError, RunExists, RunNotAnswered
from taoloop.journals.base import Journal
from taoloop.runtime.conversations.sessions import session_error, session_state


@tool(tier="write")
def order(item: str) -> str:
    """Order an item."""
    return f"ordered {item}"


ORDER = {"tool_calls": [{"name": "order", "args": {"item": "green tea"}}]}


def agent(journal: Journal | str, *replies: Any, **options: Any) -> Agent:
    return Agent(model=ScriptedModel(list(replies) or ["I see."], strict=False), journal=journal, **options)


def seen(result: Result) -> list[str]:
    assert result.trace.started is not None
    return [message.content for message in result.trace.started.history]


def test_a_session_goes_on_in_another_process(tmp_path: Path) -> None:
    """Nothing but the file connects the two."""
    path = str(tmp_path / "runs.db")
    agent(path).chat(session="order 7", user="ann").run_sync("I am Ann.")
    result = agent(path).chat(session="order 7", user="ann").run_sync("Who am I?")
    assert seen(result) == ["I am Ann.", "I see."]
    assert result.trace.started is not None
    assert result.trace.started.labels == {"user": "ann", "session": "order 7"}


def test_users_do_not_see_each_others_sessions() -> None:
    journal = MemoryJournal()
    agent(journal).chat(session="s", user="ann").run_sync("I am Ann.")
    assert seen(agent(journal).chat(session="s", user="bob").run_sync("Who am I?")) == []
    assert seen(agent(journal).chat(session="s").run_sync("Who am I?")) == []
    assert seen(agent(journal).run_sync("Who am I?", session="s", user="ann")) == ["I am Ann.", "I see."]


def test_the_border_between_user_and_session_is_part_of_the_id() -> None:
    """Else `ann` with the session `as` had the turns of `anna` with `s`."""
    journal = MemoryJournal()
    agent(journal).run_sync("I am Ann.", session="as", user="ann")
    assert seen(agent(journal).run_sync("Who am I?", session="s", user="anna")) == []


def test_an_open_turn_is_resumed_by_another_chat_of_the_session() -> None:
    journal = MemoryJournal()
    waiting = agent(journal, ORDER, tools=[order]).chat(session="s").run_sync("Order tea.")
    other = agent(journal, ORDER, "Ordered.", tools=[order]).chat(session="s")
    with pytest.raises(RunNotAnswered, match=waiting.run_id):
        other.run_sync("And coffee.")
    with pytest.raises(RunNotAnswered, match="session 's'"):
        agent(journal).run_sync("And coffee.", session="s")
    assert other.resume_sync(approved_tiers=("write",)).answer == "Ordered."
    assert seen(agent(journal).run_sync("Thanks.", session="s")) == ["Order tea.", "Ordered."]


def test_a_turn_that_failed_is_left_out_of_the_session() -> None:
    journal = MemoryJournal()
    agent(journal).run_sync("one", session="s")
    assert Agent(model=ScriptedModel([]), journal=journal).run_sync("two", session="s").status == "model_failed"
    third = agent(journal).run_sync("three", session="s")
    assert (seen(third), third.run_id[-4:]) == (["one", "I see."], "0003")


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_of_two_turns_at_the_same_moment_one_is_taken(kind: str, tmp_path: Path) -> None:
    """Both have looked the session up before either began: the journal takes one, and the other may be sent again."""

    async def work() -> list[Any]:
        journal = MemoryJournal() if kind == "memory" else SqliteJournal(tmp_path / "runs.db")
        state = await session_state(journal, "s", "")
        first = await agent(journal).run("one", session="s", run_id=state.next_id)
        with pytest.raises(RunExists, match="Another turn of the session 's'"), session_error("s"):
            await journal.create(state.next_id)
        after = await session_state(journal, "s", "")
        await journal.close()
        return [first.run_id, after.after]

    first, after = asyncio.run(work())
    assert first == after


def test_concurrent_turns_of_one_session_end_with_one_answer_each_or_a_clear_error() -> None:
    async def work() -> list[Any]:
        journal = MemoryJournal()
        turns = (agent(journal).run(text, session="s") for text in ("one", "two", "three"))
        ended: list[Any] = await asyncio.gather(*turns, return_exceptions=True)
        return ended

    ended = asyncio.run(work())
    assert any(isinstance(result, Result) for result in ended)
    assert all(isinstance(result, Result | RunExists | RunNotAnswered) for result in ended)


@pytest.mark.parametrize("options", [{"session": 5}, {"session": " s"}, {"session": "s", "user": 5}, {"user": "a\nb"}])
def test_an_id_that_is_none_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"session|user"):
        agent(MemoryJournal()).chat(**options)
    with pytest.raises(ConfigError, match=r"session|user"):
        agent(MemoryJournal()).run_sync("one", **options)


def test_a_session_has_the_ids_of_its_turns() -> None:
    one = agent(MemoryJournal())
    with pytest.raises(ConfigError, match="Leave `run_id` out"):
        one.run_sync("one", session="s", run_id="mine")
    with pytest.raises(ConfigError, match="more than one"):
        one.run_sync("one", session="s", after="mine")
    with pytest.raises(ConfigError, match="`after` and `session`"):
        one.chat("mine", session="s")
