"""What A2A sends and takes, in the shapes of its versions 1.0 and 0.3; and JSON-RPC, which carries it.

Source: the Agent2Agent protocol 1.0 (JSON-RPC binding) and 0.3. The method of a request says which version it speaks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from taoloop.core.attachments.media_types import PDF, is_text
from taoloop.serve.gateway.errors import ApiError, invalid, invalid_field, missing
from taoloop.serve.gateway.request_schema import ApiModel, ChatMessage, FileData, ImageUrl, MessagePart

Version = Literal["1.0", "0.3"]
Operation = Literal["send", "stream", "get", "cancel", "subscribe", "push_set", "push_get", "push_list", "push_delete"]
TaskState = Literal["working", "completed", "failed", "canceled", "input-required"]

METHODS: Mapping[str, tuple[Version, Operation]] = {
    "SendMessage": ("1.0", "send"),
    "SendStreamingMessage": ("1.0", "stream"),
    "GetTask": ("1.0", "get"),
    "CancelTask": ("1.0", "cancel"),
    "SubscribeToTask": ("1.0", "subscribe"),
    "CreateTaskPushNotificationConfig": ("1.0", "push_set"),
    "GetTaskPushNotificationConfig": ("1.0", "push_get"),
    "ListTaskPushNotificationConfigs": ("1.0", "push_list"),
    "DeleteTaskPushNotificationConfig": ("1.0", "push_delete"),
    "message/send": ("0.3", "send"),
    "message/stream": ("0.3", "stream"),
    "tasks/get": ("0.3", "get"),
    "tasks/cancel": ("0.3", "cancel"),
    "tasks/resubscribe": ("0.3", "subscribe"),
    "tasks/pushNotificationConfig/set": ("0.3", "push_set"),
    "tasks/pushNotificationConfig/get": ("0.3", "push_get"),
    "tasks/pushNotificationConfig/list": ("0.3", "push_list"),
    "tasks/pushNotificationConfig/delete": ("0.3", "push_delete"),
}
"""The methods that are served, with their version and what they do."""

ARTIFACT = "answer"
"""The id of the artifact that is the answer of a run."""

_ERROR_CODES = {
    "invalid_json": -32700,
    "invalid_request": -32600,
    "method_not_found": -32601,
    "run_not_found": -32001,
    "task_not_cancelable": -32002,
    "push_not_supported": -32003,
    "unsupported_operation": -32004,
    "content_type_not_supported": -32005,
}
"""The codes of JSON-RPC and A2A, by ours; other errors of a request are -32602, and those of the server -32603."""


class A2aModel(ApiModel):
    """Base of all parts of a request: names are in camel case."""

    model_config = ConfigDict(alias_generator=to_camel)


class FilePart(A2aModel):
    """The file of a part, in version 0.3."""

    bytes: str | None = None
    uri: str | None = None
    mime_type: str | None = None
    name: str | None = None


class A2aPart(A2aModel):
    """A part of a message: a text, data, an image, or a file."""

    text: str | None = None
    raw: str | None = None
    url: str | None = None
    data: Any = None
    media_type: str | None = None
    file: FilePart | None = None


class A2aMessage(A2aModel):
    """A message of the client."""

    message_id: Annotated[str, Field(min_length=1, max_length=512)]
    role: Literal["user", "ROLE_USER"]
    parts: Annotated[list[A2aPart], Field(min_length=1, max_length=256)]
    context_id: Annotated[str, Field(max_length=256)] | None = None
    task_id: str | None = None


class SendParams(A2aModel):
    """The parameters of a message that is sent."""

    message: A2aMessage
    configuration: dict[str, Any] = Field(default_factory=dict)


class TaskParams(A2aModel):
    """The parameters of what is asked about a task."""

    id: str


class RpcRequest(ApiModel):
    """A request of JSON-RPC 2.0."""

    jsonrpc: Literal["2.0"]
    id: str | int | None = None
    method: str
    params: dict[str, Any] = Field(default_factory=dict)


def chat_message(message: A2aMessage) -> ChatMessage:
    """The message as one of a chat, with the same parts.

    Raises:
        ApiError: a part is neither a text, nor data, nor an image or a file; names it.
    """
    parts = [_chat_part(f"message.parts[{index}]", part) for index, part in enumerate(message.parts)]
    return ChatMessage(role="user", content=parts)


def _chat_part(param: str, part: A2aPart) -> MessagePart:
    if part.text is not None:
        return MessagePart(type="text", text=part.text)
    if part.data is not None:
        return MessagePart(type="text", text=json.dumps(part.data, ensure_ascii=False))
    file = part.file or FilePart(bytes=part.raw, uri=part.url, mime_type=part.media_type)
    if file.bytes is None and file.uri is None:
        raise missing(f"{param}.text")
    kind = file.mime_type or part.media_type or ""
    if file.bytes is not None and (kind == PDF or is_text(kind)):
        return MessagePart(type="file", file=FileData(filename=file.name, file_data=f"data:;base64,{file.bytes}"))
    if not kind.startswith("image/"):
        message = (
            f"`{param}` is of the type {kind[:80]!r}; only texts, data, images, PDFs and texts as files can be read."
        )
        raise invalid(message, param, "content_type_not_supported")
    url = file.uri if file.bytes is None else f"data:{kind};base64,{file.bytes}"
    return MessagePart(type="image_url", image_url=ImageUrl(url=url or ""))


class Wire:
    """The shapes of one version, for one request.

    Args:
        version: The version of A2A that the request speaks.
        request_id: The id of the request in JSON-RPC.
        task_id: The id of the task: that of its run.
        context_id: The conversation that the task is of.
    """

    def __init__(self, version: Version, request_id: str | int | None, task_id: str, context_id: str) -> None:
        self._is_old = version == "0.3"
        self.request_id, self.task_id, self.context_id = request_id, task_id, context_id

    def task(self, state: TaskState, text: str, answer: str | None, details: Mapping[str, Any]) -> dict[str, Any]:
        """A task; `text` is what its state is about, and `answer` its artifact."""
        task: dict[str, Any] = {**self._kind("task"), "id": self.task_id, "contextId": self.context_id}
        task["status"] = self._status(state, text)
        task["artifacts"] = [] if answer is None else [self._artifact(answer)]
        return {**task, "metadata": {"taoloop": dict(details)}}

    def sent(self, task: dict[str, Any]) -> dict[str, Any]:
        """The response to a message that was sent."""
        return self.result(task if self._is_old else {"task": task})

    def streamed_task(self, task: dict[str, Any]) -> dict[str, Any]:
        """A task as an event of a stream."""
        return self.result(task if self._is_old else {"task": task})

    def status_update(self, state: TaskState, text: str, details: Mapping[str, Any]) -> dict[str, Any]:
        """A new state as an event of a stream."""
        update = {"taskId": self.task_id, "contextId": self.context_id, "status": self._status(state, text)}
        update["metadata"] = {"taoloop": dict(details)}
        if self._is_old:
            return self.result({"kind": "status-update", **update, "final": state != "working"})
        return self.result({"statusUpdate": update})

    def artifact_update(self, text: str, *, append: bool, is_last: bool) -> dict[str, Any]:
        """A piece of the answer as an event of a stream; without `append` it replaces what was sent."""
        update: dict[str, Any] = {"taskId": self.task_id, "contextId": self.context_id}
        update |= {"artifact": self._artifact(text), "append": append, "lastChunk": is_last}
        return self.result({"kind": "artifact-update", **update} if self._is_old else {"artifactUpdate": update})

    def result(self, value: object) -> dict[str, Any]:
        """A response of JSON-RPC."""
        return {"jsonrpc": "2.0", "id": self.request_id, "result": value}

    def _kind(self, name: str) -> dict[str, str]:
        return {"kind": name} if self._is_old else {}

    def _status(self, state: TaskState, text: str) -> dict[str, Any]:
        name = state if self._is_old else f"TASK_STATE_{state.replace('-', '_').upper()}"
        status: dict[str, Any] = {"state": name, "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z")}
        if text:
            role = "agent" if self._is_old else "ROLE_AGENT"
            ids = {"messageId": f"msg_{self.task_id}_{state}", "taskId": self.task_id, "contextId": self.context_id}
            status["message"] = {**self._kind("message"), **ids, "role": role, "parts": [self._part(text)]}
        return status

    def _artifact(self, text: str) -> dict[str, Any]:
        return {"artifactId": ARTIFACT, "parts": [self._part(text)]}

    def _part(self, text: str) -> dict[str, str]:
        return {**self._kind("text"), "text": text}


def error_response_body(error: ApiError, request_id: str | int | None = None) -> dict[str, Any]:
    """An error as a response of JSON-RPC."""
    kind = error.code or error.kind
    code = _ERROR_CODES.get(kind, -32603 if error.status >= 500 or error.effects is not None else -32602)
    metadata = {"code": kind, **({} if error.param is None else {"param": error.param})}
    if error.effects is not None:
        metadata |= {"run_id": error.run_id, "effects": error.effects}
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": kind.upper(),
        "domain": "taoloop",
        "metadata": metadata,
    }
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": error.message, "data": [info]}}


def named_method(method: str) -> tuple[Version, Operation]:
    """The version and the operation of a method.

    Raises:
        ApiError: it is not served.
    """
    if method not in METHODS:
        message = f"There is no method {method[:80]!r} here; there are {', '.join(METHODS)}."
        raise ApiError(status=404, message=message, param="method", code="method_not_found")
    return METHODS[method]


def required_context(message: A2aMessage, context_id: str) -> None:
    """Refuse a message for a task of another context.

    Raises:
        ApiError: it names one.
    """
    if message.context_id not in (None, "", context_id):
        raise invalid_field("message.contextId", "The task is of another context.")
