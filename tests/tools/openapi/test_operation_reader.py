"""Operations: their places, parameters, bodies, servers, security and replies."""

from __future__ import annotations

from typing import Any

import pytest
from tests.tools.openapi.documents import body, document, one, only, query, read, read_operations, tools

from taoloop.tools.openapi.request import build_request
from taoloop.tools.openapi.settings import OpenapiSource


def names(text: str, **settings: Any) -> list[str]:
    return [one.name for one in read(text, **settings)[0]]


@pytest.mark.parametrize(
    "method", ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query", "GET"]
)
def test_every_method_is_read(method: str) -> None:
    assert only(one({}, method=method)).method == method.upper()


def test_more_methods_of_3_2_are_read() -> None:
    text = document({"/a": {"additionalOperations": {"COPY": {"operationId": "copy"}}}})
    assert only(text).method == "COPY"


def test_what_stands_beside_the_operations_is_none() -> None:
    item = {
        "summary": "s",
        "description": "d",
        "servers": [],
        "parameters": [],
        "x-get": {},
        "get": {"operationId": "a"},
    }
    operation = only(document({"/a": item, "x-paths": {"get": {}}}))
    assert (operation.summary, operation.description) == ("s", "d")


def test_a_duplicated_id_is_told_and_the_tool_has_its_own_name() -> None:
    text = document({path: {"get": {"operationId": "same"}} for path in ("/a", "/b")})
    operations, problems = read(text)
    assert operations[0].name == "same"
    assert operations[1].name.startswith("same_")
    assert (problems[0].place, "same" in problems[0].message) == ("paths./b.get", True)


@pytest.mark.parametrize(
    ("item", "place"),
    [
        ({"get": None}, "paths./a.get"),
        ({"get": []}, "paths./a.get"),
        ([], "paths./a"),
        ({"get": {"parameters": {}}}, "paths./a.get"),
        ({"get": {"parameters": [5]}}, "paths./a.get.parameters[0]"),
        ({"get": {"parameters": [{"name": "q", "in": "nowhere"}]}}, "paths./a.get"),
        ({"get": {"parameters": [{"in": "query"}]}}, "paths./a.get"),
        ({"get": {"parameters": [{"name": "gone", "in": "path"}]}}, "paths./a.get"),
        ({"get": {"responses": {"200": {"$ref": "#/gone"}}}}, "paths./a.get.responses.200"),
        ({"get": {"security": [{"gone": []}]}}, "paths./a.get"),
    ],
)
def test_a_broken_part_is_told_with_its_place_and_the_others_are_there(item: Any, place: str) -> None:
    operations, problems = read(document({"/a": item, "/b": {"get": {"operationId": "whole"}}}))
    assert [problem.place for problem in problems] == [place]
    assert "whole" in [one.name for one in operations]


def test_parameters_of_the_path_count_unless_the_operation_has_its_own() -> None:
    shared = [query("limit", {"type": "integer"}), query("both", {"type": "integer"})]
    item = {"parameters": shared, "get": {"operationId": "a", "parameters": [query("both", {"type": "string"})]}}
    parameters = {one.name: one for one in only(document({"/a": item})).parameters}
    assert parameters["both"].schema == {"type": "string"}
    assert set(parameters) == {"limit", "both"}


def test_a_path_parameter_is_required_and_one_that_is_missing_is_added() -> None:
    text = one({"parameters": [{"name": "a", "in": "path", "schema": {"type": "integer"}}]}, path="/{a}/{b}")
    assert [(one.name, one.required, one.schema["type"]) for one in only(text).parameters] == [
        ("a", True, "integer"),
        ("b", True, "string"),
    ]


@pytest.mark.parametrize(
    ("place", "told", "style", "explode"),
    [
        ("query", {}, "form", True),
        ("query", {"explode": False}, "form", False),
        ("query", {"style": "deepObject"}, "deepObject", False),
        ("query", {"style": "pipeDelimited", "explode": True}, "pipeDelimited", True),
        ("query", {"style": "matrix"}, "form", True),
        ("path", {}, "simple", False),
        ("path", {"style": "label", "explode": True}, "label", True),
        ("header", {}, "simple", False),
        ("cookie", {}, "form", True),
    ],
)
def test_styles_have_the_defaults_of_the_specification(
    place: str, told: dict[str, Any], style: str, explode: bool
) -> None:
    node = {"name": "q", "in": place, "schema": {}, **told}
    parameter = only(one({"parameters": [node]}, path="/{q}" if place == "path" else "/")).parameters[0]
    assert (parameter.style, parameter.explode) == (style, explode)


