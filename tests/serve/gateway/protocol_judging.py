"""Judges the streams of the protocols beside OpenAI's: each event by the official types, and their order."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ag_ui.core import Event as AguiEvent
from aiohttp import web
from anthropic.types import RawMessageStreamEvent
from pydantic import TypeAdapter, ValidationError

_AGUI_EVENT: TypeAdapter[Any] = TypeAdapter(AguiEvent)
_MESSAGE_EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
_OPENED = {
    "TEXT_MESSAGE": "messageId",
    "TOOL_CALL": "toolCallId",
    "STEP": "stepName",
    "REASONING_MESSAGE": "messageId",
    "REASONING": "messageId",
}


def agui_problems(events: list[dict[str, Any]]) -> list[str]:
    """What is wrong with the events of a stream of AG-UI."""
    problems = []
    open_parts: set[tuple[str, str]] = set()
    kinds = [event["type"] for event in events]
    if not kinds or kinds[0] not in ("RUN_STARTED", "RUN_ERROR") or kinds[-1] not in ("RUN_FINISHED", "RUN_ERROR"):
        problems.append(f"begins or ends otherwise: {kinds}")
    if sum(kind in ("RUN_FINISHED", "RUN_ERROR") for kind in kinds) != 1 or kinds.count("RUN_STARTED") > 1:
        problems.append(f"has another end within: {kinds}")
    for event in events:
        try:
            parsed = _AGUI_EVENT.validate_python(event)
        except ValidationError as error:
            problems.append(f"{event}: {error}")
            continue
        if parsed.model_extra:
            problems.append(f"unknown fields {parsed.model_extra}")
        part, _, change = event["type"].rpartition("_")
        if part not in _OPENED:
            continue
        key = (part, event[_OPENED[part]])
        if change in ("START", "STARTED"):
            if key in open_parts:
                problems.append(f"{key} is open already")
            open_parts.add(key)
        elif change != "RESULT" and key not in open_parts:
            problems.append(f"{event['type']} of what is not open: {key}")
        if change in ("END", "FINISHED"):
            open_parts.discard(key)
    if open_parts and kinds[-1] == "RUN_FINISHED":
        problems.append(f"ends with open parts: {open_parts}")
    return problems


def message_problems(events: list[dict[str, Any]]) -> list[str]:
    """What is wrong with the events of a stream of Anthropic's Messages API."""
    problems = []
    kinds = [event["type"] for event in events]
    if kinds[-1:] not in (["message_stop"], ["error"]) or (kinds[0] != "message_start" and kinds != ["error"]):
        problems.append(f"begins or ends otherwise: {kinds}")
    for event in events:
        try:
            if event["type"] != "error":
                _MESSAGE_EVENT.validate_python(event)
        except ValidationError as error:
            problems.append(f"{event}: {error}")
    blocks = [event["index"] for event in events if event["type"] == "content_block_start"]
    ends = [event["index"] for event in events if event["type"] == "content_block_stop"]
    if blocks != list(range(len(blocks))) or (kinds[-1] == "message_stop" and ends != blocks):
        problems.append(f"opens the blocks {blocks} and ends {ends}")
    return problems


def task_problems(events: list[dict[str, Any]]) -> list[str]:
    """What is wrong with the events of a stream of A2A, in either version."""
    problems = [f"no response of JSON-RPC: {event}" for event in events if event.get("jsonrpc") != "2.0"]
    results = [event.get("result", {}) for event in events]
    kinds = [result.get("kind") or next(iter(result), "error") for result in results]
    if kinds[0] != "task" or kinds.count("task") != 1:
        problems.append(f"begins otherwise: {kinds}")
    if kinds[-1] not in ("status-update", "statusUpdate", "error") or sum("tatus" in kind for kind in kinds) > 1:
        problems.append(f"ends otherwise: {kinds}")
    if len({json.dumps(event["id"]) for event in events}) != 1:
        problems.append("changes its id")
    pieces = [
        result.get("artifactUpdate", result)
        for result, kind in zip(results, kinds, strict=True)
        if kind in ("artifactUpdate", "artifact-update")
    ]
    if any(piece["append"] for piece in pieces[:1]) or any(piece["lastChunk"] for piece in pieces[:-1]):
        problems.append(f"has its artifact in another order: {pieces}")
    return problems


OTHER_FORMS = ("/v1/agui/", "/v1/messages", "/a2a/", "/.well-known/")
"""Paths whose errors have the form of their protocol, which our own document describes."""

PROTOCOL_STREAMS: dict[str, Callable[[list[dict[str, Any]]], list[str]]] = {
    "/v1/agui/{agent}": agui_problems,
    "/v1/messages": message_problems,
    "/a2a/{agent}": task_problems,
}
"""What judges the events of a stream, by the path."""


class ProtocolStream:
    """One stream, judged when it ends."""

    def __init__(self, wrong: list[str], path: str, response: web.StreamResponse) -> None:
        self._wrong, self._path = wrong, path
        self._data, self._is_judged = b"", False
        self._write, self._end = response.write, response.write_eof
        response.write = self._written  # type: ignore[method-assign, assignment]  # the one way to see a stream whole
        response.write_eof = self._ended  # type: ignore[method-assign]

    async def _written(self, data: bytes) -> None:
        self._data += data
        await self._write(data)

    async def _ended(self, data: bytes = b"") -> None:
        if not self._is_judged:
            self._is_judged = True
            *blocks, rest = self._data.decode("utf-8").split("\n\n")
            events = []
            for block in blocks:
                lines = [line for line in block.split("\n") if not line.startswith((":", "event: "))]
                events += [json.loads(line.removeprefix("data: ")) for line in lines]
            problems = PROTOCOL_STREAMS[self._path](events) + ([f"ends in an event: {rest}"] if rest else [])
            self._wrong += [f"{self._path}: the stream {problem}" for problem in problems]
        await self._end(data)
