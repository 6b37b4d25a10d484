"""From the outcome of a run to the result of an MCP call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mcp_types as types

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.events import ApprovalRefused, Fault, Observed
from taoloop.core.views.transcript import observation_text
from taoloop.errors import TaoError
from taoloop.journals.base import Journal
from taoloop.runtime.result import Result

MAX_RESULT_CHARS = 1_000_000
"""The longest output that a host gets in full. It gets a preview of a longer one; the journal has all of it."""

RUN_KEY, ERROR_KEY = "taoloop/run_id", "taoloop/error"
"""Fields of `_meta` in a result: its run, and its error as data."""

WRAPPER_FIELD = "result"
"""The only field of a structured result whose tool returns something other than an object."""


def output_schema(card: ToolCard) -> dict[str, Any] | None:
    """The schema of the structured result: that of the card, or of an object around it; None where it has none."""
    if card.output_schema is None:
        return None
    schema = dict(card.output_schema)
    if not needs_wrapper(card):
        return schema
    outer: dict[str, Any] = {key: schema.pop(key) for key in ("$defs", "definitions", "$schema") if key in schema}
    if _references_root(schema) or _references_root(outer):
        return None  # the reference to the whole schema would now mean another one
    return {**outer, "type": "object", "properties": {WRAPPER_FIELD: schema}, "required": [WRAPPER_FIELD]}


def needs_wrapper(card: ToolCard) -> bool:
    """Whether the result of a tool must be wrapped in an object: hosts before 2026 accept nothing else."""
    return card.output_schema is not None and card.output_schema.get("type") != "object"


def _references_root(schema: Any) -> bool:
    if isinstance(schema, Mapping):
        ref = schema.get("$ref")
        if isinstance(ref, str) and ref.startswith("#") and not ref.startswith(("#/$defs/", "#/definitions/")):
            return True
        return any(_references_root(part) for part in schema.values())
    return isinstance(schema, list) and any(_references_root(part) for part in schema)


async def result_of_call(journal: Journal, result: Result, card: ToolCard) -> types.CallToolResult:
    """The result of a run that is one call."""
    call = next(iter(result.trace.calls.values()), None)
    observed = None if call is None else call.observed
    if observed is None:  # it waits, but not for an answer that the host could give
        return unknown_outcome_result(result)
    if call is not None and isinstance(call.approval, ApprovalRefused):
        reason = call.approval.note or "it was refused"
        return failed_result("refused", f"The call was not made: {reason}.", "", run_id=result.run_id)
    if not observed.ok:
        fault = observed.error or Fault(code="failed", message="It failed.")
        return failed_result(fault.code, fault.message, fault.hint, retryable=fault.retryable, run_id=result.run_id)
    if observed.size_chars > MAX_RESULT_CHARS:
        return _too_long(observed, result.run_id, card)
    text = observed.output
    if observed.artifact is not None and (whole := await journal.artifact(result.run_id, observed.artifact)):
        text = whole.body
    structured = None
    if observed.form == "json":
        value = _parse_json(text)
        if value is _UNREADABLE:
            reason = "The call was made, but its output has numbers that no host can read."
            return failed_result(
                "invalid_output", reason, "Do not repeat it only because of this.", run_id=result.run_id
            )
        structured = {WRAPPER_FIELD: value} if needs_wrapper(card) else value if isinstance(value, dict) else None
    elif output_schema(card) is not None and needs_wrapper(card):
        structured = {WRAPPER_FIELD: text}
    if structured is not None and card.output_schema is not None and output_schema(card) is None:
        structured = None
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=structured, _meta={RUN_KEY: result.run_id})


_UNREADABLE: Any = object()


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # Python parses no integer with more than some thousand digits
        return _UNREADABLE


def _too_long(observed: Observed, run_id: str, card: ToolCard) -> types.CallToolResult:
    message = (
        f"The output has {observed.size_chars:,} characters; a result holds {MAX_RESULT_CHARS:,}. This is its preview:"
        f"\n\n{observation_text(observed)}\n\nThe full output is kept in the run {run_id}. Ask for less."
    )
    if output_schema(card) is not None:  # hosts validate a result that is not an error
        return failed_result("output_too_long", message, "", run_id=run_id)
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], _meta={RUN_KEY: run_id})


def unknown_outcome_result(result: Result) -> types.CallToolResult:
    """The result of a call that was started and whose outcome is unknown: no failure, and not to be repeated."""
    return failed_result(
        "in_doubt",
        "The call was started and gave no result in time: it may have happened, or may still happen.",
        f"Find out before you repeat it. The operator of `tao mcp` resolves it: tao settle {result.run_id} call_1",
        run_id=result.run_id,
    )


def error_result(error: TaoError, run_id: str | None = None) -> types.CallToolResult:
    """The result of a call that could not be made at all."""
    return failed_result(str(error.code), error.message, error.hint, retryable=bool(error.retryable), run_id=run_id)


def failed_result(
    code: str, message: str, hint: str, *, retryable: bool = False, run_id: str | None = None
) -> types.CallToolResult:
    """A result that is an error of the tool: its code, the problem and the remedy, for model and host."""
    text = f"{code}: {message}" + (f" {hint}" if hint else "")
    meta: dict[str, Any] = {ERROR_KEY: {"code": code, "message": message, "retryable": retryable, "hint": hint}}
    if run_id is not None:
        meta[RUN_KEY] = run_id
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True, _meta=meta)
