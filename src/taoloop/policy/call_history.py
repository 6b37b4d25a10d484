"""The calls that a run has made: what they returned, and whether one was made before. A view of the trace.

Rules use it to require that a value is in a record, or that another call came first. Only what the executor itself has
seen counts: an output that is stored whole, of a tool that the run called itself. What a client reported, what came out
of a run within a call, and the preview of a long output are unknown. A text in an output is one value, whatever it
says: nothing is searched for in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from decimal import Decimal
from typing import Any, Final

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call, PlanStep, call_digest
from taoloop.core.events import (
    ActionRequested,
    ApprovalGiven,
    ApprovalRefused,
    Compensated,
    Event,
    Observed,
    RunStarted,
)
from taoloop.core.text import lazy_pattern
from taoloop.core.trace import Trace
from taoloop.core.value_origins import read_document
from taoloop.core.views.steps import UNCLEAR, CallView
from taoloop.policy.foreseen_arguments import declared_arguments, foreseen_names
from taoloop.policy.quantities import account_number_of, amount_of, decimal_of, is_iban
from taoloop.policy.value_match import normalise_text, strip_invisible

_EMPTY: tuple[Any, ...] = (None, "", [], {})
_DECIMAL = lazy_pattern(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?")
_NUMBER = lazy_pattern(r"[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)")
_MAX_NUMBER_CHARS = 42  # of a number, an amount, or an account in groups


class _Unknown:
    """In place of an output that is not known as a whole."""


UNKNOWN: Final = _Unknown()


class PastCall:
    """One successful call."""

    __slots__ = ("_document", "_observed", "args", "call_id", "is_undone")

    def __init__(self, args: Any, observed: Observed, *, is_known: bool) -> None:
        self.call_id, self.args, self.is_undone = observed.call_id, args, False
        self._observed: Observed | None = observed if is_known else None
        self._document: Any = UNKNOWN

    @property
    def document(self) -> Any:
        """The output as data, `UNKNOWN` without the whole. A text that is no JSON object or list is one value."""
        if self._observed is not None:
            self._document, self._observed = _document_of(self._observed), None
        return self._document


def _document_of(observed: Observed) -> Any:
    if observed.artifact is not None or observed.child is not None:
        return UNKNOWN
    text = observed.output
    if observed.form == "text" and not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return read_document(text)
    except (ValueError, RecursionError):
        return UNKNOWN if observed.form == "json" else text


class PastCalls:
    """The successful calls of a run by tool; of calls with the same arguments the last one, which is the news."""

    def __init__(self) -> None:
        self._cards: dict[str, ToolCard] = {}
        self._open: dict[str, tuple[ActionRequested, Any]] = {}
        self._calls: dict[str, dict[str, PastCall]] = {}

    def fold(self, event: Event) -> None:
        """Process the next event."""
        match event.fact:
            case RunStarted() as fact:
                self._cards = {card.name: card for card in fact.agent.tools}
            case ActionRequested() as fact if fact.verdict != "deny":
                self._open[fact.call_id] = fact, fact.args
            case ApprovalGiven(call_id=call_id, args=edited) if edited is not None and call_id in self._open:
                self._open[call_id] = self._open[call_id][0], edited
            case ApprovalRefused(call_id=call_id):
                self._open.pop(call_id, None)
            case Observed() as fact:
                self._fold_observation(fact)
            case Compensated(call_id=call_id, ok=True):
                for calls in self._calls.values():
                    for past in calls.values():
                        past.is_undone = past.is_undone or past.call_id == call_id
            case _:
                pass

    def _fold_observation(self, fact: Observed) -> None:
        requested, args = self._open.pop(fact.call_id, (None, None))
        if requested is None or not fact.ok or fact.error is not None:
            return
        card = self._cards.get(requested.tool)
        is_known = card is not None and card.performed_by == "agent"
        calls = self._calls.setdefault(requested.tool, {})
        calls[call_digest(requested.tool, args)] = PastCall(args, fact, is_known=is_known)

    def of(self, tool: str) -> Iterator[PastCall]:
        """The successful calls of a tool."""
        yield from self._calls.get(tool, {}).values()


class Repetitions:
    """Which calls of a run are the same, apart from what makes no difference to their effect."""

    def __init__(self, calls: Mapping[str, CallView]) -> None:
        self._calls = calls
        self._unread: dict[str, list[str]] = {}  # call ids, by tool
        self._ids_by_key: dict[tuple[str, str], list[str]] = {}
        self._undone: set[str] = set()
        self._earlier: tuple[Call, ...] = ()  # of the steps before, where the run is a step of a plan

    def fold(self, event: Event) -> None:
        """Process the next event."""
        match event.fact:
            case RunStarted(plan_step=PlanStep(earlier=earlier)):
                self._earlier = earlier
            case ActionRequested(verdict="allow" | "ask") as fact:
                self._unread.setdefault(fact.tool, []).append(fact.call_id)
            case ApprovalGiven(call_id=call_id, args=edited) if edited is not None and call_id in self._calls:
                self._unread.setdefault(self._calls[call_id].requested.tool, []).append(call_id)
            case Compensated(call_id=call_id, ok=True):
                self._undone.add(call_id)
            case _:
                pass

    def count(self, card: ToolCard, args: Any, *, excluded: str = "") -> int:
        """How many such calls have happened, may have, or still may; without the call of the id `excluded`."""
        for call_id in self._unread.pop(card.name, ()):
            key = card.name, _effect_key(card, self._calls[call_id].args)
            ids = self._ids_by_key.setdefault(key, [])
            if call_id not in ids:
                ids.append(call_id)
        effect = _effect_key(card, args)
        ids = self._ids_by_key.get((card.name, effect), [])
        before = sum(call.tool == card.name and _effect_key(card, call.args) == effect for call in self._earlier)
        return before + sum(self._counts(call_id) for call_id in ids if call_id != excluded)

    def _counts(self, call_id: str) -> bool:
        call = self._calls[call_id]
        if call_id in self._undone or isinstance(call.approval, ApprovalRefused):
            return False
        observed = call.observed
        if observed is None or observed.ok or observed.child is not None:
            return True
        return bool(call.attempts) and observed.error is not None and observed.error.code in UNCLEAR


def past_calls(trace: Trace) -> PastCalls:
    """The successful calls of a run."""
    return trace.view("past_calls", PastCalls)


def repetitions(trace: Trace) -> Repetitions:
    """The calls of a run that are the same."""
    make: Callable[[], Repetitions] = lambda: Repetitions(trace.calls)  # noqa: E731  # its type
    return trace.view("repetitions", make)


def _effect_key(card: ToolCard, args: Any) -> str:
    """What calls with the same effect have in common: their arguments without what makes no difference.

    Arguments that the tool does not declare, on which nothing depends, that are empty or have their default; and how a
    value is written: spaces, the case of letters, 5.00 for 5, a list of one.
    """
    if not isinstance(args, Mapping):
        return call_digest("", _normalise(args))
    known, kept = foreseen_names(card), dict[str, Any]()
    for name, value in declared_arguments(card, args).items():
        rule = card.parameters.get(name)
        default = rule.get("default") if isinstance(rule, Mapping) else None
        effective = _normalise(value, known)
        if card.role(name) != "minor" and effective not in _EMPTY and effective != _normalise(default, known):
            kept[name] = effective
    return call_digest("", kept)


def _normalise(value: Any, known: Set[str] = frozenset()) -> Any:
    """A value in the one way to write it. `known`: the names that the schema of the tool has somewhere."""
    if isinstance(value, str):
        return _normalise_text(value)
    if isinstance(value, Mapping):
        names = known & value.keys() or value.keys()
        parts = {name: _normalise(value[name], known) for name in names}
        return {name: part for name, part in parts.items() if part not in _EMPTY}
    if isinstance(value, list | tuple):
        members = [part for part in (_normalise(part, known) for part in value) if part not in _EMPTY]
        if all(isinstance(part, str) for part in value):
            members.sort()
        return members[0] if len(members) == 1 else members
    if isinstance(value, int | float) and not isinstance(value, bool) and (number := decimal_of(value)) is not None:
        return _number_text(number)
    return value


def _normalise_text(text: str) -> str:
    """A text as it is compared; a number, an amount or an account in the one way to write it."""
    plain = normalise_text(strip_invisible(text))
    if len(plain) > _MAX_NUMBER_CHARS:
        return plain
    if _NUMBER.fullmatch(plain):
        return _number_text(Decimal(plain.replace(",", "")))
    if (amount := amount_of(plain)) is not None:
        return f"{_number_text(amount[0])} {amount[1]}"
    compact = plain.replace(" ", "").replace("-", "")
    return compact if (compact and is_iban(compact.upper())) or account_number_of(plain) else plain


def _number_text(number: Decimal) -> str:
    text = f"{number:f}" if number else "0"
    return text.rstrip("0").rstrip(".") if "." in text else text


def same_value(first: Any, second: Any) -> bool:
    """Whether two plain values are the same: texts exactly, numbers by value, and a number as a text, exactly.

    A whole number is an id as well, so its text has its digits alone; any other one may have further zeros.
    """
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, str) != isinstance(second, str):
        text, number = (first, second) if isinstance(first, str) else (second, first)
        if isinstance(number, float):
            return _DECIMAL.fullmatch(text) is not None and Decimal(text) == Decimal(str(number))
        return isinstance(number, int) and text == str(number)
    is_plain = isinstance(first, str | int | float) and isinstance(second, str | int | float)
    return is_plain and first == second
