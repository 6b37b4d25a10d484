from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from taoloop.errors import InvalidArguments, ToolDefinitionError
from taoloop.tools.openapi.document.operation import Body, Operation, Parameter, ParameterLocation, Scheme, Style
from taoloop.tools.openapi.http.request import PreparedRequest, build_request
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
    assert made.query == (("q", "a b"), ("q", "c"))
    assert made.address == "https://api.example.com/v1/orders/7"


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
    assert build_request(operation("/a.{x}", one("x", "path")), {"x": "b"}, SOURCE).address.endswith("/v1/a.b")


def test_a_header_cannot_begin_another() -> None:
    assert code(operation("/x", one("X-A", "header", arg="a")), {"a": "1\r\nX-B: 2"}) == "invalid_argument"
    assert code(operation("/x", one("X A\r\nB", "header", arg="a")), {"a": "1"}) == "invalid_argument"


def test_defaults_are_sent_only_where_that_is_wanted() -> None:
    plan = operation("/x", one("unit", "query", schema={"default": "c"}), method="POST", body=BODY)
    assert build_request(plan, {"amount": 1}, SOURCE).query == ()
    filled = build_request(plan, {"amount": 1}, replace(SOURCE, fill_defaults=True))
    assert filled.query == (("unit", "c"),)
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
    assert made.query == (("base", "EUR"), ("access_key", "a+b/c=d&e"))
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
    assert build_request(plan, args, SOURCE, literals={"/a": "7.7", "/q/1": "x"}).address.endswith("/p/1.1")


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
