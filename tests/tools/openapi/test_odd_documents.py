"""Kinds of oddness that real documents have: each is read as it was meant, or told with its place, and never fails."""

from __future__ import annotations

import copy
import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.tools.openapi.documents import body, document, one, only, query, read, tool

from taoloop.errors import ConfigError, InvalidArguments, TaoError, ToolError, ToolSourceError
from taoloop.tools.json_schema import compile_schema, findings
from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.openapi.cards import build_plan
from taoloop.tools.openapi.credentials import choose_alternative, oauth_clients
from taoloop.tools.openapi.document import fetch_document
from taoloop.tools.openapi.load import MIN_CACHED_BYTES, dump_plan, load_plan
from taoloop.tools.openapi.request import build_request
from taoloop.tools.openapi.schemas import standalone_schema


def fits(schema: dict[str, Any], value: Any) -> bool:
    return not findings(compile_schema(standalone_schema(schema), "The schema"), value)


def sent(text: str, args: dict[str, Any], **settings: Any) -> Any:
    return build_request(only(text), args, OpenapiSource(document=text, **settings))


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ({"type": "integer", "enum": ["Primary", "Secondary"]}, {"enum": ["Primary", "Secondary"]}),
        ({"type": "integer", "enum": ["1", "2"]}, {"type": "integer", "enum": [1, 2]}),
        ({"type": "integer", "enum": [[1], [2]]}, {"enum": [[1], [2]]}),
        ({"type": "string", "enum": [None]}, {"enum": [None]}),
        ({"type": "number", "enum": ["a", 1]}, {"type": "number", "enum": ["a", 1]}),
        (
            {"type": "array", "enum": ["a", "b"], "items": {"type": "string"}},
            {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        ),
        ({"type": "array", "enum": ["a"]}, {"type": "array", "items": {"enum": ["a"]}}),
        ({"type": "array", "enum": [["a"]]}, {"type": "array", "enum": [["a"]]}),
        ({"type": "array", "default": "all"}, {"type": "array"}),
        ({"type": "integer", "default": ""}, {"type": "integer"}),
        ({"type": "integer", "default": "5"}, {"type": "integer", "default": 5}),
        ({"type": "boolean", "default": "1"}, {"type": "boolean"}),
        ({"type": "boolean", "default": False}, {"type": "boolean", "default": False}),
        ({"type": "integer", "default": 1.0}, {"type": "integer", "default": 1.0}),
        ({"type": "object", "default": "{}"}, {"type": "object"}),
        ({"type": "number", "default": "1e999"}, {"type": "number"}),
        ({"type": "string", "minLength": "1e999"}, {"type": "string"}),
        ({"type": "number", "minimum": "nan"}, {"type": "number"}),
        ({"type": "number", "maximum": "-Infinity"}, {"type": "number"}),
    ],
)
def test_options_defaults_and_bounds_that_nothing_could_fit(told: dict[str, Any], meant: dict[str, Any]) -> None:
    assert standalone_schema(told) == meant


def test_parts_of_all_of_do_not_refuse_each_other() -> None:
    closed = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    schema = {
        "definitions": {"Base": closed, "Wrapped": {"allOf": [{"$ref": "#/definitions/Base"}]}},
        "type": "object",
        "properties": {
            "whole": {
                "additionalProperties": False,
                "required": ["a"],
                "allOf": [{"$ref": "#/definitions/Wrapped"}, {"properties": {"b": {}}, "additionalProperties": False}],
            },
            "alone": {"$ref": "#/definitions/Base"},
            "only": {"allOf": [{"$ref": "#/definitions/Base"}]},
        },
    }
    assert fits(schema, {"whole": {"a": 1, "b": 2}})
    assert not fits(schema, {"whole": {"a": "x"}})
    assert not fits(schema, {"alone": {"a": 1, "b": 2}})  # where it stands alone it still refuses
    assert not fits(schema, {"only": {"a": 1, "b": 2}})


def test_a_component_that_is_a_part_of_itself_ends() -> None:
    node = {"type": "object", "allOf": [{"$ref": "#/definitions/N"}, {"properties": {"b": {}}}]}
    schema = {"definitions": {"N": {**node, "additionalProperties": False}}, "$ref": "#/definitions/N"}
    assert fits(schema, {"b": 1})
    assert not fits(schema, [])


