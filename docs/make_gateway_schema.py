"""Write docs/gateway.schema.json: the JSON Schema of what `tao serve` takes, for editors, from the settings classes.

Run: python docs/make_gateway_schema.py
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

from taoloop.config.agent_file import AgentFields
from taoloop.serve.gateway.config.gateway_file import AgentByFile, GatewayFields
from taoloop.serve.gateway.higress.apis import LongEntry, ShortEntry, ShortTool
from taoloop.serve.gateway.higress.file import AiAgentFields

TARGET = Path(__file__).with_name("gateway.schema.json")


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
    definitions: dict[str, Any] = {}
    tool_list = tools.define_tools(definitions)
    agent = tools.define(definitions, AgentFields, "written")
    definitions["AgentFields"] |= {"minProperties": 1}
    definitions["AgentFields"]["properties"]["tools"] = tool_list
    gateway = tools.define(definitions, GatewayFields)
    by_file = tools.define(definitions, AgentByFile)
    fields = {**definitions["AgentFields"]["properties"], **definitions["AgentByFile"]["properties"]}
    own = ("name", "file", "agents")  # it has its name here, and stands beside the others
    inline = {name: field for name, field in fields.items() if name not in own}
    definitions["InlineAgent"] = {**definitions["AgentFields"], "properties": inline}
    arms = [{"type": "string"}, by_file, {"$ref": "#/$defs/InlineAgent"}]
    definitions["GatewayFields"]["properties"]["agents"] |= {
        "minProperties": 1,
        "additionalProperties": {"anyOf": arms},
    }
    definitions["AgentFields"]["dependentRequired"] = {"agents": ["handoffs"]}
    definitions["AgentFields"]["properties"]["agents"] |= {
        "minProperties": 1,
        "additionalProperties": {"anyOf": [arms[0], arms[2]]},
    }
    ai_agent = tools.define(definitions, AiAgentFields, "lenient")
    entries = [tools.define(definitions, kind, "lenient") for kind in (LongEntry, ShortEntry)]
    definitions["AiAgentFields"]["properties"]["apis"] |= {"minItems": 1, "items": {"anyOf": entries}}
    definitions["ShortEntry"]["properties"]["tools"]["items"] = tools.define(definitions, ShortTool, "lenient")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What tao serve takes",
        "anyOf": [gateway, agent, ai_agent],
        "$defs": dict(sorted(definitions.items())),
    }


def page() -> str:
    """The text of the file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
