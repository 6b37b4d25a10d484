"""Filling in the form of a running call at the terminal, such as an elicitation of an MCP server."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from taoloop.cli.ui.event_view import RowWriter, format_local_time
from taoloop.core.cards.questions import choices_of
from taoloop.core.redaction.patterns import secret_name_strength
from taoloop.core.text import escape_invisible
from taoloop.dialects.parsing.strict_json import NotJsonError, loads
from taoloop.runtime.approvals.input_requests import misfit_of
from taoloop.runtime.approvals.request import NO_WORDS, YES_WORDS, ApprovalRequest
from taoloop.runtime.approvals.user_questions import answer_value, question_warnings
from taoloop.tools.input_question import InputQuestion
from taoloop.translation import mark

ReadLine = Callable[[str], Awaitable[str | None]]
"""Shows a prompt and gives the line that the person types; None at the end of input."""

_TITLE = mark("{asker} asks you, during {tool}:")
_WARNING = mark("The words above are the server's. What you fill in goes to it, and not to the model.")
_TO_MODEL = mark(
    "The model wrote this, and reads your answer. It counts as words of the task if you started the run; it approves no"
    " call."
)
_SECRET = mark("This form asks for {name}. Do not give secrets in a form: a server is to open a page for that.")
_PAGE = mark("It wants you to open this page in a browser; look at the host first:")
_MENU_FORM = mark("[f] fill in   [n] refuse   [q] close without an answer: ")
_MENU_CONFIRM = mark("[y] yes   [n] refuse   [q] close without an answer: ")
_MENU_PAGE = mark("[y] I have opened it   [n] refuse   [q] close without an answer: ")
_MENU_SEND = mark("[y] send this   [f] fill in again   [n] refuse   [q] close without an answer: ")
_UNTIL = mark("Until {time}, then it counts as declined.")
_DEFAULT = mark("Enter: {value}")
_OPTIONAL = mark("Enter: leave it out")
_SEVERAL = mark("several, with commas between them")

_FILL = ("f", "fill", "填", "填写")
_LATER = ("q", "quit", "later", "以后", "稍后")


async def ask_input(pen: RowWriter, request: ApprovalRequest, read_line: ReadLine) -> tuple[str, dict[str, Any] | None]:
    """What the person does (`accept`, `decline`, `cancel`), and the fields as they were filled in."""
    question = request.question
    assert question is not None  # noqa: S101  # the caller looked
    _show(pen, request, question)
    if not question.properties:
        menu = _MENU_PAGE if question.url else _MENU_CONFIRM
        action = await _choose(pen, menu, read_line, may_fill=False)
        return action, {} if action == "accept" else None
    action = await _choose(pen, _MENU_FORM, read_line, may_send=False)
    while action == "fill":
        content = await _fill_in(pen, request, question, read_line)
        if content is None:
            return "cancel", None
        for name, value in content.items():
            pen.line(f"   {_shown(pen, name)} = {_shown(pen, json.dumps(value, ensure_ascii=False))}")
        if problems := misfit_of(question.fields or {}, content):
            pen.line(f"   {problems}", "red")
            action = await _choose(pen, _MENU_FORM, read_line, may_send=False)
            continue
        action = await _choose(pen, _MENU_SEND, read_line)
        if action == "accept":
            return action, content
    return action, None


def _show(pen: RowWriter, request: ApprovalRequest, question: InputQuestion) -> None:
    pen.gap()
    title = pen.text(_TITLE, asker=_shown(pen, question.asker), tool=_shown(pen, request.tool))
    pen.row("Question", title, style="bold yellow", body="bold")
    for line in question.message.splitlines():
        pen.line(f"   │ {_shown(pen, line)}")
    for number, choice in enumerate(choices_of(request.args) if question.from_model else (), 1):
        pen.line(f"   {number}. {_shown(pen, choice)}")
    if question.url:
        pen.line("   " + pen.text(_PAGE))
        pen.line(f"   {_shown(pen, question.url)}", "bold")
    else:
        pen.line("   " + pen.text(_TO_MODEL if question.from_model else _WARNING), "dim")
        show_warnings(pen, question)
        for name in question.properties:
            if secret_name_strength(name):
                pen.line("   " + pen.text(_SECRET, name=_shown(pen, name)), "bold red")
    if request.expires_at is not None:
        pen.line("   " + pen.text(_UNTIL, time=format_local_time(request.expires_at)), "dim")


def show_warnings(pen: RowWriter, question: InputQuestion) -> None:
    """What the person should know about a question of the model, each on a line of its own."""
    for warning in question_warnings(question, pen.language):
        pen.line(f"   {_shown(pen, warning)}", "bold red")


async def _choose(
    pen: RowWriter, menu: str, read_line: ReadLine, *, may_fill: bool = True, may_send: bool = True
) -> str:
    """`accept`, `fill`, `decline` or `cancel`; asks again until it is one of those on offer."""
    while True:
        line = await read_line(pen.text(menu))
        if line is None:
            return "cancel"
        typed = line.strip().lower()
        if typed in _LATER:
            return "cancel"
        if typed in NO_WORDS:
            return "decline"
        if may_fill and typed in _FILL:
            return "fill"
        if may_send and typed in YES_WORDS:
            return "accept"


async def _fill_in(
    pen: RowWriter, request: ApprovalRequest, question: InputQuestion, read_line: ReadLine
) -> dict[str, Any] | None:
    """The fields one after the other; None at the end of input."""
    content: dict[str, Any] = {}
    required = (question.fields or {}).get("required") or ()
    for name, rule in question.properties.items():
        schema = rule if isinstance(rule, Mapping) else {}
        if text := schema.get("description"):
            pen.line(f"   {_shown(pen, str(text))}", "dim")
        while True:
            line = await read_line(_label(pen, name, schema, is_required=name in required))
            if line is None:
                return None
            if not line.strip():
                if "default" in schema:
                    content[name] = schema["default"]
                if "default" in schema or name not in required:
                    break
            text = line.strip()
            value = answer_value(request, text) if question.from_model else _value_of(text, schema)
            problems = misfit_of({"type": "object", "properties": {name: dict(schema)}}, {name: value})
            if not problems:
                content[name] = value
                break
            pen.line(f"   {problems}", "red")
    return content


def _label(pen: RowWriter, name: str, schema: Mapping[str, Any], *, is_required: bool) -> str:
    """The prompt of one field: its title, what it takes, and what Enter alone means."""
    title = str(schema.get("title") or name)
    options = _options(schema)
    kind = " | ".join(options) if options else str(schema.get("format") or schema.get("type") or "")
    hints = [kind] if kind else []
    if schema.get("type") == "array":
        hints.append(pen.text(_SEVERAL))
    if "default" in schema:
        hints.append(pen.text(_DEFAULT, value=json.dumps(schema["default"], ensure_ascii=False)))
    elif not is_required:
        hints.append(pen.text(_OPTIONAL))
    return f"   {_shown(pen, title)} ({_shown(pen, '; '.join(hints))}): "


def _options(schema: Mapping[str, Any]) -> list[str]:
    """The values of an enumeration, with their titles where they have any: `value (title)`."""
    items = schema.get("items")
    schema = items if isinstance(items, Mapping) else schema
    entries = schema.get("oneOf") or schema.get("anyOf")
    if isinstance(entries, list):
        pairs = [(str(entry.get("const")), entry.get("title")) for entry in entries if isinstance(entry, Mapping)]
        return [value if title in (None, value) else f"{value} ({title})" for value, title in pairs]
    values, titles = schema.get("enum"), schema.get("enumNames")
    if not isinstance(values, list):
        return []
    if isinstance(titles, list) and len(titles) == len(values):
        return [f"{value} ({title})" for value, title in zip(values, titles, strict=True)]
    return [str(value) for value in values]


def _value_of(text: str, schema: Mapping[str, Any]) -> Any:
    """What was typed as a value of the field's type; as text where it is none, which the schema then refuses."""
    kind = schema.get("type")
    if kind == "array":
        return [part.strip() for part in text.replace("，", ",").split(",") if part.strip()]
    if kind == "boolean" and text.lower() in (*YES_WORDS, *NO_WORDS):
        return text.lower() in YES_WORDS
    if kind in ("integer", "number", "boolean"):
        try:
            return loads(text)
        except NotJsonError:
            return text
    return text


def _shown(pen: RowWriter, text: str) -> str:
    """A text on one line, with nothing in it that a terminal would act on or not show."""
    encoding = pen.console.encoding
    return escape_invisible(" ".join(text.splitlines())).encode(encoding, "backslashreplace").decode(encoding)
