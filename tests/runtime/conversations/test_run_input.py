"""What a caller gives a run: refused before anything is stored, or stored so that it can be read again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.pictures import png

from taoloop import Agent, Image, MemoryJournal, ScriptedModel, SqliteJournal, tool
from taoloop.core.message import Message, ToolCallText
from taoloop.errors import ConfigError, RunExists, UnknownName


@tool(tier="read")
def look() -> str:
    """Look."""
    return "nothing"


def agent(journal: Any = None) -> Agent:
    return Agent(model=ScriptedModel(["Hi."]), tools=[look], journal=journal or MemoryJournal())


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(
            (name, value)
            for name in ("run_id", "after", "parent")
            for value in (5, "", " a", "a\nb", "\ud800", "x" * 201)
        ),
        *((name, value) for name in ("user", "started_by", "session") for value in (5, ["ann"], "a\0", "\ud800")),
        ("allow", "look"),
        ("allow", [5]),
        ("allow", {"look": 1}),
        ("lessons_from", "run"),
        ("limits", {"max_steps": 3}),
        ("max_steps", "3"),
        ("on_event", 5),
        ("on_delta", "print"),
        ("images", 5),
        ("images", [5]),
        ("history", None),
    ],
)
def test_an_option_of_the_wrong_kind_is_refused_before_anything_is_stored(option: str, value: Any) -> None:
    journal = MemoryJournal()
    with pytest.raises(ConfigError) as caught:
        agent(journal).run_sync("Go.", **{option: value})
    assert caught.value.hint
    assert option.removeprefix("max_").rstrip("s") in caught.value.message.lower()
    assert asyncio.run(journal.runs()) == []


@pytest.mark.parametrize("task", [5, None, "", b"Go.", [], [Image(png())]])
def test_a_task_that_is_no_text_is_refused(task: Any) -> None:
    with pytest.raises(ConfigError, match="The task is"):
        agent().run_sync(task)


def test_an_unknown_tool_is_named_with_those_that_there_are() -> None:
    with pytest.raises(UnknownName, match="look"):
        agent().run_sync("Go.", allow=["lok"])


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_second_run_of_one_id_is_refused_and_the_first_one_stays(kind: str, tmp_path: Path) -> None:
    journal = MemoryJournal() if kind == "memory" else SqliteJournal(tmp_path / "runs.db")

    async def work() -> str:
        first = await agent(journal).run("one", run_id="mine")
        with pytest.raises(RunExists, match="'mine'"):
            await agent(journal).run("two", run_id="mine")
        assert (await journal.verify("mine")).whole
        [row] = await journal.runs()
        await journal.close()
        return f"{row.task} {first.answer}"

    assert asyncio.run(work()) == "one Hi."


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=20), st.lists(st.text(max_size=3), max_size=2)
)
PARTS = st.fixed_dictionaries({"type": st.sampled_from(["text", "refusal", "image_url"]), "text": VALUES})
CALLS = st.fixed_dictionaries(
    {
        "id": VALUES,
        "function": st.fixed_dictionaries(
            {"name": VALUES, "arguments": VALUES | st.dictionaries(VALUES.filter(bool).map(str), VALUES)}
        ),
    }
)
MESSAGES = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "tool", "system"]) | VALUES,
        "content": VALUES | st.text() | st.lists(PARTS, max_size=2),
    },
    optional={"tool_calls": st.lists(CALLS, max_size=2) | VALUES, "tool_call_id": VALUES, "name": VALUES},
) | st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "tool"]) | VALUES,
    content=st.text() | VALUES,
    tool_calls=st.lists(st.builds(ToolCallText, name=VALUES, arguments=VALUES, id=VALUES), max_size=2).map(tuple),
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "history": VALUES | st.lists(MESSAGES, max_size=3),
        "user": VALUES,
        "started_by": VALUES,
        "session": VALUES,
        "run_id": VALUES,
        "parent": VALUES,
        "allow": VALUES,
    },
)


USUAL = st.fixed_dictionaries(
    {},
    optional={
        "history": st.lists(
            st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": st.text(min_size=1)}),
            max_size=3,
        ),
        "user": st.text(max_size=9),
        "session": st.text(max_size=9),
    },
)


def check_storing(path: Path, task: Any, options: dict[str, Any]) -> None:
    async def work() -> None:
        journal = SqliteJournal(path)
        before = len(await journal.runs(limit=1000))
        try:
            result = await agent(journal).run(task, **options)
        except (ConfigError, RunExists):
            assert len(await journal.runs(limit=1000)) == before
        else:
            report = await journal.verify(result.run_id)
            assert report.whole, report.flaws
            stored = await journal.load(result.run_id)
            assert stored[0].fact == result.trace.events[0].fact
        await journal.close()

    asyncio.run(work())


FEW = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))


@FEW
@given(task=st.text(), options=OPTIONS | USUAL)
def test_what_is_accepted_can_be_stored_and_read_again(tmp_path: Path, task: Any, options: dict[str, Any]) -> None:
    check_storing(tmp_path / "runs.db", task, options)


@pytest.mark.nightly
@MANY
@given(task=VALUES | st.text(), options=OPTIONS | USUAL)
def test_what_is_accepted_can_be_stored_in_many_cases(tmp_path: Path, task: Any, options: dict[str, Any]) -> None:
    check_storing(tmp_path / "runs.db", task, options)
