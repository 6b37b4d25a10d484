"""The request of AG-UI as it is read: what its messages mean for a run, and mistakes with their field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ag_ui.core import RunAgentInput as OfficialInput, UserMessage

from taoloop.serve.gateway.agui.run_input import chat_settings, context_text, read_run_input
from taoloop.serve.gateway.errors import ApiError


def read(**changes: Any) -> Any:
    body = {"threadId": "t", "runId": "r", "messages": [{"id": "m", "role": "user", "content": "Hi."}], **changes}
    return read_run_input(json.dumps(body).encode())


def test_what_the_official_types_write_is_read() -> None:
    message = UserMessage(id="m", content="Hi.")
    made = OfficialInput(thread_id="t", run_id="r", messages=[message], protocol_version="1.0")
    request = read_run_input(made.model_dump_json(by_alias=True).encode())
    assert (request.thread_id, request.run_id, request.ignored) == ("t", "r", ())
    assert [each.text for each in chat_settings(request, "a").messages] == ["Hi."]


def test_messages_that_are_only_shown_have_no_effect_and_keep_the_indices_of_the_others() -> None:
    shown = [{"id": "1", "role": "activity", "activityType": "x", "content": {"a": 1}}]
    thought = [{"id": "3", "role": "reasoning", "content": "Hm."}]
    messages = [*shown, {"id": "2", "role": "user", "content": "Hi."}, *thought]
    read_messages = chat_settings(read(messages=messages), "a").messages
    assert [(each.role, each.text) for each in read_messages] == [("assistant", ""), ("user", "Hi.")]


def test_an_image_and_the_error_of_a_tool_are_read() -> None:
    image = {"type": "image", "source": {"type": "data", "value": "AAAA", "mimeType": "image/png"}}
    tool = {"id": "t", "role": "tool", "toolCallId": "c", "content": "half", "error": "It broke."}
    first, second = chat_settings(read(messages=[{"id": "m", "role": "user", "content": [image]}, tool]), "a").messages
    assert isinstance(first.content, list)
    assert first.content[0].model_dump(exclude_none=True) == {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64,AAAA"},
    }
    assert second.text == "half\nError: It broke."


def test_a_document_is_a_file_and_is_not_fetched() -> None:
    document = {"type": "document", "source": {"type": "data", "value": "AAAA", "mimeType": "application/pdf"}}
    [message] = chat_settings(read(messages=[{"id": "m", "role": "user", "content": [document]}]), "a").messages
    assert isinstance(message.content, list)
    assert message.content[0].model_dump(exclude_none=True) == {
        "type": "file",
        "file": {"file_data": "data:;base64,AAAA"},
    }
    document["source"] = {"type": "url", "value": "https://a.example/a.pdf"}
    with pytest.raises(ApiError, match="fetches no files"):
        chat_settings(read(messages=[{"id": "m", "role": "user", "content": [document]}]), "a")


def test_context_is_one_text_and_fields_without_effect_are_named() -> None:
    request = read(context=[{"description": "Page", "value": "9"}], forwardedProps={"a": 1}, unknown=2)
    assert context_text(request) == "Page: 9"
    assert request.ignored == ("forwardedProps", "unknown")


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"threadId": ""}, "threadId"),
        ({"messages": [{"id": "m", "role": "robot", "content": ""}]}, "messages[0].role"),
        ({"messages": [{"id": "m", "role": "user", "content": {"a": 1}}]}, "messages[0].content"),
        ({"messages": [{"id": "m", "role": "tool", "content": "x"}]}, "messages[0].toolCallId"),
        ({"messages": [{"id": "m", "role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"messages": [{"id": "m", "role": "user", "content": [{"type": "video"}]}]}, "messages[0].content[0]"),
        ({"tools": [{"name": "a b", "description": ""}]}, "tools[0].name"),
        ({"resume": [{"interruptId": "i", "status": "maybe"}]}, "resume[0].status"),
    ],
)
def test_a_mistake_names_its_field(changes: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as caught:
        chat_settings(read(**changes), "a")
    assert (caught.value.status, caught.value.param) == (400, param)
