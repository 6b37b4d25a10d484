from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from email import message_from_bytes
from email.message import Message
from typing import Any
from urllib.parse import parse_qsl

import pytest
from tests.tools.openapi.documents import query_of

from taoloop.errors import InvalidArguments, ToolDefinitionError
from taoloop.tools.openapi.operation import (
    Body,
    Encoding,
    Operation,
    Parameter,
    ParameterLocation,
    Scheme,
    Style,
)
from taoloop.tools.openapi.request import EncodedBody, PreparedRequest, build_request, decode_file, encode_body
from taoloop.tools.openapi.settings import OpenapiSource


def one(name: str, place: ParameterLocation, **more: Any) -> Parameter:
    style: Style = "form" if place in ("query", "cookie") else "simple"
    return Parameter(
        arg=more.pop("arg", name),
        name=name,
        location=place,
        schema=more.pop("schema", {}),
        style=style,
        explode=style == "form",
        required=more.pop("required", place == "path"),
        **more,
    )


def operation(path: str = "/orders/{id}", *parameters: Parameter, method: str = "GET", **more: Any) -> Operation:
    return Operation(
        name="get_order",
        operation_id="getOrder",
        method=method,
        path=path,
        document_path=f"paths.{path}.get",
        servers=more.pop("servers", ("https://api.example.com/v1/",)),
        parameters=parameters,
        **more,
    )


SOURCE = OpenapiSource(document="openapi: 3.1.0", timeout_s=8.0)
BODY = Body(
    media_type="application/json",
    kind="json",
    schema={"type": "object", "properties": {"amount": {}, "note": {"default": "none"}}, "required": ["amount"]},
    required=True,
    args={"amount": "amount", "body_id": "id", "note": "note"},
)


def code(operation: Operation, args: dict[str, Any], source: OpenapiSource = SOURCE) -> str:
    with pytest.raises(InvalidArguments) as caught:
        build_request(operation, args, source)
    return caught.value.code


def test_every_argument_stands_in_its_place() -> None:  # S1-31
    plan = operation(
        "/orders/{id}",
        one("id", "path"),
        one("q", "query"),
        one("X-Trace", "header", arg="trace"),
        one("lang", "cookie"),
    )
    made = build_request(plan, {"id": 7, "q": ["a b", "c"], "trace": "t", "lang": "zh"}, SOURCE)
    assert made == PreparedRequest(
        method="GET",
        url="https://api.example.com/v1/orders/7?q=a%20b&q=c",
        headers={"X-Trace": "t", "Cookie": "lang=zh"},
        body=None,
        timeout_s=8.0,
        safe_url="https://api.example.com/v1/orders/7",
    )
    assert query_of(made) == [("q", "a b"), ("q", "c")]
    assert made.url.partition("?")[0] == "https://api.example.com/v1/orders/7"


def test_a_body_has_the_rest_and_its_type() -> None:  # S1-32, S1-34
    plan = operation("/orders/{id}", one("id", "path"), method="POST", body=BODY)
    made = build_request(plan, {"id": 7, "body_id": 8, "amount": 12345678901234567}, SOURCE)
    assert made.body == b'{"amount":12345678901234567,"id":8}'
    assert made.headers == {"Content-Type": "application/json"}


def test_a_missing_argument_is_refused() -> None:
    plan = operation("/orders/{id}", one("id", "path"), one("q", "query", required=True), method="POST", body=BODY)
    assert code(plan, {"q": 1, "amount": 1}) == "missing_argument"
    assert code(plan, {"id": 1, "amount": 1}) == "missing_argument"
    assert code(plan, {"id": 1, "q": 1}) == "missing_argument"
    assert code(plan, {"id": None, "q": 1, "amount": 1}) == "missing_argument"
    whole = replace(BODY, args={}, whole_arg="body")
    assert code(operation("/x", method="POST", body=whole), {}) == "missing_argument"


