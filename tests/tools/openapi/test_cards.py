"""Cards say what an operation is for, when to use it, what it takes, how it fails, and what it can do."""

from __future__ import annotations

from typing import Any

import pytest
from tests.tools.openapi.documents import body, document, one, query, tool, tools

from taoloop.core.cards.card_lint import lint
from taoloop.dialects.prompt import describe
from taoloop.errors import InvalidArguments


def card(operation: dict[str, Any], **more: Any) -> Any:
    settings = more.pop("settings", {})
    return tool(one(operation, **more), **settings).card


def test_summary_and_description_become_the_purpose() -> None:
    made = card({"summary": "List pets", "description": "List pets. All of them, **newest** first.\n\nAt most 100."})
    assert made.purpose == "List pets. All of them, newest first. At most 100."


def test_what_is_said_of_its_use_becomes_that() -> None:
    made = card({"description": "Conditions right now. Use this for one city. Not for past or future days."})
    assert made.purpose == "Conditions right now."
    assert made.use_when == "Use this for one city."
    assert made.avoid_when == "Not for past or future days."


def test_without_a_word_method_and_path_are_the_purpose() -> None:
    assert card({}, path="/a/b").purpose == "GET /a/b"


def test_the_form_of_the_answer_is_told() -> None:
    schema = {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}}
    replies = {"200": {"description": "ok", "content": {"application/json": {"schema": schema}}}}
    assert card({"summary": "List", "responses": replies}).purpose == 'List. Returns [{"id": integer}]'


def test_a_card_promises_no_output_so_that_a_server_may_deviate() -> None:
    replies = {"200": {"description": "ok", "content": {"application/json": {"schema": {"type": "integer"}}}}}
    made = tool(one({"responses": replies}))
    assert made.card.output_schema is None
    assert made.check_output is None


def test_error_responses_become_errors() -> None:
    replies = {
        "404": {"description": "No such pet"},
        "429": {"description": "Slow"},
        "5XX": {},
        "200": {},
        "default": {},
    }
    errors = {one.code: one for one in card({"responses": replies}).errors}
    assert list(errors) == ["not_found", "rate_limited", "server_error"]
    assert (errors["not_found"].advice, errors["not_found"].retryable) == ("No such pet", False)
    assert errors["rate_limited"].retryable is True


def test_an_example_is_made_of_those_of_the_document() -> None:
    parameters = [
        query("city", {"type": "string", "example": "北京"}, required=True),
        query("unit", {"enum": ["c", "f"]}),
    ]
    (example,) = card({"parameters": parameters}).examples
    assert example.args == {"city": "北京"}


@pytest.mark.parametrize(
    "parameter",
    [
        query("city", {"type": "string"}, required=True),
        query("city", {"type": "integer", "example": "north"}, required=True),
        query("city", {"type": "string", "maxLength": 2, "example": "too long"}, required=True),
    ],
)
def test_no_example_is_made_where_one_argument_has_none_that_fits(parameter: dict[str, Any]) -> None:
    assert card({"parameters": [parameter]}).examples == ()


def test_the_example_of_a_parameter_counts_too() -> None:
    given = query("q", {"type": "string"}, required=True, examples={"one": {"value": "first"}})
    assert card({"parameters": [given]}).examples[0].args == {"q": "first"}


@pytest.mark.parametrize(
    ("method", "tier", "egress"),
    [
        ("get", "read", False),
        ("head", "read", False),
        ("query", "read", False),
        ("post", "write", None),
        ("put", "write", None),
        ("patch", "write", None),
        ("delete", "destructive", None),
    ],
)
def test_the_method_gives_the_tier(method: str, tier: str, egress: object) -> None:
    made = card({}, method=method)
    assert (made.tier, made.egress) == (tier, egress)


@pytest.mark.parametrize(
    ("told", "settings", "tier"),
    [
        ({"x-tier": "read"}, {}, "read"),
        ({"x-tier": "nonsense"}, {}, "write"),
        ({"x-tier": "read"}, {"tiers": {"do_*": "destructive"}}, "destructive"),
        ({}, {"tiers": {"do_*": "destructive", "do_it": "draft"}}, "draft"),
        ({"x-approval": "required", "x-tier": "read"}, {}, "read"),
        ({"x-approval": "required"}, {}, "write"),
    ],
)
def test_document_and_operator_may_say_otherwise(told: dict[str, Any], settings: dict[str, Any], tier: str) -> None:
    assert card(told, method="post", settings=settings).tier == tier


@pytest.mark.parametrize(
    ("told", "settings", "approval"),
    [
        ({}, {}, None),
        ({"x-approval": "required", "x-tier": "read"}, {}, "required"),
        ({"x-approval": True}, {}, "required"),
        ({"x-approval": "optional"}, {}, None),
        ({}, {"approval": ("do_it",)}, "required"),
        ({}, {"approval": ("do_*",), "tiers": {"*": "read"}}, "required"),
        ({}, {"approval": ("other",)}, None),
    ],
)
def test_what_a_person_must_allow_each_time_stands_on_the_card(
    told: dict[str, Any], settings: dict[str, Any], approval: str | None
) -> None:
    assert card(told, method="get", settings=settings).approval == approval


