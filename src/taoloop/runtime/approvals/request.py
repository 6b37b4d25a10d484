"""Questions to a person about calls of a run, and the answers to them.

A run asks as few questions as there are kinds of calls: those that one rule asks about are one question,
if their targets are of the same provenance. A call that is
high-risk is always a question of its own.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from taoloop.core.cards.questions import answer_form, is_question, secret_asked_for
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call, PlannedCall, PlanStep, call_digest
from taoloop.core.events import ActionRequested, ApprovalGiven, ApprovalRefused, ApprovalScope, Source
from taoloop.core.policy import Policy
from taoloop.core.trace import Trace
from taoloop.core.views.deadlines import expires_at, open_since
from taoloop.core.views.plans import MAKE_PLAN, TaskPlan, call_text, is_planning, plan_progress, read_plan
from taoloop.core.views.steps import TIMEOUT, CallView
from taoloop.errors import InvalidArguments
from taoloop.policy import CodeRule, authority_of, is_high_risk, judge, sources_of
from taoloop.policy.grants import describe_grant, edited_sources, grant_of, target_provenance
from taoloop.policy.judged_call import JudgedCall
from taoloop.policy.rules import Budgets, rule_matches
from taoloop.policy.targets import first_name, is_target_role, leaves
from taoloop.runtime.engine.clock import Clock
from taoloop.runtime.texts import TEXTS
from taoloop.strategies.plan_execute import normalised_plan, require_plan
from taoloop.tools.input_question import InputQuestion
from taoloop.tools.toolbox import Toolbox

Settling = Literal["happened", "repeat", "leave"]
"""What a person says about a call in doubt: it happened; it did not, run it again; it stays open."""

SETTLINGS: tuple[Settling, ...] = get_args(Settling)

AUTHENTICATIONS = ("", "os_user", "gateway_key", "panel_token", "program")
"""How a channel knows who answers; empty: it does not. `program`: the program that runs the agent vouches for it."""

RESERVED_NAMES = frozenset({"guard", "probe", TIMEOUT})
"""The names of those that answer and are not persons: no answer may be in one of them."""

EXPLICIT_YES_WORDS = frozenset(
    {"yes", "approve", "approved", "confirm", "confirmed", "是", "同意", "批准", "确认", "允许"}
)
"""The replies that approve a high-risk call, at a terminal and to the gateway: an explicit word, not a passing `ok`."""

_YES_EN = {"y", "allow", "ok", "okay", "go", "go_ahead", "do_it", "sure"}
YES_WORDS = EXPLICIT_YES_WORDS | _YES_EN | {"是的", "好", "好的", "可以", "行"}
"""The replies that approve a call, in lower case."""

_NO_EN = {"no", "n", "deny", "denied", "refuse", "reject", "rejected", "cancel", "stop", "don't", "dont"}
NO_WORDS = _NO_EN | {"不", "否", "不要", "不行", "拒绝", "取消", "不同意", "不可以"}
"""The replies that deny a call."""

_SUMMARY_CHARS = 120  # of a target in a summary; the whole stands above it

_LOG = logging.getLogger("taoloop")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A question to a person: may this exact call run? With a `doubt`: did this call happen?"""

    run_id: str
    """The run that asks."""

    call_id: str
    """The call that the question is about."""

    tool: str
    """The tool that would be called."""

    args: Mapping[str, Any]
    """The arguments of the call."""

    reasons: tuple[str, ...]
    """Why the question is asked, in the run's language."""

    card: ToolCard | None
    """The card of the tool; None where the run has no such tool."""

    sources: tuple[Source, ...] = ()
    """For each argument, where its value came from."""

    rule: str = ""
    """The rule of the policy that asks."""

    grave: bool = False
    """Whether the call is destructive, or its tool has no tier, and nobody named its target: then nothing may be
    allowed by default, and nothing beyond this call."""

    policy: str = ""
    """The version of the policy that asks."""

    digest: str = ""
    """The digest of the tool and its arguments, which names exactly this call."""

    since: float | None = None
    """When the question was first left open, in seconds since the epoch; None while it is asked for the first time."""

    expires_at: float | None = None
    """When the question counts as refused because nobody answered, in seconds since the epoch; None for never."""

    batch: tuple[ApprovalRequest, ...] = ()
    """The other calls of the same decision that the same rule asks about; an answer may be for them too."""

    doubt: str = ""
    """What is known about a call whose outcome is unknown. It makes this another question: did the call happen?
    `ApprovalAnswer.settle` answers it."""

    reason_codes: tuple[str, ...] = ()
    """A stable code for each of the reasons; "" for one in the operator's own words."""

    replaces: str = ""
    """What exists and the call would overwrite, in words."""

    for_operator: bool = False
    """Whether the user who set the task may not answer it, because their words do not have full authority."""

    question: InputQuestion | None = None
    """What the running call asks for, such as a form of an MCP server. It makes this another question, which only an
    answer with `args` accepts: the fields filled in, or `{}` where there are none. A plain yes accepts nothing."""

    language: str = "en"
    """The language of the run."""

    tools: Mapping[str, ToolCard] = field(default_factory=dict)
    """For a plan, the cards of the tools that its steps may call, by name; else empty."""

    @property
    def plan(self) -> TaskPlan | None:
        """The plan that the question is about; None for any other call."""
        return read_plan(self.args) if self.tool == MAKE_PLAN and self.tools else None

    def planned(self, step: PlanStep) -> tuple[ApprovalRequest, ...]:
        """The calls that a step of the plan lists, each as the question about it alone would show it."""
        plan = self.plan
        numbers = [] if plan is None else [other.number for other in plan.steps]
        path = f"steps[{numbers.index(step.number)}]" if step.number in numbers else ""
        return tuple(
            self._planned_call(f"{path}.calls[{number}].args.", call) for number, call in enumerate(step.calls)
        )

    def _planned_call(self, path: str, call: PlannedCall) -> ApprovalRequest:
        card = self.tools.get(call.tool)
        own = (source for source in self.sources if source.arg.startswith(path))
        sources = tuple(replace(source, arg=source.arg.removeprefix(path)) for source in own)
        return ApprovalRequest(
            run_id=self.run_id,
            call_id=self.call_id,
            tool=call.tool,
            args=call.args,
            reasons=(),
            card=card,
            sources=sources,
            grave=is_high_risk(card, sources),
        )

    @property
    def has_always(self) -> bool:
        """Whether an answer may allow further calls: not if it is high-risk or its tool needs one each time."""
        return not self.grave and not (self.card is not None and self.card.requires_approval)

    @property
    def high_risk(self) -> bool:
        """Whether the question shows the call as high-risk: it cannot be undone, and nobody named its target.

        That holds for any tier above `draft`, and always for a `grave` call.
        """
        if self.grave or self.doubt or self.card is None:
            return self.grave
        if (plan := self.plan) is not None:
            return any(call.high_risk for step in plan.steps for call in self.planned(step))
        is_final = self.card.tier not in ("read", "draft") and not self.card.can_be_undone
        return is_final and any(
            source.badge in ("FOREIGN", "UNKNOWN") and is_target_role(source.role) for source in self.sources
        )

    def undo_text(self, language: str) -> str:
        """What the call overwrites, and whether and how it can be undone; empty if it only reads or prepares."""
        card = self.card
        if card is not None and card.tier in ("read", "draft"):
            return ""
        name = "can_undo_by_hand" if card is None or card.compensation is None else "can_undo_with"
        name = "cannot_undo" if card is None or not card.can_be_undone else name
        text = TEXTS.text(language, name, tool="" if card is None else card.compensation or "")
        return TEXTS.text(language, "overwrites", what=self.replaces, undo=text) if self.replaces else text

    def summary(self, language: str) -> str:
        """Tool, targets and risk on one line: to be repeated where the whole call does not fit on a screen."""
        if (plan := self.plan) is not None:
            calls = (call_text(language, call) for _, call in plan.calls)
            return TEXTS.text(language, "target_separator").join(calls)
        targets = [
            f"{path} = {_shortened(json.dumps(value, ensure_ascii=False, default=str))}"
            for path, value in leaves(self.args)
            if is_target_role("target" if self.card is None else self.card.role(first_name(path)))
        ]
        joined = TEXTS.text(language, "target_separator").join(targets)
        tier = self.card.tier if self.card is not None else None
        return TEXTS.text(
            language,
            "call_summary",
            tool=self.tool,
            tier=tier or TEXTS.text(language, "no_tier"),
            targets=TEXTS.text(language, "call_targets", targets=joined) if targets else "",
            undo=self.undo_text(language),
        )

    def is_alike(self, other: ApprovalRequest) -> bool:
        """Whether one answer may be for both: the same rule, targets of the same provenance, neither high-risk."""
        ours, theirs = (target_provenance(list(leaves(each.args)), each.sources) for each in (self, other))
        has_question = self.question is not None or other.question is not None
        return not has_question and self.rule == other.rule and not self.grave and not other.grave and ours == theirs

    def always_text(self, language: str) -> str:
        """What an answer for further calls would allow, in words; empty where there is none (`has_always`)."""
        if not self.has_always:
            return ""
        return describe_grant(language, self.tool, list(leaves(self.args)), self.sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswer:
    """A person's answer to a question."""

    approved: bool
    """Whether the call may run. For a call in doubt without `settle`: True says that it happened, False leaves it open.
    """

    by: str = "user"
    """Who answers."""

    note: str = ""
    """What the person says about it; with a refusal the model reads it."""

    args: Mapping[str, Any] | None = None
    """The arguments that replace the model's; None leaves them. For a `question` of a running call: its fields."""

    scope: ApprovalScope = "call"
    """What else is allowed: `rule`, this tool whenever the same rule would ask in this run, from the other calls of
    this question on, and only with the same values and no larger numbers (`ApprovalRequest.always_text`); `values`,
    the values of this call as if they were in the task."""

    batch: bool = False
    """Whether the answer is for the other calls of the question too. Otherwise they are asked about next, so
    that a person who looks at only one call can never allow another."""

    settle: Settling | None = None
    """What a call in doubt is: it happened, is to be repeated, or stays open. Nothing is repeated unless this says so.
    """

    digits: Mapping[str, str] | None = None
    """Decimals in `args` as the person wrote them, by JSON pointer (`{"/amount": "1.10"}`), where a float has other
    digits; tools that pass numbers on use these. None leaves unchanged numbers as the model wrote them."""

    authenticated: str = ""
    """How the channel knows who answers: `os_user`, `gateway_key` or `panel_token`; `program`: your program vouches
    that `by` is the `user` of the run (or "user", where it names none). Empty: `by` is what the answer claims."""


Approver = Callable[[ApprovalRequest], ApprovalAnswer | bool | Awaitable[ApprovalAnswer | bool | None] | None]
"""Answers a question; None means "not now": the run then waits."""

CallAnswers = list[tuple[CallView, ApprovalAnswer]]
"""Calls, each with the answer about it."""


class SerializedApprover:
    """An approver that answers one question at a time, among all that share the lock."""

    def __init__(self, approver: Approver, lock: asyncio.Lock) -> None:
        self.approver, self.lock = approver, lock

    async def __call__(self, request: ApprovalRequest) -> ApprovalAnswer | bool | None:
        """The answer of the approver, once the earlier questions have theirs."""
        async with self.lock:
            answer = self.approver(request)
            return await answer if inspect.isawaitable(answer) else answer


async def ask(approver: Approver, request: ApprovalRequest, timeout_s: float | None = None) -> ApprovalAnswer | None:
    """The approver's answer to a question, or None if there is none now.

    An approver that raises or answers something else has not answered: that is logged, and the run waits.

    Raises:
        TimeoutError: there was no answer in time. Waiting for another question to be answered does not count.
    """
    if isinstance(approver, SerializedApprover):
        async with approver.lock:
            return await ask(approver.approver, request, timeout_s)
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with asyncio.timeout(timeout_s) as time_limit:
            answer = approver(request)
            if inspect.isawaitable(answer):
                answer = await answer
    except Exception as error:  # whatever an approver raises is no answer
        if isinstance(error, TimeoutError) and time_limit.expired():
            raise
        _LOG.exception("the approver of run %s failed at %s", request.run_id, request.call_id)
        return None
    if timeout_s is not None and loop.time() - began > timeout_s:  # it blocked, so nothing could end it
        raise TimeoutError
    return _normalise_answer(answer, request.run_id)


def _normalise_answer(answer: object, run_id: str) -> ApprovalAnswer | None:
    """What an approver returned, if it is an answer; anything else is logged, for it could not be stored."""
    if isinstance(answer, bool):
        return ApprovalAnswer(approved=answer)
    if answer is None or (isinstance(answer, ApprovalAnswer) and _is_valid(answer)):
        return answer
    _LOG.error("the approver of run %s answered %r: no bool, None or ApprovalAnswer", run_id, answer)
    return None


def _is_valid(answer: ApprovalAnswer) -> bool:
    """Whether the fields are of their types: a fact with others could be written, and never parsed again."""
    by, note, scope, settle = (getattr(answer, name) for name in ("by", "note", "scope", "settle"))
    are_texts = isinstance(by, str) and by not in RESERVED_NAMES and isinstance(note, str)
    is_known = answer.authenticated in AUTHENTICATIONS
    return are_texts and is_known and scope in get_args(ApprovalScope) and settle in (None, *SETTLINGS)


def answer_fact(call: CallView, answer: ApprovalAnswer) -> ApprovalGiven | ApprovalRefused:
    """The answer as a fact, bound to exactly the call that will run."""
    requested = call.requested
    if answer.approved is not True:
        return ApprovalRefused(
            call_id=requested.call_id, by=answer.by, note=answer.note, authenticated=answer.authenticated
        )
    edited = answer.args is not None
    return ApprovalGiven(
        call_id=requested.call_id,
        digest=call_digest(requested.tool, answer.args) if edited else requested.digest,
        by=answer.by,
        args=answer.args,
        note=answer.note,
        scope=answer.scope,
        digits=answer.digits if edited else None,
        authenticated=answer.authenticated,
    )


def unanswered_calls(trace: Trace) -> list[CallView]:
    """The calls of a run that have been asked about and have no answer."""
    return [call for call in trace.pending.values() if call.needs_person]


def approval_request(trace: Trace, call: CallView, edited: Mapping[str, Any] | None = None) -> ApprovalRequest:
    """The question about one call; `edited`: with these arguments, by the person who is asked."""
    requested = call.requested
    args = requested.args if edited is None else edited
    card = trace.card(requested.tool)
    is_plan = requested.tool == MAKE_PLAN and is_planning(trace)
    request = ApprovalRequest(
        run_id=trace.run_id,
        call_id=requested.call_id,
        tool=requested.tool,
        args=copy.deepcopy(args),  # what the approver does to it must not change what was asked
        reasons=requested.reasons,
        reason_codes=requested.reason_codes,
        replaces=requested.replaces if _targets(card, args) == _targets(card, requested.args) else "",
        card=card,
        sources=requested.sources if edited is None else edited_sources(requested, edited),
        rule=requested.rule,
        grave=is_high_risk(card, requested.sources),
        policy=requested.policy,
        digest=requested.digest,
        since=open_since(trace, requested.call_id),
        expires_at=expires_at(trace, requested.call_id),
        for_operator=authority_of(trace) != "full" and not is_question(card),
        question=_question_of(trace, card, requested),
        language=trace.agent.language,
        tools={card.name: card for card in trace.agent.tools} if is_plan else {},
    )
    if (plan := request.plan) is None:
        return request
    return replace(request, grave=any(call.grave for step in plan.steps for call in request.planned(step)))


def _question_of(trace: Trace, card: ToolCard | None, requested: ActionRequested) -> InputQuestion | None:
    """What the model asks, where the call is a question and not an action."""
    if not is_question(card):
        return None
    message, reads = str(requested.args.get("question", "")), sources_of(trace).reads_before.get(requested.call_id, ())
    origins = tuple(f"({source.call_id})" for source in requested.sources if source.badge == "FOREIGN")
    return InputQuestion(
        asker=trace.agent.name,
        message=message,
        fields=answer_form(requested.args),
        from_model=True,
        read_before=reads,
        quoted=tuple(read for read in reads if origins and read.endswith(origins)),
        secret=secret_asked_for(message),
    )


def _targets(card: ToolCard | None, args: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in args.items() if card is not None and is_target_role(card.role(name))}


def seconds_left(trace: Trace, call_id: str, now: float) -> float | None:
    """The seconds that a question may still stay open; None for ever, 0 or less where its time is over.

    A clock that is behind the pause has measured nothing, so all the time is left.
    """
    timeout_s, since = trace.agent.policy.approval_timeout_s, open_since(trace, call_id)
    if timeout_s is None or since is None:
        return timeout_s
    return timeout_s - max(0.0, now - since)


def apply_answer(answer: ApprovalAnswer, call: CallView, batch: Iterable[CallView]) -> CallAnswers:
    """The calls that an answer is for. Edited arguments are one call's; `rule` allows the others that it covers."""
    answers = [(call, answer)]
    if answer.args is not None:
        return answers
    scope = "call" if answer.scope == "rule" else answer.scope
    grant = grant_of(list(leaves(call.requested.args)), call.requested.sources)
    for other in batch:
        covered = other.requested.tool == call.requested.tool and grant.covers(
            list(leaves(other.requested.args)), other.requested.sources
        )
        if answer.batch or (answer.approved and answer.scope == "rule" and covered):
            answers.append((other, replace(answer, scope=scope)))
    return answers


def fit_edit(trace: Trace, call: CallView, tools: Toolbox, edited: object) -> Mapping[str, Any]:
    """Edited arguments as the tool takes them; an edited plan must also be one that can be carried out.

    Raises:
        InvalidArguments: they do not fit.
    """
    requested = call.requested
    args: Mapping[str, Any] = tools.get(requested.tool).prepare(edited).args
    if requested.tool == MAKE_PLAN and is_planning(trace):
        args = normalised_plan(args, trace.card)
        require_plan(args, trace.card, plan_progress(trace), trace.agent.language)
    return args


def denying_rule(trace: Trace, call: CallView, answer: ApprovalAnswer, rules: tuple[CodeRule, ...] = ()) -> str | None:
    """Why the operator's rules, which bind people too, deny the edited arguments of an answer; None if they do not."""
    card = trace.card(call.requested.tool)
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
        title = _denying_policy_rule(trace, call, edited, card)
    return None if title is None else TEXTS.text(trace.agent.language, "edit_denied", title=title)


def _denying_policy_rule(trace: Trace, call: CallView, edited: Call, card: ToolCard) -> str | None:
    """The title of the rule that denies the edited call, judged at the point of the trace where the call was."""
    policy = trace.agent.policy
    if not policy.rules:
        return None
    budgets = Budgets(policy, {card.name: card for card in trace.agent.tools})
    for event in trace.events:
        if not (isinstance(event.fact, ActionRequested) and event.fact.call_id == call.requested.call_id):
            budgets.fold(event)
    is_filled, call_id = call.requested.written is not None, call.requested.call_id
    judged = JudgedCall(trace, card, edited.args, filled=is_filled, call_id=call_id)
    for rule in policy.rules:
        counts = rule.calls_over is not None or rule.total_over
        matches = rule_matches(rule, card, edited.args, judged)
        if matches and not (counts and not budgets.exceeded(rule, edited.args)):
            return rule.title if rule.verdict == "deny" else None
    return None


class Questions:
    """Puts the questions of one run to one approver, each once; what nobody answers now is postponed."""

    def __init__(self, trace: Trace, approver: Approver | None, clock: Clock) -> None:
        self._trace, self._approver, self._clock = trace, approver, clock
        self._postponed: set[str] = set()
        self._asked_at: dict[str, float] = {}  # by call id, on the clock that never goes back

    async def ask_next(self, calls: Iterable[CallView]) -> CallAnswers:
        """The answers to the next question, so that what they allow runs before anything else is asked.

        None at all if no question has an answer now.
        """
        waiting = {call.requested.call_id: call for call in calls if call.needs_person}
        expired = [call for call_id, call in waiting.items() if self._seconds_left(call_id) <= 0]
        if expired:
            return self._time_out(expired)
        while self._approver is not None and (remaining := waiting.keys() - self._postponed):
            requests = [approval_request(self._trace, call) for name, call in waiting.items() if name in remaining]
            request = _first_of_kind(requests)
            batch = [waiting[each.call_id] for each in (request, *request.batch)]
            if answers := await self._ask(self._approver, request, batch):
                return answers
            self._postponed |= {each.call_id for each in (request, *request.batch) if each.tool == request.tool}
        return []

    def postpone(self, call: CallView, error: InvalidArguments) -> str:
        """Leave a question open whose answer cannot be used, and log it; returns what people read about it."""
        call_id, tool = call.requested.call_id, call.requested.tool
        self._postponed.add(call_id)
        text = TEXTS.text(self._trace.agent.language, "answer_unusable", tool=tool, call_id=call_id, why=error)
        _LOG.error("run %s: %s", self._trace.run_id, text)
        return text

    def _seconds_left(self, call_id: str) -> float:
        left_s = seconds_left(self._trace, call_id, self._clock.now())
        if left_s is None:
            return float("inf")
        timeout_s = self._trace.agent.policy.approval_timeout_s or 0.0
        if call_id in self._asked_at:
            left_s = min(left_s, timeout_s - (self._clock.tick() - self._asked_at[call_id]))
        return left_s

    async def _ask(self, approver: Approver, request: ApprovalRequest, calls: list[CallView]) -> CallAnswers:
        call_ids = [call.requested.call_id for call in calls]
        for call_id in call_ids:
            self._asked_at.setdefault(call_id, self._clock.tick())
        left_s = min(self._seconds_left(call_id) for call_id in call_ids)
        bounded = left_s != float("inf")
        if bounded and request.expires_at is None:
            request = replace(request, expires_at=self._clock.now() + left_s)
        try:
            answer = await ask(approver, request, left_s if bounded else None)
        except TimeoutError:
            return self._time_out(calls)
        if answer is None:
            return []
        if not request.has_always and answer.scope == "rule":
            why = "is high-risk" if request.grave else "needs approval for each call"
            _LOG.warning("run %s: %s %s, so only this call is allowed", request.run_id, request.call_id, why)
            answer = replace(answer, scope="call")
        return apply_answer(answer, calls[0], calls[1:])

    def _time_out(self, calls: Iterable[CallView]) -> CallAnswers:
        """The answer to questions that nobody answered in time: no."""
        agent = self._trace.agent
        note = TEXTS.text(agent.language, "approval_timeout", s=agent.policy.approval_timeout_s or 0.0)
        return [(call, ApprovalAnswer(approved=False, by=TIMEOUT, note=note)) for call in calls]


def _first_of_kind(requests: list[ApprovalRequest]) -> ApprovalRequest:
    """The first question, with the others of its kind as its batch (`ApprovalRequest.is_alike`)."""
    first = requests[0]
    return replace(first, batch=tuple(each for each in requests[1:] if first.is_alike(each)))


def _shortened(text: str) -> str:
    return text if len(text) <= _SUMMARY_CHARS else text[: _SUMMARY_CHARS - 1] + "…"