def test_content_in_place_of_a_schema_is_kept() -> None:
    node = {"name": "q", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}}
    parameter = only(one({"parameters": [node]})).parameters[0]
    assert (parameter.content, parameter.schema) == ("application/json", {"type": "object"})


@pytest.mark.parametrize("name", ["Accept", "content-type", "AUTHORIZATION"])
def test_headers_that_are_ours_are_no_parameters(name: str) -> None:
    assert only(one({"parameters": [{"name": name, "in": "header", "schema": {}}]})).parameters == ()


def test_names_that_collide_are_told_apart_by_their_place() -> None:
    text = one(
        {"parameters": [{"name": "id", "in": "query"}], **body({"properties": {"id": {}, "body": {}}})},
        path="/{id}",
        method="post",
    )
    operation = only(text)
    assert [(one.arg, one.location) for one in operation.parameters] == [("id", "query"), ("path_id", "path")]
    assert operation.body is not None
    assert operation.body.args == {"body_id": "id", "body": "body"}


@pytest.mark.parametrize(
    ("types", "kind", "chosen"),
    [
        (["application/xml", "application/json"], "json", "application/json"),
        (["application/vnd.api+json; charset=utf-8"], "json", "application/vnd.api+json; charset=utf-8"),
        (["*/*"], "json", "application/json"),
        (["multipart/form-data", "application/x-www-form-urlencoded"], "form", "application/x-www-form-urlencoded"),
        (["text/plain", "multipart/form-data"], "multipart", "multipart/form-data"),
        (["application/sdp"], "text", "application/sdp"),
        (["application/octet-stream"], "binary", "application/octet-stream"),
        (["image/*"], "binary", "image/*"),
    ],
)
def test_the_best_media_type_is_taken(types: list[str], kind: str, chosen: str) -> None:
    content = {one: {"schema": {"type": "object", "properties": {"a": {}}}} for one in types}
    made = only(one({"requestBody": {"content": content}}, method="post")).body
    assert made is not None
    assert (made.kind, made.media_type) == (kind, chosen)


def test_a_body_in_protobuf_only_is_told() -> None:
    protobuf: Any = {"application/x-protobuf": {"schema": {}}}
    operations, problems = read(one({"requestBody": {"required": True, "content": protobuf}}, method="post"))
    assert operations == ()
    assert "application/x-protobuf, which cannot be sent" in problems[0].message
    operations, problems = read(one({"requestBody": {"content": protobuf}}, method="post"))
    assert operations[0].body is None
    assert "without a body" in problems[0].message


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {}},
        {"oneOf": [{"type": "object", "properties": {"a": {}}}, {"type": "string"}]},
        {"type": "object", "additionalProperties": True, "properties": {"a": {}}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": {}}, "nullable": True},
        {"type": "object", "properties": {"a": {}}, "minProperties": 1},
        {"type": "object"},
        {"type": "object", "properties": {"a": {}}, "required": ["b"]},
        {},
        True,
    ],
)
def test_a_body_that_is_no_plain_object_is_one_argument(schema: Any) -> None:
    made = only(one(body(schema), method="post")).body
    assert made is not None
    assert (made.whole_arg, made.args) == ("body", {})


def test_objects_in_parts_are_one_object() -> None:
    parts = [{"$ref": "#/components/schemas/A"}, {"properties": {"b": {"type": "integer"}}, "required": ["b"]}]
    schemas = {"A": {"type": "object", "properties": {"a": {"type": "string"}}}}
    made = tools(one(body({"allOf": parts}), method="post", components={"schemas": schemas}))["do_it"]
    assert set(made.card.parameters) == {"a", "b"}
    assert made.card.required == ("b",)


