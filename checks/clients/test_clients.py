"""Clients that others wrote: what a person would have in hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checks.clients.conftest import Served, node, python, said_by

# `llm`, from Python


def test_llm_gets_an_answer_streamed_or_not(served: Served) -> None:
    assert said_by(served, "llm", "-m", "gateway", "Double 4.") == "It is 8."
    assert said_by(served, "llm", "-m", "gateway", "--no-stream", "-s", "Be brief.", "Double 4.") == "It is 8."
    assert "Be brief." in str(served.model.asked[-1]["messages"])


@pytest.mark.nightly
def test_llm_goes_on_with_a_conversation(served: Served) -> None:
    said_by(served, "llm", "-m", "gateway", "I am Ann. Double 4.")
    assert said_by(served, "llm", "-c", "What is my name?") == "You are Ann."


def test_llm_performs_its_own_tools(served: Served) -> None:
    tool = str(Path(served.env["LLM_USER_PATH"]) / "look.py")
    assert said_by(served, "llm", "-m", "gateway", "--functions", tool, "Look outside.") == "The sky is red."


@pytest.mark.nightly
def test_llm_gets_an_answer_that_fits_a_schema(served: Served) -> None:
    made = said_by(served, "llm", "-m", "gateway", "--schema", "city, degrees int", "The weather of Rome as JSON.")
    assert json.loads(made) == {"city": "Rome", "degrees": 21}


def test_llm_says_what_went_wrong(served: Served) -> None:
    assert "odel" in said_by(served, "llm", "-m", "gateway", "Break off.", fails=True)
    refused = said_by(served, "llm", "-m", "gateway", "--key", "tao-another-key", "Double 4.", fails=True)
    assert "unknown API key" in refused
    assert "tao-another-key" not in refused


# `ai` and `openai`, from Node.js


def test_ai_generates_and_streams_text(served: Served) -> None:
    for scenario in ("text", "stream"):
        made = node(served, "ai.mjs", scenario)
        assert (made["text"], made["finish"]) == ("It is 8.", "stop")
        assert (made["usage"]["inputTokens"], made["usage"]["outputTokens"]) == (20, 6)
    assert len(made["pieces"]) > 1


def test_ai_performs_its_own_tools(served: Served) -> None:
    made = node(served, "ai.mjs", "tools")
    assert (made["text"], made["steps"], made["calls"]) == ("The sky is red.", 2, [{"window": "east"}])
    made = node(served, "ai.mjs", "stream-tools")
    assert (made["text"], made["steps"]) == ("The sky is red.", 2)


def test_ai_gets_an_object(served: Served) -> None:
    assert node(served, "ai.mjs", "object") == {"output": {"city": "Rome", "degrees": 21}}


@pytest.mark.nightly
def test_ai_sends_a_history(served: Served) -> None:
    assert node(served, "ai.mjs", "chat") == {"text": "You are Ann."}


def test_ai_is_told_what_went_wrong(served: Served) -> None:
    made = node(served, "ai.mjs", "error")
    assert made["status"] == 404
    assert "`nobody` does not exist" in made["message"]
    made = node(served, "ai.mjs", "broken")
    assert made["pieces"][0] == "Some"
    assert "model" in made["error"]


def test_the_official_client_for_node_follows_chats_and_responses(served: Served) -> None:
    assert node(served, "openai.mjs") == {
        "models": ["assistant", "clerk"],
        "chat": "It is 8.",
        "streamed": "It is 8.",
        "response": "It is 8.",
        "next": "It is not known.",
        "error": [404, "model_not_found"],
    }


# `@ag-ui/client`, from Node.js


def test_the_client_of_ag_ui_runs_continues_and_resumes(served: Served) -> None:
    assert node(served, "agui.mjs") == {
        "chat": [["user", "assistant", "tool", "assistant"], "It is 8.", "RUN_STARTED", "RUN_FINISHED"],
        "next": "You are Ann.",
        "tools": [["user", "assistant", "tool", "assistant"], "The sky is red."],
        "interrupt": ["tool_call", 1, True],
        "resumed": ["It is over.", 0],
        "error": [404, "RUN_ERROR", "model_not_found"],
    }


# `a2a-sdk`, from Python


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_the_official_client_of_a2a_follows_tasks(served: Served, version: str) -> None:
    assert python(served, "a2a_client.py", version) == {
        "sent": ["TASK_STATE_COMPLETED", "It is 8."],
        "next": "You are Ann.",
        "found": ["TASK_STATE_COMPLETED", "You are Ann."],
        "streamed": "It is 8.",
        "ended": ["task", "TASK_STATE_COMPLETED"],
        "waits": "TASK_STATE_INPUT_REQUIRED",
        "followed": "TASK_STATE_INPUT_REQUIRED",
        "refused": ["TASK_STATE_COMPLETED", "It is over."],
        "canceled": "TASK_STATE_CANCELED",
        "unknown": "TaskNotFoundError",
    }


# `createAgent` of LangChain.js


def test_langchain_gets_an_answer_and_streams_it(served: Served) -> None:
    assert node(served, "langchain.mjs", "text") == [["human", "Double 4."], ["ai", "It is 8."]]
    pieces = node(served, "langchain.mjs", "stream")
    assert "".join(pieces) == "It is 8."
    assert len(pieces) > 1


def test_langchain_performs_its_own_tools(served: Served) -> None:
    made = node(served, "langchain.mjs", "tools")
    kinds = [kind for kind, _ in made["messages"]]
    assert kinds == ["human", "ai", "tool", "ai"]
    assert made["messages"][-1][1] == "The sky is red."
    assert len(set(made["ids"])) == 2


@pytest.mark.nightly
def test_langchain_goes_on_with_a_conversation(served: Served) -> None:
    messages = node(served, "langchain.mjs", "turns")
    assert [kind for kind, _ in messages] == ["human", "ai", "tool", "ai", "human", "ai"]
    assert [text for _, text in messages][3::2] == ["The sky is red.", "You are Ann."]


def test_langchain_is_told_what_went_wrong(served: Served) -> None:
    made = node(served, "langchain.mjs", "error")
    assert made["status"] == 404
    assert "`nobody` does not exist" in made["message"]
