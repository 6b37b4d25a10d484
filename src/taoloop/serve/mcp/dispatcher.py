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
    can_ask,
    is_modern,
    parse_answer,
    question_form,
    refuse,
)

MAX_CONCURRENT = 64
"""How many runs go on at the same time; further calls wait for their turn."""

MAX_WAITING = 1_024
"""How many calls may wait for their turn; one more is refused."""

MAX_OPEN = 256
"""How many calls may wait for the answer to a question; one more is refused."""

QUESTION_TIMEOUT_S = 600.0
"""How long a question stays open."""

STOP_TIMEOUT_S = 10.0
"""How long a run that was told to stop may take to write that down."""

_LOG = logging.getLogger("taoloop")
_INTERNAL_ERROR = "The server failed while it served this call ({}); what it wrote down stands in its journal."
_QUESTION_CLOSED = "The question was answered already, or its time is over. Make the call anew."

Ctx = ServerRequestContext[Any, Any]
Answer = types.CallToolResult | types.InputRequiredResult


class CallTask(Protocol):
    """What one call asks for, as a run that can be begun, gone on with, and told about."""

    async def start(self, run_id: str, approver: Approver, listener: Listener | None) -> Result:
        """Begin the run, and drive it until it ends or waits."""
        ...

    async def resume(self, run_id: str, approver: Approver, listener: Listener | None) -> Result:
        """Go on with the run, which waits."""
        ...

    async def result_for_host(self, result: Result) -> types.CallToolResult:
        """What came of it."""
        ...

    async def abandon(self, run_id: str) -> None:
        """Nobody will answer its questions any more."""
        ...


