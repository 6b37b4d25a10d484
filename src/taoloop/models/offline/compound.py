"""Questions in several parts: comparisons, questions within questions, amounts in another currency."""

from __future__ import annotations

from dataclasses import replace

from taoloop.core.events import Observed
from taoloop.models.offline.arithmetic import Num, Op
from taoloop.models.offline.compare import Comparison, comparison
from taoloop.models.offline.dictation import Dictated, dictated
from taoloop.models.offline.extract import Atom, extract
from taoloop.models.offline.gather import Gathered, gathered, several_of
from taoloop.models.offline.goals import Choice, Goal, arithmetic
from taoloop.models.offline.nesting import Inner, around, before_joined, in_money, inner_questions, tells
from taoloop.models.offline.results import Finding, leaves
from taoloop.models.offline.speech import short
from taoloop.models.offline.steps import Steps, Stuck
from taoloop.models.offline.words import name_concepts

_COMPARES = frozenset({"@subtract", "@compare", "@distance"})
_UNITS = frozenset({"@unit", "@length", "@weight", "@count"})
_FREE = frozenset({"query", "text", "key", "any"})


class Compound(Steps):
    """Takes a question apart before it is asked, and puts the results together."""

    def asked(self, goal: Goal) -> list[Finding]:
        """The findings for a question; the parts of it come first, and none is dropped."""
        several = gathered(goal.text, self.skeleton)
        if several is not None and self._is_gathered(several, goal):
            return self._gathered(goal, several)
        if (compared := comparison(goal.text, self.skeleton)) is not None and not self._at_once(goal, compared):
            return self._compared(goal, compared)
        if (order := self._to_write(goal)) is not None:
            return self._written(goal, order)
        if (inner := self._inner(goal)) is not None:
            if first := before_joined(goal.text, inner):
                return [*self.asked(replace(goal, text=first)), *self.asked(Goal(inner.text))]
            return self._nested(goal, inner)
        if (money := in_money(goal.text, self.skeleton)) is not None and self._is_priced(money[0]):
            return self._in_money(goal, *money)
        found = super().asked(goal)
        if len(found) == 1 and (further := self._followed(goal, found[0])) is not None:
            found = [further]
        return self._multiplied(goal, found) if len(found) == 1 else found

    def _followed(self, goal: Goal, found: Finding) -> Finding | None:
        """The finding of a further tool for what the question asks beyond the first, with what the first has found."""
        choice = self.chooser.choose(goal.text, self.results, orders=goal.orders)
        if choice is None or choice.profile.acts or choice.profile.card.name != found.tool or found.lost:
            return None
        beyond = self.chooser.beyond(goal.text, choice)
        told = {c for path, _ in leaves(found.content) for name in path for c in name_concepts(name)}
        if beyond & told:
            return None
        for follower in self.chooser.followers(goal.text, choice):
            if isinstance(found.content, str) and [param.role for param in follower.filled.open] != ["text"]:
                continue
            filled = self.chooser.fill(goal.text, follower.profile, [found])
            if not filled.open and filled.earlier:
                return self.observe(follower.profile, filled.args, self.skeleton.restore(goal.text))
        return None

    def _at_once(self, goal: Goal, compared: Comparison) -> bool:
        """True if one tool takes both things and compares them itself."""
        choice = self.chooser.choose(goal.text)
        if choice is None or not choice.ready:
            return False
        both = set(compared.marks) <= set(choice.filled.taken.values())
        return both and bool(_COMPARES & set(choice.profile.strong) & set(tells(self.skeleton.restore(goal.text))))

    def _compared(self, goal: Goal, compared: Comparison) -> list[Finding]:
        what = self.skeleton.restore(goal.text)
        choices = [self.chooser.choose(text) for text in compared.texts]
        for choice, mark in zip(choices, compared.marks, strict=True):
            known = choice is not None and choice.ready and choice.profile is (choices[0] or choice).profile
            if not known or choice is None or not _takes(choice, self.skeleton.atom(mark)):
                raise Stuck(self.speech.say("no_tool", what=short(what)))
        found = [finding for text in compared.texts for finding in super(Compound, self).asked(Goal(text))]
        numbers = [finding.measure() for finding in found]
        if len(found) != 2 or numbers[0] is None or numbers[1] is None:
            self.results += found
            raise Stuck(self.speech.say("apart"))
        first, second = numbers[0], numbers[1]
        if compared.how in ("which", "whether"):
            return [self._verdict(what, compared, first, second)]
        down = float(first) < float(second) if compared.how == "apart" else compared.less
        tree = Op("-", Num(second), Num(first)) if down else Op("-", Num(first), Num(second))
        if not self.reckoner.can(tree):
            self.results += found
            raise Stuck(self.speech.say("no_sum", what=f"{first} - {second}"))
        return [self.calculated(tree, what)]

    def _is_gathered(self, several: Gathered, goal: Goal) -> bool:
        """True if one tool answers the same question for each of the things, and none takes all of them at once."""
        choices = [self.chooser.choose(text) for text in several.texts]
        if any(choice is None or not choice.ready for choice in choices):
            return False
        ready = [choice for choice in choices if choice is not None]
        if any(choice.profile is not ready[0].profile or choice.profile.acts for choice in ready):
            return False
        whole = self.chooser.choose(goal.text)
        at_once = whole is not None and whole.ready and set(several.marks) <= set(whole.filled.taken.values())
        return not at_once and all(map(_takes, ready, map(self.skeleton.atom, several.marks)))

    def _gathered(self, goal: Goal, several: Gathered) -> list[Finding]:
        found = [finding for text in several.texts for finding in super(Compound, self).asked(Goal(text))]
        numbers = [number for finding in found if (number := finding.number()) is not None]
        if len(numbers) != len(several.texts):
            self.results += found
            raise Stuck(self.speech.say("no_number", what=short(self.skeleton.restore(goal.text))))
        tree = several.tree(numbers)
        if not self.reckoner.can(tree):
            self.results += found
            raise Stuck(self.speech.say("no_sum", what=short(self.skeleton.restore(goal.text))))
        return [self.calculated(tree, self.skeleton.restore(goal.text))]

    def _verdict(self, what: str, compared: Comparison, first: str, second: str) -> Finding:
        names = [self.skeleton.atom(mark).source for mark in compared.marks]
        above = float(first) < float(second) if compared.less else float(first) > float(second)
        if float(first) == float(second):
            head = self.speech.say("no" if compared.how == "whether" else "equal")
        elif compared.how == "whether":
            head = self.speech.say("yes" if above else "no")
        else:
            head = names[0] if above else names[1]
        text = f"{head} ({names[0]}: {first}, {names[1]}: {second})"
        return Finding(wants=what, tool="", args={}, observed=Observed(call_id="", ok=True, output=text))

    def _to_write(self, goal: Goal) -> Dictated | None:
        """The parts of an order to write down what tools can find out; None where it says or has the text already."""
        order = dictated(goal.text, self.skeleton) if goal.orders else None
        if order is None or not (self._reckons(order.what) or self.chooser.answers(order.what)):
            return None
        choice = self.chooser.choose(goal.text, orders=True)
        if choice is None or not choice.profile.acts or [param.role for param in choice.filled.open] != ["text"]:
            return None
        return order

    def _written(self, goal: Goal, order: Dictated) -> list[Finding]:
        tree = arithmetic(order.what, self.chooser)
        can = tree is not None and self.reckoner.can(tree)
        found = [self.arithmetic(Goal(order.what), tree)] if can and tree is not None else self.asked(Goal(order.what))
        self.consumed |= set(range(len(self.results), len(self.results) + len(found)))
        self.results += found
        value = found[-1].number() if can else None
        text = value if value is not None else "\n".join(finding.text() for finding in found)
        mark = self.skeleton.mark(Atom("quoted", text, f"“{order.what}”"))
        return self.asked(replace(goal, text=f"{order.lead} {mark}{order.rest}"))

    def _inner(self, goal: Goal) -> Inner | None:
        """The first question within a question that must be answered before it.

        Raises:
            Stuck: no tool answers it, and the outer tool would take its parts for something else.
        """
        for inner in inner_questions(goal.text):
            rest = around(goal.text, inner, " ")
            if not inner.noun or not tells(rest):
                continue
            outer = self.chooser.choose(rest, orders=goal.orders)
            if (
                outer is None
                or self._only_names_a_unit(rest, outer)
                or (inner.noun <= outer.profile.about and inner.label <= outer.profile.about)
            ):
                continue
            choice = self.chooser.choose(inner.text)
            if choice is not None and self._says_more(goal, choice, inner.text):
                continue
            if self._reckons(inner.text) or _answers(choice, inner, outer):
                return inner
            if inner.noun <= outer.profile.about:
                continue
            if any(param.role in _FREE for param in outer.profile.params if param.required):
                continue
            whole = self.chooser.choose(goal.text, orders=goal.orders)
            if whole is not None and any(mark in inner.text for mark in whole.filled.taken.values()):
                raise Stuck(self.speech.say("no_tool", what=short(self.skeleton.restore(inner.text))))
        return None

    def _only_names_a_unit(self, rest: str, outer: Choice) -> bool:
        """True for "in feet", "是多少厘米" around a question, unless a tool converts."""
        return not tells(rest) - _UNITS and "@convert" not in outer.profile.strong

    def _says_more(self, goal: Goal, choice: Choice, inner: str) -> bool:
        """True if the tool for a part of the question takes words from outside of that part too."""
        whole = self.chooser.choose(goal.text, orders=goal.orders)
        if whole is None or not whole.ready or whole.profile is not choice.profile:
            return False
        return any(
            value and value not in inner for value in (*whole.filled.taken.values(), *whole.filled.said.values())
        )

    def _reckons(self, text: str) -> bool:
        tree = arithmetic(text, self.chooser)
        return tree is not None and self.reckoner.can(tree)

    def _nested(self, goal: Goal, inner: Inner) -> list[Finding]:
        mark = self._mark(inner.text)
        return self.asked(replace(goal, text=around(goal.text, inner, mark)))

    def _mark(self, text: str) -> str:
        """A mark for the answer to a question, which is asked now."""
        tree = arithmetic(text, self.chooser)
        can = tree is not None and self.reckoner.can(tree)
        finding = self.arithmetic(Goal(text), tree) if can and tree is not None else self.asked(Goal(text))[0]
        value = finding.value()
        if value is None:
            self.results.append(finding)
            raise Stuck(self.speech.say("no_value", what=short(self.skeleton.restore(text))))
        self.consumed.add(len(self.results))
        self.results.append(finding)
        seen = extract(value)
        alone = len(seen.text.strip()) == 1 and len(seen.within(seen.text)) == 1
        return self.skeleton.mark(seen.within(seen.text)[0] if alone else Atom("quoted", value, value))

    def _is_priced(self, text: str) -> bool:
        """True if a tool answers a question and does not take a currency itself."""
        choice = self.chooser.choose(text)
        return choice is not None and choice.ready and all(param.role != "currency" for param in choice.profile.params)

    def _in_money(self, goal: Goal, inner: str, money: str) -> list[Finding]:
        mark = self._mark(inner)
        text = f"convert {mark} to {money}"
        choice = self.chooser.choose(text, self.results)
        pays = choice is not None and any(param.role == "currency" for param in choice.profile.params)
        if choice is None or not choice.ready or not pays:
            self.consumed.discard(len(self.results) - 1)
            raise Stuck(self.speech.say("no_tool", what=short(self.skeleton.restore(text))))
        return self.asked(replace(goal, text=text))

    def _multiplied(self, goal: Goal, found: list[Finding]) -> list[Finding]:
        """The amount of the question times the rate or the price that was found, where the tool takes no amount."""
        used = next((each for each in self.chooser.profiles if each.card.name == found[0].tool), None)
        roles = [param.role for param in used.params] if used is not None else []
        if used is None or "number" in roles:
            return found
        amount = self._amount(goal, found[0], exchanges=roles.count("currency") > 1, priced="@price" in used.strong)
        rate = found[0].number() if amount is not None else None
        if amount is None or rate is None:
            return found
        unused = self.speech.say("unused", what=short(amount.source))
        self.notes = [note for note in self.notes if note != unused]
        tree = Op("*", Num(amount.value), Num(rate))
        if not self.reckoner.can(tree):
            self.results += found
            raise Stuck(self.speech.say("no_sum", what=f"{amount.value} * {rate}"))
        return [self.calculated(tree, self.skeleton.restore(goal.text))]

    def _amount(self, goal: Goal, found: Finding, *, exchanges: bool, priced: bool) -> Atom | None:
        """How much is exchanged, or how many things of that price are asked for; None where that is not clear."""
        if exchanges:
            amounts = [atom for atom in self.skeleton.within(goal.text) if atom.kind == "number" and not atom.weak]
            return amounts[0] if len(amounts) == 1 else None
        if not priced or found.lost:
            return None
        return several_of(goal.text, self.skeleton, " ".join(str(value) for value in found.args.values()))


def _takes(choice: Choice, atom: Atom) -> bool:
    """True if a value of the task went into the call."""
    return any(str(value) in (atom.value, atom.source, atom.zone) for value in choice.filled.args.values())


def _answers(choice: Choice | None, inner: Inner, outer: Choice) -> bool:
    """True if a tool other than the outer one knows the noun of an inner question."""
    if choice is None or not choice.ready or choice.profile is outer.profile:
        return False
    values = (*choice.filled.taken.values(), *choice.filled.said.values())
    if values and not any(value in inner.text for value in values):
        return False
    return bool(inner.noun & set(choice.profile.strong)) and inner.noun | inner.label <= choice.profile.about
