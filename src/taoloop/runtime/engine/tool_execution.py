"""One call of one tool: run it within its time, and turn whatever happens into an observation."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from taoloop.core.attachments.files import File
from taoloop.core.events import Event, Fact, Fault, Observed, new_observed
from taoloop.core.images import Image
from taoloop.core.preview import preview
from taoloop.core.text import RUN_LANGUAGE, replace_surrogates
from taoloop.errors import ConfigError, HandedOver, TaoError, ToolError, ToolTimeout
from taoloop.journals.base import Artifact, Journal, Lease
from taoloop.runtime.engine.clock import Clock, within
from taoloop.runtime.engine.stdout_capture import CapturedOutput, capture_output
from taoloop.runtime.engine.streamed_values import StreamedValues
from taoloop.runtime.texts import TEXTS
from taoloop.runtime.threads import POOL
from taoloop.tools.tool import Probe, RunContext, Tool, ToolOutput
from taoloop.translation import translate_error

MAX_MESSAGE_CHARS = 2_000

Clean = Callable[[str], str]
"""Takes secrets out of a text."""

_RUNNING_KEYS: list[str] = []  # of calls in threads, one entry for each; append and remove are atomic


@dataclass(slots=True)
class Outcome:
    """The outcome of one call."""

    observed: Observed
    """The observation."""

    artifacts: tuple[Artifact, ...] = ()
    """The complete output, if the observation has only a preview, and the images that were taken in."""

    images: tuple[Image, ...] = ()
    """The images that the tool returned, still to be taken in (`RunArtifacts.accept`)."""
    files: tuple[File, ...] = ()
    """The files that it returned, in the same way."""

    is_lost: bool = False
    """Whether it gave no result in time, so that nobody can tell what it did or will still do."""

    is_done: bool = True
    """Whether the tool ran to its end, though perhaps with a result that is not a valid output."""

    handed_over: HandedOver | None = None
    """Set if the result comes later, from outside; then the observation does not count."""


async def execute_tool(
    tool: Tool,
    values: Mapping[str, Any],
    call_id: str,
    context: RunContext | None,
    timeout_s: float | None,
    clock: Clock,
    key: str = "",
    clean: Clean | None = None,
    progress: Callable[[str, str], None] = lambda _name, _text: None,
) -> Outcome:
    """Run the tool; it raises only a cancellation of the caller.

    What a generator gives is passed to `progress(name of the tool, text)` as it comes, and taken together is the
    result (`StreamedValues`).
    `clean` removes secrets from a text before any of it is cut. `is_still_running` reports the `key` (of a call that
    may change something) while a call in a thread runs, and for an async call once it gave no result in time.
    """
    began, is_done, stream = clock.tick(), False, StreamedValues(tool, progress)
    with capture_output() as printed:
        try:
            result = _begin(tool, values, context, key, stream)
            if inspect.iscoroutine(result):
                result = await within(timeout_s, result, partial(_timeout_error, tool, key))
            is_done = True
            output = tool.render(result)
        except BaseException as error:  # every error of a tool is an observation
            stream.stop()
            if is_own_cancellation(error):
                raise
            fault = fault_of(error, clean)
            observed = Observed(
                call_id=call_id,
                ok=False,
                output="",
                error=fault,
                latency_s=clock.tick() - began,
                printed=_printed(printed, clean),
            )
            handed_over = error if isinstance(error, HandedOver) and tool.card.reads_only else None
            is_lost = isinstance(error, ToolTimeout)
            return Outcome(observed=observed, is_lost=is_lost, is_done=is_done, handed_over=handed_over)
    return outcome_of(tool, call_id, output, clock.tick() - began, printed, clean)


def outcome_of(
    tool: Tool, call_id: str, output: ToolOutput, latency_s: float, printed: CapturedOutput, clean: Clean | None = None
) -> Outcome:
    """The outcome of a call with `output`: an observation with as much of it as the model may see."""
    text = replace_surrogates(output.text)
    if clean is not None:
        text = clean(text)
    limit = tool.card.max_preview_chars
    output_text = text if len(text) <= limit else preview(text, output.form, limit)
    is_cut = output_text is not text
    ref = f"obs_{call_id}" if is_cut else None
    observed = new_observed(
        call_id=call_id,
        ok=True,
        output=output_text,
        form=output.form,
        artifact=ref,
        size_chars=len(text),
        output_digest=hashlib.sha256(text.encode()).hexdigest() if is_cut else "",
        latency_s=latency_s,
        printed=_printed(printed, clean),
    )
    artifacts = (Artifact(ref=ref, body=text, form=output.form),) if ref else ()
    return Outcome(observed, artifacts, output.images, output.files)


_MOST_CHARS_OF_OURS = 400
"""A longer error is not one of taoloop's own, whose English texts are translated in a run in Chinese."""


