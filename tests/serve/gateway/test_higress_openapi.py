"""What an `ai-agent` file may say in its OpenAPI text, and what comes of it: more than the plugin reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.serve.gateway.ai_agent import FINAL, asks, changed, load, one, run, tools_of, world

HEAD = "openapi: 3.1.0\ninfo: {title: T, version: '1'}\nservers: [{url: 'https://weather.example.com/v1'}]\n"
EVERYTHING = """
paths:
  /things/{id}:
    summary: Things by their number
    parameters:
    - {name: id, in: path, required: true, schema: {type: [integer, string]}}
    GET:
      description: Tell of one thing.
      summary: never shown
      parameters:
      - {name: X-Trace, in: header, schema: {type: string}}
      - {name: lang, in: cookie, schema: {type: string}}
      - {name: filter, in: query, schema: {$ref: '#/components/schemas/Filter'}, example: {a: 1}}
    post:
      operationId: change_thing
      summary: Change one thing.
      description: Also tells what it was.
      requestBody:
        content: {application/json: {schema: {type: object, properties: {size: {type: integer, minimum: 1}}}}}
    put: {operationId: put_thing, summary: Put one., requestBody: {content: {text/csv: {schema: {type: string}}}}}
    patch: {operationId: patch_thing, summary: Patch one.}
    delete: {operationId: delete_thing, summary: Delete one., x-tier: draft}
    x-anything: {a: 1}
  /old:
    get: {operationId: old_thing, summary: Old., deprecated: true}
  /form:
    post:
      operationId: send_form
      summary: Send a form.
      requestBody: {required: true, content: {application/x-protobuf: {schema: {type: object}}}}
components:
  schemas:
    Filter: {type: string, pattern: '^[a-z]+$'}
"""


def api(paths: str) -> dict[str, Any]:
    return changed("01_weather.yaml", {"apis.0.api": HEAD + paths, "jsonResp": ...})


def test_the_tools_of_a_document_are_as_it_says(tmp_path: Path) -> None:
    config = load(tmp_path, api(EVERYTHING))
    tools = tools_of(one(config).agent)
    cards = {name: tool.card for name, tool in tools.items() if name != "read_observation"}
    tiers = {name: card.tier for name, card in cards.items()}
    assert list(tiers.values()) == ["read", "write", "write", "write", "draft"]
    getting, changing, *_ = cards
    assert changing == "change_thing"
    assert getting.startswith("get_things")  # a name made from method and path
    assert "Tell of one thing." in cards[getting].purpose
    assert "Things by their number" in cards[getting].purpose
    assert "never shown" not in cards[getting].purpose
    assert "Change one thing." in cards["change_thing"].purpose
    assert set(cards[getting].input_schema["properties"]) == {"id", "X-Trace", "lang", "filter"}
    assert set(cards["change_thing"].input_schema["properties"]) == {"id", "size"}
    assert "old_thing" not in tools
    assert "send_form" not in tools
    assert [warning for warning in config.warnings if "/form" in warning and "application/x-protobuf" in warning]


def test_each_argument_goes_where_its_parameter_says_and_is_judged_first(tmp_path: Path) -> None:
    right = {"id": 7, "X-Trace": "t-1", "lang": "de", "filter": "abc"}
    with world() as there:
        made = one(
            load(tmp_path, api(EVERYTHING), resolve=dict.fromkeys(("llm.dns", "weather.dns"), there.place))
        ).agent
        name = next(iter(tools_of(made)))
        there.replies = [asks(name, **{**right, "filter": "ABC"}), asks(name, **right), FINAL]
        assert run(made).answer == "It is sunny."
        [(method, path, query, headers, _)] = there.calls
        assert "filter" in there.chats[1]["messages"][-1]["content"]
    assert (method, path) == ("GET", "/v1/things/7")
    assert query == [("filter", "abc"), ("key", "weather-key-for-tests")]
    assert (headers["x-trace"], headers["cookie"]) == ("t-1", "lang=de")


@pytest.mark.parametrize("value", [True, 1.5, 10**17, "a b"])
def test_every_scalar_can_stand_in_a_path(value: Any, tmp_path: Path) -> None:  # S1-57
    paths = (
        "paths: {'/x/{v}': {get: {operationId: x, description: X., parameters: "
        "[{name: v, in: path, required: true, schema: {}}]}}}"
    )
    wanted = {True: "true", 1.5: "1.5", 10**17: "1" + 17 * "0", "a b": "a%20b"}
    with world(asks("x", v=value), FINAL) as there:
        made = one(load(tmp_path, api(paths), resolve=dict.fromkeys(("llm.dns", "weather.dns"), there.place))).agent
        assert run(made).answer == "It is sunny."
        assert there.calls[0][1] == f"/v1/x/{wanted[value]}"
