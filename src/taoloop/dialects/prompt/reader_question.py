"""The question to a model without tools that reads observations for one that must not, and how its reply is read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Literal

from taoloop.core.message import Message
from taoloop.core.prompts import PromptSet
from taoloop.dialects.parsing.cleanup import strip_thinking
from taoloop.dialects.parsing.json_repair import parse_value
from taoloop.dialects.parsing.parse_error import ReplyParseError
from taoloop.dialects.parsing.strict_json import NotJsonError
from taoloop.dialects.prompt.untrusted_frame import defuse_markers

AnswerKind = Literal["text", "number", "date", "email", "yes_no"]

_EMAIL = re.compile(r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_EXPECTED: dict[str, dict[str, str]] = {
    "en": {
        "text": "a text",
        "number": "a number",
        "date": 'a date as a text such as "2026-01-31"',
        "email": "one e-mail address as a text",
        "yes_no": "true for yes, false for no",
        "choice": "one of these texts, word for word: {choices}",
    },
    "zh": {
        "text": "一段文本",
        "number": "一个数字",
        "date": '一个日期文本，例如 "2026-01-31"',
        "email": "一个电子邮件地址（文本）",
        "yes_no": "是为 true，否为 false",
        "choice": "下列文本之一，逐字照抄：{choices}",
    },
}


def question_prompt(
    prompts: PromptSet, nonce: str, question: str, kind: AnswerKind | Sequence[str], contents: Mapping[str, str]
) -> tuple[Message, ...]:
    """The whole prompt: the rules of reading, and the question with the contents in the frame for untrusted data."""
    parts = [f"[{handle}]\n{defuse_markers(text, nonce)}" for handle, text in contents.items()]
    filled = prompts.fill(
        "handles_question",
        question=question,
        answer=_describe_answer(prompts.language, kind),
        nonce=nonce,
        content="\n\n".join(parts),
    )
    return (
        Message(role="system", content=prompts.fill("handles_read")),
        Message(role="user", content=filled),
    )


def answer_schema(kind: AnswerKind | Sequence[str]) -> dict[str, Any]:
    """What the text of the reply must fit, for providers with structured output."""
    kinds: dict[str, Any] = {"number": {"type": ["number", "null"]}, "yes_no": {"type": ["boolean", "null"]}}
    value = kinds.get(kind, {"type": ["string", "null"]}) if isinstance(kind, str) else _choice_schema(kind)
    return {"type": "object", "properties": {"answer": value}, "required": ["answer"], "additionalProperties": False}


def parse_reader_answer(text: str, kind: AnswerKind | Sequence[str]) -> Any:
    """The answer in a reply, held to what was wanted; None where there is none that fits."""
    try:
        text = strip_thinking(text).strip()
        answer = parse_value(text, text.index("{")).value
    except (ReplyParseError, NotJsonError, ValueError):
        answer = None
    value = answer["answer"] if isinstance(answer, dict) and "answer" in answer else None if answer else text
    if not isinstance(kind, str):
        return _match_choice(value, kind)
    return _READERS[kind](value)


def _choice_schema(choices: Sequence[str]) -> dict[str, Any]:
    return {"type": ["string", "null"], "enum": [*choices, None]}


def _describe_answer(language: str, kind: AnswerKind | Sequence[str]) -> str:
    texts = _EXPECTED.get(language, _EXPECTED["en"])
    if isinstance(kind, str):
        return texts[kind]
    return texts["choice"].format(choices=" | ".join(kind))


def _match_choice(value: Any, choices: Sequence[str]) -> str | None:
    answer = value.strip().casefold() if isinstance(value, str) else None
    return next((choice for choice in choices if choice.strip().casefold() == answer), None)


def _parse_text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _parse_number(value: Any) -> int | float | None:
    if isinstance(value, str):
        try:
            value = float(value.replace(",", "").strip())
        except ValueError:
            return None
        value = int(value) if math.isfinite(value) and value.is_integer() else value
    whole = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if whole else None


def _parse_date(value: Any) -> str | None:
    try:
        return date.fromisoformat(value.strip()).isoformat() if isinstance(value, str) else None
    except ValueError:
        return None


def _parse_email(value: Any) -> str | None:
    address = value.strip() if isinstance(value, str) else ""
    return address if _EMAIL.fullmatch(address) else None


def _parse_yes_no(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"yes": True, "true": True, "是": True, "no": False, "false": False, "否": False}.get(
            value.strip().rstrip(".。").casefold()
        )
    return value if isinstance(value, bool) else None


_READERS = {
    "text": _parse_text,
    "number": _parse_number,
    "date": _parse_date,
    "email": _parse_email,
    "yes_no": _parse_yes_no,
}
