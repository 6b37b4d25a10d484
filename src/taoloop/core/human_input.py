"""What people add to a run beside approvals: answers and marks; parts of the union of `taoloop.core.events`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAnswered:
    """What came of a question that a running call put to a person, such as an elicitation of an MCP server.

    It is recorded before the answer is sent. The model does not read it.
    """

    kind: ClassVar[Literal["input_answered"]] = "input_answered"
    call_id: str
    """The call that asked."""
    asker: str
    """Who asked, such as `MCP server 'tickets'`."""
    message: str
    """The question, in the words of who asked."""
    action: Literal["accept", "decline", "cancel"]
    """The answer, in the words of the protocol: filled in or agreed to, refused, or closed without an answer."""
    fields: Mapping[str, Any] | None = None
    """The JSON Schema of the form; None where a page was to be opened."""
    url: str = ""
    """The page that was to be opened, without its query."""
    content: Mapping[str, Any] | None = None
    """What was filled in."""
    by: str = ""
    """Who answered; empty where nobody could be asked, or answered in time."""
    note: str = ""
    """What the person remarked, or why there was no answer."""
    authenticated: str = ""
    """As in `ApprovalGiven`."""


MarkVerdict = Literal["right", "wrong"]
"""What a person says of the outcome of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A person marked the outcome of a finished run. No model reads it; judges are calibrated against it.

    A later mark of the same person replaces the earlier one (`taoloop.core.views.marks`).
    """

    kind: ClassVar[Literal["marked"]] = "marked"
    verdict: MarkVerdict
    """Whether the outcome is right."""
    by: str
    """Who marked it."""
    note: str = ""
    """Why, in the person's words."""
    authenticated: str = ""
    """As in `ApprovalGiven`."""
