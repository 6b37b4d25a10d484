"""A conversation as messages, for other programs: with its tool calls and their results, and nothing left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from taoloop.core.attachments.files import AttachmentInfo, attached, is_remote
from taoloop.core.decision import Act
from taoloop.core.images import ImageInfo
from taoloop.core.message import Message, ToolCallText
from taoloop.core.trace import Trace, attachments_of
from taoloop.core.views.transcript import input_text, observation_text
from taoloop.errors import RunNotFound
from taoloop.journals.base import Artifact, Journal

MessageForm = Literal["own", "openai"]
"""The form of exported messages: `taoloop.core.message.Message`, or dicts of OpenAI's chat API."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedHistory:
    """The messages of a conversation."""

    messages: list[Message]
    """All turns, the first one first. Calls are numbered over the whole conversation."""

    artifacts: dict[str, Artifact] = field(default_factory=dict)
    """The images and files that the messages name, by their refs, as far as the journal has them."""

    def in_openai_form(self) -> list[dict[str, Any]]:
        """The messages as dicts of OpenAI's chat API."""
        return [self._openai_message(message) for message in self.messages]

    def _openai_message(self, message: Message) -> dict[str, Any]:
        plain: dict[str, Any] = {"role": message.role, "content": message.content}
        if parts := [part for info in attached(message) for part in self._parts(info)]:
            plain["content"] = [{"type": "text", "text": message.content}, *parts]
        if message.tool_calls:
            plain["content"] = message.content or None
            plain["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in message.tool_calls
            ]
        if message.tool_call_id is not None:
            plain["tool_call_id"] = message.tool_call_id
        return plain

    def _parts(self, info: AttachmentInfo) -> Iterator[dict[str, Any]]:
        if is_remote(info):
            yield {"type": "image_url", "image_url": {"url": info.url}}
        elif (stored := self.artifacts.get(info.ref)) is not None:
            url = f"data:{stored.form};base64,{stored.body}"
            if isinstance(info, ImageInfo):
                yield {"type": "image_url", "image_url": {"url": url}}
            else:
                yield {"type": "file", "file": {"filename": info.file_name, "file_data": url}}


async def export_history(journal: Journal, run_id: str) -> ExportedHistory:
    """The conversation that ends with the run `run_id`: its turns, and those of the runs that it continues.

    What came in as the history of its first run is at the beginning; so are, as that run saw them, turns before a run
    that retention removed.

    Raises:
        RunNotFound: the journal has no such run.
    """
    traces = [Trace(run_id, await journal.load(run_id))]
    while (before := _before(traces[-1])) is not None:
        try:
            traces.append(Trace(before, await journal.load(before)))
        except RunNotFound:
            break
    traces.reverse()
    first = traces[0].started
    messages = list(first.history) if first is not None else []
    artifacts: dict[str, Artifact] = {}
    calls = 0
    for trace in traces:
        turn = list(_turn_messages(trace, calls))
        calls += len(trace.calls)
        messages += turn
        for info in attachments_of(trace.started) if trace.started is not None else ():
            if info.ref not in artifacts and (stored := await journal.artifact(trace.run_id, info.ref)) is not None:
                artifacts[info.ref] = stored
    return ExportedHistory(messages=messages, artifacts=artifacts)


def _before(trace: Trace) -> str | None:
    return trace.started.after if trace.started is not None else None


def _turn_messages(trace: Trace, calls_before: int) -> Iterator[Message]:
    """The task of a run, its calls with their results, and its answer."""
    if trace.started is None:
        return
    yield Message(role="user", content=trace.task, images=trace.started.images, files=trace.started.files)
    number = calls_before
    for step in trace.steps:
        calls, results = [], []
        for call in step.calls:
            if call.observed is None:
                continue
            number += 1
            requested = call.requested
            calls.append(ToolCallText(name=requested.tool, arguments=input_text(call.args), id=f"call_{number}"))
            text = observation_text(call.observed)
            results.append(Message(role="tool", content=text, tool_call_id=f"call_{number}"))
        if calls:
            thought = step.decision.reason if isinstance(step.decision, Act) else ""
            yield Message(role="assistant", content=thought, tool_calls=tuple(calls))
            yield from results
    if trace.finished is not None and trace.finished.answer is not None:
        yield Message(role="assistant", content=trace.finished.answer)