def test_an_unknown_argument_is_refused() -> None:
    assert code(operation("/x", one("a", "query")), {"b": 1}) == "unknown_argument"


def test_a_body_that_is_not_required_may_be_left_out_but_not_half_given() -> None:
    plan = operation("/x", method="POST", body=replace(BODY, required=False))
    assert build_request(plan, {}, SOURCE).body is None
    assert build_request(plan, {}, SOURCE).headers == {}
    assert code(plan, {"note": "x"}) == "missing_argument"


def test_null_is_not_sent_but_in_a_body() -> None:
    assert build_request(operation("/x", one("q", "query")), {"q": None}, SOURCE).url == "https://api.example.com/v1/x"
    plan = operation("/x", method="POST", body=BODY)
    assert build_request(plan, {"amount": None}, SOURCE).body == b'{"amount":null}'


@pytest.mark.parametrize("value", ["", ".", "..", "a/../b", "x\ny"])
def test_a_value_cannot_change_the_path(value: str) -> None:
    assert code(operation("/a/{id}/b", one("id", "path")), {"id": value}) == "invalid_argument"


def test_two_values_cannot_make_a_step_together() -> None:
    plan = operation("/a/{x}{y}", one("x", "path"), one("y", "path"))
    assert code(plan, {"x": ".", "y": "."}) == "invalid_argument"
    label = replace(one("x", "path"), style="label")
    assert code(operation("/a/{x}", label), {"x": "."}) == "invalid_argument"
    assert (
        build_request(operation("/a.{x}", one("x", "path")), {"x": "b"}, SOURCE)
        .url.partition("?")[0]
        .endswith("/v1/a.b")
    )


def test_a_header_cannot_begin_another() -> None:
    assert code(operation("/x", one("X-A", "header", arg="a")), {"a": "1\r\nX-B: 2"}) == "invalid_argument"
    assert code(operation("/x", one("X A\r\nB", "header", arg="a")), {"a": "1"}) == "invalid_argument"


def test_defaults_are_sent_only_where_that_is_wanted() -> None:
    plan = operation("/x", one("unit", "query", schema={"default": "c"}), method="POST", body=BODY)
    assert query_of(build_request(plan, {"amount": 1}, SOURCE)) == []
    filled = build_request(plan, {"amount": 1}, replace(SOURCE, fill_defaults=True))
    assert query_of(filled) == [("unit", "c")]
    assert filled.body is not None
    assert json.loads(filled.body) == {"amount": 1, "note": "none"}


def test_the_operator_fills_parameters_that_are_secret() -> None:
    plan = operation("/x/{token}", one("token", "path"), one("key", "query", required=True))
    source = replace(SOURCE, secrets={"token": "xoxb-1", "key": "k"})
    made = build_request(plan, {}, source)
    assert made.url == "https://api.example.com/v1/x/xoxb-1?key=k"
    assert made.safe_url == "https://api.example.com/v1/x/[secret]"
    assert code(plan, {"token": "mine"}, source) == "unknown_argument"


def test_a_key_is_appended_last_and_never_shown() -> None:  # S1-33
    scheme = Scheme(name="k", kind="api_key", location="query", key="access_key")
    plan = operation("/latest", one("base", "query"), security=({"k": ()},), schemes={"k": scheme})
    made = build_request(plan, {"base": "EUR"}, replace(SOURCE, auth={"k": "a+b/c=d&e"}))
    assert made.url == "https://api.example.com/v1/latest?base=EUR&access_key=a%2Bb%2Fc%3Dd%26e"
    assert query_of(made) == [("base", "EUR"), ("access_key", "a+b/c=d&e")]
    assert "a%2Bb" not in made.safe_url


def test_a_model_cannot_replace_the_operators_headers() -> None:
    scheme = Scheme(name="k", kind="bearer", prefix="Bearer")
    plan = operation("/x", one("Authorization", "header", arg="a"), security=({"k": ()},), schemes={"k": scheme})
    made = build_request(plan, {"a": "mine"}, replace(SOURCE, auth={"k": "t"}, headers={"X-Team": "a"}))
    assert made.headers == {"X-Team": "a", "Authorization": "Bearer t"}


