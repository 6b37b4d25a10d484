"""A tool: a card and the code behind it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import pydantic_core

from taoloop.core.cards.coercion import coerce_args, schema_types
from taoloop.core.cards.tool_card import ToolCard
from taoloop.errors import InvalidArguments, InvalidOutput, ToolDefinitionError


async def _no_artifacts(_ref: str) -> str | None:
    return None


def _no_literals(_args: Any) -> Mapping[str, str]:
    return {}


def _unheard(_text: str) -> None:
    """Nobody watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool may know of the call that it serves; a handler asks for it by a parameter of this type.

    `idempotency_key` is the same for every attempt at this recorded call and different for every other call.
    `attempt` counts from 1. `read_artifact(ref)` gives the whole of an earlier output of this run, or None.
    `literals(args)` gives the decimals in the arguments as the model wrote them, by JSON pointer
    (`{"/amount": "1.10"}`), where they are more than the float gives. `progress(text)` tells who
    watches how far the call is, in a line; nothing of it is kept. `inside` is the runtime's own, for tools that are
    agents.
    """

    run_id: str = "by-hand"
    call_id: str = "by-hand"
    idempotency_key: str = "by-hand"
    attempt: int = 1
    read_artifact: Callable[[str], Awaitable[str | None]] = _no_artifacts
    literals: Callable[[Any], Mapping[str, str]] = _no_literals
    progress: Callable[[str], None] = _unheard
    parent_run: Any = None


Checker = Callable[[bytes], Mapping[str, Any]]
"""Takes the arguments as JSON; gives the values for the handler, or raises InvalidArguments."""

OutputChecker = Callable[[Any], None]
"""Takes a handler's result; raises InvalidOutput if it does not fit the output schema."""

_NO_ITERATORS = frozenset({bool, int, float, type(None), dict, list, tuple, set})


@dataclass(slots=True)
class ValidatedArgs:
    """Arguments that fit: as JSON (what the trace records) and as the values that the handler takes."""

    args: dict[str, Any]
    values: Mapping[str, Any]


