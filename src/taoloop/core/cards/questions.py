"""Questions that the model puts to a person in the middle of a run: what marks them, and what form an answer takes.

A question is a call of `ask_user`, about which the policy always asks. Its answer is the approval of the call, with
the words of the person in place of the arguments; the observation follows from that alone, and no tool runs. So a
question waits, is answered once, replayed and recovered as any call that waits for a person.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.redaction.patterns import secret_name_strength
from taoloop.core.text import lazy_pattern

ASK_USER: Final = "ask_user"
"""The tool by which a model asks."""

ANSWER: Final = "answer"
"""The field of the form, and the name under which the approval holds the answer."""

AnswerFormat = Literal["text", "number", "integer", "yes_no", "date", "email"]
"""What kind of answer the model needs."""

STARTED_BY: Final = "started_by"
"""The label of a run that says who started it, as `channel:name` (`starter_of`); inner runs inherit it."""

MAX_ANSWER_CHARS: Final = 20_000
"""The most characters of an answer."""

_WORDS = lazy_pattern(r"[^\W_](?:[\w-]{0,60}\w)?")
_CODES = lazy_pattern(
    r"\b(?:pin|cvv|cvc|otp|(?:card|security) number|(?:one[- ]time|verification|security|recovery) (?:code|password)s?"
    r"|seed phrase)\b|密码|口令|密钥|私钥|令牌|验证码|卡号|动态码|助记词",
    re.IGNORECASE,
)
_PARAMETERS = {"question", "choices", "format"}
_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "text": {"type": "string", "minLength": 1, "maxLength": MAX_ANSWER_CHARS},
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "yes_no": {"type": "boolean"},
    "date": {"type": "string", "format": "date", "pattern": r"^\d{4}-\d{2}-\d{2}$"},
    "email": {"type": "string", "format": "email", "pattern": r"^[^@\s]+@[^@\s]+$", "maxLength": 320},
}


def is_question(card: ToolCard | None) -> bool:
    """Whether calls of this tool are questions to a person: the built-in one, and no other tool of its name."""
    return card is not None and card.name == ASK_USER and card.requires_approval and set(card.parameters) == _PARAMETERS


def choices_of(args: Any) -> tuple[str, ...]:
    """The answers that a question offers, each once; empty: any."""
    choices = args.get("choices") if isinstance(args, Mapping) else None
    is_list = isinstance(choices, Sequence) and not isinstance(choices, str)
    return tuple(dict.fromkeys(map(str, choices))) if is_list and choices is not None else ()


def answer_form(args: Any) -> dict[str, Any]:
    """The JSON Schema of the form that asks for the answer: an object with the one field `answer`."""
    kind = args.get("format") if isinstance(args, Mapping) else None
    choices = choices_of(args)
    schema = {"type": "string", "enum": list(choices)} if choices else _SCHEMAS.get(str(kind), _SCHEMAS["text"])
    return {"type": "object", "properties": {ANSWER: schema}, "required": [ANSWER], "additionalProperties": False}


def secret_asked_for(question: str) -> str:
    """The words by which a question seems to ask for a secret; empty where none do."""
    if (match := _CODES.search(question)) is not None:
        return match[0]
    words = _WORDS.findall(question)
    phrases = (" ".join(words[index : index + size]) for size in (1, 2) for index in range(len(words)))
    return next((phrase for phrase in phrases if secret_name_strength(phrase)), "")


def answer_text(args: Mapping[str, Any]) -> str:
    """An answer as the model reads it: a text as it stands, anything else as JSON."""
    value = args.get(ANSWER)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def starter_of(labels: Mapping[str, str]) -> str:
    """Who started the run with these labels, as `channel:name`; empty: nobody knows, such as on a server without keys.

    The channel is how that is known, in the words of `ApprovalGiven.authenticated`. A run of a library has no label:
    its program may vouch for the answers of its `user` (`program`).
    """
    if STARTED_BY in labels:
        return labels[STARTED_BY]
    if "key" in labels:
        return f"gateway_key:{labels['key']}" if labels["key"] else ""
    return f"program:{labels.get('user') or 'user'}"


def is_by_starter(labels: Mapping[str, str], by: str, authenticated: str) -> bool:
    """Whether an answer is of the person who started the run, over a channel that knows who answers.

    In a panel of one machine the operator gave the names, so the user of the system is known there by theirs.
    """
    channel, _, name = starter_of(labels).partition(":")
    channels = ("os_user", "panel_token") if channel == "os_user" else (channel,)
    return bool(name) and by == name and authenticated in channels


def is_own_words(requested: Any, answer: Mapping[str, Any]) -> bool:
    """Whether the person wrote an answer themselves. One of the choices is a text of the model."""
    value = answer.get(ANSWER)
    return not isinstance(value, bool) and value not in choices_of(requested)
