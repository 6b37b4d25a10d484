"""The embedded model: a demo planner that plans a whole task before its first call, or says that it cannot.

Every clause of a task must be arithmetic, a question or an order that one tool's card explains word for word. Only then
the plan is carried out: each turn takes from the trace what is observed already, and asks for the next call. Nothing is
remembered between turns, so the same task, tools and observations always lead to the same decision. A task that cannot
be planned, and a plan that a failed call breaks, end the run as `model_failed` with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from taoloop.core.decision import Act, Answer, Call, Decision, Problem
from taoloop.core.message import ModelReply, Usage
from taoloop.core.model_request import ModelRequest
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView
from taoloop.dialects import get_dialect
from taoloop.errors import ModelError, ModelRequestRefused
from taoloop.models.offline import arithmetic
from taoloop.models.offline.answers import Finding, Speech, call_line
from taoloop.models.offline.arguments import EARLIER
from taoloop.models.offline.arithmetic import Earlier, Node, Number, Operation, Question
from taoloop.models.offline.task_values import MOST_CHARS, Token, is_chinese, tokenize
from taoloop.models.offline.tool_match import NoMatch, Profile, match_tool
from taoloop.strategies.in_doubt import output_is_lost

_WITHOUT_REASONING = {"act_only", "standard"}
_CALL_SIGNS = str.maketrans("<>{}[]`", "‹›()()'")
_LABEL_SIGNS = str.maketrans('():"', "⟨⟩='")
_EMPTY = {"stop", "ask", "polite", "first", "ref", "by"}
_MOST_CUTS, _MOST_ERROR_CHARS = 10, 4_000


class OfflineModel:
    """A small deterministic planner, not a language model.

    It plans tasks that name or quote their values: one tool for each clause, arithmetic over the results, an answer of
    observations alone. Any other task it refuses. The same request always gives the same reply, in Chinese or English
    as the task is.
    """

    description = "offline: a small deterministic planner, not a language model"
    spec = "offline"
    dialect = "text"

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The next decision, in the dialect of the request. It writes no summaries and no plans: the trace will do.

        Raises:
            ModelRequestRefused: the task cannot be planned, or a failed call breaks the plan.
            ModelError: the run hides its observations from its model.
        """
        if request.trace.agent.policy.observations == "handles":
            raise ModelError(
                "The offline model works from the observations themselves, which this run hides from its model.",
                hint="Use the model of a provider, or a policy with observations: shown.",
            )
        if request.purpose in ("compact", "pin"):
            return ModelReply(model=self.spec, cost_usd=0.0)
        decision = decision_for(request)
        dialect = get_dialect(request.dialect)
        reply = dialect.write(decision)
        for table in ({}, _CALL_SIGNS, _LABEL_SIGNS):
            if _substance(dialect.read(reply, request.tools)) == _substance(decision):
                break
            decision = _translated(decision, table)
            reply = dialect.write(decision)
        finish_reason = reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")
        return replace(reply, finish_reason=finish_reason, model=self.spec, usage=Usage(), cost_usd=0.0)

    def check_used(self, replies: int) -> None:
        """Nothing to check: this model has no script."""

    async def close(self) -> None:
        """Nothing to close."""


def decision_for(request: ModelRequest) -> Decision:
    """The decision apart from the form in which it is written. A closing turn answers from what is known.

    Raises:
        ModelRequestRefused: the task cannot be planned, or a failed call breaks the plan.
    """
    started, speech = request.trace.started, Speech(chinese=is_chinese(request.task))
    closing = request.purpose == "close"
    cards = request.tools or (started.agent.tools if closing and started is not None else ())
    run: _Run | None = None
    try:
        if not cards:
            raise _Refusal(speech.say("no_tools"))
        profiles = [Profile(card) for card in cards]
        steps = _Planner(request.task, profiles, speech).steps()
        run = _Run(request.trace, profiles, speech)
        decision = run.decision(steps, closing=closing)
    except _Refusal as refusal:
        message = f"{refusal} {speech.say('demo') if run is None else speech.known(run.facts)}".strip()
        if not closing:
            raise ModelRequestRefused(message, hint=speech.say("hint") if run is None else "") from None
        decision = Answer(text=message)
    silent = started is not None and started.agent.strategy.replace("-", "_") in _WITHOUT_REASONING
    return replace(decision, reason="") if silent else decision


