"""A tool: a card and the code behind it."""

from __future__ import annotations

import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping, Reversible
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, Self

import pydantic_core
from typing_extensions import ParamSpec, TypeVar

from taoloop.core.cards.coercion import coerce_args, schema_types
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.text import RUN_LANGUAGE
from taoloop.errors import InvalidArguments, InvalidOutput, TaoError, ToolDefinitionError, ToolError
from taoloop.lazy_exports import lazy_types
from taoloop.tools.result_values import json_values, write_json
from taoloop.tools.texts import TEXTS

if TYPE_CHECKING:
    from taoloop.core.attachments.files import File
    from taoloop.core.cards.card_lint import Finding
    from taoloop.core.images import Image
    from taoloop.core.message import Usage
    from taoloop.core.views.steps import CallView
    from taoloop.tools.embedding import Embedder
    from taoloop.tools.input_question import AskPerson, InputAnswer, InputQuestion
else:
    globals().update(
        lazy_types(
            {
                "core": "File Image Usage",
                "core.cards.card_lint": "Finding",
                "core.views.steps": "CallView",
                "tools.embedding": "Embedder",
                "tools.input_question": "AskPerson InputAnswer InputQuestion",
            }
        )
    )

T = TypeVar("T")

Deps_co = TypeVar("Deps_co", default=Any, covariant=True)
"""What the program gives a run: the type of `deps`."""

P = ParamSpec("P", default=...)
"""The parameters of the function behind a tool."""

R_co = TypeVar("R_co", default=Any, covariant=True)
"""What the function behind a tool returns."""


async def _no_artifacts(_ref: str) -> str | None:
    return None


async def _ask_nobody(question: InputQuestion) -> InputAnswer:
    from taoloop.tools.input_question import ask_nobody  # noqa: PLC0415  # who only defines tools does not need it

    return await ask_nobody(question)


async def _no_images(_ref: str) -> Image | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUsage:
    """What a run has used so far."""

    tokens: Usage
    """The tokens of its model calls."""
    cost_usd: float | None
    """What they cost, in US dollars; None: the price of one of them is unknown."""
    steps: int
    """The steps of the model, from 1."""
    tool_calls: int
    """The calls of tools that it asked for, this one among them."""


