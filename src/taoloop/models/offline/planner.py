"""The embedded model: a demo planner that plans a whole task before its first call, or says that it cannot.

Every clause of a task must be arithmetic, a question or an order that one tool's card explains word for word. Only then
the plan is carried out: each turn takes from the trace what is observed already, and asks for the next call. Nothing is
remembered between turns, so the same task, tools and observations always lead to the same decision. A task that cannot be
planned, and a plan that a failed call breaks, end the run as `model_failed` with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from taoloop.core.decision import Act, Answer, Call, Decision
from taoloop.core.events import Observed
from taoloop.core.message import ModelReply, Usage
from taoloop.core.request import ModelRequest
from taoloop.core.trace import Trace
from taoloop.dialects import get_dialect
from taoloop.errors import ModelError, ModelRequestRefused
from taoloop.models.offline.answers import Finding, Speech, call_line
from taoloop.models.offline.arguments import EARLIER
from taoloop.models.offline.arithmetic import (
    Calculator,
    Earlier,
    Node,
    Number,
    Operation,
    Question,
    Unclear,
    has_question,
    parse_arithmetic,
)
from taoloop.models.offline.task_values import MOST_CHARS, Token, is_chinese, tokenize
from taoloop.models.offline.tool_match import Match, NoMatch, Profile, match_tool
from taoloop.strategies.doubt import output_is_lost

_WITHOUT_REASONING = frozenset({"act_only", "standard"})
_MOST_CUTS = 10


class OfflineModel:
    """A small deterministic planner, not a language model.

    It plans tasks that name or quote their values: one tool for each clause, arithmetic over the results, an answer of
    observations alone. Any other task it refuses. The same request always gives the same reply, in Chinese or English as
    the task is.
    """

    description = "offline: a small deterministic planner, not a language model"

    @property
    def spec(self) -> str:
        """`offline`."""
        return "offline"

    @property
    def dialect(self) -> str:
        """`text`."""
        return "text"

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
        for table in (str.maketrans("\n", " "), _CALL_SIGNS, _LABEL_SIGNS):
            if dialect.read(reply, request.tools) == decision:
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
        run = _Run(request.trace, Calculator(profiles), speech)
        decision = run.decision(steps, closing=closing)
    except _Refusal as refusal:
        known = speech.known(run.facts) if run is not None else ""
        message = f"{refusal} {known}".strip()
        if not closing:
            raise ModelRequestRefused(message, hint=speech.say("hint") if run is None else "") from None
        decision = Answer(text=message)
    silent = started is not None and started.agent.strategy.replace("-", "_") in _WITHOUT_REASONING
    return replace(decision, reason="") if silent else decision


_CALL_SIGNS = str.maketrans("<>{}[]`", "‹›()()'")
_LABEL_SIGNS = str.maketrans('():"', "⟨⟩='")


def _translated(decision: Decision, table: Mapping[int, Any]) -> Decision:
    """The same decision in other signs: an observation that it tells of must not be read as a decision itself."""
    reason = " ".join(decision.reason.translate(table).split())
    if isinstance(decision, Act):
        return replace(decision, reason=reason)
    text = " ".join(decision.text.translate(table).split())
    return replace(decision, text=f"“{text}”" if table is _LABEL_SIGNS else text, reason=reason)


class _Refusal(Exception):
    """The task cannot be done; the text says why."""


@dataclass(frozen=True)
class _Step:
    """One clause of a task: a question, an order or arithmetic."""

    node: Node
    what: str


class _Planner:
    """Makes a plan of a whole task, without a look at any result."""

    def __init__(self, task: str, profiles: Sequence[Profile], speech: Speech) -> None:
        self._task, self._profiles, self._speech = task, profiles, speech
        self._calculator = Calculator(profiles)
        self._steps: list[_Step] = []

    def steps(self) -> list[_Step]:
        """The steps of the task in order.

        Raises:
            _Refusal: a part of the task is not understood, or no tool does it.
        """
        if len(self._task) > MOST_CHARS:
            raise self._refusal("too_long")
        clause: list[Token] = []
        for token in (*tokenize(self._task), Token("end", "", "", 0, 0)):
            if token.kind not in ("then", "end"):
                clause.append(token)
                continue
            self._plan(clause, is_asked=token.text[:1] in ("?", "？"))
            clause = []
        if not self._steps:
            raise self._refusal("no_tool", what=self._task)
        return self._steps

    def _plan(self, tokens: Sequence[Token], *, is_asked: bool) -> None:
        """Add the steps of a sentence: of the whole, or else of its parts between commas and "and"."""
        tokens = _without_cuts(tokens)
        if not tokens:
            return
        cuts = [index for index, token in enumerate(tokens) if token.kind in ("comma", "and")]
        try:
            self._plan_clause(tokens, is_asked=is_asked)
        except _Refusal:
            count = len(self._steps)
            for index in cuts if len(cuts) <= _MOST_CUTS else ():
                try:
                    self._plan_clause(_without_cuts(tokens[:index]), is_asked=is_asked)
                    self._plan(tokens[index + 1 :], is_asked=is_asked)
                except _Refusal:
                    del self._steps[count:]
                else:
                    return
            raise

    def _plan_clause(self, tokens: Sequence[Token], *, is_asked: bool) -> None:
        what = self._text(tokens, with_sign=True)
        if self._steps and all(token.kind in ("stop", "polite", "first", "ref", "by") or token.concept == "@look" for token in tokens):
            return  # "give the final result"
        earlier = Earlier(len(self._steps) - 1) if self._steps else None
        try:
            node: Node = parse_arithmetic(tokens, self._question, earlier=earlier, names=self._names())
        except Unclear:
            node = self._matched(tokens, what, may_act=True, is_asked=is_asked)
        if not self._calculator.can(node):
            raise self._refusal("no_sum", what=what)
        self._steps.append(_Step(node, what))

    def _question(self, tokens: Sequence[Token]) -> Node:
        """A question between operators."""
        try:
            return self._matched(tokens, self._text(tokens))
        except _Refusal as refusal:
            raise Unclear from refusal

    def _matched(self, tokens: Sequence[Token], what: str, *, may_act: bool = False, is_asked: bool = False) -> Question:
        try:
            match = match_tool(tokens, self._profiles, may_act=may_act, is_asked=is_asked)
        except NoMatch as problem:
            tool = problem.profile.card.name if problem.profile else ""
            names = ", ".join(parameter.name for parameter in problem.missing)
            raise self._refusal(problem.reason, what=what, tool=tool, names=names) from None
        if EARLIER in match.filling.args.values() and not self._steps:
            raise self._refusal("no_tool", what=what)
        return Question(match, what)

    def _names(self) -> frozenset[str]:
        """What the result of the step before may be called."""
        node = self._steps[-1].node if self._steps else None
        return frozenset(token.concept for token in node.match.question) if isinstance(node, Question) else frozenset()

    def _text(self, tokens: Sequence[Token], *, with_sign: bool = False) -> str:
        """The words of the task from the first token to the last, with the sign at the end of the sentence."""
        end = tokens[-1].end
        sign = re.match(r"[.?!]*", self._task[end:]) if with_sign else None
        return self._task[tokens[0].start : end + (len(sign[0]) if sign else 0)]

    def _refusal(self, reason: str, **values: str) -> _Refusal:
        names = ", ".join(profile.card.name for profile in self._profiles)
        why, tools = self._speech.say(reason, **values), self._speech.say("tools", names=names)
        return _Refusal(self._speech.say("cannot", why=why, tools=tools))


class _Wanted(Exception):
    """A call is needed before the plan can be carried on."""

    def __init__(self, act: Act, what: str) -> None:
        super().__init__(what)
        self.act, self.what = act, what


class _Run:
    """Carries out a plan over the observations of a trace."""

    def __init__(self, trace: Trace, calculator: Calculator, speech: Speech) -> None:
        self._calculator, self._speech = calculator, speech
        self._observations = _observations(trace)
        self._lost = {call_id for call_id, call in trace.calls.items() if output_is_lost(trace, call)}
        self._results: list[Finding] = []
        self._used: set[int] = set()
        self.facts: list[Finding] = []

    def decision(self, steps: Sequence[_Step], *, closing: bool) -> Decision:
        """The next call, or the answer.

        Raises:
            _Refusal: a call failed, or gave nothing to go on with.
        """
        try:
            for step in steps:
                self._results.append(self._result(step))
        except _Wanted as wanted:
            if not closing:
                return wanted.act
            raise _Refusal(self._speech.say("unfinished", what=wanted.what)) from None
        ends = [result for index, result in enumerate(self._results) if index not in self._used]
        return Answer(text=self._speech.answer(ends, self.facts), reason=self._speech.say("done"))

    def _result(self, step: _Step) -> Finding:
        if isinstance(step.node, Question):
            return self._answered(step.node)
        node = self._reduced(step.node, step.what)
        assert isinstance(node, Operation)
        return self._computed(node, step.what)

    def _answered(self, question: Question) -> Finding:
        """The finding for a question, with the result of the step before in its arguments."""
        match, args = question.match, dict(question.match.filling.args)
        for parameter in match.profile.parameters:
            if args.get(parameter.name) is EARLIER:
                args[parameter.name] = self._earlier_argument(question.what, is_number=parameter.is_number)
        finding = self._observed(match.profile, args, question.what)
        concepts = frozenset(token.concept for token in match.question) - {""}
        finding = replace(finding, concepts=concepts, part=match.part)
        self.facts[-1] = finding
        return finding

    def _earlier_argument(self, what: str, *, is_number: bool) -> Any:
        self._used.add(len(self._results) - 1)
        value = self._results[-1].number() if is_number else self._results[-1].text()
        if value is None:
            raise self._stopped("no_number" if is_number else "no_text", what=what)
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
        alone = not self._calculator.takes_expressions
        if isinstance(left, Operation) and (alone or has_question(node.right)):
            left = self._number(self._computed(left, what), what)
        right = self._reduced(node.right, what)
        if isinstance(right, Operation) and alone:
            right = self._number(self._computed(right, what), what)
        return Operation(node.sign, left, right)

    def _computed(self, node: Operation, what: str) -> Finding:
        profile, args = self._calculator.call(node)
        return self._observed(profile, args, what)

    def _number(self, finding: Finding, what: str) -> Number:
        digits = finding.number()
        if digits is None:
            raise self._stopped("no_number", what=what)
        return Number(digits)

    def _observed(self, profile: Profile, args: dict[str, Any], what: str) -> Finding:
        """What a call gave. A read that failed is made once more where the error spells the same value otherwise."""
        observed, reason = self._observations.get(_key(profile.card.name, args)), "act"
        if observed is not None and not observed.ok and profile.card.reads_only:
            respelled = _respelled(args, observed)
            if respelled is not None:
                args, reason = respelled, "again"
                observed = self._observations.get(_key(profile.card.name, args))
        tool = profile.card.name
        if observed is None:
            act = Act(calls=(Call(tool=tool, args=args),), reason=self._speech.say(reason, what=what, tool=tool))
            raise _Wanted(act, what)
        if not observed.ok:
            error = observed.error
            message = f"{error.message} {error.hint}".strip() if error else ""
            raise self._stopped("failed", call=call_line(tool, args), message=message)
        finding = Finding(tool=tool, args=args, observed=observed, is_lost=observed.call_id in self._lost)
        self.facts.append(finding)
        return finding

    def _stopped(self, reason: str, **values: str) -> _Refusal:
        return _Refusal(self._speech.say("stopped", why=self._speech.say(reason, **values)))


def _without_cuts(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens without commas and "and" at either end."""
    while tokens and tokens[0].kind in ("comma", "and"):
        tokens = tokens[1:]
    while tokens and tokens[-1].kind in ("comma", "and"):
        tokens = tokens[:-1]
    return tokens


