"""Dispatches calls: each becomes a run, a limited number at a time, and its questions go to the person at the host.

A run has a task of its own, so that a cancellation by the host reaches it once, as a stop, and what it did is recorded
before the request ends.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine
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
    MAX_QUESTIONS,
    ElicitationApprover,
    can_ask,
    is_modern,
    parse_answer,
    question_form,
    refusal,
    refuse,
)
from taoloop.serve.texts import TEXTS

MAX_CONCURRENT = 64
"""How many runs are active at the same time; further calls wait for a slot."""

MAX_WAITING = 1_024
"""How many calls may wait for a slot; one more is refused."""

MAX_OPEN = 256
"""How many calls may wait for the answer to a question; one more is refused."""

QUESTION_TIMEOUT_S = 600.0
"""How long a question stays open."""

STOP_TIMEOUT_S = 10.0
"""How long a run that is stopped may take to record that."""

_LOG = logging.getLogger("taoloop")
_INTERNAL_ERROR = "The server failed while it served this call ({}); what it recorded is in its journal."
_QUESTION_CLOSED = "The question was answered already, or its time is over. Make the call again."

Ctx = ServerRequestContext[Any, Any]
Answer = types.CallToolResult | types.InputRequiredResult


class CallTask(Protocol):
    """What one call asks for, as a run that can be started and resumed."""

    @property
    def language(self) -> str:
        """The language of the run: that of its questions, and of notes that its model reads."""
        ...

    async def start(self, run_id: str, approver: Approver, listener: Listener | None) -> Result:
        """Start the run, and drive it until it ends or waits."""
        ...

    async def resume(self, run_id: str, approver: Approver, listener: Listener | None) -> Result:
        """Resume the run, which waits."""
        ...

    async def result_for_host(self, result: Result) -> types.CallToolResult:
        """The result of the call, as MCP has it."""
        ...

    async def abandon(self, run_id: str) -> None:
        """Nobody will answer its questions any more."""
        ...


class CallDispatcher:
    """Serves calls. One dispatcher per server; it is closed when the server ends."""

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
        """The result of one call, or the questions that the person at the host has to answer first."""
        try:
            async with _Progress(ctx, call.language) as progress:
                if params.request_state is None:
                    elicitor = ElicitationApprover()
                    result = await self._start(ctx, call, elicitor, progress.listener)
                else:
                    run_id, answers = self._parse_state(params, call.language)
                    elicitor = ElicitationApprover(answers)
                    result = await self._resume(call, run_id, elicitor, progress.listener)
                return await self._result_or_questions(ctx, call, result, elicitor, progress.listener)
        except TaoError as error:
            return results.error_result(error)
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001  # the SDK would send the host its message, which may contain anything
            _LOG.exception("a call of %r could not be served", params.name)
            return results.failed_result("internal", _INTERNAL_ERROR.format(type(error).__name__), "")

    async def _start(self, ctx: Ctx, call: CallTask, elicitor: ElicitationApprover, listener: Listener) -> Result:
        run_id = new_run_id(self._clock.now())
        approver: Approver = elicitor
        if not can_ask(ctx):
            approver = partial(refuse, language=call.language)
        elif len(self._open) + self._open_elicitations >= MAX_OPEN:
            approver = partial(refuse, reason="too_many", language=call.language)
        return await self._drive(lambda: call.start(run_id, approver, listener))

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
            self._abandon_later(call, run_id)  # where it still waits, nobody else resumes it
            raise

    # Questions between two calls (2026-07-28)

    def _questions(self, call: CallTask, run_id: str, elicitor: ElicitationApprover) -> types.InputRequiredResult:
        keys = list(elicitor.open)[:MAX_QUESTIONS]
        names = {f"question_{number}": key for number, key in enumerate(keys, 1)}
        timer = asyncio.get_running_loop().call_later(self._question_s, self._expire, run_id)
        self._open[run_id] = (call, timer)
        requests: dict[str, types.InputRequest] = {
            name: types.ElicitRequest(params=question_form(elicitor.open[key], call.language))
            for name, key in names.items()
        }
        state = json.dumps({"run": run_id, "questions": names})  # sealed by the server, and bound to exactly this call
        return types.InputRequiredResult(input_requests=requests, request_state=state)

    def _parse_state(self, params: types.CallToolRequestParams, language: str) -> tuple[str, dict[str, ApprovalAnswer]]:
        """The run that a host continues, and the answers that it brings. Each state counts once."""
        try:
            state = json.loads(params.request_state or "")
            run_id, names = str(state["run"]), dict(state["questions"])
            _, timer = self._open.pop(run_id)
        except (ValueError, TypeError, KeyError):
            raise MCPError(code=types.INVALID_PARAMS, message=_QUESTION_CLOSED) from None
        timer.cancel()
        responses = params.input_responses or {}
        answers = {name: parse_answer(response, language) for name, response in responses.items() if name in names}
        return run_id, {names[name]: answer for name, answer in answers.items()}

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
                answers[key] = await self._ask(ctx, request, call.language)
            answered = True
        finally:
            self._open_elicitations -= 1
            if not answered:
                self._abandon_later(call, run_id)
        return answers

    async def _ask(self, ctx: Ctx, request: ApprovalRequest, language: str) -> ApprovalAnswer:
        form = question_form(request, language)
        try:
            async with asyncio.timeout(self._question_s):
                response = await ctx.session.elicit_form(form.message, form.requested_schema, ctx.request_id)
                return parse_answer(response, language)
        except TimeoutError:
            return refusal(TEXTS.text(language, "no_answer_in_time", seconds=self._question_s))
        except MCPError as error:
            return refusal(TEXTS.text(language, "client_refused", message=error.error.message[:500]))
        except ValueError:  # pydantic's
            return refusal(TEXTS.text(language, "no_answer"))

    # Runs

    async def _drive(self, make: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """The result of a run in a task of its own. A cancellation stops it, and waits until that is recorded."""
        if self._waiting >= MAX_WAITING or self._closed:
            why = "The server is shutting down." if self._closed else f"{self._waiting:,} calls are waiting already."
            raise ToolError(why, code="busy", retryable=True, hint="Try again later.")
        task = asyncio.create_task(self._with_slot(make))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
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

    async def close(self) -> None:
        """Stop active runs, and abandon those that wait for an answer; returns when that is recorded."""
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
    """Tells the host how far a call has come, where it asked for that: one notification for each thing that happens."""

    def __init__(self, ctx: Ctx, language: str) -> None:
        self._ctx, self._language, self._count = ctx, language, 0
        self._news: asyncio.Queue[str | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> _Progress:
        self._task = asyncio.create_task(self._send())
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
                self._report("progress_calls", step=step, tools=", ".join(call.tool for call in calls))
            case ModelReplied(step=step):
                self._report("progress_step", step=step)
            case ActionRequested(verdict="ask", tool=tool):
                self._report("progress_asks", tool=tool)
            case Observed(call_id=call_id, ok=ok):
                self._report("progress_done" if ok else "progress_failed", call_id=call_id)
            case _:
                pass

    def _report(self, name: str, **values: object) -> None:
        self._news.put_nowait(TEXTS.text(self._language, name, **values))

    async def _send(self) -> None:
        while (text := await self._news.get()) is not None:
            self._count += 1
            try:
                await self._ctx.session.report_progress(self._count, None, text[:200])
            except Exception:  # noqa: BLE001  # a host that takes no progress is served all the same
                _LOG.debug("progress could not be sent", exc_info=True)
                return
