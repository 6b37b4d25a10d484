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
from taoloop.core.effects import ModelRequest
from taoloop.core.message import SIDE_PURPOSES, ModelReply, Usage
from taoloop.core.text import join_sentences
from taoloop.core.trace import Trace
from taoloop.core.views.plans import is_planning
from taoloop.core.views.steps import CallView
from taoloop.dialects import get_dialect
from taoloop.errors import ModelError, ModelRequestRefused
from taoloop.models.offline import arithmetic
from taoloop.models.offline.answers import ObservedResult, Speech, format_call
from taoloop.models.offline.arguments import EARLIER
from taoloop.models.offline.arithmetic import ArithmeticOperation, Earlier, Node, Number, Question
from taoloop.models.offline.plans import broken_by, plan_decision, task_of, worker_cards
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
    reads_prompts = False

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
        if request.purpose in SIDE_PURPOSES:
            text = "NONE" if request.purpose == "critique" else ""  # its answers are observations and nothing else
            return ModelReply(text=text, model=self.spec, cost_usd=0.0)
        decision = decision_for(request)
        dialect = get_dialect(request.dialect)
        reply = dialect.write(decision)
        for table in ({}, _CALL_SIGNS, _LABEL_SIGNS):
            if _content_of(dialect.read(reply, request.tools)) == _content_of(decision):
                break
            decision = _replace_signs(decision, table)
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
    started, task = request.trace.started, task_of(request.trace, request.task)
    speech, closing = Speech(chinese=is_chinese(task)), request.purpose == "close"
    cards = request.tools or (started.agent.tools if closing and started is not None else ())
    plans = started is not None and is_planning(request.trace)
    if plans and started is not None:
        cards = tuple(worker_cards(started.agent.tools))
    run: _PlanRun | None = None
    try:
        if not cards:
            raise _Refusal(speech.say("no_tools"))
        profiles = [Profile(card) for card in cards]
        steps = _Planner(task, profiles, speech).make_steps()
        if plans:
            if why := broken_by(request.trace):
                raise _Refusal(speech.say("stopped", why=why))
            return plan_decision(request.trace, task, steps, speech)
        run = _PlanRun(request.trace, profiles, speech)
        decision = run.next_decision(steps, closing=closing)
    except _Refusal as refusal:
        message = join_sentences(str(refusal), speech.say("demo") if run is None else speech.compose_known(run.facts))
        if not closing:
            raise ModelRequestRefused(message, hint=speech.say("hint") if run is None else "", by_model=True) from None
        decision = Answer(text=message)
    is_silent = started is not None and started.agent.strategy.replace("-", "_") in _WITHOUT_REASONING
    return replace(decision, reason="") if is_silent else decision


def _content_of(decision: Decision | Problem) -> object:
    """What a decision says apart from its thought, which not every dialect keeps; None for a reply that is none."""
    if isinstance(decision, Act):
        return [(call.tool, call.args) for call in decision.calls]
    return decision.text if isinstance(decision, Answer) else None