def test_what_only_the_server_sets_is_no_argument() -> None:
    schema = {"properties": {"id": {"type": "string", "readOnly": True}, "name": {}}, "required": ["id", "name"]}
    made = tools(one(body(schema), method="post"))["do_it"].card
    assert (set(made.parameters), made.required) == ({"name"}, ("name",))


def test_the_encoding_of_parts_is_kept() -> None:
    content = {
        "multipart/form-data": {
            "schema": {"properties": {"meta": {"type": "object"}, "tags": {"type": "array"}}},
            "encoding": {"meta": {"contentType": "application/json"}, "tags": {"style": "pipeDelimited"}},
        }
    }
    made = only(one({"requestBody": {"content": content}}, method="post")).body
    assert made is not None
    assert made.encodings["meta"].content_type == "application/json"
    assert (made.encodings["tags"].style, made.encodings["tags"].explode) == ("pipeDelimited", False)


@pytest.mark.parametrize(
    ("servers", "settings", "told"),
    [
        ([{"url": "https://a.example.com/"}], {}, ("https://a.example.com/",)),
        ([{"url": "https://{r}.example.com", "variables": {"r": {"default": "eu"}}}], {}, ("https://eu.example.com",)),
        (
            [{"url": "https://{r}.example.com", "variables": {"r": {"default": "eu", "enum": ["eu", "us"]}}}],
            {"server_variables": {"r": "us"}},
            ("https://us.example.com",),
        ),
        ([{"url": "https://a.example.com"}], {"base_url": "http://localhost:8080/x"}, ("http://localhost:8080/x",)),
    ],
)
def test_servers_are_filled_in(servers: list[Any], settings: dict[str, Any], told: tuple[str, ...]) -> None:
    assert only(document({"/a": {"get": {}}}, servers=servers), **settings).servers == told


@pytest.mark.parametrize(
    ("servers", "told"),
    [
        ([], "names no server"),
        ([{"url": "/v1"}], "is not an http(s) URL with a host"),
        ([{"url": "https://{r}.example.com"}], "'r' has no value"),
        ([{"url": "https://{r}.e", "variables": {"r": {"enum": ["a"], "default": "b"}}}], "cannot be 'b'"),
        ([{"url": "ws://a.example.com"}], "is not an http(s) URL with a host"),
        ([5, {"url": None}], "names no server"),
    ],
)
def test_a_server_that_cannot_be_used_is_told_and_the_tool_is_there(servers: list[Any], told: str) -> None:
    operations, problems = read(document({"/a": {"get": {}}}, servers=servers))
    assert operations[0].servers == ()
    assert told in str(problems[0])


def test_the_nearest_servers_count() -> None:
    item = {
        "servers": [{"url": "https://path.example.com"}],
        "get": {"operationId": "a"},
        "put": {"operationId": "b", "servers": [{"url": "https://own.example.com"}]},
    }
    operations, _ = read(document({"/a": item, "/b": {"get": {}}}))
    assert [one.servers[0].split("//")[1].split(".")[0] for one in operations] == ["path", "own", "api"]


@pytest.mark.parametrize(
    ("node", "kind"),
    [
        ({"type": "apiKey", "in": "cookie", "name": "sid"}, "api_key"),
        ({"type": "apiKey", "in": "body", "name": "sid"}, "unsupported"),
        ({"type": "http", "scheme": "Basic"}, "basic"),
        ({"type": "http", "scheme": "bearer"}, "bearer"),
        ({"type": "http", "scheme": "digest"}, "unsupported"),
        (
            {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://a/t", "scopes": {}}}},
            "oauth2_client",
        ),
        ({"type": "oauth2", "flows": {"authorizationCode": {}}}, "bearer"),
        ({"type": "openIdConnect"}, "bearer"),
        ({"type": "mutualTLS"}, "unsupported"),
        ({}, "unsupported"),
    ],
)
def test_security_schemes_are_read(node: dict[str, Any], kind: str) -> None:
    operation = only(one({"security": [{"one": ["read"]}, {}]}, components={"securitySchemes": {"one": node}}))
    assert operation.security == ({"one": ("read",)}, {})
    assert operation.schemes["one"].kind == kind


def test_the_documents_security_counts_unless_the_operation_says_none() -> None:
    schemes = {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}}
    item = {"get": {"operationId": "a"}, "put": {"operationId": "b", "security": []}}
    operations, _ = read(document({"/a": item}, security=[{"key": []}], components=schemes))
    assert [one.security for one in operations] == [({"key": ()},), ()]


