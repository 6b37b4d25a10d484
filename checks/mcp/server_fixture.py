"""The server that the official conformance suite is run against: the tools that the suite asks for, in our server.

What can be a tool of taoloop is one, and goes the way of every served call. The rest speaks the protocol itself, as a
second kind of offer. Not a part of taoloop: prompts, resources and the odd results are here for the suite alone.

Usage: python server_fixture.py [PORT]     prints its URL once it takes connections
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError

from taoloop import tool
from taoloop.core.cards.tool_card import ToolCard
from taoloop.errors import ToolError
from taoloop.journals.memory import MemoryJournal
from taoloop.runtime.tool_call_run import ToolCallRuns
from taoloop.serve.mcp.dispatcher import Answer, CallDispatcher
from taoloop.serve.mcp.http import ListenAddress, serve_http
from taoloop.serve.mcp.server import CardTool, ExposedTool, make_server
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import Toolbox

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

Ctx = ServerRequestContext[Any, Any]
Params = types.CallToolRequestParams
Serve = Callable[[Ctx, Params], Awaitable[Answer]]

# Tools of taoloop


@tool(tier="read", name="test_simple_text")
def simple_text() -> str:
    """Give a simple text."""
    return "This is a simple text response for testing."


@tool(tier="read", name="test_error_handling")
def error_handling() -> str:
    """Fail, always."""
    raise ToolError("This tool intentionally returns an error for testing")


SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
REGION = {
    "type": "object",
    "properties": {"region": {"type": "string", "description": "Where.", "x-mcp-header": "Region"}},
}


def _declared() -> list[Tool]:
    def whole(**_given: Any) -> str:
        return "json_schema_2020_12_tool"

    def region(region: str = "<none>") -> str:
        return f"region={region}"

    cards = (
        (ToolCard(name="json_schema_2020_12_tool", purpose="Take a rich schema.", input_schema=SCHEMA_2020_12), whole),
        (ToolCard(name="test_x_mcp_header", purpose="Mirror an argument.", input_schema=REGION), region),
    )
    return [tool_from_card(card, handler).with_card(tier="read") for card, handler in cards]


# Tools that speak the protocol


@dataclass(frozen=True)
class Raw:
    """An offer whose call is a function of the protocol's own values."""

    name: str
    serve: Serve
    properties: dict[str, Any]

    @property
    def listed(self) -> types.Tool:
        schema = {"type": "object", "properties": self.properties}
        return types.Tool(name=self.name, description=self.serve.__doc__ or self.name, input_schema=schema)

    async def call(self, ctx: Ctx, params: Params) -> Answer:
        return await self.serve(ctx, params)


RAW: list[Raw] = []


def raw(**properties: Any) -> Callable[[Serve], Serve]:
    def add(serve: Serve) -> Serve:
        RAW.append(Raw(f"test_{serve.__name__}", serve, properties))
        return serve

    return add


def text(said: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=said)])


def picture() -> types.ImageContent:
    return types.ImageContent(type="image", data=PNG, mime_type="image/png")


def embedded(uri: str, said: str, mime_type: str = "text/plain") -> types.EmbeddedResource:
    inside = types.TextResourceContents(uri=uri, mime_type=mime_type, text=said)
    return types.EmbeddedResource(type="resource", resource=inside)


@raw()
async def image_content(_ctx: Ctx, _params: Params) -> Answer:
    return types.CallToolResult(content=[picture()])


