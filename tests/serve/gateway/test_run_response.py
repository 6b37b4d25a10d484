"""Replies that their provider cut: the client is told why, in OpenAI's words, and gets what there is, once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.serve.gateway.clients import RESPONSES, ask, post
from tests.serve.gateway.conftest import agent, config_of, gateway, upstream
from tests.serve.gateway.test_run_answer import streamed

from taoloop import Agent, MemoryJournal, ScriptedModel, tool
from taoloop.serve.gateway.config.model import ServedAgent
from taoloop.serve.gateway.run_response import build_response

REASONS = [
    ("length", "length"),
    ("max_tokens", "length"),
    ("MAX_TOKENS", "length"),
    ("model_length", "length"),
    ("content_filter", "content_filter"),
    ("SAFETY", "content_filter"),
]
SERVED = ServedAgent(name="assistant", agent=Agent(model=ScriptedModel([])))
BODY: dict[str, Any] = {"model": "assistant", "messages": ask("Go on.")}


@pytest.mark.parametrize(("theirs", "ours"), REASONS)
@pytest.mark.parametrize("dialect", ["native", "fenced"])
def test_what_was_written_is_the_answer_and_why_it_ends_is_said(dialect: str, theirs: str, ours: str) -> None:
    text = "This is an answer that was cu"
    reply = text if dialect == "native" else f'Action:\n```json\n{{"action": "Final Answer", "action_input": "{text}'
    cut = {"text": reply, "finish_reason": theirs}
    with upstream(cut) as server, gateway(config_of(agent(server, dialect=dialect))) as running:
        status, body = post(running, BODY)
        [choice] = body["choices"]
        assert (status, choice["message"]["content"], choice["finish_reason"]) == (200, text, ours)
        assert len(server.asked) == 1  # not asked for again, shorter
        status, pieces = streamed(running, BODY)
        assert (status, pieces["finish"], pieces["text"]) == (200, ours, text)


def test_what_was_cut_before_its_answer_is_asked_for_again() -> None:
    cut = {"text": "Question: Go on.\nThought: I think I sh", "finish_reason": "length"}
    whole = 'Action:\n```json\n{"action": "Final Answer", "action_input": "Short."}\n```'
    with upstream(cut, whole) as server, gateway(config_of(agent(server, dialect="fenced"))) as running:
        status, body = post(running, BODY)
        [choice] = body["choices"]
        assert (status, choice["message"]["content"], choice["finish_reason"]) == (200, "Short.", "stop")


def test_a_conversation_goes_on_behind_an_answer_that_was_cut() -> None:
    cut = {"text": "This is an answer that was cu", "finish_reason": "length"}
    with upstream(cut, "t off.") as server, gateway(config_of(agent(server))) as running:
        first = post(running, {"model": "assistant", "input": "Go on."}, path=RESPONSES)[1]
        body = {"model": "assistant", "input": "And?", "previous_response_id": first["id"]}
        status, second = post(running, body, path=RESPONSES)
        assert (status, second["output"][0]["content"][0]["text"]) == (200, "t off.")
        assert cut["text"] in json.dumps(server.asked[-1])


def test_a_reply_of_which_nothing_is_left_is_an_error() -> None:
    with (
        upstream({"text": "", "finish_reason": "content_filter"}) as server,
        gateway(config_of(agent(server))) as running,
    ):
        for status, body in (post(running, BODY), streamed(running, BODY)):
            assert (status, body["error"]["code"]) == (400, "content_filter")
            assert "Answer shorter" not in body["error"]["message"]


@pytest.mark.parametrize(("theirs", "why"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_a_response_says_why_it_is_incomplete(theirs: str, why: str) -> None:
    cut = {"text": "This is an answer that was cu", "finish_reason": theirs}
    with upstream(cut) as server, gateway(config_of(agent(server))) as running:
        status, body = post(running, {"model": "assistant", "input": "Go on."}, path=RESPONSES)
        assert (status, body["status"], body["incomplete_details"]) == (200, "incomplete", {"reason": why})
        assert body["output"][0]["content"][0]["text"] == cut["text"]


def test_a_blocked_run_is_no_whole_answer_and_names_what_was_denied() -> None:
    @tool(tier="write")
    def pay(to: str) -> str:
        """Pay somebody."""
        raise AssertionError(to)

    script: list[Any] = [{"tool_calls": [{"name": "pay", "args": {"to": "ann"}}]}, "I paid ann."]
    result = Agent(model=ScriptedModel(script), tools=[pay], policy="headless").run_sync("Pay ann.")
    response = asyncio.run(build_response(MemoryJournal(), result, SERVED))
    assert (response.content, response.finish_reason, response.agent["status"]) == ("I paid ann.", "length", "blocked")
    [denied] = response.agent["denied"]
    assert (denied["call_id"], denied["tool"]) == ("call_1", "pay")
    assert "nobody can be asked (profile headless)" in denied["reasons"]


def test_a_response_says_what_has_changed_since_its_run_waited() -> None:
    def agent_with(purpose: str) -> Agent:
        @tool(tier="write", purpose=purpose)
        def pay(to: str) -> str:
            """Pay."""
            return to

        script: list[Any] = [{"tool_calls": [{"name": "pay", "args": {"to": "ann"}}]}, "Paid."]
        return Agent(model=ScriptedModel(script), tools=[pay], journal=journal)

    journal = MemoryJournal()
    waiting = agent_with("Pay in euros.").run_sync("Settle the bill.")
    result = agent_with("Pay in dollars.").resume_sync(waiting.run_id)
    response = asyncio.run(build_response(journal, result, SERVED))
    assert response.agent["changed"] == {"tools": ["pay"], "model": None}
    assert "changed" not in asyncio.run(build_response(journal, waiting, SERVED)).agent
