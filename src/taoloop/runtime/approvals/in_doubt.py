"""Calls in doubt where the runtime has to find out: the tool's probe, and then a person."""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

from taoloop.core.events import DoubtSettled, Event, Fact, InDoubt
from taoloop.core.redaction.redactor import Redactor, contains_redaction
from taoloop.core.trace import Trace
from taoloop.core.views.steps import NO_OUTCOME, PROBE, TIMED_OUT, CallView
from taoloop.errors import ConfigError, TaoError, ToolTimeout
from taoloop.journals.base import Journal
from taoloop.runtime.approvals.request import ApprovalRequest, Approver, normalise_answer
from taoloop.runtime.engine.clock import Clock, SystemClock
from taoloop.runtime.engine.redaction import redactor_for
from taoloop.runtime.engine.stdout_capture import capture_output
from taoloop.runtime.engine.time_limit import within
from taoloop.runtime.engine.tool_execution import (
    Clean,
    Outcome,
    fault_of,
    is_own_cancellation,
    is_still_running,
    outcome_of,
)
from taoloop.runtime.engine.worker_threads import POOL
from taoloop.tools.tool import Probe, Tool, ToolContext, ToolOutput
from taoloop.tools.toolbox import Toolbox

PROBE_S = 30.0
"""How long a probe may take at most; less where the tool itself may take less."""

Settling = Literal["happened", "repeat", "leave"]
"""What a person says of a call in doubt: it happened; it did not, run it again; it stays open."""

SETTLINGS: tuple[Settling, ...] = ("happened", "repeat", "leave")

_HAPPENED: dict[Settling, bool | None] = {"happened": True, "repeat": False, "leave": None}

_LOG = logging.getLogger("taoloop")


async def run_probe(
    toolbox: Toolbox, call: CallView, args: Any, context: ToolContext, clock: Clock, clean: Clean | None = None
) -> tuple[DoubtSettled, Outcome | None]:
    """What the probe of the tool says of a call in doubt (with its real `args`), and the output if it has one.

    A probe that hangs, raises or is not there has found nothing out. That the call did not happen is believed only
    where it is not still at work in a thread of this process.
    """
    call_id, began = call.requested.call_id, clock.tick()
    going_on = is_still_running(context.idempotency_key)  # before the probe: afterwards it may just have happened
    try:
        tool = toolbox.get(call.requested.tool)
        if tool.probe is None:
            return _settled(call_id, None, "the tool has no probe any more"), None
        if args == call.args and contains_redaction(args):
            return _settled(call_id, None, "its arguments were redacted, so the probe cannot be asked"), None
        timeout_s = min(tool.card.timeout_s, PROBE_S)
        values = tool.prepare(args).values
        with capture_output() as printed:
            answer = await within(timeout_s, _ask_probe(tool.probe, values, context), _late)
    except BaseException as error:  # whatever a probe does, it has found nothing out
        if is_own_cancellation(error):
            raise
        return _settled(call_id, None, f"the probe failed: {fault_of(error, clean).message}"), None
    if answer is None:
        return _settled(call_id, None, "the probe could not tell"), None
    if answer is False:
        if going_on:
            return _settled(call_id, None, "it had not happened yet, but the call was still running"), None
        return _settled(call_id, False), None
    if answer is True:
        return _settled(call_id, True), None
    if _is_nothing(answer):
        return _settled(call_id, None, "the probe gave something empty, which may mean either"), None
    return _with_output(
        tool, call_id, answer, partial(outcome_of, latency_s=clock.tick() - began, printed=printed, clean=clean)
    )


async def ask_person(approver: Approver, trace: Trace, call: CallView) -> DoubtSettled | None:
    """What a person says of a call in doubt; None if there is no answer now.

    Running it again is never taken from a plain yes: that means that it happened. A plain no leaves it open.
    """
    requested = call.requested
    question = ApprovalRequest(
        run_id=trace.run_id,
        call_id=requested.call_id,
        tool=requested.tool,
        args=copy.deepcopy(call.args),  # what the approver does to it must not change what is repeated
        reasons=(),
        card=trace.card(requested.tool),
        doubt=describe_doubt(trace, call),
    )
    try:
        answer: object = approver(question)
        if inspect.isawaitable(answer):
            answer = await answer
    except Exception:  # noqa: BLE001  # whatever an approver raises is no answer
        _LOG.exception("the approver of run %s failed at %s", trace.run_id, requested.call_id)
        return None
    given = normalise_answer(answer, trace.run_id)
    if given is None:
        return None
    said: Settling = given.settle or ("happened" if given.approved is True else "leave")
    return doubt_settled_by(requested.call_id, said, given.by, given.note)


def doubt_settled_by(call_id: str, how: Settling, by: str = "user", note: str = "") -> DoubtSettled:
    """A person's word on a call in doubt, as a fact."""
    by = "user" if by in ("", PROBE) else by  # nobody may pass for the probe
    return DoubtSettled(call_id=call_id, happened=_HAPPENED[how], by=by, note=note)


def describe_doubt(trace: Trace, call: CallView) -> str:
    """What is known of a call in doubt, for a person, in the run's language."""
    texts = _TEXTS.get(trace.agent.language, _TEXTS["en"])
    at = datetime.fromtimestamp(call.started_at or 0.0, UTC)
    timed_out = call.doubt is not None and call.doubt.reason == TIMED_OUT
    text = texts["timed_out" if timed_out else "no_outcome"].format(at=f"{at:%Y-%m-%d %H:%M:%S} UTC", n=call.attempts)
    if call.settled is not None and call.settled.note:
        text = texts["probed"].format(text=text, note=call.settled.note)
    return text


