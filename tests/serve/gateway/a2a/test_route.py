"""A2A over HTTP: tasks, contexts, approvals, repeats, and requests that cannot be tasks."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.pictures import PDF
from tests.serve.gateway.clients import NOTE, SENT, post, send_note
from tests.serve.gateway.conftest import Running, agent, config_of, gateway, upstream

from taoloop.core.trace import Trace
from taoloop.serve.gateway.auth.keys import ApiKey, new_key
from taoloop.serve.gateway.config.model import ServedAgent

EVE = {"tool_calls": [{"name": "send_note", "args": {"to": "Eve", "text": "all"}}]}


@pytest.fixture(autouse=True)
def _nothing_sent() -> Iterator[None]:
    SENT.clear()
    yield
    SENT.clear()


def call(running: Running, method: str, params: Any, **headers: str) -> Any:
    """The response, or the results of a stream."""
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    status, answer = post(running, body, path="/a2a/assistant", **headers)
    if isinstance(answer, bytes):
        blocks = answer.decode().split("\n\n")
        return [json.loads(block.removeprefix("data: "))["result"] for block in blocks if block.startswith("data: ")]
    assert status == 200 or "error" in answer
    return answer["result"] if "result" in answer else {"status": status, **answer["error"]}


def said(text: str, message_id: str = "m1", **ids: str) -> dict[str, Any]:
    return {"message": {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}], **ids}}


def send(running: Running, text: str, message_id: str = "m1", *, headers: Any = None, **ids: str) -> Any:
    made = call(running, "SendMessage", said(text, message_id, **ids), **(headers or {}))
    return made.get("task", made)


def state(task: Any) -> str:
    name: str = task["status"]["state"]
    return name


def shown(task: Any) -> str:
    text: str = task["status"]["message"]["parts"][0]["text"]
    return text


def keyed(name: str, **changes: Any) -> tuple[dict[str, str], ApiKey]:
    secret, key = new_key(name)
    return {"Authorization": f"Bearer {secret}"}, replace(key, **changes)


def after_of(trace: Trace) -> str | None:
    return None if trace.started is None else trace.started.after


def test_a_message_is_a_task_and_the_next_one_of_its_context_continues() -> None:
    with upstream("It is 8.", "Nine.", "Ten.") as server:
        config = config_of(agent(server), protocols=("a2a",))
        with gateway(config) as running:
            task = send(running, "Double 4.")
            [trace] = running.traces()
            assert (task["id"], state(task)) == (trace.run_id, "TASK_STATE_COMPLETED")
            assert task["artifacts"] == [{"artifactId": "answer", "parts": [{"text": "It is 8."}]}]
            assert trace.started is not None
            labels = {"key": "", "agent": "assistant", "via": "a2a", "context": task["contextId"]}
            assert trace.started.labels == labels
            assert call(running, "GetTask", {"id": task["id"]})["artifacts"] == task["artifacts"]

            assert send(running, "Double 4.")["id"] == task["id"]  # as a client does whose connection broke
            assert send(running, "Something else.")["code"] == -32602
            events = call(running, "SendStreamingMessage", said("And then?", "m2", contextId=task["contextId"]))
            assert [next(iter(event)) for event in events] == [
                *("task", "artifactUpdate", "artifactUpdate", "artifactUpdate", "statusUpdate")
            ]
            assert after_of(running.traces()[1]) == task["id"]
            old = {"message": {"messageId": "m3", "role": "user", "parts": [{"kind": "text", "text": "More."}]}}
            made = call(running, "message/send", old)
            assert (made["kind"], state(made)) == ("task", "completed")
            assert after_of(running.traces()[2]) is None
            assert "over" in send(running, "More.", "m4", taskId=task["id"])["message"]


def two(body: dict[str, Any]) -> Any:
    """One note after the other."""
    return (NOTE, EVE, "Done.")[sum(message["role"] == "tool" for message in body["messages"])]


def test_a_task_that_waits_takes_an_answer_to_what_its_client_was_shown_and_once() -> None:
    with upstream(two) as server, gateway(config_of(agent(server, tools=[send_note]), protocols=("a2a",))) as running:
        task = send(running, "Send a note that says hello.")
        assert state(task) == "TASK_STATE_INPUT_REQUIRED"
        assert '"Ann"' in shown(task)
        assert send(running, "yes", "m2", taskId=task["id"], contextId="other")["code"] == -32602
        assert SENT == []
        second = send(running, "yes", "m2", taskId=task["id"])
        assert (state(second), [note["to"] for note in SENT]) == ("TASK_STATE_INPUT_REQUIRED", ["Ann"])
        again = send(running, "yes", "m2", taskId=task["id"])  # the same message approves nothing else
        assert (state(again), [note["to"] for note in SENT]) == ("TASK_STATE_INPUT_REQUIRED", ["Ann"])
        events = call(running, "SendStreamingMessage", said("no: enough", "m3", taskId=task["id"]))
        assert state(events[-1]["statusUpdate"]) == "TASK_STATE_COMPLETED"
        assert [note["to"] for note in SENT] == ["Ann"]


def test_a_task_that_waits_is_shown_followed_and_canceled() -> None:
    with upstream(NOTE) as server, gateway(config_of(agent(server, tools=[send_note]), protocols=("a2a",))) as running:
        task = send(running, "Send a note that says hello.")
        assert state(call(running, "GetTask", {"id": task["id"]})) == "TASK_STATE_INPUT_REQUIRED"
        events = call(running, "tasks/resubscribe", {"id": task["id"]})
        assert [event["kind"] for event in events] == ["task", "status-update"]
        assert (state(events[-1]), events[-1]["final"]) == ("input-required", True)
        assert state(call(running, "CancelTask", {"id": task["id"]})) == "TASK_STATE_CANCELED"
        assert call(running, "CancelTask", {"id": task["id"]})["code"] == -32002
        assert state(call(running, "SubscribeToTask", {"id": task["id"]})) == "TASK_STATE_CANCELED"
        assert SENT == []


def test_nobody_reaches_the_tasks_of_another_key_and_the_operator_alone_approves_for_an_end_user() -> None:
    ann, ann_key = keyed("ann")
    eve, eve_key = keyed("eve", task_authority="full")
    with upstream(NOTE) as server:
        config = config_of(agent(server, tools=[send_note]), keys=(ann_key, eve_key), protocols=("a2a",))
        with gateway(config) as running:
            task = send(running, "Send a note that says hello.", headers=ann)
            assert "operator" in shown(task)
            assert state(send(running, "yes", "m2", taskId=task["id"], headers=ann)) == "TASK_STATE_INPUT_REQUIRED"
            for method in ("GetTask", "CancelTask", "SubscribeToTask"):
                assert call(running, method, {"id": task["id"]}, **eve)["code"] == -32001
            assert send(running, "yes", "m2", taskId=task["id"], headers=eve)["code"] == -32001
            assert call(running, "GetTask", {"id": task["id"]})["status"] == 401
            assert SENT == []


def test_a_run_that_fails_is_a_task_that_failed() -> None:
    with upstream((503, "down")) as server, gateway(config_of(agent(server), protocols=("a2a",))) as running:
        task = send(running, "Double 4.")
        assert state(task) == "TASK_STATE_FAILED"
        assert "down or cannot be reached" in shown(task)
        assert state(call(running, "GetTask", {"id": task["id"]})) == "TASK_STATE_FAILED"
        events = call(running, "SendStreamingMessage", said("Double 4.", "m2"))
        assert state(events[-1]["statusUpdate"]) == "TASK_STATE_FAILED"


def test_what_cannot_be_a_task_is_an_error_of_json_rpc() -> None:
    with upstream() as server, gateway(config_of(agent(server), protocols=("a2a",))) as running:
        assert post(running, b"{", path="/a2a/assistant")[1]["error"]["code"] == -32700
        assert post(running, {"method": "GetTask"}, path="/a2a/assistant")[1]["error"]["code"] == -32600
        assert call(running, "ListTasks", {})["code"] == -32601
        assert call(running, "GetTask", {"id": "20270101-000000-00000000"})["code"] == -32001
        error = call(running, "SendMessage", {"message": {"messageId": "m", "role": "ROLE_USER", "parts": []}})
        assert (error["code"], "message.parts" in error["message"]) == (-32602, True)
        wav = {"raw": "AAAA", "mediaType": "audio/wav"}
        error = call(running, "SendMessage", {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [wav]}})
        assert (error["code"], "message.parts[0]" in error["message"]) == (-32005, True)
        png = {"raw": "AAAA", "mediaType": "image/png"}
        error = call(running, "SendMessage", {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [png]}})
        assert (error["code"], error["data"][0]["metadata"]["code"]) == (-32602, "images_not_supported")
        pdf = {"raw": base64.b64encode(PDF).decode(), "mediaType": "application/pdf"}
        error = call(running, "SendMessage", {"message": {"messageId": "n", "role": "ROLE_USER", "parts": [pdf]}})
        assert (error["code"], "not known to read PDF" in error["message"]) == (-32602, True)
        assert server.asked == []


def test_a_card_says_what_an_agent_is_for_and_only_to_who_may_use_it() -> None:
    ann, key = keyed("ann", agents=("assistant",))
    with upstream() as server:
        served = ServedAgent(name="assistant", agent=agent(server), description="Doubles numbers.")
        other = ServedAgent(name="other", agent=agent(server, name="other"))
        config = config_of(other, served, keys=(key,), protocols=("a2a",))
        with gateway(config) as running:
            path = "/.well-known/agent-card.json"
            status, card = post(running, b"", path=path, method="GET", **ann)
            assert status == 200
            assert (card["name"], card["description"]) == ("assistant", "Doubles numbers.")
            assert card["supportedInterfaces"][0]["url"] == f"{running.url}/a2a/assistant"
            assert card["securityRequirements"] == [{"schemes": {"key": {"list": []}}}]
            assert "double" not in json.dumps(card)  # its tools are its own
            assert post(running, b"", path=f"/a2a/assistant{path}", method="GET", **ann)[1] == card
            assert post(running, b"", path=f"/a2a/other{path}", method="GET", **ann)[0] == 404
            assert post(running, b"", path=path, method="GET")[0] == 401
        with gateway(replace(config, protocols=())) as running:
            assert post(running, b"", path=path, method="GET", **ann)[0] == 404
            assert call(running, "GetTask", {"id": "x"}, **ann)["status"] == 404
