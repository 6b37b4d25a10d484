"""Items of earlier responses that a request only names by their ids, found again in the journal."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from taoloop.core.events import ActionRequested
from taoloop.runtime.result import Result
from taoloop.serve.gateway.client_tools import inside_ids, outside_id
from taoloop.serve.gateway.refusals import RequestRefused, invalid_field
from taoloop.serve.gateway.responses_wire import CALL_ITEM, TEXT_ITEM, run_of

if TYPE_CHECKING:
    from taoloop.core.trace import Trace
    from taoloop.serve.gateway.service import Service


async def named_items(service: Service, owner: str, named: Sequence[tuple[int, str]]) -> dict[int, dict[str, Any]]:
    """The items as messages of a chat, by their places in the input.

    Raises:
        RequestRefused: one of them is none of this client's; names its place.
    """
    found: dict[int, dict[str, Any]] = {}
    traces: dict[str, Trace] = {}  # the last one: the items of a run stand together, and a trace may be long

    async def trace_of(run_id: str) -> Trace:
        if run_id not in traces:
            traces.clear()
            traces[run_id] = await service.own(owner, run_id)
        return traces[run_id]

    for index, item in named:
        try:
            message = await _message(trace_of, item)
        except RequestRefused:
            message = None
        if message is None:
            raise invalid_field(f"input[{index}].id", f"There is no item {item[:80]!r} of this client.")
        found[index] = message
    return found


async def _message(trace_of: Callable[[str], Awaitable[Trace]], item: str) -> dict[str, Any] | None:
    if item.startswith(TEXT_ITEM):
        result = Result.of(await trace_of(run_of(item.removeprefix(TEXT_ITEM))[0]))
        return {"role": "assistant", "content": result.answer or ""}
    if not item.startswith(CALL_ITEM) or (ids := inside_ids(item.removeprefix(CALL_ITEM))) is None:
        return None
    run_id, call_id = ids
    for fact in (event.fact for event in (await trace_of(run_id)).events):
        if isinstance(fact, ActionRequested) and fact.call_id == call_id:
            function = {"name": fact.tool, "arguments": json.dumps(fact.args, ensure_ascii=False)}
            call = {"id": outside_id(run_id, call_id), "type": "function", "function": function}
            return {"role": "assistant", "tool_calls": [call]}
    return None
