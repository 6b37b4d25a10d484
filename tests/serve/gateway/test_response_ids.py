"""Every response has another id, and each names its run."""

from __future__ import annotations

from typing import Any

import pytest
from tests.serve.gateway.clients import CLIENT_TOOL, LOOK, NOTE, SENT, ask, post, send_note
from tests.serve.gateway.conftest import agent, client, config_of, gateway, upstream

from taoloop.serve.gateway.response_ids import parse_response_id, run_of

RUN = "20270115-080000-1a2b3c4d"


def two_looks(body: dict[str, Any]) -> Any:
    return (LOOK, LOOK, "Red.")[sum(message["role"] == "tool" for message in body["messages"])]


def two_notes(body: dict[str, Any]) -> Any:
    worse = {"tool_calls": [{"name": "send_note", "args": {"to": "Eve", "text": "everything"}}]}
    return (NOTE, worse, "Done.")[sum(message["role"] == "tool" for message in body["messages"])]


@pytest.mark.parametrize("streamed", [False, True])
def test_each_turn_of_a_chat_has_an_id_of_its_own_that_all_its_chunks_share(streamed: bool) -> None:
    with upstream(two_looks) as server, gateway(config_of(agent(server))) as running:
        chat, messages, ids = client(running).chat.completions, ask("Look outside."), []
        for _ in range(3):
            made: Any = chat.create(model="assistant", messages=messages, tools=[CLIENT_TOOL], stream=streamed)
            chunks = list(made) if streamed else [made]
            [response_id] = {chunk.id for chunk in chunks}
            ids.append(response_id)
            parts = [chunk.choices[0].delta if streamed else chunk.choices[0].message for chunk in chunks]
            for call in [call for part in parts for call in part.tool_calls or ()]:
                function = {"name": call.function.name, "arguments": call.function.arguments}
                messages.append(
                    {"role": "assistant", "tool_calls": [{"id": call.id, "type": "function", "function": function}]}
                )
                messages.append({"role": "tool", "tool_call_id": call.id, "content": "red"})
        [trace] = running.traces()
        assert ids == [f"chatcmpl-{trace.run_id}{suffix}" for suffix in ("", "-1", "-2")]
        again = chat.create(model="assistant", messages=messages, tools=[CLIENT_TOOL])
        assert again.id == ids[-1]  # the same response, as after a lost connection
        for response_id in (*ids, trace.run_id, f"resp_{trace.run_id}_1"):
            status, body = post(running, b"", path=f"/v1/runs/{response_id}", method="GET")
            assert (status, body["id"]) == (200, trace.run_id)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_question_that_is_asked_again_is_another_response(streamed: bool) -> None:
    SENT.clear()
    with upstream(NOTE, "Done.") as server, gateway(config_of(agent(server, tools=[send_note]))) as running:
        chat, task = client(running).chat.completions, ask("Send a note that says hello.")
        first = chat.create(model="assistant", messages=task)
        question: Any = first.choices[0].message.content
        stale = question[:-2] + ("0" if question[-2] != "0" else "1") + ")"  # the code of another question
        ids = [first.id]
        for _ in range(2):
            asked = [*task, {"role": "assistant", "content": stale}, *ask("yes")]
            made: Any = chat.create(model="assistant", messages=asked, stream=streamed)
            [response_id] = {chunk.id for chunk in (made if streamed else [made])}
            ids.append(response_id)
        assert SENT == []
        answered = [*task, {"role": "assistant", "content": question}, *ask("yes")]
        ids.append(chat.create(model="assistant", messages=answered).id)
        assert [note["to"] for note in SENT] == ["Ann"]
        [trace] = running.traces()
        assert len(set(ids)) == 4
        assert {run_of(response_id) for response_id in ids} == {trace.run_id}


@pytest.mark.parametrize("streamed", [False, True])
def test_a_reply_to_a_question_that_is_asked_again_goes_on_by_its_id(streamed: bool) -> None:
    SENT.clear()
    with upstream(two_notes) as server, gateway(config_of(agent(server, tools=[send_note]))) as running:
        made, ids = client(running).responses, []

        def create(text: str, **options: Any) -> str:
            response: Any = made.create(model="assistant", input=text, stream=streamed, **options)
            if streamed:
                events = list(response)
                response = events[-1].response
                assert events[0].response.id == response.id
            ids.append(response.id)
            return str(response.id)

        first = create("Send a note that says hello.")
        create("yes", previous_response_id=first)
        again = create("yes", previous_response_id=first)  # to a question that no longer waits
        assert [note["to"] for note in SENT] == ["Ann"]
        last = create("yes", previous_response_id=again)
        assert [note["to"] for note in SENT] == ["Ann", "Eve"]
        create("Thanks.", previous_response_id=last)
        assert len(set(ids)) == 5
        traces = running.traces()
        assert [trace.status for trace in traces] == ["completed", "completed"]
        assert traces[1].started is not None
        assert traces[1].started.after == traces[0].run_id


@pytest.mark.parametrize("prefix", ["", "chatcmpl-", "resp_", "msg_"])
def test_a_run_and_its_turn_are_read_from_every_form(prefix: str) -> None:
    for suffix, turn in (("", 0), ("-2", 2), ("_3", 3), ("-4-00ff00ff", 4), ("_5_00ff00ff", 5), ("_x", 0), ("_", 0)):
        assert parse_response_id(f"{prefix}{RUN}{suffix}") == (RUN, turn)
        assert run_of(f"{prefix}{RUN}{suffix}") == RUN
    for other in ("", "x", "\x00", "resp_x", f"x{RUN}", f"{RUN}x", "x" * 10_000):
        assert parse_response_id(other) == (other, 0)
        assert run_of(other) == other