@raw()
async def audio_content(_ctx: Ctx, _params: Params) -> Answer:
    return types.CallToolResult(content=[types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")])


@raw()
async def embedded_resource(_ctx: Ctx, _params: Params) -> Answer:
    said = "This is an embedded resource content."
    return types.CallToolResult(content=[embedded("test://embedded-resource", said)])


@raw()
async def multiple_content_types(_ctx: Ctx, _params: Params) -> Answer:
    mixed = embedded("test://mixed-content-resource", '{"test": "data", "value": 123}', "application/json")
    first = types.TextContent(type="text", text="Multiple content types test:")
    return types.CallToolResult(content=[first, picture(), mixed])


@raw()
async def tool_with_progress(ctx: Ctx, _params: Params) -> Answer:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100, f"Completed step {done} of 100")
    return text(str((ctx.meta or {}).get("progress_token", 0)))


async def _elicited(ctx: Ctx, message: str, schema: dict[str, Any], prefix: str) -> Answer:
    try:
        said = await ctx.session.elicit_form(message, schema, ctx.request_id)
    except MCPError as error:
        return text(f"Elicitation not supported or error: {error}")
    content = json.dumps(said.content or {})
    return text(f"{prefix}: action={said.action}, content={content}")


@raw(message={"type": "string"})
async def elicitation(ctx: Ctx, params: Params) -> Answer:
    schema = {"type": "object", "properties": {"response": {"type": "string"}}, "required": ["response"]}
    return await _elicited(ctx, str((params.arguments or {}).get("message", "")), schema, "User response")


@raw()
async def elicitation_sep1034_defaults(ctx: Ctx, _params: Params) -> Answer:
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    schema = {"type": "object", "properties": properties, "required": []}
    return await _elicited(ctx, "Please provide user information", schema, "Elicitation result")


@raw()
async def elicitation_sep1330_enums(ctx: Ctx, _params: Params) -> Answer:
    def titled(*values: str) -> list[dict[str, str]]:
        return [{"const": value, "title": value.title()} for value in values]

    properties = {
        "untitledSingle": {"type": "string", "enum": ["active", "inactive", "pending"]},
        "titledSingle": {"type": "string", "oneOf": titled("low", "medium", "high")},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["read", "write", "execute"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("feature", "bug", "docs")}},
        "legacyEnum": {"type": "string", "enum": ["small", "large"], "enumNames": ["Small Size", "Large Size"]},
    }
    schema = {"type": "object", "properties": properties, "required": []}
    return await _elicited(ctx, "Please select values", schema, "Elicitation completed")


@raw()
async def missing_capability(ctx: Ctx, _params: Params) -> Answer:
    capabilities = ctx.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        raise MCPError(
            code=types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            message="This tool requires the client 'sampling' capability",
            data={"requiredCapabilities": {"sampling": {}}},
        )
    return text("The client has it.")


@raw()
async def logging_tool(_ctx: Ctx, _params: Params) -> Answer:
    return text("This server logs nothing to its clients.")


def question(message: str, field: str = "name", kind: str = "string") -> types.ElicitRequest:
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def said_in(params: Params | types.GetPromptRequestParams, key: str, field: str) -> str | None:
    response = (params.input_responses or {}).get(key)
    if not isinstance(response, types.ElicitResult):
        return None
    return str((response.content or {}).get(field, "?"))


@raw()
async def streaming_elicitation(_ctx: Ctx, params: Params) -> Answer:
    if (params.input_responses or {}).get("word") is None:
        return types.InputRequiredResult(input_requests={"word": question("The probe asks for a word", "response")})
    return text("elicitation accept")


@raw()
async def input_required_result_elicitation(_ctx: Ctx, params: Params) -> Answer:
    name = said_in(params, "user_name", "name")
    if name is None:
        return types.InputRequiredResult(input_requests={"user_name": question("What is your name?")})
    return text(f"Hello, {name}!")


@raw()
async def input_required_result_request_state(_ctx: Ctx, params: Params) -> Answer:
    if said_in(params, "confirm", "ok") is not None and params.request_state == "nonce":
        return text("state-ok: confirmation received")
    asked: dict[str, types.InputRequest] = {"confirm": question("Please confirm", "ok", "boolean")}
    return types.InputRequiredResult(input_requests=asked, request_state="nonce")


@raw()
async def input_required_result_multi_round(_ctx: Ctx, params: Params) -> Answer:
    state = json.loads(params.request_state) if params.request_state else {"round": 0}
    name, color = said_in(params, "step1", "name"), said_in(params, "step2", "color")
    if state["round"] == 2 and color is not None:
        return text(f"{state['name']} likes {color}.")
    if state["round"] == 1 and name is not None:
        asked: dict[str, types.InputRequest] = {"step2": question("Step 2: What is your favorite color?", "color")}
        return types.InputRequiredResult(input_requests=asked, request_state=json.dumps({"round": 2, "name": name}))
    first: dict[str, types.InputRequest] = {"step1": question("Step 1: What is your name?")}
    return types.InputRequiredResult(input_requests=first, request_state=json.dumps({"round": 1}))


@raw()
async def input_required_result_tampered_state(_ctx: Ctx, params: Params) -> Answer:
    if params.request_state is not None:
        return text(f"state-ok: {params.request_state}")
    asked: dict[str, types.InputRequest] = {"confirm": question("Please confirm", "ok", "boolean")}
    return types.InputRequiredResult(input_requests=asked, request_state="round-1")


@raw()
async def input_required_result_capabilities(ctx: Ctx, _params: Params) -> Answer:
    capabilities = ctx.session.client_capabilities
    asked: dict[str, types.InputRequest] = {}
    if capabilities is None or capabilities.elicitation is not None:
        asked["ask"] = question("What is your name?")
    return types.InputRequiredResult(input_requests=asked, request_state="capability-gated")


