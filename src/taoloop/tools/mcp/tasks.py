"""Calls that a server carries out as tasks: polled to their end, and cancelled where nobody waits any more.

Two forms: the tasks of MCP 2025-11-25 (SEP-1686), for tools with `taskSupport: required`, and the extension
`io.modelcontextprotocol/tasks` of 2026-07-28 (SEP-2663), where the server decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import mcp_types
from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.session import ClientSession
from mcp_types import INTERNAL_ERROR, CallToolResult, Request, RequestParams, Result
from pydantic import TypeAdapter

from taoloop.tools.mcp.open_calls import CURRENT_CALL, OpenCall
from taoloop.tools.mcp.texts import TEXTS

TASK = "taoloop/task"
"""The field of a result's `_meta` with the task that came in the place of a result (2025-11-25)."""

_DEFAULT_POLL_S, _FASTEST_S, _SLOWEST_S = 1.0, 0.02, 30.0
_CANCEL_S = 2.0  # for a server to take the end of a task
_INPUTS: TypeAdapter[dict[str, mcp_types.InputRequest]] = TypeAdapter(dict[str, mcp_types.InputRequest])
_LOG = logging.getLogger("taoloop.mcp")


class _TaskParams(RequestParams):
    task_id: str
    input_responses: dict[str, Any] | None = None


class _GetTask(Request[_TaskParams, Literal["tasks/get"]]):
    name_param = "taskId"
    method: Literal["tasks/get"] = "tasks/get"
    params: _TaskParams


class _TaskResult(Request[_TaskParams, Literal["tasks/result"]]):
    method: Literal["tasks/result"] = "tasks/result"
    params: _TaskParams


class _UpdateTask(Request[_TaskParams, Literal["tasks/update"]]):
    name_param = "taskId"
    method: Literal["tasks/update"] = "tasks/update"
    params: _TaskParams


class _CancelTask(Request[_TaskParams, Literal["tasks/cancel"]]):
    name_param = "taskId"
    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: _TaskParams


class Task(Result):
    """A task as its server describes it, in either form of the protocol."""

    task_id: str
    """Its name at the server."""
    status: str
    """`working`, `input_required`, `completed`, `failed` or `cancelled`."""
    status_message: str | None = None
    """What it is doing, for people."""
    poll_interval: float | None = None
    """How long to wait between two questions, in milliseconds (2025-11-25)."""
    poll_interval_ms: float | None = None
    """The same (2026-07-28)."""

    @property
    def pause_s(self) -> float:
        """How long to wait before the next question, in seconds."""
        wanted_ms = self.poll_interval if self.poll_interval is not None else self.poll_interval_ms
        wanted_s = _DEFAULT_POLL_S if wanted_ms is None else wanted_ms / 1_000
        return min(_SLOWEST_S, max(_FASTEST_S, wanted_s))


class CreatedTask(Task):
    """The result of a call that became a task (2026-07-28)."""

    result_type: Literal["task"] = "task"


class TaskState(Task):
    """The answer to the question how far a task is."""

    result: dict[str, Any] | None = None
    """The result of a completed task (2026-07-28)."""
    error: dict[str, Any] | None = None
    """The error of a failed task (2026-07-28)."""
    input_requests: dict[str, Any] | None = None
    """What it asks for (2026-07-28)."""


class TasksExtension(ClientExtension):
    """The extension for tasks, of the client's side."""

    identifier = "io.modelcontextprotocol/tasks"

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """The result of a call that became a task."""
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=_resolve)]


async def _resolve(created: CreatedTask, context: ClaimContext) -> CallToolResult:
    first = TaskState.model_validate(created.model_dump(by_alias=True), by_name=False)
    return await _finish(context.session, first, _inline_result)


async def call_as_task(client: Client, name: str, args: dict[str, Any], ttl_s: float) -> CallToolResult:
    """Call a tool as a task of 2025-11-25, which the server is to keep for `ttl_s`."""
    session = client.session
    params = mcp_types.CallToolRequestParams(
        name=name, arguments=args, task=mcp_types.TaskMetadata(ttl=int(ttl_s * 1_000))
    )
    first = await session.send_request(mcp_types.CallToolRequest(params=params), CallToolResult)
    task = (first.meta or {}).get(TASK)
    if task is None:
        return first
    return await _finish(session, TaskState.model_validate(task, by_name=False), _fetched_result)


