"""Calls in doubt, which may or may not have happened: the tool's probe is asked, and then a person."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

from taoloop.core.events import ActionStarted, DoubtSettled, Resumed
from taoloop.core.redaction.redactor import contains_redaction
from taoloop.core.trace import Trace
from taoloop.core.views.steps import PROBE, TIMED_OUT, CallView
from taoloop.errors import TaoError, ToolTimeout
from taoloop.runtime.approvals.request import ApprovalRequest, Approver, Settling, ask
from taoloop.runtime.engine.clock import Clock, within
from taoloop.runtime.engine.stdout_capture import capture_output
from taoloop.runtime.engine.tool_execution import (
    Clean,
    Outcome,
    fault_of,
    invoke_in_thread,
    is_own_cancellation,
    is_still_running,
    outcome_of,
)
from taoloop.runtime.texts import TEXTS
from taoloop.strategies.in_doubt import plan_unresolved_calls
from taoloop.tools.tool import RunContext
from taoloop.tools.toolbox import Toolbox

PROBE_S = 30.0
"""The seconds that a probe may take at most; less where the tool itself may take less."""

_HAPPENED: dict[Settling, bool | None] = {"happened": True, "repeat": False, "leave": None}


async def run_probe(
    toolbox: Toolbox,
    call: CallView,
    args: Any,
    context: RunContext,
    clock: Clock,
    clean: Clean | None = None,
    earlier: str = "",
) -> tuple[DoubtSettled, Outcome | None]:
    """What the probe of the tool reports about a call in doubt (with its real `args`), and the output if it has one.

    A probe that hangs, raises or is missing settles nothing. Its report that the call did not happen is believed only
    if the call is not still running in a thread of this process, nor perhaps in an earlier one (`earlier`, from
    `earlier_holder`).
    """

    def settled(happened: bool | None, note: str = "", **values: object) -> DoubtSettled:
        text = TEXTS.run_text(f"probe_{note}", **values) if note else ""
        return DoubtSettled(call_id=call_id, happened=happened, by=PROBE, note=text)

    call_id, began = call.requested.call_id, clock.tick()
    was_running = is_still_running(context.idempotency_key)  # before the probe: afterwards it may just have happened
    try:
        tool = toolbox.get(call.requested.tool)
        if (probe := tool.probe) is None:
            return settled(None, "gone"), None
        if args == call.args and contains_redaction(args):
            return settled(None, "redacted"), None
        timeout_s = min(tool.card.timeout_s, PROBE_S)
        values = tool.prepare(args).values
        with capture_output() as printed:
            asking = probe.invoke(values, context) if probe.is_async else invoke_in_thread(probe, values, context)
            report = await within(timeout_s, asking, lambda s: ToolTimeout(TEXTS.run_text("probe_late", s=s)))
    except BaseException as error:  # whatever a probe does, it has settled nothing
        if is_own_cancellation(error):
            raise
        return settled(None, "failed", why=fault_of(error, clean).message), None
    if report is None:
        return settled(None, "unsure"), None
    if report is False:
        if earlier:
            return settled(None, f"holder_{earlier}"), None
        return (settled(None, "running") if was_running else settled(False)), None
    if report is True:
        return settled(True), None
    if _is_empty(report):
        return settled(None, "empty"), None
    try:
        output = tool.render(report)
    except TaoError as error:
        return settled(True, "no_output", why=error.message), None
    return settled(True), outcome_of(tool, call_id, output, clock.tick() - began, printed, clean)


async def ask_person(approver: Approver, trace: Trace, call: CallView) -> DoubtSettled | None:
    """What a person says about a call in doubt; None if there is no answer now.

    A plain yes means that it happened, and never that it is to run again. A plain no leaves it open.
    """
    answer = await ask(approver, doubt_request(trace, call))
    if answer is None:
        return None
    how: Settling = answer.settle or ("happened" if answer.approved is True else "leave")
    return settled_by(call.requested.call_id, how, answer.by, answer.note, answer.authenticated)


def doubt_request(trace: Trace, call: CallView) -> ApprovalRequest:
    """The question whether a call in doubt happened."""
    requested = call.requested
    return ApprovalRequest(
        run_id=trace.run_id,
        call_id=requested.call_id,
        tool=requested.tool,
        args=copy.deepcopy(call.args),  # what the approver does to it must not change what is repeated
        reasons=(),
        card=trace.card(requested.tool),
        digest=requested.digest,
        policy=requested.policy,
        since=call.started_at,
        doubt=describe_doubt(trace, call),
    )


def doubt_requests(trace: Trace) -> list[ApprovalRequest]:
    """The questions of a waiting run about its calls in doubt; none of a run that does not wait."""
    if trace.paused is None:
        return []
    return [doubt_request(trace, call) for call in plan_unresolved_calls(trace, tuple(trace.pending.values())).ask]


def stuck_requests(trace: Trace) -> list[ApprovalRequest]:
    """The questions about the calls of a run that no recovery resumes: those that may not simply run again."""

    def is_asked(call: CallView) -> bool:
        card, settled = trace.card(call.requested.tool), call.settled
        is_safe = card is not None and (card.reads_only or card.idempotent or card.transactional)
        is_open = settled is None or (settled.by == PROBE and settled.happened is None)
        return bool(call.attempts) and is_open and not is_safe

    return [doubt_request(trace, call) for call in trace.pending.values() if is_asked(call)]


def settled_by(call_id: str, how: Settling, by: str, note: str, authenticated: str = "") -> DoubtSettled:
    """What a person says about a call in doubt, as a fact."""
    by = "user" if by in ("", PROBE) else by  # nobody may pass for the probe
    return DoubtSettled(call_id=call_id, happened=_HAPPENED[how], by=by, note=note, authenticated=authenticated)


def describe_doubt(trace: Trace, call: CallView) -> str:
    """What is known about a call in doubt, for a person, in the run's language."""
    language = trace.agent.language
    at = datetime.fromtimestamp(call.started_at or 0.0, UTC)
    earlier = earlier_holder(trace, call)
    name = f"doubt_holder_{earlier}" if earlier else "doubt_no_outcome"
    if call.doubt is not None and call.doubt.reason == TIMED_OUT:
        name = "doubt_timed_out"
    text = TEXTS.text(language, name, at=f"{at:%Y-%m-%d %H:%M:%S} UTC", n=call.attempts)
    if call.settled is not None and call.settled.note:
        text = TEXTS.text(language, "doubt_probed", text=text, note=call.settled.note)
    return text


def earlier_holder(trace: Trace, call: CallView) -> str:
    """Whether the process that made the last attempt may still be at work on it, as in `Resumed`; empty if not."""
    call_id, requests_found = call.requested.call_id, ""
    for event in reversed(trace.events):
        match event.fact:
            case ActionStarted() as fact if fact.call_id == call_id:
                break
            case Resumed(earlier_holder=earlier) if earlier:
                requests_found = earlier
    return requests_found


def _is_empty(report: Any) -> bool:
    """An empty list, a count of 0, a False of another library: no output that shows that a call has happened."""
    try:
        return not report
    except Exception:  # noqa: BLE001  # a value may refuse its truth; whether it is an output is checked next
        return False