BUS = InMemorySubscriptionBus()


@raw()
async def trigger_tool_change(ctx: Ctx, _params: Params) -> Answer:
    await BUS.publish(ToolsListChanged())
    await ctx.session.send_tool_list_changed()
    return text("tool list changed")


@raw()
async def trigger_prompt_change(ctx: Ctx, _params: Params) -> Answer:
    await BUS.publish(PromptsListChanged())
    await ctx.session.send_prompt_list_changed()
    return text("prompt list changed")


# Resources and prompts

RESOURCES = {
    "test://static-text": ("text/plain", "This is the content of the static text resource."),
    "test://watched-resource": ("text/plain", "Watched resource content"),
}


async def list_resources(_ctx: Ctx, _params: types.PaginatedRequestParams) -> types.ListResourcesResult:
    listed = [types.Resource(uri=uri, name=uri, mime_type=kind) for uri, (kind, _) in RESOURCES.items()]
    binary = types.Resource(uri="test://static-binary", name="test://static-binary", mime_type="image/png")
    return types.ListResourcesResult(resources=[*listed, binary])


async def list_templates(_ctx: Ctx, _params: types.PaginatedRequestParams) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(uri_template="test://template/{id}/data", name="template")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(_ctx: Ctx, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    contents: types.TextResourceContents | types.BlobResourceContents
    if uri == "test://static-binary":
        contents = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    elif uri in RESOURCES:
        kind, said = RESOURCES[uri]
        contents = types.TextResourceContents(uri=uri, mime_type=kind, text=said)
    elif uri.startswith("test://template/"):
        name = uri.split("/")[3]
        said = json.dumps({"id": name, "templateTest": True, "data": f"Data for ID: {name}"})
        contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=said)
    else:
        raise MCPError(code=types.INVALID_PARAMS, message="There is no such resource.", data={"uri": uri})
    return types.ReadResourceResult(contents=[contents])


PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


async def list_prompts(_ctx: Ctx, _params: types.PaginatedRequestParams) -> types.ListPromptsResult:
    def listed(name: str, args: tuple[str, ...]) -> types.Prompt:
        taken = [types.PromptArgument(name=arg, required=True) for arg in args]
        return types.Prompt(name=name, description=f"The prompt {name}.", arguments=taken)

    return types.ListPromptsResult(prompts=[listed(name, args) for name, args in PROMPTS.items()])


async def get_prompt(
    _ctx: Ctx, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    def user(content: types.ContentBlock) -> types.PromptMessage:
        return types.PromptMessage(role="user", content=content)

    def says(said: str) -> types.PromptMessage:
        return user(types.TextContent(type="text", text=said))

    args = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            messages = [says("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            messages = [says(f"Prompt with arguments: arg1='{args.get('arg1')}', arg2='{args.get('arg2')}'")]
        case "test_prompt_with_embedded_resource":
            inside = embedded(args.get("resourceUri", ""), "Embedded resource content for testing.")
            messages = [user(inside), says("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            messages = [user(picture()), says("Please analyze the image above.")]
        case "test_input_required_result_prompt":
            if (context := said_in(params, "user_context", "context")) is None:
                asked = question("What context should the prompt use?", "context")
                return types.InputRequiredResult(input_requests={"user_context": asked})
            messages = [says(f"Use the following context: {context}")]
        case name:
            raise MCPError(code=types.INVALID_PARAMS, message=f"There is no prompt {name!r}.")
    return types.GetPromptResult(messages=messages)


def fixture(desk: CallDispatcher) -> Server[Any]:
    tools: Sequence[Tool] = list(Toolbox([simple_text, error_handling, *_declared()]))
    calls = ToolCallRuns(journal=MemoryJournal(keep=64))
    offers: list[ExposedTool] = [CardTool(tool=one, calls=calls, desk=desk) for one in tools]
    server = make_server([*offers, *RAW], bus=BUS)
    server.add_request_handler("resources/list", types.PaginatedRequestParams, list_resources)
    server.add_request_handler("resources/templates/list", types.PaginatedRequestParams, list_templates)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, read_resource)
    server.add_request_handler("prompts/list", types.PaginatedRequestParams, list_prompts)
    server.add_request_handler("prompts/get", types.GetPromptRequestParams, get_prompt)
    return server


async def main(port: int) -> None:
    def tell(url: str) -> None:
        print(url, flush=True)  # noqa: T201  # for who started this

    stop, desk = asyncio.Event(), CallDispatcher()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await serve_http(fixture(desk), ListenAddress(port=port), stop=stop, on_ready=tell)
    await desk.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
