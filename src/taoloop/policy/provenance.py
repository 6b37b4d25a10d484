"""Where text of a run came from: what a person wrote, and whether the model has seen anything else. A view.

The problem: a model that has read a mail, a page or a row of a database may be following instructions in it, and
nobody can tell that from the call that it then asks for. Reading the call more closely does not help, and neither does
a model that looks for injections, because the attacker can try until it misses one.

The idea: do not judge the model, judge where each value came from. The view is folded over the events of a run. It
keeps the texts that a person or the operator wrote (`words`: task, user turns, notes, instructions, values that a
person vouched for) and the ids and outputs of tools that the operator trusts. Everything else that comes back from the
world sets `tainted`, once and for good: summaries and notes of the model inherit what it has seen. From then on a value
is endorsed only if it appears in a trusted text, by typed equality (`value_match`): an address equals an address, a
number a number, never by resemblance.

The invariant: only `run_started`, notes by people, approvals and outputs of trusted tools can make a value trusted, and
nothing that a tool, a server or the model wrote can. What follows from that is in `profiles.risk_class`: after the
first untrusted output, a write runs without a question only if it sends nothing out, the words of the task call for its
tool (and, where a model was asked what they call for, its reply names it), and each argument is endorsed (`content`,
which others read, and `minor`, on which nothing depends, need not be), unless a rule, an approval in advance, or the
profile `autonomous` allows it. Whatever was not understood (a cut output, an unknown card, a key that no schema names)
stays untrusted.

Tested in tests/policy/test_provenance.py (what taints, what is trusted), test_value_match.py (equality, and time
proportional to the text), test_judge.py (the verdicts that follow), and against a model that obeys every injection in
tests/security and benchmarks/security.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from taoloop.core.cards.questions import answer_text, is_by_starter, is_own_words, is_question
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import is_discovery_tool
from taoloop.core.decision import Call
from taoloop.core.events import (
    ActionRequested,
    ApprovalGiven,
    ApprovalRefused,
    Event,
    JudgedAgain,
    ModelErred,
    ModelReplied,
    Noted,
    Observed,
    Pinned,
    Resumed,
    RunStarted,
    Source,
)
from taoloop.core.handles import is_approved_content, is_trusted_output, reader_answer
from taoloop.core.policy import Policy, TaskAuthority, lesser_authority
from taoloop.core.trace import Trace
from taoloop.core.value_origins import is_field_path, parse_path, read_document, values_at
from taoloop.core.views.plans import MAKE_PLAN, PLAN_RULE
from taoloop.core.views.steps import LESSON
from taoloop.core.views.todos import is_todo_card
from taoloop.policy.foreseen_arguments import parts_of_value, unforeseen_names
from taoloop.policy.grants import FixedCalls, Grant, grant_given
from taoloop.policy.intent.clauses import ClauseIndex, Plain
from taoloop.policy.intent.mentions import Exclusions
from taoloop.policy.intent.requests import is_confirmation
from taoloop.policy.intent.task_intent import TaskIntent, last_request
from taoloop.policy.marked_text import split_marked
from taoloop.policy.request_terms import asks_now
from taoloop.policy.targets import (
    direction_of,
    first_name,
    is_kind_word,
    is_target_role,
    lacks_target,
    leaves,
    may_have_parts,
    names_nothing,
    texts_within,
    value_role,
)
from taoloop.policy.task_authors import is_from_person, requests_of, texts_of_people
from taoloop.policy.value_match import TrustedText

_FREE_ROLES = ("content", "minor")  # text that others read, and what nothing depends on: it may say anything
GUARD = "guard"
"""The author of the runtime's own remarks."""


