"""`@tool`: card, schema and validation of a typed function from one source."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import fields as dataclass_fields
from functools import cache, partial
from types import GenericAlias, NoneType, SimpleNamespace, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NotRequired,
    Protocol,
    TypeGuard,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import pydantic
import typing_extensions
from pydantic import ConfigDict, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema

from taoloop.core.cards.tool_card import Approval, ErrorCard, ExampleCard, JournalConnection, Tier, ToolCard
from taoloop.core.text import is_number
from taoloop.errors import ToolDefinitionError
from taoloop.tools.docstrings import argument_descriptions, first_paragraph
from taoloop.tools.json_schema import type_hint, without_titles
from taoloop.tools.result_values import BASE64_SCHEMA
from taoloop.tools.texts import TEXTS, argument_problem
from taoloop.tools.tool import (
    Checker,
    OutputChecker,
    P,
    Probe,
    RunContext,
    Tool,
    handler_is_async,
    misfit_arguments,
    misfit_result,
    require_name,
)

R = TypeVar("R")
"""What a function returns."""

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


def probe_of(function: Callable[..., Any], name: str, arguments: Iterable[str]) -> Probe:
    """`function` as the probe of the tool `name`, which takes these `arguments`.

    It may take any of them by name, and a `RunContext` (whose idempotency key is that of the call).

    Raises:
        ToolDefinitionError: it asks for something else.
    """
    known = frozenset(arguments)
    try:
        declared = parameters(function)
    except (ValueError, TypeError) as error:
        raise ToolDefinitionError(f"The probe of the tool {name!r} cannot be called: {error}.") from error
    hints = _probe_hints(function)
    context: str | None = None
    accepted: set[str] = set()
    takes_all = False
    for parameter in declared:
        if is_context(hints.get(parameter.name, parameter.annotation)):
            context = parameter.name
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            takes_all = True
        elif parameter.name in known and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
            accepted.add(parameter.name)
        elif parameter.default is inspect.Parameter.empty:
            raise ToolDefinitionError(
                f"The probe of the tool {name!r} asks for {parameter.name!r}, which is not one of its arguments.",
                hint="A probe takes arguments of the tool by their names, and a RunContext.",
            )
    return Probe(
        function=function,
        parameters=None if takes_all else frozenset(accepted),
        context_parameter=context,
        is_async=handler_is_async(function),
    )


def _probe_hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(underlying(function), include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}  # then the annotations as they stand, which may be texts


def underlying(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind partials."""
    while isinstance(function, partial):
        function = function.func
    return function


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters that are still to be filled: without those that a partial has bound.

    Raises:
        ValueError, TypeError: it has no signature that can be read.
    """
    bare = _bare(function)
    bound = bare.keywords if isinstance(bare, partial) else {}
    return [parameter for parameter in inspect.signature(bare).parameters.values() if parameter.name not in bound]


def is_context(hint: Any) -> bool:
    """True for `RunContext`, with or without the type of its `deps`, also where it is optional or `Annotated`.

    A text, such as an annotation whose types cannot be resolved, is read like the type that it names.
    """
    return _is(hint, RunContext, "RunContext", "ToolContext")


def is_connection(hint: Any) -> bool:
    """True for `JournalConnection`, in the same forms."""
    return _is(hint, JournalConnection, "JournalConnection")


def _is(hint: Any, expected: type[Any], *names: str) -> bool:
    if isinstance(hint, str):
        return _text_of(names).fullmatch(hint.strip()) is not None
    origin = get_origin(hint)
    if origin is Annotated:
        return _is(get_args(hint)[0], expected, *names)
    if origin is Union or origin is UnionType:
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        return len(kinds) == 1 and _is(kinds[0], expected, *names)
    return hint is expected or origin is expected


@cache
def _text_of(names: tuple[str, ...]) -> re.Pattern[str]:
    """The texts of annotations that mean the type of these names, with or without a parameter."""
    parameter = r"\[[^\[\]]*(?:\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\][^\[\]]*)*\]"
    pattern = rf"(?:\w+\.)*(?:{'|'.join(names)})(?:{parameter})?"
    return re.compile(
        rf"{pattern}(?:\s*\|\s*None)?|None\s*\|\s*{pattern}|(?:\w+\.)*Optional\[{pattern}\]"
        rf"|(?:\w+\.)*Annotated\[{pattern}(?:\s*\|\s*None)?\s*,.*\]",
        re.DOTALL,
    )


def _bare(function: Callable[..., Any]) -> Callable[..., Any]:
    """Partials made anew: `update_wrapper` would have their signature be that of the whole function."""
    if isinstance(function, partial):
        return partial(_bare(function.func), *function.args, **function.keywords)
    return function


_ARGUMENT_TEXTS = {"missing": "missing", "extra_forbidden": "unknown"}
_UNTYPED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)


class ToolDecorator(Protocol):
    """Makes a tool of the function below `@tool(…)`; type checkers keep its parameters and its result."""

    def __call__(self, function: Callable[P, R], /) -> Tool[P, R]:
        """Make the tool."""
        ...


_MOST_RETRIES = 10


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    purpose: str | None = None,
    use_when: str = "",
    avoid_when: str = "",
    tier: Tier | None = None,
    approval: Approval | None = None,
    timeout_s: float | None = None,
    errors: Sequence[ErrorCard] = (),
    examples: Sequence[ExampleCard] = (),
    idempotent: bool = False,
    parallel: bool | None = None,
    compensation: str | None = None,
    compensation_args: Mapping[str, str] | None = None,
    reversible: bool | None = None,
    repeatable: bool = False,
    egress: bool | Sequence[str] | None = None,
    roles: Mapping[str, str] | None = None,
    ids: Mapping[str, str] | None = None,
    max_input_bytes: int | None = None,
    max_preview_chars: int | None = None,
    inline: bool | None = None,
    retries: int | None = None,
    backoff_s: float | None = None,
    probe: Callable[..., Any] | None = None,
    replaces: Callable[..., str] | None = None,
    transactional: bool | None = None,
    chinese: Mapping[str, str] | None = None,
) -> ToolDecorator: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool of a typed function, sync or async.

    The name, the purpose (first paragraph of the docstring) and the arguments (annotations, and what the docstring
    says of them in the style of Google, NumPy, reST or Epytext) come from the function; every field of `ToolCard` can
    be given instead. `bytes` are base64 in arguments and results.
    The same types validate the arguments before each call and, where the function says what it returns, the
    result. A default may be a pydantic `Field(…)`, which says more about the argument. A parameter annotated
    `RunContext` receives the call's context and is not shown to the model; nor are arguments that a
    `functools.partial` has bound.

    Declare `tier="read"` for a function that changes nothing: it may then be repeated, run beside others and needs
    no approval. A function without a tier counts as destructive and as one that sends data out: a call asks a person.
    For one that changes something, `egress` says whether it sends data out of your reach (or which of its arguments
    do), and `roles` what each argument is to a call; what is left open counts as the worst.

    A sync function runs in a thread, so that it may block and its time limit is enforced. `inline=True` promises that
    it never waits and returns in well under a millisecond: it then runs in the thread of the event loop, which saves
    the change of thread; its time limit cannot be enforced, and no other run proceeds meanwhile.

    `retries=2` makes a call that failed with a `retryable` error again, twice at most: `backoff_s` seconds later, and
    twice as long the next time. The tool must read or be `idempotent`; each attempt is recorded and counts.

    A generator, sync or async, shows what it yields as progress while the call runs. The result is what it returns; if
    it returns nothing, the texts that it yielded, joined as they are, or a list of other values.

    `probe` is a function that says of a call which lost its outcome (the process died, or it gave none in time) whether
    it happened: it takes arguments of the tool by name, and a `RunContext`, and gives True or the output, False
    (certainly not: the call is run again) or None. A parameter annotated `JournalConnection` makes the tool
    `transactional`: what it writes there and the outcome are kept together or not at all.

    `replaces` is a function that says what exists and a call would overwrite (`notes.txt, 3 KB`; empty: nothing). It
    takes arguments of the tool by name, reads only, and returns at once: it is asked before each call is judged,
    because overwriting needs a task that asks for that, or a person.

    `chinese` gives the Chinese form of texts of the card by their English form, for the prompts of runs in Chinese.

    Raises:
        ToolDefinitionError: a parameter has no type, or a type that cannot be described as JSON; or what is given
            is a class, or a method without its object; or `inline` is said of an async function.
    """
    if function is not None:
        return function_tool(function)
    return lambda decorated: function_tool(decorated, **options)


