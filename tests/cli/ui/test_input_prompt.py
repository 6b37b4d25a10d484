"""A form of a running call at the terminal: what is shown, and what each thing that is typed does."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping
from typing import Any

import pytest

from taoloop.cli.ui.event_view import RowWriter, console_for
from taoloop.cli.ui.input_prompt import ask_input
from taoloop.runtime.approvals.request import ApprovalRequest
from taoloop.tools.input_question import InputQuestion

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2},
        "size": {"type": "integer", "default": 3},
        "colours": {"type": "array", "items": {"enum": ["red", "blue"]}},
        "gift": {"type": "boolean"},
    },
    "required": ["name", "gift"],
}


def fill(*lines: str | None, language: Any = "en", **question: Any) -> tuple[str, Mapping[str, Any] | None, str]:
    """What the person did, the fields, and all that they saw; `lines` are typed one after the other."""
    shown, typed = io.StringIO(), iter(lines)

    async def read_line(prompt: str) -> str | None:
        shown.write(prompt)
        return next(typed)

    request = ApprovalRequest(
        run_id="r",
        call_id="c",
        tool="shop.order",
        args={},
        reasons=(),
        card=None,
        question=InputQuestion(asker="MCP server 'shop'", message="Who\x1b[2J are you?", **question),
        expires_at=0.0,
    )
    pen = RowWriter(console_for(shown), language)
    action, content = asyncio.run(ask_input(pen, request, read_line))
    assert next(typed, "end") == "end", "everything was asked for"
    return action, content, shown.getvalue()


def test_a_form_is_filled_in_field_by_field_and_shown_before_it_is_sent() -> None:
    lines = ["f", "A", "Ada", "", "red, blue", "maybe", "yes", "y"]
    action, content, shown = fill(*lines, fields=FORM)
    assert action == "accept"
    assert content == {"name": "Ada", "size": 3, "colours": ["red", "blue"], "gift": True}
    assert "MCP server 'shop' asks you, during shop.order:" in shown
    assert "\x1b" not in shown, "a server does not steer the terminal"
    assert "Your name (string): " in shown
    assert "red | blue; several, with commas between them; Enter: leave it out" in shown
    assert "Until " in shown
    assert 'name = "Ada"' in shown


@pytest.mark.parametrize(
    ("lines", "action"),
    [
        (["n"], "decline"),
        (["q"], "cancel"),
        ([None], "cancel"),
        (["y", "what", "no"], "decline"),
        (["f", None], "cancel"),
    ],
)
def test_a_form_is_refused_or_closed(lines: list[str | None], action: str) -> None:
    assert fill(*lines, fields=FORM)[:2] == (action, None)


def test_what_is_filled_in_can_be_filled_in_again() -> None:
    form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    assert fill("f", "Ada", "f", "Bob", "y", fields=form)[:2] == ("accept", {"name": "Bob"})
    assert fill("f", "Ada", "n", fields=form)[:2] == ("decline", None)


def test_a_question_without_fields_is_a_yes_or_a_no() -> None:
    form = {"type": "object", "properties": {}}
    assert fill("y", fields=form)[:2] == ("accept", {})
    assert fill("n", fields=form)[:2] == ("decline", None)


def test_a_page_is_shown_whole_and_opened_by_the_person() -> None:
    action, content, shown = fill("y", url="https://pay.example/x?token=abc")
    assert (action, content) == ("accept", {})
    assert "https://pay.example/x?token=abc" in shown
    assert "look at the host first" in shown


def test_a_form_that_asks_for_a_secret_is_warned_about() -> None:
    form = {"type": "object", "properties": {"password": {"type": "string"}}}
    assert "This form asks for password. Do not give secrets in a form" in fill("n", fields=form)[2]


def test_a_form_in_chinese() -> None:
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    action, content, shown = fill("填写", "Ada", "同意", fields=form, language="zh")
    assert (action, content) == ("accept", {"name": "Ada"})
    assert "期间提问" in shown
