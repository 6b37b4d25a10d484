"""Write docs/gateway.schema.json: the JSON Schema of what `tao serve` takes, for editors.

Run: python docs/make_gateway_schema.py
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

from taoloop.config.agent_file import FIELDS
from taoloop.config.checks import COUNT, LIST, MAPPING, NUMBER, PATH, SWITCH, TEXT
from taoloop.core.agent_spec import Limits
from taoloop.models.settings import Rate, Retry
from taoloop.serve.gateway.config import gateway_file as own_form
from taoloop.serve.gateway.higress import apis
from taoloop.serve.gateway.higress import file as higress_form
from taoloop.serve.gateway.higress.file import DEFAULTS

TARGET = Path(__file__).with_name("gateway.schema.json")

_STRING: dict[str, Any] = {"type": "string"}
_KINDS: dict[str, dict[str, Any]] = {
    TEXT[1]: _STRING,
    PATH[1]: _STRING,
    SWITCH[1]: {"type": "boolean"},
    NUMBER[1]: {"type": "number"},
    COUNT[1]: {"type": "integer"},
    LIST[1]: {"type": "array"},
    MAPPING[1]: {"type": "object"},
    "a text, or a list of texts": {"anyOf": [_STRING, {"type": "array", "items": _STRING}]},
    "a mapping or a path": {"anyOf": [{"type": "object"}, _STRING]},
    "a policy": {"anyOf": [{"type": "object"}, _STRING]},
}
_MAY_BE_NULL = ("model", "dialect", "temperature", "top_p", "max_output_tokens", "context_tokens", "model_timeout_s")


def whole(default: int | None = None) -> dict[str, Any]:
    """A whole number, or a value of the environment; one with a default may be 0, which stands for it."""
    number = {"type": "integer", "minimum": 1 if default is None else 0}
    made: dict[str, Any] = {"anyOf": [number, {"type": "string", "pattern": r"\$\{"}]}
    return made if default is None else {**made, "default": default}


_LLM: dict[str, tuple[dict[str, Any], str]] = {
    "apiKey": (_STRING, "Sent as `Authorization: Bearer …`."),
    "serviceName": (_STRING, "The name of the model's service; --resolve can send it elsewhere."),
    "servicePort": (whole(), "443 is called by https, any other by http."),
    "domain": (_STRING, "The host."),
    "path": (_STRING, "The path of the chat endpoint; requests go exactly there."),
    "model": (_STRING, "The name of the model."),
    "maxIterations": (whole(15), "How many tool calls at most."),
    "maxExecutionTime": (whole(50000), "Time of one model call, in ms."),
    "maxTokens": (whole(1000), "Longest reply of one model call."),
}
_TOLD = {
    "question": "Behind `Question:` in the format example.",
    "thought1": "Behind the first `Thought:`.",
    "observation": "Behind `Observation:`.",
    "thought2": "Behind the last `Thought:`.",
}


def sibling(name: str) -> ModuleType:
    """Another script of this folder."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def schema() -> dict[str, Any]:
    """The whole schema: one of the three kinds of files."""
    tools = sibling("make_tool_schema")
    definitions: dict[str, Any] = dict(tools.schema()["$defs"])
    definitions["Agent"] = _agent(tools, definitions)
    definitions["AiAgent"] = _higress()
    definitions["Gateway"] = _own(tools, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What tao serve takes",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in ("Gateway", "Agent", "AiAgent")],
        "$defs": dict(sorted(definitions.items())),
    }


def _agent(tools: ModuleType, definitions: dict[str, Any]) -> dict[str, Any]:
    """The fields of an agent file."""
    properties = {name: dict(_KINDS[kind[1]]) for name, kind in FIELDS.items()}
    for name in _MAY_BE_NULL:
        properties[name] = {"anyOf": [properties[name], {"type": "null"}]}
    properties["tools"] = tools.schema()["properties"]["tools"]
    for name, settings in (("limits", Limits), ("retry", Retry), ("rate", Rate)):
        properties[name] = tools._type(settings, definitions)
    return {"type": "object", "properties": properties, "additionalProperties": False, "minProperties": 1}