class Provenance:
    """The labels of a run, folded from its events. Everything here costs the same however long the run is.

    `words` are what a person or the operator wrote; `looked_up` the outputs of tools that the operator trusts.
    `tainted`: untrusted text was shown to the model. It never becomes untainted again: summaries and notes of the
    model inherit what it has seen. Where a model sees only handles, that is no more than the answers to questions that
    it gave the choice for; a call that takes values by handles is judged as tainted by itself (`judge`).
    `authority`: what the words of the user may authorise. `has_foreign_task`: a model that had read untrusted text
    wrote the task.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._ids: dict[str, set[str]] = {}
        self._searches: dict[tuple[str, str], set[frozenset[Plain]]] = {}  # of each kind and id, what gave it
        self.words, self.intent, self._earlier_intent = TrustedText(), TaskIntent(), TaskIntent()
        self.confirmed_intent = TaskIntent()
        """Where the task only says yes: the last request before it in the conversation."""
        self._exclusions, self._clauses = Exclusions(), ClauseIndex()
        self.authority: TaskAuthority = "full"
        self.answers: list[str] = []  # of the user to questions of the model, where they endorse values
        self._operator_words = self.words
        self._looked_up, self._unread_lookups = TrustedText(), list[str]()
        self.tainted, self.has_foreign_task, self.pin_asked = False, False, False
        self.pinned: Pinned | None = None
        self.fixed_calls = FixedCalls()
        self.reads_before: dict[str, tuple[str, ...]] = {}
        """For each question of a tainted run, the calls whose untrusted outputs the model had read, the newest first;
        an empty text is the task or the conversation."""
        self._untrusted_reads: list[str] = []
        self._labels: Mapping[str, str] = {}
        self._cards: dict[str, ToolCard] = {}
        self._grants: dict[tuple[str, str], list[Grant]] = {}
        self._open_requests: dict[str, ActionRequested] = {}

    def fold(self, event: Event) -> None:
        """Take in the next event."""
        match event.fact:
            case RunStarted() as fact:
                self._fold_start(fact)
            case Noted() as fact:
                self._fold_note(fact)
            case ModelReplied(purpose="pin") | ModelErred(purpose="pin"):
                self.pin_asked = True
            case Pinned() as fact:
                self.pin_asked, self.pinned = True, fact
                self.fixed_calls = FixedCalls(fact.calls, passes=self._may_pass)
            case ActionRequested() as fact:
                self._fold_request(fact)
            case JudgedAgain() as fact if (judged := self._open_requests.get(fact.call_id)) is not None:
                self._open_requests[fact.call_id] = replace(
                    judged, args=fact.args, rule=fact.rule, sources=fact.sources
                )
            case ApprovalGiven() as fact:
                self._fold_approval(fact)
            case Resumed(cards=cards) if cards:
                self._fold_changed(cards)
            case ApprovalRefused() as fact:
                self._open_requests.pop(fact.call_id, None)
            case Observed() as fact:
                self._fold_observation(fact)
            case _:
                pass

    def _fold_note(self, note: Noted) -> None:
        if note.by != GUARD:
            own = self._own_words(note.text)
            self._add_words(own, by_operator=True)
            self.intent.add(own)
        elif note.about.startswith(LESSON):
            self.tainted = True  # a model wrote it, perhaps from what a stranger had written

    def _may_pass(self, call: Call) -> bool:
        """Whether the words of the task bear a call that was fixed ahead: they give every value, and ask for its act.

        The model may have made the call up, and its values: nothing had been looked up yet. A read has no act that
        words ask for; what a tool of an undeclared tier does is not known.
        """
        if self.authority != "full" and (self.pinned is None or self.pinned.by == "model"):
            return False
        card = self._cards.get(call.tool)
        if card is None or card.tier is None or not self._is_quoted(call, looked_up=False):
            return False
        if card.tier != "read" and (
            self.names_no_target(card, call.args) or self.takes_input_for_target(card, call.args)
        ):
            return False
        return card.tier in ("read", "draft") or self.is_intended(card, call.args)

    def _is_quoted(self, call: Call, *, looked_up: bool = True) -> bool:
        """Whether the trusted texts give every argument of a call, a target among them.

        `looked_up`: the outputs of trusted tools count as well.
        """
        card = self._cards.get(call.tool)
        return (
            card is not None
            and isinstance(call.args, Mapping)
            and not lacks_target(card, call.args)
            and all(self.is_endorsed(card, name, value, looked_up=looked_up) for name, value in call.args.items())
        )

    def _fold_start(self, started: RunStarted) -> None:
        if started.tainted:
            self._taint("")
        self.has_foreign_task = not is_from_person(started)
        self._labels = started.labels
        self._cards = {card.name: card for card in started.agent.tools}
        if any(map(_shows_foreign_content, started.agent.tools)):
            self._taint("")
        self.authority = started_authority(started, self._policy)
        if self.authority != "full":
            self._operator_words = TrustedText()
        self._add_words(operator_text(started), by_operator=True)
        for text in texts_of_people(started):
            self._add_words(self._own_words(text))
        if self.authority == "none":
            return
        tasks = [self._own_words(text) for text in requests_of(started)]
        earlier = [self._own_words(message.content) for message in started.history if message.role == "user"]
        for texts, intent in ((tasks, self.intent), (earlier, self._earlier_intent)):
            for text in texts:
                intent.add(text)
        if all(map(is_confirmation, tasks)):
            self.confirmed_intent.add(last_request(earlier))

    def _add_words(self, text: str, *, by_operator: bool = False) -> None:
        """Add a text of a person. What it says is not wanted counts, whatever its author may authorise.

        `by_operator`: it is of the operator, or of somebody who answers in their place.
        """
        if by_operator or self.authority != "none":
            self.words.add(text)
        if by_operator and self._operator_words is not self.words:
            self._operator_words.add(text)
        self._exclusions.add(text)
        self._clauses.add(text)

    def _own_words(self, text: str) -> str:
        """What a text says besides what it marks as somebody else's, which taints the run."""
        split = split_marked(text)
        if split.is_marked:
            self._taint("")
        return split.own

    def _taint(self, source: str) -> None:
        self.tainted = True
        if source not in self._untrusted_reads:
            self._untrusted_reads.append(source)

    def _fold_changed(self, cards: Sequence[ToolCard]) -> None:
        """What was allowed in advance was allowed for the tools as they were."""
        self._cards |= {card.name: card for card in cards}
        if any(map(_shows_foreign_content, cards)):
            self._taint("")
        names = {card.name for card in cards}
        self._grants = {key: grants for key, grants in self._grants.items() if key[0] not in names}
        self.fixed_calls.forget(names)

    def _fold_request(self, fact: ActionRequested) -> None:
        if fact.verdict != "deny":
            self._open_requests[fact.call_id] = fact
        if self.tainted and is_question(self._cards.get(fact.tool)):
            self.reads_before[fact.call_id] = tuple(reversed(self._untrusted_reads))

    def _fold_approval(self, fact: ApprovalGiven) -> None:
        requested = self._open_requests.get(fact.call_id)
        if requested is None or (requested.tool == MAKE_PLAN and requested.rule == PLAN_RULE):
            return  # what a plan allows is in the runs of its steps, and its goals are the model's words
        if is_question(self._cards.get(requested.tool)):
            self._fold_answer(requested, fact)
            return
        if fact.scope == "rule":
            self._grants.setdefault((requested.tool, requested.rule), []).append(grant_given(requested, fact.args))
        if fact.scope == "values":
            self._trust_values(requested, requested.args)
        if fact.args is not None:
            before = dict(leaves(requested.args))
            self._trust_values(
                requested, {path: value for path, value in leaves(fact.args) if before.get(path) != value}
            )

    def _fold_answer(self, requested: ActionRequested, fact: ApprovalGiven) -> None:
        """Take an answer of the user as their words; a choice is the model's: once tainted, picking one adds nothing.

        Anybody else's answer, or one of which nobody knows whose it is, comes in as an untrusted output.
        """
        if fact.args is None or not is_by_starter(self._labels, fact.by, fact.authenticated):
            return
        self._open_requests.pop(requested.call_id, None)  # its observation says no more than the answer
        if self.tainted and not is_own_words(requested.args, fact.args):
            return
        own = self._own_words(answer_text(fact.args))
        self._add_words(own)
        if self.authority != "none":
            self.intent.add(own)
            self.answers.append(own)

    def _trust_values(self, requested: ActionRequested, args: Any) -> None:
        """Take values that a person vouched for; not what is only content, for that may be anybody's words."""
        card = self._cards.get(requested.tool)
        for path, value in leaves(args):
            is_text = isinstance(value, str | int | float) and not isinstance(value, bool)
            if is_text and (card is None or card.role(first_name(path)) != "content"):
                self.words.add(str(value))
                self._operator_words.add(str(value))  # which may be the same
                self._exclusions.vouch_for(value)

    def _fold_observation(self, fact: Observed) -> None:
        requested = self._open_requests.pop(fact.call_id, None)
        if requested is None:
            return  # it was not run: the text is our own
        card = self._cards.get(requested.tool)
        if _is_own_text(requested, card):
            return
        if fact.ok and fact.error is None and is_approved_content(requested, card):
            for text in texts_within(fact.output):  # exactly what was approved, whatever the model has read
                self._add_words(text, by_operator=True)
            return
        if is_trusted_output(requested, self._policy) and not is_question(card):
            if not self.tainted:  # a trusted tool that gets untrusted text may return it
                self._unread_lookups.append(fact.output)
            return
        fields = list(self._id_fields(requested)) if fact.ok and fact.error is None else []
        terms = self._search_terms(requested) if fields else frozenset[Plain]()
        if not all(map(names_nothing, terms)) and self._is_quoted(Call(tool=requested.tool, args=requested.args)):
            for kinds in fields:
                self._collect_ids(fact.output, kinds, terms)
        if is_untrusted_output(requested, fact, card, self._policy):
            self._taint(f"{requested.tool} ({fact.call_id})")

    def _id_fields(self, requested: ActionRequested) -> Iterator[Mapping[str, str]]:
        """The fields with ids of the service's own making: those that the card names, and those of the policy."""
        card = self._cards.get(requested.tool)
        if card is not None and card.ids:
            yield card.ids
        for pattern, kinds in self._policy.trusted_fields.items():
            if fnmatchcase(requested.tool, pattern):
                yield kinds

    def _search_terms(self, requested: ActionRequested) -> frozenset[Plain]:
        """What a call looked for; for an id that was itself looked up, what that was looked up by."""
        card = self._cards.get(requested.tool)
        terms = set[Plain]()
        for path, value in leaves(requested.args):
            role = "target" if card is None else card.role(first_name(path))
            if role == "minor" or value in (None, "") or isinstance(value, bool):
                continue
            searches = self._searches.get((role.partition(":")[2], _plain_form(value)), ())
            terms |= frozenset().union(*searches) if searches else {value}
        return frozenset(terms)

    def _collect_ids(self, output: str, fields: Mapping[str, str], terms: frozenset[Plain]) -> None:
        """Take the values in the trusted fields of an output that the task asked for, and what was looked for."""
        document: Any
        try:
            document = read_document(output)
        except (ValueError, RecursionError):
            document = output  # a text, or one that was cut: nothing is in it
        found = [(fields[name], value) for name, value in parts_of_value(document) if name in fields]
        paths = [(parse_path(name), kind) for name, kind in fields.items() if is_field_path(name)]
        found += [(kind, value) for path, kind in paths for value in values_at(document, path)]
        for kind, value in found:
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                self._ids.setdefault(kind, set()).add(_plain_form(value))
                self._searches.setdefault((kind, _plain_form(value)), set()).add(terms)

    def is_intended(self, card: ToolCard, args: Any) -> bool:
        """Whether the words of the task ask for a call now, and the reply about them, if there is one, names its tool.

        What a person fixed in place of a model needs no words.
        """
        if self.pinned is not None and (self.pinned.by != "model" or card.name not in self.pinned.tools):
            return card.name in self.pinned.tools
        return self.intent.calls_for(card) and asks_now(self.intent.texts, card, args, by_reply=False)

    def may_be_meant(self, card: ToolCard) -> bool:
        """Whether a reply names this tool, and the words leave room for it.

        They do if the same person asked for the act earlier in the conversation, or if the task is to do what its
        author wrote elsewhere ("do the tasks on my list"); what cannot be undone must be asked for here. It is enough
        to ask a person, and for nothing else.
        """
        if self.pinned is None or card.name not in self.pinned.tools:
            return False
        is_on_list = card.tier == "write" and self.intent.refers_to_own_list
        return is_on_list or self._earlier_intent.calls_for(card)

    def is_granted(self, tool: str, rule: str, args: Any, sources: Sequence[Source]) -> bool:
        """Whether a person allowed further calls such as this one, which this rule asks about."""
        grants = self._grants.get((tool, rule))
        return grants is not None and any(grant.covers(list(leaves(args)), sources) for grant in grants)

    def is_trusted_value(self, value: Any, role: str, *, looked_up: bool = True) -> bool:
        """Whether a person wrote this value or a trusted tool returned it; of an object or a list, every part."""
        if self.is_excluded(value, role):
            return False
        if self.words.has(value, role) or (looked_up and self.was_looked_up(value, role)):
            return True
        if isinstance(value, str | int | float) and value != "" and self._exclusions.is_vouched_for(value):
            return True
        parts = value.values() if isinstance(value, Mapping) else value
        return (
            isinstance(value, Mapping | list | tuple)
            and bool(value)
            and all(self.is_trusted_value(part, role, looked_up=looked_up) for part in parts)
        )

    def is_excluded(self, value: Any, role: str) -> bool:
        """Whether a person or the operator named a value where they say what is not wanted; of an object, any part.

        It does not help that it is also named elsewhere, unless a person vouched for it. Text that others read, and
        what nothing depends on, may say anything.
        """
        return role not in _FREE_ROLES and any(map(self._exclusions.excludes, _plain_values(value)))

    def names_no_target(self, card: ToolCard, args: Mapping[str, Any]) -> bool:
        """Whether a call lacks a target, or has one that only says of which kind it is: "the order"."""
        return lacks_target(card, args) or any(
            is_kind_word(part) and not self._is_name(card, name, part)
            for name, value in args.items()
            if is_target_role(card.role(name))
            for part in _plain_values(value)
        )

    def _is_name(self, card: ToolCard, name: str, value: Plain) -> bool:
        """Whether a common word is the name of something: a choice of the tool, or somebody calls something that."""
        parts = (part for _, part in parts_of_value(card.parameters.get(name)) if isinstance(part, Mapping))
        if any(value in part["enum"] for part in parts if isinstance(part.get("enum"), list | tuple)):
            return True
        is_given = self._exclusions.is_vouched_for(value) or self.was_looked_up(value, card.role(name))
        return is_given or self._clauses.is_name(value)

    def names_for_change(self, value: Any) -> bool:
        """Whether people ask for something to be changed or replaced, or vouched for it."""
        return all(
            self._exclusions.is_vouched_for(part) or self._clauses.names_for_change(part)
            for part in _plain_values(value)
        )

    def takes_input_for_target(self, card: ToolCard, args: Mapping[str, Any]) -> bool:
        """Whether a target of a call is named only as an input or for another request, or was looked up by such a name.

        "Write the mean of data.csv to out.txt" endorses no write to data.csv. "Move it from Inbox to Archive" endorses
        Inbox beside Archive. "Change the payment of order S-6 to PayPal" names no other order. "Copy a.txt to b.txt"
        endorses no copy of b.txt to a.txt.
        """
        if self._swaps_directions(args):
            return True
        for name, value in args.items():
            role = card.role(name)
            if not is_target_role(role):
                continue
            remaining = {key: other for key, other in args.items() if key != name and card.role(key) not in _FREE_ROLES}
            if any(self._is_input(card, role, part, remaining) for part in _plain_values(value)):
                return True
        return False

    def _swaps_directions(self, args: Mapping[str, Any]) -> bool:
        """Whether a call takes what the task names as the destination for the source, or the other way round."""
        values: dict[str, list[Plain]] = {"from": [], "to": [], "": []}
        for name, value in args.items():
            values[direction_of(name)] += _plain_values(value)
        sources, destinations = values["from"], values["to"]
        if not sources or not destinations or all(map(self._exclusions.is_vouched_for, destinations)):
            return False
        goes, comes = self._clauses.is_output, self._clauses.is_input
        if any(goes(source) and not comes(source) for source in sources):
            return any(comes(destination) or not goes(destination) for destination in destinations)
        return any(comes(destination) and not goes(destination) for destination in destinations) and not any(
            map(comes, sources)
        )

    def _is_input(self, card: ToolCard, role: str, value: Plain, remaining: Mapping[str, Any]) -> bool:
        """Whether a target is named only as an input, or for another request, or was looked up by what is an input."""
        searches = self._searches.get((role.partition(":")[2], _plain_form(value)), set())
        if searches and not self.words.has(value, role):
            return all(any(self._is_source(card, role, term, remaining, terms) for term in terms) for terms in searches)
        return self._is_source(card, role, value, remaining)

    def _is_source(
        self,
        card: ToolCard,
        role: str,
        value: Plain,
        remaining: Mapping[str, Any],
        terms: frozenset[Plain] = frozenset(),
    ) -> bool:
        """The same of a value that is named, beside `others`. `terms`: what was looked up together with it."""
        if self._exclusions.is_vouched_for(value):
            return False
        has_output = any(self._clauses.is_output(part) for part in (*terms, *_plain_values(remaining)))
        if not has_output and self._clauses.is_only_input(value, is_ref=role.startswith("ref:")):
            return True
        targets = {key: other for key, other in remaining.items() if is_target_role(card.role(key))}
        texts = (part for part in _plain_values(targets) if any(map(str.isalpha, str(part))))
        is_beside = any(self._clauses.names_for(card, part) for part in texts)
        return self._clauses.is_for_another(card, value, beside=is_beside)

    def is_endorsed(self, card: ToolCard, name: str, value: Any, *, looked_up: bool = True) -> bool:
        """Whether trusted text contains an argument of a call, and every key in it that its schema does not declare."""
        role = value_role(card, name, value)
        if role == "minor":
            return True
        is_list = isinstance(value, Mapping | list | tuple) and bool(value)
        if is_list and role.partition(":")[0] in ("target", "amount") and not may_have_parts(card, name):
            return False
        has = self.is_trusted_value(value, role, looked_up=looked_up)
        return has and all(self.words.has_phrase(key) for key in unforeseen_names(card, {name: value}))

    @property
    def looked_up(self) -> TrustedText:
        """The outputs of tools that the operator trusts; read only when something is looked up in them."""
        while self._unread_lookups:
            self._looked_up.add(self._unread_lookups.pop())
        return self._looked_up

    def was_looked_up(self, value: Any, role: str) -> bool:
        """Whether a value stands in a trusted output, or is one that a trusted field of its kind gave."""
        base, _, kind = role.partition(":")
        if kind and isinstance(value, str | int | float) and not isinstance(value, bool):
            is_given = _plain_form(value) in self._ids.get(kind, ())
            if is_given or base == "ref":
                return is_given
        return self.looked_up.has(value, role)

    def has_address(self, value: Any) -> bool:
        """Whether an address of a page stands there, exactly: no other word names a place on the network.

        A user with less than full authority names none.
        """
        is_named = self._operator_words.has_address(value) or self.looked_up.has_address(value)
        return is_named and not self._exclusions.excludes_address(value)


