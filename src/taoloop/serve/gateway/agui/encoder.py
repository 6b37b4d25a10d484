"""A run as the events of AG-UI 1.0.

The ids of calls and messages name the run, so the next request of the thread can be put in relation to it. A repeated
request gets no events of the run but the messages at its end (`MESSAGES_SNAPSHOT`): what it had received of the first
attempt is replaced by them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act
from taoloop.core.events import ActionRequested, Event, ModelReplied, Observed
from taoloop.core.message import STEP_PURPOSES, Usage
from taoloop.core.trace import Trace
from taoloop.core.views.todos import TODO_CARD
from taoloop.serve.gateway.agui.interrupts import interrupts_of
from taoloop.serve.gateway.agui.run_input import RunAgentInput, raw_messages
from taoloop.serve.gateway.client_tools import client_call_id, open_client_calls
from taoloop.serve.gateway.errors import ApiError
from taoloop.serve.gateway.run_answer import sse
from taoloop.serve.gateway.run_response import RunResponse

PROTOCOL_VERSION = "1.0"
"""The version of AG-UI that this server speaks."""

_BREAK = "\n\n"


def error_body(error: ApiError) -> dict[str, Any]:
    """An error as an event; also the body of a response that is no stream."""
    body = {"type": "RUN_ERROR", "message": error.message, "code": error.code or error.kind}
    return body if error.effects is None else {**body, "metadata": {"run_id": error.run_id, "effects": error.effects}}


class AguiEncoder:
    """A run as a stream of AG-UI's events.

    Args:
        request: The request.
        run_id: The run that answers it.
        before: The run before the request that continues it; None: the request started it.
        is_repeat: Whether an earlier attempt of the request began the run.
        for_user: Whether the client is an end user, who does not read the operator's policy.
    """

    def __init__(
        self, request: RunAgentInput, run_id: str, before: Trace | None, *, is_repeat: bool, for_user: bool
    ) -> None:
        self._request, self._run_id, self._before = request, run_id, before
        self._is_repeat, self._for_user = is_repeat, for_user
        self._performed = (
            {call.requested.call_id for call in open_client_calls(before)} if before is not None else set()
        )
        self._has_started = self._ends_without_text = False
        self._seq = 0 if before is None else len(before)
        self._text_id = self._thought_id = ""
        self._has_text = False  # whether the reply that is being written has sent a text
        self._step, self._open_step, self._calls_left = 0 if before is None else before.step_count, 0, 0
        self._todos: dict[str, Any] = {}  # the todo lists of calls that have no outcome yet

    def whole(self, response: RunResponse) -> dict[str, Any]:
        """The last event: this protocol has streams alone."""
        return self._finished(response)

    def piece(self, text: str) -> bytes:
        """A piece of the answer, or of what the model says before a call."""
        if self._is_repeat or self._ends_without_text:
            return b""
        data = self._start() + self._end_thought() + self._enter_step()
        if not self._text_id:
            if not (text := text.removeprefix(_BREAK)):
                return data
            self._text_id, self._has_text = f"msg_{self._run_id}_{self._seq}", True
            data += _event("TEXT_MESSAGE_START", messageId=self._text_id, role="assistant")
        return data + _event("TEXT_MESSAGE_CONTENT", messageId=self._text_id, delta=text)

    def thought(self, text: str) -> bytes:
        """A piece of the model's thinking."""
        if self._is_repeat or not text:
            return b""
        data = self._start() + self._enter_step()
        if not self._thought_id:
            self._thought_id = f"think_{self._run_id}_{self._seq}"
            data += _event("REASONING_START", messageId=self._thought_id)
            data += _event("REASONING_MESSAGE_START", messageId=self._thought_id, role="reasoning")
        return data + _event("REASONING_MESSAGE_CONTENT", messageId=self._thought_id, delta=text)

    def step(self, event: Event) -> bytes:
        """An event of the run: a decision, a call, or an outcome."""
        self._seq = event.seq + 1
        data, fact = self._start(), event.fact
        if self._is_repeat:
            return data
        if isinstance(fact, ModelReplied) and fact.purpose in STEP_PURPOSES:
            return data + self._replied(fact)
        if isinstance(fact, ActionRequested):
            return data + self._end_text() + self._end_thought() + self._requested(fact)
        if isinstance(fact, Observed):
            return data + self._observed(fact)
        return data

    def identify(self, response: RunResponse) -> None:
        """Of a run that waits for a person its interrupts say so, and no text."""
        self._ends_without_text = response.result.status == "waiting" and not response.tool_calls

    def end(self, response: RunResponse) -> bytes:
        """The end of what is open, and of the run."""
        data = self._start()
        if response.error is not None:
            return data + self.error(response.error)
        if self._is_repeat:
            data += _event("MESSAGES_SNAPSHOT", messages=self._snapshot(response))
        data += self._end_text() + self._end_thought() + self._leave_step()
        return data + sse(self._finished(response))

    def error(self, error: ApiError) -> bytes:
        """The error that ends the run."""
        return sse(error_body(error))

    def _start(self) -> bytes:
        if self._has_started:
            return b""
        self._has_started = True
        return _event("RUN_STARTED", **self._ids(), protocolVersion=PROTOCOL_VERSION)

    def _ids(self) -> dict[str, str]:
        return {"threadId": self._request.thread_id, "runId": self._request.run_id}

    def _enter_step(self) -> bytes:
        if self._open_step:
            return b""
        self._open_step = self._step + 1
        return _event("STEP_STARTED", stepName=f"step {self._open_step}")

    def _leave_step(self) -> bytes:
        if not self._open_step:
            return b""
        self._step, self._open_step, self._calls_left = self._open_step, 0, 0
        return _event("STEP_FINISHED", stepName=f"step {self._step}")

    def _replied(self, fact: ModelReplied) -> bytes:
        data = b"" if self._open_step in (0, fact.step) else self._leave_step()
        if not self._open_step:
            self._step = fact.step - 1
        data += self._end_thought() + self._enter_step()
        if isinstance(fact.decision, Act):
            self._calls_left = len(fact.decision.calls)
            if fact.decision.reason and not self._has_text:
                data += self.thought(fact.decision.reason) + self._end_thought()
            data += self._end_text()
        self._has_text = bool(self._text_id)
        return data

    def _requested(self, fact: ActionRequested) -> bytes:
        call_id = client_call_id(self._run_id, fact.call_id)
        if fact.tool == TODO_CARD.name and isinstance(fact.args, Mapping):
            self._todos[fact.call_id] = fact.args.get("todos")
        arguments = json.dumps(fact.args, ensure_ascii=False, default=str)
        return (
            self._enter_step()
            + _event("TOOL_CALL_START", toolCallId=call_id, toolCallName=fact.tool)
            + _event("TOOL_CALL_ARGS", toolCallId=call_id, delta=arguments)
            + _event("TOOL_CALL_END", toolCallId=call_id)
        )

    def _observed(self, fact: Observed) -> bytes:
        data = b""
        if fact.call_id not in self._performed:  # its client has the results of its own tools
            data += sse({"type": "TOOL_CALL_RESULT", **self._result(fact)})
        if fact.ok and (todos := self._todos.pop(fact.call_id, None)) is not None:
            state = self._request.state if isinstance(self._request.state, Mapping) else {}
            data += _event("STATE_SNAPSHOT", snapshot={**state, "todos": todos})
        if self._calls_left == 1:
            return data + self._leave_step()
        self._calls_left = max(0, self._calls_left - 1)
        return data

    def _result(self, fact: Observed) -> dict[str, str]:
        call_id, content = client_call_id(self._run_id, fact.call_id), fact.output
        if fact.error is not None:
            is_hidden = self._for_user and fact.error.code == "denied"
            content = fact.error.code if is_hidden else f"{fact.error.message} {fact.error.hint}".strip()
        return {"messageId": f"result_{call_id}", "toolCallId": call_id, "content": content, "role": "tool"}

    def _end_text(self) -> bytes:
        message_id, self._text_id = self._text_id, ""
        return _event("TEXT_MESSAGE_END", messageId=message_id) if message_id else b""

    def _end_thought(self) -> bytes:
        message_id, self._thought_id = self._thought_id, ""
        if not message_id:
            return b""
        return _event("REASONING_MESSAGE_END", messageId=message_id) + _event("REASONING_END", messageId=message_id)

    def _finished(self, response: RunResponse) -> dict[str, Any]:
        outcome: dict[str, Any] = {"type": "success"}
        if response.tool_calls:
            outcome["pendingToolCallIds"] = [call["id"] for call in response.tool_calls]
        elif response.result.status == "waiting":
            outcome = {"type": "interrupt", "interrupts": interrupts_of(response)}
        earlier = Usage() if self._before is None or self._is_repeat else self._before.usage
        return {
            "type": "RUN_FINISHED",
            **self._ids(),
            "result": dict(response.agent),
            "outcome": outcome,
            "usage": [_usage_part(response.usage, earlier)],
        }

    def _snapshot(self, response: RunResponse) -> list[Mapping[str, Any]]:
        """The messages of the thread with those of the run, but not what the request has of it by itself."""
        messages: list[Mapping[str, Any]] = [*raw_messages(self._request)]
        known = {message["id"] for message in messages}
        trace = response.result.trace
        cards: dict[str, ToolCard] = {card.name: card for card in trace.agent.tools}
        for event in trace.events:
            fact = event.fact
            if isinstance(fact, ActionRequested):
                call_id = client_call_id(self._run_id, fact.call_id)
                function = {"name": fact.tool, "arguments": json.dumps(fact.args, ensure_ascii=False, default=str)}
                call = {"id": call_id, "type": "function", "function": function}
                message: dict[str, Any] = {"id": call_id, "role": "assistant", "toolCalls": [call]}
            elif isinstance(fact, Observed) and not _is_client_call(trace, cards, fact.call_id):
                result = self._result(fact)
                message = {"id": result.pop("messageId"), **result}
            else:
                continue
            if message["id"] not in known and not _has_call(messages, message):
                messages.append(message)
        if response.content and not self._ends_without_text and not response.tool_calls:
            message_id = f"msg_{self._run_id}_{len(trace)}"
            messages.append({"id": message_id, "role": "assistant", "content": response.content})
        return messages


def _has_call(messages: list[Mapping[str, Any]], message: Mapping[str, Any]) -> bool:
    """Whether the messages have the call, in a message of another id."""
    if message["role"] != "assistant":
        return False
    calls = [call["id"] for each in messages for call in each.get("toolCalls") or ()]
    return message["id"] in calls


def _is_client_call(trace: Trace, cards: Mapping[str, ToolCard], call_id: str) -> bool:
    card = cards.get(trace.calls[call_id].requested.tool)
    return card is not None and card.performed_by == "caller"


def _event(kind: str, **fields: Any) -> bytes:
    return sse({"type": kind, **fields})


def _usage_part(usage: Usage, earlier: Usage) -> dict[str, int]:
    """The tokens of the calls that were made for this request."""
    tokens, output = usage.input_tokens - earlier.input_tokens, usage.output_tokens - earlier.output_tokens
    cached = usage.cached_tokens - earlier.cached_tokens
    return {
        "inputTokens": tokens,
        "outputTokens": output,
        "totalTokens": tokens + output,
        "cachedInputTokens": cached,
    }