def test_no_header_goes_out_twice_and_cookies_are_joined() -> None:
    scheme = Scheme(name="k", kind="api_key", location="cookie", key="session")
    plan = operation(
        "/x", one("lang", "cookie"), one("X-A", "header", arg="a"), security=({"k": ()},), schemes={"k": scheme}
    )
    source = replace(SOURCE, auth={"k": "s"}, headers={"cookie": "a=1", "x-a": "operator"})
    made = build_request(plan, {"lang": "zh", "a": "model"}, replace(source, headers={"cookie": "a=1", "x-b": "c"}))
    assert made.headers == {"x-b": "c", "X-A": "model", "Cookie": "a=1; lang=zh; session=s"}


def test_the_key_of_the_call_goes_with_it() -> None:
    plan = operation("/x", one("idempotency-key", "header", arg="key"), method="POST")
    made = build_request(plan, {"key": "the model's"}, SOURCE, idempotency_key="run:call_1")
    assert made.headers == {"Idempotency-Key": "run:call_1"}


def test_decimals_go_out_as_they_were_written() -> None:
    plan = operation("/p/{a}", one("a", "path"), one("q", "query"), method="POST", body=BODY)
    args = {"a": 1.1, "q": [0.5, 0.12345678901234568], "amount": 100.0}
    literals = {"/a": "1.10", "/q/1": "0.12345678901234567890", "/amount": "1e2"}
    made = build_request(plan, args, SOURCE, literals=literals)
    assert made.url == "https://api.example.com/v1/p/1.10?q=0.5&q=0.12345678901234567890"
    assert made.body == b'{"amount":100}'
    assert (
        build_request(plan, args, SOURCE, literals={"/a": "7.7", "/q/1": "x"}).url.partition("?")[0].endswith("/p/1.1")
    )


def test_no_float_goes_out_with_an_exponent() -> None:
    made = build_request(operation("/x", one("q", "query"), one("r", "query")), {"q": 1e-5, "r": 1e21}, SOURCE)
    assert made.url.endswith("/x?q=0.00001&r=1000000000000000000000")


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://h", "https://h/x"),
        ("https://h/", "https://h/x"),
        ("https://h/v1/", "https://h/v1/x"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1/x"),
    ],
)
def test_a_slash_at_the_end_of_a_server_is_no_step(base: str, url: str) -> None:
    assert build_request(operation("/x"), {}, replace(SOURCE, base_url=base)).url == url


@pytest.mark.parametrize("servers", [(), ("/v1",), ("ftp://h",)])
def test_an_api_without_a_server_is_told(servers: tuple[str, ...]) -> None:
    with pytest.raises(ToolDefinitionError, match="base_url"):
        build_request(operation("/x", servers=servers), {}, SOURCE)


def test_a_place_in_the_path_that_is_no_parameter_is_told() -> None:
    assert code(operation("/x/{id}"), {}) == "missing_argument"


def test_a_query_in_the_path_of_the_document_is_kept() -> None:
    made = build_request(operation("/x?a=1", one("b", "query")), {"b": 2}, SOURCE)
    assert made.url == "https://api.example.com/v1/x?a=1&b=2"


def body(kind: str, media_type: str, *names: str, **more: Any) -> Body:
    schema = more.pop("schema", {"type": "object", "properties": {name: {} for name in names}})
    return Body(kind=kind, media_type=media_type, schema=schema, args={f"arg_{n}": n for n in names}, **more)  # type: ignore[arg-type]


def sent(body: Body, args: dict[str, Any]) -> EncodedBody:
    made = encode_body(body, args)
    assert made is not None
    return made


def parts(made: EncodedBody) -> list[Message]:
    message = message_from_bytes(b"Content-Type: " + made.content_type.encode() + b"\r\n\r\n" + made.data)
    return [part for part in message.get_payload() if isinstance(part, Message)]