@dataclass(slots=True)
class ToolOutput:
    """A tool's result as text: JSON (`form` json), or plain text where the tool returned a str."""

    text: str
    form: Literal["json", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Says of a call without an outcome whether it happened: True or its output, False, or None for "cannot tell".

    False must mean that it did not happen and will not: the call is then run again. `parameters` are the arguments of
    the call that the function takes, None for all of them.
    """

    function: Callable[..., Any]
    parameters: frozenset[str] | None
    context_parameter: str | None
    is_async: bool

    def invoke(self, values: Mapping[str, Any], context: ToolContext) -> Any:
        """Ask it about the call with these prepared values; gives its answer, or an awaitable of it."""
        arguments = {
            name: value for name, value in values.items() if self.parameters is None or name in self.parameters
        }
        if self.context_parameter is not None:
            arguments[self.context_parameter] = context
        return self.function(**arguments)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool:
    """A card and the code behind it. Calling the tool calls the function itself, without any check.

    `check` judges arguments, `check_output` results. `context_parameter` names the handler's parameter that takes
    the `ToolContext`, if it has one.

    A sync handler runs in a thread, where its time limit can be enforced. `inline` promises that it never waits: it
    then runs in the thread of the event loop.

    `runs_inside`: the tool is an agent, and a call of it is a run inside the run that called.

    `probe` tells of a call that lost its outcome whether it happened. `connection_parameter` names the handler's
    parameter that takes the journal's connection, where the tool is transactional.

    `whole_schema` is the schema that judges the arguments, where the card shows only a part of it.

    `secrets` are the values that the tool sends for its operator, by names that may be shown: runs redact them.
    """

    card: ToolCard
    handler: Callable[..., Any]
    check: Checker
    check_output: OutputChecker | None = None
    context_parameter: str | None = None
    is_async: bool = field(default=False)
    inline: bool = False
    runs_inside: bool = False
    probe: Probe | None = None
    connection_parameter: str | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    whole_schema: Mapping[str, Any] | None = field(default=None, repr=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function behind the tool, unchecked."""
        return self.handler(*args, **kwargs)

    @property
    def name(self) -> str:
        """The name that the model uses."""
        return self.card.name

    def with_card(self, **changes: Any) -> Tool:
        """The same tool with some fields of its card replaced."""
        return replace(self, card=replace(self.card, **changes))

    def prepare(self, args: Any) -> ValidatedArgs:
        """Judge the arguments as a model gave them; nothing is run.

        Raises:
            InvalidArguments: not an object, too large, or against the schema. Says what was expected.
        """
        card = self.card
        if not isinstance(args, dict):
            raise InvalidArguments(
                f"The arguments of {card.name!r} must be a JSON object, not {_json_type(args)}.",
                hint=f"Expected: {expected_form(card)}",
            )
        try:
            raw = pydantic_core.to_json(args)
        except (pydantic_core.PydanticSerializationError, ValueError) as error:
            raise InvalidArguments(f"The arguments of {card.name!r} are not JSON: {error}.") from error
        if len(raw) > card.max_input_bytes and (size := _input_bytes(args, raw)) > card.max_input_bytes:
            raise InvalidArguments(
                f"The arguments of {card.name!r} are {size:,} bytes; it takes at most {card.max_input_bytes:,}.",
                hint="Send less, or in parts.",
            )
        try:
            return ValidatedArgs(args, self.check(raw))
        except InvalidArguments:
            corrected = coerce_args(args, card.input_schema)
            corrected_raw = pydantic_core.to_json(corrected)
            if corrected_raw == raw:
                raise
            return ValidatedArgs(args=corrected, values=self.check(corrected_raw))

    def invoke(self, values: Mapping[str, Any], context: ToolContext | None) -> Any:
        """Run the handler with prepared values; gives its result, or an awaitable of it for an async handler.

        `context` may be None for a tool that takes none.
        """
        if self.context_parameter is not None:
            return self.handler(**values, **{self.context_parameter: context})
        return self.handler(**values)

    def render(self, result: Any) -> ToolOutput:
        """The result as text: a str or an `Output` as it is, anything else as JSON.

        Numbers that JSON does not have become the texts "NaN", "Infinity" and "-Infinity"; a pydantic model is
        written as its own configuration says (by default null for these).

        Raises:
            InvalidOutput: it is a generator, does not fit the output schema or cannot be written as JSON (such as
                bytes that are no UTF-8). The tool did run.
        """
        if type(result) is ToolOutput:
            return result
        if type(result) not in _NO_ITERATORS and (hasattr(result, "__next__") or hasattr(result, "__anext__")):
            raise InvalidOutput(
                f"{self.name!r} returned {type(result).__name__!r}, which gives its values one by one; none was taken.",
                hint="The tool itself must be changed to return a list; the same call will not do better.",
            )
        if self.check_output is not None:
            self.check_output(result)
        if isinstance(result, str):
            return ToolOutput(result, "text")
        try:
            text = pydantic_core.to_json(result, inf_nan_mode="strings").decode()
        except (pydantic_core.PydanticSerializationError, ValueError, RecursionError) as error:
            raise InvalidOutput(
                f"{self.name!r} ran, but its result of the type {type(result).__name__!r} cannot be written as JSON: "
                f"{error}.",
                hint="The call was carried out; do not repeat it only because of this.",
            ) from error
        return ToolOutput(text, "json")


def handler_is_async(handler: Callable[..., Any]) -> bool:
    """True for a coroutine function, also behind partials and callable objects.

    A sync wrapper of a coroutine function is sync: it may block, whatever its result has to be awaited for.
    """
    while isinstance(handler, partial | staticmethod):
        handler = handler.func if isinstance(handler, partial) else handler.__func__
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
        getattr(handler, "__call__", None)  # noqa: B004  # a callable object's method, not a test for callability
    )


def expected_form(card: ToolCard) -> str:
    """The arguments of a tool in one short line, such as `{"a": integer, "b": integer (optional)}`."""
    required = card.required
    parts = []
    for name, rule in card.parameters.items():
        kind = (
            " or ".join(sorted(schema_types(rule, card.input_schema) - {"null"})) if isinstance(rule, Mapping) else ""
        )
        kind = kind or "any"
        parts.append(f'"{name}": {kind}' + ("" if name in required else " (optional)"))
    return "{" + ", ".join(parts) + "}"


def require_name(name: str) -> str:
    """`name` if a model can call it (letters, digits, `_`, `-`, `.`; at most 64), else an error.

    Raises:
        ToolDefinitionError: providers would refuse the name.
    """
    usable = name.replace("_", "").replace("-", "").replace(".", "")
    if not name or len(name) > 64 or not usable.isascii() or not (usable.isalnum() or not usable):
        raise ToolDefinitionError(
            f"A tool cannot be called {name!r}.",
            hint="Use 1 to 64 ASCII letters, digits, underscores, hyphens or dots.",
        )
    return name


def _input_bytes(args: Mapping[str, Any], raw: bytes) -> int:
    """The size of the input: a single text counts by itself, anything else as JSON."""
    only = next(iter(args.values())) if len(args) == 1 else None
    return len(only.encode()) if isinstance(only, str) else len(raw)


def _json_type(value: Any) -> str:
    names = {str: "a text", list: "a list", bool: "a boolean", int: "a number", float: "a number", type(None): "null"}
    return names.get(type(value), type(value).__name__)
