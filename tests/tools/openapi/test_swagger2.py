"""Swagger 2.0 becomes what OpenAPI 3 would have said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.tools.openapi.documents import only, read, tools

from taoloop.tools.openapi.operation import Operation


def swagger(operation: dict[str, Any], *, method: str = "post", **more: Any) -> str:
    paths = {"/things/{id}": {method: {"operationId": "do_it", "responses": {}, **operation}}}
    root = {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "host": "api.example.com", "paths": paths}
    return json.dumps({**root, **more})


def made(*parameters: dict[str, Any], **more: Any) -> Operation:
    return only(swagger({"parameters": [*parameters, *more.pop("also", ())]}, **more))


@pytest.mark.parametrize(
    ("root", "servers"),
    [
        (
            {"basePath": "/v2", "schemes": ["http", "https"]},
            ("https://api.example.com/v2", "http://api.example.com/v2"),
        ),
        ({"basePath": "v2/", "schemes": ["http"]}, ("http://api.example.com/v2/",)),
        ({}, ("https://api.example.com",)),
        ({"schemes": ["ws"]}, ("https://api.example.com",)),
    ],
)
def test_host_base_path_and_schemes_make_the_servers(root: dict[str, Any], servers: tuple[str, ...]) -> None:
    assert made(**root).servers == servers


def test_without_a_host_it_is_asked_for_the_base_url() -> None:
    text = swagger({}, host="", basePath="/v1")
    hint = "Set `base_url` to the host (`https://api.example.com`): '/v1' is added."
    assert hint in str(read(text)[1][0])
    assert only(text, base_url="https://here.example.com/v1").servers == ("https://here.example.com/v1",)
    assert only(text, base_url="https://here.example.com").servers == ("https://here.example.com/v1",)
    assert only(text, base_url="https://here.example.com/").servers == ("https://here.example.com/",)


@pytest.mark.parametrize(
    ("how", "style", "explode"),
    [
        (None, "form", False),
        ("csv", "form", False),
        ("multi", "form", True),
        ("ssv", "spaceDelimited", False),
        ("pipes", "pipeDelimited", False),
    ],
)
def test_collection_formats_become_styles(how: str | None, style: str, explode: bool) -> None:
    node = {"name": "tags", "in": "query", "type": "array", "items": {"type": "string"}}
    parameter = made({**node, **({"collectionFormat": how} if how else {})}).parameters[0]
    assert (parameter.style, parameter.explode) == (style, explode)
    assert parameter.schema == {"type": "array", "items": {"type": "string"}}


def test_a_body_parameter_becomes_the_body() -> None:
    thing = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
    operation = made(
        {"name": "thing", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Thing"}},
        definitions={"Thing": thing},
    )
    assert operation.body is not None
    assert (operation.body.media_type, operation.body.kind, operation.body.required) == (
        "application/json",
        "json",
        True,
    )
    assert operation.body.args == {"name": "name"}


def test_form_fields_become_one_form_and_a_file_makes_it_multipart() -> None:
    name = {"name": "name", "in": "formData", "type": "string", "required": True, "description": "What it is called"}
    tags = {"name": "tags", "in": "formData", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi"}
    body = made(name, tags, consumes=["application/x-www-form-urlencoded"]).body
    assert body is not None
    assert (body.kind, body.required, body.schema["required"]) == ("form", True, ["name"])
    assert body.encodings["tags"].explode is True
    file = made(name, {"name": "file", "in": "formData", "type": "file"}).body
    assert file is not None
    assert (file.kind, file.schema["properties"]["file"]["format"]) == ("multipart", "binary")


def test_shared_parameters_and_responses_are_followed() -> None:
    operation = only(
        swagger(
            {"parameters": [{"$ref": "#/parameters/Limit"}], "responses": {"404": {"$ref": "#/responses/Lost"}}},
            parameters={"Limit": {"name": "limit", "in": "query", "type": "integer", "maximum": 9}},
            responses={"Lost": {"description": "Not there"}},
        )
    )
    assert [one.name for one in operation.parameters] == ["limit", "id"]
    assert [(one.status, one.description) for one in operation.responses] == [("404", "Not there")]


@pytest.mark.parametrize(
    ("node", "kind", "more"),
    [
        ({"type": "basic"}, "basic", {}),
        ({"type": "apiKey", "in": "query", "name": "key"}, "api_key", {"location": "query", "key": "key"}),
        (
            {"type": "oauth2", "flow": "application", "tokenUrl": "https://a/t"},
            "oauth2_client",
            {"token_url": "https://a/t"},
        ),
        ({"type": "oauth2", "flow": "implicit", "authorizationUrl": "https://a"}, "bearer", {"prefix": "Bearer"}),
    ],
)
def test_security_definitions_become_schemes(node: dict[str, Any], kind: str, more: dict[str, str]) -> None:
    scheme = made(security=[{"one": []}], securityDefinitions={"one": node}).schemes["one"]
    assert scheme.kind == kind
    assert {name: getattr(scheme, name) for name in more} == more


def test_arguments_of_a_form_are_arguments_of_the_tool() -> None:
    text = swagger({"parameters": [{"name": "text", "in": "formData", "type": "string", "required": True}]})
    schema = tools(text)["do_it"].card.input_schema
    assert schema["required"] == ["id", "text"]