def test_json_has_the_names_of_the_wire_and_every_digit() -> None:
    one = body("json", "application/json", "id", "amount", "x")
    made = sent(one, {"arg_id": 12345678901234567, "arg_amount": Decimal("1.10"), "arg_x": [1e-7, None, True, "ü\n"]})
    assert made.data.decode() == '{"id":12345678901234567,"amount":1.10,"x":[0.0000001,null,true,"ü\\n"]}'
    assert made.content_type == "application/json"


def test_a_body_that_is_one_argument_is_sent_as_it_is() -> None:
    whole = Body(kind="json", media_type="application/json", schema={}, whole_arg="body", required=True)
    assert sent(whole, {"body": [1, {"a": {}}, []]}).data == b'[1,{"a":{}},[]]'
    assert sent(whole, {"body": None}).data == b"null"
    assert encode_body(whole, {}) is None


def test_nothing_is_sent_where_nothing_is_given_and_nothing_needed() -> None:
    assert encode_body(body("json", "application/json", "a"), {}) is None
    assert sent(body("json", "application/json", "a", required=True), {}).data == b"{}"


def test_a_form_repeats_lists_and_writes_objects_as_json() -> None:
    made = sent(
        body("form", "application/x-www-form-urlencoded", "a", "b", "c"),
        {"arg_a": "x y&z", "arg_b": [1, 2], "arg_c": {"k": "v"}},
    )
    assert b"+" not in made.data
    assert parse_qsl(made.data.decode()) == [("a", "x y&z"), ("b", "1"), ("b", "2"), ("c", '{"k":"v"}')]


def test_an_encoding_changes_how_a_field_of_a_form_is_sent() -> None:
    encodings = {
        "a": Encoding(style="deepObject"),
        "b": Encoding(style="form", explode=False),
        "c": Encoding(content_type="application/json"),
    }
    one = body("form", "application/x-www-form-urlencoded", "a", "b", "c", encodings=encodings)
    made = sent(one, {"arg_a": {"k": 1}, "arg_b": [1, 2], "arg_c": [1]})
    assert parse_qsl(made.data.decode()) == [("a[k]", "1"), ("b", "1,2"), ("c", "[1]")]


def test_a_form_under_deep_object_is_sent_as_the_client_of_the_vendor_sends_it() -> None:
    encodings = {"a": Encoding(style="deepObject"), "b": Encoding(style="deepObject")}
    one = body("form", "application/x-www-form-urlencoded", "a", "b", encodings=encodings)
    args = {"arg_a": [{"price": "p_1", "quantity": 2}], "arg_b": ["customer"]}
    made = encode_body(one, args)
    assert made is not None
    items = [("a[0][price]", "p_1"), ("a[0][quantity]", "2")]
    assert parse_qsl(made.data.decode()) == [*items, ("b[0]", "customer")]  # stripe-python 16.1 for `line_items`
    made = encode_body(one, args, "brackets")
    assert made is not None
    assert parse_qsl(made.data.decode())[-1] == ("b[]", "customer")


def test_multipart_has_files_values_objects_and_lists() -> None:
    schema = {
        "type": "object",
        "properties": {
            "file": {"$ref": "#/$defs/F"},
            "purpose": {"type": "string"},
            "meta": {"type": "object"},
            "images": {"type": "array", "items": {"type": "string", "format": "binary"}},
        },
        "$defs": {"F": {"type": "string", "format": "binary"}},
    }
    one = body("multipart", "multipart/form-data", "file", "purpose", "meta", "images", schema=schema)
    made = sent(
        one,
        {
            "arg_file": "data:image/png;base64,iVBORw0KGgo=",
            "arg_purpose": "vision",
            "arg_meta": {"a": 1},
            "arg_images": ["one", "two"],
        },
    )
    file, purpose, meta, first, second = parts(made)
    assert (file.get_filename(), file.get_content_type()) == ("file", "image/png")
    assert file.get_payload(decode=True) == b"\x89PNG\r\n\x1a\n"
    assert (purpose.get_filename(), purpose.get_payload()) == (None, "vision")
    assert (meta.get_content_type(), json.loads(str(meta.get_payload()))) == ("application/json", {"a": 1})
    assert [one.get_payload() for one in (first, second)] == ["one", "two"]
    assert first.get_content_type() == "application/octet-stream"