def _replace_signs(decision: Decision, table: Mapping[int, Any]) -> Decision:
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

    def make_steps(self) -> list[_Step]:
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
            self._plan_sentence(clause, is_asked=token.text[:1] in ("?", "？"))
            clause = []
        if not self._steps:
            raise self._refuse("no_tool", text=self._task)
        questions = [question for node, _ in self._steps for question in arithmetic.iter_questions(node)]
        calls = [_call_key(each.match.profile.card.name, each.match.filling.args) for each in questions]
        if len(set(calls)) < len(calls) and not all(each.match.profile.card.reads_only for each in questions):
            raise self._refuse("twice")  # one observation would stand for both
        return self._steps

    def _plan_sentence(self, tokens: Sequence[Token], *, is_asked: bool) -> None:
        """Add the steps of a sentence: of the whole, or else of its parts between commas and "and"."""
        tokens = _strip_cuts(tokens)
        failure, count = None, len(self._steps)
        cuts = [index for index, token in enumerate(tokens) if token.kind in ("comma", "and")]
        for index in (len(tokens), *cuts[:_MOST_CUTS]) if tokens else ():
            try:
                self._plan_clause(_strip_cuts(tokens[:index]), is_asked=is_asked)
                self._plan_sentence(tokens[index + 1 :], is_asked=is_asked)
            except _Refusal as refusal:
                failure = failure or refusal
                del self._steps[count:]
            else:
                return
        if failure is not None:
            raise failure

    def _plan_clause(self, tokens: Sequence[Token], *, is_asked: bool) -> None:
        text = self._source_text(tokens, with_mark=True)
        if self._steps and all(token.kind in _EMPTY or token.concept == "@look" for token in tokens):
            return  # "give the final result"
        last = self._steps[-1][0] if self._steps else None
        names = last.match.concepts if isinstance(last, Question) else frozenset()
        try:
            earlier = Earlier(len(self._steps) - 1, names) if self._steps else None
            node: Node = arithmetic.parse_arithmetic(tokens, self._ask_tool, earlier)
        except arithmetic.Unclear:
            may_act = not is_asked or any(token.kind == "polite" for token in tokens)
            node = self._match_question(tokens, text, may_act=may_act)
        else:
            if arithmetic.find_calculator(self._profiles) is None:
                node = self._match_question(tokens, text, why="no_sum")  # a tool that adds two numbers
        self._steps.append((node, text))

    def _ask_tool(self, tokens: Sequence[Token]) -> Node:
        """A question between operators."""
        try:
            return self._match_question(tokens, self._source_text(tokens))
        except _Refusal as refusal:
            raise arithmetic.Unclear from refusal

    def _match_question(self, tokens: Sequence[Token], text: str, *, why: str = "", may_act: bool = False) -> Question:
        try:
            match = match_tool(tokens, self._profiles, may_act=may_act)
        except NoMatch as problem:
            names = ", ".join(problem.missing)
            raise self._refuse(why or problem.reason, text=text, tool=problem.tool, names=names) from None
        if EARLIER in match.filling.args.values() and not self._steps:
            raise self._refuse("no_tool", text=text)
        return Question(match, text)

    def _source_text(self, tokens: Sequence[Token], *, with_mark: bool = False) -> str:
        """The words of the task from the first token to the last, with the full stop or question mark behind them."""
        end = tokens[-1].end
        mark = re.match(r"[.?!]*", self._task[end:]) if with_mark else None
        return self._task[tokens[0].start : end + (len(mark[0]) if mark else 0)]

    def _refuse(self, reason: str, **values: str) -> _Refusal:
        names = ", ".join(profile.card.name for profile in self._profiles)
        return _Refusal(self._speech.say("cannot", why=self._speech.say(reason, **values), names=names))


class _NextCall(Exception):
    """A call is needed next; the text is the question that it answers."""

    def __init__(self, act: Act, text: str) -> None:
        super().__init__(text)
        self.act = act


