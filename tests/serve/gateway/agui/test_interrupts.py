"""Approvals and questions as interrupts of AG-UI, and what their answers can and cannot reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.serve.gateway.agui.clients import answer, interrupts, kinds, run_agui, text_of, user
from tests.serve.gateway.clients import NOTE, SENT, send_note
from tests.serve.gateway.conftest import Running, agent, config_of, gateway, upstream

from taoloop import Policy
from taoloop.core.policy import Rule
from taoloop.serve.gateway.auth.keys import ApiKey, new_key

EVE = {"name": "send_note", "args": {"to": "Eve", "text": "all"}}
BOTH = {"tool_calls": [*NOTE["tool_calls"], EVE]}
ASK = {"tool_calls": [{"name": "ask_user", "args": {"question": "How many?", "format": "integer"}}]}
TASK = [user("Send a note that says hello.")]


@pytest.fixture(autouse=True)
def _nothing_sent() -> Iterator[None]:
    SENT.clear()
    yield
    SENT.clear()


def replies(body: dict[str, Any]) -> Any:
    """A note, and the end once it has an outcome."""
    seen = [message["role"] for message in body["messages"]]
    return "Done." if "tool" in seen else NOTE


def keyed(name: str, **changes: Any) -> tuple[dict[str, str], ApiKey]:
    secret, key = new_key(name)
    return {"Authorization": f"Bearer {secret}"}, replace(key, **changes)


def test_an_approval_is_an_interrupt_that_is_answered_once() -> None:
    with (
        upstream(replies) as server,
        gateway(config_of(agent(server, tools=[send_note]), protocols=("agui",))) as running,
    ):
        events = run_agui(running, messages=TASK)
        [interrupt] = interrupts(events)
        [start] = [event for event in events if event["type"] == "TOOL_CALL_START"]
        assert (interrupt["reason"], interrupt["toolCallId"]) == ("tool_call", start["toolCallId"])
        assert interrupt["metadata"]["taoloop"]["arguments"] == {"to": "Ann", "text": "hello"}
        assert '"Ann"' in interrupt["message"]
        assert text_of(events) == ""  # the interrupt says it

        assert run_agui(running, "r2", messages=TASK)[-1]["code"] == "open_interrupts"
        other = run_agui(running, "r2", threadId="t2", resume=[answer(interrupt, approved=True)])
        assert other[-1]["code"] == "unknown_interrupt"
        for payload in ({"approved": "yes"}, {"approved": True, "args": {"to": "Eve"}}):
            error = run_agui(running, "r2", resume=[answer(interrupt, **payload)])[-1]
            assert "resume[0].payload" in error["message"]
        assert SENT == []

        events = run_agui(running, "r3", messages=TASK, resume=[answer(interrupt, approved=True)])
        assert kinds(events)[:2] == ["RUN_STARTED", "TOOL_CALL_RESULT"]
        assert events[1]["toolCallId"] == start["toolCallId"]
        assert text_of(events) == "Done."
        assert events[-1]["usage"][0]["totalTokens"] == 13  # of this request alone

        again = run_agui(running, "r4", messages=TASK, resume=[answer(interrupt, approved=True)])
        assert kinds(again) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
        assert run_agui(running, "r3", messages=TASK, resume=[answer(interrupt, approved=True)])[1] == again[1]
        other = run_agui(running, "r5", messages=TASK, resume=[answer(interrupt, approved=False)])
        assert other[-1]["code"] == "not_waiting"
        assert [note["to"] for note in SENT] == ["Ann"]


def test_an_approval_may_have_other_arguments_that_fit_the_tool_and_the_rules() -> None:
    policy = Policy(rules=(Rule(verdict="deny", tool="send_note", args={"to": "Eve"}),))
    with upstream(replies) as server:
        config = config_of(agent(server, tools=[send_note], policy=policy), protocols=("agui",))
        with gateway(config) as running:
            [interrupt] = interrupts(run_agui(running, messages=TASK))
            assert interrupt["responseSchema"]["properties"]["editedArgs"]["required"] == ["to", "text"]

            def resume(run_id: str, **edited: Any) -> Any:
                entries = [answer(interrupt, approved=True, editedArgs=edited)]
                return run_agui(running, run_id, messages=TASK, resume=entries)

            assert "resume[0].payload.editedArgs" in resume("r2", to="Bob")[-1]["message"]  # `text` is missing
            assert "denies" in resume("r3", to="Eve", text="hello")[-1]["message"]
            assert SENT == []
            assert text_of(resume("r4", to="Bob", text="hi")) == "Done."
            assert SENT == [{"to": "Bob", "text": "hi"}]

            assert kinds(resume("r5", to="Bob", text="hi"))[1] == "MESSAGES_SNAPSHOT"  # the same answer again
            assert resume("r6", to="Ann", text="hi")[-1]["code"] == "not_waiting"
            plain = run_agui(running, "r7", messages=TASK, resume=[answer(interrupt, approved=True)])
            assert plain[-1]["code"] == "not_waiting"
            assert len(SENT) == 1


def test_every_interrupt_of_a_run_is_answered_together_and_a_refusal_has_its_reason() -> None:
    def two(body: dict[str, Any]) -> Any:
        return "Done." if "tool" in [message["role"] for message in body["messages"]] else BOTH

    with upstream(two) as server, gateway(config_of(agent(server, tools=[send_note]), protocols=("agui",))) as running:
        first, second = interrupts(run_agui(running, messages=TASK))
        error = run_agui(running, "r2", resume=[answer(first, approved=True)])[-1]
        assert error["code"] == "open_interrupts"
        assert second["id"] in error["message"]
        error = run_agui(running, "r2", resume=[answer(first, approved=True), answer(first, approved=True)])[-1]
        assert "twice" in error["message"]
        said = [*TASK, {"id": "a", "role": "assistant", "content": ""}, user("Not to Eve, please.", "m2")]
        entries = [answer(first, approved=True), answer(second)]
        assert text_of(run_agui(running, "r2", messages=said, resume=entries)) == "Done."
        assert [note["to"] for note in SENT] == ["Ann"]
        assert "Not to Eve, please." in str(server.asked[-1]["messages"])


def test_a_question_of_the_model_is_an_interrupt_with_its_form() -> None:
    def asks(body: dict[str, Any]) -> Any:
        return "Seven it is." if "tool" in [message["role"] for message in body["messages"]] else ASK

    with (
        upstream(asks) as server,
        gateway(config_of(agent(server, tools=["ask_user"]), protocols=("agui",))) as running,
    ):
        [interrupt] = interrupts(run_agui(running))
        assert (interrupt["reason"], interrupt["responseSchema"]["required"]) == ("input_required", ["answer"])
        error = run_agui(running, "r2", resume=[answer(interrupt, answer="many")])[-1]
        assert "resume[0].payload" in error["message"]
        events = run_agui(running, "r3", resume=[answer(interrupt, answer=7)])
        assert text_of(events) == "Seven it is."
        assert "7" in str(server.asked[-1]["messages"])


def test_nobody_answers_for_another_key_or_for_the_operator() -> None:
    ann, ann_key = keyed("ann")
    bob, bob_key = keyed("bob", task_authority="full", may_approve=False)
    eve, eve_key = keyed("eve", task_authority="full")

    def resume(running: Running, headers: dict[str, str], interrupt: dict[str, Any], run_id: str = "r2") -> Any:
        entries = [answer(interrupt, approved=True)]
        return run_agui(running, run_id, messages=TASK, resume=entries, headers=headers)[-1]

    with upstream(replies) as server:
        config = config_of(agent(server, tools=[send_note]), keys=(ann_key, bob_key, eve_key), protocols=("agui",))
        with gateway(config) as running:
            [interrupt] = interrupts(run_agui(running, messages=TASK, headers=ann))
            assert interrupt["reason"] == "taoloop:operator"
            assert "needs a person" not in interrupt["message"]  # the operator's rule
            assert resume(running, ann, interrupt)["outcome"]["type"] == "interrupt"  # it still waits
            assert resume(running, eve, interrupt)["code"] == "run_not_found"
            [interrupt] = interrupts(run_agui(running, messages=TASK, headers=bob))
            assert resume(running, bob, interrupt)["code"] == "approval_not_allowed"
            assert resume(running, eve, interrupt)["code"] == "run_not_found"
            assert SENT == []