def function_tool(function: Callable[..., Any], **options: Any) -> Tool:
    """`tool` as a plain function: `options` are fields of `ToolCard`, `inline`, `probe`, `replaces` and `chinese`."""
    overrides = {key: value for key, value in options.items() if value is not None}
    inline: bool | None = overrides.pop("inline", None)
    retries: int = overrides.pop("retries", 0)
    backoff_s: float = overrides.pop("backoff_s", 0.5)
    probe: Callable[..., Any] | None = overrides.pop("probe", None)
    replaces: Callable[..., str] | None = overrides.pop("replaces", None)
    chinese: Mapping[str, str] = overrides.pop("chinese", {})
    target = underlying(function)
    if inspect.isclass(target):
        raise ToolDefinitionError(
            f"The class {target.__name__!r} is no tool.",
            hint="Give a typed function (it may take or return that class), or an instance that can be called.",
        )
    name = getattr(function, "__name__", None) or getattr(target, "__name__", type(target).__name__)
    name = require_name(str(overrides.pop("name", None) or name))
    known = [field.name for field in dataclass_fields(ToolCard)]
    if unknown := [option for option in overrides if option not in known]:
        from taoloop.core.search import suggest_names  # noqa: PLC0415  # few names are misspelt

        near = suggest_names(unknown[0], (*known, "inline", "replaces", "chinese"), at_most=1)
        raise ToolDefinitionError(
            f"The tool {name!r} was given {unknown[0]!r}, which no tool card has.",
            hint=f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}.",
        )
    doc = _doc(function)
    hints = _hints(target, name)
    returned = hints.pop("return", inspect.Parameter.empty)
    connection = next((parameter for parameter, hint in hints.items() if is_connection(hint)), None)
    fields, context_parameter = _fields(function, name, hints, argument_descriptions(doc, hints))
    adapter, schema = _arguments_adapter(name, fields)
    output_schema, check_output = _output(name, _streamed(_called(target), returned))
    overrides |= {option: tuple(value) for option, value in overrides.items() if isinstance(value, list)}
    overrides.setdefault("purpose", first_paragraph(doc))
    handler, is_async = _with_field_defaults(function), handler_is_async(function)
    overrides["probes"] = probe is not None
    overrides["transactional"] = _is_transactional(name, overrides, connection, is_async=is_async)
    card = ToolCard(name=name, input_schema=schema, **{"output_schema": output_schema, **overrides})
    if is_async and inline is not None:
        raise ToolDefinitionError(
            f"The tool {name!r} is async and was given `inline`.",
            hint="Leave it away: an async function always runs in the event loop.",
        )
    _require_retries(card, retries, backoff_s)
    return Tool(
        card=card,
        handler=handler,
        check=_checker(card, adapter),
        check_output=check_output,
        context_parameter=context_parameter,
        is_async=is_async,
        inline=bool(inline) and connection is None,
        retries=retries,
        backoff_s=backoff_s,
        probe=None if probe is None else probe_of(probe, name, fields),
        replaces=replaces,
        connection_parameter=connection,
        chinese=chinese,
    )


