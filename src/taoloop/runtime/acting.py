"""One call of one tool: run it within its time, and turn whatever happens into an observation."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from taoloop.core.events import Fault, Observed
from taoloop.core.preview import preview
from taoloop.core.text import well_formed
from taoloop.errors import TaoError, ToolTimeout
from taoloop.journals.base import Artifact
from taoloop.runtime.clock import Clock
from taoloop.runtime.printed import collecting
from taoloop.runtime.threads import POOL
from taoloop.runtime.within import within
from taoloop.tools.base import Tool, ToolContext

MAX_MESSAGE_CHARS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a call: the observation, and the whole output where the observation holds only a preview."""

    observed: Observed
    artifact: Artifact | None = None


async def act(
    tool: Tool, values: Mapping[str, Any], context: ToolContext, timeout_s: float | None, clock: Clock
) -> Outcome:
    """Run the tool; only a cancellation of the caller leaves this as an exception."""
    began = clock.tick()
    with collecting() as printed:
        try:
            result = _begin(tool, values, context)
            if tool.is_async or inspect.iscoroutine(result):
                result = await within(timeout_s, result, lambda: _late(tool, timeout_s))
            output = tool.render(result)
        except BaseException as error:  # every error of a tool is an observation
            if is_ours(error):
                raise
            fault = fault_of(error)
            observed = Observed(
                call_id=context.call_id,
                ok=False,
                output="",
                error=fault,
                latency_s=clock.tick() - began,
                printed=str(printed) if printed.total else "",
            )
            return Outcome(observed=observed)
    latency_s = clock.tick() - began
    text = well_formed(output.text)
    limit = tool.card.max_preview_chars
    shown = text if len(text) <= limit else preview(text, output.form, limit).text
    cut = shown is not text
    ref = f"obs_{context.call_id}" if cut else None
    observed = Observed(
        call_id=context.call_id,
        ok=True,
        output=shown,
        form=output.form,
        artifact=ref,
        size_chars=len(text),
        output_digest=hashlib.sha256(text.encode()).hexdigest() if cut else "",
        latency_s=latency_s,
        printed=well_formed(str(printed)) if printed.total else "",
    )
    return Outcome(observed=observed, artifact=Artifact(ref=ref, body=text, form=output.form) if ref else None)


def fault_of(error: BaseException) -> Fault:
    """The error of a tool as the model sees it: code, text, whether to retry, what to do."""
    if isinstance(error, TaoError) and isinstance(getattr(error, "message", None), str):
        return Fault(
            code=_bounded(str(error.code)),
            message=_bounded(error.message),
            retryable=bool(error.retryable),
            hint=_bounded(str(error.hint or "")),
        )
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # a broken __str__ is no reason to lose the observation
        text = "(its text cannot be shown)"
    return Fault(
        code="exception",
        message=_bounded(f"{type(error).__name__}: {text}" if text else type(error).__name__),
    )


def _begin(tool: Tool, values: Mapping[str, Any], context: ToolContext) -> Any:
    """The result of a tool that ends at once, or a coroutine of it.

    Context variables that a sync tool sets are its own, here as in a thread.
    """
    if tool.is_async:
        return tool.invoke(values, context)
    if tool.runs_inline(values):
        return contextvars.copy_context().run(_invoke_here, tool, values, context)
    return _in_thread(tool, values, context)


async def _in_thread(tool: Tool, values: Mapping[str, Any], context: ToolContext) -> Any:
    result = await POOL.run(partial(_invoke, tool, values, context))
    return await result if inspect.iscoroutine(result) else result


def _invoke_here(tool: Tool, values: Mapping[str, Any], context: ToolContext) -> Any:
    """Call a tool in the thread of the loop, where a KeyboardInterrupt is Ctrl-C and stops the run."""
    try:
        return tool.invoke(values, context)
    except (GeneratorExit, StopIteration) as error:
        raise RuntimeError(f"{type(error).__name__} was raised in the tool") from error


def _invoke(tool: Tool, values: Mapping[str, Any], context: ToolContext) -> Any:
    """Call a blocking tool in its thread, where what would end a program or a coroutine elsewhere has no meaning."""
    try:
        return tool.invoke(values, context)
    except (KeyboardInterrupt, GeneratorExit, StopIteration) as error:
        raise RuntimeError(f"{type(error).__name__} was raised in the tool") from error


def _late(tool: Tool, timeout_s: float | None) -> ToolTimeout:
    card = tool.card
    message = f"{card.name!r} gave no result within {timeout_s:g} s."
    if card.reads_only:
        return ToolTimeout(message)
    return ToolTimeout(
        f"{message} Its effect may or may not have happened; the call may still be running.",
        retryable=card.idempotent,
        hint="" if card.idempotent else "Find out whether it happened before you try again.",
    )


def is_ours(error: BaseException) -> bool:
    """True for a cancellation of this task, and for Ctrl-C; False where the tool itself raised such a thing."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt | GeneratorExit)


def _bounded(text: str) -> str:
    text = well_formed(text)
    if len(text) <= MAX_MESSAGE_CHARS:
        return text
    return f"{text[:MAX_MESSAGE_CHARS]} [… {len(text) - MAX_MESSAGE_CHARS:,} more characters]"