def _no_usage() -> RunUsage:
    from taoloop.core.message import Usage  # noqa: PLC0415  # outside a run only

    return RunUsage(tokens=Usage(), cost_usd=0.0, steps=0, tool_calls=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext(Generic[Deps_co]):
    """What a tool, or a function that gives instructions, may know of its run, and what the program gives it.

    A function asks for it by a parameter of this type: `ctx: RunContext[MyDeps]`, or `RunContext`. A context that is
    made by hand (`RunContext(deps=…)`) serves tests.
    """

    deps: Deps_co = field(default=None, repr=False)  # type: ignore[assignment]  # that of a run which was given none
    """What the program gave this run, such as its database and its user (`Agent.run(deps=…)`); None: nothing. No trace,
    prompt or log has it."""
    run_id: str = "by-hand"
    """The run."""
    task: str = ""
    """What the run is asked to do, as it is recorded."""
    usage: Callable[[], RunUsage] = _no_usage
    """`usage()` gives what the run has used so far."""
    call_id: str = "by-hand"
    """The call in its run; empty for a function that gives instructions."""
    idempotency_key: str = "by-hand"
    """The same for every attempt at this recorded call and different for every other call."""
    attempt: int = 1
    """Which attempt at the call this is, from 1."""
    read_artifact: Callable[[str], Awaitable[str | None]] = _no_artifacts
    """`read_artifact(ref)` gives the whole of an earlier output of this run, or None."""
    read_image: Callable[[str], Awaitable[Image | None]] = _no_images
    """`read_image(ref)` gives an image of this run, or None."""
    literals: Callable[[Any], Mapping[str, str]] = lambda _args: {}
    """`literals(args)` gives the decimals in the arguments as the model wrote them, by JSON pointer
    (`{"/amount": "1.10"}`), where they are more than the float gives."""
    progress: Callable[[str], None] = lambda _text: None
    """`progress(text)` reports in a line how far the call is, to those who watch; none of it is stored."""
    ask: AskPerson = _ask_nobody
    """`await ask(InputQuestion(...))` puts a question to the person who answers for the run, while the call waits; the
    answer is recorded. Where nobody can be asked it is `decline` at once. Only in the event loop of the run."""
    user: str = ""
    """The person for whom the run is, by whose name their logins are kept; empty: whoever uses this machine."""
    calls: Callable[[], Reversible[CallView]] = tuple
    """`calls()` gives the calls of this run in their order, this one among them, to be read only: what a tool knows of
    earlier calls survives a crash if it comes from here."""
    parent_run: Any = None
    """The runtime's own, for tools that are agents."""


ToolContext = RunContext
"""The earlier name of `RunContext`."""


Checker = Callable[[bytes], Mapping[str, Any]]
"""Takes the arguments as JSON; gives the values for the handler, or raises InvalidArguments."""

OutputChecker = Callable[[Any], None]
"""Takes a handler's result; raises InvalidOutput if it does not fit the output schema."""

_JSON_TYPES = frozenset({"str", "list", "bool", "int", "float", "NoneType"})
_NO_ITERATORS = frozenset({bool, int, float, type(None), dict, list, tuple, set})


@dataclass(slots=True)
class ValidatedArgs:
    """Arguments that fit."""

    args: dict[str, Any]
    """As JSON, which is what the trace records."""
    values: Mapping[str, Any]
    """As the values that the handler takes."""


@dataclass(slots=True)
class ToolOutput:
    """A tool's result as text."""

    text: str
    """The result."""
    form: Literal["json", "text"]
    """`text` where the tool returned a str."""
    images: tuple[Image, ...] = ()
    """The images in it; the text has a line for each."""
    files: tuple[File, ...] = ()
    """The files in it, in the same way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Says of a call without an outcome whether it happened: True or its output, False, or None for "cannot tell".

    False must mean that it did not happen and will not: the call is then run again.
    """

    function: Callable[..., Any]
    """The function that is asked."""
    parameters: frozenset[str] | None
    """The arguments of the call that it takes; None: all of them."""
    context_parameter: str | None
    """Its parameter that takes the `RunContext`, if it has one."""
    is_async: bool
    """Whether its answer is awaited."""

    def invoke(self, values: Mapping[str, Any], context: RunContext) -> Any:
        """Ask it about the call with these prepared values; gives its answer, or an awaitable of it."""
        arguments = {
            name: value for name, value in values.items() if self.parameters is None or name in self.parameters
        }
        if self.context_parameter is not None:
            arguments[self.context_parameter] = context
        return self.function(**arguments)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool(Generic[P, R_co]):
    """A card and the code behind it. Calling the tool calls the function itself, without any check.

    `Tool[P, R]` has the parameters and the result of that function, for type checkers; `Tool` is any tool.
    """

    card: ToolCard
    """What the model reads about the tool, and what the executor holds it to."""
    handler: Callable[P, R_co]
    """The function. A sync one runs in a thread, where its time limit can be enforced."""
    check: Checker
    """Checks the arguments of a call."""
    check_output: OutputChecker | None = None
    """Checks a result; None: any result is accepted."""
    context_parameter: str | None = None
    """The handler's parameter that takes the `RunContext`, if it has one."""
    is_async: bool = field(default=False)
    """Whether the handler's result is awaited."""
    inline: bool = False
    """The handler never waits: it runs in the thread of the event loop."""
    retries: int = 0
    """How often a call that failed with a `retryable` error is made again, at most. 0: never; the model decides."""
    backoff_s: float = 0.5
    """The seconds before it is made again the first time; they double each time."""
    runs_inside: bool = False
    """The tool is an agent, and a call of it is a run inside the run that called."""
    probe: Probe | None = None
    """Tells whether a call that lost its outcome happened."""
    replaces: Callable[..., str] | None = None
    """Says what exists and a call would overwrite, in words such as `notes.txt, 3 KB`; empty: nothing. It takes
    arguments of the tool by name, reads only, and returns at once."""
    connection_parameter: str | None = None
    """The handler's parameter that takes the journal's connection, where the tool is transactional."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The values that the tool sends for its operator, by names that may be shown: runs redact them."""
    whole_schema: Mapping[str, Any] | None = field(default=None, repr=False)
    """The schema that the arguments are checked against, where the card shows only a part of it."""
    keywords: str = field(default="", repr=False)
    """Words by which `find_tool` finds the tool, beside those of its card: the path and the tags of an operation."""
    embedder: Embedder | None = field(default=None, repr=False)
    """The embedding model with which `find_tool` also finds the tool by meaning; None: by words only."""
    login: Any = field(default=None, repr=False)
    """The `UserLogin` that a call needs of the person for whom its run is; None: it needs none."""
    chinese: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The Chinese form of texts of the card, by their English form."""

    findings: tuple[Finding, ...] = field(default=(), repr=False)
    """What the linter says of the tool beyond its card: of what it is made of."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function behind the tool, unchecked."""
        return self.handler(*args, **kwargs)

    @property
    def name(self) -> str:
        """The name that the model uses."""
        return self.card.name

    def card_in(self, language: str) -> ToolCard:
        """The card for a run in `language`: its texts in that language where the tool has them."""
        return self.card.translated(self.chinese) if language == "zh" and self.chinese else self.card

    def with_card(self, **changes: Any) -> Self:
        """The same tool with some fields of its card replaced."""
        return replace(self, card=replace(self.card, **changes))

    def with_findings(self, findings: tuple[Finding, ...]) -> Self:
        """The same tool with what the linter says of it beyond its card."""
        return replace(self, findings=findings)

    def would_replace(self, args: Mapping[str, Any]) -> str:
        """What exists and a call with these arguments would overwrite; empty: nothing, or the tool cannot tell.

        Where telling fails, `?`: something may exist. An error that the tool reports is the call's own.
        """
        if self.replaces is None:
            return ""
        names = inspect.signature(self.replaces).parameters
        try:
            return self.replaces(**{name: value for name, value in args.items() if name in names})
        except TaoError:
            return ""
        except Exception:  # noqa: BLE001  # whatever the tool's author left out
            return "?"

    def prepare(self, args: Any) -> ValidatedArgs:
        """Judge the arguments as a model gave them; nothing is run.

        Raises:
            InvalidArguments: not an object, too large, or against the schema. Says what was expected.
        """
        card = self.card
        if not isinstance(args, dict):
            kind = type(args).__name__
            kind = TEXTS.run_text(kind) if kind in _JSON_TYPES else kind
            expected = TEXTS.run_text("expected", form=expected_form(card))
            raise _invalid_arguments("arguments_object", hint=expected, tool=card.name, kind=kind)
        try:
            raw = pydantic_core.to_json(args)
        except (pydantic_core.PydanticSerializationError, ValueError) as error:
            raise _invalid_arguments("arguments_not_json", tool=card.name, reason=error) from error
        if len(raw) > card.max_input_bytes and (size := _input_bytes(args, raw)) > card.max_input_bytes:
            raise _invalid_arguments("arguments_large", tool=card.name, size=size, limit=card.max_input_bytes)
        try:
            return ValidatedArgs(args, self.check(raw))
        except InvalidArguments:
            corrected = coerce_args(args, card.input_schema)
            corrected_raw = pydantic_core.to_json(corrected)
            if corrected_raw == raw:
                raise
            return ValidatedArgs(args=corrected, values=self.check(corrected_raw))

    def invoke(self, values: Mapping[str, Any], context: RunContext | None) -> Any:
        """Run the handler with prepared values; gives its result, or an awaitable of it for an async handler.

        `context` may be None for a tool that takes none.
        """
        handler: Callable[..., Any] = self.handler
        if self.context_parameter is not None:
            return handler(**values, **{self.context_parameter: context})
        return handler(**values)

    def render(self, result: Any) -> ToolOutput:
        """The result as text: a str or an `Output` as it is, else as JSON; an `Image` or a `File` in it as its label.

        `write_json` says what becomes of bytes, arrays, frames and numbers that JSON does not have.

        Raises:
            InvalidOutput: it is a generator (a run takes the values of one itself), does not fit the output schema or
                cannot be written as JSON. The tool did run.
        """
        if type(result) is ToolOutput:
            return result
        if type(result) not in _NO_ITERATORS and (hasattr(result, "__next__") or hasattr(result, "__anext__")):
            values: dict[str, Any] = {"tool": self.name, "kind": type(result).__name__}
            raise TEXTS.error("result_generator", error_type=InvalidOutput, **values)
        if self.check_output is not None:
            self._check_result(result)
        if isinstance(result, str):
            return ToolOutput(str(result), "text")
        try:
            text = write_json(result)
        except (pydantic_core.PydanticSerializationError, ValueError, RecursionError) as error:
            if (output := _output_with_attachments(result)) is not None:
                return output
            values = {"tool": self.name, "kind": type(result).__name__, "reason": str(error)}
            hint = TEXTS.run_text("carried_out")
            raise TEXTS.error("result_not_json", error_type=InvalidOutput, hint=hint, **values) from error
        return ToolOutput(text, "json")

    def _check_result(self, result: Any) -> None:
        """Hold the result to the output schema; one of an array library may fit it as JSON only.

        Raises:
            InvalidOutput: it does not fit in either form.
        """
        assert self.check_output is not None  # noqa: S101  # asked by `render`
        try:
            self.check_output(result)
        except InvalidOutput:
            values = json_values(result)
            if values is result:
                raise
            self.check_output(values)


def _output_with_attachments(result: Any) -> ToolOutput | None:
    """The output of a result with images or files, which JSON does not know; None if it has none, or other things.

    The text has a label in the place of each. A list of texts, images and files becomes lines.

    Raises:
        InvalidOutput: an image is an address: whoever wrote it would have the model's provider call it.
    """
    from taoloop.core.attachments.files import File  # noqa: PLC0415  # few tools return one
    from taoloop.core.images import Image  # noqa: PLC0415  # as above
    from taoloop.core.texts import label_of  # noqa: PLC0415  # loads the events

    images: list[Image] = []
    files: list[File] = []

    def label(value: Any) -> str:
        if isinstance(value, Image):
            if value.info.url:
                raise TEXTS.error("result_image_url", error_type=InvalidOutput, url=value.info.url)
            if value not in images:
                images.append(value)
        elif not isinstance(value, File):
            raise TypeError(type(value).__name__)
        elif value not in files:
            files.append(value)
        return label_of(RUN_LANGUAGE.get(), value.info)

    parts = result if isinstance(result, list | tuple) else [result]
    if all(isinstance(part, str | Image | File) for part in parts):
        text = "\n".join(part if isinstance(part, str) else label(part) for part in parts)
        return ToolOutput(text, "text", tuple(images), tuple(files))
    try:
        text = pydantic_core.to_json(json_values(result), inf_nan_mode="strings", fallback=label).decode()
    except (pydantic_core.PydanticSerializationError, TypeError, ValueError, RecursionError):
        return None
    return ToolOutput(text, "json", tuple(images), tuple(files)) if images or files else None


def handler_is_async(handler: Callable[..., Any]) -> bool:
    """True for a coroutine function, also behind partials and callable objects.

    A sync wrapper of a coroutine function is sync: it may block, whatever its result has to be awaited for.
    """
    while isinstance(handler, partial | staticmethod):
        handler = handler.func if isinstance(handler, partial) else handler.__func__
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
        getattr(handler, "__call__", None)  # noqa: B004  # a callable object's method, not a test for callability
    )


