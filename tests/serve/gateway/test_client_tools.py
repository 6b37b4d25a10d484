"""`tool_choice` and `parallel_tool_calls`: many clients get their structured answers by them."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from tests.serve.gateway.clients import CALL, CLIENT_TOOL, LOOK, SENT, ask, send_note
from tests.serve.gateway.conftest import agent, client, config_of, gateway, upstream

from taoloop.serve.gateway.client_tools import apply_tool_choice
from taoloop.serve.gateway.errors import ApiError
from taoloop.serve.gateway.request_schema import ClientTool

OTHER_TOOL: Any = {"type": "function", "function": {"name": "listen", "description": "What is to be heard."}}
NAMED: Any = {"type": "function", "function": {"name": "look_outside"}}
TOOLS = [ClientTool.model_validate(one) for one in (CLIENT_TOOL, OTHER_TOOL)]


@pytest.mark.parametrize(
    ("choice", "names", "must"),
    [
        (None, ["look_outside", "listen"], False),
        ("auto", ["look_outside", "listen"], False),
        ("none", [], False),
        ("required", ["look_outside", "listen"], True),
        ({"type": "function", "function": {"name": "listen"}}, ["listen"], True),
        ({"type": "function", "name": "listen"}, ["listen"], True),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", **NAMED}]}},
            ["look_outside"],
            False,
        ),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "listen"}]},
            ["listen"],
            True,
        ),
    ],
)
def test_each_form_says_what_is_offered_and_whether_it_must_be_called(
    choice: Any, names: list[str], must: bool
) -> None:
    offered, must_call = apply_tool_choice(choice, TOOLS)
    assert ([one.function.name for one in offered], must_call) == (names, must)


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "function", "name": "sing"},
        {"type": "function"},
        {"type": "function", "function": "listen"},
        {"type": "custom", "name": "listen"},
        {"type": "allowed_tools", "mode": "always", "tools": []},
        {"type": "allowed_tools", "mode": "required", "tools": []},
        {"type": "allowed_tools", "mode": "auto", "tools": ["listen"]},
        {"type": "allowed_tools", "allowed_tools": 3},
        {},
    ],
)
def test_what_is_no_choice_is_refused_by_its_name(choice: Any) -> None:
    with pytest.raises(ApiError) as told:
        apply_tool_choice(choice, TOOLS)
    assert told.value.param == "tool_choice"


def test_without_tools_nothing_can_be_required() -> None:
    assert apply_tool_choice("auto", ()) == ((), False)
    with pytest.raises(ApiError, match="there are no `tools`"):
        apply_tool_choice("required", ())


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("choice", ["required", NAMED])
def test_an_agent_that_answers_in_words_is_told_to_call(choice: Any, streamed: bool) -> None:
    with upstream(CALL, "It is 8.", LOOK, "Red, and 8.") as server, gateway(config_of(agent(server))) as running:
        chat = client(running).chat.completions
        options: dict[str, Any] = {"model": "assistant", "tools": [CLIENT_TOOL, OTHER_TOOL]}
        messages = ask("Double 4 and look outside.")
        if streamed:
            with chat.stream(messages=messages, tool_choice=choice, **options) as stream:
                first: Any = stream.get_final_completion()
        else:
            first = chat.create(messages=messages, tool_choice=choice, **options)
        assert first.choices[0].finish_reason == "tool_calls"
        assert not first.choices[0].message.content  # words that were not asked for are not sent
        assert "look_outside" in str(server.asked[0]["messages"][0])  # it was told so from the beginning
        assert "It is 8." in str(server.asked[2]["messages"])  # and the second run knows what the first one found
        offered = [one["function"]["name"] for one in server.asked[0]["tools"]]
        assert ("listen" in offered) == (choice == "required")
        if not streamed:
            assert first.usage.total_tokens == 3 * 13
        [call] = first.choices[0].message.tool_calls
        messages += [
            {"role": "assistant", "tool_calls": [call.model_dump(exclude_none=True)]},
            {"role": "tool", "tool_call_id": call.id, "content": "red"},
        ]
        done = chat.create(model="assistant", messages=messages, tools=[CLIENT_TOOL])
        assert done.choices[0].message.content == "Red, and 8."


def test_a_chinese_question_is_insisted_on_in_chinese() -> None:
    with upstream("是红色的。", LOOK) as server, gateway(config_of(agent(server))) as running:
        chat = client(running).chat.completions
        chat.create(model="assistant", messages=ask("天是什么颜色？"), tools=[CLIENT_TOOL], tool_choice="required")
        assert "先调用以下工具中的至少一个：look_outside" in server.asked[0]["messages"][0]["content"]
        assert "现在请根据已知的内容调用以下工具之一：look_outside" in str(server.asked[1]["messages"][-1]["content"])


@pytest.mark.parametrize("streamed", [False, True])
def test_an_agent_that_never_calls_is_an_error_and_no_answer_in_words(streamed: bool) -> None:
    with upstream("It is red.") as server, gateway(config_of(agent(server))) as running:
        with pytest.raises(openai.APIStatusError, match="called none of look_outside") as told:
            list(
                client(running).chat.completions.create(
                    model="assistant",
                    messages=ask("Look."),
                    tools=[CLIENT_TOOL],
                    tool_choice="required",
                    stream=streamed,
                )
            )
        assert (told.value.status_code, told.value.code) == (502, "tool_not_called")
        assert len(server.asked) == 2


def test_what_waits_for_a_person_comes_before_a_call_that_is_required() -> None:
    note = {"tool_calls": [{"name": "send_note", "args": {"to": "Ann", "text": "hello"}}]}
    with upstream(note) as server, gateway(config_of(agent(server, tools=[send_note]))) as running:
        made = client(running).chat.completions.create(
            model="assistant", messages=ask("Greet nice people."), tools=[CLIENT_TOOL], tool_choice="required"
        )
        assert made.choices[0].finish_reason == "stop"
        assert "send_note" in (made.choices[0].message.content or "")


TWO = {"tool_calls": [{"name": "look_outside", "args": {"window": side}} for side in ("east", "west")]}


def test_without_parallel_calls_they_come_one_after_the_other() -> None:
    with upstream(TWO, "Both red.") as server, gateway(config_of(agent(server))) as running:
        chat = client(running).chat.completions
        messages = ask("Look east and west.")
        seen = []
        for _ in range(2):
            made = chat.create(model="assistant", messages=messages, tools=[CLIENT_TOOL], parallel_tool_calls=False)
            [call] = made.choices[0].message.tool_calls or []
            seen.append(call.function.arguments)  # type: ignore[union-attr]
            messages += [
                {"role": "assistant", "tool_calls": [call.model_dump(exclude_none=True)]},
                {"role": "tool", "tool_call_id": call.id, "content": f"red {len(seen)}"},
            ]
        assert seen == ['{"window": "east"}', '{"window": "west"}']
        raw = chat.with_raw_response.create(
            model="assistant", messages=messages, tools=[CLIENT_TOOL], parallel_tool_calls=False
        )
        assert "x-taoloop-ignored" not in raw.headers
        assert raw.parse().choices[0].message.content == "Both red."
        assert all(text in str(server.asked[-1]["messages"]) for text in ("red 1", "red 2"))
        assert len(running.traces()) == 1


def test_results_that_come_with_other_tools_begin_a_run_that_has_them() -> None:
    """A client that hands over to another agent of its own goes on with that one's tools and instructions."""
    with (
        upstream(LOOK, {"tool_calls": [{"name": "listen", "args": {}}]}) as server,
        gateway(config_of(agent(server))) as running,
    ):
        chat = client(running).chat.completions
        messages = ask("Look outside.")
        [call] = (
            chat.create(model="assistant", messages=messages, tools=[CLIENT_TOOL]).choices[0].message.tool_calls or []
        )
        messages += [
            {"role": "assistant", "tool_calls": [call.model_dump(exclude_none=True)]},
            {"role": "tool", "tool_call_id": call.id, "content": "all red"},
        ]
        told = [{"role": "system", "content": "You are the other one."}, *messages]
        made = chat.create(model="assistant", messages=told, tools=[OTHER_TOOL])
        [heard] = made.choices[0].message.tool_calls or []
        assert heard.function.name == "listen"  # type: ignore[union-attr]
        asked = str(server.asked[-1]["messages"])
        assert all(text in asked for text in ("You are the other one.", "Look outside.", "all red"))
        first, second = running.traces()
        assert first.paused is not None
        assert second.started is not None
        assert second.started.tainted  # what a tool of the client gave is nobody's word


