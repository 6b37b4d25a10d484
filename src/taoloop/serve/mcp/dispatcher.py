"""Dispatches calls: each becomes a run, a limited number at a time, and its questions go to the person at the host.

A run has a task of its own, so that a cancellation by the host reaches it once, as a stop, and what it did is recorded
before the request ends. A host of the 2026 era gets questions instead of the result and repeats the call with the
answers; one of the handshake era is asked while its call waits. What is shown is up to the host, which also answers for
its person.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Literal, Protocol

import anyio
import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from taoloop.core.decision import Act
from taoloop.core.events import ActionRequested, Event, ModelReplied, Observed
from taoloop.core.text import blank_unprintable, printable_json
from taoloop.core.views.plans import plan_lines
from taoloop.core.views.transcript import Result
from taoloop.errors import TaoError, ToolError
from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest, Approver
from taoloop.runtime.engine.clock import Clock, SystemClock, new_run_id
from taoloop.runtime.runner import Listener
from taoloop.serve.texts import TEXTS

MAX_CONCURRENT = 64
"""How many runs are active at the same time; further calls wait for a slot."""

MAX_WAITING = 1_024
"""How many calls may wait for a slot; one more is refused."""

MAX_OPEN = 256
"""How many calls may wait for the answer to a question; one more is refused."""

MAX_QUESTIONS = 16
"""How many questions one result may have; the others are asked in the next round."""

QUESTION_TIMEOUT_S = 600.0
"""How long a question stays open."""

STOP_TIMEOUT_S = 10.0
"""How long a run that is stopped may take to record that."""

BY = "mcp"
"""Who answered, in the trace: the host, which claims that a person did."""

RUN_KEY, ERROR_KEY = "taoloop/run_id", "taoloop/error"
"""Fields of `_meta` in a result: its run, and its error as data."""

_LOG = logging.getLogger("taoloop")
_INTERNAL_ERROR = "The server failed while it served this call ({}); what it recorded is in its journal."
_QUESTION_CLOSED = "The question was answered already, or its time is over. Make the call again."
_MAX_NOTE_CHARS = 2_000
_ROLE_ORDER = {"target": 0, "value": 2, "content": 3, "minor": 4}

Ctx = ServerRequestContext[Any, Any]
Answer = types.CallToolResult | types.InputRequiredResult
Arguments = Mapping[str, Any]


class CallTask(Protocol):
    """What the calls of one tool become: runs that can be started and resumed."""

    def language(self, args: Arguments) -> str:
        """The language of a run with these arguments: that of its questions, and of notes that its model reads."""

    async def start(self, args: Arguments, run_id: str, approver: Approver, listener: Listener | None) -> Result:
        """Start a run, and drive it until it ends or waits."""

    async def resume(self, run_id: str, approver: Approver, listener: Listener | None) -> Result:
        """Resume a run, which waits."""

    async def result_for_host(self, result: Result) -> types.CallToolResult:
        """The result of the call, as MCP has it."""

    async def abandon(self, run_id: str) -> None:
        """Nobody will answer its questions any more."""


class CallDispatcher:
    """Serves calls. One dispatcher per server; it is closed when the server ends."""

    def __init__(
        self, *, at_once: int = MAX_CONCURRENT, question_s: float = QUESTION_TIMEOUT_S, clock: Clock | None = None
    ) -> None:
        self._slots, self._at_once = asyncio.Semaphore(at_once), at_once
        self._question_s, self._clock = question_s, clock or SystemClock()
        self._running: set[asyncio.Task[Any]] = set()
        self._abandoning: set[asyncio.Task[None]] = set()
        self._open_elicitations = 0
        self._open: dict[str, tuple[CallTask, asyncio.TimerHandle]] = {}
        self._closed = False

    async def serve(self, ctx: Ctx, params: types.CallToolRequestParams, call: CallTask) -> Answer:
        """The result of one call, or the questions that the person at the host has to answer first."""
        args = params.arguments or {}
        try:
            language = call.language(args)
            async with _progress(ctx, language) as listener:
                if params.request_state is None:
                    run_id, elicitor = new_run_id(self._clock.now()), ElicitationApprover(language=language)
                    approver = self._approver(ctx, elicitor, language)
                    result = await self._drive(lambda: call.start(args, run_id, approver, listener))
                else:
                    run_id, answers = self._parse_state(params, language)
                    elicitor = ElicitationApprover(answers, language=language)
                    result = await self._resume(call, run_id, elicitor, listener)
                while result.status == "waiting" and elicitor.open:
                    if is_modern(ctx):
                        return self._questions(call, run_id, elicitor, language)
                    elicitor = ElicitationApprover(
                        await self._ask_all(ctx, call, run_id, elicitor, language), language=language
                    )
                    result = await self._resume(call, run_id, elicitor, listener)
                return await call.result_for_host(result)
        except TaoError as error:
            return failed_result(str(error.code), error.message, error.hint, retryable=bool(error.retryable))
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001  # the SDK would send the host its message, which may contain anything
            _LOG.exception("a call of %r could not be served", params.name)
            return failed_result("internal", _INTERNAL_ERROR.format(type(error).__name__), "")

    def _approver(self, ctx: Ctx, elicitor: ElicitationApprover, language: str) -> Approver:
        if not can_ask(ctx):
            return partial(refuse, language=language)
        if len(self._open) + self._open_elicitations >= MAX_OPEN:
            return partial(refuse, reason="too_many", language=language)
        return elicitor

    async def _resume(
        self, call: CallTask, run_id: str, elicitor: ElicitationApprover, listener: Listener | None
    ) -> Result:
        try:
            return await self._drive(lambda: call.resume(run_id, elicitor, listener))
        except (asyncio.CancelledError, TaoError):
            self._abandon_later(call, run_id)  # where it still waits, nobody else resumes it
            raise

    # Questions between two calls (2026-07-28)

    def _questions(
        self, call: CallTask, run_id: str, elicitor: ElicitationApprover, language: str
    ) -> types.InputRequiredResult:
        keys = {f"question_{number}": key for number, key in enumerate([*elicitor.open][:MAX_QUESTIONS], 1)}
        timer = asyncio.get_running_loop().call_later(self._question_s, self._expire, run_id)
        self._open[run_id] = (call, timer)
        requests: dict[str, types.InputRequest] = {}
        for name, key in keys.items():
            message, schema = question_text(elicitor.open[key], language), form_schema(language)
            form = types.ElicitRequestFormParams(message=message, requested_schema=schema)
            requests[name] = types.ElicitRequest(params=form)
        state = json.dumps({"run": run_id, "questions": keys})  # sealed by the server, and bound to exactly this call
        return types.InputRequiredResult(input_requests=requests, request_state=state)

    def _parse_state(self, params: types.CallToolRequestParams, language: str) -> tuple[str, dict[str, ApprovalAnswer]]:
        """The run that a host continues, and the answers that it brings. Each state counts once."""
        try:
            state = json.loads(params.request_state or "")
            run_id, keys = str(state["run"]), dict(state["questions"])
            _, timer = self._open.pop(run_id)
        except (ValueError, TypeError, KeyError):
            raise MCPError(code=types.INVALID_PARAMS, message=_QUESTION_CLOSED) from None
        timer.cancel()
        responses = params.input_responses or {}
        return run_id, {keys[name]: parse_answer(responses[name], language) for name in responses if name in keys}

    def _expire(self, run_id: str) -> None:
        if (pending := self._open.pop(run_id, None)) is not None:
            self._abandon_later(pending[0], run_id)

    def _abandon_later(self, call: CallTask, run_id: str) -> None:
        async def abandon() -> None:
            try:
                await call.abandon(run_id)
            except TaoError as error:
                _LOG.warning("run %s is left waiting: %s", run_id, error.message)

        task = asyncio.create_task(abandon())
        self._abandoning.add(task)
        task.add_done_callback(self._abandoning.discard)

    # Questions while the call waits (the handshake era)

    async def _ask_all(
        self, ctx: Ctx, call: CallTask, run_id: str, elicitor: ElicitationApprover, language: str
    ) -> dict[str, ApprovalAnswer]:
        self._open_elicitations += 1
        try:
            return {key: await self._ask(ctx, request, language) for key, request in elicitor.open.items()}
        except BaseException:
            self._abandon_later(call, run_id)
            raise
        finally:
            self._open_elicitations -= 1

    async def _ask(self, ctx: Ctx, request: ApprovalRequest, language: str) -> ApprovalAnswer:
        question, form = question_text(request, language), form_schema(language)
        try:
            async with asyncio.timeout(self._question_s):
                response = await ctx.session.elicit_form(question, form, ctx.request_id)
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
        waiting = len(self._running) - self._at_once  # for a slot
        if waiting >= MAX_WAITING or self._closed:
            why = "The server is shutting down." if self._closed else f"{waiting:,} calls are waiting already."
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
        async with self._slots:
            return await make()

    async def close(self) -> None:
        """Stop active runs, and abandon those that wait for an answer; returns when that is recorded."""
        self._closed = True
        for run_id, (_, timer) in list(self._open.items()):
            timer.cancel()
            self._expire(run_id)
        tasks = list(self._running)
        for task in tasks:
            task.cancel()
        tasks += self._abandoning  # these are not cancelled
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_TIMEOUT_S)


@asynccontextmanager
async def _progress(ctx: Ctx, language: str) -> AsyncIterator[Listener]:
    """Tells the host how far a call has come, where it asked for that: one notification for each thing that happens."""
    texts: asyncio.Queue[str | None] = asyncio.Queue()

    def listener(event: Event) -> None:
        if text := _progress_text(event, language):
            texts.put_nowait(text)

    async def send() -> None:
        count = 0
        while (text := await texts.get()) is not None:
            count += 1
            try:
                await ctx.session.report_progress(count, None, text[:200])
            except Exception:  # noqa: BLE001  # a host that takes no progress is served all the same
                _LOG.debug("progress could not be sent", exc_info=True)
                return

    task = asyncio.create_task(send())
    try:
        yield listener
    finally:
        texts.put_nowait(None)
        with anyio.CancelScope(shield=True), suppress(asyncio.CancelledError):
            await asyncio.wait([task], timeout=1.0)
            task.cancel()


def _progress_text(event: Event, language: str) -> str:
    match event.fact:
        case ModelReplied(step=step, purpose="decide", decision=Act(calls=calls)):
            return TEXTS.text(language, "progress_calls", step=step, tools=", ".join(call.tool for call in calls))
        case ModelReplied(step=step):
            return TEXTS.text(language, "progress_step", step=step)
        case ActionRequested(verdict="ask", tool=tool):
            return TEXTS.text(language, "progress_asks", tool=tool)
        case Observed(call_id=call_id, ok=ok):
            return TEXTS.text(language, "progress_done" if ok else "progress_failed", call_id=call_id)
        case _:
            return ""


def failed_result(
    code: str, message: str, hint: str, *, retryable: bool = False, run_id: str | None = None
) -> types.CallToolResult:
    """A result that is an error of the tool: its code, the problem and the remedy, for model and host."""
    text = f"{code}: {message}" + (f" {hint}" if hint else "")
    meta: dict[str, Any] = {ERROR_KEY: {"code": code, "message": message, "retryable": retryable, "hint": hint}}
    if run_id is not None:
        meta[RUN_KEY] = run_id
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True, _meta=meta)


# Questions and answers


def form_schema(language: str = "en") -> dict[str, Any]:
    """What a person is asked to fill in. Nothing is approved by default."""
    text = partial(TEXTS.text, language)
    allow = {"type": "boolean", "title": text("form_allow"), "description": text("form_allow_help"), "default": False}
    note = {"type": "string", "title": text("form_note"), "description": text("form_note_help")}
    return {"type": "object", "properties": {"allow": allow, "note": note}, "required": ["allow"]}


def is_modern(ctx: Ctx) -> bool:
    """Whether a request is of the era in which questions are part of the result (2026-07-28 and later)."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def can_ask(ctx: Ctx) -> bool:
    """Whether the host declares that it can show a form to a person."""
    capabilities = ctx.session.client_capabilities
    elicitation = None if capabilities is None else capabilities.elicitation
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False  # none at all, or web pages only; an empty object means forms
    return is_modern(ctx) or ctx.session.can_send_request