def _respelled(args: Mapping[str, Any], observed: Observed) -> dict[str, Any] | None:
    """The arguments with the one value changed that the error spells in another way ("Tea" for "tea")."""
    error = observed.error
    words = re.findall(r"[^\s'\"`,;:，；：]+", f"{error.message} {error.hint}"[:4_000]) if error else []
    for name, value in args.items():
        if isinstance(value, str):
            alike = {word.rstrip(".?!。？") for word in words if _folded(word) == _folded(value)} - {value}
            if len(alike) == 1:
                return {**args, name: alike.pop()}
    return None


def _folded(word: str) -> str:
    return re.sub(r"[\W_]", "", word).casefold()


def _observations(trace: Trace) -> dict[str, Observed]:
    """What came back for each call, by the arguments as planned, as recorded, and as a person changed them."""
    found: dict[str, Observed] = {}
    for step in trace.steps:
        planned = step.decision.calls if isinstance(step.decision, Act) else ()
        for index, call in enumerate(step.calls):
            if call.observed is None:
                continue
            forms = [call.requested.args, call.args, *(each.args for each in planned[index : index + 1])]
            found |= {_key(call.requested.tool, args): call.observed for args in forms}
    return found


def _key(tool: str, args: Any) -> str:
    text = json.dumps([tool, args], sort_keys=True, ensure_ascii=False, default=str)
    return re.sub(r"(?<![\w.\"])(-?\d+)\.0(?![\w\"])", r"\1", text)
