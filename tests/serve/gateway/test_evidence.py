"""Evidence through the gateway: sources in the response, what a withheld answer is mapped to, streams that wait."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.serve.gateway.clients import RESPONSES, ask, post
from tests.serve.gateway.conftest import agent, config_of, gateway, upstream
from tests.serve.gateway.test_run_answer import streamed

from taoloop.serve.gateway.config.gateway_file import load_config

CALL = {"tool_calls": [{"name": "double", "args": {"number": 4}}]}
GOOD, BAD = "It is 8 [obs:call_1].", "It is 9 [obs:call_1]."
BODY: dict[str, Any] = {"model": "assistant", "messages": ask("Double 4.")}


def test_a_response_lists_its_sources() -> None:
    with upstream(CALL, GOOD) as server, gateway(config_of(agent(server, evidence="require"))) as running:
        status, body = post(running, BODY)
        assert (status, body["choices"][0]["message"]["content"]) == (200, GOOD)
        assert body["agent"]["sources"] == [{"number": 1, "call_id": "call_1", "tool": "double"}]
        assert "evidence" not in body["agent"]


def test_a_number_is_that_of_the_citation_even_beside_one_that_is_not_there() -> None:
    answer = "It is 8 [obs:call_7] [obs:call_1]."
    with upstream(CALL, answer) as server, gateway(config_of(agent(server, evidence="warn"))) as running:
        part = post(running, BODY)[1]["agent"]
        assert part["sources"] == [{"number": 2, "call_id": "call_1", "tool": "double"}]
        assert [(gap["code"], gap["citation"]) for gap in part["evidence"]] == [("unknown", "obs:call_7")]


@pytest.mark.parametrize("path", ["chat", RESPONSES])
def test_an_answer_without_evidence_is_withheld(path: str) -> None:
    with upstream(CALL, BAD, BAD) as server, gateway(config_of(agent(server, evidence="require"))) as running:
        if path == RESPONSES:
            status, body = post(running, {"model": "assistant", "input": "Double 4."}, path=path)
            assert (status, body["status"]) == (200, "incomplete")
            assert body["incomplete_details"] == {"reason": "content_filter"}
        else:
            status, body = post(running, BODY)
            [choice] = body["choices"]
            assert (status, choice["finish_reason"]) == (200, "content_filter")
            assert (body["agent"]["status"], body["agent"]["evidence"][0]["value"]) == ("unsupported", "9")
        assert BAD not in json.dumps(body)
        assert running.traces()[0].answer is not None


def test_where_evidence_is_required_nothing_is_streamed_before_it_is_checked() -> None:
    pieces = {"pieces": ["It is ", "9 ", "[obs:call_1]."]}
    good = {"pieces": ["It is ", "8 ", "[obs:call_1]."]}
    with upstream(CALL, pieces, good) as server, gateway(config_of(agent(server, evidence="require"))) as running:
        status, answer = streamed(running, BODY)
        assert (status, answer["text"], answer["finish"]) == (200, GOOD, "stop")
    with upstream(CALL, pieces, pieces) as server, gateway(config_of(agent(server, evidence="require"))) as running:
        status, answer = streamed(running, BODY)
        assert (status, answer["finish"]) == (200, "content_filter")
        assert BAD not in answer["text"]


def test_a_warning_streams_at_once() -> None:
    pieces = {"pieces": ["It is ", "9 ", "[obs:call_1]."]}
    with upstream(CALL, pieces) as server, gateway(config_of(agent(server, evidence="warn"))) as running:
        assert streamed(running, BODY)[1]["text"] == BAD


def test_an_agent_of_the_gateway_file_asks_for_evidence(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text("agents:\n  assistant: {model: offline, evidence: require}\n")
    assert load_config(path, env={}).agents["assistant"].agent.evidence == "require"