class ElicitationApprover:
    """An approver that gives the answers it has, and keeps the questions that it has none for."""

    def __init__(self, answers: Mapping[str, ApprovalAnswer] | None = None, *, language: str = "en") -> None:
        self.answers, self._language = dict(answers or {}), language
        self.open: dict[str, ApprovalRequest] = {}

    def __call__(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """The answer to a question, which counts once; None for "not now".

        Hosts are not asked about calls in doubt, and get no questions of other servers.
        What is the operator's to answer is refused: the person at the host is the user.
        """
        if request.doubt or request.question is not None:
            return None
        if request.for_operator:
            return refuse(request, "for_operator", self._language)
        key = f"{request.run_id}/{request.call_id}"  # the run may be an inner one
        answer = self.answers.pop(key, None)
        if answer is None:
            self.open[key] = request
        return answer


def refuse(
    request: ApprovalRequest, reason: Literal["no_forms", "too_many", "for_operator"] = "no_forms", language: str = "en"
) -> ApprovalAnswer | None:
    """The refusal where nobody can be asked, with the remedy: how such calls can be allowed."""
    if request.doubt or request.question is not None:
        return None
    if request.card is not None and request.card.requires_approval:
        remedy = TEXTS.text(language, "remedy_rule")
    else:
        tier = (request.card.tier if request.card is not None else None) or "destructive"
        remedy = TEXTS.text(language, "remedy", tier=tier)
    why = TEXTS.text(language, reason)
    return refusal(TEXTS.text(language, "refused_unasked", reason=why, tool=request.tool, remedy=remedy))


def refusal(note: str) -> ApprovalAnswer:
    """A no to all calls of the question; the model reads the note."""
    return ApprovalAnswer(approved=False, by=BY, note=note[:_MAX_NOTE_CHARS], batch=True)


def parse_answer(response: object, language: str = "en") -> ApprovalAnswer:
    """Parse a host's answer: only a form that was submitted with `allow` true is a yes."""
    if not isinstance(response, types.ElicitResult):
        return refusal(TEXTS.text(language, "no_answer"))
    content = response.content or {}
    if response.action == "accept" and content.get("allow") is True:
        return ApprovalAnswer(approved=True, by=BY, batch=True)
    note = content.get("note")
    if isinstance(note, str) and note.strip():
        return refusal(note)
    if response.action == "accept":
        return refusal(TEXTS.text(language, "person_refused"))
    return refusal(TEXTS.text(language, "person_said", action=response.action))


def question_text(request: ApprovalRequest, language: str = "en") -> str:
    """The question for a person: each call with its target first, values whole and with their origin, and the reasons.

    No value can be mistaken for another line of the question: values are JSON, on one line each.
    """
    calls = (request, *request.batch)
    lines = [TEXTS.text(language, "question_one" if len(calls) == 1 else "question_many", n=len(calls))]
    if any(call.high_risk for call in calls):
        lines.append(TEXTS.text(language, "question_grave"))
    for call in calls:
        lines += _call_lines(call, language)
    reasons = TEXTS.text(language, "separator").join(blank_unprintable(reason) for reason in request.reasons)
    lines.append(TEXTS.text(language, "question_reasons", reasons=reasons))
    return "\n".join(lines)


def _call_lines(request: ApprovalRequest, language: str) -> list[str]:
    tier = (request.card.tier if request.card is not None else None) or TEXTS.text(language, "question_no_tier")
    lines = [f"{blank_unprintable(request.tool)} [{tier}]"]
    if (plan := request.plan) is not None:
        return [*lines, *(f"  {blank_unprintable(line)}" for line in plan_lines(language, plan))]

    def display_order(name: str) -> int:
        return _ROLE_ORDER.get("target" if request.card is None else request.card.role(name), 1)

    for name in sorted(request.args, key=display_order):
        sources = [source for source in request.sources if source.arg.partition(".")[0].partition("[")[0] == name]
        badges = dict.fromkeys(TEXTS.text(language, f"badge_{source.badge}") for source in sources)
        joined = TEXTS.text(language, "separator").join(badges)
        origin = TEXTS.text(language, "question_origin", badges=joined) if badges else ""
        lines.append(f"  {blank_unprintable(name)} = {printable_json(request.args[name])}{origin}")
    return lines