def task_as_result(result: dict[str, Any]) -> dict[str, Any]:
    """A result that is a task in a form that the SDK lets through; any other as it is."""
    if isinstance(result.get("task"), dict) and "content" not in result:
        meta = result.get("_meta")
        return {"content": [], "_meta": {**(meta if isinstance(meta, dict) else {}), TASK: result["task"]}}
    return result


async def _finish(
    session: ClientSession, task: TaskState, result_of: Callable[[ClientSession, TaskState], Awaitable[CallToolResult]]
) -> CallToolResult:
    """The result of a task, once it has one. Where nobody waits any more, the task is cancelled."""
    call, said, answered = CURRENT_CALL.get(), "", set[str]()
    params = _TaskParams(task_id=task.task_id)
    try:
        while True:
            said = _tell(call, task, said)
            if task.status in ("completed", "failed", "cancelled"):
                return await result_of(session, task)
            if task.status == "input_required":
                if task.input_requests is None:  # of 2025-11-25: the questions come while the result is waited for
                    return await result_of(session, task)
                await _answer(session, task, answered)
            await asyncio.sleep(task.pause_s)
            task = await session.send_request(_GetTask(params=params), TaskState)
    except asyncio.CancelledError:
        await asyncio.shield(asyncio.create_task(_cancel(session, params)))
        raise


def _tell(call: OpenCall | None, task: TaskState, said: str) -> str:
    """Note that the server was heard of, and pass on what is new of its progress."""
    if call is not None:
        call.timer.restart()
        text = " ".join((task.status_message or "").split())
        if text and text != said and call.on_progress is not None:
            call.on_progress(text[:200])
        return text
    return said


async def _answer(session: ClientSession, task: TaskState, answered: set[str]) -> None:
    """Answer what a task asks for, each question once."""
    requests = _INPUTS.validate_python(task.input_requests, by_name=False)
    responses: dict[str, Any] = {}
    for key, request in requests.items():
        if key in answered:
            continue
        context = ClientRequestContext(session=session, request_id=key, meta=None)
        response = await session.dispatch_input_request(context, request)
        if isinstance(response, mcp_types.ErrorData):
            raise MCPError.from_error_data(response)
        responses[key] = response.model_dump(by_alias=True, mode="json", exclude_none=True)
        answered.add(key)
    if responses:
        params = _TaskParams(task_id=task.task_id, input_responses=responses)
        await session.send_request(_UpdateTask(params=params), Result)


async def _inline_result(_session: ClientSession, task: TaskState) -> CallToolResult:
    """The result that is part of the last state (2026-07-28)."""
    if task.status == "completed" and task.result is not None:
        return CallToolResult.model_validate(task.result, by_name=False)
    raise _failed(task)


async def _fetched_result(session: ClientSession, task: TaskState) -> CallToolResult:
    """The result that is asked for by itself (2025-11-25); of a failed task it may be a result with `isError`."""
    if task.status == "cancelled":
        raise _failed(task)
    return await session.send_request(_TaskResult(params=_TaskParams(task_id=task.task_id)), CallToolResult)


def _failed(task: TaskState) -> MCPError:
    error: Mapping[str, Any] = task.error or {}
    text = str(error.get("message") or task.status_message or "")
    code = error.get("code")
    message = TEXTS.run_text("task_ended", status=task.status, reason=text)
    return MCPError(code=code if isinstance(code, int) else INTERNAL_ERROR, message=message)


async def _cancel(session: ClientSession, params: _TaskParams) -> None:
    try:
        async with asyncio.timeout(_CANCEL_S):
            await session.send_request(_CancelTask(params=params), Result)
    except Exception:  # noqa: BLE001  # the call has ended, whatever the server says to this
        _LOG.debug("task %s was not cancelled", params.task_id, exc_info=True)