def chain_of_components(levels: int) -> str:
    chain = {f"S{n}": {"allOf": [{"$ref": f"#/components/schemas/S{n + 1}"}]} for n in range(levels)}
    schemas: dict[str, Any] = {"components": {"schemas": {**chain, f"S{levels}": {"type": "object"}}}}
    return one(body({"$ref": "#/components/schemas/S0"}), method="post", **schemas)


def test_a_chain_of_components_is_shown_without_going_down_all_of_it() -> None:
    made = tool(chain_of_components(200))
    compile_schema(made.card.input_schema, "The schema")
    assert len(json.dumps(made.card.input_schema)) < 8_000
    with pytest.raises(InvalidArguments):
        made.check(b'{"body": 5}')


def test_a_chain_that_is_too_long_to_be_judged_leaves_its_operation_out_and_says_so() -> None:
    loaded = openapi_tools(OpenapiSource(document=chain_of_components(3_000), cache=False))
    assert not loaded.tools
    assert "too large to be judged" in " ".join(map(str, loaded.problems))


@pytest.mark.parametrize("reference", ["http://[bad", "//[x/y#/z"])
def test_a_reference_that_is_no_address(reference: str) -> None:
    operations, problems = read(one(body({"$ref": reference}), method="post"))
    assert len(operations) == 1
    assert "is not a URI" in problems[0].message
    assert problems[0].place == "paths./things.post"
    assert problems[0].hint


@pytest.mark.parametrize(
    "reference", ["#components/schemas/A", "#/components/schemas/A", "a.json#/", "a.json", "a.json#"]
)
def test_what_people_mean_by_a_reference(reference: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"type": "integer"}')
    (tmp_path / "main.json").write_text(
        one(body({"$ref": reference}), method="post", components={"schemas": {"A": {"type": "integer"}}})
    )
    loaded = openapi_tools(OpenapiSource(document=str(tmp_path / "main.json"), cache=False))
    assert not loaded.problems
    with pytest.raises(InvalidArguments):
        loaded.tools[0].check(b'{"body": "x"}')


@pytest.mark.parametrize("address", ["http://[bad", "https://h:99999/", "https://h:x/"])
def test_a_server_that_is_no_address(address: str) -> None:
    operations, problems = read(
        document({"/a": {"get": {}}}, servers=[{"url": address}, {"url": "https://ok.example"}])
    )
    assert operations[0].servers == ("https://ok.example",)
    assert [problem.place for problem in problems] == ["servers[0]"]
    with pytest.raises(ConfigError, match="base_url"):
        OpenapiSource(document="x", base_url=address)


def test_a_server_without_a_scheme_is_reached_by_https() -> None:
    assert only(one({}, servers=[{"url": "//api.example.com/v1"}])).servers == ("https://api.example.com/v1",)


def test_what_stands_behind_a_hash_only_tells_operations_apart() -> None:
    paths = {f"/#Action={name}": {"get": {"parameters": [query("Action")]}} for name in ("Start", "Stop")}
    operations, problems = read(document({**paths, "/{id}#{x}/a": {"put": {}}}))
    assert not problems
    assert len({operation.name for operation in operations}) == 3
    assert [operation.path for operation in operations] == ["/", "/", "/{id}"]
    request = build_request(operations[0], {"Action": "Start"}, OpenapiSource(document="x"))
    assert request.url == "https://api.example.com/v1/?Action=Start"


