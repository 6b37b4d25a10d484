"""The contract of a dialect: how a decision is written by a model, and read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from inspect import Parameter, signature
from typing import Protocol

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Decision, Problem
from taoloop.core.events import ActionRequested, ModelReplied, Observed, ReplyRejected
from taoloop.core.message import Message, ModelReply
from taoloop.core.prompts import PromptSet


class Dialect(Protocol):
    """One form of writing decisions. Pure: the same reply is always read the same way."""

    @property
    def name(self) -> str:
        """The name, and the key of its prompt texts (`form_NAME`, `form_NAME_answer`, `thought_NAME`)."""
        ...

    @property
    def native(self) -> bool:
        """Whether the provider gets the tools through its API; otherwise the prompt describes them."""
        ...

    @property
    def stop(self) -> tuple[str, ...]:
        """Sequences at which the provider should cut, so that a model does not continue with invented observations."""
        ...

    def read(
        self,
        reply: ModelReply,
        cards: Sequence[ToolCard],
        *,
        json_answer: bool = False,
        was_seen: Callable[[str], bool] = ...,
    ) -> Decision | Problem:
        """The one decision in a reply, or why there is none. Never raises, whatever the reply contains.

        `json_answer`: the run has an output schema, so the answer is a JSON value. If it is written as one and not as
        a text, the answer's text is that whole value as JSON, empty objects and lists included.

        `was_seen` says whether the task or an observation has a text; without it none counts as seen. A value that is
        nothing but a placeholder, such as `<email>`, is a Problem unless it was. The runtime passes `was_seen` only
        where a reply was refused for such a value, and only to a dialect that takes it.

        Fails closed: broken or truncated arguments, two decisions, an action beside a final answer and anything
        that rests on an observation which the model wrote itself are Problems. A call of an unknown tool is
        still a decision; the executor answers it.
        """
        ...

    def write(self, decision: Decision) -> ModelReply:
        """The decision in this dialect's canonical form; `read` gives the same decision back."""
        ...

    def echo(self, replied: ModelReplied, requested: Sequence[ActionRequested]) -> Message:
        """The model's own reply as later prompts show it. `requested` are the calls that it led to.

        A reply that was rejected has no calls; it is shown as plain text.
        """
        ...

    def observation(self, requested: ActionRequested, observed: Observed, prompts: PromptSet, nonce: str) -> Message:
        """One observation as the model sees it: framed as untrusted data by the run's nonce."""
        ...

    def correction(self, rejected: ReplyRejected, prompts: PromptSet, *, tools: bool, reasons: bool) -> Message:
        """The message to the model after an unreadable reply: what was wrong, and the form that is expected."""
        ...


def takes_was_seen(dialect: Dialect) -> bool:
    """Whether `read` of a dialect takes `was_seen`; one that was written without it is called without it."""
    return _takes_was_seen(type(dialect))


@cache
def _takes_was_seen(kind: type[Dialect]) -> bool:
    parameters = signature(kind.read).parameters.values()
    return any(parameter.name == "was_seen" or parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters)
