"""Questions that the model puts to a person in the middle of a run: what marks them, and what form an answer takes.

A question is a call of `ask_user`, about which the policy always asks. Its answer is the approval of the call, with
the words of the person in place of the arguments; the observation follows from that alone, and no tool runs. So a
question waits, is answered once, replayed and recovered as any call that waits for a person.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from taoloop.core.cards.tool_card import ToolCard

ASK_USER: Final = "ask_user"
"""The tool by which a model asks."""

ANSWER: Final = "answer"
"""The field of the form, and the name under which the approval holds the answer."""

AnswerFormat = Literal["text", "number", "integer", "yes_no", "date", "email"]
"""What kind of answer the model needs."""

MAX_ANSWER_CHARS: Final = 20_000
"""The most characters of an answer."""

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
    """The answers that a question offers; empty: any."""
    choices = args.get("choices") if isinstance(args, Mapping) else None
    is_list = isinstance(choices, Sequence) and not isinstance(choices, str)
    return tuple(map(str, choices)) if is_list and choices is not None else ()


def answer_form(args: Any) -> dict[str, Any]:
    """The JSON Schema of the form that asks for the answer: an object with the one field `answer`."""
    kind = args.get("format") if isinstance(args, Mapping) else None
    choices = choices_of(args)
    schema = {"type": "string", "enum": list(choices)} if choices else _SCHEMAS.get(str(kind), _SCHEMAS["text"])
    return {"type": "object", "properties": {ANSWER: schema}, "required": [ANSWER], "additionalProperties": False}


def answer_text(args: Mapping[str, Any]) -> str:
    """An answer as the model reads it: a text as it stands, anything else as JSON."""
    value = args.get(ANSWER)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def is_own_words(requested: Any, answer: Mapping[str, Any]) -> bool:
    """Whether the person wrote an answer themselves. One of the choices is a text of the model."""
    value = answer.get(ANSWER)
    return not isinstance(value, bool) and value not in choices_of(requested)