def _require_retries(card: ToolCard, retries: object, backoff_s: object) -> None:
    """Refuse retries that mean nothing, or of a tool whose calls must not be repeated."""
    if type(retries) is not int or not 0 <= retries <= _MOST_RETRIES or not (is_number(backoff_s) and backoff_s >= 0):
        raise ToolDefinitionError(
            f"The tool {card.name!r} has retries={retries!r} and backoff_s={backoff_s!r}.",
            hint=f"Write a whole number from 0 to {_MOST_RETRIES}, and seconds from 0 on.",
        )
    if retries and (card.transactional or not (card.reads_only or card.idempotent)):
        raise ToolDefinitionError(
            f"The tool {card.name!r} has retries, and a repeated call may have its effect twice.",
            hint="Only a tool that reads or is idempotent may have retries: pass the idempotency key of the context on,"
            " and declare idempotent=True.",
        )


def _is_transactional(name: str, options: Mapping[str, Any], connection: str | None, *, is_async: bool) -> bool:
    """Whether the tool writes in the journal's transaction: that, and the parameter for it, go together."""
    declared = options.get("transactional")
    if declared is not None and bool(declared) != (connection is not None):
        raise ToolDefinitionError(
            f"The tool {name!r} has transactional={declared!r} and takes no connection."
            if connection is None
            else f"The tool {name!r} has transactional={declared!r} and takes one as {connection!r}.",
            hint="A transactional tool has a parameter annotated JournalConnection; no other one does.",
        )
    if connection is not None and is_async:
        raise ToolDefinitionError(
            f"The tool {name!r} is async and transactional.",
            hint="Make it a plain function: the transaction holds up every other run, so nothing may be waited for.",
        )
    return connection is not None


