"""Which calls of a run wait for a person, asked about in as few questions as there are kinds, and for how long."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable
from dataclasses import replace

from taoloop.core.decision import Call
from taoloop.core.events import ActionRequested, Event, Paused
from taoloop.core.policy import Policy
from taoloop.core.trace import Trace
from taoloop.core.views.steps import TIMEOUT, CallView
from taoloop.policy import CodeRule, is_high_risk, judge, tainted
from taoloop.policy.rules import Budgets, rule_matches
from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest, Approver, ask
from taoloop.runtime.engine.clock import Clock

Answers = list[tuple[CallView, ApprovalAnswer]]

_LOG = logging.getLogger("taoloop")

_TEXTS = {
    "en": {
        "timeout": "nobody answered within {s:g} s",
        "barred": "the edited arguments are not allowed: the rule {title!r} denies them",
    },
    "zh": {
        "timeout": "{s:g} 秒内无人答复",
        "barred": "修改后的参数不被允许：规则 {title!r} 禁止",
    },
}


def unanswered_calls(trace: Trace) -> list[CallView]:
    """The calls of a run that have been asked about and have no answer."""
    return [call for call in trace.pending.values() if call.needs_person]


def questions(trace: Trace, calls: Iterable[CallView]) -> list[ApprovalRequest]:
    """One question for the calls of one kind: those that one rule asks about. A grave call is one of its own."""
    kinds: dict[tuple[str, ...], list[ApprovalRequest]] = {}
    for call in calls:
        one = question(trace, call)
        kind = (one.rule, one.call_id) if one.grave else (one.rule,)
        kinds.setdefault(kind, []).append(one)
    return [replace(first, batch=tuple(others)) for first, *others in kinds.values()]


def question(trace: Trace, call: CallView) -> ApprovalRequest:
    """The question about one call."""
    requested = call.requested
    card = trace.card(requested.tool)
    since, timeout_s = open_since(trace, requested.call_id), trace.agent.policy.approval_timeout_s
    return ApprovalRequest(
        run_id=trace.run_id,
        call_id=requested.call_id,
        tool=requested.tool,
        args=copy.deepcopy(requested.args),  # what the approver does to it must not change what was asked
        reasons=requested.reasons,
        reason_codes=requested.reason_codes,
        card=card,
        sources=requested.sources,
        rule=requested.rule,
        grave=is_high_risk(card, requested.sources),
        policy=requested.policy,
        digest=requested.digest,
        since=since,
        expires_at=None if since is None or timeout_s is None else since + timeout_s,
    )


def open_since(trace: Trace, call_id: str) -> float | None:
    """When a question was first left open for whoever may answer it: the first pause after the request.

    The time is the journal's. A clock that went back between the request and the pause counts from the request.
    """
    since = None
    for event in reversed(trace.events):  # the call is pending, so it was requested by the last decision
        if isinstance(event.fact, Paused):
            since = event.at
        elif isinstance(event.fact, ActionRequested) and event.fact.call_id == call_id:
            return None if since is None else max(since, event.at)
    return since


def seconds_left(trace: Trace, call_id: str, now: float) -> float | None:
    """How long a question may stay open; None for ever, 0 or less where its time is over.

    A clock that stands before the pause has measured nothing, so the whole time is left.
    """
    timeout_s, since = trace.agent.policy.approval_timeout_s, open_since(trace, call_id)
    if timeout_s is None or since is None:
        return timeout_s
    return timeout_s - max(0.0, now - since)


def answered_calls(answer: ApprovalAnswer, call: CallView, others: Iterable[CallView]) -> Answers:
    """The calls that an answer is for. What was edited is one call's; `rule` reaches the others of its tool at once."""
    found = [(call, answer)]
    if answer.args is not None:
        return found
    scope = "call" if answer.scope == "rule" else answer.scope
    for other in others:
        same_tool = other.requested.tool == call.requested.tool
        if answer.batch or (answer.approved and answer.scope == "rule" and same_tool):
            found.append((other, replace(answer, scope=scope)))
    return found


