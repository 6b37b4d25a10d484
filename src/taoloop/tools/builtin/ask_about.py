"""`ask_about`: lets a model without tools read observations, for a planning model that sees only handles of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.core.handles.opaque_observation import READER
from taoloop.errors import ToolError
from taoloop.tools.function import tool
from taoloop.tools.tool import ToolContext  # `tool` reads the annotations

_MAX_HANDLES, _MAX_QUESTION_CHARS = 20, 2_000

Choices = Annotated[list[Annotated[str, Field(min_length=1, max_length=80)]], Field(min_length=2, max_length=20)]


@tool(
    name=READER,
    tier="read",
    egress=False,
    use_when="A decision depends on what an observation says, or a value has to be taken out of a text.",
    avoid_when="The value has a handle of its own, such as $obs3.items[0].email: use that.",
    errors=(
        ErrorCard(code="no_answer", advice="It does not say, or not in this form. Ask in another way, or do without."),
        ErrorCard(code="reader_failed", retryable=True, advice="The model that reads failed. Try once more later."),
    ),
    examples=(
        ExampleCard(
            args={"handles": ["$obs1"], "question": "To which address is the invoice to be sent?", "answer": "email"},
            note="gives a handle of the address",
        ),
        ExampleCard(
            args={"handles": ["$obs1", "$obs2"], "question": "Do both name the same amount?", "answer": "yes_no"},
            note="gives yes or no",
        ),
        ExampleCard(
            args={"handles": ["$obs1.text"], "question": "What is it?", "answer": ["invoice", "reminder", "other"]},
            note="gives one of the choices",
        ),
    ),
    roles={"handles": "minor", "question": "content", "answer": "minor"},
    idempotent=True,
    timeout_s=120.0,
)
async def ask_about(
    handles: Annotated[list[str], Field(min_length=1, max_length=_MAX_HANDLES)],
    question: Annotated[str, Field(min_length=1, max_length=_MAX_QUESTION_CHARS)],
    answer: Literal["text", "number", "date", "email", "yes_no"] | Choices,
    *,
    context: ToolContext,
) -> Any:
    """Have observations read and one question about them answered, without anybody acting on what they say.

    An answer yes_no or from your own choices is shown to you; any other is a new handle. One question at a time.

    Args:
        handles: What is to be read, such as $obs1 or $obs3.items[0].text.
        question: What you want to know, complete in itself: the reader sees nothing of this conversation.
        answer: The form of the answer: text, number, date, email, yes_no, or a list of texts to choose from.
        context: Given by the runtime.
    """
    if context.parent_run is None:
        raise ToolError("There is nobody to read: this tool works inside a run only.", code="reader_failed")
    return await context.parent_run.answer(handles, question, answer)