def test_a_run_that_changed_something_is_not_begun_anew() -> None:
    note = {"tool_calls": [{"name": "send_note", "args": {"to": "Ann", "text": "hello"}}]}

    def reply(body: dict[str, Any]) -> Any:
        text = str(body["messages"])
        return "Sent." if "all red" in text else LOOK if "Observation of send_note" in text else note

    with upstream(reply) as server, gateway(config_of(agent(server, tools=[send_note]))) as running:
        SENT.clear()
        chat = client(running).chat.completions
        messages = ask("Send Ann the note: hello. Then look outside.")
        first: Any = chat.create(model="assistant", messages=messages, tools=[CLIENT_TOOL])
        [call] = first.choices[0].message.tool_calls
        messages += [
            {"role": "assistant", "tool_calls": [call.model_dump(exclude_none=True)]},
            {"role": "tool", "tool_call_id": call.id, "content": "all red"},
        ]
        done = chat.create(model="assistant", messages=messages, tools=[OTHER_TOOL])
        assert done.choices[0].message.content == "Sent."
        assert len(running.traces()) == len(SENT) == 1


def test_calls_that_another_server_gave_are_part_of_the_conversation() -> None:
    calls = [
        {"id": "call_a", "type": "function", "function": {"name": "get", "arguments": "{}"}},
        {"id": "call_b", "type": "custom", "custom": {"name": "run", "input": "ls"}},
    ]
    results: list[Any] = [{"role": "tool", "tool_call_id": one["id"], "content": f"gave {one['id']}"} for one in calls]
    messages: list[Any] = [*ask("Go."), {"role": "assistant", "tool_calls": calls}, *results, *ask("And?")]
    with upstream("Done.") as server, gateway(config_of(agent(server))) as running:
        client(running).chat.completions.create(model="assistant", messages=messages)
        asked = str(server.asked[0]["messages"])
        assert all(text in asked for text in ("[called get({})]", "[called run(ls)]", "| gave call_a", "| gave call_b"))


def test_what_a_client_does_not_describe_is_described_in_the_language_of_the_run() -> None:
    bare: Any = {"type": "function", "function": {"name": "look"}}
    reply = {"tool_calls": [{"name": "look", "args": {}}]}
    with upstream(reply) as server, gateway(config_of(agent(server))) as running:
        client(running).chat.completions.create(model="assistant", messages=ask("天空是什么颜色？"), tools=[bare])
        [look] = [tool["function"] for tool in server.asked[0]["tools"] if tool["function"]["name"] == "look"]
        assert look["description"].startswith("客户端的工具")
        paused = running.traces()[0].paused
        assert paused is not None
        assert "由客户端执行" in paused.reason
