"""A run as a task of A2A, whole or as the events of a stream."""

from __future__ import annotations

from typing import Any

from taoloop.core.events import Event
from taoloop.core.trace import Trace
from taoloop.serve.gateway.a2a.wire import TaskState, Wire, error_response_body
from taoloop.serve.gateway.chat_approval import asked_now, question_code
from taoloop.serve.gateway.errors import ApiError
from taoloop.serve.gateway.run_answer import sse
from taoloop.serve.gateway.run_response import RunResponse

CONTEXT = "context"
"""The label of a run that names its context."""


def context_of(trace: Trace) -> str:
    """The context of a task; a run that came by another protocol is a context of its own."""
    labels = {} if trace.started is None else trace.started.labels
    return labels.get(CONTEXT, trace.run_id)


def task_of(wire: Wire, response: RunResponse) -> dict[str, Any]:
    """The task of a run that is over or waits."""
    state, text, answer = outcome_of(response)
    return wire.task(state, text, answer, response.agent)


def outcome_of(response: RunResponse) -> tuple[TaskState, str, str | None]:
    """The state of a run, what it is about in words, and the answer; a part of an answer is one, too."""
    result = response.result
    if response.error is not None:
        state: TaskState = "canceled" if result.status == "stopped" else "failed"
        return state, response.error.message, None
    if result.status == "waiting":
        return "input-required", response.content, None
    if result.status == "completed":
        return "completed", "", response.content
    return "failed", response.agent["reason"], result.answer if response.finish_reason == "length" else None


class TaskEncoder:
    """A run as a task.

    Args:
        wire: The shapes of the request's version.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._text = ""
        self._has_started = self._is_waiting = False
        self.shown = ""  # the code of what the task waits for, once the client is shown that

    def whole(self, response: RunResponse) -> dict[str, Any]:
        """The task."""
        self.identify(response)
        return self._wire.sent(task_of(self._wire, response))

    def piece(self, text: str) -> bytes:
        """A piece of the answer; a later event may replace it."""
        if self._is_waiting:
            return b""
        data, has_text = self._start(), bool(self._text)
        self._text += text
        return data + sse(self._wire.artifact_update(text, append=has_text, is_last=False))

    def thought(self, _text: str, /) -> bytes:
        """Nothing: it is no part of a task."""
        return b""

    def step(self, _event: Event, /) -> bytes:
        """The task at the first event of the run; its steps are the agent's own."""
        return self._start()

    def identify(self, response: RunResponse) -> None:
        """Of a run that waits the state says for what."""
        self._is_waiting = response.result.status == "waiting"
        self.shown = question_code(asked_now(response.waiting)) if response.waiting else ""

    def end(self, response: RunResponse) -> bytes:
        """The answer as it is, and the last state."""
        data = self._start()
        state, text, answer = outcome_of(response)
        if answer is not None:
            is_sent = answer == self._text
            last = "" if is_sent else answer
            data += sse(self._wire.artifact_update(last, append=is_sent, is_last=True))
        return data + sse(self._wire.status_update(state, text, response.agent))

    def error(self, error: ApiError) -> bytes:
        """The error that ends the stream."""
        return sse(error_response_body(error, self._wire.request_id))

    def _start(self) -> bytes:
        if self._has_started:
            return b""
        self._has_started = True
        task = self._wire.task("working", "", None, {"run_id": self._wire.task_id})
        return sse(self._wire.streamed_task(task))