def _substance(decision: Decision | Problem) -> object:
    """What a decision says apart from its thought, which not every dialect keeps; None for a reply that is none."""
    if isinstance(decision, Act):
        return [(call.tool, call.args) for call in decision.calls]
    return decision.text if isinstance(decision, Answer) else None


def _translated(decision: Decision, table: Mapping[int, Any]) -> Decision:
    """The same decision on one line and in other signs: an observation in it must not be read as a decision."""
    reason = " ".join(decision.reason.translate(table).split())
    if isinstance(decision, Act):
        return replace(decision, reason=reason)
    text = " ".join(decision.text.translate(table).split())
    return replace(decision, text=f"“{text}”" if table is _LABEL_SIGNS else text, reason=reason)


class _Refusal(Exception):
    """The task cannot be done; the text says why."""


#: One clause of a task (a question, an order or arithmetic), and its words.
_Step = tuple[Node, str]


class _Planner:
    """Makes a plan of a whole task, without a look at any result."""

    def __init__(self, task: str, profiles: Sequence[Profile], speech: Speech) -> None:
        self._task, self._profiles, self._speech = task, profiles, speech
        self._steps: list[_Step] = []

    def steps(self) -> list[_Step]:
        """The steps of the task in order.

        Raises:
            _Refusal: a part of the task is not understood, or no tool does it.
        """
        clause: list[Token] = []
        tokens = tokenize(self._task) if len(self._task) <= MOST_CHARS else ()
        for token in (*tokens, Token("end", "", "", 0, 0)):
            if token.kind not in ("then", "end"):
                clause.append(token)
                continue
            self._plan(clause, is_asked=token.text[:1] in ("?", "？"))
            clause = []
        if not self._steps:
            raise self._refusal("no_tool", what=self._task)
        questions = [question for node, _ in self._steps for question in arithmetic.questions(node)]
        calls = [_key(each.match.profile.card.name, each.match.filling.args) for each in questions]
        if len(set(calls)) < len(calls) and not all(each.match.profile.card.reads_only for each in questions):
            raise self._refusal("twice")  # one observation would stand for both
        return self._steps

    def _plan(self, tokens: Sequence[Token], *, is_asked: bool) -> None:
        """Add the steps of a sentence: of the whole, or else of its parts between commas and "and"."""
        tokens = _without_cuts(tokens)
        failure, count = None, len(self._steps)
        cuts = [index for index, token in enumerate(tokens) if token.kind in ("comma", "and")]
        for index in (len(tokens), *cuts[:_MOST_CUTS]) if tokens else ():
            try:
                self._plan_clause(_without_cuts(tokens[:index]), is_asked=is_asked)
                self._plan(tokens[index + 1 :], is_asked=is_asked)
            except _Refusal as refusal:
                failure = failure or refusal
                del self._steps[count:]
            else:
                return
        if failure is not None:
            raise failure

    def _plan_clause(self, tokens: Sequence[Token], *, is_asked: bool) -> None:
        what = self._text(tokens, with_sign=True)
        says_nothing = all(token.kind in _EMPTY or token.concept == "@look" for token in tokens)
        if says_nothing and self._steps:
            return  # "give the final result"
        last = self._steps[-1][0] if self._steps else None
        names = last.match.concepts if isinstance(last, Question) else frozenset()
        try:
            earlier = Earlier(len(self._steps) - 1, names) if self._steps else None
            node: Node = arithmetic.parse_arithmetic(tokens, self._question, earlier)
        except arithmetic.Unclear:
            may_act = not is_asked or any(token.kind == "polite" for token in tokens)
            node = self._matched(tokens, what, may_act=may_act)
        else:
            if arithmetic.find_calculator(self._profiles) is None:
                node = self._matched(tokens, what, or_else="no_sum")  # a tool that adds two numbers
        self._steps.append((node, what))

    def _question(self, tokens: Sequence[Token]) -> Node:
        """A question between operators."""
        try:
            return self._matched(tokens, self._text(tokens))
        except _Refusal as refusal:
            raise arithmetic.Unclear from refusal

    def _matched(self, tokens: Sequence[Token], what: str, *, or_else: str = "", may_act: bool = False) -> Question:
        try:
            match = match_tool(tokens, self._profiles, may_act=may_act)
        except NoMatch as problem:
            reason, names = or_else or problem.reason, ", ".join(problem.missing)
            raise self._refusal(reason, what=what, tool=problem.tool, names=names) from None
        if EARLIER in match.filling.args.values() and not self._steps:
            raise self._refusal("no_tool", what=what)
        return Question(match, what)

    def _text(self, tokens: Sequence[Token], *, with_sign: bool = False) -> str:
        """The words of the task from the first token to the last, with the sign at the end of the sentence."""
        end = tokens[-1].end
        sign = re.match(r"[.?!]*", self._task[end:]) if with_sign else None
        return self._task[tokens[0].start : end + (len(sign[0]) if sign else 0)]

    def _refusal(self, reason: str, **values: str) -> _Refusal:
        names = ", ".join(profile.card.name for profile in self._profiles)
        return _Refusal(self._speech.say("cannot", why=self._speech.say(reason, **values), names=names))


