"""Requests that are collected into the batches of OpenAI and Anthropic, and what a killed process finds again."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent
from taoloop.core.views.transcript import Result
from taoloop.errors import ConfigError
from taoloop.models import Batched, OpenAIModel, Retry, Usage
from taoloop.testing import HttpDouble

BEGIN: list[Any] = [(200, {"id": "f1"}), (200, {"id": "b1", "status": "validating"})]
WORKING = (200, {"id": "b1", "status": "in_progress"})
DONE = (200, {"id": "b1", "status": "completed", "output_file_id": "f2"})


async def instantly(_seconds: float) -> None:
    """No time passes, but others go on."""
    for _ in range(50):
        await asyncio.sleep(0)


class TwoDollars(OpenAIModel):
    """A model each of whose replies has the price of two dollars."""

    def cost(self, model: str, usage: Usage | None, *, cache_write_tokens: int = 0) -> float | None:
        assert (model, usage, cache_write_tokens) == ("gpt-4o", Usage(input_tokens=1_000_000), 0)
        return 2.0


def model_of(double: HttpDouble, path: Path, spec: str = "openai:gpt-4o", **options: Any) -> Batched:
    env = {"OPENAI_BASE_URL": f"{double.url}/v1", "OPENAI_API_KEY": "k"}
    env |= {"ANTHROPIC_BASE_URL": double.url, "ANTHROPIC_API_KEY": "k"}
    model = TwoDollars.from_env("openai", "gpt-4o", env) if spec == "openai:gpt-4o" else spec
    return Batched(model, path / "batches.db", env=env, sleep=options.pop("sleep", instantly), **options)


async def run(model: Batched, *tasks: str) -> list[Result]:
    agent = Agent(model=model, model_timeout_s=None, retry=Retry(attempts=1))
    try:
        return list(await asyncio.gather(*(agent.run(task) for task in tasks)))
    finally:
        await model.close()


def uploaded(double: HttpDouble, index: int = 0) -> list[dict[str, Any]]:
    """The requests of an uploaded file."""
    lines = double.bodies[index].decode().splitlines()
    return [json.loads(line) for line in lines if line.startswith('{"custom_id"')]


def task_of(body: dict[str, Any]) -> str:
    """The letter in a task `Say X.`."""
    task: str = re.findall(r"Say ([A-C])\.", json.dumps(body["messages"]))[0]
    return task


def lines(make: Callable[[], list[dict[str, Any]]]) -> Callable[[socket.socket], None]:
    """An answer of JSON lines, made when it is asked for, in another order than the requests."""

    def answer(connection: socket.socket) -> None:
        body = b"".join(json.dumps(line).encode() + b"\n" for line in reversed(make()))
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    return answer


def openai_lines(double: HttpDouble, index: int = 0) -> list[dict[str, Any]]:
    made = []
    for request in uploaded(double, index):
        message: dict[str, Any] = {"role": "assistant", "content": f"It is {task_of(request['body'])}."}
        body: dict[str, Any] = {"object": "chat.completion", "model": "gpt-4o", "usage": {"prompt_tokens": 1_000_000}}
        body |= {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        made.append({"custom_id": request["custom_id"], "response": {"status_code": 200, "body": body}})
    return made


@pytest.mark.parametrize("size", [3, 1_000])
def test_the_requests_of_all_runs_are_one_batch_at_half_the_price(tmp_path: Path, size: int) -> None:
    with HttpDouble([*BEGIN, WORKING, DONE]) as double:
        double.answers.append(lines(lambda: openai_lines(double)))
        results = asyncio.run(run(model_of(double, tmp_path, size=size), "Say A.", "Say B.", "Say C."))
    assert [result.answer for result in results] == ["It is A.", "It is B.", "It is C."]
    paths = [request["path"] for request in double.requests]
    assert paths == ["/v1/files", "/v1/batches", *["/v1/batches/b1"] * 2, "/v1/files/f2/content"]
    assert (double.requests[1]["input_file_id"], double.requests[1]["endpoint"]) == ("f1", "/v1/chat/completions")
    assert b'name="purpose"\r\n\r\nbatch\r\n' in double.bodies[0]
    assert double.headers[2]["authorization"] == "Bearer k"
    assert results[0].cost_usd == 1.0


def test_a_killed_evaluation_fetches_its_batch_and_hands_each_reply_out_once(tmp_path: Path) -> None:
    async def killed(double: HttpDouble) -> None:
        asked = asyncio.Event()

        async def sleep(seconds: float) -> None:
            if seconds == 30.0:  # it waits for the batch
                asked.set()
                await asyncio.Event().wait()
            await instantly(seconds)

        running = asyncio.create_task(run(model_of(double, tmp_path, sleep=sleep), "Say A.", "Say A."))
        await asked.wait()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    with HttpDouble([*BEGIN, WORKING, DONE]) as double:
        double.answers.append(lines(lambda: openai_lines(double)))
        asyncio.run(killed(double))
        first = asyncio.run(run(model_of(double, tmp_path), "Say A."))
        second = asyncio.run(run(model_of(double, tmp_path), "Say A."))  # the reply of the other trial
        assert [first[0].answer, second[0].answer] == ["It is A."] * 2
        assert len(double.requests) == 5
        double.answers += [*BEGIN, DONE, lines(lambda: openai_lines(double, 5))]
        asyncio.run(run(model_of(double, tmp_path), "Say A."))
        assert [request["path"] for request in double.requests].count("/v1/files") == 2


def test_what_a_batch_left_out_or_refused_is_told_to_its_run_alone(tmp_path: Path) -> None:
    def some(double: HttpDouble) -> list[dict[str, Any]]:
        first, second, _ = openai_lines(double)
        error = {"error": {"message": "no such thing", "type": "invalid_request_error"}}
        return [first, {**second, "response": {"status_code": 400, "body": error}}]

    with HttpDouble([*BEGIN, DONE]) as double:
        double.answers.append(lines(lambda: some(double)))
        good, refused, expired = asyncio.run(run(model_of(double, tmp_path), "Say A.", "Say B.", "Say C."))
    assert good.answer == "It is A."
    assert "no such thing" in refused.reason
    assert "before this request was answered" in expired.reason


def test_anthropic_has_batches_of_messages(tmp_path: Path) -> None:
    def results(double: HttpDouble) -> list[dict[str, Any]]:
        made = []
        for request in double.requests[0]["requests"]:
            content = [{"type": "text", "text": f"It is {task_of(request['params'])}."}]
            message: dict[str, Any] = {"model": "claude-sonnet-4-5", "content": content, "stop_reason": "end_turn"}
            message["usage"] = {"input_tokens": 1_000_000, "output_tokens": 0}
            result = {"type": "succeeded", "message": message}
            made.append({"custom_id": request["custom_id"], "result": result})
        return made

    states = [(200, {"id": "b1", "processing_status": state}) for state in ("in_progress", "in_progress", "ended")]
    with HttpDouble(states) as double:
        double.answers.append(lines(lambda: results(double)))
        made = asyncio.run(run(model_of(double, tmp_path, "anthropic:claude-sonnet-4-5"), "Say A.", "Say B."))
    assert [result.answer for result in made] == ["It is A.", "It is B."]
    path = "/v1/messages/batches"
    assert [request["path"] for request in double.requests] == [path, *[f"{path}/b1"] * 2, f"{path}/b1/results"]
    assert "stream" not in double.requests[0]["requests"][0]["params"]


def test_a_model_without_batches_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no batch API"):
        Batched("offline", tmp_path / "b.db")
