"""Tools that the client performs itself: offered to the model beside the agent's, and answered by the next request.

A call of one ends the turn. The run waits in the journal, without a process, and the client's next request brings
the results: the ids of the calls in its tool messages name the run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView
from taoloop.errors import ConfigError, HandedOver, ToolError
from taoloop.serve.gateway.errors import invalid, invalid_field
from taoloop.serve.gateway.request_schema import ClientTool, OfferedFunction
from taoloop.serve.texts import TEXTS
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.openapi.document import as_mapping
from taoloop.tools.tool import RunContext, Tool

_FORMS = "`tool_choice` can be `auto`, `none`, `required`, a function of `tools`, or `allowed_tools`"


def apply_tool_choice(
    choice: str | Mapping[str, Any] | None, tools: Sequence[ClientTool]
) -> tuple[tuple[ClientTool, ...], bool]:
    """The tools that the model may call by a `tool_choice`, and whether it must call one before it answers.

    Raises:
        ApiError: its form is unknown, or it names a tool that is not in the request.
    """
    if choice is None or choice == "auto":
        return tuple(tools), False
    if choice == "none":
        return (), False
    must_call, entries, fields = choice == "required", None, as_mapping(choice)
    if fields.get("type") == "function":
        must_call, entries = True, [choice]
    elif fields.get("type") == "allowed_tools":
        allowed = as_mapping(fields.get("allowed_tools", choice))  # chat completions nest it in an object
        if isinstance(allowed.get("tools"), list) and allowed.get("mode") in ("auto", "required"):
            must_call, entries = allowed["mode"] == "required", allowed["tools"]
    if entries is None and not must_call:
        raise invalid(f"{_FORMS}.", "tool_choice", "unsupported_value")
    offered = tools if entries is None else _select_tools(entries, tools)
    if not offered:
        raise invalid("`tool_choice` asks for a call, and there are no `tools`.", "tool_choice")
    return tuple(offered), must_call


def _select_tools(entries: Sequence[Any], tools: Sequence[ClientTool]) -> list[ClientTool]:
    names = [as_mapping(as_mapping(entry).get("function", entry)).get("name") for entry in entries]
    for name in names:
        if not any(name == tool.function.name for tool in tools):
            raise invalid(f"`tool_choice` names {str(name)[:80]!r}, which is none of `tools`.", "tool_choice")
    return [tool for tool in tools if tool.function.name in names]


_ID = re.compile(r"(?P<call>call_\d+)\.(?P<run>\d{8}-\d{6}-[0-9a-f]{8})")


def bind_client_tools(
    offered: Sequence[ClientTool],
    reserved_names: Collection[str],
    outputs: Mapping[str, str] | None = None,
    *,
    language: str,
    param_format: str = "tools[{}].function",
) -> list[Tool]:
    """The client's tools as tools of an agent. A call hands over to the client, unless its result is known.

    They count as reading: what the client does with a call is its own responsibility, and nothing of it is done here.

    Args:
        offered: The tools of the request.
        reserved_names: The names of the agent's own tools.
        outputs: Results that the client sent, by call id.
        language: The language of the run, for what its model and its people read.
        param_format: The field of the request that describes a tool, for error messages; `{}` is its index.

    Raises:
        ApiError: a tool has an invalid schema, or a name that is taken, in any spelling of upper and lower case; names
            it.
    """
    results = outputs or {}

    async def hand_over(context: RunContext, **_: Any) -> str:
        if context.call_id not in results:
            raise HandedOver(TEXTS.text(language, "client_performs_call"))
        return results[context.call_id]

    tools: list[Tool] = []
    names = {name.casefold(): name for name in reserved_names}
    for index, client_tool in enumerate(offered):
        function, param = client_tool.function, param_format.format(index)
        if (taken := names.get(function.name.casefold())) is not None:
            spelling = "" if taken == function.name else f" as {taken!r}, which differs only by case"
            owner = "by another of `tools` or by a tool of the agent"
            message = f"`{param}.name`: {function.name!r} is taken{spelling}, {owner}."
            raise invalid(message, f"{param}.name")
        names[function.name.casefold()] = function.name
        try:
            card = ToolCard(
                name=function.name,
                purpose=function.description or TEXTS.text(language, "undescribed_client_tool"),
                input_schema=_arguments_schema(function.parameters, f"{param}.parameters"),
                tier="read",
                egress=False,
                described_by="third_party",
                performed_by="caller",
            )
            tools.append(tool_from_card(card, hand_over))
        except (ToolError, ConfigError) as error:
            raise invalid(f"`{param}.parameters` is not usable: {error.message}", f"{param}.parameters") from None
    return tools


def client_call_id(run_id: str, call_id: str) -> str:
    """The id of a call for clients: it also names the run."""
    return f"{call_id}.{run_id}"


def parse_call_id(client_id: str) -> tuple[str, str] | None:
    """The run and the call of such an id; None if it is not an id of this server."""
    match = _ID.fullmatch(client_id)
    return (match["run"], match["call"]) if match is not None else None


def tool_call_parts(run_id: str, calls: Sequence[CallView]) -> list[dict[str, Any]]:
    """Calls in the form of OpenAI's `tool_calls`."""
    return [
        {
            "id": client_call_id(run_id, call.requested.call_id),
            "type": "function",
            "function": {"name": call.requested.tool, "arguments": json.dumps(call.args, ensure_ascii=False)},
        }
        for call in calls
    ]


def open_client_calls(trace: Trace) -> list[CallView]:
    """The calls of a waiting run that its client performs."""
    names = {card.name for card in trace.agent.tools if card.performed_by == "caller"}
    return [call for call in trace.pending.values() if call.requested.tool in names and not call.needs_person]


def client_tools_of(trace: Trace) -> list[ClientTool]:
    """The tools of the client from when the run began."""
    return [
        ClientTool(
            type="function",
            function=OfferedFunction(name=card.name, description=card.purpose, parameters=dict(card.input_schema)),
        )
        for card in trace.agent.tools
        if card.performed_by == "caller"
    ]


def _arguments_schema(parameters: Mapping[str, Any] | None, param: str) -> dict[str, Any]:
    """The schema of a tool's arguments; for a tool without any, each part of it may be missing or null."""
    fields = {name: value for name, value in (parameters or {}).items() if value is not None or name != "properties"}
    schema = {"properties": {}, **fields, "type": "object"}
    if not isinstance(schema["properties"], Mapping):
        raise invalid_field(f"{param}.properties", "It must be an object.")
    return schema