class _Wanted(Exception):
    """A call is needed before the plan can be carried on."""

    def __init__(self, act: Act, what: str) -> None:
        super().__init__(what)
        self.act, self.what = act, what


class _Run:
    """Carries out a plan over the observations of a trace."""

    def __init__(self, trace: Trace, profiles: Sequence[Profile], speech: Speech) -> None:
        self._trace, self._profiles, self._speech = trace, profiles, speech
        self._calls = _calls(trace)
        self._results: list[Finding] = []
        self._used: set[int] = set()
        self.facts: list[Finding] = []

    def decision(self, steps: Sequence[_Step], *, closing: bool) -> Decision:
        """The next call, or the answer.

        Raises:
            _Refusal: a call failed, or gave nothing to go on with.
        """
        try:
            for node, what in steps:
                finding = self._answered(node) if isinstance(node, Question) else self._computed(node, what)
                self._results.append(finding)
        except _Wanted as wanted:
            if not closing:
                return wanted.act
            raise _Refusal(self._speech.say("unfinished", what=wanted.what)) from None
        ends = [result for index, result in enumerate(self._results) if index not in self._used]
        return Answer(text=self._speech.answer(ends, self.facts), reason=self._speech.say("done"))

    def _answered(self, question: Question) -> Finding:
        """The finding for a question, with the result of the step before in its arguments."""
        match, args = question.match, dict(question.match.filling.args)
        for parameter in match.profile.parameters:
            if args.get(parameter.name) is EARLIER:
                args[parameter.name] = self._earlier_argument(question.what, is_number=parameter.is_number)
        finding = self._observed(match.profile, args, question.what)
        finding = replace(finding, concepts=match.concepts, part=match.part)
        self.facts[-1] = finding
        return finding

    def _earlier_argument(self, what: str, *, is_number: bool) -> Any:
        self._used.add(len(self._results) - 1)
        value = self._results[-1].number() if is_number else self._results[-1].text()
        if value is None:
            raise self._stopped("no_value", what=what)
        return json.loads(value) if is_number else value

    def _reduced(self, node: Node, what: str) -> Node:
        """The node with a number in place of every question; operations that wait for none stay one expression."""
        if isinstance(node, Earlier):
            self._used.add(node.index)
            return self._number(self._results[node.index], what)
        if isinstance(node, Question):
            return self._number(self._answered(node), node.what)
        if isinstance(node, Number):
            return node
        left = self._reduced(node.left, what)
        if isinstance(left, Operation) and any(arithmetic.questions(node.right)):
            left = self._number(self._computed(left, what), what)
        return Operation(node.sign, left, self._reduced(node.right, what))

    def _computed(self, node: Node, what: str) -> Finding:
        calculator = arithmetic.find_calculator(self._profiles)
        if calculator is None:
            raise self._stopped("no_sum", what=what)
        profile, name = calculator
        return self._observed(profile, {name: arithmetic.render(self._reduced(node, what))}, what)

    def _number(self, finding: Finding, what: str) -> Number:
        digits = finding.number()
        if digits is None:
            raise self._stopped("no_value", what=what)
        return Number(digits)

    def _observed(self, profile: Profile, args: dict[str, Any], what: str) -> Finding:
        """What a call gave. A read that failed is made once more where the error spells the same value otherwise."""
        tool, reason = profile.card.name, "act"
        call = self._calls.get(_key(tool, args))
        if profile.card.reads_only and (respelled := _respelled(args, call)) is not None:
            args, reason = respelled, "again"
            call = self._calls.get(_key(tool, args))
        if call is None or call.observed is None:
            act = Act(calls=(Call(tool=tool, args=args),), reason=self._speech.say(reason, what=what, tool=tool))
            raise _Wanted(act, what)
        if call.observed.error is not None:
            message = f"{call.observed.error.message} {call.observed.error.hint}".strip()
            raise self._stopped("failed", call=call_line(tool, call.args), message=message)
        lost = output_is_lost(self._trace, call)
        self.facts.append(Finding(tool=tool, args=call.args, observed=call.observed, is_lost=lost))
        return self.facts[-1]

    def _stopped(self, reason: str, **values: str) -> _Refusal:
        return _Refusal(self._speech.say("stopped", why=self._speech.say(reason, **values)))