class CallDispatcher:
    """Serves calls. One desk per server; it is closed when the server ends."""

    def __init__(
        self, *, at_once: int = MAX_CONCURRENT, question_s: float = QUESTION_TIMEOUT_S, clock: Clock | None = None
    ) -> None:
        self._slots, self._waiting = asyncio.Semaphore(at_once), 0
        self._question_s, self._clock = question_s, clock or SystemClock()
        self._running: set[asyncio.Task[Any]] = set()
        self._abandoning: set[asyncio.Task[None]] = set()
        self._open_elicitations = 0
        self._open: dict[str, tuple[CallTask, asyncio.TimerHandle]] = {}
        self._closed = False

    async def serve(self, ctx: Ctx, params: types.CallToolRequestParams, call: CallTask) -> Answer:
        """Do the work of one call; the result, or the questions that the person at the host has to answer first."""
        try:
            async with _Progress(ctx) as progress:
                if params.request_state is None:
                    return await self._start(ctx, call, progress.listener)
                run_id, answers = self._parse_state(params)
                return await self._continue(ctx, call, run_id, answers, progress.listener)
        except TaoError as error:
            return results.error_result(error)
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001  # what the SDK would tell the host of it could hold anything
            _LOG.exception("a call of %r could not be served", params.name)
            return results.failed_result("internal", _INTERNAL_ERROR.format(type(error).__name__), "")

    async def _start(self, ctx: Ctx, call: CallTask, listener: Listener) -> Answer:
        run_id = new_run_id(self._clock.now())
        elicitor = ElicitationApprover()
        approver: Approver = elicitor
        if not can_ask(ctx):
            approver = refuse
        elif len(self._open) + self._open_elicitations >= MAX_OPEN:
            approver = partial(refuse, why=TOO_MANY)
        result = await self._drive(lambda: call.start(run_id, approver, listener))
        return await self._result_or_questions(ctx, call, result, elicitor, listener)

    async def _continue(
        self, ctx: Ctx, call: CallTask, run_id: str, answers: Mapping[str, ApprovalAnswer], listener: Listener
    ) -> Answer:
        elicitor = ElicitationApprover(answers)
        result = await self._resume(call, run_id, elicitor, listener)
        return await self._result_or_questions(ctx, call, result, elicitor, listener)

    async def _result_or_questions(
        self, ctx: Ctx, call: CallTask, result: Result, elicitor: ElicitationApprover, listener: Listener
    ) -> Answer:
        """The result, once the run's questions are answered, or the questions where the host asks between two calls."""
        while result.status == "waiting" and elicitor.open:
            if is_modern(ctx):
                return self._questions(call, result.run_id, elicitor)
            answers = await self._ask_all(ctx, call, result.run_id, elicitor)
            elicitor = ElicitationApprover(answers)
            result = await self._resume(call, result.run_id, elicitor, listener)
        return await call.result_for_host(result)

    async def _resume(
        self, call: CallTask, run_id: str, elicitor: ElicitationApprover, listener: Listener | None
    ) -> Result:
        try:
            return await self._drive(lambda: call.resume(run_id, elicitor, listener))
        except (asyncio.CancelledError, TaoError):
            self._abandon_later(call, run_id)  # where it still waits, nobody else will
            raise

    # Questions between two calls (2026-07-28)

    def _questions(self, call: CallTask, run_id: str, elicitor: ElicitationApprover) -> types.InputRequiredResult:
        keys = list(elicitor.open)[:MAX_QUESTIONS]
        names = {f"question_{number}": key for number, key in enumerate(keys, 1)}
        timer = asyncio.get_running_loop().call_later(self._question_s, self._expire, run_id)
        self._open[run_id] = (call, timer)
        requests: dict[str, types.InputRequest] = {
            name: types.ElicitRequest(params=question_form(elicitor.open[key])) for name, key in names.items()
        }
        state = json.dumps({"run": run_id, "questions": names})  # sealed on its way, and bound to exactly this call
        return types.InputRequiredResult(input_requests=requests, request_state=state)

    def _parse_state(self, params: types.CallToolRequestParams) -> tuple[str, dict[str, ApprovalAnswer]]:
        """The run that a host goes on with, and the answers that it brings. Each state counts once."""
        try:
            state = json.loads(params.request_state or "")
            run_id, names = str(state["run"]), dict(state["questions"])
            _, timer = self._open.pop(run_id)
        except (ValueError, TypeError, KeyError):
            raise MCPError(code=types.INVALID_PARAMS, message=_QUESTION_CLOSED) from None
        timer.cancel()
        responses = params.input_responses or {}
        return run_id, {names[name]: parse_answer(response) for name, response in responses.items() if name in names}

    def _expire(self, run_id: str) -> None:
        if (pending := self._open.pop(run_id, None)) is not None:
            self._abandon_later(pending[0], run_id)

    def _abandon_later(self, call: CallTask, run_id: str) -> None:
        task = asyncio.create_task(self._abandon(call, run_id))
        self._abandoning.add(task)
        task.add_done_callback(self._abandoning.discard)

    async def _abandon(self, call: CallTask, run_id: str) -> None:
        try:
            await call.abandon(run_id)
        except TaoError as error:
            _LOG.warning("run %s is left waiting: %s", run_id, error.message)

    # Questions while the call waits (the handshake era)

    async def _ask_all(
        self, ctx: Ctx, call: CallTask, run_id: str, elicitor: ElicitationApprover
    ) -> dict[str, ApprovalAnswer]:
        answers: dict[str, ApprovalAnswer] = {}
        answered = False
        self._open_elicitations += 1
        try:
            for key, request in elicitor.open.items():
                answers[key] = await self._ask(ctx, request)
            answered = True
        finally:
            self._open_elicitations -= 1
            if not answered:
                self._abandon_later(call, run_id)
        return answers

    async def _ask(self, ctx: Ctx, request: ApprovalRequest) -> ApprovalAnswer:
        form = question_form(request)
        try:
            async with asyncio.timeout(self._question_s):
                response = await ctx.session.elicit_form(form.message, form.requested_schema, ctx.request_id)
                return parse_answer(response)
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
        if self._waiting >= MAX_WAITING or self._closed:
            why = "The server is being stopped." if self._closed else f"{self._waiting:,} calls are waiting already."
            raise ToolError(why, code="busy", retryable=True, hint="Try again later.")
        task = asyncio.create_task(self._with_slot(make))
        self._track(task)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([task], timeout=STOP_TIMEOUT_S)
            raise

    async def _with_slot(self, make: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            return await make()
        finally:
            self._slots.release()

    def _track(self, task: asyncio.Task[Any]) -> None:
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Stop what runs, and give up what waits for an answer; returns when that is written down."""
        self._closed = True
        for run_id in list(self._open):
            call, timer = self._open.pop(run_id)
            timer.cancel()
            self._abandon_later(call, run_id)
        tasks = list(self._running)
        for task in tasks:
            task.cancel()
        tasks += self._abandoning  # these are not cancelled
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_TIMEOUT_S)


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
