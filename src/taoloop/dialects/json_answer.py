"""The JSON value in the text of a final answer, for runs with an output schema."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from taoloop.dialects.strict import NotJsonError, loads

_FENCED = re.compile(r"(?P<before>[^`]*)(?P<fence>`{3,})(?:json)?[ \t]*\n(?P<body>.*?)\n?(?P=fence)\s*", re.DOTALL)


def answer_values(text: str) -> tuple[list[Any], str, str]:
    """What the text of an answer may stand for, the likeliest first; the prose before it; why it is no JSON.

    It is JSON; or one fenced block of JSON at the end, what stands before it being the reason; or a JSON string that
    holds JSON; or, last of all, the bare text itself, for schemas of texts. The error is empty where it is JSON.
    """
    fenced = _FENCED.fullmatch(text)
    body, before = (fenced["body"], fenced["before"].strip()) if fenced else (text, "")
    try:
        value = loads(body)
    except NotJsonError as error:
        return [text], "", str(error)
    values = [value]
    if isinstance(value, str):
        with suppress(NotJsonError):
            values.append(loads(value))
    elif not fenced:
        values.append(text)
    return values, before, ""