def test_yaml_with_everything_odd_is_read() -> None:
    text = """\
openapi: 3.0
info: {title: odd, version: 1.0}
x-shared: &shared
  type: object
  properties: {on: {type: boolean}, 200: {type: integer}, no: {type: string, example: 012}}
paths:
  /a/{id}:
    post:
      operationId: 42
      tags: single
      parameters:
        - {name: id, in: path}
        - {name: since, in: query, schema: {type: string, default: 2024-10-01}}
      requestBody: {content: {application/json: {schema: *shared}}}
      responses: {200: {description: ok}, default: null}
"""
    operations, _ = read_operations(OpenapiSource(document=text, cache=False))
    (operation,) = operations
    assert (operation.name, operation.tags) == ("42", ("single",))
    assert operation.body is not None
    assert list(operation.body.args) == ["on", "200", "no"]
    assert operation.parameters[1].schema["default"] == "2024-10-01"


XML = ["application/xml", "text/xml; charset=utf-8", "application/soap+xml"]


@pytest.mark.parametrize("media_type", XML)
def test_a_body_in_xml_is_a_text_of_that_type(media_type: str) -> None:
    pet = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}
    made = tools(one(body(pet, media_type), method="post"))["do_it"]
    name = media_type.partition(";")[0]
    shown = made.card.parameters["body"]
    assert shown["type"] == "string"
    assert shown["description"].startswith(f'Text of the type {name}. Its content: {{"id": integer')
    operation = only(one(body(pet, media_type), method="post"))
    request = build_request(operation, {"body": "<pet>王</pet>"}, OpenapiSource(document="{}"))
    assert request.body == "<pet>王</pet>".encode()
    assert request.headers["Content-Type"] == f"{name}; charset=utf-8"


def test_json_is_preferred_to_xml_and_other_texts_keep_their_type() -> None:
    both = {"requestBody": {"content": {"application/xml": {}, "application/json": {"schema": {"type": "string"}}}}}
    chosen = only(one(both, method="post")).body
    assert chosen is not None
    assert (chosen.kind, chosen.media_type) == ("json", "application/json")
    for media_type in ("application/graphql", "application/toml", "application/vnd.x+yaml", "application/sparql-query"):
        operation = only(one(body({"type": "string"}, media_type), method="post"))
        request = build_request(operation, {"body": "x = 1"}, OpenapiSource(document="{}"))
        assert (operation.body and operation.body.kind, request.headers["Content-Type"]) == ("text", media_type)


def servers_with(base_url: str, servers: list[Any], **variables: str) -> tuple[str, ...]:
    text = document({"/a": {"get": {}}}, servers=servers)
    return only(text, base_url=base_url, server_variables=variables).servers


def test_a_host_in_the_settings_completes_a_server_that_is_only_a_path() -> None:
    host = "http://10.0.0.7:8080"
    assert servers_with(host, [{"url": "/api/v2"}]) == (f"{host}/api/v2",)
    assert servers_with(host, [{"url": "./v3/"}]) == (f"{host}/v3/",)
    stage = {"url": "/{stage}/v1", "variables": {"stage": {"default": "test"}}}
    assert servers_with(host, [stage], stage="live") == (f"{host}/live/v1",)
    assert servers_with(f"{host}/", [{"url": "/api/v2"}]) == (f"{host}/",)  # a path, if only `/`, is all of it
    assert servers_with(f"{host}/x", [{"url": "/api/v2"}]) == (f"{host}/x",)
    assert servers_with(host, [{"url": "https://api.example.com/v1"}]) == (host,)
    operation = only(document({"/a": {"get": {}}}, servers=[{"url": "/api"}]), base_url=host)
    assert build_request(operation, {}, OpenapiSource(document="{}", base_url=host)).url == f"{host}/api/a"