async def run_in_thread(
    work: Callable[[], T], stop: Callable[[], object], *, name: str, patience_s: float | None = None
) -> T:
    """The result of `work()`, run in a thread of its own with the caller's context variables.

    The thread is called `name`. It is a daemon: one that hangs does not delay the end of the process. If the caller is
    cancelled, `stop` is called, and the work has `patience_s` seconds to end (None: as long as it takes).

    Raises:
        ToolError: `no_free_thread`; the work was not begun.
    """
    import asyncio  # noqa: PLC0415  # heavy, and who only defines tools does not need it

    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    future.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be left to look at it

    def settle(result: Any, error: BaseException | None) -> None:
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error if not isinstance(error, StopIteration) else RuntimeError("StopIteration"))

    def perform() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = work()
        except BaseException as raised:  # noqa: BLE001  # handed to the waiting task, whatever it is
            error = raised
        with suppress(RuntimeError):  # the loop was closed: nobody waits for this any more
            loop.call_soon_threadsafe(settle, result, error)

    try:
        threading.Thread(target=contextvars.copy_context().run, args=(perform,), name=name, daemon=True).start()
    except RuntimeError as error:
        raise TEXTS.error("no_thread", "no_free_thread", retryable=True, reason=error) from error
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        stop()
        await asyncio.wait((future,), timeout=patience_s)
        raise


