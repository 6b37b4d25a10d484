"""An API with hundreds of operations: its tools are found, and each call is judged as the tool that it is."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from taoloop import Agent, ScriptedModel, Tool
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import FIND_TOOL
from taoloop.core.effects import ModelRequest
from taoloop.core.events import ActionRequested, Observed, RunStarted
from taoloop.core.message import ModelReply
from taoloop.core.policy import Policy
from taoloop.core.text import RUN_LANGUAGE
from taoloop.errors import ToolError
from taoloop.policy import tainted
from taoloop.runtime.after.replay import replay
from taoloop.testing import FakeEmbedder
from taoloop.tools.discovery import tool_search_tools
from taoloop.tools.embedding import Embedder
from taoloop.tools.from_card import tool_from_card


def shop(number: int, tier: str = "read", *, listed: bool = False) -> Tool:
    schema = {"type": "object", "properties": {"order_id": {"type": "integer"}}, "required": ["order_id"]}
    card = ToolCard(
        name=f"{tier}_order_{number}",
        purpose=f"Do the {tier} number {number} to an order.",
        input_schema={**schema, "additionalProperties": False},
        tier=tier,  # type: ignore[arg-type]  # one of them
        egress=False,
        listed=listed,
    )
    return tool_from_card(card, lambda order_id: {"done": order_id})


TOOLS = [*(shop(number) for number in range(300)), shop(7, "write"), shop(400, listed=True)]
FIND_IT = {"tool": "find_tool", "args": {"query": "write to order", "limit": 2}}


def call(name: str, args: Any) -> dict[str, Any]:
    return {"tool": "call_tool", "args": {"name": name, "args": args}}


def written(step: dict[str, Any], dialect: str) -> Any:
    if dialect == "native":
        return {"tool_calls": [{"name": step["tool"], "args": step["args"]}]}
    return f"Thought: so\nAction: {step['tool']}\nAction Input: {json.dumps(step['args'])}"


def agent(*steps: dict[str, Any], dialect: str = "text", **more: Any) -> Agent:
    replies = [written(step, dialect) for step in steps]
    last = "done" if dialect == "native" else "Thought: so\nFinal Answer: done"
    return Agent(model=ScriptedModel([*replies, last]), tools=TOOLS, dialect=dialect, **more)


def test_the_prompt_tells_of_the_listed_tools_only() -> None:
    result = agent().run_sync("Read order 5")
    started = next(one.fact for one in result.trace.events if isinstance(one.fact, RunStarted))
    listed = [card.name for card in started.agent.tools if card.listed]
    assert listed == ["read_order_400", "find_tool", "describe_tool", "call_tool", "read_observation"]
    assert len(started.agent.tools) == len(TOOLS) + 4


@pytest.mark.parametrize("dialect", ["text", "native"])
def test_a_tool_is_found_and_called_and_the_call_is_its_own(dialect: str) -> None:
    steps = (FIND_IT, call("write_order_7", {"order_id": 5}))
    result = agent(*steps, dialect=dialect, policy=Policy(profile="autonomous")).run_sync("Write order 5")
    requested = [one.fact for one in result.trace.events if isinstance(one.fact, ActionRequested)]
    observed = [one.fact for one in result.trace.events if isinstance(one.fact, Observed)]
    assert [one.tool for one in requested] == ["find_tool", "write_order_7"]
    assert (requested[1].tier, requested[1].args) == ("write", {"order_id": 5})
    found = json.loads(observed[0].output)["found"]
    assert found[0]["name"] == "write_order_7"
    assert found[0]["arguments"]["required"] == ["order_id"]
    assert json.loads(observed[1].output) == {"done": 5}
    assert result.answer == "done"


def test_a_found_tool_above_read_waits_for_a_person_under_its_own_name() -> None:
    result = agent(call("write_order_7", {"order_id": 5}), policy=Policy(profile="supervised")).run_sync("Look")
    requested = [one.fact for one in result.trace.events if isinstance(one.fact, ActionRequested)]
    assert (requested[0].tool, requested[0].verdict) == ("write_order_7", "ask")
    assert result.status == "waiting"


def test_a_found_tool_can_be_called_directly_too() -> None:
    result = agent({"tool": "read_order_3", "args": {"order_id": 1}}).run_sync("Read order 1")
    assert result.trace.calls["call_1"].observed.ok  # type: ignore[union-attr]  # it was run


@pytest.mark.parametrize(
    ("name", "args", "code"),
    [
        ("gone", {}, "unknown_tool"),
        ("read_order_1", {"order_id": "x"}, "invalid_arguments"),
        ("read_order_1", {}, "invalid_arguments"),
        ("call_tool", {"name": "read_order_1", "args": {}}, "unknown_tool"),
    ],
)
def test_what_cannot_be_called_is_said(name: str, args: Any, code: str) -> None:
    result = agent(call(name, args), policy=Policy(profile="autonomous")).run_sync("Read order 1")
    observed = [one.fact for one in result.trace.events if isinstance(one.fact, Observed)]
    assert observed[0].error is not None
    assert observed[0].error.code == code


def test_looking_for_tools_does_not_taint_a_run_and_what_they_give_does() -> None:
    assert not tainted(agent(FIND_IT).run_sync("Find").trace)
    assert tainted(agent(FIND_IT, call("read_order_1", {"order_id": 1})).run_sync("Find").trace)


def test_an_allow_list_takes_what_finds_along() -> None:
    result = agent(FIND_IT).run_sync("Find", allow=["read_order_1"])
    started = next(one.fact for one in result.trace.events if isinstance(one.fact, RunStarted))
    assert {card.name for card in started.agent.tools} == {
        *("read_order_1", "find_tool", "describe_tool", "call_tool", "read_observation"),
    }


def by_name() -> dict[str, Tool]:
    deep = {"type": "object", "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/Item"}}}}
    item = {"anyOf": [{"type": "object", "properties": {"id": {"type": "integer"}}}, {"type": "null"}]}
    whole = {"type": "object", "properties": {"cart": deep}, "$defs": {"Item": item}}
    card = ToolCard(
        name="buy", purpose="Buy.", input_schema={"type": "object", "properties": {"cart": {}}}, tier="write"
    )
    made = Tool(card=card, handler=print, check=lambda _: {}, whole_schema=whole)
    return {one.name: one for one in tool_search_tools([made])}


def test_a_tool_that_is_shown_in_part_can_be_described() -> None:
    tools = by_name()
    assert list(tools) == ["describe_tool"]
    describe = tools["describe_tool"]
    assert describe("buy")["arguments"]["$defs"]["Item"]
    assert describe("buy", "cart.items.id")["schema"] == {"type": "integer"}
    assert describe("buy", "cart.items")["schema"]["$defs"]["Item"]


@pytest.mark.parametrize(
    ("name", "argument", "told"),
    [("by", "", "Near: buy."), ("buy", "cart.gone", "There is: items."), ("buy", "x", "cart")],
)
def test_a_description_of_what_is_not_there_says_what_is(name: str, argument: str, told: str) -> None:
    with pytest.raises(ToolError, match=told):
        by_name()["describe_tool"](name, argument)


def test_nothing_stands_beside_tools_that_are_told_whole() -> None:
    assert tool_search_tools([shop(1, listed=True)]) == ()


def test_no_words_that_fit_give_the_names() -> None:
    (find, *_) = tool_search_tools([shop(1), shop(2)])
    assert find.card == FIND_TOOL
    assert find("zebra")["hint"] == "No tool fits. Try other words. There are: read_order_1, read_order_2."


def test_a_secret_in_the_arguments_reaches_the_tool_that_is_meant() -> None:
    got: list[str] = []
    schema = {"type": "object", "properties": {"token": {"type": "string"}}, "required": ["token"]}
    card = ToolCard(name="log_in", purpose="Log in.", input_schema=schema, tier="write", egress=False, listed=False)
    script = ScriptedModel([written(call("log_in", {"token": "hunter2hunter2"}), "native"), "done"])
    log_in = tool_from_card(card, lambda token: got.append(token))
    result = Agent(model=script, tools=[log_in], policy="autonomous", secrets=["hunter2hunter2"]).run_sync("x")
    [requested] = [one.fact for one in result.trace.events if isinstance(one.fact, ActionRequested)]
    assert got == ["hunter2hunter2"]
    assert "hunter2hunter2" not in str(requested.args)
    assert all(one.same for one in replay(result.trace))


def test_what_was_asked_for_with_a_foreign_value_is_not_shown_where_only_handles_are() -> None:
    look = tool_from_card(ToolCard(name="look", purpose="Look.", tier="read", egress=False), lambda: "write to order")
    steps: list[dict[str, Any]] = [
        {"tool": "look", "args": {}},
        {"tool": "find_tool", "args": {"query": "$obs1"}},
        {"tool": "find_tool", "args": {"query": "write"}},
    ]
    script = ScriptedModel([*(written(one, "native") for one in steps), "done"])
    asked: list[str] = []

    class Heard(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            asked[:] = [message.content for message in request.messages if message.role == "tool"]
            return await script.complete(request)

    tools = [*TOOLS, look]
    Agent(model=Heard([]), dialect="native", tools=tools, policy=Policy(observations="handles")).run_sync("x")
    assert ["write_order_7" in one for one in asked] == [False, False, True]


def large_tool(number: int) -> Tool:
    rules = {f"argument_{index}": {"type": "string", "description": "What it is. " * 5} for index in range(20)}
    card = ToolCard(
        name=f"send_message_{number}",
        purpose="Send a message. " + "It has many details. " * 20,
        input_schema={"type": "object", "properties": rules, "required": ["argument_3"]},
        tier="write",
        listed=False,
    )
    return tool_from_card(card, lambda **_: None)


def test_an_answer_of_the_search_is_short_and_describes_the_first_tools_where_they_fit() -> None:
    find_tool = tool_search_tools([shop(1), *(large_tool(number) for number in range(30))])[0]
    found = find_tool("send a message", 5)
    assert len(json.dumps(found, ensure_ascii=False)) <= 1_500
    assert [entry["arguments"].partition(",")[0] for entry in found["found"]] == ["argument_3"] * 5
    assert "describe_tool" in found["hint"]
    assert find_tool("read an order", 1)["found"][0]["arguments"]["required"] == ["order_id"]
    assert len(find_tool("send a message", 20)["found"]) == 20
    assert len(json.dumps(find_tool("quagga"))) <= 1_500


def test_a_tool_is_found_by_the_keywords_beside_its_card() -> None:
    find_tool = tool_search_tools([shop(1), replace(shop(2), keywords="list /warehouses/{id} stock")])[0]
    assert [entry["name"] for entry in find_tool("warehouse")["found"]] == ["read_order_2"]


def named_tools(embedder: Embedder | None) -> list[Tool]:
    purposes = {"cease_subscription": "End a subscription.", "send_invoice": "Send an invoice."}
    cards = [ToolCard(name=name, purpose=text, tier="read", listed=False) for name, text in purposes.items()]
    return [replace(tool_from_card(card, lambda **_: None), embedder=embedder) for card in cards]


def names_found(tool: Tool, query: str) -> list[str]:
    return [entry["name"] for entry in tool(query)["found"]]


def test_an_embedding_model_finds_a_tool_that_no_word_finds() -> None:
    embedder = FakeEmbedder(256, {"abonnement": "subscription"})
    assert names_found(tool_search_tools(named_tools(None))[0], "abonnement") == []
    find_tool = tool_search_tools(named_tools(embedder))[0]
    assert embedder.calls == []
    assert names_found(find_tool, "abonnement")[0] == "cease_subscription"
    assert names_found(find_tool, "invoice")[0] == "send_invoice"
    assert [len(texts) for texts in embedder.calls] == [2, 1, 1]  # the cards once, and each query


def test_tools_of_two_models_and_of_none_are_found_together() -> None:
    cease = named_tools(FakeEmbedder(256, {"abonnement": "subscription"}))[0]
    send = named_tools(FakeEmbedder(256, {"facture": "invoice"}, name="fake-2"))[1]
    find_tool = tool_search_tools([cease, send, shop(1)])[0]
    assert names_found(find_tool, "abonnement")[0] == "cease_subscription"
    assert names_found(find_tool, "facture")[0] == "send_invoice"
    assert names_found(find_tool, "order")[0] == "read_order_1"


def test_where_an_embedding_model_fails_the_words_find_tools(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(FakeEmbedder):
        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            super().embed(texts)
            raise OSError("no route to the model")

    broken = Broken()
    find_tool = tool_search_tools(named_tools(broken))[0]
    assert names_found(find_tool, "invoice") == ["send_invoice"]
    assert "no route to the model" in caplog.text
    assert names_found(find_tool, "invoice") == ["send_invoice"]
    assert len(broken.calls) == 2  # tried again


def test_an_answer_in_chinese_is_as_short() -> None:
    find_tool = tool_search_tools([shop(1), *(large_tool(number) for number in range(30))])[0]
    token = RUN_LANGUAGE.set("zh")
    try:
        found, nothing = find_tool("发送消息 send a message", 5), find_tool("斑驴")
    finally:
        RUN_LANGUAGE.reset(token)
    for answer in (found, nothing):
        assert len(json.dumps(answer, ensure_ascii=False)) <= 1_500
        assert re.search("[一-鿿]", answer["hint"])
    assert len(found["found"]) == 5
    assert nothing["found"] == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_prompt_asks_for_other_words_and_english_keywords(language: str) -> None:
    task = "Read order 5" if language == "en" else "读取订单 5"
    result = agent(language=language).run_sync(task)
    started = next(event.fact for event in result.trace.events if isinstance(event.fact, RunStarted))
    card = next(card for card in started.agent.tools if card.name == "find_tool")
    description = card.input_schema["properties"]["query"]["description"]
    assert ("English keywords" if language == "en" else "英文关键词") in description
    assert ("other words" if language == "en" else "同义词") in description