def fault_of(error: BaseException, clean: Clean | None = None) -> Fault:
    """The error of a tool as the model sees it: code, text, whether to retry, what to do."""
    if isinstance(error, TaoError) and isinstance(getattr(error, "message", None), str):
        message, hint = error.message, str(error.hint or "")
        if RUN_LANGUAGE.get() == "zh" and len(message) + len(hint) <= _MOST_CHARS_OF_OURS:
            message, hint = translate_error(message, "zh"), translate_error(hint, "zh")
        return Fault(
            code=_bounded(str(error.code), clean),
            message=_bounded(message, clean),
            retryable=bool(error.retryable),
            hint=_bounded(hint, clean),
        )
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # a broken __str__ must not lose the observation
        text = "(its text cannot be shown)"
    name = type(error).__name__
    return Fault(code="exception", message=_bounded(f"{name}: {text}" if text else name, clean))


def _printed(printed: CapturedOutput, clean: Clean | None) -> str:
    if not printed.total:
        return ""
    text = replace_surrogates(str(printed))
    return text if clean is None else clean(text)


def is_still_running(key: str) -> bool:
    """Whether a call with this key may still be running, although nobody waits for it.

    Either its thread in this process has not ended, or it is async and gave no result in time.
    """
    return key in _RUNNING_KEYS


def _begin(tool: Tool, values: Mapping[str, Any], context: RunContext | None, key: str, stream: StreamedValues) -> Any:
    """The result of an inline tool, or a coroutine that returns the result of any other.

    Context variables that a sync tool sets stay its own, as in a thread.
    """
    if tool.is_async:
        return _awaited(tool.invoke(values, context), stream)
    if tool.inline:
        result = contextvars.copy_context().run(_invoke_here, tool, values, context, stream)
        return _awaited(result, stream) if _is_later(result) else result
    return invoke_in_thread(tool, values, context, key, stream)


def _is_later(result: Any) -> bool:
    return inspect.iscoroutine(result) or hasattr(result, "__anext__")


async def _awaited(result: Any, stream: StreamedValues) -> Any:
    """The result of a coroutine or of an async generator, or of one within the other."""
    if inspect.isawaitable(result):
        result = await result
    return await stream.take_later(result) if hasattr(result, "__anext__") else stream.take(result)


async def invoke_in_thread(
    tool: Tool | Probe, values: Mapping[str, Any], context: Any, key: str = "", stream: StreamedValues | None = None
) -> Any:
    """The result of a blocking tool or probe, called in a thread; what it has to await is awaited here."""
    result = await POOL.run(partial(_invoke, tool, values, context, key, stream))
    if stream is None:
        return await result if inspect.iscoroutine(result) else result
    return await _awaited(result, stream) if _is_later(result) else result


def _invoke_here(tool: Tool, values: Mapping[str, Any], context: RunContext | None, stream: StreamedValues) -> Any:
    """Call a tool in the thread of the loop, where a KeyboardInterrupt is Ctrl-C and stops the run."""
    try:
        return stream.take(tool.invoke(values, context))
    except (GeneratorExit, StopIteration) as error:
        raise RuntimeError(f"{type(error).__name__} was raised in the tool") from error


def _invoke(
    tool: Tool | Probe, values: Mapping[str, Any], context: Any, key: str, stream: StreamedValues | None
) -> Any:
    """Call a blocking tool in its thread, in which an exception that ends a program or a coroutine has no meaning."""
    if key:
        _RUNNING_KEYS.append(key)
    try:
        result = tool.invoke(values, context)
        return result if stream is None else stream.take(result)
    except (KeyboardInterrupt, GeneratorExit, StopIteration) as error:
        raise RuntimeError(f"{type(error).__name__} was raised in the tool") from error
    finally:
        if key:
            _RUNNING_KEYS.remove(key)


