"""`GET /openapi.json`: what this server takes and gives, in OpenAPI 3.1, from the types that judge requests."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic.json_schema import models_json_schema

import taoloop
from taoloop.serve.gateway.routes.runs import ApprovalWire
from taoloop.serve.gateway.schema import chat as chat_wire
from taoloop.serve.gateway.schema import responses as responses_wire
from taoloop.serve.gateway.schema.chat import ChatRequest
from taoloop.serve.gateway.schema.responses import ResponsesRequest

_REF = "#/components/schemas/{model}"


@cache
def openapi_document() -> dict[str, Any]:
    """The document."""
    kinds = [(kind, "validation") for kind in (ChatRequest, ResponsesRequest, ApprovalWire)]
    _, found = models_json_schema(kinds, ref_template=_REF)  # type: ignore[arg-type]  # the mode is a literal
    schemas = {**found["$defs"], **_answers()}
    for name, narrower in _refused().items():
        schemas[name]["properties"] |= narrower
    schemas["ChatRequest"]["properties"]["messages"]["minItems"] = 1
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "taoloop",
            "version": taoloop.__version__,
            "description": "Agents behind OpenAI's chat completions and responses.",
        },
        "security": [{"key": []}, {}],
        "paths": {
            "/v1/chat/completions": {
                "post": _post(
                    "createChatCompletion", "Ask an agent", "ChatRequest", "ChatCompletion", stream="ChatChunk"
                )
            },
            "/v1/responses": {
                "post": _post("createResponse", "Ask an agent", "ResponsesRequest", "Response", stream="ResponseEvent")
            },
            "/v1/models": {"get": _get("listModels", "The agents", "ModelList")},
            "/v1/models/{model}": {"get": _get("getModel", "One agent", "Model", "model")},
            "/v1/runs/{run_id}": {"get": _get("getRun", "What became of a run", "Run", "run_id")},
            "/v1/runs/{run_id}/approvals": {
                "post": {
                    **_post("answerRun", "Answer a call that waits for a person", "ApprovalWire", "Run"),
                    "parameters": [_in_path("run_id")],
                }
            },
            "/healthz": {"get": _open(_get("isAlive", "The process lives", "State"))},
            "/readyz": {"get": _open(_get("isReady", "Requests are taken", "State", more={"503": "Not now"}))},
            "/metrics": {"get": _open(_metrics())},
            "/openapi.json": {"get": _open(_get("describe", "This document", "Anything"))},
        },
        "components": {"schemas": schemas, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _post(name: str, summary: str, body: str, answer: str, *, stream: str = "") -> dict[str, Any]:
    content = _json(answer)
    if stream:
        content["text/event-stream"] = {"schema": _event(stream)}
    return {
        "operationId": name,
        "summary": summary,
        "requestBody": {"required": True, "content": _json(body)},
        "responses": {"200": {"description": "The answer", "content": content}, **_refusals()},
    }


def _event(data: str) -> dict[str, Any]:
    """One event of a stream.

    OpenAPI 3.1 does not say what a schema judges there. Some judge the JSON of each event's `data`, as OpenAI's own
    document means it, and others the event as it was sent.
    """
    sent = {"type": "string", "contentMediaType": "application/json", "contentSchema": _one(data)}
    return {"anyOf": [_one(data), _object("data", event=_TEXT, data=sent)]}


def _refused() -> dict[str, dict[str, Any]]:
    """Fields that a request may only hold with a value that asks for nothing, by the type of the request."""
    nothing: dict[str, Any] = {"enum": [None, False, 0, []]}
    chat = dict.fromkeys(chat_wire._IMPOSSIBLE, nothing) | {
        "logprobs": {"enum": [None, False]},
        "n": {"enum": [None, 1]},
    }
    responses: dict[str, Any] = {name: {"type": "null"} for name in responses_wire._IMPOSSIBLE}
    return {"ChatRequest": chat, "ResponsesRequest": {**responses, "background": {"enum": [None, False]}}}


def _get(name: str, summary: str, answer: str, *path: str, more: dict[str, str] | None = None) -> dict[str, Any]:
    extra = {status: {"description": text, "content": _json(answer)} for status, text in (more or {}).items()}
    made: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "responses": {"200": {"description": "The answer", "content": _json(answer)}, **extra, **_refusals()},
    }
    return {**made, "parameters": [_in_path(one) for one in path]} if path else made


def _metrics() -> dict[str, Any]:
    content = {"text/plain": {"schema": {"type": "string"}}}
    answers = {"200": {"description": "The metrics", "content": content}, **_refusals()}
    return {"operationId": "measure", "summary": "Metrics for Prometheus", "responses": answers}


def _open(operation: dict[str, Any]) -> dict[str, Any]:
    return {**operation, "security": [{}]}


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REF.format(model=schema)}}}


def _refusals() -> dict[str, Any]:
    return {"default": {"description": "Why there is no answer", "content": _json("Error")}}


def _object(needed: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": needed.split(), "properties": properties}


def _list(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def _one(schema: str) -> dict[str, Any]:
    return {"$ref": _REF.format(model=schema)}


def _maybe(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


_TEXT, _WHOLE = {"type": "string"}, {"type": "integer"}
_OR_NOTHING = {"type": ["string", "null"]}


def _answers() -> dict[str, Any]:
    error = _object("message type param code", message=_TEXT, type=_TEXT, param=_OR_NOTHING, code=_OR_NOTHING)
    waiting = {"run_id": _TEXT, "call_id": _TEXT, "tool": _TEXT}
    more = {"arguments": {"type": "object"}, "reasons": _list(_TEXT), "digest": _TEXT}
    return {
        "Anything": {"type": "object"},
        "Error": _object("error", error=error),
        "State": _object("status", status=_TEXT),
        "Model": _object(
            "id object created owned_by", id=_TEXT, object={"const": "model"}, created=_WHOLE, owned_by=_TEXT
        ),
        "ModelList": _object("object data", object={"const": "list"}, data=_list(_one("Model"))),
        "AgentPart": _object(
            "run_id status reason steps tool_calls",
            run_id=_TEXT,
            status=_TEXT,
            reason=_TEXT,
            steps=_WHOLE,
            tool_calls=_WHOLE,
            cost_usd={"type": "number"},
            citations=_list({}),
            waiting_for=_list(_object("run_id call_id tool", **waiting)),
        ),
        "Run": _object(
            "id object agent status answer reason steps usage waiting_for",
            id=_TEXT,
            object={"const": "agent.run"},
            agent=_TEXT,
            status=_TEXT,
            answer=_OR_NOTHING,
            reason=_TEXT,
            steps=_WHOLE,
            usage=_object("total_tokens", total_tokens=_WHOLE),
            waiting_for=_list(_object(" ".join([*waiting, *more]), **waiting, **more)),
        ),
        **_of_chats(),
        **_of_responses(),
    }


def _of_chats() -> dict[str, Any]:
    function = _object("name arguments", name=_TEXT, arguments=_TEXT)
    called = {"id": _TEXT, "type": {"const": "function"}, "function": function}
    head = {"id": _TEXT, "created": _WHOLE, "model": _TEXT}
    why = {"enum": ["stop", "length", "tool_calls", "content_filter"]}
    words = {"role": {"const": "assistant"}, "content": _OR_NOTHING}
    message = _object(
        "role content", **words, refusal=_OR_NOTHING, tool_calls=_list(_object("id type function", **called))
    )
    delta = _object("", **words, tool_calls=_list(_object("index id type function", index=_WHOLE, **called)))
    choice = _object("index message finish_reason", index=_WHOLE, message=message, finish_reason=why)
    piece = _object("index delta finish_reason", index=_WHOLE, delta=delta, finish_reason=_maybe(why))
    counted = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), _WHOLE)
    return {
        "ChatUsage": _object(" ".join(counted), **counted),
        "ChatCompletion": _object(
            "id object created model choices usage agent",
            **head,
            object={"const": "chat.completion"},
            choices=_list(choice, minItems=1, maxItems=1),
            usage=_one("ChatUsage"),
            agent=_one("AgentPart"),
        ),
        "ChatChunk": _object(
            "id object created model choices",
            **head,
            object={"const": "chat.completion.chunk"},
            choices=_list(piece, maxItems=1),
            usage=_maybe(_one("ChatUsage")),
            agent={"anyOf": [_object("event", event={"type": "object"}), _one("AgentPart")]},
        ),
    }


def _of_responses() -> dict[str, Any]:
    part = _object("type text annotations", type={"const": "output_text"}, text=_TEXT, annotations=_list({}))
    words = _object(
        "id type status role content",
        id=_TEXT,
        type={"const": "message"},
        status={"enum": ["in_progress", "completed", "incomplete"]},
        role={"const": "assistant"},
        content=_list(part),
    )
    call = _object(
        "id type status call_id name arguments",
        type={"const": "function_call"},
        **dict.fromkeys(("id", "status", "call_id", "name", "arguments"), _TEXT),
    )
    item = {"anyOf": [words, call]}
    counted = dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), _WHOLE)
    return {
        "Response": _object(
            "id object created_at model status output error",
            id=_TEXT,
            object={"const": "response"},
            created_at=_WHOLE,
            model=_TEXT,
            status={"enum": ["in_progress", "completed", "incomplete", "failed"]},
            output=_list(item),
            error=_maybe(_object("code message", code=_TEXT, message=_TEXT)),
            usage=_object(" ".join(counted), **counted),
            agent=_one("AgentPart"),
        ),
        "ResponseEvent": _object(
            "type sequence_number", type=_TEXT, sequence_number=_WHOLE, response=_one("Response"), delta=_TEXT
        ),
    }
