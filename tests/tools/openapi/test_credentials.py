from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.tools.openapi.documents import one, read, tool

from taoloop.core.redaction.redactor import Redactor
from taoloop.errors import InvalidArguments, MissingKey, ToolError
from taoloop.tools.openapi.credentials import choose_alternative, credentials, secrets_of, variable_name
from taoloop.tools.openapi.operation import Operation, Scheme
from taoloop.tools.openapi.operation_call import OperationCaller
from taoloop.tools.openapi.request import PreparedRequest, build_request
from taoloop.tools.openapi.settings import OpenapiSource

SCHEMES = {
    "head": Scheme(name="head", kind="api_key", key="X-API-Key"),
    "query": Scheme(name="query", kind="api_key", location="query", key="access key"),
    "cookie": Scheme(name="cookie", kind="api_key", location="cookie", key="session"),
    "basic": Scheme(name="basic", kind="basic", prefix="Basic"),
    "bearer": Scheme(name="bearer", kind="bearer", prefix="Bearer"),
    "token": Scheme(name="token", kind="api_key", prefix="Token"),
    "oauth": Scheme(name="oauth", kind="oauth2_client", token_url="https://h/token"),
    "mutual": Scheme(name="mutual", kind="unsupported", description="mutualTLS"),
    "nowhere": Scheme(name="nowhere", kind="unsupported", description="not defined"),
}


def operation(*alternatives: tuple[str, ...]) -> Operation:
    security = tuple(dict.fromkeys(one, ()) for one in alternatives)
    return Operation(
        name="get_x",
        operation_id="x",
        method="GET",
        path="/x",
        document_path="paths./x.get",
        security=security,
        schemes=SCHEMES,
    )


def source(**auth: Any) -> OpenapiSource:
    return OpenapiSource(document="openapi: 3.1.0", name="shop", auth=auth)


@pytest.mark.parametrize(
    ("name", "given", "headers", "query", "cookies"),
    [
        ("head", "k-1", {"X-API-Key": "k-1"}, [], []),
        ("query", "a+b/c=d&e", {}, ["access%20key=a%2Bb%2Fc%3Dd%26e"], []),
        ("cookie", "a;b c", {}, [], ["session=a%3Bb%20c"]),
        ("bearer", "t-1", {"Authorization": "Bearer t-1"}, [], []),
        ("bearer", "Bearer t-1", {"Authorization": "Bearer t-1"}, [], []),
        ("token", "t-1", {"Authorization": "Token t-1"}, [], []),
        ("oauth", "given-token", {"Authorization": "Bearer given-token"}, [], []),
    ],
)
def test_a_secret_stands_where_its_scheme_says(
    name: str, given: str, headers: dict[str, str], query: list[str], cookies: list[str]
) -> None:
    one, where = operation((name,)), source(**{name: given})
    made = credentials(one, choose_alternative(one, where), where, {})
    assert (made.headers, made.query, made.cookies) == (headers, query, cookies)


@pytest.mark.parametrize("given", ["anna:pä:ss", {"username": "anna", "password": "pä:ss"}])
def test_basic_is_user_and_password_in_base64(given: Any) -> None:
    one, where = operation(("basic",)), source(basic=given)
    made = credentials(one, choose_alternative(one, where), where, {})
    assert made.headers == {"Authorization": "Basic " + base64.b64encode("anna:pä:ss".encode()).decode()}


def test_a_token_of_oauth_is_the_one_that_was_fetched() -> None:
    one, where = operation(("oauth",)), source(oauth={"client_id": "i", "client_secret": "s"})
    made = credentials(one, choose_alternative(one, where), where, {"oauth": "fresh"})
    assert made.headers == {"Authorization": "Bearer fresh"}


def test_the_first_alternative_with_all_its_secrets_counts() -> None:
    one = operation(("bearer",), ("head", "query"), ("cookie",))
    assert list(choose_alternative(one, source(head="a", query="b", cookie="c"))) == ["head", "query"]
    assert list(choose_alternative(one, source(head="a", cookie="c"))) == ["cookie"]
    assert list(choose_alternative(one, source(bearer="a", cookie="c"))) == ["bearer"]


def test_nothing_is_needed_where_the_document_says_so() -> None:
    assert choose_alternative(operation(), source(head="a")) == {}
    assert choose_alternative(operation(("head",), ()), source()) == {}
    assert list(choose_alternative(operation((), ("head",)), source(head="a"))) == ["head"]


def test_a_secret_that_is_not_set_is_named_with_the_variable_to_set() -> None:
    with pytest.raises(MissingKey) as caught:
        choose_alternative(operation(("head",)), source())
    assert "'head'" in caught.value.message
    assert "auth: {head: ${SHOP_HEAD_TOKEN}}" in caught.value.hint
    assert variable_name(source(), "api_key") == "SHOP_API_KEY"
    with pytest.raises(MissingKey, match="client_secret"):
        choose_alternative(operation(("oauth",)), source())


@pytest.mark.parametrize("name", ["mutual", "nowhere"])
def test_a_scheme_that_cannot_be_kept_is_named(name: str) -> None:
    with pytest.raises(ToolError) as caught:
        choose_alternative(operation((name,)), source())
    assert caught.value.code == "unsupported_security"
    assert name in caught.value.message