def denying_rule(trace: Trace, call: CallView, answer: ApprovalAnswer, rules: tuple[CodeRule, ...] = ()) -> str | None:
    """What is wrong with the edited arguments of an answer by the rules of the operator, which bind people too."""
    card, policy = trace.card(call.requested.tool), trace.agent.policy
    if answer.args is None or card is None:
        return None
    edited = Call(tool=call.requested.tool, args=answer.args)
    title = None
    for rule in rules:
        verdict = judge(trace, edited, card, Policy(profile="autonomous"), rules=(rule,))
        if verdict.kind == "deny" and verdict.rule != "foreign_destructive":
            title = getattr(rule, "__name__", type(rule).__name__)
            break
    if title is None:
        title = _denying(trace, policy, call, answer)
    return None if title is None else text(trace, "barred", title=title)


def _denying(trace: Trace, policy: Policy, call: CallView, answer: ApprovalAnswer) -> str | None:
    """The rule of the policy that denies the edited call, in the place of the call as it was."""
    card = trace.card(call.requested.tool)
    if card is None or not policy.rules:
        return None
    used = Budgets(policy, {one.name: one for one in trace.agent.tools})
    for event in trace.events:
        if not _is_request(event, call.requested.call_id):
            used.fold(event)
    seen = tainted(trace) or call.requested.written is not None
    for rule in policy.rules:
        counts = rule.calls_over is not None or rule.total_over
        if not rule_matches(rule, card, answer.args, tainted=seen) or (counts and not used.exceeded(rule, answer.args)):
            continue
        return rule.title if rule.verdict == "deny" else None
    return None


def _is_request(event: Event, call_id: str) -> bool:
    return isinstance(event.fact, ActionRequested) and event.fact.call_id == call_id


def text(trace: Trace, name: str, **values: object) -> str:
    """One of the texts of this module, in the language of the run."""
    return _TEXTS.get(trace.agent.language, _TEXTS["en"])[name].format(**values)


def timed_out(trace: Trace) -> ApprovalAnswer:
    """The answer to a question that had none in time: no."""
    waited = trace.agent.policy.approval_timeout_s or 0.0
    return ApprovalAnswer(approved=False, by=TIMEOUT, note=text(trace, "timeout", s=waited))


class Questions:
    """Puts the questions of one run to one approver, each once; what nobody answers now is left for later."""

    def __init__(self, trace: Trace, approver: Approver | None, clock: Clock) -> None:
        self._trace, self._approver, self._clock = trace, approver, clock
        self._left: set[str] = set()
        self._put: dict[str, float] = {}  # when a question was first put here, on the clock that never goes back

    async def put(self, calls: Iterable[CallView]) -> Answers:
        """The next answers, so that what they allow runs before anything else is asked. None at all: all is left."""
        waiting = {call.requested.call_id: call for call in calls if call.needs_person}
        over = [call for call_id, call in waiting.items() if self._time_left(call_id) <= 0]
        if over:
            return [(call, timed_out(self._trace)) for call in over]
        if self._approver is None:
            return []
        while new := [one for one in waiting.values() if self._is_new(one)]:
            request = questions(self._trace, new)[0]
            asked = [waiting[one.call_id] for one in (request, *request.batch)]
            if answers := await self._answers(self._approver, request, asked):
                return answers
            self._left |= {one.call_id for one in (request, *request.batch) if one.tool == request.tool}
        return []

    def _is_new(self, call: CallView) -> bool:
        return call.requested.call_id not in self._left

    def _time_left(self, call_id: str) -> float:
        left = seconds_left(self._trace, call_id, self._clock.now())
        if left is None:
            return float("inf")
        timeout_s = self._trace.agent.policy.approval_timeout_s or 0.0
        if call_id in self._put:
            left = min(left, timeout_s - (self._clock.tick() - self._put[call_id]))
        return left

    async def _answers(self, approver: Approver, request: ApprovalRequest, asked: list[CallView]) -> Answers:
        ids = [call.requested.call_id for call in asked]
        for call_id in ids:
            self._put.setdefault(call_id, self._clock.tick())
        left = min(self._time_left(call_id) for call_id in ids)
        bounded = left != float("inf")
        if bounded and request.expires_at is None:
            request = replace(request, expires_at=self._clock.now() + left)
        try:
            answer = await ask(approver, request, left if bounded else None)
        except TimeoutError:
            return [(call, timed_out(self._trace)) for call in asked]
        if answer is None:
            return []
        if not request.has_always and answer.scope == "rule":
            why = "is grave" if request.grave else "needs a yes for each call"
            _LOG.warning("run %s: %s %s, so only this call is allowed", request.run_id, request.call_id, why)
            answer = replace(answer, scope="call")
        return answered_calls(answer, asked[0], asked[1:])
