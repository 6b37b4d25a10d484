"""What happened in a run as plain data, so that plain asserts say what should have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from taoloop.core.cards.tool_card import TIERS, Tier
from taoloop.core.events import (
    ActionRequested,
    ActionStarted,
    ApprovalGiven,
    ApprovalRefused,
    Finished,
    Observed,
    Resumed,
)
from taoloop.core.trace import Trace
from taoloop.core.views.steps import PROBE, CallView
from taoloop.core.views.transcript import Result, observation_text, transcript

Ran = Result | Trace
"""A run: its result, or its trace."""

Wanted = str | tuple[str, dict[str, Any]]
"""A call to look for: a tool's name, or its name with some of the arguments."""

_LINE_CHARS = 160


def calls(ran: Ran) -> list[tuple[str, Any]]:
    """The calls that ran, in order, as tool and arguments; with failed ones, without those that were refused."""
    return [(call.requested.tool, call.args) for call in _ran(ran)]


def requested(ran: Ran) -> list[tuple[str, Any]]:
    """Everything that the model asked for, in order, refused calls and unknown tools included."""
    return [(call.requested.tool, call.requested.args) for call in trace_of(ran).calls.values()]


def observations(ran: Ran) -> list[tuple[str, bool, str]]:
    """What came back, in the order of the calls: tool, whether it is ok, and the output or the error in one line."""
    pairs = [(call.requested.tool, call.observed) for call in trace_of(ran).calls.values()]
    return [(tool, observed.ok, observation_text(observed)) for tool, observed in pairs if observed is not None]


def questions(ran: Ran) -> list[tuple[str, Any, str]]:
    """What people were asked, in the order of the calls: tool, arguments, and what came of it.

    Those of the policy (and of the model: `ask_user`) end in `approved`, `refused`, or `open` while the run waits; a
    call that asked something itself while it ran (`RunContext.ask`, an MCP server) in `accept`, `decline` or `cancel`,
    with its question as arguments; one of which nobody can tell whether it happened in `in doubt`.
    """
    rows: list[tuple[str, Any, str]] = []
    for call in trace_of(ran).calls.values():
        tool, args = call.requested.tool, call.requested.args
        if call.requested.verdict == "ask" or call.approval is not None:
            rows.append((tool, args, _APPROVALS[type(call.approval)]))
        rows += [(tool, answer.message, answer.action) for answer in call.answers]
        if call.doubt is not None and not (call.settled is not None and call.settled.by == PROBE):
            rows.append((tool, args, "in doubt"))
    return rows


def denied(ran: Ran) -> list[tuple[str, Any, str]]:
    """The calls that the policy denied or a person refused, in order: tool, arguments, and why."""
    rows: list[tuple[str, Any, str]] = []
    for call in trace_of(ran).calls.values():
        request, answer = call.requested, call.approval
        if request.verdict == "deny":
            rows.append((request.tool, request.args, " ".join(request.reasons)))
        elif isinstance(answer, ApprovalRefused):
            rows.append((request.tool, request.args, f"refused by {answer.by}. {answer.note}".strip()))
    return rows


def calls_above(ran: Ran, tier: Tier) -> list[tuple[str, Any]]:
    """The calls that ran and can do more than `tier` allows. A tool without a tier may do anything: it counts."""
    allowed = TIERS[: TIERS.index(tier) + 1]
    return [(call.requested.tool, call.args) for call in _ran(ran) if call.requested.tier not in allowed]


def in_order(ran: Ran, *expected: Wanted) -> bool:
    """Whether these calls ran one after the other, others between them or not.

    An argument that is not named may have any value: `in_order(result, "search", ("order", {"item": "tea"}))`.
    """
    remaining = iter(calls(ran))
    return all(any(fits(pattern, call) for call in remaining) for pattern in expected)


def violations(ran: Ran) -> list[str]:
    """What is wrong with the trace itself; empty for every run that the runtime made.

    Looked at: every observation, approval and start follows the request of its call, each call has at most one
    outcome, what may change something was written down before it ran and allowed by a person where the policy asked,
    and there is one end.
    """
    trace = trace_of(ran)
    problems: list[str] = []
    known: dict[str, ActionRequested] = {}
    marks: set[tuple[str, str]] = set()
    ended = 0
    for event in trace.events:
        fact = event.fact
        where = f"event {event.seq} ({event.kind})"
        if isinstance(fact, ActionRequested):
            known[fact.call_id] = fact
        elif isinstance(fact, ApprovalGiven | ApprovalRefused | ActionStarted | Observed):
            if fact.call_id not in known:
                problems.append(f"{where}: {fact.call_id} was never requested")
                continue
            problems += [f"{where}: {what}" for what in _wrong(fact, known[fact.call_id], marks)]
            marks.add((fact.kind, fact.call_id))
        elif isinstance(fact, Finished):
            ended += 1
        elif isinstance(fact, Resumed):
            ended = 0
    if ended > 1 or (ended == 0 and trace.paused is None):
        problems.append(f"the run has {ended} ends")
    return problems


@contextmanager
def explained(ran: Ran) -> Iterator[None]:
    """Asserts that fail inside the block are followed by what happened in the run, line by line."""
    try:
        yield
    except AssertionError as error:
        error.add_note(story(ran))
        raise


def story(ran: Ran) -> str:
    """The run in short: its status, and one line for each thought, action, observation and the end."""
    trace = trace_of(ran)
    lines = [_short(str(entry)) for entry in transcript(trace)]
    reason = f": {trace.finished.reason}" if trace.finished is not None else ""
    return "\n".join([f"Run {trace.run_id}, {trace.status}{_short(reason)}", *lines])


def trace_of(ran: Ran) -> Trace:
    """The trace of a run."""
    return ran.trace if isinstance(ran, Result) else ran


def _ran(ran: Ran) -> Iterator[CallView]:
    for call in trace_of(ran).calls.values():
        refused = call.requested.verdict == "deny" or isinstance(call.approval, ApprovalRefused)
        if not refused and (call.observed is not None or call.attempts > 0):
            yield call


_APPROVALS = {ApprovalGiven: "approved", ApprovalRefused: "refused", type(None): "open"}


def fits(pattern: Wanted, call: tuple[str, Any]) -> bool:
    """Whether a call is the one that is looked for."""
    if isinstance(pattern, str):
        return pattern == call[0]
    tool, some = pattern
    args = call[1]
    return tool == call[0] and isinstance(args, dict) and all(k in args and args[k] == v for k, v in some.items())


def _wrong(
    fact: ApprovalGiven | ApprovalRefused | ActionStarted | Observed,
    request: ActionRequested,
    marks: set[tuple[str, str]],
) -> list[str]:
    """What is wrong with one fact about a call, given what was written down of the call before."""

    def has(kind: str) -> bool:
        return (kind, request.call_id) in marks

    refused = request.verdict == "deny" or has("approval_refused")
    started, succeeded = isinstance(fact, ActionStarted), isinstance(fact, Observed) and fact.ok
    unapproved = request.verdict == "ask" and not has("approval_given") and not refused
    findings = {
        "has a second outcome": isinstance(fact, Observed) and has("observed"),
        "was refused and has a result": succeeded and refused,
        "ran and was not written down before": succeeded and request.tier != "read" and not has("action_started"),
        "was refused and ran": started and refused,
        "ran without the approval that the policy asked for": (started or succeeded) and unapproved,
    }
    return [f"{request.call_id} {text}" for text, is_found in findings.items() if is_found]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LINE_CHARS else line[: _LINE_CHARS - 1] + "…"