def test_an_encoding_gives_a_part_its_type() -> None:
    encodings = {"a": Encoding(content_type="text/csv, text/plain")}
    (part,) = parts(sent(body("multipart", "multipart/form-data", "a", encodings=encodings), {"arg_a": "1,2"}))
    assert (part.get_content_type(), part.get_filename()) == ("text/csv", "a")


def test_no_name_and_no_value_breaks_out_of_its_part() -> None:
    name = 'a"\r\nX-Evil: 1'
    made = sent(body("multipart", "multipart/form-data", name), {f"arg_{name}": "--x\r\n\r\nX"})
    (part,) = parts(made)
    assert part["X-Evil"] is None
    assert part.get_payload() == "--x\r\n\r\nX"


def test_the_same_arguments_make_the_same_bytes() -> None:
    one = body("multipart", "multipart/form-data", "a")
    assert sent(one, {"arg_a": "x"}) == sent(one, {"arg_a": "x"})


def test_text_has_its_charset_and_bytes_come_from_a_data_address() -> None:
    text = Body(kind="text", media_type="text/plain", schema={}, whole_arg="body")
    assert sent(text, {"body": "ü"}) == EncodedBody("ü".encode(), "text/plain; charset=utf-8")
    assert sent(text, {"body": 1.5}).data == b"1.5"
    sdp = Body(kind="text", media_type="application/sdp", schema={}, whole_arg="body")
    assert sent(sdp, {"body": "v=0"}).content_type == "application/sdp"
    raw = Body(kind="binary", media_type="application/octet-stream", schema={}, whole_arg="body")
    assert sent(raw, {"body": "data:;base64,AAE="}).data == b"\0\1"
    assert sent(raw, {"body": "plain"}).data == b"plain"


def test_a_data_address_is_read_in_both_its_forms() -> None:
    assert decode_file("f", "data:text/plain,a%20b") == (b"a b", "text/plain")
    assert decode_file("f", "data: not one") == (b"data: not one", "")
    with pytest.raises(InvalidArguments) as caught:
        decode_file("f", "data:image/png;base64,???")
    assert caught.value.code == "invalid_argument"


def test_a_form_needs_an_object() -> None:
    whole = Body(
        kind="form", media_type="application/x-www-form-urlencoded", schema={}, whole_arg="body", required=True
    )
    with pytest.raises(InvalidArguments):
        encode_body(whole, {"body": [1]})


@pytest.mark.parametrize("declared", ["application/xml; charset=utf-16", 'text/xml;charset="ISO-8859-1"'])
def test_a_text_is_utf_8_and_says_so_whatever_the_document_declares(declared: str) -> None:
    body = encode_body(Body(media_type=declared, kind="text", schema={}, whole_arg="body"), {"body": "<a>ü</a>"})
    assert body == ("<a>ü</a>".encode(), f"{declared.partition(';')[0]}; charset=utf-8")


def test_the_error_for_a_header_shows_no_character_of_a_secret() -> None:
    key = {"X-Key": "密钥"}
    for source in (
        OpenapiSource(document="openapi: 3.1.0", headers=key),
        OpenapiSource(document="openapi: 3.1.0", secrets=key),
    ):
        with pytest.raises(InvalidArguments) as refused:
            build_request(operation("/orders", one("X-Key", "header")), {}, source)
        text = f"{refused.value.message} {refused.value.hint}"
        assert "Latin-1" in text
        assert not any(mark in text for mark in ("密", "%E5"))