def _timeout_error(tool: Tool, key: str, timeout_s: float | None) -> ToolTimeout:
    card = tool.card
    if key and tool.is_async:
        _RUNNING_KEYS.append(key)  # it was cancelled, but a thread or request that it waited for may go on
    message = TEXTS.run_text("tool_late", tool=card.name, s=timeout_s)
    if card.reads_only:
        return ToolTimeout(message)
    return ToolTimeout(
        message + TEXTS.run_text("tool_late_effect"),
        retryable=card.idempotent,
        hint="" if card.idempotent else TEXTS.run_text("tool_late_hint"),
    )


def is_own_cancellation(error: BaseException) -> bool:
    """True for a cancellation of this task, and for Ctrl-C; False where the tool itself raised such a thing."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt | GeneratorExit)


def _bounded(text: str, clean: Clean | None = None) -> str:
    text = replace_surrogates(text)
    if clean is not None:
        text = clean(text)  # before it is cut: half of a secret is not recognised
    if len(text) <= MAX_MESSAGE_CHARS:
        return text
    note = TEXTS.run_text("message_cut", n=len(text) - MAX_MESSAGE_CHARS).strip()
    return f"{text[:MAX_MESSAGE_CHARS]} {note}"


# Calls of transactional tools: the handler and the outcome share one transaction of the journal

TRANSACTION_S = 4.0
"""The most seconds that such a call may take: other processes wait for the file, and give up after 5 seconds."""


def require_transactions(journal: Journal, tools: Iterable[Tool]) -> None:
    """Refuse a journal in which transactional tools cannot write.

    Raises:
        ConfigError: names the tool.
    """
    tool = next((tool for tool in tools if tool.connection_parameter is not None), None)
    if tool is None:
        return
    from taoloop.journals.sqlite.transaction import HasTransactions  # noqa: PLC0415  # loads the database

    if not isinstance(journal, HasTransactions):
        raise ConfigError(
            f"The tool {tool.name!r} is transactional, and {type(journal).__name__} has no transactions.",
            hint="Keep the runs in a file: Agent(journal='runs.db').",
        )


async def transact(
    journal: Journal,
    lease: Lease,
    tool: Tool,
    values: Mapping[str, Any],
    timeout_s: float | None,
    run: Callable[[Mapping[str, Any], float], Awaitable[Outcome]],
    event_of: Callable[[Fact], Event],
    add_committed: Callable[[Event], None],
) -> Outcome | None:
    """Run the call; returns None once the journal has its outcome, and passes the event to `add_committed`.

    All earlier events must have been committed. An outcome that is returned is not stored, nor is anything that the
    tool wrote: the call failed, or took too long.
    """
    from taoloop.journals.sqlite.transaction import HasTransactions, raise_if_cancelled  # noqa: PLC0415  # the same

    assert isinstance(journal, HasTransactions)  # noqa: S101  # checked at the start of the run
    assert tool.connection_parameter is not None  # noqa: S101  # all such tools have one
    transaction = await journal.transaction(lease)
    try:
        limit_s = TRANSACTION_S if timeout_s is None else min(timeout_s, TRANSACTION_S)
        outcome = await run({**values, tool.connection_parameter: transaction.connection}, limit_s)
        if outcome.is_lost:
            return _rolled_back(outcome, TEXTS.run_text("tool_late", tool=tool.name, s=limit_s), retryable=True)
        if not outcome.is_done:  # the tool raised, whatever it called its error
            return outcome
        event = event_of(outcome.observed)
        try:
            await transaction.commit([event], outcome.artifacts)
        except ToolError as error:
            return _rolled_back(outcome, fault_of(error).message)
        add_committed(event)  # before anything else: a cancellation must find the trace as the journal has it
        raise_if_cancelled()
        return None
    finally:
        await transaction.roll_back()


def _rolled_back(outcome: Outcome, message: str, *, retryable: bool = False) -> Outcome:
    """The outcome of a call that was rolled back: nothing happened, so it is not in doubt."""
    fault = Fault(
        code="timeout" if retryable else "rolled_back",
        message=TEXTS.run_text("rolled_back", message=message),
        retryable=retryable,
    )
    observed = replace(
        outcome.observed,
        ok=False,
        output="",
        artifact=None,
        output_digest="",
        size_chars=0,
        error=fault,
        images=(),
        files=(),
    )
    return Outcome(observed, is_done=False)
