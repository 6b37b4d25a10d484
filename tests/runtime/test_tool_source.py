"""Sources of tools: several are loaded at the same time, in the order of the file all the same."""

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from taoloop.config.document import ConfigDocument
from taoloop.errors import AgentFileError, ConfigError
from taoloop.runtime.tool_source import ToolSource, load_concurrently, resolve_sources
from taoloop.tools.function import tool
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import LoadProblem, LoadResult

WAIT_S = 20  # only a failing test waits


def source(number: int, load: Callable[[], LoadResult]) -> ToolSource:
    place = ("tools", number)
    return ToolSource(ConfigDocument(Path("tools.yaml"), {}, {place: number + 1}).location(place), load, secrets={})


def offering(name: str, problem: str = "") -> LoadResult:
    @tool(name=name, tier="read")
    def one() -> str:
        """Give a word, always the same one."""
        return name

    assert isinstance(one, Tool)
    told = (LoadProblem(source=name, place="", message=problem),) if problem else ()
    return LoadResult(tools=(one,), problems=told)


def test_sources_wait_for_their_servers_together_and_keep_their_order(caplog: pytest.LogCaptureFixture) -> None:
    together = threading.Barrier(3)

    def waits(name: str) -> Callable[[], LoadResult]:
        def load() -> LoadResult:
            together.wait(WAIT_S)
            return offering(name, f"{name} is slow.")

        return load

    sources = [source(n, waits(name)) for n, name in enumerate("cab")]
    with caplog.at_level(logging.WARNING, "taoloop"):
        assert [one.name for one in resolve_sources(sources).tools] == ["c", "a", "b"]
    told = [record.getMessage() for record in caplog.records]
    assert told == [f"tools.yaml:{line}: {name}: {name} is slow." for line, name in enumerate("cab", 1)]


def test_within_an_event_loop_too() -> None:
    together = threading.Barrier(2)

    def load() -> LoadResult:
        asyncio.run(asyncio.sleep(0))  # a loader may run a loop of its own
        together.wait(WAIT_S)
        return LoadResult()

    async def expand() -> list[object]:
        return resolve_sources([source(0, load), source(1, load)]).tools

    assert asyncio.run(expand()) == []


def test_not_more_than_eight_are_loaded_at_the_same_time() -> None:
    lock, enough = threading.Lock(), threading.Barrier(8)
    at_work, most = 0, 0

    def load() -> LoadResult:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        enough.wait(WAIT_S)
        with lock:
            at_work -= 1
        return LoadResult()

    load_concurrently(source(n, load) for n in range(24))
    assert most == 8


def test_each_is_loaded_once() -> None:
    counted: list[int] = []

    def load() -> LoadResult:
        counted.append(1)
        return LoadResult()

    sources = [source(n, load) for n in range(4)]
    load_concurrently([*sources, *sources])
    load_concurrently(sources)
    resolve_sources(sources)
    assert len(counted) == 4


def test_of_several_that_cannot_be_the_first_of_the_file_is_told() -> None:
    last_is_through = threading.Event()

    def first() -> LoadResult:
        last_is_through.wait(WAIT_S)
        raise ConfigError("the first is wrong.")

    def last() -> LoadResult:
        try:
            raise ConfigError("the last is wrong.")
        finally:
            last_is_through.set()

    with pytest.raises(AgentFileError, match=r"tools\.yaml:1: tools\[0\]: the first is wrong"):
        load_concurrently([source(0, first), source(1, LoadResult), source(2, last)])
