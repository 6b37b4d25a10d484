"""One call of one tool: run it within its time, and turn whatever happens into an observation."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from taoloop.core.events import Fault, Observed, new_observed
from taoloop.core.preview import preview
from taoloop.core.text import replace_surrogates
from taoloop.errors import HandedOver, TaoError, ToolTimeout
from taoloop.journals.base import Artifact
from taoloop.runtime.engine.clock import Clock
from taoloop.runtime.engine.stdout_capture import CapturedOutput, capture_output
from taoloop.runtime.engine.time_limit import within
from taoloop.runtime.threads import POOL
from taoloop.tools.tool import Tool, ToolContext, ToolOutput

MAX_MESSAGE_CHARS = 2_000

Clean = Callable[[str], str]
"""Takes secrets out of a text."""

_GOING_ON: list[str] = []  # the keys of calls in threads, one entry for each; append and remove are atomic


@dataclass(slots=True)
class Outcome:
    """What came of a call: the observation, and the whole output where the observation holds only a preview.

    `is_lost`: it gave no result in time, so that nobody can tell what it did or will still do. `is_done`: the tool came
    to its end, though perhaps with a result that is no output of it. `handed_over`: it has no result yet, for that
    comes from outside; the observation is none.
    """

    observed: Observed
    artifact: Artifact | None = None
    is_lost: bool = False
    is_done: bool = True
    handed_over: HandedOver | None = None


async def execute_tool(
    tool: Tool,
    values: Mapping[str, Any],
    call_id: str,
    context: ToolContext | None,
    timeout_s: float | None,
    clock: Clock,
    key: str = "",
    clean: Clean | None = None,
) -> Outcome:
    """Run the tool; only a cancellation of the caller leaves this as an exception.

    `clean` takes secrets out of a text, before anything of it is cut.
    Under its `key` (of a call that may change something) a call in a thread is known to `is_going_on` while it lasts,
    and an async one that gave no result in time from then on.
    """
    began, is_done = clock.tick(), False
    with capture_output() as printed:
        try:
            result = _begin(tool, values, context, key)
            if tool.is_async or inspect.iscoroutine(result):
                result = await within(timeout_s, result, partial(_late, tool, key))
            is_done = True
            output = tool.render(result)
        except BaseException as error:  # every error of a tool is an observation
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
    """The outcome of a call that gave `output`: an observation with as much of it as the model is to see."""
    text = replace_surrogates(output.text)
    if clean is not None:
        text = clean(text)
    limit = tool.card.max_preview_chars
    shown = text if len(text) <= limit else preview(text, output.form, limit).text
    cut = shown is not text
    ref = f"obs_{call_id}" if cut else None
    observed = new_observed(
        call_id=call_id,
        ok=True,
        output=shown,
        form=output.form,
        artifact=ref,
        size_chars=len(text),
        output_digest=hashlib.sha256(text.encode()).hexdigest() if cut else "",
        latency_s=latency_s,
        printed=_printed(printed, clean),
    )
    artifact = Artifact(ref=ref, body=text, form=output.form) if ref else None
    return Outcome(observed, artifact)


def fault_of(error: BaseException, clean: Clean | None = None) -> Fault:
    """The error of a tool as the model sees it: code, text, whether to retry, what to do."""
    if isinstance(error, TaoError) and isinstance(getattr(error, "message", None), str):
        return Fault(
            code=_bounded(str(error.code), clean),
            message=_bounded(error.message, clean),
            retryable=bool(error.retryable),
            hint=_bounded(str(error.hint or ""), clean),
        )
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # a broken __str__ is no reason to lose the observation
        text = "(its text cannot be shown)"
    name = type(error).__name__
    return Fault(code="exception", message=_bounded(f"{name}: {text}" if text else name, clean))


def _printed(printed: CapturedOutput, clean: Clean | None) -> str:
    if not printed.total:
        return ""
    text = replace_surrogates(str(printed))
    return text if clean is None else clean(text)


def is_still_running(key: str) -> bool:
    """Whether a call with this key may be at work, though nobody waits for it.

    It is in a thread of this process that has not come to its end, or it is async, and gave no result in time here.
    """
    return key in _GOING_ON


def _begin(tool: Tool, values: Mapping[str, Any], context: ToolContext | None, key: str) -> Any:
    """The result of an inline tool, or a coroutine of any other one's.

    Context variables that a sync tool sets are its own, here as in a thread.
    """
    if tool.is_async:
        return tool.invoke(values, context)
    if tool.inline:
        return contextvars.copy_context().run(_invoke_here, tool, values, context)
    return _in_thread(tool, values, context, key)


async def _in_thread(tool: Tool, values: Mapping[str, Any], context: ToolContext | None, key: str) -> Any:
    result = await POOL.run(partial(_invoke, tool, values, context, key))
    return await result if inspect.iscoroutine(result) else result


def _invoke_here(tool: Tool, values: Mapping[str, Any], context: ToolContext | None) -> Any:
    """Call a tool in the thread of the loop, where a KeyboardInterrupt is Ctrl-C and stops the run."""
    try:
        return tool.invoke(values, context)
    except (GeneratorExit, StopIteration) as error:
        raise RuntimeError(f"{type(error).__name__} was raised in the tool") from error


def _invoke(tool: Tool, values: Mapping[str, Any], context: ToolContext | None, key: str) -> Any:
    """Call a blocking tool in its thread, where what would end a program or a coroutine elsewhere has no meaning."""
    if key:
        _GOING_ON.append(key)
    try:
        return tool.invoke(values, context)
    except (KeyboardInterrupt, GeneratorExit, StopIteration) as error:
        raise RuntimeError(f"{type(error).__name__} was raised in the tool") from error
    finally:
        if key:
            _GOING_ON.remove(key)


def _late(tool: Tool, key: str, timeout_s: float | None) -> ToolTimeout:
    card = tool.card
    if key and tool.is_async:
        _GOING_ON.append(key)  # it was told to stop, but not so the thread or the request that it waited for
    message = f"{card.name!r} gave no result within {timeout_s:g} s."
    if card.reads_only:
        return ToolTimeout(message)
    return ToolTimeout(
        f"{message} Its effect may or may not have happened; the call may still be running.",
        retryable=card.idempotent,
        hint="" if card.idempotent else "Find out whether it happened before you try again.",
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
        text = clean(text)  # before it is cut: half of a secret is not known as one
    if len(text) <= MAX_MESSAGE_CHARS:
        return text
    return f"{text[:MAX_MESSAGE_CHARS]} [… {len(text) - MAX_MESSAGE_CHARS:,} more characters]"