def _own(tools: ModuleType, definitions: dict[str, Any]) -> dict[str, Any]:
    inline = json.loads(json.dumps(definitions["Agent"]))
    said = {"type": "string", "description": "For people, and for /v1/models."}
    inline["properties"] |= {"description": said}
    del inline["properties"]["name"]
    file = {"type": "string", "description": "An agent file, beside this one."}
    by_file = {
        "type": "object",
        "properties": {"file": file, "description": said},
        "required": ["file"],
        "additionalProperties": False,
    }
    properties = {
        "agents": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"anyOf": [file, by_file, inline]},
            "description": "The agents by the names that clients write as `model`.",
        },
        "keys": {
            "anyOf": [{"type": "array", "items": tools._type(own_form.KeyEntry, definitions)}, {"type": "null"}],
            "description": "Who may use the server.",
        },
        "server": {
            "anyOf": [tools._type(own_form.ServerEntry, definitions), {"type": "null"}],
            "description": "Where the server listens, and its bounds.",
        },
        "services": {
            "anyOf": [{"type": "object", "additionalProperties": _STRING}, {"type": "null"}],
            "description": "Hosts whose calls go to another address: HOST:PORT, or a base URL.",
        },
        "default": {
            "anyOf": [_STRING, {"type": "null"}],
            "description": "The agent that answers where a request's `model` is the name of none.",
        },
    }
    if tuple(properties) != own_form.TOP:
        raise AssertionError("the fields of the own form are others")
    return {"type": "object", "properties": properties, "required": ["agents"], "additionalProperties": False}


def _higress() -> dict[str, Any]:
    """A file of the plugin; other keys are read past there too, so they are allowed."""
    if tuple(_LLM) != higress_form.LLM:
        raise AssertionError("the fields of llm are others")
    llm = {name: {**kind, "description": said} for name, (kind, said) in _LLM.items()}
    needed = [name for name, (kind, _) in _LLM.items() if "default" not in kind]
    prompt = {"language": {**_STRING, "description": "CH for Chinese; anything else is English."}}
    for language, name in (("en", "enTemplate"), ("zh", "chTemplate")):
        texts = DEFAULTS[language]  # type: ignore[index]  # the two languages
        prompt[name] = _object(
            {part: {**_STRING, "default": text, "description": _TOLD[part]} for part, text in texts.items()}
        )
    answer = {
        "enable": {"type": "boolean", "default": False, "description": "Reshape the final answer to JSON."},
        "jsonSchema": {"anyOf": [{"type": "object"}, _STRING], "description": "Its schema; none: any JSON object."},
    }
    top = {
        "llm": _object(llm, *needed),
        "apis": {"type": "array", "minItems": 1, "items": {"anyOf": _entries()}},
        "promptTemplate": _object(prompt),
        "jsonResp": _object(answer),
        "returnResponseTemplate": {**_STRING, "description": "Accepted; not needed here."},
    }
    if tuple(top) != higress_form.TOP:
        raise AssertionError("the fields of an ai-agent file are others")
    del top["llm"]["required"][top["llm"]["required"].index("servicePort")]  # the short form does without
    return _object(top, "llm", "apis")


def _entries() -> list[dict[str, Any]]:
    """The two forms of an entry of `apis`."""
    key = _object(
        {
            "in": {"enum": ["query", "header", "none"], "default": "none"},
            "name": {**_STRING, "description": "The parameter of the query, or the word before the key in the header."},
            "value": {**_STRING, "description": "The key."},
        }
    )
    limit = {**whole(50000), "description": "Time of one call, in ms."}
    provider = _object(
        {
            "serviceName": {**_STRING, "description": "The name of the service; --resolve can send it elsewhere."},
            "servicePort": whole(),
            "domain": _STRING,
            "maxExecutionTime": limit,
            "apiKey": key,
        },
        "serviceName",
        "servicePort",
        "domain",
    )
    if tuple(provider["properties"]) != apis.PROVIDER or tuple(key["properties"]) != apis.KEY:
        raise AssertionError("the fields of apiProvider are others")
    api = {"type": "string", "description": "One OpenAPI document, YAML or JSON, as a block of text."}
    tool = _object(
        {
            "toolName": _STRING,
            "description": _STRING,
            "method": _STRING,
            "path": _STRING,
            "parameter": {
                "anyOf": [_STRING, {"type": "object"}],
                "description": "A JSON Schema, as JSON or a mapping.",
            },
            "paramName": {"type": "array"},
        },
        "toolName",
        "path",
    )
    short = {"url": _STRING, "apiKey": key, "maxExecutionTime": limit, "tools": {"type": "array", "items": tool}}
    if tuple(short) != apis.SHORT or tuple(tool["properties"]) != apis.TOOL:
        raise AssertionError("the fields of the short form are others")
    return [_object({"apiProvider": provider, "api": api}, "apiProvider", "api"), _object(short, "url", "tools")]


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    made = {"type": "object", "properties": properties}
    return {**made, "required": list(required)} if required else made


def page() -> str:
    """The text of the file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