def expected_form(card: ToolCard) -> str:
    """The arguments of a tool in one short line, such as `{"a": integer, "b": integer (optional)}`."""
    required, optional, alternative = card.required, TEXTS.run_text("optional"), TEXTS.run_text("or")
    parts = []
    for name, rule in card.parameters.items():
        kind = (
            alternative.join(sorted(schema_types(rule, card.input_schema) - {"null"}))
            if isinstance(rule, Mapping)
            else ""
        )
        parts.append(f'"{name}": {kind or "any"}' + ("" if name in required else optional))
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


def _invalid_arguments(name: str, hint: str | None = None, **values: Any) -> ToolError:
    return TEXTS.error(name, error_type=InvalidArguments, hint=hint, **values)


def misfit_arguments(card: ToolCard, problems: str, code: str = "") -> ToolError:
    """The error for arguments that the tool of `card` cannot take; `code` empty: that of `InvalidArguments`."""
    values: dict[str, Any] = {"tool": card.name, "problems": problems}
    expected = TEXTS.run_text("expected", form=expected_form(card))
    return TEXTS.error("arguments", code, error_type=InvalidArguments, hint=expected, **values)


def misfit_result(tool: str, problems: str) -> ToolError:
    """The error for a result that is not what the tool declares."""
    hint = TEXTS.run_text("carried_out")
    return TEXTS.error("result", error_type=InvalidOutput, hint=hint, tool=tool, problems=problems)
