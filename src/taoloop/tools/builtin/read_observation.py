"""`read_observation`: pages and searches the whole of an output of which the model saw a preview."""

from __future__ import annotations

from typing import Annotated

import pydantic_core
from pydantic import Field

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.core.search import PointerError, find_text, resolve_json_pointer
from taoloop.errors import ToolError
from taoloop.tools.function import tool
from taoloop.tools.tool import ToolContext  # `tool` reads the annotations

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
)
async def read_observation(
    artifact: str,
    start: Annotated[int, Field(ge=0)] = 0,
    chars: Annotated[int, Field(ge=1, le=MAX_CHARS)] = 3_000,
    search: str | None = None,
    pointer: str | None = None,
    *,
    context: ToolContext,
) -> str:
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
    whole = await context.read_artifact(artifact)
    if whole is None:
        raise ToolError(
            f"There is no artifact {artifact[:80]!r} in this run.",
            code="unknown_artifact",
            hint="Use the name that the cut observation gave.",
        )
    text = whole if pointer is None else _at(whole, pointer)
    if start > len(text) or (start == len(text) and text):
        raise ToolError(
            f"The text ends before position {start:,}: it has {len(text):,} characters.",
            code="out_of_range",
            hint="Start at a smaller position.",
        )
    return _matches(text, search, start, chars) if search else _page(text, start, chars)


def _page(text: str, start: int, chars: int) -> str:
    end = min(len(text), start + chars)
    after = f"next: start={end}" if end < len(text) else "this is the end"
    return f"[characters {start:,} to {end:,} of {len(text):,}; {after}]\n{text[start:end]}"


def _matches(text: str, search: str, start: int, chars: int) -> str:
    matches, count = find_text(text[start:] if start else text, search, at_most=_MAX_MATCHES)
    lines: list[str] = []
    room = chars
    for match in matches:
        line = f"at {match.start + start:,}: {match.context}"
        if lines and len(line) + 1 > room:
            break
        lines.append(line[:room])
        room -= len(line) + 1
    note = f", the first {len(lines)} shown" if len(lines) < count else ""
    head = f"[{count:,} matches of {search[:80]!r} from {start:,} of {len(text):,} characters{note}]"
    return "\n".join([head, *lines])


def _at(whole: str, pointer: str) -> str:
    try:
        document = pydantic_core.from_json(whole)
    except ValueError:
        raise ToolError("This output is not JSON.", code="not_json", hint="Leave the pointer away.") from None
    try:
        value = resolve_json_pointer(document, pointer)
    except PointerError as error:
        raise ToolError(str(error), code="bad_pointer") from None
    return value if isinstance(value, str) else pydantic_core.to_json(value).decode()