def sources_of(trace: Trace, policy: Policy | None = None) -> Provenance:
    """The labels of a run as far as it has got, by what its policy trusts, or another one."""
    own = trace.agent.policy
    if policy is None or policy is own or policy.version == own.version:
        return trace.view("sources", lambda: Provenance(own))
    return trace.view(f"sources/{policy.version}", lambda: Provenance(policy))


def is_untrusted_output(requested: ActionRequested, observed: Observed, card: ToolCard | None, policy: Policy) -> bool:
    """Whether what a call returned was shown to the model and taints its run, unless it is an answer of the user."""
    is_approved = observed.ok and observed.error is None and is_approved_content(requested, card)
    is_trusted = is_trusted_output(requested, policy) and not is_question(card)
    is_shown = policy.observations == "shown" or reader_answer(requested, observed) is not None
    return is_shown and not (is_approved or is_trusted or _is_own_text(requested, card))


def _is_own_text(requested: ActionRequested, card: ToolCard | None) -> bool:
    """Whether an output describes the run's own tools, as the prompt does, or counts what the model itself wrote."""
    is_plan = (requested.tool, requested.rule) == (MAKE_PLAN, PLAN_RULE)
    return is_plan or is_discovery_tool(card) or is_todo_card(card)


def started_authority(started: RunStarted, policy: Policy | None = None) -> TaskAuthority:
    """What the user's words may authorise in a run that began so, by its own policy or another one."""
    allowed = (policy or started.agent.policy).task_authority
    return allowed if started.authority is None else lesser_authority(started.authority, allowed)


