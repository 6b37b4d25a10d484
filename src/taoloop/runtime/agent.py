"""The agent as a user holds it: settings, and what one can do with them.

A thin facade: the runtime behind it (events, policies, dialects, the runner) is loaded by the first run, so that an
import of the main names costs little (`benchmarks/weight.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence, Sized
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, overload

from taoloop.core.agent_spec import DEFAULT_PRIORITY, DEFAULT_QUEUE, AgentSpec, Limits, Submission
from taoloop.core.cards.tool_card import Tier
from taoloop.core.policy import Policy, Profile
from taoloop.errors import ConfigError
from taoloop.lazy_exports import LazyGeneric, lazy_types
from taoloop.runtime.agent_settings import AgentSettings, Deps, Output, changed_limits
from taoloop.runtime.engine.clock import new_run_id
from taoloop.runtime.threads import require_asyncio, run_sync

if TYPE_CHECKING:
    from taoloop.core.events import AnyEvent
    from taoloop.core.message import Delta, Message
    from taoloop.core.views.transcript import Result
    from taoloop.journals.base import Journal
    from taoloop.models.base import DeltaListener
    from taoloop.runtime.after.recovery import Recovered
    from taoloop.runtime.after.undo import UndoResult
    from taoloop.runtime.approvals.request import Approver
    from taoloop.runtime.bound_agent import BoundAgent
    from taoloop.runtime.chat import Chat
    from taoloop.runtime.engine.attachment_sources import AttachmentSource, Task
    from taoloop.runtime.fleet.engine import Engine
    from taoloop.runtime.live.run_handle import RunHandle
    from taoloop.runtime.live.run_stream import RunStream
    from taoloop.runtime.run_options import (
        ResumeOptions,
        RunOptions,
        StreamedResumeOptions,
        StreamedRunOptions,
        SubmitOptions,
    )
    from taoloop.runtime.runner import Listener
    from taoloop.tools.tool import Tool
    from taoloop.tools.toolbox import LoadProblem, Toolbox
else:
    _TYPES = {
        "core": "AnyEvent Delta Message",
        "journals": "Journal PostgresAddress",
        "models": "DeltaListener",
        "tools": "LoadProblem Tool Toolbox",
    }
    _TYPES["runtime"] = "Approver AttachmentSource Listener Recovered Task UndoResult"
    _TYPES["runtime.run_options"] = "ResumeOptions RunOptions StreamedResumeOptions StreamedRunOptions SubmitOptions"
    _TYPES["runtime.fleet.engine"] = "Engine"
    Chat, Result = LazyGeneric("runtime.chat", "Chat"), LazyGeneric("core.views.transcript", "Result")
    RunHandle = LazyGeneric("runtime.live.run_handle", "RunHandle")
    RunStream = LazyGeneric("runtime.live.run_stream", "RunStream")
    globals().update(lazy_types(_TYPES))


@dataclass(frozen=True, kw_only=True, init=False)  # that of the settings, whose module knows their types
class Agent(AgentSettings[Deps, Output]):
    """An agent: its settings (see `AgentSettings`), and the runs that it makes.

    It is frozen, so one agent can serve any number of runs at once; `dataclasses.replace` makes another one of it.
    `Agent[Deps, Output]` says what its runs are given and what their answers are; both follow from `deps_type` and
    `output_type`. Where they do not (a union, a `Literal`), name them: `agent: Agent[Shop, int | str] = Agent(…)`.

    Raises:
        ConfigError: at the first run or at `spec_for`, when a name is unknown or a key is missing.
    """

    async def run(
        self,
        task: Task,
        *,
        deps: Deps | None = None,
        max_steps: int | None = None,
        limits: Limits | None = None,
        allow: Sequence[str] | None = None,
        history: Sequence[Message | Mapping[str, Any]] = (),
        after: str | None = None,
        run_id: str | None = None,
        parent: str | None = None,
        images: Sequence[AttachmentSource] = (),
        user: str = "",
        session: str = "",
        lessons_from: Sequence[str] = (),
        started_by: str = "",
        verbose: bool = False,
        on_event: Listener | None = None,
        on_delta: DeltaListener | None = None,
    ) -> Result[Output]:
        """Run a task to its end, or until it must wait for a person.

        `deps` is what the program gives the tools and instructions of this run (`RunContext.deps`), recorded nowhere;
        None: those of `make_deps`. `max_steps` and `limits` replace the agent's own; `allow` names the only tools that
        it may call; `verbose` prints each step; `on_event` is called with every event once the journal has it,
        `on_delta` with each piece of a reply. A cancellation ends the run as `stopped`, and is raised again.
        `task` is a text, or a list of texts, `Image`s, `File`s (PDF, text) and `Path`s. `images` are more: each
        a path, bytes, or an object; at most 20 with 20 MB. Nothing in them authorises anything: the task's words do.
        `user` is the person for whom the run is and whose logins tools use; empty: whoever uses this machine.
        `started_by` is who asks for it and how that is known, such as `os_user:ann`: that person's answers to questions
        of the model count as words of the task. Empty: those that the program vouches for (`ApprovalAnswer`).
        `after` is the id of a run of this journal that this one continues: the model sees the tasks and answers of
        that conversation (see `taoloop.runtime.chat` for the bounds). `session` continues the conversation with this id
        and this `user`, or begins it. `history` gives turns as messages: of ours, or dicts of OpenAI's chat API.
        `lessons_from` are attempts whose lessons this run reads, as untrusted advice (`taoloop.runtime.lessons`).

        Raises:
            ConfigError, ImageError, FileError: something about the agent or an option is wrong; no run was started.
            RunNotFound, RunNotAnswered: `after` (or `lessons_from`) names no run, or one without an answer.
            JournalError, ScriptUnused: the journal cannot keep the trace; its scripted model has replies left.
        """
        from taoloop.runtime.conversations.run_input import RunInput, begin_run  # noqa: PLC0415  # loads the runtime

        run_input = RunInput(
            task=task,
            limits=limits,
            max_steps=max_steps,
            allow=allow,
            history=history,
            after=after,
            run_id=run_id,
            parent=parent,
            images=images,
            user=user,
            started_by=started_by,
            session=session,
            lessons_from=lessons_from,
        )
        return await begin_run(self, run_input, _verbose(on_event) if verbose else on_event, on_delta, deps)

    async def resume(
        self,
        run_id: str,
        *,
        deps: Deps | None = None,
        max_steps: int | None = None,
        limits: Limits | None = None,
        approved_tiers: tuple[Tier, ...] | None = None,
        policy: Policy | Profile | None = None,
        take_over: bool = False,
        kill_holder: bool = False,
        verbose: bool = False,
        on_event: Listener | None = None,
        on_delta: DeltaListener | None = None,
    ) -> Result[Output]:
        """Resume a run that was stopped, reached a limit, waits for a person, or lost its process.

        The run keeps its own description (prompts, dialect, policy); model, tools and approver are this agent's. `deps`
        as in `run`: those of the process before are gone with it.
        `policy` takes the place of the run's from here on: the model is told which calls the one before denied, and
        what it requests is judged by the new one. Calls that were not started are judged again then, as are those of a
        tool that has changed; earlier answers to them are void. A run that a live process is at work on is left to it.
        `kill_holder` ends that process and waits until it is gone; `take_over` resumes the run although such a process
        cannot be ended from here (this process, another container, a system that does not identify it): it loses the
        run at its next event, and no probe's "no" is believed about the calls that it was making.

        Raises:
            RunNotFound: the journal has no such run.
            RunHeld: a process is at work on it.
            RunNotResumable: it completed.
            UnknownName: this agent lacks a tool of the run.
            ConfigError: a tool of the run has a stricter tier now, the run cannot take over `policy`, or `deps` do not
                fit.
        """
        bound = self._bound_agent
        async with bound.open_journal() as journal:
            trace = await bound.load_resumable(journal, run_id)
            return await bound.continue_run(
                journal,
                trace,
                limits=changed_limits(trace.limits, limits, max_steps),
                approved_tiers=approved_tiers,
                listener=_verbose(on_event) if verbose else on_event,
                on_delta=on_delta,
                at=len(trace),
                take_over=take_over,
                kill_holder=kill_holder,
                policy=policy,
                deps=deps,
            )

    async def submit(
        self,
        task: Task,
        *,
        queue: str = DEFAULT_QUEUE,
        priority: int = DEFAULT_PRIORITY,
        tenant: str = "",
        not_before: float | None = None,
        engine: Engine | str | None = None,
        **options: Unpack[SubmitOptions],
    ) -> str:
        """Store a run for workers to drive (`Worker`, `tao worker`), and return its id at once.

        `queue`, `priority` (1 first, 5 last) and `tenant` say which workers drive it; `not_before` when, in seconds
        since the epoch. `engine` is one or its address (`open_engine`). Tools get what `make_deps` makes in the worker.

        Raises:
            ConfigError, RunExists, JournalError: nothing is stored; the agent has no journal, or an option is wrong.
        """
        from taoloop.runtime.conversations.run_input import RunInput  # noqa: PLC0415  # loads the runtime
        from taoloop.runtime.fleet.submission import submit_run  # noqa: PLC0415  # few programs need it

        submission = Submission(queue=queue, priority=priority, tenant=tenant, not_before=not_before)
        return await submit_run(self, RunInput(task=task, **options), submission, engine=engine)

    async def run_once(
        self,
        task: str,
        *,
        run_id: str,
        deps: Deps | None = None,
        max_steps: int | None = None,
        limits: Limits | None = None,
        user: str = "",
        on_event: Listener | None = None,
        on_delta: DeltaListener | None = None,
    ) -> Result[Output]:
        """Have the run `run_id` done, however often this is called: begin it, resume it, or return its result.

        For jobs that are repeated after a crash, with an id that follows from the work (`invoice-4711`). The options
        are those of `run` and, where the run has begun, of `resume`. A run that is completed is not made again, and
        none of its calls is; one that waits for a person and has no answer is returned as `waiting`.

        Raises:
            RunExists: the run with this id has another task.
            RunHeld: a process is at work on it.
            ConfigError, UnknownName, JournalError: as `run` and `resume`.
        """
        from taoloop.runtime.after.run_once import begun_run  # noqa: PLC0415  # loads the runtime

        bound = self._bound_agent
        async with bound.open_journal() as journal:
            trace = await begun_run(bound, journal, run_id, task)
            how: dict[str, Any] = {"deps": deps, "max_steps": max_steps, "limits": limits}
            how |= {"on_event": on_event, "on_delta": on_delta}
            if trace is None:
                return await self.run(task, run_id=run_id, user=user, **how)
            return bound.result_of(trace) if trace.is_over else await self.resume(run_id, **how)

    async def learn_from(self, run_id: str, why: str, *, by: str = "user") -> Result[Output]:
        """Have a lesson written of a completed run whose answer is wrong, for the next attempt at the same task.

        `why` is what somebody or a test found wrong with it, and `by` who. The run keeps its answer, and its reason
        says that it was judged wrong (`taoloop.runtime.lessons`).

        Raises:
            RunNotFound: the journal has no such run.
            ConfigError: the run is not completed, its strategy keeps no lessons, or `why` is empty.
            RunHeld: a process is at work on it.
        """
        from taoloop.runtime.after.evaluation import learn_from  # noqa: PLC0415  # few programs need it

        async with self._bound_agent.open_journal() as journal:
            return await learn_from(self._bound_agent, journal, run_id, why, by=by)

    async def recover(self, *, on_recovered: Callable[[Recovered], None] | None = None) -> list[Recovered]:
        """Resume the runs of this agent that dead processes left in its journal (`taoloop.recover`)."""
        from taoloop.runtime.after.recovery import recover  # noqa: PLC0415  # few programs need it

        async with self._bound_agent.open_journal() as journal:
            return await recover(journal, [self], on_recovered=on_recovered)

    async def fork(
        self,
        run_id: str,
        *,
        at: int,
        edit: Mapping[str, Any] | None = None,
        deps: Deps | None = None,
        max_steps: int | None = None,
        limits: Limits | None = None,
        approved_tiers: tuple[Tier, ...] | None = None,
        verbose: bool = False,
        on_event: Listener | None = None,
        on_delta: DeltaListener | None = None,
    ) -> Result[Output]:
        """Make a new run that is `run_id` up to step `at`, and decide that step again, or as `edit` says.

        What was done in the copied steps is neither repeated nor undone; `taoloop.runtime.after.fork` lists the edits.
        `deps` as in `run`.

        Raises:
            RunNotFound: the journal has no such run.
            ConfigError: there is no such step, or the edit or `deps` do not fit.
        """
        from taoloop.runtime.after.fork import fork_for  # noqa: PLC0415  # loads the schema machinery
        from taoloop.runtime.engine.run_dependencies import check_deps  # noqa: PLC0415  # loads the runtime

        check_deps(self, deps)
        async with self._bound_agent.open_journal() as journal:
            trace = await fork_for(
                self,
                journal,
                run_id,
                at=at,
                edit=edit,
                limits=limits,
                max_steps=max_steps,
                approved_tiers=approved_tiers,
            )
            return await self.resume(trace.run_id, deps=deps, verbose=verbose, on_event=on_event, on_delta=on_delta)

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
        kill_holder: bool = False,
        deps: Deps | None = None,
    ) -> UndoResult:
        """Take back what a run did after step `to_step`, the last effect first (`taoloop.runtime.after.undo`).

        `agreed_by` names who agreed to the whole plan; without one each call is put before `approver`. `tools` are
        compensations that are none of the agent's tools, and get `deps` as in `run`. `take_over` and `kill_holder` as
        in `resume`.

        Raises:
            RunNotFound: the journal has no such run.
            RunHeld: a process is at work on it.
            ConfigError: there is no such step, or a compensation is not among the tools.
        """
        from taoloop.runtime.after.undo import approved_by, undo  # noqa: PLC0415  # loads the schema machinery

        async with self._bound_agent.open_journal() as journal:
            return await undo(
                self,
                journal,
                run_id,
                to_step=to_step,
                skip=skip,
                again=again,
                tools=tools,
                approver=approved_by(agreed_by) if agreed_by else approver,
                take_over=take_over,
                kill_holder=kill_holder,
                deps=deps,
            )

    def chat(
        self, after: str | None = None, *, session: str = "", user: str = "", deps: Deps | None = None
    ) -> Chat[Deps, Output]:
        """A conversation: each run sees the tasks and answers of those before it, from the run `after` on.

        With a `session` it is the conversation of this `user` that has this id in the journal, or a new one. `deps` are
        those of each of its runs.

        Raises:
            ConfigError: an id or a name cannot be one, or both `after` and `session` are given.
        """
        from taoloop.runtime.chat import Chat  # noqa: PLC0415  # loads the runtime

        return Chat(self, after, session=session, user=user, deps=deps)

    def open_journal(self) -> AbstractAsyncContextManager[Journal]:
        """The journal of its runs, open as long as the block runs.

        Raises:
            ConfigError: no asyncio event loop is running.
            JournalError: its file cannot be opened.
        """
        return self._bound_agent.open_journal()

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
        caller's. `tier` auto is the highest tier of what it can do without asking. A run may be inside at most three
        others.

        Raises:
            ToolDefinitionError: the name cannot be a tool's.
        """
        from taoloop.runtime.subagent import agent_tool  # noqa: PLC0415  # loads the schema machinery

        return agent_tool(
            self, purpose=purpose, name=name, use_when=use_when, avoid_when=avoid_when, tier=tier, timeout_s=timeout_s
        )

    def handoff_tools(self) -> list[Tool]:
        """The tools by which the agent hands over (`handoffs`).

        Raises:
            ConfigError: a hand-off cannot work.
        """
        from taoloop.runtime.handoff import handoff_tools  # noqa: PLC0415  # few agents hand over

        return handoff_tools(self)

    def run_sync(self, task: Task, *, deps: Deps | None = None, **options: Unpack[RunOptions]) -> Result[Output]:
        """`run` for code that is not async; works inside a running loop too (a notebook), in a thread of its own."""
        return run_sync(lambda: self._in_own_loop(self.run(task, deps=deps, **options)))

    def resume_sync(self, run_id: str, *, deps: Deps | None = None, **options: Unpack[ResumeOptions]) -> Result[Output]:
        """`resume` for code that is not async."""
        return run_sync(lambda: self._in_own_loop(self.resume(run_id, deps=deps, **options)))

    @overload
    def stream(
        self,
        task: Task,
        *,
        deps: Deps | None = None,
        deltas: Literal[False] = False,
        **options: Unpack[StreamedRunOptions],
    ) -> RunStream[Output, AnyEvent]: ...
    @overload
    def stream(
        self, task: Task, *, deps: Deps | None = None, deltas: Literal[True], **options: Unpack[StreamedRunOptions]
    ) -> RunStream[Output, AnyEvent | Delta]: ...
    def stream(
        self, task: Task, *, deps: Deps | None = None, deltas: bool = False, **options: Unpack[StreamedRunOptions]
    ) -> RunStream[Output, Any]:
        """A run as a stream: its events as they happen, or the text of its answer, and its result at the end.

        `async for event in agent.stream(task)` gives the events; the last one is `finished`, or `paused` where the run
        waits. `deltas`: between them also the pieces of each reply while the model writes it. Leaving the iteration
        early stops the run.
        """
        from taoloop.runtime.conversations.sessions import next_turn  # noqa: PLC0415  # loads the runtime
        from taoloop.runtime.live.run_stream import RunStream  # noqa: PLC0415  # loads the runtime

        listener = options.get("on_delta")
        if not options.get("session"):
            options["run_id"] = options.get("run_id") or new_run_id(self.clock.now())

        async def drive(on_event: Listener, on_delta: DeltaListener | None) -> Result[Output]:
            options["on_delta"] = on_delta
            if session := options.get("session"):
                async with self.open_journal() as journal:
                    turn = await next_turn(journal, session, options.get("user", ""), options.get("run_id"))
                options["run_id"] = turn[1]
            return await self.run(task, deps=deps, on_event=on_event, **options)

        return RunStream(
            lambda: options.get("run_id") or "", self._bound_agent, drive, deltas=deltas, on_delta=listener
        )

    @overload
    def stream_resume(
        self,
        run_id: str,
        *,
        deps: Deps | None = None,
        deltas: Literal[False] = False,
        **options: Unpack[StreamedResumeOptions],
    ) -> RunStream[Output, AnyEvent]: ...
    @overload
    def stream_resume(
        self, run_id: str, *, deps: Deps | None = None, deltas: Literal[True], **options: Unpack[StreamedResumeOptions]
    ) -> RunStream[Output, AnyEvent | Delta]: ...
    def stream_resume(
        self, run_id: str, *, deps: Deps | None = None, deltas: bool = False, **options: Unpack[StreamedResumeOptions]
    ) -> RunStream[Output, Any]:
        """`resume` as a stream: what happens from here on, as `stream` gives it."""
        from taoloop.runtime.live.run_stream import RunStream  # noqa: PLC0415  # loads the runtime

        listener = options.get("on_delta")

        def drive(on_event: Listener, on_delta: DeltaListener | None) -> Coroutine[Any, Any, Result[Output]]:
            options["on_delta"] = on_delta
            return self.resume(run_id, deps=deps, on_event=on_event, **options)

        return RunStream(lambda: run_id, self._bound_agent, drive, deltas=deltas, on_delta=listener)

    def start(self, task: Task, *, deps: Deps | None = None, **options: Unpack[RunOptions]) -> RunHandle[Output]:
        """Start a run in the background of this event loop, and return a handle for it at once.

        The run goes on while the program does other work, and as long as the loop runs: where that ends earlier, it is
        stopped, and can be resumed. Other processes attach to it with `attach`, if they use the same journal.

        Raises:
            ConfigError: no event loop runs, or a session gives the id. A wrong agent, `RunHandle.result` reports.
        """
        from taoloop.runtime.live.run_handle import RunHandle  # noqa: PLC0415  # loads the runtime

        require_asyncio()
        if options.get("session"):
            raise ConfigError(
                "A run of a session has no id before it begins, so it has no handle.",
                hint="Read its `stream`, or await `run`.",
            )
        run_id = options["run_id"] = options.get("run_id") or new_run_id(self.clock.now())
        running = asyncio.get_running_loop().create_task(self.run(task, deps=deps, **options))
        return RunHandle(run_id, self._bound_agent.open_journal, self._bound_agent.result_of, running)

    async def attach(self, run_id: str) -> RunHandle[Output]:
        """A handle for a run of this agent's journal, whichever process drives it (`taoloop.attach`).

        Raises:
            RunNotFound: the journal has no such run.
        """
        from taoloop.runtime.live.run_handle import RunHandle  # noqa: PLC0415  # loads the runtime

        handle = RunHandle[Output](run_id, self._bound_agent.open_journal, self._bound_agent.result_of)
        await handle.status()
        return handle

    # What the agent is made of

    @property
    def _bound_agent(self) -> BoundAgent:
        bound: BoundAgent | None = self.__dict__.get("_bound")
        if bound is None:  # else every use would pay for an import of what is loaded
            from taoloop.runtime.bound_agent import bind  # noqa: PLC0415  # loads the runtime

            bound = bind(self)
        return bound

    @property
    def toolbox(self) -> Toolbox:
        """The tools of this agent by name, with `read_observation` beside them for long outputs, or `ask_about`."""
        return self._bound_agent.toolbox

    @property
    def load_problems(self) -> tuple[LoadProblem, ...]:
        """What the sources of its tools could not give, such as a skill that is broken or off; the rest can be used.

        They are also logged as warnings. Loads the sources if they are not loaded yet.

        Raises:
            ConfigError: the tools are no list, or a source is invalid.
        """
        return self._bound_agent.load_problems

    def spec_for(self, task: str) -> AgentSpec:
        """The agent as plain data, in the language of `task`.

        Raises:
            ConfigError: a name is unknown, a prompt file is unusable.
        """
        return self._bound_agent.spec_for(task)

    async def close(self) -> None:
        """Close what is the agent's: the connections of a model that was named, the agents among the tools, and `owns`.

        What a program made itself and handed over (a journal, a model, a tool) stays open, but for what is in `owns`.
        Runs that are going on should have ended. Closing twice is harmless where it is for what is owned.

        Raises:
            ConfigError: something in `owns` cannot be closed; the others are closed.
        """
        from taoloop.runtime.engine.owned_resources import close_owned  # noqa: PLC0415  # at the end alone

        try:
            await self._bound_agent.close()
        finally:
            await close_owned(self.owns)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the agent (`close`)."""
        await self.close()

    def __repr__(self) -> str:
        """Name, model and how many tools, in one line; nothing is loaded for it."""
        model = self.model if isinstance(self.model, str) else getattr(self.model, "spec", type(self.model).__name__)
        spec = "default model" if self.model is None else model
        tools: object = self.tools  # whatever a caller without types passes
        count = len(tools) if isinstance(tools, Sized) else 0
        return f"<Agent {self.name!r}: {spec}, {count} {'tool' if count == 1 else 'tools'}>"

    async def _in_own_loop(self, running: Coroutine[Any, Any, Result[Output]]) -> Result[Output]:
        """Close the connections of the models, which belong to this loop, before the loop ends."""
        try:
            return await running
        finally:
            await self._bound_agent.close()  # what it owns is open for the next run


def _verbose(on_event: Listener | None) -> Listener:
    from taoloop.runtime.live.verbose_listener import verbose_listener  # noqa: PLC0415  # where it is asked for

    return verbose_listener(on_event)