def _called(target: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, or the method that an object is called by."""
    return target if inspect.isroutine(target) else getattr(target, "__call__", target)  # noqa: B004  # its hints


def _doc(function: Callable[..., Any]) -> str:
    own = vars(function).get("__doc__") if isinstance(function, functools.partial) else None
    target = underlying(function)
    doc = inspect.cleandoc(own) if isinstance(own, str) else inspect.getdoc(target)
    return doc or inspect.getdoc(_called(target)) or ""


def _hints(target: Callable[..., Any], name: str) -> dict[str, Any]:
    called = _called(target)
    try:
        return get_type_hints(called, include_extras=True)
    except (NameError, TypeError) as error:
        own = getattr(called, "__annotations__", {})
        contexts = {parameter: hint for parameter, hint in own.items() if isinstance(hint, str) and is_context(hint)}
        if contexts:  # the type of the deps may be imported for type checkers only: nothing here needs it
            return _hints(_without_hints(called, contexts), name) | contexts
        raise ToolDefinitionError(
            f"The types of the tool {name!r} cannot be resolved: {error}.",
            hint="Types used in its annotations must be importable where the function is defined.",
        ) from error


def _without_hints(function: Callable[..., Any], names: Iterable[str]) -> Any:
    """Something with the annotations of a function, but for these, whose types are resolved like those of it."""
    kept = {name: hint for name, hint in function.__annotations__.items() if name not in names}
    return SimpleNamespace(__annotations__=kept, __globals__=getattr(inspect.unwrap(function), "__globals__", {}))


def _fields(
    function: Callable[..., Any], name: str, hints: Mapping[str, Any], texts: Mapping[str, str]
) -> tuple[dict[str, Any], str | None]:
    fields: dict[str, Any] = {}
    context_parameter = None
    for parameter in _parameters(function, name):
        hint = hints.get(parameter.name, inspect.Parameter.empty)
        if parameter.name in ("self", "cls") and hint is inspect.Parameter.empty:
            raise ToolDefinitionError(
                f"The tool {name!r} is a method without its object: {parameter.name!r} is left open.",
                hint=f"Give the method of an instance (`instance.{name}`), or a function.",
            )
        if parameter.kind in _UNTYPED:
            raise ToolDefinitionError(
                f"The tool {name!r} has the parameter {parameter}, which no model can fill by name.",
                hint="Use plain named parameters.",
            )
        if is_context(hint):
            context_parameter = parameter.name
            continue
        if is_connection(hint):
            continue
        if hint is inspect.Parameter.empty:
            raise ToolDefinitionError(
                f"The parameter {parameter.name!r} of the tool {name!r} has no type.",
                hint=f"Annotate it, for example `{parameter.name}: str`.",
            )
        if parameter.name in texts:
            hint = Annotated[hint, pydantic.Field(description=texts[parameter.name])]
        fields[parameter.name] = _with_default(_without_encoders(hint), parameter.default)
    return fields, context_parameter


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    try:
        return parameters(function)
    except (ValueError, TypeError) as error:
        raise ToolDefinitionError(
            f"The parameters of the tool {name!r} cannot be found: {error}.",
            hint="Give a typed function that calls it.",
        ) from error


def _is_field(default: Any) -> TypeGuard[FieldInfo]:
    """Whether a default is a pydantic `Field(…)`."""
    from pydantic.fields import FieldInfo  # noqa: PLC0415  # a sixth of an import that makes no tool yet

    return isinstance(default, FieldInfo)


def _with_default(hint: Any, default: Any) -> Any:
    """The type of a parameter with what its default says of it."""
    if default is inspect.Parameter.empty:
        return hint
    if _is_field(default):
        hint = Annotated[hint, default]
        return hint if default.is_required() else NotRequired[hint]
    if default is None or isinstance(default, str | int | float | bool):
        hint = Annotated[hint, pydantic.Field(json_schema_extra={"default": default})]
    return NotRequired[hint]


def _with_field_defaults(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, called with the values of those defaults that are a pydantic `Field(…)`.

    Arguments from a model have them already; this is for the context's parameter and for a call by hand.
    """
    fields = {
        parameter.name: parameter.default
        for parameter in parameters(function)
        if _is_field(parameter.default) and not parameter.default.is_required()
    }
    if not fields:
        return function
    signature = inspect.Signature(parameters(function))

    @functools.wraps(function)
    def filled(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind_partial(*args, **kwargs).arguments
        for name, field in fields.items():
            if name not in bound:
                bound[name] = kwargs[name] = field.get_default(call_default_factory=True, validated_data=bound)
        return function(*args, **kwargs)

    return filled


def _arguments_adapter(name: str, fields: Mapping[str, Any]) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    typed_dict: Any = typing_extensions.TypedDict
    arguments = typed_dict(f"{name}_arguments", dict(fields))
    arguments.__pydantic_config__ = ConfigDict(extra="forbid", strict=True, val_json_bytes="base64")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(arguments)
        schema = adapter.json_schema()
    except (PydanticSchemaGenerationError, PydanticUserError, PydanticInvalidForJsonSchema) as error:
        raise ToolDefinitionError(
            f"The parameters of the tool {name!r} cannot be described as JSON: {str(error).splitlines()[0]}",
            hint=type_hint(
                error, "Use JSON-like types: str, int, float, bool, list, dict, Literal, TypedDict or a pydantic model."
            ),
        ) from error
    schema["properties"] = _with_encoding(schema.get("properties", {}), _BASE64_TEXT)
    return adapter, without_titles(schema)


_BASE64_TEXT = {"type": "string", "contentEncoding": "base64"}
_LENGTHS = ("minLength", "maxLength")  # pydantic gives those of the bytes; 3 of them are 4 characters


def _with_encoding(schema: Any, encoded: Mapping[str, Any]) -> Any:
    """The schema with `encoded` in place of the text of bytes, whose encoding pydantic does not say."""
    if isinstance(schema, list):
        return [_with_encoding(item, encoded) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "string" and schema.get("format") in ("binary", "base64", "base64url"):
        own = {key: rule for key, rule in schema.items() if key not in ("type", "format", *_LENGTHS)}
        lengths = {
            key: 4 * math.ceil(schema[key] / 3) for key in _LENGTHS if key in schema and "properties" not in encoded
        }
        return {**own, **encoded, **lengths}
    return {key: _with_encoding(rule, encoded) for key, rule in schema.items()}


def _without_encoders(hint: Any) -> Any:
    """The type without the encoders of pydantic's `Base64Bytes`: all bytes are base64 already, and decoded once."""
    if get_origin(hint) is Annotated:
        inner, *metadata = get_args(hint)
        if inner is bytes:
            metadata = [item for item in metadata if not hasattr(item, "encoder")]
        inner = _without_encoders(inner)
        return Annotated[inner, *metadata] if metadata else inner
    origin, arguments = get_origin(hint), get_args(hint)
    plain = tuple(_without_encoders(argument) for argument in arguments)
    if plain == arguments:
        return hint
    return functools.reduce(operator.or_, plain) if origin in (Union, UnionType) else origin[plain]


def _checker(card: ToolCard, adapter: TypeAdapter[Any]) -> Checker:
    validate_json = adapter.validator.validate_json

    def check(raw: bytes) -> Mapping[str, Any]:
        try:
            values: Mapping[str, Any] = validate_json(raw)
        except ValidationError as error:
            raise misfit_arguments(card, problems(error)) from error
        return values

    return check


def _output(name: str, returned: Any) -> tuple[dict[str, Any] | None, OutputChecker | None]:
    if returned in (inspect.Parameter.empty, Any, None, type(None), str):
        return None, None
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(returned)
        schema = adapter.json_schema(mode="serialization")
    except (PydanticSchemaGenerationError, PydanticUserError, PydanticInvalidForJsonSchema):
        return None, None  # any return type may be annotated; only those that JSON can describe are held to it
    validate_python = adapter.validator.validate_python

    def check_output(result: Any) -> None:
        try:
            validate_python(result)
        except ValidationError as error:
            raise misfit_result(name, problems(error)) from error

    return without_titles(_with_encoding(schema, BASE64_SCHEMA)), check_output


_STREAMS = (Generator, Iterator, AsyncGenerator, AsyncIterator)


def _streamed(function: Callable[..., Any], returned: Any) -> Any:
    """The type of what a run makes of a generator's values: what it returns, else a text or a list of them."""
    origin = get_origin(returned) or returned
    is_generator = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    if origin not in _STREAMS and not (is_generator and origin in (Iterable, AsyncIterable)):
        return returned
    value, *rest = get_args(returned) or (Any,)
    result = rest[1] if origin is Generator and len(rest) > 1 else None
    if result not in (None, NoneType):
        return result
    return str if value is str else GenericAlias(list, (value,))


def problems(error: ValidationError, *, at_most: int = 5) -> str:
    """The findings of a validation in one line: where, and what was wrong."""
    errors = error.errors(include_url=False, include_input=False)
    lines = []
    for finding in errors[:at_most]:
        where = ".".join(str(part) for part in finding["loc"]) or TEXTS.run_text("whole")
        if finding["type"] in _ARGUMENT_TEXTS:
            lines.append(TEXTS.run_text(_ARGUMENT_TEXTS[finding["type"]], name=where))
        else:
            problem = argument_problem(finding["type"], finding.get("ctx", {}), finding["msg"])
            lines.append(TEXTS.run_text("problem", name=where, problem=problem))
    if len(errors) > at_most:
        lines.append(TEXTS.run_text("more_of", count=len(errors) - at_most))
    return TEXTS.run_text("separator").join(lines)