async def settle_doubt(
    journal: Journal,
    run_id: str,
    call_id: str,
    how: Settling,
    *,
    by: str = "user",
    note: str = "",
    clock: Clock | None = None,
    redactor: Redactor | None = None,
) -> Trace:
    """Write down what a person says of a call in doubt; the run goes on from there when it is resumed.

    Takes the run: no process may be at work on it. Gives its trace as it is then.

    Raises:
        RunNotFound: the journal has no such run.
        ConfigError: no call of this id is in doubt, a call to be repeated may be under way, or `how` is no answer.
        FenceLost: a process went on with the run at this moment.
    """
    if how not in SETTLINGS:
        raise ConfigError(f"{how!r} says nothing of a call in doubt.", hint=f"Say one of: {', '.join(SETTLINGS)}.")
    seen = Trace(run_id, await journal.load(run_id))
    _require_over(seen, _require_doubt(seen, call_id), how, (clock or SystemClock()).now())
    lease = await journal.acquire(run_id, at=len(seen))
    trace = Trace(run_id, await journal.load(run_id))
    call = _require_doubt(trace, call_id)
    facts: list[Fact] = [doubt_settled_by(call_id, how, by, note)]
    if call.doubt is None:  # its process died, and nobody has written that down yet
        facts.insert(0, InDoubt(call_id=call_id, reason=NO_OUTCOME))
    events: list[Event] = []
    clean = redactor if redactor is not None else redactor_for(None, ())
    for fact in facts:
        event = Event(len(trace), (clock or SystemClock()).now(), clean.fact(fact))
        trace.append(event)
        events.append(event)
    await journal.append(lease, events)
    return trace


def _require_doubt(trace: Trace, call_id: str) -> CallView:
    call = trace.pending.get(call_id)
    if trace.finished is None and call is not None and call.attempts:
        settled = call.settled
        if settled is None or (settled.by == PROBE and settled.happened is None):
            return call
    if trace.finished is not None:
        hint = "The run is over; a run that was stopped asks when it is resumed."
    else:
        open_calls = [one for one, view in trace.pending.items() if view.attempts]
        hint = f"Calls in doubt: {', '.join(open_calls) or 'none'}."
    raise ConfigError(f"Run {trace.run_id}: {call_id} is not in doubt.", hint=hint)


def _require_over(trace: Trace, call: CallView, how: Settling, now: float) -> None:
    """Refuse to repeat a call that a living process may still be at: nobody wrote down that it is in doubt."""
    card = trace.card(call.requested.tool)
    left_s = (call.started_at or 0.0) + (card.timeout_s if card is not None else 0.0) - now
    if how == "repeat" and call.doubt is None and trace.paused is None and left_s > 0:
        raise ConfigError(
            f"Run {trace.run_id}: {call.requested.call_id} may still be under way, for another {left_s:.0f} s.",
            hint="Wait, or, if no process has the run any more, resume it first: it then asks about the call.",
        )


def _late(timeout_s: float | None) -> ToolTimeout:
    return ToolTimeout(f"the probe gave no answer within {timeout_s:g} s")


async def _ask_probe(probe: Probe, values: Mapping[str, Any], context: ToolContext) -> Any:
    if probe.is_async:
        return await probe.invoke(values, context)
    answer = await POOL.run(partial(_in_thread, probe, values, context))
    return await answer if inspect.iscoroutine(answer) else answer


def _in_thread(probe: Probe, values: Mapping[str, Any], context: ToolContext) -> Any:
    try:
        return probe.invoke(values, context)
    except (KeyboardInterrupt, GeneratorExit, StopIteration) as error:
        raise RuntimeError(f"{type(error).__name__} was raised in the probe") from error


def _settled(call_id: str, happened: bool | None, note: str = "") -> DoubtSettled:
    return DoubtSettled(call_id=call_id, happened=happened, by=PROBE, note=note)


def _is_nothing(answer: Any) -> bool:
    """An empty list of findings, a count of 0, a False of another library: no output by which a call has happened."""
    try:
        return not answer
    except Exception:  # noqa: BLE001  # a value may refuse to be asked; whether it is an output is told next
        return False


def _with_output(
    tool: Tool, call_id: str, answer: Any, outcome: Callable[[Tool, str, ToolOutput], Outcome]
) -> tuple[DoubtSettled, Outcome | None]:
    """A call that happened, with the output that its probe has found."""
    try:
        output = tool.render(answer)
    except TaoError as error:
        return _settled(call_id, True, f"what the probe gave is no output of it: {error.message}"), None
    return _settled(call_id, True), outcome(tool, call_id, output)


_TEXTS: dict[str, dict[str, str]] = {
    "en": {
        "no_outcome": "It was started at {at} (attempt {n}), and the process stopped before its outcome was kept: "
        "it may have happened or not.",
        "timed_out": "It was started at {at} (attempt {n}) and gave no result in time: it may have happened or not, or "
        "may still happen.",
        "probed": "{text} The tool's own check found nothing out: {note}.",
    },
    "zh": {
        "no_outcome": "它于 {at} 开始（第 {n} 次），结果保存之前进程停止：可能已生效，也可能没有。",
        "timed_out": "它于 {at} 开始（第 {n} 次），没有按时返回结果：可能已生效，可能没有，也可能稍后才生效。",
        "probed": "{text}工具自身的检查没有查明：{note}。",
    },
}
