"""Tools that are loaded when they are first needed: an API, a server, a database, a folder that a file names."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, NamedTuple

from taoloop.core.redaction.redactor import Redactor
from taoloop.errors import AgentFileError, ConfigError, MissingExtra, TaoError, ToolDefinitionError, ToolSourceError
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import LoadProblem, LoadResult, ToolFolder

_LOG = logging.getLogger("taoloop")
_AT_ONCE = 8  # sources that are loaded at the same time: most of them wait for a server


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLocation:
    """Where a file names a source of tools."""

    path: Path
    """The file."""

    line: int
    """The line of the field, counted from 1; 0 where it is not known."""

    field: str
    """The field, such as `tools[2].mcp`; empty for the whole file."""

    @property
    def file_line(self) -> str:
        """The name of the file, with the line where it is known."""
        return f"{self.path.name}:{self.line}" if self.line else self.path.name

    def error(self, message: str, *, hint: str) -> AgentFileError:
        """An error about this field."""
        text = f"{self.field}: {message}" if self.field else message
        return AgentFileError(text, path=str(self.path), line=self.line, field=self.field, hint=hint)

    def without_tools(self, message: str, *, hint: str) -> LoadResult:
        """No tool, and the problem that this field has."""
        problem = LoadProblem(source=self.file_line, place=self.field, message=message, hint=hint)
        return LoadResult(problems=(problem,))


class ToolSource:
    """One source of tools, in its place among an agent's tools. It is loaded once, when it is first used.

    Args:
        location: Where a file names it.
        load: Loads its tools.
        secrets: The values of the environment that it uses, by name.
        given_as: The tool file or `module:attribute` that a command line named, so that a run can be resumed without
            naming it again.
        settings: The settings that it is loaded with.
        on_close: Ends connections and processes of its tools; they open them again when they are called again.
    """

    def __init__(
        self,
        location: SourceLocation,
        load: Callable[[], LoadResult],
        *,
        secrets: Mapping[str, str],
        given_as: str = "",
        settings: Any = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self.location, self.secrets, self.given_as = location, secrets, given_as
        self.settings = settings
        self._load, self._on_close, self._lock = load, on_close, Lock()
        self._loaded: LoadResult | None = None
        self._unreported: tuple[LoadProblem, ...] = ()
        self._clean = Redactor(secrets, patterns=False).text

    @property
    def where(self) -> str:
        """The file, the line and the field."""
        return f"{self._line}: {self.location.field}"

    @property
    def _line(self) -> str:
        return self.location.file_line

    def loaded(self) -> LoadResult:
        """The tools, and the problems of those that cannot be used. A source that cannot be loaded is one problem.

        Raises:
            AgentFileError: its entry in the file is invalid; names file, line and field.
        """
        with self._lock:
            if self._loaded is None:
                self._loaded = self._cleaned(self._try())
                self._unreported = self._loaded.problems
            return self._loaded

    @property
    def is_loaded(self) -> bool:
        """Whether its tools are known already."""
        return self._loaded is not None

    def take_problems(self) -> tuple[LoadProblem, ...]:
        """The problems that were not taken yet; each is returned once."""
        self.loaded()
        with self._lock:
            problems, self._unreported = self._unreported, ()
            return problems

    def close(self) -> None:
        """End connections and processes, even those in use. Harmless if there are none, or twice."""
        if self._loaded is not None and self._on_close is not None:
            self._on_close()

    def _try(self) -> LoadResult:
        try:
            return _load_in_thread(self._load)
        except AgentFileError:
            raise
        except TaoError as error:
            if isinstance(error, ConfigError) and not isinstance(error, ToolSourceError | MissingExtra):
                raise self.location.error(self._clean(error.message), hint=self._clean(error.hint)) from None
            return self.location.without_tools(error.message, hint=error.hint)
        except Exception as error:  # noqa: BLE001  # one source must not fail the others
            _LOG.debug("%s", self.where, exc_info=True)
            return self.location.without_tools(f"it cannot be loaded: {type(error).__name__}: {error}", hint="")

    def _cleaned(self, loaded: LoadResult) -> LoadResult:
        """The result without secrets in its problems, which get the line of the file that names the source.

        The tools know the secrets of their source, so that their runs do.
        """
        tools, problems = loaded.tools, []
        if self.secrets:
            tools = tuple(replace(tool, secrets={**self.secrets, **tool.secrets}) for tool in tools)
        for problem in loaded.problems:
            source = problem.source if problem.source == self._line else f"{self._line}: {problem.source}"
            texts = {"source": source, "place": problem.place, "message": problem.message, "hint": problem.hint}
            problems.append(LoadProblem(**{name: self._clean(text) for name, text in texts.items()}))
        return LoadResult(tools=tools, problems=tuple(problems))


class LoadedEntries(NamedTuple):
    """What became of an agent's tools."""

    tools: list[Any]
    """The tools, with those of each source in its place; built-in ones by name."""
    problems: tuple[LoadProblem, ...]
    """What the sources could not give."""


