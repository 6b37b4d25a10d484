"""`GET /openapi.json`: the API of this server in OpenAPI 3.1, from the types that validate requests."""

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
    models = [(model, "validation") for model in (ChatRequest, ResponsesRequest, ApprovalWire)]
    _, generated = models_json_schema(models, ref_template=_REF)  # type: ignore[arg-type]  # the mode is a literal
    schemas = {**generated["$defs"], **_response_schemas()}
    for name, narrower in _unsupported_fields().items():
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
                    "parameters": [_path_parameter("run_id")],
                }
            },
            "/healthz": {"get": _without_key(_get("isAlive", "The process lives", "State"))},
            "/readyz": {"get": _without_key(_get("isReady", "Requests are taken", "State", more={"503": "Not now"}))},
            "/metrics": {"get": _without_key(_metrics())},
            "/openapi.json": {"get": _without_key(_get("describe", "This document", "Anything"))},
        },
        "components": {"schemas": schemas, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _post(name: str, summary: str, body: str, answer: str, *, stream: str = "") -> dict[str, Any]:
    content = _json_content(answer)
    if stream:
        content["text/event-stream"] = {"schema": _event(stream)}
    return {
        "operationId": name,
        "summary": summary,
        "requestBody": {"required": True, "content": _json_content(body)},
        "responses": {"200": {"description": "The answer", "content": content}, **_error_responses()},
    }


def _event(data: str) -> dict[str, Any]:
    """One event of a stream.

    OpenAPI 3.1 does not define what a schema describes there. Some validators take the JSON of each event's `data`, as
    OpenAI's own document does, others the event as it was sent.
    """
    sent = {"type": "string", "contentMediaType": "application/json", "contentSchema": _ref(data)}
    return {"anyOf": [_ref(data), _object("data", event=_TEXT, data=sent)]}


def _unsupported_fields() -> dict[str, dict[str, Any]]:
    """Unsupported fields, which a request may only have with a value without effect, by the type of the request."""
    nothing: dict[str, Any] = {"enum": [None, False, 0, []]}
    chat = dict.fromkeys(chat_wire.UNSUPPORTED_FIELDS, nothing) | {
        "logprobs": {"enum": [None, False]},
        "n": {"enum": [None, 1]},
    }
    responses: dict[str, Any] = {name: {"type": "null"} for name in responses_wire.UNSUPPORTED_FIELDS}
    return {"ChatRequest": chat, "ResponsesRequest": {**responses, "background": {"enum": [None, False]}}}


def _get(name: str, summary: str, answer: str, *path: str, more: dict[str, str] | None = None) -> dict[str, Any]:
    extra = {status: {"description": text, "content": _json_content(answer)} for status, text in (more or {}).items()}
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "responses": {
            "200": {"description": "The answer", "content": _json_content(answer)},
            **extra,
            **_error_responses(),
        },
    }
    return {**operation, "parameters": [_path_parameter(name) for name in path]} if path else operation


def _metrics() -> dict[str, Any]:
    content = {"text/plain": {"schema": {"type": "string"}}}
    answers = {"200": {"description": "The metrics", "content": content}, **_error_responses()}
    return {"operationId": "measure", "summary": "Metrics for Prometheus", "responses": answers}


def _without_key(operation: dict[str, Any]) -> dict[str, Any]:
    return {**operation, "security": [{}]}


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _json_content(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REF.format(model=schema)}}}


def _error_responses() -> dict[str, Any]:
    return {"default": {"description": "Why there is no answer", "content": _json_content("Error")}}


def _object(needed: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": needed.split(), "properties": properties}


def _list(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def _ref(schema: str) -> dict[str, Any]:
    return {"$ref": _REF.format(model=schema)}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


_TEXT, _INTEGER = {"type": "string"}, {"type": "integer"}
_NULLABLE_TEXT = {"type": ["string", "null"]}


def _response_schemas() -> dict[str, Any]:
    error = _object("message type param code", message=_TEXT, type=_TEXT, param=_NULLABLE_TEXT, code=_NULLABLE_TEXT)
    waiting = {"run_id": _TEXT, "call_id": _TEXT, "tool": _TEXT}
    more = {"arguments": {"type": "object"}, "reasons": _list(_TEXT), "digest": _TEXT}
    return {
        "Anything": {"type": "object"},
        "Error": _object("error", error=error),
        "State": _object("status", status=_TEXT),
        "Model": _object(
            "id object created owned_by", id=_TEXT, object={"const": "model"}, created=_INTEGER, owned_by=_TEXT
        ),
        "ModelList": _object("object data", object={"const": "list"}, data=_list(_ref("Model"))),
        "AgentPart": _object(
            "run_id status reason steps tool_calls",
            run_id=_TEXT,
            status=_TEXT,
            reason=_TEXT,
            steps=_INTEGER,
            tool_calls=_INTEGER,
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
            answer=_NULLABLE_TEXT,
            reason=_TEXT,
            steps=_INTEGER,
            usage=_object("total_tokens", total_tokens=_INTEGER),
            waiting_for=_list(_object(" ".join([*waiting, *more]), **waiting, **more)),
        ),
        **_chat_schemas(),
        **_responses_schemas(),
    }


def _chat_schemas() -> dict[str, Any]:
    function = _object("name arguments", name=_TEXT, arguments=_TEXT)
    called = {"id": _TEXT, "type": {"const": "function"}, "function": function}
    head = {"id": _TEXT, "created": _INTEGER, "model": _TEXT}
    why = {"enum": ["stop", "length", "tool_calls", "content_filter"]}
    words = {"role": {"const": "assistant"}, "content": _NULLABLE_TEXT}
    message = _object(
        "role content", **words, refusal=_NULLABLE_TEXT, tool_calls=_list(_object("id type function", **called))
    )
    delta = _object("", **words, tool_calls=_list(_object("index id type function", index=_INTEGER, **called)))
    choice = _object("index message finish_reason", index=_INTEGER, message=message, finish_reason=why)
    piece = _object("index delta finish_reason", index=_INTEGER, delta=delta, finish_reason=_nullable(why))
    counted = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), _INTEGER)
    return {
        "ChatUsage": _object(" ".join(counted), **counted),
        "ChatCompletion": _object(
            "id object created model choices usage agent",
            **head,
            object={"const": "chat.completion"},
            choices=_list(choice, minItems=1, maxItems=1),
            usage=_ref("ChatUsage"),
            agent=_ref("AgentPart"),
        ),
        "ChatChunk": _object(
            "id object created model choices",
            **head,
            object={"const": "chat.completion.chunk"},
            choices=_list(piece, maxItems=1),
            usage=_nullable(_ref("ChatUsage")),
            agent={"anyOf": [_object("event", event={"type": "object"}), _ref("AgentPart")]},
        ),
    }


def _responses_schemas() -> dict[str, Any]:
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
    counted = dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), _INTEGER)
    return {
        "Response": _object(
            "id object created_at model status output error",
            id=_TEXT,
            object={"const": "response"},
            created_at=_INTEGER,
            model=_TEXT,
            status={"enum": ["in_progress", "completed", "incomplete", "failed"]},
            output=_list(item),
            error=_nullable(_object("code message", code=_TEXT, message=_TEXT)),
            usage=_object(" ".join(counted), **counted),
            agent=_ref("AgentPart"),
        ),
        "ResponseEvent": _object(
            "type sequence_number", type=_TEXT, sequence_number=_INTEGER, response=_ref("Response"), delta=_TEXT
        ),
    }
