"""Tools of the client by the Responses API, through the official OpenAI SDK."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import openai
import pytest
from tests.serve.gateway.clients import CALL, CLIENT_TOOL, LOOK, ask
from tests.serve.gateway.conftest import agent, client, config_of, gateway, upstream
from tests.serve.gateway.test_client_tools import TWO

from taoloop.core.trace import Trace
from taoloop.serve.gateway.auth.keys import ApiKey, digest_of
from taoloop.serve.gateway.responses import load_referenced_items
from taoloop.serve.gateway.run_service import Service

TOOL: Any = {"type": "function", **CLIENT_TOOL["function"], "strict": None}


def output_of(call: Any, text: Any) -> Any:
    return {"type": "function_call_output", "call_id": call.call_id, "output": text}


@pytest.mark.parametrize("by_id", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_call_of_the_clients_own_tool_ends_the_turn_and_the_next_request_goes_on(streamed: bool, by_id: bool) -> None:
    with (
        upstream(CALL, LOOK, "The sky is red and it is 8.", "You asked for 8.") as server,
        gateway(config_of(agent(server))) as running,
    ):
        made = client(running).responses
        items: list[Any] = ask("Double 4 and look outside.")
        if streamed:
            with made.stream(model="assistant", input=items, tools=[TOOL]) as stream:
                first: Any = stream.get_final_response()
        else:
            first = made.create(model="assistant", input=items, tools=[TOOL])
        assert first.status == "completed"
        [call] = [item for item in first.output if item.type == "function_call"]
        assert (call.name, call.arguments, call.status) == ("look_outside", '{"window": "east"}', "completed")
        assert first.tools[0].name == "look_outside"
        given = output_of(call, [{"type": "input_text", "text": "all "}, {"type": "input_text", "text": "red"}])
        if by_id:
            options: dict[str, Any] = {"input": [given], "previous_response_id": first.id}
        else:
            reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
            dumped = [item.model_dump(exclude_none=True) for item in first.output]
            options = {"input": [*items, reasoning, *dumped, given]}
        if streamed:
            done: Any = list(made.create(model="assistant", tools=[TOOL], stream=True, **options))[-1].response
        else:
            done = made.create(model="assistant", tools=[TOOL], **options)
        assert done.output_text == "The sky is red and it is 8."
        [trace] = running.traces()  # one run, not two
        assert "all red" in server.asked[-1]["messages"][-1]["content"]
        assert done.id != first.id
        again = made.create(model="assistant", input="What did I ask?", previous_response_id=done.id)
        assert again.output_text == "You asked for 8."
        assert running.traces()[-1].started.after == trace.run_id  # type: ignore[union-attr]


def test_items_that_are_only_named_are_found_again() -> None:
    with upstream(LOOK, "Red.", "You saw red.") as server, gateway(config_of(agent(server))) as running:
        made = client(running).responses
        items: list[Any] = ask("Look outside.")
        first = made.create(model="assistant", input=items, tools=[TOOL])
        [call] = first.output
        items += [{"type": "item_reference", "id": call.id}, output_of(call, "all red")]
        second = made.create(model="assistant", input=items, tools=[TOOL])
        items += [{"id": second.output[0].id}, *ask("What did I see?")]
        assert made.create(model="assistant", input=items, tools=[TOOL]).output_text == "You saw red."
        asked = str(server.asked[-1]["messages"])
        assert all(text in asked for text in ("[called look_outside(", "| all red", "Red."))


class CountsLoads:
    """A service with one run, which says how often that was loaded."""

    def __init__(self, trace: Trace) -> None:
        self.trace, self.loads = trace, 0

    async def load_owned_run(self, _owner: str, _run_id: str) -> Trace:
        self.loads += 1
        return self.trace


def test_a_run_is_loaded_once_for_all_its_items() -> None:
    with upstream("Red.") as server, gateway(config_of(agent(server))) as running:
        [item] = client(running).responses.create(model="assistant", input="Look outside.").output
        service = CountsLoads(running.traces()[0])
    found = asyncio.run(
        load_referenced_items(cast("Service", service), "", [(place, str(item.id)) for place in range(1_000)])
    )
    assert (len(found), found[999].content, service.loads) == (1_000, "Red.", 1)


def test_items_of_another_key_are_not_found() -> None:
    keys = tuple(ApiKey(name=name, digest=digest_of(f"tao-{name}-secret")) for name in ("ann", "bob"))
    with upstream(LOOK) as server, gateway(config_of(agent(server), keys=keys)) as running:
        first = client(running, api_key="tao-ann-secret").responses.create(
            model="assistant", input="Look outside.", tools=[TOOL]
        )
        bob = client(running, api_key="tao-bob-secret").responses
        named: Any = {"id": first.output[0].id}
        with pytest.raises(openai.BadRequestError) as told:
            bob.create(model="assistant", input=[named, *ask("And?")])
        assert told.value.param == "input[0].id"
        with pytest.raises(openai.NotFoundError) as unknown:
            bob.create(model="assistant", input=[output_of(first.output[0], "red")])
        assert unknown.value.code == "run_not_found"


def test_a_call_can_be_required_and_calls_come_one_by_one() -> None:
    with upstream("I see.", TWO, "Both red.") as server, gateway(config_of(agent(server))) as running:
        made = client(running).responses
        options: dict[str, Any] = {"model": "assistant", "tools": [TOOL], "parallel_tool_calls": False}
        choice: Any = {"type": "function", "name": "look_outside"}
        events = list(made.create(input="Look east and west.", tool_choice=choice, stream=True, **options))
        assert not [event for event in events if event.type == "response.output_text.delta"]
        first: Any = events[-1]
        assert first.response.tool_choice.name == "look_outside"
        [east] = first.response.output
        second: Any = made.create(input=[output_of(east, "red")], previous_response_id=first.response.id, **options)
        [west] = second.output
        assert (east.arguments, west.arguments) == ('{"window": "east"}', '{"window": "west"}')
        assert made.create(input=[output_of(west, "red")], **options).output_text == "Both red."


def test_words_before_a_call_are_an_item_of_their_own() -> None:
    with upstream({**LOOK, "text": "I look."}) as server, gateway(config_of(agent(server))) as running:
        for streamed in (False, True):
            made: Any = client(running).responses.create(
                model="assistant", input="Look outside.", tools=[TOOL], stream=streamed
            )
            if streamed:
                made = list(made)[-1].response
            assert [item.type for item in made.output] == ["message", "function_call"]
            assert made.output_text == "I look."


@pytest.mark.parametrize("by_id", [False, True])
def test_results_that_come_with_other_tools_begin_a_run_that_the_next_request_goes_on_from(by_id: bool) -> None:
    other: Any = {"type": "function", "name": "listen", "parameters": None, "strict": None}
    with upstream(LOOK, "Nothing to hear.", "As I said.") as server, gateway(config_of(agent(server))) as running:
        made = client(running).responses
        first = made.create(model="assistant", input="Look outside.", tools=[TOOL])
        items: list[Any] = [*ask("Look outside."), *first.output, output_of(first.output[0], "all red")]
        alone: dict[str, Any] = {"input": items[-1:], "previous_response_id": first.id}
        second = made.create(model="assistant", tools=[other], **(alone if by_id else {"input": items}))
        assert second.output_text == "Nothing to hear."
        assert "Look outside." in str(server.asked[1]["messages"])
        third = made.create(model="assistant", input="Again?", previous_response_id=second.id, tools=[other])
        assert third.output_text == "As I said."
        assert second.id == f"resp_{running.traces()[1].run_id}"
        assert "all red" in str(server.asked[-1]["messages"])
