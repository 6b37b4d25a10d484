"""`read_observation` and `ask_about`: tools that read earlier observations of the run.

The first pages and searches the whole of an output of which the model saw a preview. The second lets a model without
tools read observations, for a planning model that sees only handles of them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pydantic_core
from pydantic import Field

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.core.handles import READER
from taoloop.core.images import Image
from taoloop.core.search import PointerError, find_text, resolve_json_pointer
from taoloop.core.text import chinese_texts
from taoloop.tools.function import tool
from taoloop.tools.texts import TEXTS
from taoloop.tools.tool import RunContext  # `tool` reads the annotations

MAX_CHARS = 8_000
_MAX_MATCHES = 20


@tool(
    name="read_observation",
    tier="read",
    use_when="An observation was cut to a preview, and the part that was left out matters.",
    avoid_when="The observation was shown whole, or the preview answers the question already.",
    errors=(
        ErrorCard(code="unknown_artifact", advice="Use the artifact name that the cut observation gave."),
        ErrorCard(code="out_of_range", advice="Start at a smaller position."),
        ErrorCard(code="bad_pointer", advice="Use a pointer such as /items/0/name that exists in the JSON."),
        ErrorCard(code="not_json", advice="Leave the pointer away and read by position."),
    ),
    examples=(
        ExampleCard(args={"artifact": "obs_call_1", "start": 3000}, note="the second page"),
        ExampleCard(args={"artifact": "obs_call_1", "search": "error"}, note="where a text stands"),
        ExampleCard(args={"artifact": "obs_call_1", "pointer": "/items/3/name"}, note="one value of a JSON output"),
    ),
    idempotent=True,
    max_preview_chars=MAX_CHARS + 500,  # a page is never cut again
    chinese=chinese_texts("tools"),
)
async def read_observation(
    artifact: str,
    start: Annotated[int, Field(ge=0)] = 0,
    chars: Annotated[int, Field(ge=1, le=MAX_CHARS)] = 3_000,
    search: str | None = None,
    pointer: str | None = None,
    *,
    context: RunContext,
) -> str | Image:
    """Read one part of an earlier long output of this run: by position, by text or by JSON pointer.

    At most 8,000 characters at once; outputs of other runs cannot be read.

    Args:
        artifact: The name that the cut observation gave for its whole output.
        start: The first character to show, from 0; with a search, where the search begins.
        chars: How many characters to show, 1 to 8,000.
        search: A text to find, in any case; shows the places where it stands instead of a page.
        pointer: A JSON pointer such as /items/3/name; shows that value of a JSON output only.
        context: Given by the runtime.
    """
    if (image := await context.read_image(artifact)) is not None:
        return image
    whole = await context.read_artifact(artifact)
    if whole is None:
        raise TEXTS.error("unknown_artifact", "unknown_artifact", name=artifact[:80])
    text = whole if pointer is None else _value_at(whole, pointer)
    if start > len(text) or (start == len(text) and text):
        raise TEXTS.error("out_of_range", "out_of_range", start=start, size=len(text))
    return _matches(text, search, start, chars) if search else _page(text, start, chars)


def _page(text: str, start: int, chars: int) -> str:
    end = min(len(text), start + chars)
    after = TEXTS.run_text("next_page", end=end) if end < len(text) else TEXTS.run_text("last_page")
    head = TEXTS.run_text("page", start=start, end=end, size=len(text), after=after)
    return f"{head}\n{text[start:end]}"


def _matches(text: str, search: str, start: int, chars: int) -> str:
    matches, count = find_text(text[start:] if start else text, search, at_most=_MAX_MATCHES)
    lines: list[str] = []
    room = chars
    for match in matches:
        line = TEXTS.run_text("match", start=match.start + start, context=match.context)
        if lines and len(line) + 1 > room:
            break
        lines.append(line[:room])
        room -= len(line) + 1
    note = TEXTS.run_text("matches_cut", count=len(lines)) if len(lines) < count else ""
    head = TEXTS.run_text("matches", count=count, text=search[:80], start=start, size=len(text), note=note)
    return "\n".join([head, *lines])


def _value_at(whole: str, pointer: str) -> str:
    try:
        document = pydantic_core.from_json(whole)
    except ValueError:
        raise TEXTS.error("not_json", "not_json") from None
    try:
        value = resolve_json_pointer(document, pointer)
    except PointerError as error:
        raise TEXTS.error("bad_pointer", "bad_pointer", reason=error, pointer=pointer[:80]) from None
    return value if isinstance(value, str) else pydantic_core.to_json(value).decode()


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
    chinese=chinese_texts("tools"),
)
async def ask_about(
    handles: Annotated[list[str], Field(min_length=1, max_length=_MAX_HANDLES)],
    question: Annotated[str, Field(min_length=1, max_length=_MAX_QUESTION_CHARS)],
    answer: Literal["text", "number", "date", "email", "yes_no"] | Choices,
    *,
    context: RunContext,
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
        raise TEXTS.error("no_reader", "reader_failed")
    return await context.parent_run.answer(handles, question, answer)