def _without_cuts(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens without commas and "and" at either end."""
    inner = [index for index, token in enumerate(tokens) if token.kind not in ("comma", "and")]
    return tokens[inner[0] : inner[-1] + 1] if inner else ()


def _respelled(args: Mapping[str, Any], call: CallView | None) -> dict[str, Any] | None:
    """The arguments with the one value changed that the error of a call spells in another way ("Tea" for "tea")."""
    error = call.observed.error if call is not None and call.observed is not None else None
    words = re.findall(r"[^\s'\"`,;:，；：]+", f"{error.message} {error.hint}"[:_MOST_ERROR_CHARS]) if error else []
    for name, value in args.items():
        alike = {word.rstrip(".?!。？") for word in words if isinstance(value, str) and _folded(word) == _folded(value)}
        if len(alike - {value}) == 1:
            return {**args, name: (alike - {value}).pop()}
    return None


def _folded(word: str) -> str:
    return re.sub(r"[\W_]", "", word).casefold()


def _calls(trace: Trace) -> dict[str, CallView]:
    """The calls of a run by their arguments as they were planned, recorded, and changed by a person."""
    calls: dict[str, CallView] = {}
    for step in trace.steps:
        planned = step.decision.calls if isinstance(step.decision, Act) else ()
        for index, call in enumerate(step.calls):
            forms = [call.requested.args, call.args, *(each.args for each in planned[index : index + 1])]
            calls |= {_key(call.requested.tool, args): call for args in forms}
    return calls


def _key(tool: str, args: Any) -> str:
    text = json.dumps([tool, args], sort_keys=True, ensure_ascii=False, default=str)
    return re.sub(r"(?<![\w.\"])(-?\d+)\.0(?![\w\"])", r"\1", text)
