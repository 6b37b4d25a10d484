"""The native dialect: tool calls of the provider's API; text without a call is the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taoloop.core.decision import Act, Answer, Call, Decision, Problem
from taoloop.core.message import Message, ModelReply, ToolCallText
from taoloop.dialects.frame import observation_text
from taoloop.dialects.prose import correction, shown
from taoloop.dialects.replies import (
    RefusedError,
    check_tool_name,
    check_whole,
    find_card,
    refuse_placeholders,
    usable_text,
)
from taoloop.dialects.strict import NotJsonError, canonical, dumps, loads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taoloop.core.cards import ToolCard
    from taoloop.core.events import ActionRequested, ModelReplied, Observed, ReplyRejected
    from taoloop.core.prompts import PromptSet

_LEAKS = (
    "<tool_call>",
    "<function=",
    "<function_call",
    "<invoke ",
    "[TOOL_CALLS]",
    "<|tool_call",
    "<|channel|>",
    "<｜tool",
    "<|python_tag|>",
)
_ARGUMENT_KEYS = frozenset({"arguments", "parameters", "args", "action_input", "input"})
_NAME_KEYS = frozenset({"name", "tool", "action", "function", "tool_name"})


class NativeDialect:
    """One reply may hold several calls; they are one decision."""

    name = "native"
    native = True
    stop: tuple[str, ...] = ()

    def read(self, reply: ModelReply, cards: Sequence[ToolCard]) -> Decision | Problem:
        """The calls of a reply, or its text as the answer."""
        try:
            if reply.tool_calls:
                check_whole(reply)
                reason = usable_text(reply) if reply.text else ""
                return Act(calls=_calls(reply.tool_calls), reason=reason)
            text = usable_text(reply)
            if not text:
                raise RefusedError("empty", "The reply is empty: neither a tool call nor an answer.")
            _refuse_leaked_call(text, cards)
            return Answer(text=text)
        except RefusedError as refused:
            return refused.problem

    def write(self, decision: Decision) -> ModelReply:
        """Tool calls under the provider's ids, or the answer as text (its reason has no place there)."""
        if isinstance(decision, Answer):
            return ModelReply(text=decision.text)
        calls = tuple(ToolCallText(name=c.tool, arguments=dumps(c.args), id=c.ref) for c in decision.calls)
        return ModelReply(text=decision.reason, tool_calls=calls)

    def echo(self, replied: ModelReplied, requested: Sequence[ActionRequested]) -> Message:
        """The calls under our own ids, which the tool messages refer to; a reply without calls as text."""
        decision = replied.decision
        if isinstance(decision, Answer):
            return Message(role="assistant", content=decision.text)
        if decision is None or not requested:
            return Message(role="assistant", content=shown(_with_calls(replied)))
        calls = tuple(ToolCallText(name=r.tool, arguments=dumps(r.args), id=r.call_id) for r in requested)
        return Message(role="assistant", content=decision.reason, tool_calls=calls)

    def observation(self, requested: ActionRequested, observed: Observed, prompts: PromptSet, nonce: str) -> Message:
        """The framed observation as a tool message."""
        content = observation_text(requested, observed, prompts, nonce)
        return Message(role="tool", content=content, tool_call_id=requested.call_id)

    def correction(self, rejected: ReplyRejected, prompts: PromptSet, *, tools: bool, reasons: bool) -> Message:
        """What was wrong, and what is expected."""
        return correction(self.name, rejected, prompts, tools=tools, reasons=reasons)


def _calls(delivered: Sequence[ToolCallText]) -> tuple[Call, ...]:
    """The different calls of a reply, each once."""
    if len(delivered) == 1:
        return (_call(delivered[0]),)
    calls: dict[tuple[str, str], Call] = {}
    for one in delivered:
        call = _call(one)
        calls.setdefault((call.tool, canonical(call.args)), call)
    return tuple(calls.values())


def _call(delivered: ToolCallText) -> Call:
    name = delivered.name.strip()
    check_tool_name(name)
    return Call(tool=name, args=_arguments(name, delivered.arguments), ref=delivered.id)


def _arguments(name: str, source: str) -> dict[str, Any]:
    if not source or source.isspace():
        return {}
    try:
        value = loads(source)
    except NotJsonError as error:
        raise RefusedError("bad_json", f"The arguments of {name!r} are not valid JSON: {error}.", source) from None
    if not isinstance(value, dict):
        raise RefusedError("bad_json", f"The arguments of {name!r} are no JSON object.", source)
    if "<" in source or "{{" in source or "${" in source:
        refuse_placeholders(value, name)
    return value


def _refuse_leaked_call(text: str, cards: Sequence[ToolCard]) -> None:
    """A call written into the text is no answer; it must come as a tool call of the API."""
    leaked = None
    if any(leak in text for leak in _LEAKS):
        leaked = next((card.name for card in cards if card.name in text), None)
    elif cards and "{" in text[:12] and text.endswith(("}", "```")):
        leaked = _written_call(text, cards)
    if leaked is not None:
        raise RefusedError(
            "bad_action",
            f"The call of {leaked!r} stands in the text; use the tool call of the API for it.",
            text,
        )


def _written_call(text: str, cards: Sequence[ToolCard]) -> str | None:
    """The known tool that a text calls which is nothing but one JSON object."""
    try:
        value = loads(text.strip("`").removeprefix("json"))
    except NotJsonError:
        return None
    if not isinstance(value, dict) or not _ARGUMENT_KEYS & value.keys():
        return None
    names = (value[key] for key in _NAME_KEYS & value.keys() if isinstance(value[key], str))
    return next((name for name in names if find_card(name, cards) is not None), None)


def _with_calls(replied: ModelReplied) -> str:
    lines = [replied.text] if replied.text else []
    lines += [f"[tool call] {call.name} {call.arguments}" for call in replied.tool_calls]
    return "\n".join(lines)
