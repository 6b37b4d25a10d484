"""Questions that a tool puts to a person while its call runs, and the answers (elicitation, in MCP)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

InputAction = Literal["accept", "decline", "cancel"]
"""What a person did with a question: filled it in or agreed, refused, or closed it without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputQuestion:
    """A question to a person, in the words of a third party. Exactly one of `fields` and `url` is set."""

    asker: str
    """Who asks, such as `MCP server 'tickets'`."""

    message: str
    """What it says. It is untrusted text."""

    fields: Mapping[str, Any] | None = None
    """A form: the JSON Schema of an object whose properties are to be filled in; without properties, a yes or a no."""

    url: str = ""
    """A page that the person is to open; what happens there stays between the person and the page."""

    from_model: bool = False
    """Whether the model asks, and reads the answer; otherwise a third party does, and the model does not."""

    read_before: tuple[str, ...] = ()
    """Of a question of the model, the calls whose untrusted outputs it had read, as `tool (call_id)`, the newest first;
    an empty text is the task or the conversation."""

    quoted: tuple[str, ...] = ()
    """Those of them of which the question repeats a sentence."""

    secret: str = ""
    """The words by which it seems to ask for a secret; empty: it does not."""

    timeout_s: float = 300.0
    """How long an answer is waited for, in seconds."""

    @property
    def properties(self) -> dict[str, Any]:
        """The fields of the form by name."""
        properties = (self.fields or {}).get("properties")
        return dict(properties) if isinstance(properties, Mapping) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAnswer:
    """What came of a question."""

    action: InputAction
    """What the person did; `decline` also where nobody could be asked."""

    content: Mapping[str, Any] | None = None
    """The fields as they were filled in, which fit the form; None for a page, and where nothing was."""

    by: str = ""
    """Who answered; empty where nobody could be asked, or answered in time."""

    note: str = ""
    """What the person remarked, or why there is no answer."""


AskPerson = Callable[[InputQuestion], Awaitable[InputAnswer]]
"""Puts a question to the person who answers for a run. It never raises because of the person."""


async def ask_nobody(_question: InputQuestion) -> InputAnswer:
    """The answer where no person belongs to a call."""
    return InputAnswer(action="decline")