def test_a_card_has_no_more_words_than_providers_take() -> None:
    long = "Use this for a long time. Do not use it for a short one. It does what it does for all who ask it. " * 30
    replies = {str(400 + number): {"description": long} for number in range(20)}
    given = query("q", {"type": "string", "example": "x" * 50}, required=True)
    made = card({"summary": "Do it", "description": long, "responses": replies, "parameters": [given]})
    assert len(describe(made)) <= 1_024
    assert made.purpose.startswith("Do it. It does what it does")


def test_deprecated_is_said() -> None:
    made = card({"deprecated": True}, settings={"include_deprecated": True})
    assert made.avoid_when == "It is deprecated."


def test_unknown_arguments_are_refused_and_wrong_ones_too() -> None:
    made = tool(one({"parameters": [query("unit", {"type": "string", "enum": ["c", "f"]})]}))
    for args, code in (({"secret": 1}, "unknown_argument"), ({"unit": "k"}, "invalid_argument")):
        with pytest.raises(InvalidArguments) as caught:
            made.prepare(args)
        assert caught.value.code == code


@pytest.mark.parametrize("required", [True, False])
def test_what_a_body_needs_is_required_even_where_the_body_is_said_to_be_optional(required: bool) -> None:
    content = {"application/json": {"schema": {"properties": {"a": {}, "b": {}}, "required": ["a"]}}}
    assert card({"requestBody": {"required": required, "content": content}}, method="post").required == ("a",)


def test_a_whole_body_is_required_only_where_it_is() -> None:
    made = card({"requestBody": {"content": {"application/json": {"schema": {"type": "array"}}}}}, method="post")
    assert (made.required, made.parameters["body"]["type"]) == ((), "array")


@pytest.mark.parametrize("media_type", ["application/octet-stream", "multipart/form-data"])
def test_a_file_says_how_it_is_given(media_type: str) -> None:
    schema = {"type": "object", "properties": {"body": {"type": "string", "format": "binary"}}}
    made = card(body(schema, media_type), method="post")
    assert "data: URL" in made.parameters["body"]["description"]


def test_what_the_operator_fills_is_no_argument() -> None:
    parameters = [query("token"), {"name": "X-Tenant", "in": "header", "schema": {}}, query("key"), query("q")]
    schemes = {"securitySchemes": {"k": {"type": "apiKey", "in": "query", "name": "key"}}}
    settings = {"secrets": {"token": "t"}, "headers": {"x-tenant": "a"}}
    made = card({"parameters": parameters, "security": [{"k": []}]}, components=schemes, settings=settings)
    assert list(made.parameters) == ["q"]
    assert "secret" not in str(made)


@pytest.mark.parametrize(
    ("told", "settings"),
    [
        ({"x-idempotency": True}, {}),
        ({}, {"idempotency": ("do_*",)}),
        ({"parameters": [{"name": "Idempotency-Key", "in": "header", "required": True}]}, {}),
    ],
)
def test_an_api_that_takes_a_key_has_idempotent_tools(told: dict[str, Any], settings: dict[str, Any]) -> None:
    made = card(told, method="post", settings=settings)
    assert made.idempotent is True
    assert made.parameters == {}
    assert card({}, method="post").idempotent is False


def test_a_card_in_the_document_counts() -> None:
    told = {"summary": "x", "x-tool-card": {"purpose": "Refund an order.", "avoid_when": "It was not paid."}}
    made = card(told, method="post")
    assert (made.purpose, made.avoid_when) == ("Refund an order.", "It was not paid.")


def test_a_huge_schema_is_shown_in_part_and_judged_whole() -> None:
    rule: dict[str, Any] = {"type": "integer"}
    for level in range(12):
        rule = {"type": "object", "properties": {f"level_{level}": rule}, "description": "x" * 200}
    made = tool(one(body({"properties": {"top": rule}}), method="post"), max_card_bytes=1_000)
    value: Any = "no number"
    for level in range(12):
        value = {f"level_{level}": value}
    assert len(str(made.card.input_schema)) < 1_200
    with pytest.raises(InvalidArguments, match="level_0"):
        made.prepare({"top": value})


def test_names_inside_a_body_that_providers_refuse_are_changed_and_changed_back() -> None:
    inner = {"type": "object", "properties": {"a b": {"type": "integer"}, "ok": {}}, "required": ["a b"]}
    made = tool(one(body({"properties": {"filter": inner}}), method="post"))
    assert list(made.card.parameters["filter"]["properties"]) == ["a_b", "ok"]
    prepared = made.prepare({"filter": {"a_b": 1}})
    assert prepared.args == {"filter": {"a_b": 1}}
    assert prepared.values == {"filter": {"a b": 1}}
    with pytest.raises(InvalidArguments, match="a_b"):
        made.prepare({"filter": {}})


def test_a_good_document_makes_cards_without_findings() -> None:
    paths = {
        "/orders/{order_id}": {
            "get": {
                "operationId": "get_order",
                "summary": "Show one order with its lines",
                "description": "Not for orders of other customers.",
                "parameters": [
                    {
                        "name": "order_id",
                        "in": "path",
                        "description": "Order number",
                        "schema": {"type": "integer", "example": 42},
                    }
                ],
                "responses": {"200": {}, "404": {"description": "There is no such order"}},
            }
        }
    }
    assert lint(tools(document(paths))["get_order"].card) == ()
