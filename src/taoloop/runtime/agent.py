"""The agent as a user holds it: a description bound to a model, tools and a journal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from taoloop.core.cards import Tier
from taoloop.core.events import Event, Resumed, RunStarted
from taoloop.core.limits import Limits
from taoloop.core.message import Message
from taoloop.core.spec import AgentSpec
from taoloop.core.text import well_formed
from taoloop.core.trace import Trace
from taoloop.dialects import get_dialect
from taoloop.errors import ConfigError, RunNotResumable
from taoloop.journals.base import Journal
from taoloop.journals.memory import MemoryJournal
from taoloop.models.base import Model
from taoloop.models.resolve import resolve_model
from taoloop.models.scripted import Reply
from taoloop.prompts import load_prompts
from taoloop.runtime.approval import Approver
from taoloop.runtime.clock import Clock, SystemClock, new_nonce, new_run_id
from taoloop.runtime.result import Result
from taoloop.runtime.runner import Listener, Runner
from taoloop.runtime.sync import run_sync
from taoloop.runtime.verbose import verbose_listener
from taoloop.strategies import Strategy, get_strategy
from taoloop.tools.base import Tool
from taoloop.tools.registry import Toolbox

AUTO = "auto"

KEPT_IN_MEMORY = 256
"""How many runs an agent without a journal keeps, so that the last ones can be resumed."""


@dataclass(frozen=True, kw_only=True)
class Agent:
    """What an agent is: frozen, so that one agent can serve any number of runs, at once.

    `model` is a spec (`offline`, `openai:NAME`, `scripted:FILE` …), a `Model`, or a list of scripted replies; without
    one the environment decides, and without a configured provider the embedded offline model answers.
    `tools` are `@tool` functions, plain typed functions, or names of built-in tools; the file tools see only
    `workspace`. `dialect` None takes the one that suits the model. `language` auto follows the task.
    `max_steps` is short for `limits=Limits(max_steps=…)`.
    `journal` keeps the traces: a `Journal`, a path of an SQLite file, or None for memory (the last 256 runs, lost
    with the process).
    `approve` answers the policy's questions; without it such a run waits. `approved_tiers` are tiers whose calls
    the operator allows ahead of time.

    Raises:
        ConfigError: at the first run or at `spec`, when a name is unknown or a key is missing.
    """

    model: str | Model | Sequence[Reply] | None = None
    tools: Sequence[Tool | Callable[..., Any] | str] = ()
    name: str = "agent"
    instructions: str = ""
    dialect: str | None = None
    strategy: str | Strategy = "react"
    language: str = AUTO
    limits: Limits = Limits()
    max_steps: int | None = None
    approve: Approver | None = None
    approved_tiers: tuple[Tier, ...] = ()
    closing_turn: bool = True
    repair_turns: int = 1
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    model_timeout_s: float | None = 120.0
    workspace: str | Path | None = None
    prompts: str | Path | None = None
    journal: Journal | str | Path | None = None
    source: str | None = None
    clock: Clock = field(default_factory=SystemClock)
    env: Mapping[str, str] | None = None

    # Runs

    async def run(
        self,
        task: str,
        *,
        max_steps: int | None = None,
        limits: Limits | None = None,
        allow: Sequence[str] | None = None,
        history: Sequence[Message] = (),
        run_id: str | None = None,
        parent: str | None = None,
        verbose: bool = False,
        on_event: Listener | None = None,
    ) -> Result:
        """Run a task to its end, or until it must wait for a person.

        `max_steps` and `limits` replace the agent's own; `allow` names the only tools that this run may call (all
        of the agent's by default); `verbose` prints each step; `on_event` is called with every event once the
        journal has it. A cancellation ends the run as `stopped` and goes on to the caller.

        Raises:
            ConfigError: something about the agent is wrong; no run was started.
            JournalError: the journal cannot keep the trace.
            ScriptUnused: the run completed, but its scripted model has replies left.
        """
        if not _is_text(task):
            raise ConfigError(f"The task is {task!r}.", hint="Say in a text what the agent should do.")
        spec = self._limited(self.spec_for(task), limits, max_steps)
        if allow is not None:
            spec = replace(spec, tools=self.toolbox.allow([*allow, *self._paging]).cards)
        async with self._open_journal() as journal:
            now = self.clock.now()
            trace = Trace(run_id or new_run_id(now))
            lease = await journal.create(trace.run_id)
            runner = self._runner(trace, lease, journal, _listeners(verbose, on_event))
            runner.note(
                RunStarted(
                    task=well_formed(task),
                    agent=spec,
                    nonce=new_nonce(),
                    history=tuple(history),
                    parent=parent,
                )
            )
            return await self._finish(runner)

    async def resume(
        self,
        run_id: str,
        *,
        max_steps: int | None = None,
        limits: Limits | None = None,
        approved_tiers: tuple[Tier, ...] | None = None,
        verbose: bool = False,
        on_event: Listener | None = None,
    ) -> Result:
        """Go on with a run that was stopped, reached a limit, waits for a person, or lost its process.

        The run keeps its own description (prompts, dialect, cards); model, tool functions and approver are this
        agent's.

        Raises:
            RunNotFound: the journal has no such run.
            RunNotResumable: it completed.
            UnknownName: this agent lacks a tool of the run.
            ConfigError: a tool of the run has a stricter tier now.
        """
        async with self._open_journal() as journal:
            self._require_resumable(Trace(run_id, await journal.load(run_id)))
            lease = await journal.acquire(run_id)  # from here on no other worker can write
            trace = Trace(run_id, await journal.load(run_id))
            limited = self._limited(replace(trace.agent, limits=trace.limits), limits, max_steps).limits
            runner = self._runner(trace, lease, journal, _listeners(verbose, on_event))
            runner.note(Resumed(limits=limited, approved_tiers=approved_tiers))
            return await self._finish(runner)

    def _require_resumable(self, trace: Trace) -> None:
        """Refuse before the run is taken from whoever may hold it."""
        if trace.started is None:
            raise RunNotResumable(f"Run {trace.run_id} never began.", hint="Start a new run.")
        if trace.status == "completed":
            raise RunNotResumable(f"Run {trace.run_id} is completed.", hint="Start a new run.")
        for card in trace.agent.tools:
            now = self.toolbox.get(card.name).card.tier
            if _RANK[now] > _RANK[card.tier]:
                raise ConfigError(
                    f"The tool {card.name!r} had the tier {card.tier!r} when the run began and has {now!r} now.",
                    hint="What was judged for the milder tier must not run under the stricter one: start a new run.",
                )

    def run_sync(self, task: str, **options: Any) -> Result:
        """`run` for code that is not async; works inside a running loop too (a notebook), in a thread of its own."""
        return run_sync(lambda: self._in_own_loop(self.run(task, **options)))

    def resume_sync(self, run_id: str, **options: Any) -> Result:
        """`resume` for code that is not async."""
        return run_sync(lambda: self._in_own_loop(self.resume(run_id, **options)))

    async def stream(self, task: str, **options: Any) -> AsyncIterator[Event]:
        """The events of a run as they happen; the last one is `finished`, or `paused` where the run waits.

        Leaving the iteration early stops the run.
        """
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        running = asyncio.create_task(self.run(task, on_event=queue.put_nowait, **options))
        running.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            if not running.done():
                running.cancel()
                with suppress(asyncio.CancelledError):
                    await running
        running.result()

    # What the agent is made of

    def spec_for(self, task: str) -> AgentSpec:
        """The agent as plain data, in the language of `task`.

        Raises:
            ConfigError: a name is unknown, a prompt file is unusable.
        """
        return self._specs(self.language if self.language != AUTO else _language_of(task))

    @cached_property
    def toolbox(self) -> Toolbox:
        """The tools of this agent by name, with `read_observation` beside them for long outputs."""
        builtin: Mapping[str, Tool] | None = None
        tools: list[Tool | Callable[..., Any]] = []
        if isinstance(self.tools, str) or not isinstance(self.tools, Iterable):
            raise ConfigError(f"The agent's tools are {self.tools!r}.", hint="Give a list of tools.")
        for entry in self.tools:
            if isinstance(entry, str):
                if builtin is None:
                    builtin = self._builtin()
                tools.append(Toolbox(builtin.values()).get(entry))
            else:
                tools.append(entry)
        box = Toolbox(tools)
        if tools and PAGING_TOOL not in box:
            from taoloop.tools.paging import read_observation  # noqa: PLC0415  # loads the schema machinery

            box = Toolbox([*box, read_observation])
        return box

    @property
    def _paging(self) -> tuple[str, ...]:
        """The tool that goes with every other: it reads what an observation of this run had to leave out."""
        return (PAGING_TOOL,) if PAGING_TOOL in self.toolbox else ()

    @cached_property
    def bound_model(self) -> Model:
        """The model that answers."""
        model = self.model
        if model is None or isinstance(model, str):
            return resolve_model(model, self.env)
        if isinstance(model, list | tuple):
            from taoloop.models.scripted import ScriptedModel  # noqa: PLC0415  # only where a script is given

            return ScriptedModel(model)
        if not callable(getattr(model, "complete", None)):
            raise ConfigError(
                f"{model!r} is no model.", hint="Give a spec such as 'offline', a list of replies, or a Model."
            )
        return cast("Model", model)

    @cached_property
    def bound_strategy(self) -> Strategy:
        """The strategy that decides what comes next."""
        return get_strategy(self.strategy) if isinstance(self.strategy, str) else self.strategy

    async def _in_own_loop(self, running: Coroutine[Any, Any, Result]) -> Result:
        """Let go of the model's connections, which belong to this loop, before the loop ends."""
        try:
            return await running
        finally:
            if "bound_model" in self.__dict__ and self.bound_model is not self.model:
                await self.bound_model.close()

    def _builtin(self) -> Mapping[str, Tool]:
        from taoloop.tools.builtin import builtin_tools  # noqa: PLC0415  # only where a tool is named
        from taoloop.tools.workspace import Workspace  # noqa: PLC0415  # likewise

        return builtin_tools(Workspace(self.workspace, create=True).open() if self.workspace is not None else None)

    @cached_property
    def _spec_cache(self) -> dict[str, AgentSpec]:
        return {}

    def _specs(self, language: str) -> AgentSpec:
        if (spec := self._spec_cache.get(language)) is None:
            spec = self._spec_cache[language] = self._spec(language)
        return spec

    def _spec(self, language: str) -> AgentSpec:
        dialect = get_dialect(self.dialect or self.bound_model.dialect)
        prompts = load_prompts(language, Path(self.prompts) if self.prompts is not None else None)
        return AgentSpec(
            name=self.name,
            model=self.bound_model.spec,
            dialect=dialect.name,
            strategy=self.bound_strategy.name,
            language=language,
            instructions=self.instructions,
            tools=self.toolbox.cards,
            limits=self.limits if self.max_steps is None else replace(self.limits, max_steps=self.max_steps),
            prompts=prompts.narrowed(dialect.name, self.bound_strategy.name),
            approved_tiers=_as_tuple(self.approved_tiers),
            closing_turn=self.closing_turn,
            repair_turns=self.repair_turns,
            temperature=self.temperature,
            top_p=self.top_p,
            max_output_tokens=self.max_output_tokens,
            model_timeout_s=self.model_timeout_s,
            source=self.source,
            workspace=str(self.workspace) if self.workspace is not None else None,
        )

    @property
    def _memory(self) -> MemoryJournal:
        """One for all threads: `setdefault` is atomic, where a `cached_property` may make several."""
        journal: MemoryJournal = self.__dict__.setdefault("_memory", MemoryJournal(keep=KEPT_IN_MEMORY))
        return journal

    @asynccontextmanager
    async def _open_journal(self) -> AsyncIterator[Journal]:
        if self.journal is None:
            yield self._memory
        elif isinstance(self.journal, str | Path):
            from taoloop.runtime.journals import JOURNALS  # noqa: PLC0415  # only where a file is named

            async with JOURNALS.use(self.journal) as journal:
                yield journal
        else:
            yield self.journal

    def _runner(self, trace: Trace, lease: Any, journal: Journal, listener: Listener | None) -> Runner:
        return Runner(
            trace,
            lease,
            journal=journal,
            strategy=self._strategy_of(trace),
            model=self.bound_model,
            toolbox=self.toolbox,
            clock=self.clock,
            approver=self.approve,
            listener=listener,
        )

    def _strategy_of(self, trace: Trace) -> Strategy:
        """The strategy that the run began with; this agent's own may be one that is not registered."""
        own = self.bound_strategy
        return own if trace.started is None or trace.agent.strategy == own.name else get_strategy(trace.agent.strategy)

    async def _finish(self, runner: Runner) -> Result:
        await runner.advance()
        result = Result.of(runner.trace)
        if result.status == "completed":
            self.bound_model.check_used(runner.trace.model_calls)
        return result

    @staticmethod
    def _limited(spec: AgentSpec, limits: Limits | None, max_steps: int | None) -> AgentSpec:
        if limits is not None:
            spec = replace(spec, limits=limits)
        if max_steps is not None:
            spec = replace(spec, limits=replace(spec.limits, max_steps=max_steps))
        return spec


_RANK: dict[Tier | None, int] = {"read": 0, "draft": 1, None: 2, "write": 3, "destructive": 4}

PAGING_TOOL = "read_observation"


def _listeners(verbose: bool, on_event: Listener | None) -> Listener | None:
    if not verbose:
        return on_event
    show = verbose_listener()
    if on_event is None:
        return show

    def both(event: Event) -> None:
        show(event)
        on_event(event)

    return both


def _is_text(task: object) -> bool:
    return isinstance(task, str) and bool(task.strip())


def _as_tuple(tiers: Any) -> Any:
    """A list of tiers as a tuple; a bare text stays one, for the spec to refuse."""
    return tuple(tiers) if isinstance(tiers, list | set) else tiers


def _language_of(task: str) -> str:
    """Chinese if the task has a Chinese character, else English."""
    return "zh" if any("\u4e00" <= char <= "\u9fff" for char in task) else "en"
