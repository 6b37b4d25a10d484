"""Documents made to be nasty: what they ask for goes out as the specification has it, and nothing of it goes unseen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.tools.openapi.documents import body, document, one, query, query_of, read, read_operations, tool, tools

from taoloop.errors import ConfigError, InvalidArguments
from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.openapi.request import PreparedRequest, build_request


def sent(text: str, args: dict[str, Any], name: str = "do_it", **settings: Any) -> PreparedRequest:
    """The request of one call, its arguments judged first as in a run."""
    source = OpenapiSource(document=text, cache=False, **settings)
    operation = next(one for one in read_operations(source)[0] if one.name == name)
    made = next(one for one in openapi_tools(source).tools if one.name == name)
    return build_request(operation, dict(made.prepare(args).values), source)


def told(text: str, **settings: Any) -> list[str]:
    return [str(problem).partition(": ")[2] for problem in read(text, **settings)[1]]


# References over several files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "a.yaml": "A: {type: object, required: [name], properties: {name: {type: string}, b: {$ref: 'b.yaml#/B'},"
        " children: {type: array, items: {$ref: '#/A'}}}}",
        "b.yaml": "B: {type: object, properties: {back: {$ref: 'a.yaml#/A'}, loop: {$ref: '#/L1'}}}\n"
        "L1: {$ref: '#/L2'}\nL2: {$ref: '#/L1'}\n",
        "paths.yaml": "tree: {post: {operationId: tree, requestBody: {required: true, content: {application/json:"
        " {schema: {$ref: './a.yaml#/A'}}}}}}",
    }
    (tmp_path / "sub").mkdir()
    for name, text in files.items():
        (tmp_path / "sub" / name).write_text(text)
    (tmp_path / "root.json").write_text(
        document({"/tree/": {"$ref": "sub/paths.yaml#/tree"}, "/out": {"get": {"$ref": "../x.yaml"}}})
    )
    return tmp_path


def test_schemas_that_lead_to_each_other_over_files_judge_and_go_out(folder: Path) -> None:
    text = str(folder / "root.json")
    args = {"name": "x", "children": [{"name": "y"}], "b": {"back": {"name": "z"}, "loop": 1}}
    request = sent(text, args, "tree")
    assert request.url == "https://api.example.com/v1/tree/"
    assert json.loads(request.body or b"") == args
    with pytest.raises(InvalidArguments, match=r"'children\.0'"):
        sent(text, {"name": "x", "children": [{}]}, "tree")


# Names in other scripts, with brackets, and alike


def test_a_name_in_another_script_is_told_and_sent_as_it_is() -> None:
    parameters = [query("城市"), query("filter[name]"), query("ids[]", {"type": "array", "items": {"type": "integer"}})]
    made = tool(one({"parameters": parameters}))
    assert list(made.card.parameters) == ["query", "filter_name", "ids"]
    assert made.card.parameters["query"]["description"] == "The API calls it 城市."
    request = sent(one({"parameters": parameters}), {"query": "北京", "filter_name": "a b", "ids": [1, 2]})
    assert request.url.partition("?")[2] == (
        "%E5%9F%8E%E5%B8%82=%E5%8C%97%E4%BA%AC&filter%5Bname%5D=a%20b&ids%5B%5D=1&ids%5B%5D=2"
    )


def test_fields_in_another_script_are_told_at_every_depth_and_written_back() -> None:
    address = {"type": "object", "properties": {"城市": {"type": "string"}, "路": True}}
    schema = {"type": "object", "required": ["姓名"], "properties": {"姓名": {"type": "string"}, "地址": address}}
    text = one(body(schema), method="post")
    card = tool(text).card
    assert [card.parameters[name]["description"] for name in ("body", "body_2")] == [
        "The API calls it 姓名.",
        "The API calls it 地址.",
    ]
    inner = card.parameters["body_2"]["properties"]
    assert {name: rule["description"] for name, rule in inner.items()} == {
        "field": "The API calls it 城市.",
        "field_2": "The API calls it 路.",
    }
    request = sent(text, {"body": "王", "body_2": {"field": "北京"}})
    assert json.loads(request.body or b"") == {"姓名": "王", "地址": {"城市": "北京"}}


def test_ids_that_are_the_same_are_told_apart_and_each_calls_its_own() -> None:
    text = document({"/a": {"get": {"operationId": "x"}, "post": {"operationId": "x"}}, "/b": {"get": {}}})
    names = list(tools(text))
    assert (names[0], names[2], len(set(names))) == ("x", "get_b", 3)
    assert sent(text, {}, names[1]).method == "POST"
    (problem,) = told(text)
    assert problem.startswith("paths./a.post: Another operation already has the id 'x'; this one gets another name.")


# Forms of values


def test_a_discriminator_chooses_so_that_a_value_may_fit_two_forms() -> None:
    cat = {"type": "object", "properties": {"kind": {"type": "string"}, "lives": {"type": "integer"}}}
    dog = {"type": "object", "properties": {"kind": {"type": "string"}, "bark": {"type": "string"}}}
    chooser = {"propertyName": "kind", "mapping": {"cat": "#/x", "dog": "#/y"}}
    text = one(body({"oneOf": [cat, dog], "discriminator": chooser}), method="post")
    assert json.loads(sent(text, {"body": {"kind": "cat"}}).body or b"") == {"kind": "cat"}
    assert tool(text).card.parameters["body"]["description"] == "'kind' determines which one it is: cat, dog."


COOKIES: list[tuple[dict[str, Any], Any, str]] = [
    ({"schema": {"type": "string"}}, "a b;c", "p=a%20b%3Bc"),
    ({"schema": {"type": "array"}}, ["a", "b,"], "p=a; p=b%2C"),
    ({"schema": {"type": "array"}, "explode": False}, ["a", "b,"], "p=a,b%2C"),
    ({"schema": {"type": "object"}}, {"x": 1, "y": "é"}, "x=1; y=%C3%A9"),
    ({"schema": {"type": "object"}, "explode": False}, {"x": 1.50, "y": None}, "p=x,1.5"),
    ({"content": {"application/json": {}}}, {"x": [1, "ü"]}, "p=%7B%22x%22%3A%5B1%2C%22%C3%BC%22%5D%7D"),
]


@pytest.mark.parametrize(("how", "value", "header"), COOKIES)
def test_cookies_in_every_form(how: dict[str, Any], value: Any, header: str) -> None:
    text = one({"parameters": [{"name": "p", "in": "cookie", **how}]})
    assert sent(text, {"p": value}).headers == {"Cookie": header}


def swagger(*parameters: dict[str, Any], method: str = "post", **more: Any) -> str:
    listed = [{"type": "array", "items": {"type": "string"}, **one} for one in parameters]
    paths = {"/a/{l}": {method: {"operationId": "do_it", "parameters": listed}}}
    return json.dumps({"swagger": "2.0", "info": {}, "host": "api.example.com", "paths": paths, **more})


@pytest.mark.parametrize(
    ("how", "path", "header", "pairs"),
    [
        ("csv", "p%7Cq,r", "p|q,r", "t=p%7Cq,r"),
        ("pipes", "p%7Cq%7Cr", "p|q|r", "t=p%7Cq%7Cr"),
        ("ssv", "p%7Cq%20r", "p|q r", "t=p%7Cq%20r"),
        ("tsv", "p%7Cq%09r", "p|q\tr", "t=p%7Cq%09r"),
        ("multi", "p%7Cq,r", "p|q,r", "t=p%7Cq&t=r"),
    ],
)
def test_every_collection_format_in_every_place(how: str, path: str, header: str, pairs: str) -> None:
    places = {"l": "path", "H": "header", "t": "query"}
    given = [{"name": n, "in": place, "collectionFormat": how, "required": True} for n, place in places.items()]
    request = sent(swagger(*given, method="get"), {name: ["p|q", "r"] for name in places})
    assert request.url == f"https://api.example.com/a/{path}?{pairs}"
    assert request.headers["H"] == header


def test_a_file_of_a_form_goes_as_bytes_and_lists_by_their_format() -> None:
    formats = {"m": "multi", "c": "csv", "p": "pipes"}
    fields = [{"name": name, "in": "formData", "collectionFormat": how} for name, how in formats.items()]
    text = swagger({"name": "f", "in": "formData", "type": "file"}, *fields)
    two = {name: ["a", "b"] for name in formats}
    data = sent(text, {"l": "x", "f": "data:image/png;base64,iVBORw==", **two}).body or b""
    assert b'name="f"; filename="f"\r\nContent-Type: image/png\r\n\r\n\x89PNG\r\n' in data
    assert data.count(b'name="m"') == 2
    assert b'name="c"\r\n\r\na,b\r\n' in data
    assert b'name="p"\r\n\r\na|b\r\n' in data


def test_an_endless_choice_is_told_by_its_beginning_and_judged_whole() -> None:
    text = one({"parameters": [query("v", {"enum": [f"v{n}" for n in range(20_000)]})]})
    shown = tool(text).card.parameters["v"]
    assert shown["enum"] == [f"v{n}" for n in range(40)]
    assert shown["description"] == "(19960 more options; only part is shown)"
    assert query_of(sent(text, {"v": "v19999"})) == [("v", "v19999")]
    with pytest.raises(InvalidArguments, match="is not one of"):
        sent(text, {"v": "nope"})


def test_numbers_of_every_kind_keep_their_value() -> None:
    schema = {
        "type": "object",
        "properties": {"i": {"type": "integer", "format": "int64"}, "n": {"type": ["number", "null"]}, "s": {}},
    }
    text = one(body(schema), method="post")
    request = sent(text, {"i": 9_007_199_254_740_993, "n": None, "s": 1e-7})
    assert request.body == b'{"i":9007199254740993,"n":null,"s":1e-7}' or json.loads(request.body or b"") == {
        "i": 9_007_199_254_740_993,
        "n": None,
        "s": 1e-7,
    }
    asked = one({"parameters": [query("big", {"type": "integer"}), query("dec", {"type": "number"})]})
    request = sent(asked, {"big": 123_456_789_012_345_678_901, "dec": 1e-7})
    assert query_of(request) == [("big", "123456789012345678901"), ("dec", "0.0000001")]


# Servers


def test_variables_are_filled_and_their_choice_is_held_to() -> None:
    variables = {"region": {"default": "eu", "enum": ["eu", "us"]}, "port": {"default": 8443, "enum": [8443, 443]}}
    server = {"url": "https://{region}.example.com:{port}/v1/", "variables": variables}
    text = one({}, servers=[server])
    assert sent(text, {}).url == "https://eu.example.com:8443/v1/things"
    assert (
        sent(text, {}, server_variables={"region": "us", "port": "443"}).url == "https://us.example.com:443/v1/things"
    )
    assert told(text, server_variables={"region": "mars"}) == [
        "servers[0]: The server's variable 'region' cannot be 'mars'. Allowed: eu, us."
    ]


def test_a_slash_at_the_end_of_a_path_stays_and_one_of_a_server_is_not_doubled() -> None:
    text = document(
        {"/x/": {"get": {"operationId": "a"}}, "/x": {"get": {"operationId": "b"}}},
        servers=[{"url": "https://h.example/v/"}],
    )
    assert [sent(text, {}, name).url for name in "ab"] == ["https://h.example/v/x/", "https://h.example/v/x"]


# Bodies that are not written


@pytest.mark.parametrize("required", [True, False])
def test_a_body_of_protobuf_alone_is_told(required: bool) -> None:
    media = {
        "requestBody": {"required": required, "content": {"application/x-protobuf": {"schema": {"type": "object"}}}}
    }
    text = one(media, method="post")
    (problem,) = told(text)
    assert "Its body is of the type application/x-protobuf, which cannot be sent." in problem
    assert problem.startswith("paths./things.post: It is omitted." if required else "paths./things.post: Its body")
    assert list(tools(text)) == ([] if required else ["do_it"])
    beside = one({"requestBody": {"content": {"application/x-protobuf": {}, "application/json": {}}}}, method="post")
    assert told(beside) == []


# Settings that name what is not there


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"operations": ("do_that",)}, "operations: No operation matches 'do_that'. Did you mean 'do_it'?"),
        ({"operations": ("pay_*",)}, "operations: No operation matches 'pay_*'. Known: do_it."),
        ({"approval": ("do_ti",)}, "approval: No operation matches 'do_ti'. Did you mean 'do_it'?"),
        ({"tiers": {"x": "read"}}, "tiers: No operation matches 'x'. Known: do_it."),
        ({"idempotency": ("x",)}, "idempotency: No operation matches 'x'. Known: do_it."),
        ({"tags": ("order",)}, "tags: No operation has the tag 'order'. Did you mean 'Orders'?"),
        ({"methods": ("PUT",)}, "methods: No operation has the method 'PUT'. Known: GET."),
        ({"auth": {"keys": "k"}}, "auth: There is no security scheme 'keys'. Did you mean 'key'?"),
        ({"secrets": {"token": "t"}}, "secrets: No operation has a parameter or field 'token'. Known: q."),
    ],
)
def test_a_word_mistyped_in_the_settings_is_told(settings: dict[str, Any], problem: str) -> None:
    schemes = {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}}
    text = one({"tags": ["Orders"], "parameters": [query("q")]}, components=schemes)
    assert told(text, **settings) == [problem]


def test_settings_that_fit_are_not_told_also_for_operations_that_are_not_chosen() -> None:
    paths = {"/a": {"get": {"operationId": "a", "tags": ["x"], "parameters": [query("t")]}}, "/b": {"post": {}}}
    settings = {"tags": ("X",), "approval": ("post_b", "*"), "methods": ("get", "post"), "secrets": {"t": "secret"}}
    assert told(document(paths), **settings) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"timeout_s": "5"}, "has timeout_s = '5'."),
        ({"timeout_s": -1}, "has timeout_s = -1."),
        ({"tags": ["a", 3]}, "has tags = ['a', 3]."),
        ({"tiers": {"a": "reed"}}, "has tiers = {'a': 'reed'}."),
        ({"retries": None}, "has retries = None."),
        ({"base_url": "ftp://x"}, "has base_url = 'ftp://x'."),
        ({"auth": "key-for-tests"}, "has auth = …."),
    ],
)
def test_a_setting_that_cannot_be_is_shown_as_it_was_given(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenapiSource(document="x.yaml", **settings)
    assert message in caught.value.message
