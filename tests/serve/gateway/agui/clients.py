"""A plain client of AG-UI for tests."""

from __future__ import annotations

import json
from typing import Any

from tests.serve.gateway.clients import post
from tests.serve.gateway.conftest import Running


def user(text: str, name: str = "m1") -> dict[str, Any]:
    return {"id": name, "role": "user", "content": text}


def run_agui(running: Running, run_id: str = "r1", *, headers: dict[str, str] | None = None, **body: Any) -> Any:
    """The events of a run; of a response that is no stream, its status and body."""
    whole = {"threadId": "t1", "runId": run_id, "messages": [user("Double 4.")], **body}
    status, answer = post(running, whole, path="/v1/agui/assistant", **(headers or {}))
    if not isinstance(answer, bytes):
        return status, answer
    blocks = answer.decode().split("\n\n")
    return [json.loads(block.removeprefix("data: ")) for block in blocks if block.startswith("data: ")]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """The types of the events, each row of equal ones once."""
    names = [event["type"] for event in events]
    return [name for index, name in enumerate(names) if index == 0 or names[index - 1] != name]


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")


def interrupts(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The interrupts with which a run ended."""
    found: list[dict[str, Any]] = events[-1]["outcome"]["interrupts"]
    return found


def answer(interrupt: dict[str, Any], **payload: Any) -> dict[str, Any]:
    if not payload:
        return {"interruptId": interrupt["id"], "status": "cancelled"}
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}