def sources_in(tools: Any) -> tuple[ToolSource, ...]:
    """The sources among an agent's tools; none if `tools` is not a list."""
    return tuple(tool for tool in tools if isinstance(tool, ToolSource)) if isinstance(tools, Iterable) else ()


def load_concurrently(sources: Iterable[ToolSource]) -> None:
    """Load the sources that are not loaded yet, several at a time, because most of them wait for a server.

    Raises:
        AgentFileError: the entry of one of them is invalid; of several, the first in their order.
    """
    waiting = deque(enumerate(source for source in dict.fromkeys(sources) if not source.is_loaded))
    awaited = len(waiting)
    if awaited < 2:  # its user loads it
        return
    done: SimpleQueue[tuple[int, BaseException | None]] = SimpleQueue()

    def work() -> None:
        with suppress(IndexError):  # no source is left
            while True:
                number, source = waiting.popleft()
                try:
                    source.loaded()
                except BaseException as error:  # noqa: BLE001  # raised again below
                    done.put((number, error))
                else:
                    done.put((number, None))

    for _ in range(min(awaited, _AT_ONCE)):  # daemons: Ctrl-C does not wait for a server that does not answer
        Thread(target=contextvars.copy_context().run, args=(work,), name="taoloop-tools", daemon=True).start()
    try:
        outcomes = sorted((done.get() for _ in range(awaited)), key=itemgetter(0))
    finally:
        waiting.clear()
    for _, error in outcomes:
        if error is not None:
            raise error


def resolve_sources(entries: Any) -> LoadedEntries:
    """An agent's tools, with the tools of each source in its place, and the problems, which are also logged.

    Raises:
        ConfigError: the tools are not a list.
        AgentFileError: the entry of a source is invalid.
        ToolSourceError: a folder that was given in place of tools cannot be read.
        ToolDefinitionError: two tools have the same name and one comes from a source; names both.
    """
    if isinstance(entries, str) or not isinstance(entries, Iterable):
        raise ConfigError(f"The agent's tools are {entries!r}.", hint="Give a list of tools.")
    entries = list(entries)
    load_concurrently(sources_in(entries))
    tools: list[Any] = []
    problems: list[LoadProblem] = []
    names: list[tuple[str, str]] = []
    for entry in entries:
        loaded, unreported = _loaded_entry(entry)
        problems += loaded.problems
        for problem in unreported:
            _LOG.warning("%s", problem)
        is_source = isinstance(entry, ToolSource | ToolFolder)
        tools += loaded.tools if is_source else (entry,)
        names += _names_with_origins(entry, loaded.tools)
    if any(isinstance(entry, ToolSource | ToolFolder) for entry in entries):
        merge_origins({}, names)
    return LoadedEntries(tools, tuple(problems))


def _loaded_entry(entry: Any) -> tuple[LoadResult, tuple[LoadProblem, ...]]:
    """What an entry of an agent's tools gave, and the problems that nobody has reported yet."""
    if isinstance(entry, ToolSource):
        return entry.loaded(), entry.take_problems()
    if isinstance(entry, ToolFolder):
        loaded = entry.load_tools()
        return loaded, loaded.problems
    return LoadResult(), ()


def merge_origins(origins: Mapping[str, str], additions: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The origin of each tool by name, with more of them, given as pairs of name and origin.

    Raises:
        ToolDefinitionError: two tools have the same name; names both origins.
    """
    merged = dict(origins)
    for name, origin in additions:
        if name in merged:
            raise ToolDefinitionError(
                f"Two tools are called {name!r}: that of {merged[name]}, and that of {origin}.",
                hint="Remove one of the two, or give its source another `name`, the prefix of its tools' names.",
            )
        merged[name] = origin
    return merged


def _names_with_origins(entry: Any, loaded: Iterable[Tool]) -> Iterable[tuple[str, str]]:
    if isinstance(entry, ToolSource):
        yield from ((tool.name, entry.where) for tool in loaded)
    elif isinstance(entry, ToolFolder):
        yield from ((tool.name, f"the folder {entry.folder}") for tool in loaded)
    elif isinstance(entry, str):
        yield entry, "the built-in tools"
    elif isinstance(entry, Tool):
        yield entry.name, "this agent's own tools"


def _load_in_thread(load: Callable[[], LoadResult]) -> LoadResult:
    """Load in another thread if this one runs a loop: a loader blocks, and may run a loop itself."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return load()
    with ThreadPoolExecutor(1, thread_name_prefix="taoloop-tools") as pool:
        return pool.submit(contextvars.copy_context().run, load).result()