def authority_of(trace: Trace) -> TaskAuthority:
    """What the user's words may authorise in a run; `full` before it began."""
    return "full" if trace.started is None else started_authority(trace.started, trace.agent.policy)


def tainted(trace: Trace) -> bool:
    """Whether the model has been shown anything that neither a person nor the operator wrote."""
    return trace.started is not None and sources_of(trace).tainted


def trusted_texts(trace: Trace) -> tuple[str, ...]:
    """What a person wrote in this run, if it endorses values: what an inner run may quote them from."""
    started = trace.started
    if started is None:
        return ()
    by_user = texts_of_people(started) if authority_of(trace) != "none" else ()
    notes = (event.fact.text for event in trace.events if isinstance(event.fact, Noted) and event.fact.by != GUARD)
    return (*(split_marked(text).own for text in (*by_user, *notes)), *sources_of(trace).answers)


def operator_text(started: RunStarted) -> str:
    """The operator's part of the agent's instructions."""
    instructions, by_user = started.agent.instructions, started.user_instructions
    if not instructions.endswith(by_user):  # nobody can tell whose words they are
        return ""
    return instructions[: len(instructions) - len(by_user)]


def _shows_foreign_content(card: ToolCard) -> bool:
    """Whether a card describes content that nobody approved, so that its author may have written to the model."""
    return card.described_by != "operator" and any(not content.trusted for content in card.contents)


def _plain_values(value: Any) -> Iterator[str | int | float]:
    """The texts and numbers in a value that say something."""
    for _, part in leaves(value):
        if isinstance(part, str | int | float) and not isinstance(part, bool) and part != "":
            yield part


def _plain_form(value: str | int | float) -> str:
    """A plain value as a text; a whole number is the same with and without decimals."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
