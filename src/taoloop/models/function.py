"""A function as a model: the shortest way to a model of one's own, for tests, demos and rule-based agents."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError
from taoloop.models.scripted import Reply, pieces, reply_from
from taoloop.translation import Translator, mark

translate = Translator("models")

ModelFunction = Callable[[str, Trace], Reply | Awaitable[Reply]]
"""Takes the task and the run so far, gives the next reply: a text, a mapping as in a script, or a `ModelReply`."""


class FunctionModel:
    """Answers with what a function of (task, trace) returns, once per request, in the event loop.

    The function sees facts instead of a prompt: `trace.calls` has every call with its `observed` outcome, in order;
    `trace.events` has all of it. It should be quick and store nothing about a run, for it may serve several at once; a
    slow one should be `async`. What it raises ends the run as a fault of the program, as an error in a tool does not.

    Args:
        function: The function, plain or `async`.
        dialect: How its replies are written: `text` (`Thought: … Action: name: input`), or `native` where it returns
            mappings with `tool_calls`.
    """

    def __init__(self, function: ModelFunction, *, dialect: str = "text") -> None:
        parameters = _parameters(function)
        if parameters is not None and not _takes_two(parameters):
            hint = translate("Write def model(task, trace) -> str, or give a Model.")
            text = mark("The function {name!r} does not take a task and a trace.")
            raise ConfigError(translate(text, name=_name(function)), hint=hint)
        self._function, self.dialect = function, dialect
        self.spec, self.reads_prompts = f"function:{_name(function)}", False

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply of the function for this point of the run."""
        reply = self._function(request.task, request.trace)
        if inspect.isawaitable(reply):
            reply = await reply
        made = reply_from(reply, request.turn + 1, self.spec)
        if made.tool_calls and not request.native:
            text = mark(
                "The function {name!r} returned tool_calls, which the dialect {dialect!r} does not read: give "
                'FunctionModel({name}, dialect="native").'
            )
            raise ConfigError(translate(text, name=_name(self._function), dialect=request.dialect))
        if request.on_delta is not None:
            for delta in pieces(made):
                request.on_delta(delta)
        return made

    def check_used(self, replies: int) -> None:
        """A function has no number of replies that must be used."""

    async def close(self) -> None:
        """Nothing to close."""


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__)).rpartition(".")[2]


def _parameters(function: Any) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a built-in function without a signature
        return None


def _takes_two(parameters: list[inspect.Parameter]) -> bool:
    kinds = inspect.Parameter
    positional = [each for each in parameters if each.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    is_open = any(each.kind is kinds.VAR_POSITIONAL for each in parameters)
    required = [each for each in positional if each.default is kinds.empty]
    keyword_only = [each for each in parameters if each.kind is kinds.KEYWORD_ONLY and each.default is kinds.empty]
    return len(required) <= 2 and (len(positional) >= 2 or is_open) and not keyword_only
