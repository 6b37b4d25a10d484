"""What people and the program's code add to a run: answers, marks and hooks; parts of the union of facts."""

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


HookMoment = Literal["before_model", "after_model", "before_tool", "after_tool", "output"]
"""Where a hook acts: before and after a model call or a tool call; `output` is a validator of answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookActed:
    """A hook of the program changed or refused something, or failed. A hook that only looked on is not recorded.

    It stands before what it is about: the reply, the request of the call, or the observation.
    """

    kind: ClassVar[Literal["hook_acted"]] = "hook_acted"
    hook: str
    """The name of the hook."""
    moment: HookMoment
    """Where it acted."""
    outcome: Literal["changed", "refused", "failed"]
    """What it did; `failed`: it raised, gave what is no answer, or took too long, which counts as a refusal."""
    step: int
    """The step that it belongs to."""
    call_id: str = ""
    """The call; empty for a model call and for an answer."""
    reason: str = ""
    """Why it refused, or how it failed."""
    change: Any = None
    """What holds from here on: the arguments, the output, the answer; for a model call, what differs in the request."""
