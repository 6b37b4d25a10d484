"""The agent as a user holds it: a description bound to a model, tools and a journal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.tool_card import Tier
from taoloop.core.events import Event, Resumed, RunStarted
from taoloop.core.handles.opaque_observation import READER
from taoloop.core.limits import Limits
from taoloop.core.message import Delta, Message
from taoloop.core.policy import Policy, Profile, plain_policy
from taoloop.core.redaction.redactor import Redactor
from taoloop.core.text import language_of, replace_surrogates
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError, RunNotResumable
from taoloop.journals.base import Journal, Lease
from taoloop.journals.memory import MemoryJournal
from taoloop.models.base import Model
from taoloop.models.scripted import Reply
from taoloop.models.settings import Rate, Retry
from taoloop.policy import CodeRule, reject_unmatchable_rules
from taoloop.runtime.agent_setup import (
    FINDERS,
    PAGING_TOOL,
    as_tuple,
    handles_of,
    is_text,
    spec_of,
    strategy_of,
    toolbox_of,
    with_limits,
)
from taoloop.runtime.approvals.request import Approver
from taoloop.runtime.chat import Chat, has_untrusted_turns, load_history
from taoloop.runtime.engine.clock import Clock, SystemClock, new_nonce, new_run_id
from taoloop.runtime.engine.delta_fanout import DeltaListener
from taoloop.runtime.engine.redaction import redactor_for
from taoloop.runtime.print_listener import listeners
from taoloop.runtime.result import Result
from taoloop.runtime.run_lock import acquire_run, require_resumable, run_lock
from taoloop.runtime.runner import Listener, Runner
from taoloop.runtime.sync import run_sync
from taoloop.strategies import Strategy, get_strategy
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from taoloop.models.wrappers.build import BuiltModel
    from taoloop.runtime.after.recovery import Recovered
    from taoloop.runtime.after.undo import UndoResult
    from taoloop.runtime.output_type import OutputValidator

AUTO = "auto"

KEPT_IN_MEMORY = 256
"""How many runs an agent without a journal keeps, so that the last ones can be resumed."""


@dataclass(frozen=True, kw_only=True)
class Agent:
    """What an agent is: frozen, so that one agent can serve any number of runs, at once.

    `model` is a spec (`offline`, `openai:NAME`, `scripted:FILE` …), a `Model`, or a list of scripted replies; without
    one the environment decides, and without a configured provider the embedded offline model answers.
    `fallback` names the models that answer where that one fails, in their order. `retry` says how a failed call is
    tried again, `rate` how many calls and tokens a minute may have, over all runs of this agent; both hold for models
    of providers and for a `Model` of yours, not for scripts, and `model_timeout_s` bounds all of it together.
    `tools` are `@tool` functions, plain typed functions, or names of built-in tools; the file tools see only
    `workspace`, the memory tools (`remember`, `recall`) only the file `memory`. `dialect` None takes the one that suits
    the model. `language` auto follows the task.
    `output_type` makes the answer data: a pydantic model, any type that pydantic can validate (a dataclass,
    `list[int]`, `Literal["yes", "no"]` …), or a JSON Schema as a dict. An answer that does not fit is sent back once.
    `max_steps` is short for `limits=Limits(max_steps=…)`.
    `journal` keeps the traces: a `Journal`, a path of an SQLite file, or None for memory (the last 256 runs, lost
    with the process). `recover_on_start`: before its first run it goes on with what dead processes left (`recover`).
    `policy` says what the agent may do: the name of a profile (`supervised`, `strict`, `headless`, `autonomous`,
    `read-only`, `locked`) or a `Policy`; `rules` are rules in Python, asked before those of the policy.
    `approve` answers the policy's questions; without it such a run waits. `approved_tiers` are tiers whose calls
    the operator allows ahead of time.
    `context_tokens` is the model's window: a prompt that nears it is shortened (old observations, then a summary).
    Without it that happens when the provider refuses a prompt as too long. `early_reads` lets calls that only read
    begin while the reply is still being written. `keep_thinking` keeps a reasoning model's thinking in the trace.
    `secrets` are values that never reach trace, prompt, log or listener, beside those of the environment (`*_API_KEY`,
    `*_TOKEN`, `*PASSWORD` …) and what looks like a vendor's key; a mapping names them. `redact` False keeps everything.
    With the dialect `json`, `temperature` and `top_p` are 0.2 and 0.9 unless one of them is set.

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
    policy: Policy | Profile = "supervised"
    rules: Sequence[CodeRule] = ()
    approve: Approver | None = None
    approved_tiers: tuple[Tier, ...] = ()
    closing_turn: bool = True
    repair_turns: int = 1
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    context_tokens: int | None = None
    model_timeout_s: float | None = 120.0
    early_reads: bool = False
    keep_thinking: bool = False
    fallback: str | Model | Sequence[str | Model] = ()
    retry: Retry = Retry()
    rate: Rate | None = None
    workspace: str | Path | None = None
    memory: str | Path | None = None
    output_type: Any = None
    prompts: str | Path | Mapping[str, str] | None = None
    journal: Journal | str | Path | None = None
    recover_on_start: bool = False
    source: str | None = None
    clock: Clock = field(default_factory=SystemClock)
    env: Mapping[str, str] | None = field(default=None, repr=False)
    secrets: Mapping[str, str] | Sequence[str] = field(default=(), repr=False)
    redact: bool = True

    # Runs

    async def run(
        self,
        task: str,
        *,
        max_steps: int | None = None,
        limits: Limits | None = None,
        allow: Sequence[str] | None = None,
        history: Sequence[Message] = (),
        after: str | None = None,
        run_id: str | None = None,
        parent: str | None = None,
        verbose: bool = False,
        on_event: Listener | None = None,
        on_delta: DeltaListener | None = None,
    ) -> Result:
        """Run a task to its end, or until it must wait for a person.

        `max_steps` and `limits` replace the agent's own; `allow` names the only tools that this run may call (all
        of the agent's by default); `verbose` prints each step; `on_event` is called with every event once the
        journal has it, `on_delta` with each piece of a reply while the model writes it (models that cannot stream give
        none). A cancellation ends the run as `stopped` and goes on to the caller.

        `after` is the id of a run of this journal that this one continues: the model sees the tasks and answers of
        that conversation (see `taoloop.runtime.chat` for the bounds). `history` gives such turns as messages instead.

        Raises:
            ConfigError: something about the agent is wrong; no run was started.
            RunNotFound, RunNotAnswered: `after` names no run, or one without an answer.
            JournalError: the journal cannot keep the trace.
            ScriptUnused: the run completed, but its scripted model has replies left.
        """
        if not is_text(task):
            raise ConfigError(f"The task is {task!r}.", hint="Say in a text what the agent should do.")
        spec = with_limits(self.spec_for(task), limits, max_steps)
        if allow is not None:
            spec = replace(spec, tools=self.toolbox.allow([*allow, *self._paging]).cards)
        if after is not None and history:
            raise ConfigError("A run was given `after` and `history`.", hint="Give one: `after` brings its history.")
        if self.recover_on_start and self.__dict__.setdefault("_recovers", True):
            self.__dict__["_recovers"] = False  # once
            await self.recover()
        async with self._open_journal() as journal:
            untrusted = has_untrusted_turns(history, handles=self.hides_observations)
            if after is not None:
                history, untrusted = await load_history(journal, after, handles=self.hides_observations)
            started = RunStarted(
                task=replace_surrogates(task),
                agent=spec,
                nonce=new_nonce(),
                history=tuple(history),
                parent=parent,
                after=after,
                tainted=untrusted,
            )
            trace = Trace(run_id or new_run_id(self.clock.now()))
            return await self.start(journal, trace, started, listener=listeners(verbose, on_event), on_delta=on_delta)

    async def resume(
        self,
        run_id: str,
        *,
        max_steps: int | None = None,
        limits: Limits | None = None,
        approved_tiers: tuple[Tier, ...] | None = None,
        take_over: bool = False,
        verbose: bool = False,
        on_event: Listener | None = None,
        on_delta: DeltaListener | None = None,
    ) -> Result:
        """Go on with a run that was stopped, reached a limit, waits for a person, or lost its process.

        The run keeps its own description (prompts, dialect, cards); model, tool functions and approver are this
        agent's. `take_over` takes it from a process that is at work on it, which loses it at its next event.

        Raises:
            RunNotFound: the journal has no such run.
            RunHeld: a process is at work on it.
            RunNotResumable: it completed.
            UnknownName: this agent lacks a tool of the run.
            ConfigError: a tool of the run has a stricter tier now.
        """
        async with self._open_journal() as journal:
            trace = Trace(run_id, await journal.load(run_id))
            require_resumable(trace, self.toolbox)
            limited = with_limits(replace(trace.agent, limits=trace.limits), limits, max_steps).limits
            return await self.continue_run(
                journal,
                trace,
                limits=limited,
                approved_tiers=approved_tiers,
                listener=listeners(verbose, on_event),
                on_delta=on_delta,
                at=len(trace),
                take_over=take_over,
            )

    async def start(
        self,
        journal: Journal,
        trace: Trace,
        started: RunStarted,
        *,
        listener: Listener | None = None,
        on_delta: DeltaListener | None = None,
        approver: Approver | None = None,
        redactor: Redactor | None = None,
    ) -> Result:
        """Begin the run of `trace` (which is empty) in an open journal, and drive it; for drivers.

        `redactor` knows further secrets, as those of the run around it.

        Raises:
            RunExists: the journal has a run of that id.
        """
        self._require_transactions(journal)
        lease = await getattr(journal, "begin", journal.create)(trace.run_id)  # one with the first append, if it can
        with run_lock(journal, lease):
            runner = self._runner(trace, lease, journal, listener, on_delta, started.agent, approver, redactor)
            runner.note(started)
            return await self._finish(runner)

    async def continue_run(
        self,
        journal: Journal,
        trace: Trace,
        *,
        limits: Limits,
        approved_tiers: tuple[Tier, ...] | None = None,
        listener: Listener | None = None,
        on_delta: DeltaListener | None = None,
        approver: Approver | None = None,
        redactor: Redactor | None = None,
        at: int | None = None,
        take_over: bool = True,
    ) -> Result:
        """Take the run of `trace` in an open journal, and drive it; for drivers. `trace` gets what it lacks.

        With `at` only if the run has just so many events: else somebody went on with it meanwhile (FenceLost). Without
        `take_over` only if nobody is at work on it (RunHeld).
        """
        self._require_transactions(journal)
        lease = await acquire_run(
            journal, trace.run_id, at=at, take_over=take_over
        )  # from here on no other worker can write
        with run_lock(journal, lease):
            for event in (await journal.load(trace.run_id))[len(trace) :]:
                trace.append(event)
            if trace.status == "completed":  # by another process, a moment ago
                raise RunNotResumable(f"Run {trace.run_id} is completed.", hint="Start a new run.")
            runner = self._runner(trace, lease, journal, listener, on_delta, trace.agent, approver, redactor)
            runner.note(Resumed(limits=limits, approved_tiers=approved_tiers))
            return await self._finish(runner)

    async def recover(self, *, on_recovered: Callable[[Recovered], None] | None = None) -> list[Recovered]:
        """Go on with the runs of this agent that dead processes left in its journal (`taoloop.recover`)."""
        from taoloop.runtime.after.recovery import recover  # noqa: PLC0415  # it imports this module

        async with self._open_journal() as journal:
            return await recover(journal, [self], on_recovered=on_recovered)

    async def fork(
        self,
        run_id: str,
        *,
        at: int,
        edit: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        limits: Limits | None = None,
        approved_tiers: tuple[Tier, ...] | None = None,
        verbose: bool = False,
        on_event: Listener | None = None,
        on_delta: DeltaListener | None = None,
    ) -> Result:
        """Make a new run that is `run_id` up to step `at`, and decide that step anew or as `edit` says.

        What was done in the copied steps is neither repeated nor undone; `taoloop.runtime.after.fork` lists the edits.

        Raises:
            RunNotFound: the journal has no such run.
            ConfigError: there is no such step, or the edit does not fit.
        """
        from taoloop.runtime.after.fork import store_fork  # noqa: PLC0415  # loads the schema machinery

        tiers = as_tuple(self.approved_tiers) if approved_tiers is None else approved_tiers
        async with self._open_journal() as journal:
            trace = await store_fork(
                journal,
                run_id,
                at=at,
                edit=edit,
                now=self.clock.now(),
                limits=limits,
                max_steps=max_steps,
                approved_tiers=tiers,
                strategy=self.bound_strategy,
                check=partial(require_resumable, toolbox=self.toolbox),
                redactor=self._redactor if self.redact else Redactor(patterns=False),
            )
            return await self.resume(trace.run_id, verbose=verbose, on_event=on_event, on_delta=on_delta)

    async def undo(
        self,
        run_id: str,
        *,
        to_step: int = 0,
        skip: Collection[str] = (),
        again: Collection[str] = (),
        tools: Sequence[Tool] = (),
        agreed_by: str | None = None,
        approver: Approver | None = None,
        take_over: bool = False,
    ) -> UndoResult:
        """Take back what a run did after step `to_step`, the last effect first (`taoloop.runtime.after.undo`).

        `agreed_by` names who agreed to the whole plan; without one each call is put before `approver`. `tools` are
        compensations that are none of the agent's tools. `take_over` as in `resume`.

        Raises:
            RunNotFound: the journal has no such run.
            RunHeld: a process is at work on it.
            ConfigError: there is no such step, or a compensation is not among the tools.
        """
        from taoloop.runtime.after.undo import approved_by, undo  # noqa: PLC0415  # loads the schema machinery

        given: dict[str, Any] = {"to_step": to_step, "skip": skip, "again": again, "tools": tools}
        given |= {"approver": approved_by(agreed_by) if agreed_by else approver, "take_over": take_over}
        async with self._open_journal() as journal:
            return await undo(self, journal, run_id, **given)

    def chat(self, after: str | None = None) -> Chat:
        """A conversation: each run sees the tasks and answers of those before it, from the run `after` on."""
        return Chat(self, after)

    def as_tool(
        self,
        *,
        purpose: str,
        name: str | None = None,
        use_when: str = "",
        avoid_when: str = "",
        tier: Tier | Literal["auto"] | None = "auto",
        timeout_s: float = 600.0,
    ) -> Tool:
        """The agent as a tool of another one; the name is the agent's unless it is given.

        A call is a run of its own in the caller's journal, named after the call and linked both ways. Its limits are
        the stricter of this agent's and what is left of the caller's tokens, money and time, and what it uses counts
        for the caller. What its tools may do is asked where they are called: of this agent's approver, else of the
        caller's. `tier` auto is what it can do unasked. At most three runs may stand around one.

        Raises:
            ToolDefinitionError: the name cannot be a tool's.
        """
        from taoloop.runtime.subagent import agent_tool  # noqa: PLC0415  # loads the schema machinery

        return agent_tool(
            self,
            purpose=purpose,
            name=name,
            use_when=use_when,
            avoid_when=avoid_when,
            tier=tier,
            timeout_s=timeout_s,
        )

    def _require_transactions(self, journal: Journal) -> None:
        """Refuse a journal in which a tool that writes in its transaction could not."""
        if any(one.card.transactional for one in self.toolbox):
            from taoloop.runtime.engine.transactional_tools import require_transactions  # noqa: PLC0415  # loads the database

            require_transactions(journal, self.toolbox)

    def run_sync(self, task: str, **options: Any) -> Result:
        """`run` for code that is not async; works inside a running loop too (a notebook), in a thread of its own."""
        return run_sync(lambda: self._in_own_loop(self.run(task, **options)))

    def resume_sync(self, run_id: str, **options: Any) -> Result:
        """`resume` for code that is not async."""
        return run_sync(lambda: self._in_own_loop(self.resume(run_id, **options)))

    @overload
    def stream(self, task: str, *, deltas: Literal[False] = False, **options: Any) -> AsyncIterator[Event]: ...
    @overload
    def stream(self, task: str, *, deltas: Literal[True], **options: Any) -> AsyncIterator[Event | Delta]: ...
    async def stream(self, task: str, *, deltas: bool = False, **options: Any) -> AsyncIterator[Event | Delta]:
        """The events of a run as they happen; the last one is `finished`, or `paused` where the run waits.

        `deltas`: between them also the pieces of each reply while the model writes it. Leaving the iteration early
        stops the run.
        """
        queue: asyncio.Queue[Event | Delta | None] = asyncio.Queue()
        if deltas:
            options["on_delta"] = queue.put_nowait
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

    @cached_property
    def answers(self) -> OutputValidator | None:
        """The judge of this agent's answers; None where they are texts.

        Raises:
            ConfigError: the output type cannot be described as JSON, or is no valid schema.
        """
        if self.output_type is None or self.output_type is str:
            return None
        from taoloop.runtime.output_type import OutputValidator  # noqa: PLC0415  # loads the schema machinery

        return OutputValidator.of(self.output_type)

    def spec_for(self, task: str) -> AgentSpec:
        """The agent as plain data, in the language of `task`.

        Raises:
            ConfigError: a name is unknown, a prompt file is unusable.
        """
        return self._specs(self.language if self.language != AUTO else language_of(task))

    @cached_property
    def toolbox(self) -> Toolbox:
        """The tools of this agent by name, with `read_observation` beside them for long outputs, or `ask_about`."""
        return toolbox_of(self.tools, self.workspace, self.memory, handles=self.hides_observations)

    @property
    def _paging(self) -> tuple[str, ...]:
        """The tools that go with every other: they read what an observation left out, or all of it, and find tools."""
        names = (READER if self.hides_observations else PAGING_TOOL, *FINDERS)
        return tuple(name for name in names if name in self.toolbox)

    @property
    def hides_observations(self) -> bool:
        """Whether the model sees handles in place of observations."""
        return isinstance(self.policy, Policy) and self.policy.observations == "handles"

    @property
    def bound_model(self) -> Model:
        """The model that answers."""
        return self._bound.model

    @cached_property
    def _bound(self) -> BuiltModel:
        from taoloop.models.wrappers.build import build_model  # noqa: PLC0415  # a run needs it, an agent that only stands there does not

        return build_model(self.model, self.fallback, retry=self.retry, rate=self.rate, env=self.env)

    @cached_property
    def bound_strategy(self) -> Strategy:
        """The strategy that decides what comes next."""
        return get_strategy(self.strategy) if isinstance(self.strategy, str) else self.strategy

    async def _in_own_loop(self, running: Coroutine[Any, Any, Result]) -> Result:
        """Let go of the models' connections, which belong to this loop, before the loop ends."""
        try:
            return await running
        finally:
            await self.close()

    async def close(self) -> None:
        """Let go of connections: those of a model that was given by its spec, and of the agents among the tools."""
        if "_bound" in self.__dict__:
            await self._bound.close()
        if "toolbox" in self.__dict__:
            for one in self.toolbox:
                if one.runs_inside:
                    await one.handler.agent.close()  # type: ignore[attr-defined]  # a Delegate

    def _specs(self, language: str) -> AgentSpec:
        cache: dict[str, AgentSpec] = self.__dict__.setdefault("_spec_cache", {})
        if (spec := cache.get(language)) is None:
            spec = cache[language] = spec_of(self, language)
        return spec

    @cached_property
    def bound_policy(self) -> Policy:
        """What the agent may do, held against its tools."""
        policy = plain_policy(self.policy) if isinstance(self.policy, str) else self.policy
        if policy.rules or policy.trusted_tools or policy.trusted_fields:
            reject_unmatchable_rules(policy, {card.name: card for card in self.toolbox.cards})
        return policy

    @cached_property
    def _redactor(self) -> Redactor | None:
        return redactor_for(self.env, self.secrets, self.toolbox) if self.redact else None

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
            from taoloop.runtime.journal_pool import JOURNALS  # noqa: PLC0415  # only where a file is named

            async with JOURNALS.use(self.journal) as journal:
                yield journal
        else:
            yield self.journal

    def _runner(
        self,
        trace: Trace,
        lease: Lease,
        journal: Journal,
        listener: Listener | None,
        on_delta: DeltaListener | None,
        spec: AgentSpec,
        approver: Approver | None,
        redactor: Redactor | None = None,
    ) -> Runner:
        answers = self._answers_for(spec)
        check = answers.check if answers is not None else None
        return Runner(
            trace,
            lease,
            journal=journal,
            strategy=strategy_of(self.bound_strategy, trace),
            model=self.bound_model,
            toolbox=self.toolbox,
            clock=self.clock,
            approver=approver or self.approve,
            listener=listener,
            on_delta=on_delta,
            early_reads=spec.early_reads,
            check_answer=check,
            rules=tuple(self.rules),
            redactor=self._redactor if redactor is None else redactor.merged_with(self._redactor),
            handles=handles_of(spec, trace, journal, self.bound_model, check),
        )

    def _answers_for(self, spec: AgentSpec) -> OutputValidator | None:
        """The judge of a run's answers: this agent's own where the run asks for the same, else one from its schema."""
        if spec.output_schema is None:
            return None
        from taoloop.runtime.output_type import answers_for  # noqa: PLC0415  # loads the schema machinery

        return answers_for(spec.output_schema, self.answers)

    async def _finish(self, runner: Runner) -> Result:
        await runner.advance()
        result = self.result_of(runner.trace)
        if result.status == "completed":
            self.bound_model.check_used(runner.trace.model_calls)
        return result

    def result_of(self, trace: Trace) -> Result:
        """The result of a run that is finished or waits, with its answer as a value where it has an output type."""
        result = Result.of(trace)
        answers = self._answers_for(trace.agent) if result.answer is not None else None
        return result if answers is None else replace(result, output=answers.value(result.answer or ""))
