"""Hooks: the program's own code before and after the model calls and tool calls of an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic

from typing_extensions import TypeVar

from taoloop.core.decision import Call
from taoloop.core.effects import ModelRequest
from taoloop.core.events import Fault
from taoloop.core.message import ModelReply
from taoloop.tools.tool import RunContext

Deps = TypeVar("Deps", default=Any)
"""What the program gives the runs whose hooks these are."""

HOOK_TIMEOUT_S = 30.0
"""How many seconds a hook, or a validator of answers, may take by default."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer of a hook that does not let a call, a reply or an output pass."""

    reason: str
    """Why, for the model and for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """What a tool call came to, as a hook sees it: whole, before it is recorded."""

    ok: bool
    """Whether the call succeeded."""
    output: str
    """The whole output, without known secrets; empty for a call that failed."""
    error: Fault | None = None
    """Why it did not succeed."""


class Hooks(Generic[Deps]):
    """Base of a set of hooks: a subclass overrides the methods that it needs, as plain or `async` functions.

    A plain method runs in a thread. Hooks run in the order of `Agent(hooks=[...])`; each sees what those before it
    changed. What they change or refuse is in the trace (`HookActed`). One that raises or takes longer than `timeout_s`
    refuses: the tool call is denied, the output is withheld, the model call ends the run with the reason.
    """

    timeout_s: float = HOOK_TIMEOUT_S
    """How many seconds each call of a method may take."""

    @property
    def name(self) -> str:
        """What the trace calls it; the name of the class by default."""
        return type(self).__name__

    def before_model(
        self, ctx: RunContext[Deps], request: ModelRequest, /
    ) -> ModelRequest | Refusal | Awaitable[ModelRequest | Refusal | None] | None:
        """Look at a request, and return another one (`dataclasses.replace`) or a `Refusal`, which ends the run.

        The messages, `temperature`, `top_p`, `max_output_tokens`, `stop`, `timeout_s` and `settings` may differ.
        """

    def after_model(self, ctx: RunContext[Deps], reply: ModelReply, /) -> Refusal | Awaitable[Refusal | None] | None:
        """Look at a reply. A `Refusal` sends it back to the model with the reason, as an unreadable one."""

    def before_tool(
        self, ctx: RunContext[Deps], call: Call, /
    ) -> Mapping[str, Any] | Refusal | Awaitable[Mapping[str, Any] | Refusal | None] | None:
        """Look at a call whose arguments fit, before the policy judges it; return other arguments, or a `Refusal`.

        What it returns is validated and judged as if the model had written it.
        """

    def after_tool(self, ctx: RunContext[Deps], call: Call, outcome: ToolOutcome, /) -> object:
        """Look at an outcome before it is recorded; return another output, a `Refusal`, or None to leave it as it is.

        A text is taken as it is, anything else as JSON. A call that failed stays failed: what is returned takes the
        place of its message. An `async` method returns the same later.
        """


OutputCheck = Callable[[RunContext[Any], Any], Any]
"""Checks an answer: takes the context of the run and the answer (its value, where the agent has an `output_type`).

Returns None or the answer to let it pass, or another answer in its place; raises `AnswerRefused` to send it back. It
may be async; a plain one runs in a thread.
"""


def overrides(hook: Hooks[Any], moment: str) -> bool:
    """Whether a hook does something at a moment, such as `before_tool`."""
    return getattr(type(hook), moment) is not getattr(Hooks, moment)