def test_a_header_that_no_request_can_have() -> None:
    text = one({"parameters": [{"name": "a b", "in": "header", "required": True, "schema": {"type": "string"}}]})
    operations, problems = read(text)
    assert operations[0].parameters == ()
    assert "'a b' cannot be sent: its `in` is 'header'" in problems[0].message
    keyed = one(
        {"security": [{"key": []}]},
        components={"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "My Key"}}},
    )
    with pytest.raises(ToolError, match="a header 'My Key'"):
        sent(keyed, {}, auth={"key": "k"})


@pytest.mark.parametrize(
    ("schemes", "header"),
    [
        ({}, "Authorization"),
        ({"s": {"type": "http", "scheme": "digest"}}, "authorization"),
        ({"s": {"type": "http", "scheme": "bearer"}}, "Authorization"),
        ({"s": {"type": "apiKey", "in": "header", "name": "X-Key"}}, "x-key"),
        (
            {"s": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://t.example", "scopes": {}}}}},
            "Authorization",
        ),
    ],
)
def test_a_header_of_every_call_stands_for_a_security_scheme(schemes: dict[str, Any], header: str) -> None:
    text = one({"security": [{"s": []}]}, components={"securitySchemes": schemes})
    source = OpenapiSource(document=text, headers={header: "mine"})
    operation = read(text)[0][0]
    assert build_request(operation, {}, source).headers == {header: "mine"}
    assert not list(oauth_clients(operation, choose_alternative(operation, source), source))
    with pytest.raises(TaoError, match=r"'s'|s \("):
        build_request(operation, {}, OpenapiSource(document=text, headers={"X-Else": "mine"}))


def test_a_form_that_is_one_text_is_sent_as_it_is() -> None:
    text = one(body({"type": "string"}, "application/x-www-form-urlencoded"), method="post")
    assert sent(text, {"body": "a=3%20oz&b=2"}).body == b"a=3%20oz&b=2"


def test_half_a_character_is_none() -> None:
    text = one({"summary": "A \ud83d\ude00 B \\ud800", "parameters": [query("q\ud800", {"enum": ["\udc00", "a"]})]})
    made = tool(text)
    json.dumps([made.card.purpose, made.card.input_schema], ensure_ascii=False).encode()
    assert made.card.purpose.startswith("A 😀 B \\ud800")
    assert made.check(b'{"q": "a"}') == {"q": "a"}


@pytest.mark.parametrize("digits", ["0x" + "f" * 3_900, "0o" + "7" * 3_900])
def test_a_number_in_yaml_that_has_no_digits_is_a_text(digits: str) -> None:
    (made,) = openapi_tools(
        OpenapiSource(document=f"openapi: 3.1.0\npaths: {{/a: {{get: {{operationId: {digits}}}}}}}", cache=False)
    ).tools
    assert len(made.name) == 64


def test_swagger_1_is_told_by_its_name() -> None:
    with pytest.raises(ToolSourceError, match="Swagger 1"):
        read('{"swaggerVersion": "1.2", "apis": []}')


def test_an_extension_with_the_word_of_schemas_is_kept(tmp_path: Path) -> None:
    values: list[Any] = [[], {"a": 1}, "x"]
    for number, value in enumerate(values):
        text = one({"x-tool-card": {"$defs": value}, "x-other": {"$defs": value}}, servers=[])
        cache = tmp_path / str(number)
        source = OpenapiSource(document=text + " " * MIN_CACHED_BYTES, cache_folder=str(cache))
        first, second = (openapi_tools(source) for _ in range(2))
        assert len(list(cache.iterdir())) == 1, "the second came from there"
        assert [made.card for made in first.tools] == [made.card for made in second.tools]
        assert first.problems == second.problems


@pytest.mark.parametrize(
    "told",
    [
        {"requestBody": {"content": {"": {"schema": {"type": "object", "properties": {"a": {}}}}}}},
        {"security": [{"": []}], "tags": [""], "responses": {"": {}}},
        {"requestBody": {"content": {"application/json": {"schema": {"properties": {"": {}, "a": {}}}}}}},
    ],
)
def test_empty_names_come_back_from_the_cache(told: dict[str, Any]) -> None:
    source = OpenapiSource(document=one(told, method="post"), cache=False)
    plan = build_plan(source, fetch_document(source))
    again = load_plan(dump_plan(plan), None)
    assert again is not None
    assert again == plan


def test_every_problem_names_a_place_and_what_to_do() -> None:
    text = document(
        {
            "x": {"get": {}},
            "/a": 5,
            "/b": {"get": 5, "put": {"parameters": {}}, "post": {"parameters": [5, {"$ref": "#/no"}, {"in": "moon"}]}},
            "/c": {
                "get": {"operationId": "same", "security": [{"s": []}]},
                "put": {"operationId": "same", "parameters": [{"name": "p", "in": "path"}]},
                "post": {"requestBody": {"required": True, "content": {"application/x-protobuf": {}}}},
                "patch": {"requestBody": {"content": {"application/x-protobuf": {}}}},
            },
        },
        components={"securitySchemes": {"t": {"$ref": "#/nowhere"}}},
    )
    _, problems = read(text)
    assert len(problems) == 13
    assert all(problem.place and problem.hint.endswith(".") and "\n" not in str(problem) for problem in problems)


SEED = {
    "/pets/{id}": {
        "parameters": [{"$ref": "#/components/parameters/Id"}],
        "get": {
            "operationId": "pet",
            "parameters": [query("q", {"type": "array", "items": {"enum": ["a", "b"]}}), query("d", {"default": 5})],
            "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}},
            "security": [{"key": []}],
        },
        "post": {"operationId": "put", "tags": ["a"], **body({"$ref": "#/components/schemas/Pet"})},
        "put": body({"allOf": [{"$ref": "#/components/schemas/Pet"}, {"required": ["tag"]}]}, "multipart/form-data"),
    }
}
PET = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer", "minimum": 1, "readOnly": True},
        "tag": {"type": "string", "pattern": "^a+$", "example": "a", "nullable": True},
        "mother": {"$ref": "#/components/schemas/Pet"},
        "other": {"oneOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "number"}}]},
    },
}
JUNK: list[Any] = [
    *(None, True, 0, -1, 1.5, 10**400, float("inf"), "", "x", "a b", "é中", "\ud800", "\x00", "{", "1e999", "a" * 300),
    *([], {}, [[]], [None], [{}], {"": 1}, {"$ref": "#"}, {"$ref": 5}, {"$ref": "#/paths"}, {"$ref": "http://[x"}),
    *({"type": ["string", "null", 3]}, {"allOf": [{"$ref": "#/components/schemas/Pet"}]}, {"$defs": []}, ["a", "a"]),
]
KEYS = (
    *("type", "$ref", "properties", "items", "allOf", "oneOf", "not", "required", "enum", "default", "const", "format"),
    *("pattern", "minimum", "minLength", "multipleOf", "additionalProperties", "nullable", "readOnly", "examples"),
    *("in", "name", "schema", "content", "style", "explode", "parameters", "requestBody", "responses", "security"),
    *(
        "servers",
        "operationId",
        "tags",
        "deprecated",
        "summary",
        "description",
        "$defs",
        "$id",
        "$dynamicRef",
        "encoding",
    ),
    *("discriminator", "patternProperties", "dependentRequired", "x-tier", "x-tool-card", "get", "post", "", "x-y"),
)


def places(node: Any) -> list[tuple[Any, Any]]:
    keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    return [place for key in keys for place in ((node, key), *places(node[key]))]


@pytest.mark.parametrize("seed", range(150))
def test_no_document_makes_the_reader_fail(seed: int) -> None:
    made_by = random.Random(seed)  # noqa: S311  # for tests
    key = {"type": "apiKey", "in": "header", "name": "X-Key"}
    found = {"Id": {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}}
    components = {"schemas": {"Pet": PET}, "parameters": found, "securitySchemes": {"key": key}}
    root = json.loads(document(SEED, components=components))
    for _ in range(made_by.choice((1, 3, 10, 30))):
        node, at = made_by.choice(places(root))
        junk = copy.deepcopy(made_by.choice(JUNK))
        if isinstance(node, dict) and made_by.random() < 0.5:
            node[made_by.choice(KEYS)] = junk
        elif made_by.random() < 0.8:
            node[at] = junk
        else:
            del node[at]
        if not places(root):
            break
    source = OpenapiSource(document=json.dumps(root), cache=False, auth={"key": "k"}, base_url="https://h.example")
    try:
        loaded = openapi_tools(source)
        operations, _ = read(source.document)
    except ToolSourceError:
        return
    for each in loaded.tools:
        shown = json.dumps([each.card.input_schema, each.card.purpose], allow_nan=False, ensure_ascii=False).encode()
        assert shown
        compile_schema(each.card.input_schema, "The schema")
    assert all(problem.place and problem.hint for problem in loaded.problems)
    for operation in operations:
        args = {parameter.arg: made_by.choice(("a", 1, None, ["a"], {"b": [1]})) for parameter in operation.parameters}
        with suppress(TaoError):
            build_request(operation, args, source).url.encode("ascii")
