"""Exports of conversations, which come in again as they went out."""

from __future__ import annotations

from typing import Any

import pytest
from tests.pictures import PDF, png

from taoloop import Agent, File, Image, MemoryJournal, ScriptedModel, tool
from taoloop.core.message import Message, ToolCallText
from taoloop.errors import ConfigError
from taoloop.runtime.conversations.imported_history import read_history


@tool(tier="read")
def look(at: str) -> str:
    """Look at something."""
    return f"one {at}"


LOOK = {"tool_calls": [{"name": "look", "args": {"at": "mail"}}]}


def agent(*replies: Any) -> Agent:
    return Agent(model=ScriptedModel(list(replies)), tools=[look], journal=MemoryJournal())


def test_a_conversation_is_exported_in_both_forms() -> None:
    chat = agent(LOOK, "One mail.").chat()
    assert chat.messages_sync() == []
    chat.run_sync("What is new?", history=[{"role": "user", "content": "Hello."}])
    chat.run_sync("And now?")
    own, plain = chat.messages_sync(), chat.messages_sync("openai")
    assert own[1] == Message(role="user", content="What is new?")
    assert own[2].tool_calls == (ToolCallText(name="look", arguments='{"at": "mail"}', id="call_1"),)
    assert own[3] == Message(role="tool", content="one mail", tool_call_id="call_1")
    assert [message["role"] for message in plain] == ["user", *["user", "assistant", "tool", "assistant"] * 2]
    assert plain[6] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_2", "type": "function", "function": {"name": "look", "arguments": '{"at": "mail"}'}}
        ],
    }
    assert plain[7:] == [
        {"role": "tool", "content": "one mail", "tool_call_id": "call_2"},
        {"role": "assistant", "content": "One mail."},
    ]
    assert read_history(plain) == read_history(own)
    again = agent("Yes.").run_sync("Go on.", history=plain)
    assert again.trace.started is not None
    assert again.trace.started.tainted


def test_an_image_goes_out_and_comes_in_again() -> None:
    chat = agent("I see.").chat()
    chat.run_sync("Look.", images=[Image(png())])
    [user, _] = chat.messages_sync("openai")
    assert user["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert read_history([user]).attachments[0].data == png()


def test_a_file_goes_out_and_comes_in_again() -> None:
    chat = agent("I see.").chat()
    chat.run_sync(["Look.", File(PDF, name="offer.pdf"), Image.from_url("https://a.example/b.png")])
    [user, _] = chat.messages_sync("openai")
    assert user["content"][1]["image_url"]["url"] == "https://a.example/b.png"
    assert user["content"][2]["file"]["filename"] == "offer.pdf"
    assert read_history([{"role": "user", "content": [user["content"][2]]}]).attachments == (
        File(PDF, name="offer.pdf"),
    )


def test_a_session_is_exported_from_any_chat_of_it() -> None:
    one = agent("I see.")
    one.run_sync("I am Ann.", session="s")
    assert [message.content for message in one.chat(session="s").messages_sync()] == ["I am Ann.", "I see."]


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(ConfigError, match="form of messages is 'xml'"):
        agent().chat().messages_sync("xml")  # type: ignore[call-overload]
