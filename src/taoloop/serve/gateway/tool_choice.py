"""`tool_choice`: which tools of the client are offered, and whether one of them must be called before any answer.

It speaks of the client's tools alone; the agent's own are the agent's affair. Both APIs write it: chat completions with
the name of a function in an object of its own, responses beside the type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taoloop.serve.gateway.chat_wire import OfferedTool
from taoloop.serve.gateway.refusals import invalid

_FORMS = "`tool_choice` can be `auto`, `none`, `required`, a function of `tools`, or `allowed_tools`"

_MUST = {
    "en": "Before you answer in words, call at least one of these tools: {names}. Whoever asked performs them and "
    "needs the call; an answer in words alone is of no use.",
    "zh": "在用文字回答之前，至少调用以下工具之一：{names}。"
    "这些工具由提问者执行，提问者需要的是这个调用；只有文字的回答没有用处。",
}
_NOW = {
    "en": "Call one of these tools now, with what is known so far: {names}. Do not answer in words.",
    "zh": "现在请根据已知的内容调用以下工具之一：{names}。不要用文字回答。",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The tools of the client that are `offered`, and whether one of them `must` be called."""

    offered: tuple[OfferedTool, ...] = ()
    must: bool = False


def chosen(choice: str | Mapping[str, Any] | None, tools: Sequence[OfferedTool]) -> Choice:
    """What a `tool_choice` makes of the client's tools.

    Raises:
        RequestRefused: it has none of the forms that are known, or names a tool that is not there.
    """
    if choice is None or choice == "auto":
        return Choice(offered=tuple(tools))
    if choice == "none":
        return Choice()
    if choice == "required":
        return _some(tools, must=True)
    if isinstance(choice, Mapping):
        if choice.get("type") == "function":
            return _some(_named([choice], tools), must=True)
        if choice.get("type") == "allowed_tools":
            given = choice.get("allowed_tools", choice)  # chat completions have it in an object of its own
            listed = given.get("tools") if isinstance(given, Mapping) else None
            if isinstance(listed, list) and given.get("mode") in ("auto", "required"):
                return _some(_named(listed, tools), must=given["mode"] == "required")
    raise invalid(f"{_FORMS}.", "tool_choice", "unsupported_value")


def must_text(names: Sequence[str], language: str) -> str:
    """What an agent is told that must call one of these tools."""
    return _MUST.get(language, _MUST["en"]).format(names=", ".join(names))


def now_text(names: Sequence[str], language: str) -> str:
    """What an agent is told that answered in words all the same."""
    return _NOW.get(language, _NOW["en"]).format(names=", ".join(names))


def _some(tools: Sequence[OfferedTool], *, must: bool) -> Choice:
    if not tools:
        raise invalid("`tool_choice` asks for a call, and there are no `tools`.", "tool_choice")
    return Choice(offered=tuple(tools), must=must)


def _named(wanted: Sequence[Any], tools: Sequence[OfferedTool]) -> list[OfferedTool]:
    names = []
    for one in wanted:
        inner = one.get("function", one) if isinstance(one, Mapping) else None
        name = inner.get("name") if isinstance(inner, Mapping) else None
        if not any(name == tool.function.name for tool in tools):
            raise invalid(f"`tool_choice` names {str(name)[:80]!r}, which is none of `tools`.", "tool_choice")
        names.append(name)
    return [tool for tool in tools if tool.function.name in names]
