"""What there is of an answer whose reply was cut by its provider: at the limit of tokens, or by a filter."""

from __future__ import annotations

from taoloop.core.message import Delta
from taoloop.dialects.answer_stream import AnswerStream


def beginning_of_answer(text: str, dialect: str, *, tools_offered: bool) -> str:
    """The part of a reply of which it is certain that the final answer begins so; "" where there is none.

    It is what whoever hears the reply while it is written has of the answer by then.
    """
    stream = AnswerStream(dialect, tools_offered=tools_offered, has_schema=False)
    return stream.feed(Delta(kind="text", text=text))
