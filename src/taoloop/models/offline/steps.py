"""The single steps of a plan: one question for one tool, arithmetic, and what the trace already answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Call
from taoloop.core.events import Observed
from taoloop.core.trace import Trace
from taoloop.models.offline.arithmetic import Node, Num, Op, Prev, Sub, leaves
from taoloop.models.offline.correction import correct
from taoloop.models.offline.extract import MARK, extract
from taoloop.models.offline.goals import Choice, Chooser, Goal
from taoloop.models.offline.match import Profile, profile
from taoloop.models.offline.reckoning import Reckoner
from taoloop.models.offline.results import Finding
from taoloop.models.offline.results import leaves as leaves_of
from taoloop.models.offline.siblings import siblings
from taoloop.models.offline.speech import Speech, short
from taoloop.models.offline.words import is_chinese
from taoloop.strategies.in_doubt import output_is_lost

_SUFFIX = re.compile(r"\.[a-z]{2,5}\b")
_MOST_FILES = 3
_MOST_TRIES = 2
_TELLING = frozenset({"id", "quoted", "path", "email", "url", "date", "clock", "place", "key"})


class Wanted(Exception):
    """A call is needed before the plan can go on."""

    def __init__(self, tool: str, args: Mapping[str, Any], reason: str, what: str) -> None:
        super().__init__(tool)
        self.act = Act(calls=(Call(tool=tool, args=dict(args)),), reason=reason)
        self.what = what


class Stuck(Exception):
    """A goal cannot be reached; the text says why."""


class Steps:
    """What is known in one run, and the ways to learn more: a call is asked for by raising `Wanted`."""

    def __init__(self, task: str, cards: Sequence[ToolCard], trace: Trace) -> None:
        self.speech = Speech(chinese=is_chinese(task))
        self.skeleton = extract(task)
        self.cards = cards
        self.chooser = Chooser(self.skeleton, [profile(card) for card in cards])
        self.reckoner = Reckoner(self.chooser.profiles)
        self.seen = _observations(trace)
        self.lost = {call_id for call_id, call in trace.calls.items() if output_is_lost(trace, call)}
        self.results: list[Finding] = []
        self.facts: list[Finding] = []
        self.consumed: set[int] = set()
        self.notes: list[str] = []

    def asked(self, goal: Goal) -> list[Finding]:
        """The findings for a question: one call, or one for each of several things of a kind."""
        what = self.skeleton.restore(goal.text)
        choice = self.chosen(goal, what)
        if choice.reading and (reader := self.chooser.reader(choice.reading)) is not None:
            content = self.observe(reader.profile, reader.filled.args, what)
            choice = replace(choice, filled=self.chooser.fill(goal.text, choice.profile, [content]))
        if choice.filled.open:
            choice = self.led_to(goal, choice, what)
        if choice.filled.earlier:
            self.consumed |= _used(self.results, choice.filled.args)
        found, failures = [], []
        for args in siblings(goal.text, self.skeleton, choice.profile, choice.filled):
            try:
                found.append(self.observe(choice.profile, args, what))
            except Stuck as stuck:
                failures.append(str(stuck))
        self.note_unused(goal, choice, found)
        if failures:
            self.results += found
            raise Stuck(" ".join(failures))
        return found

    def led_to(self, goal: Goal, choice: Choice, what: str) -> Choice:
        """The same choice with what it lacked, found by another tool from what the question says.

        Raises:
            Stuck: no tool that only reads leads there.
        """
        missing = self.speech.missing(what, choice.profile.card.name, choice.filled.open)
        if (found := self.file_for(choice, what)) is not None:
            return found
        leader = None if choice.profile.acts else self.chooser.leader(goal.text, choice)
        if leader is None:
            raise Stuck(missing)
        finding = self.observe(leader.profile, leader.filled.args, what)
        filled = self.chooser.fill(goal.text, choice.profile, [finding])
        if filled.open:
            raise Stuck(missing)
        return replace(choice, filled=filled)

    def file_for(self, choice: Choice, what: str) -> Choice | None:
        """The choice with a file of the kind that it reads, where only the file's name is lacking: the first of few.

        Raises:
            Stuck: there are such files, and none answers.
        """
        param = choice.filled.open[0]
        lister = self.chooser.lister()
        if choice.profile.acts or lister is None or [each.role for each in choice.filled.open] != ["path"]:
            return None
        kinds = set(_SUFFIX.findall(param.text.lower()))
        listed = self.observe(lister, {}, what)
        names = [value for path, value in leaves_of(listed.content) if path and path[-1] in ("path", "name", "file")]
        names = [name for name in names if isinstance(name, str) and set(_SUFFIX.findall(name.lower()[-6:])) & kinds]
        failure: Stuck | None = None
        for name in names[:_MOST_FILES] if len(names) <= _MOST_FILES else ():
            filled = replace(choice.filled, args={**choice.filled.args, param.name: name}, open=[])
            try:
                self.observe(choice.profile, filled.args, what)
            except Stuck as stuck:
                failure = stuck
                continue
            self.facts.pop()  # it is observed again, as the answer to the question
            return replace(choice, filled=filled)
        if failure is not None:
            raise failure
        return None

    def note_unused(self, goal: Goal, choice: Choice, found: Sequence[Finding]) -> None:
        """Say which of the values that the question names went into no call."""
        said = " ".join(str(value) for finding in (*found, *self.facts) for value in finding.args.values())
        for mark in re.findall(MARK, goal.text):
            atom = self.skeleton.atom(mark)
            known = {atom.value, atom.source, atom.zone} - {""}
            told = atom.kind in _TELLING or (atom.kind == "number" and not atom.weak)
            if mark in choice.filled.used or not told or any(word in said for word in known):
                continue
            if self.skeleton.restore(goal.text).count(atom.source) == 1:
                self.notes.append(
                    self.speech.say("unused", what=short(atom.value if atom.kind == "quoted" else atom.source))
                )

    def chosen(self, goal: Goal, what: str) -> Choice:
        """The tool for a question, or why there is none."""
        choice = self.chooser.choose(goal.text, self.results, orders=goal.orders)
        if choice is None:
            held = not goal.orders and self.chooser.choose(goal.text, self.results, orders=True) is not None
            raise Stuck(self.speech.say("no_order" if held else "no_tool", what=short(what)))
        return choice

    def arithmetic(self, goal: Goal, tree: Op) -> Finding:
        """The finding for arithmetic: sub-questions first, from left to right."""
        what = self.skeleton.restore(goal.text)
        known = self.reduced(tree, what)
        if isinstance(known, Num):
            return self.facts[-1]
        return self.calculated(known, what)

    def reduced(self, tree: Node, what: str) -> Node:
        """The tree with every operand a number; it is left as one expression as far as nothing must come before."""
        if isinstance(tree, Prev):
            return Num(self.earlier(tree.back, what))
        if isinstance(tree, Sub):
            own = self.skeleton.restore(tree.text)
            finding = self.asked(Goal(tree.text))[0]
            number = finding.number()
            if number is None:
                raise Stuck(self.speech.say("no_number", what=short(own)))
            return Num(number)
        if isinstance(tree, Num):
            return tree
        left, right = self.reduced(tree.left, what), tree.right
        if isinstance(left, Op) and any(isinstance(leaf, Sub) for leaf in leaves(right)):
            left = self.value(left, what)
        right = self.reduced(right, what)
        if self.reckoner.expression_tool() is None and self.reckoner.call(Op(tree.sign, left, right)) is None:
            left, right = self.value(left, what), self.value(right, what)
        return Op(tree.sign, left, right)

    def value(self, tree: Node, what: str) -> Num:
        """The number that a tree comes to, by a call if it is not one already."""
        if isinstance(tree, Num):
            return tree
        number = self.calculated(tree, what).number()
        if number is None:
            raise Stuck(self.speech.say("no_number", what=short(what)))
        return Num(number)

    def calculated(self, tree: Node, what: str) -> Finding:
        """The finding of one calculation."""
        if isinstance(tree, Op):
            simple = self.reckoner.rewritten(tree)
            if simple is not tree and self.reckoner.expression_tool() is None:
                tree = Op(simple.sign, self.value(simple.left, what), self.value(simple.right, what))
        call = self.reckoner.call(tree)
        if call is None:
            raise Stuck(self.speech.say("no_sum", what=short(what)))
        return self.observe(*call, what)

    def earlier(self, back: int, what: str) -> str:
        """The number in an earlier result."""
        place = len(self.results) - back
        number = self.results[place].number() if place >= 0 else None
        if number is None:
            raise Stuck(self.speech.say("no_number", what=short(what)))
        self.consumed.add(place)
        return number

    def observe(self, chosen: Profile, args: Mapping[str, Any], what: str) -> Finding:
        """The observation of a call; an error is corrected if it says how, and no failed call is repeated."""
        tool, tried = chosen.card.name, [dict(args)]
        while True:
            observed = self.seen.get(_key(tool, tried[-1]))
            if observed is None:
                say = self.speech.say("act", what=short(what), tool=tool)
                reason = say if len(tried) == 1 else self.speech.say("again", tool=tool)
                raise Wanted(tool, tried[-1], reason, short(what))
            if observed.ok:
                lost = observed.call_id in self.lost
                finding = Finding(wants=what, tool=tool, args=tried[-1], observed=observed, lost=lost)
                self.facts.append(finding)
                return finding
            better = correct(tried[-1], chosen, what, observed.error, [card.name for card in self.cards])
            if better is None or better in tried or len(tried) == _MOST_TRIES:
                raise Stuck(self.speech.failed(tool, tried[-1], observed.error))
            tried.append(better)


def _used(results: Sequence[Finding], args: Mapping[str, Any]) -> set[int]:
    """The places of the results that went into a call: whole, as a number, or by a field."""
    values = [value for value in args.values() if isinstance(value, str | int | float)]
    texts = {str(value) for value in values}
    return {
        number
        for number, finding in enumerate(results)
        if not finding.lost
        and (
            (finding.number() or finding.text()) in texts
            or finding.text() in texts
            or any(str(leaf) in texts for _, leaf in leaves_of(finding.content))
        )
    }


def _observations(trace: Trace) -> dict[str, Observed]:
    """What came back for each call, by the arguments as asked for, as corrected, and as a person changed them."""
    found: dict[str, Observed] = {}
    for step in trace.steps:
        asked = step.decision.calls if isinstance(step.decision, Act) else ()
        for number, call in enumerate(step.calls):
            if call.observed is None:
                continue
            found[_key(call.requested.tool, call.requested.args)] = call.observed
            found[_key(call.requested.tool, call.args)] = call.observed
            if number < len(asked) and asked[number].tool == call.requested.tool:
                found[_key(asked[number].tool, asked[number].args)] = call.observed
    return found


_FLOAT = re.compile(r"(?<![\w.\"])(-?\d+)\.0(?![\d\w\"])")


def _key(tool: str, args: Any) -> str:
    return _FLOAT.sub(r"\1", json.dumps([tool, args], sort_keys=True, ensure_ascii=False, default=str))
