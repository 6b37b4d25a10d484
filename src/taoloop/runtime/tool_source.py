"""Tools that are loaded when they are first needed: an API, a server, a database, a folder that a file names."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from taoloop.core.redaction.redactor import Redactor
from taoloop.errors import AgentFileError, ConfigError, MissingExtra, TaoError, ToolDefinitionError, ToolSourceError
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import LoadProblem, LoadResult

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

    def error(self, message: str, *, hint: str) -> AgentFileError:
        """A complaint about this field."""
        text = f"{self.field}: {message}" if self.field else message
        return AgentFileError(text, path=str(self.path), line=self.line, field=self.field, hint=hint)


class ToolSource:
    """One source of tools; it stands among an agent's tools in their place. It is loaded once, at its first use.

    `where` says where it is named (`tools.yaml:7: tools[2].mcp`), `secrets` which values of the environment it uses.
    `given_as` is the tool file, or the module:attribute, that a command line named, so that a run can be resumed
    without naming it again.
    `settings` are what it is loaded by. `let_go` ends what its tools hold open in this process; they open it again
    where they are called again.
    """

    def __init__(
        self,
        location: SourceLocation,
        load: Callable[[], LoadResult],
        *,
        secrets: Mapping[str, str],
        given_as: str = "",
        settings: Any = None,
        let_go: Callable[[], None] | None = None,
    ) -> None:
        self.location, self.secrets, self.given_as = location, secrets, given_as
        self.settings = settings
        self._load, self._let_go, self._lock = load, let_go, Lock()
        self._loaded: LoadResult | None = None
        self._untold: tuple[LoadProblem, ...] = ()
        self._clean = Redactor(secrets, patterns=False).text

    @property
    def where(self) -> str:
        """The file, the line and the field."""
        return f"{self._line}: {self.location.field}"

    @property
    def _line(self) -> str:
        return f"{self.location.path.name}:{self.location.line}"

    def loaded(self) -> LoadResult:
        """The tools, and what was wrong with the others. A source that cannot be loaded at all is one problem.

        Raises:
            AgentFileError: what the file says of it cannot be; names file, line and field.
        """
        with self._lock:
            if self._loaded is None:
                self._loaded = self._cleaned(self._try())
                self._untold = self._loaded.problems
            return self._loaded

    @property
    def is_loaded(self) -> bool:
        """Whether its tools are known already."""
        return self._loaded is not None

    def untold(self) -> tuple[LoadProblem, ...]:
        """The problems that nobody asked for yet; each is given once."""
        self.loaded()
        with self._lock:
            told, self._untold = self._untold, ()
            return told

    def close(self) -> None:
        """Let go of connections and processes, whoever uses them. Harmless where there are none, and again."""
        if self._loaded is not None and self._let_go is not None:
            self._let_go()

    def _try(self) -> LoadResult:
        try:
            return _apart(self._load)
        except AgentFileError:
            raise
        except (ToolSourceError, MissingExtra) as error:
            return self._failed(error.message, error.hint)
        except ConfigError as error:
            raise self.location.error(self._clean(error.message), hint=self._clean(error.hint)) from None
        except TaoError as error:
            return self._failed(error.message, error.hint)
        except Exception as error:  # noqa: BLE001  # one source must not take the others with it
            _LOG.debug("%s", self.where, exc_info=True)
            return self._failed(f"it cannot be loaded: {type(error).__name__}: {error}", "")

    def _failed(self, message: str, hint: str) -> LoadResult:
        return LoadResult(
            problems=(LoadProblem(source=self._line, place=self.location.field, message=message, hint=hint),)
        )

    def _cleaned(self, loaded: LoadResult) -> LoadResult:
        """Without secrets in what is told, and with the line of the file that names the source.

        The tools know the secrets of their source, so that their runs do.
        """
        return LoadResult(
            tools=tuple(
                replace(one, secrets={**self.secrets, **one.secrets}) if self.secrets else one for one in loaded.tools
            ),
            problems=tuple(
                LoadProblem(
                    source=self._clean(one.source if one.source == self._line else f"{self._line}: {one.source}"),
                    place=self._clean(one.place),
                    message=self._clean(one.message),
                    hint=self._clean(one.hint),
                )
                for one in loaded.problems
            ),
        )


def sources_in(tools: Any) -> tuple[ToolSource, ...]:
    """The sources among an agent's tools; none in what is no list of tools."""
    return tuple(one for one in tools if isinstance(one, ToolSource)) if isinstance(tools, Iterable) else ()


def load_concurrently(sources: Iterable[ToolSource]) -> None:
    """Load sources that are not loaded yet, several at a time, for most of them wait for somebody else.

    Raises:
        AgentFileError: one of them cannot be as the file says; of several, the first in their order.
    """
    waiting = deque(enumerate(one for one in dict.fromkeys(sources) if not one.is_loaded))
    awaited = len(waiting)
    if awaited < 2:  # whoever needs the one loads it
        return
    done: SimpleQueue[tuple[int, BaseException | None]] = SimpleQueue()

    def work() -> None:
        while waiting:
            try:
                number, source = waiting.popleft()
            except IndexError:  # another thread took it
                return
            try:
                source.loaded()
            except BaseException as error:  # noqa: BLE001  # raised again below
                done.put((number, error))
            else:
                done.put((number, None))

    for _ in range(min(awaited, _AT_ONCE)):  # daemons: Ctrl-C does not wait for a server that does not answer
        Thread(target=contextvars.copy_context().run, args=(work,), name="taoloop-tools", daemon=True).start()
    try:
        outcomes = sorted((done.get() for _ in range(awaited)), key=lambda one: one[0])
    finally:
        waiting.clear()
    for _, error in outcomes:
        if error is not None:
            raise error


def resolve_sources(entries: Iterable[Any]) -> list[Any]:
    """An agent's tools with the tools of each source in its place; its problems go into the log.

    Raises:
        AgentFileError: a source cannot be as the file says.
        ToolDefinitionError: two tools have the same name and one comes from a source; names both.
    """
    entries = list(entries)
    load_concurrently(sources_in(entries))
    out: list[Any] = []
    for entry in entries:
        if not isinstance(entry, ToolSource):
            out.append(entry)
            continue
        out += entry.loaded().tools
        for problem in entry.untold():
            _LOG.warning("%s", problem)
    if any(isinstance(entry, ToolSource) for entry in entries):
        merge_origins({}, _named(entries))
    return out


def merge_origins(places: Mapping[str, str], named: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Where each tool comes from, with more of them, given as pairs of a name and a place.

    Raises:
        ToolDefinitionError: two have the same name; names both places.
    """
    seen = dict(places)
    for name, where in named:
        if name in seen:
            raise ToolDefinitionError(
                f"Two tools are called {name!r}: that of {seen[name]}, and that of {where}.",
                hint="Take one of the two out, or give its source another `name`, which goes before its tools' names.",
            )
        seen[name] = where
    return seen


def _named(entries: Iterable[Any]) -> Iterable[tuple[str, str]]:
    for entry in entries:
        if isinstance(entry, ToolSource):
            yield from ((tool.name, entry.where) for tool in entry.loaded().tools)
        elif isinstance(entry, str):
            yield entry, "the built-in tools"
        elif isinstance(entry, Tool):
            yield entry.name, "this agent's own tools"


def _apart(load: Callable[[], LoadResult]) -> LoadResult:
    """Load in a thread of its own where this one runs a loop: a loader waits, and may run a loop itself."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return load()
    with ThreadPoolExecutor(1, thread_name_prefix="taoloop-tools") as pool:
        return pool.submit(contextvars.copy_context().run, load).result()