class _PlanRun:
    """Carries out a plan over the observations of a trace."""

    def __init__(self, trace: Trace, profiles: Sequence[Profile], speech: Speech) -> None:
        self._trace, self._profiles, self._speech = trace, profiles, speech
        self._calls = _calls(trace)
        self._results: list[ObservedResult] = []
        self._used: set[int] = set()
        self.facts: list[ObservedResult] = []

    def next_decision(self, steps: Sequence[_Step], *, closing: bool) -> Decision:
        """The next call, or the answer.

        Raises:
            _Refusal: a call failed, or gave nothing to continue with.
        """
        try:
            for node, text in steps:
                finding = self._answer_question(node) if isinstance(node, Question) else self._compute(node, text)
                self._results.append(finding)
        except _NextCall as next_call:
            if not closing:
                return next_call.act
            raise _Refusal(self._speech.say("unfinished", text=str(next_call))) from None
        unused = [result for index, result in enumerate(self._results) if index not in self._used]
        is_cited = self._trace.agent.evidence != "off"
        answer = self._speech.compose_answer(unused, self.facts, is_cited=is_cited)
        return Answer(text=answer, reason=self._speech.say("done"))

    def _answer_question(self, question: Question) -> ObservedResult:
        """The finding for a question, with the result of the step before in its arguments."""
        match, args = question.match, dict(question.match.filling.args)
        for parameter in match.profile.parameters:
            if args.get(parameter.name) is EARLIER:
                args[parameter.name] = self._earlier_argument(question.text, is_number=parameter.is_number)
        finding = self._observe(match.profile, args, question.text)
        finding = replace(finding, concepts=match.concepts, part=match.part)
        self.facts[-1] = finding
        return finding

    def _earlier_argument(self, text: str, *, is_number: bool) -> Any:
        self._used.add(len(self._results) - 1)
        value = self._results[-1].extract_number() if is_number else self._results[-1].extract_text()
        if value is None:
            raise self._stop("no_value", text=text)
        return json.loads(value) if is_number else value

    def _reduce(self, node: Node, text: str) -> Node:
        """The node with a number in place of every question; operations that wait for none stay one expression."""
        if isinstance(node, Earlier):
            self._used.add(node.index)
            return self._number_of(self._results[node.index], text)
        if isinstance(node, Question):
            return self._number_of(self._answer_question(node), node.text)
        if isinstance(node, Number):
            return node
        first = self._reduce(node.first, text)
        if isinstance(first, ArithmeticOperation) and any(arithmetic.iter_questions(node.second)):
            first = self._number_of(self._compute(first, text), text)
        return ArithmeticOperation(node.operator, first, self._reduce(node.second, text))

    def _compute(self, node: Node, text: str) -> ObservedResult:
        calculator = arithmetic.find_calculator(self._profiles)
        if calculator is None:
            raise self._stop("no_sum", text=text)
        profile, name = calculator
        return self._observe(profile, {name: arithmetic.render(self._reduce(node, text))}, text)

    def _number_of(self, finding: ObservedResult, text: str) -> Number:
        digits = finding.extract_number()
        if digits is None:
            raise self._stop("no_value", text=text)
        return Number(digits)

    def _observe(self, profile: Profile, args: dict[str, Any], text: str) -> ObservedResult:
        """What a call gave. A read that failed is made once more where the error spells the same value otherwise."""
        tool, reason = profile.card.name, "act"
        call = self._calls.get(_call_key(tool, args))
        if profile.card.reads_only and (respelled := _respell(args, call)) is not None:
            args, reason = respelled, "again"
            call = self._calls.get(_call_key(tool, args))
        if call is None or call.observed is None:
            act = Act(calls=(Call(tool=tool, args=args),), reason=self._speech.say(reason, text=text, tool=tool))
            raise _NextCall(act, text)
        if call.observed.error is not None:
            message = join_sentences(call.observed.error.message, call.observed.error.hint)
            raise self._stop("failed", call=format_call(tool, call.args), message=message)
        lost = output_is_lost(self._trace, call)
        self.facts.append(ObservedResult(tool=tool, args=call.args, observed=call.observed, is_lost=lost))
        return self.facts[-1]

    def _stop(self, reason: str, **values: str) -> _Refusal:
        return _Refusal(self._speech.say("stopped", why=self._speech.say(reason, **values)))


def _strip_cuts(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens without commas and "and" at either end."""
    inner = [index for index, token in enumerate(tokens) if token.kind not in ("comma", "and")]
    return tokens[inner[0] : inner[-1] + 1] if inner else ()


def _respell(args: Mapping[str, Any], call: CallView | None) -> dict[str, Any] | None:
    """The arguments with the one value changed that the error of a call spells in another way ("Tea" for "tea")."""
    error = call.observed.error if call is not None and call.observed is not None else None
    words = re.findall(r"[^\s'\"`,;:，；：]+", f"{error.message} {error.hint}"[:_MOST_ERROR_CHARS]) if error else []
    for name, value in args.items():
        alike = {
            word.rstrip(".?!。？")
            for word in words
            if isinstance(value, str) and _fold_spelling(word) == _fold_spelling(value)
        }
        if len(alike - {value}) == 1:
            return {**args, name: (alike - {value}).pop()}
    return None


def _fold_spelling(word: str) -> str:
    return re.sub(r"[\W_]", "", word).casefold()


def _calls(trace: Trace) -> dict[str, CallView]:
    """The calls of a run by their arguments as they were planned, recorded, and changed by a person."""
    calls: dict[str, CallView] = {}
    for step in trace.steps:
        planned = step.decision.calls if isinstance(step.decision, Act) else ()
        for index, call in enumerate(step.calls):
            forms = [call.requested.args, call.args, *(each.args for each in planned[index : index + 1])]
            calls |= {_call_key(call.requested.tool, args): call for args in forms}
    return calls


def _call_key(tool: str, args: Any) -> str:
    text = json.dumps([tool, args], sort_keys=True, ensure_ascii=False, default=str)
    return re.sub(r"(?<![\w.\"])(-?\d+)\.0(?![\w\"])", r"\1", text)
