"""`ask_user`: a question to the person whose task it is, in the middle of a run. The run waits without a process."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from taoloop.core.cards.questions import AnswerFormat
from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.core.text import chinese_texts
from taoloop.tools.function import tool
from taoloop.tools.texts import TEXTS


@tool(
    name="ask_user",
    tier="read",
    approval="required",
    use_when="Only the person knows what is missing, such as a wish, or which of several things is meant.",
    avoid_when="A tool can find it out, the task says it already, or the call to be made is asked about anyway.",
    errors=(
        ErrorCard(code="refused", advice="Go on without the answer, or say what is missing."),
        ErrorCard(code="no_person", advice="Go on without the answer, or say what is missing."),
    ),
    examples=(
        ExampleCard(args={"question": "Which of the two invoices do you mean?", "choices": ["R-17", "R-71"]}),
        ExampleCard(args={"question": "From which day on?", "format": "date"}),
    ),
    egress=False,
    roles={"question": "content", "choices": "content", "format": "minor"},
    chinese=chinese_texts("tools"),
)
def ask_user(
    question: Annotated[str, Field(min_length=1, max_length=4_000)],  # noqa: ARG001  # the run shows it
    choices: Annotated[  # noqa: ARG001  # as above
        list[Annotated[str, Field(min_length=1, max_length=200)]] | None, Field(min_length=2, max_length=20)
    ] = None,
    format: AnswerFormat = "text",  # noqa: A002, ARG001  # the word that a model expects
) -> Any:
    """Ask the person one question and wait for the answer, which may take days; nothing is approved by it.

    Args:
        question: One question, complete in itself: the person may not have seen anything else of this run.
        choices: 2 to 20 answers to choose from, each different; without them the person writes one.
        format: What is expected where there are no choices: text, number, integer, yes_no, date or email.
    """
    raise TEXTS.error("no_person", "no_person")  # a run answers the call itself (`core/cards/questions.py`)