def test_an_alternative_that_can_be_kept_is_taken_before_one_that_cannot() -> None:
    assert list(choose_alternative(operation(("mutual",), ("head",)), source(head="a"))) == ["head"]


def test_a_secret_with_a_line_break_is_refused_and_not_shown() -> None:
    one, where = operation(("head",)), source(head="sec\r\nret")
    with pytest.raises(InvalidArguments) as caught:
        credentials(one, choose_alternative(one, where), where, {})
    assert "sec" not in str(caught.value)


def test_every_form_of_a_secret_is_known_to_a_redactor() -> None:
    where = OpenapiSource(
        document="openapi: 3.1.0",
        auth={
            "basic": {"username": "anna", "password": "password-one"},
            "pair": "anna:password-two",
            "key": "a+b/c=d&e-key",
            "higress": "Bearer token-three",
            "oauth": {"client_id": "i", "client_secret": "secret-four"},
        },
        secrets={"token": "xoxb-five-five"},
        headers={"X-Api-Key": "key-six-six", "X-Team": "a-team-name"},
    )
    redactor = Redactor(secrets_of(where), patterns=False)
    pair = base64.b64encode(b"anna:password-one").decode()
    for text in ("password-one", "password-two", "a%2Bb%2Fc%3Dd%26e-key", "token-three", "secret-four", pair):
        assert "[redacted" in redactor.text(f"x {text} y"), text
    assert "[redacted" in redactor.text("xoxb-five-five")
    assert redactor.text("key-six-six and a-team-name").endswith("and a-team-name")
    assert "password-one" not in repr(where)


def secured(*alternatives: str, parameters: list[dict[str, Any]], **settings: Any) -> PreparedRequest:
    """The request for a call without arguments of an operation with these alternatives."""
    schemes = {
        "head": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        "query": {"type": "apiKey", "in": "query", "name": "key"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "session"},
        "digest": {"type": "http", "scheme": "digest"},
    }
    text = one(
        {"parameters": parameters, "security": [{name: []} for name in alternatives]},
        components={"securitySchemes": schemes},
    )
    made = tool(text, **settings)
    assert not made.card.parameters
    assert isinstance(made.handler, OperationCaller)
    return build_request(made.handler.operation, made.prepare({}).values, made.handler.api.source)


REQUIRED = [
    {"name": "x-api-key", "in": "header", "required": True, "schema": {"type": "string"}},
    {"name": "key", "in": "query", "required": True, "schema": {"type": "string"}},
    {"name": "session", "in": "cookie", "required": True, "schema": {"type": "string"}},
]


def test_alternatives_of_security_that_are_also_required_parameters_are_not_arguments() -> None:
    names = ("head", "query", "cookie")
    request = secured(*names, parameters=REQUIRED, auth={"query": "k-2"})
    assert (request.url, dict(request.headers)) == ("https://api.example.com/v1/things?key=k-2", {})
    request = secured(*names, parameters=REQUIRED, auth={"head": "k-1"})
    assert (request.url, dict(request.headers)) == ("https://api.example.com/v1/things", {"X-API-Key": "k-1"})
    request = secured(*names, parameters=REQUIRED, secrets={"session": "k-3"})  # as a parameter, it is the same secret
    assert (request.url, dict(request.headers)) == ("https://api.example.com/v1/things", {"Cookie": "session=k-3"})
    with pytest.raises(MissingKey):
        secured(*names, parameters=REQUIRED)


def test_a_scheme_that_is_not_defined_says_how_to_give_its_secret_and_takes_it() -> None:
    with pytest.raises(MissingKey) as caught:
        secured("nowhere", parameters=[])
    assert "{nowhere: {header: …, value: ${NOWHERE_TOKEN}}}" in caught.value.hint
    for location, sent in (("header", {"X-Key": "k-1"}), ("cookie", {"Cookie": "X-Key=k-1"}), ("query", {})):
        auth = {"nowhere": {location: "X-Key", "value": "k-1"}}
        request = secured("nowhere", parameters=[], auth=auth)
        assert dict(request.headers) == sent
        assert request.url.endswith("?X-Key=k-1" if location == "query" else "/things")
    in_parameter = [{**REQUIRED[1], "name": "X-Key"}]
    request = secured("nowhere", parameters=in_parameter, auth={"nowhere": {"query": "X-Key", "value": "k-1"}})
    assert request.url.endswith("?X-Key=k-1")
    request = secured("digest", parameters=[], auth={"digest": {"header": "Authorization", "value": "Digest x"}})
    assert request.headers["Authorization"] == "Digest x"


def test_a_scheme_that_is_not_defined_is_reported_until_its_secret_is_set() -> None:
    text = one({"security": [{"key": []}]})
    _, (problem,) = read(text, name="shop")
    assert problem.hint.startswith("Set `auth: {key: {header: …, value: ${SHOP_KEY}}}`")
    _, problems = read(text, name="shop", auth={"key": {"header": "X-Key", "value": "k"}})
    assert not problems
    where = source(key={"header": "X-Key", "value": "Token k-123"})
    assert {"Token k-123", "k-123"} <= set(secrets_of(where).values())
