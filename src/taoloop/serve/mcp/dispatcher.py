"""The desk behind the server: it drives the runs that calls become, some at a time, and carries their questions.

A run is driven in a task of its own, so that a cancellation by the host reaches it once, as a stop, and what it did is
written down before the request ends.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import anyio
import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError

from taoloop.core.decision import Act
from taoloop.core.events import ActionRequested, Event, ModelReplied, Observed
from taoloop.errors import TaoError, ToolError
from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest, Approver
from taoloop.runtime.engine.clock import Clock, SystemClock, new_run_id
from taoloop.runtime.result import Result
from taoloop.runtime.runner import Listener
from taoloop.serve.mcp import call_results as results
from taoloop.serve.mcp.elicitation import (
    BY,
    MAX_QUESTIONS,
    TOO_MANY,
    ElicitationApprover,
    answer_of,
    can_ask,
    elicitation,
    is_modern,
    refuse,
)

AT_ONCE = 64
"""How many runs go on at the same time; further calls wait for their turn."""

MOST_WAITING = 1_024
"""How many calls may wait for their turn; one more is refused."""

MOST_OPEN = 256
"""How many calls may wait for the answer to a question; one more is refused."""

QUESTION_S = 600.0
"""How long a question stays open."""

STOP_S = 10.0
"""How long a run that was told to stop may take to write that down."""

_LOG = logging.getLogger("taoloop")
_FAULT = "The server failed while it served this call ({}); what it wrote down stands in its journal."
_GONE = "The question was answered already, or its time is over. Make the call anew."

Ctx = ServerRequestContext[Any, Any]
Answer = types.CallToolResult | types.InputRequiredResult


class CallTask(Protocol):
    """What one call asks for, as a run that can be begun, gone on with, and told about."""

    async def start(self, run_id: str, approver: Approver, listener: Listener | None) -> Result:
        """Begin the run, and drive it until it ends or waits."""
        ...

    async def go_on(self, run_id: str, approver: Approver, listener: Listener | None) -> Result:
        """Go on with the run, which waits."""
        ...

    async def told(self, result: Result) -> types.CallToolResult:
        """What came of it."""
        ...

    async def give_up(self, run_id: str) -> None:
        """Nobody will answer its questions any more."""
        ...


class CallDispatcher:
    """Serves calls. One desk per server; it is closed when the server ends."""

    def __init__(self, *, at_once: int = AT_ONCE, question_s: float = QUESTION_S, clock: Clock | None = None) -> None:
        self._turns, self._waiting = asyncio.Semaphore(at_once), 0
        self._question_s, self._clock = question_s, clock or SystemClock()
        self._running: set[asyncio.Task[Any]] = set()
        self._giving_up: set[asyncio.Task[None]] = set()
        self._asked_now = 0
        self._open: dict[str, tuple[CallTask, asyncio.TimerHandle]] = {}
        self._closed = False

    async def serve(self, ctx: Ctx, params: types.CallToolRequestParams, work: CallTask) -> Answer:
        """Do the work of one call; the result, or the questions that the person at the host has to answer first."""
        try:
            async with _Progress(ctx) as progress:
                if params.request_state is None:
                    return await self._begun(ctx, work, progress.listener)
                run_id, answers = self._taken_up(params)
                return await self._gone_on(ctx, work, run_id, answers, progress.listener)
        except TaoError as error:
            return results.of_error(error)
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001  # what the SDK would tell the host of it could hold anything
            _LOG.exception("a call of %r could not be served", params.name)
            return results.failed("internal", _FAULT.format(type(error).__name__), "")

    async def _begun(self, ctx: Ctx, work: CallTask, listener: Listener) -> Answer:
        run_id = new_run_id(self._clock.now())
        asking = ElicitationApprover()
        approver: Approver = asking
        if not can_ask(ctx):
            approver = refuse
        elif len(self._open) + self._asked_now >= MOST_OPEN:
            approver = partial(refuse, why=TOO_MANY)
        result = await self._drive(lambda: work.start(run_id, approver, listener))
        return await self._settled(ctx, work, result, asking, listener)

    async def _gone_on(
        self, ctx: Ctx, work: CallTask, run_id: str, answers: Mapping[str, ApprovalAnswer], listener: Listener
    ) -> Answer:
        asking = ElicitationApprover(answers)
        result = await self._again(work, run_id, asking, listener)
        return await self._settled(ctx, work, result, asking, listener)

    async def _settled(
        self, ctx: Ctx, work: CallTask, result: Result, asking: ElicitationApprover, listener: Listener
    ) -> Answer:
        """The result, once the run's questions are answered, or the questions where the host asks between two calls."""
        while result.status == "waiting" and asking.open:
            if is_modern(ctx):
                return self._questions(work, result.run_id, asking)
            answers = await self._asked(ctx, work, result.run_id, asking)
            asking = ElicitationApprover(answers)
            result = await self._again(work, result.run_id, asking, listener)
        return await work.told(result)

    async def _again(
        self, work: CallTask, run_id: str, asking: ElicitationApprover, listener: Listener | None
    ) -> Result:
        try:
            return await self._drive(lambda: work.go_on(run_id, asking, listener))
        except (asyncio.CancelledError, TaoError):
            self._leave(work, run_id)  # where it still waits, nobody else will
            raise

    # Questions between two calls (2026-07-28)

    def _questions(self, work: CallTask, run_id: str, asking: ElicitationApprover) -> types.InputRequiredResult:
        keys = list(asking.open)[:MAX_QUESTIONS]
        names = {f"question_{number}": key for number, key in enumerate(keys, 1)}
        timer = asyncio.get_running_loop().call_later(self._question_s, self._expire, run_id)
        self._open[run_id] = (work, timer)
        asked: dict[str, types.InputRequest] = {
            name: types.ElicitRequest(params=elicitation(asking.open[key])) for name, key in names.items()
        }
        state = json.dumps({"run": run_id, "questions": names})  # sealed on its way, and bound to exactly this call
        return types.InputRequiredResult(input_requests=asked, request_state=state)

    def _taken_up(self, params: types.CallToolRequestParams) -> tuple[str, dict[str, ApprovalAnswer]]:
        """The run that a host goes on with, and the answers that it brings. Each state counts once."""
        try:
            state = json.loads(params.request_state or "")
            run_id, names = str(state["run"]), dict(state["questions"])
            _, timer = self._open.pop(run_id)
        except (ValueError, TypeError, KeyError):
            raise MCPError(code=types.INVALID_PARAMS, message=_GONE) from None
        timer.cancel()
        given = params.input_responses or {}
        return run_id, {names[name]: answer_of(response) for name, response in given.items() if name in names}

    def _expire(self, run_id: str) -> None:
        if (found := self._open.pop(run_id, None)) is not None:
            self._leave(found[0], run_id)

    def _leave(self, work: CallTask, run_id: str) -> None:
        task = asyncio.create_task(self._give_up(work, run_id))
        self._giving_up.add(task)
        task.add_done_callback(self._giving_up.discard)

    async def _give_up(self, work: CallTask, run_id: str) -> None:
        try:
            await work.give_up(run_id)
        except TaoError as error:
            _LOG.warning("run %s is left waiting: %s", run_id, error.message)

    # Questions while the call waits (the handshake era)

    async def _asked(
        self, ctx: Ctx, work: CallTask, run_id: str, asking: ElicitationApprover
    ) -> dict[str, ApprovalAnswer]:
        answers: dict[str, ApprovalAnswer] = {}
        answered = False
        self._asked_now += 1
        try:
            for key, request in asking.open.items():
                answers[key] = await self._ask(ctx, request)
            answered = True
        finally:
            self._asked_now -= 1
            if not answered:
                self._leave(work, run_id)
        return answers

    async def _ask(self, ctx: Ctx, request: ApprovalRequest) -> ApprovalAnswer:
        form = elicitation(request)
        try:
            async with asyncio.timeout(self._question_s):
                said = await ctx.session.elicit_form(form.message, form.requested_schema, ctx.request_id)
                return answer_of(said)
        except TimeoutError:
            why = f"nobody answered within {self._question_s:g} s"
        except MCPError as error:
            why = f"the client did not ask: {error.error.message}"
        except ValueError:  # pydantic's
            why = "the client sent something else than an answer"
        return ApprovalAnswer(approved=False, by=BY, note=why[:500], batch=True)

    # Runs

    async def _drive(self, make: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """The result of a run in a task of its own. A cancellation stops it, and waits until that is written down."""
        if self._waiting >= MOST_WAITING or self._closed:
            why = "The server is being stopped." if self._closed else f"{self._waiting:,} calls are waiting already."
            raise ToolError(why, code="busy", retryable=True, hint="Try again later.")
        task = asyncio.create_task(self._in_turn(make))
        self._keep(task)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([task], timeout=STOP_S)
            raise

    async def _in_turn(self, make: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            return await make()
        finally:
            self._turns.release()

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Stop what runs, and give up what waits for an answer; returns when that is written down."""
        self._closed = True
        for run_id in list(self._open):
            work, timer = self._open.pop(run_id)
            timer.cancel()
            self._leave(work, run_id)
        tasks = list(self._running)
        for task in tasks:
            task.cancel()
        tasks += self._giving_up  # these are not cancelled
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_S)


class _Progress:
    """Tells the host how far a call has come, where it asked for that: one notification per thing that happened."""

    def __init__(self, ctx: Ctx) -> None:
        self._ctx, self._count = ctx, 0
        self._news: asyncio.Queue[str | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> _Progress:
        self._task = asyncio.create_task(self._tell())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is None:
            return
        self._news.put_nowait(None)
        with anyio.CancelScope(shield=True), suppress(asyncio.CancelledError):
            await asyncio.wait([self._task], timeout=1.0)
            self._task.cancel()

    def listener(self, event: Event) -> None:
        match event.fact:
            case ModelReplied(step=step, purpose="decide", decision=Act(calls=calls)):
                self._news.put_nowait(f"step {step}: {', '.join(call.tool for call in calls)}")
            case ModelReplied(step=step):
                self._news.put_nowait(f"step {step}")
            case ActionRequested(verdict="ask", tool=tool):
                self._news.put_nowait(f"{tool}: a person decides")
            case Observed(call_id=call_id, ok=ok):
                self._news.put_nowait(f"{call_id}: {'done' if ok else 'failed'}")
            case _:
                pass

    async def _tell(self) -> None:
        while (text := await self._news.get()) is not None:
            self._count += 1
            try:
                await self._ctx.session.report_progress(self._count, None, text[:200])
            except Exception:  # noqa: BLE001  # a host that cannot be told is served all the same
                _LOG.debug("progress could not be told", exc_info=True)
                return
